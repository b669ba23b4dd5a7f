//! The one directory that a process serving strangers may not leave.
//!
//! A process enters it once, like a working directory or a chroot. From then on every path that
//! starts outside a held root starts there instead, and symlinks that lead out of it answer ELOOP.
//! In a chroot of just that directory the kernel does this, and no root is set: only the label.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{fstat, mkdirat, openat, readlinkat, Mode, OFlags};
use rustix::io::Errno;

use super::open::{self, open_or_search, push_components, MAX_SYMLINKS};
use super::operator::Absent;
use crate::tree::SymlinkPolicy;

/// Directories between the root and one below it: more are no tree but a trap.
const DEPTH_MAX: usize = 2048;

#[derive(Debug)]
struct Confinement {
    root: Option<OwnedFd>,
    is_whole_root: bool,
    label: Vec<u8>,
}

static CONFINEMENT: OnceLock<Confinement> = OnceLock::new();

/// How a process is kept in its place.
#[derive(Debug)]
pub enum Walls {
    /// By this program: below this directory.
    Directory(OwnedFd),
    /// By a chroot of just that directory.
    Root,
    /// Not at all.
    None,
}

/// Confines this process. `label` names the place in messages. Only the first call counts: there is
/// no way back.
pub fn enter(walls: Walls, label: &[u8]) {
    let is_whole_root = matches!(walls, Walls::Root);
    let root = match walls {
        Walls::Directory(root) => Some(root),
        Walls::Root | Walls::None => None,
    };
    let _ = CONFINEMENT.set(Confinement { root, is_whole_root, label: label.to_vec() });
}

/// Returns the directory that this process is confined to.
pub(crate) fn root() -> Option<BorrowedFd<'static>> {
    CONFINEMENT.get()?.root.as_ref().map(AsFd::as_fd)
}

/// Whether a chroot of just its directory confines this process.
pub(crate) fn is_whole_root() -> bool {
    CONFINEMENT.get().is_some_and(|confinement| confinement.is_whole_root)
}

/// Returns what messages say behind a name: ` (in LABEL)`, or nothing.
pub fn label() -> Vec<u8> {
    match CONFINEMENT.get() {
        Some(Confinement { label, .. }) => [b" (in ", label.as_slice(), b")"].concat(),
        None => Vec::new(),
    }
}

