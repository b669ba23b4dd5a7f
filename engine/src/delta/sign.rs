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
        Signer {
            version: session.version,
            sum: session.transfer_sum,
            block_sum: BlockSum::new(session.transfer_sum, session.seed),
            block_size,
        }
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
