//! Items that an alternate directory has: left out, copied or linked instead of asked for, or the
//! basis of what is asked for.
//!
//! Wire: protocol/doc/20-transfer.md#8---compare-dest---copy-dest---link-dest

use std::io;
use std::sync::Arc;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};
use suisei_protocol::transfer::{Item, ItemFlags};

use super::create::is_of_family;
use super::decide::{is_same, Rules};
use super::place::Spot;
use super::request::Outcome;
use super::{itemize, Generator};
use crate::failure::reason;
use crate::observe::{Class, Event, Note, Who};
use crate::options::{AlternateKind, ItemDetail, Xattrs};
use crate::roles::{acls, attributes};
use crate::sys::copy::{copy_contents_watched, Holes};
use crate::tree::{Dir, HeldItem, Meta};
use crate::xattrs::{self, xattrs_differ, Target};
use crate::Failure;

/// How well an alternate item fits its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It is of the same kind.
    Kind,
    /// Its content or value is right, too.
    Value,
    /// So are all attributes that are kept.
    Everything,
}

/// What an alternate directory has in the place of an entry.
#[derive(Debug, Clone)]
pub(super) struct Alternate {
    /// Which directory, from 0.
    pub(super) number: usize,
    /// The directory that holds it.
    pub(super) dir: Arc<Dir>,
    pub(super) meta: Meta,
    pub(super) fit: Fit,
}

/// What the alternate directories do for a regular file.
#[derive(Debug)]
pub(super) enum Offer {
    Nothing,
    /// A file to start from.
    Basis(Alternate),
    /// The file is dealt with.
    Settled(Outcome),
}

