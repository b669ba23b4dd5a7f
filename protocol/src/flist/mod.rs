//! The file list: entries, segments, their order and their numbers.
//!
//! Wire: protocol/doc/10-file-list.md, protocol/doc/11-incremental-recursion.md

mod entry;
mod hardlink;
mod list;
mod name;
mod order;
mod segment;

pub use entry::{EntryFlags, EntryRef, Extra, FileKind, HardLink, IdKind, IdName, IoErrors, Mode, NewEntry, OwnedEntry, Rdev};
pub use hardlink::HardLinkGroups;
pub use list::{DirNdx, FileList, Ndx};
pub use name::{RelPath, RelPathBuf};
pub use order::{compare, Order};
pub use segment::{Segment, SegmentBuilder};
