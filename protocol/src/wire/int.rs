//! Integers and short strings: decoding as methods of [`Reader`], encoding as `put_*` functions.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#11-elementary-codecs

use super::Reader;
use crate::error::{Decode, Malformed, Misuse, PeerMisbehaved};
use crate::session::Version;

/// Returns how many bytes follow a first byte, as its leading ones say.
///
/// Wire: protocol/doc/01-integers-and-multiplexing.md#12-varint
fn extra_bytes(first: u8) -> usize {
    (first.leading_ones() as usize).min(6)
}

/// Returns the bits of a first byte that belong to the value.
fn value_bits(first: u8, extra: usize) -> u64 {
    u64::from(first) & ((1 << (8 - extra)) - 1)
}

/// Returns `n` one-bits at the top of a byte.
fn unary(n: usize) -> u8 {
    !(0xFFu8.checked_shr(n as u32).unwrap_or(0))
}

/// Returns at most 8 bytes as a little-endian number.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &b| (value << 8) | u64::from(b))
}

impl<'a> Reader<'a> {
    /// Takes a `longint`: 4 bytes, or -1 and 8 bytes. A negative 4-byte value is sign-extended.
    pub fn longint(&mut self) -> Decode<i64> {
        match self.i32()? {
            -1 => Ok(i64::from_le_bytes(self.take_array()?)),
            short => Ok(i64::from(short)),
        }
    }

    /// Takes a `varint`: 1 to 5 bytes. Fails on a first byte that announces more.
    pub fn varint(&mut self) -> Decode<i32> {
        let first = self.u8()?;
        let extra = extra_bytes(first);
        if extra > 4 {
            return Err(Malformed::LongInteger.into());
        }
        let low = little_endian(self.take(extra)?);
        Ok((low | (value_bits(first, extra) << (8 * extra))) as u32 as i32)
    }

    /// Takes a `varlong` of at least `min` bytes (3 or 4), at most 9.
    pub fn varlong(&mut self, min: usize) -> Decode<i64> {
        let first = self.u8()?;
        let extra = extra_bytes(first);
        if min + extra > 9 {
            return Err(Malformed::LongInteger.into());
        }
        let low = self.take(min - 1 + extra)?;
        // With all 8 low bytes present, the first byte's bits fall outside of 64 bits.
        let high = value_bits(first, extra).checked_shl(8 * low.len() as u32).unwrap_or(0);
        Ok((little_endian(low) | high) as i64)
    }

    /// Takes a `varint`, or an `int` below version 30.
    pub fn varint30(&mut self, version: Version) -> Decode<i32> {
        if version.has_varints() {
            self.varint()
        } else {
            self.i32()
        }
    }

    /// Takes a `varlong` of at least `min` bytes, or a `longint` below version 30.
    pub fn varlong30(&mut self, min: usize, version: Version) -> Decode<i64> {
        if version.has_varints() {
            self.varlong(min)
        } else {
            self.longint()
        }
    }

