//! One wanted file, from its echo to its fate.
//!
//! ```text
//! Begin ─► spot, basis, output ─► tokens ─► End: sum equal ─► place ─► Placed | Delayed
//!              │ none                │                └─ not ─► keep or drop ─► Redo, then Failed
//!              └─► discard ──────────┴─► Failed
//! ```
//!
//! Wire: protocol/doc/20-transfer.md#5-reconstruction-and-verification

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use rustix::io::Errno;
use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{EntryRef, FileKind, IoErrors, Ndx};
use suisei_protocol::message::{Fate, FromReceiver, ToReceiver};
use suisei_protocol::session::Direction;
use suisei_protocol::transfer::{BasisKind, BlockIndex, Compressor, Item, SumHead, Token};

use super::basis::{Bases, Basis, Place};
use super::output::{Draft, Spot};
use super::place::Placed;
use super::{Receiver, WHO};
use crate::context::Reporter;
use crate::delta::{Holes, Output, Patch, PatchError, Patched};
use crate::failure::reason;
use crate::link::{Handover, Inbox, LocalSource};
use crate::observe::{Class, Event, ItemReport, Moment, Note, Problem, What, Who};
use crate::options::Partial;
use crate::sys::copy;
use crate::trace::{Topic, Trace};
use crate::{Context, Failure};

/// Sources of at least this size keep their holes even without `-S`: looking for them is cheap.
const HOLES_FROM: u64 = 1 << 20;
/// Bytes read at once from a local source.
const LOCAL_PIECE: usize = 256 << 10;
/// What a literal's length costs on the wire, and the longest literal.
const TOKEN_BYTES: u64 = 4;
const LITERAL_BYTES: u64 = 32 << 10;
/// Sum head and end token.
const FRAME_BYTES: u64 = 16 + 4;
/// Item flags and index.
const ITEM_BYTES: u64 = 2 + 1;

/// What arrived of a file.
struct Content {
    /// As put together; nothing where nothing is to be compared.
    sum: Option<Bytes>,
    len: u64,
    literal: u64,
    matched: u64,
    tokens: u64,
    flaw: Option<io::Error>,
    /// Whether a local source could not be read to its end: like a wrong sum.
    is_cut: bool,
}

/// What moved, for the log.
#[derive(Default)]
struct Moved {
    data: u64,
    sum: Option<Bytes>,
}

/// How the data of a file ended.
enum Ending {
    /// The sender's sum.
    Sum(Bytes),
    /// An open source, to be read here.
    Source(LocalSource),
}

