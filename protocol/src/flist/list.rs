//! The live segments of a run, and what an index means in them.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#2-numbering

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::{EntryFlags, EntryRef, OwnedEntry, Segment};
use crate::error::PeerMisbehaved;

/// Index of an entry. Negative values are signals on the wire and never reach a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ndx(pub i32);

impl fmt::Display for Ndx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a directory in incremental recursion, from 0, valid for the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirNdx(pub i32);

/// Where an index points.
#[derive(Debug, Clone)]
pub struct Found {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Position in the segment; nothing for the gap index, which names the listed directory.
    pub position: Option<usize>,
}

impl Found {
    /// Returns the entry.
    pub fn entry(&self) -> EntryRef<'_> {
        match self.position {
            Some(position) => self.segment.get(position),
            None => self.segment.gap_entry(),
        }
        .expect("FileList::find checked that the entry exists")
    }
}

/// The segments that are still live, in order, and all directories that may get one.
///
/// Each role keeps its own: segments are shared, but each role frees them at its own time.
#[derive(Debug, Default)]
pub struct FileList {
    live: VecDeque<Arc<Segment>>,
    /// By directory number: the entry until its segment arrives, then nothing.
    dirs: Vec<Option<Arc<OwnedEntry>>>,
}

impl FileList {
    /// Starts without segments.
    pub fn new() -> Self {
        FileList::default()
    }

    /// Appends a segment and numbers its directories. A whole list starts at 0; no segments
    /// follow it.
    pub fn push(&mut self, segment: Arc<Segment>) {
        if segment.start() != Ndx(0) {
            for (_, entry) in segment.iter().filter(|(_, entry)| entry.is_dir()) {
                let listed = !entry.path().is_root() && !entry.flags().contains(EntryFlags::BLANK);
                self.dirs.push(listed.then(|| Arc::new(entry.to_owned())));
            }
        }
        self.live.push_back(segment);
    }

    /// Takes the directory that a new segment announces: each can be listed once.
    pub fn take_dir(&mut self, dir: DirNdx) -> Result<Arc<OwnedEntry>, PeerMisbehaved> {
        let out_of_range = PeerMisbehaved::OutOfRange { field: "directory index", value: dir.0.into() };
        usize::try_from(dir.0).ok().and_then(|i| self.dirs.get_mut(i)?.take()).ok_or(out_of_range)
    }

    /// Returns the first index of the next segment; the very first starts at `first`.
    pub fn next_start(&self, first: Ndx) -> Ndx {
        match self.live.back() {
            Some(last) => Ndx(last.start().0 + last.len() as i32 + 1),
            None => first,
        }
    }

    /// Looks an index up among the live segments.
    pub fn find(&self, ndx: Ndx) -> Result<Found, PeerMisbehaved> {
        let at = self.live.partition_point(|s| s.start().0 - 1 <= ndx.0);
        let unknown = PeerMisbehaved::UnknownIndex(ndx);
        let segment = at.checked_sub(1).and_then(|i| self.live.get(i)).ok_or(unknown.clone())?;
        let position = usize::try_from(ndx.0 - segment.start().0).ok();
        let entry = match position {
            Some(position) => segment.get(position),
            None => segment.gap_entry(),
        };
        match entry {
            None => Err(unknown),
            Some(entry) if entry.is_blank() => Err(PeerMisbehaved::Cleared(ndx)),
            Some(_) => Ok(Found { segment: segment.clone(), position }),
        }
    }

    /// Looks up the index of a transfer: an entry that is live and a regular file.
    pub fn find_for_transfer(&self, ndx: Ndx) -> Result<Found, PeerMisbehaved> {
        let found = self.find(ndx)?;
        if found.position.is_some() && found.entry().is_regular() {
            Ok(found)
        } else {
            Err(PeerMisbehaved::NotRegular(ndx))
        }
    }

    /// Returns the live segments, oldest first.
    pub fn live(&self) -> impl DoubleEndedIterator<Item = &Arc<Segment>> + ExactSizeIterator {
        self.live.iter()
    }

    /// Frees the oldest live segment.
    pub fn release_oldest(&mut self) -> Option<Arc<Segment>> {
        self.live.pop_front()
    }
}
