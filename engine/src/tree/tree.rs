//! A root directory held open, and safe ways from it to any directory below.

use std::io;
use std::path::Path;
use std::sync::Arc;

use suisei_protocol::flist::RelPath;

use super::{Dir, Meta};

/// What a resolution does with symlinks *below* the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Refuses every symlink that stands for a directory.
    Refuse,
    /// Follows symlinks to directories, as `-K` on a receiver and `-k` on a sender ask for.
    FollowDirs,
    /// Follows every symlink, wherever it leads (`-L` on a sender).
    FollowAll,
}

/// A directory that is held open. Shared by the roles of one end.
#[derive(Debug)]
pub struct Tree {}

impl Tree {
    /// Opens a root that the operator named: its own path is followed as the platform does.
    pub fn open(_path: &Path, _links: SymlinkPolicy) -> io::Result<Tree> {
        todo!()
    }

    /// Opens a root that the operator named, without following symlinks that belong to anyone but
    /// root and this user: they fail with ELOOP, as in stock. For destinations, temp and basis
    /// directories.
    pub fn open_trusted(_path: &Path, _links: SymlinkPolicy) -> io::Result<Tree> {
        todo!()
    }

    /// The same, making the directories that are not there, mode 0777 less the umask (`--mkpath`,
    /// backup directories).
    pub fn create(_path: &Path, _links: SymlinkPolicy) -> io::Result<Tree> {
        todo!()
    }

    /// Stands for a root that does not exist (a dry run to a new destination): nothing is in it.
    pub fn missing(_path: &Path) -> Tree {
        todo!()
    }

    /// Whether this root does not exist.
    pub fn is_missing(&self) -> bool {
        todo!()
    }

    /// Returns the directory at `path`, from the cache of open directories if it is there.
    pub fn dir(&self, _path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        todo!()
    }

    /// Returns the directory that holds the last component of `path`.
    pub fn parent(&self, _path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        todo!()
    }

    /// Drops cached directories at and below `path`. Call when a directory is removed or replaced.
    pub fn forget(&self, _path: RelPath<'_>) {
        todo!()
    }

    /// Returns the name of `path` for messages: the absolute path of the root joined with it.
    pub fn full_name(&self, _path: RelPath<'_>) -> Vec<u8> {
        todo!()
    }

    /// Returns the metadata of what is at `path` without following its last component; nothing if
    /// it, or a directory above it, does not exist.
    pub fn stat(&self, _path: RelPath<'_>) -> io::Result<Option<Meta>> {
        todo!()
    }

    /// Opens the directory at `path` as a root of its own, with its own policy.
    pub fn open_beneath(&self, _path: RelPath<'_>, _links: SymlinkPolicy) -> io::Result<Tree> {
        todo!()
    }

    /// Returns the directory at `path`, making those on the way that are not there, each below the
    /// one held before it, with `mode` less the umask.
    pub fn mkdir_path(&self, _path: RelPath<'_>, _mode: u32) -> io::Result<Arc<Dir>> {
        todo!()
    }
}
