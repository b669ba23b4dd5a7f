//! The weak checksum: two sums of signed bytes modulo 2^16, which can roll by one byte.
//!
//! Wire: protocol/doc/20-transfer.md#34-weak-checksum

/// Bytes summed side by side by [`Rolling::of`]: fills two vector registers of 16-bit lanes.
const LANES: usize = 32;

/// The rolling checksum of a window. All arithmetic is modulo 2^16, which is all that
/// [`Rolling::value`] keeps of either sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rolling {
    s1: u16,
    s2: u16,
}

impl Rolling {
    /// Sums a window at once.
    pub fn of(window: &[u8]) -> Self {
        // One pair of running sums per lane; the weights are put right at the end. Written over
        // fixed arrays so that it compiles to vector instructions.
        let mut sum = [0u16; LANES];
        let mut sum_of_sums = [0u16; LANES];
        let mut chunks = window.chunks_exact(LANES);
        for chunk in &mut chunks {
            for ((&byte, sum), sum_of_sums) in chunk.iter().zip(&mut sum).zip(&mut sum_of_sums) {
                *sum_of_sums = sum_of_sums.wrapping_add(*sum);
                *sum = sum.wrapping_add(signed(byte));
            }
        }
        let mut rolling = Rolling::default();
        for (lane, (&sum, &sum_of_sums)) in sum.iter().zip(&sum_of_sums).enumerate() {
            let weight = (LANES - lane) as u16;
            rolling.s1 = rolling.s1.wrapping_add(sum);
            rolling.s2 = rolling
                .s2
                .wrapping_add(sum_of_sums.wrapping_mul(LANES as u16))
                .wrapping_add(sum.wrapping_mul(weight));
        }
        for &byte in chunks.remainder() {
            rolling.s1 = rolling.s1.wrapping_add(signed(byte));
            rolling.s2 = rolling.s2.wrapping_add(rolling.s1);
        }
        rolling
    }

    /// Moves a window of `len` bytes by one: `out` was its first byte, `next` is its new last.
    #[inline(always)]
    pub fn roll(&mut self, out: u8, next: u8, len: u32) {
        let out = signed(out);
        self.s1 = self.s1.wrapping_sub(out).wrapping_add(signed(next));
        self.s2 = self.s2.wrapping_sub((len as u16).wrapping_mul(out)).wrapping_add(self.s1);
    }

    /// Returns the sum as the wire carries it.
    #[inline(always)]
    pub fn value(self) -> u32 {
        u32::from(self.s1) | u32::from(self.s2) << 16
    }
}

#[inline(always)]
fn signed(byte: u8) -> u16 {
    byte as i8 as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::noise;

    const SEED: u64 = 0x2545_F491_4F6C_DD1D;

    fn by_definition(window: &[u8]) -> u32 {
        let n = window.len();
        let (mut s1, mut s2) = (0i64, 0i64);
        for (i, &byte) in window.iter().enumerate() {
            s1 += i64::from(byte as i8);
            s2 += (n - i) as i64 * i64::from(byte as i8);
        }
        (s1 as u32 & 0xFFFF) | (s2 as u32) << 16
    }

    #[test]
    fn lines_of_numbers_have_the_captured_sum() {
        let lines: String = (1..=600).map(|n| format!("{n}\n")).collect();
        assert_eq!(Rolling::of(&lines.as_bytes()[..700]).value(), 0x5669_6CB9);
        // The sums of the session in section 19 of the specification.
        assert_eq!(by_definition(&lines.as_bytes()[..700]), 0x5669_6CB9);
    }

    #[test]
    fn bulk_sum_follows_the_definition_at_every_length() {
        let data = noise(SEED, 4096);
        for len in (0..200).chain([1023, 1024, 4095, 4096]) {
            assert_eq!(Rolling::of(&data[..len]).value(), by_definition(&data[..len]), "{len} bytes");
        }
    }

    #[test]
    fn rolling_equals_summing_anew() {
        let data = noise(SEED, 3000);
        for len in [1usize, 7, 700, 1024] {
            let mut rolling = Rolling::of(&data[..len]);
            for at in 0..data.len() - len {
                assert_eq!(rolling, Rolling::of(&data[at..at + len]), "window of {len} at {at}");
                rolling.roll(data[at], data[at + len], len as u32);
            }
        }
    }

    #[test]
    fn short_windows_of_small_bytes_agree_with_adler32() {
        let data: Vec<u8> = noise(SEED, 31).iter().map(|b| b & 0x7F).collect();
        for len in 1..=data.len() {
            let adler = adler32::RollingAdler32::from_buffer(&data[..len]).hash();
            let (a, b) = (adler & 0xFFFF, adler >> 16);
            let ours = Rolling::of(&data[..len]).value();
            assert_eq!((ours & 0xFFFF, ours >> 16), (a - 1, b - len as u32));
        }
    }
}
