use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::filter::{FilterError, RuleParser};
use crate::tree::SymlinkPolicy;

/// A tree of files with these contents.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

/// The tree of the scenarios of the specification.
fn scenario(extra: &[(&str, &str)]) -> TempDir {
    let files = ["a/b/c/f", "a/x.o", "a/k", "d/x.o", "d/keep.o", "e/z", "top"];
    let all: Vec<(&str, &str)> = files.iter().map(|path| (*path, "")).chain(extra.iter().copied()).collect();
    tree(&all)
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    let mut read = |_: &[u8]| Err(io::ErrorKind::NotFound.into());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    for text in texts {
        parser.filter(text.as_bytes()).unwrap();
    }
    parser.finish()
}

fn open(path: &std::path::Path) -> Tree {
    Tree::open(path, SymlinkPolicy::FollowAll).unwrap()
}

fn members(tree: &Tree, dir: &str) -> Vec<(String, bool)> {
    let held = tree.dir(RelPath::new(if dir.is_empty() { b"." } else { dir.as_bytes() })).unwrap();
    let mut members: Vec<(String, bool)> = held
        .list()
        .unwrap()
        .into_iter()
        .map(|member| {
            let name = String::from_utf8(member.name.to_vec()).unwrap();
            let is_dir = held.stat(name.as_bytes()).unwrap().unwrap().kind()
                == suisei_protocol::flist::FileKind::Directory;
            (if dir.is_empty() { name } else { format!("{dir}/{name}") }, is_dir)
        })
        .collect();
    members.sort();
    members
}

/// Walks as a sender does, from `dir` on.
fn walk(chain: &mut Chain, tree: &Tree, dir: &str, sent: &mut BTreeSet<String>) -> io::Result<()> {
    chain.enter(tree, RelPath::new(if dir.is_empty() { b"." } else { dir.as_bytes() }))?;
    let kept: Vec<_> = members(tree, dir)
        .into_iter()
        .filter(|(path, is_dir)| !chain.verdict(RelPath::new(path.as_bytes()), *is_dir).is_excluded())
        .collect();
    for (path, is_dir) in kept {
        if is_dir {
            sent.insert(format!("{path}/"));
            walk(chain, tree, &path, sent)?;
        } else {
            sent.insert(path);
        }
    }
    Ok(())
}

fn try_sent(root: &std::path::Path, from: &str, texts: &[&str]) -> io::Result<Vec<String>> {
    let mut sent = BTreeSet::new();
    let mut chain = Chain::new(&rules(texts), FilterSide::Sender, false);
    walk(&mut chain, &open(root), from, &mut sent)?;
    Ok(sent.into_iter().collect())
}

fn sent(root: &TempDir, texts: &[&str]) -> Vec<String> {
    try_sent(root.path(), "", texts).unwrap()
}

/// Everything in a scenario but the names given.
fn all_but(root: &TempDir, missing: &[&str]) -> Vec<String> {
    sent(root, &[]).into_iter().filter(|path| !missing.contains(&path.as_str())).collect()
}

#[test]
fn the_first_matching_rule_decides() {
    let root = scenario(&[]);
    // Scenarios 1 to 7.
    assert!(sent(&root, &["+ a/b/c", "- *"]).is_empty());
    assert_eq!(sent(&root, &["+ /a/", "+ /a/b/***", "- *"]), ["a/", "a/b/", "a/b/c/", "a/b/c/f"]);
    let dirs = ["a/", "a/b/", "a/b/c/", "d/", "e/"];
    let mut objects = dirs.to_vec();
    objects.extend(["a/x.o", "d/x.o", "d/keep.o"]);
    objects.sort_unstable();
    assert_eq!(sent(&root, &["+ */", "+ *.o", "- *"]), objects);
    assert!(sent(&root, &["-! *.o"]).is_empty());
    assert_eq!(sent(&root, &["-! */"]), dirs);
    assert_eq!(sent(&root, &["- *.o", "+ keep.o"]), all_but(&root, &["a/x.o", "d/x.o", "d/keep.o"]));
    assert_eq!(sent(&root, &["+ keep.o", "- *.o"]), all_but(&root, &["a/x.o", "d/x.o"]));
}

