//! Making hard links, by the books of [`super::hardlink`].
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h

use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};

use super::place::Spot;
use super::{itemize, segments, Generator};
use crate::observe::{Class, Note};
use crate::options::{AlternateKind, ItemDetail};
use crate::Failure;

/// When a member of a group is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// When the walk comes to it, behind its leader.
    ByWalk,
    /// When its leader is finished.
    Later,
}

impl Generator<'_> {
    /// An entry is in place: if it has a group it leads it, and those that stood back are linked.
    pub(super) fn lead(&mut self, ndx: Ndx, entry: EntryRef<'_>, path: RelPath<'_>) -> Result<(), Failure> {
        let Some(key) = self.links.key(entry) else { return Ok(()) };
        for follower in self.links.lead(key, ndx, path) {
            if let Some(segment) = self.segments.find(follower) {
                if let Some(entry) = segments::entry(&segment, follower) {
                    self.link_to(follower, entry, self.destination.path(entry), path, Reached::Later)?;
                }
            }
            self.segments.release(follower);
        }
        Ok(())
    }

    /// The same for a file that was asked for.
    pub(super) fn lead_finished(&mut self, ndx: Ndx) -> Result<(), Failure> {
        let Some(segment) = self.segments.find(ndx) else { return Ok(()) };
        let Some(entry) = segments::entry(&segment, ndx) else { return Ok(()) };
        self.lead(ndx, entry, self.destination.path(entry))
    }

    /// Makes an entry a hard link to the leader of its group, and reports it.
    pub(super) fn link_to(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        leader: RelPath<'_>,
        reached: Reached,
    ) -> Result<(), Failure> {
        let Some(mut spot) = self.look(path) else { return Ok(()) };
        self.disk.compare_acls(&mut spot, path, entry);
        let there = if self.dirs.is_imagined_above(leader) {
            None
        } else {
            self.disk.tree.stat(leader).ok().flatten()
        };
        if let (Some(meta), Some(there)) = (&spot.meta, &there) {
            if meta.is_same_file(there) {
                let mut item = itemize::linked(self.ctx, entry, Some(meta), None);
                spot.note_acls(&mut item);
                self.note_xattrs(&mut item, entry, path, Some(&spot));
                self.note_unchanged(path, &item);
                self.send_item(ndx, entry, item)?;
                return self.confirm_unsent(ndx);
            }
        }
        if let Some(meta) = spot.meta.filter(|meta| meta.kind() == FileKind::Directory) {
            if !self.deletion.make_way(self.disk, path, &meta, entry.kind()) {
                return Ok(());
            }
            spot.meta = None;
        }
        if !self.disk.is_dry() && !self.make_link(path, &spot, leader) {
            return Ok(());
        }
        let alternate = match (spot.meta, reached) {
            (None, Reached::ByWalk) => self.alternate_of_link(entry, path, leader, there.as_ref()),
            _ => None,
        };
        let before = spot.of_kind(entry.kind()).or(alternate.as_ref());
        let mut item = itemize::linked(self.ctx, entry, before, Some(leader.as_bytes()));
        spot.note_acls(&mut item);
        match (self.disk.tree.parent(leader), there) {
            // What replaced another item is the leader now.
            (Ok(dir), Some(meta)) if before.is_some() => {
                self.compare_xattrs(&mut item, entry, Some((&dir, leader.name(), &meta)));
            }
            _ => self.note_xattrs(&mut item, entry, path, None),
        }
        let is_quiet = self.ctx.options.alternates.kind == AlternateKind::Link
            && self.ctx.options.report.items != ItemDetail::All;
        if alternate.is_some() && is_quiet {
            // What is linked to an alternate's file is as it was there.
            self.note_up_to_date(path, Note::UpToDate);
        } else {
            self.send_item(ndx, entry, item)?;
        }
        self.confirm_unsent(ndx)
    }

    fn make_link(&self, path: RelPath<'_>, spot: &Spot, leader: RelPath<'_>) -> bool {
        let link = || -> io::Result<bool> {
            let dir = self.disk.parent(spot, path)?;
            let from = self.disk.tree.parent(leader)?;
            match spot.meta {
                None => dir.hard_link(&from, leader.name(), path.name())?,
                Some(_) => {
                    if !self.disk.back_up(path) {
                        return Ok(false);
                    }
                    dir.replace(path.name(), &mut |temp| dir.hard_link(&from, leader.name(), temp))?;
                }
            }
            Ok(true)
        };
        link().unwrap_or_else(|error| {
            let after = [b"\" => ", leader.as_bytes(), b" failed"].concat();
            self.disk.pair(Class::Transfer, "link \"", path, &after, &error);
            false
        })
    }
}
