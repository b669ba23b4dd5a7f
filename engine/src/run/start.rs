//! The start of a receiving side: the first list decides what the destination means.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#look-ahead

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::message::{FromReceiver, ToReceiver};
use suisei_protocol::session::{Direction, Recursion, Side};

use crate::context::Reporter;
use crate::link::{Handover, Inbox};
use crate::observe::{Event, Who};
use crate::roles::destination::{Destination, FirstList};
use crate::roles::receiver::check_temp_dir;
use crate::trace::{trace_list, Topic, Trace};
use crate::{Context, Failure};

/// What the roles of a receiving side begin with.
pub(super) struct Beginning<L> {
    pub(super) destination: Destination,
    /// Messages that were read already.
    pub(super) replay: VecDeque<ToReceiver<L>>,
}

/// Reads the first list, and one more item if it alone cannot tell a file from a directory.
/// Returns nothing if the list is empty and the sender, a server, has already ended.
pub(super) fn begin<L: Handover>(
    ctx: &Context,
    inbox: &mut impl Inbox<ToReceiver<L>>,
    path: &[u8],
) -> Result<Option<Beginning<L>>, Failure> {
    let incremental = ctx.session.recursion == Recursion::Incremental;
    if ctx.reporter == Reporter::Receiver {
        ctx.report(Event::ListStarted { incremental });
    }
    ctx.ids.read_rules(ctx)?;
    ctx.trace(Topic::Recv, 1, Who::ReceivingSide, Trace::ReceivingSideStarts);
    let mut replay = VecDeque::new();
    let mut list = FirstList::default();
    read_list(inbox, &mut replay, &mut list)?;
    let first = list.entries;
    for message in &replay {
        if let ToReceiver::Segment(segment) = message {
            trace_list(ctx, Who::ReceivingSide, segment);
        }
    }
    if !incremental && ctx.reporter == Reporter::Receiver {
        ctx.report(Event::ListFinished { entries: list.entries });
    }
    if incremental && list.entries == 1 {
        let message = inbox.recv()?;
        count(&message, &mut list);
        replay.push_back(message);
    }
    let sender_has_ended = ctx.session.direction == Direction::Receiving
        && ctx.session.side == Side::Client
        && list.entries == 0;
    if sender_has_ended {
        note_errors(ctx, &replay);
        return Ok(None);
    }
    ctx.trace(Topic::Recv, 1, Who::ReceivingSide, Trace::DestinationNamed(first, path));
    let destination = Destination::resolve(ctx, path, list)?;
    check_temp_dir(ctx, &destination)?;
    Ok(Some(Beginning { destination, replay }))
}

/// Reads messages up to the first list.
fn read_list<L: Handover>(
    inbox: &mut impl Inbox<ToReceiver<L>>,
    replay: &mut VecDeque<ToReceiver<L>>,
    list: &mut FirstList,
) -> Result<(), Failure> {
    loop {
        let message = inbox.recv()?;
        match &message {
            ToReceiver::Segment(_) => {
                count(&message, list);
                replay.push_back(message);
                return Ok(());
            }
            ToReceiver::IoErrors(_) => replay.push_back(message),
            // No index exists yet that it could mean.
            ToReceiver::NotSent(_) => {}
            _ => return Err(Failure::Protocol(PeerMisbehaved::Rule("the file list must come first").into())),
        }
    }
}

fn count<L>(message: &ToReceiver<L>, list: &mut FirstList) {
    if let ToReceiver::Segment(segment) = message {
        if list.entries == 0 && segment.len() == 1 {
            list.only_kind = segment.get(0).map(|entry| entry.kind());
        } else if !segment.is_empty() {
            list.only_kind = None;
        }
        list.entries += segment.len();
    }
}

fn note_errors<L>(ctx: &Context, replay: &VecDeque<ToReceiver<L>>) {
    for message in replay {
        match message {
            ToReceiver::Segment(segment) => ctx.add_io_errors(segment.io_errors()),
            ToReceiver::IoErrors(errors) => ctx.add_io_errors(*errors),
            _ => {}
        }
    }
}

/// An inbox that first gives back what was read ahead.
pub(super) struct Replayed<'a, L, I> {
    replay: VecDeque<ToReceiver<L>>,
    inner: &'a mut I,
}

impl<'a, L, I> Replayed<'a, L, I> {
    pub(super) fn new(replay: VecDeque<ToReceiver<L>>, inner: &'a mut I) -> Self {
        Replayed { replay, inner }
    }
}

impl<L, I: Inbox<ToReceiver<L>>> Inbox<ToReceiver<L>> for Replayed<'_, L, I> {
    fn recv(&mut self) -> Result<ToReceiver<L>, Failure> {
        match self.replay.pop_front() {
            Some(message) => Ok(message),
            None => self.inner.recv(),
        }
    }

    fn try_recv(&mut self) -> Result<Option<ToReceiver<L>>, Failure> {
        match self.replay.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.inner.try_recv(),
        }
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        self.inner.add_history(block)
    }

    fn wants_history(&self) -> bool {
        self.inner.wants_history()
    }

    fn hurry_by(&mut self, generator: Sender<FromReceiver>) {
        self.inner.hurry_by(generator);
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }
}