#[test]
fn merge_files_count_where_they_are_and_below() {
    // Scenarios 8 to 10 and 14.
    let files = [("d/.rules", "- x.o\n"), ("a/.rules", "- /k\n- f\n")];
    let root = scenario(&files);
    assert_eq!(sent(&root, &[": .rules"]), all_but(&root, &["a/k", "a/b/c/f", "d/x.o"]));
    assert_eq!(sent(&root, &[":n .rules"]), all_but(&root, &["a/k", "d/x.o"]));
    let hidden = ["a/k", "a/b/c/f", "d/x.o", "a/.rules", "d/.rules"];
    assert_eq!(sent(&root, &[":e .rules"]), all_but(&root, &hidden));
    let cleared = scenario(&[files[0], files[1], ("a/b/.rules", "!\n")]);
    assert_eq!(sent(&cleared, &[": .rules"]), all_but(&cleared, &["a/k", "d/x.o"]));
}

#[test]
fn cvs_files_hold_words() {
    // Scenarios 11 to 13.
    let root = scenario(&[("d/.cvsignore", "x.o keep.o\n")]);
    let objects = ["d/x.o", "d/keep.o"];
    assert_eq!(sent(&root, &[":C"]), all_but(&root, &objects));
    assert_eq!(sent(&root, &[":- .cvsignore"]), all_but(&root, &[]));
    assert_eq!(sent(&root, &[":w- .cvsignore"]), all_but(&root, &objects));
}

#[test]
fn anchors_are_about_the_transfer_and_absolute_rules_about_the_disk() {
    // Scenarios 16 and 17.
    let root = scenario(&[]);
    let chain = |text| Chain::new(&rules(&[text]), FilterSide::Sender, false);
    let hides = |chain: &Chain, path: &str| chain.verdict(RelPath::new(path.as_bytes()), false).is_excluded();
    assert!(hides(&chain("- /fx/top"), "fx/top"));
    assert!(!hides(&chain("- /top"), "fx/top"));
    let full = format!("-/ {}/top", root.path().display());
    assert_eq!(sent(&root, &[&full]), all_but(&root, &["top"]));
    let in_module = Chain::new(&rules(&["-/ /sub/top"]), FilterSide::Sender, false).with_root(b"/sub/");
    assert!(hides(&in_module, "top"));
}

/// Deletes as a receiver does what the destination has beside `listed`. Returns what went, and the
/// directories that could not.
fn deleted(texts: &[&str], delete_excluded: bool) -> (Vec<String>, Vec<String>) {
    let listed = scenario(&[]);
    let listed: BTreeSet<String> =
        sent(&listed, &[]).into_iter().map(|path| path.trim_end_matches('/').into()).collect();
    let target = scenario(&[("keep.o", ""), ("extra", ""), ("d/q", ""), ("d/sub/p.bak", "")]);
    let tree = open(target.path());
    let mut chain = Chain::new(&rules(texts), FilterSide::Receiver, delete_excluded);
    let (mut gone, mut stuck) = (Vec::new(), Vec::new());
    for dir in ["", "a", "a/b", "a/b/c", "d", "e"] {
        chain.enter(&tree, RelPath::new(if dir.is_empty() { b"." } else { dir.as_bytes() })).unwrap();
        for (path, is_dir) in members(&tree, dir) {
            if listed.contains(&path) || chain.verdict(RelPath::new(path.as_bytes()), is_dir).is_excluded() {
                continue;
            }
            if !is_dir {
                gone.push(path);
                continue;
            }
            let (go, stay): (Vec<_>, Vec<_>) =
                members(&tree, &path).into_iter().partition(|(path, is_dir)| {
                    !chain.verdict_in_deletion(RelPath::new(path.as_bytes()), *is_dir).is_excluded()
                });
            gone.extend(go.into_iter().map(|(path, _)| path));
            if stay.is_empty() {
                gone.push(path + "/")
            } else {
                stuck.push(path)
            }
        }
    }
    (gone, stuck)
}

#[test]
fn receivers_protect_what_is_excluded() {
    // Scenarios 18 to 26.
    let all = ["extra", "keep.o", "d/q", "d/sub/p.bak", "d/sub/"];
    let but_keep: Vec<&str> = all.into_iter().filter(|path| *path != "keep.o").collect();
    assert_eq!(deleted(&[], false).0, all);
    assert_eq!(deleted(&["- keep.o"], false).0, but_keep);
    assert_eq!(deleted(&["H keep.o"], false).0, all);
    assert_eq!(deleted(&["P keep.o"], false).0, but_keep);
    assert_eq!(deleted(&["- keep.o"], true).0, all);
    assert_eq!(deleted(&["P keep.o"], true).0, but_keep);
    let (gone, stuck) = deleted(&["- *.bak"], false);
    assert_eq!((gone, stuck), (["extra", "keep.o", "d/q"].map(String::from).to_vec(), vec!["d/sub".into()]));
    assert_eq!(deleted(&["-p *.bak"], false).0, all);
    assert_eq!(deleted(&["R keep.o", "- keep.o"], false).0, all);
    assert_eq!(deleted(&["S keep.o", "- *.o"], false).0, but_keep);
}

