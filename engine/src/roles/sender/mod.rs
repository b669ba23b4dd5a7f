//! The sender: lists, opens, searches, sends.
//!
//! ```text
//! Listed ──DONE of the last list──► Redo ──DONE──► Delayed ──DONE──► (last DONE, statistics)
//!                                     └─ below 29 ────────────────►  Deletions ──DONE──► Goodbye
//! ```
//!
//! Requests are answered strictly in order. While a segment is owed no request is waited for:
//! the generator keeps silent until it knows the segment behind the one it works on.
//! Wire: protocol/doc/02-session-start.md#261-phases-and-done-exchange

mod file;
mod remove;
mod report;
mod segments;

use std::collections::HashSet;
use std::marker::PhantomData;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{Found, IoErrors, Ndx};
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::session::{Recursion, Side};
use suisei_protocol::transfer::{BlockSignature, DeleteCounts, Item, TransferStats, XattrExchange};
use suisei_protocol::Error;

use crate::context::Reporter;
use crate::delta::Tally;
use crate::link::{Handover, Inbox, Outbox};
use crate::observe::{Event, Who};
use crate::options::{Append, Remove};
use crate::source::{with_xattrs, Base, Source};
use crate::trace::{Topic, Trace};
use crate::tree::HeldItem;
use crate::xattrs::{self, Answered};
use crate::{Context, Failure};
use remove::Unconfirmed;
use report::Reports;
use segments::{Asked, Segments};

/// Runs the sender to the end of the session.
pub fn run<L: Handover>(
    ctx: &Context,
    source: Source,
    inbox: &mut impl Inbox<ToSender>,
    outbox: &mut impl Outbox<ToReceiver<L>>,
) -> Result<(), Failure> {
    let mut sender = Sender {
        ctx,
        inbox,
        outbox,
        segments: Segments::new(ctx),
        phase: Phase::Listed,
        reported_errors: IoErrors::empty(),
        end_sent: false,
        already_sent: HashSet::new(),
        unconfirmed: Unconfirmed::default(),
        answered: Answered::default(),
        totals: Tally::default(),
        reports: Reports::new(ctx),
        link: PhantomData,
    };
    ctx.trace(Topic::Send, 1, Who::Sender, Trace::SendingSideStarts);
    let entries = sender.send_first_list(source)?;
    if entries == 0 && ctx.session.side == Side::Server {
        // A server with nothing to send ends here; its client knows.
        return sender.outbox.flush();
    }
    ctx.trace(Topic::Send, 1, Who::Sender, Trace::SenderStarts);
    while sender.phase != Phase::Ended {
        let message = sender.next_message()?;
        sender.answer(message)?;
    }
    sender.outbox.flush()
}

/// What the next `Done` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The end of a list; of the last one: redo begins.
    Listed,
    /// The end of redo.
    Redo,
    /// The end of delayed updates.
    Delayed,
    /// The end of late deletions.
    Deletions,
    /// The end of the session.
    Goodbye,
    /// Nothing more is read.
    Ended,
}

struct Sender<'a, L, I, O> {
    ctx: &'a Context,
    inbox: &'a mut I,
    outbox: &'a mut O,
    segments: Segments<'a>,
    phase: Phase,
    /// The error bits that the other side knows of.
    reported_errors: IoErrors,
    /// Whether the end of the list has been announced.
    end_sent: bool,
    /// Files sent once already (in append mode): a second request is a redo.
    already_sent: HashSet<Ndx>,
    unconfirmed: Unconfirmed,
    answered: Answered,
    totals: Tally,
    reports: Reports<'a>,
    link: PhantomData<L>,
}

