//! Sender to receiver: file lists, echoes, file data, statistics.
//!
//! Wire: protocol/doc/20-transfer.md#2-one-request-receiving-side---sending-side-and-its-reply,
//! protocol/doc/11-incremental-recursion.md#3-wire-form-of-a-segment

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;

use super::Input;
use crate::error::{Decode, Error, PeerMisbehaved, Stop};
use crate::flist::{
    DirNdx, EntryDecoder, EntryEncoder, FileList, IdKind, IdLists, IdRow, IoErrors, Listed, Ndx, Order,
    Segment, SegmentBuilder,
};
use crate::limits::{ENTRIES_MAX, ID_NAMES_MAX};
use crate::message::ToReceiver;
use crate::mux::Notice;
use crate::session::{Compat, Recursion, Session, Version};
use crate::transfer::{
    DeleteCounts, Item, ItemFlags, SumHead, Token, TokenDecoder, TokenEncoder, TokenEvent, TransferStats,
    ValuesDecoder,
};
use crate::wire::{put_i32, NdxCoder};

/// The end of a segment, of a phase, or of the session.
pub(super) const NDX_DONE: i32 = -1;
/// No more segments follow.
const NDX_LIST_END: i32 = -2;
/// Deletion statistics follow.
pub(super) const NDX_DELETED: i32 = -3;
/// The segment of directory 0 follows.
const NDX_SEGMENT: i32 = -101;

/// Encodes what the sender says.
pub struct ToReceiverEncoder {
    session: Session,
    version: Version,
    incremental: bool,
    /// Whether error bits of a list need a message beside it.
    errors_by_notice: bool,
    entries: EntryEncoder,
    id_lists: IdLists,
    ndx: NdxCoder,
    tokens: TokenEncoder,
}

impl ToReceiverEncoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(session: &Session) -> Result<Self, Error> {
        let version = session.version;
        let carried = session.compat.contains(Compat::VARINT_FLIST) || session.has_safe_list_end();
        Ok(ToReceiverEncoder {
            session: session.clone(),
            version,
            incremental: session.recursion == Recursion::Incremental,
            errors_by_notice: version.has_status_messages() && !carried,
            entries: EntryEncoder::new(session),
            id_lists: IdLists::new(session),
            ndx: NdxCoder::new(version),
            tokens: TokenEncoder::new(session.compressor, session.compress_level, version)?,
        })
    }

    /// Appends one message to the stream, or returns the notice that must travel beside it. A
    /// notice goes out at once: it may overtake data, but must not fall behind.
    pub fn encode(
        &mut self,
        message: ToReceiver<Infallible>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Notice>, Error> {
        match message {
            ToReceiver::Segment(segment) => return Ok(self.put_segment(&segment, out)),
            ToReceiver::ListEnd if self.incremental => self.ndx.encode(NDX_LIST_END, out),
            ToReceiver::ListEnd => {}
            ToReceiver::Item { ndx, item } => self.put_item(ndx, &item, out)?,
            ToReceiver::Begin { ndx, item, head } => {
                self.put_item(ndx, &item, out)?;
                if self.session.carries_data() {
                    head.encode(out);
                }
            }
            ToReceiver::Token(Token::Literal(bytes)) => self.tokens.literal(&bytes, out)?,
            ToReceiver::Token(Token::Copy(block)) => self.tokens.copy(block, out)?,
            ToReceiver::Local(source) => match source {},
            ToReceiver::End { sum } => {
                self.tokens.end(out)?;
                out.extend_from_slice(&sum);
            }
            ToReceiver::NotSent(ndx) => return Ok(self.notice(Notice::NoSend(ndx))),
            ToReceiver::IoErrors(errors) => return Ok(self.notice(Notice::IoErrors(errors))),
            ToReceiver::Done => self.ndx.encode(NDX_DONE, out),
            ToReceiver::Deleted(counts) if self.version.has_delete_phase() => {
                self.ndx.encode(NDX_DELETED, out);
                counts.encode(out);
            }
            ToReceiver::Deleted(_) => {}
            ToReceiver::Stats(stats) => stats.encode(self.version, out),
        }
        Ok(None)
    }

    fn notice(&self, notice: Notice) -> Option<Notice> {
        self.version.has_status_messages().then_some(notice)
    }

    fn put_segment(&mut self, segment: &Segment, out: &mut Vec<u8>) -> Option<Notice> {
        if let Some((dir, _)) = segment.dir() {
            self.ndx.encode(NDX_SEGMENT - dir.0, out);
        }
        self.entries.encode(segment, out);
        self.id_lists.put(segment.id_names(), out);
        let errors = segment.io_errors();
        if self.version.sends_io_error_after_ids() {
            put_i32(errors.bits().into(), out);
        }
        (self.errors_by_notice && !errors.is_empty()).then_some(Notice::IoErrors(errors))
    }

    fn put_item(&mut self, ndx: Ndx, item: &Item, out: &mut Vec<u8>) -> Result<(), Error> {
        // Without item flags, every record means a transfer.
        if self.version.has_item_flags() || item.is_transfer() {
            self.ndx.encode(ndx.0, out);
            item.encode(self.version, out)?;
            if self.session.exchanges_xattrs(item.wire_flags()) {
                item.xattrs.encode(out)?;
            }
        }
        Ok(())
    }

    /// Whether [`ToReceiverEncoder::add_history`] must be called for every block token.
    pub fn wants_history(&self) -> bool {
        self.tokens.wants_history()
    }

    /// Adds the bytes of a matched block to the compressor's history, right after its token.
    pub fn add_history(&mut self, block: &[u8]) -> Result<(), Error> {
        self.tokens.history(block)
    }
}

