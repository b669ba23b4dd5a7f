//! Generator to sender: items and requests.

use super::Input;
use crate::error::{Decode, Error};
use crate::message::ToSender;
use crate::mux::Notice;
use crate::session::Session;

/// Encodes what the generator says.
#[derive(Debug)]
pub struct ToSenderEncoder {}

impl ToSenderEncoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(_session: &Session) -> Self {
        todo!()
    }

    /// Appends one message to the stream, or returns the notice that must travel beside it.
    pub fn encode(&mut self, _message: ToSender, _out: &mut Vec<u8>) -> Result<Option<Notice>, Error> {
        todo!()
    }
}

/// Decodes what the generator says.
///
/// Indexes are passed on unchecked: the sender's role looks each one up in its own `FileList`,
/// which knows what is live at that moment (`FileList::find`, `FileList::find_for_transfer`).
#[derive(Debug)]
pub struct ToSenderDecoder {}

impl ToSenderDecoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(_session: &Session) -> Self {
        todo!()
    }

    /// Decodes the next message. `Succeeded` never comes from here: it is a notice.
    pub fn decode(&mut self, _input: &mut Input) -> Decode<ToSender> {
        todo!()
    }

    /// Whether nothing is half read.
    pub fn is_at_boundary(&self) -> bool {
        todo!()
    }
}
