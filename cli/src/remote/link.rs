//! One way to the far end, whatever the transport: a stream, and a code when it is over.
//!
//! Wire: protocol/doc/02-session-start.md#21-command-that-is-run

use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::AtomicBool;

use suisei_engine::link::Stream;
use suisei_protocol::session::{put_arguments, ArgumentBlock, Direction, Version};

use super::daemon::{Opened, Request};
use super::proxy::{self, write_all};
use super::rsh::{self, Shell};
use super::socket::{self, Dialing};
use super::spec::{Kind, Machine};
use crate::exit::{Code, Refusal};
use crate::options::environment::Environment;
use crate::options::meaning::Wishes;
use crate::options::server_args::{self, Far};
use crate::output::info::Debug;
use crate::output::trace::{command_words, shown_words};
use crate::output::{Channel, Screen};
use crate::plan::is_by_shell;

/// Names the built-in transport in `--rsh`; its settings may follow.
const BUILTIN: &[u8] = b"builtin";

/// What runs at the far end, as far as we have to wait for it.
pub enum Peer {
    /// The user's remote shell.
    Shell(Shell),
    /// The built-in transport.
    #[cfg(feature = "ssh2")]
    Builtin(super::ssh::Bridge),
    /// A daemon on a socket: it ends by itself.
    Daemon,
}

impl Peer {
    /// Waits for the far end and returns its exit code. The stream must be closed.
    pub fn wait(self) -> u8 {
        match self {
            Peer::Shell(shell) => shell.wait(),
            #[cfg(feature = "ssh2")]
            Peer::Builtin(bridge) => bridge.wait(),
            Peer::Daemon => 0,
        }
    }
}

/// A connection whose handshake comes next.
pub struct Link {
    /// What runs at the far end.
    pub peer: Peer,
    /// Bytes to and from it.
    pub stream: Stream,
    /// The version, if a daemon's greeting agreed on one.
    pub agreed: Option<Version>,
}

/// What a client needs to reach the far end.
pub struct Dialer<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Path arguments there.
    pub paths: &'a [Vec<u8>],
    /// This client's direction.
    pub direction: Direction,
    /// What the command line means.
    pub wishes: &'a Wishes,
    /// Variables.
    pub environment: &'a Environment,
    /// Where complaints and a daemon's lines go.
    pub screen: &'a Screen,
    /// This end's role in messages.
    pub who: &'a str,
    /// Set by a signal.
    pub interrupted: &'a AtomicBool,
}

