//! Encoding, then decoding, gives back the same messages: for every version, both forms of lists,
//! every optional field, and however the stream is cut.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use suisei_protocol::codec::{Input, ToReceiverDecoder, ToReceiverEncoder, ToSenderDecoder, ToSenderEncoder};
use suisei_protocol::flist::{EntryRef, IdKind, Ndx, Segment};
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::mux::Notice;
use suisei_protocol::session::{Compat, Direction, Recursion, Session, Side};
use suisei_protocol::transfer::{
    BasisKind, BlockIndex, BlockSignature, DeleteCounts, Item, ItemFlags, SumHead, Token, TransferStats,
    XattrExchange,
};
use suisei_protocol::Stop;
use support::trees::{fields, segments, sessions, trees};

/// The other end of a session.
fn peer(session: &Session) -> Session {
    let side = match session.side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    };
    let direction = match session.direction {
        Direction::Sending => Direction::Receiving,
        Direction::Receiving => Direction::Sending,
    };
    Session { side, direction, ..session.clone() }
}

/// Decodes a whole stream that arrives in pieces; literals are joined.
fn receive(session: &Session, stream: &[u8], piece: usize) -> Vec<ToReceiver> {
    let mut decoder = ToReceiverDecoder::new(session).unwrap();
    let mut input = Input::new();
    let mut messages: Vec<ToReceiver> = Vec::new();
    for chunk in stream.chunks(piece) {
        input.push(Bytes::copy_from_slice(chunk));
        loop {
            let message = match decoder.decode(&mut input) {
                Ok(message) => message,
                Err(Stop::Short) => break,
                Err(Stop::Bad(error)) => panic!("{error}"),
            };
            match (messages.last_mut(), message) {
                (Some(ToReceiver::Token(Token::Literal(last))), ToReceiver::Token(Token::Literal(more))) => {
                    *last = [last.as_ref(), &more].concat().into();
                }
                (_, message) => messages.push(message),
            }
        }
    }
    assert!(decoder.is_at_boundary() && input.is_empty());
    messages
}

fn expected_names(session: &Session, sent: &Segment) -> Vec<(IdKind, u32, Vec<u8>)> {
    let inline = session.recursion == Recursion::Incremental;
    let zero = inline || session.compat.contains(Compat::ID0_NAMES);
    let travels = |kind| {
        !session.layout.numeric_ids
            && (if kind == IdKind::User { session.layout.uid } else { session.layout.gid }
                || (session.layout.acls && session.version.has_acls_and_xattrs()))
    };
    let mut names: Vec<_> = sent
        .id_names()
        .iter()
        .filter(|name| travels(name.kind) && (name.id != 0 || zero))
        .map(|name| (name.kind, name.id, name.name.clone()))
        .collect();
    names.sort_by_key(|(kind, id, _)| (*kind == IdKind::Group, *id));
    names
}

fn same_segment(session: &Session, sent: &Segment, got: &Segment, notice: Option<Notice>) {
    assert_eq!(got.start(), sent.start());
    assert_eq!(got.dir().map(|(ndx, _)| ndx), sent.dir().map(|(ndx, _)| ndx));
    let list = |s: &Segment| s.iter().map(|(ndx, entry)| (ndx, fields(session, entry))).collect::<Vec<_>>();
    assert_eq!(list(got), list(sent));
    let mut names: Vec<_> =
        got.id_names().iter().map(|name| (name.kind, name.id, name.name.clone())).collect();
    names.sort_by_key(|(kind, id, _)| (*kind == IdKind::Group, *id));
    assert_eq!(names, expected_names(session, sent));
    match notice {
        None => assert_eq!(got.io_errors(), sent.io_errors()),
        Some(notice) => assert_eq!(notice, Notice::IoErrors(sent.io_errors())),
    }
}

/// A file's messages, with the tokens that its basis allows.
fn file_strategy() -> impl Strategy<Value = (SumHead, Vec<Token>)> {
    let token = |count: u32| {
        let literal = prop::collection::vec(any::<u8>(), 1..200).prop_map(|b| Token::Literal(b.into()));
        let copy = (0..count.max(1)).prop_map(|n| Token::Copy(BlockIndex(n)));
        if count == 0 {
            prop::collection::vec(literal.boxed(), 0..6).boxed()
        } else {
            prop::collection::vec(prop_oneof![literal, copy], 0..12).boxed()
        }
    };
    (0u32..50).prop_flat_map(move |count| {
        let head = SumHead { count, block_len: 700, sum_len: 2, remainder: 13 };
        let head = if count == 0 { SumHead::default() } else { head };
        (Just(head), token(count))
    })
}

