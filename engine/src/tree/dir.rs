//! A held directory and every verb on its members. Names are single components.

use std::fs::File;
use std::io;
use std::sync::Arc;

use suisei_protocol::flist::{FileKind, Rdev};

use super::{Attributes, Meta, TempFile};

/// One member of a directory, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirMember {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its kind, where the file system tells without a stat.
    pub kind: Option<FileKind>,
}

/// A directory held open.
#[derive(Debug)]
pub struct Dir {}

impl Dir {
    /// Returns the metadata of the directory itself.
    pub fn meta(&self) -> io::Result<Meta> {
        todo!()
    }

    /// Returns the metadata of a member without following symlinks; nothing if it does not exist.
    pub fn stat(&self, _name: &[u8]) -> io::Result<Option<Meta>> {
        todo!()
    }

    /// Returns the metadata of what a member leads to.
    pub fn stat_following(&self, _name: &[u8]) -> io::Result<Option<Meta>> {
        todo!()
    }

    /// Lists the members, without `.` and `..`, in no order.
    pub fn list(&self) -> io::Result<Vec<DirMember>> {
        todo!()
    }

    /// Opens a member for reading. A symlink is refused; a pipe does not block.
    pub fn open_file(&self, _name: &[u8]) -> io::Result<File> {
        todo!()
    }

    /// Opens what a member leads to for reading.
    pub fn open_file_following(&self, _name: &[u8]) -> io::Result<File> {
        todo!()
    }

    /// Opens a member that must be a regular file for reading, with the metadata of what was
    /// opened. Anything else is refused (InvalidInput, or ELOOP for a symlink).
    pub fn open_regular(&self, _name: &[u8]) -> io::Result<(File, Meta)> {
        todo!()
    }

    /// Reads a regular member of at most `limit` bytes (FileTooLarge above), such as a merge file.
    pub fn read_small(&self, _name: &[u8], _limit: u64) -> io::Result<Vec<u8>> {
        todo!()
    }

    /// Opens a member for writing in place (reading too), creating it with `mode` if it is not
    /// there. A symlink is refused. An existing file that is not writable is made so for the open
    /// and restored at once.
    pub fn open_in_place(&self, _name: &[u8], _mode: u32) -> io::Result<File> {
        todo!()
    }

    /// Creates a temp file for a future member `name`: `.name.XXXXXX`, mode `mode & 0o700`.
    ///
    /// Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file
    pub fn create_temp(self: &Arc<Self>, _name: &[u8], _mode: u32) -> io::Result<TempFile> {
        todo!()
    }

    /// The same for `--temp-dir`, where the name gets no dot in front.
    pub fn create_temp_elsewhere(self: &Arc<Self>, _name: &[u8], _mode: u32) -> io::Result<TempFile> {
        todo!()
    }

    /// Makes a directory.
    pub fn mkdir(&self, _name: &[u8], _mode: u32) -> io::Result<()> {
        todo!()
    }

    /// Makes a symlink.
    pub fn symlink(&self, _target: &[u8], _name: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Makes a device, pipe or socket.
    pub fn mknod(&self, _name: &[u8], _kind: FileKind, _permissions: u32, _rdev: Rdev) -> io::Result<()> {
        todo!()
    }

    /// Makes `name` a hard link of `from_name` in `from` (symlinks themselves are linked).
    pub fn hard_link(&self, _from: &Dir, _from_name: &[u8], _name: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Makes something under an unused name of the form `.name.N` by `make`, then renames it over
    /// `name`: how symlinks, devices and hard links replace an existing item.
    pub fn replace(&self, _name: &[u8], _make: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        todo!()
    }

    /// Renames a member, replacing what is there.
    pub fn rename(&self, _from_name: &[u8], _to: &Dir, _to_name: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Removes a member that is not a directory.
    pub fn unlink(&self, _name: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, _name: &[u8]) -> io::Result<()> {
        todo!()
    }

    /// Returns the target of a symlink.
    pub fn read_link(&self, _name: &[u8]) -> io::Result<Vec<u8>> {
        todo!()
    }

    /// Opens a member directory without following a symlink.
    pub fn open_dir(&self, _name: &[u8]) -> io::Result<Arc<Dir>> {
        todo!()
    }

    /// Applies attributes to a member without following symlinks: owner, then mode, then times.
    /// `now` is what a stat of it says. Does nothing that `now` already satisfies.
    pub fn apply(&self, _name: &[u8], _now: &Meta, _want: &Attributes) -> io::Result<()> {
        todo!()
    }
}
