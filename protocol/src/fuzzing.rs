//! Bodies of the fuzz targets: each calls the decoders that the product calls, and checks what
//! must hold for any bytes. `protocol/tests/fuzz_corpus.rs` runs them over the kept inputs.
//!
//! The first bytes of an input choose the session; see each function.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#16-bounds-a-reader-must-enforce-values-that-come-from-a-peer

mod codec;
mod tokens;

use bytes::Bytes;

pub use codec::{flist, to_receiver, to_sender};
pub use tokens::{filter_list, sum_head, tokens_lz4, tokens_none, tokens_zlib, tokens_zlibx, tokens_zstd};

use crate::batch::BatchHeader;
use crate::error::Error;
use crate::mux::{Demux, Frame, Notice};
use crate::session::{
    early_input_length, ArgumentBlock, Capabilities, Compat, CompressWish, DaemonClient, DaemonEvent,
    Direction, Handshake, IncrementalRecursion, Layout, ModuleRequest, Offer, Progress, Recursion, Session,
    Side, Version,
};
use crate::sum::SumKind;
use crate::transfer::Compressor;
use crate::wire::{put_longint, put_varint, put_varlong, NdxCoder, Reader};

/// A fuzz target's body.
pub type Target = fn(&[u8]);

/// Every target, by the name of its file and of its corpus.
pub const TARGETS: [(&str, Target); 17] = [
    ("integers", integers),
    ("ndx", ndx),
    ("demux", demux),
    ("handshake_client", handshake_client),
    ("handshake_server", handshake_server),
    ("daemon_lines", daemon_lines),
    ("flist", flist),
    ("to_receiver", to_receiver),
    ("to_sender", to_sender),
    ("sum_head", sum_head),
    ("tokens_none", tokens_none),
    ("tokens_zlib", tokens_zlib),
    ("tokens_zlibx", tokens_zlibx),
    ("tokens_zstd", tokens_zstd),
    ("tokens_lz4", tokens_lz4),
    ("filter_list", filter_list),
    ("batch", batch),
];

/// A batch file: its head, and what follows as a replay reads it. The first byte chooses the layout
/// as [`session`] does; bit 0 stands for zlib.
pub fn batch(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let mut reader = Reader::new(bytes);
    let Ok(header) = BatchHeader::decode(&mut reader, Version::NEWEST) else { return };
    let mut head = Vec::new();
    BatchHeader::put_flags(header.flags, &mut head);
    let compressor = if choice & 1 != 0 { Compressor::Zlib } else { Compressor::None };
    let session = header.session(None, compressor, session(choice).layout);
    BatchHeader::put_session(&session, &mut head);
    assert_eq!(BatchHeader::decode(&mut Reader::new(&head), Version::NEWEST), Ok(header));
    codec::replay(&session, &bytes[reader.consumed()..]);
}

/// Returns the session that a byte chooses: bits 0 and 1 side and direction, bits 2 to 4 the
/// version, bit 5 `--remove-source-files`, bit 6 incremental recursion, bit 7 a rich layout (with
/// bit 5 also extended attributes).
pub fn session(choice: u8) -> Session {
    let on = |bit: u8| choice & (1 << bit) != 0;
    let version = version(choice >> 2);
    let rich = on(7);
    let incremental = on(6) && version.has_incremental_recursion();
    Session {
        side: if on(0) { Side::Server } else { Side::Client },
        direction: if on(1) { Direction::Receiving } else { Direction::Sending },
        version,
        compat: if version.has_compat_flags() && rich { Compat::all() } else { Compat::empty() },
        seed: 1,
        transfer_sum: SumKind::Md5 { seed_first: true },
        list_sum: SumKind::Md5 { seed_first: true },
        compressor: Compressor::None,
        compress_level: 0,
        layout: Layout {
            uid: rich,
            gid: rich,
            devices: rich,
            specials: rich,
            links: rich,
            hard_links: rich,
            checksum: rich,
            atimes: rich,
            xattrs: rich && on(5) && version.has_acls_and_xattrs(),
            recursive: true,
            confirm: on(5),
            ..Layout::default()
        },
        recursion: if incremental { Recursion::Incremental } else { Recursion::Whole },
        charset: None,
    }
}

fn version(choice: u8) -> Version {
    let versions = Version::NEWEST.number() - Version::OLDEST.number() + 1;
    let number = Version::OLDEST.number() + (choice & 7) % versions;
    Version::new(number.into()).expect("the remainder keeps it in range")
}

