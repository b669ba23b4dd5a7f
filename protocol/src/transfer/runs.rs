//! Block references of a compressed stream: consecutive blocks travel as one run.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#2-compressed-stream-common-framing-zlib-zlibx-zstd-lz4

use crate::error::{Decode, PeerMisbehaved};
use crate::limits::RUN_MAX;
use crate::wire::{put_i32, put_u16, Reader};

const END: u8 = 0x00;
const TOKEN_LONG: u8 = 0x20;
const TOKENRUN_LONG: u8 = 0x21;
const DEFLATED_DATA: u8 = 0x40;
const TOKEN_REL: u8 = 0x80;
const TOKENRUN_REL: u8 = 0xC0;
/// The two bits of a flag byte that tell data and relative forms apart.
const FORM: u8 = 0xC0;
/// The six bits of a flag byte that hold a length or an offset.
const REST: u8 = 0x3F;
/// The largest block number on the wire.
const BLOCK_MAX: u32 = 0x7FFF_FFFE;

/// One unit of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit<'a> {
    /// The end of the file.
    End,
    /// Compressed bytes.
    Data(&'a [u8]),
    /// The blocks from the first to the last, both included.
    Blocks { first: u32, last: u32 },
}

/// Gathers blocks into runs.
#[derive(Debug, Default)]
pub(super) struct RunWriter {
    run: Option<(u32, u32)>,
    last_run_end: u32,
}

impl RunWriter {
    /// Adds a block. A run that it does not continue is written first.
    pub(super) fn push(&mut self, block: u32, out: &mut Vec<u8>) {
        match &mut self.run {
            Some((start, last)) if Some(block) == last.checked_add(1) && block - *start < RUN_MAX => {
                *last = block
            }
            _ => {
                self.flush(out);
                self.run = Some((block, block));
            }
        }
    }

    /// Writes the run that is being gathered: before literal data, and before the end.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let Some((start, last)) = self.run.take() else { return };
        let more = last - start;
        match start.checked_sub(self.last_run_end) {
            Some(ahead) if ahead <= u32::from(REST) => {
                out.push(if more == 0 { TOKEN_REL } else { TOKENRUN_REL } | ahead as u8);
            }
            _ => {
                out.push(if more == 0 { TOKEN_LONG } else { TOKENRUN_LONG });
                put_i32(start as i32, out);
            }
        }
        if more != 0 {
            put_u16(more as u16, out);
        }
        self.last_run_end = last;
    }

    /// Writes what is left and the end of the file.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        out.push(END);
        *self = RunWriter::default();
    }
}

/// Appends compressed bytes as one item. At most 14 bits of length.
pub(super) fn put_data(data: &[u8], out: &mut Vec<u8>) {
    out.push(DEFLATED_DATA | (data.len() >> 8) as u8 & REST);
    out.push(data.len() as u8);
    out.extend_from_slice(data);
}

/// Follows the block numbers of a stream.
#[derive(Debug, Default)]
pub(super) struct RunReader {
    current: u32,
}

impl RunReader {
    /// Takes one unit.
    pub(super) fn decode<'a>(&mut self, input: &mut Reader<'a>) -> Decode<Unit<'a>> {
        let flag = input.u8()?;
        if flag == END {
            *self = RunReader::default();
            return Ok(Unit::End);
        }
        if flag & FORM == DEFLATED_DATA {
            let len = usize::from(flag & REST) << 8 | usize::from(input.u8()?);
            return input.take(len).map(Unit::Data);
        }
        let (first, is_run) = match flag & FORM {
            TOKEN_REL => (self.ahead(flag)?, false),
            TOKENRUN_REL => (self.ahead(flag)?, true),
            _ => (u32::try_from(input.i32()?).map_err(|_| INVALID)?, flag & 1 != 0),
        };
        let more = match is_run {
            true => Some(input.u16()?),
            false => None,
        };
        if more == Some(0) {
            return Err(INVALID.into());
        }
        let last = first
            .checked_add(u32::from(more.unwrap_or(0)))
            .filter(|&last| last <= BLOCK_MAX)
            .ok_or(INVALID)?;
        self.current = last;
        Ok(Unit::Blocks { first, last })
    }

    fn ahead(&self, flag: u8) -> Result<u32, PeerMisbehaved> {
        self.current.checked_add(u32::from(flag & REST)).ok_or(INVALID)
    }
}

const INVALID: PeerMisbehaved = PeerMisbehaved::Rule("invalid token number in compressed stream");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn written(blocks: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let (mut writer, mut out) = (RunWriter::default(), Vec::new());
        blocks.into_iter().for_each(|block| writer.push(block, &mut out));
        writer.end(&mut out);
        out
    }

    fn read(bytes: &[u8]) -> Decode<Vec<u32>> {
        let (mut reader, mut input, mut blocks) = (RunReader::default(), Reader::new(bytes), Vec::new());
        loop {
            match reader.decode(&mut input)? {
                Unit::End => return Ok(blocks),
                Unit::Data(_) => {}
                Unit::Blocks { first, last } => blocks.extend(first..=last),
            }
        }
    }

    #[test]
    fn captured_forms() {
        // Blocks 0..69, 100, 5, 101..199, without the literals that were between them.
        let blocks = || (0..70).chain([100, 5]).chain(101..200);
        let bytes = [0xC0, 0x45, 0, 0x9F, 0x20, 5, 0, 0, 0, 0x21, 0x65, 0, 0, 0, 0x62, 0, 0];
        assert_eq!(written(blocks()), bytes);
        assert_eq!(read(&bytes).unwrap(), blocks().collect::<Vec<_>>());
    }

    #[test]
    fn runs_end_at_65536_blocks() {
        let bytes = written(0..70_000);
        assert_eq!(&bytes[..3], [0xC0, 0xFF, 0xFF]);
        assert_eq!(read(&bytes).unwrap().len(), 70_000);
    }

    #[test]
    fn repeated_blocks_and_far_jumps_survive() {
        for blocks in [vec![7, 7, 7], vec![0, 63, 127, 126], vec![BLOCK_MAX], vec![64], vec![5, 4, 3]] {
            assert_eq!(read(&written(blocks.clone())).unwrap(), blocks);
        }
    }

    #[test]
    fn impossible_numbers_end_with_code_2() {
        let lies: [&[u8]; 6] = [
            &[0x20, 0xFF, 0xFF, 0xFF, 0xFF],
            &[0x20, 0xFF, 0xFF, 0xFF, 0x7F],
            &[0x21, 0, 0, 0, 0, 0, 0],
            &[0x21, 0xFE, 0xFF, 0xFF, 0x7F, 1, 0],
            &[0xC0, 0, 0],
            &[0x20, 0xFE, 0xFF, 0xFF, 0x7F, 0x81],
        ];
        for bytes in lies {
            let Err(Stop::Bad(error)) = read(bytes) else { panic!("{bytes:x?} was taken") };
            assert_eq!(error.exit_code(), 2);
        }
    }
}
