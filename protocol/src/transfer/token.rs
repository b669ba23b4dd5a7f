//! Tokens: the new file as a sequence of literals and references to basis blocks.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#1-uncompressed-stream-compression-none

use bytes::Bytes;

/// Number of a basis block, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockIndex(pub u32);

/// One token. The end of a file is a message of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Bytes that the basis does not have; never empty. A literal may arrive in several pieces.
    Literal(Bytes),
    /// A block of the basis.
    Copy(BlockIndex),
}

/// How literals travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compressor {
    /// As they are.
    #[default]
    None,
    /// Raw deflate whose history includes matched blocks.
    Zlib,
    /// Raw deflate over literals only.
    Zlibx,
    /// One zstd frame for the whole session.
    Zstd,
    /// An lz4 block per item.
    Lz4,
}
