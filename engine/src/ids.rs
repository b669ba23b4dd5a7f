//! The sender's user and group ids in ours.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#1-owner-and-group-mapping-receiving-side-only

use suisei_protocol::flist::IdName;

/// Maps the sender's ids, each once, with the answer cached. Shared by generator and receiver.
#[derive(Debug, Default)]
pub struct IdMap {}

/// What to do with a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedGroup {
    /// The local number.
    pub gid: u32,
    /// Whether this process may give a file to that group.
    pub settable: bool,
}

impl IdMap {
    /// Starts with an empty cache. `numeric`: `--numeric-ids`. `root`: the process may chown.
    pub fn new(_numeric: bool, _root: bool) -> Self {
        todo!()
    }

    /// Learns the sender's names; the first name of an id counts.
    pub fn learn(&self, _names: &[IdName]) {
        todo!()
    }

    /// Maps a user.
    pub fn uid(&self, _sender: u32) -> u32 {
        todo!()
    }

    /// Maps a group.
    pub fn gid(&self, _sender: u32) -> MappedGroup {
        todo!()
    }
}
