//! Directories: made early where their segment comes later, handled where their index stands,
//! given their times when nothing changes in them any more.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#5-the-generators-walk

use std::collections::HashSet;

use suisei_protocol::flist::{EntryFlags, EntryRef, FileKind, Ndx, RelPath, RelPathBuf};
use suisei_protocol::transfer::{Item, ItemFlags};

use super::alternate::Fit;
use super::decide::{presence, Presence};
use super::place::Spot;
use super::{itemize, Generator};
use crate::observe::{Class, Event, Note};
use crate::roles::attributes;
use crate::tree::Meta;
use crate::Failure;

/// What is remembered of directories while their content is to come.
#[derive(Debug, Default)]
pub struct Dirs {
    /// Those that failed or were skipped: their content is passed over.
    closed: HashSet<RelPathBuf>,
    /// Those that only a real run would have made: nothing is in them.
    imagined: HashSet<RelPathBuf>,
    /// Those made before their turn: still to be reported as new.
    early: HashSet<RelPathBuf>,
}

impl Dirs {
    /// Whether the content of the directory that holds `path` is passed over.
    pub fn is_closed_above(&self, path: RelPath<'_>) -> bool {
        !path.is_root() && self.closed.contains(path.parent().as_bytes())
    }

    /// Passes over the content of a directory.
    pub fn close(&mut self, path: RelPath<'_>) {
        self.closed.insert(path.to_owned());
    }

    /// Whether a directory was failed or skipped.
    pub fn is_closed(&self, path: RelPath<'_>) -> bool {
        self.closed.contains(path.as_bytes())
    }

    /// Whether a dry run only imagines this directory.
    pub fn is_imagined(&self, path: RelPath<'_>) -> bool {
        self.imagined.contains(path.as_bytes())
    }

    /// Whether a dry run only imagines the directory that holds `path`.
    pub fn is_imagined_above(&self, path: RelPath<'_>) -> bool {
        !path.is_root() && self.imagined.contains(path.parent().as_bytes())
    }
}

