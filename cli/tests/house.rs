//! The rules of the house: who may depend on whom, how large things may get, where versions are
//! compared and the disk is touched, and that cited anchors exist.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_path_buf()
}

/// All Rust sources of the given folders: path below the root, and text.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut found);
    }
    found.sort();
    found
}

fn collect(dir: &Path, found: &mut Vec<(String, String)>) {
    for member in fs::read_dir(dir).expect("source folders can be read").flatten() {
        let path = member.path();
        let name = member.file_name();
        if path.is_dir() && name != "target" && name != "corpus" {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let name = path.strip_prefix(root()).expect("below the root").display().to_string();
            found.push((name, text));
        }
    }
}

const ALL: &[&str] = &["protocol", "engine", "cli", "fixtures", "interop-tests"];

#[test]
fn crates_depend_downwards_only() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("protocol", &[][..]),
        ("engine", &["suisei-protocol"][..]),
        ("cli", &["suisei-protocol", "suisei-engine", "suisei-fixtures"][..]),
    ]);
    for (name, allowed) in allowed {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        for line in manifest.lines().filter(|l| l.starts_with("suisei-")) {
            let dependency = line.split(['.', ' ', '=']).next().expect("a line has a first word");
            assert!(allowed.contains(&dependency), "{name} must not depend on {dependency}");
        }
        let runtime = ["tokio", "clap", "ssh2"];
        if name != "cli" {
            let found = manifest.lines().find(|l| runtime.iter().any(|r| l.starts_with(r)));
            assert_eq!(found, None, "{name} must not depend on a runtime");
        }
    }
}

#[test]
fn files_and_functions_stay_small() {
    let mut too_large = Vec::new();
    for (name, text) in sources(ALL) {
        let lines = text.lines().count();
        if lines > 600 {
            too_large.push(format!("{name}: {lines} lines"));
        }
        for (function, length) in functions(&text) {
            if length > 100 {
                too_large.push(format!("{name}: fn {function} has {length} lines"));
            }
        }
    }
    assert!(too_large.is_empty(), "{}", too_large.join("\n"));
}

/// Names and lengths of functions, by the indentation that rustfmt gives their closing brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start();
        let Some((front, rest)) = code.split_once("fn ") else { continue };
        if !front
            .split_whitespace()
            .all(|w| w.starts_with("pub") || ["const", "async", "unsafe"].contains(&w) || w.ends_with(')'))
        {
            continue;
        }
        let name = rest.split(['(', '<']).next().unwrap_or(rest).to_owned();
        let close = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[at..].iter().position(|l| *l == close) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn versions_are_compared_in_one_file() {
    for (name, text) in sources(&["protocol/src", "engine/src", "cli/src"]) {
        if name == "protocol/src/session/version.rs" {
            continue;
        }
        let code = without_tests(&text);
        for (at, line) in code.lines().enumerate() {
            let compares =
                ["version.number() <", "version.number() >", "version.number() =", "version.number() !"];
            assert!(!compares.iter().any(|c| line.contains(c)), "{name}:{}: {line}", at + 1);
        }
    }
}

/// The part of a source in front of its test module.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn only_sys_and_tree_touch_the_disk() {
    let calls = [
        "fs::read",
        "fs::write",
        "fs::remove",
        "fs::rename",
        "fs::create",
        "fs::metadata",
        "fs::symlink_metadata",
        "File::open",
        "File::create",
        "OpenOptions",
        ".exists()",
        ".is_dir()?",
        ".canonicalize()",
    ];
    for (name, text) in sources(&["engine/src"]) {
        if name.starts_with("engine/src/sys/")
            || name.starts_with("engine/src/tree/")
            || name.ends_with("tests.rs")
        {
            continue;
        }
        for (at, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            assert!(!calls.iter().any(|c| code.contains(c)), "{name}:{}: {line}", at + 1);
        }
    }
}

#[test]
fn unsafe_code_lives_in_sys() {
    for (name, text) in sources(&["protocol/src", "engine/src", "cli/src"]) {
        let has = text.lines().any(|l| {
            let code = l.split("//").next().unwrap_or(l);
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(!has || name.starts_with("engine/src/sys/"), "{name} holds unsafe code");
    }
}

#[test]
fn code_is_never_included() {
    for (name, text) in sources(ALL) {
        let included = text.lines().any(|l| l.trim_start().starts_with("include!("));
        assert!(!included, "{name} includes code");
    }
}

#[test]
fn cited_anchors_exist() {
    let mut anchors: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for member in fs::read_dir(root().join("protocol/doc")).expect("the specification is there").flatten() {
        let text = fs::read_to_string(member.path()).expect("the specification is UTF-8");
        let slugs = text
            .lines()
            .filter(|l| l.starts_with('#'))
            .map(|l| slug(l.trim_start_matches('#').trim()))
            .collect();
        anchors.insert(member.file_name().to_string_lossy().into_owned(), slugs);
    }
    let mut missing = Vec::new();
    for (name, text) in sources(ALL) {
        for (at, _) in text.match_indices("protocol/doc/") {
            let cite: String = text[at + "protocol/doc/".len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-_.#".contains(*c))
                .collect();
            let cite = cite.trim_end_matches('.');
            let (file, anchor) = cite.split_once('#').unwrap_or((cite, ""));
            let known = anchors.get(file);
            let fits = file.is_empty()
                || file.starts_with('<')
                || known.is_some_and(|a| anchor.is_empty() || a.contains(anchor));
            if !fits {
                missing.push(format!("{name}: {cite}"));
            }
        }
    }
    assert!(missing.is_empty(), "no such anchors:\n{}", missing.join("\n"));
}

/// A heading as the anchor that a Markdown page gives it.
fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}
