//! About what the messages of a local run would weigh on the wire: for the totals that users
//! compare, and for nothing else.

use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::transfer::{Item, Token};

/// Flags, lengths, size, time and mode of a list entry, some of which repeat.
const ENTRY: u64 = 12;
/// Index and item flags.
const ITEM: u64 = 3;
const HEAD: u64 = 16;
const TOKEN: u64 = 4;
const SUM: u64 = 16;
const LITERAL: u64 = 32 << 10;

/// `size_of`: the size of a source that is handed over.
pub(super) fn of_reply<L>(message: &ToReceiver<L>, size_of: fn(&L) -> u64) -> u64 {
    match message {
        ToReceiver::Segment(segment) => {
            segment.iter().map(|(_, entry)| ENTRY + entry.path().name().len() as u64).sum()
        }
        ToReceiver::Item { item, .. } => of_item(item),
        ToReceiver::Begin { item, .. } => of_item(item) + HEAD,
        ToReceiver::Token(Token::Literal(data)) => literal(data.len() as u64),
        ToReceiver::Token(Token::Copy(_)) => TOKEN,
        ToReceiver::Local(source) => literal(size_of(source)),
        ToReceiver::End { .. } => TOKEN + SUM,
        _ => 1,
    }
}

pub(super) fn of_request(message: &ToSender) -> u64 {
    match message {
        ToSender::Item { item, .. } => of_item(item),
        ToSender::Want { item, basis, .. } => of_item(item) + HEAD + basis.sums.len() as u64,
        _ => 1,
    }
}

fn of_item(item: &Item) -> u64 {
    ITEM + item.xname.as_ref().map_or(0, |name| 1 + name.len() as u64)
}

fn literal(len: u64) -> u64 {
    len + TOKEN * len.div_ceil(LITERAL)
}
