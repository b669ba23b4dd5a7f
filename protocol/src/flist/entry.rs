//! One entry of the file list.
//!
//! An entry lives in its segment's arena (see [`super::Segment`]) and is read through
//! [`EntryRef`]; it is made from a [`NewEntry`]. [`OwnedEntry`] outlives its segment.
//! Wire: protocol/doc/10-file-list.md#3-field-order-of-one-entry

use std::sync::Arc;

use super::{Acl, RelPath, XattrList};

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// Mode 0: a missing argument whose name is to be deleted (`--delete-missing-args`).
    Missing,
}

impl FileKind {
    /// Whether this is a device node.
    pub fn is_device(self) -> bool {
        matches!(self, FileKind::CharDevice | FileKind::BlockDevice)
    }

    /// Whether this is a named pipe or a socket.
    pub fn is_special(self) -> bool {
        matches!(self, FileKind::Fifo | FileKind::Socket)
    }
}

/// A Unix mode with the wire's type numbers: type bits 0o170000, permissions 0o7777.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Mode(pub u32);

impl Mode {
    /// The type bits of a regular file.
    pub const REGULAR: u32 = 0o100_000;

    /// Returns the kind, or nothing for type bits that do not exist.
    pub fn try_kind(self) -> Option<FileKind> {
        Some(match self.0 & 0o170_000 {
            0o010_000 => FileKind::Fifo,
            0o020_000 => FileKind::CharDevice,
            0o040_000 => FileKind::Directory,
            0o060_000 => FileKind::BlockDevice,
            0o100_000 => FileKind::Regular,
            0o120_000 => FileKind::Symlink,
            0o140_000 => FileKind::Socket,
            0 if self.0 == 0 => FileKind::Missing,
            _ => return None,
        })
    }

    /// Returns the kind. Decoders refuse unknown type bits; here they read as [`FileKind::Missing`].
    pub fn kind(self) -> FileKind {
        self.try_kind().unwrap_or(FileKind::Missing)
    }

    /// Returns the permission bits, 0o7777.
    pub fn permissions(self) -> u32 {
        self.0 & 0o7777
    }
}

bitflags::bitflags! {
    /// What is known of an entry beside its fields.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct EntryFlags: u8 {
        /// A directory named by an argument.
        const TOP_DIR = 1;
        /// A directory whose content is in the transfer: only these are scanned for deletion.
        const CONTENT_DIR = 2;
        /// A parent directory that is listed only because of `--relative`.
        const IMPLIED_DIR = 4;
        /// Removed as a duplicate or by `-m`: keeps its number, is never transferred.
        const BLANK = 8;
        /// The receiving process cannot set this group: neither compared nor changed.
        const SKIP_GROUP = 16;
        /// Its name or target cannot be converted to this end's charset: keeps its number, and a
        /// directory its segment; nothing of it is ever touched.
        const UNCONVERTED = 32;
    }
}

bitflags::bitflags! {
    /// The sender's accumulated error bits; they stop deletions and decide the exit code.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct IoErrors: u8 {
        /// Something could not be read.
        const GENERAL = 1;
        /// Something vanished between listing and reading.
        const VANISHED = 2;
        /// `--max-delete` stopped a deletion.
        const DELETE_LIMIT = 4;
    }
}

/// A device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Rdev {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Rdev {
    /// Splits the low 32 bits of a Linux device number, as version 27 sends them.
    pub(super) fn from_linux(number: u32) -> Self {
        Rdev { major: number >> 8 & 0xFFF, minor: number & 0xFF | number >> 12 & 0xF_FF00 }
    }

    /// Returns the low 32 bits of the Linux device number.
    pub(super) fn to_linux(self) -> u32 {
        self.minor & 0xFF | (self.major & 0xFFF) << 8 | (self.minor & 0xF_FF00) << 12
    }
}

/// An entry's hard-link group.
///
/// Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HardLink {
    /// Version 30 and newer: the wire number of the group's first entry.
    Group {
        /// Wire number (order of transmission) of the first member sent; valid for the whole run.
        group: i32,
        /// Whether this entry is that first member.
        first: bool,
    },
    /// Below 30: the sender's device (as sent, plus one) and inode.
    Inode {
        /// Device number plus one.
        dev: i64,
        /// Inode number.
        ino: i64,
    },
}

/// Which id space a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdKind {
    /// Users.
    User,
    /// Groups.
    Group,
}

/// The sender's name of an id, inline in an entry or from the id lists after a whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdName {
    /// The id space.
    pub kind: IdKind,
    /// The sender's number.
    pub id: u32,
    /// The sender's name for it, at most 255 bytes.
    pub name: Vec<u8>,
}

/// The rarer fields of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    /// Target of a symlink, if links are preserved. Shared: an abbreviated hard link of a few
    /// bytes must not cost as much as the target it copies.
    pub link_target: Option<Arc<[u8]>>,
    /// Number of a device, if devices are preserved.
    pub rdev: Option<Rdev>,
    /// Hard-link group.
    pub hard_link: Option<HardLink>,
    /// `-c`: the sum of the content.
    pub checksum: Option<Box<[u8]>>,
    /// `-U`: access time in seconds.
    pub atime: Option<i64>,
    /// `-N`: creation time in seconds.
    pub crtime: Option<i64>,
    /// `-A`: what the mode does not say of who may do what. Shared: few are distinct.
    pub access_acl: Option<Arc<Acl>>,
    /// `-A`: the default list of a directory, if it has one.
    pub default_acl: Option<Arc<Acl>>,
    /// `-X`: extended attributes; nothing if there are none.
    pub xattrs: Option<Arc<XattrList>>,
}

