//! A daemon of the test's own: stock, or the program under test.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::peers::Peer;
use crate::sshd::free_port;

/// A running daemon with one open and one password-protected module on the same folder, and a
/// protected read-only one on the whole machine.
pub struct Daemon {
    child: Child,
    port: u16,
}

/// User of the module `locked`.
pub const USER: &str = "tester";
/// Password of the module `locked`.
pub const PASSWORD: &str = "s3cret word";

impl Daemon {
    /// Starts a stock daemon that serves `folder` as `open` and as `locked`, and `/` as `whole`.
    pub fn start(folder: &Path) -> Daemon {
        let at = folder.display();
        let secrets = folder.join("secrets");
        std::fs::write(&secrets, format!("{USER}:{PASSWORD}\n")).expect("the work folder is writable");
        std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("the file is ours");
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        // Outside a chroot a daemon rewrites the targets of symlinks that leave the module.
        let chroot = if crate::trees::is_root() { "yes" } else { "no" };
        let ids = if crate::trees::is_root() { format!("uid = {uid}\ngid = {gid}\n") } else { String::new() };
        let config = format!(
            "use chroot = {chroot}\nmunge symlinks = no\nreverse lookup = no\n{ids}log file = {at}/daemon.log\n\
             [open]\n  path = {at}\n  read only = no\n  comment = for all\n\
             [locked]\n  path = {at}\n  read only = no\n  auth users = {USER}\n  secrets file = {at}/secrets\n\
             [whole]\n  path = /\n  auth users = {USER}\n  secrets file = {at}/secrets\n"
        );
        std::fs::write(folder.join("rsyncd.conf"), config).expect("the work folder is writable");
        Daemon::of(&Peer::Stock.program(), folder, &[])
    }

    /// Starts this program with the configuration `rsyncd.conf` of a folder, on a port that is free.
    pub fn of(program: &Path, folder: &Path, options: &[&str]) -> Daemon {
        for _ in 0..20 {
            let port = free_port();
            let mut child = Command::new(program)
                .args(["--daemon", "--no-detach", "--address=127.0.0.1"])
                .arg(format!("--port={port}"))
                .arg(format!("--config={}/rsyncd.conf", folder.display()))
                .args(options)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the daemon starts");
            for _ in 0..400 {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    // It may be another's, if that was faster.
                    std::thread::sleep(Duration::from_millis(10));
                    match child.try_wait() {
                        Ok(None) => return Daemon { child, port },
                        _ => break,
                    }
                }
                if !matches!(child.try_wait(), Ok(None)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(25));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("no daemon listens for {}", folder.display());
    }

    /// Starts a program that serves `folder` as `all`, writable, for whoever runs the tests.
    pub fn of_all(program: &Path, folder: &Path) -> Daemon {
        let at = folder.display();
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let root = crate::trees::is_root();
        let ids = if root { format!("uid = {uid}\ngid = {gid}\n") } else { String::new() };
        let chroot = if root { "yes" } else { "no" };
        let config = format!(
            "use chroot = {chroot}\nmunge symlinks = no\nnumeric ids = no\nmax verbosity = 9\n{ids}\
             log file = {at}/daemon.log\n[all]\n  path = {at}\n  read only = no\n"
        );
        std::fs::write(folder.join("rsyncd.conf"), config).expect("the work folder is writable");
        Daemon::of(program, folder, &[])
    }

    /// Returns the URL of a path in a module, with the user where one is needed.
    pub fn url(&self, module: &str, path: &str) -> String {
        let user = if module != "open" { format!("{USER}@") } else { String::new() };
        format!("rsync://{user}127.0.0.1:{}/{module}/{path}", self.port)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
