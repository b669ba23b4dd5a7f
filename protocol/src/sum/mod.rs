//! Rolling and strong checksums.
//!
//! Wire: protocol/doc/20-transfer.md#34-weak-checksum, protocol/doc/20-transfer.md#4-strong-checksums

mod rolling;
mod strong;

pub use rolling::Rolling;
pub use strong::{BlockSum, Digest, FileSum, SumKind};