impl Extra {
    /// Whether every field is absent, so that no room is needed.
    pub fn is_empty(&self) -> bool {
        *self == Extra::default()
    }
}

/// The fields of an entry that is about to be pushed into a segment.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// The path as it is sent.
    pub path: &'a [u8],
    /// Type and permissions.
    pub mode: Mode,
    /// Size in bytes (target length for symlinks; 0 for devices and specials).
    pub size: u64,
    /// Modification time, seconds since the epoch.
    pub mtime: i64,
    /// Nanoseconds of the modification time, 0 to 999,999,999.
    pub mtime_nsec: u32,
    /// The sender's user id.
    pub uid: u32,
    /// The sender's group id.
    pub gid: u32,
    /// Directory flags.
    pub flags: EntryFlags,
}

/// The fixed part of an entry, 48 bytes. Its path lies in the segment's arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) path_at: u32,
    pub(super) path_len: u16,
    pub(super) flags: EntryFlags,
    pub(super) mode: u16,
    pub(super) mtime_nsec: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Index of the extra part plus one; 0 is none.
    pub(super) extra: u32,
    pub(super) size: u64,
    pub(super) mtime: i64,
}

/// One entry, borrowed from its segment or from an [`OwnedEntry`].
#[derive(Debug, Clone, Copy)]
pub struct EntryRef<'a> {
    pub(super) fixed: &'a Fixed,
    pub(super) path: &'a [u8],
    pub(super) extra: Option<&'a Extra>,
}

impl<'a> EntryRef<'a> {
    /// Returns the path as it travelled (with `-R` possibly with a leading slash).
    pub fn wire_path(self) -> &'a [u8] {
        self.path
    }

    /// Returns the path below the receiving root: the wire path without leading slashes.
    pub fn path(self) -> RelPath<'a> {
        let start = self.path.iter().take_while(|&&b| b == b'/').count();
        RelPath::new(&self.path[start..])
    }

    /// Returns type and permissions.
    pub fn mode(self) -> Mode {
        Mode(u32::from(self.fixed.mode))
    }

    /// Returns the kind.
    pub fn kind(self) -> FileKind {
        self.mode().kind()
    }

    /// Whether this is a directory.
    pub fn is_dir(self) -> bool {
        self.kind() == FileKind::Directory
    }

    /// Whether this is a regular file.
    pub fn is_regular(self) -> bool {
        self.kind() == FileKind::Regular
    }

    /// Returns the size in bytes.
    pub fn size(self) -> u64 {
        self.fixed.size
    }

    /// Returns the modification time in seconds.
    pub fn mtime(self) -> i64 {
        self.fixed.mtime
    }

    /// Returns the nanoseconds of the modification time.
    pub fn mtime_nsec(self) -> u32 {
        self.fixed.mtime_nsec
    }

    /// Returns the sender's user id, unmapped.
    pub fn uid(self) -> u32 {
        self.fixed.uid
    }

    /// Returns the sender's group id, unmapped.
    pub fn gid(self) -> u32 {
        self.fixed.gid
    }

    /// Returns the flags.
    pub fn flags(self) -> EntryFlags {
        self.fixed.flags
    }

    /// Whether the entry takes no part but keeps its number.
    pub fn is_blank(self) -> bool {
        self.flags().intersects(EntryFlags::BLANK | EntryFlags::UNCONVERTED)
    }

    /// Returns the target of a symlink.
    pub fn link_target(self) -> Option<&'a [u8]> {
        self.extra?.link_target.as_deref()
    }

    /// Returns the number of a device.
    pub fn rdev(self) -> Option<Rdev> {
        self.extra?.rdev
    }

    /// Returns the hard-link group.
    pub fn hard_link(self) -> Option<HardLink> {
        self.extra?.hard_link
    }

    /// Returns the sum of the content (`-c`).
    pub fn checksum(self) -> Option<&'a [u8]> {
        self.extra?.checksum.as_deref()
    }

    /// Returns the access time in seconds (`-U`).
    pub fn atime(self) -> Option<i64> {
        self.extra?.atime
    }

    /// Returns the creation time in seconds (`-N`).
    pub fn crtime(self) -> Option<i64> {
        self.extra?.crtime
    }

    /// Returns the access list, less what the mode says (`-A`).
    pub fn access_acl(self) -> Option<&'a Acl> {
        self.extra?.access_acl.as_deref()
    }

    /// Returns the default list of a directory (`-A`).
    pub fn default_acl(self) -> Option<&'a Acl> {
        self.extra?.default_acl.as_deref()
    }

    /// Returns the extended attributes (`-X`).
    pub fn xattrs(self) -> Option<&'a Arc<XattrList>> {
        self.extra?.xattrs.as_ref()
    }

    /// Returns the rarer fields.
    pub fn extra(self) -> Option<&'a Extra> {
        self.extra
    }

    /// Copies the entry out of its segment.
    pub fn to_owned(self) -> OwnedEntry {
        OwnedEntry { fixed: *self.fixed, path: self.path.into(), extra: self.extra.cloned().map(Box::new) }
    }
}

/// An entry that outlives its segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedEntry {
    fixed: Fixed,
    path: Box<[u8]>,
    extra: Option<Box<Extra>>,
}

impl OwnedEntry {
    pub(super) fn fixed_mut(&mut self) -> &mut Fixed {
        &mut self.fixed
    }

    pub(super) fn set_flags(&mut self, flags: EntryFlags) {
        self.fixed.flags = flags;
    }

    /// Borrows it.
    pub fn entry(&self) -> EntryRef<'_> {
        EntryRef { fixed: &self.fixed, path: &self.path, extra: self.extra.as_deref() }
    }
}
