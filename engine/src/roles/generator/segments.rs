//! The generator's own view of the live segments: how far the walk is, and what holds each open.
//!
//! A segment is finished when the walk is past it and nothing holds it; segments are finished
//! strictly in order, and the last known one only once its successor or the end of the list is.
//! Wire: protocol/doc/11-incremental-recursion.md#finishing-segments

use std::collections::VecDeque;
use std::sync::Arc;

use suisei_protocol::flist::{EntryRef, Ndx, Segment};

/// A segment that is not finished.
#[derive(Debug)]
struct Open {
    segment: Arc<Segment>,
    /// Answers, redos and hard links that are awaited.
    holds: usize,
}

/// The live segments.
#[derive(Debug, Default)]
pub struct Segments {
    open: VecDeque<Open>,
    /// How many of `open` the walk is past.
    walked: usize,
    /// Whether no more segments follow.
    ended: bool,
    /// Entries of all live segments.
    entries: usize,
}

impl Segments {
    /// Appends a segment that arrived.
    pub fn push(&mut self, segment: Arc<Segment>) {
        self.entries += segment.len();
        self.open.push_back(Open { segment, holds: 0 });
    }

    /// Notes that no more segments follow.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether no more segments follow.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of entries in live segments.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the segment that the walk comes to next, if it is known.
    pub fn next(&self) -> Option<Arc<Segment>> {
        self.open.get(self.walked).map(|open| open.segment.clone())
    }

    /// Returns the whole list that the walk is past; segments that are finished are gone.
    pub fn walked_whole(&self) -> Option<Arc<Segment>> {
        self.open.front().filter(|_| self.walked > 0).map(|open| open.segment.clone())
    }

    /// Moves the walk past the segment that [`Segments::next`] returned.
    pub fn pass(&mut self) {
        self.walked = (self.walked + 1).min(self.open.len());
    }

    /// Returns the live segment that an index belongs to, its gap index included.
    pub fn find(&self, ndx: Ndx) -> Option<Arc<Segment>> {
        self.position(ndx).map(|at| self.open[at].segment.clone())
    }

    /// Keeps the segment of an index open.
    pub fn hold(&mut self, ndx: Ndx) {
        if let Some(at) = self.position(ndx) {
            self.open[at].holds += 1;
        }
    }

    /// Takes back one hold.
    pub fn release(&mut self, ndx: Ndx) {
        if let Some(at) = self.position(ndx) {
            debug_assert!(self.open[at].holds > 0, "a release without a hold");
            self.open[at].holds = self.open[at].holds.saturating_sub(1);
        }
    }

    /// Frees and returns the oldest segment if it is finished.
    pub fn finish_oldest(&mut self) -> Option<Arc<Segment>> {
        let oldest = self.open.front()?;
        let has_successor = self.ended || self.open.len() > 1;
        if self.walked == 0 || oldest.holds > 0 || !has_successor {
            return None;
        }
        self.walked -= 1;
        let segment = self.open.pop_front()?.segment;
        self.entries -= segment.len();
        Some(segment)
    }

    /// Whether every segment is finished and none follows.
    pub fn is_over(&self) -> bool {
        self.ended && self.open.is_empty()
    }

    fn position(&self, ndx: Ndx) -> Option<usize> {
        let at = self.open.partition_point(|open| open.segment.start().0 - 1 <= ndx.0).checked_sub(1)?;
        let segment = &self.open[at].segment;
        ((ndx.0 - segment.start().0) < segment.len() as i32).then_some(at)
    }
}

/// Returns the entry of an index in its segment; the gap index names the listed directory.
pub fn entry(segment: &Segment, ndx: Ndx) -> Option<EntryRef<'_>> {
    match usize::try_from(ndx.0 - segment.start().0) {
        Ok(position) => segment.get(position),
        Err(_) => segment.gap_entry(),
    }
}

#[cfg(test)]
mod tests {
    use suisei_protocol::flist::{EntryFlags, Extra, Mode, NewEntry, SegmentBuilder};

    use super::*;

    fn segment(start: i32, count: usize) -> Arc<Segment> {
        let mut builder = SegmentBuilder::new(Ndx(start), None);
        for n in 0..count {
            let path = format!("f{n}");
            let entry = NewEntry {
                path: path.as_bytes(),
                mode: Mode(0o100_644),
                size: 1,
                mtime: 0,
                mtime_nsec: 0,
                uid: 0,
                gid: 0,
                flags: EntryFlags::empty(),
            };
            builder.push(entry, Extra::default()).unwrap();
        }
        Arc::new(builder.finish())
    }

    #[test]
    fn the_last_known_segment_waits_for_a_successor_or_the_end() {
        let mut segments = Segments::default();
        segments.push(segment(1, 2));
        assert!(segments.finish_oldest().is_none(), "not walked");
        segments.pass();
        assert!(segments.finish_oldest().is_none(), "the sender would take it for the last");
        segments.push(segment(4, 0));
        assert_eq!(segments.finish_oldest().unwrap().start(), Ndx(1));
        segments.pass();
        assert!(segments.finish_oldest().is_none());
        segments.end();
        assert!(!segments.is_over());
        assert_eq!(segments.finish_oldest().unwrap().start(), Ndx(4));
        assert!(segments.is_over());
    }

    #[test]
    fn a_hold_keeps_this_segment_and_all_behind_it() {
        let mut segments = Segments::default();
        segments.push(segment(1, 2));
        segments.push(segment(4, 1));
        segments.end();
        segments.hold(Ndx(2));
        segments.pass();
        segments.pass();
        assert!(segments.finish_oldest().is_none());
        segments.release(Ndx(2));
        assert_eq!(segments.finish_oldest().unwrap().start(), Ndx(1));
        assert_eq!(segments.entries(), 1);
        assert!(segments.find(Ndx(2)).is_none(), "freed");
    }

    #[test]
    fn indexes_belong_to_one_segment_gaps_included() {
        let mut segments = Segments::default();
        segments.push(segment(1, 2));
        segments.push(segment(4, 1));
        let start = |ndx| segments.find(Ndx(ndx)).map(|segment| segment.start().0);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, -1].map(start),
            [Some(1), Some(1), Some(1), Some(4), Some(4), None, None]
        );
    }
}