impl Dialer<'_> {
    /// Reaches the far end; nothing if a daemon's list of modules was all that was wanted.
    pub fn dial(&self) -> Result<Option<Link>, Refusal> {
        match self.machine.kind {
            Kind::Shell => self.dial_shell().map(Some),
            Kind::Daemon => self.dial_daemon(),
            Kind::Here => self.dial_here().map(Some),
        }
    }

    fn dial_shell(&self) -> Result<Link, Refusal> {
        let words = server_args::write(self.wishes, self.direction, self.paths, Far::Shell);
        let (peer, stream) = self.run(&words.line, None)?;
        if let Some(secluded) = &words.secluded {
            let mut block = Vec::new();
            put_arguments(&ArgumentBlock::secluded(), secluded, &mut block)
                .map_err(|error| Refusal::with_code(error.exit_code(), error.to_string()))?;
            // A far end that is gone already is found out by reading from it.
            let _ = write_all(&stream.output, &block);
        }
        Ok(Link { peer, stream, agreed: None })
    }

    /// Starts a server of our own.
    fn dial_here(&self) -> Result<Link, Refusal> {
        let program = std::env::current_exe().map_err(|error| {
            Refusal::new(Code::Ipc, format!("rsync: [{}] own program: {error}", self.who))
        })?;
        let mut words = vec![program.into_os_string().into_vec()];
        words.extend(server_args::write(self.wishes, self.direction, self.paths, Far::Shell).line);
        let (shell, stream) = rsh::spawn(&words, self.who, None)?;
        Ok(Link { peer: Peer::Shell(shell), stream, agreed: None })
    }

    /// Runs words on the machine.
    fn run(&self, server: &[Vec<u8>], port: Option<u32>) -> Result<(Peer, Stream), Refusal> {
        let command = rsh::command(&self.wishes.typed.connect, self.environment);
        let words = rsh::split(&command)?;
        if words.first().is_some_and(|program| program == BUILTIN) {
            return self.run_builtin(&words[1..], server);
        }
        if !self.names_a_shell() && !is_installed(&command, self.environment) {
            return self.run_builtin(&[], server);
        }
        let words = rsh::words(&command, &self.wishes.typed.connect, self.machine, server)?;
        self.show_command(&words);
        let (shell, stream) = rsh::spawn(&words, self.who, port)?;
        Ok((Peer::Shell(shell), stream))
    }

    fn names_a_shell(&self) -> bool {
        self.wishes.typed.connect.rsh.is_some() || self.environment.value("RSYNC_RSH").is_some()
    }

    #[cfg(feature = "ssh2")]
    fn run_builtin(&self, settings: &[Vec<u8>], server: &[Vec<u8>]) -> Result<(Peer, Stream), Refusal> {
        let caller = super::ssh::Caller {
            machine: self.machine,
            connect: &self.wishes.typed.connect,
            environment: self.environment,
            screen: self.screen,
            who: self.who,
            interrupted: self.interrupted,
            settings: super::ssh::Settings::parse(settings)?,
        };
        let (bridge, stream) = caller.run(server)?;
        Ok((Peer::Builtin(bridge), stream))
    }

    #[cfg(not(feature = "ssh2"))]
    fn run_builtin(&self, _settings: &[Vec<u8>], _server: &[Vec<u8>]) -> Result<(Peer, Stream), Refusal> {
        let text = "rsync: no ssh program is installed, and this build has no ssh of its own";
        Err(Refusal::new(Code::Ipc, text))
    }

    /// `opening connection using: ...` (debug CMD).
    fn show_command(&self, words: &[Vec<u8>]) {
        if self.wishes.debug.of(Debug::Cmd) == 0 || self.wishes.typed.output.quiet > 0 {
            return;
        }
        if self.wishes.debug.of(Debug::Cmd) >= 2 {
            let typed = self.wishes.typed.connect.rsh.as_deref();
            let shell = typed.or_else(|| self.environment.non_empty("RSYNC_RSH"));
            let path = self.paths.first().map_or(&b""[..], |path| path);
            self.screen.show_lines(Channel::Out, &command_words(shell, self.machine, path, words));
        }
        let line = shown_words("opening connection using:", words);
        self.screen.show_line(Channel::Out, &line);
    }

    fn dial_daemon(&self) -> Result<Option<Link>, Refusal> {
        let (peer, mut stream) = self.reach_daemon()?;
        let request = Request { dialer: self };
        match request.open(&mut stream) {
            Ok(Opened::Module(version)) => Ok(Some(Link { peer, stream, agreed: Some(version) })),
            Ok(Opened::Listed) => {
                drop(stream);
                peer.wait();
                Ok(None)
            }
            Err(refusal) => {
                drop(stream);
                peer.wait();
                Err(refusal)
            }
        }
    }

    fn reach_daemon(&self) -> Result<(Peer, Stream), Refusal> {
        let connect = &self.wishes.typed.connect;
        let typed = connect.port.and_then(|port| u32::try_from(port).ok()).filter(|&port| port > 0);
        let port = self.machine.port.or(typed).unwrap_or(socket::DAEMON_PORT);
        if is_by_shell(self.wishes, self.machine) {
            let words = [b"--server".to_vec(), b"--daemon".to_vec(), b".".to_vec()];
            return self.run(&words, Some(port));
        }
        let host = self.machine.host.as_slice();
        let dialing = Dialing {
            wishes: connect,
            debug: &self.wishes.debug,
            who: self.who,
            screen: self.screen,
            interrupted: self.interrupted,
        };
        let socket = if let Some(program) = self.environment.non_empty("RSYNC_CONNECT_PROG") {
            proxy::run_program(program, host, self.environment)?
        } else if let Some(text) = self.environment.non_empty("RSYNC_PROXY") {
            let proxy = proxy::parse(text)?;
            let socket = dialing.connect(&proxy.host, proxy.port)?;
            proxy.open(&socket, host, port)?;
            socket
        } else {
            dialing.connect(host, port)?
        };
        let stream = socket::stream(socket)
            .map_err(|error| Refusal::new(Code::Socket, format!("rsync: [{}] dup: {error}", self.who)))?;
        Ok((Peer::Daemon, stream))
    }
}

/// Whether a command's program can be found.
fn is_installed(command: &[u8], environment: &Environment) -> bool {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    let program = command.split(|&b| b == b' ').next().unwrap_or(command);
    let path = environment.value("PATH").unwrap_or(b"/usr/bin:/bin");
    path.split(|&b| b == b':')
        .any(|dir| Path::new(OsStr::from_bytes(dir)).join(OsStr::from_bytes(program)).is_file())
}
