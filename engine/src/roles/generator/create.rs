//! Symlinks, devices, pipes and sockets: made by the generator itself.
//!
//! Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file

use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};
use suisei_protocol::transfer::{Item, ItemFlags};

use super::alternate::Fit;
use super::place::Spot;
use super::request::Outcome;
use super::{itemize, Generator};
use crate::observe::{Class, Event, Note, Who};
use crate::source::links::is_unsafe;
use crate::trace::{Topic, Trace};
use crate::tree::Dir;
use crate::Failure;

impl Generator<'_> {
    /// Makes a symlink, or sees that it is right.
    pub(super) fn symlink(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: Spot,
    ) -> Result<Outcome, Failure> {
        let target = entry.link_target().unwrap_or_default();
        if self.ctx.options.select.safe_links && is_unsafe(target, path.as_bytes()) {
            self.ctx.report(Event::Note(path, Note::UnsafeLinkIgnored(target)));
            return Ok(Outcome::Passed);
        }
        let make = |dir: &Dir, name: &[u8]| dir.symlink(target, name);
        self.value(ndx, entry, path, spot, &make)
    }

    /// Makes a device, pipe or socket, or sees that it is right.
    pub(super) fn node(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: Spot,
    ) -> Result<Outcome, Failure> {
        let make = |dir: &Dir, name: &[u8]| {
            // Nobody else may use it before it has its owner and mode.
            let permissions = entry.mode().permissions() & 0o700;
            dir.mknod(name, entry.kind(), permissions, entry.rdev().unwrap_or_default())
        };
        self.value(ndx, entry, path, spot, &make)
    }

    /// Makes an item that is all value and no data, unless it is right already.
    fn value(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        mut spot: Spot,
        make: &dyn Fn(&Dir, &[u8]) -> io::Result<()>,
    ) -> Result<Outcome, Failure> {
        if self.has_same_value(entry, path, &spot) {
            if let (Some(dir), Some(meta), false) = (&spot.dir, spot.meta, self.disk.is_dry()) {
                spot.meta = Some(self.disk.dress(dir, path, entry, Some(&meta), &meta, spot.acls));
            }
            self.unchanged(ndx, entry, path, &spot)?;
            return Ok(Outcome::Done);
        }
        let alternate = match spot.meta {
            None => self.alternate(entry, path, &|spot, _| self.has_same_value(entry, path, spot)),
            Some(_) => None,
        };
        if let Some(found) = alternate.as_ref().filter(|found| found.fit == Fit::Everything) {
            match self.without_copy(ndx, entry, path, &spot, found)? {
                None => {}
                // The source of such an item is not confirmed, as in stock: it stays.
                Some(Outcome::Done) => {
                    self.lead(ndx, entry, path)?;
                    return Ok(Outcome::Passed);
                }
                Some(_) => return Ok(Outcome::Passed),
            }
        }
        if let Some(meta) = spot.meta.filter(|meta| meta.kind() == FileKind::Directory) {
            if !self.deletion.make_way(self.disk, path, &meta, entry.kind()) {
                return Ok(Outcome::Passed);
            }
            spot.meta = None;
        }
        if entry.kind() != FileKind::Symlink {
            let rdev = entry.rdev().unwrap_or_default();
            let made = Trace::NodeMade { path: path.as_bytes(), mode: entry.mode().0, rdev };
            self.ctx.trace(Topic::Genr, 1, Who::Generator, made);
        }
        if !self.disk.is_dry() && !self.make_value(entry, path, &spot, make) {
            return Ok(Outcome::Passed);
        }
        let fit = alternate.as_ref().map_or(Fit::Kind, |found| found.fit);
        let mut item = if fit == Fit::Everything {
            self.note_up_to_date(path, Note::UpToDate);
            Item::new(ItemFlags::LOCAL_CHANGE)
        } else {
            let old = spot.meta.filter(|meta| is_of_family(meta.kind(), entry.kind()));
            let before = alternate.map(|found| found.meta).or(old);
            let action = ItemFlags::LOCAL_CHANGE | ItemFlags::REPORT_CHANGE;
            itemize::item(self.ctx, entry, before.as_ref(), action)
        };
        spot.note_acls(&mut item);
        // What was made has none.
        self.note_xattrs(&mut item, entry, path, None);
        self.send_item(ndx, entry, item)?;
        Ok(Outcome::Made)
    }

    fn make_value(
        &self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        make: &dyn Fn(&Dir, &[u8]) -> io::Result<()>,
    ) -> bool {
        let made = self.disk.parent(spot, path).and_then(|dir| {
            match spot.meta {
                None => make(&dir, path.name())?,
                Some(_) => {
                    if !self.disk.back_up(path) {
                        return Ok(None);
                    }
                    dir.replace(path.name(), &mut |temp| make(&dir, temp))?;
                }
            }
            Ok(Some(dir))
        });
        match made {
            Ok(Some(dir)) => {
                self.disk.dress_new(&dir, path, entry);
                true
            }
            // The backup failed, which was reported.
            Ok(None) => false,
            Err(error) => {
                match entry.link_target() {
                    Some(target) => {
                        let after = [b"\" -> \"", target, b"\" failed"].concat();
                        self.disk.pair(Class::Transfer, "symlink \"", path, &after, &error);
                    }
                    None => self.disk.call("mknod", path, &error),
                }
                false
            }
        }
    }

    /// Whether an item that is not a regular file is there with the same value: the target of a
    /// symlink, the number of a device, the type of a pipe or socket.
    pub(super) fn has_same_value(&self, entry: EntryRef<'_>, path: RelPath<'_>, spot: &Spot) -> bool {
        let (Some(meta), Some(dir)) = (spot.of_kind(entry.kind()), &spot.dir) else { return false };
        match entry.kind() {
            FileKind::Symlink if dir.is_foreign_link(path.name()) => false,
            FileKind::Symlink => {
                dir.read_link(path.name()).is_ok_and(|target| Some(&target[..]) == entry.link_target())
            }
            kind if kind.is_device() => entry.rdev().is_none_or(|rdev| rdev == meta.rdev),
            _ => true,
        }
    }
}

/// Whether an item of one kind counts as the old version of the other.
pub(super) fn is_of_family(old: FileKind, new: FileKind) -> bool {
    old == new || (old.is_device() && new.is_device()) || (old.is_special() && new.is_special())
}
