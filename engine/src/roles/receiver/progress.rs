//! How far a file is, told at its first data, at most once a second, and at its end.
//!
//! Wire: protocol/doc/22-output.md#8-progress

use std::time::{Duration, Instant};

use suisei_protocol::flist::{EntryRef, FileKind, FileList, Ndx, Segment};

use crate::context::Reporter;
use crate::observe::{Event, Progress};
use crate::Context;

const PERIOD: Duration = Duration::from_secs(1);

/// Counts what progress lines show.
#[derive(Debug)]
pub(super) struct Meter {
    is_wanted: bool,
    known: usize,
    known_size: u64,
    is_complete: bool,
    transferred: u64,
    /// Of the file at hand: its size, when it was last reported, and what is left behind it.
    size: u64,
    reported: Option<Instant>,
    to_check: u64,
    /// Entries up to the last that was answered.
    reached: u64,
}

impl Meter {
    pub(super) fn new(ctx: &Context) -> Self {
        Meter {
            is_wanted: ctx.options.report.progress && ctx.reporter == Reporter::Receiver,
            known: 0,
            known_size: 0,
            is_complete: false,
            transferred: 0,
            size: 0,
            reported: None,
            to_check: 0,
            reached: 0,
        }
    }

    pub(super) fn add(&mut self, segment: &Segment) {
        self.known += segment.len();
        if self.is_wanted {
            // A peer may name any sizes: their sum is for display only.
            self.known_size =
                segment.iter().map(|(_, entry)| size_of(entry)).fold(self.known_size, u64::saturating_add);
        }
    }

    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Begins a file.
    pub(super) fn begin(&mut self, list: &FileList, ndx: Ndx, size: u64) {
        self.size = size;
        self.reported = None;
        self.to_check = if self.is_wanted { self.behind(list, ndx) } else { 0 };
        self.reach(list, ndx);
    }

    /// Notes that an entry was answered.
    pub(super) fn reach(&mut self, list: &FileList, ndx: Ndx) {
        if self.is_wanted {
            self.reached = self.reached.max((self.known as u64).saturating_sub(self.behind(list, ndx)));
        }
    }

    /// The oldest list is done with.
    pub(super) fn list_done(&mut self, ctx: &Context, list: &FileList) {
        if !self.is_wanted {
            return;
        }
        let behind: usize = list.live().skip(1).map(|segment| segment.len()).sum();
        let left = (self.known as u64).saturating_sub(self.reached).min(behind as u64);
        ctx.report(Event::ListDone(self.progress(0, 0, left, true)));
    }

    /// Returns how many known entries come after an index.
    fn behind(&self, list: &FileList, ndx: Ndx) -> u64 {
        let after: usize = list
            .live()
            .map(|segment| {
                let before = usize::try_from(ndx.0 - segment.start().0 + 1).unwrap_or(0);
                segment.len().saturating_sub(before)
            })
            .sum();
        after as u64
    }

    /// The file has grown to `offset`.
    pub(super) fn advance(&mut self, ctx: &Context, offset: u64) {
        if !self.is_wanted {
            return;
        }
        let now = Instant::now();
        if self.reported.is_none_or(|last| now.duration_since(last) >= PERIOD) {
            self.reported = Some(now);
            self.report(ctx, offset, false);
        }
    }

    /// The file has ended at `offset`.
    pub(super) fn finish(&mut self, ctx: &Context, offset: u64) {
        self.transferred += 1;
        if self.is_wanted {
            self.report(ctx, offset, true);
        }
    }

    fn report(&self, ctx: &Context, offset: u64, finished: bool) {
        ctx.report(Event::Progress(self.progress(offset, self.size, self.to_check, finished)));
    }

    fn progress(&self, offset: u64, size: u64, to_check: u64, finished: bool) -> Progress {
        Progress {
            offset,
            size,
            finished,
            transferred: self.transferred,
            to_check,
            known: self.known as u64,
            total_size: self.known_size,
            list_complete: self.is_complete,
        }
    }
}

fn size_of(entry: EntryRef<'_>) -> u64 {
    match entry.kind() {
        FileKind::Regular | FileKind::Symlink if !entry.is_blank() => entry.size(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use suisei_protocol::flist::{EntryFlags, Extra, Mode, NewEntry, SegmentBuilder};

    use super::*;

    #[test]
    fn sizes_that_no_disk_holds_do_not_overflow() {
        let mut list = SegmentBuilder::new(Ndx(0), None);
        for path in [b"a", b"b", b"c"] {
            let entry = NewEntry {
                path,
                mode: Mode(0o100_644),
                size: i64::MAX as u64,
                mtime: 0,
                mtime_nsec: 0,
                uid: 0,
                gid: 0,
                flags: EntryFlags::empty(),
            };
            list.push(entry, Extra::default()).unwrap();
        }
        let mut meter = Meter {
            is_wanted: true,
            known: 0,
            known_size: 0,
            is_complete: false,
            transferred: 0,
            size: 0,
            reported: None,
            to_check: 0,
            reached: 0,
        };
        meter.add(&list.finish());
        assert_eq!((meter.known, meter.known_size), (3, u64::MAX));
    }
}
