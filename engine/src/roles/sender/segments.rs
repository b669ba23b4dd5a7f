//! The sender's live segments: how far ahead the list is, where an entry lies, what is freed.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#look-ahead

use std::collections::VecDeque;
use std::sync::Arc;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{FileList, Found, Ndx, Segment};
use suisei_protocol::Error;

use crate::source::{Base, Listed, Lister, Roots, Source};
use crate::{Context, Failure};

/// Segments go out before a request is waited for until this many entries lie ahead of the last.
const AHEAD: usize = 1_000;
/// The same while there is nothing else to do.
const AHEAD_IDLE: usize = 10_000;

/// What is kept of a live segment beside its entries.
#[derive(Debug)]
struct Live {
    start: Ndx,
    len: usize,
    roots: Roots,
    /// Where the listed directory lies.
    dir: Option<Arc<Base>>,
    /// Entries of all segments before it.
    before: u64,
}

/// The live segments, and the list still to come.
pub(super) struct Segments<'c> {
    lister: Lister<'c>,
    list: FileList,
    live: VecDeque<Live>,
    /// Position among the live ones of the last that a request named.
    current: usize,
    /// Entries in the live segments behind that one.
    ahead: usize,
    known: u64,
    /// Entries up to the last that a request named.
    reached: u64,
}

/// An entry that a request named.
pub(super) struct Asked {
    /// The entry.
    pub(super) found: Found,
    /// Where it lies; nothing for the gap index of an odd list.
    pub(super) base: Option<Arc<Base>>,
}

impl<'c> Segments<'c> {
    pub(super) fn new(ctx: &'c Context) -> Self {
        Segments {
            lister: Lister::new(ctx),
            list: FileList::new(),
            live: VecDeque::new(),
            current: 0,
            ahead: 0,
            known: 0,
            reached: 0,
        }
    }

    /// Makes the first list.
    pub(super) fn first(&mut self, source: Source) -> Result<Arc<Segment>, Failure> {
        let listed = self.lister.first(source)?;
        Ok(self.push(listed))
    }

    /// Makes the next segment; nothing if there is none.
    pub(super) fn next(&mut self) -> Result<Option<Arc<Segment>>, Failure> {
        let listed = self.lister.next(&mut self.list)?;
        Ok(listed.map(|listed| self.push(listed)))
    }

    fn push(&mut self, listed: Listed) -> Arc<Segment> {
        let Listed { segment, roots, dir } = listed;
        let len = segment.len();
        if !self.live.is_empty() {
            self.ahead += len;
        }
        self.live.push_back(Live { start: segment.start(), len, roots, dir, before: self.known });
        self.known += len as u64;
        self.list.push(segment.clone());
        segment
    }

    /// Whether nothing follows the segments made so far.
    pub(super) fn is_complete(&self) -> bool {
        self.lister.is_complete()
    }

    /// Whether a segment is owed before the next request may be waited for.
    pub(super) fn owes(&self) -> bool {
        !self.is_complete() && self.ahead < AHEAD
    }

    /// Whether a segment is worth making while there is nothing else to do.
    pub(super) fn has_room(&self) -> bool {
        !self.is_complete() && self.ahead < AHEAD_IDLE
    }

    /// Whether no segment is live.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Looks up what a request names, and notes how far the requests are.
    pub(super) fn ask(&mut self, ndx: Ndx) -> Result<Asked, Failure> {
        let found = self.list.find(ndx).map_err(Error::from)?;
        let at = self.live.partition_point(|live| live.start.0 - 1 <= ndx.0).saturating_sub(1);
        if at > self.current {
            self.current = at;
            self.ahead = self.live.iter().skip(at + 1).map(|live| live.len).sum();
        }
        if let (Some(live), Some(position)) = (self.live.get(at), found.position) {
            self.reached = self.reached.max(live.before + position as u64 + 1);
        }
        let base = self.live.get(at).and_then(|live| match found.position {
            Some(position) => live.roots.at(position),
            None => live.dir.as_ref().or_else(|| live.roots.of_directory()),
        });
        let base = base.cloned();
        Ok(Asked { found, base })
    }

    /// The same for a transfer, which only a regular file can be asked for.
    pub(super) fn ask_file(&mut self, ndx: Ndx) -> Result<(Found, Arc<Base>), Failure> {
        let Asked { found, base } = self.ask(ndx)?;
        match base {
            Some(base) if found.entry().is_regular() => Ok((found, base)),
            _ => Err(Error::from(PeerMisbehaved::NotRegular(ndx)).into()),
        }
    }

    /// Frees the oldest segment.
    pub(super) fn release_oldest(&mut self) {
        self.list.release_oldest();
        self.live.pop_front();
        match self.current.checked_sub(1) {
            Some(current) => self.current = current,
            // Requests are taken to have reached what is now the oldest.
            None => self.ahead -= self.live.front().map_or(0, |live| live.len),
        }
    }

    /// Returns how many entries follow an index, as far as they are known.
    pub(super) fn to_check(&self, found: &Found) -> u64 {
        let start = found.segment.start();
        let before = self.live.iter().find(|live| live.start == start).map_or(0, |live| live.before);
        self.known - before - found.position.map_or(0, |position| position as u64 + 1)
    }

    /// Returns how many of the known entries are left once the oldest segment is done with.
    pub(super) fn left(&self) -> u64 {
        let done = self.live.front().map_or(0, |oldest| oldest.before + oldest.len as u64);
        self.known - self.reached.max(done)
    }

    /// Returns how many entries are known.
    pub(super) fn known(&self) -> u64 {
        self.known
    }
}
