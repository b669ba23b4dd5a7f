//! A sender's hard-link groups: from device and inode to the number of the first member.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h

use std::collections::HashMap;

use super::HardLink;

/// The groups of a run; they outlive its segments.
#[derive(Debug, Default)]
pub struct HardLinkGroups {
    first: HashMap<(i64, i64), i32>,
}

impl HardLinkGroups {
    /// Starts without groups.
    pub fn new() -> Self {
        HardLinkGroups::default()
    }

    /// Returns the group of an inode, which `number` founds if it is the first member.
    pub fn number(&mut self, dev: i64, ino: i64, number: i32) -> HardLink {
        let group = *self.first.entry((dev, ino)).or_insert(number);
        HardLink::Group { group, first: group == number }
    }
}
