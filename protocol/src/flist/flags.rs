//! The flags word that opens an entry, in its three widths, and what every entry coder knows.
//!
//! Wire: protocol/doc/10-file-list.md#2-the-flags-word

use super::Rdev;
use crate::charset::Charset;
use crate::error::{Decode, PeerMisbehaved};
use crate::session::{Compat, Layout, Recursion, Session, Version};
use crate::wire::{put_varint, Reader};

bitflags::bitflags! {
    /// What the fields of an entry are. Some bits mean different things for different versions
    /// and kinds of entries.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(super) struct WireFlags: u32 {
        const TOP_DIR = 0x0001;
        const SAME_MODE = 0x0002;
        /// At 27 only.
        const SAME_RDEV = 0x0004;
        const SAME_UID = 0x0008;
        const SAME_GID = 0x0010;
        const SAME_NAME = 0x0020;
        const LONG_NAME = 0x0040;
        const SAME_TIME = 0x0080;
        /// Of devices, from 28 on.
        const SAME_RDEV_MAJOR = 0x0100;
        /// Of directories, from 30 on.
        const NO_CONTENT_DIR = 0x0100;
        const HARD_LINKED = 0x0200;
        /// At 28 and 29.
        const SAME_DEV = 0x0400;
        /// From 30 on.
        const USER_NAME_FOLLOWS = 0x0400;
        /// At 28 and 29.
        const BYTE_MINOR = 0x0800;
        /// From 30 on.
        const GROUP_NAME_FOLLOWS = 0x0800;
        const FIRST_OF_GROUP = 0x1000;
        const MTIME_NSEC = 0x2000;
        const SAME_ATIME = 0x4000;
        const CRTIME_IS_MTIME = 0x2_0000;
    }
}

/// Where bits 8 to 15 follow in a second byte; a filler where the varint would be 0.
const EXTENDED: u32 = 0x0004;
/// The word that ends a list with an error code.
const ERROR_END: u32 = 0x1004;

/// The width of the flags word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Version 27.
    Byte,
    /// One byte, and a second if a bit of the first says so.
    Extended,
    /// A varint, if negotiated.
    Varint,
}

/// What stands where an entry may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// An entry.
    Entry(WireFlags),
    /// The end of the list.
    End,
    /// The end of the list; an error code follows.
    EndWithError,
}

impl Width {
    /// Takes a flags word. A two-byte end mark is taken as such whether or not it is usable.
    pub(super) fn take(self, reader: &mut Reader<'_>) -> Decode<Opening> {
        let word = match self {
            Width::Byte => u32::from(reader.u8()?),
            Width::Extended => match u32::from(reader.u8()?) {
                low if low & EXTENDED == 0 => low,
                low => match low | u32::from(reader.u8()?) << 8 {
                    ERROR_END => return Ok(Opening::EndWithError),
                    word => return Ok(Opening::Entry(WireFlags::from_bits_retain(word & !EXTENDED))),
                },
            },
            Width::Varint => match reader.varint()? as u32 {
                0 => return Ok(Opening::EndWithError),
                word => return Ok(Opening::Entry(WireFlags::from_bits_retain(word & !EXTENDED))),
            },
        };
        Ok(match word {
            0 => Opening::End,
            _ => Opening::Entry(WireFlags::from_bits_retain(word)),
        })
    }

    /// Returns the flags as they have to be sent: an entry must not look like the end mark.
    pub(super) fn fill(self, flags: WireFlags, is_dir: bool) -> WireFlags {
        match self {
            Width::Byte => match flags & WireFlags::from_bits_retain(0xFF) {
                low if !low.is_empty() => low,
                // The bit is not idle: the length then takes four bytes.
                _ if is_dir => WireFlags::LONG_NAME,
                _ => WireFlags::TOP_DIR,
            },
            Width::Extended if flags.is_empty() && !is_dir => WireFlags::TOP_DIR,
            _ => flags,
        }
    }

    /// Appends a flags word that [`Width::fill`] returned.
    pub(super) fn put(self, flags: WireFlags, out: &mut Vec<u8>) {
        let word = flags.bits();
        match self {
            Width::Byte => out.push(word as u8),
            Width::Extended if word & 0xFF00 != 0 || word == 0 => {
                out.extend_from_slice(&((word | EXTENDED) as u16).to_le_bytes());
            }
            Width::Extended => out.push(word as u8),
            Width::Varint => put_varint(if word == 0 { EXTENDED as i32 } else { word as i32 }, out),
        }
    }

    /// Appends the end of a list. Nothing tells the error code if the mark for it is not usable.
    ///
    /// Wire: protocol/doc/10-file-list.md#6-end-of-list-and-the-error-code
    pub(super) fn put_end(self, error: i32, safe_end: bool, out: &mut Vec<u8>) {
        match self {
            Width::Varint => {
                out.push(0);
                put_varint(error, out);
            }
            _ if error != 0 && safe_end => {
                out.extend_from_slice(&(ERROR_END as u16).to_le_bytes());
                put_varint(error, out);
            }
            _ => out.push(0),
        }
    }
}

