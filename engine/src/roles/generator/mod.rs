//! The generator: decides about every entry, asks, creates, deletes.
//!
//! One thread. It walks the segments in order ([`walk`]), and for each entry compares what is
//! listed with what is there ([`decide`]): files are asked for ([`request`], [`basis`]), everything
//! else it makes itself ([`create`], [`directory`], [`link`]). It waits only where the protocol
//! says so, with everything it wrote on its way. The end of the run is a ladder of DONEs
//! ([`phases`]).
//! Wire: protocol/doc/20-transfer.md#7-does-the-file-need-an-update-quick-check-and-gates, protocol/doc/11-incremental-recursion.md#5-the-generators-walk

mod alternate;
mod basis;
mod create;
mod decide;
mod delete;
mod directory;
mod fuzzy;
mod hardlink;
mod itemize;
mod link;
mod phases;
mod place;
mod request;
mod segments;
mod walk;
mod xattrs;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;

use suisei_protocol::flist::{EntryRef, Ndx, RelPath, Segment};
use suisei_protocol::message::{Fate, FromReceiver, ToSender};
use suisei_protocol::session::{Direction, Recursion, Side};
use suisei_protocol::transfer::{Item, ItemFlags};

use super::backup::Backups;
use super::destination::Destination;
use super::finish::Finisher;
use super::receiver::partial::Partials;
use crate::delta::Signer;
use crate::link::Outbox;
use crate::observe::{Event, ItemReport, Moment, Note, Who};
use crate::options::{ItemDetail, Remove};
use crate::trace::{trace_list, Topic, Trace};
use crate::{Context, Failure};

use decide::Rules;
use delete::Deletion;
use directory::Dirs;
use fuzzy::Similar;
use hardlink::{GroupKey, Groups};
use place::Disk;
use segments::Segments;

/// Runs the generator to the end of the session. Segments arrive through `inbox`.
pub fn run(
    ctx: &Context,
    destination: &Destination,
    inbox: Receiver<FromReceiver>,
    outbox: &mut impl Outbox<ToSender>,
) -> Result<(), Failure> {
    let backups = Backups::new(ctx);
    let disk = Disk { ctx, tree: &destination.tree, backups: backups.as_ref() };
    Generator::new(ctx, destination, disk, inbox, outbox).run()
}

/// Entries of the walk between two flushes.
const STEPS_PER_FLUSH: u32 = 32;

/// What is due at the next point where the walk pauses.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// A member of a hard-link group is in place: link the others to it.
    Lead(Ndx),
    /// Members of a group failed: ask for the next one.
    Fallback(GroupKey),
    /// A file failed its verification: ask again.
    Again(Ndx),
}

/// The generator's state.
struct Generator<'a> {
    ctx: &'a Context,
    destination: &'a Destination,
    disk: Disk<'a>,
    inbox: Receiver<FromReceiver>,
    outbox: &'a mut dyn Outbox<ToSender>,
    rules: Rules,
    signer: Signer,
    segments: Segments,
    dirs: Dirs,
    links: Groups,
    deletion: Deletion,
    finisher: Finisher,
    partials: Partials<'a>,
    similar: Similar,
    /// Files that were asked for and not answered, with their sizes; none in a dry run.
    in_flight: HashMap<Ndx, u64>,
    in_flight_bytes: u64,
    /// Verified files that wait for the phase of delayed updates.
    delayed: BTreeSet<Ndx>,
    due: VecDeque<Due>,
    /// Device and inode of linked items whose attributes were found to differ.
    noted_inodes: HashSet<(u64, u64)>,
    steps: u32,
    /// Segments that the walk is past.
    walked: u32,
    /// Segments that a replay cannot go on without.
    hurried: u32,
    dones_sent: u32,
    dones_seen: u32,
    /// Whether the walk is over: no flow control from here on.
    walk_is_over: bool,
}

impl<'a> Generator<'a> {
    fn new(
        ctx: &'a Context,
        destination: &'a Destination,
        disk: Disk<'a>,
        inbox: Receiver<FromReceiver>,
        outbox: &'a mut dyn Outbox<ToSender>,
    ) -> Self {
        Generator {
            ctx,
            destination,
            disk,
            inbox,
            outbox,
            rules: Rules::of(&ctx.options),
            signer: Signer::new(&ctx.session, ctx.options.delta.block_size),
            segments: Segments::default(),
            dirs: Dirs::default(),
            links: Groups::new(ctx.session.recursion == Recursion::Whole),
            deletion: Deletion::new(ctx),
            finisher: Finisher::default(),
            partials: Partials::new(ctx, destination),
            similar: Similar::default(),
            in_flight: HashMap::new(),
            in_flight_bytes: 0,
            delayed: BTreeSet::new(),
            due: VecDeque::new(),
            noted_inodes: HashSet::new(),
            steps: 0,
            walked: 0,
            hurried: 0,
            dones_sent: 0,
            dones_seen: 0,
            walk_is_over: false,
        }
    }

