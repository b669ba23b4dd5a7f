//! Paths that the operator named, which start outside every held root.
//!
//! Destinations, temp and basis directories, and the small files that steer a run are reached by
//! walking: a symlink on the way counts only if it belongs to root or to this user, since anyone
//! else who owns it could have planted it. The answer to others is ELOOP, as in stock rsync.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{fstat, mkdirat, openat, readlinkat, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;

use super::open::{open_or_search, push_components, DIRECTORY, MAX_SYMLINKS};

/// What to do about directories that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Fail.
    Refuse,
    /// Make them, with mode 0777 less the umask.
    Make,
}

/// Opens the directory at an operator's path.
pub fn open_dir(path: &[u8], absent: Absent) -> io::Result<OwnedFd> {
    if let Some(root) = super::confine::root() {
        return super::confine::open_dir(root, path, absent);
    }
    #[cfg(target_os = "linux")]
    if absent == Absent::Refuse {
        // Without any symlink there is nothing to check.
        let resolve = rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS;
        if let Some(Ok(dir)) = super::open::kernel::open(CWD, path, resolve) {
            return Ok(dir);
        }
    }
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut ahead = Vec::new();
    push_components(&mut ahead, path);
    walk(ahead, path[0] == b'/', absent).map(|(dir, _)| dir)
}

/// Opens a regular file at an operator's path for reading. A final symlink obeys the same rule.
pub fn open_file(path: &[u8]) -> io::Result<File> {
    if let Some(root) = super::confine::root() {
        let (dir, name) = super::confine::locate(root, root, path)?;
        return open_regular(openat(&dir, &name[..], READ, Mode::empty())?);
    }
    let mut ahead = Vec::new();
    push_components(&mut ahead, path);
    if path.ends_with(b"/") || ahead.is_empty() {
        return Err(Errno::ISDIR.into());
    }
    let last = ahead.remove(0);
    let (mut dir, mut followed) = walk(ahead, path[0] == b'/', Absent::Refuse)?;
    let mut name = last;
    loop {
        match openat(&dir, &name[..], READ, Mode::empty()) {
            Ok(file) => return open_regular(file),
            Err(Errno::LOOP) if followed < MAX_SYMLINKS => {
                followed += 1;
                let target = trusted_target(dir.as_fd(), &name)?;
                let mut ahead = Vec::new();
                push_components(&mut ahead, &target);
                if ahead.is_empty() {
                    return Err(Errno::ISDIR.into());
                }
                name = ahead.remove(0);
                dir = walk_from(
                    Some(dir),
                    ahead,
                    target.first() == Some(&b'/'),
                    Absent::Refuse,
                    &mut followed,
                )?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a file at an operator's path for appending, and makes it (0644 less the umask) if it is not
/// there: a log.
pub fn open_append(path: &[u8]) -> io::Result<File> {
    open_for_writing(path, OFlags::WRONLY | OFlags::APPEND, 0o644)
}

/// Opens a file at an operator's path for reading and writing, and makes it (0600) if it is not
/// there: a lock, a process number.
pub fn open_private(path: &[u8]) -> io::Result<File> {
    open_for_writing(path, OFlags::RDWR, 0o600)
}

/// The last component may be no symlink at all, unless root or this user owns it.
fn open_for_writing(path: &[u8], access: OFlags, mode: u32) -> io::Result<File> {
    let mut ahead = Vec::new();
    push_components(&mut ahead, path);
    if path.ends_with(b"/") || ahead.is_empty() {
        return Err(Errno::ISDIR.into());
    }
    let mut name = ahead.remove(0);
    let (mut dir, mut followed) = walk(ahead, path[0] == b'/', Absent::Refuse)?;
    let flags = access | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    #[allow(clippy::useless_conversion)]
    let mode = Mode::from_raw_mode(mode.try_into().unwrap_or(0o600));
    loop {
        match openat(&dir, &name[..], flags, mode) {
            Ok(file) => return Ok(File::from(file)),
            Err(Errno::LOOP) if followed < MAX_SYMLINKS => {
                followed += 1;
                let target = trusted_target(dir.as_fd(), &name)?;
                let mut ahead = Vec::new();
                push_components(&mut ahead, &target);
                if ahead.is_empty() {
                    return Err(Errno::ISDIR.into());
                }
                name = ahead.remove(0);
                let absolute = target.first() == Some(&b'/');
                dir = walk_from(Some(dir), ahead, absolute, Absent::Refuse, &mut followed)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reading a file, without following a symlink, and without waiting for the writer of a pipe.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn open_regular(file: OwnedFd) -> io::Result<File> {
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode as rustix::fs::RawMode);
    if kind != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(File::from(file))
}

fn walk(ahead: Vec<Vec<u8>>, absolute: bool, absent: Absent) -> io::Result<(OwnedFd, usize)> {
    let mut followed = 0;
    let dir = walk_from(None, ahead, absolute, absent, &mut followed)?;
    Ok((dir, followed))
}

/// Walks the components from `start` (the working directory if there is none), or from `/`.
fn walk_from(
    start: Option<OwnedFd>,
    mut ahead: Vec<Vec<u8>>,
    absolute: bool,
    absent: Absent,
    followed: &mut usize,
) -> io::Result<OwnedFd> {
    let mut here = match start {
        Some(dir) if !absolute => dir,
        _ => open_start(absolute)?,
    };
    while let Some(name) = ahead.pop() {
        let opened =
            open_or_search(|flags| openat(&here, &name[..], flags | OFlags::NOFOLLOW, Mode::empty()));
        match opened {
            Ok(dir) => here = dir,
            Err(Errno::NOENT) if absent == Absent::Make => {
                match mkdirat(&here, &name[..], Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                // Not through a symlink that took its place.
                here = openat(&here, &name[..], DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
            }
            Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                let target = match trusted_target(here.as_fd(), &name) {
                    // Not a symlink at all.
                    Err(refusal) if super::is(&refusal, Errno::INVAL) => return Err(error.into()),
                    other => other?,
                };
                *followed += 1;
                if *followed > MAX_SYMLINKS {
                    return Err(Errno::LOOP.into());
                }
                if target.first() == Some(&b'/') {
                    here = open_start(true)?;
                }
                push_components(&mut ahead, &target);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(here)
}

fn open_start(absolute: bool) -> io::Result<OwnedFd> {
    let path = if absolute { c"/" } else { c"." };
    Ok(open_or_search(|flags| openat(CWD, path, flags, Mode::empty()))?)
}

/// Returns the target of a symlink that root or this user owns; ELOOP for others, EINVAL for
/// what is no symlink.
#[cfg(target_os = "linux")]
fn trusted_target(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Vec<u8>> {
    // The owner is asked of the very inode that is read, so that it cannot be swapped between.
    let link = openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    check_owner(&fstat(&link)?)?;
    Ok(readlinkat(&link, c"", Vec::new())?.into_bytes())
}

#[cfg(not(target_os = "linux"))]
fn trusted_target(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Vec<u8>> {
    let before = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    check_owner(&before)?;
    let target = readlinkat(dir, name, Vec::new())?.into_bytes();
    let after = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    if (before.st_ino, before.st_dev, before.st_uid) != (after.st_ino, after.st_dev, after.st_uid) {
        return Err(Errno::LOOP.into());
    }
    Ok(target)
}

fn check_owner(stat: &rustix::fs::Stat) -> io::Result<()> {
    if FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode) != FileType::Symlink {
        return Err(Errno::INVAL.into());
    }
    if stat.st_uid != 0 && stat.st_uid != super::users::effective_uid() {
        return Err(Errno::LOOP.into());
    }
    Ok(())
}
