//! The environment variables that change a run: each does the same to stock and to ours.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use suisei_interop_tests::daemon::{Daemon, PASSWORD, USER};
use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, Peer};
use walkdir::WalkDir;

/// What a run leaves: exit code, both streams, what the remote shell saw, the destination.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    out: Vec<String>,
    err: Vec<String>,
    shell: String,
    destination: Vec<String>,
}

/// Makes the folder of a run. `bin/ssh` notes its words and two variables, then does what sshd
/// would do; `sh` notes that it was called.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    let work = folder.path();
    for dir in ["src/sub", "bin", "home"] {
        std::fs::create_dir_all(work.join(dir)).expect("writable");
    }
    for (name, text) in [("f", "content\n"), ("f.mine", "a\n"), ("f.theirs", "b\n"), ("sub/g", "more\n")] {
        std::fs::write(work.join("src").join(name), text).expect("writable");
    }
    script(
        &work.join("bin/ssh"),
        &format!(
            "#!/bin/sh\n{{ echo \"$# $*\"; echo \"port=$RSYNC_PORT display=$DISPLAY\"; }} >>{0}/log\n\
             while [ \"$1\" != far ]; do shift; done\nshift\nexec /bin/sh -c \"$*\"\n",
            work.display()
        ),
    );
    script(
        &work.join("sh"),
        &format!("#!/bin/sh\necho called >>{}/log\nexec /bin/sh \"$@\"\n", work.display()),
    );
    folder
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).expect("writable");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("the script is ours");
}

fn run(work: &Path, client: Peer, variables: &[(&str, &str)], words: &[&str]) -> Outcome {
    let place = |text: &str| text.replace("{work}", &work.to_string_lossy());
    let _ = std::fs::remove_dir_all(work.join("dst"));
    let _ = std::fs::remove_file(work.join("log"));
    let mut command = Command::new("timeout");
    command.args(["-k5", "60"]).arg(client.program()).args(words.iter().map(|word| place(word)));
    command.current_dir(work).stdin(Stdio::null()).env_clear();
    command.env("PATH", format!("{}/bin:/usr/bin:/bin", work.display()));
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("HOME", work.join("home"));
    command.envs(variables.iter().map(|(name, value)| (name, place(value))));
    let output = command.output().expect("timeout(1) is installed");
    let destination = WalkDir::new(work.join("dst")).sort_by_file_name().into_iter().flatten();
    Outcome {
        code: output.status.code(),
        out: comparable(&output.stdout, work),
        err: comparable(&output.stderr, work),
        shell: std::fs::read_to_string(work.join("log")).unwrap_or_default(),
        destination: destination.map(|entry| entry.path().display().to_string()).collect(),
    }
}

/// Runs stock and ours as clients of one server, with the variables and without them. The
/// variables must make a difference, the same to both.
fn compare(server: Peer, variables: &[(&str, &str)], words: &[&str]) -> Outcome {
    let folder = folder();
    let work = folder.path();
    let path = format!("--rsync-path={}", server.program().display());
    let words = [&[path.as_str()], words].concat();
    let bare = run(work, Peer::Stock, &[], &words);
    let expected = run(work, Peer::Stock, variables, &words);
    assert_ne!(bare, expected, "{variables:?} {words:?} make no difference");
    let got = run(work, Peer::Ours, variables, &words);
    assert_eq!(got, expected, "{variables:?} {words:?}");
    expected
}

const PUSH: [&str; 3] = ["-r", "src/", "far:dst"];

#[test]
fn rsync_rsh_names_the_remote_shell() {
    if !has_stock() {
        return;
    }
    let seen = compare(Peer::Stock, &[("RSYNC_RSH", "{work}/bin/ssh -x 'a b'")], &PUSH);
    assert!(seen.shell.contains("-x a b far /"), "{seen:?}");
    compare(Peer::Stock, &[("RSYNC_RSH", "ssh 'open")], &PUSH);
}

#[test]
fn rsync_old_args_and_rsync_protect_args_choose_how_arguments_travel() {
    if !has_stock() {
        return;
    }
    let words = ["-r", "src/", "far:my dst/"];
    compare(Peer::Stock, &[("RSYNC_OLD_ARGS", "1")], &words);
    compare(Peer::Stock, &[("RSYNC_OLD_ARGS", "2")], &["-rb", "--suffix=.a b", "src/", "far:dst"]);
    compare(Peer::Stock, &[("RSYNC_PROTECT_ARGS", "1")], &words);
    compare(Peer::Ours, &[("RSYNC_PROTECT_ARGS", "1")], &words);
    compare(Peer::Stock, &[("RSYNC_OLD_ARGS", "1"), ("RSYNC_PROTECT_ARGS", "1")], &words);
}

