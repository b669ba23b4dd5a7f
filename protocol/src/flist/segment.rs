//! A segment: one file list, or the part of it that lists one directory.
//!
//! Paths lie in one arena, fixed parts in one array, rarer fields in another; dropping the
//! segment frees all three. Wire: protocol/doc/11-incremental-recursion.md#2-numbering

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::Fixed;
use super::{
    compare, DirNdx, EntryFlags, EntryRef, Extra, HardLink, IdName, IoErrors, Mode, Ndx, NewEntry, Order,
    OwnedEntry, RelPath,
};
use crate::error::Misuse;
use crate::limits::PATH_MAX;
use crate::session::Session;

/// A finished segment: entries in index order.
#[derive(Debug, Clone)]
pub struct Segment {
    start: Ndx,
    dir: Option<(DirNdx, Arc<OwnedEntry>)>,
    arena: Vec<u8>,
    entries: Vec<Fixed>,
    extras: Vec<Extra>,
    id_names: Vec<IdName>,
    unconverted: Vec<Unconverted>,
    io_errors: IoErrors,
}

/// What of an entry cannot be converted to this end's charset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unconverted {
    /// The path, as it stood on the wire.
    Name(Box<[u8]>),
    /// The target of the symlink of this path.
    Target(Box<[u8]>),
}

impl Segment {
    /// Returns the index of the first entry, S. Index S-1 names the directory that is listed.
    pub fn start(&self) -> Ndx {
        self.start
    }

    /// Returns the number of entries, blank ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the directory that is listed; nothing for the first list.
    pub fn dir(&self) -> Option<(DirNdx, &Arc<OwnedEntry>)> {
        self.dir.as_ref().map(|(ndx, entry)| (*ndx, entry))
    }

