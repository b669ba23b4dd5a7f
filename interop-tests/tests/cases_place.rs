//! Reported cases that turn on placing and deleting.

use std::fs;
use std::path::Path;
use std::process::Output;

use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};
use suisei_interop_tests::trees::{bytes, file};

/// Every pair that has ours at one end at least.
const PAIRS: [(Peer, Peer); 3] =
    [(Peer::Ours, Peer::Stock), (Peer::Stock, Peer::Ours), (Peer::Ours, Peer::Ours)];

fn run(work: &Path, mode: Mode, pair: (Peer, Peer), options: &[&str], from: &[&str], to: &str) -> Output {
    let (client, server) = pair;
    let (ours, user) = (&ours(), User::Caller);
    Run { work, client, server, mode, options, sources: from, destination: Some(to), ours, user }.output()
}

/// Runs ours alone, or each pair, in a fresh folder.
fn each(modes: &[Mode], case: impl Fn(&Path, Mode, (Peer, Peer))) {
    if !has_stock() {
        return;
    }
    for &mode in modes {
        let pairs: &[_] = if mode == Mode::Local { &PAIRS[2..] } else { &PAIRS };
        for &pair in pairs {
            let work = tempfile::tempdir().expect("there is room");
            case(work.path(), mode, pair);
        }
    }
}

#[test]
fn c28_a_delta_uses_the_basis_behind_a_symlinked_directory() {
    each(&[Mode::Push], |work, mode, pair| {
        let old = bytes(1, 200_000);
        file(&work.join("src"), "dir/f", &old, 0o644);
        fs::create_dir_all(work.join("dst/real")).expect("the work folder is writable");
        std::os::unix::fs::symlink("real", work.join("dst/dir")).expect("links can be made");
        let options = ["-KRlptz", "-r", "--stats"];
        for round in 0..2 {
            let output = run(work, mode, pair, &options, &["src/./dir"], "dst/");
            assert_eq!(output.status.code(), Some(0), "{pair:?} {round}: {output:?}");
            let sent = fs::read(work.join("src/dir/f")).expect("it is ours");
            assert!(sent == fs::read(work.join("dst/real/f")).expect("it arrived"), "{pair:?} {round}");
            assert!(fs::symlink_metadata(work.join("dst/dir")).expect("it stays").is_symlink());
            if round == 1 {
                let text = String::from_utf8_lossy(&output.stdout).replace(',', "");
                let matched =
                    text.lines().find_map(|line| line.strip_prefix("Matched data: ")?.split(' ').next());
                assert!(matched.and_then(|n| n.parse().ok()).is_some_and(|n: u64| n > 150_000), "{text}");
            }
            file(&work.join("src"), "dir/f", &[&old[..], b"and more"].concat(), 0o644);
        }
    });
}

#[test]
fn c31_missing_names_of_a_list_are_deleted_and_no_error() {
    each(&[Mode::Local, Mode::Push, Mode::Pull], |work, mode, pair| {
        file(&work.join("src"), "here", b"here", 0o644);
        file(&work.join("dst"), "gone", b"gone", 0o644);
        fs::create_dir_all(work.join("dst/gone-dir")).expect("the work folder is writable");
        fs::write(work.join("list"), "here\ngone\ngone-dir\n").expect("the work folder is writable");
        let options = ["-a", "--files-from=list", "--delete-missing-args"];
        let output = run(work, mode, pair, &options, &["src/"], "dst/");
        assert_eq!(output.status.code(), Some(0), "{mode:?} {pair:?} {output:?}");
        let left: Vec<_> =
            fs::read_dir(work.join("dst")).expect("it exists").flatten().map(|m| m.file_name()).collect();
        assert_eq!(left, ["here"], "{mode:?} {pair:?}");
    });
}

#[test]
fn c33_a_limit_of_deletions_counts_leaves() {
    each(&[Mode::Local, Mode::Push, Mode::Pull], |work, mode, pair| {
        fs::create_dir_all(work.join("src")).expect("the work folder is writable");
        for name in ["d/1", "d/2", "d/3", "d/4", "d/5", "loose-1", "loose-2"] {
            file(&work.join("dst"), name, b"extra", 0o644);
        }
        let count = |dir: &str| fs::read_dir(work.join(dir)).map_or(0, |list| list.count());
        let output = run(work, mode, pair, &["-a", "--max-delete=100"], &["src/"], "dst/");
        assert_eq!(
            (output.status.code(), count("dst"), count("dst/d")),
            (Some(0), 3, 5),
            "{mode:?} {pair:?}"
        );
        let output = run(work, mode, pair, &["-a", "--delete", "--max-delete=3"], &["src/"], "dst/");
        assert_eq!(output.status.code(), Some(25), "{mode:?} {pair:?} {output:?}");
        assert_eq!(count("dst/d") + count("dst") - 1, 4, "{mode:?} {pair:?}: three leaves went");
        let said = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&said).contains("skipped)"), "{mode:?} {pair:?}");
    });
}

#[test]
fn c34_what_filters_protect_stays() {
    each(&[Mode::Pull], |work, mode, pair| {
        file(&work.join("src"), "sent", b"sent", 0o644);
        file(&work.join("src"), ".rules", b"- by-file\n", 0o644);
        for name in ["by-exclude", "by-receiver", "by-file", "extra", ".rules"] {
            file(&work.join("dst"), name, b"- by-file\n", 0o644);
        }
        let there = |name: &str| work.join("dst").join(name).exists();
        fs::write(work.join("list"), "sent\n").expect("the work folder is writable");
        run(work, mode, pair, &["-a", "--delete", "--files-from=list"], &["src/"], "dst/");
        assert!(there("extra") && there("sent"), "{pair:?}: a list says nothing of the root's content");
        let options = ["-a", "--delete", "--exclude=by-exclude", "-f", "P by-receiver", "-f", ": .rules"];
        let output = run(work, mode, pair, &options, &["src/"], "dst/");
        assert_eq!(output.status.code(), Some(0), "{pair:?} {output:?}");
        for name in ["by-exclude", "by-receiver", "by-file", "sent"] {
            assert!(there(name), "{pair:?} {name}");
        }
        assert!(!there("extra"), "{pair:?}");
    });
}
