//! Strong checksums: which one, over what, with which seed where.
//!
//! Wire: protocol/doc/20-transfer.md#42-definition

use std::fmt;
use std::hash::Hasher;
use std::ops::Deref;

use bytes::Bytes;
use md4::Md4;
use md5::Md5;
use sha1::digest::Digest as _;
use sha1::Sha1;
use twox_hash::{XxHash3_128, XxHash3_64, XxHash64};

/// Length in bytes of the longest digest.
const DIGEST_MAX: usize = 20;

/// A strong checksum algorithm, with the quirks of the version that chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumKind {
    /// No sum: one zero byte on the wire; forces whole files.
    None,
    /// MD4 by default choice at versions 27 to 29: a seed even in file sums.
    Md4Seeded,
    /// MD4 chosen by name.
    Md4,
    /// MD5; `seed_first` as the seed-fix capability says.
    Md5 {
        /// Whether block sums hash the seed before the data.
        seed_first: bool,
    },
    /// SHA-1.
    Sha1,
    /// XXH64.
    Xxh64,
    /// XXH3, 64 bits.
    Xxh3,
    /// XXH3, 128 bits.
    Xxh128,
}

impl SumKind {
    /// Returns the length of a digest in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        match self {
            SumKind::None => 1,
            SumKind::Xxh64 | SumKind::Xxh3 => 8,
            SumKind::Sha1 => 20,
            _ => 16,
        }
    }
}

/// A digest as the wire carries it, held in place.
#[derive(Clone, Copy)]
pub struct Digest {
    bytes: [u8; DIGEST_MAX],
    len: u8,
}

impl Digest {
    fn new(bytes: &[u8]) -> Self {
        let mut digest = Digest { bytes: [0; DIGEST_MAX], len: bytes.len() as u8 };
        digest.bytes[..bytes.len()].copy_from_slice(bytes);
        digest
    }
}

impl Deref for Digest {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        **self == **other
    }
}

impl Eq for Digest {}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A digest over blocks, seeded with the session's seed.
#[derive(Debug, Clone, Copy)]
pub struct BlockSum {
    kind: SumKind,
    seed: i32,
}

impl BlockSum {
    /// Fixes the algorithm and the seed.
    pub fn new(kind: SumKind, seed: i32) -> Self {
        BlockSum { kind, seed }
    }

    /// Sums one block.
    pub fn of(&self, block: &[u8]) -> Digest {
        let le = self.seed.to_le_bytes();
        let seed: &[u8] = if self.seed == 0 { &[] } else { &le };
        match self.kind {
            SumKind::None => Digest::new(&[0]),
            SumKind::Md4Seeded | SumKind::Md4 => hash::<Md4>(block, seed),
            SumKind::Md5 { seed_first: true } => hash::<Md5>(seed, block),
            SumKind::Md5 { seed_first: false } => hash::<Md5>(block, seed),
            SumKind::Sha1 => hash::<Sha1>(seed, block),
            SumKind::Xxh64 => Digest::new(&XxHash64::oneshot(self.wide_seed(), block).to_le_bytes()),
            SumKind::Xxh3 => {
                Digest::new(&XxHash3_64::oneshot_with_seed(self.wide_seed(), block).to_le_bytes())
            }
            SumKind::Xxh128 => {
                Digest::new(&XxHash3_128::oneshot_with_seed(self.wide_seed(), block).to_le_bytes())
            }
        }
    }

    /// XXH takes the seed sign-extended.
    fn wide_seed(&self) -> u64 {
        i64::from(self.seed) as u64
    }
}

fn hash<D: sha1::digest::Digest>(first: &[u8], second: &[u8]) -> Digest {
    let mut hasher = D::new();
    hasher.update(first);
    hasher.update(second);
    Digest::new(&hasher.finalize())
}

/// A running digest over a whole file. Only [`SumKind::Md4Seeded`] looks at the seed; sums of the
/// file list (`-c`) are those of the same algorithm by [`FileSum::unseeded`].
#[derive(Clone)]
pub struct FileSum(State);

#[derive(Clone)]
enum State {
    None,
    Md4(Md4),
    Md5(Md5),
    Sha1(Sha1),
    Xxh64(XxHash64),
    Xxh3(Box<XxHash3_64>),
    Xxh128(Box<XxHash3_128>),
}

impl FileSum {
    /// Starts the sum that follows the tokens of a file.
    pub fn new(kind: SumKind, seed: i32) -> Self {
        let mut sum = Self::unseeded(kind);
        if kind == SumKind::Md4Seeded {
            sum.update(&seed.to_le_bytes());
        }
        sum
    }

    /// Starts the sum of a file that the file list carries.
    pub fn unseeded(kind: SumKind) -> Self {
        FileSum(match kind {
            SumKind::None => State::None,
            SumKind::Md4Seeded | SumKind::Md4 => State::Md4(Md4::new()),
            SumKind::Md5 { .. } => State::Md5(Md5::new()),
            SumKind::Sha1 => State::Sha1(Sha1::new()),
            SumKind::Xxh64 => State::Xxh64(XxHash64::with_seed(0)),
            SumKind::Xxh3 => State::Xxh3(Box::new(XxHash3_64::new())),
            SumKind::Xxh128 => State::Xxh128(Box::new(XxHash3_128::new())),
        })
    }

