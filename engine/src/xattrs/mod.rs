//! Extended attributes between the file list and the disk: which names travel and under what name
//! they are stored, what differs, and what is set.
//!
//! ```text
//! sender      read: disk -> list of an entry;  answer: numbers -> values
//! generator   xattrs_differ, request: which long values are wanted
//! receiver    keep: values that arrived;  apply: list -> disk
//! ```
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#3-extended-attributes--x-p30

mod apply;
mod compare;
mod names;
mod read;
mod store;

pub use apply::{apply, Target};
pub use compare::{request, xattrs_differ};
pub(crate) use read::{answer, Answered};
pub(crate) use read::{read, Unreadable};
pub use store::Store;

use suisei_protocol::filter::{Rule, RuleFlags};
use suisei_protocol::flist::RelPath;

use crate::filter::{Chain, FilterSide};
use crate::options::Select;

/// The rules for names of attributes, by side; nothing where there are none.
#[derive(Debug, Default)]
pub struct XattrFilters {
    sender: Option<Chain>,
    receiver: Option<Chain>,
}

impl XattrFilters {
    /// Picks the rules for attributes out of all rules of this end.
    pub fn new(select: &Select, delete_excluded: bool) -> Self {
        let is_ours = |rule: &Rule| rule.flags.contains(RuleFlags::XATTR);
        if !select.filters.iter().any(is_ours) {
            return XattrFilters::default();
        }
        let chain = |side| Some(Chain::of_xattrs(&select.filters, side, delete_excluded));
        XattrFilters { sender: chain(FilterSide::Sender), receiver: chain(FilterSide::Receiver) }
    }

    /// Whether the rules exclude a name; nothing if there are no rules at all.
    fn excludes(&self, side: FilterSide, name: &[u8]) -> Option<bool> {
        let chain = match side {
            FilterSide::Sender => self.sender.as_ref(),
            FilterSide::Receiver => self.receiver.as_ref(),
        };
        chain.map(|chain| chain.verdict(RelPath::new(name), false).is_excluded())
    }
}
