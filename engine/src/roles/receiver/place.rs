//! From a finished output to a file in place: sync, attributes, backup, rename, in this order, so
//! that the name is never seen with half a file behind it.
//!
//! Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file

use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath, RelPathBuf};

use super::output::{Draft, Spot, Workshop};
use super::partial::Partials;
use super::WHO;
use crate::failure::reason;
use crate::observe::{Class, Problem, What};
use crate::options::{Partial, Remove, Xattrs};
use crate::roles::attributes;
use crate::roles::backup::{Backups, Original};
use crate::roles::destination::Destination;
use crate::trace::{trace_owner, Topic, Trace};
use crate::tree::{Attributes, Dir, HeldItem, NotApplied, TempFile, Times};
use crate::xattrs;
use crate::{Context, Failure};

/// What a receiver works with.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) ctx: &'a Context,
    pub(super) destination: &'a Destination,
    pub(super) workshop: &'a Workshop,
    pub(super) backups: Option<&'a Backups>,
    pub(super) partials: &'a Partials<'a>,
}

/// A verified file that waits in a partial directory.
#[derive(Debug)]
pub(super) struct Delayed {
    pub(super) ndx: Ndx,
    path: RelPathBuf,
}

/// How placing ended.
pub(super) enum Placed {
    InPlace,
    Delayed(Delayed),
    /// Reported already.
    Not,
}

impl<'a> Site<'a> {
    /// Puts a verified file in place.
    pub(super) fn place(
        self,
        draft: Draft,
        ndx: Ndx,
        entry: EntryRef<'_>,
        spot: &Spot<'_>,
        is_redo: bool,
    ) -> Result<Placed, Failure> {
        if self.ctx.options.place.fsync {
            if let Err(error) = draft.file().sync_all() {
                self.problem("fsync failed on", &self.destination.tree.full_name(spot.path), &error);
                return Ok(Placed::Not);
            }
        }
        match draft {
            Draft::InPlace(_) | Draft::Device(_) => {
                let is_dressed = self.dress_in_place(entry, spot, draft.is_device());
                Ok(self.counted(is_dressed))
            }
            Draft::Temp(temp) => {
                let is_dressed = self.dress(&temp, entry, spot, None);
                if self.ctx.options.place.delay_updates {
                    return Ok(self.put_off(temp, ndx, spot));
                }
                if !is_redo && !self.back_up(spot.path) {
                    // Why was told already. As in stock, nothing more is replaced.
                    return Err(Failure::FileIo { text: String::new() });
                }
                let is_placed = self.rename(temp, spot, &spot.dir, spot.path.name().to_vec());
                Ok(if is_placed { self.counted(is_dressed) } else { Placed::Not })
            }
        }
    }

    /// A file whose attributes could not be set does not cost its source.
    fn counted(self, is_dressed: bool) -> Placed {
        match is_dressed || self.ctx.options.place.remove == Remove::Nothing {
            true => Placed::InPlace,
            false => Placed::Not,
        }
    }

    /// Keeps what an unfinished or unverified file has so far, if the options ask for it. Returns
    /// whether it did.
    pub(super) fn keep_partial(self, draft: Draft, entry: EntryRef<'_>, spot: &Spot<'_>) -> bool {
        // In place the old attributes stay: the next run must see that the file is not finished.
        let Draft::Temp(temp) = draft else { return true };
        match &self.ctx.options.place.partial {
            Partial::Discard => false,
            Partial::Keep => {
                // A later run with `-u` must not take it for something newer.
                self.dress(&temp, entry, spot, Some((0, 0)));
                self.rename(temp, spot, &spot.dir, spot.path.name().to_vec())
            }
            Partial::Dir(_) => match self.partials.make(spot.path) {
                Ok(dir) => self.rename(temp, spot, &dir, spot.path.name().to_vec()),
                Err(_) => false,
            },
        }
    }

