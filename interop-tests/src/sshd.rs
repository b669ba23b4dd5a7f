//! A real `sshd` of the test's own: keys, port and configuration in a temporary folder.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server; dropping it ends it.
pub struct Sshd {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Sshd {
    /// Starts a server; nothing if none is installed, which is said.
    pub fn start(folder: &Path) -> Option<Sshd> {
        if !Path::new("/usr/sbin/sshd").exists() {
            println!("skipped: no /usr/sbin/sshd");
            return None;
        }
        let folder = folder.join("ssh");
        std::fs::create_dir(&folder).expect("the work folder is writable");
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(name))
                .status();
            assert!(made.is_ok_and(|s| s.success()), "ssh-keygen makes keys");
        }
        std::fs::copy(folder.join("user.pub"), folder.join("authorized_keys")).expect("the key was made");
        let port = free_port();
        let at = folder.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized_keys\n\
             StrictModes no\nPasswordAuthentication no\nPidFile {at}/pid\nPermitRootLogin yes\nUsePAM no\n"
        );
        std::fs::write(folder.join("sshd_config"), config).expect("the work folder is writable");
        // Privilege separation needs its folder; only root can make it, and only root needs it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-f"])
            .arg(folder.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd starts");
        wait_for(port);
        Some(Sshd { child, folder, port })
    }

    /// Returns the value of `-e` that reaches this server.
    pub fn shell(&self) -> String {
        format!(
            "ssh -p {} -i {}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            self.port,
            self.folder.display()
        )
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder with the keys `host` and `user`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).expect("loopback has ports").port()
}

/// Waits until somebody listens on a port.
pub fn wait_for(port: u16) {
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("nobody listens on port {port}");
}
