//! Attributes that are to be set, in the one order that keeps them: owner, times, mode.

use std::io;

use suisei_protocol::flist::{Acl, FileKind};

use super::Meta;
use crate::sys::acl::{self, AclKind};
use crate::sys::meta::Target;
use crate::sys::xattr::Held;

/// Times to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Modification time: seconds and nanoseconds; nothing leaves it.
    pub mtime: Option<(i64, u32)>,
    /// Access time: seconds and nanoseconds; nothing leaves it.
    pub atime: Option<(i64, u32)>,
}

/// Attributes to set. Absent ones are left as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits, 0o7777. Never applied to symlinks.
    pub permissions: Option<u32>,
    /// Times.
    pub times: Option<Times>,
    /// Access control lists. Never applied to symlinks.
    pub acls: Option<WantedAcls>,
}

/// Access control lists to set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedAcls {
    /// Who may do what, less what the mode says.
    pub access: Acl,
    /// Of a directory: what its members start with; nothing inside removes it.
    pub default: Option<Option<Acl>>,
}

impl WantedAcls {
    /// Whether an access list, or none, is the wanted one, apart from what modes say: that of the
    /// wanted permissions, and that of the present ones.
    pub fn has_access(&self, now: Option<Acl>, permissions: u32, present: u32) -> bool {
        let now = now.unwrap_or_default().with_mode(present);
        let wanted = self.access.clone().with_mode(permissions);
        now.named == wanted.named
            && now.mask.is_some() == wanted.mask.is_some()
            && (now.mask.is_none() || now.group == wanted.group)
    }
}

/// An attribute that could not be set.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {error}")]
pub struct NotApplied {
    /// What stock rsync says in front of the name: `chown`, `failed to set permissions on`,
    /// `failed to set times on`; of an access control list the kind, `ACL_TYPE_ACCESS` or
    /// `ACL_TYPE_DEFAULT`.
    pub call: &'static str,
    /// The reason.
    pub error: io::Error,
    /// What else could not be set.
    pub also: Option<Box<NotApplied>>,
}

impl NotApplied {
    /// One failed step.
    pub fn new(call: &'static str, error: io::Error) -> NotApplied {
        NotApplied { call, error, also: None }
    }

    /// Returns all failed steps, the first first.
    pub fn all(&self) -> impl Iterator<Item = &NotApplied> {
        std::iter::successors(Some(self), |failed| failed.also.as_deref())
    }
}

impl From<NotApplied> for io::Error {
    fn from(failed: NotApplied) -> io::Error {
        failed.error
    }
}

/// Sets what `now` does not already satisfy: owner, times, lists, mode. A step that fails ends it,
/// as in stock: what could not be given away keeps a mode that is safe. Only a list that cannot be
/// set does not stop the mode.
pub(super) fn apply(target: Target<'_>, now: &Meta, want: &Attributes) -> Result<(), NotApplied> {
    let failed = |call: &'static str| move |error| NotApplied::new(call, error);
    let uid = want.uid.filter(|&uid| uid != now.uid);
    let gid = want.gid.filter(|&gid| gid != now.gid);
    let chowned = uid.is_some() || gid.is_some();
    if chowned {
        target.chown(uid, gid).map_err(failed("chown"))?;
    }
    if let Some(times) = want.times {
        let times = Times {
            mtime: times.mtime.filter(|&mtime| mtime != (now.mtime, now.mtime_nsec)),
            atime: times.atime.filter(|&atime| atime != (now.atime, now.atime_nsec)),
        };
        if times.mtime.is_some() || times.atime.is_some() {
            target.set_times(&times).map_err(failed("failed to set times on"))?;
        }
    }
    if now.kind() == FileKind::Symlink {
        return Ok(());
    }
    // A chown takes setuid and setgid away, wanted or not.
    let lost = chowned && now.mode.permissions() & 0o6000 != 0;
    let permissions = want.permissions.unwrap_or(now.mode.permissions()) & 0o7777;
    let mut present = now.mode.permissions();
    let mut problems = Vec::new();
    if let Some(acls) = &want.acls {
        apply_acls(target, now, acls, permissions, &mut present, &mut problems);
    }
    if permissions != present || lost {
        let changed = target.chmod(permissions);
        problems.extend(changed.err().map(failed("failed to set permissions on")));
    }
    let first =
        problems.into_iter().rev().reduce(|also, failed| NotApplied { also: Some(also.into()), ..failed });
    first.map_or(Ok(()), Err)
}

/// Sets the lists that differ. An access list brings its permission bits along: `present` follows.
fn apply_acls(
    target: Target<'_>,
    now: &Meta,
    acls: &WantedAcls,
    permissions: u32,
    present: &mut u32,
    problems: &mut Vec<NotApplied>,
) {
    let item = match target {
        Target::Open(fd) => Ok(Held::open(fd)),
        Target::Member(dir, name) if matches!(now.kind(), FileKind::Regular | FileKind::Directory) => {
            Held::pinned(dir, name)
        }
        Target::Member(dir, name) => Held::member(dir, name, false),
    };
    let access = |item: &Held<'_>| -> io::Result<Option<u32>> {
        if acls.has_access(acl::read(item, AclKind::Access)?, permissions, *present) {
            return Ok(None);
        }
        let list = acls.access.clone().with_mode(permissions);
        acl::set(item, AclKind::Access, &list)?;
        Ok(Some(list.mode()))
    };
    let default = |item: &Held<'_>| -> io::Result<()> {
        let Some(wanted) = &acls.default else { return Ok(()) };
        let there = acl::read(item, AclKind::Default)?;
        match wanted {
            wanted if *wanted == there => Ok(()),
            Some(list) => acl::set(item, AclKind::Default, list),
            None => acl::remove(item, AclKind::Default),
        }
    };
    let item = match item {
        Ok(item) => item,
        Err(error) => return problems.push(NotApplied::new("ACL_TYPE_ACCESS", error)),
    };
    match access(&item) {
        Ok(Some(mode)) => *present = *present & 0o7000 | mode,
        Ok(None) => {}
        Err(error) => problems.push(NotApplied::new("ACL_TYPE_ACCESS", error)),
    }
    if let Err(error) = default(&item) {
        problems.push(NotApplied::new("ACL_TYPE_DEFAULT", error));
    }
}
