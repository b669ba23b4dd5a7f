//! Which attributes an item should get, from its entry, what is there, and the options.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#7-permissions-of-new-and-updated-items

use suisei_protocol::flist::EntryRef;
use suisei_protocol::transfer::ItemFlags;

use crate::context::Context;
use crate::tree::{Attributes, Meta};

/// Returns the attributes that `entry` should have at the destination. `existing` is what stood
/// there before; `made` is what stands there now (the temp file, the new directory, or the same).
pub fn wanted(_ctx: &Context, _entry: EntryRef<'_>, _existing: Option<&Meta>, _made: &Meta) -> Attributes {
    todo!()
}

/// Returns which preserved attributes of `meta` differ from those of `entry`: the REPORT bits for
/// times, permissions, owner and group. Size, content and "will be now" are the caller's.
///
/// Wire: protocol/doc/20-transfer.md#23-how-each-bit-is-computed-by-the-generator
pub fn differs(_ctx: &Context, _entry: EntryRef<'_>, _meta: &Meta) -> ItemFlags {
    todo!()
}

/// Whether the modification times are equal under `--modify-window`: 0 compares seconds, negative
/// nanoseconds too, and W above 0 allows W seconds of difference.
///
/// Wire: protocol/doc/20-transfer.md#7-does-the-file-need-an-update-quick-check-and-gates
pub fn same_time(_entry: EntryRef<'_>, _meta: &Meta, _window: i32) -> bool {
    todo!()
}

/// Whether the modification time of this kind of entry is kept: `-t`, without `-O` for directories
/// and without `-J` for symlinks.
pub fn keeps_time(_ctx: &Context, _entry: EntryRef<'_>) -> bool {
    todo!()
}
