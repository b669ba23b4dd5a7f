use super::*;
use crate::session::Layout;
use crate::support::{bytes, decode_all, session};

fn decode(session: &Session, stream: &[u8], chunk: usize) -> Result<Vec<ToSender>, Error> {
    let mut decoder = ToSenderDecoder::new(session);
    let messages = decode_all(stream, chunk, |input| decoder.decode(input))?;
    assert!(decoder.is_at_boundary(), "half read: {:?}", decoder.state);
    Ok(messages)
}

/// Decodes a capture whole and chopped, and demands that encoding gives the same bytes.
fn both_ways(session: &Session, text: &str) -> Vec<String> {
    let stream = bytes(text);
    let lines = |messages: &[ToSender]| messages.iter().map(|m| format!("{m:?}")).collect::<Vec<_>>();
    let whole = decode(session, &stream, stream.len()).unwrap();
    let described = lines(&whole);
    for chunk in [1, 2, 5] {
        assert_eq!(lines(&decode(session, &stream, chunk).unwrap()), described);
    }
    let mut encoder = ToSenderEncoder::new(session);
    let mut out = Vec::new();
    for message in whole {
        assert_eq!(encoder.encode(message, &mut out), Ok(None));
    }
    assert_eq!(out, stream);
    described
}

const HEAD: &str = "04 00 00 00 bc 02 00 00 02 00 00 00 ca 00 00 00";
const SUMS: &str = "b9 6c 69 56 e6 14 cf 73 95 86 cb 84 2e 72 05 42 75 6d 83 21 43 3c 85 85";

#[test]
fn the_complete_small_session() {
    let text = format!("02 0c 80 {HEAD} {SUMS} | 01 00 a0 00*16 | 00 | 00 00 00 | 00");
    let lines = both_ways(&session(32, Layout::default()), &text);
    assert_eq!(lines.len(), 7);
    let stream = bytes(&text);
    let messages = decode(&session(32, Layout::default()), &stream, 3).unwrap();
    let ToSender::Want { ndx: Ndx(1), basis, .. } = &messages[0] else { panic!("{:?}", messages[0]) };
    assert_eq!(basis.block(0), Some((0x5669_6CB9, &[0xE6, 0x14][..])));
    assert_eq!(basis.block(3), Some((0x3C43_2183, &[0x85, 0x85][..])));
    let old = format!("01 00 00 00 | 0c 80 | {HEAD} {SUMS} | 02 00 00 00 | 00 a0 | 00*16 | ff*16");
    assert_eq!(both_ways(&session(29, Layout::default()), &old).len(), 6);
    let oldest = format!("01 00 00 00 | {HEAD} {SUMS} | 02 00 00 00 | 00*16 | ff*12");
    assert_eq!(both_ways(&session(27, Layout::default()), &oldest).len(), 5);
}

#[test]
fn a_redo_names_its_index_again() {
    let text = "02 | 08 80 | 03 00 00 00 bc 02 00 00 02 00 00 00 00*4 | 01*18 | 00
        fe 00 00 | 08 80 | 03 00 00 00 bc 02 00 00 10 00 00 00 00*4 | 02*60 | 00 00 00 00";
    assert_eq!(both_ways(&session(32, Layout::default()), text).len(), 7);
}

#[test]
fn captured_items() {
    let text = r#"01 00 60 | 04 00 a0 00*16 | fe 80 03 00 00 | 00 70 | 01 63 | fe 80 02 00 00 | 00 70 | 01 63
        01 | 00 a8 | 81 | 00*16 | 00 | 00 | ff 02 02 01 00 00 00 | 00"#;
    let lines = both_ways(&session(32, Layout::default()), text);
    assert!(lines[2].contains("Ndx(3)") && lines[3].contains("Ndx(2)"), "{lines:?}");
    assert!(lines[4].contains("PartialDir"), "{lines:?}");
    assert!(lines[7].contains("files: 2, dirs: 1"), "{lines:?}");
}

#[test]
fn dry_runs_have_no_heads_and_appends_no_sums() {
    let dry = session(32, Layout { dry_run: true, ..Layout::default() });
    assert_eq!(both_ways(&dry, "03 | 0c 80 | 01 | 00 a0 | 00 | 00 00 00 | 00").len(), 7);
    let append = session(32, Layout { append: true, ..Layout::default() });
    assert_eq!(both_ways(&append, &format!("02 0c 80 {HEAD} 00")).len(), 2);
    // Asked for again, it failed verification: sums follow.
    let again = "01 00 00 00 BC 02 00 00 02 00 00 00 CA 00 00 00 01 02 03 04 05 06";
    assert_eq!(both_ways(&append, &format!("02 0c 80 {HEAD} 00 fe 00 00 0c 80 {again} 00")).len(), 4);
}

#[test]
fn the_keep_alive_of_29_is_no_item() {
    let stream = bytes("05 00 00 00 | 00 20 | ff ff ff ff");
    assert_eq!(decode(&session(29, Layout::default()), &stream, 4).unwrap().len(), 1);
}

#[test]
fn lies_end_the_session() {
    let cases: &[(u32, &str)] = &[
        (32, "ff 64"),
        (32, "ff 01"),
        (30, "ff 02"),
        (29, "fd ff ff ff"),
        (32, "01 00 a0 ff ff ff ff"),
        (32, "01 00 a0 ff ff ff ff bc 02 00 00 02 00 00 00 00*4"),
        (32, "01 00 a0 01 00 00 00 00 00 00 00 02 00 00 00 00*4"),
        (32, "01 00 a0 01 00 00 00 01 00 02 00 02 00 00 00 00*4"),
        (32, "01 00 a0 01 00 00 00 bc 02 00 00 11 00 00 00 00*4"),
        (32, "01 00 a0 01 00 00 00 bc 02 00 00 02 00 00 00 bd 02 00 00"),
        (32, "ff 02 f0 ff ff ff ff"),
        (32, "01 00 10 90 00"),
    ];
    for (version, text) in cases {
        let stream = bytes(text);
        let mut decoder = ToSenderDecoder::new(&session(*version, Layout::default()));
        let mut input = Input::new();
        input.push(stream.into());
        match decoder.decode(&mut input) {
            Err(Stop::Bad(error)) => assert_eq!(error.exit_code(), 2, "{text}"),
            Err(Stop::Short) => assert_eq!(*text, "01 00 a0 ff ff ff ff", "a head is read whole"),
            Ok(message) => panic!("{text}: {message:?}"),
        }
    }
}

#[test]
fn announced_sums_cost_nothing_until_they_arrive() {
    let mut decoder = ToSenderDecoder::new(&session(32, Layout::default()));
    let mut input = Input::new();
    input.push(bytes("01 00 a0 00 00 00 10 bc 02 00 00 10 00 00 00 00*4 01 02 03").into());
    assert!(matches!(decoder.decode(&mut input), Err(Stop::Short)));
    let State::ExpectSums(request) = &decoder.state else { panic!() };
    assert!(request.sums.capacity() < 1000);
}

#[test]
fn a_confirmation_is_a_notice() {
    let mut out = Vec::new();
    let notice =
        ToSenderEncoder::new(&session(32, Layout::default())).encode(ToSender::Succeeded(Ndx(2)), &mut out);
    assert_eq!((notice, out), (Ok(Some(Notice::Success(Ndx(2)))), Vec::new()));
}
