//! How a basis is cut: block length and strong-sum length from its size.
//!
//! Wire: protocol/doc/20-transfer.md#32-block-length, protocol/doc/20-transfer.md#33-strong-sum-length-s2length

use suisei_protocol::limits::BLOCK_COUNT_MAX;
use suisei_protocol::session::Version;
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::SumHead;

/// The shortest block that is chosen by itself.
const BLOCK_LEN_MIN: u64 = 700;
/// Strong-sum bytes per block in a first attempt, at least.
const SHORT_SUM: usize = 2;
/// Strong-sum bytes per block in a second attempt, if the algorithm has so many.
const FULL_SUM: usize = 16;
/// Bits of certainty that a first attempt aims at, beside those that size and block length add.
const SUM_BIAS: i32 = 10;

/// How much of each strong sum is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// As little as makes a wrong match improbable.
    Short,
    /// All of it, up to 16 bytes: for a file that failed its verification.
    Full,
}

/// Cuts a basis of `len` bytes. Returns nothing if it has too many blocks for the protocol.
pub(super) fn cut(
    len: u64,
    version: Version,
    sum: SumKind,
    block_size: Option<u32>,
    strength: Strength,
) -> Option<SumHead> {
    if len == 0 {
        return Some(SumHead::default());
    }
    let max = SumHead::block_len_max(version);
    let block_len =
        block_size.filter(|&size| size != 0).map_or_else(|| block_len(len, max), |size| size.min(max));
    let count = len.div_ceil(u64::from(block_len));
    let count = u32::try_from(count).ok().filter(|&count| count <= BLOCK_COUNT_MAX)?;
    Some(SumHead {
        count,
        block_len,
        sum_len: sum_len(len, block_len, sum, strength),
        remainder: (len % u64::from(block_len)) as u32,
    })
}

/// The square root of `len` in steps of 8, within 700 and `max`.
fn block_len(len: u64, max: u32) -> u32 {
    let max = u64::from(max);
    if len <= BLOCK_LEN_MIN * BLOCK_LEN_MIN {
        return BLOCK_LEN_MIN as u32;
    }
    let root = len.isqrt();
    // The cap is on the root's highest bit, which is the same as on the root: it is a power of two.
    let chosen = if root >= max { max } else { (root & !7).max(BLOCK_LEN_MIN) };
    chosen as u32
}

fn sum_len(len: u64, block_len: u32, sum: SumKind, strength: Strength) -> u8 {
    let max = sum.len().min(FULL_SUM);
    if strength == Strength::Full {
        return max as u8;
    }
    // One weak sum has 32 bits; what is missing comes in whole bytes from the strong sum.
    let bits = SUM_BIAS + 2 * len.ilog2() as i32 - block_len.ilog2() as i32;
    let bytes = (bits.max(0) + 1 - 32 + 7) / 8;
    usize::try_from(bytes).unwrap_or(0).max(SHORT_SUM).min(max) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(len: u64, version: u32, sum: SumKind) -> [u32; 4] {
        let head = cut(len, Version::new(version).unwrap(), sum, None, Strength::Short).unwrap();
        [head.count, head.remainder, head.block_len, u32::from(head.sum_len)]
    }

    const MD5: SumKind = SumKind::Md5 { seed_first: true };

    /// Size; then count, remainder, block length and sum length from version 30 on; then the same
    /// before it.
    const CAPTURED: [(u64, [u32; 4], [u32; 4]); 17] = [
        (1, [1, 1, 700, 2], [1, 1, 700, 2]),
        (700, [1, 0, 700, 2], [1, 0, 700, 2]),
        (701, [2, 1, 700, 2], [2, 1, 700, 2]),
        (2302, [4, 202, 700, 2], [4, 202, 700, 2]),
        (490_000, [700, 0, 700, 2], [700, 0, 700, 2]),
        (490_001, [701, 1, 700, 2], [701, 1, 700, 2]),
        (10 << 20, [3245, 1152, 3232, 2], [3245, 1152, 3232, 2]),
        (123_456_789, [11_119, 2517, 11_104, 3], [11_119, 2517, 11_104, 3]),
        (1 << 28, [16_384, 0, 16_384, 3], [16_384, 0, 16_384, 3]),
        ((1 << 30) - 1, [32_777, 63, 32_760, 3], [32_777, 63, 32_760, 3]),
        (1 << 30, [32_768, 0, 32_768, 3], [32_768, 0, 32_768, 3]),
        (3_221_225_549, [56_760, 38_781, 56_752, 4], [56_760, 38_781, 56_752, 4]),
        ((1 << 34) - 1, [131_081, 63, 131_064, 4], [131_081, 63, 131_064, 4]),
        (1 << 34, [131_072, 0, 131_072, 4], [131_072, 0, 131_072, 4]),
        (50_000_000_007, [381_470, 95_239, 131_072, 4], [223_614, 133_207, 223_600, 4]),
        (100_000_000_000, [762_940, 59_392, 131_072, 5], [316_232, 168_256, 316_224, 5]),
        (300_000_000_000, [2_288_819, 47_104, 131_072, 5], [547_726, 63_000, 547_720, 5]),
    ];

    #[test]
    fn heads_are_those_of_stock_rsync() {
        for (len, new, old) in CAPTURED {
            assert_eq!(row(len, 32, MD5), new, "{len} bytes at 32");
            assert_eq!(row(len, 30, SumKind::Xxh64), new, "{len} bytes at 30");
            assert_eq!(row(len, 29, SumKind::Md4Seeded), old, "{len} bytes at 29");
        }
        assert_eq!(row(1 << 36, 31, MD5), [524_288, 0, 131_072, 5]);
        assert_eq!(row(1 << 36, 28, MD5), [262_144, 0, 262_144, 5]);
        assert_eq!(row(1 << 40, 32, MD5)[2..], [131_072, 6]);
        assert_eq!(row(1 << 20, 32, MD5)[2..], [1024, 2]);
    }

    #[test]
    fn a_second_attempt_sends_all_that_the_algorithm_has() {
        let full = |sum| cut(2302, Version::NEWEST, sum, None, Strength::Full).unwrap().sum_len;
        assert_eq!(
            [full(MD5), full(SumKind::Sha1), full(SumKind::Xxh64), full(SumKind::None)],
            [16, 16, 8, 1]
        );
    }

    #[test]
    fn the_user_may_choose_the_block_length() {
        let head = cut(10_000, Version::NEWEST, MD5, Some(4096), Strength::Short).unwrap();
        assert_eq!((head.count, head.block_len, head.remainder), (3, 4096, 1808));
        assert_eq!(head.basis_len(), 10_000);
        let capped = cut(10_000, Version::NEWEST, MD5, Some(1 << 20), Strength::Short).unwrap();
        assert_eq!(capped.block_len, 131_072);
    }

    #[test]
    fn nothing_is_cut_from_nothing_nor_from_too_much() {
        assert_eq!(cut(0, Version::NEWEST, MD5, None, Strength::Short), Some(SumHead::default()));
        assert_eq!(cut(1 << 50, Version::NEWEST, MD5, Some(700), Strength::Short), None);
        assert_eq!(cut(u64::MAX, Version::NEWEST, MD5, None, Strength::Short), None);
    }
}
