//! The daemon as a process: how it starts and ends, and what it takes from strangers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, Peer};
use suisei_interop_tests::site::Site;
use suisei_interop_tests::snapshot::{now, snapshot};
use suisei_interop_tests::sshd::free_port;

/// Opens a connection and reads the greeting.
fn greeted(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has timeouts");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).expect("a greeting comes");
    assert_eq!(line, "@RSYNCD: 32.0 sha512 sha256 sha1 md5 md4\n");
    stream
}

/// What a daemon answers to some bytes, up to its end.
fn answer(port: u16, bytes: &[u8]) -> String {
    let mut stream = greeted(port);
    // It may hang up in the middle.
    let _ = stream.get_mut().write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn hostile_lines_are_answered_as_stock_answers_them() {
    if !has_stock() {
        return;
    }
    let config = "[m]\npath = {at}/mod\n";
    let lines: [&[u8]; 10] = [
        b"hello\n",
        b"@RSYNCD: 30\n",
        b"@RSYNCD: 32.0\n",
        b"@RSYNCD: 31.0\n#list\n",
        b"@RSYNCD: 31.0\n\n",
        b"@RSYNCD: 31.0\r\n#foo\n",
        b"@RSYNCD: 31.0\n#early_input=0\n",
        b"@RSYNCD: 31.0\n#early_input=5\nhellonosuch\n",
        b"@RSYNCD: 31.0\nm\0\n",
        b"@RSYNCD: 31.0\nNoSuch\n",
    ];
    let answers = |server: Peer| -> Vec<String> {
        let site = Site::new(config);
        let daemon = site.start(server);
        lines.iter().map(|line| answer(daemon.port(), line)).collect()
    };
    assert_eq!(answers(Peer::Ours), answers(Peer::Stock));
    let site = Site::new(config);
    let daemon = site.start(Peer::Ours);
    for bytes in [
        [b"@RSYNCD: 31.0\n".as_slice(), &[b'x'; 4000]].concat(),
        [b"@RSYNCD: 31.0\nm\n".as_slice(), &[b'x'; 6000]].concat(),
        [b"@RSYNCD: 31.0\nm\n".as_slice(), &b"-v\0".repeat(17_000)].concat(),
        [b"@RSYNCD: 31.0\nm\n--server\0--sender\0-re.iLsfxCIvu\0.\0m/\0\0".as_slice(), &[0xFF; 5000]]
            .concat(),
    ] {
        answer(daemon.port(), &bytes);
    }
    assert!(site.log().iter().any(|line| line.contains("too many daemon arguments")), "{:#?}", site.log());
    let output = site.run(Peer::Ours, daemon.port(), &["{url}/m/a.txt"]);
    assert_eq!(output.status.code(), Some(0), "the daemon is none the worse");
}

#[test]
fn a_client_that_stalls_is_dropped() {
    let site = Site::new("timeout = 1\n[m]\npath = {at}/mod\n");
    let daemon = site.start(Peer::Ours);
    for said in [&b""[..], b"@RSYNCD: 31.0\n", b"@RSYNCD: 31.0\nm\n", b"@RSYNCD: 31.0\nm\n--server\0"] {
        let start = Instant::now();
        answer(daemon.port(), said);
        assert!(start.elapsed() < Duration::from_secs(10), "{said:?}");
    }
}

#[test]
fn connections_have_a_limit_that_is_freed() {
    if !has_stock() {
        return;
    }
    let site = Site::new("max connections = 1\n[m]\npath = {at}/mod\n");
    let daemon = site.start(Peer::Ours);
    let mut first = greeted(daemon.port());
    first.get_mut().write_all(b"@RSYNCD: 31.0\nm\n").expect("it listens");
    let mut line = String::new();
    first.read_line(&mut line).expect("an answer comes");
    assert_eq!(line, "@RSYNCD: OK\n");
    let refused = site.run(Peer::Stock, daemon.port(), &["{url}/m/"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("@ERROR: max connections (1) reached -- try again later"), "{text}");
    drop(first);
    let served = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        site.run(Peer::Stock, daemon.port(), &["{url}/m/"]).status.success()
    });
    assert!(served, "the place is free again");
}

