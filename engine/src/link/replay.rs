//! The link of a replay: the sender is a batch file, and requests lead nowhere but to the question
//! which of its records are wanted.
//!
//! ```text
//! batch file ─► ReplayInbox ─► receiver
//!                    ▲
//!                    └── wants, ends of segments, Dones ── Wants ◄─ generator
//! ```
//!
//! A record waits until the generator has asked for it or has walked past it, which it does without
//! further input; a `Done` waits until the generator has said its own, and what it asked for in vain
//! is answered before. So neither waits for the other for ever, whatever the file holds.
//! Wire: protocol/doc/04-batch-and-files-from.md#44-reading

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};

use bytes::BytesMut;
use suisei_protocol::codec::Input;
use suisei_protocol::flist::{FileList, Ndx, Segment};
use suisei_protocol::message::{FromReceiver, ToReceiver, ToSender};
use suisei_protocol::transfer::{Item, ItemFlags, SumHead, Token};
use suisei_protocol::Stop;

use super::remote::{Decoder, Replies};
use super::stream::{wait, Ready};
use super::{Inbox, Outbox, TICK};
use crate::observe::{Class, Event, Note, Problem, What, Who};
use crate::{Context, Failure};

/// Room for one read.
const READ_BYTES: usize = 128 << 10;
/// As much of a block as a decompressor can refer to, and more.
const HISTORY_BYTES: usize = 64 << 10;

/// An open batch file that is read.
#[derive(Debug)]
pub struct BatchInput {
    /// Where its bytes come from: a regular file, or a pipe.
    pub file: OwnedFd,
    /// Bytes behind the head that were read with it.
    pub early: Vec<u8>,
}

/// What the generator says in a replay.
#[derive(Debug, Clone, Copy)]
enum Said {
    Want(Ndx),
    Walked,
    Done,
}

/// Makes the ends of a receiving side.
pub(crate) fn replay(ctx: &Context, batch: BatchInput) -> Result<(ReplayInbox<'_>, Wants), Failure> {
    let (sender, said) = channel();
    let mut input = Input::new();
    input.push(batch.early.into());
    let inbox = ReplayInbox {
        ctx,
        file: batch.file,
        buffer: BytesMut::new(),
        input,
        decoder: Replies::new(&ctx.session)?,
        read: 0,
        said,
        generator: None,
        hurried: 0,
        wants: VecDeque::new(),
        walked: 0,
        dones: 0,
        echoed: 0,
        list: FileList::new(),
        in_lists: true,
        due: None,
    };
    Ok((inbox, Wants(sender)))
}

/// The generator's outbox: its requests are noted, not sent.
pub(crate) struct Wants(Sender<Said>);

impl Wants {
    fn say(&self, said: Said) -> Result<(), Failure> {
        self.0.send(said).map_err(|_| Failure::Sibling)
    }
}

