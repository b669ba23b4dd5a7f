//! The generator: decides about every entry, asks, creates, deletes.

use std::sync::mpsc::Receiver;

use suisei_protocol::message::{FromReceiver, ToSender};

use super::destination::Destination;
use crate::link::Outbox;
use crate::{Context, Failure};

/// Runs the generator to the end of the session. Segments arrive through `inbox`.
pub fn run(
    _ctx: &Context,
    _destination: &Destination,
    _inbox: Receiver<FromReceiver>,
    _outbox: &mut impl Outbox<ToSender>,
) -> Result<(), Failure> {
    todo!()
}
