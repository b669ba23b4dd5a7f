//! Fuzz targets of lists and of the two streams.
//!
//! Three bytes choose the session: the first as [`super::session`] says; of the second, bits 0 to
//! 4 are `-R`, `-n`, `--append`, `--delete-missing-args` and creation times, bit 5 is
//! `--numeric-ids`, bits 6 and 7 the compressor; the third is the length of a piece, and of a rich
//! session its lowest bit is `-A`.
//! Wire: protocol/doc/10-file-list.md#11-what-a-receiver-must-check

use std::fmt::Debug;

use bytes::Bytes;

use crate::codec::{Input, ToReceiverDecoder, ToSenderDecoder, ToSenderEncoder};
use crate::error::{Decode, Error, Stop};
use crate::flist::{EntryDecoder, EntryEncoder, EntryRef, Listed, Ndx, SegmentBuilder};
use crate::message::{ToReceiver, ToSender};
use crate::session::{Compat, Recursion, Session};
use crate::transfer::{Compressor, Token};
use crate::wire::Reader;

fn chosen(input: &[u8]) -> Option<(Session, usize, &[u8])> {
    let [first, second, piece, rest @ ..] = input else { return None };
    let on = |bit: u8| second & (1 << bit) != 0;
    let mut session = super::session(*first);
    session.layout.relative = on(0);
    session.layout.dry_run = on(1);
    session.layout.append = on(2);
    session.layout.missing_args = on(3);
    session.layout.crtimes = on(4) && session.compat.contains(Compat::VARINT_FLIST);
    session.layout.numeric_ids = on(5);
    session.layout.acls = session.layout.uid && piece % 2 == 1;
    session.compressor =
        [Compressor::None, Compressor::Zlib, Compressor::Zstd, Compressor::Lz4][usize::from(second >> 6)];
    Some((session, usize::from(*piece).max(1), rest))
}

/// One file list: every entry that is accepted encodes to one that reads the same.
pub fn flist(input: &[u8]) {
    let Some((session, _, input)) = chosen(input) else { return };
    let start = Ndx(i32::from(session.recursion == Recursion::Incremental));
    let list = read_list(&session, start, input);
    let before: Vec<String> = (0..list.len()).filter_map(|i| list.get(i)).map(fields).collect();
    let mut out = Vec::new();
    EntryEncoder::new(&session).encode(&list.finish(), &mut out);
    let again = read_list(&session, start, &out);
    let after: Vec<String> = (0..again.len()).filter_map(|i| again.get(i)).map(fields).collect();
    assert_eq!(after, before);
}

fn read_list(session: &Session, start: Ndx, input: &[u8]) -> SegmentBuilder {
    let mut decoder = EntryDecoder::new(session);
    let mut list = SegmentBuilder::new(start, None);
    let mut reader = Reader::new(input);
    while let Ok(Listed::Entry) = decoder.decode(&mut reader, &mut list) {}
    list
}

fn fields(entry: EntryRef<'_>) -> String {
    let numbers = (entry.mode(), entry.size(), entry.mtime(), entry.mtime_nsec(), entry.uid(), entry.gid());
    format!("{:?} {numbers:?} {:?}", entry.path(), entry.extra())
}

/// A sender's stream: how the bytes are cut makes no difference.
pub fn to_receiver(input: &[u8]) {
    let Some((session, piece, input)) = chosen(input) else { return };
    let read = |piece| {
        let Ok(mut decoder) = ToReceiverDecoder::new(&session) else { return (Vec::new(), None) };
        let (messages, stop) = drain(input, piece, |input| {
            let message = decoder.decode(input)?;
            if decoder.wants_history() && matches!(message, ToReceiver::Token(Token::Copy(_))) {
                decoder.add_history(b"the bytes of the block")?;
            }
            Ok(message)
        });
        (joined(messages), stop)
    };
    assert_eq!(read(input.len().max(1)), read(piece));
}

/// The stream of a batch file, blocks standing for zeros.
pub(super) fn replay(session: &Session, input: &[u8]) {
    let Ok(mut decoder) = ToReceiverDecoder::new(session) else { return };
    drain(input, input.len().max(1), |input| {
        let message = decoder.decode(input)?;
        if decoder.wants_history() && matches!(message, ToReceiver::Token(Token::Copy(_))) {
            decoder.add_history(&[0; 700])?;
        }
        Ok(message)
    });
}

/// Describes messages; the pieces of a literal are one.
fn joined(messages: Vec<ToReceiver>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut literal = Vec::new();
    for message in messages {
        if let ToReceiver::Token(Token::Literal(bytes)) = message {
            literal.extend_from_slice(&bytes);
            continue;
        }
        lines.push(format!("{:?}", std::mem::take(&mut literal)));
        lines.push(format!("{message:?}"));
    }
    lines.push(format!("{literal:?}"));
    lines
}

/// A generator's stream: how the bytes are cut makes no difference, and what decodes encodes to
/// something that decodes to the same.
pub fn to_sender(input: &[u8]) {
    let Some((session, piece, input)) = chosen(input) else { return };
    let read = |input: &[u8], piece| {
        let mut decoder = ToSenderDecoder::new(&session);
        drain(input, piece, |input| decoder.decode(input))
    };
    let (messages, stop) = read(input, input.len().max(1));
    let lines = |messages: &[ToSender]| messages.iter().map(|m| format!("{m:?}")).collect::<Vec<_>>();
    let described = lines(&messages);
    let (pieces, piece_stop) = read(input, piece);
    assert_eq!((lines(&pieces), piece_stop), (described.clone(), stop));
    let mut encoder = ToSenderEncoder::new(&session);
    let mut out = Vec::new();
    for message in messages {
        let encoded = encoder.encode(message, &mut out);
        assert!(encoded.is_ok_and(|notice| notice.is_none()));
    }
    let (again, stop) = read(&out, out.len().max(1));
    assert_eq!((lines(&again), stop), (described, None));
}

/// Decodes until the input ends or is refused.
fn drain<M: Debug>(
    input: &[u8],
    piece: usize,
    mut decode: impl FnMut(&mut Input) -> Decode<M>,
) -> (Vec<M>, Option<Error>) {
    let mut queue = Input::new();
    let mut messages = Vec::new();
    for chunk in input.chunks(piece) {
        queue.push(Bytes::copy_from_slice(chunk));
        loop {
            match decode(&mut queue) {
                Ok(message) => messages.push(message),
                Err(Stop::Short) => break,
                Err(Stop::Bad(error)) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}
