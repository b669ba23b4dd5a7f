//! Index coding: plain ints below 30, differences to two memories from 30 on.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#15-file-indexes-ndx

use super::{put_i32, Reader};
use crate::error::{Decode, PeerMisbehaved};
use crate::session::Version;

const DONE: u8 = 0x00;
const NEGATIVE: u8 = 0xFF;
const WIDE: u8 = 0xFE;

/// The memories of one direction of the stream. They live for the whole session.
#[derive(Debug, Clone)]
pub struct NdxCoder {
    last_positive: i32,
    last_negative: i32,
    plain: bool,
}

impl NdxCoder {
    /// Starts one direction of a stream.
    pub fn new(version: Version) -> Self {
        NdxCoder { last_positive: -1, last_negative: 1, plain: !version.has_varints() }
    }

    /// Takes one index. The memories change only when it was complete.
    pub fn decode(&mut self, reader: &mut Reader<'_>) -> Decode<i32> {
        if self.plain {
            return reader.i32();
        }
        let first = reader.u8()?;
        if first == DONE {
            return Ok(-1);
        }
        let (memory, sign, first) = if first == NEGATIVE {
            (&mut self.last_negative, -1, reader.u8()?)
        } else {
            (&mut self.last_positive, 1, first)
        };
        let value = wide_or_difference(i64::from(*memory), first, reader)?;
        let value = i32::try_from(value)
            .map_err(|_| PeerMisbehaved::OutOfRange { field: "file-list index", value })?;
        *memory = value;
        Ok(sign * value)
    }

    /// Appends one index.
    pub fn encode(&mut self, ndx: i32, out: &mut Vec<u8>) {
        if self.plain {
            return put_i32(ndx, out);
        }
        if ndx == -1 {
            return out.push(DONE);
        }
        let memory = if ndx < 0 {
            out.push(NEGATIVE);
            &mut self.last_negative
        } else {
            &mut self.last_positive
        };
        let value = ndx.saturating_abs();
        let difference = i64::from(value) - i64::from(*memory);
        *memory = value;
        match difference {
            1..=0xFD => out.push(difference as u8),
            0 | 0xFE..=0x7FFF => {
                out.push(WIDE);
                out.extend_from_slice(&(difference as u16).to_be_bytes());
            }
            _ => {
                let [b0, b1, b2, b3] = value.to_le_bytes();
                out.extend_from_slice(&[WIDE, b3 | 0x80, b0, b1, b2]);
            }
        }
    }
}

/// Takes what follows the sign: a difference of one or two bytes, or the whole value in four.
fn wide_or_difference(memory: i64, first: u8, reader: &mut Reader<'_>) -> Decode<i64> {
    if first != WIDE {
        return Ok(memory + i64::from(first));
    }
    let [x, y] = reader.take_array()?;
    if x & 0x80 == 0 {
        return Ok(memory + i64::from(u16::from_be_bytes([x, y])));
    }
    let [z, w] = reader.take_array()?;
    Ok(i64::from(u32::from_le_bytes([y, z, w, x & 0x7F])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    const WORKED: &[(i32, &[u8])] = &[
        (0, &[0x01]),
        (1, &[0x01]),
        (2, &[0x01]),
        (2, &[0xFE, 0x00, 0x00]),
        (255, &[0xFD]),
        (509, &[0xFE, 0x00, 0xFE]),
        (508, &[0xFE, 0x80, 0xFC, 0x01, 0x00]),
        (40000, &[0xFE, 0x80, 0x40, 0x9C, 0x00]),
        (-1, &[0x00]),
        (-101, &[0xFF, 0x64]),
        (-2, &[0xFF, 0xFE, 0x80, 0x02, 0x00, 0x00]),
        (-3, &[0xFF, 0x01]),
        (0x0102_0304, &[0xFE, 0x81, 0x04, 0x03, 0x02]),
    ];

    #[test]
    fn the_worked_sequence_both_ways_and_short_inputs_change_nothing() {
        let mut writer = NdxCoder::new(Version::NEWEST);
        let mut reader = NdxCoder::new(Version::NEWEST);
        for &(ndx, bytes) in WORKED {
            let mut out = Vec::new();
            writer.encode(ndx, &mut out);
            assert_eq!(out, bytes, "encoding {ndx}");
            for cut in 0..bytes.len() {
                assert_eq!(reader.decode(&mut Reader::new(&bytes[..cut])), Err(Stop::Short));
            }
            assert_eq!(reader.decode(&mut Reader::new(bytes)), Ok(ndx));
        }
    }

    #[test]
    fn captured_first_negatives() {
        let mut coder = NdxCoder::new(Version::NEWEST);
        let mut out = Vec::new();
        for ndx in [-101, -102, -2] {
            coder.encode(ndx, &mut out);
        }
        assert_eq!(out, [0xFF, 0x64, 0xFF, 0x01, 0xFF, 0xFE, 0x80, 0x02, 0x00, 0x00]);
        let first_del_stats = NdxCoder::new(Version::NEWEST).decode(&mut Reader::new(&[0xFF, 0x02]));
        assert_eq!(first_del_stats, Ok(-3));
    }

    #[test]
    fn a_difference_beyond_31_bits_is_refused() {
        let mut coder = NdxCoder::new(Version::NEWEST);
        assert_eq!(coder.decode(&mut Reader::new(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF])), Ok(i32::MAX));
        let refused = PeerMisbehaved::OutOfRange { field: "file-list index", value: 0x8000_0000 };
        assert_eq!(coder.decode(&mut Reader::new(&[0x01])), Err(refused.into()));
        assert_eq!(coder.decode(&mut Reader::new(&[0xFE, 0, 0])), Ok(i32::MAX), "the memory is as before");
    }

    #[test]
    fn old_versions_use_plain_ints() {
        let mut coder = NdxCoder::new(Version::new(29).unwrap());
        let mut out = Vec::new();
        coder.encode(7, &mut out);
        coder.encode(-1, &mut out);
        assert_eq!(out, [7, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        let mut reader = Reader::new(&out);
        assert_eq!(coder.decode(&mut reader), Ok(7));
        assert_eq!(coder.decode(&mut reader), Ok(-1));
    }
}
