//! Which attributes an item should get, from its entry, what is there, and the options.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#7-permissions-of-new-and-updated-items

use suisei_protocol::flist::EntryRef;

use crate::context::Context;
use crate::tree::{Attributes, Meta};

/// Returns the attributes that `entry` should have at the destination. `existing` is what stood
/// there before; `made` is what stands there now (the temp file, the new directory, or the same).
pub fn wanted(_ctx: &Context, _entry: EntryRef<'_>, _existing: Option<&Meta>, _made: &Meta) -> Attributes {
    todo!()
}
