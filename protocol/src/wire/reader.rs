//! A cursor over received bytes. It cannot run short silently and cannot index out of bounds.

use crate::error::{Decode, Stop};

/// A cursor over bytes that have arrived.
///
/// Every `take_*` either returns a whole field and advances, or returns [`Stop::Short`] and
/// leaves it to the caller to retry from the unit's first byte with a fresh reader.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Returns how many bytes were taken.
    pub fn consumed(&self) -> usize {
        self.at
    }

    /// Returns what has not been taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Takes `n` bytes.
    pub fn take(&mut self, n: usize) -> Decode<&'a [u8]> {
        let end = self.at.checked_add(n).ok_or(Stop::Short)?;
        let field = self.bytes.get(self.at..end).ok_or(Stop::Short)?;
        self.at = end;
        Ok(field)
    }

    /// Takes a fixed number of bytes.
    pub fn take_array<const N: usize>(&mut self) -> Decode<[u8; N]> {
        let field = self.take(N)?;
        let mut array = [0; N];
        array.copy_from_slice(field);
        Ok(array)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Decode<u8> {
        Ok(self.take_array::<1>()?[0])
    }

    /// Takes a `shortint`: 2 bytes, little-endian.
    pub fn u16(&mut self) -> Decode<u16> {
        Ok(u16::from_le_bytes(self.take_array()?))
    }

    /// Takes an `int`: 4 bytes, little-endian, signed.
    pub fn i32(&mut self) -> Decode<i32> {
        Ok(i32::from_le_bytes(self.take_array()?))
    }
}
