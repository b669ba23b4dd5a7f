//! `--fake-super`: what only root may set, kept in an extended attribute of an ordinary item.
//!
//! A [`super::Dir`] of this kind shows its members as the attribute says, and writes the attribute
//! where it would change owners and make nodes. Devices, pipes and sockets are empty files there,
//! symlinks are files that hold their target.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#7-fake-super-one-side-only-invisible-on-the-wire

use std::fmt::Write as _;
use std::io;

use suisei_protocol::flist::{FileKind, Mode, Rdev};

use super::{stored_acl, AclKind, Attributes, HeldItem, Meta, NotApplied, Times, WantedAcls};
use crate::sys::meta::Target;

/// The attribute.
const STAT: &[u8] = if cfg!(target_os = "linux") { b"user.rsync.%stat" } else { b"rsync.%stat" };

/// Where metadata that only root may set is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Privileges {
    /// On the items themselves.
    #[default]
    Real,
    /// In an extended attribute.
    Stored,
}

/// What the attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) mode: Mode,
    pub(super) rdev: Rdev,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Stored {
    /// Returns what `meta` says.
    fn of(meta: &Meta) -> Stored {
        let rdev = if meta.kind().is_device() { meta.rdev } else { Rdev::default() };
        Stored { mode: meta.mode, rdev, uid: meta.uid, gid: meta.gid }
    }

    /// Parses `MODE MAJOR,MINOR UID:GID`, the mode in octal with its type.
    fn parse(text: &[u8]) -> Option<Stored> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split_ascii_whitespace();
        let mode = Mode(u32::from_str_radix(words.next()?, 8).ok()?);
        let (major, minor) = words.next()?.split_once(',')?;
        let (uid, gid) = words.next()?.split_once(':')?;
        mode.try_kind().filter(|kind| *kind != FileKind::Missing)?;
        let rdev = Rdev { major: major.parse().ok()?, minor: minor.parse().ok()? };
        Some(Stored { mode, rdev, uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    }

    fn format(&self) -> String {
        let Stored { mode, rdev, uid, gid } = self;
        let mut text = String::new();
        // A String takes all.
        let _ = write!(text, "{:o} {},{} {uid}:{gid}", mode.0, rdev.major, rdev.minor);
        text
    }
}

/// Returns the metadata of an item as its attribute has it. An item that cannot have one, or whose
/// attribute cannot be read, is what it is. Fails on an attribute that makes no sense.
pub(super) fn dressed(item: io::Result<HeldItem<'_>>, meta: Meta) -> io::Result<Meta> {
    if !matches!(meta.kind(), FileKind::Regular | FileKind::Directory) {
        return Ok(meta);
    }
    let Ok(Some(text)) = item.and_then(|item| item.value(STAT)) else { return Ok(meta) };
    let stored = Stored::parse(&text);
    let Stored { mode, rdev, uid, gid } =
        stored.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "corrupt %stat xattr"))?;
    // Nothing but a directory can stand for a directory.
    if (mode.kind() == FileKind::Directory) != (meta.kind() == FileKind::Directory) {
        return Ok(meta);
    }
    Ok(Meta { mode, rdev, uid, gid, ..meta })
}

/// Says of a new item that it stands for something of another kind.
pub(super) fn stand_for(item: &HeldItem<'_>, kind: FileKind, permissions: u32, rdev: Rdev) -> io::Result<()> {
    let meta = item.meta()?;
    let mode = Mode(type_bits(kind) | permissions & 0o7777);
    let stored = Stored::of(&Meta { mode, rdev, ..meta });
    item.set(STAT, stored.format().as_bytes())
}

fn type_bits(kind: FileKind) -> u32 {
    match kind {
        FileKind::Fifo => 0o010_000,
        FileKind::CharDevice => 0o020_000,
        FileKind::Directory => 0o040_000,
        FileKind::BlockDevice => 0o060_000,
        FileKind::Regular | FileKind::Missing => 0o100_000,
        FileKind::Symlink => 0o120_000,
        FileKind::Socket => 0o140_000,
    }
}

