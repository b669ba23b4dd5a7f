//! The text phase as a daemon holds it: lines in and out, against a clock.
//!
//! Wire: protocol/doc/03-daemon.md#324-deadlines-and-limits

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use suisei_engine::link::Stream;
use suisei_protocol::session::{take_line, ArgumentBlock};
use suisei_protocol::wire::Reader;
use suisei_protocol::{Decode, Stop};

use super::proxy_header::{self, Header, Named};
use crate::remote::wait;

/// How long a client has for each stage, unless `timeout` is shorter.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Why a conversation ends early.
#[derive(Debug)]
pub enum Broken {
    /// The client closed, or sent what is no line.
    Closed,
    /// The client was too slow.
    TooSlow,
    /// A signal.
    Interrupted,
    /// Too many words.
    TooMany,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            io::ErrorKind::TimedOut => Broken::TooSlow,
            io::ErrorKind::Interrupted => Broken::Interrupted,
            _ => Broken::Closed,
        }
    }
}

/// The connection before the transfer.
pub struct Conversation<'a> {
    /// The bytes, and those that were read ahead.
    pub stream: Stream,
    deadline: Option<Instant>,
    interrupted: &'a AtomicBool,
}

impl<'a> Conversation<'a> {
    /// Begins, with a deadline for all that precedes the choice of a module.
    pub fn new(stream: Stream, patience: Option<Duration>, interrupted: &'a AtomicBool) -> Self {
        let mut conversation = Conversation { stream, deadline: None, interrupted };
        conversation.restart(patience);
        conversation
    }

    /// Begins a stage with a deadline of its own.
    pub fn restart(&mut self, patience: Option<Duration>) {
        self.deadline = patience.map(|patience| Instant::now() + patience);
    }

    /// Reads a line of at most `limit` bytes.
    pub fn line(&mut self, limit: usize) -> Result<Vec<u8>, Broken> {
        self.unit(|reader| take_line(reader, limit))
    }

    /// Reads one word of an argument block; nothing is its end.
    pub fn word(&mut self, block: &mut ArgumentBlock) -> Result<Option<Vec<u8>>, Broken> {
        loop {
            let mut reader = Reader::new(&self.stream.early);
            let word = block.take_word(&mut reader);
            let consumed = reader.consumed();
            match word {
                Ok(word) => {
                    self.stream.early.drain(..consumed);
                    return Ok(word);
                }
                Err(Stop::Short) => self.read_more(usize::MAX)?,
                Err(Stop::Bad(error)) if error.exit_code() == 2 => return Err(Broken::TooMany),
                Err(Stop::Bad(_)) => return Err(Broken::Closed),
            }
        }
    }

    /// Reads exactly so many bytes.
    pub fn bytes(&mut self, length: usize) -> Result<Vec<u8>, Broken> {
        self.unit(|reader| Ok(reader.take(length)?.to_vec()))
    }

    fn unit<T>(&mut self, mut unit: impl FnMut(&mut Reader<'_>) -> Decode<T>) -> Result<T, Broken> {
        loop {
            let mut reader = Reader::new(&self.stream.early);
            let value = unit(&mut reader);
            let consumed = reader.consumed();
            match value {
                Ok(value) => {
                    self.stream.early.drain(..consumed);
                    return Ok(value);
                }
                Err(Stop::Short) => self.read_more(usize::MAX)?,
                Err(Stop::Bad(_)) => return Err(Broken::Closed),
            }
        }
    }

    /// Reads the header of a proxy.
    pub fn proxy_header(&mut self) -> Result<Named, Broken> {
        loop {
            match proxy_header::read(&self.stream.early) {
                Header::Complete(length, named) => {
                    self.stream.early.drain(..length);
                    return Ok(named);
                }
                Header::Need(length) => {
                    let missing = length.saturating_sub(self.stream.early.len()).max(1);
                    self.read_more(missing)?;
                }
                Header::Malformed => return Err(Broken::Closed),
            }
        }
    }

    fn read_more(&mut self, most: usize) -> Result<(), Broken> {
        let mut buffer = [0; 4096];
        let most = most.min(buffer.len());
        loop {
            wait::until(&self.stream.input, PollFlags::IN, self.deadline, self.interrupted)?;
            match rustix::io::read(&self.stream.input, &mut buffer[..most]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(read) => {
                    self.stream.early.extend_from_slice(&buffer[..read]);
                    return Ok(());
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
    }

    /// Writes, as patiently as it reads.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        while !bytes.is_empty() {
            wait::until(&self.stream.output, PollFlags::OUT, self.deadline, self.interrupted)?;
            match rustix::io::write(&self.stream.output, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_client_that_stalls_is_given_up() {
        let (client, server) = UnixStream::pair().unwrap();
        let stream =
            Stream { input: server.try_clone().unwrap().into(), output: server.into(), early: Vec::new() };
        let never = AtomicBool::new(false);
        let mut conversation = Conversation::new(stream, Some(Duration::from_millis(50)), &never);
        rustix::io::write(&client, b"one\ntw").unwrap();
        assert_eq!(conversation.line(10).unwrap(), b"one");
        assert!(matches!(conversation.line(10), Err(Broken::TooSlow)));
        conversation.restart(None);
        rustix::io::write(&client, b"o\nover-long line").unwrap();
        assert_eq!(conversation.line(10).unwrap(), b"two");
        assert!(matches!(conversation.line(10), Err(Broken::Closed)));
    }
}