impl Generator<'_> {
    /// Looks at an entry's place. In an imagined directory there is nothing.
    pub(super) fn look(&self, path: RelPath<'_>) -> Option<Spot> {
        match self.dirs.is_imagined_above(path) {
            true => Some(Spot::default()),
            false => self.disk.look(path),
        }
    }

    /// Returns what stands at a directory's place, a symlink that may stand for one followed.
    fn look_for_dir(&self, path: RelPath<'_>) -> Option<Spot> {
        let mut spot = self.look(path)?;
        if self.ctx.options.select.keep_dirlinks && spot.kind() == Some(FileKind::Symlink) {
            if let Some(dir) = &spot.dir {
                let target = dir.stat_following(path.name()).ok().flatten();
                let stands = target
                    .filter(|meta| meta.kind() == FileKind::Directory && self.disk.tree.dir(path).is_ok());
                spot.meta = stands.or(spot.meta);
            }
        }
        Some(spot)
    }

    /// Prepares a directory whose own segment comes later, so that its parent's time is final when
    /// the parent is finished: removes what is in the way, and makes it. Says nothing of success.
    pub(super) fn directory_early(&mut self, entry: EntryRef<'_>, path: RelPath<'_>) {
        let is_due = attributes::keeps_time(self.ctx, entry)
            && !self.is_only_a_way(entry)
            && !self.disk.hides(path, true);
        if self.disk.is_dry() || self.dirs.is_closed_above(path) || !is_due {
            return;
        }
        let Ok(dir) = self.disk.tree.parent(path) else { return };
        let Some(mut spot) = self.look_for_dir(path) else { return };
        if presence(&self.rules, FileKind::Directory, spot.kind()) != Presence::Takes {
            return;
        }
        if let Some(meta) = spot.meta.filter(|meta| meta.kind() != FileKind::Directory) {
            if !self.make_way_for_dir(path, &meta) {
                return;
            }
            spot.meta = None;
        }
        if spot.meta.is_none() && dir.mkdir(path.name(), 0o700).is_ok() {
            self.dirs.early.insert(path.to_owned());
        }
    }

    /// Handles a directory where its index stands. Whether its content may be handled, too.
    pub(super) fn directory(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
    ) -> Result<bool, Failure> {
        let is_open = self.open_directory(ndx, entry, path)?;
        if !is_open {
            self.dirs.close(path);
        }
        Ok(is_open)
    }

    fn open_directory(&mut self, ndx: Ndx, entry: EntryRef<'_>, path: RelPath<'_>) -> Result<bool, Failure> {
        if self.dirs.is_closed_above(path) {
            return Ok(false);
        }
        if self.disk.hides(path, true) {
            self.disk.refuse("ERROR: daemon refused to receive directory \"", path);
            self.skip_content();
            return Ok(false);
        }
        let was_early =
            self.dirs.early.remove(path.as_bytes()) || (path.is_root() && self.destination.is_new);
        let Some(mut spot) = self.look_for_dir(path) else { return Ok(false) };
        if self.is_only_a_way(entry) {
            return Ok(self.make_only_a_way(&spot, path));
        }
        match presence(&self.rules, FileKind::Directory, spot.kind()) {
            Presence::Takes => {}
            Presence::NotCreating => {
                self.ctx.report(Event::Note(path, Note::NotCreating(FileKind::Directory)));
                return Ok(false);
            }
            Presence::Exists => {
                self.ctx.report(Event::Note(path, Note::Exists("type change")));
                // Not closed: what lies in it fails one by one, as in stock.
                return Ok(true);
            }
        }
        if let Some(meta) = spot.meta.filter(|meta| meta.kind() != FileKind::Directory) {
            if !self.make_way_for_dir(path, &meta) {
                self.skip_content();
                return Ok(false);
            }
            spot.meta = None;
        }
        let existing = spot.meta.filter(|_| !was_early);
        let action = if existing.is_none() { ItemFlags::LOCAL_CHANGE } else { ItemFlags::empty() };
        self.disk.compare_acls(&mut spot, path, entry);
        let alternate = match existing {
            None => self.alternate(entry, path, &|_, _| true),
            Some(_) => None,
        };
        let mut item = match alternate {
            Some(found) if found.fit == Fit::Everything => {
                self.note_up_to_date(path, Note::DirectoryUpToDate);
                Item::new(action)
            }
            found => {
                let before = existing.or(found.map(|found| found.meta));
                itemize::item(self.ctx, entry, before.as_ref(), action)
            }
        };
        spot.note_acls(&mut item);
        self.note_xattrs(&mut item, entry, path, Some(&spot).filter(|_| !was_early));
        self.send_item(ndx, entry, item)?;
        if self.disk.is_dry() {
            if spot.meta.is_none() {
                self.dirs.imagined.insert(path.to_owned());
            }
            return Ok(true);
        }
        if spot.meta.is_none() && !self.make_directory(&spot, path, 0o700) {
            self.skip_content();
            return Ok(false);
        }
        self.dress_directory(entry, path, existing.as_ref());
        Ok(true)
    }

    /// Whether a directory is listed as the parent of another only, and nothing is to be said or
    /// kept of it (`--no-implied-dirs`).
    pub(super) fn is_only_a_way(&self, entry: EntryRef<'_>) -> bool {
        entry.flags().contains(EntryFlags::IMPLIED_DIR) && !self.ctx.options.select.implied_dirs
    }

    /// Makes such a directory if it is missing, as if nobody had listed it.
    fn make_only_a_way(&mut self, spot: &Spot, path: RelPath<'_>) -> bool {
        if spot.meta.is_some() {
            return true;
        }
        if self.disk.is_dry() {
            self.dirs.imagined.insert(path.to_owned());
            return true;
        }
        self.make_directory(spot, path, 0o777)
    }

    fn make_directory(&self, spot: &Spot, path: RelPath<'_>, mode: u32) -> bool {
        match self.disk.parent(spot, path).and_then(|dir| dir.mkdir(path.name(), mode)) {
            Ok(()) => true,
            Err(error) => {
                self.disk.call("recv_generator: mkdir", path, &error);
                false
            }
        }
    }

    fn skip_content(&self) {
        self.disk.sentence(Class::Error, "*** Skipping any contents from this failed directory ***", b"");
    }

    fn make_way_for_dir(&mut self, path: RelPath<'_>, meta: &Meta) -> bool {
        self.disk.tree.forget(path);
        self.deletion.make_way(self.disk, path, meta, FileKind::Directory)
    }

    /// Sets owner and mode; times come last. Whoever is not root needs all rights of his own while
    /// things change inside.
    fn dress_directory(&mut self, entry: EntryRef<'_>, path: RelPath<'_>, existing: Option<&Meta>) {
        let Ok(parent) = self.disk.tree.parent(path) else { return };
        let direct =
            parent.stat(path.name()).ok().flatten().filter(|meta| meta.kind() == FileKind::Directory);
        // A symlink that stands for the directory is passed by opening what it leads to.
        let (dir, made, name) = match direct {
            Some(made) => (parent, made, path.name()),
            None => match self.disk.tree.dir(path).and_then(|dir| Ok((dir.meta()?, dir))) {
                Ok((made, dir)) => (dir, made, &b"."[..]),
                Err(error) => return self.disk.reason("recv_generator: failed to stat", path, &error),
            },
        };
        let mut want = attributes::wanted(self.ctx, entry, existing, &made, Some(&dir));
        if let Some(there) = existing.filter(|there| {
            attributes::same_time(entry, there, self.ctx.options.compare.modify_window)
                && (there.mtime, there.mtime_nsec) != (entry.mtime(), entry.mtime_nsec())
        }) {
            self.finisher.accepted(path, (there.mtime, there.mtime_nsec));
        }
        // Whoever may not set the time of a directory is told now; it comes last.
        want.times = want.times.filter(|_| existing.is_some());
        let last = want.permissions.unwrap_or(made.mode.permissions());
        if !self.ctx.options.preserve.super_user && last & 0o700 != 0o700 {
            want.permissions = Some(last | 0o700);
            self.finisher.loosened(path, last);
        }
        match dir.apply(name, &made, &want) {
            Ok(()) => {}
            Err(failed)
                if failed.call == "failed to set permissions on" && last == made.mode.permissions() =>
            {
                self.disk.reason("failed to modify permissions on", path, &failed.error);
            }
            Err(failed) => self.disk.not_applied(path, &failed),
        }
    }
}