    fn put_off(self, temp: TempFile, ndx: Ndx, spot: &Spot<'_>) -> Placed {
        match self.partials.make(spot.path) {
            Ok(dir) => {
                if self.rename(temp, spot, &dir, spot.path.name().to_vec()) {
                    Placed::Delayed(Delayed { ndx, path: spot.path.to_owned() })
                } else {
                    Placed::Not
                }
            }
            Err(error) => {
                self.ctx.note_untrusted(WHO, &error);
                let what = What::Sentence {
                    before: "Unable to create partial-dir for ",
                    path: spot.path.as_bytes(),
                    after: " -- discarding completed file.",
                };
                self.ctx.report_problem(Problem { who: WHO, class: Class::Warning, what });
                Placed::Not
            }
        }
    }

    fn rename(self, temp: TempFile, spot: &Spot<'_>, dir: &Dir, name: Vec<u8>) -> bool {
        let temp_name = temp.name().to_vec();
        if self.ctx.traces(Topic::Recv, 1) {
            let from = spot.path.parent().join(&temp_name);
            let to = spot.path.as_bytes();
            self.ctx.trace(Topic::Recv, 1, WHO, Trace::Renaming(from.as_bytes(), to));
        }
        match temp.place(dir, &name) {
            Ok(()) => true,
            Err(error) => {
                let from = self.workshop.full_name(self.destination, spot.path, &temp_name);
                let both = [&from[..], b"\" -> \"", spot.path.as_bytes()].concat();
                let what = What::Reason { text: "rename", path: &both, error: &error };
                self.ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
                false
            }
        }
    }

    /// Backs up what is about to be replaced; false (and reported) if that failed: without its
    /// backup nothing may be replaced.
    fn back_up(self, path: RelPath<'_>) -> bool {
        let Some(backups) = self.backups else { return true };
        backups.keep(self.ctx, WHO, &self.destination.tree, path, Original::Stays).is_ok()
    }

    /// Sets the attributes of a temp file; `mtime` overrides the modification time.
    /// Whether the extended attributes are right.
    fn dress(self, temp: &TempFile, entry: EntryRef<'_>, spot: &Spot<'_>, mtime: Option<(i64, u32)>) -> bool {
        let done = temp.meta().map_err(|error| NotApplied::new("fstat", error)).and_then(|made| {
            let mut want =
                attributes::wanted(self.ctx, entry, spot.existing.as_ref(), &made, Some(&spot.dir));
            if let Some(mtime) = mtime {
                let atime = want.times.and_then(|times| times.atime);
                want.times = Some(Times { mtime: Some(mtime), atime });
            }
            if self.ctx.traces(Topic::Own, 1) {
                let name = spot.path.parent().join(temp.name());
                trace_owner(self.ctx, WHO, name.as_bytes(), &made, &want);
            }
            temp.apply(&made, &want)
        });
        let name = || self.workshop.full_name(self.destination, spot.path, temp.name());
        if let Err(failed) = done {
            let below = spot.path.parent().join(temp.name());
            self.not_applied(&failed, &name(), below.as_path().as_bytes());
        }
        let basis = match &spot.existing {
            Some(_) => spot.dir.xattrs(spot.path.name(), false).ok(),
            None => None,
        };
        self.apply_xattrs(entry, &temp.xattrs(), basis.as_ref(), &name)
    }

