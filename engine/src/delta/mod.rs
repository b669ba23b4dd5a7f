//! Delta transfer: block lengths, signatures, search, patch.
//!
//! Wire: protocol/doc/20-transfer.md#3-sum-head-and-block-sums
