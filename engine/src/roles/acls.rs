//! Access control lists of entries: what an item should get, and whether it has that already.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#4-acls--a-implies--p-p30

use suisei_protocol::flist::{Acl, EntryRef, FileKind, IdKind, NamedAccess};

use crate::sys::users;
use crate::tree::{AclKind, Dir, Meta, WantedAcls};
use crate::Context;

/// Which lists of an item differ from those of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AclDifference {
    /// Who may do what, apart from what the mode says.
    pub access: bool,
    /// What members of a directory start with.
    pub default: bool,
}

impl AclDifference {
    /// Whether either differs.
    pub fn any(self) -> bool {
        self.access || self.default
    }
}

/// Returns the lists that an item should have; nothing where none are kept.
pub fn wanted(ctx: &Context, entry: EntryRef<'_>) -> Option<WantedAcls> {
    let kind = entry.kind();
    if !ctx.options.preserve.acls || matches!(kind, FileKind::Symlink | FileKind::Missing) {
        return None;
    }
    let here = |acl: &Acl| {
        let map = |named: &NamedAccess| {
            let id = match named.kind {
                IdKind::User => ctx.ids.uid(named.id),
                IdKind::Group => ctx.ids.gid(named.id).gid,
            };
            NamedAccess { id, ..*named }
        };
        let mut named: Vec<NamedAccess> = acl.named.iter().map(map).collect();
        named.sort();
        Acl { named: named.into(), ..acl.clone() }
    };
    Some(WantedAcls {
        access: entry.access_acl().map(here).unwrap_or_default(),
        // Without an owner's entry it is none.
        default: (kind == FileKind::Directory)
            .then(|| entry.default_acl().filter(|acl| acl.user.is_some()).map(here)),
    })
}

/// Compares an item with its entry. What cannot be read differs in nothing: setting it will tell.
pub fn compare(ctx: &Context, entry: EntryRef<'_>, dir: &Dir, name: &[u8], meta: &Meta) -> AclDifference {
    let Some(wanted) = wanted(ctx, entry) else { return AclDifference::default() };
    let follow = entry.is_dir() && ctx.options.select.keep_dirlinks;
    let read = |kind| dir.acl(name, kind, follow).unwrap_or_default();
    let access = match dir.acl(name, AclKind::Access, follow) {
        Ok(now) => !wanted.has_access(now, entry.mode().permissions(), meta.mode.permissions()),
        Err(_) => false,
    };
    let default = wanted.default.is_some_and(|wanted| wanted != read(AclKind::Default));
    AclDifference { access, default }
}

/// Returns the permission bits that a new member of a directory does not get without `-p`: the
/// umask, or what the directory's default list does not give.
///
/// Wire: protocol/doc/24-environment-and-exit.md#7-permissions-of-new-and-updated-items
pub fn creation_mask(parent: &Dir) -> u32 {
    match parent.acl(b".", AclKind::Default, false) {
        Ok(Some(acl)) => !acl.mode() & 0o777,
        _ => users::umask(),
    }
}
