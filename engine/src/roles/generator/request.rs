//! Everything that is not a directory: the gates, and asking for file data.
//!
//! Wire: protocol/doc/20-transfer.md#7-does-the-file-need-an-update-quick-check-and-gates

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};
use suisei_protocol::message::ToSender;
use suisei_protocol::transfer::{BasisKind, Item, ItemFlags};

use super::alternate::{Alternate, Offer};
use super::basis::Older;
use super::decide::{gate, is_same, judge, presence, Presence, Rules, Verdict};
use super::hardlink::Turn;
use super::link::Reached;
use super::place::Spot;
use super::{itemize, segments, Generator};
use crate::delta::Strength;
use crate::observe::{Event, Note, Who};
use crate::options::Remove;
use crate::roles::attributes;
use crate::trace::{Topic, Trace};
use crate::tree::Devices;
use crate::Failure;

/// Most unanswered requests while sources are to be removed; fewer if they are large.
///
/// Wire: protocol/doc/20-transfer.md#15---remove-source-files-msg_success
const WINDOW: usize = 50;
/// Most unanswered requests whose files are large together.
const LARGE_WINDOW: usize = 10;
/// Bytes from which requests are large together.
const LARGE: u64 = 128 * 1024;

/// Bytes of a file whose reading may take long: earlier requests go first.
const SLOW: u64 = 1 << 20;

/// What came of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in place, and was there already.
    Done,
    /// It was made by the generator.
    Made,
    /// Its data was asked for.
    Asked,
    /// It is not to be there: an alternate directory has it.
    LeftOut,
    /// It waits for a later member of its hard-link group.
    Postponed,
    /// It was skipped, or failed.
    Passed,
}

