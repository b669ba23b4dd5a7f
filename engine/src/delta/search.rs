//! The sender's search: which blocks of the basis does the source hold, and where.

use std::fs::File;
use std::io;

use bytes::Bytes;
use suisei_protocol::session::Session;
use suisei_protocol::transfer::{BlockIndex, BlockSignature};

use crate::options::Append;
use crate::Failure;

/// Whether the receiver writes into the basis while it reads from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasisUse {
    /// The basis stays as it is: every block can be used everywhere.
    Intact,
    /// The basis is updated in place: blocks that were overwritten cannot be used any more.
    Overwritten,
}

/// What the search found next.
#[derive(Debug)]
pub enum SearchEvent<'a> {
    /// Bytes that no block holds: 1 byte to 32 KiB.
    Literal(Bytes),
    /// A block of the basis.
    Copy {
        /// Which.
        block: BlockIndex,
        /// Its bytes, for compressors that add them to their history.
        data: &'a [u8],
    },
}

/// What a search counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Places where a weak sum was found.
    pub hash_hits: u64,
    /// Of these, strong sums that differed.
    pub false_alarms: u64,
    /// Blocks used.
    pub matches: u64,
    /// Bytes sent as they are.
    pub literal: u64,
    /// Bytes taken from the basis.
    pub matched: u64,
}

/// What a search leaves behind.
#[derive(Debug)]
pub struct Searched {
    /// Sum of the whole file, as it follows the tokens; deliberately wrong if there is a flaw.
    pub sum: Bytes,
    /// Counters.
    pub tally: Tally,
    /// Why the source could not be read to its announced end. The rest was sent as zeros.
    pub flaw: Option<io::Error>,
}

/// One file's search.
#[derive(Debug)]
pub struct Search<'a> {
    _signature: &'a BlockSignature,
}

impl<'a> Search<'a> {
    /// Prepares the search for blocks of `signature`; an empty one sends everything. With
    /// `append` (off in a redo) everything behind the basis is sent.
    pub fn new(_session: &Session, signature: &'a BlockSignature, _basis: BasisUse, _append: Append) -> Self {
        Search { _signature: signature }
    }

    /// Describes the first `len` bytes of `source` to `sink`, in order.
    pub fn run(
        self,
        _source: &File,
        _len: u64,
        _sink: &mut dyn FnMut(SearchEvent<'_>) -> Result<(), Failure>,
    ) -> Result<Searched, Failure> {
        todo!()
    }
}
