//! Parameters of modules that change what a transfer does, and the daemon's own options.

use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use suisei_interop_tests::daemon::Daemon;
use suisei_interop_tests::peers::{has_stock, Peer};
use suisei_interop_tests::site::{agree, agree_after, Site};
use suisei_interop_tests::sshd::free_port;
use suisei_interop_tests::trees::{self, is_root};

fn needs_root() -> bool {
    if !is_root() {
        println!("skipped: only root can become other users");
    }
    is_root()
}

#[test]
fn modes_are_changed_on_the_way_in_and_out() {
    agree(
        "[w]\npath = {at}/in\nread only = no\nincoming chmod = Fo-r,D2750\n\
         [m]\npath = {at}/mod\noutgoing chmod = F600,Dg-rx\n[bad]\npath = {at}/mod\nincoming chmod = q+z\n",
        &[
            &["-a", "src/", "{url}/w/"],
            &["-a", "--chmod=F777", "src/", "{url}/w/again/"],
            &["-a", "{url}/m/", "got/"],
            &["-a", "--chmod=a+x", "{url}/m/", "got/again/"],
        ],
    );
}

#[test]
fn what_cannot_be_read_is_left_out_where_that_is_wished() {
    if !needs_root() {
        return;
    }
    let prepare = |at: &Path| {
        for (name, mode) in [("mod/b.o", 0o600), ("mod/secret", 0o700), ("mod/d/x.o", 0o000)] {
            std::fs::set_permissions(at.join(name), PermissionsExt::from_mode(mode)).expect("ours");
        }
        std::os::unix::fs::symlink("nowhere", at.join("mod/dangling")).expect("writable");
        std::os::unix::fs::symlink("b.o", at.join("mod/to")).expect("writable");
    };
    agree_after(
        prepare,
        "munge symlinks = no\n[m]\npath = {at}/mod\nuid = nobody\ngid = nogroup\nignore nonreadable = yes\n\
         [n]\npath = {at}/mod\nuid = nobody\ngid = nogroup\n",
        &[&["-ai", "{url}/m/", "got/"], &["-ai", "{url}/m/b.o", "got/"], &["-ai", "{url}/n/", "got/n/"]],
    );
}

#[test]
fn a_converter_knows_the_names() {
    if !needs_root() {
        return;
    }
    let prepare = |at: &Path| {
        let script = "#!/bin/sh\nwhile read k v; do case $k$v in\n\
            usrdaemon) echo 4242 ;; usr*) echo 0x7 ;; grp*) echo ;; uid0) echo zero ;; *) echo ;; esac; done\n";
        trees::file(at, "convert", script.as_bytes(), 0o755);
        chown(at.join("src/a.txt"), Some(1), Some(1)).expect("root may");
        chown(at.join("src/d"), Some(2), Some(2)).expect("root may");
        chown(at.join("mod/a.txt"), Some(1), Some(1)).expect("root may");
    };
    agree_after(
        prepare,
        "name converter = {at}/convert\n[w]\npath = {at}/in\nread only = no\n[m]\npath = {at}/mod\n",
        &[&["-a", "src/", "{url}/w/to/"], &["-a", "{url}/m/", "got/"]],
    );
}

#[test]
fn privileged_metadata_is_kept_beside_the_file() {
    if !needs_root() || !has_stock() {
        return;
    }
    let seen = |client: Peer, server: Peer| {
        let site = Site::new(
            "munge symlinks = no\n[w]\npath = {at}/in\nread only = no\nuid = nobody\ngid = nogroup\nfake super = yes\n",
        );
        chown(site.at().join("in"), Some(65534), Some(65534)).expect("root may");
        chown(site.at().join("src/a.txt"), Some(1234), Some(4321)).expect("root may");
        let daemon = site.start(server);
        site.run(client, daemon.port(), &["-a", "--numeric-ids", "src/", "{url}/w/"]);
        let back = site.run(client, daemon.port(), &["-a", "--numeric-ids", "{url}/w/", "got/"]);
        let owner = |name: &str| {
            std::fs::metadata(site.at().join(name)).map(|meta| (meta.uid(), meta.gid(), meta.mode())).ok()
        };
        (back.status.code(), owner("in/a.txt"), owner("got/a.txt"), owner("got/d"))
    };
    let expected = seen(Peer::Stock, Peer::Stock);
    assert_eq!(expected.2.map(|(uid, gid, _)| (uid, gid)), Some((1234, 4321)), "stock keeps them");
    assert_eq!(seen(Peer::Stock, Peer::Ours), expected);
    assert_eq!(seen(Peer::Ours, Peer::Ours), expected);
}