    /// Adds content.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.0 {
            State::None => {}
            State::Md4(hasher) => hasher.update(data),
            State::Md5(hasher) => hasher.update(data),
            State::Sha1(hasher) => hasher.update(data),
            State::Xxh64(hasher) => hasher.write(data),
            State::Xxh3(hasher) => hasher.write(data),
            State::Xxh128(hasher) => hasher.write(data),
        }
    }

    /// Returns the sum of everything added, as the wire carries it.
    pub fn finish(self) -> Bytes {
        match self.0 {
            State::None => Bytes::from_static(&[0]),
            State::Md4(hasher) => Bytes::copy_from_slice(&hasher.finalize()),
            State::Md5(hasher) => Bytes::copy_from_slice(&hasher.finalize()),
            State::Sha1(hasher) => Bytes::copy_from_slice(&hasher.finalize()),
            State::Xxh64(hasher) => Bytes::copy_from_slice(&hasher.finish().to_le_bytes()),
            State::Xxh3(hasher) => Bytes::copy_from_slice(&hasher.finish().to_le_bytes()),
            State::Xxh128(hasher) => Bytes::copy_from_slice(&hasher.finish_128().to_le_bytes()),
        }
    }
}

impl fmt::Debug for FileSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            State::None => "none",
            State::Md4(_) => "md4",
            State::Md5(_) => "md5",
            State::Sha1(_) => "sha1",
            State::Xxh64(_) => "xxh64",
            State::Xxh3(_) => "xxh3",
            State::Xxh128(_) => "xxh128",
        };
        write!(f, "FileSum({name})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: SumKind = SumKind::Md5 { seed_first: true };

    fn lines() -> Vec<u8> {
        (1..=600).map(|n| format!("{n}\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn block_sums_start_as_captured() {
        let table: [(SumKind, [u8; 2], [u8; 2]); 7] = [
            (SumKind::Md4, [0x47, 0x77], [0x7B, 0x16]),
            (SumKind::Md4Seeded, [0x47, 0x77], [0x7B, 0x16]),
            (MD5, [0xE6, 0x14], [0xB8, 0xB3]),
            (SumKind::Sha1, [0x3D, 0xEC], [0x2C, 0xB6]),
            (SumKind::Xxh64, [0xA5, 0xEF], [0x71, 0xD4]),
            (SumKind::Xxh3, [0x64, 0x1F], [0x07, 0x41]),
            (SumKind::Xxh128, [0x64, 0x1F], [0x07, 0x41]),
        ];
        let block = &lines()[..700];
        for (kind, positive, negative) in table {
            assert_eq!(BlockSum::new(kind, 1).of(block)[..2], positive, "{kind:?}, seed 1");
            assert_eq!(BlockSum::new(kind, -2).of(block)[..2], negative, "{kind:?}, seed -2");
        }
    }

    #[test]
    fn file_sums_are_those_captured_whatever_the_pieces() {
        let table = [
            (MD5, "7a044e2a9e2456abcb13c7991a202096"),
            (SumKind::Md5 { seed_first: false }, "7a044e2a9e2456abcb13c7991a202096"),
            (SumKind::Md4, "23cfa2da788475a17b20597661b9551d"),
            (SumKind::Md4Seeded, "1ca55b01e19cd4c04bf079a894685603"),
            (SumKind::Sha1, "aa4f5dbfbf43f25c9587ff2851c232d75f4462ef"),
            (SumKind::Xxh64, "b4cec01ac7c2ec82"),
            (SumKind::Xxh3, "a2b9eb7bd647dacc"),
            (SumKind::Xxh128, "a2b9eb7bd647dacc6eb3deb98b268cb3"),
            (SumKind::None, "00"),
        ];
        for (kind, hex) in table {
            for piece in [1, 64, 4096] {
                let mut sum = FileSum::new(kind, 1);
                lines().chunks(piece).for_each(|data| sum.update(data));
                let sum = sum.finish();
                assert_eq!(sum.len(), kind.len());
                assert_eq!(format!("{:?}", Digest::new(&sum)), hex, "{kind:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn seed_zero_is_left_out_of_blocks_but_not_of_old_file_sums() {
        let data = lines();
        for seed_first in [true, false] {
            let block = BlockSum::new(SumKind::Md5 { seed_first }, 0).of(&data);
            assert_eq!(format!("{block:?}"), "7a044e2a9e2456abcb13c7991a202096");
        }
        let mut unseeded = FileSum::unseeded(SumKind::Md4Seeded);
        let mut seeded = FileSum::new(SumKind::Md4Seeded, 0);
        unseeded.update(&data);
        seeded.update(&data);
        let unseeded = unseeded.finish();
        assert_eq!(format!("{:?}", Digest::new(&unseeded)), "23cfa2da788475a17b20597661b9551d");
        assert_ne!(seeded.finish(), unseeded);
    }

    #[test]
    fn md5_without_seed_fix_hashes_the_seed_last() {
        let mut joined = b"block".to_vec();
        joined.extend_from_slice(&7i32.to_le_bytes());
        let last = BlockSum::new(SumKind::Md5 { seed_first: false }, 7).of(b"block");
        assert_eq!(last, BlockSum::new(MD5, 0).of(&joined));
    }
}
