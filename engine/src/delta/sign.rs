//! The signature of a basis file.
//!
//! Wire: protocol/doc/20-transfer.md#31-layout

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use suisei_protocol::session::{Session, Version};
use suisei_protocol::sum::{BlockSum, Rolling, SumKind};
use suisei_protocol::transfer::{BlockSignature, SumHead};

use super::block_size::{cut, Strength};

/// Bytes read at once, unless one block is longer.
const READ: usize = 256 * 1024;

/// Cuts and sums basis files for one session.
#[derive(Debug, Clone)]
pub struct Signer {
    version: Version,
    sum: SumKind,
    block_sum: BlockSum,
    block_size: Option<u32>,
}

impl Signer {
    /// Takes the algorithm from the session; `block_size` is the user's wish.
    pub fn new(session: &Session, block_size: Option<u32>) -> Self {
        Self::of(session.version, session.transfer_sum, session.seed, block_size)
    }

    pub(super) fn of(version: Version, sum: SumKind, seed: i32, block_size: Option<u32>) -> Self {
        Signer { version, sum, block_sum: BlockSum::new(sum, seed), block_size }
    }

    /// Cuts a basis of `len` bytes. In append mode this head alone is sent, as
    /// `BlockSignature { head, sums: Bytes::new() }`. Returns nothing if the basis is too large to
    /// be described: warn, and ask for the whole file.
    pub fn head(&self, len: u64, strength: Strength) -> Option<SumHead> {
        cut(len, self.version, self.sum, self.block_size, strength)
    }

    /// Sums the blocks of a basis. Fails if it cannot be read, or is shorter than `head` says.
    pub fn sign(&self, basis: &File, head: SumHead) -> io::Result<BlockSignature> {
        if head.count == 0 {
            return Ok(BlockSignature { head, sums: Bytes::new() });
        }
        let block_len = head.block_len as usize;
        let blocks_at_once = (READ / block_len).max(1);
        let len = head.basis_len();
        let mut buffer = vec![0; len.min((blocks_at_once * block_len) as u64) as usize];
        let mut sums = Vec::with_capacity(head.sums_len() as usize);
        let mut at = 0;
        while at < len {
            let piece = (len - at).min(buffer.len() as u64) as usize;
            let piece = &mut buffer[..piece];
            basis.read_exact_at(piece, at)?;
            for block in piece.chunks(block_len) {
                sums.extend_from_slice(&Rolling::of(block).value().to_le_bytes());
                let strong = self.block_sum.of(block);
                sums.extend_from_slice(&strong[..usize::from(head.sum_len).min(strong.len())]);
            }
            at += piece.len() as u64;
        }
        Ok(BlockSignature { head, sums: sums.into() })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines() -> (File, u64) {
        let text: String = (1..=600).map(|n| format!("{n}\n")).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        (file, text.len() as u64)
    }

    #[test]
    fn first_block_has_the_captured_sums() {
        let (file, len) = lines();
        for (sum, seed, strong) in [
            (SumKind::Md5 { seed_first: true }, 1, [0xE6, 0x14]),
            (SumKind::Xxh128, -2, [0x07, 0x41]),
            (SumKind::Md4Seeded, 1, [0x47, 0x77]),
        ] {
            let signer = Signer::of(Version::NEWEST, sum, seed, None);
            let signature = signer.sign(&file, signer.head(len, Strength::Short).unwrap()).unwrap();
            assert_eq!((signature.head.count, signature.head.remainder), (4, 192));
            assert_eq!(signature.sums.len() as u64, signature.head.sums_len());
            assert_eq!(signature.block(0), Some((0x5669_6CB9, &strong[..])));
            let full = signer.sign(&file, signer.head(len, Strength::Full).unwrap()).unwrap();
            assert_eq!(full.block(3).unwrap().1.len(), 16);
            assert_eq!(full.block(3).unwrap().1[..2], *signature.block(3).unwrap().1);
        }
    }

    #[test]
    fn blocks_beyond_one_read_are_summed_alike() {
        let data: Vec<u8> = (0..1_500_000u32).map(|n| (n / 5) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&data).unwrap();
        let signer = Signer::of(Version::NEWEST, SumKind::Xxh64, 3, Some(100_000));
        let signature = signer.sign(&file, signer.head(1_500_000, Strength::Full).unwrap()).unwrap();
        for (index, block) in data.chunks(100_000).enumerate() {
            let (weak, strong) = signature.block(index as u32).unwrap();
            assert_eq!(weak, Rolling::of(block).value());
            assert_eq!(strong, &BlockSum::new(SumKind::Xxh64, 3).of(block)[..]);
        }
    }

    #[test]
    fn a_basis_that_shrank_is_an_error() {
        let (file, len) = lines();
        let signer = Signer::of(Version::NEWEST, SumKind::Xxh128, 1, None);
        assert!(signer.sign(&file, signer.head(len + 1, Strength::Short).unwrap()).is_err());
    }
}
