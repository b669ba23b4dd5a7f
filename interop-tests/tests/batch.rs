//! Batch files between the two programs: what one writes the other replays, at every version and
//! however the recording run was joined; the scripts are equal, and so are refusals.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};
use suisei_interop_tests::snapshot::{now, snapshot};
use suisei_interop_tests::trees;

const BOTH: [Peer; 2] = [Peer::Stock, Peer::Ours];

/// Makes `src` and an older state of it in `old`.
fn prepare(work: &Path) {
    trees::mixed(&work.join("src"));
    trees::older(&work.join("old"));
    // A directory in the way of a file would need --force.
    std::fs::remove_dir_all(work.join("old/dir-2/file")).expect("it stands there");
    trees::file(&work.join("src"), "linked", b"one inode", 0o644);
    std::fs::hard_link(work.join("src/linked"), work.join("src/dir/linked too")).expect("links are possible");
    let random = trees::bytes(5, 300_000);
    trees::file(&work.join("src"), "changed", &random, 0o640);
    let mut before = random;
    before[100_000..150_000].fill(7);
    before.truncate(280_000);
    trees::file(&work.join("old"), "changed", &before, 0o600);
    for tree in ["src", "old"] {
        trees::set_time(&work.join(tree), trees::PAST, 0);
    }
}

fn copy(work: &Path, from: &str, to: &str) {
    let _ = std::fs::remove_dir_all(work.join(to));
    let status = Command::new("cp").args(["-a", from, to]).current_dir(work).status();
    assert!(status.is_ok_and(|s| s.success()), "cp copies {from}");
}

fn run(work: &Path, client: Peer, mode: Mode, options: &[&str], destination: &str) -> Output {
    let run = Run {
        work,
        client,
        server: Peer::Stock,
        ours: &ours(),
        user: User::Caller,
        mode,
        options,
        sources: &["src/"],
        destination: Some(destination),
    };
    run.output()
}

