//! Which parts of a write are worth writing: runs of zeros become holes.
//!
//! Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file

use std::ops::Range;

/// Shortest run inside a write that becomes a hole. At the edges of a write any run does: it may
/// go on in the neighbour.
const RUN_MIN: usize = 1024;
/// Every run of `RUN_MIN` holds one aligned piece of this length.
const PROBE: usize = RUN_MIN / 2;

/// A part of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Bytes to be written.
    Data(Range<usize>),
    /// Zeros.
    Hole(Range<usize>),
}

/// Splits a write into its parts, in order.
pub(super) fn parts(data: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let hole = next_hole(data, at);
        if at < hole.start {
            parts.push(Part::Data(at..hole.start));
        }
        at = hole.end;
        if !hole.is_empty() {
            parts.push(Part::Hole(hole));
        }
    }
    parts
}

/// Returns the first hole at or behind `from`; an empty one at the end if there is none.
fn next_hole(data: &[u8], from: usize) -> Range<usize> {
    if from == 0 {
        let leading = zeros(data);
        if leading > 0 {
            return 0..leading;
        }
    }
    let first = from.next_multiple_of(PROBE).min(data.len());
    for (n, probe) in data[first..].chunks_exact(PROBE).enumerate() {
        if is_zero(probe) {
            let at = first + n * PROBE;
            let start = at - trailing_zeros(&data[from..at]);
            let end = at + zeros(&data[at..]);
            if end - start >= RUN_MIN || end == data.len() {
                return start..end;
            }
        }
    }
    data.len() - trailing_zeros(&data[from..])..data.len()
}

/// Whether all bytes are zero. Without an early way out, so that it is vectorised.
fn is_zero(data: &[u8]) -> bool {
    data.iter().fold(0, |any, &byte| any | byte) == 0
}

/// The number of zeros in front.
fn zeros(data: &[u8]) -> usize {
    let whole = data.chunks_exact(PROBE).take_while(|probe| is_zero(probe)).count() * PROBE;
    whole + data[whole..].iter().take_while(|&&byte| byte == 0).count()
}

/// The number of zeros at the end.
fn trailing_zeros(data: &[u8]) -> usize {
    data.iter().rev().take_while(|&&byte| byte == 0).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(runs: &[(u8, usize)]) -> Vec<u8> {
        runs.iter().flat_map(|&(byte, len)| std::iter::repeat_n(byte, len)).collect()
    }

    #[test]
    fn runs_become_holes_from_1024_bytes_on() {
        let data = content(&[(1, 100), (0, 1023), (2, 50), (0, 1024), (3, 7)]);
        assert_eq!(parts(&data), [Part::Data(0..1173), Part::Hole(1173..2197), Part::Data(2197..2204)]);
    }

    #[test]
    fn runs_at_the_edges_are_holes_of_any_length() {
        let data = content(&[(0, 3), (1, 5000), (0, 9)]);
        assert_eq!(parts(&data), [Part::Hole(0..3), Part::Data(3..5003), Part::Hole(5003..5012)]);
        assert_eq!(parts(&content(&[(0, 5000)])), [Part::Hole(0..5000)]);
        assert_eq!(parts(&[]), []);
    }

    proptest! {
        #[test]
        fn parts_cover_everything_and_holes_are_zero(
            runs in proptest::collection::vec((0u8..2, 1usize..3000), 0..12),
        ) {
            let data = content(&runs);
            let mut at = 0;
            for part in parts(&data) {
                let (Part::Data(range) | Part::Hole(range)) = part.clone();
                prop_assert_eq!(range.start, at);
                prop_assert!(!range.is_empty());
                at = range.end;
                match part {
                    Part::Hole(range) => prop_assert!(data[range].iter().all(|&byte| byte == 0)),
                    Part::Data(range) => {
                        let longest = data[range].split(|&byte| byte != 0).map(<[u8]>::len).max();
                        prop_assert!(longest < Some(RUN_MIN));
                    }
                }
            }
            prop_assert_eq!(at, data.len());
        }
    }
}
