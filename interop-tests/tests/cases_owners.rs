//! Public cases about times, and about everything kept at once.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};
use suisei_interop_tests::trees::{bytes, set_time, PAST};

const MODES: [Mode; 3] = [Mode::Local, Mode::Push, Mode::Pull];

fn run(work: &Path, mode: Mode, server: Peer, options: &[&str]) -> Output {
    let program = ours();
    let run = Run {
        ours: &program,
        work,
        client: Peer::Ours,
        server,
        mode,
        user: User::Caller,
        options,
        sources: &["src/"],
        destination: Some("dst/"),
    };
    run.output()
}

/// C25: the time of a directory that was made a moment ago arrives whole.
#[test]
fn c25_a_fresh_directory_keeps_its_time_to_the_nanosecond() {
    if !has_stock() {
        return;
    }
    // Stock, as a receiver, takes a time within the same second for right.
    let ways = [
        (Mode::Local, Peer::Ours),
        (Mode::Push, Peer::Ours),
        (Mode::Pull, Peer::Ours),
        (Mode::Pull, Peer::Stock),
    ];
    for (mode, server) in ways {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path();
        fs::create_dir_all(work.join("src/new/deeper")).expect("writable");
        fs::write(work.join("src/new/file"), "x").expect("writable");
        let output = run(work, mode, server, &["-a"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        for name in ["", "new", "new/deeper", "new/file"] {
            let time = |tree: &str| {
                let meta = fs::metadata(work.join(tree).join(name)).expect("it was copied");
                (meta.mtime(), meta.mtime_nsec())
            };
            assert_eq!(time("dst"), time("src"), "{mode:?} {server:?} {name}");
        }
    }
}

/// C32: the second generation of a data set over the first. Only what does not begin as it did is
/// warned of, and is right in the end.
#[test]
fn c32_a_second_generation_is_appended_and_repaired() {
    if !has_stock() {
        return;
    }
    for mode in MODES {
        for server in [Peer::Stock, Peer::Ours] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let work = folder.path();
            let rewritten = two_generations(work);
            let output = run(work, mode, server, &["-aAXHv", "--append-verify"]);
            assert_eq!(output.status.code(), Some(0), "{mode:?} {server:?} {output:?}");
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).expect("all names are plain");
            let warned: BTreeSet<String> = text
                .lines()
                .filter_map(|line| line.strip_prefix("WARNING: ")?.split_once(" failed verification"))
                .map(|(name, _)| name.to_owned())
                .collect();
            assert_eq!(warned, rewritten, "{mode:?} {server:?}");
            for number in 0..300 {
                let read = |tree: &str| fs::read(work.join(tree).join(name(number))).expect("it is there");
                assert!(read("dst") == read("src"), "{mode:?} {server:?} {}", name(number));
            }
            let again = run(work, mode, server, &["-aAXHi", "--delete"]);
            assert_eq!(again.status.code(), Some(0), "{again:?}");
            assert!(again.stdout.is_empty(), "{mode:?} {server:?} {again:?}");
        }
    }
}

fn name(number: usize) -> String {
    format!("d{}/f{number:03}", number % 7)
}

/// Makes both trees; returns the names of the files that do not begin as they did.
fn two_generations(work: &Path) -> BTreeSet<String> {
    let mut rewritten = BTreeSet::new();
    for number in 0..300 {
        let old = bytes(number as u64 + 1, 500 + number * 11);
        let new = match number % 3 {
            0 => old.clone(),
            1 => [&old[..], &bytes(1_000, 700)].concat(),
            _ => {
                rewritten.insert(name(number));
                bytes(number as u64 + 5_000, old.len() + 300)
            }
        };
        for (tree, content, time) in [("dst", &old, PAST), ("src", &new, PAST + 60)] {
            let path = work.join(tree).join(name(number));
            fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
            fs::write(&path, content).expect("writable");
            if tree == "src" && number % 5 == 0 {
                // Where the tools or the file system have none, the rest is still tested.
                let _ = Command::new("setfacl").args(["-m", "u:1:rw"]).arg(&path).output();
                let _ =
                    Command::new("setfattr").args(["-n", "user.generation", "-v", "2"]).arg(&path).output();
            }
            let unchanged = number % 3 == 0;
            set_time(&path, if unchanged { PAST } else { time }, 0);
            if number % 10 == 1 {
                fs::hard_link(&path, path.with_extension("link")).expect("links can be made");
            }
        }
    }
    rewritten
}
