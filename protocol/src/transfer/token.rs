//! Tokens: the new file as a sequence of literals and references to basis blocks.
//!
//! Two families of formats: uncompressed (here), and the flag bytes that all compressors share
//! ([`super::runs`]). One coder lives as long as the session.
//! Wire: protocol/doc/21-tokens-and-compression.md#1-uncompressed-stream-compression-none

use bytes::Bytes;

use super::framed::{FramedDecoder, FramedEncoder};
use crate::error::{Decode, Error, PeerMisbehaved};
use crate::session::Version;
use crate::wire::{put_i32, Reader};

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

/// Writes the token stream of one file after the other.
///
/// ```text
/// per file: { literal* copy [history] }* literal* end
/// ```
pub struct TokenEncoder(Encoder);

enum Encoder {
    Plain,
    Framed(Box<FramedEncoder>),
}

impl TokenEncoder {
    /// Starts the coder of a session. `level` is what [`Compressor::level`] says; a daemon's
    /// `dont compress = *` is level 0 of zlib, stored blocks.
    pub fn new(compressor: Compressor, level: i32, version: Version) -> Result<Self, Error> {
        Ok(TokenEncoder(match compressor {
            Compressor::None => Encoder::Plain,
            _ => Encoder::Framed(Box::new(FramedEncoder::new(compressor, level, version)?)),
        }))
    }

    /// Appends literal bytes. Uncompressed pieces go out as they are, of whatever length.
    pub fn literal(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        match &mut self.0 {
            Encoder::Plain => {
                for piece in data.chunks(crate::limits::LITERAL_WRITTEN_MAX) {
                    put_i32(piece.len() as i32, out);
                    out.extend_from_slice(piece);
                }
                Ok(())
            }
            Encoder::Framed(encoder) => encoder.literal(data, out),
        }
    }

    /// Appends a reference to a block.
    pub fn copy(&mut self, block: BlockIndex, out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.0 {
            Encoder::Plain => put_i32(-1 - block.0 as i32, out),
            Encoder::Framed(encoder) => encoder.copy(block.0, out)?,
        }
        Ok(())
    }

    /// Whether [`TokenEncoder::history`] has to be called after every copy.
    pub fn wants_history(&self) -> bool {
        match &self.0 {
            Encoder::Plain => false,
            Encoder::Framed(encoder) => encoder.wants_history(),
        }
    }

    /// Adds the bytes of the block just copied to the history that literals may refer to.
    pub fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        match &mut self.0 {
            Encoder::Plain => Ok(()),
            Encoder::Framed(encoder) => encoder.history(block),
        }
    }

    /// Appends the end of the file and gets ready for the next.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.0 {
            Encoder::Plain => put_i32(0, out),
            Encoder::Framed(encoder) => encoder.end(out)?,
        }
        Ok(())
    }
}

/// What one step of a [`TokenDecoder`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenEvent {
    /// So many bytes of an uncompressed literal follow in the stream, for the caller to take.
    LiteralFollows(u32),
    /// A decompressed piece of a literal, at most 32 KiB; never empty.
    Literal(Bytes),
    /// A block of the basis, below the count of the sum head.
    Copy(BlockIndex),
    /// The end of the file; its sum follows. The decoder is ready for the next file.
    End,
}

/// Reads the token stream of one file after the other.
pub struct TokenDecoder(Decoder);

enum Decoder {
    Plain,
    Framed(Box<FramedDecoder>),
}

impl TokenDecoder {
    /// Starts the coder of a session.
    pub fn new(compressor: Compressor, version: Version) -> Result<Self, Error> {
        Ok(TokenDecoder(match compressor {
            Compressor::None => Decoder::Plain,
            _ => Decoder::Framed(Box::new(FramedDecoder::new(compressor, version)?)),
        }))
    }

    /// Takes at most one unit of the stream. Returns nothing if a step was made that has no
    /// result of its own: what `input` consumed is used up, and the call is to be repeated.
    /// `count` is the number of blocks that the sum head announced.
    pub fn decode(&mut self, input: &mut Reader<'_>, count: u32) -> Decode<Option<TokenEvent>> {
        match &mut self.0 {
            Decoder::Plain => decode_plain(input, count).map(Some),
            Decoder::Framed(decoder) => decoder.decode(input, count),
        }
    }

    /// Whether [`TokenDecoder::history`] has to be called after every copy.
    pub fn wants_history(&self) -> bool {
        match &self.0 {
            Decoder::Plain => false,
            Decoder::Framed(decoder) => decoder.wants_history(),
        }
    }

    /// Adds the bytes of the block just copied to the history that literals may refer to.
    pub fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        match &mut self.0 {
            Decoder::Plain => Ok(()),
            Decoder::Framed(decoder) => decoder.history(block),
        }
    }
}

fn decode_plain(input: &mut Reader<'_>, count: u32) -> Decode<TokenEvent> {
    let word = input.i32()?;
    Ok(match word {
        0 => TokenEvent::End,
        1.. => TokenEvent::LiteralFollows(word as u32),
        // -1 is block 0; this cannot overflow, not even for i32::MIN.
        _ => TokenEvent::Copy(checked_block((-1 - word) as u32, count)?),
    })
}

/// Accepts a block number below `count`.
pub(super) fn checked_block(index: u32, count: u32) -> Result<BlockIndex, PeerMisbehaved> {
    if index < count {
        Ok(BlockIndex(index))
    } else {
        Err(PeerMisbehaved::BlockIndex { index: u64::from(index), count })
    }
}
