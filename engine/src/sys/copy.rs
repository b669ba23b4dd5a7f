//! Moving content between open files inside the kernel where it can, and room for it.

use std::fs::File;
use std::io;

/// What a copy does with holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Holes of the source may become zeros.
    Fill,
    /// Holes of the source stay holes.
    Keep,
}

/// Copies `length` bytes, or what there is of them, from the start of `from` to the start of the
/// empty file `to`: clone, `copy_file_range`, then a loop. Returns the bytes copied; `to` ends
/// there. Positions of both files are undefined afterwards.
pub fn copy_contents(_from: &File, _to: &File, _length: u64, _holes: Holes) -> io::Result<u64> {
    todo!()
}

/// Allocates the first `length` bytes of a file without changing its size. Unsupported file
/// systems fail with `Unsupported`.
pub fn preallocate(_file: &File, _length: u64) -> io::Result<()> {
    todo!()
}

/// Turns a range of a file into a hole that reads as zeros; writes zeros where holes do not exist.
pub fn punch_hole(_file: &File, _offset: u64, _length: u64) -> io::Result<()> {
    todo!()
}
