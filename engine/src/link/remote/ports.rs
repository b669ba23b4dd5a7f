//! The two ends of a remote link as a role holds them: messages through the codec.
//!
//! An inbox keeps the order of arrival, but a notice never lands between the pieces of a file.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use suisei_protocol::codec::{Input, ToReceiverDecoder, ToReceiverEncoder, ToSenderDecoder, ToSenderEncoder};
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::mux::Notice;
use suisei_protocol::session::Session;
use suisei_protocol::{Decode, Error, Stop};

use super::incoming::{report, Arrival, Incoming};
use super::outgoing::{NoticePort, Outgoing};
use super::shared::Shared;
use crate::link::{Inbox, Outbox, Record};
use crate::observe::{Observer, Who};
use crate::Failure;

/// Encoded bytes that are handed to the writer without being asked to.
const CHUNK_BYTES: usize = 48 << 10;

/// A decoder of the messages that one role reads.
pub trait Decoder<M> {
    /// Decodes the next message.
    fn decode(&mut self, input: &mut Input) -> Decode<M>;
    /// Turns a notice into a message for the role, if it is one.
    fn notice(&self, notice: Notice) -> Option<M>;
    /// Whether a file has begun and not ended.
    fn is_inside_file(&self) -> bool;
    /// Whether matched blocks must be handed over.
    fn wants_history(&self) -> bool {
        false
    }
    /// Takes a matched block.
    fn add_history(&mut self, _block: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// An encoder of the messages that one role writes.
pub trait Encoder<M> {
    /// Appends a message, or returns the notice that carries it.
    fn encode(&mut self, message: M, out: &mut Vec<u8>) -> Result<Option<Notice>, Error>;
    /// Whether matched blocks must be handed over.
    fn wants_history(&self) -> bool {
        false
    }
    /// Takes a matched block.
    fn add_history(&mut self, _block: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// What a sender reads.
#[derive(Debug)]
pub struct Requests(pub(super) ToSenderDecoder);

impl Decoder<ToSender> for Requests {
    fn decode(&mut self, input: &mut Input) -> Decode<ToSender> {
        self.0.decode(input)
    }

    fn notice(&self, notice: Notice) -> Option<ToSender> {
        match notice {
            Notice::Success(ndx) => Some(ToSender::Succeeded(ndx)),
            _ => None,
        }
    }

    fn is_inside_file(&self) -> bool {
        false
    }
}

/// What a receiver reads.
pub struct Replies {
    decoder: ToReceiverDecoder,
    carries_data: bool,
    is_inside_file: bool,
}

impl Replies {
    pub(crate) fn new(session: &Session) -> Result<Self, Error> {
        Ok(Replies {
            decoder: ToReceiverDecoder::new(session)?,
            carries_data: session.carries_data(),
            is_inside_file: false,
        })
    }
}

impl Decoder<ToReceiver> for Replies {
    fn decode(&mut self, input: &mut Input) -> Decode<ToReceiver> {
        let message = self.decoder.decode(input)?;
        match &message {
            ToReceiver::Begin { .. } => self.is_inside_file = self.carries_data,
            ToReceiver::End { .. } => self.is_inside_file = false,
            _ => {}
        }
        Ok(message)
    }

    fn notice(&self, notice: Notice) -> Option<ToReceiver> {
        match notice {
            Notice::NoSend(ndx) => Some(ToReceiver::NotSent(ndx)),
            Notice::IoErrors(errors) => Some(ToReceiver::IoErrors(errors)),
            _ => None,
        }
    }

    fn is_inside_file(&self) -> bool {
        self.is_inside_file
    }

    fn wants_history(&self) -> bool {
        self.decoder.wants_history()
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Error> {
        self.decoder.add_history(block)
    }
}

impl Encoder<ToSender> for ToSenderEncoder {
    fn encode(&mut self, message: ToSender, out: &mut Vec<u8>) -> Result<Option<Notice>, Error> {
        ToSenderEncoder::encode(self, message, out)
    }
}

impl Encoder<ToReceiver<Infallible>> for ToReceiverEncoder {
    fn encode(
        &mut self,
        message: ToReceiver<Infallible>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Notice>, Error> {
        ToReceiverEncoder::encode(self, message, out)
    }

    fn wants_history(&self) -> bool {
        ToReceiverEncoder::wants_history(self)
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Error> {
        ToReceiverEncoder::add_history(self, block)
    }
}

/// Where a role's messages come from, decoded in the role's own thread.
pub struct RemoteInbox<M, D> {
    pub(super) decoder: D,
    pub(super) input: Input,
    pub(super) beside: VecDeque<M>,
    pub(super) incoming: Arc<Incoming>,
    pub(super) shared: Arc<Shared>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) who: Who,
    pub(super) record: Option<Record>,
}

impl<M, D: Decoder<M>> RemoteInbox<M, D> {
    /// Returns the next message that is complete.
    fn next_ready(&mut self) -> Result<Option<M>, Failure> {
        if !self.decoder.is_inside_file() {
            if let Some(message) = self.beside.pop_front() {
                return Ok(Some(message));
            }
        }
        match self.decoder.decode(&mut self.input) {
            Ok(message) => Ok(Some(message)),
            Err(Stop::Short) => Ok(None),
            Err(Stop::Bad(error)) => Err(error.into()),
        }
    }

    fn accept(&mut self, arrival: Arrival) -> Result<(), Failure> {
        match arrival {
            Arrival::Data(data) => {
                if let Some(record) = &self.record {
                    record.write(&data)?;
                }
                self.input.push(data);
            }
            Arrival::Notice(notice) => {
                let message = report(&*self.observer, &self.shared, notice)
                    .and_then(|notice| self.decoder.notice(notice));
                self.beside.extend(message);
            }
            Arrival::End(Failure::PeerClosed { received, .. }) => {
                return Err(Failure::PeerClosed { received, who: self.shared.speaker(self.who) })
            }
            Arrival::End(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl<M, D: Decoder<M>> Inbox<M> for RemoteInbox<M, D> {
    fn recv(&mut self) -> Result<M, Failure> {
        loop {
            if let Some(message) = self.next_ready()? {
                return Ok(message);
            }
            let arrival = self.incoming.take(&self.shared)?;
            self.accept(arrival)?;
        }
    }

    fn try_recv(&mut self) -> Result<Option<M>, Failure> {
        loop {
            if let Some(message) = self.next_ready()? {
                return Ok(Some(message));
            }
            if self.shared.is_stopped() {
                return Err(Failure::Sibling);
            }
            match self.incoming.try_take() {
                Some(arrival) => self.accept(arrival)?,
                None => return Ok(None),
            }
        }
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        Ok(self.decoder.add_history(block)?)
    }

    fn wants_history(&self) -> bool {
        self.decoder.wants_history()
    }

    fn bytes_read(&self) -> u64 {
        self.shared.stats.bytes_read.value()
    }
}

/// Where a role's messages go, encoded in the role's own thread.
pub struct RemoteOutbox<E> {
    pub(super) encoder: E,
    pub(super) buffer: Vec<u8>,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) shared: Arc<Shared>,
}

impl<E> RemoteOutbox<E> {
    fn hand_over(&mut self) -> Result<(), Failure> {
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES * 2));
        self.outgoing.push(&self.shared, Bytes::from(chunk))
    }
}

impl<M, E: Encoder<M>> Outbox<M> for RemoteOutbox<E> {
    fn send(&mut self, message: M) -> Result<(), Failure> {
        let before = self.buffer.len();
        if let Some(notice) = self.encoder.encode(message, &mut self.buffer)? {
            NoticePort(self.outgoing.clone()).send(notice);
        }
        self.shared.stats.bytes_written.add((self.buffer.len() - before) as u64);
        if self.buffer.len() >= CHUNK_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.hand_over()
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        Ok(self.encoder.add_history(block)?)
    }

    fn wants_history(&self) -> bool {
        self.encoder.wants_history()
    }

    fn bytes_written(&self) -> u64 {
        self.shared.stats.bytes_written.value()
    }
}
