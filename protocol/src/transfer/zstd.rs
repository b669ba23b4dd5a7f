//! The zstd compressor: one frame for the whole session.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#5-zstd

use zstd::stream::raw::{Decoder, Encoder, InBuffer, Operation, OutBuffer};

use super::framed::PIECE;
use crate::error::{Error, Malformed};

/// Room for the output of one step.
const ROOM: usize = 32 * 1024;

pub(super) struct Squeeze {
    stream: Encoder<'static>,
    step: Vec<u8>,
}

impl Squeeze {
    pub(super) fn new(level: i32) -> Result<Self, Error> {
        let stream = Encoder::new(level).map_err(|_| DAMAGED)?;
        Ok(Squeeze { stream, step: Vec::with_capacity(ROOM) })
    }

    /// Compresses literal bytes; some of the output may stay inside.
    pub(super) fn literal(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let mut input = InBuffer::around(data);
        while input.pos() < data.len() {
            self.step.clear();
            self.stream.run(&mut input, &mut OutBuffer::around(&mut self.step)).map_err(|_| DAMAGED)?;
            out.extend_from_slice(&self.step);
        }
        Ok(())
    }

    /// Brings out everything.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            self.step.clear();
            let left = self.stream.flush(&mut OutBuffer::around(&mut self.step)).map_err(|_| DAMAGED)?;
            out.extend_from_slice(&self.step);
            if left == 0 {
                return Ok(());
            }
        }
    }
}

pub(super) struct Expand {
    stream: Decoder<'static>,
    output: Vec<u8>,
}

impl Expand {
    pub(super) fn new() -> Result<Self, Error> {
        let stream = Decoder::new().map_err(|_| DAMAGED)?;
        Ok(Expand { stream, output: Vec::with_capacity(PIECE) })
    }

    /// Decompresses one piece; an empty one means that more input is needed. Returns how much of
    /// `data` was used. A frame that ends may be followed by another.
    pub(super) fn piece(&mut self, data: &[u8]) -> Result<(usize, &[u8]), Malformed> {
        self.output.clear();
        let mut input = InBuffer::around(data);
        self.stream.run(&mut input, &mut OutBuffer::around(&mut self.output)).map_err(|_| DAMAGED)?;
        Ok((input.pos(), &self.output))
    }
}

const DAMAGED: Malformed = Malformed::Compression("zstd");
