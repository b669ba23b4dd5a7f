//! A temp file beside its target: placed by rename, or gone.

use std::fs::File;
use std::io;

use super::{Attributes, Dir, Meta};

/// A temp file. Dropping it removes it.
#[derive(Debug)]
pub struct TempFile {}

impl TempFile {
    /// Returns the open file, for reading and writing.
    pub fn file(&mut self) -> &mut File {
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

    /// Renames the file over `name` in `dir`.
    pub fn place(self, _dir: &Dir, _name: &[u8]) -> io::Result<()> {
        todo!()
    }
}