/// Integers: what decodes encodes to something that decodes to the same.
pub fn integers(input: &[u8]) {
    type Decoder = fn(&mut Reader<'_>) -> crate::Decode<i64>;
    type Encoder = fn(i64, &mut Vec<u8>);
    let codecs: [(Decoder, Encoder); 4] = [
        (|r| r.varint().map(i64::from), |v, out| put_varint(v as i32, out)),
        (|r| r.varlong(3), |v, out| put_varlong(v, 3, out)),
        (|r| r.varlong(4), |v, out| put_varlong(v, 4, out)),
        (|r| r.longint(), put_longint),
    ];
    for (decode, encode) in codecs {
        let mut reader = Reader::new(input);
        while let Ok(value) = decode(&mut reader) {
            let mut out = Vec::new();
            encode(value, &mut out);
            assert_eq!(decode(&mut Reader::new(&out)), Ok(value));
        }
    }
    let _ = Reader::new(input).vstring("name", 64);
}

/// Indexes, plain and delta-coded.
pub fn ndx(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    let mut decoder = NdxCoder::new(version(*choice));
    let mut reader = Reader::new(input);
    let mut all = Vec::new();
    while let Ok(index) = decoder.decode(&mut reader) {
        all.push(index);
    }
    let mut encoder = NdxCoder::new(version(*choice));
    let mut out = Vec::new();
    all.iter().for_each(|index| encoder.encode(*index, &mut out));
    let mut decoder = NdxCoder::new(version(*choice));
    let mut reader = Reader::new(&out);
    let again: Vec<i32> = all.iter().map_while(|_| decoder.decode(&mut reader).ok()).collect();
    assert_eq!(again, all);
}

/// Frames: how the bytes are cut makes no difference. The second byte is the length of a piece.
pub fn demux(input: &[u8]) {
    let [choice, piece, input @ ..] = input else { return };
    let session = session(*choice);
    let whole = split(&session, input, input.len().max(1));
    let pieces = split(&session, input, usize::from(*piece).max(1));
    assert_eq!(whole, pieces);
}

type Split = (Vec<u8>, Vec<Notice>, Option<Error>);

fn split(session: &Session, input: &[u8], piece: usize) -> Split {
    let mut demux = Demux::new(session);
    demux.expect_names();
    let (mut data, mut notices) = (Vec::new(), Vec::new());
    for chunk in input.chunks(piece) {
        demux.feed(Bytes::copy_from_slice(chunk));
        loop {
            match demux.next_frame() {
                Ok(None) => break,
                Ok(Some(Frame::Data(bytes))) => data.extend_from_slice(&bytes),
                Ok(Some(Frame::Notice(notice))) => notices.push(notice),
                Err(error) => return (data, notices, Some(error)),
            }
        }
    }
    (data, notices, None)
}

/// A server's opening, as a client sees it.
pub fn handshake_client(input: &[u8]) {
    handshake(Side::Client, input);
}

/// A client's opening, as a server sees it.
pub fn handshake_server(input: &[u8]) {
    handshake(Side::Server, input);
}

/// The first byte chooses: bits 0 to 2 the version, bit 3 a daemon's session, bit 4 compression.
/// A server takes the second byte as the length of the capability text in front of the rest.
fn handshake(side: Side, input: &[u8]) {
    let Some((choice, mut input)) = input.split_first() else { return };
    let mut capabilities = Capabilities::ours(IncrementalRecursion::Allowed);
    if side == Side::Server {
        let Some((length, rest)) = input.split_first() else { return };
        let (text, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        capabilities = Capabilities::parse(text);
        input = rest;
    }
    let version = version(*choice);
    let offer = Offer {
        side,
        direction: Direction::Sending,
        version,
        agreed: Some(version).filter(|_| choice & 8 != 0),
        capabilities,
        recursion: IncrementalRecursion::Allowed,
        sums: None,
        compress: if choice & 16 != 0 { CompressWish::Negotiate } else { CompressWish::Off },
        compress_level: None,
        seed: 1,
        checksum_list: None,
        compress_list: None,
        charset: None,
        recorded: false,
        layout: Layout::default(),
        needs: None,
    };
    let Ok(mut whole) = Handshake::new(offer.clone()) else { return };
    let result = whole.feed(input);
    let Ok(mut bytewise) = Handshake::new(offer) else { return };
    let mut taken = 0;
    for end in 0..=input.len() {
        match bytewise.feed(&input[taken..end]) {
            Ok(Progress::NeedMore { consumed }) => taken += consumed,
            Ok(Progress::Done { consumed, session }) => {
                assert_eq!(result, Ok(Progress::Done { consumed: taken + consumed, session }));
                break;
            }
            Err(error) => {
                assert_eq!(result, Err(error));
                break;
            }
        }
    }
    assert_eq!(whole.output(), bytewise.output());
}

/// A daemon's lines, and the words and lines that a client sends it.
pub fn daemon_lines(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    let request = ModuleRequest::Module(b"pub".to_vec());
    let Ok(mut client) = DaemonClient::new(version(*choice), request, Vec::new()) else { return };
    let mut at = 0;
    while let Ok((consumed, Some(event))) = client.feed(&input[at..]) {
        at += consumed;
        if event == DaemonEvent::LoginWanted && client.login(b"user", b"password").is_err() {
            break;
        }
    }
    let _ = ModuleRequest::parse(input);
    let _ = early_input_length(input);
    let mut block = ArgumentBlock::of_daemon(version(*choice));
    let mut reader = Reader::new(input);
    while let Ok(Some(word)) = block.take_word(&mut reader) {
        assert!(!word.is_empty());
    }
}
