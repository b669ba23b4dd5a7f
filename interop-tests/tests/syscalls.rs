//! Under strace: below a held root no file system call goes by path. What crosses a directory names
//! one component, or lets the kernel keep it beneath the root.

use std::path::Path;
use std::process::Command;

use suisei_interop_tests::peers::{ours, Mode, Peer, Run, User};
use suisei_interop_tests::trees;

/// Whether strace is there and may trace; prints why the test is skipped if not.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        println!("skipped: strace is missing or may not trace");
    }
    can
}

/// Returns the quoted strings of a line of strace's.
fn strings(arguments: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(start) = rest.find('"') {
        let bytes = &rest.as_bytes()[start + 1..];
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        found.push(&rest[start + 1..start + 1 + end.min(bytes.len())]);
        rest = rest.get(start + 2 + end..).unwrap_or("");
    }
    found
}

/// Whether a call reaches into the tree of a run by more than one component. `secret` is a name
/// that stands in every path below the roots and in no path above them.
fn leaks(line: &str, secret: &str) -> bool {
    let Some((before, arguments)) = line.split_once('(') else { return false };
    let call = before.rsplit(' ').next().unwrap_or(before);
    let mut paths = strings(arguments);
    match call {
        "execve" => return false,
        // The text of a symlink is no path here.
        "symlinkat" => drop(paths.drain(..1)),
        "readlinkat" => paths.truncate(1),
        "openat2" if arguments.contains("RESOLVE_BENEATH") => return false,
        _ => {}
    }
    paths
        .iter()
        .any(|path| path.contains(secret) && (path.contains('/') || arguments.starts_with("AT_FDCWD")))
}

/// Traces one run, every process and thread of it, and returns the lines that leak.
fn traced(work: &Path, mode: Mode, options: &[&str]) -> Vec<String> {
    let log = work.join("trace");
    let run = Run {
        ours: &ours(),
        user: User::Caller,
        work,
        client: Peer::Ours,
        server: Peer::Ours,
        mode,
        options,
        sources: &["src/"],
        destination: Some("dst/"),
    };
    let plain = run.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=file", "-o"]).arg(&log).arg(plain.get_program());
    command.args(plain.get_args()).current_dir(work).env_remove("RSYNC_RSH");
    let output = command.output().expect("strace was there a moment ago");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode:?} {options:?}: {said}");
    let trace = std::fs::read(&log).expect("strace wrote its log");
    let trace = String::from_utf8_lossy(&trace);
    assert!(trace.contains("renameat"), "{mode:?} {options:?}: files were placed, and it was seen");
    trace.lines().filter(|line| leaks(line, "inmost")).map(str::to_owned).collect()
}

/// Builds trees in which each name below the roots contains `inmost`.
fn build(work: &Path) {
    let (src, dst) = (work.join("src"), work.join("dst"));
    for dir in ["inmost-a/inmost-b/inmost-c", "inmost-d"] {
        for name in ["inmost-1", "inmost-2"] {
            trees::file(&src, format!("{dir}/{name}"), &trees::bytes(7, 9_000), 0o640);
            trees::file(&dst, format!("{dir}/{name}"), b"older", 0o600);
            trees::file(&dst, format!("{dir}/inmost-extra/{name}"), b"extra", 0o600);
        }
    }
    std::fs::hard_link(src.join("inmost-d/inmost-1"), src.join("inmost-a/inmost-link"))
        .expect("links can be made");
    std::os::unix::fs::symlink("inmost-d/inmost-1", src.join("inmost-sym")).expect("links can be made");
}

#[test]
fn no_path_reaches_below_a_root() {
    if !can_trace() {
        return;
    }
    let sets: &[&[&str]] = &[
        &["-aH", "--delete", "--no-W"],
        &["-aH", "--delete-delay", "-b", "--backup-dir=inmost-backups"],
        &["-a", "--partial-dir=.inmost-partial", "--delay-updates", "--remove-source-files"],
        &["-aL", "--no-inc-recursive", "--delete-before", "--force"],
    ];
    for mode in [Mode::Local, Mode::Push, Mode::Pull] {
        for options in sets {
            let folder = tempfile::tempdir().expect("a temporary folder");
            build(folder.path());
            let leaking = traced(folder.path(), mode, options);
            assert!(leaking.is_empty(), "{mode:?} {options:?}:\n{}", leaking.join("\n"));
        }
    }
}

/// The check itself can fail: a call by path is seen.
#[test]
fn a_call_by_path_is_seen() {
    for line in [
        r#"12 openat(AT_FDCWD, "src/inmost/f", O_RDONLY) = 3"#,
        r#"12 unlinkat(4, "inmost-a/f", 0) = 0"#,
        r#"12 renameat(4, "f", 5, "d/inmost") = 0"#,
        r#"12 lstat("inmost/a", 0x7f) = 0"#,
        r#"12 openat2(4, "inmost-a/b", {flags=O_RDONLY, resolve=RESOLVE_NO_SYMLINKS}, 24) = 5"#,
    ] {
        assert!(leaks(line, "inmost"), "{line}");
    }
    for line in [
        r#"12 openat(AT_FDCWD, "src", O_PATH) = 3"#,
        r#"12 openat2(4, "inmost-a/b", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24) = 5"#,
        r#"12 symlinkat("inmost-d/inmost-1", 4, "inmost-sym") = 0"#,
        r#"12 renameat(4, ".inmost \"a\".x", 5, "inmost") = 0"#,
    ] {
        assert!(!leaks(line, "inmost"), "{line}");
    }
}