    /// Returns the entry that the gap index S-1 stands for, blank or not: the listed directory, or
    /// the first list's leading ".".
    pub fn gap_entry(&self) -> Option<EntryRef<'_>> {
        match &self.dir {
            Some((_, entry)) => Some(entry.entry()),
            None => self.iter().next().map(|(_, e)| e).filter(|e| e.is_dir() && e.path().is_root()),
        }
    }

    /// Returns the entry at a position, 0 being index S.
    pub fn get(&self, position: usize) -> Option<EntryRef<'_>> {
        self.entries.get(position).map(|fixed| entry_ref(&self.arena, &self.extras, fixed))
    }

    /// Returns the index of a position.
    pub fn ndx(&self, position: usize) -> Ndx {
        Ndx(self.start.0 + position as i32)
    }

    /// Returns all entries with their indexes, blank ones included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Ndx, EntryRef<'_>)> + ExactSizeIterator {
        self.entries
            .iter()
            .enumerate()
            .map(|(i, fixed)| (self.ndx(i), entry_ref(&self.arena, &self.extras, fixed)))
    }

    /// Returns what takes part, in the order of names: the order of indexes, but for a list that was
    /// received under `--iconv`, whose indexes follow the order of transmission.
    pub fn by_name(&self, session: &Session) -> Box<dyn Iterator<Item = (Ndx, EntryRef<'_>)> + '_> {
        let live = self.iter().filter(|(_, entry)| !entry.is_blank());
        if Order::received(session) != Order::AsSent {
            return Box::new(live);
        }
        let mut sorted: Vec<_> = live.collect();
        sorted.sort_by(|(_, a), (_, b)| compare(*a, *b, Order::of(session.version)));
        Box::new(sorted.into_iter())
    }

    /// Returns the names of ids that this segment was the first to carry.
    pub fn id_names(&self) -> &[IdName] {
        &self.id_names
    }

    /// Returns what cannot be converted of the entries that take no part for that reason.
    pub fn unconverted(&self) -> &[Unconverted] {
        &self.unconverted
    }

    /// Returns a copy in which every entry, and the directory that is listed, has the flags that
    /// `flags` gives it; nothing if they all have them already.
    pub fn map_flags(&self, flags: impl Fn(EntryRef<'_>) -> EntryFlags) -> Option<Segment> {
        let is_right = |entry: EntryRef<'_>| flags(entry) == entry.flags();
        let dir_is_right = self.dir.as_ref().is_none_or(|(_, dir)| is_right(dir.entry()));
        if dir_is_right && self.iter().all(|(_, entry)| is_right(entry)) {
            return None;
        }
        let mut copy = self.clone();
        for (position, fixed) in copy.entries.iter_mut().enumerate() {
            if let Some(entry) = self.get(position) {
                fixed.flags = flags(entry);
            }
        }
        if let Some((_, dir)) = &mut copy.dir {
            let new = flags(dir.entry());
            Arc::make_mut(dir).set_flags(new);
        }
        Some(copy)
    }

    /// Copies the segment as versions carry it that know whole seconds only.
    pub fn without_nanoseconds(&self) -> Segment {
        let mut copy = self.clone();
        copy.entries.iter_mut().for_each(|fixed| fixed.mtime_nsec = 0);
        if let Some((_, dir)) = &mut copy.dir {
            Arc::make_mut(dir).fixed_mut().mtime_nsec = 0;
        }
        copy
    }

    /// Copies the segment with other symlink targets: made of each link's path and its old one.
    pub fn map_link_targets(&self, target: &dyn Fn(RelPath<'_>, &[u8]) -> Vec<u8>) -> Segment {
        let mut copy = self.clone();
        for (_, entry) in self.iter() {
            let Some(old) = entry.link_target() else { continue };
            let extra = entry.fixed.extra.checked_sub(1).and_then(|at| copy.extras.get_mut(at as usize));
            if let Some(extra) = extra {
                extra.link_target = Some(target(entry.path(), old).into());
            }
        }
        copy
    }

    /// Returns a copy in which every entry, and the directory that is listed, has the mode that
    /// `mode` gives it. The type stays.
    pub fn map_modes(&self, mode: impl Fn(Mode) -> Mode) -> Segment {
        let changed = |fixed: &mut Fixed| {
            let old = u32::from(fixed.mode);
            fixed.mode = (old & 0o170_000 | mode(Mode(old)).permissions()) as u16;
        };
        let mut copy = self.clone();
        copy.entries.iter_mut().for_each(changed);
        if let Some((_, dir)) = &mut copy.dir {
            changed(Arc::make_mut(dir).fixed_mut());
        }
        copy
    }

    /// Copies the segment with other flags at some positions.
    pub(super) fn with_flags(&self, changed: &HashMap<usize, EntryFlags>) -> Segment {
        let mut copy = self.clone();
        for (&position, &flags) in changed {
            if let Some(fixed) = copy.entries.get_mut(position) {
                fixed.flags = flags;
            }
        }
        copy
    }

    /// Returns the sender's error bits as of the end of this segment.
    pub fn io_errors(&self) -> IoErrors {
        self.io_errors
    }
}

fn entry_ref<'a>(arena: &'a [u8], extras: &'a [Extra], fixed: &'a Fixed) -> EntryRef<'a> {
    let at = fixed.path_at as usize;
    EntryRef {
        fixed,
        path: &arena[at..at + usize::from(fixed.path_len)],
        extra: fixed.extra.checked_sub(1).and_then(|i| extras.get(i as usize)),
    }
}

/// A segment in the making: entries in order of transmission.
#[derive(Debug, Clone)]
pub struct SegmentBuilder {
    segment: Segment,
}

impl SegmentBuilder {
    /// Starts a segment whose first index is `start`, listing `dir` (nothing: the first list).
    pub fn new(start: Ndx, dir: Option<(DirNdx, Arc<OwnedEntry>)>) -> Self {
        SegmentBuilder {
            segment: Segment {
                start,
                dir,
                arena: Vec::new(),
                entries: Vec::new(),
                extras: Vec::new(),
                id_names: Vec::new(),
                unconverted: Vec::new(),
                io_errors: IoErrors::empty(),
            },
        }
    }

