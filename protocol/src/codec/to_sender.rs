//! Generator to sender: items, and requests with the sums of their basis.
//!
//! Wire: protocol/doc/20-transfer.md#2-one-request-receiving-side---sending-side-and-its-reply

use std::collections::HashSet;

use bytes::{Bytes, BytesMut};

use super::to_receiver::{NDX_DELETED, NDX_DONE};
use super::Input;
use crate::error::{Decode, Error, PeerMisbehaved, Stop};
use crate::flist::Ndx;
use crate::message::ToSender;
use crate::mux::Notice;
use crate::session::Session;
use crate::transfer::{BlockSignature, DeleteCounts, Item, ItemFlags, SumHead, WantedDecoder};
use crate::wire::NdxCoder;

/// Whether block sums follow a sum head. With `--append` they do not, but a file that is asked
/// for again failed verification, and is asked for in the ordinary way.
///
/// Wire: protocol/doc/20-transfer.md#51-redo-phase
#[derive(Debug)]
struct Appending(Option<HashSet<Ndx>>);

impl Appending {
    fn new(session: &Session) -> Self {
        Appending(session.layout.append.then(HashSet::new))
    }

    fn sums_follow(&mut self, ndx: Ndx) -> bool {
        self.0.as_mut().is_none_or(|asked| !asked.insert(ndx))
    }
}

/// Encodes what the generator says.
#[derive(Debug)]
pub struct ToSenderEncoder {
    session: Session,
    appending: Appending,
    ndx: NdxCoder,
}

impl ToSenderEncoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(session: &Session) -> Self {
        ToSenderEncoder {
            session: session.clone(),
            appending: Appending::new(session),
            ndx: NdxCoder::new(session.version),
        }
    }

    /// Appends one message to the stream, or returns the notice that must travel beside it. What
    /// the version has no form for is left out: items without data below 29, deletion
    /// statistics below 31.
    pub fn encode(&mut self, message: ToSender, out: &mut Vec<u8>) -> Result<Option<Notice>, Error> {
        match message {
            ToSender::Item { ndx, item } => {
                if self.session.version.has_item_flags() {
                    self.put_item(ndx, &item, out)?;
                }
            }
            ToSender::Want { ndx, item, basis } => {
                self.put_item(ndx, &item, out)?;
                if !self.session.layout.dry_run {
                    basis.head.encode(out);
                    if self.appending.sums_follow(ndx) {
                        out.extend_from_slice(&basis.sums);
                    }
                }
            }
            ToSender::Succeeded(ndx) => return Ok(Some(Notice::Success(ndx))),
            ToSender::Done => self.ndx.encode(NDX_DONE, out),
            ToSender::Deleted(counts) => {
                if self.session.version.has_delete_phase() {
                    self.ndx.encode(NDX_DELETED, out);
                    counts.encode(out);
                }
            }
        }
        Ok(None)
    }

    fn put_item(&mut self, ndx: Ndx, item: &Item, out: &mut Vec<u8>) -> Result<(), Error> {
        self.ndx.encode(ndx.0, out);
        item.encode(self.session.version, out)?;
        if self.session.exchanges_xattrs(item.wire_flags()) {
            item.xattrs.encode(out)?;
        }
        Ok(())
    }
}

/// What comes next.
#[derive(Debug)]
#[expect(clippy::enum_variant_names, reason = "states are named for what comes next")]
enum State {
    ExpectIndex,
    ExpectDeleteCounts,
    ExpectItem(Ndx),
    ExpectXattrNumbers(Ndx, Item, WantedDecoder),
    ExpectSumHead(Ndx, Item),
    ExpectSums(Request),
}

/// A request whose block sums are arriving.
#[derive(Debug)]
struct Request {
    ndx: Ndx,
    item: Item,
    head: SumHead,
    sums: BytesMut,
    missing: usize,
}

/// Decodes what the generator says.
///
/// ```text
///   start ──► ExpectIndex ──ndx──► ExpectItem ──► ExpectXattrNumbers? ──► ExpectSumHead ──► ExpectSums
///              │  ▲  ▲  ▲              │ no data        │ no sums        │
///           -3 │  │  │  └──────────────┘                │                │
///              │  │  └──────────────────────────────────┴────────────────┘
///              ▼  │
///   ExpectDeleteCounts
/// ```
///
/// Indexes are passed on unchecked: the sender's role looks each one up in its own `FileList`,
/// which alone knows what is live at that moment (`FileList::find`, `FileList::find_for_transfer`).
#[derive(Debug)]
pub struct ToSenderDecoder {
    session: Session,
    appending: Appending,
    ndx: NdxCoder,
    state: State,
}

