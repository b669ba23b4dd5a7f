//! The handshake, driven over two descriptors.
//!
//! Wire: protocol/doc/02-session-start.md#22-start-handshake-raw-bytes-remote-shell

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use suisei_protocol::session::{Direction, Handshake, Offer, Progress, Session};

use super::stream::{wait, Ready};
use super::{Stream, TICK};
use crate::observe::Who;
use crate::Failure;

/// Room for one read: a handshake is small, and what follows it is not its business.
const READ_BYTES: usize = 4 << 10;

/// Agrees on a session. Bytes behind the handshake are kept as the stream's early bytes.
pub fn handshake(
    stream: Stream,
    offer: Offer,
    timeout: Option<Duration>,
    interrupted: &AtomicBool,
) -> Result<(Session, Stream), Failure> {
    let direction = offer.direction;
    let mut machine = Handshake::new(offer)?;
    stream.prepare().map_err(|error| Failure::Connection { call: "set up", error })?;
    let mut driver =
        Driver { stream: &stream, timeout, interrupted, received: stream.early.len() as u64, direction };
    let mut buffer = BytesMut::from(&stream.early[..]);
    loop {
        let progress = machine.feed(&buffer);
        driver.write(&machine.output())?;
        match progress? {
            Progress::Done { consumed, session } => {
                buffer.advance(consumed);
                return Ok((session, Stream { early: buffer.to_vec(), ..stream }));
            }
            Progress::NeedMore { consumed } => {
                buffer.advance(consumed);
                driver.read(&mut buffer)?;
            }
        }
    }
}

struct Driver<'a> {
    stream: &'a Stream,
    timeout: Option<Duration>,
    interrupted: &'a AtomicBool,
    received: u64,
    direction: Direction,
}

impl Driver<'_> {
    fn wait(&self, ready: Ready) -> Result<(), Failure> {
        let (fd, call) = match ready {
            Ready::Read => (self.stream.input.as_fd(), "read"),
            Ready::Write => (self.stream.output.as_fd(), "write"),
        };
        let start = Instant::now();
        loop {
            if wait(fd, ready, None, TICK).map_err(|error| Failure::Connection { call, error })? {
                return Ok(());
            }
            if self.interrupted.load(Relaxed) {
                return Err(Failure::Interrupted);
            }
            if let Some(timeout) = self.timeout.filter(|&timeout| start.elapsed() >= timeout) {
                return Err(Failure::Timeout(timeout));
            }
        }
    }

    fn read(&mut self, buffer: &mut BytesMut) -> Result<(), Failure> {
        loop {
            self.wait(Ready::Read)?;
            buffer.reserve(READ_BYTES);
            match crate::sys::stream::read_into(&self.stream.input, buffer) {
                Ok(0) => {
                    let who = match self.direction {
                        Direction::Sending => Who::Sender,
                        Direction::Receiving => Who::ReceivingSide,
                    };
                    return Err(Failure::PeerClosed { received: self.received, who });
                }
                Ok(n) => {
                    self.received += n as u64;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Failure::Connection { call: "read", error }),
            }
        }
    }

    fn write(&self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            self.wait(Ready::Write)?;
            match rustix::io::write(&self.stream.output, bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                // The peer is gone: what it said before, or its end, is read next.
                Err(rustix::io::Errno::PIPE) => return Ok(()),
                Err(error) => return Err(Failure::Connection { call: "write", error: error.into() }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use suisei_protocol::session::{Capabilities, CompressWish, IncrementalRecursion, Layout, Side, Version};

    use super::*;

    fn offer(side: Side, version: u32) -> Offer {
        Offer {
            side,
            direction: Direction::Receiving,
            version: Version::new(version).unwrap(),
            agreed: None,
            capabilities: Capabilities::ours(IncrementalRecursion::Refused),
            recursion: IncrementalRecursion::Refused,
            sums: None,
            compress: CompressWish::Off,
            compress_level: None,
            seed: 7,
            checksum_list: None,
            compress_list: None,
            charset: None,
            recorded: false,
            layout: Layout::default(),
            needs: None,
        }
    }

    fn stream(socket: UnixStream) -> Stream {
        Stream { input: socket.try_clone().unwrap().into(), output: socket.into(), early: Vec::new() }
    }

    #[test]
    fn both_ends_agree_and_keep_what_follows() {
        let (client, server) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let offer = Offer { direction: Direction::Sending, ..offer(Side::Server, 32) };
            let (session, stream) = handshake(stream(server), offer, None, &AtomicBool::new(false)).unwrap();
            rustix::io::write(&stream.output, b"frames").unwrap();
            (session.seed, session.version)
        });
        let (session, stream) =
            handshake(stream(client), offer(Side::Client, 29), None, &AtomicBool::new(false)).unwrap();
        assert_eq!(server.join().unwrap(), (session.seed, session.version));
        assert_eq!((session.seed, session.version.number()), (7, 29));
        let mut rest = BytesMut::from(&stream.early[..]);
        while rest.len() < 6 {
            rest.reserve(64);
            wait(stream.input.as_fd(), Ready::Read, None, TICK).unwrap();
            crate::sys::stream::read_into(&stream.input, &mut rest).unwrap();
        }
        assert_eq!(rest, "frames");
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_silent_peer() {
        let (client, _server) = UnixStream::pair().unwrap();
        let end = handshake(stream(client), offer(Side::Client, 32), None, &AtomicBool::new(true));
        assert!(matches!(end, Err(Failure::Interrupted)));
    }
}
