//! State machines between the messages of the roles and bytes, one pair per direction.
//!
//! A decoder is fed an [`Input`] and returns one message at a time; an encoder appends bytes to a
//! `Vec<u8>`, or hands back the [`Notice`](crate::mux::Notice) that must travel beside them.
//! Wire: protocol/doc/20-transfer.md#2-one-request-receiving-side---sending-side-and-its-reply

mod input;
mod to_receiver;
mod to_sender;

pub use input::Input;
pub use to_receiver::{ToReceiverDecoder, ToReceiverEncoder};
pub use to_sender::{ToSenderDecoder, ToSenderEncoder};
