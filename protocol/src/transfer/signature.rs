//! Block signatures of a basis file.
//!
//! Wire: protocol/doc/20-transfer.md#3-sum-head-and-block-sums

use bytes::Bytes;

/// How a basis was cut into blocks. All zero: there is no basis, the whole file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SumHead {
    /// Number of blocks.
    pub count: u32,
    /// Length of a block in bytes.
    pub block_len: u32,
    /// Bytes of strong sum per block.
    pub sum_len: u8,
    /// Length of the last block if it is short, else 0.
    pub remainder: u32,
}

impl SumHead {
    /// Returns the length of block `index` in bytes.
    pub fn len_of(&self, index: u32) -> u32 {
        if self.remainder != 0 && index + 1 == self.count {
            self.remainder
        } else {
            self.block_len
        }
    }

    /// Returns the offset of block `index` in the basis.
    pub fn offset_of(&self, index: u32) -> u64 {
        u64::from(index) * u64::from(self.block_len)
    }

    /// Returns the length of the basis in bytes.
    pub fn basis_len(&self) -> u64 {
        match self.count {
            0 => 0,
            count => self.offset_of(count - 1) + u64::from(self.len_of(count - 1)),
        }
    }
}

/// A sum head and, unless appending, its block sums.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockSignature {
    /// How the basis was cut.
    pub head: SumHead,
    /// Per block, as on the wire: weak sum (4 bytes, little-endian), then `sum_len` bytes of the
    /// strong sum. Empty in append mode.
    pub sums: Bytes,
}

impl BlockSignature {
    /// The signature that asks for a whole file.
    pub fn whole_file() -> Self {
        BlockSignature::default()
    }

    /// Returns the weak sum and the truncated strong sum of a block.
    pub fn block(&self, index: u32) -> Option<(u32, &[u8])> {
        let width = 4 + usize::from(self.head.sum_len);
        let at = index as usize * width;
        let row = self.sums.get(at..at + width)?;
        let (weak, strong) = row.split_first_chunk::<4>()?;
        Some((u32::from_le_bytes(*weak), strong))
    }
}
