//! Public cases about names in other charsets.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};

const MODES: [Mode; 3] = [Mode::Local, Mode::Push, Mode::Pull];

fn run(work: &Path, mode: Mode, server: Peer, options: &[&str]) -> Output {
    let destination = Some("dst/");
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
        destination,
    };
    run.output()
}

fn name(work: &Path, path: &[u8]) -> std::path::PathBuf {
    work.join(OsStr::from_bytes(path))
}

/// C03: a name that its charset does not have is skipped and shown with its bytes, and nothing is
/// deleted on its account.
#[test]
fn c03_an_invalid_name_is_skipped_and_nothing_is_deleted() {
    if !has_stock() {
        return;
    }
    for mode in MODES {
        for server in [Peer::Stock, Peer::Ours] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let work = folder.path();
            fs::create_dir_all(work.join("src")).expect("writable");
            fs::create_dir_all(work.join("dst")).expect("writable");
            fs::write(work.join("dst/extra"), "extra").expect("writable");
            fs::write(work.join("src/plain"), "plain").expect("writable");
            // The far end of a pull is the sender: its charset is the one that the name is not in.
            let (bad, set) = match mode {
                Mode::Pull | Mode::DaemonPull => (&b"src/\xe9"[..], "--iconv=latin1,utf8"),
                Mode::Local | Mode::Push | Mode::DaemonPush => (&b"src/\xe9"[..], "--iconv=utf8,latin1"),
            };
            fs::write(name(work, bad), "bad").expect("writable");
            let output = run(work, mode, server, &["-a", "--delete", set]);
            let errors = String::from_utf8(output.stderr).expect("messages are UTF-8");
            assert_eq!(output.status.code(), Some(23), "{mode:?} {server:?} {errors}");
            assert!(errors.contains("cannot convert filename: \\#351"), "{mode:?} {server:?} {errors}");
            let mut names: Vec<_> =
                fs::read_dir(work.join("dst")).expect("it exists").flatten().map(|e| e.file_name()).collect();
            names.sort();
            assert_eq!(names, ["extra", "plain"], "{mode:?} {server:?}");
        }
    }
}

/// C04: a charset that nobody has ends the run before anything is transferred.
#[test]
fn c04_an_unknown_charset_is_named_and_nothing_happens() {
    for set in ["--iconv=nonsense,utf8", "--iconv=utf8,nonsense"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path();
        fs::create_dir_all(work.join("src")).expect("writable");
        let output = run(work, Mode::Local, Peer::Ours, &["-a", set]);
        let errors = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains("\"nonsense\""), "{errors}");
        assert!(!work.join("dst").exists());
    }
}

/// C05: a symlink's target is converted where both ends can, and arrives as it is where not.
#[test]
fn c05_targets_are_converted_only_by_agreement() {
    if !has_stock() {
        return;
    }
    for (version, target) in [("--protocol=32", &b"caf\xe9"[..]), ("--protocol=29", "caf\u{e9}".as_bytes())] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = folder.path();
        fs::create_dir_all(work.join("src")).expect("writable");
        std::os::unix::fs::symlink("caf\u{e9}", work.join("src/link")).expect("writable");
        let output = run(work, Mode::Push, Peer::Stock, &["-a", version, "--iconv=utf8,latin1"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let found = fs::read_link(work.join("dst/link")).expect("the link arrived");
        assert_eq!(found.as_os_str().as_bytes(), target, "{version}");
    }
}