#[test]
fn rsync_partial_dir_is_where_partial_files_go() {
    if !has_stock() {
        return;
    }
    let seen =
        compare(Peer::Stock, &[("RSYNC_PARTIAL_DIR", ".mine")], &["-r", "--partial", "src/", "far:dst"]);
    assert!(seen.shell.contains("--partial-dir .mine"), "{seen:?}");
}

#[test]
fn rsync_checksum_list_limits_the_choice_at_either_end() {
    if !has_stock() {
        return;
    }
    for server in [Peer::Stock, Peer::Ours] {
        compare(server, &[("RSYNC_CHECKSUM_LIST", "nobody knows")], &PUSH);
        compare(server, &[("RSYNC_CHECKSUM_LIST", "md5 & sha1")], &PUSH);
        // A server's list limits what is named, too.
        compare(server, &[("RSYNC_CHECKSUM_LIST", "md5 & sha1")], &["-r", "--cc=md5", "src/", "far:dst"]);
    }
}

#[test]
fn rsync_compress_list_limits_the_choice_at_either_end() {
    if !has_stock() {
        return;
    }
    for server in [Peer::Stock, Peer::Ours] {
        compare(server, &[("RSYNC_COMPRESS_LIST", "nobody knows")], &["-rz", "src/", "far:dst"]);
        compare(server, &[("RSYNC_COMPRESS_LIST", "zstd & lz4")], &["-rz", "src/", "far:dst"]);
        compare(server, &[("RSYNC_COMPRESS_LIST", "zstd & lz4")], &["-r", "--zc=zstd", "src/", "far:dst"]);
    }
}

#[test]
fn rsync_port_is_told_to_the_shell_of_a_daemon_session() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let words = ["-e", "ssh", "--port=99", "far::nothing/", "dst"];
    let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(folder.path(), client, &[], &words).shell);
    assert!(stock.contains("port=99"), "{stock}");
    assert_eq!(ours, stock);
}

#[test]
fn display_is_hidden_from_the_shell_unless_askpass_is_set() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    for variables in [&[("DISPLAY", ":7")][..], &[("DISPLAY", ":7"), ("SSH_ASKPASS", "x")]] {
        let [stock, ours] =
            [Peer::Stock, Peer::Ours].map(|client| run(folder.path(), client, variables, &PUSH));
        assert_eq!(stock.shell.contains("display=:7"), variables.len() == 2, "{stock:?}");
        assert_eq!(ours, stock);
    }
}

#[test]
fn home_and_cvsignore_add_patterns_to_cvs_exclude() {
    if !has_stock() {
        return;
    }
    compare(Peer::Stock, &[("CVSIGNORE", "*.mine")], &["-rC", "src/", "dst"]);
    let folder = folder();
    std::fs::write(folder.path().join("home/.cvsignore"), "*.theirs\n").expect("writable");
    for words in [["-rC", "src/", "dst"], ["-rC", "src/", "far:dst"]] {
        let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(folder.path(), client, &[], &words));
        assert!(!stock.destination.iter().any(|name| name.ends_with("f.theirs")), "{stock:?}");
        assert_eq!(ours, stock);
    }
}

#[test]
fn home_holds_aliases() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let work = folder.path();
    let show = work.join("show");
    script(&show, "#!/bin/sh\nfor word; do echo \"<$word>\"; done\n");
    let text = format!(
        "# mine\nrsync alias --zoom -rtv \\\n  --stats\nrsync alias -Z --compress --zc=zlib\n\
         rsync alias --delete --delete --max-delete=3 -r\nrsync alias --size --block-size=!#:+ -r\n\
         rsync alias --bad --nobody-knows\nrsync exec --show {0} 'a b'\nother alias --not -r\n",
        show.display()
    );
    std::fs::write(work.join("home/.popt"), text).expect("writable");
    for words in [
        &["--zoom", "src/", "far:dst"][..],
        &["-rZ", "src/", "far:dst"],
        &["-Zr", "src/", "far:dst"],
        &["--delete", "src/", "far:dst"],
        &["--size=900", "src/", "far:dst"],
        &["--size", "900", "src/", "far:dst"],
        &["--bad", "src/", "far:dst"],
        &["--not", "src/", "far:dst"],
        &["--exclude", "--zoom", "-r", "src/", "far:dst"],
        &["-rPe", "x y", "--show", "--zc=zlib", "-@1", "src/", "dst", "--", "-v"],
        &["--show", "--nobody-knows"],
        &["--show", "--version"],
        &["--max-size=x", "--show"],
    ] {
        let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(work, client, &[], words));
        assert_eq!(ours, stock, "{words:?}");
    }
}