fn shown(output: &Output) -> String {
    format!(
        "{:?}\n{}{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Writes with each program and reads with each; returns what differs from stock on both sides.
fn exchange(work: &Path, options: &[&str], version: u32, mode: Mode) -> Vec<String> {
    let protocol = format!("--protocol={version}");
    let start = now();
    let mut expected = None;
    let mut wrong = Vec::new();
    for writer in BOTH {
        copy(work, "old", "dst");
        let words: Vec<&str> = options.iter().copied().chain([&*protocol, "--write-batch=batch"]).collect();
        let written = run(work, writer, mode, &words, "dst/");
        let what = format!("{options:?} version {version} {mode:?} writer={writer:?}");
        if written.status.code() != Some(0) {
            wrong.push(format!("{what}: {}", shown(&written)));
            continue;
        }
        for reader in BOTH {
            copy(work, "old", "copy");
            let words: Vec<&str> = options.iter().copied().chain(["--read-batch=batch"]).collect();
            let read = run(work, reader, Mode::Local, &words, "copy/");
            let tree = snapshot(&work.join("copy"), start);
            let expected = expected.get_or_insert_with(|| tree.clone());
            if read.status.code() != Some(0) || tree != *expected {
                let lines: Vec<_> = tree.iter().filter(|line| !expected.contains(line)).collect();
                wrong.push(format!("{what} reader={reader:?}: {}{lines:#?}", shown(&read)));
            }
        }
    }
    wrong
}

#[test]
fn either_program_replays_what_either_wrote() {
    if !has_stock() {
        return;
    }
    let rows: [&[&str]; 7] = [
        &["-a"],
        &["-aH", "--delete"],
        &["-az"],
        &["-acz", "--no-i-r", "--exclude=*.o"],
        &["-a", "--inplace", "--checksum-seed=9"],
        &["-rlt"],
        &["-aR", "--delete-delay"],
    ];
    let mut jobs = Vec::new();
    for options in rows {
        for version in 27..=32 {
            jobs.extend([Mode::Local, Mode::Push, Mode::Pull].map(|mode| (options, version, mode)));
        }
    }
    let next = AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a temporary folder");
                prepare(folder.path());
                while let Some(&(options, version, mode)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = exchange(folder.path(), options, version, mode);
                    wrong.lock().expect("no thread panics with it").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("all threads ended");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn named_algorithms_are_replayed_when_named_again() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    prepare(folder.path());
    for name in ["--zc=zstd", "--zc=lz4", "--zc=zlibx", "--cc=md4"] {
        // On one machine, stock refuses its own record.
        for mode in [Mode::Push, Mode::Pull] {
            let wrong = exchange(folder.path(), &["-az", name], 32, mode);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}

/// Nothing changes at the destination, and the batch brings it up to date.
#[test]
fn a_batch_alone_is_as_good() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    prepare(work);
    let start = now();
    copy(work, "old", "dst");
    run(work, Peer::Stock, Mode::Local, &["-a", "--delete"], "dst/");
    let expected = snapshot(&work.join("dst"), start);
    let before = snapshot(&work.join("old"), start);
    for mode in [Mode::Local, Mode::Push, Mode::Pull] {
        for server in BOTH {
            for writer in BOTH {
                copy(work, "old", "dst");
                let options = ["-a", "--delete", "--only-write-batch=batch"];
                let sources = &["src/"];
                let destination = Some("dst/");
                let (ours, user) = (&*ours(), User::Caller);
                let run = Run {
                    work,
                    ours,
                    user,
                    client: writer,
                    server,
                    mode,
                    options: &options,
                    sources,
                    destination,
                };
                let written = run.output();
                let what = format!("{mode:?} writer={writer:?} server={server:?}");
                assert_eq!(written.status.code(), Some(0), "{what}: {}", shown(&written));
                assert_eq!(snapshot(&work.join("dst"), start), before, "{what}");
                for reader in BOTH {
                    copy(work, "old", "copy");
                    let options = ["-a", "--delete", "--read-batch=batch"];
                    let run = Run { client: reader, mode: Mode::Local, options: &options, ..run.clone() };
                    let read = Run { destination: Some("copy/"), ..run }.output();
                    assert_eq!(read.status.code(), Some(0), "{what} {reader:?}: {}", shown(&read));
                    assert_eq!(snapshot(&work.join("copy"), start), expected, "{what} {reader:?}");
                }
            }
        }
    }
}

#[test]
fn scripts_are_stocks() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "a", b"a", 0o644);
    std::fs::write(work.join("rules"), "*.o\n# no rule\n+ keep\n/d/\n").expect("writable");
    std::fs::write(work.join("names"), "a\n").expect("writable");
    let rows: &[&[&str]] = &[
        &["-a", "--write-batch=b"],
        &["-a", "--only-write-batch", "b"],
        &[
            "-a",
            "--exclude-from",
            "rules",
            "--exclude",
            "x",
            "--include=y",
            "-f",
            "- foo",
            "-f- bar",
            "--write-batch=b",
        ],
        &["-aF", "--write-batch=b"],
        &["-aFF", "--delete", "-b", "--write-batch=b"],
        &["-aC", "--exclude=foo", "--write-batch=b"],
        &["-a", "-f:C", "-f-C", "-f-p x", "--write-batch=b"],
        &[
            "-a",
            "-f-! foo",
            "-f-s foo",
            "-f-x foo",
            "-f:n .ru",
            "-f",
            ":- .x",
            "-fH /a",
            "-fR b/",
            "--write-batch=b",
        ],
        &["-a", "--files-from", "names", "--write-batch=b"],
        &["-a0", "--exclude=a", "--exclude=b/", "--write-batch=b"],
        &["-a", "--protocol=28", "--exclude=*.o", "--include=foo/", "--write-batch=b"],
        &["-a", "--partial-dir=pp", "--write-batch=b"],
        &["-a", "--partial-dir=pp", "--protocol=29", "--write-batch=b"],
        &["-a", "--out-format=it's %n", "--write-batch=q'uo te"],
        &["-az", "--exclude=foo", "--delete-excluded", "--delete", "--write-batch=b", "--"],
    ];
    for mode in [Mode::Local, Mode::Push, Mode::Pull] {
        for options in rows {
            let name = if options.contains(&"--write-batch=q'uo te") { "q'uo te.sh" } else { "b.sh" };
            let scripts = BOTH.map(|client| {
                let _ = std::fs::remove_file(work.join(name));
                let mut options = options.to_vec();
                // The words of the connection follow.
                options.retain(|word| mode == Mode::Local || *word != "--");
                let output = run(work, client, mode, &options, "dst/");
                let text = std::fs::read_to_string(work.join(name)).unwrap_or_default();
                let program = format!("'{}'", client.program().display());
                (output.status.code(), text.replacen(&program, "'rsync'", 1))
            });
            assert_eq!(scripts[0], scripts[1], "{options:?} {mode:?}");
        }
    }
}

#[test]
fn a_script_replays_with_its_filters() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    prepare(work);
    let start = now();
    let mut expected = None;
    for writer in BOTH {
        copy(work, "old", "dst");
        let options = ["-a", "--delete", "--exclude=*.o", "-f", "P extra*", "--write-batch=batch"];
        assert_eq!(run(work, writer, Mode::Local, &options, "dst/").status.code(), Some(0));
        copy(work, "old", "copy");
        let script =
            Command::new("sh").args(["./batch.sh", "copy/"]).current_dir(work).output().expect("it runs");
        assert_eq!(script.status.code(), Some(0), "{writer:?}: {}", shown(&script));
        let tree = snapshot(&work.join("copy"), start);
        assert_eq!(tree, *expected.get_or_insert_with(|| tree.clone()), "{writer:?}");
        let mode = std::os::unix::fs::PermissionsExt::mode;
        let modes = ["batch", "batch.sh"].map(|name| {
            mode(&std::fs::metadata(work.join(name)).expect("it is there").permissions()) & 0o777
        });
        assert_eq!(modes, [0o600, 0o700]);
    }
}

/// Same exit code and lines for what cannot be done, and for what a replay has to say.
#[test]
fn refusals_and_notes_are_stocks() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    prepare(work);
    copy(work, "old", "dst");
    run(work, Peer::Stock, Mode::Local, &["-a", "--write-batch=full"], "dst/");
    run(work, Peer::Stock, Mode::Local, &["-a", "--no-i-r", "--write-batch=empty"], "dst/");
    run(work, Peer::Stock, Mode::Local, &["-a", "--protocol=28", "--write-batch=old.28"], "copy/");
    let mut newer = std::fs::read(work.join("full")).expect("it was written");
    std::fs::write(work.join("short"), &newer[..9]).expect("writable");
    newer[4] = 41;
    std::fs::write(work.join("newer"), &newer).expect("writable");
    let long = format!("--write-batch={}", "a".repeat(257));
    std::fs::create_dir(work.join("folder.sh")).expect("writable");
    let rows: &[&[&str]] = &[
        &["-a", "--write-batch=a", "--read-batch=b"],
        &["-a", "--read-batch=full", "--files-from=names"],
        &["-a", "--read-batch=full", "--remove-source-files"],
        &["-a", "--read-batch=missing"],
        &["-a", "--read-batch=src"],
        &["-a", "--read-batch="],
        &["-a", "--write-batch=/missing/x"],
        &["-a", "--write-batch=src"],
        &["-a", "--write-batch=folder"],
        &["-a", "--write-batch="],
        &["-a", &long],
        &["-a", "--read-batch=newer"],
        &["-a", "--read-batch=short"],
        &["-a", "--protocol=30", "--read-batch=full"],
        &["-a", "--delete-after", "--read-batch=full"],
        &["-v", "--read-batch=full"],
        &["-rv", "--read-batch=full"],
        &["-aivcH", "--inplace", "--read-batch=full"],
        &["-ai", "--read-batch=full"],
        &["-a", "--read-batch=full"],
        &["-avv", "--read-batch=full"],
        &["-ain", "--delete", "--read-batch=full"],
        &["-ai", "--list-only", "--read-batch=full"],
        &["-av", "--stats", "--read-batch=full"],
        &["-ai", "--no-i-r", "--read-batch=empty"],
        &["-ai", "--no-i-r", "--read-batch=old.28"],
        &["-av", "--no-i-r", "--read-batch=old.28"],
        &["-ain", "--write-batch=unwritten"],
        &["-aiv", "--only-write-batch=alone"],
    ];
    for options in rows {
        let outcomes = BOTH.map(|client| {
            copy(work, "old", "copy");
            let output = run(work, client, Mode::Local, options, "copy/");
            (output.status.code(), comparable(&output.stdout, work), comparable(&output.stderr, work))
        });
        assert_eq!(outcomes[0], outcomes[1], "{options:?}");
    }
    assert!(!work.join("unwritten").exists());
}

