//! `--early-input`: what a daemon's `early exec` reads, and what cannot be sent.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, Peer};

fn run(work: &Path, client: Peer, file: &str) -> Output {
    let daemon = format!("/usr/bin/rsync --daemon --config={}", work.join("conf").display());
    Command::new("timeout")
        .args(["-k5", "30"])
        .arg(client.program())
        .arg("-a")
        .arg(format!("--early-input={file}"))
        .args(["rsync://host/module/", "dst/"])
        .env("RSYNC_CONNECT_PROG", daemon)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(work)
        .stdin(Stdio::null())
        .output()
        .expect("timeout(1) is installed")
}

#[test]
fn a_daemon_reads_the_file_before_anything_else() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    let shown = work.display();
    std::fs::create_dir(work.join("src")).expect("writable");
    std::fs::write(work.join("src/a"), "a").expect("writable");
    let text = format!("[module]\npath = {shown}/src\nuse chroot = no\nearly exec = cat > {shown}/got\n");
    std::fs::write(work.join("conf"), text).expect("writable");
    std::fs::write(work.join("most"), vec![b'x'; 5120]).expect("writable");
    std::fs::write(work.join("more"), vec![b'x'; 5121]).expect("writable");
    for file in ["most", "more", "missing", ""] {
        let outcomes = [Peer::Stock, Peer::Ours].map(|client| {
            let _ = std::fs::remove_file(work.join("got"));
            let output = run(work, client, file);
            let got = std::fs::read(work.join("got")).ok().map(|bytes| bytes.len());
            (output.status.code(), comparable(&output.stderr, work), got)
        });
        assert_eq!(outcomes[0], outcomes[1], "{file:?}");
        assert_eq!(outcomes[0].2, (file == "most").then_some(5120), "{file:?}");
    }
}
