//! The partial directory: where it is for a path, and how it comes and goes.
//!
//! Wire: protocol/doc/20-transfer.md#12-partial-files

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice;
use suisei_protocol::flist::{FileKind, RelPath, RelPathBuf};

use crate::options::Partial;
use crate::roles::destination::Destination;
use crate::tree::{Dir, SymlinkPolicy, Tree};
use crate::Context;

/// Mode of a partial directory.
const MODE: u32 = 0o700;

/// The partial directories of a run. Shared words for generator and receiver.
#[derive(Debug)]
pub struct Partials<'a> {
    destination: &'a Destination,
    /// `--partial-dir`, if there is one.
    dir: Option<&'a [u8]>,
    /// The tree of an absolute one, once it was opened.
    absolute: Mutex<Option<Arc<Tree>>>,
}

impl<'a> Partials<'a> {
    /// Looks up the options.
    pub fn new(ctx: &'a Context, destination: &'a Destination) -> Self {
        let dir = match &ctx.options.place.partial {
            Partial::Dir(dir) => Some(dir.as_slice()),
            Partial::Keep | Partial::Discard => None,
        };
        Partials { destination, dir, absolute: Mutex::default() }
    }

    /// Whether there is a partial directory for each directory.
    pub fn is_relative(&self) -> bool {
        self.dir.is_some_and(|dir| !dir.starts_with(b"/"))
    }

    /// Returns the path of the partial directory of `path`, below the destination.
    fn relative(&self, path: RelPath<'_>) -> Option<RelPathBuf> {
        let dir = self.dir.filter(|dir| !dir.starts_with(b"/"))?;
        Some(path.parent().join(dir.trim_end_with(|c| c == '/')))
    }

    /// Returns the name of the partial file of `path`, as the options name it.
    pub fn named(&self, path: RelPath<'_>) -> Vec<u8> {
        match (self.relative(path), self.dir) {
            (Some(dir), _) => dir.as_path().join(path.name()).into_bytes(),
            (None, Some(dir)) => [dir, b"/".as_slice(), path.name()].concat(),
            (None, None) => path.as_bytes().to_vec(),
        }
    }

    /// Returns the partial directory of `path` if it exists.
    pub fn existing(&self, path: RelPath<'_>) -> Option<Arc<Dir>> {
        match self.relative(path) {
            Some(dir) => self.destination.tree.dir(dir.as_path()).ok(),
            None => self.absolute(false)?.dir(RelPath::ROOT).ok(),
        }
    }

    /// Returns the partial directory of `path`, making it; what stands in its way and is no
    /// directory is removed.
    pub fn make(&self, path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        let Some(relative) = self.relative(path) else {
            let tree = self.absolute(true).ok_or(io::ErrorKind::NotFound)?;
            return tree.dir(RelPath::ROOT);
        };
        let relative = relative.as_path();
        let tree = &self.destination.tree;
        let parent = tree.mkdir_path(relative.parent(), 0o777)?;
        match parent.stat(relative.name())? {
            Some(meta) if meta.kind() == FileKind::Directory => {}
            Some(_) => {
                parent.unlink(relative.name())?;
                parent.mkdir(relative.name(), MODE)?;
            }
            None => parent.mkdir(relative.name(), MODE)?,
        }
        tree.dir(relative)
    }

    /// Removes the partial file of `path`, and its directory if that is empty then.
    pub fn clear(&self, path: RelPath<'_>) {
        if let Some(dir) = self.existing(path) {
            // A leftover that cannot be removed is only a leftover.
            let _ = dir.unlink(path.name());
        }
        self.remove_dir(path);
    }

    /// Removes the partial directory of `path` if it is relative and empty.
    pub fn remove_dir(&self, path: RelPath<'_>) {
        let Some(relative) = self.relative(path) else { return };
        let relative = relative.as_path();
        let tree = &self.destination.tree;
        if let Ok(parent) = tree.parent(relative) {
            if parent.rmdir(relative.name()).is_ok() {
                tree.forget(relative);
            }
        }
    }

    fn absolute(&self, make: bool) -> Option<Arc<Tree>> {
        let dir = self.dir.filter(|dir| dir.starts_with(b"/"))?;
        let path = Path::new(OsStr::from_bytes(dir));
        let mut held = self.absolute.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            let opened = Tree::open_trusted(path, SymlinkPolicy::Refuse);
            let opened =
                if opened.is_err() && make { Tree::create(path, SymlinkPolicy::Refuse) } else { opened };
            *held = opened.ok().map(|tree| Arc::new(tree.keeping(self.destination.tree.privileges())));
        }
        held.clone()
    }
}
