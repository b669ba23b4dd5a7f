//! Real transports: an `sshd` with keys, and a stock daemon with and without a password.

use std::path::Path;
use std::process::{Command, Output};

use suisei_interop_tests::daemon::{Daemon, PASSWORD};
use suisei_interop_tests::peers::{has_stock, ours};
use suisei_interop_tests::sshd::Sshd;
use suisei_interop_tests::trees;

const STOCK: &str = "/usr/bin/rsync";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    trees::mixed(&folder.path().join("src"));
    folder
}

fn run(work: &Path, program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k5", "60"]).arg(program).args(args).current_dir(work);
    command
        .env("RSYNC_PASSWORD", PASSWORD)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("timeout(1) is installed")
}

fn assert_copies(work: &Path, program: &Path, args: &[&str]) {
    let _ = std::fs::remove_dir_all(work.join("dst"));
    let output = run(work, program, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let check = run(work, Path::new(STOCK), &["-naHic", "--numeric-ids", "--delete", "src/", "dst/"]);
    assert_eq!(String::from_utf8_lossy(&check.stdout), "", "{args:?}");
    let again = run(work, program, &[&["--stats"], args].concat());
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(text.contains("Number of regular files transferred: 0\n"), "{args:?}: {text}");
}

#[test]
fn over_a_real_sshd() {
    let folder = folder();
    let work = folder.path();
    let Some(sshd) = Sshd::start(work).filter(|_| has_stock()) else { return };
    let shell = sshd.shell();
    let (src, dst) =
        (format!("127.0.0.1:{}/src/", work.display()), format!("127.0.0.1:{}/dst/", work.display()));
    let (stock_path, ours_path) =
        ("--rsync-path=/usr/bin/rsync", format!("--rsync-path={}", ours().display()));
    for (client, server) in [(&ours(), stock_path), (&STOCK.into(), &ours_path), (&ours(), &ours_path)] {
        let base = ["-aH", "--numeric-ids", "-e", &shell, server];
        assert_copies(work, client, &[&base[..], &["src/", &dst]].concat());
        assert_copies(work, client, &[&base[..], &[&src, "dst/"]].concat());
    }
}

/// The built-in transport trusts only hosts in `known_hosts`, and logs in by key file.
#[test]
fn over_the_built_in_ssh() {
    let folder = folder();
    let work = folder.path();
    let Some(sshd) = Sshd::start(work).filter(|_| has_stock()) else { return };
    let ssh = work.join("home/.ssh");
    std::fs::create_dir_all(&ssh).expect("the work folder is writable");
    let shell = format!("--rsh=builtin -p {} -i {}/user", sshd.port(), sshd.folder().display());
    let dst = format!("127.0.0.1:{}/dst/", work.display());
    let args = ["-aH", "--numeric-ids", "--rsync-path=/usr/bin/rsync", &shell, "src/", &dst];
    let run = || {
        let mut command = Command::new("timeout");
        command.args(["-k5", "60"]).arg(ours()).args(args).current_dir(work).env("HOME", work.join("home"));
        command.stdin(std::process::Stdio::null()).output().expect("timeout(1) is installed")
    };
    let unknown = run();
    let text = String::from_utf8_lossy(&unknown.stderr).into_owned();
    if text.contains("this build has no ssh of its own") {
        println!("skipped: built without the feature ssh2");
        return;
    }
    assert!(!unknown.status.success() && !work.join("dst").exists(), "an unknown host is refused: {text}");
    let key = std::fs::read_to_string(sshd.folder().join("host.pub")).expect("the host has a key");
    let known = format!("[127.0.0.1]:{} {key}", sshd.port());
    std::fs::write(ssh.join("known_hosts"), known).expect("the work folder is writable");
    let output = run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let check =
        Command::new(STOCK).args(["-naHic", "--numeric-ids", "src/", "dst/"]).current_dir(work).output();
    assert_eq!(String::from_utf8_lossy(&check.expect("stock runs").stdout), "");
}

#[test]
fn to_and_from_a_stock_daemon() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let work = folder.path();
    let daemon = Daemon::start(work);
    for module in ["open", "locked"] {
        for version in [27, 28, 29, 30, 31, 32] {
            let protocol = format!("--protocol={version}");
            let base = ["-aH", "--numeric-ids", &protocol];
            assert_copies(work, &ours(), &[&base[..], &["src/", &daemon.url(module, "dst/")]].concat());
            assert_copies(work, &ours(), &[&base[..], &[&daemon.url(module, "src/"), "dst/"]].concat());
        }
    }
}

#[test]
fn a_daemon_lists_and_refuses_as_it_does_for_stock() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let work = folder.path();
    let daemon = Daemon::start(work);
    let list = format!("rsync://127.0.0.1:{}/", daemon.port());
    let wrong = daemon.url("nothing", "x");
    for args in
        [&[list.as_str()][..], &["-a", &wrong, "dst/"], &["-a", &daemon.url("open", "missing"), "dst/"]]
    {
        let (expected, got) = (run(work, Path::new(STOCK), args), run(work, &ours(), args));
        assert_eq!(got.status.code(), expected.status.code(), "{args:?}");
        assert_eq!(
            String::from_utf8_lossy(&got.stdout),
            String::from_utf8_lossy(&expected.stdout),
            "{args:?}"
        );
    }
    let mut no_password = Command::new(ours());
    no_password
        .args([&daemon.url("locked", "src/"), "dst/"])
        .current_dir(work)
        .env("RSYNC_PASSWORD", "wrong");
    let output = no_password.output().expect("it runs");
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("auth failed on module locked"));
}
