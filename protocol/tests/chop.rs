//! However a recorded stream is cut, the same messages come out of it.

mod support;

use suisei_protocol::session::{Handshake, Progress, Session, Side};
use support::events::print;
use support::recorded;
use support::replay::Replay;
use support::Recorded;

/// Longest stream that is cut in two at every byte; longer ones are cut at some.
const SHORT: usize = 700;

/// Prints what comes out of the pieces.
fn events<'a>(recorded: &Recorded, session: &Session, pieces: impl Iterator<Item = &'a [u8]>) -> String {
    let mut replay = Replay::new(recorded, session);
    for piece in pieces {
        replay.feed(piece).unwrap_or_else(|e| panic!("{}: {e}", recorded.name));
    }
    assert!(replay.ended_well() || recorded.exit == 1, "{}", recorded.name);
    print(&replay.messages)
}

/// Both directions of all sessions, from the start point on.
fn streams() -> Vec<(Recorded, Session, Vec<u8>)> {
    let mut streams = Vec::new();
    for side in [Side::Server, Side::Client] {
        for recorded in recorded::all() {
            let opened = recorded.open();
            let (session, bytes) = match side {
                Side::Server => (opened.server, recorded.up[opened.up..].to_vec()),
                Side::Client => (opened.client, recorded.down[opened.down..].to_vec()),
            };
            streams.push((recorded, session, bytes));
        }
    }
    streams
}

#[test]
fn byte_by_byte() {
    for (recorded, session, bytes) in streams() {
        let whole = events(&recorded, &session, std::iter::once(bytes.as_slice()));
        assert_eq!(events(&recorded, &session, bytes.chunks(1)), whole, "{}", recorded.name);
    }
}

#[test]
fn in_pieces_of_every_small_length() {
    for (recorded, session, bytes) in streams() {
        let whole = events(&recorded, &session, std::iter::once(bytes.as_slice()));
        for length in [2, 3, 5, 7, 13, 64] {
            let pieces = bytes.chunks(length);
            assert_eq!(events(&recorded, &session, pieces), whole, "{} by {length}", recorded.name);
        }
    }
}

#[test]
fn in_two_pieces() {
    for (recorded, session, bytes) in streams() {
        let whole = events(&recorded, &session, std::iter::once(bytes.as_slice()));
        let step = if bytes.len() <= SHORT { 1 } else { 97 };
        for cut in (0..=bytes.len()).step_by(step) {
            let (front, back) = bytes.split_at(cut);
            let pieces = [front, back].into_iter();
            assert_eq!(events(&recorded, &session, pieces), whole, "{} at {cut}", recorded.name);
        }
    }
}

#[test]
fn handshakes_stop_at_the_same_byte() {
    for recorded in recorded::all() {
        let opened = recorded.open();
        for (side, input, end) in
            [(Side::Client, &recorded.down, opened.down), (Side::Server, &recorded.up, opened.up)]
        {
            let mut handshake = Handshake::new(recorded.offer(side, opened.client.seed)).unwrap();
            let start = if side == Side::Client { recorded.start.down } else { recorded.start.up };
            let mut taken = start;
            for upto in start..=input.len() {
                match handshake.feed(&input[taken..upto]).unwrap() {
                    Progress::NeedMore { consumed } => taken += consumed,
                    Progress::Done { consumed, .. } => {
                        assert_eq!((upto, taken + consumed), (end, end), "{} {side:?}", recorded.name);
                        break;
                    }
                }
            }
        }
    }
}
