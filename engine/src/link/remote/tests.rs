use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use suisei_protocol::flist::{EntryFlags, Extra, Mode, Ndx, NewEntry, SegmentBuilder};
use suisei_protocol::mux::TextKind;
use suisei_protocol::session::Version;
use suisei_protocol::transfer::{BlockSignature, Item, ItemFlags, SumHead, Token};

use super::*;
use crate::link::{Inbox, Outbox};
use crate::options::TransferOptions;
use crate::run::{local_session, LocalChoice};

#[derive(Default)]
struct Texts(Mutex<Vec<String>>);

impl Observer for Texts {
    fn event(&self, event: Event<'_>) {
        let line = match event {
            Event::PeerText(_, text) => String::from_utf8_lossy(text).into_owned(),
            Event::Failed { failure, .. } => format!("failed: {failure}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

struct End {
    connection: Connection,
    notices: NoticePort,
    texts: Arc<Texts>,
}

fn end(side: Side, direction: Direction, version: u32, socket: UnixStream) -> End {
    let choice = LocalChoice { version: Version::new(version).unwrap(), ..LocalChoice::default() };
    let session = Session { side, direction, ..local_session(&TransferOptions::default(), choice) };
    let notices = NoticePort::new();
    let texts = Arc::new(Texts::default());
    let stream =
        Stream { input: socket.try_clone().unwrap().into(), output: socket.into(), early: Vec::new() };
    let mut connection = Connection::open(Opening {
        session: &session,
        stream,
        notices: notices.clone(),
        observer: texts.clone(),
        stats: Arc::default(),
        interrupted: Arc::default(),
        limits: Limits::default(),
    })
    .unwrap();
    connection.listen();
    End { connection, notices, texts }
}

/// A pushing client and its server.
fn ends(version: u32) -> (End, End) {
    let (one, two) = UnixStream::pair().unwrap();
    (
        end(Side::Client, Direction::Sending, version, one),
        end(Side::Server, Direction::Receiving, version, two),
    )
}

/// A list of four files.
fn list() -> ToReceiver {
    let mut list = SegmentBuilder::new(Ndx(0), None);
    for path in [b"a", b"b", b"c", b"d"] {
        let entry = NewEntry {
            path,
            mode: Mode(0o100_644),
            size: 300_000,
            mtime: 1,
            mtime_nsec: 0,
            uid: 0,
            gid: 0,
            flags: EntryFlags::empty(),
        };
        list.push(entry, Extra::default()).unwrap();
    }
    ToReceiver::Segment(Arc::new(list.finish()))
}

/// Ends both sides at once: each waits for the other to close.
fn end_both(client: Connection, server: Connection) -> (Result<(), Failure>, Result<(), Failure>) {
    let server = std::thread::spawn(move || server.end());
    (client.end(), server.join().unwrap())
}

#[test]
fn messages_cross_in_both_directions_at_every_version() {
    for version in 27..=32 {
        let (mut client, mut server) = ends(version);
        let (mut requests, mut to_receiver) = client.connection.sender_ends().unwrap();
        let (mut replies, mut to_sender) = server.connection.receiver_ends().unwrap();
        let item = Item::new(ItemFlags::TRANSFER);
        to_sender
            .send(ToSender::Want { ndx: Ndx(3), item: item.clone(), basis: BlockSignature::whole_file() })
            .unwrap();
        to_sender.flush().unwrap();
        assert!(matches!(requests.recv().unwrap(), ToSender::Want { ndx: Ndx(3), .. }));
        let data = Bytes::from(vec![7; 300_000]);
        to_receiver.send(list()).unwrap();
        to_receiver.send(ToReceiver::Begin { ndx: Ndx(3), item, head: SumHead::default() }).unwrap();
        let sent = data.clone();
        let writer = std::thread::spawn(move || {
            to_receiver.send(ToReceiver::Token(Token::Literal(sent))).unwrap();
            to_receiver.send(ToReceiver::End { sum: Bytes::from(vec![1; 16]) }).unwrap();
            to_receiver.flush().unwrap();
        });
        let mut got = Vec::new();
        let sum = loop {
            match replies.recv() {
                Ok(ToReceiver::Token(Token::Literal(piece))) => got.extend_from_slice(&piece),
                Ok(ToReceiver::End { sum }) => break sum,
                Ok(_) => {}
                Err(failure) => panic!("{version}: {failure}"),
            }
        };
        writer.join().unwrap();
        assert!(got == data, "{version}");
        assert_eq!(sum, vec![1; 16]);
        let (client, server) = end_both(client.connection, server.connection);
        assert!(client.is_ok() && server.is_ok());
    }
}

#[test]
fn a_failure_reaches_the_other_end_with_its_code_and_behind_its_texts() {
    let (mut client, server) = ends(32);
    server.notices.send(Notice::Text(TextKind::Error, Bytes::from_static(b"the reason\n")));
    server.connection.fail(Who::Receiver, Failure::FileIo { text: "the reason".into() });
    let (mut requests, _out) = client.connection.sender_ends().unwrap();
    let waiting = std::thread::spawn(move || requests.recv().unwrap_err());
    let texts = client.texts.clone();
    let client_end = std::thread::spawn(move || {
        let failure = waiting.join().unwrap();
        client.connection.fail(Who::Sender, failure);
        client.connection.end()
    });
    assert!(matches!(server.connection.end(), Err(Failure::FileIo { .. })));
    assert!(matches!(client_end.join().unwrap(), Err(Failure::PeerExit(11))));
    assert_eq!(*texts.0.lock().unwrap(), ["the reason\n", "failed: the peer ended with code 11"]);
}

#[test]
fn an_unprovoked_acknowledgement_is_no_success() {
    let (mut client, server) = ends(32);
    server.notices.send(Notice::ErrorExit(None));
    let (mut requests, _out) = client.connection.sender_ends().unwrap();
    assert!(matches!(requests.recv(), Err(Failure::Sibling)));
    drop(server);
    assert_eq!(client.connection.end().unwrap_err().exit_code(), 12);
}

#[test]
fn a_peer_that_vanishes_is_noticed_by_the_role_that_reads() {
    let (mut client, server) = ends(31);
    let (mut requests, _out) = client.connection.sender_ends().unwrap();
    drop(server);
    let failure = requests.recv().unwrap_err();
    assert!(matches!(failure, Failure::PeerClosed { who: Who::Sender, .. }), "{failure}");
    client.connection.fail(Who::Sender, failure);
    assert_eq!(client.connection.end().unwrap_err().exit_code(), 12);
}

#[test]
fn a_refusal_to_send_waits_for_the_end_of_the_file_before_it() {
    let (mut client, mut server) = ends(32);
    let (_requests, mut to_receiver) = client.connection.sender_ends().unwrap();
    let (mut replies, _out) = server.connection.receiver_ends().unwrap();
    let item = Item::new(ItemFlags::TRANSFER);
    to_receiver.send(list()).unwrap();
    to_receiver.send(ToReceiver::Begin { ndx: Ndx(1), item, head: SumHead::default() }).unwrap();
    to_receiver.flush().unwrap();
    while !matches!(replies.recv().unwrap(), ToReceiver::Begin { .. }) {}
    client.notices.send(Notice::NoSend(Ndx(2)));
    client.connection.outgoing.flush(&client.connection.shared, FLUSH_TIME);
    to_receiver.send(ToReceiver::End { sum: Bytes::from(vec![1; 16]) }).unwrap();
    to_receiver.flush().unwrap();
    assert!(matches!(replies.recv().unwrap(), ToReceiver::End { .. }));
    assert!(matches!(replies.recv().unwrap(), ToReceiver::NotSent(Ndx(2))));
    end_both(client.connection, server.connection).0.unwrap();
}
