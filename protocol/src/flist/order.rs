//! The order of a file list, on which both ends must agree exactly.
//!
//! Wire: protocol/doc/10-file-list.md#9-numbering-sorting-duplicates

use std::cmp::Ordering;

use super::EntryRef;
use crate::session::Version;

/// Which order gives the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From 29 on: in each directory the files first, then each directory with its content.
    DirectoriesLast,
    /// Below 29: plain order of the joined paths.
    Plain,
    /// With `--iconv`: the order of transmission.
    AsSent,
}

impl Order {
    /// Returns the order that a version sorts by.
    pub fn of(version: Version) -> Order {
        if version.sorts_directories_last() {
            Order::DirectoriesLast
        } else {
            Order::Plain
        }
    }
}

/// Compares two entries; equal means that they are duplicates of one name.
pub fn compare(_a: EntryRef<'_>, _b: EntryRef<'_>, _order: Order) -> Ordering {
    todo!()
}
