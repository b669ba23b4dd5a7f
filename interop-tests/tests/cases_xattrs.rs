//! Reported cases that turn on extended attributes, as far as one machine can prove them.

use std::fs;
use std::path::Path;
use std::process::Output;

use rustix::fs::{lgetxattr, llistxattr, lsetxattr, XattrFlags};
use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};
use suisei_interop_tests::trees;

fn run(work: &Path, mode: Mode, pair: (Peer, Peer), options: &[&str], from: &str, to: &str) -> Output {
    let sources = [from];
    let (client, server) = pair;
    let (ours, user) = (&ours(), User::Caller);
    Run { work, client, server, mode, options, sources: &sources, destination: Some(to), ours, user }.output()
}

fn set(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty()).expect("attributes can be set");
}

fn value(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut room = vec![0; 128 << 10];
    let length = lgetxattr(path, name, &mut room[..]).ok()?;
    room.truncate(length);
    Some(room)
}

fn names(path: &Path) -> Vec<String> {
    let mut room = vec![0; 64 << 10];
    let length = llistxattr(path, &mut room[..]).expect("the item is ours");
    let names = room[..length].split(|&b| b == 0).filter(|name| name.starts_with(b"user."));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// A folder on a file system that takes values of 64 KiB, if this machine has one.
fn roomy() -> Option<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("xattr").tempdir_in("/dev/shm").ok()?;
    let probe = folder.path().join("probe");
    fs::write(&probe, "").ok()?;
    lsetxattr(&probe, "user.probe", &[0; 60_000], XattrFlags::empty()).ok()?;
    fs::remove_file(&probe).ok()?;
    Some(folder)
}

/// Every pair that has ours at one end at least.
const PAIRS: [(Peer, Peer); 3] =
    [(Peer::Ours, Peer::Stock), (Peer::Stock, Peer::Ours), (Peer::Ours, Peer::Ours)];

#[test]
fn c17_a_large_fork_of_an_empty_file_survives_the_round_trip() {
    if !has_stock() {
        return;
    }
    let Some(folder) = roomy() else {
        println!("skipped: no file system here takes a value of 60 kB");
        return;
    };
    let fork: Vec<u8> = trees::bytes(17, 60_000);
    for (round, pair) in PAIRS.into_iter().enumerate() {
        let work = folder.path().join(round.to_string());
        fs::create_dir_all(work.join("a")).expect("writable");
        fs::write(work.join("a/empty"), "").expect("writable");
        set(&work.join("a/empty"), "user.com.apple.ResourceFork", &fork);
        let there = run(&work, Mode::Push, pair, &["-aX"], "a/", "b/");
        assert_eq!(there.status.code(), Some(0), "{pair:?} {there:?}");
        let back = run(&work, Mode::Pull, pair, &["-aX"], "b/", "c/");
        assert_eq!(back.status.code(), Some(0), "{pair:?} {back:?}");
        let got = value(&work.join("c/empty"), "user.com.apple.ResourceFork");
        assert!(got.as_deref() == Some(&fork[..]), "{pair:?}: {:?}", got.map(|fork| fork.len()));
    }
}

/// Where the other side has no room for the fork there is an error for that file, and exit 23.
#[test]
fn c17_a_fork_that_does_not_fit_is_never_lost_in_silence() {
    let (Some(folder), Ok(small)) = (roomy(), tempfile::tempdir()) else {
        println!("skipped: no file system here takes a value of 60 kB");
        return;
    };
    let probe = small.path().join("probe");
    fs::write(&probe, "").expect("writable");
    if lsetxattr(&probe, "user.probe", &[0; 60_000], XattrFlags::empty()).is_ok() {
        println!("skipped: every file system here takes a value of 60 kB");
        return;
    }
    let source = folder.path().join("a");
    fs::create_dir(&source).expect("writable");
    fs::write(source.join("empty"), "").expect("writable");
    set(&source.join("empty"), "user.fork", &[7; 60_000]);
    let destination = small.path().join("b/");
    for mode in [Mode::Local, Mode::Push] {
        let (from, to) = (format!("{}/", source.display()), destination.display().to_string());
        let pair = (Peer::Ours, Peer::Ours);
        let output = run(folder.path(), mode, pair, &["-aX", "--remove-source-files"], &from, &to);
        assert_eq!(output.status.code(), Some(23), "{mode:?} {output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("rsync_xal_set: fsetxattr(") && text.contains("user.fork"), "{mode:?} {text}");
        assert!(source.join("empty").exists(), "{mode:?}: the only whole copy is gone");
    }
}

#[test]
fn c18_tags_arrive_before_their_source_goes() {
    if !has_stock() {
        return;
    }
    let tags = trees::bytes(18, 900);
    let receivers = [(Mode::Local, (Peer::Ours, Peer::Ours)), (Mode::Push, (Peer::Ours, Peer::Ours))];
    let others = [(Mode::Pull, (Peer::Ours, Peer::Ours)), (Mode::Pull, (Peer::Ours, Peer::Stock))];
    for (mode, pair) in receivers.into_iter().chain(others) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        for name in ["one", "two"] {
            trees::file(&a, name, b"the same", 0o644);
            trees::file(&b, name, b"the same", 0o644);
            set(&a.join(name), "user.com.apple.metadata:_kMDItemUserTags", &tags);
            set(&b.join(name), "user.com.apple.metadata:_kMDItemUserTags", b"other");
        }
        let options = ["-aEX", "--remove-source-files"];
        let output = run(folder.path(), mode, pair, &options, "a/", "b/");
        assert_eq!(output.status.code(), Some(0), "{mode:?} {pair:?} {output:?}");
        for name in ["one", "two"] {
            let got = value(&b.join(name), "user.com.apple.metadata:_kMDItemUserTags");
            assert!(got.as_deref() == Some(&tags[..]), "{mode:?} {pair:?} {name}");
            assert!(!a.join(name).exists(), "{mode:?} {pair:?}: {name} is still there");
        }
    }
}

/// What a receiver may not keep does not make the next run find a difference. (On macOS the one
/// attribute that nobody can remove is left out as well.)
#[test]
fn c21_an_attribute_that_is_not_kept_is_no_difference() {
    if !has_stock() {
        return;
    }
    for (mode, pair) in [(Mode::Local, (Peer::Ours, Peer::Ours)), (Mode::Push, (Peer::Stock, Peer::Ours))] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let a = folder.path().join("a");
        trees::file(&a, "program", b"#!/bin/sh\n", 0o755);
        set(&a.join("program"), "user.kept", b"1");
        set(&a.join("program"), "user.rsync.%stat", b"100755 0,0 0:0");
        let first = run(folder.path(), mode, pair, &["-aXi"], "a/", "b/");
        assert_eq!(first.status.code(), Some(0), "{first:?}");
        assert_eq!(names(&folder.path().join("b/program")), ["user.kept"]);
        set(&folder.path().join("b/program"), "user.rsync.%stat", b"100755 0,0 0:0");
        let second = run(folder.path(), mode, pair, &["-aXi"], "a/", "b/");
        assert_eq!((second.status.code(), &second.stdout[..]), (Some(0), &b""[..]), "{mode:?}");
    }
}
