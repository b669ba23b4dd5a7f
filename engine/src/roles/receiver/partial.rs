//! The partial directory: where it is for a path, and how it comes and goes.
//!
//! Wire: protocol/doc/20-transfer.md#12-partial-files

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice;
use suisei_protocol::flist::{FileKind, RelPath, RelPathBuf};

use crate::options::Partial;
use crate::roles::destination::Destination;
use crate::tree::{Absent, Dir, Trust};
use crate::Context;

/// Mode of a partial directory.
const MODE: u32 = 0o700;

/// The partial directories of a run. Shared words for generator and receiver.
#[derive(Debug)]
pub struct Partials<'a> {
    destination: &'a Destination,
    /// `--partial-dir`, if there is one.
    dir: Option<&'a [u8]>,
    trust: &'a Trust,
    /// An absolute one, once it was opened.
    absolute: Mutex<Option<Arc<Dir>>>,
}

impl<'a> Partials<'a> {
    /// Looks up the options.
    pub fn new(ctx: &'a Context, destination: &'a Destination) -> Self {
        let dir = match &ctx.options.place.partial {
            Partial::Dir(dir) => Some(dir.as_slice()),
            Partial::Keep | Partial::Discard => None,
        };
        Partials { destination, dir, trust: &ctx.options.trust, absolute: Mutex::default() }
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
            None => self.absolute(Absent::Refuse).ok(),
        }
    }

    /// Returns the partial directory of `path`, making it; what stands in its way and is no
    /// directory is removed.
    pub fn make(&self, path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        let Some(relative) = self.relative(path) else { return self.absolute(Absent::Make) };
        let relative = relative.as_path();
        let tree = &self.destination.tree;
        let parent = tree.mkdir_path(relative.parent(), 0o777)?;
        make_in(&parent, relative.name())?;
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

    /// Opens an absolute partial directory.
    fn absolute(&self, absent: Absent) -> io::Result<Arc<Dir>> {
        let dir = self.dir.filter(|dir| dir.starts_with(b"/")).ok_or(io::ErrorKind::NotFound)?;
        let mut held = self.absolute.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = &*held {
            return Ok(dir.clone());
        }
        let dir = dir.trim_end_with(|c| c == '/');
        let name = dir.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        let above = self.destination.tree.open_named(&dir[..name], Absent::Refuse, self.trust)?;
        if absent == Absent::Make {
            make_in(above.root(), &dir[name..])?;
        }
        Ok(held.insert(above.root().open_dir(&dir[name..])?).clone())
    }
}

/// Makes a partial directory; what stands in its way and is no directory is removed.
fn make_in(parent: &Dir, name: &[u8]) -> io::Result<()> {
    match parent.stat(name)? {
        Some(meta) if meta.kind() == FileKind::Directory => return Ok(()),
        Some(_) => parent.unlink(name)?,
        None => {}
    }
    parent.mkdir(name, MODE)
}