#[test]
fn verbosity_has_a_limit() {
    let config = "[none]\npath = {at}/mod\nmax verbosity = 0\n[some]\npath = {at}/mod\n\
        [more]\npath = {at}/mod\nmax verbosity = 2\n[in]\npath = {at}/in\nread only = no\n";
    agree(
        config,
        &[
            &["-av", "--info=name2", "--exclude=*.o", "{url}/none/", "got/"],
            &["-av", "--info=name2,misc2", "{url}/some/", "got/"],
            &["-av", "--info=name2,misc2", "{url}/more/", "got/"],
            &["-av", "--info=name2,skip2", "src/", "{url}/in/"],
            &["-av", "--info=skip2,name2", "--existing", "src/", "{url}/in/"],
        ],
    );
}

#[test]
fn names_are_converted_where_a_charset_is_named() {
    let prepare = |at: &Path| {
        trees::file(&at.join("src"), "caf\u{e9}", b"x", 0o644);
        trees::set_time(&at.join("src/caf\u{e9}"), trees::PAST, 0);
        trees::set_time(&at.join("src"), trees::PAST, 0);
    };
    agree_after(
        prepare,
        "[w]\npath = {at}/in\nread only = no\ncharset = iso-8859-1\n[plain]\npath = {at}/in\nread only = no\n",
        &[
            &["-a", "--iconv=utf8", "src/", "{url}/w/"],
            &["-a", "--iconv=utf8", "{url}/w/", "got/"],
            &["-a", "--iconv=utf8", "src/", "{url}/plain/"],
        ],
    );
}

#[test]
fn temporary_files_may_have_a_place_of_their_own() {
    let prepare = |at: &Path| std::fs::create_dir(at.join("in/tmp")).expect("writable");
    agree_after(
        prepare,
        "munge symlinks = no\n[w]\npath = {at}/in\nread only = no\ntemp dir = /tmp\n",
        &[&["-a", "src/", "{url}/w/"], &["-a", "-I", "--temp-dir=missing", "src/", "{url}/w/"]],
    );
}

/// Every option of the daemon's command line is taken and works.
#[test]
fn options_of_the_daemon_work() {
    let site = Site::new("transfer logging = yes\n[m]\npath = {at}/mod\n");
    let log = site.at().join("own-log");
    let log_file = format!("--log-file={}", log.display());
    let temp_dir = format!("--temp-dir={}/in", site.at().display());
    let options = [
        log_file.as_str(),
        "--log-file-format=%o of %f by %m",
        "--sockopts=TCP_NODELAY,SO_KEEPALIVE",
        "--bwlimit=10000",
        "-4",
        "-v",
        "--protocol=30",
        "-M",
        "comment=by option",
        &temp_dir,
    ];
    let daemon = Daemon::of(&Peer::Ours.program(), site.at(), &options);
    let listed = site.run(Peer::Ours, daemon.port(), &["{url}/"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "m              \tby option\n");
    let fetched = site.run(Peer::Ours, daemon.port(), &["-a", "{url}/m/a.txt", "got/"]);
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    std::thread::sleep(Duration::from_millis(300));
    let text = std::fs::read_to_string(log).expect("the log is there");
    assert!(text.contains("] send of a.txt by m\n"), "{text}");
    assert!(site.log().is_empty(), "the option wins over the configuration");
    let six = free_port();
    let mut child = std::process::Command::new(Peer::Ours.program())
        .args(["--daemon", "--no-detach", "--ipv6", "--address=::1", &format!("--port={six}")])
        .arg(format!("--config={}/rsyncd.conf", site.at().display()))
        .stdin(std::process::Stdio::null())
        .spawn()
        .expect("the daemon starts");
    let reached = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(25));
        std::net::TcpStream::connect(("::1", six)).is_ok()
    });
    let has_six = std::net::TcpListener::bind(("::1", 0)).is_ok();
    let _ = child.kill();
    let _ = child.wait();
    assert!(reached || !has_six, "it listens on IPv6");
    let help = std::process::Command::new(Peer::Ours.program()).args(["--daemon", "--help"]).output();
    let help = help.expect("it runs");
    assert!(help.status.success());
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for (option, _) in [("--address", 0), ("--dparam", 0), ("--no-detach", 0), ("--sockopts", 0)] {
        assert!(text.contains(option), "{option}");
    }
}
