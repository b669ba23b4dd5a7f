use super::*;
use crate::mux::tests_support::session;

fn client(direction: Direction, version: u32) -> Session {
    session(Side::Client, direction, version)
}

fn frames(session: &Session, input: &[u8]) -> Result<Vec<Frame>, Error> {
    let mut demux = Demux::new(session);
    demux.feed(Bytes::copy_from_slice(input));
    let mut all = Vec::new();
    while let Some(frame) = demux.next_frame()? {
        all.push(frame);
    }
    Ok(all)
}

fn data(bytes: &'static [u8]) -> Frame {
    Frame::Data(Bytes::from_static(bytes))
}

fn text(kind: TextKind, bytes: &'static [u8]) -> Frame {
    Frame::Notice(Notice::Text(kind, Bytes::from_static(bytes)))
}

#[test]
fn a_stream_of_everything_a_pulling_client_may_see() {
    let input = b"\x03\0\0\x07abc\0\0\0\x07\x02\0\0\x09i\n\x02\0\0\x08x\n\x02\0\0\x0Ae\n\x02\0\0\x0Bw\n\
        \x04\0\0\x1D\x0D\0\0\0\x04\0\0\x28\x4D\0\0\0\0\0\0\x31\x04\0\0\x6D\x05\0\0\0\
        \x04\0\0\x5D\x0B\0\0\0\0\0\0\x5D";
    let expected = [
        data(b"abc"),
        text(TextKind::Info, b"i\n"),
        text(TextKind::ErrorXfer, b"x\n"),
        text(TextKind::Error, b"e\n"),
        text(TextKind::Warning, b"w\n"),
        Frame::Notice(Notice::IoErrors(IoErrors::GENERAL | IoErrors::DELETE_LIMIT)),
        Frame::Notice(Notice::IoTimeout(77)),
        Frame::Notice(Notice::Noop),
        Frame::Notice(Notice::NoSend(Ndx(5))),
        Frame::Notice(Notice::ErrorExit(Some(11))),
        Frame::Notice(Notice::ErrorExit(None)),
    ];
    assert_eq!(frames(&client(Direction::Receiving, 32), input).unwrap(), expected);
    // Byte by byte the same, except that data arrives in smaller pieces.
    let mut demux = Demux::new(&client(Direction::Receiving, 32));
    let (mut bytes, mut notices) = (Vec::new(), Vec::new());
    for byte in input {
        demux.feed(Bytes::copy_from_slice(&[*byte]));
        while let Some(frame) = demux.next_frame().unwrap() {
            match frame {
                Frame::Data(piece) => bytes.extend_from_slice(&piece),
                notice => notices.push(notice),
            }
        }
    }
    assert!(demux.is_at_boundary());
    assert_eq!((bytes.as_slice(), notices.as_slice()), (b"abc".as_slice(), &expected[1..]));
}

#[test]
fn captured_deletions_reach_a_pushing_client_only() {
    let input = b"\x04\0\0\x6Cjd/x\x03\0\0\x6Cjd\0\x04\0\0\x6Cjunk";
    let gone = |path: &'static str, is_dir| {
        Frame::Notice(Notice::Deleted { path: Bytes::from_static(path.as_bytes()), is_dir })
    };
    let expected = [gone("jd/x", false), gone("jd", true), gone("junk", false)];
    assert_eq!(frames(&client(Direction::Sending, 32), input).unwrap(), expected);
    for (direction, version) in [(Direction::Receiving, 32), (Direction::Sending, 28)] {
        assert_eq!(frames(&client(direction, version), input), Err(Malformed::Tag(0x6C).into()));
    }
}

#[test]
fn success_needs_a_sender_that_removes_its_files() {
    let input = b"\x04\0\0\x6B\x02\0\0\0";
    let mut server = session(Side::Server, Direction::Sending, 32);
    assert_eq!(frames(&server, input), Err(Malformed::Tag(0x6B).into()));
    server.layout.confirm = true;
    assert_eq!(frames(&server, input).unwrap(), [Frame::Notice(Notice::Success(Ndx(2)))]);
    let negative = b"\x04\0\0\x6B\xFF\xFF\xFF\xFF";
    assert_eq!(frames(&server, negative), Err(PeerMisbehaved::UnknownIndex(Ndx(-1)).into()));
}