#[test]
fn a_trusted_proxy_speaks_for_its_client() {
    let site = Site::new(
        "proxy protocol = yes\nproxy protocol hosts = 127.0.0.1\nreverse lookup = no\n\
         [m]\npath = {at}/mod\nhosts allow = 192.0.2.7\n",
    );
    let daemon = site.start(Peer::Ours);
    let talk = |header: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has timeouts");
        stream.write_all(&[header, b"@RSYNCD: 31.0\nm\n\n"].concat()).expect("it reads");
        let mut text = Vec::new();
        let mut part = [0; 512];
        while let Ok(read @ 1..) = stream.read(&mut part) {
            text.extend_from_slice(&part[..read]);
            if text.ends_with(b"OK\n") {
                break;
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    assert!(talk(b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 873\r\n").ends_with("@RSYNCD: OK\n"));
    let two = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xC0\0\x02\x07\x7F\0\0\x01\x13\x88\x03\x69";
    assert!(talk(two).ends_with("@RSYNCD: OK\n"));
    assert!(talk(b"PROXY TCP4 192.0.2.8 127.0.0.1 5000 873\r\n").contains("access denied to m"));
    assert_eq!(talk(b""), "", "no header, no byte");
    let site = Site::new("proxy protocol = yes\n[m]\npath = {at}/mod\n");
    let daemon = site.start(Peer::Ours);
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port())).expect("it listens");
    let _ = stream.write_all(b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 873\r\n");
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    assert!(text.is_empty(), "nobody is trusted");
}

#[test]
fn a_socket_on_standard_input_is_served() {
    let site = Site::new("[m]\npath = {at}/mod\ncomment = by inetd\n");
    let (ours, theirs) = UnixStream::pair().expect("sockets come in pairs");
    let mut child = Command::new(Peer::Ours.program())
        .arg("--daemon")
        .arg(format!("--config={}/rsyncd.conf", site.at().display()))
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .expect("the daemon starts");
    let mut stream = ours;
    stream.write_all(b"@RSYNCD: 31.0\n\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.ends_with("m              \tby inetd\n@RSYNCD: EXIT\n"), "{text}");
    child.wait().expect("it ends by itself");
}

#[test]
fn a_remote_shell_leads_to_a_daemon_for_one() {
    if !has_stock() {
        return;
    }
    let seen = |client: Peer, server: Peer| {
        let site = Site::new("[m]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\n");
        let program = format!(
            "--rsync-path={} --config={}/rsyncd.conf",
            server.program().display(),
            site.at().display()
        );
        let shell = suisei_interop_tests::peers::remote_shell(site.at());
        let start = now();
        let mut lines = Vec::new();
        for args in [&["host::"][..], &["-ai", "host::m/", "got/"], &["-ai", "src/", "host::w/"]] {
            let shell = shell.display().to_string();
            let args = [&["-e", &shell, &program], args].concat();
            let output = site.run(client, 0, &args);
            lines.push(format!("{:?}", output.status.code()));
            lines.extend(comparable(&output.stdout, site.at()));
            lines.extend(comparable(&output.stderr, site.at()));
        }
        lines.extend(snapshot(&site.at().join("in"), start));
        lines
    };
    let expected = seen(Peer::Stock, Peer::Stock);
    assert_eq!(seen(Peer::Stock, Peer::Ours), expected);
    assert_eq!(seen(Peer::Ours, Peer::Ours), expected);
}

#[test]
fn a_detached_daemon_tells_its_number_until_a_signal_ends_it() {
    let site = Site::new("pid file = {at}/pid\n[m]\npath = {at}/mod\n");
    let port = free_port();
    let config = format!("--config={}/rsyncd.conf", site.at().display());
    let start = || {
        let mut command = Command::new(Peer::Ours.program());
        command.args(["--daemon", &config, "--address=127.0.0.1", &format!("--port={port}")]);
        command.stdin(Stdio::null()).output().expect("the daemon starts")
    };
    assert!(start().status.success());
    suisei_interop_tests::sshd::wait_for(port);
    let pid = std::fs::read_to_string(site.at().join("pid")).expect("the number is there");
    let second = start();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(text.starts_with("failed to lock pid file "), "{text}");
    let status = Command::new("kill").arg(pid.trim()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(25));
        !site.at().join("pid").exists()
    });
    assert!(gone, "the pid file goes with the process");
    assert!(site.log().iter().any(|line| line.contains("received SIGINT, SIGTERM, or SIGHUP (code 20)")));
}

#[test]
fn a_mistake_in_the_configuration_is_named() {
    let site = Site::new("[m]\npath = {at}/mod\nno such = 1\nlist = perhaps\n");
    let daemon = site.start(Peer::Ours);
    drop(daemon);
    let log = site.log().join("\n").replace(&*site.at().to_string_lossy(), "AT");
    assert!(log.contains("AT/rsyncd.conf line 8: \"no such\" is no parameter and is ignored"), "{log}");
    assert!(log.contains("AT/rsyncd.conf line 9: \"list\" is neither yes nor no: \"perhaps\""), "{log}");
    std::fs::write(site.at().join("rsyncd.conf"), "[a/b]\n").expect("writable");
    let config = format!("--config={}/rsyncd.conf", site.at().display());
    let output = Command::new(Peer::Ours.program()).args(["--daemon", "--no-detach", &config]).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("rsyncd.conf line 1: the name of module [a/b] holds a slash"), "{text}");
}

#[test]
fn the_command_line_of_a_daemon_is_its_own() {
    if !has_stock() {
        return;
    }
    for args in [
        &["--daemon", "--bogus"][..],
        &["--daemon", "--port=x"],
        &["--daemon", "-a"],
        &["--daemon", "-M", "foo"],
        &["--config=x", "a", "b"],
    ] {
        let seen = |peer: Peer| {
            let output =
                Command::new(peer.program()).args(args).stdin(Stdio::null()).output().expect("it runs");
            (output.status.code(), comparable(&output.stderr, Path::new("/nowhere")))
        };
        assert_eq!(seen(Peer::Ours), seen(Peer::Stock), "{args:?}");
    }
}