impl Generator<'_> {
    /// Handles an entry that is not a directory.
    pub(super) fn file(&mut self, ndx: Ndx, entry: EntryRef<'_>, path: RelPath<'_>) -> Result<(), Failure> {
        if entry.kind() == FileKind::Missing {
            self.missing_argument(path);
            return Ok(());
        }
        let key = self.links.key(entry);
        let outcome = match self.disk.hides(path, false) && !self.dirs.is_closed_above(path) {
            true => {
                self.disk.refuse("ERROR: daemon refused to receive file \"", path);
                Outcome::Passed
            }
            false => self.gates(ndx, entry, path)?,
        };
        match (outcome, key) {
            (Outcome::Made, _) if entry.kind() == FileKind::Symlink => {
                self.confirm(ndx)?;
                self.lead(ndx, entry, path)?;
            }
            (Outcome::Done | Outcome::Made, _) => {
                self.confirm_unsent(ndx)?;
                self.lead(ndx, entry, path)?;
            }
            // A dry run gets no answer: what was asked for counts as finished.
            (Outcome::Asked, Some(_)) if self.disk.is_dry() => self.lead(ndx, entry, path)?,
            (Outcome::Asked, Some(key)) => self.links.asked(key, ndx),
            (Outcome::LeftOut, key) => {
                self.confirm(ndx)?;
                if let Some(key) = key {
                    self.give_up(key, ndx);
                }
            }
            (Outcome::Passed, Some(key)) => self.give_up(key, ndx),
            (Outcome::Postponed, _) => self.segments.hold(ndx),
            (Outcome::Asked | Outcome::Passed, None) => {}
        }
        Ok(())
    }

    /// Comes back to a member of a hard-link group that stood back for others, which failed.
    pub(super) fn revisit(&mut self, ndx: Ndx) -> Result<(), Failure> {
        let Some(segment) = self.segments.find(ndx) else { return Ok(()) };
        let Some(entry) = segments::entry(&segment, ndx) else { return Ok(()) };
        self.file(ndx, entry, self.destination.path(entry))
    }

    /// Asks again for a file that failed its verification.
    ///
    /// Wire: protocol/doc/20-transfer.md#51-redo-phase
    pub(super) fn ask_again(&mut self, ndx: Ndx) -> Result<(), Failure> {
        let Some(segment) = self.segments.find(ndx) else { return Ok(()) };
        let Some(entry) = segments::entry(&segment, ndx) else { return Ok(()) };
        let path = self.destination.path(entry);
        let asked = match self.look(path) {
            Some(spot) => self.regular(ndx, entry, path, spot, Strength::Full)? == Outcome::Asked,
            None => false,
        };
        if let (false, Some(key)) = (asked, self.links.key(entry)) {
            self.give_up(key, ndx);
        }
        Ok(())
    }

    fn gates(&mut self, ndx: Ndx, entry: EntryRef<'_>, path: RelPath<'_>) -> Result<Outcome, Failure> {
        if self.dirs.is_closed_above(path) {
            return Ok(Outcome::Passed);
        }
        let Some(mut spot) = self.look(path) else { return Ok(Outcome::Passed) };
        self.disk.compare_acls(&mut spot, path, entry);
        match presence(&self.rules, entry.kind(), spot.kind()) {
            Presence::Takes => {}
            Presence::NotCreating => {
                self.ctx.report(Event::Note(path, Note::NotCreating(entry.kind())));
                return Ok(Outcome::Passed);
            }
            Presence::Exists => {
                let why = self.why_existing_stays(entry, path, &spot);
                self.ctx.report(Event::Note(path, Note::Exists(why)));
                return Ok(Outcome::Passed);
            }
        }
        if let Some(key) = self.links.key(entry) {
            match self.links.turn(key, ndx) {
                Turn::Proceed => {}
                Turn::Wait => return Ok(Outcome::Postponed),
                Turn::Link(leader) => {
                    self.link_to(ndx, entry, path, leader.as_path(), Reached::ByWalk)?;
                    // The group is led already, and the item confirmed.
                    return Ok(Outcome::Passed);
                }
            }
        }
        let preserve = &self.ctx.options.preserve;
        match entry.kind() {
            FileKind::Regular => self.regular(ndx, entry, path, spot, Strength::Short),
            FileKind::Symlink if preserve.links && entry.link_target().is_some() => {
                self.symlink(ndx, entry, path, spot)
            }
            kind if kind.is_device() && preserve.devices && preserve.super_user && !preserve.drop_devices => {
                self.node(ndx, entry, path, spot)
            }
            kind if kind.is_special() && preserve.specials && !preserve.drop_devices => {
                self.node(ndx, entry, path, spot)
            }
            _ => {
                self.ctx.report(Event::Note(path, Note::NonRegular));
                Ok(Outcome::Passed)
            }
        }
    }

    /// Decides about a regular file, and sets its attributes or asks for its data.
    fn regular(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        mut spot: Spot,
        strength: Strength,
    ) -> Result<Outcome, Failure> {
        let rules = self.rules_for(strength);
        if self.ctx.options.place.write_devices {
            self.see_device(path, &mut spot);
        }
        let existing = spot.of_kind(FileKind::Regular).copied();
        if existing.is_some_and(|meta| meta.size >= SLOW) {
            self.outbox.flush()?;
        }
        if let Some(note) = gate(&rules, entry, existing.as_ref()) {
            self.ctx.report(Event::Note(path, note));
            return Ok(Outcome::Passed);
        }
        let mut alternate = None;
        if !self.destination.alternates.is_empty() {
            if !self.clear_the_way(path, &mut spot) {
                return Ok(Outcome::Passed);
            }
            match self.offer(ndx, entry, path, &spot, &rules)? {
                Offer::Nothing => {}
                Offer::Basis(found) => alternate = Some(found),
                Offer::Settled(outcome) => return Ok(outcome),
            }
        }
        let verdict = judge(&rules, entry, existing.as_ref(), || self.has_listed_sum(entry, path, &spot));
        match verdict {
            Verdict::Skip(note) => {
                self.ctx.report(Event::Note(path, note));
                Ok(Outcome::Passed)
            }
            Verdict::NothingToAppend => Ok(Outcome::Passed),
            Verdict::UpToDate => {
                self.up_to_date(ndx, entry, path, spot)?;
                Ok(Outcome::Done)
            }
            Verdict::Transfer => {
                if !self.clear_the_way(path, &mut spot) {
                    return Ok(Outcome::Passed);
                }
                self.request(ndx, entry, path, &spot, alternate, strength)
            }
        }
    }

    fn rules_for(&self, strength: Strength) -> Rules {
        match strength {
            Strength::Short => self.rules,
            Strength::Full => self.rules.for_redo(),
        }
    }

    /// `--write-devices`: a device in a file's place is the file.
    fn see_device(&self, path: RelPath<'_>, spot: &mut Spot) {
        if let (Some(dir), Some(true)) = (&spot.dir, spot.kind().map(FileKind::is_device)) {
            spot.meta = dir.stat_as(path.name(), Devices::AreContent).ok().flatten();
        }
    }

    /// Removes what is no regular file. Whether the way is free.
    fn clear_the_way(&mut self, path: RelPath<'_>, spot: &mut Spot) -> bool {
        if let Some(meta) = spot.meta.filter(|meta| meta.kind() != FileKind::Regular) {
            if !self.deletion.make_way(self.disk, path, &meta, FileKind::Regular) {
                return false;
            }
            spot.meta = None;
        }
        true
    }

    /// Chooses the basis and asks for the data.
    fn request(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        alternate: Option<Alternate>,
        strength: Strength,
    ) -> Result<Outcome, Failure> {
        let rules = self.rules_for(strength);
        let older = self.older(entry, path, spot, alternate.as_ref());
        if let (Older::Nothing, Some(key)) = (&older, self.links.key(entry)) {
            if strength == Strength::Short && self.links.postpone(key, ndx) {
                return Ok(Outcome::Postponed);
            }
        }
        self.similar.asked(path);
        let append = rules.append && spot.meta.is_some();
        let xname = match &older {
            Older::Similar(choice) => Some(choice.name.clone()),
            _ => None,
        };
        let Some(basis) = self.basis(path, spot, older, append, strength) else {
            return Ok(Outcome::Passed);
        };
        let mut action = ItemFlags::TRANSFER;
        if rules.checksum {
            action |= ItemFlags::REPORT_CHANGE;
        }
        let counted = spot.meta.or(alternate.map(|found| found.meta));
        let existing = counted.as_ref().filter(|_| !basis.unreadable);
        let mut item = itemize::item(self.ctx, entry, existing, action);
        item.basis = basis.kind;
        item.flags.set(ItemFlags::BASIS_TYPE_FOLLOWS, item.basis.is_some());
        item.xname = xname.filter(|_| matches!(item.basis, Some(BasisKind::Fuzzy(_))));
        item.flags.set(ItemFlags::XNAME_FOLLOWS, item.xname.is_some());
        spot.note_acls(&mut item);
        self.note_xattrs(&mut item, entry, path, Some(spot).filter(|_| !basis.unreadable));
        if !self.ctx.session.version.has_item_flags() {
            // All that an old sender could echo, also on one machine.
            item = Item::new(ItemFlags::TRANSFER);
        }
        if !self.disk.is_dry() {
            self.wait_for_window()?;
            self.segments.hold(ndx);
            self.in_flight.insert(ndx, entry.size());
            self.in_flight_bytes = self.in_flight_bytes.saturating_add(entry.size());
        }
        if basis.signature.head.count > 0 {
            let summed = Trace::Summed(ndx, basis.signature.head);
            self.ctx.trace(Topic::Deltasum, 2, Who::Generator, summed);
        }
        self.outbox.send(ToSender::Want { ndx, item, basis: basis.signature })?;
        Ok(Outcome::Asked)
    }

    /// While sources are to be removed, few files may be under way at once.
    fn wait_for_window(&mut self) -> Result<(), Failure> {
        let place = &self.ctx.options.place;
        if place.remove == Remove::Nothing || place.delay_updates || self.walk_is_over {
            return Ok(());
        }
        while self.in_flight.len() >= WINDOW
            || (self.in_flight.len() >= LARGE_WINDOW && self.in_flight_bytes >= LARGE)
        {
            self.wait()?;
        }
        Ok(())
    }

    /// The content of a regular file is right: attributes follow, and a partial file is of no use
    /// any more.
    fn up_to_date(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        mut spot: Spot,
    ) -> Result<(), Failure> {
        if let (Some(dir), Some(meta), false) = (&spot.dir, spot.meta, self.disk.is_dry()) {
            spot.meta = Some(self.disk.dress(dir, path, entry, Some(&meta), &meta, spot.acls));
            self.drop_partial(path);
        }
        self.unchanged(ndx, entry, path, &spot)
    }

    /// Reports an item whose content or value is right.
    pub(super) fn unchanged(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
    ) -> Result<(), Failure> {
        let mut item = itemize::item(self.ctx, entry, spot.meta.as_ref(), ItemFlags::empty());
        spot.note_acls(&mut item);
        self.note_xattrs(&mut item, entry, path, Some(spot));
        self.note_unchanged(path, &item);
        self.send_item(ndx, entry, item)
    }

    pub(super) fn has_listed_sum(&self, entry: EntryRef<'_>, path: RelPath<'_>, spot: &Spot) -> bool {
        entry.checksum().is_some_and(|sum| self.disk.has_sum(spot, path, sum))
    }

    /// Says in which way an existing item differs that is left alone.
    fn why_existing_stays(&self, entry: EntryRef<'_>, path: RelPath<'_>, spot: &Spot) -> &'static str {
        let Some(meta) = spot.of_kind(entry.kind()) else { return "type change" };
        let same = match entry.kind() {
            FileKind::Regular => is_same(&self.rules, entry, meta, || self.has_listed_sum(entry, path, spot)),
            _ => self.has_same_value(entry, path, spot),
        };
        let is_dressed = attributes::differs(self.ctx, entry, meta).is_empty()
            && !spot.acls.any()
            && !self.has_other_xattrs(entry, path, spot);
        if same && is_dressed {
            "uptodate"
        } else if same {
            "attr change"
        } else if self.rules.checksum {
            "sum change"
        } else {
            "file change"
        }
    }

    fn missing_argument(&mut self, path: RelPath<'_>) {
        if let Some(kind) = self.look(path).and_then(|spot| spot.kind()) {
            self.deletion.delete_missing(self.disk, path, kind);
        }
    }
}
