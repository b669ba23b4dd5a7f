//! The two programs, and how one of them is run as client with the other as server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::daemon::Daemon;

/// Which program plays a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Stock rsync.
    Stock,
    /// The program under test.
    Ours,
}

impl Peer {
    /// Returns the program's path.
    pub fn program(self) -> PathBuf {
        match self {
            Peer::Stock => "/usr/bin/rsync".into(),
            Peer::Ours => ours(),
        }
    }
}

/// Returns the binary under test: `SUISEI_BIN`, or the one beside this test's own target folder.
pub fn ours() -> PathBuf {
    if let Some(path) = std::env::var_os("SUISEI_BIN") {
        return path.into();
    }
    let exe = std::env::current_exe().expect("a test knows its own path");
    let profile = exe.parent().and_then(Path::parent).expect("tests live in target/PROFILE/deps");
    let path = profile.join("suisei");
    assert!(path.exists(), "{} is missing: build the workspace first", path.display());
    path
}

/// Whether stock rsync 3.5 is installed; prints why tests are skipped if it is not.
pub fn has_stock() -> bool {
    let version = Command::new("/usr/bin/rsync").arg("--version").output();
    let found = version.is_ok_and(|v| v.stdout.starts_with(b"rsync  version 3.5"));
    if !found {
        println!("skipped: /usr/bin/rsync is not stock rsync 3.5");
    }
    found
}

/// How client and server are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Source and destination on one machine, one program.
    Local,
    /// The client sends over a remote shell.
    Push,
    /// The client receives over a remote shell.
    Pull,
    /// The client sends to a daemon.
    DaemonPush,
    /// The client receives from a daemon.
    DaemonPull,
}

impl Mode {
    /// Whether the other end is a daemon.
    pub fn is_daemon(self) -> bool {
        matches!(self, Mode::DaemonPush | Mode::DaemonPull)
    }
}

/// As whom both ends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests.
    Caller,
    /// Nobody: an ordinary user. Only root can become it.
    Nobody,
}

impl User {
    /// The ids of nobody.
    pub const NOBODY: u32 = 65_534;

    /// Returns those that the tests can be.
    pub fn all() -> &'static [User] {
        if crate::trees::is_root() {
            &[User::Caller, User::Nobody]
        } else {
            &[User::Caller]
        }
    }
}

/// One run of a client.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The program under test, where the user can reach it.
    pub ours: &'a Path,
    /// The folder that holds `src` and `dst`; the working directory of both ends.
    pub work: &'a Path,
    /// Who the user starts.
    pub client: Peer,
    /// Who the remote shell starts.
    pub server: Peer,
    /// How they are joined.
    pub mode: Mode,
    /// As whom they run.
    pub user: User,
    /// Options.
    pub options: &'a [&'a str],
    /// Source arguments, relative to `work`.
    pub sources: &'a [&'a str],
    /// Destination, relative to `work`; nothing for a listing.
    pub destination: Option<&'a str>,
}

impl Run<'_> {
    /// Runs the client to its end, at most a minute.
    pub fn output(&self) -> Output {
        let daemon = self.mode.is_daemon().then(|| Daemon::of_all(&self.program(self.server), self.work));
        let port = daemon.as_ref().map_or(0, Daemon::port);
        self.command_to(port).output().expect("timeout(1) is installed")
    }

    /// Returns the command. Not for daemons: those must run first.
    pub fn command(&self) -> Command {
        self.command_to(0)
    }

    fn command_to(&self, port: u16) -> Command {
        let mut command = match self.user {
            User::Caller => Command::new("timeout"),
            User::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "timeout"]);
                command
            }
        };
        command.arg("-k5").arg("60").arg(self.program(self.client));
        command.args(self.options);
        if matches!(self.mode, Mode::Push | Mode::Pull) {
            // Named to sh(1): another thread's child may still hold the fresh script open for writing.
            command.arg("-e").arg(format!("sh {}", remote_shell(self.work).display()));
            command.arg(format!("--rsync-path={}", self.program(self.server).display()));
        }
        for source in self.sources {
            let is_far = matches!(self.mode, Mode::Pull | Mode::DaemonPull);
            command.arg(self.place(source, is_far, port));
        }
        if let Some(destination) = self.destination {
            let is_far = matches!(self.mode, Mode::Push | Mode::DaemonPush);
            command.arg(self.place(destination, is_far, port));
        }
        command.current_dir(self.work).env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env_remove("RSYNC_RSH");
        command.stdin(Stdio::null());
        command
    }

    fn program(&self, peer: Peer) -> PathBuf {
        match peer {
            Peer::Stock => peer.program(),
            Peer::Ours => self.ours.to_owned(),
        }
    }

    fn place(&self, path: &str, is_far: bool, port: u16) -> String {
        match is_far {
            true if self.mode.is_daemon() => format!("rsync://127.0.0.1:{port}/all/{path}"),
            true => format!("far:{path}"),
            false => path.to_owned(),
        }
    }
}

/// Writes a remote shell that runs the command on this machine, in the same folder, as sshd
/// would: through a shell, with the words joined by spaces.
pub fn remote_shell(work: &Path) -> PathBuf {
    let path = work.join("rsh");
    if !path.exists() {
        std::fs::write(&path, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n").expect("the work folder is writable");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("the script is ours");
    }
    path
}
