//! A thread between an ssh channel and the engine's pair of pipes.
//!
//! libssh2 must be called by one thread at a time, so all of the session belongs to this one; it
//! never blocks in a call, only in `poll`.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use ssh2::{BlockDirections, Channel, Session};
use suisei_engine::link::Stream;

/// Bytes on their way in one direction, at most.
const QUEUE_MAX: usize = 256 * 1024;

/// A running remote command.
#[derive(Debug)]
pub struct Bridge {
    thread: JoinHandle<io::Result<i32>>,
}

impl Bridge {
    /// Waits for the command's end and returns its exit code. The stream must be closed.
    pub fn wait(self) -> u8 {
        match self.thread.join() {
            Ok(Ok(code)) => u8::try_from(code).unwrap_or(255),
            _ => 255,
        }
    }
}

/// Starts the thread. `socket` is the session's connection, for `poll`.
pub fn start(session: Session, channel: Channel, socket: OwnedFd) -> io::Result<(Bridge, Stream)> {
    let (from_engine, output) = rustix::pipe::pipe()?;
    let (input, to_engine) = rustix::pipe::pipe()?;
    for fd in [&from_engine, &output, &input, &to_engine] {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    for fd in [&from_engine, &to_engine] {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    let mut pump = Pump {
        session,
        channel,
        socket,
        from_engine: Some(from_engine),
        to_engine: Some(to_engine),
        outbound: Queue::default(),
        inbound: Queue::default(),
        eof_sent: false,
    };
    let thread = thread::Builder::new().name("ssh".to_owned()).spawn(move || pump.run())?;
    Ok((Bridge { thread }, Stream { input, output, early: Vec::new() }))
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    taken: usize,
}

impl Queue {
    fn waiting(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn has_room(&self) -> bool {
        self.waiting().len() < QUEUE_MAX
    }

    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
    }
}

struct Pump {
    session: Session,
    channel: Channel,
    socket: OwnedFd,
    from_engine: Option<OwnedFd>,
    to_engine: Option<OwnedFd>,
    outbound: Queue,
    inbound: Queue,
    eof_sent: bool,
}

impl Pump {
    fn run(&mut self) -> io::Result<i32> {
        self.session.set_blocking(false);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let mut moved = self.fill_outbound(&mut buffer)?;
            moved |= self.send_outbound()?;
            moved |= self.receive(&mut buffer)?;
            moved |= self.deliver()?;
            if self.channel.eof() && self.inbound.waiting().is_empty() {
                break;
            }
            if !moved {
                self.wait()?;
            }
        }
        self.to_engine = None;
        self.session.set_blocking(true);
        self.channel.close()?;
        self.channel.wait_close()?;
        let signal = self.channel.exit_signal().ok().and_then(|signal| signal.exit_signal);
        Ok(if signal.is_some() { 125 } else { self.channel.exit_status()? })
    }

    fn fill_outbound(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let Some(pipe) = self.from_engine.as_ref().filter(|_| self.outbound.has_room()) else {
            return Ok(false);
        };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(0) => {
                self.from_engine = None;
                Ok(true)
            }
            Ok(read) => {
                self.outbound.bytes.extend_from_slice(&buffer[..read]);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn send_outbound(&mut self) -> io::Result<bool> {
        if self.outbound.waiting().is_empty() {
            if self.from_engine.is_some() || self.eof_sent {
                return Ok(false);
            }
            return match self.channel.send_eof().map_err(io::Error::from) {
                Ok(()) => {
                    self.eof_sent = true;
                    Ok(true)
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error),
            };
        }
        match self.channel.write(self.outbound.waiting()) {
            Ok(written) => {
                self.outbound.take(written);
                Ok(written > 0)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            // The command is gone: the engine learns it from the end of its input.
            Err(_) => {
                let all = self.outbound.waiting().len();
                self.outbound.take(all);
                Ok(true)
            }
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut moved = false;
        if self.inbound.has_room() {
            match self.channel.read(buffer) {
                Ok(read) => {
                    self.inbound.bytes.extend_from_slice(&buffer[..read]);
                    moved |= read > 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        match self.channel.stderr().read(buffer) {
            Ok(read) => {
                // Nobody may be listening; that must not end the transfer.
                let _ = io::stderr().write_all(&buffer[..read]);
                moved |= read > 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(moved)
    }

    fn deliver(&mut self) -> io::Result<bool> {
        if self.inbound.waiting().is_empty() {
            return Ok(false);
        }
        let Some(pipe) = &self.to_engine else {
            let all = self.inbound.waiting().len();
            self.inbound.take(all);
            return Ok(true);
        };
        match rustix::io::write(pipe, self.inbound.waiting()) {
            Ok(written) => {
                self.inbound.take(written);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(Errno::PIPE) => {
                self.to_engine = None;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps until a call could get further.
    fn wait(&self) -> io::Result<()> {
        let wanted = match self.session.block_directions() {
            BlockDirections::Outbound => PollFlags::OUT,
            BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            _ => PollFlags::IN,
        };
        let mut fds = vec![PollFd::new(&self.socket, wanted)];
        if let Some(pipe) = self.from_engine.as_ref().filter(|_| self.outbound.has_room()) {
            fds.push(PollFd::new(pipe, PollFlags::IN));
        }
        if let Some(pipe) = self.to_engine.as_ref().filter(|_| !self.inbound.waiting().is_empty()) {
            fds.push(PollFd::new(pipe, PollFlags::OUT));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
