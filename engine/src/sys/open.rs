//! Directories below a held one: the kernel's confined resolution, or a walk of our own.
//!
//! `openat2` does it in one call and without races. Where the kernel lacks it (before 5.6, other
//! systems) or a sandbox forbids it, each component is opened without following symlinks, and
//! symlinks that the policy allows are expanded here. Both answer an attempt to leave the root
//! with ELOOP, the number that stock rsync shows.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{openat, readlinkat, Mode, OFlags, CWD};
use rustix::io::Errno;

use crate::tree::SymlinkPolicy;

/// Symlinks that one resolution follows at most, as in the kernel.
pub(super) const MAX_SYMLINKS: usize = 40;

/// Flags that every directory is opened with.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory that may only be searched, not read: enough to act on its members.
#[cfg(target_os = "linux")]
pub(super) const SEARCH_ONLY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The same: O_SEARCH, which is O_EXEC with O_DIRECTORY there.
#[cfg(not(target_os = "linux"))]
pub(super) const SEARCH_ONLY: OFlags =
    OFlags::from_bits_retain(0x4000_0000).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory `path` below `root`. The path is relative and clean: no `..`.
pub fn open_beneath(root: BorrowedFd<'_>, path: &[u8], links: SymlinkPolicy) -> io::Result<OwnedFd> {
    check_clean(path)?;
    if links == SymlinkPolicy::FollowAll {
        if let Some(confined) = super::confine::root() {
            let (parent, name) = super::confine::locate(confined, root, path)?;
            return open_member_dir(parent.as_fd(), &name);
        }
        return Ok(open_or_search(|flags| openat(root, path, flags, Mode::empty()))?);
    }
    #[cfg(target_os = "linux")]
    if let Some(answer) = kernel::open_beneath(root, path, links) {
        return answer;
    }
    walk(root, path, links)
}

/// Does what [`open_beneath`] does without the kernel's help. Public so that tests can compare.
pub fn open_beneath_slowly(root: BorrowedFd<'_>, path: &[u8], links: SymlinkPolicy) -> io::Result<OwnedFd> {
    check_clean(path)?;
    walk(root, path, links)
}

/// Opens the directory `name` in `dir`; a symlink is refused with ELOOP.
pub fn open_member_dir(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let opened = open_or_search(|flags| openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()));
    match opened {
        // With O_DIRECTORY, Linux calls a symlink no directory. Tell the two apart.
        Err(Errno::NOTDIR) if readlinkat(dir, name, Vec::new()).is_ok() => Err(Errno::LOOP.into()),
        other => Ok(other?),
    }
}

/// Opens a second, independent descriptor of a held directory for listing it.
pub fn reopen_dir(dir: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(openat(dir, c".", DIRECTORY, Mode::empty())?)
}

/// Makes reading of an open file or directory leave its access time alone. Only its owner and root
/// may (EPERM). Systems without the means do nothing, as in stock.
#[cfg(target_os = "linux")]
pub fn spare_atime(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NOATIME)?)
}

/// Does nothing: access times cannot be spared here.
#[cfg(not(target_os = "linux"))]
pub fn spare_atime(_fd: impl AsFd) -> io::Result<()> {
    Ok(())
}

/// Opens the directory that the platform finds at `path`, from the working directory; in a
/// confined process, from the directory it is confined to.
pub fn open_ambient_dir(path: &[u8]) -> io::Result<OwnedFd> {
    if let Some(root) = super::confine::root() {
        return super::confine::open_dir(root, path, super::operator::Absent::Refuse);
    }
    Ok(open_or_search(|flags| openat(CWD, path, flags, Mode::empty()))?)
}

/// Tries a readable directory first, then one that can only be searched.
pub(super) fn open_or_search(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(DIRECTORY) {
        Err(Errno::ACCESS) => open(SEARCH_ONLY),
        other => other,
    }
}

