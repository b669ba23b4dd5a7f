//! The head of a batch file: what a replay must know before the recorded stream.
//!
//! ```text
//! int flags | int version | varint compat (from 30 on) | int seed | the stream of the sender
//! ```
//!
//! A batch file is untrusted input like any peer's bytes.
//! Wire: protocol/doc/04-batch-and-files-from.md#42-what-is-recorded

use crate::error::{Decode, PeerIncompatible};
use crate::session::{
    sum_kinds, Compat, CompressWish, Direction, Layout, Recursion, Session, Side, SumChoice, Version,
};
use crate::sum::SumKind;
use crate::transfer::Compressor;
use crate::wire::{put_i32, put_varint, Reader};

bitflags::bitflags! {
    /// The options of the recording run on which the form of the stream depends.
    ///
    /// Wire: protocol/doc/04-batch-and-files-from.md#43-stream-flags-int-bit-set--option-on-in-the-recording-run
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct StreamFlags: u32 {
        /// `-r`.
        const RECURSIVE = 1;
        /// `-o`.
        const OWNER = 1 << 1;
        /// `-g`.
        const GROUP = 1 << 2;
        /// `-l`.
        const LINKS = 1 << 3;
        /// `--devices`.
        const DEVICES = 1 << 4;
        /// `-H`.
        const HARD_LINKS = 1 << 5;
        /// `-c`.
        const CHECKSUM = 1 << 6;
        /// `-d`, also where recursion implies it.
        const DIRS = 1 << 7;
        /// Any compression.
        const COMPRESS = 1 << 8;
        /// `--iconv`.
        const ICONV = 1 << 9;
        /// `-A`.
        const ACLS = 1 << 10;
        /// `-X`.
        const XATTRS = 1 << 11;
        /// `--inplace`, also where an append option implies it.
        const INPLACE = 1 << 12;
        /// `--append`.
        const APPEND = 1 << 13;
        /// `--append-verify`.
        const APPEND_VERIFY = 1 << 14;
    }
}

impl StreamFlags {
    /// Returns the flags that a recording of this version means.
    pub fn known_to(version: Version) -> StreamFlags {
        let first = StreamFlags::DIRS.bits() - 1;
        let bits = match () {
            () if version.has_inplace_batches() => StreamFlags::all().bits(),
            () if version.has_item_flags() => first | (StreamFlags::DIRS | StreamFlags::COMPRESS).bits(),
            () => first,
        };
        StreamFlags::from_bits_truncate(bits)
    }
}

/// The head of a batch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Options of the recording run; those that the version does not know are meaningless.
    pub flags: StreamFlags,
    /// The version of the stream.
    pub version: Version,
    /// The compat flags of the recording run; empty below 30.
    pub compat: Compat,
    /// The checksum seed.
    pub seed: i32,
}

impl BatchHeader {
    /// Appends the first field, which is written before anything is known of the peer.
    pub fn put_flags(flags: StreamFlags, out: &mut Vec<u8>) {
        put_i32(flags.bits() as i32, out);
    }

    /// Appends the other fields, once a session is agreed.
    pub fn put_session(session: &Session, out: &mut Vec<u8>) {
        put_i32(i32::from(session.version.number()), out);
        if session.version.has_compat_flags() {
            put_varint(session.compat.bits() as i32, out);
        }
        put_i32(session.seed, out);
    }

    /// Takes a head. `newest` is the version of this end: a later one cannot be read.
    pub fn decode(input: &mut Reader<'_>, newest: Version) -> Decode<BatchHeader> {
        let flags = StreamFlags::from_bits_truncate(input.i32()? as u32);
        let number = input.i32()?;
        if number > i32::from(newest.number()) {
            return Err(PeerIncompatible::NewBatch { found: number, newest: newest.number() }.into());
        }
        let version = u32::try_from(number).ok().and_then(Version::new);
        let version = version.ok_or(PeerIncompatible::Version(number))?;
        let compat = if version.has_compat_flags() { Compat::decode(input)? } else { Compat::empty() };
        let seed = input.i32()?;
        Ok(BatchHeader { flags, version, compat, seed })
    }

