//! What unit tests share: sessions, and captured bytes in the notation of the specification.

use bytes::Bytes;

use crate::codec::Input;
use crate::error::{Decode, Error, Stop};
use crate::session::{Compat, Direction, Layout, Recursion, Session, Side, Version};
use crate::sum::SumKind;
use crate::transfer::Compressor;

/// Returns a session as two ends of one version agree on it: with all compat flags but that for
/// incremental recursion from version 30 on, with XXH128 or seeded MD4.
pub(crate) fn session(version: u32, layout: Layout) -> Session {
    let version = Version::new(version).unwrap();
    let modern = version.has_compat_flags();
    Session {
        side: Side::Client,
        direction: Direction::Receiving,
        version,
        compat: if modern { Compat::all() - Compat::INC_RECURSE } else { Compat::empty() },
        seed: 1,
        transfer_sum: if modern { SumKind::Xxh128 } else { SumKind::Md4Seeded },
        list_sum: if modern { SumKind::Xxh128 } else { SumKind::Md4Seeded },
        compressor: Compressor::None,
        compress_level: 0,
        layout,
        recursion: Recursion::Whole,
        charset: None,
    }
}

/// The same with incremental recursion.
pub(crate) fn incremental(version: u32, layout: Layout) -> Session {
    Session { recursion: Recursion::Incremental, ..session(version, layout) }
}

/// Returns the layout of `-a` (without `-D` where the tree has none).
pub(crate) fn archive() -> Layout {
    Layout {
        uid: true,
        gid: true,
        devices: true,
        specials: true,
        links: true,
        recursive: true,
        ..Layout::default()
    }
}

/// Reads captured bytes: hexadecimal pairs, `00*16` for repeats, `"text"`; `|` is decoration.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, part) in text.split('"').enumerate() {
        if i % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace().filter(|word| *word != "|") {
            let (pair, count) = word.split_once('*').unwrap_or((word, "1"));
            let byte = u8::from_str_radix(pair, 16).unwrap();
            out.extend(std::iter::repeat_n(byte, count.parse().unwrap()));
        }
    }
    out
}

/// Decodes everything that a stream holds, with the input cut into chunks of one length.
pub(crate) fn decode_all<M>(
    stream: &[u8],
    chunk: usize,
    mut decode: impl FnMut(&mut Input) -> Decode<M>,
) -> Result<Vec<M>, Error> {
    let mut input = Input::new();
    let mut messages = Vec::new();
    for chunk in stream.chunks(chunk) {
        input.push(Bytes::copy_from_slice(chunk));
        loop {
            match decode(&mut input) {
                Ok(message) => messages.push(message),
                Err(Stop::Short) => break,
                Err(Stop::Bad(error)) => return Err(error),
            }
        }
    }
    assert!(input.is_empty(), "half read");
    Ok(messages)
}

/// Returns bytes that do not compress and do not repeat, the same for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
