//! The item record: what differs about an entry, and on which basis it is asked for.
//!
//! Wire: protocol/doc/20-transfer.md#22-iflags-bits

use super::XattrExchange;
use crate::error::{Decode, Misuse};
use crate::limits::PATH_MAX;
use crate::session::Version;
use crate::wire::{put_u16, put_vstring, Reader};

bitflags::bitflags! {
    /// What differs, and what is asked for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ItemFlags: u16 {
        /// Access time differs.
        const REPORT_ATIME = 0x0001;
        /// Checksum or value differs.
        const REPORT_CHANGE = 0x0002;
        /// Size differs; on a symlink: its time could not be set.
        const REPORT_SIZE = 0x0004;
        /// Modification time differs, or will be "now".
        const REPORT_TIME = 0x0008;
        /// Permissions differ.
        const REPORT_PERMS = 0x0010;
        /// Owner differs.
        const REPORT_OWNER = 0x0020;
        /// Group differs.
        const REPORT_GROUP = 0x0040;
        /// ACL differs.
        const REPORT_ACL = 0x0080;
        /// Extended attributes differ.
        const REPORT_XATTR = 0x0100;
        /// Creation time differs.
        const REPORT_CRTIME = 0x0400;
        /// A basis kind follows.
        const BASIS_TYPE_FOLLOWS = 0x0800;
        /// A second name follows.
        const XNAME_FOLLOWS = 0x1000;
        /// Does not exist on the receiving side.
        const IS_NEW = 0x2000;
        /// Made by the generator itself.
        const LOCAL_CHANGE = 0x4000;
        /// File data is asked for.
        const TRANSFER = 0x8000;
    }
}

impl ItemFlags {
    /// Returns the flags that make an item worth reporting.
    pub fn significant(self) -> ItemFlags {
        self - (ItemFlags::BASIS_TYPE_FOLLOWS | ItemFlags::XNAME_FOLLOWS | ItemFlags::LOCAL_CHANGE)
    }
}

/// Which file the block sums were made of.
///
/// Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasisKind {
    /// The same name in the n-th alternate directory.
    AlternateDir(u8),
    /// The destination file itself; never sent, absence means it.
    Destination,
    /// The file of that name in the partial directory.
    PartialDir,
    /// The backup just made.
    Backup,
    /// The xname beside it; above 0, in the n-1st alternate directory.
    Fuzzy(u8),
}

impl BasisKind {
    /// Reads the type byte.
    fn from_byte(byte: u8) -> Self {
        match byte {
            0x00..=0x7F => BasisKind::AlternateDir(byte),
            0x80 => BasisKind::Destination,
            0x81 => BasisKind::PartialDir,
            0x82 => BasisKind::Backup,
            _ => BasisKind::Fuzzy(byte - 0x83),
        }
    }

    /// Returns the type byte. Indexes that have none are cut to the last that has.
    fn to_byte(self) -> u8 {
        match self {
            BasisKind::AlternateDir(n) => n.min(0x7F),
            BasisKind::Destination => 0x80,
            BasisKind::PartialDir => 0x81,
            BasisKind::Backup => 0x82,
            BasisKind::Fuzzy(n) => n.saturating_add(0x83),
        }
    }
}

/// The item record that both directions carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    /// What differs and what follows. The two FOLLOWS bits agree with the fields below.
    pub flags: ItemFlags,
    /// The basis, if it is not the destination itself.
    pub basis: Option<BasisKind>,
    /// A second name: the target of a hard link, or the basename of a fuzzy basis.
    pub xname: Option<Box<[u8]>>,
    /// Long values of extended attributes. The codecs put them behind the other fields.
    pub xattrs: XattrExchange,
}

impl Item {
    /// Makes an item without basis kind and second name.
    pub fn new(flags: ItemFlags) -> Self {
        Item { flags, ..Item::default() }
    }

    /// Whether file data is asked for.
    pub fn is_transfer(&self) -> bool {
        self.flags.contains(ItemFlags::TRANSFER)
    }

