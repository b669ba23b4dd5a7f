//! The walk over the segments: in order, never ahead of what has arrived, and finishing segments
//! as their answers come in.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#5-the-generators-walk

use std::collections::HashSet;
use std::sync::Arc;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{EntryFlags, EntryRef, FileKind, Ndx, Segment};
use suisei_protocol::session::Recursion;

use super::delete::Found;
use super::Generator;
use crate::context::Batch;
use crate::observe::{Event, Who};
use crate::options::DeleteWhen;
use crate::trace::{Topic, Trace};
use crate::Failure;

/// With `-H`, entries that are to be known before a segment is walked: more choice of links.
const KNOWN_FOR_LINKS: usize = 500;
/// What may be due before the walk pauses for it.
const DUE_MAX: usize = 256;

impl Generator<'_> {
    /// Walks a whole list once it is complete.
    pub(super) fn walk_whole(&mut self) -> Result<(), Failure> {
        if let Some(segment) = self.whole_list()? {
            let listed = self.listed(&segment);
            self.deletion.learn(segment.io_errors());
            if self.deletion.when() == Some(DeleteWhen::Before) {
                self.delete_everywhere(&segment, &listed);
            }
            let mut parents = HashSet::new();
            for (ndx, entry) in segment.by_name(&self.ctx.session) {
                self.drain()?;
                self.check_parent(entry, &mut parents)?;
                self.trace_considered(ndx, entry);
                if entry.is_dir() {
                    self.directory_in_list(ndx, entry, &listed)?;
                } else {
                    self.file(ndx, entry, self.destination.path(entry))?;
                }
            }
            self.pass()?;
        }
        self.send_done()
    }

    /// Walks segments as they arrive.
    pub(super) fn walk_incremental(&mut self) -> Result<(), Failure> {
        while let Some(segment) = self.next_segment()? {
            self.walk_segment(&segment)?;
            self.pass()?;
        }
        self.finish_segments()
    }

    /// Lists instead of transferring.
    pub(super) fn list(&mut self) -> Result<(), Failure> {
        if self.ctx.session.recursion == Recursion::Whole {
            if let Some(segment) = self.whole_list()? {
                for (_, entry) in segment.by_name(&self.ctx.session) {
                    self.ctx.report(Event::Listed(entry));
                }
                self.pass()?;
            }
            return self.send_done();
        }
        while let Some(segment) = self.next_segment()? {
            // A directory is listed where its content is.
            let session = &self.ctx.session;
            let others = segment.by_name(session).map(|(_, entry)| entry).filter(|entry| !entry.is_dir());
            for entry in listed_dir(&segment).into_iter().chain(others) {
                self.ctx.report(Event::Listed(entry));
            }
            self.pass()?;
        }
        self.finish_segments()
    }

    /// Scans all directories at once, before or after everything else.
    pub(super) fn delete_everywhere(&mut self, segment: &Segment, listed: &HashSet<&[u8]>) {
        for (_, entry) in segment.iter() {
            if entry.is_dir() && !entry.is_blank() && entry.flags().contains(EntryFlags::CONTENT_DIR) {
                let path = self.destination.path(entry);
                if !self.dirs.is_closed(path) {
                    self.deletion.scan(self.disk, path, &|name| listed.contains(name), Found::Deleted);
                }
            }
        }
    }

    /// Returns the names that a scan keeps; none where nothing is deleted.
    pub(super) fn listed<'s>(&self, segment: &'s Segment) -> HashSet<&'s [u8]> {
        match self.deletion.when() {
            None => HashSet::new(),
            Some(_) => segment
                .iter()
                .filter(|(_, e)| !e.is_blank())
                .map(|(_, entry)| entry.path().as_bytes())
                .collect(),
        }
    }

    fn whole_list(&mut self) -> Result<Option<Arc<Segment>>, Failure> {
        while !self.segments.ended() {
            self.wait()?;
        }
        Ok(self.segments.next())
    }

    /// Returns the next segment of the walk, once it has arrived; nothing after the last.
    fn next_segment(&mut self) -> Result<Option<Arc<Segment>>, Failure> {
        loop {
            self.drain()?;
            if self.due.len() >= DUE_MAX {
                self.settle()?;
            }
            self.close_finished()?;
            let knows_enough = match self.ctx.batch {
                // As much as the recording generator can have known.
                Batch::Read => self.walked < self.hurried,
                _ => self.segments.entries() >= KNOWN_FOR_LINKS,
            };
            let starved = self.ctx.options.preserve.hard_links && !self.segments.ended() && !knows_enough;
            match self.segments.next() {
                Some(segment) if !starved => return Ok(Some(segment)),
                None if self.segments.ended() => return Ok(None),
                _ if self.due.is_empty() => self.wait()?,
                _ => self.settle()?,
            }
        }
    }

    /// Moves the walk past a segment.
    fn pass(&mut self) -> Result<(), Failure> {
        self.segments.pass();
        self.walked += 1;
        self.outbox.walked()
    }

    fn walk_segment(&mut self, segment: &Segment) -> Result<(), Failure> {
        let gap = listed_dir(segment);
        self.deletion.learn(segment.io_errors());
        if let Some(entry) = gap {
            let path = self.destination.path(entry);
            self.trace_considered(Ndx(segment.start().0 - 1), entry);
            let open = self.directory(Ndx(segment.start().0 - 1), entry, path)?;
            if open {
                let listed = self.listed(segment);
                self.delete_during(entry, &listed);
            }
        }
        for (ndx, entry) in segment.by_name(&self.ctx.session) {
            self.drain()?;
            self.trace_considered(ndx, entry);
            let path = self.destination.path(entry);
            match (entry.is_dir(), gap) {
                (false, _) => self.file(ndx, entry, path)?,
                // The leading "." was handled as the gap.
                (true, Some(_)) if path.is_root() => {}
                (true, _) => self.directory_early(entry, path),
            }
        }
        Ok(())
    }

    fn trace_considered(&self, ndx: Ndx, entry: EntryRef<'_>) {
        let considered = Trace::Considered(entry.path().as_bytes(), ndx);
        self.ctx.trace(Topic::Genr, 1, Who::Generator, considered);
    }

    fn directory_in_list(
        &mut self,
        ndx: Ndx,
        entry: EntryRef<'_>,
        listed: &HashSet<&[u8]>,
    ) -> Result<(), Failure> {
        let path = self.destination.path(entry);
        if self.directory(ndx, entry, path)? {
            self.delete_during(entry, listed);
        }
        Ok(())
    }

    /// Scans a directory that was just handled, if this is the time for it.
    fn delete_during(&mut self, entry: EntryRef<'_>, listed: &HashSet<&[u8]>) {
        let found = match self.deletion.when() {
            Some(DeleteWhen::During) => Found::Deleted,
            Some(DeleteWhen::Delay) => Found::Recorded,
            _ => return,
        };
        let path = self.destination.path(entry);
        if !entry.flags().contains(EntryFlags::CONTENT_DIR) || self.dirs.is_imagined(path) {
            return;
        }
        self.deletion.scan(self.disk, path, &|name| listed.contains(name), found);
        if found == Found::Recorded && self.deletion.has_recorded_in(path) {
            self.finisher.touched(path, entry);
        }
    }

    /// Waits until every segment is finished.
    fn finish_segments(&mut self) -> Result<(), Failure> {
        loop {
            self.drain()?;
            self.settle()?;
            self.close_finished()?;
            if self.segments.is_over() {
                return Ok(());
            }
            if self.due.is_empty() {
                self.wait()?;
            }
        }
    }

    /// Reports finished segments to the sender, and puts the times of their directories right.
    fn close_finished(&mut self) -> Result<(), Failure> {
        while let Some(segment) = self.segments.finish_oldest() {
            self.send_done()?;
            if let Some(entry) = listed_dir(&segment) {
                self.restore_time(entry);
            }
        }
        Ok(())
    }

    /// Gives a directory its time, now that nothing changes in it any more.
    pub(super) fn restore_time(&mut self, entry: EntryRef<'_>) {
        let path = self.destination.path(entry);
        let idle = self.disk.is_dry() || self.ctx.options.report.list_only || self.is_only_a_way(entry);
        if !idle && !self.dirs.is_closed(path) {
            self.finisher.restore_time(self.ctx, self.disk.tree, path, entry);
        }
    }

    /// Refuses an entry of a whole list whose directory is not in the list before it.
    ///
    /// Wire: protocol/doc/10-file-list.md#11-what-a-receiver-must-check
    fn check_parent<'s>(&self, entry: EntryRef<'s>, dirs: &mut HashSet<&'s [u8]>) -> Result<(), Failure> {
        let select = &self.ctx.options.select;
        let path = entry.path();
        let parent = path.parent();
        let exempt = parent.is_root()
            || entry.kind() == FileKind::Missing
            || (select.relative && !select.implied_dirs);
        if !exempt && !dirs.contains(parent.as_bytes()) {
            let rule = PeerMisbehaved::Rule("an entry's directory is not in the file list");
            return Err(Failure::Protocol(rule.into()));
        }
        if entry.is_dir() {
            dirs.insert(path.as_bytes());
        }
        Ok(())
    }
}

/// Returns the directory that a segment lists, if it takes part.
fn listed_dir(segment: &Segment) -> Option<EntryRef<'_>> {
    segment.gap_entry().filter(|entry| !entry.is_blank())
}
