//! The stream that all compressors share: runs of block references between compressed items.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#2-compressed-stream-common-framing-zlib-zlibx-zstd-lz4

use bytes::Bytes;

use super::deflate::{Deflate, History, Inflate};
use super::lz4::{Lz4Reader, Lz4Writer};
use super::runs::{put_data, RunReader, RunWriter, Unit};
use super::token::{checked_block, BlockIndex, TokenEvent};
use super::zstd::{Expand, Squeeze};
use super::Compressor;
use crate::error::{Decode, Error, Malformed};
use crate::limits::DEFLATED_MAX;
use crate::session::Version;
use crate::wire::Reader;

/// Most decompressed bytes handed out at once, however much an item expands to.
pub(super) const PIECE: usize = 32 * 1024;

fn zlib_history(version: Version) -> History {
    match version.repeats_long_block_history() {
        true => History::BlockStarts,
        false => History::Blocks,
    }
}

pub(super) struct FramedEncoder {
    runs: RunWriter,
    form: Squeezer,
    /// Compressed bytes on their way into items.
    squeezed: Vec<u8>,
    /// Literal bytes are inside that the next token must bring out.
    owes_flush: bool,
}

enum Squeezer {
    Deflate(Deflate),
    Zstd(Squeeze),
    Lz4(Lz4Writer),
}

impl FramedEncoder {
    pub(super) fn new(compressor: Compressor, level: i32, version: Version) -> Result<Self, Error> {
        let form = match compressor {
            Compressor::Zlib => Squeezer::Deflate(Deflate::new(level, zlib_history(version))),
            Compressor::None | Compressor::Zlibx => Squeezer::Deflate(Deflate::new(level, History::Literals)),
            Compressor::Zstd => Squeezer::Zstd(Squeeze::new(level)?),
            Compressor::Lz4 => Squeezer::Lz4(Lz4Writer::new()),
        };
        Ok(FramedEncoder { runs: RunWriter::default(), form, squeezed: Vec::new(), owes_flush: false })
    }

    pub(super) fn literal(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.runs.flush(out);
        match &mut self.form {
            Squeezer::Deflate(deflate) => deflate.literal(data, &mut self.squeezed)?,
            Squeezer::Zstd(zstd) => zstd.literal(data, &mut self.squeezed)?,
            Squeezer::Lz4(lz4) => return lz4.literal(data, out),
        }
        self.owes_flush = true;
        self.put_squeezed(out);
        Ok(())
    }

    pub(super) fn copy(&mut self, block: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        // The data of the literals before this block must be complete before anything follows.
        self.flush(out)?;
        self.runs.push(block, out);
        Ok(())
    }

    pub(super) fn wants_history(&self) -> bool {
        match &self.form {
            Squeezer::Deflate(deflate) => deflate.wants_history(),
            Squeezer::Zstd(_) | Squeezer::Lz4(_) => false,
        }
    }