#[test]
fn lengths_that_a_stock_client_refuses() {
    let refuse = |tag: u8, length: u32| {
        let [b0, b1, b2, _] = length.to_le_bytes();
        frames(&client(Direction::Receiving, 32), &[b0, b1, b2, tag]).unwrap_err()
    };
    for (tag, length) in [(0x31, 1), (0x1D, 3), (0x28, 3), (0x5D, 5), (0x6D, 0)] {
        assert_eq!(refuse(tag, length), Malformed::MessageLength { code: tag - 7, length }.into());
    }
    for tag in [0x08, 0x09, 0x0A, 0x0B] {
        assert_eq!(refuse(tag, 5120), Malformed::TextOverflow(5120).into());
    }
    let pushing = client(Direction::Sending, 32);
    assert_eq!(frames(&pushing, &[0, 0x14, 0, 0x6C]), Err(Malformed::TextOverflow(5120).into()));
    let mut removing = pushing;
    removing.layout.confirm = true;
    let short = Malformed::MessageLength { code: 100, length: 20 };
    assert_eq!(frames(&removing, &[20, 0, 0, 0x6B]), Err(short.into()), "the form of a local run");
    for tag in [0x0D, 0x10, 0x11, 0xFF] {
        assert_eq!(refuse(tag, 4), Malformed::Tag(tag).into());
    }
    let mut longest = vec![0xFF, 0x13, 0, 0x09];
    longest.resize(4 + 5119, b'x');
    assert_eq!(frames(&client(Direction::Receiving, 32), &longest).unwrap().len(), 1);
}

#[test]
fn a_server_takes_neither_texts_nor_timeouts() {
    let server = session(Side::Server, Direction::Receiving, 32);
    assert_eq!(frames(&server, b"\x01\0\0\x09x"), Err(Malformed::Tag(0x09).into()));
    assert_eq!(frames(&server, b"\x04\0\0\x28\x01\0\0\0"), Err(Malformed::Tag(0x28).into()));
}

#[test]
fn exit_codes_below_31_are_obeyed_by_senders_only() {
    let input = b"\x04\0\0\x5D\x0B\0\0\0";
    assert!(frames(&client(Direction::Sending, 30), input).is_ok());
    assert_eq!(frames(&client(Direction::Receiving, 30), input), Err(Malformed::Tag(0x5D).into()));
}

#[test]
fn a_huge_data_frame_streams_without_being_held() {
    let mut demux = Demux::new(&client(Direction::Receiving, 32));
    demux.feed(Bytes::from_static(&[0xFF, 0xFF, 0xFF, 7]));
    assert_eq!(demux.next_frame(), Ok(None));
    let chunk = Bytes::from(vec![1u8; 4096]);
    demux.feed(chunk.clone());
    let Ok(Some(Frame::Data(piece))) = demux.next_frame() else { panic!() };
    assert_eq!(piece.as_ptr(), chunk.as_ptr(), "the payload is a slice of what was fed");
    assert!(!demux.is_at_boundary());
}

#[test]
fn raw_names_suspend_frames_up_to_the_empty_name() {
    // A pull at 30: the framed filter list, raw names, frames again.
    let mut demux = Demux::new(&session(Side::Server, Direction::Sending, 30));
    demux.feed(Bytes::from_static(b"\x04\0\0\x07\0\0\0\0a.txt\0d/b"));
    assert_eq!(demux.next_frame(), Ok(Some(data(b"\0\0\0\0"))));
    demux.expect_names();
    assert_eq!(demux.next_frame(), Ok(Some(data(b"a.txt\0d/b"))));
    demux.feed(Bytes::from_static(b".txt\0\0\x01\0\0\x07\0"));
    assert_eq!(demux.next_frame(), Ok(Some(data(b".txt\0\0"))));
    assert_eq!(demux.next_frame(), Ok(Some(data(b"\0"))));
    assert_eq!(demux.next_frame(), Ok(None));
    // No names at all, directly behind the seed.
    let mut demux = Demux::new(&client(Direction::Sending, 27));
    demux.expect_names();
    demux.feed(Bytes::from_static(b"\0\x01\0\0\x07x"));
    assert_eq!(demux.next_frame(), Ok(Some(data(b"\0"))));
    assert_eq!(demux.next_frame(), Ok(Some(data(b"x"))));
}

#[test]
fn an_old_client_is_read_raw() {
    let server = session(Side::Server, Direction::Receiving, 29);
    assert_eq!(frames(&server, b"\xFF\xFF\xFF\xFF").unwrap(), [data(b"\xFF\xFF\xFF\xFF")]);
}