#[test]
fn a_batch_comes_by_a_pipe_as_well() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    prepare(work);
    let start = now();
    copy(work, "old", "dst");
    run(work, Peer::Stock, Mode::Local, &["-a", "--write-batch=batch"], "dst/");
    let expected = snapshot(&work.join("dst"), start);
    let ours = Peer::Ours.program();
    for (what, line) in [
        ("stdin", "exec \"$0\" -a --read-batch=- copy/ < batch"),
        ("a pipe as stdin", "cat batch | \"$0\" -a --read-batch=- copy/"),
        ("a FIFO", "mkfifo fifo; (sleep 0.3; cat batch > fifo) & exec \"$0\" -a --read-batch=fifo copy/"),
    ] {
        copy(work, "old", "copy");
        let output = Command::new("timeout")
            .args(["-k5", "30", "sh", "-c", line])
            .arg(&ours)
            .current_dir(work)
            .output()
            .expect("sh runs");
        assert_eq!(output.status.code(), Some(0), "{what}: {}", shown(&output));
        assert_eq!(snapshot(&work.join("copy"), start), expected, "{what}");
    }
}

#[test]
fn a_full_disk_ends_the_recording_run() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::file(&work.join("src"), "a", b"a", 0o644);
    std::os::unix::fs::symlink("/dev/full", work.join("full")).expect("writable");
    let outcomes = BOTH.map(|client| {
        let output = run(work, client, Mode::Local, &["-a", "--write-batch=full"], "dst/");
        (output.status.code(), comparable(&output.stderr, work))
    });
    assert_eq!(outcomes[0], outcomes[1]);
}

