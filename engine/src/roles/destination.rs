//! What the destination argument means, once the first list is known.
//!
//! Wire: protocol/doc/20-transfer.md#17-destination-argument

use std::sync::Arc;

use suisei_protocol::flist::{EntryRef, RelPath, RelPathBuf};

use crate::tree::Tree;

/// Where entries go.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The directory that receives.
    pub tree: Arc<Tree>,
    /// Single-file mode: the one entry's name there.
    pub rename: Option<RelPathBuf>,
}

impl Destination {
    /// Returns the path of an entry below the tree.
    pub fn path<'a>(&'a self, entry: EntryRef<'a>) -> RelPath<'a> {
        match &self.rename {
            Some(name) => name.as_path(),
            None => entry.path(),
        }
    }
}
