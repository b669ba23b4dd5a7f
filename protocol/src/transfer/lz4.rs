//! The lz4 compressor: every item is a block of its own.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#6-lz4

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::runs::put_data;
use crate::error::{Error, Malformed};
use crate::limits::{DEFLATED_MAX, LZ4_OUTPUT_MAX};

pub(super) struct Lz4Writer {
    block: Vec<u8>,
}

impl Lz4Writer {
    pub(super) fn new() -> Self {
        Lz4Writer { block: vec![0; get_maximum_output_size(DEFLATED_MAX)] }
    }

    /// Appends items that hold `data`. There is never one without content: a reader would take it
    /// for the end of the file.
    pub(super) fn literal(&mut self, mut data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        while !data.is_empty() {
            let mut piece = &data[..data.len().min(DEFLATED_MAX)];
            let mut len = self.squeeze(piece)?;
            while len > DEFLATED_MAX && piece.len() > 1 {
                piece = &piece[..piece.len() / 2];
                len = self.squeeze(piece)?;
            }
            put_data(&self.block[..len], out);
            data = &data[piece.len()..];
        }
        Ok(())
    }

    fn squeeze(&mut self, piece: &[u8]) -> Result<usize, Malformed> {
        compress_into(piece, &mut self.block).map_err(|_| DAMAGED)
    }
}

pub(super) struct Lz4Reader {
    output: Vec<u8>,
}

impl Lz4Reader {
    pub(super) fn new() -> Self {
        Lz4Reader { output: vec![0; LZ4_OUTPUT_MAX] }
    }

    /// Decompresses a whole item.
    pub(super) fn item(&mut self, block: &[u8]) -> Result<&[u8], Malformed> {
        if block.is_empty() {
            return Err(DAMAGED);
        }
        let len = decompress_into(block, &mut self.output).map_err(|_| DAMAGED)?;
        Ok(&self.output[..len])
    }
}

const DAMAGED: Malformed = Malformed::Compression("lz4");
