use super::*;
use crate::flist::{EntryFlags, Extra, Mode, NewEntry};
use crate::session::{Direction, Layout, Side};
use crate::support::{archive, bytes, decode_all, incremental, session};
use crate::transfer::BlockIndex;

/// One line per message, literals joined.
fn describe(messages: &[ToReceiver]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for message in messages {
        let line = match message {
            ToReceiver::Segment(s) => {
                let name = |(ndx, e): (Ndx, crate::flist::EntryRef<'_>)| format!(" {ndx}={:?}", e.path());
                let dir =
                    s.dir().map_or("first".into(), |(ndx, e)| format!("{}:{:?}", ndx.0, e.entry().path()));
                format!("segment {dir} from {}:{}", s.start(), s.iter().map(name).collect::<String>())
            }
            ToReceiver::Item { ndx, item } => format!("item {ndx} {:04x}", item.flags.bits()),
            ToReceiver::Begin { ndx, item, head } => {
                format!("begin {ndx} {:04x} {}", item.flags.bits(), head.count)
            }
            ToReceiver::Token(Token::Literal(b)) => {
                match lines.last_mut().filter(|l| l.starts_with("literal ")) {
                    Some(last) => {
                        *last = format!("literal {}", last[8..].parse::<usize>().unwrap() + b.len());
                        continue;
                    }
                    None => format!("literal {}", b.len()),
                }
            }
            ToReceiver::Token(Token::Copy(block)) => format!("copy {}", block.0),
            ToReceiver::End { sum } => format!("end {}", sum.len()),
            ToReceiver::ListEnd => "list end".into(),
            ToReceiver::Done => "done".into(),
            ToReceiver::Deleted(counts) => format!("deleted {}", counts.total()),
            ToReceiver::Stats(stats) => {
                format!("stats {} {} {}", stats.read, stats.written, stats.total_size)
            }
            other => format!("{other:?}"),
        };
        lines.push(line);
    }
    lines
}

fn decode(session: &Session, stream: &[u8], chunk: usize) -> Result<Vec<ToReceiver>, Error> {
    let mut decoder = ToReceiverDecoder::new(session).unwrap();
    let messages = decode_all(stream, chunk, |input| decoder.decode(input))?;
    assert!(decoder.is_at_boundary(), "half read: {:?}", decoder.state);
    Ok(messages)
}

/// Decodes a capture whole and chopped.
fn messages(session: &Session, text: &str) -> Vec<String> {
    let stream = bytes(text);
    let whole = describe(&decode(session, &stream, stream.len()).unwrap());
    for chunk in [1, 2, 3, 7] {
        assert_eq!(describe(&decode(session, &stream, chunk).unwrap()), whole, "in chunks of {chunk}");
    }
    whole
}

fn error(session: &Session, text: &str) -> Error {
    let stream = bytes(text);
    decode(session, &stream, stream.len()).expect_err("a lie is found")
}

/// A receiver that is the server of a push: it gets no statistics.
fn pushed(session: Session) -> Session {
    Session { side: Side::Server, ..session }
}

fn recursive() -> Layout {
    Layout { recursive: true, ..Layout::default() }
}

#[test]
fn the_complete_small_session() {
    let text = r#"19 01 2e 00 00 10 65 80 00 92 ed 41 00 00
        80 98 05 62 2e 74 78 74 00 06 00 a4 81 00 00
        80 9a 05 61 2e 74 78 74 00 f4 08 00 00
        02 | 0c 80 | 04 00 00 00 bc 02 00 00 02 00 00 00 ca 00 00 00
        ff ff ff ff | b2 02 00 00 61*690 | fd ff ff ff fc ff ff ff | 00 00 00 00
        7a 04 4e 2a 9e 24 56 ab cb 13 c7 99 1a 20 20 96
        01 00 a0 00*16 | 06 00 00 00 "hello" 0a | 00 00 00 00 | b1 94 6a c9 24 92 d2 34 7c 62 35 b4 d2 61 11 84
        00 | 00 00 | 00"#;
    let expected = [
        "segment first from 0: 0=\".\" 1=\"a.txt\" 2=\"b.txt\"",
        "list end",
        "begin 1 800c 4",
        "copy 0",
        "literal 690",
        "copy 2",
        "copy 3",
        "end 16",
        "begin 2 a000 0",
        "literal 6",
        "end 16",
        "done",
        "done",
        "done",
        "done",
    ];
    let times = Layout { numeric_ids: true, ..recursive() };
    assert_eq!(messages(&pushed(session(32, times)), text), expected);
}

#[test]
fn old_echoes_have_no_flags_and_lists_end_with_an_error_word() {
    let list =
        r#"19 01 2e 00 10 00 00 25 7d 93 65 ed 41 00 00 98 01 "a" 06 00 00 00 a4 81 00 00 00 01 00 00 00"#;
    let data = r#"00*16 06 00 00 00 "hello" 0a 00 00 00 00 00*16"#;
    let old = messages(&pushed(session(27, recursive())), &format!("{list} 01 00 00 00 {data} ff*4 ff*4"));
    assert_eq!(old[2..], ["begin 1 8000 0", "literal 6", "end 16", "done", "done"]);
    let text = format!("{list} 01 00 00 00 00 a0 {data} 02 00 00 00 00 20 ff*4 ff*4 ff*4");
    let newer = messages(&pushed(session(29, recursive())), &text);
    assert_eq!(
        newer[2..],
        ["begin 1 a000 0", "literal 6", "end 16", "done", "done", "done"],
        "the keep-alive is no item"
    );
    let stream = bytes(&text);
    let list = decode(&pushed(session(29, recursive())), &stream, stream.len()).unwrap();
    assert!(matches!(&list[0], ToReceiver::Segment(s) if s.io_errors() == IoErrors::GENERAL));
}

const PUSHED_SEGMENTS: &str = "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00
    80 9a | 01 42 | 00 00 10 | 80 9a | 01 41 | 00 00 10
    80 98 | 02 66 30 | 00 02 00 | a4 81 00 00 | 00 00
    ff 65 | 80 9a | 04 41 2f 66 31 | 00 03 00 | 80 b8 | 02 | 02 41 41 | 00 00 10 | ed 41 00 00 | 00 00
    ff 02 | 80 b8 | 04 | 03 2f 66 32 | 00 04 00 | a4 81 00 00 | 00 00
    ff fe 80 67 00 00 | 00 00
    ff fe 80 02 00 00";

#[test]
fn the_worked_push_with_segments() {
    let item = "02 00 a0 | 00*16 | 02 00 00 00 31 0a | 00 00 00 00 | 00*16";
    let text = format!("{PUSHED_SEGMENTS} 01 00 60 {item} | 03 00 60 | 00 00 00 00 | 00 00 | 00");
    let expected = [
        "segment first from 1: 1=\".\" 2=\"f0\" 3=\"A\" 4=\"B\"",
        "segment 1:\"A\" from 6: 6=\"A/f1\" 7=\"A/AA\"",
        "segment 3:\"A/AA\" from 9: 9=\"A/AA/f2\"",
        "segment 2:\"B\" from 11:",
        "list end",
        "item 0 6000",
        // Index 2, behind the gap index 0.
        "begin 2 a000 0",
        "literal 2",
        "end 16",
        "item 5 6000",
        "done",
        "done",
        "done",
        "done",
        "done",
        "done",
        "done",
    ];
    assert_eq!(messages(&pushed(incremental(32, recursive())), &text), expected);
}

#[test]
fn the_worked_pull_without_trailing_slash() {
    let text = "19 | 02 6e 74 | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 00 00
        ff 64 | 80 ba | 02 | 02 2f 42 | 00 00 10 | 80 ba | 03 | 01 41 | 00 00 10
        80 b8 | 03 | 02 66 30 | 00 02 00 | a4 81 00 00 | 00 00
        ff 01 | 80 ba | 05 | 03 2f 66 31 | 00 03 00 | 00 00
        ff fe 80 67 00 00 | 00 00 | ff fe 80 02 00 00
        00*4 | 00 00 | 00 69 00 | 00 24 01 | 00 09 00 | 00 01 00 | 00 00 00 | 00";
    // The second list repeats the prefix of the last name sent, in the next segment too.
    let text = text.replace("80 ba | 05 | 03 2f 66 31", "80 ba | 03 | 04 41 2f 66 31");
    let lines = messages(&incremental(32, recursive()), &text);
    assert_eq!(lines[0], "segment first from 1: 1=\"nt\"");
    assert_eq!(lines[1], "segment 0:\"nt\" from 3: 3=\"nt/f0\" 4=\"nt/A\" 5=\"nt/B\"");
    assert_eq!(lines[2], "segment 1:\"nt/A\" from 7: 7=\"nt/A/f1\"");
    assert_eq!(lines[3], "segment 2:\"nt/B\" from 9:");
    assert_eq!(
        lines[4..],
        ["list end", "done", "done", "done", "done", "done", "done", "stats 105 292 9", "done"]
    );
}

/// A list of one file, all fields but its mtime idle.
const ONE_FILE: &str = "18 | 01 61 | 00 06 00 | 65 25 7d 93 | a4 81 00 00 | 00 00";

#[test]
fn captured_tails() {
    let pull = session(32, Layout::default());
    let tail = |text: &str| messages(&pull, &format!("{ONE_FILE} {text}")).split_off(2);
    let plain = "00 | 00 00 | 00 49 00 00 d3 00 00 0d 00 00 01 00 00 00 00 | 00";
    assert_eq!(tail(plain), ["done", "done", "done", "stats 73 211 13", "done"]);
    let late = "00 | 00 00 | 00 23 00 00 69 00 00 0d 00 00 01 00 00 00 00 | ff 02 01 01 00 00 00 | 00";
    assert_eq!(tail(late), ["done", "done", "done", "stats 35 105 13", "deleted 2", "done"]);
    let early = "00 | 00 | ff 02 02 00 00 00 00 | 00 | 00 49 00 00 d3 00 00 0d 00 00 01 00 00 00 00 | 00";
    assert_eq!(tail(early), ["done", "done", "deleted 2", "done", "stats 73 211 13", "done"]);
    let at_30 = "00 | 00 | 00 | 00 48 00 00 cf 00 00 0d 00 00 01 00 00 00 00";
    let lines = messages(&session(30, Layout::default()), &format!("{ONE_FILE} {at_30}"));
    assert_eq!(lines[2..], ["done", "done", "done", "stats 72 207 13"]);
}

#[test]
fn empty_lists_of_servers_end_at_a_boundary() {
    let inc = incremental(32, archive());
    assert_eq!(messages(&inc, "00 00 ff 01"), ["segment first from 1:", "list end"]);
    let whole = session(32, archive());
    assert_eq!(messages(&whole, r#"00 00 00 04 "root" 00 04 "root""#), ["segment first from 0:", "list end"]);
    let old = session(29, archive());
    assert_eq!(messages(&old, "00 00*12"), ["segment first from 0:", "list end"]);
}

#[test]
fn a_dry_run_has_no_data() {
    let layout = Layout { dry_run: true, ..Layout::default() };
    let lines = messages(&pushed(session(32, layout)), &format!("{ONE_FILE} 01 00 a0 00 00 00 00"));
    assert_eq!(lines[2..], ["begin 0 a000 0", "done", "done", "done", "done"]);
}

#[test]
fn two_leading_dots_take_two_numbers() {
    let text = "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 80 9b | 01 2e | 00 00 10
        80 9a | 01 41 | 00 00 10 | 00 00 | ff 66 | 00 00";
    let text = text.replace("80 9b | 01 2e", "80 bb | 01 00");
    let lines = messages(&incremental(32, recursive()), &text);
    assert_eq!(lines, ["segment first from 1: 1=\".\" 2=\".\" 3=\"A\"", "segment 2:\"A\" from 5:"]);
    let stream = bytes(&text);
    let list = decode(&incremental(32, recursive()), &stream, stream.len()).unwrap();
    let ToReceiver::Segment(first) = &list[0] else { panic!() };
    let blank: Vec<bool> = first.iter().map(|(_, e)| e.is_blank()).collect();
    assert_eq!(blank, [false, true, false]);
}

#[test]
fn lies_about_lists_end_the_session() {
    let inc = incremental(32, recursive());
    let whole = session(32, Layout::default());
    let cases: &[(&Session, &str, u8)] = &[
        // A second segment of a directory, one of ".", of an unknown one.
        (&inc, "ff 03 00 00", 2),
        (&inc, "ff 64 00 00", 2),
        (&inc, "ff fe 00 ff 00 00", 2),
        // After the end of lists; the end twice; an entry elsewhere.
        (&inc, "ff fe 80 02 00 00", 2),
        (&inc, r#"ff fe 80 67 00 00 18 01 "x""#, 2),
    ];
    for (session, text, code) in cases {
        let stream = format!("{PUSHED_SEGMENTS} {text}");
        assert_eq!(error(session, &stream).exit_code(), *code, "{text}");
    }
    for text in ["ff 64 00 00", "ff 01"] {
        assert_eq!(error(&whole, &format!("{ONE_FILE} {text}")).exit_code(), 2, "{text}");
    }
    let foreign = r#"19 01 2e 00 00 10 65 25 7d 93 ed 41 00 00 80 9a 01 41 00 00 10 00 00 ff 65
        80 9a 03 "B/x" 00 00 10"#;
    assert_eq!(error(&inc, foreign).exit_code(), 4);
}

#[test]
fn lies_about_items_end_the_session() {
    let pull = session(32, Layout::default());
    let dir =
        "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 80 98 | 01 61 | 00 06 00 | a4 81 00 00 | 00 00";
    let cases: &[(&str, Error)] = &[
        ("03 00 20", PeerMisbehaved::UnknownIndex(Ndx(2)).into()),
        ("01 00 a0", PeerMisbehaved::NotRegular(Ndx(0)).into()),
        ("00 00 02 00 a0", PeerMisbehaved::LatePhase(2).into()),
        (
            "02 00 a0 01 00 00 00 bc 02 00 00 02 00 00 00 00*4 fe ff ff ff",
            PeerMisbehaved::BlockIndex { index: 1, count: 1 }.into(),
        ),
        ("ff 03", PeerMisbehaved::UnknownIndex(Ndx(-4)).into()),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&pull, &format!("{dir} {text}")), *expected, "{text}");
    }
    let inc = incremental(32, recursive());
    let freed = format!("{PUSHED_SEGMENTS} 00 01 00 60");
    assert_eq!(error(&inc, &freed), PeerMisbehaved::UnknownIndex(Ndx(0)).into(), "the first list is freed");
    let early = "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 00 00 | 00";
    assert_eq!(error(&inc, early).exit_code(), 2, "the lists have not ended");
}

#[test]
fn literals_are_handed_out_as_they_arrive() {
    let pull = session(32, Layout::default());
    let mut decoder = ToReceiverDecoder::new(&pull).unwrap();
    let mut input = Input::new();
    let chunk = Bytes::from(bytes(&format!("{ONE_FILE} 01 00 a0 00*16 ff ff ff 7f 61*100")));
    input.push(chunk.clone());
    for _ in 0..3 {
        decoder.decode(&mut input).unwrap();
    }
    let ToReceiver::Token(Token::Literal(piece)) = decoder.decode(&mut input).unwrap() else { panic!() };
    assert_eq!(piece.len(), 100, "although two gigabytes were announced");
    assert_eq!(piece.as_ptr(), chunk[chunk.len() - 100..].as_ptr(), "not copied");
    assert!(matches!(decoder.decode(&mut input), Err(Stop::Short)));
    assert!(!decoder.is_at_boundary());
}

#[test]
fn the_encoder_writes_the_captured_echoes() {
    let sending = Session { direction: Direction::Sending, ..incremental(32, recursive()) };
    let mut encoder = ToReceiverEncoder::new(&sending).unwrap();
    let mut out = Vec::new();
    let item = |bits| Item::new(ItemFlags::from_bits_retain(bits));
    let head = SumHead { count: 4, block_len: 700, sum_len: 2, remainder: 202 };
    for message in [
        ToReceiver::ListEnd,
        ToReceiver::Item { ndx: Ndx(0), item: item(0x6000) },
        ToReceiver::Begin { ndx: Ndx(2), item: item(0x800C), head },
        ToReceiver::Token(Token::Copy(BlockIndex(0))),
        ToReceiver::Token(Token::Literal(Bytes::from_static(b"hello\n"))),
        ToReceiver::End { sum: Bytes::from_static(&[7; 16]) },
        ToReceiver::Done,
        ToReceiver::Deleted(DeleteCounts { files: 2, dirs: 1, ..DeleteCounts::default() }),
    ] {
        assert_eq!(encoder.encode(message, &mut out), Ok(None));
    }
    let expected = r#"ff 01 | 01 00 60 | 02 0c 80 | 04 00 00 00 bc 02 00 00 02 00 00 00 ca 00 00 00
        ff ff ff ff | 06 00 00 00 "hello" 0a | 00 00 00 00 | 07*16 | 00 | ff 01 02 01 00 00 00"#;
    assert_eq!(out, bytes(expected));
}

#[test]
fn what_has_no_place_in_the_stream_is_a_notice() {
    let mut list = SegmentBuilder::new(Ndx(0), None);
    let entry = NewEntry {
        path: b"a",
        mode: Mode(0o100_644),
        size: 0,
        mtime: 0,
        mtime_nsec: 0,
        uid: 0,
        gid: 0,
        flags: EntryFlags::empty(),
    };
    list.push(entry, Extra::default()).unwrap();
    list.set_io_errors(IoErrors::GENERAL);
    let segment = Arc::new(list.finish());
    let encode = |session: &Session, message| {
        let mut out = Vec::new();
        let notice = ToReceiverEncoder::new(session).unwrap().encode(message, &mut out).unwrap();
        (notice, out)
    };
    let mut at_30 = session(30, Layout::default());
    at_30.compat = Compat::empty();
    let notice = Some(Notice::IoErrors(IoErrors::GENERAL));
    assert_eq!(encode(&at_30, ToReceiver::Segment(segment.clone())).0, notice, "the end mark cannot tell");
    assert_eq!(encode(&session(30, Layout::default()), ToReceiver::Segment(segment.clone())).0, None);
    let (none, old) = encode(&session(29, Layout::default()), ToReceiver::Segment(segment));
    assert_eq!((none, &old[old.len() - 5..]), (None, &[0, 1, 0, 0, 0][..]));
    assert_eq!(encode(&at_30, ToReceiver::NotSent(Ndx(5))), (Some(Notice::NoSend(Ndx(5))), Vec::new()));
    assert_eq!(encode(&session(29, Layout::default()), ToReceiver::NotSent(Ndx(5))), (None, Vec::new()));
}