    /// Takes a `vstring`. Fails as soon as its length is known to be `limit` or more; `field` is
    /// its name for the error.
    pub fn vstring(&mut self, field: &'static str, limit: usize) -> Decode<&'a [u8]> {
        let first = self.u8()?;
        let length = if first & 0x80 == 0 {
            usize::from(first)
        } else {
            usize::from(first & 0x7F) << 8 | usize::from(self.u8()?)
        };
        if length >= limit {
            return Err(PeerMisbehaved::OutOfRange { field, value: length as i64 }.into());
        }
        self.take(length)
    }
}

/// Appends an `int`.
pub fn put_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `shortint`.
pub fn put_u16(value: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a `longint`.
pub fn put_longint(value: i64, out: &mut Vec<u8>) {
    match i32::try_from(value) {
        Ok(short) if short >= 0 => put_i32(short, out),
        _ => {
            put_i32(-1, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends the shortest `varint`.
pub fn put_varint(value: i32, out: &mut Vec<u8>) {
    put_variable(u64::from(value as u32), 1, out);
}

/// Appends the shortest `varlong` of at least `min` bytes (3 or 4).
pub fn put_varlong(value: i64, min: usize, out: &mut Vec<u8>) {
    put_variable(value as u64, min, out);
}

/// Both variable forms: a `varint` is the form of at least 1 byte, of 32 bits.
fn put_variable(value: u64, min: usize, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    let significant = 8 - value.leading_zeros() as usize / 8;
    let count = significant.max(min);
    let top = bytes[count - 1];
    let beyond = count - min;
    if u32::from(top) < 1 << (7 - beyond) {
        out.push(unary(beyond) | top);
        out.extend_from_slice(&bytes[..count - 1]);
    } else {
        out.push(unary(beyond + 1));
        out.extend_from_slice(&bytes[..count]);
    }
}

/// Appends a `varint`, or an `int` below version 30.
pub fn put_varint30(value: i32, version: Version, out: &mut Vec<u8>) {
    if version.has_varints() {
        put_varint(value, out);
    } else {
        put_i32(value, out);
    }
}

/// Appends a `varlong` of at least `min` bytes, or a `longint` below version 30.
pub fn put_varlong30(value: i64, min: usize, version: Version, out: &mut Vec<u8>) {
    if version.has_varints() {
        put_varlong(value, min, out);
    } else {
        put_longint(value, out);
    }
}

/// Appends a `vstring`. Fails on more than 32767 bytes.
pub fn put_vstring(text: &[u8], out: &mut Vec<u8>) -> Result<(), Misuse> {
    let length = u16::try_from(text.len()).ok().filter(|n| *n <= 0x7FFF).ok_or(Misuse::LongName)?;
    if length > 0x7F {
        out.push((length >> 8) as u8 | 0x80);
    }
    out.push(length as u8);
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn old() -> Version {
        Version::new(29).unwrap()
    }

    /// Checks both directions, and that every shorter input is `Short`.
    fn check<T: PartialEq + std::fmt::Debug + Copy>(
        value: T,
        bytes: &[u8],
        encode: impl Fn(T, &mut Vec<u8>),
        decode: impl Fn(&mut Reader<'_>) -> Decode<T>,
    ) {
        let mut out = Vec::new();
        encode(value, &mut out);
        assert_eq!(out, bytes, "encoding {value:?}");
        let mut reader = Reader::new(bytes);
        assert_eq!(decode(&mut reader), Ok(value), "decoding {bytes:02x?}");
        assert_eq!(reader.consumed(), bytes.len());
        for cut in 0..bytes.len() {
            assert_eq!(decode(&mut Reader::new(&bytes[..cut])), Err(Stop::Short));
        }
    }

    #[test]
    fn varints_of_the_table() {
        let table: &[(i32, &[u8])] = &[
            (0, &[0x00]),
            (1, &[0x01]),
            (0x7F, &[0x7F]),
            (0x80, &[0x80, 0x80]),
            (0xFF, &[0x80, 0xFF]),
            (0x1FF, &[0x81, 0xFF]),
            (0x3FFF, &[0xBF, 0xFF]),
            (0x4000, &[0xC0, 0x00, 0x40]),
            (0xFFFF, &[0xC0, 0xFF, 0xFF]),
            (0x1F_FFFF, &[0xDF, 0xFF, 0xFF]),
            (0x20_0000, &[0xE0, 0x00, 0x00, 0x20]),
            (0x0FFF_FFFF, &[0xEF, 0xFF, 0xFF, 0xFF]),
            (0x1000_0000, &[0xF0, 0x00, 0x00, 0x00, 0x10]),
            (-1, &[0xF0, 0xFF, 0xFF, 0xFF, 0xFF]),
        ];
        for &(value, bytes) in table {
            check(value, bytes, put_varint, |r| r.varint());
        }
    }

    #[test]
    fn a_varint_ignores_bits_above_32_and_refuses_longer_forms() {
        assert_eq!(Reader::new(&[0xF7, 1, 0, 0, 0]).varint(), Ok(1));
        assert_eq!(Reader::new(&[0x80, 1]).varint(), Ok(1), "decoders do not demand the shortest form");
        for first in [0xF8, 0xFB, 0xFC, 0xFF] {
            assert_eq!(Reader::new(&[first]).varint(), Err(Malformed::LongInteger.into()));
        }
    }

    #[test]
    fn varlongs_of_the_table() {
        let table: &[(i64, &[u8], &[u8])] = &[
            (0, &[0, 0, 0], &[0, 0, 0, 0]),
            (6, &[0, 6, 0], &[0, 6, 0, 0]),
            (0xFFFF, &[0, 0xFF, 0xFF], &[0, 0xFF, 0xFF, 0]),
            (0x1_0000, &[1, 0, 0], &[0, 0, 0, 1]),
            (0x7F_FFFF, &[0x7F, 0xFF, 0xFF], &[0, 0xFF, 0xFF, 0x7F]),
            (0x80_0000, &[0x80, 0, 0, 0x80], &[0, 0, 0, 0x80]),
            (0xFF_FFFF, &[0x80, 0xFF, 0xFF, 0xFF], &[0, 0xFF, 0xFF, 0xFF]),
            (0x100_0000, &[0x81, 0, 0, 0], &[1, 0, 0, 0]),
            (0x4000_0000, &[0xC0, 0, 0, 0, 0x40], &[0x40, 0, 0, 0]),
            (0x6593_7D25, &[0xC0, 0x25, 0x7D, 0x93, 0x65], &[0x65, 0x25, 0x7D, 0x93]),
            (0x8000_0000, &[0xC0, 0, 0, 0, 0x80], &[0x80, 0, 0, 0, 0x80]),
            (0x1F_FFFF_FFFF, &[0xDF, 0xFF, 0xFF, 0xFF, 0xFF], &[0x9F, 0xFF, 0xFF, 0xFF, 0xFF]),
            (1 << 40, &[0xE1, 0, 0, 0, 0, 0], &[0xC1, 0, 0, 0, 0, 0]),
            (
                -1,
                &[0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
                &[0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            ),
        ];
        for &(value, three, four) in table {
            check(value, three, |v, out| put_varlong(v, 3, out), |r| r.varlong(3));
            check(value, four, |v, out| put_varlong(v, 4, out), |r| r.varlong(4));
        }
        assert_eq!(Reader::new(&[0xFC; 10]).varlong(4), Err(Malformed::LongInteger.into()));
    }

    #[test]
    fn longints() {
        check(0x7FFF_FFFF, &[0xFF, 0xFF, 0xFF, 0x7F], put_longint, |r| r.longint());
        let long = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x80, 0, 0, 0, 0];
        check(0x8000_0000, &long, put_longint, |r| r.longint());
        check(-2, &[[0xFF; 4].as_slice(), &[0xFE], &[0xFF; 7]].concat(), put_longint, |r| r.longint());
        assert_eq!(
            Reader::new(&[0xFE, 0xFF, 0xFF, 0xFF]).longint(),
            Ok(-2),
            "a short negative is sign-extended"
        );
    }

    #[test]
    fn old_versions_use_plain_ints() {
        check(300, &[0x2C, 1, 0, 0], |v, o| put_varint30(v, old(), o), |r| r.varint30(old()));
        check(300, &[0x2C, 1, 0, 0], |v, o| put_varlong30(v, 3, old(), o), |r| r.varlong30(3, old()));
        let new = Version::new(30).unwrap();
        check(300, &[0x81, 0x2C], |v, o| put_varint30(v, new, o), |r| r.varint30(new));
        check(300, &[0, 0x2C, 1], |v, o| put_varlong30(v, 3, new, o), |r| r.varlong30(3, new));
    }

    #[test]
    fn vstrings_at_their_limits() {
        for length in [0, 0x7F, 0x80, 0x1FF, 0x7FFF] {
            let text = vec![b'x'; length];
            let mut out = Vec::new();
            put_vstring(&text, &mut out).unwrap();
            assert_eq!(out.len(), length + 1 + usize::from(length > 0x7F));
            assert_eq!(Reader::new(&out).vstring("list", length + 1), Ok(text.as_slice()));
            let refused = PeerMisbehaved::OutOfRange { field: "list", value: length as i64 };
            assert_eq!(Reader::new(&out[..out.len() - length]).vstring("list", length), Err(refused.into()));
        }
        let mut out = Vec::new();
        put_vstring(&[b'x'; 0x1FF], &mut out).unwrap();
        assert_eq!(out[..2], [0x81, 0xFF]);
        assert_eq!(put_vstring(&[0; 0x8000], &mut out), Err(Misuse::LongName));
    }
}