impl Receiver<'_> {
    /// Receives one file, and tells the generator what became of it.
    pub(super) fn transfer<L: Handover>(
        &mut self,
        inbox: &mut impl Inbox<ToReceiver<L>>,
        ndx: Ndx,
        item: &Item,
        head: SumHead,
    ) -> Result<(), Failure> {
        let found = self.list.find_for_transfer(ndx)?;
        let entry = found.entry();
        let hidden = self.ctx.options.select.hidden.as_deref();
        let name = || self.destination.tree.full_name(self.destination.path(entry));
        if hidden.is_some_and(|hidden| hidden.hides(&name(), false)) {
            // The generator never asked for it.
            return Err(Failure::Protocol(PeerMisbehaved::Rule("data of a hidden file").into()));
        }
        self.keep_xattrs(entry, item);
        if !self.failed_once.contains(&ndx) {
            self.count_new(entry, item);
        }
        self.ctx.trace(Topic::Recv, 1, Who::Receiver, Trace::Received(entry.path().as_bytes()));
        // The client of a pull names what it has begun; elsewhere the sender speaks, who does not
        // know if there is a place for it.
        let is_early = self.ctx.options.dry_run || self.ctx.session.direction == Direction::Sending;
        if is_early {
            self.report(Moment::Begun, ndx, entry, item, head, &Moved::default());
        }
        if self.ctx.options.dry_run {
            if self.ctx.session.carries_data() {
                discard(inbox, None, head)?;
            }
            self.report(Moment::Finished, ndx, entry, item, head, &Moved::default());
            return Ok(());
        }
        self.meter.begin(&self.list, ndx, entry.size());
        let read_before = inbox.bytes_read();
        let Some((fate, mut moved)) = self.receive(inbox, ndx, entry, item, head)? else {
            if is_early {
                self.report(Moment::Finished, ndx, entry, item, head, &Moved::default());
            }
            return self.tell(FromReceiver::Finished(ndx, Fate::Failed));
        };
        if self.ctx.session.compressor != Compressor::None {
            moved.data = inbox.bytes_read() - read_before;
        }
        self.report(Moment::Finished, ndx, entry, item, head, &moved);
        if fate == Fate::Redo {
            self.failed_once.insert(ndx);
        }
        self.tell(FromReceiver::Finished(ndx, fate))
    }

    fn report(
        &self,
        moment: Moment,
        ndx: Ndx,
        entry: EntryRef<'_>,
        item: &Item,
        head: SumHead,
        moved: &Moved,
    ) {
        if self.ctx.reporter != Reporter::Receiver {
            return;
        }
        let sums = 16 + u64::from(head.count) * (4 + u64::from(head.sum_len));
        let long_name = self.ctx.long_name(ndx, moment);
        // A receiver does not know what its generator sent; a local run tells what a sender would.
        let is_local = self.ctx.session.direction == Direction::Sending;
        let is_finished = moment == Moment::Finished && !self.ctx.options.dry_run && is_local;
        self.ctx.report(Event::Item(ItemReport {
            moment,
            ndx,
            entry,
            item,
            has_group: self.has_group(entry),
            long_name: long_name.as_deref().unwrap_or(entry.path().as_bytes()),
            data_bytes: moved.data,
            sum_bytes: if is_finished { sums } else { 0 },
            sum: moved.sum.as_deref(),
        }));
    }

    /// Says what stands where the file goes.
    fn trace_basis(&self, spot: &Spot<'_>, basis: Option<&Basis>) {
        let size = match basis {
            Some(basis) => basis.file.metadata().ok().map(|meta| meta.len()),
            None => match spot.dir.stat(spot.path.name()) {
                Ok(Some(meta)) if meta.kind() == FileKind::Regular => Some(meta.size),
                _ => None,
            },
        };
        if let Some(size) = size {
            let opened = Trace::BasisOpened(spot.path.as_bytes(), size);
            self.ctx.trace(Topic::Deltasum, 2, WHO, opened);
        }
    }

    /// Receives the data; nothing, after a word about it, where there is no place for it.
    fn receive<L: Handover>(
        &mut self,
        inbox: &mut impl Inbox<ToReceiver<L>>,
        ndx: Ndx,
        entry: EntryRef<'_>,
        item: &Item,
        head: SumHead,
    ) -> Result<Option<(Fate, Moved)>, Failure> {
        let is_redo = self.failed_once.contains(&ndx);
        let path = self.destination.path(entry);
        let mut spot = match Spot::find(self.ctx, self.destination, path) {
            Ok(spot) => spot,
            Err(error) => {
                self.site().problem("mkstemp", &self.destination.tree.full_name(path), &error);
                discard(inbox, None, head)?;
                return Ok(None);
            }
        };
        let bases = Bases {
            ctx: self.ctx,
            tree: &self.destination.tree,
            dir: &spot.dir,
            path,
            backups: self.backups.as_ref(),
            partials: &self.partials,
            alternates: &self.destination.alternates,
        };
        let may_have_basis =
            head.count > 0 || item.basis.is_some() || !self.ctx.session.version.has_basis_types();
        let basis = if may_have_basis { bases.open(item)? } else { None };
        // A new file takes over the permissions of what it starts from, even if it comes whole.
        spot.existing = spot.existing.or(basis.as_ref().map(|basis| basis.meta));
        let basis = basis.filter(|_| head.count > 0);
        let Some(draft) = self.workshop.draft(self.ctx, self.destination, &spot, entry.mode().permissions())
        else {
            discard(inbox, basis.as_ref().map(|basis| &basis.file), head)?;
            return Ok(None);
        };
        if self.ctx.session.direction == Direction::Receiving {
            self.report(Moment::Begun, ndx, entry, item, head, &Moved::default());
        }
        if self.ctx.traces(Topic::Deltasum, 2) {
            self.trace_basis(&spot, basis.as_ref());
        }
        let used = basis.as_ref().map(|basis| basis.place);
        let result = self.fill(inbox, &draft, basis.as_ref(), entry, head, is_redo);
        let (content, sum) = match result {
            Ok(content) => content,
            Err((failure, got_data)) => {
                if got_data && self.ctx.options.place.partial != Partial::Discard {
                    self.site().keep_partial(draft, entry, &spot);
                }
                return Err(failure);
            }
        };
        self.ctx.trace(Topic::Deltasum, 2, WHO, Trace::SumArrived);
        self.count(&content, entry);
        let moved = moved(&content, &sum, self.ctx);
        self.meter.finish(self.ctx, content.len);
        if let Some(error) = &content.flaw {
            let what = What::Reason {
                text: "read errors mapping",
                path: &self.destination.tree.full_name(path),
                error,
            };
            self.ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
        }
        if content.is_cut || content.sum.as_ref().is_some_and(|ours| *ours != sum) {
            return Ok(Some((self.mismatch(draft, entry, &spot, is_redo), moved)));
        }
        let fate = match self.site().place(draft, ndx, entry, &spot, is_redo)? {
            Placed::InPlace => {
                if used == Some(Place::Partial) || item.basis == Some(BasisKind::PartialDir) {
                    self.partials.clear(path);
                }
                Fate::Placed
            }
            Placed::Delayed(delayed) => {
                self.delayed.push(delayed);
                Fate::Delayed
            }
            Placed::Not => Fate::Failed,
        };
        Ok(Some((fate, moved)))
    }

    /// Reads the data of a file into its output. A failure comes with whether data had arrived.
    fn fill<L: Handover>(
        &mut self,
        inbox: &mut impl Inbox<ToReceiver<L>>,
        draft: &Draft,
        basis: Option<&Basis>,
        entry: EntryRef<'_>,
        head: SumHead,
        is_redo: bool,
    ) -> Result<(Content, Bytes), (Failure, bool)> {
        let options = &self.ctx.options.place;
        let output = draft.file();
        let kind = if draft.is_device() {
            Output::Device
        } else if draft.is_in_place() {
            Output::InPlace
        } else if options.preallocate && copy::preallocate(output, entry.size()).is_ok() {
            Output::Preallocated
        } else {
            Output::Fresh
        };
        let holes = if options.sparse { Holes::Make } else { Holes::Fill };
        // In place the destination is its own basis, through the same descriptor.
        let basis = basis.map(|basis| match basis.place {
            Place::Destination if draft.is_in_place() => output,
            _ => &basis.file,
        });
        let mut patch = Patch::new(&self.ctx.session, output, kind, holes, basis, head);
        if !is_redo && head.count > 0 {
            patch.append(options.append);
        }
        let ending = self.tokens(inbox, &mut patch, entry, head)?;
        let source = match ending {
            Ending::Sum(sum) => {
                let patched = patch.finish().map_err(|error| (self.write_failure(entry, error), true))?;
                return Ok((Content::from(patched), sum));
            }
            Ending::Source(source) => source,
        };
        if options.sparse {
            let is_cut = self.pour(&source, &mut patch, entry)?;
            let patched = patch.finish().map_err(|error| (self.write_failure(entry, error), true))?;
            return Ok((Content { sum: None, is_cut, ..Content::from(patched) }, self.end(inbox)?));
        }
        drop(patch);
        let content = self.copy(&source, output, kind, entry)?;
        Ok((content, self.end(inbox)?))
    }

    /// Applies tokens until the file ends or its source is handed over.
    fn tokens<L: Handover>(
        &mut self,
        inbox: &mut impl Inbox<ToReceiver<L>>,
        patch: &mut Patch<'_>,
        entry: EntryRef<'_>,
        head: SumHead,
    ) -> Result<Ending, (Failure, bool)> {
        let mut got_data = false;
        let wants_history = inbox.wants_history();
        loop {
            let message = inbox.recv().map_err(|failure| (failure, got_data))?;
            if matches!(message, ToReceiver::Token(_)) {
                self.meter.advance(self.ctx, patch.len());
            }
            let applied = match message {
                ToReceiver::Token(Token::Literal(data)) => {
                    got_data = true;
                    patch.literal(&data)
                }
                ToReceiver::Token(Token::Copy(block)) => {
                    check_block(block, head).map_err(|failure| (failure, got_data))?;
                    match patch.copy(block) {
                        Ok(bytes) if wants_history => {
                            inbox.add_history(bytes).map_err(|failure| (failure, got_data))?;
                            Ok(())
                        }
                        Ok(_) => Ok(()),
                        Err(error) => Err(error),
                    }
                }
                ToReceiver::End { sum } => return Ok(Ending::Sum(sum)),
                ToReceiver::Local(source) => return Ok(Ending::Source(source.into_source())),
                _ => return Err((inside(), got_data)),
            };
            applied.map_err(|error| (self.write_failure(entry, error), true))?;
        }
    }

    /// Reads a local source through the patch, which finds runs of zeros. Whether it was cut short.
    fn pour(
        &mut self,
        source: &LocalSource,
        patch: &mut Patch<'_>,
        entry: EntryRef<'_>,
    ) -> Result<bool, (Failure, bool)> {
        let mut piece = vec![0; LOCAL_PIECE.min(usize::try_from(source.size).unwrap_or(LOCAL_PIECE))];
        while patch.len() < source.size {
            self.ctx.check_interrupt().map_err(|failure| (failure, true))?;
            let left = usize::try_from(source.size - patch.len()).unwrap_or(usize::MAX);
            let piece_len = piece.len().min(left);
            match source.file.read_at(&mut piece[..piece_len], patch.len()) {
                Ok(0) => {
                    self.report_cut(source, &Errno::NODATA.into());
                    return Ok(true);
                }
                Ok(n) => {
                    patch.literal(&piece[..n]).map_err(|error| (self.write_failure(entry, error), true))?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.report_cut(source, &error);
                    return Ok(true);
                }
            }
            self.meter.advance(self.ctx, patch.len());
        }
        Ok(false)
    }

    /// Says in the sender's place that it could not read a source to its end.
    fn report_cut(&self, source: &LocalSource, error: &io::Error) {
        self.ctx.add_io_errors(IoErrors::GENERAL);
        let what = What::Reason { text: "read errors mapping", path: &source.name, error };
        self.ctx.report_problem(Problem { who: Who::Sender, class: Class::Transfer, what });
    }

    /// Copies a local source inside the kernel where it can.
    fn copy(
        &mut self,
        source: &LocalSource,
        output: &File,
        kind: Output,
        entry: EntryRef<'_>,
    ) -> Result<Content, (Failure, bool)> {
        // A hole would let old data through.
        let is_old = matches!(kind, Output::InPlace | Output::Device);
        let keeps_holes = source.size >= HOLES_FROM && !self.ctx.options.place.preallocate && !is_old;
        let holes = if keeps_holes { copy::Holes::Keep } else { copy::Holes::Fill };
        let (ctx, meter) = (self.ctx, &mut self.meter);
        let mut reached = 0;
        let copied = copy::copy_contents_watched(&source.file, output, source.size, holes, &mut |offset| {
            reached = offset;
            meter.advance(ctx, offset);
            if ctx.check_interrupt().is_err() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Ok(())
        });
        // Old data goes last: what breaks off leaves the rest of it.
        let copied = match copied {
            Ok(len) if kind == Output::InPlace => output.set_len(len).map(|()| len),
            copied => copied,
        };
        let (len, flaw) = match copied {
            Ok(len) if len < source.size => (len, Some(Errno::NODATA.into())),
            Ok(len) => (len, None),
            Err(_) if ctx.check_interrupt().is_err() => return Err((Failure::Interrupted, reached > 0)),
            Err(error) if is_about_writing(&error) => {
                return Err((self.write_failure(entry, PatchError::Write(error)), true))
            }
            Err(error) => (reached, Some(error)),
        };
        if let Some(error) = &flaw {
            self.report_cut(source, error);
        }
        Ok(Content {
            sum: None,
            len,
            literal: len,
            matched: 0,
            tokens: len.div_ceil(LITERAL_BYTES),
            flaw: None,
            is_cut: flaw.is_some(),
        })
    }

    /// Takes the end of a file whose source was handed over.
    fn end<L: Handover>(&self, inbox: &mut impl Inbox<ToReceiver<L>>) -> Result<Bytes, (Failure, bool)> {
        match inbox.recv() {
            Ok(ToReceiver::End { sum }) => Ok(sum),
            Ok(_) => Err((inside(), true)),
            Err(failure) => Err((failure, true)),
        }
    }

    /// Returns the failure that a lost write is: like stock, the run ends at once, so that a full
    /// disk is not hammered with every remaining file.
    fn write_failure(&self, entry: EntryRef<'_>, error: PatchError) -> Failure {
        match error {
            PatchError::NoBasis => Failure::Protocol(PeerMisbehaved::Rule("a block without a basis").into()),
            PatchError::Write(error) => {
                let name = self.destination.tree.full_name(self.destination.path(entry));
                let name = String::from_utf8_lossy(&name);
                Failure::FileIo {
                    text: format!("rsync: [receiver] write failed on \"{name}\": {}", reason(&error)),
                }
            }
        }
    }

    /// Where both roles share the counters, the sender counts.
    fn count(&self, content: &Content, entry: EntryRef<'_>) {
        if self.ctx.session.direction == Direction::Receiving {
            let stats = &self.ctx.stats;
            stats.transferred.add(1);
            stats.transferred_size.add(entry.size());
            stats.literal.add(content.literal);
            stats.matched.add(content.matched);
        }
    }

    /// Handles a file whose sum differs.
    fn mismatch(&self, draft: Draft, entry: EntryRef<'_>, spot: &Spot<'_>, is_redo: bool) -> Fate {
        let kept = self.site().keep_partial(draft, entry, spot);
        let state = match &self.ctx.options.place.partial {
            _ if !kept => "discarded",
            Partial::Dir(_) if !self.ctx.options.place.inplace => "put into partial-dir",
            _ => "retained",
        };
        if !is_redo {
            self.ctx.report(Event::Note(spot.path, Note::FailedVerification(state)));
            return Fate::Redo;
        }
        let after = match state {
            "discarded" => " failed verification -- update discarded.",
            "retained" => " failed verification -- update retained.",
            _ => " failed verification -- update put into partial-dir.",
        };
        let what = What::Sentence { before: "ERROR: ", path: spot.path.as_bytes(), after };
        self.ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
        Fate::Failed
    }
}