/// What comes next.
#[derive(Debug, Clone)]
enum State {
    ExpectEntry,
    ExpectIdRow(IdKind),
    ExpectIoErrors,
    /// The whole list was handed out; its end was not yet.
    OweListEnd,
    ExpectIndex,
    ExpectDeleteCounts,
    ExpectItem(Ndx),
    ExpectXattrValues(Ndx, Item),
    ExpectSumHead(Ndx, Item),
    ExpectToken {
        count: u32,
    },
    ExpectLiteral {
        count: u32,
        left: u32,
    },
    ExpectSum,
    ExpectStats,
    Over,
}

/// How far the echoes of `Done` have come.
///
/// Wire: protocol/doc/02-session-start.md#261-phases-and-done-exchange
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Until the echo that ends the last segment.
    Lists,
    /// Files that failed verification are sent again.
    Redo,
    /// The sender has closed its loop for data; from version 29 on.
    Delay,
    /// After the sender's final `Done`; from version 31 on one more follows.
    Late,
}

/// Decodes what the sender says.
///
/// ```text
///              ┌────┐                                    whole list
///   start ──► ExpectEntry ──► ExpectIdRow* ──► ExpectIoErrors? ──► OweListEnd ─┐
///              ▲    └───────────── incremental ────────────────┐               │
///   -101 - dir │                                               ▼               │
///              └────────────────────────────────────────── ExpectIndex ◄───────┘
///   -3: ──► ExpectDeleteCounts ──► ExpectIndex              │  ▲  │ -1: ──► ExpectStats? ──► ExpectIndex | Over
///                                                       ndx │  │ no data
///                                                           ▼  │
///                             ExpectItem ──► ExpectXattrValues? ──► ExpectSumHead
///                                                                            ▼
///   ExpectIndex ◄── ExpectSum ◄── end of file ──────────────────────── ExpectToken ◄──► ExpectLiteral
/// ```
pub struct ToReceiverDecoder {
    session: Session,
    incremental: bool,
    order: Order,
    state: State,
    phase: Phase,
    /// The list that is being read.
    list: SegmentBuilder,
    /// The segments that an index may name.
    live: FileList,
    lists_ended: bool,
    list_id_names: usize,
    entries: EntryDecoder,
    id_lists: IdLists,
    ndx: NdxCoder,
    xattr_values: ValuesDecoder,
    tokens: TokenDecoder,
}