    /// Sets the attributes of a file that was written in place.
    /// Whether the extended attributes are right.
    fn dress_in_place(self, entry: EntryRef<'_>, spot: &Spot<'_>, is_device: bool) -> bool {
        let name = spot.path.name();
        let done = match spot.dir.stat(name) {
            Ok(Some(made)) => {
                let mut want =
                    attributes::wanted(self.ctx, entry, spot.existing.as_ref(), &made, Some(&spot.dir));
                if is_device {
                    // What was written leaves no trace in the node's own time.
                    want.times = attributes::wanted(self.ctx, entry, None, &made, None).times;
                }
                trace_owner(self.ctx, WHO, spot.path.as_bytes(), &made, &want);
                spot.dir.apply(name, &made, &want)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(NotApplied::new("stat", error)),
        };
        if let Err(failed) = done {
            self.not_applied(&failed, &self.destination.tree.full_name(spot.path), spot.path.as_bytes());
        }
        match spot.dir.xattrs_to_set(name, entry.kind()) {
            Ok(item) => self.apply_xattrs(entry, &item, None, &|| self.destination.tree.full_name(spot.path)),
            Err(_) => true,
        }
    }

    /// Sets the extended attributes of an item that needed no data, if it is there. Whether they are
    /// right then.
    pub(super) fn set_xattrs(self, entry: EntryRef<'_>) -> bool {
        if self.ctx.options.preserve.xattrs == Xattrs::Off {
            return true;
        }
        let path = self.destination.path(entry);
        let tree = &self.destination.tree;
        let Ok(dir) = tree.parent(path) else { return false };
        let kind = dir.stat(path.name()).ok().flatten().map(|meta| meta.kind());
        let stands_for_dir = || match self.ctx.options.select.keep_dirlinks && entry.is_dir() {
            true => tree.dir(path).ok(),
            false => None,
        };
        let (dir, name) = match kind {
            Some(kind) if kind == entry.kind() => (dir, path.name()),
            Some(FileKind::Symlink) => match stands_for_dir() {
                Some(dir) => (dir, &b"."[..]),
                None => return false,
            },
            // Gone, or replaced by another: not ours any more.
            _ => return false,
        };
        let is_right = match dir.xattrs_to_set(name, entry.kind()) {
            Ok(item) => self.apply_xattrs(entry, &item, None, &|| tree.full_name(path)),
            Err(_) => false,
        };
        // Like stock, which sets the whole time of such an item, where others keep one that counts
        // as equal.
        if attributes::keeps_time(self.ctx, entry) {
            let times = Times { mtime: Some((entry.mtime(), entry.mtime_nsec())), atime: None };
            let want = Attributes { times: Some(times), ..Attributes::default() };
            let now = dir.stat(name).ok().flatten();
            if let Some(Err(failed)) = now.map(|now| dir.apply(name, &now, &want)) {
                self.not_applied(&failed, &tree.full_name(path), path.as_bytes());
            }
        }
        is_right
    }

    fn apply_xattrs(
        self,
        entry: EntryRef<'_>,
        item: &HeldItem<'_>,
        basis: Option<&HeldItem<'_>>,
        name: &dyn Fn() -> Vec<u8>,
    ) -> bool {
        xattrs::apply(self.ctx, entry, xattrs::Target { item, basis, name, who: WHO })
    }

    /// Reports attributes that could not be set. `path` is the full name, `below` that below the
    /// destination.
    fn not_applied(self, failed: &NotApplied, path: &[u8], below: &[u8]) {
        for NotApplied { call, error, .. } in failed.all() {
            let kind = format!(", {call})");
            let what = match *call {
                call if call.starts_with("failed") => What::Reason { text: call, path, error },
                call if call.starts_with("ACL_TYPE_") => {
                    What::Around { before: "set_acl: xacl_set(", path: below, after: kind.as_bytes(), error }
                }
                call => What::Call { call, path, error },
            };
            self.ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
        }
    }

    pub(super) fn problem(self, call: &'static str, path: &[u8], error: &io::Error) {
        self.ctx.problem(WHO, Class::Transfer, call, path, error);
    }

    /// Moves a delayed file into place. A problem is reported, and the file stays where it is.
    pub(super) fn place_delayed(self, delayed: &Delayed) -> Result<bool, Failure> {
        let path = delayed.path.as_path();
        if !self.back_up(path) {
            return Ok(false);
        }
        let moved = match (self.partials.existing(path), self.destination.tree.parent(path)) {
            (Some(from), Ok(to)) => from.rename(path.name(), &to, path.name()),
            (None, _) => Err(io::ErrorKind::NotFound.into()),
            (_, Err(error)) => Err(error),
        };
        if let Err(error) = moved {
            let from = self.partials.named(path);
            let full = self.destination.tree.full_name(path);
            let both = [&full[..], b"\" (from ", &from, b"): ", reason(&error).as_bytes()].concat();
            let what =
                What::Sentence { before: "rsync: [receiver] rename failed for \"", path: &both, after: "" };
            self.ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
            return Ok(false);
        }
        self.partials.remove_dir(path);
        Ok(true)
    }
}
