//! Copies of messages: the roles' messages are moved, never copied, so they cannot do it themselves.

use suisei_protocol::message::{ToReceiver, ToSender};

pub fn to_sender(message: &ToSender) -> ToSender {
    match message {
        ToSender::Item { ndx, item } => ToSender::Item { ndx: *ndx, item: item.clone() },
        ToSender::Want { ndx, item, basis } => {
            ToSender::Want { ndx: *ndx, item: item.clone(), basis: basis.clone() }
        }
        ToSender::Succeeded(ndx) => ToSender::Succeeded(*ndx),
        ToSender::Done => ToSender::Done,
        ToSender::Deleted(counts) => ToSender::Deleted(*counts),
    }
}

pub fn to_receiver(message: &ToReceiver) -> ToReceiver {
    match message {
        ToReceiver::Segment(segment) => ToReceiver::Segment(segment.clone()),
        ToReceiver::ListEnd => ToReceiver::ListEnd,
        ToReceiver::Item { ndx, item } => ToReceiver::Item { ndx: *ndx, item: item.clone() },
        ToReceiver::Begin { ndx, item, head } => {
            ToReceiver::Begin { ndx: *ndx, item: item.clone(), head: *head }
        }
        ToReceiver::Token(token) => ToReceiver::Token(token.clone()),
        ToReceiver::Local(source) => match *source {},
        ToReceiver::End { sum } => ToReceiver::End { sum: sum.clone() },
        ToReceiver::NotSent(ndx) => ToReceiver::NotSent(*ndx),
        ToReceiver::IoErrors(errors) => ToReceiver::IoErrors(*errors),
        ToReceiver::Done => ToReceiver::Done,
        ToReceiver::Deleted(counts) => ToReceiver::Deleted(*counts),
        ToReceiver::Stats(stats) => ToReceiver::Stats(*stats),
    }
}
