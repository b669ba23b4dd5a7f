//! Attributes that are to be set, in the one order that keeps them: owner, times, mode.

use std::io;

use suisei_protocol::flist::FileKind;

use super::Meta;
use crate::sys::meta::Target;

/// Times to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Modification time: seconds and nanoseconds; nothing leaves it.
    pub mtime: Option<(i64, u32)>,
    /// Access time: seconds and nanoseconds; nothing leaves it.
    pub atime: Option<(i64, u32)>,
}

/// Attributes to set. Absent ones are left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits, 0o7777. Never applied to symlinks.
    pub permissions: Option<u32>,
    /// Times.
    pub times: Option<Times>,
}

/// An attribute that could not be set.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {error}")]
pub struct NotApplied {
    /// What stock rsync says in front of the name: `chown`, `failed to set permissions on`,
    /// `failed to set times on`.
    pub call: &'static str,
    /// The reason.
    pub error: io::Error,
}

impl From<NotApplied> for io::Error {
    fn from(failed: NotApplied) -> io::Error {
        failed.error
    }
}

/// Sets what `now` does not already satisfy: owner, times, mode. A step that fails ends it, as in
/// stock: what could not be given away keeps a mode that is safe.
pub(super) fn apply(target: Target<'_>, now: &Meta, want: &Attributes) -> Result<(), NotApplied> {
    let failed = |call: &'static str| move |error| NotApplied { call, error };
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
    if now.kind() != FileKind::Symlink {
        // A chown takes setuid and setgid away, wanted or not.
        let lost = chowned && now.mode.permissions() & 0o6000 != 0;
        let permissions = want.permissions.unwrap_or(now.mode.permissions()) & 0o7777;
        if permissions != now.mode.permissions() || lost {
            target.chmod(permissions).map_err(failed("failed to set permissions on"))?;
        }
    }
    Ok(())
}
