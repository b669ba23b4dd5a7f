//! Where the daemon writes what happened: a file, or syslog.
//!
//! Wire: protocol/doc/03-daemon.md#313-logging

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, PoisonError};

use suisei_engine::sys::operator;

use super::config::{parameters, Settings};
use crate::output::escape::{escape, HighBytes};
use crate::output::reason;

/// Where syslog listens: on Linux, elsewhere.
const SYSLOG_SOCKETS: [&str; 3] = ["/dev/log", "/var/run/syslog", "/var/run/log"];

#[derive(Debug)]
enum Target {
    File(File),
    Syslog(Syslog),
}

/// A connection to syslog: made before a chroot hides the socket. Without one lines are lost.
#[derive(Debug)]
struct Syslog {
    socket: Option<UnixDatagram>,
    facility: i32,
    tag: String,
}

/// The daemon's log. One for the process, changed when a module names another.
#[derive(Debug)]
pub struct Log {
    target: Mutex<Target>,
    /// `--log-file`: modules do not change it.
    is_forced: bool,
}

/// How bad a line is, for syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Ordinary.
    Info,
    /// Something failed.
    Error,
}

impl Log {
    /// Opens the log of the global part; `forced` is `--log-file`. A file that cannot be opened
    /// leaves syslog.
    pub fn open(forced: Option<&[u8]>, settings: &Settings<'_>) -> Log {
        let log = Log { target: Mutex::new(to_syslog(settings)), is_forced: forced.is_some() };
        let path = forced.map(<[u8]>::to_vec).or_else(|| settings.non_empty("log file"));
        log.switch(path.as_deref());
        log
    }

    /// Goes over to the log that a module names.
    pub fn enter(&self, settings: &Settings<'_>) {
        if self.is_forced {
            return;
        }
        match settings.non_empty("log file") {
            Some(path) => self.switch(Some(&path)),
            None => self.set(to_syslog(settings)),
        }
    }

    fn switch(&self, path: Option<&[u8]>) {
        let Some(path) = path else { return };
        match operator::open_append(path) {
            Ok(file) => self.set(Target::File(file)),
            Err(error) => {
                let path = String::from_utf8_lossy(path).into_owned();
                self.line(Level::Error, format!("failed to open log-file {path}: {}", reason(&error)));
                self.line(Level::Error, "Ignoring \"log file\" setting.");
            }
        }
    }

    fn set(&self, target: Target) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// Writes one line that is already escaped.
    pub fn escaped_line(&self, level: Level, line: &[u8]) {
        let _ = self.write(level, line);
    }

    /// Writes lines. Control bytes are escaped.
    pub fn line(&self, level: Level, text: impl AsRef<[u8]>) {
        for line in text.as_ref().split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            // A log that cannot be written must not end a transfer.
            let _ = self.write(level, &escape(line, HighBytes::Escape));
        }
    }

    fn write(&self, level: Level, line: &[u8]) -> io::Result<()> {
        match &*self.target.lock().unwrap_or_else(PoisonError::into_inner) {
            Target::File(file) => {
                let now = chrono::Local::now().format("%Y/%m/%d %H:%M:%S");
                let mut whole = format!("{now} [{}] ", std::process::id()).into_bytes();
                whole.extend_from_slice(line);
                whole.push(b'\n');
                // One call, so that lines of several processes do not mix.
                (&mut &*file).write_all(&whole)
            }
            Target::Syslog(syslog) => {
                let Some(socket) = &syslog.socket else { return Ok(()) };
                let severity = if level == Level::Error { 4 } else { 6 };
                let now = chrono::Local::now().format("%b %e %H:%M:%S");
                let head = format!(
                    "<{}>{now} {}[{}]: ",
                    syslog.facility * 8 + severity,
                    syslog.tag,
                    std::process::id()
                );
                socket.send(&[head.as_bytes(), line].concat()).map(drop)
            }
        }
    }
}

fn to_syslog(settings: &Settings<'_>) -> Target {
    let facility = parameters::facility(&settings.raw("syslog facility")).unwrap_or(3);
    let tag = String::from_utf8_lossy(&settings.text("syslog tag")).into_owned();
    let connect = |path: &&str| {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(path).ok()?;
        Some(socket)
    };
    Target::Syslog(Syslog { socket: SYSLOG_SOCKETS.iter().find_map(connect), facility, tag })
}