fn item_strategy() -> impl Strategy<Value = Item> {
    let basis = prop_oneof![
        Just(None),
        (0u8..0x80).prop_map(|n| Some(BasisKind::AlternateDir(n))),
        Just(Some(BasisKind::PartialDir)),
        Just(Some(BasisKind::Backup)),
        (0u8..4).prop_map(|n| Some(BasisKind::Fuzzy(n))),
    ];
    let xname = prop::option::of(prop::collection::vec(any::<u8>(), 0..300).prop_map(Vec::into_boxed_slice));
    (any::<u16>(), basis, xname).prop_map(|(bits, basis, xname)| {
        let mut flags = ItemFlags::from_bits_retain(bits & 0x65FF | 0x0010);
        flags.set(ItemFlags::BASIS_TYPE_FOLLOWS, basis.is_some());
        flags.set(ItemFlags::XNAME_FOLLOWS, xname.is_some());
        Item { flags, basis, xname, xattrs: XattrExchange::Nothing }
    })
}

/// Gives an item the field that its session and flags demand.
fn exchanging(session: &Session, item: Item, xattrs: XattrExchange) -> Item {
    let xattrs = if session.exchanges_xattrs(item.flags) { xattrs } else { XattrExchange::Nothing };
    Item { xattrs, ..item }
}

/// A value for each number that may be asked for of an entry.
fn values(entry: Option<EntryRef<'_>>) -> XattrExchange {
    let list = entry.and_then(|entry| entry.xattrs());
    let numbers = list.into_iter().flat_map(|list| list.long_values()).map(|(number, _)| number);
    XattrExchange::Values(numbers.map(|n| (n, vec![7; n as usize * 100 - 100].into())).collect())
}

