//! The receiver: builds, verifies and places files.

use std::sync::mpsc::Sender;

use suisei_protocol::message::{FromReceiver, ToReceiver};

use super::destination::Destination;
use crate::link::{Handover, Inbox};
use crate::{Context, Failure};

/// Runs the receiver until the sender's last `Done`. Passes segments and fates to the generator.
pub fn run<L: Handover>(
    _ctx: &Context,
    _destination: &Destination,
    _inbox: &mut impl Inbox<ToReceiver<L>>,
    _generator: Sender<FromReceiver>,
) -> Result<(), Failure> {
    todo!()
}
