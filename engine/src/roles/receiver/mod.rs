//! The receiver: builds, verifies and places files. It reads everything that the sender says,
//! passes segments and fates on to the generator, and never writes to the sender itself.
//!
//! Wire: protocol/doc/20-transfer.md#5-reconstruction-and-verification

mod basis;
mod file;
mod ladder;
mod output;
pub mod partial;
mod place;
mod progress;
pub mod requested;

use std::collections::HashSet;
use std::sync::mpsc::Sender;
use std::sync::Arc;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{EntryRef, FileKind, FileList, IdKind, IdName, Ndx, Order, Segment};
use suisei_protocol::message::{Fate, FromReceiver, ToReceiver};
use suisei_protocol::session::{Direction, Recursion, Side};
use suisei_protocol::transfer::{Item, ItemFlags, TransferStats};

use self::ladder::{Ladder, Step};
use self::output::Workshop;
use self::partial::Partials;
use self::place::{Delayed, Site};
use self::progress::Meter;
use super::backup::Backups;
use super::destination::Destination;
use crate::context::Reporter;
use crate::filter::{Chain, FilterSide};
use crate::link::{Handover, Inbox};
use crate::observe::{Event, ItemReport, Moment, Who};
use crate::options::Remove;
use crate::source::links::{confined_target, MUNGED};
use crate::sys::users;
use crate::trace::{trace_list, Topic, Trace};
use crate::{unconverted, Context, Failure};

pub use output::check_temp_dir;

/// Runs the receiver until the sender's last `Done`. Passes segments and fates to the generator.
pub fn run<L: Handover>(
    ctx: &Context,
    destination: &Destination,
    inbox: &mut impl Inbox<ToReceiver<L>>,
    generator: Sender<FromReceiver>,
) -> Result<(), Failure> {
    let mut receiver = Receiver {
        ctx,
        destination,
        generator,
        list: FileList::new(),
        ladder: Ladder::new(&ctx.session),
        failed_once: HashSet::new(),
        delayed: Vec::new(),
        workshop: Workshop::open(ctx, destination)?,
        backups: Backups::new(ctx),
        partials: Partials::new(ctx, destination),
        meter: Meter::new(ctx),
        traced_ids: HashSet::new(),
    };
    while !receiver.ladder.is_over() {
        let message = inbox.recv()?;
        receiver.take(message, inbox)?;
    }
    if ctx.session.side == Side::Client {
        ctx.trace(Topic::Recv, 1, WHO, Trace::ReceiverEnds);
    }
    Ok(())
}

struct Receiver<'a> {
    ctx: &'a Context,
    destination: &'a Destination,
    generator: Sender<FromReceiver>,
    list: FileList,
    ladder: Ladder,
    /// Files that failed verification: their next attempt is the last.
    failed_once: HashSet<Ndx>,
    delayed: Vec<Delayed>,
    workshop: Workshop,
    backups: Option<Backups>,
    partials: Partials<'a>,
    meter: Meter,
    /// Users (true) and groups that somebody who looks has been told of.
    traced_ids: HashSet<(bool, u32)>,
}