/// Refuses absolute paths and `..`: a [`suisei_protocol::flist::RelPath`] has neither.
fn check_clean(path: &[u8]) -> io::Result<()> {
    let climbs = path.split(|&b| b == b'/').any(|component| component == b"..");
    if path.is_empty() || path[0] == b'/' || climbs {
        return Err(Errno::INVAL.into());
    }
    Ok(())
}

/// Resolves component by component. Holds the directories on the way, so that a `..` in a symlink
/// goes back to where the walk really came from, and never above the root.
fn walk(root: BorrowedFd<'_>, path: &[u8], links: SymlinkPolicy) -> io::Result<OwnedFd> {
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut ahead: Vec<Vec<u8>> = Vec::new();
    push_components(&mut ahead, path);
    let mut followed = 0;
    while let Some(name) = ahead.pop() {
        if name == b".." {
            held.pop().ok_or(Errno::LOOP)?;
            continue;
        }
        let here = held.last().map_or(root, |dir| dir.as_fd());
        match open_member_dir(here, &name) {
            Ok(dir) => {
                if links == SymlinkPolicy::Refuse {
                    held.clear();
                }
                held.push(dir);
            }
            Err(error) if super::is(&error, Errno::LOOP) && links != SymlinkPolicy::Refuse => {
                let target = readlinkat(here, &name[..], Vec::new())?.into_bytes();
                followed += 1;
                if followed > MAX_SYMLINKS || target.first() == Some(&b'/') {
                    return Err(Errno::LOOP.into());
                }
                push_components(&mut ahead, &target);
            }
            Err(error) => return Err(error),
        }
    }
    match held.pop() {
        Some(dir) => Ok(dir),
        None => Ok(open_or_search(|flags| openat(root, c".", flags, Mode::empty()))?),
    }
}

/// Puts the components of a path in front of those still ahead (the next one is last).
pub(super) fn push_components(ahead: &mut Vec<Vec<u8>>, path: &[u8]) {
    let components = path.split(|&b| b == b'/').rev().filter(|c| !c.is_empty() && *c != b".");
    ahead.extend(components.map(<[u8]>::to_vec));
}

#[cfg(target_os = "linux")]
pub(super) mod kernel {
    //! `openat2`, while it works.

    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use rustix::fs::{openat2, ResolveFlags};

    use super::*;

    /// Tries before a resolution that races with renames is left to the walk.
    const TRIES: usize = 16;

    static MISSING: AtomicBool = AtomicBool::new(false);

    /// Opens below the root; nothing if the kernel cannot tell.
    pub(super) fn open_beneath(
        root: BorrowedFd<'_>,
        path: &[u8],
        links: SymlinkPolicy,
    ) -> Option<io::Result<OwnedFd>> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == SymlinkPolicy::Refuse {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        open(root, path, resolve)
    }

    /// Opens a directory under these rules; nothing if the kernel cannot tell.
    pub(in crate::sys) fn open(
        root: BorrowedFd<'_>,
        path: &[u8],
        resolve: ResolveFlags,
    ) -> Option<io::Result<OwnedFd>> {
        if MISSING.load(Relaxed) {
            return None;
        }
        for _ in 0..TRIES {
            match open_or_search(|flags| openat2(root, path, flags, Mode::empty(), resolve)) {
                // A rename elsewhere on the system while a ".." was resolved.
                Err(Errno::AGAIN) => continue,
                // No such call; or a sandbox that answers like this to calls it does not know.
                // Directories opened for reading have no EPERM of their own.
                Err(Errno::NOSYS | Errno::PERM) => {
                    MISSING.store(true, Relaxed);
                    return None;
                }
                // A path too long for one call may still be walked.
                Err(Errno::NAMETOOLONG) => return None,
                Err(Errno::XDEV) => return Some(Err(Errno::LOOP.into())),
                Err(error) => return Some(Err(error.into())),
                Ok(dir) => return Some(Ok(dir)),
            }
        }
        None
    }
}