/// What every entry coder of a session knows.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) version: Version,
    pub(super) layout: Layout,
    pub(super) width: Width,
    /// Length of a `-c` sum in bytes.
    pub(super) sum_len: usize,
    /// Whether the end mark with an error code is usable outside the varint form.
    pub(super) safe_end: bool,
    /// Whether entries carry ACLs.
    pub(super) acls: bool,
    pub(super) xattrs: bool,
    pub(super) incremental: bool,
    pub(super) inline_names: bool,
    /// The charset of this end's names, if they are converted.
    pub(super) names: Option<Charset>,
    /// The charset of this end's symlink targets, if they are converted.
    pub(super) targets: Option<Charset>,
}

impl Form {
    pub(super) fn new(session: &Session) -> Self {
        let version = session.version;
        let width = if session.compat.contains(Compat::VARINT_FLIST) {
            Width::Varint
        } else if version.has_extended_flags() {
            Width::Extended
        } else {
            Width::Byte
        };
        Form {
            version,
            layout: session.layout,
            width,
            sum_len: session.list_sum.len(),
            safe_end: session.has_safe_list_end(),
            acls: session.layout.acls && version.has_acls_and_xattrs(),
            xattrs: session.layout.xattrs && version.has_acls_and_xattrs(),
            incremental: session.recursion == Recursion::Incremental,
            inline_names: session.names_ids_inline(),
            names: session.charset,
            targets: session.target_charset(),
        }
    }

    /// Refuses an end mark with error code that was not negotiated.
    pub(super) fn check_error_end(&self) -> Result<(), PeerMisbehaved> {
        if self.width == Width::Varint || self.safe_end {
            Ok(())
        } else {
            Err(PeerMisbehaved::Rule("the list ends with an error mark that was not negotiated"))
        }
    }
}

/// The values that "same" bits refer to. They live as long as the stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Previous {
    pub(super) name: Vec<u8>,
    pub(super) mode: u32,
    pub(super) mtime: i64,
    pub(super) atime: i64,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) rdev: Rdev,
    /// Device of hard links, below 30.
    pub(super) dev: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(width: Width, bits: u32, is_dir: bool) -> Vec<u8> {
        let mut out = Vec::new();
        width.put(width.fill(WireFlags::from_bits_retain(bits), is_dir), &mut out);
        out
    }

    fn take(width: Width, bytes: &[u8]) -> Opening {
        let mut reader = Reader::new(bytes);
        let opening = width.take(&mut reader).unwrap();
        assert_eq!(reader.consumed(), bytes.len());
        opening
    }

    fn entry(bits: u32) -> Opening {
        Opening::Entry(WireFlags::from_bits_retain(bits))
    }

    #[test]
    fn an_entry_without_flags_never_looks_like_the_end() {
        assert_eq!(put(Width::Byte, 0, true), [0x40]);
        assert_eq!(put(Width::Byte, 0x0200, false), [0x01], "bit 9 is cut off");
        assert_eq!(put(Width::Extended, 0, false), [0x01]);
        assert_eq!(put(Width::Extended, 0, true), [0x04, 0x00]);
        assert_eq!(put(Width::Varint, 0, true), [0x04]);
        assert_eq!(take(Width::Extended, &[0x04, 0x00]), entry(0));
        assert_eq!(take(Width::Varint, &[0x04]), entry(0));
    }

    #[test]
    fn captured_words() {
        assert_eq!(put(Width::Varint, 0x1298, false), [0x92, 0x98]);
        assert_eq!(take(Width::Varint, &[0x92, 0x98]), entry(0x1298));
        assert_eq!(put(Width::Extended, 0x0898, false), [0x9C, 0x08]);
        assert_eq!(take(Width::Extended, &[0x9C, 0x08]), entry(0x0898));
        assert_eq!(take(Width::Byte, &[0x9C]), entry(0x9C));
    }

    #[test]
    fn ends() {
        let end = |width: Width, error, safe| {
            let mut out = Vec::new();
            width.put_end(error, safe, &mut out);
            out
        };
        assert_eq!(end(Width::Varint, 1, true), [0, 1]);
        assert_eq!(end(Width::Varint, 0, false), [0, 0]);
        assert_eq!(end(Width::Extended, 1, true), [0x04, 0x10, 1]);
        assert_eq!(end(Width::Extended, 1, false), [0]);
        assert_eq!(end(Width::Extended, 0, true), [0]);
        assert_eq!(take(Width::Extended, &[0x04, 0x10]), Opening::EndWithError);
        assert_eq!(take(Width::Varint, &[0]), Opening::EndWithError);
        assert_eq!(take(Width::Byte, &[0]), Opening::End);
    }
}