impl Receiver<'_> {
    fn take<L: Handover>(
        &mut self,
        message: ToReceiver<L>,
        inbox: &mut impl Inbox<ToReceiver<L>>,
    ) -> Result<(), Failure> {
        match message {
            ToReceiver::Segment(segment) => {
                let segment = self.rewritten(self.decoded(segment));
                self.learn(&segment);
                let segment = self.prune(self.munge(segment));
                self.list.push(segment.clone());
                self.ladder.add_list()?;
                self.tell(FromReceiver::Segment(segment))
            }
            ToReceiver::ListEnd => {
                self.ladder.end_lists();
                if self.ctx.session.recursion == Recursion::Incremental {
                    self.ctx.trace(Topic::Flist, 3, WHO, Trace::ListsEnd);
                }
                self.meter.complete();
                self.tell(FromReceiver::ListEnd)
            }
            ToReceiver::Item { ndx, item } => self.item(ndx, &item),
            ToReceiver::Begin { ndx, item, head } => {
                self.ladder.check_transfer()?;
                self.transfer(inbox, ndx, &item, head)
            }
            ToReceiver::NotSent(ndx) => self.not_sent(ndx),
            ToReceiver::IoErrors(errors) => {
                self.ctx.add_io_errors(errors);
                Ok(())
            }
            ToReceiver::Done => self.done(),
            // Our own deletions count.
            ToReceiver::Deleted(_) => Ok(()),
            ToReceiver::Stats(stats) => {
                self.ladder.stats_seen();
                self.keep_stats(stats);
                Ok(())
            }
            ToReceiver::Token(_) | ToReceiver::Local(_) | ToReceiver::End { .. } => {
                Err(Failure::Protocol(PeerMisbehaved::Rule("file data without a file").into()))
            }
        }
    }

    fn site(&self) -> Site<'_> {
        Site {
            ctx: self.ctx,
            destination: self.destination,
            workshop: &self.workshop,
            backups: self.backups.as_ref(),
            partials: &self.partials,
        }
    }

    fn tell(&self, message: FromReceiver) -> Result<(), Failure> {
        self.generator.send(message).map_err(|_| Failure::Sibling)
    }

    /// Drops the duplicates of a local sender's list, and what its version would not carry; a
    /// remote link's decoder has done so.
    fn decoded(&self, segment: Arc<Segment>) -> Arc<Segment> {
        if self.ctx.session.direction == Direction::Receiving {
            return segment;
        }
        let version = self.ctx.session.version;
        let segment = segment.without_duplicates(Order::of(version)).map_or(segment, Arc::new);
        match version.has_nanoseconds() {
            true => segment,
            false => Arc::new(segment.without_nanoseconds()),
        }
    }

    /// `--munge-links`: makes the symlinks of a remote sender harmless. On one machine the option
    /// is the sender's.
    fn munge(&self, segment: Arc<Segment>) -> Arc<Segment> {
        let select = &self.ctx.options.select;
        if self.ctx.session.direction != Direction::Receiving {
            return segment;
        }
        if select.munge_links {
            return Arc::new(segment.map_link_targets(&|_, target| [MUNGED, target].concat()));
        }
        if select.confined_links {
            return Arc::new(segment.map_link_targets(&confined_target));
        }
        segment
    }

    /// `-m`: drops directories that hold nothing. One that a filter protects stays, and those that
    /// lead to it.
    fn prune(&self, segment: Arc<Segment>) -> Arc<Segment> {
        let options = &self.ctx.options;
        if !options.select.prune_empty_dirs || self.ctx.session.recursion != Recursion::Whole {
            return segment;
        }
        let rules = Chain::new(&options.select.filters, FilterSide::Receiver, options.delete.excluded);
        let is_kept = |entry: EntryRef<'_>| rules.verdict(entry.path(), true).is_excluded();
        Arc::new(segment.without_empty_dirs(&is_kept))
    }

    /// Changes the modes of a remote sender's list, if that is asked of this end (`--chmod`). The
    /// link's decoder has its own copy.
    fn rewritten(&self, segment: Arc<Segment>) -> Arc<Segment> {
        let chmod = &self.ctx.options.rewrite.chmod;
        if chmod.is_empty() || self.ctx.session.direction != Direction::Receiving {
            return segment;
        }
        Arc::new(segment.map_modes(|mode| chmod.apply(mode, users::umask())))
    }

    /// Takes what a segment brings beside its entries. Where both roles share the counters, the
    /// sender counts.
    fn learn(&mut self, segment: &Segment) {
        match segment.dir() {
            Some(_) => trace_list(self.ctx, WHO, segment),
            None => self.ctx.trace(Topic::Recv, 1, WHO, Trace::ReceiverStarts(segment.len())),
        }
        self.ctx.ids.learn(segment.id_names());
        if self.ctx.traces(Topic::Own, 2) {
            self.trace_ids(segment);
        }
        self.ctx.add_io_errors(segment.io_errors());
        unconverted::report_segment(self.ctx, segment);
        self.meter.add(segment);
        if self.ctx.session.direction != Direction::Receiving {
            return;
        }
        let stats = &self.ctx.stats;
        for (_, entry) in segment.iter().filter(|(_, entry)| !entry.is_blank()) {
            stats.listed.count(entry.kind());
            if matches!(entry.kind(), FileKind::Regular | FileKind::Symlink) {
                stats.total_size.add(entry.size());
            }
        }
    }

    /// Says what becomes of the ids that a segment names.
    fn trace_ids(&mut self, segment: &Segment) {
        let preserve = &self.ctx.options.preserve;
        for (_, entry) in segment.iter().filter(|(_, entry)| !entry.is_blank()) {
            let owner = preserve.owner.then(|| (IdKind::User, entry.uid()));
            let group = preserve.group.then(|| (IdKind::Group, entry.gid()));
            for (kind, id) in owner.into_iter().chain(group) {
                if !self.traced_ids.insert((kind == IdKind::User, id)) {
                    continue;
                }
                if kind == IdKind::Group
                    && self.traced_ids.insert((false, u32::MAX))
                    && !rustix::process::geteuid().is_root()
                {
                    let groups = users::groups();
                    self.ctx.trace(Topic::Own, 2, WHO, Trace::OwnGroups(&groups));
                }
                let named = |found: &&IdName| found.kind == kind && found.id == id;
                let name = segment.id_names().iter().find(named).map_or(&b""[..], |found| &found.name);
                // Nobody asks for the number of a user who cannot be had.
                if kind == IdKind::User && name.is_empty() && !preserve.super_user {
                    continue;
                }
                let to = match kind {
                    IdKind::User => self.ctx.ids.uid(id),
                    IdKind::Group => self.ctx.ids.gid(id).gid,
                };
                self.ctx.trace(Topic::Own, 2, WHO, Trace::Mapped { kind, id, name, to });
            }
        }
    }

    fn keep_stats(&self, stats: TransferStats) {
        let ours = &self.ctx.stats;
        ours.total_size.set(stats.total_size);
        ours.list_build_ms.set(stats.list_build_ms);
        ours.list_transfer_ms.set(stats.list_transfer_ms);
    }

    /// Reports an item without data.
    fn item(&mut self, ndx: Ndx, item: &Item) -> Result<(), Failure> {
        let found = self.list.find(ndx)?;
        self.meter.reach(&self.list, ndx);
        self.ctx.trace(Topic::Recv, 1, WHO, Trace::Received(found.entry().path().as_bytes()));
        if self.ctx.reporter == Reporter::Receiver {
            let entry = found.entry();
            self.count_new(entry, item);
            let long_name = self.ctx.long_name(ndx, Moment::Finished);
            self.ctx.report(Event::Item(ItemReport {
                moment: Moment::Finished,
                ndx,
                entry,
                item,
                has_group: self.has_group(entry),
                long_name: long_name.as_deref().unwrap_or(entry.path().as_bytes()),
                data_bytes: 0,
                sum_bytes: 0,
                sum: None,
            }));
        }
        if item.flags.contains(ItemFlags::REPORT_XATTR) && !self.ctx.options.dry_run {
            let entry = found.entry();
            self.keep_xattrs(entry, item);
            let is_right = self.site().set_xattrs(entry);
            if self.ctx.options.place.remove == Remove::SourceFiles && !entry.is_dir() {
                let fate = if is_right { Fate::Placed } else { Fate::Failed };
                return self.tell(FromReceiver::Finished(ndx, fate));
            }
        }
        Ok(())
    }

    /// Keeps the long values of attributes that came with an item.
    fn keep_xattrs(&self, entry: EntryRef<'_>, item: &Item) {
        if let Some(list) = entry.xattrs() {
            self.ctx.xattr_store.keep(list, item.xattrs.values());
        }
    }

    /// The reporting role counts what did not exist before.
    fn count_new(&self, entry: EntryRef<'_>, item: &Item) {
        if self.ctx.reporter == Reporter::Receiver && item.flags.contains(ItemFlags::IS_NEW) {
            self.ctx.stats.created.count(entry.kind());
        }
    }

    /// Whether an entry's group can be given here. In a local run the sender's view is reported.
    fn has_group(&self, entry: EntryRef<'_>) -> bool {
        let is_asked = self.ctx.session.direction == Direction::Receiving && self.ctx.options.preserve.group;
        !is_asked || self.ctx.ids.gid(entry.gid()).settable
    }

    fn not_sent(&mut self, ndx: Ndx) -> Result<(), Failure> {
        let found = self.list.find(ndx)?;
        if found.position.is_none() {
            return Err(Failure::Protocol(PeerMisbehaved::UnknownIndex(ndx).into()));
        }
        self.tell(FromReceiver::Finished(ndx, Fate::NotSent))
    }

    fn done(&mut self) -> Result<(), Failure> {
        let (count, step) = self.ladder.done()?;
        if let Some(phase) = self.ladder.phase() {
            self.ctx.trace(Topic::Recv, 1, WHO, Trace::ReceiverPhase(phase));
        }
        let is_whole = self.ctx.session.recursion == Recursion::Whole;
        if self.ladder.ended_list() || is_whole && self.ladder.ended_phase() {
            self.meter.list_done(self.ctx, &self.list);
        }
        match step {
            Step::ListFinished => drop(self.list.release_oldest()),
            Step::RedoFinished => self.place_delayed()?,
            Step::Other => {}
        }
        if self.ladder.is_over() {
            // The generator's goodbye must not overtake a server's last word.
            if self.ctx.session.side == Side::Server {
                self.ctx.trace(Topic::Recv, 1, WHO, Trace::ReceiverEnds);
            }
            // The generator may already have ended on the last but one.
            let _ = self.generator.send(FromReceiver::DoneSeen(count));
            return Ok(());
        }
        self.tell(FromReceiver::DoneSeen(count))
    }

    /// Moves the files of `--delay-updates` into place.
    fn place_delayed(&mut self) -> Result<(), Failure> {
        for delayed in std::mem::take(&mut self.delayed) {
            let ndx = delayed.ndx;
            let placed = self.site().place_delayed(&delayed)?;
            self.tell(FromReceiver::Finished(ndx, if placed { Fate::Placed } else { Fate::Failed }))?;
        }
        Ok(())
    }
}

/// Who speaks here.
const WHO: Who = Who::Receiver;

#[cfg(test)]
mod tests;
