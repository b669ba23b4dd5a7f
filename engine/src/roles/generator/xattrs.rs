//! What items say of extended attributes.
//!
//! The generator compares and asks; the receiver sets, when the item comes back to it.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#value-exchange-in-the-transfer-phase

use suisei_protocol::flist::{EntryRef, FileKind, RelPath};
use suisei_protocol::transfer::{Item, ItemFlags};

use super::place::Spot;
use super::Generator;
use crate::options::Xattrs;
use crate::tree::{Dir, HeldItem, Meta};
use crate::xattrs::{request, xattrs_differ};

impl Generator<'_> {
    /// Notes in an item whether attributes differ from those of what stands at `spot`, and asks for
    /// the long values that it lacks.
    pub(super) fn note_xattrs(
        &mut self,
        item: &mut Item,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: Option<&Spot>,
    ) {
        let there = spot.and_then(|spot| Some((spot.dir.as_deref()?, spot.meta.as_ref()?)));
        match there {
            Some((dir, meta)) => self.compare_xattrs(item, entry, Some((dir, path.name(), meta))),
            None => self.compare_xattrs(item, entry, None),
        }
    }

    /// The same for what stands under another name.
    pub(super) fn compare_xattrs(
        &mut self,
        item: &mut Item,
        entry: EntryRef<'_>,
        there: Option<(&Dir, &[u8], &Meta)>,
    ) {
        if self.ctx.options.preserve.xattrs == Xattrs::Off {
            return;
        }
        // A directory that a symlink stands for is that directory.
        let follow = entry.is_dir() && self.ctx.options.select.keep_dirlinks;
        let existing: Option<HeldItem<'_>> = there.and_then(|(dir, name, _)| dir.xattrs(name, follow).ok());
        let inode = there.map(|(_, _, meta)| (meta.dev, meta.ino));
        // The receiver may or may not have come to the first name of this inode yet.
        let was_noted = inode.is_some_and(|inode| self.noted_inodes.contains(&inode));
        if !was_noted && !xattrs_differ(self.ctx, entry, existing.as_ref()) {
            return;
        }
        if let Some((_, _, meta)) = there {
            if self.ctx.options.preserve.hard_links && meta.nlink > 1 && entry.kind() != FileKind::Directory {
                self.noted_inodes.insert((meta.dev, meta.ino));
            }
        }
        item.flags |= ItemFlags::REPORT_XATTR;
        if self.ctx.session.exchanges_xattrs(item.flags) {
            item.xattrs = request(self.ctx, entry, existing.as_ref());
        }
    }

    /// Whether attributes differ from those of what stands at `spot`.
    pub(super) fn has_other_xattrs(&self, entry: EntryRef<'_>, path: RelPath<'_>, spot: &Spot) -> bool {
        let existing = spot.dir.as_ref().and_then(|dir| dir.xattrs(path.name(), false).ok());
        xattrs_differ(self.ctx, entry, existing.as_ref())
    }
}