#[test]
fn received_rules_count_whatever_their_side() {
    let mut read = |_: &[u8]| Err(io::ErrorKind::NotFound.into());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.received(b"-r keep", suisei_protocol::session::Version::NEWEST).unwrap();
    parser.received(b"- plain", suisei_protocol::session::Version::NEWEST).unwrap();
    let chain = Chain::new(&parser.finish(), FilterSide::Sender, true);
    assert!(chain.verdict(RelPath::new(b"keep"), false).is_excluded());
    assert!(chain.verdict(RelPath::new(b"plain"), false).is_excluded());
}

/// Names sent of a tree, without its rule files. The following were captured from stock.
#[track_caller]
fn check(files: &[(&str, &str)], texts: &[&str], expected: &[&str]) {
    let root = tree(files);
    let sent: Vec<String> = sent(&root, texts)
        .into_iter()
        .filter(|path| !path.ends_with('/') && !path.contains("/.") && !path.starts_with('.'))
        .collect();
    assert_eq!(sent, expected, "{texts:?}");
}

#[test]
fn merge_files_may_name_merge_files() {
    let nested = [
        ("d/.rules", ": .in\n"),
        ("d/.in", "- f\n"),
        ("d/f", ""),
        ("d/g", ""),
        ("d/e/f", ""),
        ("d/e/.in", "- g\n"),
        ("d/e/g", ""),
        ("f", ""),
    ];
    check(&nested, &[": .rules"], &["d/g", "f"]);
    let itself =
        [("d/.rules", ": .rules\n- f\n"), ("d/f", ""), ("d/e/.rules", "- g\n"), ("d/e/g", ""), ("d/e/f", "")];
    check(&itself, &[": .rules"], &[]);
}

#[test]
fn clearing_forgets_what_is_inherited_and_no_more() {
    let files = [
        (".rules", "- z\n"),
        ("z", ""),
        ("d/.rules", "- f\n!\n- g\n"),
        ("d/f", ""),
        ("d/g", ""),
        ("d/z", ""),
        ("d/e/.rules", "!\n"),
        ("d/e/f", ""),
        ("d/e/g", ""),
        ("d/e/h", ""),
        ("d/e/z", ""),
    ];
    check(&files, &[": .rules", "+ z", "- h"], &["d/e/f", "d/e/g", "d/e/z", "d/f", "d/z"]);
    let words = [("d/.rules", "f ! g"), ("d/f", ""), ("d/g", ""), ("d/!", "")];
    check(&words, &[":C .rules"], &["d/!", "d/f"]);
    check(&words, &[":w- .rules"], &[]);
    let lines = [("d/.rules", "f\n!\ng\n"), ("d/f", ""), ("d/g", ""), ("d/!", ""), ("d/h", "")];
    check(&lines, &[":- .rules"], &["d/h"]);
}

#[test]
fn leading_slashes_are_about_the_directory_of_the_file() {
    let files = [("d/.r", "- e/f\n- /e/g\n"), ("d/e/f", ""), ("d/e/g", ""), ("d/e/e/g", "")];
    check(&files, &[": .r"], &["d/e/e/g"]);
    // With the modifier the path is the disk's.
    check(&[("d/.r", "-/ /f\n"), ("d/f", ""), ("d/g", "")], &[": .r"], &["d/f", "d/g"]);
    check(&[("d/.r", "/f\n"), ("d/f", "")], &[":/- .r"], &["d/f"]);
    // Stock's quirk: what is put in front may be wild.
    let wild = [("d[1]/.r", "- /f\n"), ("d[1]/f", ""), ("d1/f", ""), ("x", "")];
    check(&wild, &[": .r"], &["d1/f", "d[1]/f", "x"]);
}

#[test]
fn rules_about_the_other_side_are_dropped() {
    check(&[("d/.r", "-r f\n"), ("d/f", "")], &[": .r"], &["d/f"]);
    check(&[("d/.r", "- f\n"), ("d/f", "")], &[":r .r"], &["d/f"]);
    check(&[("d/.r", "-C\n"), ("d/f.o", ""), ("d/e/x.o", ""), ("d/g", "")], &[": .r"], &["d/g"]);
    check(&[("user.f", "")], &["-x *"], &["user.f"]);
}

fn parents() -> TempDir {
    tree(&[
        (".rules", "- r\n"),
        ("sub/.rules", "- /s\n- t\n"),
        ("sub/u/.rules", "- v\n"),
        ("sub/u/r", ""),
        ("sub/u/s", ""),
        ("sub/u/t", ""),
        ("sub/u/v", ""),
    ])
}

