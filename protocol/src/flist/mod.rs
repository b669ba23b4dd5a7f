//! The file list: entries, segments, their order and their numbers.
//!
//! Wire: protocol/doc/10-file-list.md, protocol/doc/11-incremental-recursion.md

mod acl;
mod clean;
mod decode;
mod encode;
mod entry;
mod flags;
mod ids;
mod list;
mod name;
mod order;
mod segment;
mod xattr;

pub use acl::{Acl, NamedAccess};
pub use decode::{EntryDecoder, Listed};
pub use encode::EntryEncoder;
pub use entry::{
    EntryFlags, EntryRef, Extra, FileKind, HardLink, IdKind, IdName, IoErrors, Mode, NewEntry, OwnedEntry,
    Rdev,
};
pub(crate) use ids::{IdLists, IdRow};
pub use list::{DirNdx, FileList, Found, Ndx};
pub use name::{RelPath, RelPathBuf};
pub use order::{compare, Order};
pub use segment::{Segment, SegmentBuilder, Unconverted};
pub use xattr::{Xattr, XattrList, XattrTable, XattrValue, XATTR_WHOLE_MAX};