    /// Returns the number of entries so far.
    pub fn len(&self) -> usize {
        self.segment.entries.len()
    }

    /// Whether no entry was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the index of the first entry.
    pub fn start(&self) -> Ndx {
        self.segment.start
    }

    /// Returns the directory that is listed; nothing for the first list.
    pub fn dir(&self) -> Option<EntryRef<'_>> {
        self.segment.dir().map(|(_, entry)| entry.entry())
    }

    /// Returns the wire number that the next entry will have.
    pub fn next_wire_number(&self) -> i32 {
        self.segment.start.0 + self.len() as i32
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns an entry by its order of transmission.
    pub fn get(&self, position: usize) -> Option<EntryRef<'_>> {
        self.segment.get(position)
    }

    /// Appends an entry. Fails on paths of 4096 bytes and more.
    pub fn push(&mut self, entry: NewEntry<'_>, extra: Extra) -> Result<(), Misuse> {
        if entry.path.len() >= PATH_MAX {
            return Err(Misuse::LongName);
        }
        let s = &mut self.segment;
        let path_at = u32::try_from(s.arena.len()).map_err(|_| Misuse::LongName)?;
        s.arena.extend_from_slice(entry.path);
        let extra = if extra.is_empty() {
            0
        } else {
            s.extras.push(extra);
            s.extras.len() as u32
        };
        s.entries.push(Fixed {
            path_at,
            path_len: entry.path.len() as u16,
            flags: entry.flags,
            mode: (entry.mode.0 & 0xFFFF) as u16,
            mtime_nsec: entry.mtime_nsec,
            uid: entry.uid,
            gid: entry.gid,
            extra,
            size: entry.size,
            mtime: entry.mtime,
        });
        Ok(())
    }

    /// Notes the name of an id.
    pub fn push_id_name(&mut self, name: IdName) {
        self.segment.id_names.push(name);
    }

    /// Notes what cannot be converted of the entry that is pushed next.
    pub fn push_unconverted(&mut self, what: Unconverted) {
        self.segment.unconverted.push(what);
    }

    /// Sets the sender's error bits.
    pub fn set_io_errors(&mut self, errors: IoErrors) {
        self.segment.io_errors = errors;
    }

    /// Brings the entries into index order. The sort is stable.
    pub fn sort(&mut self, order: Order) {
        if order == Order::AsSent {
            return;
        }
        let Segment { arena, entries, extras, .. } = &mut self.segment;
        entries.sort_by(|a, b| compare(entry_ref(arena, extras, a), entry_ref(arena, extras, b), order));
    }

    /// Adds and removes flags of the entry at a position.
    pub fn change_flags(&mut self, position: usize, add: EntryFlags, remove: EntryFlags) {
        if let Some(fixed) = self.segment.entries.get_mut(position) {
            fixed.flags = (fixed.flags - remove) | add;
        }
    }

    /// Sets the hard-link group of the entry at a position: a sender knows it once the order of
    /// transmission is known.
    pub fn set_hard_link(&mut self, position: usize, link: HardLink) {
        let extra = self.segment.entries.get(position).and_then(|fixed| fixed.extra.checked_sub(1));
        if let Some(extra) = extra.and_then(|i| self.segment.extras.get_mut(i as usize)) {
            extra.hard_link = Some(link);
        }
    }

    /// Finishes the segment as it stands. What could not be converted counts as an error of the
    /// list: nothing may be deleted on its account.
    pub fn finish(mut self) -> Segment {
        let s = &mut self.segment;
        s.io_errors
            .set(IoErrors::GENERAL, s.io_errors.contains(IoErrors::GENERAL) || !s.unconverted.is_empty());
        s.arena.shrink_to_fit();
        s.entries.shrink_to_fit();
        s.extras.shrink_to_fit();
        self.segment
    }
}
