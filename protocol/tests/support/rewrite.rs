//! Recorded data decoded and encoded again, message by message.
//!
//! A decoder sorts a list, and stock sends it in the order of its directory reads; so lists are
//! built here in order of transmission before they are encoded again.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use suisei_protocol::codec::{Input, ToReceiverDecoder, ToReceiverEncoder, ToSenderDecoder, ToSenderEncoder};
use suisei_protocol::flist::{EntryDecoder, Listed, NewEntry, Segment, SegmentBuilder};
use suisei_protocol::message::ToReceiver;
use suisei_protocol::session::Session;
use suisei_protocol::wire::{NdxCoder, Reader};
use suisei_protocol::{Decode, Stop};

use super::events::print;
use super::replay::{Files, Message};
use super::{copy, Recorded};

/// One message, where it was and what it became.
pub struct Piece {
    pub range: Range<usize>,
    pub bytes: Vec<u8>,
    pub is_token: bool,
    pub text: String,
}

fn unless_short<M>(decoded: Decode<M>) -> Option<M> {
    match decoded {
        Ok(message) => Some(message),
        Err(Stop::Short) => None,
        Err(stop) => panic!("{stop:?}"),
    }
}

pub fn to_sender(writer: &Session, reader: &Session, data: &[u8]) -> Vec<Piece> {
    let mut decoder = ToSenderDecoder::new(reader);
    let mut encoder = ToSenderEncoder::new(writer);
    let mut input = Input::new();
    input.push(Bytes::copy_from_slice(data));
    let (mut pieces, mut at) = (Vec::new(), 0);
    loop {
        let Some(message) = unless_short(decoder.decode(&mut input)) else { return pieces };
        let range = at..data.len() - input.len();
        at = range.end;
        let mut bytes = Vec::new();
        encoder.encode(copy::to_sender(&message), &mut bytes).unwrap();
        let text = print([&Message::ToSender(message)]);
        pieces.push(Piece { range, bytes, is_token: false, text });
    }
}

pub fn to_receiver(recorded: &Recorded, writer: &Session, reader: &Session, data: &[u8]) -> Vec<Piece> {
    let mut decoder = ToReceiverDecoder::new(reader).unwrap();
    let mut encoder = ToReceiverEncoder::new(writer).unwrap();
    let mut lists = Lists { entries: EntryDecoder::new(reader), ndx: NdxCoder::new(reader.version) };
    let mut files = Files::new(recorded, reader);
    let mut input = Input::new();
    input.push(Bytes::copy_from_slice(data));
    let (mut pieces, mut at) = (Vec::new(), 0);
    loop {
        let Some(message) = unless_short(decoder.decode(&mut input)) else { return pieces };
        let range = at..data.len() - input.len();
        at = range.end;
        let as_sent = lists.as_sent(&message, &data[range.clone()]);
        let mut bytes = Vec::new();
        encoder.encode(as_sent, &mut bytes).unwrap();
        if let Some(block) = files.follow(&message) {
            if decoder.wants_history() {
                decoder.add_history(&block).unwrap();
                encoder.add_history(&block).unwrap();
            }
        }
        let is_token = matches!(message, ToReceiver::Token(_) | ToReceiver::End { .. });
        let text = print([&Message::ToReceiver(message)]);
        pieces.push(Piece { range, bytes, is_token, text });
    }
}

/// A second reading of the lists, which keeps their order.
struct Lists {
    entries: EntryDecoder,
    ndx: NdxCoder,
}

impl Lists {
    fn as_sent(&mut self, message: &ToReceiver, bytes: &[u8]) -> ToReceiver {
        let mut reader = Reader::new(bytes);
        match message {
            ToReceiver::Segment(segment) => {
                if segment.dir().is_some() {
                    self.ndx.decode(&mut reader).unwrap();
                }
                return ToReceiver::Segment(Arc::new(self.list(segment, &mut reader)));
            }
            // Every other message with an index starts with it.
            ToReceiver::Item { .. }
            | ToReceiver::Begin { .. }
            | ToReceiver::Done
            | ToReceiver::Deleted(_) => {
                self.ndx.decode(&mut reader).unwrap();
            }
            ToReceiver::ListEnd if !bytes.is_empty() => {
                self.ndx.decode(&mut reader).unwrap();
            }
            _ => {}
        }
        copy::to_receiver(message)
    }

    fn list(&mut self, sorted: &Segment, reader: &mut Reader<'_>) -> Segment {
        let dir = sorted.dir().map(|(ndx, entry)| (ndx, entry.clone()));
        let mut list = SegmentBuilder::new(sorted.start(), dir);
        while self.entries.decode(reader, &mut list).unwrap() == Listed::Entry {}
        list.set_io_errors(sorted.io_errors());
        let inline = list.finish();
        // Names of ids are taken from the decoded list, whether they came inline or after it.
        let mut list =
            SegmentBuilder::new(inline.start(), inline.dir().map(|(ndx, entry)| (ndx, entry.clone())));
        for (_, e) in inline.iter() {
            let entry = NewEntry {
                path: e.wire_path(),
                mode: e.mode(),
                size: e.size(),
                mtime: e.mtime(),
                mtime_nsec: e.mtime_nsec(),
                uid: e.uid(),
                gid: e.gid(),
                flags: e.flags(),
            };
            list.push(entry, e.extra().cloned().unwrap_or_default()).unwrap();
        }
        list.set_io_errors(sorted.io_errors());
        sorted.id_names().iter().for_each(|name| list.push_id_name(name.clone()));
        list.finish()
    }
}
