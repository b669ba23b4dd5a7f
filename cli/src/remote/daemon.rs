//! A daemon's client side up to the handshake: greeting, login, module, arguments.
//!
//! The lines are [`suisei_protocol::session::DaemonClient`]'s; here they meet a stream, the user's
//! password and the screen.
//! Wire: protocol/doc/03-daemon.md#32-text-phase

use std::io::{self, Read};
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use rustix::event::PollFlags;
use suisei_engine::link::Stream;
use suisei_engine::tree::Wanted;
use suisei_engine::Failure;
use suisei_protocol::limits::EARLY_INPUT_MAX;
use suisei_protocol::session::{
    put_arguments, ArgumentBlock, DaemonClient, DaemonEvent, ModuleRequest, Version,
};

use super::link::Dialer;
use super::password;
use super::proxy::write_all;
use super::wait;
use crate::exit::{Code, Refusal};
use crate::named;
use crate::options::meaning::Protection;
use crate::options::server_args::{self, Far, RemoteWords};
use crate::output::info::Debug;
use crate::output::trace::shown_words;
use crate::output::Channel;

/// How a daemon's text phase ends.
pub enum Opened {
    /// The module is open, the arguments are sent: the handshake follows, at this version.
    Module(Version),
    /// The list of modules was shown.
    Listed,
}

/// What a client asks of a daemon.
pub struct Request<'a> {
    /// Who asks, and of which machine.
    pub dialer: &'a Dialer<'a>,
}