impl ToReceiverDecoder {
    /// Starts the stream just after the handshake.
    pub fn new(session: &Session) -> Result<Self, Error> {
        let incremental = session.recursion == Recursion::Incremental;
        Ok(ToReceiverDecoder {
            session: session.clone(),
            incremental,
            order: Order::received(session),
            state: State::ExpectEntry,
            phase: Phase::Lists,
            list: SegmentBuilder::new(Ndx(i32::from(incremental)), None),
            live: FileList::new(),
            lists_ended: false,
            list_id_names: 0,
            entries: EntryDecoder::new(session),
            id_lists: IdLists::new(session),
            ndx: NdxCoder::new(session.version),
            xattr_values: ValuesDecoder::default(),
            tokens: TokenDecoder::new(session.compressor, session.version)?,
        })
    }

    /// Decodes the next message. `NotSent` and `IoErrors` never come from here: they are notices.
    pub fn decode(&mut self, input: &mut Input) -> Decode<ToReceiver> {
        loop {
            if let Some(message) = self.step(input)? {
                return Ok(message);
            }
        }
    }

    /// Whether nothing is half read: an end of the stream here may be an orderly one. A server
    /// with an empty list ends right after it.
    pub fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::OweListEnd | State::ExpectIndex | State::Over)
    }

    /// Whether [`ToReceiverDecoder::add_history`] must be called for every block token.
    pub fn wants_history(&self) -> bool {
        self.tokens.wants_history()
    }

    /// Adds the bytes of a matched block to the decompressor's history, before the next `decode`.
    pub fn add_history(&mut self, block: &[u8]) -> Result<(), Error> {
        self.tokens.history(block)
    }

    /// Decodes one unit; not every unit makes a message.
    fn step(&mut self, input: &mut Input) -> Decode<Option<ToReceiver>> {
        let version = self.session.version;
        match self.state {
            State::ExpectEntry => self.read_entry(input),
            State::ExpectIdRow(kind) => self.read_id_row(kind, input),
            State::ExpectIoErrors => {
                let errors = input.decode(|r| r.i32())?;
                self.list.set_io_errors(IoErrors::from_bits_truncate(errors as u8));
                Ok(Some(self.finish_list()))
            }
            State::OweListEnd => {
                self.state = State::ExpectIndex;
                Ok(Some(ToReceiver::ListEnd))
            }
            State::ExpectIndex => {
                let ndx = input.decode(|r| self.ndx.decode(r))?;
                Ok(self.take_index(ndx)?)
            }
            State::ExpectDeleteCounts => {
                let counts = input.decode(DeleteCounts::decode)?;
                self.state = State::ExpectIndex;
                Ok(Some(ToReceiver::Deleted(counts)))
            }
            State::ExpectItem(ndx) => {
                let item = input.decode(|r| Item::decode(r, version))?;
                if self.session.exchanges_xattrs(item.flags) {
                    self.state = State::ExpectXattrValues(ndx, item);
                    return Ok(None);
                }
                Ok(self.take_item(ndx, item)?)
            }
            State::ExpectXattrValues(ndx, ref mut item) => {
                let found = self.live.find(ndx)?;
                let list = found.entry().xattrs().map(|list| &**list);
                let xattrs = self.xattr_values.decode(list, input)?;
                let item = Item { xattrs, ..std::mem::take(item) };
                self.xattr_values = ValuesDecoder::default();
                Ok(self.take_item(ndx, item)?)
            }
            State::ExpectSumHead(ndx, ref item) => {
                let head = input.decode(|r| SumHead::decode(r, version, self.session.transfer_sum))?;
                let item = item.clone();
                self.state = State::ExpectToken { count: head.count };
                Ok(Some(ToReceiver::Begin { ndx, item, head }))
            }
            State::ExpectToken { count } => self.read_token(count, input),
            State::ExpectLiteral { count, left } => self.read_literal(count, left, input),
            State::ExpectSum => {
                let length = self.session.transfer_sum.len();
                let sum = input.decode(|r| r.take(length).map(Bytes::copy_from_slice))?;
                self.state = State::ExpectIndex;
                Ok(Some(ToReceiver::End { sum }))
            }
            State::ExpectStats => {
                let stats = input.decode(|r| TransferStats::decode(r, version))?;
                self.state = self.after_final();
                Ok(Some(ToReceiver::Stats(stats)))
            }
            State::Over if input.is_empty() => Err(Stop::Short),
            State::Over => Err(PeerMisbehaved::Rule("data follows the goodbye").into()),
        }
    }

    fn read_entry(&mut self, input: &mut Input) -> Decode<Option<ToReceiver>> {
        Ok(match input.decode(|r| self.entries.decode(r, &mut self.list))? {
            Listed::Entry => None,
            Listed::End(errors) => {
                self.list.set_io_errors(errors);
                self.after_id_list(None)
            }
        })
    }

    fn read_id_row(&mut self, kind: IdKind, input: &mut Input) -> Decode<Option<ToReceiver>> {
        let row = input.decode(|r| self.id_lists.take_row(kind, r))?;
        let ended = matches!(row, IdRow::End(_));
        if let IdRow::Name(name) | IdRow::End(Some(name)) = row {
            self.list_id_names += 1;
            if self.list_id_names > ID_NAMES_MAX {
                return Err(PeerMisbehaved::Rule("the id lists are too long").into());
            }
            self.list.push_id_name(name);
        }
        Ok(if ended { self.after_id_list(Some(kind)) } else { None })
    }

    /// Goes on behind the entries or an id list.
    fn after_id_list(&mut self, last: Option<IdKind>) -> Option<ToReceiver> {
        if let Some(kind) = self.id_lists.after(last) {
            self.state = State::ExpectIdRow(kind);
            None
        } else if self.session.version.sends_io_error_after_ids() {
            self.state = State::ExpectIoErrors;
            None
        } else {
            Some(self.finish_list())
        }
    }

    fn finish_list(&mut self) -> ToReceiver {
        let mut list = std::mem::replace(&mut self.list, SegmentBuilder::new(Ndx(0), None));
        list.sort(self.order);
        list.blank_duplicates(self.order);
        let segment = Arc::new(list.finish());
        self.live.push(segment.clone());
        self.lists_ended |= !self.incremental;
        self.state = if self.incremental { State::ExpectIndex } else { State::OweListEnd };
        ToReceiver::Segment(segment)
    }

    fn take_index(&mut self, ndx: i32) -> Result<Option<ToReceiver>, PeerMisbehaved> {
        let more_lists = self.incremental && !self.lists_ended;
        match ndx {
            0.. => self.state = State::ExpectItem(Ndx(ndx)),
            NDX_DONE => return self.take_done().map(Some),
            NDX_DELETED if self.session.version.has_delete_phase() => self.state = State::ExpectDeleteCounts,
            NDX_LIST_END if more_lists => {
                self.lists_ended = true;
                return Ok(Some(ToReceiver::ListEnd));
            }
            ..=NDX_SEGMENT if more_lists => self.begin_segment(DirNdx(NDX_SEGMENT - ndx))?,
            _ => return Err(PeerMisbehaved::UnknownIndex(Ndx(ndx))),
        }
        Ok(None)
    }

    fn begin_segment(&mut self, dir: DirNdx) -> Result<(), PeerMisbehaved> {
        let start = self.live.next_start(Ndx(1));
        if start.0 as usize >= ENTRIES_MAX {
            return Err(PeerMisbehaved::Rule("the file lists hold too many entries"));
        }
        let entry = self.live.take_dir(dir)?;
        self.list = SegmentBuilder::new(start, Some((dir, entry)));
        self.state = State::ExpectEntry;
        Ok(())
    }

    fn take_done(&mut self) -> Result<ToReceiver, PeerMisbehaved> {
        match self.phase {
            Phase::Lists if self.live.live().len() > 1 => drop(self.live.release_oldest()),
            Phase::Lists if !self.lists_ended => {
                return Err(PeerMisbehaved::Rule("the last known list ended before the lists did"));
            }
            Phase::Lists => self.phase = Phase::Redo,
            Phase::Redo if self.session.version.has_delay_phase() => self.phase = Phase::Delay,
            Phase::Redo | Phase::Delay => {
                self.phase = Phase::Late;
                self.state = match self.session.sender_reports_stats() {
                    true => State::ExpectStats,
                    false => self.after_final(),
                };
            }
            Phase::Late => self.state = State::Over,
        }
        Ok(ToReceiver::Done)
    }

    /// Returns the state behind the final `Done` and its statistics.
    fn after_final(&self) -> State {
        match self.session.version.has_delete_phase() {
            true => State::ExpectIndex,
            false => State::Over,
        }
    }

    fn take_item(&mut self, ndx: Ndx, item: Item) -> Result<Option<ToReceiver>, PeerMisbehaved> {
        self.state = State::ExpectIndex;
        if self.is_keep_alive(ndx, &item) {
            return Ok(None);
        }
        if !item.is_transfer() {
            self.live.find(ndx)?;
            return Ok(Some(ToReceiver::Item { ndx, item }));
        }
        if self.phase >= Phase::Delay {
            return Err(PeerMisbehaved::LatePhase(2));
        }
        self.live.find_for_transfer(ndx)?;
        if !self.session.carries_data() {
            return Ok(Some(ToReceiver::Begin { ndx, item, head: SumHead::default() }));
        }
        self.state = State::ExpectSumHead(ndx, item);
        Ok(None)
    }

    /// Whether this is no item but the way of old peers to say that they live.
    ///
    /// Wire: protocol/doc/20-transfer.md#27-keep-alives
    fn is_keep_alive(&self, ndx: Ndx, item: &Item) -> bool {
        let files = || self.live.live().map(|segment| segment.len()).sum();
        self.session.version.has_item_keep_alives()
            && item.flags == ItemFlags::IS_NEW
            && usize::try_from(ndx.0) == Ok(files())
    }

    fn read_token(&mut self, count: u32, input: &mut Input) -> Decode<Option<ToReceiver>> {
        let token = match input.decode(|r| self.tokens.decode(r, count))? {
            None => return Ok(None),
            Some(TokenEvent::Literal(bytes)) => Token::Literal(bytes),
            Some(TokenEvent::Copy(block)) => Token::Copy(block),
            Some(TokenEvent::LiteralFollows(left)) => {
                self.state = State::ExpectLiteral { count, left };
                return Ok(None);
            }
            Some(TokenEvent::End) => {
                self.state = State::ExpectSum;
                return Ok(None);
            }
        };
        Ok(Some(ToReceiver::Token(token)))
    }

    /// Hands out what has arrived of an uncompressed literal: it is never gathered.
    fn read_literal(&mut self, count: u32, left: u32, input: &mut Input) -> Decode<Option<ToReceiver>> {
        let piece = input.take_piece(left as usize);
        if piece.is_empty() {
            return Err(Stop::Short);
        }
        self.state = match left - piece.len() as u32 {
            0 => State::ExpectToken { count },
            left => State::ExpectLiteral { count, left },
        };
        Ok(Some(ToReceiver::Token(Token::Literal(piece))))
    }
}

#[cfg(test)]
mod tests;
