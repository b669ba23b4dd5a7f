//! What travels per file: items, block signatures, tokens, statistics.
//!
//! Wire: protocol/doc/20-transfer.md, protocol/doc/21-tokens-and-compression.md

mod deflate;
mod framed;
mod item;
mod lz4;
mod runs;
mod signature;
mod stats;
mod token;
mod xattr;
mod zstd;

pub use item::{BasisKind, Item, ItemFlags};
pub use signature::{BlockSignature, SumHead};
pub use stats::{DeleteCounts, TransferStats};
pub use token::{BlockIndex, Compressor, Token, TokenDecoder, TokenEncoder, TokenEvent};
pub use xattr::XattrExchange;
pub(crate) use xattr::{ValuesDecoder, WantedDecoder};