    fn run(mut self) -> Result<(), Failure> {
        self.ctx.trace(Topic::Genr, 1, Who::Generator, Trace::GeneratorStarts);
        let report = &self.ctx.options.report;
        if report.list_only {
            self.list()?;
        } else {
            self.ctx.report(Event::DeltaMode { enabled: !self.ctx.options.delta.whole_file });
            match self.ctx.session.recursion {
                Recursion::Whole => self.walk_whole()?,
                Recursion::Incremental => self.walk_incremental()?,
            }
        }
        self.walk_is_over = true;
        self.trace_phase(1);
        self.climb_ladder()
    }

    fn trace_phase(&self, phase: u8) {
        self.ctx.trace(Topic::Genr, 1, Who::Generator, Trace::GeneratorPhase(phase));
    }

    /// Waits for the next message and takes it, with everything written on its way.
    fn wait(&mut self) -> Result<(), Failure> {
        self.outbox.flush()?;
        self.ctx.check_interrupt()?;
        // The receiver is gone only when something ended it, which it reports.
        let message = self.inbox.recv().map_err(|_| Failure::Sibling)?;
        self.take(message)
    }

    /// Takes the messages that are there, without waiting, and lets requests go now and then: a
    /// walk over files that are up to date never waits.
    fn drain(&mut self) -> Result<(), Failure> {
        self.ctx.check_interrupt()?;
        self.steps = self.steps.wrapping_add(1);
        if self.steps % STEPS_PER_FLUSH == 0 {
            self.outbox.flush()?;
        }
        loop {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message)?,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(Failure::Sibling),
            }
        }
    }

    fn take(&mut self, message: FromReceiver) -> Result<(), Failure> {
        match message {
            FromReceiver::Segment(segment) => self.learn(segment),
            FromReceiver::Walk(segments) => self.hurried = self.hurried.max(segments),
            FromReceiver::ListEnd => {
                if self.ctx.session.recursion == Recursion::Incremental {
                    self.ctx.trace(Topic::Flist, 3, Who::Generator, Trace::ListsEnd);
                }
                self.segments.end();
            }
            FromReceiver::DoneSeen(count) => self.dones_seen = self.dones_seen.max(count),
            FromReceiver::Finished(ndx, fate) => self.finished(ndx, fate)?,
        }
        Ok(())
    }

    fn learn(&mut self, segment: Arc<Segment>) {
        if segment.dir().is_some() {
            trace_list(self.ctx, Who::Generator, &segment);
        }
        self.ctx.ids.learn(segment.id_names());
        self.ctx.add_io_errors(segment.io_errors());
        if self.ctx.options.preserve.hard_links {
            self.links.learn(&segment);
            // Stock reads ahead for links, and learns of errors early then.
            self.deletion.learn(segment.io_errors());
        }
        self.segments.push(segment);
    }

    /// Takes what became of a file that was asked for. Others are none of ours.
    fn finished(&mut self, ndx: Ndx, fate: Fate) -> Result<(), Failure> {
        let was_delayed = self.delayed.remove(&ndx);
        match self.in_flight.remove(&ndx) {
            Some(size) => self.in_flight_bytes = self.in_flight_bytes.saturating_sub(size),
            None if was_delayed => {}
            None => return Ok(()),
        }
        match fate {
            Fate::Placed => self.succeeded(ndx),
            Fate::Delayed => {
                self.delayed.insert(ndx);
                Ok(())
            }
            Fate::Redo => {
                self.due.push_back(Due::Again(ndx));
                Ok(())
            }
            Fate::Failed | Fate::NotSent => {
                self.failed(ndx);
                Ok(())
            }
        }
    }

    /// A file that was asked for is in place. Its segment stays held while links to it are due.
    fn succeeded(&mut self, ndx: Ndx) -> Result<(), Failure> {
        self.confirm(ndx)?;
        match self.group_of(ndx) {
            Some(_) => self.due.push_back(Due::Lead(ndx)),
            None => self.segments.release(ndx),
        }
        Ok(())
    }

    fn failed(&mut self, ndx: Ndx) {
        if let Some(key) = self.group_of(ndx) {
            self.give_up(key, ndx);
        }
        self.segments.release(ndx);
    }

    /// Gives up a member of a hard-link group.
    fn give_up(&mut self, key: GroupKey, ndx: Ndx) {
        if self.links.give_up(key, ndx) {
            self.due.push_back(Due::Fallback(key));
        }
    }

    fn group_of(&self, ndx: Ndx) -> Option<GroupKey> {
        let segment = self.segments.find(ndx)?;
        self.links.key(segments::entry(&segment, ndx)?)
    }

    /// Tells the sender that an item is in place whose data did not have to be sent.
    fn confirm_unsent(&mut self, ndx: Ndx) -> Result<(), Failure> {
        match self.ctx.options.place.remove {
            Remove::SourceFiles => self.confirm(ndx),
            Remove::Nothing | Remove::SentFiles => Ok(()),
        }
    }

    /// Whether the receiver says when the attributes of an item are set: its source, from which they
    /// may still be read, is to be removed then.
    fn waits_for_xattrs(&self, entry: EntryRef<'_>, item: &Item) -> bool {
        let options = &self.ctx.options;
        options.place.remove == Remove::SourceFiles
            && !options.dry_run
            && item.flags.contains(ItemFlags::REPORT_XATTR)
            && !entry.is_dir()
    }

    /// Tells the sender that a file is in place, if it is to be removed there. One that waits for
    /// its attributes is confirmed when they are set.
    fn confirm(&mut self, ndx: Ndx) -> Result<(), Failure> {
        let options = &self.ctx.options;
        let removes = options.place.remove != Remove::Nothing && !options.dry_run;
        if removes && !self.in_flight.contains_key(&ndx) {
            self.outbox.send(ToSender::Succeeded(ndx))?;
        }
        Ok(())
    }

    /// Does what is due, which may make more due.
    fn settle(&mut self) -> Result<(), Failure> {
        while let Some(due) = self.due.pop_front() {
            self.ctx.check_interrupt()?;
            match due {
                Due::Lead(ndx) => {
                    self.lead_finished(ndx)?;
                    self.segments.release(ndx);
                }
                Due::Fallback(key) => {
                    if let Some(ndx) = self.links.candidate(key) {
                        self.revisit(ndx)?;
                        self.segments.release(ndx);
                    }
                }
                Due::Again(ndx) => {
                    self.ask_again(ndx)?;
                    self.segments.release(ndx);
                }
            }
        }
        Ok(())
    }

    /// Sends an item without data, if it is worth a message.
    fn send_item(&mut self, ndx: Ndx, entry: EntryRef<'_>, item: Item) -> Result<(), Failure> {
        if !itemize::is_worth_sending(self.ctx, &item) {
            return Ok(());
        }
        if !self.ctx.session.version.has_item_flags() {
            self.report_old_item(ndx, entry, &item);
            return Ok(());
        }
        if self.waits_for_xattrs(entry, &item) {
            self.segments.hold(ndx);
            self.in_flight.insert(ndx, 0);
        }
        self.outbox.send(ToSender::Item { ndx, item })
    }

    /// Below 29 there is no message for items without data: the generator reports them itself.
    fn report_old_item(&self, ndx: Ndx, entry: EntryRef<'_>, item: &Item) {
        let options = &self.ctx.options;
        let flags = item.flags;
        // The client of a pull has a format for everything.
        let is_named = self.is_pull() || entry.is_dir() || flags.contains(ItemFlags::LOCAL_CHANGE);
        let is_link_made = item.xname.as_ref().is_some_and(|name| !name.is_empty());
        let is_worth =
            !flags.significant().is_empty() || is_link_made || options.report.items == ItemDetail::All;
        if !is_named || !is_worth {
            return;
        }
        let long_name = entry.path().as_bytes();
        let moment = Moment::Finished;
        self.ctx.report(Event::Item(ItemReport {
            moment,
            ndx,
            entry,
            item,
            has_group: true,
            long_name,
            data_bytes: 0,
            sum_bytes: 0,
            sum: None,
        }));
    }

    /// Says by a note what became of an item that is no directory and whose content is right, with
    /// `-vv`, unless an itemized line does.
    fn note_unchanged(&self, path: RelPath<'_>, item: &Item) {
        if self.notes_unchanged() {
            // Like stock, which does not look at extended attributes here.
            let is_right = (item.flags.significant() - ItemFlags::REPORT_XATTR).is_empty();
            self.ctx.report(Event::Note(path, if is_right { Note::UpToDate } else { Note::Adjusted }));
        }
    }

    /// Whether notes, rather than itemized lines, tell of what is right already.
    fn notes_unchanged(&self) -> bool {
        let report = &self.ctx.options.report;
        let has_items = self.ctx.session.version.has_item_flags() || self.is_pull();
        let itemized = report.items == ItemDetail::All && has_items;
        report.up_to_date && !itemized
    }

    fn is_pull(&self) -> bool {
        let session = &self.ctx.session;
        (session.side, session.direction) == (Side::Client, Direction::Receiving)
    }

    fn send_done(&mut self) -> Result<(), Failure> {
        self.dones_sent += 1;
        self.outbox.send(ToSender::Done)
    }
}

#[cfg(test)]
mod tests;
