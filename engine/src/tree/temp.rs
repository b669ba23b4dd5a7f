//! A temp file beside its target: placed by rename, or gone.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{Attributes, Dir, Meta};

/// A temp file. Dropping it removes it.
#[derive(Debug)]
pub struct TempFile {}

impl TempFile {
    /// Returns the open file, for reading and writing.
    pub fn file(&mut self) -> &mut File {
        todo!()
    }

    /// Borrows the open file, for positioned reads and for system calls on it.
    pub fn as_file(&self) -> &File {
        todo!()
    }

    /// Returns the directory that holds the temp file.
    pub fn dir(&self) -> &Arc<Dir> {
        todo!()
    }

    /// Returns the name of the temp file.
    pub fn name(&self) -> &[u8] {
        todo!()
    }

    /// Applies attributes through the open descriptor.
    pub fn apply(&self, _now: &Meta, _want: &Attributes) -> io::Result<()> {
        todo!()
    }

    /// Returns the metadata of the open file.
    pub fn meta(&self) -> io::Result<Meta> {
        todo!()
    }

    /// Renames the file over `name` in `dir`. Where that is another file system, the file is copied
    /// into a temp file there first, with its attributes.
    pub fn place(self, _dir: &Dir, _name: &[u8]) -> io::Result<()> {
        todo!()
    }
}
