//! The frame header, and the codes of messages.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#171-frame

use crate::error::{Decode, Malformed, Stop};
use crate::limits::FRAME_MAX;
use crate::wire::Reader;

/// Length of a frame header in bytes.
pub(super) const HEADER_LEN: usize = 4;

/// What is added to a code to make the tag byte: keeps a frame apart from an old peer's text.
const TAG_BASE: u8 = 7;

/// The codes that may cross the wire. Every other one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Code {
    Data = 0,
    ErrorXfer = 1,
    Info = 2,
    Error = 3,
    Warning = 4,
    IoError = 22,
    IoTimeout = 33,
    Noop = 42,
    ErrorExit = 86,
    Success = 100,
    Deleted = 101,
    NoSend = 102,
}

impl Code {
    const ALL: [Code; 12] = [
        Code::Data,
        Code::ErrorXfer,
        Code::Info,
        Code::Error,
        Code::Warning,
        Code::IoError,
        Code::IoTimeout,
        Code::Noop,
        Code::ErrorExit,
        Code::Success,
        Code::Deleted,
        Code::NoSend,
    ];

    /// Returns the tag byte.
    pub(super) fn tag(self) -> u8 {
        TAG_BASE + self as u8
    }
}

/// A decoded frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) code: Code,
    /// Payload length in bytes, 24 bits.
    pub(super) length: u32,
}

impl FrameHeader {
    /// Returns the header of a payload of `length` bytes, which the caller keeps within 24 bits.
    pub(super) fn new(code: Code, length: usize) -> Self {
        debug_assert!(length <= FRAME_MAX);
        FrameHeader { code, length: length as u32 & FRAME_MAX as u32 }
    }

    /// Takes a header. Fails on a tag that may not cross the wire.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Decode<Self> {
        let [b0, b1, b2, tag] = reader.take_array()?;
        let code = Code::ALL.into_iter().find(|c| c.tag() == tag).ok_or(Stop::from(Malformed::Tag(tag)))?;
        Ok(FrameHeader { code, length: u32::from_le_bytes([b0, b1, b2, 0]) })
    }

    /// Returns the bytes of the header.
    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [b0, b1, b2, _] = self.length.to_le_bytes();
        [b0, b1, b2, self.code.tag()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_headers() {
        let mut reader = Reader::new(&[0x37, 0, 0, 7, 4, 0, 0, 0x5D]);
        assert_eq!(FrameHeader::decode(&mut reader), Ok(FrameHeader { code: Code::Data, length: 55 }));
        assert_eq!(FrameHeader::decode(&mut reader), Ok(FrameHeader { code: Code::ErrorExit, length: 4 }));
        assert_eq!(FrameHeader::new(Code::ErrorExit, 4).to_bytes(), [4, 0, 0, 0x5D]);
    }

    #[test]
    fn internal_and_unknown_tags_are_refused() {
        for tag in [0x00, 0x06, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0xFF] {
            let refused = FrameHeader::decode(&mut Reader::new(&[0, 0, 0, tag]));
            assert_eq!(refused, Err(Malformed::Tag(tag).into()));
        }
    }
}
