//! Options on the command line of a daemon: ours takes each as stock does.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use suisei_interop_tests::peers::{has_stock, ours, Peer};
use suisei_interop_tests::sshd::free_port;

/// A daemon that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    let work = folder.path();
    for dir in ["src", "dst", "tmp"] {
        std::fs::create_dir(work.join(dir)).expect("writable");
    }
    std::fs::write(work.join("src/f"), "content\n").expect("writable");
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let at = work.display();
    let ids = if uid == 0 { format!("uid = {uid}\ngid = {gid}\n") } else { String::new() };
    let config = format!("use chroot = no\n{ids}reverse lookup = no\ntransfer logging = yes\nlog file = {at}/log\n[m]\n path = {at}\n read only = no\n");
    std::fs::write(work.join("conf"), config).expect("writable");
    folder
}

/// Starts a daemon; nothing if it ends or does not listen.
fn start(program: Peer, work: &Path, host: &str, options: &[&str]) -> Option<(Running, u16)> {
    let port = free_port();
    let mut command = Command::new(program.program());
    command.args(["--daemon", "--no-detach", "--config=conf"]).arg(format!("--port={port}")).args(options);
    command.current_dir(work).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("it starts"));
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if TcpStream::connect((host, port)).is_ok() {
            return Some((running, port));
        }
        if !matches!(running.0.try_wait(), Ok(None)) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// Copies to and from the daemon, and returns its log without times, numbers of processes and of
/// bytes on the wire.
fn log(program: Peer, options: &[&str]) -> Vec<String> {
    let folder = folder();
    let work = folder.path();
    let options = [&["--address=127.0.0.1"], options].concat();
    let (running, port) = start(program, work, "127.0.0.1", &options).expect("it listens");
    for (from, to) in [
        (format!("rsync://127.0.0.1:{port}/m/src/"), "back/".to_owned()),
        ("src/".to_owned(), format!("rsync://127.0.0.1:{port}/m/")),
    ] {
        let status = Command::new("/usr/bin/rsync").arg("-r").args([&from, &to]).current_dir(work).status();
        assert!(status.is_ok_and(|status| status.success()), "{from} {to}");
    }
    // The last line is written behind the client's back.
    std::thread::sleep(Duration::from_millis(300));
    drop(running);
    let text = std::fs::read_to_string(work.join("log")).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let line = line.split_once("] ").map_or(line, |(_, rest)| rest);
        let line = line.replace(&port.to_string(), "PORT").replace(&work.display().to_string(), "WORK");
        line.split("  total size")
            .next()
            .unwrap_or_default()
            .split("sent ")
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let mut lines: Vec<String> =
        lines.filter(|line| !line.starts_with("connect from UNDETERMINED")).collect();
    lines.sort();
    lines
}

#[test]
fn a_daemon_takes_each_option_of_its_own() {
    if !has_stock() {
        return;
    }
    for options in [
        &["--log-file=log"][..],
        &["--log-file-format=%o|%m|%f|%l"],
        &["--sockopts=SO_KEEPALIVE,TCP_NODELAY", "-v", "--no-verbose"],
        &["--bwlimit=100000", "-T", "tmp"],
        &["--dparam=max connections=7"],
    ] {
        // What stock writes when it starts names its own version.
        let rest = |lines: Vec<String>| {
            let starts = |line: &String| line.starts_with("rsyncd version");
            lines.into_iter().filter(|line| !starts(line)).collect::<Vec<_>>()
        };
        let [stock, ours] = [Peer::Stock, Peer::Ours].map(|program| rest(log(program, options)));
        assert!(!stock.is_empty(), "{options:?}");
        assert_eq!(ours, stock, "{options:?}");
    }
}

#[test]
fn a_daemon_listens_where_and_as_it_is_told() {
    if !has_stock() {
        return;
    }
    for (host, options) in [
        ("127.0.0.1", &["--address=127.0.0.1"][..]),
        ("127.0.0.1", &["-4", "--address=127.0.0.1", "--protocol=29"]),
        ("::1", &["--ipv6", "--address=::1"]),
        ("::1", &["--ipv4"]),
    ] {
        let greetings = [Peer::Stock, Peer::Ours].map(|program| {
            let folder = folder();
            let (_running, port) = start(program, folder.path(), host, options)?;
            let mut line = String::new();
            BufReader::new(TcpStream::connect((host, port)).ok()?).read_line(&mut line).ok()?;
            Some(line)
        });
        assert_eq!(greetings[1], greetings[0], "{host} {options:?}");
    }
}

#[test]
fn the_help_of_a_daemon_names_its_options() {
    for words in [&["--daemon", "--help"][..], &["--daemon", "-h"]] {
        let output = Command::new(ours()).args(words).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        for option in
            ["--address", "--bwlimit", "--config", "--dparam", "--no-detach", "--port", "--log-file"]
        {
            assert!(text.contains(option), "{option}: {text}");
        }
    }
}
