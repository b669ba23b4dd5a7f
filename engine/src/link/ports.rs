//! The two ends of a link as a role sees them.

use std::convert::Infallible;
use std::fs::File;
use std::sync::mpsc::Sender;

use suisei_protocol::message::FromReceiver;

use crate::Failure;

/// Where a role's messages come from.
pub trait Inbox<M> {
    /// Waits for the next message. What this end wrote is flushed by the role before it waits.
    fn recv(&mut self) -> Result<M, Failure>;

    /// Returns the next message if it has arrived completely.
    fn try_recv(&mut self) -> Result<Option<M>, Failure>;

    /// Hands over the bytes of a matched block, which some compressors add to their history.
    /// Call for every `Token::Copy` received, if [`Inbox::wants_history`].
    fn add_history(&mut self, _block: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether [`Inbox::add_history`] must be called.
    fn wants_history(&self) -> bool {
        false
    }

    /// Takes the way to the generator, for a link that has to hurry it.
    fn hurry_by(&mut self, _generator: Sender<FromReceiver>) {}

    /// Returns the raw bytes read so far, for `%b` and `%c`; 0 where nothing is decoded.
    fn bytes_read(&self) -> u64 {
        0
    }
}

/// Where a role's messages go.
pub trait Outbox<M> {
    /// Queues a message; blocks while the queue is full.
    fn send(&mut self, message: M) -> Result<(), Failure>;

    /// Makes sure that everything queued is on its way. Call before waiting on an [`Inbox`].
    fn flush(&mut self) -> Result<(), Failure>;

    /// Says that every entry of one more segment was decided on.
    fn walked(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Hands over the bytes of a matched block, right after its `Token::Copy` was sent, if
    /// [`Outbox::wants_history`].
    fn add_history(&mut self, _block: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether [`Outbox::add_history`] must be called.
    fn wants_history(&self) -> bool {
        false
    }

    /// Returns the raw bytes queued so far, for `%b` and `%c`; 0 where nothing is encoded.
    fn bytes_written(&self) -> u64 {
        0
    }
}

/// What a local sender hands over in place of bytes: the source itself.
#[derive(Debug)]
pub struct LocalSource {
    /// Open for reading, at its start.
    pub file: File,
    /// Its size when it was opened, in bytes.
    pub size: u64,
    /// Its full name, for messages.
    pub name: Vec<u8>,
}

/// Whether a link can hand over an open source.
pub trait Handover: Sized + Send + 'static {
    /// Wraps the source, or gives it back where the link only carries bytes.
    fn wrap(source: LocalSource) -> Result<Self, LocalSource>;

    /// Unwraps the source.
    fn into_source(self) -> LocalSource;
}

impl Handover for LocalSource {
    fn wrap(source: LocalSource) -> Result<Self, LocalSource> {
        Ok(source)
    }

    fn into_source(self) -> LocalSource {
        self
    }
}

impl Handover for Infallible {
    fn wrap(source: LocalSource) -> Result<Self, LocalSource> {
        Err(source)
    }

    fn into_source(self) -> LocalSource {
        match self {}
    }
}