/// A daemon's module, with what logs in to it.
fn with_daemon(test: impl Fn(&Path, &Daemon)) {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    test(folder.path(), &daemon);
}

#[test]
fn rsync_password_and_user_log_in_to_a_daemon() {
    with_daemon(|work, daemon| {
        let url = format!("rsync://127.0.0.1:{}/locked/src/", daemon.port());
        let words = ["-r", &url, "dst"];
        for variables in [
            &[("USER", USER), ("RSYNC_PASSWORD", PASSWORD)][..],
            &[("LOGNAME", USER), ("RSYNC_PASSWORD", PASSWORD)],
            &[("USER", "somebody"), ("LOGNAME", USER), ("RSYNC_PASSWORD", PASSWORD)],
            &[("USER", USER), ("RSYNC_PASSWORD", "wrong")],
            &[("RSYNC_PASSWORD", PASSWORD)],
        ] {
            let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(work, client, variables, &words));
            assert_eq!(ours, stock, "{variables:?}");
        }
    });
}

#[test]
fn rsync_connect_prog_and_rsync_shell_replace_the_connection() {
    with_daemon(|work, daemon| {
        script(
            &work.join("connect"),
            &format!(
                "#!/bin/sh\necho \"to $1\" >>{0}/log\nexec /usr/bin/rsync --server --daemon --config={0}/rsyncd.conf .\n",
                work.display()
            ),
        );
        let words = ["-r", "rsync://some.where/open/src/", "dst"];
        for variables in [
            &[("RSYNC_CONNECT_PROG", "{work}/connect %H")][..],
            &[("RSYNC_CONNECT_PROG", "{work}/connect '100%% %H'")],
            &[("RSYNC_CONNECT_PROG", "{work}/connect %H"), ("RSYNC_SHELL", "{work}/sh")],
        ] {
            let [stock, ours] = [Peer::Stock, Peer::Ours].map(|client| run(work, client, variables, &words));
            assert_eq!(ours, stock, "{variables:?}");
        }
        let _ = daemon;
    });
}

/// Answers one request of an HTTP proxy and relays; notes the request.
fn proxy(daemon: u16, seen: Arc<Mutex<String>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let Ok((mut client, _)) = listener.accept() else { return };
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && matches!(client.read(&mut byte), Ok(1)) {
            request.push(byte[0]);
        }
        seen.lock().expect("no panic").push_str(&String::from_utf8_lossy(&request));
        let Ok(mut far) = TcpStream::connect(("127.0.0.1", daemon)) else { return };
        let _ = client.write_all(b"HTTP/1.0 200 Connection established\r\nVia: test\r\n\r\n");
        let (mut from, mut to) = (client.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
        let _ = std::io::copy(&mut far, &mut client);
        let _ = client.shutdown(std::net::Shutdown::Write);
    });
    port
}

#[test]
fn rsync_proxy_is_asked_for_the_connection() {
    with_daemon(|work, daemon| {
        let words = ["-r", "rsync://some.where/open/src/", "dst"];
        for login in ["", "user:pass word@"] {
            let answers = [Peer::Stock, Peer::Ours].map(|client| {
                let seen = Arc::new(Mutex::new(String::new()));
                let port = proxy(daemon.port(), seen.clone());
                let value = format!("{login}127.0.0.1:{port}");
                let outcome = run(work, client, &[("RSYNC_PROXY", &value)], &words);
                let request = seen.lock().expect("no panic").clone();
                (outcome, request)
            });
            assert!(answers[0].1.starts_with("CONNECT some.where:873 "), "{answers:?}");
            assert_eq!(answers[1], answers[0]);
        }
        for value in ["nonsense", "host:abc", "user@127.0.0.1:1", "user:pass@host"] {
            let [stock, ours] =
                [Peer::Stock, Peer::Ours].map(|client| run(work, client, &[("RSYNC_PROXY", value)], &words));
            assert_eq!(ours, stock, "{value}");
        }
    });
}