impl From<Patched> for Content {
    fn from(patched: Patched) -> Self {
        Content {
            sum: Some(patched.sum),
            len: patched.len,
            literal: patched.literal,
            matched: patched.matched,
            tokens: patched.tokens,
            flaw: patched.flaw,
            is_cut: false,
        }
    }
}

/// Reads and forgets the data of a file that cannot be written. Blocks of a readable basis still
/// feed the decompressor's history.
fn discard<L: Handover>(
    inbox: &mut impl Inbox<ToReceiver<L>>,
    basis: Option<&File>,
    head: SumHead,
) -> Result<(), Failure> {
    let wants_history = inbox.wants_history();
    loop {
        match inbox.recv()? {
            ToReceiver::Token(Token::Literal(_)) | ToReceiver::Local(_) => {}
            ToReceiver::Token(Token::Copy(block)) => {
                check_block(block, head)?;
                if wants_history {
                    let mut bytes = vec![0; head.len_of(block.0) as usize];
                    // What cannot be read counts as zeros: nothing of it is kept.
                    let _ = basis.map(|basis| basis.read_exact_at(&mut bytes, head.offset_of(block.0)));
                    inbox.add_history(&bytes)?;
                }
            }
            ToReceiver::End { .. } => return Ok(()),
            _ => return Err(inside()),
        }
    }
}

fn check_block(block: BlockIndex, head: SumHead) -> Result<(), Failure> {
    if block.0 < head.count {
        return Ok(());
    }
    Err(Failure::Protocol(PeerMisbehaved::BlockIndex { index: block.0.into(), count: head.count }.into()))
}

fn inside() -> Failure {
    Failure::Protocol(PeerMisbehaved::Rule("a message inside the data of a file").into())
}

fn is_about_writing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::StorageFull
            | Kind::QuotaExceeded
            | Kind::FileTooLarge
            | Kind::ReadOnlyFilesystem
            | Kind::WriteZero
    )
}

/// Returns what moved: without compression as many bytes as the tokens take.
fn moved(content: &Content, sum: &Bytes, ctx: &Context) -> Moved {
    let sum_len = ctx.session.transfer_sum.len() as u64;
    // A local run tells what a sender would, who counts index and flags too.
    let item = if ctx.session.direction == Direction::Sending { ITEM_BYTES } else { 0 };
    Moved {
        data: content.literal + TOKEN_BYTES * content.tokens + item + FRAME_BYTES + sum_len,
        sum: Some(sum.clone()).filter(|sum| !sum.is_empty()),
    }
}
