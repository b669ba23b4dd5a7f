//! The record of a run: what the sender says goes to the peer and into a batch file.
//!
//! A receiving end records the bytes that arrive; a sending end encodes its messages once more,
//! since the file may hold what the peer does not get, and has no notices.
//! Wire: protocol/doc/04-batch-and-files-from.md#42-what-is-recorded

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use suisei_protocol::codec::ToReceiverEncoder;
use suisei_protocol::message::ToReceiver;
use suisei_protocol::session::{Layout, Session};

use super::Outbox;
use crate::Failure;

/// Encoded bytes that are written at once.
const CHUNK_BYTES: usize = 48 << 10;

/// An open batch file that is being written. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Record(Arc<Mutex<File>>);

impl Record {
    /// Takes a file that is open for writing.
    pub fn new(file: File) -> Record {
        Record(Arc::new(Mutex::new(file)))
    }

    /// Appends bytes.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(bytes).map_err(|error| Failure::Record { bytes: bytes.len(), error })
    }
}

/// An outbox of a sender whose messages are recorded too.
pub(crate) struct Recorder<O> {
    inner: O,
    encoder: ToReceiverEncoder,
    buffer: Vec<u8>,
    record: Record,
    /// Whether file data goes into the record only.
    withholds: bool,
}

impl<O> Recorder<O> {
    /// Wraps the outbox of a sender.
    pub(crate) fn new(session: &Session, inner: O, record: Record) -> Result<Self, Failure> {
        let layout = Layout { withheld: false, ..session.layout };
        let encoder = ToReceiverEncoder::new(&Session { layout, ..session.clone() })?;
        let withholds = session.layout.withheld;
        Ok(Recorder { inner, encoder, buffer: Vec::new(), record, withholds })
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.record.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<O: Outbox<ToReceiver>> Outbox<ToReceiver> for Recorder<O> {
    fn send(&mut self, message: ToReceiver) -> Result<(), Failure> {
        // A notice travels beside the data, so it has no place in the file.
        let _notice = self.encoder.encode(message.clone(), &mut self.buffer)?;
        if self.buffer.len() >= CHUNK_BYTES {
            self.write()?;
        }
        match &message {
            // Only a replay reads these from a client's end.
            ToReceiver::Stats(_) => Ok(()),
            ToReceiver::Token(_) | ToReceiver::End { .. } if self.withholds => Ok(()),
            _ => self.inner.send(message),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.write()?;
        self.inner.flush()
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        if self.encoder.wants_history() {
            self.encoder.add_history(block)?;
        }
        if self.inner.wants_history() && !self.withholds {
            self.inner.add_history(block)?;
        }
        Ok(())
    }

    fn wants_history(&self) -> bool {
        self.encoder.wants_history() || self.inner.wants_history()
    }

    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written()
    }
}