impl Request<'_> {
    /// Goes through the text phase.
    pub fn open(&self, stream: &mut Stream) -> Result<Opened, Refusal> {
        let module = module_of(self.dialer.paths.first().map_or(b"".as_slice(), Vec::as_slice));
        let request = match module {
            b"" => ModuleRequest::List,
            name => ModuleRequest::Module(name.to_vec()),
        };
        let mut client = DaemonClient::new(self.dialer.wishes.version, request, self.early_input()?)
            .map_err(|error| Refusal::with_code(error.exit_code(), error.to_string()))?;
        let mut greeted = false;
        loop {
            let (consumed, event) = client.feed(&stream.early).map_err(|error| self.failed(&error))?;
            stream.early.drain(..consumed);
            greeted |= consumed > 0;
            match event {
                None => {
                    send(stream, &client.output())?;
                    if self.receive(stream)? == 0 {
                        return Err(closed(greeted));
                    }
                }
                Some(DaemonEvent::Line(line)) => self.show(&line),
                Some(DaemonEvent::LoginWanted) => self.log_in(&mut client)?,
                Some(DaemonEvent::ListEnd) => return Ok(Opened::Listed),
                Some(DaemonEvent::Ready(version)) => {
                    self.send_arguments(stream, module, version)?;
                    return Ok(Opened::Module(version));
                }
            }
        }
    }

    /// Reads the file of `--early-input`.
    ///
    /// Wire: protocol/doc/03-daemon.md#323-early-input
    fn early_input(&self) -> Result<Vec<u8>, Refusal> {
        let Some(name) = &self.dialer.wishes.typed.connect.early_input else { return Ok(Vec::new()) };
        let mut content = Vec::new();
        let opened = match name.as_slice() {
            b"" => Err(rustix::io::Errno::INVAL.into()),
            name => named::open(name, &self.dialer.wishes.trust_in_files(), Wanted::Any),
        };
        let most = EARLY_INPUT_MAX as u64 + 1;
        let read = opened.and_then(|file| file.take(most).read_to_end(&mut content));
        read.map_err(|error| {
            let before = format!("rsync: [{}] failed to open ", self.dialer.who);
            let why = format!(": {}", crate::output::reason(&error));
            Refusal::new(Code::Start, [before.as_bytes(), name, why.as_bytes()].concat())
        })?;
        if content.len() > EARLY_INPUT_MAX {
            let why = format!(" is > {EARLY_INPUT_MAX} bytes.");
            return Err(Refusal::new(Code::Start, [name, why.as_bytes()].concat()));
        }
        Ok(content)
    }

    /// Reads what has arrived; 0 is the end.
    fn receive(&self, stream: &mut Stream) -> Result<usize, Refusal> {
        let mut buffer = [0; 4096];
        let timeout = u64::try_from(self.dialer.wishes.typed.delta.timeout).unwrap_or_default();
        let timeout = Duration::from_secs(timeout);
        let deadline =
            Some(timeout).filter(|timeout| !timeout.is_zero()).map(|timeout| Instant::now() + timeout);
        let read = wait::until(&stream.input, PollFlags::IN, deadline, self.dialer.interrupted)
            .and_then(|()| Ok(rustix::io::read(&stream.input, &mut buffer)?))
            .map_err(|error| match error.kind() {
                io::ErrorKind::Interrupted => Failure::Interrupted,
                io::ErrorKind::TimedOut => Failure::Timeout(timeout),
                _ => Failure::Connection { call: "read", error },
            });
        match read {
            Ok(read) => {
                stream.early.extend_from_slice(&buffer[..read]);
                Ok(read)
            }
            Err(Failure::Interrupted) => Err(Refusal::silent(Code::Signal)),
            Err(failure @ Failure::Timeout(_)) => {
                let text = format!("[{}] {failure}", self.dialer.who);
                Err(Refusal::with_code(failure.exit_code(), text))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn show(&self, line: &[u8]) {
        if !self.dialer.wishes.typed.connect.no_motd && self.dialer.wishes.typed.output.quiet == 0 {
            self.dialer.screen.line(Channel::Out, line);
        }
    }

    fn log_in(&self, client: &mut DaemonClient) -> Result<(), Refusal> {
        let user = password::user(self.dialer.machine.user.as_deref(), self.dialer.environment);
        let file = self.dialer.wishes.typed.connect.password_file.as_deref();
        let secret = password::find(
            file,
            &self.dialer.wishes.trust_in_files(),
            self.dialer.environment,
            self.dialer.who,
            self.dialer.interrupted,
        )?;
        client.login(&user, &secret).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &suisei_protocol::Error) -> Refusal {
        Refusal::with_code(error.exit_code(), error.to_string())
    }

    fn send_arguments(&self, stream: &mut Stream, module: &[u8], version: Version) -> Result<(), Refusal> {
        let paths: Vec<Vec<u8>> = self.dialer.paths.iter().map(|path| self.path(path, module)).collect();
        let words =
            server_args::write(self.dialer.wishes, self.dialer.direction, &paths, Far::Daemon(version));
        if self.dialer.wishes.debug.of(Debug::Cmd) >= 1 && self.dialer.wishes.typed.output.quiet == 0 {
            self.dialer.screen.show_line(Channel::Out, &shown_words("sending daemon args:", &words.line));
        }
        let block = argument_block(&words, version)
            .map_err(|error| Refusal::with_code(error.exit_code(), error.to_string()))?;
        send(stream, &block)
    }

    /// Makes a path argument that the daemon's splitting leaves alone.
    fn path(&self, path: &[u8], module: &[u8]) -> Vec<u8> {
        let mut out = if path == module { [module, b"/"].concat() } else { path.to_vec() };
        if out.starts_with(b"-") {
            out = [b"./", out.as_slice()].concat();
        }
        match self.dialer.wishes.protection {
            Protection::Escape => {
                let split_here = [b" ", module, b"/"].concat();
                out.replace(&split_here, [b"[ ]", module, b"/"].concat())
            }
            _ => out,
        }
    }
}

fn module_of(path: &[u8]) -> &[u8] {
    path.split(|&b| b == b'/').next().unwrap_or_default()
}

fn argument_block(words: &RemoteWords, version: Version) -> Result<Vec<u8>, suisei_protocol::Error> {
    let mut bytes = Vec::new();
    put_arguments(&ArgumentBlock::of_daemon(version), &words.line, &mut bytes)?;
    if let Some(secluded) = &words.secluded {
        put_arguments(&ArgumentBlock::secluded(), secluded, &mut bytes)?;
    }
    Ok(bytes)
}

fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Refusal> {
    write_all(&stream.output, bytes).map_err(|error| Failure::Connection { call: "write", error }.into())
}

fn closed(greeted: bool) -> Refusal {
    let text = match greeted {
        true => "rsync: the daemon closed the connection",
        false => "rsync: did not see server greeting",
    };
    Refusal::new(Code::Start, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_separators() {
        let words = |list: &[&str]| list.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let plain = RemoteWords { line: words(&["--server", ".", "pub/"]), secluded: None };
        assert_eq!(argument_block(&plain, Version::NEWEST).unwrap(), b"--server\0.\0pub/\0\0");
        assert_eq!(argument_block(&plain, Version::OLDEST).unwrap(), b"--server\n.\npub/\n\n");
        let secluded =
            RemoteWords { line: words(&["--server", "-sr"]), secluded: Some(words(&["rsync", ".", "a b"])) };
        assert_eq!(
            argument_block(&secluded, Version::NEWEST).unwrap(),
            b"--server\0-sr\0\0rsync\0.\0a b\0\0"
        );
    }

    #[test]
    fn the_module_is_the_first_part() {
        assert_eq!(module_of(b"pub/a/b"), b"pub");
        assert_eq!(module_of(b"pub"), b"pub");
        assert_eq!(module_of(b""), b"");
    }
}
