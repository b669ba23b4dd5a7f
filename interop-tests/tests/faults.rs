//! Bad input and bad luck: one sentence with the cause, stock's exit code, nothing lost.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use suisei_interop_tests::peers::{has_stock, ours, remote_shell};
use suisei_interop_tests::trees;

fn script(work: &Path, name: &str, text: &str) -> String {
    let path = work.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    path.to_str().expect("UTF-8").to_owned()
}

fn run(work: &Path, program: &str, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k5", "30", program]).args(args).current_dir(work).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).output().expect("timeout(1) is installed")
}

fn ours_text() -> String {
    ours().to_str().expect("UTF-8").to_owned()
}

/// Names of temp files below a folder.
fn leftovers(folder: &Path) -> Vec<String> {
    let list =
        Command::new("find").arg(folder).args(["-name", ".*.??????"]).output().expect("find(1) is installed");
    String::from_utf8_lossy(&list.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn ends_like_stock_when_the_other_end_is_wrong() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "a", b"a", 0o644);
    let dead = script(work, "dead", "exit 3");
    let banner =
        script(work, "banner", "echo Welcome to this machine, have a nice day; shift; exec sh -c \"$*\"");
    let closes = script(work, "closes", "printf ' \\000\\000\\000'; exit 0");
    let old = script(work, "old", "printf '\\001\\000\\000\\000'; sleep 1");
    let missing = "/no/such/shell";
    let path = format!("--rsync-path={}", ours_text());
    let absent = "--rsync-path=/no/such/rsync".to_owned();
    let shell = remote_shell(work).to_str().expect("UTF-8").to_owned();
    let cases: [(&str, &str, &str); 6] = [
        ("a dead shell", &dead, &path),
        ("a banner", &banner, &path),
        ("closed after the version", &closes, &path),
        ("a version of the last century", &old, &path),
        ("no shell", missing, &path),
        ("no rsync there", &shell, &absent),
    ];
    for (what, shell, path) in cases {
        for places in [["src/", "far:dst/"], ["far:src/", "dst/"]] {
            let args = ["-a", "-e", shell, path, places[0], places[1]];
            // Stock's code depends on whether it meets the closed pipe or the dead child first.
            let codes: Vec<_> = (0..4).map(|_| run(work, "/usr/bin/rsync", &args).status.code()).collect();
            let got = run(work, &ours_text(), &args);
            let text = String::from_utf8_lossy(&got.stderr).into_owned();
            assert!(
                codes.contains(&got.status.code()),
                "{what}: {:?}, stock {codes:?}: {text}",
                got.status.code()
            );
            assert!(!text.trim().is_empty(), "{what}: nothing was said");
        }
    }
}

#[test]
fn a_full_destination_keeps_the_old_file() {
    if !trees::is_root() || !has_stock() {
        println!("skipped: mounting a small file system needs root");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "big", &trees::bytes(1, 3_000_000), 0o644);
    fs::create_dir(work.join("dst")).expect("writable");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(work.join("dst")).status();
    if !mounted.is_ok_and(|s| s.success()) {
        println!("skipped: tmpfs cannot be mounted here");
        return;
    }
    let check = || {
        trees::file(&work.join("dst"), "big", b"the old file", 0o644);
        let expected = run(work, "/usr/bin/rsync", &["-a", "src/", "dst/"]);
        let got = run(work, &ours_text(), &["-a", "src/", "dst/"]);
        let text = String::from_utf8_lossy(&got.stderr).into_owned();
        (
            got.status.code(),
            expected.status.code(),
            text,
            fs::read(work.join("dst/big")),
            leftovers(&work.join("dst")),
        )
    };
    let (got, expected, text, old, left) = check();
    let _ = Command::new("umount").arg(work.join("dst")).status();
    assert_eq!(got, expected, "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    assert_eq!(old.expect("the old file is there"), b"the old file");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_interrupt_leaves_the_old_file_and_no_temp_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "big", &trees::bytes(2, 20_000_000), 0o644);
    let shell = remote_shell(work).to_str().expect("UTF-8").to_owned();
    let path = format!("--rsync-path={}", ours_text());
    for places in [["src/", "dst/"], ["src/", "far:dst/"], ["far:src/", "dst/"]] {
        for partial in [false, true] {
            trees::file(&work.join("dst"), "big", b"the old file", 0o644);
            let mut command = Command::new(ours());
            command.args(["-a", "--bwlimit=2000", "-e", &shell, &path]).args(partial.then_some("--partial"));
            let mut child =
                command.args(places).current_dir(work).stderr(Stdio::piped()).spawn().expect("it runs");
            let started = Instant::now();
            while started.elapsed() < Duration::from_secs(10) && leftovers(&work.join("dst")).is_empty() {
                std::thread::sleep(Duration::from_millis(20));
                if child.try_wait().expect("our child").is_some() {
                    break;
                }
            }
            std::thread::sleep(Duration::from_millis(700));
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            let status = child.wait().expect("our child");
            let mut text = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
            let size = fs::metadata(work.join("dst/big")).expect("a file is there").len();
            std::thread::sleep(Duration::from_millis(300));
            let left = leftovers(&work.join("dst"));
            assert!(left.is_empty(), "{places:?}: {left:?}");
            if status.success() {
                assert_eq!(size, 20_000_000, "{places:?}: it was faster than the signal");
                continue;
            }
            assert_eq!(status.code(), Some(20), "{places:?}: {text}");
            assert!(text.contains("(code 20)"), "{places:?}: {text}");
            if partial {
                assert!(size < 20_000_000);
            } else {
                assert_eq!(size, 12, "{places:?}: the old file is intact");
            }
        }
    }
}

#[test]
fn a_closed_pipe_ends_the_run_quietly() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::regular(&work.join("src"), 50, 3_000);
    let line = format!("{} -av src/ dst/ | head -n 3", ours_text());
    let output = run(work, "sh", &["-c", &line]);
    assert_eq!(output.stdout.split(|&b| b == b'\n').count(), 4);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
}

/// Files of sysfs claim a page and hold a few bytes: to a reader they shrink.
#[test]
fn a_source_that_ends_early_leaves_the_old_file() {
    let source = "/sys/class/net/lo/mtu";
    if fs::metadata(source).map_or(0, |meta| meta.len()) < 100 {
        println!("skipped: no sysfs");
        return;
    }
    for options in ["-a", "-aS", "-a --no-W"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path();
        trees::file(work, "dst/mtu", b"old", 0o644);
        let mut args: Vec<&str> = options.split(' ').collect();
        args.extend([source, "dst/"]);
        let output = run(work, &ours_text(), &args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(23), "{options}: {text}");
        assert!(text.contains("[sender] read errors mapping \"/sys/class/net/lo/mtu\": No data"), "{text}");
        assert!(text.contains("ERROR: mtu failed verification -- update discarded."), "{text}");
        assert_eq!(fs::read(work.join("dst/mtu")).expect("it stays"), b"old", "{options}");
        assert!(leftovers(work).is_empty());
    }
}
