//! The receiver's assembly: literals and basis blocks become the new file.

use std::fs::File;
use std::io;

use bytes::Bytes;
use suisei_protocol::session::Session;
use suisei_protocol::transfer::{BlockIndex, SumHead};

use crate::options::Append;

/// What is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A new, empty file.
    Fresh,
    /// A new file whose length was allocated in advance.
    Preallocated,
    /// The basis itself, or another file that exists: what is behind the end is cut off.
    InPlace,
}

/// Whether runs of zeros become holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Zeros are written.
    Fill,
    /// `-S`: zeros are skipped, or punched out in place.
    Make,
}

/// Why a file cannot be put together.
#[derive(Debug)]
pub enum PatchError {
    /// The output cannot be written: the reason and the offset.
    Write(io::Error),
    /// A block was named, but there is no basis.
    NoBasis,
}

/// A file put together.
#[derive(Debug)]
pub struct Patched {
    /// Sum of what was put together, to compare with the sender's.
    pub sum: Bytes,
    /// Length in bytes.
    pub len: u64,
    /// Bytes that came as literals.
    pub literal: u64,
    /// Bytes that came from the basis.
    pub matched: u64,
    /// Why the basis could not be read everywhere; zeros stand in its place, so the sum differs.
    pub flaw: Option<io::Error>,
}

/// A file being put together.
#[derive(Debug)]
pub struct Patch<'a> {
    _output: &'a File,
}

impl<'a> Patch<'a> {
    /// Starts at the beginning of `output`. `basis` may be the same open file.
    pub fn new(
        _session: &Session,
        output: &'a File,
        _kind: Output,
        _holes: Holes,
        _basis: Option<&'a File>,
        _head: SumHead,
    ) -> Self {
        Patch { _output: output }
    }

    /// Starts behind the basis instead, as append modes do. Reads what is there if the sum covers it.
    pub fn append(&mut self, _append: Append) -> io::Result<()> {
        todo!()
    }

    /// Returns the length so far.
    pub fn len(&self) -> u64 {
        todo!()
    }

    /// Appends literal bytes.
    pub fn literal(&mut self, _data: &[u8]) -> Result<(), PatchError> {
        todo!()
    }

    /// Appends a block of the basis and returns its bytes.
    pub fn copy(&mut self, _block: BlockIndex) -> Result<&[u8], PatchError> {
        todo!()
    }

    /// Writes what is left, and sets the length.
    pub fn finish(self) -> Result<Patched, PatchError> {
        todo!()
    }
}
