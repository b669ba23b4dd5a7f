//! Delta transfer: how a basis is cut and summed, how a sender finds its blocks in the source,
//! how a receiver puts the file together. Works on open files only; paths are the roles' business.
//!
//! ```text
//! generator: Signer::head, Signer::sign   -> BlockSignature
//! sender:    Search::run                  -> literals and copies, whole-file sum
//! receiver:  Patch::{literal, copy, finish} -> the file, whole-file sum
//! ```
//!
//! Wire: protocol/doc/20-transfer.md#3-sum-head-and-block-sums

mod block_size;
mod patch;
mod search;
mod sign;
mod sparse;
mod table;
mod window;

pub use block_size::Strength;
pub use patch::{Holes, Output, Patch, PatchError, Patched};
pub use search::{BasisUse, Search, SearchEvent, Searched, Tally};
pub use sign::Signer;