/// A damaged batch ends in an error that is worded, soon, and leaves nothing outside.
#[test]
fn a_damaged_batch_neither_hangs_nor_panics() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::older(&work.join("src"));
    for (options, name) in
        [(&["-aH", "--write-batch=b"][..], "b"), (&["-az", "--protocol=29", "--write-batch=z"], "z")]
    {
        run(work, Peer::Stock, Mode::Local, options, "dst/");
        let _ = std::fs::remove_dir_all(work.join("dst"));
        let whole = std::fs::read(work.join(name)).expect("it was written");
        let step = (whole.len() / 60).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x55;
            for (what, bytes) in [("cut", &whole[..at]), ("flipped", &flipped[..])] {
                std::fs::write(work.join("damaged"), bytes).expect("writable");
                let start = Instant::now();
                let output = Command::new("timeout")
                    .args(["-k1", "20"])
                    .arg(Peer::Ours.program())
                    .args(["-aHz", "--delete", "--read-batch=damaged", "copy/"])
                    .current_dir(work)
                    .stdin(Stdio::null())
                    .output()
                    .expect("timeout(1) is installed");
                let code = output.status.code();
                assert!(start.elapsed() < Duration::from_secs(20), "{name} {what} at {at}: it hangs");
                assert!(code.is_some_and(|code| code < 100), "{name} {what} at {at}: {}", shown(&output));
                assert!(what == "flipped" || code != Some(0), "{name} cut at {at}: success");
                let _ = std::fs::remove_dir_all(work.join("copy"));
            }
        }
    }
}
