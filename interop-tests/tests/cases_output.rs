//! Reported troubles with what is shown: names, bytes, dry runs in logs, progress through a pipe.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use suisei_interop_tests::peers::{ours, remote_shell};
use suisei_interop_tests::trees;

fn run(work: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k5", "60"]).arg(ours()).args(args).current_dir(work).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).output().expect("timeout(1) is installed")
}

/// The bodies of a log's lines, without date and process.
fn log_bodies(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the log was written");
    text.lines().filter_map(|line| Some(line.split_once("] ")?.1.to_owned())).collect()
}

#[test]
fn c07_a_backslash_is_shown_as_it_is_and_no_control_byte_passes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "foo\\bar", b"1", 0o644);
    trees::file(&work.join("src"), "foo\\#033bar", b"1", 0o644);
    trees::file(&work.join("src"), "esc\x1b[31m\n", b"1", 0o644);
    for options in ["-av", "-ai"] {
        let _ = fs::remove_dir_all(work.join("dst"));
        let out = run(work, &[options, "src/", "dst/"]).stdout;
        let text = String::from_utf8(out).expect("valid text");
        let name = |name: &str| text.lines().any(|line| line.ends_with(name));
        // What reads like an escape is one: the backslash itself is written as its number.
        assert!(name("foo\\bar") && name("foo\\#134#033bar") && name("esc\\#033[31m\\#012"), "{text}");
        assert!(text.bytes().all(|b| b == b'\n' || b >= b' '), "{text:?}");
    }
    let _ = fs::remove_dir_all(work.join("dst"));
    let terminal = format!("{} -av src/ dst/", ours().display());
    let Ok(shown) = Command::new("script").args(["-qec", &terminal, "/dev/null"]).current_dir(work).output()
    else {
        println!("skipped: no script(1) for a terminal");
        return;
    };
    assert!(
        shown.stdout.windows(7).any(|w| w == b"foo\\bar"),
        "{:?}",
        String::from_utf8_lossy(&shown.stdout)
    );
    assert!(!shown.stdout.contains(&0x1b), "an escape reached the terminal");
}

#[test]
fn c08_eight_bit_output_keeps_every_high_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), OsStr::from_bytes(b"lone\x80"), b"1", 0o644);
    trees::file(&work.join("src"), "letter\u{e9}\x01", b"1", 0o644);
    let names = |options: &[&str]| {
        let _ = fs::remove_dir_all(work.join("dst"));
        run(work, &[options, &["-a", "--out-format=%n", "src/", "dst/"]].concat()).stdout
    };
    let raw = names(&["-8"]);
    assert!(raw.windows(6).any(|w| w == b"lone\x80\n"), "{raw:?}");
    assert!(raw.windows(14).any(|w| w == "letter\u{e9}\\#001\n".as_bytes()), "{raw:?}");
    let escaped = String::from_utf8(names(&[])).expect("valid text");
    assert!(escaped.contains("lone\\#200\n") && escaped.contains("letter\u{e9}\\#001\n"), "{escaped}");
}

#[test]
fn c35_a_dry_run_is_logged_as_it_would_be_done() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    for name in ["a", "b", "c"] {
        trees::file(&work.join("src"), name, b"new", 0o644);
    }
    fs::create_dir(work.join("dst")).expect("writable");
    trees::set_time(&work.join("dst"), 1, 0);
    let shell = remote_shell(work).display().to_string();
    let path = format!("--rsync-path={}", ours().display());
    for places in [&["src/", "dst/"][..], &["-e", &shell, &path, "src/", "far:dst/"]] {
        let mut seen = Vec::new();
        for (options, log) in [("-rni", "dry.log"), ("-ri", "real.log")] {
            let out = run(work, &[&[options, &format!("--log-file={log}")], places].concat()).stdout;
            let shown: Vec<String> = String::from_utf8_lossy(&out).lines().map(str::to_owned).collect();
            let items: Vec<String> =
                log_bodies(&work.join(log)).into_iter().filter(|line| shown.contains(line)).collect();
            assert_eq!(items, shown, "{places:?} {options}");
            assert_eq!(shown.len(), 3, "{shown:?}");
            seen.push(shown);
            fs::remove_file(work.join(log)).expect("ours");
        }
        assert_eq!(seen[0], seen[1]);
        for name in ["a", "b", "c"] {
            fs::remove_file(work.join("dst").join(name)).expect("copied");
        }
    }
}

#[test]
fn c36_progress_through_a_pipe_is_in_order_and_in_time() {
    const FILES: usize = 50;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    let content = trees::bytes(36, 5 << 20);
    for n in 0..FILES {
        trees::file(&work.join("src"), format!("file-{n:02}"), &content, 0o644);
    }
    let shell = remote_shell(work).display().to_string();
    let path = format!("--rsync-path={}", ours().display());
    for places in [&["src/", "dst/"][..], &["-e", &shell, &path, "src/", "far:dst/"]] {
        let _ = fs::remove_dir_all(work.join("dst"));
        let mut child = Command::new(ours())
            .args(["-avP"])
            .args(places)
            .current_dir(work)
            .stdout(File::create(work.join("out")).expect("writable"))
            .stdin(Stdio::null())
            .spawn()
            .expect("our binary starts");
        // When a name, and when its finished file, was first seen.
        let (mut named, mut done) = (HashMap::new(), HashMap::new());
        loop {
            let is_over = child.try_wait().expect("a child of ours").is_some();
            let text = fs::read_to_string(work.join("out")).expect("readable");
            for n in 0..FILES {
                let name = format!("file-{n:02}");
                if text.lines().any(|line| line == name) {
                    named.entry(n).or_insert_with(Instant::now);
                }
                if work.join("dst").join(&name).exists() {
                    done.entry(n).or_insert_with(Instant::now);
                }
            }
            if is_over {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let text = fs::read_to_string(work.join("out")).expect("readable");
        assert!(!text.contains('\r'), "a carriage return in a file");
        assert!(text.starts_with("sending incremental file list\n"), "{text}");
        assert!(
            text.trim_end().lines().last().is_some_and(|line| line.starts_with("total size is ")),
            "{text}"
        );
        for n in 0..FILES {
            let lines: Vec<&str> = text.lines().collect();
            let name = lines.iter().position(|line| *line == format!("file-{n:02}")).expect("named");
            assert!(lines[name + 1].contains('%'), "{:?}", lines[name + 1]);
            let late = named[&n].saturating_duration_since(done[&n]);
            assert!(late < Duration::from_secs(1), "file-{n:02} was named {late:?} after it was done");
        }
        assert_eq!(text.matches("(xfr#").count(), FILES);
    }
}