impl Outbox<ToSender> for Wants {
    fn send(&mut self, message: ToSender) -> Result<(), Failure> {
        match message {
            ToSender::Want { ndx, .. } => self.say(Said::Want(ndx)),
            ToSender::Done => match self.say(Said::Done) {
                // The goodbye may come after the receiver's end.
                Err(Failure::Sibling) => Ok(()),
                other => other,
            },
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn walked(&mut self) -> Result<(), Failure> {
        self.say(Said::Walked)
    }
}

/// The receiver's inbox: the records that are wanted.
pub(crate) struct ReplayInbox<'a> {
    ctx: &'a Context,
    file: OwnedFd,
    buffer: BytesMut,
    input: Input,
    decoder: Replies,
    read: u64,
    said: Receiver<Said>,
    generator: Option<Sender<FromReceiver>>,
    /// Segments that the generator was told to walk.
    hurried: u32,
    /// Asked for and not answered.
    wants: VecDeque<Ndx>,
    /// Segments that the generator has walked, and `Done`s that it has said.
    walked: u32,
    dones: u32,
    /// `Done`s that were passed on.
    echoed: u32,
    /// The live segments.
    list: FileList,
    /// Until the `Done` of the last segment.
    in_lists: bool,
    /// A record or a `Done` that waits for the generator.
    due: Option<ToReceiver>,
}

impl ReplayInbox<'_> {
    /// Returns the next message of the file.
    fn next(&mut self) -> Result<ToReceiver, Failure> {
        loop {
            match self.decoder.decode(&mut self.input) {
                Ok(message) => return Ok(message),
                Err(Stop::Bad(error)) => return Err(error.into()),
                Err(Stop::Short) => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let failed = |error| Failure::Connection { call: "read", error };
        loop {
            self.ctx.check_interrupt()?;
            if !wait(self.file.as_fd(), Ready::Read, None, TICK).map_err(failed)? {
                continue;
            }
            self.buffer.reserve(READ_BYTES);
            let read = crate::sys::stream::read_into(&self.file, &mut self.buffer).map_err(failed)?;
            if read == 0 {
                return Err(Failure::PeerClosed { received: self.read, who: Who::Receiver });
            }
            self.read += read as u64;
            self.input.push(self.buffer.split().freeze());
            return Ok(());
        }
    }

    /// Waits for what the generator says next, which is about the first so many segments. With `-H`
    /// it waits for more of the list otherwise.
    fn listen(&mut self, segments: u32) -> Result<(), Failure> {
        if let Some(generator) = self.generator.as_ref().filter(|_| segments > self.hurried) {
            self.hurried = segments;
            generator.send(FromReceiver::Walk(segments)).map_err(|_| Failure::Sibling)?;
        }
        loop {
            self.ctx.check_interrupt()?;
            match self.said.recv_timeout(TICK) {
                Ok(said) => {
                    self.hear(said);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Sibling),
            }
        }
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Want(ndx) => self.wants.push_back(ndx),
            Said::Walked => self.walked += 1,
            Said::Done => self.dones += 1,
        }
    }

    /// Returns whether the generator asked for this record; waits until it had its chance. In a
    /// segment that is all walked: what it sees of the destination is then not a matter of luck.
    fn is_wanted(&mut self, ndx: Ndx) -> Result<bool, Failure> {
        while self.in_lists && self.walked <= self.segment_of(ndx) {
            self.listen(self.segment_of(ndx) + 1)?;
        }
        loop {
            if let Some(at) = self.wants.iter().position(|&wanted| wanted == ndx) {
                self.wants.remove(at);
                return Ok(true);
            }
            if let Ok(said) = self.said.try_recv() {
                self.hear(said);
                continue;
            }
            // Behind the lists, either something is asked for again, or nothing.
            if self.in_lists || !self.wants.is_empty() || self.dones > self.echoed {
                return Ok(false);
            }
            self.listen(self.hurried)?;
        }
    }

    /// Returns how many segments come before that of an index.
    fn segment_of(&self, ndx: Ndx) -> u32 {
        let before = self.list.live().take_while(|segment| end_of(segment) <= ndx).count();
        self.echoed + before as u32
    }

    /// Does what a waiting message is about. It may have to wait on, behind an answer of ours.
    fn settle(&mut self, message: ToReceiver) -> Result<Option<ToReceiver>, Failure> {
        match message {
            ToReceiver::Begin { ndx, item, head } => {
                if self.is_wanted(ndx)? {
                    return Ok(Some(ToReceiver::Begin { ndx, item, head }));
                }
                self.skip(ndx, &item, head)?;
                Ok(None)
            }
            message => loop {
                if let Some(ndx) = self.in_vain() {
                    self.due = Some(message);
                    self.report_missing(ndx)?;
                    return Ok(Some(ToReceiver::NotSent(ndx)));
                }
                if self.dones > self.echoed {
                    self.end_segment();
                    return Ok(Some(message));
                }
                self.listen(self.echoed + 1)?;
            },
        }
    }

    /// Takes a request that the file does not answer before the `Done` that is due.
    fn in_vain(&mut self) -> Option<Ndx> {
        let has_more = self.in_lists && self.list.live().len() > 1;
        let end = self.list.live().next().filter(|_| has_more).map(|segment| end_of(segment));
        let at = self.wants.iter().position(|&ndx| end.is_none_or(|end| ndx < end))?;
        self.wants.remove(at)
    }

    fn end_segment(&mut self) {
        self.echoed += 1;
        if self.in_lists && self.list.live().len() > 1 {
            self.list.release_oldest();
        } else {
            self.in_lists = false;
        }
    }

    fn report_missing(&self, ndx: Ndx) -> Result<(), Failure> {
        let found = self.list.find_for_transfer(ndx)?;
        let path = found.entry().path();
        let what =
            What::Sentence { before: "(No batched update for \"", path: path.as_bytes(), after: "\")" };
        self.ctx.report_problem(Problem { who: Who::Receiver, class: Class::Transfer, what });
        Ok(())
    }

    /// Reads and forgets the data of a record. What its blocks hold is not known: zeros keep the
    /// decompressor going, and nothing of what it makes is kept.
    fn skip(&mut self, ndx: Ndx, item: &Item, head: SumHead) -> Result<(), Failure> {
        let found = self.list.find_for_transfer(ndx)?;
        let stats = self.ctx.stats.clone();
        self.ctx.report(Event::Note(found.entry().path(), Note::RecordSkipped));
        // As in stock, it moved all the same.
        stats.transferred.add(1);
        stats.transferred_size.add(found.entry().size());
        if item.flags.contains(ItemFlags::IS_NEW) {
            stats.created.count(found.entry().kind());
        }
        loop {
            self.ctx.check_interrupt()?;
            match self.next()? {
                ToReceiver::Token(Token::Copy(block)) => {
                    let len = head.len_of(block.0);
                    stats.matched.add(len.into());
                    if self.decoder.wants_history() {
                        self.decoder.add_history(&vec![0; (len as usize).min(HISTORY_BYTES)])?;
                    }
                }
                ToReceiver::Token(Token::Literal(data)) => stats.literal.add(data.len() as u64),
                // The end of the data; nothing else can come out of the decoder here.
                _ => return Ok(()),
            }
        }
    }
}

/// Returns the first index behind a segment.
fn end_of(segment: &Segment) -> Ndx {
    Ndx(segment.start().0 + segment.len() as i32)
}

impl Inbox<ToReceiver> for ReplayInbox<'_> {
    fn recv(&mut self) -> Result<ToReceiver, Failure> {
        loop {
            let message = match self.due.take() {
                Some(message) => message,
                None => self.next()?,
            };
            match message {
                ToReceiver::Segment(segment) => {
                    self.list.push(segment.clone());
                    return Ok(ToReceiver::Segment(segment));
                }
                ToReceiver::Begin { .. } | ToReceiver::Done => {
                    if let Some(message) = self.settle(message)? {
                        return Ok(message);
                    }
                }
                ToReceiver::Stats(stats) => {
                    // The totals are those of the recorded run.
                    self.ctx.stats.bytes_written.set(stats.read);
                    self.ctx.stats.bytes_read.set(stats.written);
                    return Ok(ToReceiver::Stats(stats));
                }
                other => return Ok(other),
            }
        }
    }

    fn try_recv(&mut self) -> Result<Option<ToReceiver>, Failure> {
        self.recv().map(Some)
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        Ok(self.decoder.add_history(block)?)
    }

    fn wants_history(&self) -> bool {
        self.decoder.wants_history()
    }

    fn hurry_by(&mut self, generator: Sender<FromReceiver>) {
        self.generator = Some(generator);
    }

    fn bytes_read(&self) -> u64 {
        self.read
    }
}
