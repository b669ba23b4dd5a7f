//! The end of the run: a ladder of DONEs, one per phase that the version has.
//!
//! ```text
//! lists done ──► redo ──► delayed updates (29) ──► deletions, with statistics (31) ──► goodbye
//! ```
//!
//! Wire: protocol/doc/02-session-start.md#261-phases-and-done-exchange

use std::collections::HashSet;

use suisei_protocol::flist::IoErrors;
use suisei_protocol::message::ToSender;

use super::delete::Deletion;
use super::Generator;
use crate::observe::{Event, Who};
use crate::options::DeleteWhen;
use crate::roles::finish::Finisher;
use crate::trace::{Topic, Trace};
use crate::Failure;

impl Generator<'_> {
    /// Goes from the last list's DONE to the goodbye.
    pub(super) fn climb_ladder(&mut self) -> Result<(), Failure> {
        let version = self.ctx.session.version;
        let deletes_late = matches!(self.deletion.when(), Some(DeleteWhen::Delay | DeleteWhen::After));
        let delays = self.ctx.options.place.delay_updates;

        self.redo()?;
        self.trace_phase(2);
        self.send_done()?;
        if !deletes_late && delays {
            self.send_statistics()?;
        }
        if delays {
            self.await_delayed()?;
        }
        if version.has_delay_phase() {
            self.trace_phase(3);
            self.send_done()?;
        }
        if deletes_late {
            self.await_echo(self.dones_sent)?;
            self.delete_late();
        }
        if version.has_delete_phase() {
            if deletes_late || !delays {
                self.send_statistics()?;
            }
            self.send_done()?;
        }
        self.await_echo(self.dones_sent)?;
        self.settle_unanswered()?;
        self.put_right();
        if self.deletion.skipped() > 0 {
            self.ctx.add_io_errors(IoErrors::DELETE_LIMIT);
            self.ctx.report(Event::DeleteLimit { skipped: self.deletion.skipped() });
        }
        self.ctx.trace(Topic::Genr, 1, Who::Generator, Trace::GeneratorEnds);
        // The goodbye: nobody answers it.
        self.outbox.send(ToSender::Done)?;
        self.outbox.flush()
    }

    /// Waits until every answer of the first attempts is in, then asks again for what failed, and
    /// for members of hard-link groups whose others failed.
    fn redo(&mut self) -> Result<(), Failure> {
        self.await_echo(self.dones_sent)?;
        // An old sender says nothing of a file that it cannot open.
        self.settle_unanswered()?;
        self.settle()?;
        if self.ctx.session.version.has_status_messages() {
            while !self.in_flight.is_empty() || !self.due.is_empty() {
                self.wait()?;
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Waits until delayed files are in place, which the receiver sees to at the end of the redo
    /// phase, and links what waits for them.
    fn await_delayed(&mut self) -> Result<(), Failure> {
        self.await_echo(self.dones_sent)?;
        while let Some(ndx) = self.delayed.pop_first() {
            self.succeeded(ndx)?;
        }
        self.settle()
    }

    /// Waits for the sender's echo of the n-th DONE.
    fn await_echo(&mut self, count: u32) -> Result<(), Failure> {
        while self.dones_seen < count {
            self.wait()?;
        }
        Ok(())
    }

    /// Gives up what the sender has passed over in silence. What it answered, it answered before
    /// the echo that was just seen.
    fn settle_unanswered(&mut self) -> Result<(), Failure> {
        let silent: Vec<_> = self.in_flight.drain().map(|(ndx, _)| ndx).collect();
        self.in_flight_bytes = 0;
        for ndx in silent {
            self.failed(ndx);
        }
        Ok(())
    }

    fn delete_late(&mut self) {
        if self.deletion.when() == Some(DeleteWhen::After) {
            // Files that could not be sent count by now, too.
            self.deletion.learn(self.ctx.io_errors());
            if let Some(segment) = self.segments.walked_whole() {
                let listed: HashSet<&[u8]> = self.listed(&segment);
                self.delete_everywhere(&segment, &listed);
            }
        }
        self.deletion.delete_recorded(self.disk);
    }

    fn send_statistics(&mut self) -> Result<(), Failure> {
        if self.ctx.session.version.has_delete_phase() && self.deletion.is_counted() {
            self.outbox.send(ToSender::Deleted(Deletion::counts(self.ctx)))?;
        }
        Ok(())
    }

    /// Directory times and modes, now that nothing changes any more.
    fn put_right(&mut self) {
        if let Some(segment) = self.segments.walked_whole() {
            for (_, entry) in segment.iter().filter(|(_, entry)| entry.is_dir() && !entry.is_blank()) {
                self.restore_time(entry);
            }
        }
        if !self.disk.is_dry() {
            std::mem::take::<Finisher>(&mut self.finisher).finish(self.ctx, self.disk.tree);
        }
    }
}
