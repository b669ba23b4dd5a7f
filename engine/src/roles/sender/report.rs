//! What the sender reports of items, and what it counts.
//!
//! Events are sent if it is the reporting role. It counts in any case: a local run shares the
//! counters, and its receiver leaves them to the sender.
//! Wire: protocol/doc/22-output.md#7-format-escapes---out-format---log-file-format-daemon-log-format

use std::time::{Duration, Instant};

use suisei_protocol::flist::{Found, Ndx};
use suisei_protocol::transfer::{BlockSignature, Item, ItemFlags};

use super::file::Sent;
use super::segments::Segments;
use crate::context::Reporter;
use crate::observe::{Event, ItemReport, Moment, Progress};
use crate::source::Base;
use crate::Context;

/// Least time between two reports of one file.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// What moved for a file.
pub(super) struct Moved<'a> {
    /// Raw bytes sent.
    pub(super) data_bytes: u64,
    /// The request's sums.
    pub(super) basis: &'a BlockSignature,
    /// What was sent.
    pub(super) sent: &'a Sent,
}

/// The reporting side of a sender.
pub(super) struct Reports<'c> {
    ctx: &'c Context,
    reporting: bool,
}

impl<'c> Reports<'c> {
    pub(super) fn new(ctx: &'c Context) -> Self {
        Reports { ctx, reporting: ctx.reporter == Reporter::Sender }
    }

    pub(super) fn list_started(&self, incremental: bool) {
        if self.reporting {
            self.ctx.report(Event::ListStarted { incremental });
        }
    }

    pub(super) fn list_finished(&self, entries: usize) {
        if self.reporting {
            self.ctx.report(Event::ListFinished { entries });
        }
    }

    /// Reports an item without data. `base` is absent for the gap index.
    pub(super) fn item(&self, found: &Found, base: Option<&Base>, ndx: Ndx, item: &Item) {
        self.count_new(found, item);
        if let Some(base) = base {
            self.ctx.note_long_name(ndx, || base.long_name(found.entry().wire_path()));
        }
        self.report(Moment::Finished, found, base, ndx, item, None);
    }

    /// Reports that a file's data is about to move.
    pub(super) fn begun(&self, found: &Found, base: &Base, ndx: Ndx, item: &Item) {
        self.count_new(found, item);
        self.ctx.note_long_name(ndx, || base.long_name(found.entry().wire_path()));
        self.report(Moment::Begun, found, Some(base), ndx, item, None);
    }

    fn count_new(&self, found: &Found, item: &Item) {
        if self.reporting && item.flags.contains(ItemFlags::IS_NEW) {
            self.ctx.stats.created.count(found.entry().kind());
        }
    }

    /// Reports that a file's data has moved (in a dry run: would have).
    pub(super) fn finished(
        &self,
        found: &Found,
        base: &Base,
        ndx: Ndx,
        item: &Item,
        moved: Option<Moved<'_>>,
    ) {
        if let Some(Moved { sent, .. }) = &moved {
            self.ctx.stats.literal.add(sent.tally.literal);
            self.ctx.stats.matched.add(sent.tally.matched);
        }
        self.report(Moment::Finished, found, Some(base), ndx, item, moved);
    }

    /// Counts a file that was transferred (in a dry run: would have been).
    pub(super) fn count(&self, found: &Found) {
        self.ctx.stats.transferred.add(1);
        self.ctx.stats.transferred_size.add(found.entry().size());
    }

    fn report(
        &self,
        moment: Moment,
        found: &Found,
        base: Option<&Base>,
        ndx: Ndx,
        item: &Item,
        moved: Option<Moved<'_>>,
    ) {
        if !self.reporting {
            return;
        }
        let entry = found.entry();
        let long_name = match base {
            Some(base) => base.long_name(entry.wire_path()),
            None => entry.path().as_bytes().to_vec(),
        };
        let (data_bytes, sum_bytes, sum) = match &moved {
            // The sum head is four numbers of four bytes.
            Some(Moved { data_bytes, basis, sent }) => {
                (*data_bytes, 16 + basis.sums.len() as u64, Some(&sent.sum[..]).filter(|sum| !sum.is_empty()))
            }
            None => (0, 0, None),
        };
        self.ctx.report(Event::Item(ItemReport {
            moment,
            ndx,
            entry,
            item,
            has_group: true,
            long_name: &long_name,
            data_bytes,
            sum_bytes,
            sum,
        }));
    }

    /// Reports the counts at the end of a list.
    pub(super) fn list_done(&self, segments: &Segments<'_>) {
        if self.reporting && self.ctx.options.report.progress {
            self.ctx.report(Event::ListDone(Progress {
                offset: 0,
                size: 0,
                finished: true,
                transferred: self.ctx.stats.transferred.value(),
                to_check: segments.left(),
                known: segments.known(),
                list_complete: segments.is_complete(),
                total_size: self.ctx.stats.total_size.value(),
            }));
        }
    }

    /// Starts the progress of a file.
    pub(super) fn progress(&self, found: &Found, segments: &Segments<'_>, size: u64) -> FileProgress<'c> {
        FileProgress {
            ctx: self.ctx,
            wanted: self.reporting && self.ctx.options.report.progress,
            size,
            to_check: segments.to_check(found),
            known: segments.known(),
            list_complete: segments.is_complete(),
            reported: None,
        }
    }
}

/// The progress of one file.
pub(super) struct FileProgress<'c> {
    ctx: &'c Context,
    wanted: bool,
    size: u64,
    to_check: u64,
    known: u64,
    list_complete: bool,
    reported: Option<Instant>,
}

impl FileProgress<'_> {
    /// Reports how far the file is: its first data, then at most once a second.
    pub(super) fn at(&mut self, offset: u64) {
        if !self.wanted {
            return;
        }
        let now = Instant::now();
        if self.reported.is_none_or(|last| now.duration_since(last) >= PROGRESS_PERIOD) {
            self.reported = Some(now);
            self.report(offset, false);
        }
    }

    /// Reports the end of the file.
    pub(super) fn finish(self) {
        self.report(self.size, true);
    }

    fn report(&self, offset: u64, finished: bool) {
        if self.wanted {
            self.ctx.report(Event::Progress(Progress {
                offset,
                size: self.size,
                finished,
                transferred: self.ctx.stats.transferred.value(),
                to_check: self.to_check,
                known: self.known,
                list_complete: self.list_complete,
                total_size: self.ctx.stats.total_size.value(),
            }));
        }
    }
}
