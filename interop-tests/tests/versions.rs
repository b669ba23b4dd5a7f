//! A tree of 2,000 mixed entries to and from stock peers that speak each version.

use std::path::Path;
use std::process::Command;

use suisei_interop_tests::peers::{has_stock, ours, remote_shell};
use suisei_interop_tests::snapshot::{now, snapshot};
use suisei_interop_tests::trees;

const STOCK: &str = "/usr/bin/rsync";

fn run(work: &Path, program: &str, args: &[&str]) {
    let output = Command::new("timeout").args(["-k5", "120", program]).args(args).current_dir(work).output();
    let output = output.expect("timeout(1) is installed");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {:?}\n{text}", output.status.code());
}

/// Stock says that nothing differs, and a second run moves no file data.
fn assert_same(work: &Path, what: &str) {
    let check = Command::new(STOCK)
        .args(["-naHic", "--numeric-ids", "--delete", "src/", "dst/"])
        .current_dir(work)
        .output()
        .expect("stock rsync runs");
    assert_eq!(String::from_utf8_lossy(&check.stdout), "", "{what}");
}

#[test]
fn stock_peers_of_each_version() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::mixed(&work.join("src/mixed"));
    trees::regular(&work.join("src/regular"), 60, 1_900);
    trees::set_time(&work.join("src"), trees::PAST, 0);
    let shell = remote_shell(work);
    let (shell, ours) = (shell.to_str().expect("UTF-8"), ours());
    let ours = ours.to_str().expect("UTF-8");
    for version in 27..=32 {
        let protocol = format!("--protocol={version}");
        let stock_server = format!("--rsync-path={STOCK} {protocol}");
        let ours_server = format!("--rsync-path={ours}");
        let base = ["-aH", "--numeric-ids", "--delete", "-e", shell];
        // The version is chosen by the stock end: as server by an option of its command line.
        let roads: [(&str, &str, &[&str]); 4] = [
            ("push to stock", ours, &[&stock_server, "src/", "far:dst/"]),
            ("pull from stock", ours, &[&stock_server, "far:src/", "dst/"]),
            ("stock pushes to us", STOCK, &[&ours_server, &protocol, "src/", "far:dst/"]),
            ("stock pulls from us", STOCK, &[&ours_server, &protocol, "far:src/", "dst/"]),
        ];
        for (what, client, rest) in roads {
            let _ = std::fs::remove_dir_all(work.join("dst"));
            let args: Vec<&str> = base.iter().chain(rest).copied().collect();
            run(work, client, &args);
            let what = format!("{what}, version {version}");
            assert_same(work, &what);
            let before = snapshot(&work.join("dst"), now() + 1_000);
            run(work, client, &args);
            assert_eq!(snapshot(&work.join("dst"), now() + 1_000), before, "{what}, second run");
        }
    }
}