/// Opens the directory at `path`, which starts at the root whether it has a leading slash or not.
/// Symlinks count while they stay below the root.
pub(super) fn open_dir(root: BorrowedFd<'_>, path: &[u8], absent: Absent) -> io::Result<OwnedFd> {
    let mut levels: Vec<Vec<u8>> = Vec::new();
    push_components(&mut levels, path);
    levels.reverse();
    if levels.iter().any(|level| level == b"..") {
        return Err(Errno::LOOP.into());
    }
    let open = |levels: &[Vec<u8>]| match levels {
        [] => Ok(open_or_search(|flags| openat(root, c".", flags, Mode::empty()))?),
        levels => open::open_beneath(root, &levels.join(&b'/'), SymlinkPolicy::FollowDirs),
    };
    let mut made = 0;
    loop {
        match open(&levels) {
            Err(error)
                if super::is(&error, Errno::NOENT) && absent == Absent::Make && made < levels.len() => {}
            answer => return answer,
        }
        // The first level that is missing is made in the one above it.
        let (mut here, mut at) = (open(&[])?, 0);
        while let Ok(next) = open(&levels[..at + 1]) {
            (here, at) = (next, at + 1);
            if at == levels.len() {
                return Ok(here);
            }
        }
        match mkdirat(&here, &levels[at][..], Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => made += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens the directory at a relative path, from `start`: it may climb, but not out of the root.
pub(super) fn open_dir_from(
    root: BorrowedFd<'_>,
    start: BorrowedFd<'_>,
    path: &[u8],
    absent: Absent,
) -> io::Result<OwnedFd> {
    let opened =
        locate(root, start, path).and_then(|(parent, name)| open::open_member_dir(parent.as_fd(), &name));
    match opened {
        Err(error) if super::is(&error, Errno::NOENT) && absent == Absent::Make => {}
        answer => return answer,
    }
    let end = path.len() - path.iter().rev().take_while(|byte| **byte == b'/').count();
    let (parent, name) = match path[..end].iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (open_dir_from(root, start, &path[..slash], absent)?, &path[slash + 1..end]),
        None => (start.try_clone_to_owned()?, &path[..end]),
    };
    match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => open::open_member_dir(parent.as_fd(), name),
        Err(error) => Err(error.into()),
    }
}

/// Returns where a member of `dir` really is: a held directory below the root and the name of
/// something there that is no symlink (or `.`). ELOOP if a symlink leads out of the root.
pub(crate) fn locate(
    root: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    path: &[u8],
) -> io::Result<(OwnedFd, Vec<u8>)> {
    let mut held = ancestors(root, dir)?;
    let mut ahead: Vec<Vec<u8>> = Vec::new();
    push_components(&mut ahead, path);
    let mut followed = 0;
    while let Some(name) = ahead.pop() {
        if name == b".." {
            held.pop();
            if held.is_empty() {
                return Err(Errno::LOOP.into());
            }
            continue;
        }
        let here = held.last().ok_or(Errno::LOOP)?;
        match readlinkat(here, &name[..], Vec::new()) {
            Ok(target) => {
                let target = target.into_bytes();
                followed += 1;
                if followed > MAX_SYMLINKS || target.first() == Some(&b'/') {
                    return Err(Errno::LOOP.into());
                }
                push_components(&mut ahead, &target);
            }
            // No symlink, or nothing at all: the caller finds out, without following.
            Err(_) if ahead.is_empty() => {
                return Ok((held.pop().ok_or(Errno::LOOP)?, name));
            }
            Err(_) => held.push(open::open_member_dir(here.as_fd(), &name)?),
        }
        if held.len() > DEPTH_MAX {
            return Err(Errno::LOOP.into());
        }
    }
    Ok((held.pop().ok_or(Errno::LOOP)?, b".".to_vec()))
}

/// Holds all directories from the root to `dir`, which must be below it.
fn ancestors(root: BorrowedFd<'_>, dir: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let identity = |stat: &rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let top = identity(&fstat(root)?);
    let search = |dir: BorrowedFd<'_>, name: &std::ffi::CStr| {
        open_or_search(|flags| openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()))
    };
    let mut held = vec![search(dir, c".")?];
    loop {
        let last = held.last().ok_or(Errno::LOOP)?;
        let here = identity(&fstat(last)?);
        if here == top {
            held.reverse();
            return Ok(held);
        }
        let above = search(last.as_fd(), c"..")?;
        if identity(&fstat(&above)?) == here || held.len() > DEPTH_MAX {
            // The top of the machine: the directory was moved out of the root.
            return Err(Errno::LOOP.into());
        }
        held.push(above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn symlinks_count_while_they_stay_below_the_root() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        std::fs::create_dir_all(at.join("root/a/b")).unwrap();
        std::fs::write(at.join("root/f"), "inside").unwrap();
        std::fs::write(at.join("secret"), "outside").unwrap();
        symlink("../../f", at.join("root/a/b/in")).unwrap();
        symlink("../../../secret", at.join("root/a/b/out")).unwrap();
        symlink("/etc/passwd", at.join("root/a/b/far")).unwrap();
        symlink("round", at.join("root/a/b/round")).unwrap();
        symlink("../b", at.join("root/a/dir")).unwrap();
        let open = |path: &str| OwnedFd::from(std::fs::File::open(at.join(path)).unwrap());
        let (root, dir) = (open("root"), open("root/a/b"));
        let (parent, name) = locate(root.as_fd(), dir.as_fd(), b"in").unwrap();
        assert_eq!(name, b"f");
        assert_eq!(fstat(&parent).unwrap().st_ino, fstat(&root).unwrap().st_ino);
        for name in ["out", "far", "round", "../../../secret"] {
            let refused = locate(root.as_fd(), dir.as_fd(), name.as_bytes()).unwrap_err();
            assert!(crate::sys::is(&refused, Errno::LOOP), "{name}: {refused}");
        }
        let outside = open("");
        assert!(locate(root.as_fd(), outside.as_fd(), b"secret").is_err());
        assert!(open_dir(root.as_fd(), b"/a/b", Absent::Refuse).is_ok());
        assert!(open_dir(root.as_fd(), b"../root", Absent::Refuse).is_err());
        assert!(open_dir(root.as_fd(), b"x/y/z", Absent::Refuse).is_err());
        assert!(open_dir(root.as_fd(), b"x/y/z", Absent::Make).is_ok());
        assert!(at.join("root/x/y/z").is_dir());
        let from = |path: &str, absent| open_dir_from(root.as_fd(), dir.as_fd(), path.as_bytes(), absent);
        assert!(from("../b", Absent::Refuse).is_ok());
        assert!(from("../../x/y", Absent::Refuse).is_ok());
        assert!(from("../../..", Absent::Refuse).is_err());
        assert!(from("far", Absent::Make).is_err());
        assert!(from("../new/deep/", Absent::Make).is_ok());
        assert!(at.join("root/a/new/deep").is_dir());
    }
}
