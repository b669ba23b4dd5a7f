//! The daemon: serves modules of a configuration to clients that connect.
//!
//! One process listens ([`listen`]) and never reads a byte of a client: it hands each connection,
//! as standard input, to a child of the same program, which finds a socket there and serves it
//! ([`session`]), as it does under inetd or behind a remote shell.
//! Wire: protocol/doc/03-daemon.md#36-listening-daemon

mod access;
mod arguments;
pub mod config;
mod confine;
mod conversation;
mod hiding;
mod hooks;
mod listen;
mod log;
mod module;
pub mod options;
mod pid_file;
mod privilege;
mod proxy_header;
mod refuse;
mod secrets;
mod session;
mod slots;
mod terms;
mod transfer;

pub use terms::Terms;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use config::{Broken, Config};
use log::{Level, Log};
use options::DaemonOptions;

use crate::exit::{Code, Refusal};
use crate::options::environment::Environment;
use crate::options::help;
use crate::output::escape::HighBytes;
use crate::output::{final_line, Buffering, Channel, Screen};
use crate::signals;

/// The configuration of a daemon of root.
const CONFIG_OF_ROOT: &str = "/etc/rsyncd.conf";
/// The one of others, in the working directory, and only over a remote shell.
const CONFIG_OF_USER: &str = "rsyncd.conf";

/// How a daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// It listens.
    Listening,
    /// Standard input is the connection: inetd, a socket unit, or the listening daemon.
    Socket,
    /// A remote shell leads to the one client.
    RemoteShell,
}

/// Runs a daemon, or one connection of it, to its end. `words` leave out the program's name.
pub fn run(words: &[OsString], environment: &Environment) -> u8 {
    let options = match options::read(words) {
        Ok(options) => options,
        Err(refusal) => return refuse(&refusal),
    };
    if options.help {
        screen().lines(Channel::Out, [help::version().as_str(), options::USAGE].concat().as_bytes());
        return Code::Ok as u8;
    }
    let start = match () {
        () if options.server => Start::RemoteShell,
        () if is_socket(io::stdin()) => Start::Socket,
        () => Start::Listening,
    };
    if let Some((name, _)) =
        options.overrides.iter().find(|(name, _)| config::parameters::find(name).is_none())
    {
        return refuse(&Refusal::usage([b"Unknown parameter \"", name.as_slice(), b"\""].concat()));
    }
    let config = match load(&options, start) {
        Ok(config) => config,
        Err((Broken(why), path)) => {
            let text = format!("{why}\nFailed to parse config file: {path}\n");
            screen().lines(Channel::Err, text.as_bytes());
            return Code::Syntax as u8;
        }
    };
    match start {
        Start::Listening => listen::run(&options, &config, words),
        Start::Socket | Start::RemoteShell => match signals::install() {
            Ok(interrupted) => session::run(&options, &config, start, environment, interrupted),
            Err(error) => {
                refuse(&Refusal::new(Code::Ipc, format!("rsync: cannot watch for signals: {error}")))
            }
        },
    }
}

fn load(options: &DaemonOptions, start: Start) -> Result<Config, (Broken, String)> {
    let is_root = rustix::process::geteuid().is_root();
    let default = if start == Start::RemoteShell && !is_root { CONFIG_OF_USER } else { CONFIG_OF_ROOT };
    let named = options.config.as_deref().unwrap_or(default.as_bytes());
    let path = Path::new(OsStr::from_bytes(named));
    Config::load(path, &options.overrides).map_err(|broken| (broken, path.display().to_string()))
}

fn is_socket(fd: impl std::os::fd::AsFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode)
            == rustix::fs::FileType::Socket
    })
}

fn screen() -> Screen {
    Screen::new(HighBytes::Escape, false, Buffering::Lines, std::sync::Arc::default())
}

fn refuse(refusal: &Refusal) -> u8 {
    let screen = screen();
    if !refusal.text.is_empty() {
        screen.lines(Channel::Err, &[refusal.text.as_slice(), b"\n"].concat());
    }
    screen.lines(Channel::Err, final_line(refusal.code, "client").as_bytes());
    refusal.code
}

/// Logs what was ignored of the configuration, and how the daemon ends.
fn log_mistakes(log: &Log, config: &Config) {
    for mistake in &config.mistakes {
        log.line(Level::Error, mistake);
    }
}