/// Sets what `now` (as the attribute has it) does not already satisfy: times and the permissions
/// of the user on the item, the rest in the attribute, which goes where it says nothing new.
pub(super) fn apply(
    target: Target<'_>,
    item: &HeldItem<'_>,
    now: &Meta,
    want: &Attributes,
) -> Result<(), NotApplied> {
    let mut failed = None;
    let mut note = |call, result: io::Result<()>| {
        if let (None, Err(error)) = (&failed, result) {
            failed = Some(NotApplied::new(call, error));
        }
    };
    let permissions = match now.kind() {
        FileKind::Symlink => now.mode.permissions(),
        _ => want.permissions.unwrap_or(now.mode.permissions()) & 0o7777,
    };
    let aim = Meta {
        mode: Mode(now.mode.0 & !0o7777 | permissions),
        uid: want.uid.unwrap_or(now.uid),
        gid: want.gid.unwrap_or(now.gid),
        ..*now
    };
    if let Some(acls) = want.acls.as_ref().filter(|_| now.kind() != FileKind::Symlink) {
        note("ACL_TYPE_ACCESS", keep_acls(item, acls, permissions, now.mode.permissions()));
    }
    match item.meta() {
        Ok(real) => note("failed to set permissions on", keep(target, item, &real, &aim)),
        Err(error) => note("stat", Err(error)),
    }
    if let Some(times) = want.times {
        let times = Times {
            mtime: times.mtime.filter(|&mtime| mtime != (now.mtime, now.mtime_nsec)),
            atime: times.atime.filter(|&atime| atime != (now.atime, now.atime_nsec)),
        };
        if times.mtime.is_some() || times.atime.is_some() {
            note("failed to set times on", target.set_times(&times));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Keeps the lists that differ. The mask is said even where it is that of the mode.
fn keep_acls(item: &HeldItem<'_>, acls: &WantedAcls, permissions: u32, present: u32) -> io::Result<()> {
    let there = stored_acl::read(item, AclKind::Access)?;
    if !acls.has_access(there, permissions, present) {
        let mut list = acls.access.clone();
        if !list.named.is_empty() {
            list.mask.get_or_insert((permissions >> 3 & 7) as u8);
        }
        stored_acl::write(item, AclKind::Access, Some(&list))?;
    }
    match &acls.default {
        Some(default) if *default != stored_acl::read(item, AclKind::Default)? => {
            stored_acl::write(item, AclKind::Default, default.as_ref())
        }
        _ => Ok(()),
    }
}

fn keep(target: Target<'_>, item: &HeldItem<'_>, real: &Meta, aim: &Meta) -> io::Result<()> {
    let own = if real.kind() == FileKind::Directory { 0o700 } else { 0o600 };
    let permissions = aim.mode.permissions() & 0o777 | own;
    if real.mode.permissions() != permissions {
        target.chmod(permissions)?;
    }
    let real = Meta { mode: Mode(real.mode.0 & !0o7777 | permissions), ..*real };
    let stored = Stored::of(aim);
    let there = item.value(STAT)?;
    if stored == Stored::of(&real) {
        return there.map_or(Ok(()), |_| item.remove(STAT));
    }
    let text = stored.format();
    match there {
        Some(there) if there == text.as_bytes() => Ok(()),
        _ => item.set(STAT, text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_texts_parse_and_format() {
        for text in ["100755 0,0 1234:4321", "20644 1,3 0:0", "120777 0,0 0:0", "40755 0,0 0:0"] {
            assert_eq!(Stored::parse(text.as_bytes()).unwrap().format(), text);
        }
        for text in
            ["", "100644", "100644 0 0:0", "100644 0,0 0", "999 0,0 0:0", "0 0,0 0:0", "77777777777 0,0 0:0"]
        {
            assert_eq!(Stored::parse(text.as_bytes()), None, "{text}");
        }
    }
}