#[test]
fn a_slash_in_the_name_reads_parents_of_the_transfer_first() {
    let root = parents();
    let below = |text: &str| -> Vec<String> {
        let names = try_sent(&root.path().join("sub/u"), "", &[text]).unwrap();
        names.into_iter().filter(|path| path != ".rules").collect()
    };
    let full = format!(": {}/.rules", root.path().display());
    assert_eq!(below(&full), ["s"]);
    assert_eq!(below(": ../.rules"), ["r", "s"]);
    assert_eq!(below(": ../../.rules"), ["s"]);
    assert_eq!(below(&full.replace(": ", ":n ")), ["r", "s", "t"]);
    assert_eq!(below(": .rules"), ["r", "s", "t"]);
    assert_eq!(below(": x/.rules"), ["r", "s", "t"]);
}

#[test]
fn an_argument_that_is_a_directory_has_parents_too() {
    let root = parents();
    let from_sub = |text: &str| -> Vec<String> {
        let names = try_sent(&root.path().join("sub"), "u", &[text]).unwrap();
        names.into_iter().filter(|path| path != "u/.rules").collect()
    };
    assert_eq!(from_sub(": .rules"), ["u/r", "u/s", "u/t"]);
    assert_eq!(from_sub(": ../.rules"), ["u/r", "u/s"]);
}

#[test]
fn directories_on_the_way_to_an_argument_are_read_but_not_the_root() {
    let root = tree(&[
        (".r", "- x1\n"),
        ("p/.r", "- x2\n"),
        ("p/q/.r", "- x3\n"),
        ("p/q/e/.r", "- x4\n"),
        ("p/q/e/x1", ""),
        ("p/q/e/x2", ""),
        ("p/q/e/x3", ""),
        ("p/q/e/x4", ""),
    ]);
    let names = |text: &str| -> Vec<String> {
        let names = try_sent(root.path(), "p/q/e", &[text]).unwrap();
        names.into_iter().filter_map(|path| path.strip_prefix("p/q/e/x").map(String::from)).collect()
    };
    assert_eq!(names(": .r"), ["1"]);
    assert_eq!(names(":n .r"), ["1", "2", "3"]);
    assert!(names(&format!(": {}/.r", root.path().display())).is_empty());
}

#[test]
fn directories_are_left_and_entered_again() {
    let root = tree(&[(".r", "- top\n"), ("a/.r", "- x\n"), ("a/b/.r", "- y\n"), ("c/.r", "- z\n")]);
    let tree = open(root.path());
    let mut chain = Chain::new(&rules(&[": .r"]), FilterSide::Sender, false);
    let mut hidden = |dir: &str| -> String {
        chain.enter(&tree, RelPath::new(dir.as_bytes())).unwrap();
        let names = ["top", "x", "y", "z"].into_iter();
        names.filter(|name| chain.verdict(RelPath::new(name.as_bytes()), false).is_excluded()).collect()
    };
    assert_eq!(hidden("."), "top");
    assert_eq!(hidden("a"), "topx");
    assert_eq!(hidden("a/b"), "topxy");
    assert_eq!(hidden("c"), "topz");
    // In segments a directory may come after its siblings.
    assert_eq!(hidden("a/b"), "topxy");
    assert_eq!(hidden("absent"), "top");
}

#[test]
fn wrong_texts_are_told_from_unreadable_files() {
    let root = tree(&[("d/.r", "- f\nbogus\n")]);
    let error = try_sent(root.path(), "", &[": .r"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let inner = error.into_inner().unwrap().downcast::<FilterError>().unwrap();
    let place: PathBuf = root.path().join("d/.r");
    assert_eq!(
        (inner.text, inner.code),
        (format!("Unknown filter rule: <rule from {} line 2>", place.display()), 1)
    );
}

#[test]
fn symlinked_merge_files_of_this_user_are_followed() {
    let root = tree(&[("real", "- x\n"), ("d/x", ""), ("d/y", "")]);
    symlink(root.path().join("real"), root.path().join("d/.r")).unwrap();
    symlink("nowhere", root.path().join(".r")).unwrap();
    let names = sent(&root, &[": .r"]);
    assert!(names.contains(&"d/y".to_string()) && !names.contains(&"d/x".to_string()));
    // A directory of that name is no merge file.
    let other = tree(&[("d/.r/f", ""), ("d/x", "")]);
    assert!(sent(&other, &[": .r"]).contains(&"d/x".to_string()));
}