impl<L: Handover, I: Inbox<ToSender>, O: Outbox<ToReceiver<L>>> Sender<'_, L, I, O> {
    // --- the list ---

    fn send_first_list(&mut self, source: Source) -> Result<usize, Failure> {
        let incremental = self.is_incremental();
        self.reports.list_started(incremental);
        let segment = self.segments.first(source)?;
        self.ctx.trace(Topic::Flist, 2, Who::Sender, Trace::ListMade);
        let entries = segment.len();
        self.reported_errors = segment.io_errors();
        self.outbox.send(ToReceiver::Segment(segment))?;
        if !incremental {
            self.reports.list_finished(entries);
        }
        self.announce_end()?;
        Ok(entries)
    }

    fn send_segment(&mut self) -> Result<(), Failure> {
        if let Some(segment) = self.segments.next()? {
            self.reported_errors = segment.io_errors();
            self.outbox.send(ToReceiver::Segment(segment))?;
        }
        self.announce_end()
    }

    fn announce_end(&mut self) -> Result<(), Failure> {
        if self.segments.is_complete() && !self.end_sent {
            self.end_sent = true;
            if self.is_incremental() {
                self.ctx.trace(Topic::Flist, 3, Who::Sender, Trace::ListsEnd);
            }
            self.outbox.send(ToReceiver::ListEnd)?;
        }
        Ok(())
    }

    fn is_incremental(&self) -> bool {
        self.ctx.session.recursion == Recursion::Incremental
    }

    // --- requests ---

    fn next_message(&mut self) -> Result<ToSender, Failure> {
        loop {
            self.ctx.check_interrupt()?;
            while self.segments.owes() {
                self.send_segment()?;
            }
            if let Some(message) = self.inbox.try_recv()? {
                return Ok(message);
            }
            self.outbox.flush()?;
            if !self.segments.has_room() {
                return self.inbox.recv();
            }
            self.send_segment()?;
        }
    }

    fn answer(&mut self, message: ToSender) -> Result<(), Failure> {
        match message {
            ToSender::Done => self.done(),
            ToSender::Deleted(counts) => self.deleted(counts),
            ToSender::Succeeded(ndx) => self.succeeded(ndx),
            ToSender::Item { ndx, item } => self.item(ndx, item),
            ToSender::Want { ndx, item, basis } => self.want(ndx, &item, &basis),
        }
    }

    /// Answers an item that only reports.
    fn item(&mut self, ndx: Ndx, item: Item) -> Result<(), Failure> {
        self.check_phase()?;
        let Asked { found, base } = self.segments.ask(ndx)?;
        self.trace_asked(ndx, &found, base.as_deref());
        self.reports.item(&found, base.as_deref(), ndx, &item);
        let xattrs = self.answer_xattrs(&found, base.as_deref(), &item)?;
        self.outbox.send(ToReceiver::Item { ndx, item: Item { xattrs, ..item } })
    }

    /// Reads the long values of attributes that an item asks for.
    fn answer_xattrs(
        &mut self,
        found: &Found,
        place: Option<&Base>,
        item: &Item,
    ) -> Result<XattrExchange, Failure> {
        if !self.ctx.session.exchanges_xattrs(item.flags) {
            return Ok(XattrExchange::Nothing);
        }
        let entry = found.entry();
        let (ctx, answered) = (self.ctx, &mut self.answered);
        let list = entry.xattrs().map(|list| &**list);
        let mut answer =
            |source: Option<&HeldItem<'_>>| xattrs::answer(ctx, answered, list, item.xattrs.wanted(), source);
        let read =
            place.and_then(|base| with_xattrs(base, entry.wire_path(), |source| answer(Some(source))).ok());
        let values = match read {
            Some(values) => values,
            None => answer(None),
        };
        Ok(values.map_err(Error::from)?)
    }

    /// Answers a request for a file's data.
    fn want(&mut self, ndx: Ndx, item: &Item, basis: &BlockSignature) -> Result<(), Failure> {
        self.check_phase()?;
        let (found, base) = self.segments.ask_file(ndx)?;
        if self.phase == Phase::Delayed {
            return Err(Error::from(PeerMisbehaved::LatePhase(2)).into());
        }
        let entry = found.entry();
        self.trace_asked(ndx, &found, Some(&base));
        if self.ctx.options.dry_run && !self.ctx.options.batch_only {
            self.reports.begun(&found, &base, ndx, item);
            self.reports.count(&found);
            self.reports.finished(&found, &base, ndx, item, None);
            return self.outbox.send(ToReceiver::Begin { ndx, item: item.clone(), head: basis.head });
        }
        let append = self.append_mode(ndx, basis);
        let Some(opened) = file::open(self.ctx, &base, entry, append) else {
            if self.ctx.session.version.has_status_messages() {
                self.outbox.send(ToReceiver::NotSent(ndx))?;
            }
            return Ok(());
        };
        let xattrs = self.answer_xattrs(&found, Some(&base), item)?;
        let item = &Item { xattrs, ..item.clone() };
        if self.ctx.options.place.remove != Remove::Nothing {
            self.unconfirmed.note(ndx, opened.1);
        }
        self.reports.begun(&found, &base, ndx, item);
        let before = self.outbox.bytes_written();
        let mut progress = self.reports.progress(&found, &self.segments, opened.1.size);
        let full_name = || base.full_name(entry.wire_path());
        let long_name = || base.long_name(entry.wire_path());
        let request =
            file::Request { ndx, item, basis, append, full_name: &full_name, long_name: &long_name };
        let sent = file::send(self.ctx, self.outbox, &request, opened, &mut |offset| progress.at(offset))?;
        self.reports.count(&found);
        progress.finish();
        add(&mut self.totals, &sent.tally);
        let data_bytes = self.outbox.bytes_written().saturating_sub(before);
        let moved = report::Moved { data_bytes, basis, sent: &sent };
        self.reports.finished(&found, &base, ndx, item, Some(moved));
        if self.ctx.traces(Topic::Send, 1) {
            self.ctx.trace(Topic::Send, 1, Who::Sender, Trace::Sent(&base.long_name(entry.wire_path())));
        }
        Ok(())
    }

    /// Says which item was asked for, if somebody looks.
    fn trace_asked(&self, ndx: Ndx, found: &Found, base: Option<&Base>) {
        if self.ctx.traces(Topic::Send, 1) {
            let wire = found.entry().wire_path();
            let mut name = base.map_or_else(|| wire.to_vec(), |base| base.long_name(wire));
            if wire == b"." && !name.ends_with(b".") {
                name.extend_from_slice(b"/.");
            }
            self.ctx.trace(Topic::Send, 1, Who::Sender, Trace::Asked(ndx, &name));
        }
    }

    fn enter(&mut self, phase: Phase, number: u8) {
        self.phase = phase;
        self.ctx.trace(Topic::Send, 1, Who::Sender, Trace::SenderPhase(number));
    }

    /// A second request for a file is a redo, in which nothing is appended.
    fn append_mode(&mut self, ndx: Ndx, basis: &BlockSignature) -> Append {
        let place = &self.ctx.options.place;
        if place.append == Append::Off || !self.already_sent.insert(ndx) || basis.head.count == 0 {
            return Append::Off;
        }
        match self.ctx.session.version.has_plain_append() {
            true => place.append,
            false => Append::Verify,
        }
    }

    fn check_phase(&self) -> Result<(), Failure> {
        match self.phase {
            Phase::Listed | Phase::Redo | Phase::Delayed => Ok(()),
            _ => Err(Error::from(PeerMisbehaved::Rule("got an item after the last phase")).into()),
        }
    }

    fn succeeded(&mut self, ndx: Ndx) -> Result<(), Failure> {
        if self.ctx.options.place.remove == Remove::Nothing {
            return Ok(());
        }
        let Asked { found, base } = self.segments.ask(ndx)?;
        if found.position.is_none() {
            return Err(Error::from(PeerMisbehaved::UnknownIndex(ndx)).into());
        }
        let entry = found.entry();
        if let Some(base) = base.filter(|_| !entry.is_dir()) {
            self.unconfirmed.remove(self.ctx, ndx, &base, entry);
        }
        Ok(())
    }

    fn deleted(&mut self, counts: DeleteCounts) -> Result<(), Failure> {
        if self.ctx.reporter == Reporter::Sender {
            let deleted = &self.ctx.stats.deleted;
            deleted.regular.set(counts.files.into());
            deleted.dirs.set(counts.dirs.into());
            deleted.links.set(counts.symlinks.into());
            deleted.devices.set(counts.devices.into());
            deleted.specials.set(counts.specials.into());
        }
        match self.ctx.session.side {
            Side::Server => self.outbox.send(ToReceiver::Deleted(counts)),
            Side::Client => Ok(()),
        }
    }

    // --- the ladder ---

    fn done(&mut self) -> Result<(), Failure> {
        let version = self.ctx.session.version;
        let is_between = matches!(self.phase, Phase::Redo | Phase::Delayed);
        if self.phase == Phase::Listed || is_between && !self.is_incremental() {
            self.reports.list_done(&self.segments);
        }
        match self.phase {
            Phase::Listed => {
                if self.is_incremental() {
                    self.segments.release_oldest();
                    if !self.segments.is_empty() {
                        return self.outbox.send(ToReceiver::Done);
                    }
                    if !self.end_sent {
                        return Err(
                            Error::from(PeerMisbehaved::Rule("got an end of list before the list")).into()
                        );
                    }
                }
                self.enter(Phase::Redo, 1);
                self.outbox.send(ToReceiver::Done)
            }
            Phase::Redo if version.has_delay_phase() => {
                self.enter(Phase::Delayed, 2);
                self.outbox.send(ToReceiver::Done)
            }
            Phase::Redo | Phase::Delayed => self.close(),
            Phase::Deletions => {
                self.phase = Phase::Goodbye;
                self.outbox.send(ToReceiver::Done)
            }
            Phase::Goodbye | Phase::Ended => {
                self.phase = Phase::Ended;
                Ok(())
            }
        }
    }

    /// Ends the transfer: nothing is sent any more but confirmations of the end.
    fn close(&mut self) -> Result<(), Failure> {
        let ctx = self.ctx;
        ctx.trace(Topic::Send, 1, Who::Sender, Trace::SenderEnds);
        let Tally { matches, hash_hits, false_alarms, literal: data, .. } = self.totals;
        ctx.report(Event::MatchTotals { matches, hash_hits, false_alarms, data });
        let errors = ctx.io_errors();
        let silent = ctx.options.delete.ignore_errors || !ctx.session.version.has_status_messages();
        if errors != self.reported_errors && !silent {
            self.outbox.send(ToReceiver::IoErrors(errors))?;
        }
        self.outbox.send(ToReceiver::Done)?;
        if ctx.session.side == Side::Server || ctx.batch.record().is_some() {
            let stats = &ctx.stats;
            self.outbox.send(ToReceiver::Stats(TransferStats {
                read: stats.bytes_read.value(),
                written: stats.bytes_written.value(),
                total_size: stats.total_size.value(),
                list_build_ms: stats.list_build_ms.value().max(1),
                list_transfer_ms: stats.list_transfer_ms.value(),
            }))?;
        }
        self.phase = if ctx.session.version.has_delete_phase() { Phase::Deletions } else { Phase::Goodbye };
        Ok(())
    }
}

fn add(totals: &mut Tally, tally: &Tally) {
    totals.hash_hits += tally.hash_hits;
    totals.false_alarms += tally.false_alarms;
    totals.matches += tally.matches;
    totals.literal += tally.literal;
    totals.matched += tally.matched;
}

#[cfg(test)]
mod tests;
