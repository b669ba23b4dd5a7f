//! Raw bytes to and from a peer, and waiting for them without being deaf to a signal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::io::Errno;

/// Size that pipes to a peer are given.
const PIPE_BYTES: usize = 1 << 20;

/// Raw bytes to and from a peer.
#[derive(Debug)]
pub struct Stream {
    /// Where the peer's bytes come from.
    pub input: OwnedFd,
    /// Where ours go.
    pub output: OwnedFd,
    /// Bytes that were read but belong to the next stage.
    pub early: Vec<u8>,
}

impl Stream {
    /// Enlarges pipes, and makes both descriptors non-blocking: every wait is a `poll`.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for fd in [&self.input, &self.output] {
            crate::sys::pipes::enlarge(fd, PIPE_BYTES);
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }
}

/// Which way a descriptor is wanted to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// For reading, or at its end.
    Read,
    /// For writing, or broken.
    Write,
}

/// Waits until `fd` is ready, `wake` was closed, or the time is over. Returns whether `fd` is.
pub(super) fn wait(
    fd: BorrowedFd<'_>,
    ready: Ready,
    wake: Option<BorrowedFd<'_>>,
    time: Duration,
) -> io::Result<bool> {
    let flags = match ready {
        Ready::Read => PollFlags::IN,
        Ready::Write => PollFlags::OUT,
    };
    let mut fds = vec![PollFd::from_borrowed_fd(fd, flags)];
    fds.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake, PollFlags::IN)));
    let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
    match poll(&mut fds, Some(&time)) {
        Ok(_) => Ok(!fds[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A pipe that carries nothing: closing one end wakes everyone who polls the other.
#[derive(Debug)]
pub(super) struct WakePipe {
    read: OwnedFd,
    write: std::sync::Mutex<Option<OwnedFd>>,
}

impl WakePipe {
    pub(super) fn new() -> io::Result<Self> {
        // Not every system can make the pair closed on exec in one call.
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(WakePipe { read, write: std::sync::Mutex::new(Some(write)) })
    }

    pub(super) fn wake(&self) {
        if let Ok(mut write) = self.write.lock() {
            *write = None;
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
