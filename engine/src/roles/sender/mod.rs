//! The sender: lists, opens, searches, sends.

use suisei_protocol::message::{ToReceiver, ToSender};

use crate::link::{Handover, Inbox, Outbox};
use crate::source::Source;
use crate::{Context, Failure};

/// Runs the sender to the end of the session.
pub fn run<L: Handover>(
    _ctx: &Context,
    _source: Source,
    _inbox: &mut impl Inbox<ToSender>,
    _outbox: &mut impl Outbox<ToReceiver<L>>,
) -> Result<(), Failure> {
    todo!()
}
