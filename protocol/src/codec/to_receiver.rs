//! Sender to receiver: file lists, echoes, file data.

use std::convert::Infallible;

use super::Input;
use crate::error::{Decode, Error};
use crate::message::ToReceiver;
use crate::mux::Notice;
use crate::session::Session;

/// Encodes what the sender says.
#[derive(Debug)]
pub struct ToReceiverEncoder {}

impl ToReceiverEncoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(_session: &Session) -> Self {
        todo!()
    }

    /// Appends one message to the stream, or returns the notice that must travel beside it.
    /// A notice goes out at once: it may overtake data, but not the other way round.
    pub fn encode(&mut self, _message: ToReceiver<Infallible>, _out: &mut Vec<u8>) -> Result<Option<Notice>, Error> {
        todo!()
    }

    /// Whether [`ToReceiverEncoder::add_history`] must be called for every block token.
    pub fn wants_history(&self) -> bool {
        todo!()
    }

    /// Adds the bytes of a matched block to the compressor's history, right after its token.
    pub fn add_history(&mut self, _block: &[u8]) -> Result<(), Error> {
        todo!()
    }
}

/// Decodes what the sender says.
#[derive(Debug)]
pub struct ToReceiverDecoder {}

impl ToReceiverDecoder {
    /// Starts the stream just after the handshake.
    pub fn new(_session: &Session) -> Self {
        todo!()
    }

    /// Decodes the next message. `NotSent` and `IoErrors` never come from here: they are notices.
    pub fn decode(&mut self, _input: &mut Input) -> Decode<ToReceiver> {
        todo!()
    }

    /// Whether nothing is half read: an end of the stream here may be an orderly one.
    pub fn is_at_boundary(&self) -> bool {
        todo!()
    }

    /// Whether [`ToReceiverDecoder::add_history`] must be called for every block token.
    pub fn wants_history(&self) -> bool {
        todo!()
    }

    /// Adds the bytes of a matched block to the decompressor's history, before the next `decode`.
    pub fn add_history(&mut self, _block: &[u8]) -> Result<(), Error> {
        todo!()
    }
}
