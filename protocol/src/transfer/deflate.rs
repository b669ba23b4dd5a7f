//! The zlib and zlibx compressors: raw deflate, flushed before every token, reset for every file.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#3-zlibx-new-compression,
//! protocol/doc/21-tokens-and-compression.md#4-zlib-old-compression

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::framed::PIECE;
use crate::error::{Error, Malformed};

/// What a sync flush ends with. It is not sent: the reader puts it back.
const SYNC_TAIL: [u8; 4] = [0x00, 0x00, 0xFF, 0xFF];
/// Room that deflate always finds, so that a flush is never cut and marked twice.
const ROOM: usize = 4096;
/// Deflate cannot refer farther back than this.
const WINDOW: usize = 32 * 1024;
/// Longest stored block, and so the longest piece of history that stock inserts at once.
const STORED_MAX: usize = 0xFFFF;

/// Whether matched blocks take part in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    /// zlibx: literals only.
    Literals,
    /// zlib: literals and blocks.
    Blocks,
    /// zlib below version 31: the pieces of a long block are all taken from its start.
    BlockStarts,
}

impl History {
    /// Calls `insert` with the pieces that a block adds to the history.
    fn pieces<E>(self, block: &[u8], mut insert: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            History::Literals => Ok(()),
            History::Blocks => block.chunks(STORED_MAX).try_for_each(insert),
            History::BlockStarts => {
                block.chunks(STORED_MAX).try_for_each(|piece| insert(&block[..piece.len()]))
            }
        }
    }
}

pub(super) struct Deflate {
    stream: Compress,
    history: History,
}

impl Deflate {
    /// `level` outside of 0..=9 means 6.
    pub(super) fn new(level: i32, history: History) -> Self {
        let level = u32::try_from(level).ok().filter(|&level| level <= 9).unwrap_or(6);
        Deflate { stream: Compress::new(Compression::new(level), false), history }
    }

    /// Compresses literal bytes; some of the output may stay inside.
    pub(super) fn literal(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.run(data, FlushCompress::None, out)
    }

    /// Brings out everything, without the tail that is not sent.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.run(&[], FlushCompress::Sync, out)?;
        if !out.ends_with(&SYNC_TAIL) {
            return Err(DAMAGED.into());
        }
        out.truncate(out.len() - SYNC_TAIL.len());
        Ok(())
    }

    pub(super) fn wants_history(&self) -> bool {
        self.history != History::Literals
    }

    /// Adds a matched block to the history. Everything must have been flushed before.
    pub(super) fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        let Deflate { stream, history } = self;
        history.pieces(block, |piece| {
            let reachable = &piece[piece.len().saturating_sub(WINDOW)..];
            stream.set_dictionary(reachable).map(drop).map_err(|_| DAMAGED.into())
        })
    }

    /// Forgets the file.
    pub(super) fn reset(&mut self) {
        self.stream.reset();
    }

    fn run(&mut self, mut data: &[u8], flush: FlushCompress, out: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            out.reserve(ROOM);
            let before = self.stream.total_in();
            self.stream.compress_vec(data, out, flush).map_err(|_| DAMAGED)?;
            let taken = (self.stream.total_in() - before) as usize;
            data = data.get(taken..).unwrap_or_default();
            if data.is_empty() && out.len() < out.capacity() {
                return Ok(());
            }
        }
    }
}

pub(super) struct Inflate {
    stream: Decompress,
    history: History,
    output: Vec<u8>,
}

impl Inflate {
    pub(super) fn new(history: History) -> Self {
        Inflate { stream: Decompress::new(false), history, output: Vec::with_capacity(PIECE) }
    }

    /// Decompresses one piece; an empty one means that more input is needed. Returns how much of
    /// `data` was used.
    pub(super) fn piece(&mut self, data: &[u8]) -> Result<(usize, &[u8]), Malformed> {
        self.output.clear();
        let before = self.stream.total_in();
        let status =
            self.stream.decompress_vec(data, &mut self.output, FlushDecompress::Sync).map_err(|_| DAMAGED)?;
        // The stream of a file is never ended.
        if status == Status::StreamEnd {
            return Err(DAMAGED);
        }
        Ok(((self.stream.total_in() - before) as usize, &self.output))
    }

    /// Puts the tail back where the sender flushed. At that point it has no output of its own:
    /// fails if the data before it ended anywhere else.
    pub(super) fn sync(&mut self) -> Result<(), Malformed> {
        match self.piece(&SYNC_TAIL)? {
            (used, []) if used == SYNC_TAIL.len() => Ok(()),
            _ => Err(DAMAGED),
        }
    }

    pub(super) fn wants_history(&self) -> bool {
        self.history != History::Literals
    }

    /// Adds a copied block to the history, as stored blocks whose output nobody wants.
    pub(super) fn history(&mut self, block: &[u8]) -> Result<(), Error> {
        let Inflate { stream, history, output } = self;
        let mut feed = |mut data: &[u8]| -> Result<(), Error> {
            while !data.is_empty() {
                output.clear();
                let before = stream.total_in();
                stream.decompress_vec(data, output, FlushDecompress::Sync).map_err(|_| DAMAGED)?;
                let taken = (stream.total_in() - before) as usize;
                if taken == 0 && output.is_empty() {
                    return Err(DAMAGED.into());
                }
                data = data.get(taken..).unwrap_or_default();
            }
            Ok(())
        };
        history.pieces(block, |piece| {
            let [low, high] = (piece.len() as u16).to_le_bytes();
            feed(&[0, low, high, !low, !high])?;
            feed(piece)
        })
    }

    /// Forgets the file.
    pub(super) fn reset(&mut self) {
        self.stream.reset(false);
    }
}

const DAMAGED: Malformed = Malformed::Compression("zlib");
