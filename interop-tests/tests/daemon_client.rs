//! Options of a daemon's client, against a stock daemon: ours does what stock does.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use suisei_interop_tests::daemon::{Daemon, PASSWORD, USER};
use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, Peer};

/// Exit code, both streams, whether a file arrived.
type Outcome = (Option<i32>, Vec<String>, Vec<String>, bool);

fn with_daemon(test: impl Fn(&Path, &Daemon)) {
    if !has_stock() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("src")).expect("writable");
    std::fs::write(folder.path().join("src/f"), "content\n").expect("writable");
    let daemon = Daemon::start(folder.path());
    test(folder.path(), &daemon);
}

fn run(work: &Path, client: Peer, words: &[&str]) -> Outcome {
    let _ = std::fs::remove_dir_all(work.join("dst"));
    let mut command = Command::new("timeout");
    command.args(["-k5", "60"]).arg(client.program()).args(words).arg("dst/").current_dir(work);
    command.env("LC_ALL", "C.UTF-8").env("USER", USER).env_remove("RSYNC_PASSWORD").stdin(Stdio::null());
    let output = command.output().expect("timeout(1) is installed");
    (
        output.status.code(),
        comparable(&output.stdout, work),
        comparable(&output.stderr, work),
        work.join("dst/f").exists(),
    )
}

fn same(work: &Path, words: &[&str]) -> Outcome {
    let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(work, client, words));
    assert_eq!(ours, stock, "{words:?}");
    stock
}

#[test]
fn password_files_log_in_if_nobody_else_can_read_them() {
    with_daemon(|work, daemon| {
        let url = format!("rsync://127.0.0.1:{}/locked/src/", daemon.port());
        for (text, mode, works) in [
            (format!("{PASSWORD}\n"), 0o600, true),
            (format!("{PASSWORD}\nsecond line\n"), 0o600, true),
            ("wrong\n".to_owned(), 0o600, false),
            (format!("{PASSWORD}\n"), 0o644, false),
            (String::new(), 0o600, false),
        ] {
            let file = work.join("password");
            std::fs::write(&file, &text).expect("writable");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("the file is ours");
            let outcome = same(work, &["-r", "--password-file=password", &url]);
            assert_eq!(outcome.3, works, "{text:?} {mode:o} {outcome:?}");
        }
        assert!(!same(work, &["-r", "--password-file=nothing", &url]).3);
    });
}

#[test]
fn address_port_and_sockopts_shape_the_connection() {
    with_daemon(|work, daemon| {
        let port = format!("--port={}", daemon.port());
        let base = ["-r", port.as_str()];
        for options in [
            &["--address=127.0.0.1"][..],
            &["--sockopts=SO_KEEPALIVE,TCP_NODELAY=1,SO_SNDBUF=65536"],
            &["-4"],
            &["--ipv4", "--contimeout=9"],
            &["--no-contimeout", "--timeout=9"],
        ] {
            let words = [&base[..], options, &["127.0.0.1::open/src/"]].concat();
            assert!(same(work, &words).3, "{options:?}");
        }
        let words = [&base[..], &["--sockopts=SO_NONSENSE=1", "127.0.0.1::open/src/"]].concat();
        same(work, &words);
    });
}

#[test]
fn a_greeting_is_shown_unless_it_is_not_wanted() {
    with_daemon(|work, _| {
        let config = std::fs::read_to_string(work.join("rsyncd.conf")).expect("it is there");
        std::fs::write(work.join("motd"), "Welcome,\nstranger.\n").expect("writable");
        let greeted = format!("motd file = {}/motd\n{config}", work.display());
        std::fs::write(work.join("greeted.conf"), greeted).expect("writable");
        let shell = work.join("rsh");
        let text = format!(
            "#!/bin/sh\nexec /usr/bin/rsync --server --daemon --config={}/greeted.conf .\n",
            work.display()
        );
        std::fs::write(&shell, text).expect("writable");
        std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).expect("the script is ours");
        for (option, shown) in [("--motd", true), ("--no-motd", false)] {
            let outcome = same(work, &["-r", "-e", "./rsh", option, "far::open/src/"]);
            assert!(outcome.3, "{outcome:?}");
            assert_eq!(outcome.1.iter().any(|line| line.contains("Welcome")), shown, "{outcome:?}");
        }
    });
}

#[test]
fn early_input_reaches_the_daemon_before_the_arguments() {
    with_daemon(|work, _| {
        let script = |name: &str, text: String| {
            let path = work.join(name);
            std::fs::write(&path, text).expect("writable");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .expect("the file is ours");
        };
        let at = work.display();
        script("exec", format!("#!/bin/sh\ncat >{at}/got\n"));
        script(
            "rsh",
            format!("#!/bin/sh\nexec /usr/bin/rsync --server --daemon --config={at}/early.conf .\n"),
        );
        let config = format!("use chroot = no\n[open]\n path = {at}\n early exec = {at}/exec\n");
        std::fs::write(work.join("early.conf"), config).expect("writable");
        for (name, bytes) in [("few", 11), ("none", 0), ("most", 5120), ("more", 5121)] {
            std::fs::write(work.join(name), "x".repeat(bytes)).expect("writable");
            let option = format!("--early-input={name}");
            let words = ["-r", "-e", "./rsh", &option, "far::open/src/"];
            let got = [Peer::Stock, Peer::Ours].map(|client| {
                let _ = std::fs::remove_file(work.join("got"));
                (run(work, client, &words), std::fs::read(work.join("got")).ok())
            });
            // A daemon that loses its client complains or not, as its time comes.
            let told = |(outcome, input): &(Outcome, Option<Vec<u8>>)| {
                let says = |line: &&String| line.contains("5120") || line.contains("(code 5)");
                let lines: Vec<String> = outcome.2.iter().filter(says).cloned().collect();
                (outcome.0, outcome.1.clone(), lines, outcome.3, input.clone())
            };
            assert_eq!(told(&got[1]), told(&got[0]), "{name}");
            assert_eq!(got[0].0 .3, bytes <= 5120, "{name}: {got:?}");
        }
        let words = ["-r", "-e", "./rsh", "--early-input=nothing", "far::open/src/"];
        let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(work, client, &words));
        let complaint = "rsync: [Receiver] failed to open nothing: No such file or directory (2)".to_owned();
        assert!(stock.2.contains(&complaint) && ours.2.contains(&complaint), "{stock:?} {ours:?}");
        assert_eq!(ours.0, stock.0);
    });
}

#[test]
fn contimeout_ends_a_connection_that_nobody_answers() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    // It listens and never says a word.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = format!("--port={}", listener.local_addr().expect("it is bound").port());
    let outcome = same(folder.path(), &["-r", "--contimeout=1", "--timeout=2", &port, "127.0.0.1::open/"]);
    assert!(matches!(outcome.0, Some(30 | 35)), "{outcome:?}");
}
