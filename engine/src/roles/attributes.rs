//! Which attributes an item should get, from its entry, what is there, and the options.
//!
//! What is not preserved is left alone: a new item has what its creation gave it, an existing one
//! keeps what it has.
//! Wire: protocol/doc/24-environment-and-exit.md#7-permissions-of-new-and-updated-items

use suisei_protocol::flist::{EntryFlags, EntryRef, FileKind};
use suisei_protocol::transfer::ItemFlags;

use super::acls;
use crate::context::Context;
use crate::options::Preserve;
use crate::sys::users;
use crate::tree::{Attributes, Dir, Meta, Times};

/// Returns the attributes that `entry` should have at the destination. `existing` is what stood
/// there before; `made` is what stands there now (the temp file, the new directory, or the same);
/// `parent` is the directory that holds it.
pub fn wanted(
    ctx: &Context,
    entry: EntryRef<'_>,
    existing: Option<&Meta>,
    made: &Meta,
    parent: Option<&Dir>,
) -> Attributes {
    let preserve = &ctx.options.preserve;
    let mask = || parent.map_or_else(users::umask, acls::creation_mask);
    Attributes {
        uid: (preserve.owner && preserve.super_user).then(|| ctx.ids.uid(entry.uid())),
        gid: group(ctx, entry),
        permissions: permissions(preserve, entry, existing, made, mask),
        times: times(ctx, entry, existing, made),
        acls: acls::wanted(ctx, entry),
    }
}

/// Returns which preserved attributes of `meta` differ from those of `entry`: the REPORT bits for
/// times, permissions, owner and group. Size, content and "will be now" are the caller's.
///
/// Wire: protocol/doc/20-transfer.md#23-how-each-bit-is-computed-by-the-generator
pub fn differs(ctx: &Context, entry: EntryRef<'_>, meta: &Meta) -> ItemFlags {
    let preserve = &ctx.options.preserve;
    let mut flags = ItemFlags::empty();
    let kept_time = keeps_time(ctx, entry);
    flags
        .set(ItemFlags::REPORT_TIME, kept_time && !same_time(entry, meta, ctx.options.compare.modify_window));
    let has_atime = preserve.atimes && !matches!(entry.kind(), FileKind::Directory | FileKind::Symlink);
    flags.set(ItemFlags::REPORT_ATIME, has_atime && entry.atime().is_some_and(|atime| atime != meta.atime));
    flags.set(ItemFlags::REPORT_PERMS, permissions_differ(preserve, entry, meta));
    let has_owner = preserve.owner && preserve.super_user;
    flags.set(ItemFlags::REPORT_OWNER, has_owner && ctx.ids.uid(entry.uid()) != meta.uid);
    flags.set(ItemFlags::REPORT_GROUP, group(ctx, entry).is_some_and(|gid| gid != meta.gid));
    flags
}

/// Whether the modification times are equal under `--modify-window`: 0 compares seconds, negative
/// nanoseconds too, and W above 0 allows W seconds of difference.
///
/// Wire: protocol/doc/20-transfer.md#7-does-the-file-need-an-update-quick-check-and-gates
pub fn same_time(entry: EntryRef<'_>, meta: &Meta, window: i32) -> bool {
    same_instant((entry.mtime(), entry.mtime_nsec()), (meta.mtime, meta.mtime_nsec), window)
}

/// The same for two instants: seconds and nanoseconds.
pub fn same_instant(a: (i64, u32), b: (i64, u32), window: i32) -> bool {
    match u64::try_from(window) {
        Ok(window) => a.0.abs_diff(b.0) <= window,
        Err(_) => a == b,
    }
}

/// Whether the modification time of this kind of entry is kept: `-t`, without `-O` for directories
/// and without `-J` for symlinks.
pub fn keeps_time(ctx: &Context, entry: EntryRef<'_>) -> bool {
    let preserve = &ctx.options.preserve;
    preserve.times
        && match entry.kind() {
            FileKind::Directory => !preserve.omit_dir_times,
            FileKind::Symlink => !preserve.omit_link_times,
            _ => true,
        }
}

/// Returns the group to set, if it is kept and this process may.
fn group(ctx: &Context, entry: EntryRef<'_>) -> Option<u32> {
    if !ctx.options.preserve.group || entry.flags().contains(EntryFlags::SKIP_GROUP) {
        return None;
    }
    let mapped = ctx.ids.gid(entry.gid());
    mapped.settable.then_some(mapped.gid)
}

/// Returns the permission bits to set; nothing for symlinks.
fn permissions(
    preserve: &Preserve,
    entry: EntryRef<'_>,
    existing: Option<&Meta>,
    made: &Meta,
    mask: impl FnOnce() -> u32,
) -> Option<u32> {
    let source = entry.mode().permissions();
    // What had another type was removed: the item is new.
    let existing = existing.filter(|existing| existing.kind() == entry.kind());
    match (entry.kind(), existing) {
        (FileKind::Symlink | FileKind::Missing, _) => None,
        _ if preserve.perms => Some(source),
        (FileKind::Regular, Some(existing)) if preserve.executability => {
            Some(with_executability(source, existing.mode.permissions()))
        }
        (_, Some(existing)) => Some(existing.mode.permissions()),
        (kind, None) => {
            // A setgid parent gives a new directory its own setgid bit.
            let inherited = if kind == FileKind::Directory { made.mode.permissions() & 0o2000 } else { 0 };
            Some(source & 0o777 & !mask() | inherited)
        }
    }
}

/// `-E` without `-p`: a source that nobody may execute takes x away; one that somebody may gives it
/// to those who may read, unless somebody has it already.
fn with_executability(source: u32, existing: u32) -> u32 {
    match (source & 0o111, existing & 0o111) {
        (0, _) => existing & !0o111,
        (_, 0) => existing | (existing & 0o444) >> 2,
        _ => existing,
    }
}

fn permissions_differ(preserve: &Preserve, entry: EntryRef<'_>, meta: &Meta) -> bool {
    let (source, existing) = (entry.mode().permissions(), meta.mode.permissions());
    match entry.kind() {
        FileKind::Symlink | FileKind::Missing => false,
        _ if preserve.perms => source != existing,
        // Captured: an existing 0200 gets no x from a source that has it, and nothing is reported.
        FileKind::Regular if preserve.executability => {
            (with_executability(source, existing) & 0o111 == 0) != (existing & 0o111 == 0)
        }
        _ => false,
    }
}

fn times(ctx: &Context, entry: EntryRef<'_>, existing: Option<&Meta>, made: &Meta) -> Option<Times> {
    let compare = &ctx.options.compare;
    // Where content was not written, a time that counts as equal stays, nanoseconds and all.
    let untouched = existing.is_some_and(|existing| {
        existing.is_same_file(made) && (existing.mtime, existing.mtime_nsec) == (made.mtime, made.mtime_nsec)
    });
    let stays = untouched && !compare.checksum && same_time(entry, made, compare.modify_window);
    let mtime = (keeps_time(ctx, entry) && !stays).then(|| (entry.mtime(), entry.mtime_nsec()));

    let has_atime = ctx.options.preserve.atimes && !entry.is_dir();
    let atime = entry.atime().filter(|&atime| has_atime && atime != made.atime).map(|atime| (atime, 0));
    (mtime.is_some() || atime.is_some()).then_some(Times { mtime, atime })
}

#[cfg(test)]
mod tests;
