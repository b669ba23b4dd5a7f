//! Filters: the rule language, patterns, and what decides about one name.
//!
//! Wire: protocol/doc/13-filters.md

use suisei_protocol::filter::Rule;
use suisei_protocol::flist::RelPath;

use crate::tree::Tree;

/// Which side of the transfer asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterSide {
    /// The sender: does a name exist for the transfer?
    Sender,
    /// The receiving side: is a local name protected from deletion?
    Receiver,
}

/// What a chain says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No rule matched: included.
    NoMatch,
    /// This rule includes it.
    Included(&'a Rule),
    /// This rule excludes it (hides it on a sender, protects it on a receiver).
    Excluded(&'a Rule),
}

impl Verdict<'_> {
    /// Whether the name is excluded.
    pub fn is_excluded(&self) -> bool {
        matches!(self, Verdict::Excluded(_))
    }
}

/// The rules of one side, with the per-directory merge files of the current directory.
#[derive(Debug)]
pub struct Chain {}

impl Chain {
    /// Starts at the root of a transfer. `delete_excluded` makes side-less rules sender-only.
    pub fn new(_rules: &[Rule], _side: FilterSide, _delete_excluded: bool) -> Self {
        todo!()
    }

    /// Makes `dir` the current directory: leaves directories that do not hold it, and reads its
    /// merge files (and those of entered parents) from `tree`. Directories are entered in
    /// pre-order. Unreadable merge files are errors of the caller to report; missing ones are not.
    pub fn enter(&mut self, _tree: &Tree, _dir: RelPath<'_>) -> std::io::Result<()> {
        todo!()
    }

    /// Judges a name in (or below) the current directory.
    pub fn verdict(&self, _path: RelPath<'_>, _is_dir: bool) -> Verdict<'_> {
        todo!()
    }

    /// The same while a directory is being deleted: perishable rules do not count.
    pub fn verdict_in_deletion(&self, _path: RelPath<'_>, _is_dir: bool) -> Verdict<'_> {
        todo!()
    }
}
