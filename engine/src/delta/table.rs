//! Finds the blocks that have a weak sum: a filter that says no to nearly every window, then
//! chains of blocks per bucket, lowest block first.

use suisei_protocol::transfer::BlockSignature;

/// Marks the end of a chain and an empty bucket.
const NONE: u32 = u32::MAX;
/// Filter bits per block, at least: about one window in a hundred passes by chance. Denser filters
/// fit a smaller cache, but each window that passes costs more than a slower look-up.
const BITS_PER_BLOCK: u64 = 64;
/// Largest filter, in bits: beyond this it would leave the processor's cache.
const FILTER_BITS_MAX: u32 = 24;
/// Largest number of buckets, as a power of two.
const BUCKET_BITS_MAX: u32 = 27;

/// The blocks of one signature by weak sum.
#[derive(Debug)]
pub(super) struct Table {
    /// One bit per hash value that occurs.
    filter: Vec<u8>,
    filter_shift: u32,
    buckets: Vec<u32>,
    bucket_shift: u32,
    /// Per block: the next one of its bucket.
    next: Vec<u32>,
    /// Per block: its weak sum.
    weak: Vec<u32>,
}

impl Table {
    /// Sorts in the blocks of a signature. Blocks at and beyond `end` are left out.
    pub(super) fn new(signature: &BlockSignature, end: u32) -> Self {
        let weak: Vec<u32> =
            (0..end).map_while(|index| signature.block(index)).map(|(weak, _)| weak).collect();
        let count = weak.len() as u64;
        let filter_bits = ceil_log2(count * BITS_PER_BLOCK).clamp(10, FILTER_BITS_MAX);
        let bucket_bits = ceil_log2(count * 2).clamp(4, BUCKET_BITS_MAX);
        let mut table = Table {
            filter: vec![0; 1 << (filter_bits - 3)],
            filter_shift: 32 - filter_bits,
            buckets: vec![NONE; 1 << bucket_bits],
            bucket_shift: 32 - bucket_bits,
            next: vec![NONE; weak.len()],
            weak: Vec::new(),
        };
        // Backwards, so that chains lead from low blocks to high ones.
        for (index, &weak) in weak.iter().enumerate().rev() {
            let hash = spread(weak);
            let bit = hash >> table.filter_shift;
            if let Some(byte) = table.filter.get_mut((bit >> 3) as usize) {
                *byte |= 1 << (bit & 7);
            }
            if let Some(head) = table.buckets.get_mut((hash >> table.bucket_shift) as usize) {
                table.next[index] = std::mem::replace(head, index as u32);
            }
        }
        table.weak = weak;
        table
    }

    /// Whether blocks with this weak sum may exist. Meant for the innermost loop.
    #[inline(always)]
    pub(super) fn may_hold(&self, weak: u32) -> bool {
        let bit = spread(weak) >> self.filter_shift;
        match self.filter.get((bit >> 3) as usize) {
            Some(byte) => byte & (1 << (bit & 7)) != 0,
            None => false,
        }
    }

    /// Returns the weak sum of a block.
    pub(super) fn weak(&self, index: u32) -> Option<u32> {
        self.weak.get(index as usize).copied()
    }

    /// Whether no block is left to be found.
    pub(super) fn is_empty(&self) -> bool {
        self.weak.is_empty()
    }

    /// Returns the lowest block in the bucket of a weak sum. It need not have that sum.
    pub(super) fn first(&self, weak: u32) -> Option<u32> {
        let head = self.buckets.get((spread(weak) >> self.bucket_shift) as usize).copied();
        head.filter(|&index| index != NONE)
    }

    /// Returns the next higher block of the same bucket.
    pub(super) fn next(&self, index: u32) -> Option<u32> {
        self.next.get(index as usize).copied().filter(|&index| index != NONE)
    }
}

/// Spreads a weak sum over 32 bits, the best of them on top.
#[inline(always)]
fn spread(weak: u32) -> u32 {
    weak.wrapping_mul(0x9E37_79B1)
}

fn ceil_log2(n: u64) -> u32 {
    n.next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests {
    use suisei_protocol::transfer::SumHead;

    use super::*;

    fn table(weak: &[u32]) -> Table {
        let head = SumHead { count: weak.len() as u32, block_len: 700, sum_len: 0, remainder: 0 };
        let sums = weak.iter().flat_map(|weak| weak.to_le_bytes()).collect::<Vec<u8>>().into();
        Table::new(&BlockSignature { head, sums }, head.count)
    }

    #[test]
    fn equal_sums_are_found_lowest_first() {
        let table = table(&[9, 5, 9, 0, 9]);
        let bucket = |weak| std::iter::successors(table.first(weak), |&index| table.next(index));
        let found = |weak| bucket(weak).filter(|&i| table.weak(i) == Some(weak)).collect::<Vec<_>>();
        assert_eq!(found(9), [0, 2, 4]);
        assert_eq!(found(0), [3]);
        assert!(found(7).is_empty());
        assert!(table.may_hold(5) && table.may_hold(9));
    }

    #[test]
    fn the_filter_stops_most_strangers() {
        let weak: Vec<u32> = (0..20_000u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
        let table = table(&weak);
        assert!(weak.iter().all(|&weak| table.may_hold(weak)));
        let passed = (0..100_000u32).filter(|n| table.may_hold(n.wrapping_mul(40_503) ^ 0xDEAD_BEEF)).count();
        assert!(passed < 4_000, "{passed} of 100000");
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let table = table(&[]);
        assert!(!table.may_hold(0));
        assert!(table.is_empty() && table.first(0).is_none());
    }
}