    pub(super) fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        match &mut self.form {
            Squeezer::Deflate(deflate) => deflate.history(block),
            Squeezer::Zstd(_) | Squeezer::Lz4(_) => Ok(()),
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.flush(out)?;
        self.runs.end(out);
        if let Squeezer::Deflate(deflate) = &mut self.form {
            deflate.reset();
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if std::mem::take(&mut self.owes_flush) {
            match &mut self.form {
                Squeezer::Deflate(deflate) => deflate.flush(&mut self.squeezed)?,
                Squeezer::Zstd(zstd) => zstd.flush(&mut self.squeezed)?,
                Squeezer::Lz4(_) => {}
            }
            self.put_squeezed(out);
        }
        Ok(())
    }

    fn put_squeezed(&mut self, out: &mut Vec<u8>) {
        self.squeezed.chunks(DEFLATED_MAX).for_each(|item| put_data(item, out));
        self.squeezed.clear();
    }
}

/// ```text
/// Units ──data──► Expanding ──all handed out──► Units
///   │ ──run───► Copying ──last block──► Units
///   └ anything but data, after data: the tail of the sync flush goes first
/// ```
pub(super) struct FramedDecoder {
    runs: RunReader,
    form: Expander,
    state: State,
    /// Data came, and its sync flush was not completed yet.
    owes_sync: bool,
}

enum Expander {
    Inflate(Inflate),
    Zstd(Expand),
    Lz4(Lz4Reader),
}

enum State {
    /// The next unit is to be taken.
    Units,
    /// These compressed bytes, from the given place on, may hold more.
    Expanding(Bytes),
    /// These blocks are left of a run.
    Copying { next: u32, last: u32 },
}

impl FramedDecoder {
    pub(super) fn new(compressor: Compressor, version: Version) -> Result<Self, Error> {
        let form = match compressor {
            Compressor::Zlib => Expander::Inflate(Inflate::new(zlib_history(version))),
            Compressor::None | Compressor::Zlibx => Expander::Inflate(Inflate::new(History::Literals)),
            Compressor::Zstd => Expander::Zstd(Expand::new()?),
            Compressor::Lz4 => Expander::Lz4(Lz4Reader::new()),
        };
        Ok(FramedDecoder { runs: RunReader::default(), form, state: State::Units, owes_sync: false })
    }

    pub(super) fn decode(&mut self, input: &mut Reader<'_>, count: u32) -> Decode<Option<TokenEvent>> {
        match std::mem::replace(&mut self.state, State::Units) {
            State::Units => self.unit(input, count),
            State::Expanding(data) => Ok(self.expand(data)?.map(TokenEvent::Literal)),
            State::Copying { next, last } => Ok(Some(self.copy(next, last))),
        }
    }

    fn unit(&mut self, input: &mut Reader<'_>, count: u32) -> Decode<Option<TokenEvent>> {
        let unit = self.runs.decode(input)?;
        if !matches!(unit, Unit::Data(_)) && std::mem::take(&mut self.owes_sync) {
            if let Expander::Inflate(inflate) = &mut self.form {
                inflate.sync()?;
            }
        }
        match unit {
            Unit::End => {
                if let Expander::Inflate(inflate) = &mut self.form {
                    inflate.reset();
                }
                Ok(Some(TokenEvent::End))
            }
            Unit::Data(item) => {
                self.owes_sync = matches!(self.form, Expander::Inflate(_));
                Ok(self.expand(Bytes::copy_from_slice(item))?.map(TokenEvent::Literal))
            }
            Unit::Blocks { first, last } => {
                checked_block(last, count)?;
                Ok(Some(self.copy(first, last)))
            }
        }
    }

    fn copy(&mut self, next: u32, last: u32) -> TokenEvent {
        if next < last {
            self.state = State::Copying { next: next + 1, last };
        }
        TokenEvent::Copy(BlockIndex(next))
    }

    /// Decompresses up to one piece, and remembers what is left. The streams keep output back when
    /// a piece is full, so the state is left only after a piece that is not.
    fn expand(&mut self, data: Bytes) -> Result<Option<Bytes>, Malformed> {
        let (used, piece) = match &mut self.form {
            Expander::Inflate(inflate) => inflate.piece(&data)?,
            Expander::Zstd(zstd) => zstd.piece(&data)?,
            Expander::Lz4(lz4) => {
                return Ok(Some(Bytes::copy_from_slice(lz4.item(&data)?)).filter(|b| !b.is_empty()))
            }
        };
        if used < data.len() || piece.len() >= PIECE {
            if used == 0 && piece.is_empty() {
                return Err(Malformed::Compression("compressed"));
            }
            self.state = State::Expanding(data.slice(used..));
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()).map(Bytes::copy_from_slice))
    }

    pub(super) fn wants_history(&self) -> bool {
        match &self.form {
            Expander::Inflate(inflate) => inflate.wants_history(),
            Expander::Zstd(_) | Expander::Lz4(_) => false,
        }
    }

    pub(super) fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        match &mut self.form {
            Expander::Inflate(inflate) => inflate.history(block),
            Expander::Zstd(_) | Expander::Lz4(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
