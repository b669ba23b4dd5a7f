//! The receiver's assembly: literals and basis blocks become the new file.
//!
//! Reads and writes at explicit offsets, so that basis and output may be the same file.
//! Wire: protocol/doc/20-transfer.md#5-reconstruction-and-verification,
//! protocol/doc/20-transfer.md#11---inplace

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use suisei_protocol::session::{Session, Version};
use suisei_protocol::sum::FileSum;
use suisei_protocol::transfer::{BlockIndex, SumHead};

use super::sparse::{parts, Part};
use crate::options::Append;
use crate::sys::copy::punch_hole;

/// Bytes gathered before they are written.
const GATHER: usize = 256 * 1024;
/// Pieces from this length on are written as they are.
const DIRECT: usize = 64 * 1024;
/// Bytes read from the basis at once where blocks follow each other.
const READ: usize = 256 * 1024;

/// What is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A new, empty file.
    Fresh,
    /// A new file whose length was allocated in advance.
    Preallocated,
    /// The basis itself, or another file that exists: what is behind the end is cut off.
    InPlace,
    /// The same for a device, which has no holes and keeps its size.
    Device,
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
    /// The output cannot be written.
    Write(io::Error),
    /// A block was named, but there is no basis, or it has no such block.
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
    /// Literals and blocks that it was put together from.
    pub tokens: u64,
    /// Why the basis could not be read everywhere; zeros stand in its place, so the sum differs.
    pub flaw: Option<io::Error>,
}

/// A file being put together.
#[derive(Debug)]
pub struct Patch<'a> {
    version: Version,
    head: SumHead,
    basis: Option<Basis<'a>>,
    writer: Writer<'a>,
    sum: FileSum,
    literal: u64,
    matched: u64,
    tokens: u64,
    flaw: Option<io::Error>,
}

impl<'a> Patch<'a> {
    /// Starts at the beginning of `output`. `basis` may be a reference to the same
    /// [`File`]: then blocks that are where they belong are not written.
    pub fn new(
        session: &Session,
        output: &'a File,
        kind: Output,
        holes: Holes,
        basis: Option<&'a File>,
        head: SumHead,
    ) -> Self {
        Patch {
            version: session.version,
            head,
            basis: basis.map(|file| Basis::new(file, head.basis_len())),
            writer: Writer::new(output, kind, holes),
            sum: FileSum::new(session.transfer_sum, session.seed),
            literal: 0,
            matched: 0,
            tokens: 0,
            flaw: None,
        }
    }

    /// Starts behind the basis instead, as append modes do; the output is the basis. Reads what is
    /// there if the sum covers it.
    ///
    /// Wire: protocol/doc/20-transfer.md#10---whole-file---append---append-verify
    pub fn append(&mut self, append: Append) {
        let start = match append {
            Append::Off => return,
            Append::Plain | Append::Verify => self.head.basis_len(),
        };
        // Old versions know one append mode only, the verifying one.
        if append == Append::Verify || !self.version.has_plain_append() {
            let mut kept = Basis::new(self.writer.output, start);
            let mut at = 0;
            while at < start {
                let piece = (start - at).min(READ as u64) as usize;
                let (data, flaw) = kept.block(at, piece);
                self.sum.update(data);
                self.flaw = self.flaw.take().or(flaw);
                at += piece as u64;
            }
        }
        self.writer.at = start;
    }

    /// Returns the length so far, in bytes.
    pub fn len(&self) -> u64 {
        self.writer.len()
    }

    /// Whether nothing was put together yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends literal bytes.
    pub fn literal(&mut self, data: &[u8]) -> Result<(), PatchError> {
        self.sum.update(data);
        self.literal += data.len() as u64;
        self.tokens += 1;
        self.writer.write(data).map_err(PatchError::Write)
    }

    /// Appends a block of the basis and returns its bytes. In place, a block that is where it
    /// belongs stays untouched.
    pub fn copy(&mut self, block: BlockIndex) -> Result<&[u8], PatchError> {
        let Some(basis) = self.basis.as_mut().filter(|_| block.0 < self.head.count) else {
            return Err(PatchError::NoBasis);
        };
        let from = self.head.offset_of(block.0);
        let is_here = matches!(self.writer.kind, Output::InPlace | Output::Device)
            && basis.is(self.writer.output)
            && from == self.writer.len();
        let (data, flaw) = basis.block(from, self.head.len_of(block.0) as usize);
        let unread = flaw.is_some();
        self.flaw = self.flaw.take().or(flaw);
        self.sum.update(data);
        self.matched += data.len() as u64;
        self.tokens += 1;
        match is_here && !unread {
            true => self.writer.keep(data),
            false => self.writer.write(data),
        }
        .map_err(PatchError::Write)?;
        Ok(data)
    }