fn wanted(session: &Session, item: &Item) -> Item {
    match session.version.has_item_flags() {
        true => Item { flags: item.flags | ItemFlags::TRANSFER, ..item.clone() },
        false => Item::new(ItemFlags::TRANSFER),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn lists_and_echoes_survive(
        session in sessions(),
        tree in trees(),
        files in prop::collection::vec((item_strategy(), file_strategy()), 0..4),
        piece in 1usize..300,
    ) {
        let receiving = peer(&session);
        let lists = segments(&session, &tree);
        let mut encoder = ToReceiverEncoder::new(&session).unwrap();
        let mut stream = Vec::new();
        let mut notices = Vec::new();
        for list in &lists {
            notices.push(encoder.encode(ToReceiver::Segment(list.clone()), &mut stream).unwrap());
        }
        encoder.encode(ToReceiver::ListEnd, &mut stream).unwrap();
        let regular: Vec<Ndx> =
            lists.iter().flat_map(|s| s.iter().filter(|(_, e)| e.is_regular()).map(|(n, _)| n).collect::<Vec<_>>()).collect();
        let mut sent: Vec<String> = vec![format!("{:?}", ToReceiver::<std::convert::Infallible>::ListEnd)];
        let mut send = |message: ToReceiver, stream: &mut Vec<u8>| {
            sent.push(format!("{message:?}"));
            encoder.encode(message, stream).unwrap();
        };
        for (i, (plain, (head, tokens))) in files.iter().enumerate() {
            let Some(&ndx) = regular.get(i % regular.len().max(1)) else { break };
            let entry = || lists.iter().find_map(|s| s.iter().find(|(n, _)| *n == ndx)).map(|(_, entry)| entry);
            let item = |item: Item| exchanging(&session, item, values(entry()));
            if session.version.has_item_flags() {
                send(ToReceiver::Item { ndx, item: item(plain.clone()) }, &mut stream);
            }
            let head = if session.layout.dry_run { SumHead::default() } else { *head };
            send(ToReceiver::Begin { ndx, item: item(wanted(&session, plain)), head }, &mut stream);
            if session.layout.dry_run {
                continue;
            }
            let mut joined: Vec<Token> = Vec::new();
            for token in tokens {
                match (joined.last_mut(), token) {
                    (Some(Token::Literal(last)), Token::Literal(more)) => *last = [last.as_ref(), more].concat().into(),
                    _ => joined.push(token.clone()),
                }
            }
            joined.into_iter().for_each(|token| send(ToReceiver::Token(token), &mut stream));
            send(ToReceiver::End { sum: vec![9; session.transfer_sum.len()].into() }, &mut stream);
        }
        for done in 0..lists.len() + 1 + usize::from(session.version.has_delay_phase()) {
            if done == 1 && session.version.has_delete_phase() {
                send(ToReceiver::Deleted(DeleteCounts { files: 3, specials: 300, ..DeleteCounts::default() }), &mut stream);
            }
            send(ToReceiver::Done, &mut stream);
        }
        if session.sender_reports_stats() {
            let mut stats = TransferStats { read: 1, written: 1 << 40, total_size: 77, ..TransferStats::default() };
            if session.version.has_list_times() {
                stats.list_build_ms = 5;
            }
            send(ToReceiver::Stats(stats), &mut stream);
        }
        if session.version.has_delete_phase() {
            send(ToReceiver::Done, &mut stream);
        }

        let got = receive(&receiving, &stream, piece);
        let (got_lists, got_rest) = got.split_at(lists.len());
        for ((list, got), notice) in lists.iter().zip(got_lists).zip(notices) {
            let ToReceiver::Segment(got) = got else { panic!("{got:?}") };
            same_segment(&session, list, got, notice);
        }
        let got_rest: Vec<String> = got_rest.iter().map(|message| format!("{message:?}")).collect();
        prop_assert_eq!(got_rest, sent);
    }

    #[test]
    fn requests_survive(
        session in sessions(),
        requests in prop::collection::vec((prop_oneof![0i32..8, 0i32..70_000], item_strategy(), 0u32..40, any::<u8>()), 0..20),
        piece in 1usize..100,
    ) {
        let mut encoder = ToSenderEncoder::new(&peer(&session));
        let mut stream = Vec::new();
        let mut sent = Vec::new();
        let mut asked = std::collections::HashSet::new();
        let mut send = |message: ToSender| {
            sent.push(format!("{message:?}"));
            assert_eq!(encoder.encode(message, &mut stream), Ok(None));
        };
        for (ndx, item, count, fill) in &requests {
            let ndx = Ndx(*ndx);
            let numbers = || XattrExchange::Wanted((0..*count % 5).map(|n| 1 + (n * 7 + u32::from(*fill)) % 30).collect());
            let asking = |item| exchanging(&session, item, numbers());
            if session.version.has_item_flags() {
                send(ToSender::Item { ndx, item: asking(item.clone()) });
            }
            let sum_len = fill % 8;
            // Asked for again, a file failed verification, and is wanted with sums even by `--append`.
            let again = !asked.insert(ndx);
            let sums = if session.layout.append && !again { 0 } else { *count as usize * (4 + usize::from(sum_len)) };
            let head = SumHead { count: *count, block_len: 700, sum_len, remainder: 1 };
            let basis = match session.layout.dry_run {
                true => BlockSignature::whole_file(),
                false => BlockSignature { head, sums: vec![*fill; sums].into() },
            };
            send(ToSender::Want { ndx, item: asking(wanted(&session, item)), basis });
            if session.version.has_delete_phase() && fill % 16 == 0 {
                send(ToSender::Deleted(DeleteCounts { files: *count, ..DeleteCounts::default() }));
            }
            if fill % 3 == 0 {
                send(ToSender::Done);
            }
        }
        let mut decoder = ToSenderDecoder::new(&session);
        let mut input = Input::new();
        let mut got = Vec::new();
        for chunk in stream.chunks(piece) {
            input.push(Bytes::copy_from_slice(chunk));
            loop {
                match decoder.decode(&mut input) {
                    Ok(message) => got.push(format!("{message:?}")),
                    Err(Stop::Short) => break,
                    Err(Stop::Bad(error)) => panic!("{error}"),
                }
            }
        }
        prop_assert!(decoder.is_at_boundary() && input.is_empty());
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn index_order_is_order_of_transmission(session in sessions(), tree in trees()) {
        let lists = segments(&session, &tree);
        let list: &Arc<Segment> = &lists[0];
        let mut stream = Vec::new();
        ToReceiverEncoder::new(&session).unwrap().encode(ToReceiver::Segment(list.clone()), &mut stream).unwrap();
        let got = receive(&peer(&session), &stream, stream.len());
        let ToReceiver::Segment(got) = &got[0] else { panic!() };
        let names = |s: &Segment| s.iter().map(|(_, e)| e.wire_path().to_vec()).collect::<Vec<_>>();
        prop_assert_eq!(names(got), names(list));
    }
}
