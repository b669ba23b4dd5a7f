//! Block signatures of a basis file.
//!
//! Wire: protocol/doc/20-transfer.md#3-sum-head-and-block-sums

use bytes::Bytes;

use crate::error::{Decode, PeerMisbehaved};
use crate::limits::{BLOCK_COUNT_MAX, BLOCK_LEN_MAX, OLD_BLOCK_LEN_MAX};
use crate::session::Version;
use crate::sum::SumKind;
use crate::wire::{put_i32, Reader};

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
    /// Takes a sum head and checks every field against its range.
    ///
    /// Wire: protocol/doc/20-transfer.md#31-layout
    pub fn decode(input: &mut Reader<'_>, version: Version, sum: SumKind) -> Decode<SumHead> {
        let block_max = SumHead::block_len_max(version);
        let (count, block_len, sum_len, remainder) = (input.i32()?, input.i32()?, input.i32()?, input.i32()?);
        let count = bounded("checksum count", count, BLOCK_COUNT_MAX)?;
        let block_len = bounded("block length", block_len, block_max)?;
        if count != 0 && block_len == 0 {
            return Err(PeerMisbehaved::OutOfRange { field: "block length", value: 0 }.into());
        }
        let sum_len = bounded("checksum length", sum_len, sum.len() as u32)? as u8;
        let remainder = bounded("remainder length", remainder, block_len)?;
        Ok(SumHead { count, block_len, sum_len, remainder })
    }

    /// Returns the longest block that a version allows, in bytes.
    pub fn block_len_max(version: Version) -> u32 {
        match version.caps_blocks_at_128k() {
            true => BLOCK_LEN_MAX,
            false => OLD_BLOCK_LEN_MAX,
        }
    }

    /// Appends the sum head.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // All four fit: they were decoded, or cut from a file, within the limits.
        for field in [self.count, self.block_len, u32::from(self.sum_len), self.remainder] {
            put_i32(field as i32, out);
        }
    }

    /// Returns the number of bytes of block sums that follow the head outside append mode.
    pub fn sums_len(&self) -> u64 {
        u64::from(self.count) * (4 + u64::from(self.sum_len))
    }

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

fn bounded(field: &'static str, value: i32, max: u32) -> Result<u32, PeerMisbehaved> {
    u32::try_from(value)
        .ok()
        .filter(|&value| value <= max)
        .ok_or(PeerMisbehaved::OutOfRange { field, value: i64::from(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn decode(fields: [i32; 4], version: u32, sum: SumKind) -> Decode<SumHead> {
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        SumHead::decode(&mut Reader::new(&bytes), Version::new(version).unwrap(), sum)
    }

    #[test]
    fn captured_head() {
        let bytes = [4, 0, 0, 0, 0xBC, 2, 0, 0, 2, 0, 0, 0, 0xCA, 0, 0, 0];
        let head = SumHead::decode(&mut Reader::new(&bytes), Version::NEWEST, SumKind::Xxh128).unwrap();
        assert_eq!(head, SumHead { count: 4, block_len: 700, sum_len: 2, remainder: 202 });
        assert_eq!((head.basis_len(), head.sums_len()), (2302, 24));
        let mut again = Vec::new();
        head.encode(&mut again);
        assert_eq!(again, bytes);
        for end in 0..bytes.len() {
            let cut = SumHead::decode(&mut Reader::new(&bytes[..end]), Version::NEWEST, SumKind::Xxh128);
            assert_eq!(cut, Err(Stop::Short));
        }
    }

    #[test]
    fn fields_out_of_range_end_with_code_2() {
        let lies = [
            [-1, 700, 2, 0],
            [i32::MAX, 700, 2, 0],
            [1, 0, 2, 0],
            [1, -700, 2, 0],
            [1, 131_073, 2, 0],
            [1, 700, 17, 0],
            [1, 700, -1, 0],
            [1, 700, 2, 701],
            [1, 700, 2, -1],
        ];
        for fields in lies {
            let Err(Stop::Bad(error)) = decode(fields, 30, SumKind::Md4) else {
                panic!("{fields:?} was taken")
            };
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn limits_depend_on_version_and_sum() {
        assert!(decode([1, 1 << 29, 16, 0], 29, SumKind::Md4Seeded).is_ok());
        assert!(decode([1, (1 << 29) + 1, 16, 0], 29, SumKind::Md4Seeded).is_err());
        assert!(decode([1, 700, 8, 0], 32, SumKind::Xxh64).is_ok());
        assert!(decode([1, 700, 9, 0], 32, SumKind::Xxh64).is_err());
        assert!(decode([0, 0, 0, 0], 32, SumKind::None).is_ok());
    }
}