    /// Takes the fields that follow an index. Below version 29 there are none: a bare index asks
    /// for file data.
    ///
    /// Wire: protocol/doc/20-transfer.md#21-layout
    pub fn decode(input: &mut Reader<'_>, version: Version) -> Decode<Item> {
        if !version.has_item_flags() {
            return Ok(Item::new(ItemFlags::TRANSFER));
        }
        let flags = ItemFlags::from_bits_retain(input.u16()?);
        let basis = match flags.contains(ItemFlags::BASIS_TYPE_FOLLOWS) {
            true => Some(BasisKind::from_byte(input.u8()?)),
            false => None,
        };
        let xname = match flags.contains(ItemFlags::XNAME_FOLLOWS) {
            true => Some(input.vstring("length of a second name", PATH_MAX)?.into()),
            false => None,
        };
        Ok(Item { flags, basis, xname, xattrs: XattrExchange::Nothing })
    }

    /// Appends the fields that follow an index. The two FOLLOWS bits are taken from the fields.
    /// Fails on a name of 4096 bytes or more.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), Misuse> {
        if !version.has_item_flags() {
            return Ok(());
        }
        put_u16(self.wire_flags().bits(), out);
        if let Some(basis) = self.basis {
            out.push(basis.to_byte());
        }
        match &self.xname {
            Some(xname) if xname.len() >= PATH_MAX => Err(Misuse::LongName),
            Some(xname) => put_vstring(xname, out),
            None => Ok(()),
        }
    }

    /// Returns the flags as they are sent.
    pub(crate) fn wire_flags(&self) -> ItemFlags {
        let mut flags = self.flags;
        flags.set(ItemFlags::BASIS_TYPE_FOLLOWS, self.basis.is_some());
        flags.set(ItemFlags::XNAME_FOLLOWS, self.xname.is_some());
        flags
    }

    /// Returns the second name cut down to a path that stays below where it is used: without
    /// leading and doubled slashes and `.`, and with every `..` resolved or dropped. What a peer
    /// names as a fuzzy basis must pass through here; names of hard links are display only.
    pub fn confined_xname(&self) -> Option<Vec<u8>> {
        let xname = self.xname.as_deref()?;
        let mut kept: Vec<&[u8]> = Vec::new();
        for part in xname.split(|&byte| byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(kept.pop()),
                _ => kept.push(part),
            }
        }
        Some(kept.join(&b'/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn version(number: u32) -> Version {
        Version::new(number).unwrap()
    }

    fn decode(bytes: &[u8], number: u32) -> Item {
        let mut input = Reader::new(bytes);
        let item = Item::decode(&mut input, version(number)).unwrap();
        assert!(input.rest().is_empty());
        let mut again = Vec::new();
        item.encode(version(number), &mut again).unwrap();
        assert_eq!(again, bytes);
        item
    }

    #[test]
    fn captured_items() {
        let changed = ItemFlags::TRANSFER | ItemFlags::REPORT_TIME | ItemFlags::REPORT_SIZE;
        assert_eq!(decode(&[0x0C, 0x80], 32), Item::new(changed));

        let fuzzy = decode(b"\x00\xb8\x83\x09a.txt.old", 32);
        assert_eq!(fuzzy.basis, Some(BasisKind::Fuzzy(0)));
        assert_eq!(fuzzy.xname.as_deref(), Some(&b"a.txt.old"[..]));

        let partial = decode(&[0x00, 0xA8, 0x81], 32);
        assert_eq!((partial.basis, partial.xname), (Some(BasisKind::PartialDir), None));
        assert_eq!(decode(&[0x0C, 0x88, 0x82], 29).basis, Some(BasisKind::Backup));
    }

    #[test]
    fn old_requests_are_bare() {
        assert!(decode(&[], 28).is_transfer());
    }

    #[test]
    fn every_cut_is_short() {
        let bytes = b"\x00\xb8\x84\x03abc";
        for end in 0..bytes.len() {
            assert_eq!(Item::decode(&mut Reader::new(&bytes[..end]), version(31)), Err(Stop::Short));
        }
    }

    #[test]
    fn over_long_second_names_are_protocol_errors() {
        let bytes = [0x00, 0x10, 0x90, 0x00];
        let Err(Stop::Bad(error)) = Item::decode(&mut Reader::new(&bytes), version(32)) else {
            panic!("4096 bytes are too many");
        };
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn second_names_cannot_climb_out() {
        for (sent, used) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"/etc/passwd", b"etc/passwd"),
            (b"../../x", b"x"),
            (b"a/../../b", b"b"),
            (b"a//./b/", b"a/b"),
            (b"..", b""),
        ] {
            let item = Item { xname: Some(sent.into()), ..Item::default() };
            assert_eq!(item.confined_xname().as_deref(), Some(used));
        }
    }
}