impl ToSenderDecoder {
    /// Starts the stream just after the handshake and the filter list.
    pub fn new(session: &Session) -> Self {
        ToSenderDecoder {
            session: session.clone(),
            appending: Appending::new(session),
            ndx: NdxCoder::new(session.version),
            state: State::ExpectIndex,
        }
    }

    /// Decodes the next message. `Succeeded` never comes from here: it is a notice.
    pub fn decode(&mut self, input: &mut Input) -> Decode<ToSender> {
        loop {
            if let Some(message) = self.step(input)? {
                return Ok(message);
            }
        }
    }

    /// Whether nothing is half read.
    pub fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::ExpectIndex)
    }

    /// Decodes one unit; not every unit makes a message.
    fn step(&mut self, input: &mut Input) -> Decode<Option<ToSender>> {
        let version = self.session.version;
        match &mut self.state {
            State::ExpectIndex => {
                let ndx = input.decode(|r| self.ndx.decode(r))?;
                self.state = match ndx {
                    0.. => State::ExpectItem(Ndx(ndx)),
                    NDX_DONE => return Ok(Some(ToSender::Done)),
                    NDX_DELETED if version.has_delete_phase() => State::ExpectDeleteCounts,
                    _ => return Err(PeerMisbehaved::UnknownIndex(Ndx(ndx)).into()),
                };
                Ok(None)
            }
            State::ExpectDeleteCounts => {
                let counts = input.decode(DeleteCounts::decode)?;
                self.state = State::ExpectIndex;
                Ok(Some(ToSender::Deleted(counts)))
            }
            State::ExpectItem(ndx) => {
                let ndx = *ndx;
                let item = input.decode(|r| Item::decode(r, version))?;
                if self.session.exchanges_xattrs(item.flags) {
                    self.state = State::ExpectXattrNumbers(ndx, item, WantedDecoder::default());
                    return Ok(None);
                }
                Ok(self.take_item(ndx, item))
            }
            State::ExpectXattrNumbers(ndx, item, numbers) => {
                let ndx = *ndx;
                let xattrs = numbers.decode(input)?;
                let item = Item { xattrs, ..std::mem::take(item) };
                Ok(self.take_item(ndx, item))
            }
            State::ExpectSumHead(ndx, item) => {
                let head = input.decode(|r| SumHead::decode(r, version, self.session.transfer_sum))?;
                let missing = if self.appending.sums_follow(*ndx) { head.sums_len() } else { 0 };
                let missing =
                    usize::try_from(missing).map_err(|_| PeerMisbehaved::Rule("too many block sums"))?;
                let item = std::mem::take(item);
                self.state =
                    State::ExpectSums(Request { ndx: *ndx, item, head, sums: BytesMut::new(), missing });
                Ok(None)
            }
            State::ExpectSums(request) => {
                let sums = request.gather(input)?;
                let (ndx, item, head) = (request.ndx, std::mem::take(&mut request.item), request.head);
                self.state = State::ExpectIndex;
                Ok(Some(ToSender::Want { ndx, item, basis: BlockSignature { head, sums } }))
            }
        }
    }

    fn take_item(&mut self, ndx: Ndx, item: Item) -> Option<ToSender> {
        self.state = State::ExpectIndex;
        // The way of old peers to say that they live; a new item always says how it became new.
        // Wire: protocol/doc/20-transfer.md#27-keep-alives
        if self.session.version.has_item_keep_alives() && item.flags == ItemFlags::IS_NEW {
            return None;
        }
        if !item.is_transfer() {
            return Some(ToSender::Item { ndx, item });
        }
        if self.session.layout.dry_run {
            return Some(ToSender::Want { ndx, item, basis: BlockSignature::whole_file() });
        }
        self.state = State::ExpectSumHead(ndx, item);
        None
    }
}

impl Request {
    /// Gathers the block sums. What is allocated grows with what has arrived, not with what was
    /// announced; sums that lie in one chunk are not copied.
    fn gather(&mut self, input: &mut Input) -> Decode<Bytes> {
        let first = input.take_piece(self.missing);
        self.missing -= first.len();
        if self.missing == 0 && self.sums.is_empty() {
            return Ok(first);
        }
        self.sums.extend_from_slice(&first);
        while self.missing > 0 {
            let piece = input.take_piece(self.missing);
            if piece.is_empty() {
                return Err(Stop::Short);
            }
            self.missing -= piece.len();
            self.sums.extend_from_slice(&piece);
        }
        Ok(std::mem::take(&mut self.sums).freeze())
    }
}

#[cfg(test)]
mod tests;
