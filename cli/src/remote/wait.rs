//! Waits that a signal can end, before the engine takes over.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// How often the flag is looked at: a signal restarts the wait it interrupts.
const TICK: Duration = Duration::from_millis(100);

/// Waits until a descriptor is ready for `wanted`. Fails with `TimedOut` at the deadline and with
/// `Interrupted` once a signal arrived.
pub fn until(
    fd: impl AsFd,
    wanted: PollFlags,
    deadline: Option<Instant>,
    interrupted: &AtomicBool,
) -> io::Result<()> {
    loop {
        if interrupted.load(Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left =
            deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()).min(TICK));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let tick = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&fd, wanted)], Some(&tick)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_wait_that_nothing_else_would() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let error = until(&read, PollFlags::IN, None, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let error = until(&read, PollFlags::IN, Some(Instant::now()), &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