    /// Writes what is left, and sets the length.
    pub fn finish(mut self) -> Result<Patched, PatchError> {
        self.writer.finish().map_err(PatchError::Write)?;
        Ok(Patched {
            len: self.len(),
            sum: self.sum.finish(),
            literal: self.literal,
            matched: self.matched,
            tokens: self.tokens,
            flaw: self.flaw,
        })
    }
}

/// The basis, read ahead where blocks follow each other.
#[derive(Debug)]
struct Basis<'a> {
    file: &'a File,
    len: u64,
    start: u64,
    view: Vec<u8>,
    /// Where the next block begins if it follows the last one.
    expected: u64,
}

impl<'a> Basis<'a> {
    fn new(file: &'a File, len: u64) -> Self {
        Basis { file, len, start: 0, view: Vec::new(), expected: 0 }
    }

    fn is(&self, output: &File) -> bool {
        std::ptr::eq(self.file, output)
    }

    /// Returns `len` bytes from offset `at`; what cannot be read is zero, and why is told.
    fn block(&mut self, at: u64, len: usize) -> (&[u8], Option<io::Error>) {
        let in_view = at
            .checked_sub(self.start)
            .map(|from| from as usize)
            .filter(|&from| from + len <= self.view.len());
        let mut flaw = None;
        let from = match in_view {
            Some(from) => from,
            None => {
                flaw = self.read(at, len);
                0
            }
        };
        self.expected = at + len as u64;
        (&self.view[from..from + len], flaw)
    }

    fn read(&mut self, at: u64, len: usize) -> Option<io::Error> {
        let ahead = if at == self.expected { READ } else { 0 };
        let wanted = len.max(self.len.saturating_sub(at).min(ahead as u64) as usize);
        self.view.resize(wanted, 0);
        self.start = at;
        let mut filled = 0;
        let flaw = loop {
            match self.file.read_at(&mut self.view[filled..], at + filled as u64) {
                Ok(0) if filled < len => break Some(io::ErrorKind::UnexpectedEof.into()),
                Ok(0) => break None,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled < len => break Some(error),
                Err(_) => break None,
            }
        };
        self.view.truncate(filled);
        if filled < len {
            self.view.resize(len, 0);
        }
        flaw
    }
}

/// The output, written in large pieces.
#[derive(Debug)]
struct Writer<'a> {
    output: &'a File,
    kind: Output,
    holes: Holes,
    /// Offset of the first gathered byte.
    at: u64,
    gathered: Vec<u8>,
    /// The file may end before what was put together does.
    ends_in_hole: bool,
}

impl<'a> Writer<'a> {
    fn new(output: &'a File, kind: Output, holes: Holes) -> Self {
        let holes = if kind == Output::Device { Holes::Fill } else { holes };
        Writer { output, kind, holes, at: 0, gathered: Vec::new(), ends_in_hole: false }
    }

    fn len(&self) -> u64 {
        self.at + self.gathered.len() as u64
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        if self.gathered.len() + data.len() > GATHER {
            self.flush()?;
        }
        if data.len() >= DIRECT {
            self.flush()?;
            self.put(data)
        } else {
            self.gathered.extend_from_slice(data);
            Ok(())
        }
    }

    /// Leaves bytes that are already in place, except that zeros may become holes.
    fn keep(&mut self, data: &[u8]) -> io::Result<()> {
        self.flush()?;
        if self.holes == Holes::Make {
            for part in parts(data) {
                if let Part::Hole(range) = part {
                    punch_hole(self.output, self.at + range.start as u64, range.len() as u64)?;
                }
            }
        }
        self.at += data.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        self.put(&gathered)?;
        gathered.clear();
        self.gathered = gathered;
        Ok(())
    }

    fn put(&mut self, data: &[u8]) -> io::Result<()> {
        match self.holes {
            Holes::Fill => self.output.write_all_at(data, self.at)?,
            Holes::Make => {
                for part in parts(data) {
                    self.put_part(data, part)?;
                }
            }
        }
        self.at += data.len() as u64;
        Ok(())
    }

    fn put_part(&mut self, data: &[u8], part: Part) -> io::Result<()> {
        match part {
            Part::Data(range) => {
                self.ends_in_hole = false;
                self.output.write_all_at(&data[range.clone()], self.at + range.start as u64)
            }
            Part::Hole(range) => {
                self.ends_in_hole = true;
                match self.kind {
                    Output::Fresh | Output::Device => Ok(()),
                    Output::Preallocated | Output::InPlace => {
                        punch_hole(self.output, self.at + range.start as u64, range.len() as u64)
                    }
                }
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        match self.kind {
            Output::Device => Ok(()),
            Output::Fresh if !self.ends_in_hole => Ok(()),
            _ => self.output.set_len(self.at),
        }
    }
}

#[cfg(test)]
mod tests;
