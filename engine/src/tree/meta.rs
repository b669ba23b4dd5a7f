//! What a stat tells.

use suisei_protocol::flist::{FileKind, Mode, Rdev};

/// The metadata of one item, as the platform reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Type and permissions, with the wire's type numbers.
    pub mode: Mode,
    /// Size in bytes.
    pub size: u64,
    /// Modification time: seconds.
    pub mtime: i64,
    /// Modification time: nanoseconds.
    pub mtime_nsec: u32,
    /// Access time: seconds.
    pub atime: i64,
    /// Access time: nanoseconds.
    pub atime_nsec: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of the device node itself.
    pub rdev: Rdev,
    /// File system.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Number of hard links.
    pub nlink: u64,
}

impl Meta {
    /// Returns the kind.
    pub fn kind(&self) -> FileKind {
        self.mode.kind()
    }

    /// Returns a device as the regular file of what it holds; others as they are.
    pub(crate) fn as_content(self, size: impl FnOnce() -> u64) -> Meta {
        if !self.kind().is_device() {
            return self;
        }
        let mode = Mode(Mode::REGULAR | self.mode.permissions());
        Meta { mode, size: size(), ..self }
    }

    /// Whether both describe the same inode.
    pub fn is_same_file(&self, other: &Meta) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}
