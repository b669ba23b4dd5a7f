//! The weak checksum: two sums of signed bytes modulo 2^16, which can roll by one byte.

/// The rolling checksum of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rolling {
    s1: u32,
    s2: u32,
}
