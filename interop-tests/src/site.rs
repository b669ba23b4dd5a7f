//! Modules of a daemon, and what clients see of them beside stock.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::daemon::Daemon;
use crate::lines::comparable;
use crate::peers::{has_stock, Peer};
use crate::snapshot::{now, snapshot};
use crate::trees::{self, is_root};

/// One client run: its arguments, in which `{url}` is the daemon's.
pub type Args<'a> = &'a [&'a str];

/// A folder with `mod` to fetch from, `src` to send, and a configuration.
pub struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    /// Makes the folder; `{at}` in the configuration is its path.
    pub fn new(config: &str) -> Site {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = folder.path();
        let reachable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(at, reachable).expect("the folder is ours");
        for root in ["mod", "src"] {
            for (name, text) in [
                ("a.txt", "a"),
                ("b.o", "b"),
                ("d/x.o", "x"),
                ("d/y.txt", "y"),
                ("d/e/z", "z"),
                ("secret/s", "s"),
                ("with blank/f", "f"),
            ] {
                let path = at.join(root).join(name);
                std::fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
                trees::file(&at.join(root), name, text.as_bytes(), 0o644);
                trees::set_time(&path, trees::PAST, 0);
            }
            trees::directory_times(&at.join(root));
        }
        std::fs::create_dir_all(at.join("in/secret")).expect("writable");
        for dir in ["in/secret", "in"] {
            trees::set_time(&at.join(dir), trees::PAST + 5, 0);
        }
        let ids = if is_root() { "uid = 0\ngid = 0\n" } else { "" };
        let text = format!("use chroot = no\nlog file = {{at}}/log\nlock file = {{at}}/lock\n{ids}{config}");
        let text = text.replace("{at}", at.to_str().expect("temporary folders have plain names"));
        std::fs::write(at.join("rsyncd.conf"), text).expect("writable");
        Site { folder }
    }

    /// Returns the folder.
    pub fn at(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a daemon with the configuration.
    pub fn start(&self, server: Peer) -> Daemon {
        Daemon::of(&server.program(), self.at(), &[])
    }

    /// Runs a client in the folder; arguments of the form `RSYNC_X=Y` are its environment.
    pub fn run(&self, client: Peer, port: u16, args: Args<'_>) -> Output {
        let url = format!("rsync://127.0.0.1:{port}");
        let args: Vec<String> = args.iter().map(|arg| arg.replace("{url}", &url)).collect();
        let (variables, args): (Vec<_>, Vec<_>) =
            args.into_iter().partition(|arg| arg.starts_with("RSYNC_") && arg.contains('='));
        let mut command = Command::new("timeout");
        command.args(["-k5", "60"]).arg(client.program()).args(args).current_dir(self.at());
        command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
        command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").stdin(Stdio::null());
        command.output().expect("timeout(1) is installed")
    }

    /// Returns the bodies of the daemon's log lines.
    pub fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.at().join("log")).unwrap_or_default();
        text.lines().filter_map(|line| Some(line.split_once("] ")?.1.to_owned())).collect()
    }
}

/// What a stock client says of a daemon that closes while it still writes is a matter of luck.
pub fn is_luck(line: &str) -> bool {
    line.contains("Connection reset by peer") || line.contains("Broken pipe")
}

/// Everything that can be seen of some runs, as lines.
fn transcript(
    prepare: &dyn Fn(&Path),
    config: &str,
    runs: &[Args<'_>],
    client: Peer,
    server: Peer,
) -> Vec<String> {
    let start = now();
    let site = Site::new(config);
    prepare(site.at());
    let daemon = site.start(server);
    let mut lines = Vec::new();
    for args in runs {
        let output = site.run(client, daemon.port(), args);
        lines.push(format!("--- {args:?} => {:?}", output.status.code()));
        for (name, text) in [("out", &output.stdout), ("err", &output.stderr)] {
            let text = String::from_utf8_lossy(text).replace(&daemon.port().to_string(), "PORT");
            let seen = comparable(text.as_bytes(), site.at());
            lines
                .extend(seen.into_iter().filter(|line| !is_luck(line)).map(|line| format!("{name}: {line}")));
        }
    }
    for tree in ["mod", "in", "got"] {
        lines
            .extend(snapshot(&site.at().join(tree), start).into_iter().map(|line| format!("{tree}: {line}")));
    }
    lines
}

/// Asserts that every pair with our daemon does what stock does with stock's.
pub fn agree(config: &str, runs: &[Args<'_>]) {
    agree_after(|_| {}, config, runs);
}

/// The same in a folder that was prepared further.
pub fn agree_after(prepare: impl Fn(&Path), config: &str, runs: &[Args<'_>]) {
    if !has_stock() {
        return;
    }
    let expected = transcript(&prepare, config, runs, Peer::Stock, Peer::Stock);
    for client in [Peer::Stock, Peer::Ours] {
        let got = transcript(&prepare, config, runs, client, Peer::Ours);
        let missing: Vec<_> = expected.iter().filter(|line| !got.contains(line)).collect();
        let extra: Vec<_> = got.iter().filter(|line| !expected.contains(line)).collect();
        assert!(expected == got, "client {client:?}\n  lacks {missing:#?}\n  has {extra:#?}");
    }
}
