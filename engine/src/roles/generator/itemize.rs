//! Item flags: what differs about an entry, and whether that is worth a message.
//!
//! Wire: protocol/doc/20-transfer.md#23-how-each-bit-is-computed-by-the-generator

use suisei_protocol::flist::EntryRef;
use suisei_protocol::transfer::{Item, ItemFlags};

use crate::options::ItemDetail;
use crate::roles::attributes::{differs, keeps_time};
use crate::tree::Meta;
use crate::Context;

/// Returns the item of an action on an entry. `existing` is what stood there before, if it is of
/// the entry's kind.
pub fn item(ctx: &Context, entry: EntryRef<'_>, existing: Option<&Meta>, action: ItemFlags) -> Item {
    Item::new(flags(ctx, entry, existing, action, false))
}

/// Returns the item of a hard link to `leader`; nothing means that the two are one already.
pub fn linked(ctx: &Context, entry: EntryRef<'_>, existing: Option<&Meta>, leader: Option<&[u8]>) -> Item {
    let action = ItemFlags::LOCAL_CHANGE | ItemFlags::XNAME_FOLLOWS;
    let flags = flags(ctx, entry, existing, action, leader.is_none());
    Item { xname: Some(leader.unwrap_or_default().into()), ..Item::new(flags) }
}

fn flags(
    ctx: &Context,
    entry: EntryRef<'_>,
    existing: Option<&Meta>,
    action: ItemFlags,
    linked_already: bool,
) -> ItemFlags {
    let Some(existing) = existing else { return action | ItemFlags::IS_NEW };
    let mut flags = action | differs(ctx, entry, existing);
    if entry.is_regular() && entry.size() != existing.size {
        flags |= ItemFlags::REPORT_SIZE;
    }
    let changes = action.intersects(ItemFlags::TRANSFER | ItemFlags::LOCAL_CHANGE) && !linked_already;
    if changes && !keeps_time(ctx, entry) {
        flags |= ItemFlags::REPORT_TIME;
    }
    flags
}

/// Whether an item without data is worth a message to the sender.
///
/// Wire: protocol/doc/20-transfer.md#22-iflags-bits
pub fn is_worth_sending(ctx: &Context, item: &Item) -> bool {
    let report = &ctx.options.report;
    !item.flags.significant().is_empty()
        || item.xname.as_ref().is_some_and(|name| !name.is_empty())
        || report.items == ItemDetail::All
        || report.up_to_date
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use suisei_protocol::flist::{EntryFlags, Extra, Mode, Ndx, NewEntry, Rdev, Segment, SegmentBuilder};
    use suisei_protocol::session::Recursion;

    use super::*;
    use crate::options::Preserve;
    use crate::source::tests as support;
    use crate::TransferOptions;

    fn ctx(preserve: Preserve) -> Context {
        let options = TransferOptions { preserve, ..TransferOptions::default() };
        support::context(support::session(32, Recursion::Whole), options).0
    }

    fn entry(mode: u32) -> Arc<Segment> {
        let mut builder = SegmentBuilder::new(Ndx(0), None);
        let entry = NewEntry {
            path: b"x",
            mode: Mode(mode),
            size: 10,
            mtime: 1000,
            mtime_nsec: 0,
            uid: 0,
            gid: 0,
            flags: EntryFlags::empty(),
        };
        builder.push(entry, Extra::default()).unwrap();
        Arc::new(builder.finish())
    }

    fn meta(mode: u32, size: u64, mtime: i64) -> Meta {
        Meta {
            mode: Mode(mode),
            size,
            mtime,
            mtime_nsec: 0,
            atime: 0,
            atime_nsec: 0,
            uid: 0,
            gid: 0,
            rdev: Rdev::default(),
            dev: 1,
            ino: 1,
            nlink: 1,
        }
    }

    fn bits(ctx: &Context, mode: u32, existing: Option<Meta>, action: ItemFlags) -> u16 {
        item(ctx, entry(mode).get(0).unwrap(), existing.as_ref(), action).flags.bits()
    }

    /// The values of the table of combinations seen on the wire.
    #[test]
    fn captured_combinations() {
        let times = Preserve { times: true, perms: true, ..Preserve::default() };
        let (kept, bare) = (ctx(times), ctx(Preserve::default()));
        let file = 0o100_644;
        let made = ItemFlags::LOCAL_CHANGE;
        assert_eq!(bits(&kept, file, None, ItemFlags::TRANSFER), 0xA000);
        assert_eq!(bits(&kept, file, Some(meta(file, 12, 900)), ItemFlags::TRANSFER), 0x800C);
        assert_eq!(bits(&bare, file, Some(meta(file, 10, 900)), ItemFlags::TRANSFER), 0x8008);
        assert_eq!(bits(&kept, file, Some(meta(0o100_600, 10, 1000)), ItemFlags::empty()), 0x0010);
        assert_eq!(bits(&kept, 0o040_755, None, made), 0x6000);
        assert_eq!(bits(&kept, 0o120_777, None, made | ItemFlags::REPORT_CHANGE), 0x6002);
        let link = meta(0o120_777, 3, 1000);
        assert_eq!(bits(&kept, 0o120_777, Some(link), made | ItemFlags::REPORT_CHANGE), 0x4002);
        assert_eq!(bits(&bare, 0o120_777, Some(link), made | ItemFlags::REPORT_CHANGE), 0x400A);
        assert_eq!(bits(&bare, 0o040_755, Some(meta(0o040_700, 0, 5)), ItemFlags::empty()), 0);
    }

    #[test]
    fn a_link_that_is_right_already_claims_no_time() {
        let bare = ctx(Preserve::default());
        let segment = entry(0o100_644);
        let entry = segment.get(0).unwrap();
        let there = meta(0o100_644, 10, 5);
        let right = linked(&bare, entry, Some(&there), None);
        assert_eq!((right.flags.bits(), right.xname.as_deref()), (0x5000, Some(&b""[..])));
        let made = linked(&bare, entry, None, Some(b"a"));
        assert_eq!((made.flags.bits(), made.xname.as_deref()), (0x7000, Some(&b"a"[..])));
        assert_eq!(linked(&bare, entry, Some(&there), Some(b"a")).flags.bits(), 0x5008);
        assert!(!is_worth_sending(&bare, &right) && is_worth_sending(&bare, &made));
    }

    #[test]
    fn unchanged_items_are_sent_only_to_who_asked() {
        let mut ctx = ctx(Preserve::default());
        let unchanged = Item::new(ItemFlags::empty());
        assert!(!is_worth_sending(&ctx, &unchanged));
        ctx.options.report.up_to_date = true;
        assert!(is_worth_sending(&ctx, &unchanged));
        ctx.options.report.up_to_date = false;
        ctx.options.report.items = ItemDetail::All;
        assert!(is_worth_sending(&ctx, &unchanged));
    }
}