impl Generator<'_> {
    /// Returns the best fitting item of the alternate directories: the first one that fits entirely,
    /// else the first of the best.
    pub(super) fn alternate(
        &self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        is_same: &dyn Fn(&Spot, &Meta) -> bool,
    ) -> Option<Alternate> {
        let alternates = &self.destination.alternates;
        let mut best: Option<Alternate> = None;
        for number in 0..alternates.len() {
            let Some(dir) = alternates.parent(number, path) else { continue };
            let Ok(Some(meta)) = dir.stat(path.name()) else { continue };
            if !is_of_family(meta.kind(), entry.kind()) {
                continue;
            }
            let spot = Spot { dir: Some(dir.clone()), meta: Some(meta), ..Spot::default() };
            let fit = match is_same(&spot, &meta) {
                false => Fit::Kind,
                true if self.is_alike(entry, path, &spot, &dir, &meta) => Fit::Everything,
                true => Fit::Value,
            };
            if best.as_ref().is_none_or(|best| fit > best.fit) {
                best = Some(Alternate { number, dir, meta, fit });
            }
            if fit == Fit::Everything {
                break;
            }
        }
        best
    }

    /// Whether all attributes that are kept are equal; in stock the time of a directory counts even
    /// under `-O`.
    fn is_alike(&self, entry: EntryRef<'_>, path: RelPath<'_>, spot: &Spot, dir: &Dir, meta: &Meta) -> bool {
        let counts_time = entry.is_dir() && self.ctx.options.preserve.times;
        attributes::differs(self.ctx, entry, meta).is_empty()
            && !acls::compare(self.ctx, entry, dir, path.name(), meta).any()
            && (!counts_time || attributes::same_time(entry, meta, self.ctx.options.compare.modify_window))
            && (self.ctx.options.preserve.xattrs == Xattrs::Off || !self.has_other_xattrs(entry, path, spot))
    }

    /// Takes a regular file from the alternate directories, if they have it. What exists gives way
    /// only to a file that fits entirely.
    pub(super) fn offer(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        rules: &Rules,
    ) -> Result<Offer, Failure> {
        let kind = self.ctx.options.alternates.kind;
        if spot.meta.is_some() && kind == AlternateKind::Copy {
            return Ok(Offer::Nothing);
        }
        let same =
            |spot: &Spot, meta: &Meta| is_same(rules, entry, meta, || self.has_listed_sum(entry, path, spot));
        let Some(found) = self.alternate(entry, path, &same) else { return Ok(Offer::Nothing) };
        if let Some(meta) = &spot.meta {
            if found.fit < Fit::Everything || meta.is_same_file(&found.meta) {
                return Ok(Offer::Nothing);
            }
        }
        if found.fit == Fit::Everything {
            if let Some(outcome) = self.without_copy(ndx, entry, path, spot, &found)? {
                return Ok(Offer::Settled(outcome));
            }
        }
        match found.fit {
            Fit::Kind => Ok(Offer::Basis(found)),
            _ if self.disk.is_dry() || self.copy_alternate(entry, path, spot, &found)? => {
                let mut item = itemize::item(self.ctx, entry, Some(&found.meta), ItemFlags::LOCAL_CHANGE);
                if self.xattrs_to_copy(entry, path, &found).is_none() {
                    self.note_xattrs(&mut item, entry, path, None);
                }
                if found.fit == Fit::Everything {
                    self.note_up_to_date(path, Note::UpToDate);
                }
                self.send_item(ndx, entry, item)?;
                Ok(Offer::Settled(Outcome::Done))
            }
            _ => Ok(Offer::Nothing),
        }
    }

    /// Leaves out or links what an alternate directory has entirely; nothing if it is to be made.
    pub(super) fn without_copy(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        found: &Alternate,
    ) -> Result<Option<Outcome>, Failure> {
        let (outcome, item) = match self.ctx.options.alternates.kind {
            AlternateKind::Copy => return Ok(None),
            AlternateKind::Compare => {
                if let (Some(dir), Some(_), false) = (&spot.dir, &spot.meta, self.disk.is_dry()) {
                    if let Err(error) = dir.unlink(path.name()) {
                        self.disk.function("delete_file: unlink(", path, &error);
                    }
                }
                (Outcome::LeftOut, Item::new(ItemFlags::empty()))
            }
            AlternateKind::Link => {
                if !self.disk.is_dry() {
                    // What cannot be linked is made like anything else.
                    if let Err(error) = self.link_alternate(path, spot, found) {
                        self.note_not_linked(entry, path, found, &error);
                        return Ok(None);
                    }
                }
                let flags = ItemFlags::LOCAL_CHANGE | ItemFlags::XNAME_FOLLOWS;
                (Outcome::Done, Item { xname: Some(Box::default()), ..Item::new(flags) })
            }
        };
        self.note_up_to_date(path, Note::UpToDate);
        if self.ctx.options.report.items == ItemDetail::All {
            self.send_item(ndx, entry, item)?;
        }
        Ok(Some(outcome))
    }

    fn link_alternate(&self, path: RelPath<'_>, spot: &Spot, found: &Alternate) -> io::Result<()> {
        let dir = self.disk.parent(spot, path)?;
        let name = path.name();
        match spot.meta {
            None => dir.hard_link(&found.dir, name, name),
            Some(_) => dir.replace(name, &mut |temp| dir.hard_link(&found.dir, name, temp)),
        }
    }

    /// Says why a file is no link; of symlinks and the like nothing is said, as in stock.
    fn note_not_linked(&self, entry: EntryRef<'_>, path: RelPath<'_>, found: &Alternate, error: &io::Error) {
        if entry.is_regular() {
            let from = self.destination.alternates.full_name(found.number, path);
            let to = self.disk.tree.full_name(path);
            let why = [b" failed: ", reason(error).as_bytes()].concat();
            let text = [b"\"", &to[..], b"\" => ", &from, &why].concat();
            self.ctx.report(Event::Note(path, Note::NotLinked(&text)));
        }
    }

    /// Copies a file of an alternate directory into place. A problem is reported; whether it went
    /// well.
    fn copy_alternate(
        &self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        found: &Alternate,
    ) -> Result<bool, Failure> {
        let (file, meta) = match found.dir.open_regular(path.name()) {
            Ok(open) => open,
            Err(error) => {
                let full = self.destination.alternates.full_name(found.number, path);
                self.disk.reason_at("open", &full, &error);
                return Ok(false);
            }
        };
        let copy = || -> io::Result<()> {
            let dir = self.disk.parent(spot, path)?;
            let temp = dir.create_temp(path.name(), entry.mode().permissions())?;
            let mut watch = |_| match self.ctx.check_interrupt() {
                Ok(()) => Ok(()),
                Err(_) => Err(io::ErrorKind::Interrupted.into()),
            };
            if copy_contents_watched(&file, temp.as_file(), meta.size, Holes::Keep, &mut watch)? < meta.size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let made = temp.meta()?;
            let want = attributes::wanted(self.ctx, entry, None, &made, Some(&dir));
            if let Err(failed) = temp.apply(&made, &want) {
                self.disk.not_applied(path, &failed);
            }
            if let Some(basis) = self.xattrs_to_copy(entry, path, found) {
                let name = || self.disk.tree.full_name(path);
                let target =
                    Target { item: &temp.xattrs(), basis: Some(&basis), name: &name, who: Who::Generator };
                xattrs::apply(self.ctx, entry, target);
            }
            if self.ctx.options.place.fsync {
                temp.as_file().sync_all()?;
            }
            temp.place(&dir, path.name())
        };
        let copied = copy();
        self.ctx.check_interrupt()?;
        if let Err(error) = &copied {
            let full = self.destination.alternates.full_name(found.number, path);
            let after = [b"\" => \"", path.as_bytes(), b"\""].concat();
            self.disk.pair_at(Class::Transfer, "copy_file \"", &full, &after, error);
        }
        Ok(copied.is_ok())
    }

    /// Returns the extended attributes of an alternate file that go with its content; nothing if the
    /// sender has to send some, which are then set when its answer comes.
    fn xattrs_to_copy<'f>(
        &self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        found: &'f Alternate,
    ) -> Option<HeldItem<'f>> {
        if self.ctx.options.preserve.xattrs == Xattrs::Off {
            return None;
        }
        let held = found.dir.xattrs(path.name(), false).ok()?;
        (!xattrs_differ(self.ctx, entry, Some(&held))).then_some(held)
    }

    /// Returns what counts as the older version of a new member of a hard-link group, whose leader
    /// is in place already: for `--link-dest`, only what is that very file.
    pub(super) fn alternate_of_link(
        &self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        leader: RelPath<'_>,
        there: Option<&Meta>,
    ) -> Option<Meta> {
        let alternates = &self.destination.alternates;
        let by_value = self.ctx.options.alternates.kind != AlternateKind::Link;
        let same = |spot: &Spot, meta: &Meta| match entry.kind() {
            FileKind::Regular => is_same(&self.rules, entry, meta, || self.has_listed_sum(entry, path, spot)),
            _ => self.has_same_value(entry, path, spot),
        };
        (0..alternates.len()).find_map(|number| {
            let dir = alternates.parent(number, path)?;
            let meta = dir.stat(path.name()).ok()??;
            let fits = if by_value {
                meta.kind() == entry.kind()
                    && same(&Spot { dir: Some(dir), meta: Some(meta), ..Spot::default() }, &meta)
            } else if self.disk.is_dry() {
                // The leader would be a link to what is there.
                let dir = alternates.parent(number, leader)?;
                dir.stat(leader.name()).ok()??.is_same_file(&meta)
            } else {
                there.is_some_and(|there| there.is_same_file(&meta))
            };
            fits.then_some(meta)
        })
    }

    /// Says with `-vv` that an item is up to date, unless an itemized line does.
    pub(super) fn note_up_to_date(&self, path: RelPath<'_>, note: Note<'_>) {
        if self.notes_unchanged() {
            self.ctx.report(Event::Note(path, note));
        }
    }
}