    /// Returns the session of a replay: that of a receiving client whose peer is the file. Names
    /// were never negotiated, so what is not chosen is what both ends take without.
    pub fn session(&self, sums: Option<SumChoice>, compressor: Compressor, layout: Layout) -> Session {
        let (transfer_sum, list_sum) = sum_kinds(self.version, self.compat, sums, None);
        let incremental = self.compat.contains(Compat::INC_RECURSE);
        Session {
            side: Side::Client,
            direction: Direction::Receiving,
            version: self.version,
            compat: self.compat,
            seed: self.seed,
            transfer_sum,
            list_sum,
            compressor,
            compress_level: 0,
            charset: None,
            layout,
            recursion: if incremental { Recursion::Incremental } else { Recursion::Whole },
        }
    }
}

/// Returns the algorithms of a recorded run on one machine, for files and for `-c`.
pub fn recorded_sums(choice: Option<SumChoice>, version: Version) -> (SumKind, SumKind) {
    sum_kinds(version, Compat::all(), choice, None)
}

/// Returns the compressor of a recorded run, and its level: what was named, or zlib, which needs
/// no negotiation.
pub fn recorded_compressor(wish: CompressWish, level: Option<i32>) -> (Compressor, i32) {
    let compressor = match wish {
        CompressWish::Off => Compressor::None,
        CompressWish::Fixed(compressor) => compressor,
        CompressWish::Negotiate => Compressor::Zlib,
    };
    match compressor.level(level) {
        Some(level) => (compressor, level),
        None => (Compressor::None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Stop};

    fn decode(bytes: &[u8]) -> Decode<(BatchHeader, usize)> {
        let mut reader = Reader::new(bytes);
        let header = BatchHeader::decode(&mut reader, Version::NEWEST)?;
        Ok((header, reader.consumed()))
    }

    #[test]
    fn captured_heads() {
        let (header, used) = decode(b"\x9F\0\0\0\x20\0\0\0\x81\xFF\xA0\x65\x12\x6B\x8C\x01").unwrap();
        assert_eq!(used, 14);
        assert_eq!((header.version.number(), header.compat, header.seed), (32, Compat::all(), 0x6B12_65A0));
        let archive = StreamFlags::RECURSIVE
            | StreamFlags::OWNER
            | StreamFlags::GROUP
            | StreamFlags::LINKS
            | StreamFlags::DEVICES
            | StreamFlags::DIRS;
        assert_eq!(header.flags, archive);
        let (old, used) = decode(b"\x9F\0\0\0\x1D\0\0\0\x20\x66\x12\x6B\x19").unwrap();
        assert_eq!((old.version.number(), old.compat, used), (29, Compat::empty(), 12));
    }

    #[test]
    fn a_head_is_read_back() {
        for number in 27..=32 {
            let version = Version::new(number).unwrap();
            let compat = if version.has_compat_flags() { Compat::all() } else { Compat::empty() };
            let header = BatchHeader { flags: StreamFlags::all(), version, compat, seed: -7 };
            let mut bytes = Vec::new();
            BatchHeader::put_flags(header.flags, &mut bytes);
            let session = header.session(None, Compressor::None, Layout::default());
            BatchHeader::put_session(&session, &mut bytes);
            assert_eq!(decode(&bytes), Ok((header, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), Err(Stop::Short));
            }
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let text = |number: i32| {
            let bytes = [[0; 4], number.to_le_bytes(), [0; 4], [0; 4]].concat();
            match decode(&bytes) {
                Err(Stop::Bad(error @ Error::PeerIncompatible(_))) => {
                    assert_eq!(error.exit_code(), 2);
                    error.to_string()
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(text(41), "The protocol version in the batch file is too new (41 > 32).");
        assert!(text(26).starts_with("protocol version mismatch"));
        assert!(text(-1).starts_with("protocol version mismatch"));
    }

    #[test]
    fn old_recordings_mean_fewer_flags() {
        let known = |number| StreamFlags::known_to(Version::new(number).unwrap()).bits();
        assert_eq!([known(28), known(29), known(30)], [0x7F, 0x1FF, 0x7FFF]);
    }

    #[test]
    fn nothing_is_negotiated_for_a_recording() {
        assert_eq!(recorded_compressor(CompressWish::Negotiate, None), (Compressor::Zlib, 6));
        assert_eq!(recorded_compressor(CompressWish::Negotiate, Some(0)), (Compressor::None, 0));
        let zstd = CompressWish::Fixed(Compressor::Zstd);
        assert_eq!(recorded_compressor(zstd, Some(5)), (Compressor::Zstd, 5));
    }
}
