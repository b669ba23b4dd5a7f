//! The local link: the messages themselves over bounded channels.
//!
//! A peer that ended drops its end of the channel, and then every call here fails with
//! [`Failure::Sibling`]: the reason is the peer's to tell.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::limit::Limiter;
use super::{Inbox, Outbox};
use crate::Failure;

/// How often a waiting role looks at the interrupt flag.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Makes a channel for `capacity` messages. `weigh` counts what they would weigh as bytes.
pub fn local<M>(
    capacity: usize,
    interrupted: Arc<AtomicBool>,
    weigh: impl Fn(&M) -> u64 + Send + 'static,
) -> (LocalOutbox<M>, LocalInbox<M>) {
    let (sender, receiver) = sync_channel(capacity);
    let outbox =
        LocalOutbox { sender, weigh: Box::new(weigh), limiter: None, interrupted: interrupted.clone() };
    (outbox, LocalInbox { receiver, interrupted })
}

/// The receiving end of a local link.
#[derive(Debug)]
pub struct LocalInbox<M> {
    receiver: Receiver<M>,
    interrupted: Arc<AtomicBool>,
}

impl<M> Inbox<M> for LocalInbox<M> {
    fn recv(&mut self) -> Result<M, Failure> {
        loop {
            if self.interrupted.load(Relaxed) {
                return Err(Failure::Interrupted);
            }
            match self.receiver.recv_timeout(TICK) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Sibling),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn try_recv(&mut self) -> Result<Option<M>, Failure> {
        match self.receiver.try_recv() {
            Ok(message) => Ok(Some(message)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Failure::Sibling),
        }
    }
}

/// The sending end of a local link.
pub struct LocalOutbox<M> {
    sender: SyncSender<M>,
    weigh: Box<dyn Fn(&M) -> u64 + Send>,
    limiter: Option<Limiter>,
    interrupted: Arc<AtomicBool>,
}

impl<M> LocalOutbox<M> {
    /// Lets no more than so many bytes a second pass, as `--bwlimit` does on a wire.
    pub fn limited(mut self, per_second: Option<u64>) -> Self {
        self.limiter = per_second.map(|rate| Limiter::new(rate, Instant::now()));
        self
    }

    fn wait_for(&mut self, mut bytes: u64) -> Result<(), Failure> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        while bytes > 0 {
            match limiter.grant(usize::try_from(bytes).unwrap_or(usize::MAX), Instant::now()) {
                Ok(granted) => {
                    limiter.spend(granted);
                    bytes -= granted as u64;
                }
                Err(_) if self.interrupted.load(Relaxed) => return Err(Failure::Interrupted),
                Err(wait) => std::thread::sleep(wait),
            }
        }
        Ok(())
    }
}

impl<M> Outbox<M> for LocalOutbox<M> {
    fn send(&mut self, message: M) -> Result<(), Failure> {
        let bytes = (self.weigh)(&message);
        self.wait_for(bytes)?;
        self.sender.send(message).map_err(|_| Failure::Sibling)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_ended_is_noticed_after_its_last_message() {
        let (mut out, mut inbox) = local::<u8>(2, Arc::default(), |_| 0);
        out.send(7).unwrap();
        drop(out);
        assert_eq!(inbox.recv().unwrap(), 7);
        assert!(matches!(inbox.recv(), Err(Failure::Sibling)));
    }

    #[test]
    fn a_signal_ends_a_wait() {
        let interrupted = Arc::new(AtomicBool::new(true));
        let (_out, mut inbox) = local::<u8>(1, interrupted, |_| 0);
        assert!(matches!(inbox.recv(), Err(Failure::Interrupted)));
    }
}
