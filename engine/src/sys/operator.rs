//! Paths that the operator named, which start outside every held root.
//!
//! Destinations, temp and basis directories, and the small files that steer a run are reached by
//! walking: a symlink on the way counts only if it belongs to root or to this user, since anyone
//! else who owns it could have planted it. The answer to others reads as ELOOP, as in stock rsync.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{fstat, mkdirat, openat, readlinkat, FileType, Mode, OFlags, CWD};
use rustix::io::Errno;

use super::open::{open_or_search, push_components, DIRECTORY, MAX_SYMLINKS, SEARCH_ONLY as SEARCH};

/// How far the operator's paths are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// `--insecure-links`: symlinks on the way count, whoever owns them.
    pub insecure_links: bool,
    /// `--confine-root`, absolute: paths that come out elsewhere are refused (ELOOP), whoever
    /// owns the symlinks that lead there.
    pub confine_root: Option<Vec<u8>>,
}

/// A symlink on the way belongs to neither root nor this user.
#[derive(Debug, thiserror::Error)]
#[error("Too many levels of symbolic links ({})", Errno::LOOP.raw_os_error())]
pub struct Untrusted;

/// Whether a path was refused because of who owns a symlink on its way.
pub fn is_untrusted(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Untrusted>())
}

/// What to do about directories that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Fail.
    Refuse,
    /// Make them, with mode 0777 less the umask.
    Make,
}

/// What a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A regular file; nothing else is waited for.
    Regular,
    /// Whatever gives bytes: pipes, and descriptors named in `/dev/fd`.
    Any,
}

/// Opens the directory at an operator's path.
pub fn open_dir(path: &[u8], absent: Absent) -> io::Result<OwnedFd> {
    open_dir_from(None, path, absent, &Trust::default())
}

/// The same as far as `trust` goes; a relative path starts at `start`, or in the working directory.
pub fn open_dir_from(
    start: Option<BorrowedFd<'_>>,
    path: &[u8],
    absent: Absent,
    trust: &Trust,
) -> io::Result<OwnedFd> {
    if let Some(root) = super::confine::root() {
        return match start {
            Some(start) if !path.starts_with(b"/") => {
                super::confine::open_dir_from(root, start, path, absent)
            }
            _ => super::confine::open_dir(root, path, absent),
        };
    }
    #[cfg(target_os = "linux")]
    if absent == Absent::Refuse && trust.confine_root.is_none() {
        // Without any symlink there is nothing to check.
        let resolve = rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS;
        if let Some(Ok(dir)) = super::open::kernel::open(start.unwrap_or(CWD), path, resolve) {
            return Ok(dir);
        }
    }
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut walk = Walk::new(start, trust)?;
    walk.go(path, absent)?;
    walk.check_confined()?;
    Ok(walk.here)
}

/// Opens a file at an operator's path for reading. A final symlink obeys the same rule.
pub fn open_file(
    start: Option<BorrowedFd<'_>>,
    path: &[u8],
    wanted: Wanted,
    trust: &Trust,
) -> io::Result<File> {
    let read = |dir: BorrowedFd<'_>, name: &[u8]| {
        let mut flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        if wanted == Wanted::Regular {
            flags |= OFlags::NONBLOCK;
        } else if is_descriptor(dir, name) {
            flags -= OFlags::NOFOLLOW;
        }
        openat(dir, name, flags, Mode::empty())
    };
    let opened = match super::confine::root() {
        Some(root) => {
            let (dir, name) = super::confine::locate(root, start.unwrap_or(root), path)?;
            read(dir.as_fd(), &name)?
        }
        None => at_last_name(start, path, trust, &read)?,
    };
    let kind = FileType::from_raw_mode(fstat(&opened)?.st_mode as rustix::fs::RawMode);
    if wanted == Wanted::Regular && kind != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(File::from(opened))
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

/// Opens a file at an operator's path for writing, emptied, or made with this mode: a record.
pub fn create_file(path: &[u8], mode: u32, trust: &Trust) -> io::Result<File> {
    let access = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let flags = access | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    #[allow(clippy::useless_conversion)]
    let mode = Mode::from_raw_mode(mode.try_into().unwrap_or(0o600));
    at_last_name(None, path, trust, &|dir, name| openat(dir, name, flags, mode)).map(File::from)
}

/// The last component may be no symlink at all, unless root or this user owns it.
fn open_for_writing(path: &[u8], access: OFlags, mode: u32) -> io::Result<File> {
    let flags = access | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    #[allow(clippy::useless_conversion)]
    let mode = Mode::from_raw_mode(mode.try_into().unwrap_or(0o600));
    at_last_name(None, path, &Trust::default(), &|dir, name| openat(dir, name, flags, mode)).map(File::from)
}

/// Opens the last component of a path, by the directory that holds it.
type OpenLast<'a> = dyn Fn(BorrowedFd<'_>, &[u8]) -> Result<OwnedFd, Errno> + 'a;

/// Walks to the directory of the last component and opens that, as often as it is a symlink.
fn at_last_name(
    start: Option<BorrowedFd<'_>>,
    path: &[u8],
    trust: &Trust,
    open: &OpenLast<'_>,
) -> io::Result<OwnedFd> {
    let mut walk = Walk::new(start, trust)?;
    let mut path = path.to_vec();
    loop {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let mut ahead = Vec::new();
        push_components(&mut ahead, &path);
        if path.ends_with(b"/") || ahead.is_empty() {
            return Err(Errno::ISDIR.into());
        }
        let name = ahead.remove(0);
        walk.components(ahead, path[0] == b'/', Absent::Refuse)?;
        walk.check_confined()?;
        match open(walk.here.as_fd(), &name) {
            Ok(file) => return Ok(file),
            Err(Errno::LOOP) => path = walk.follow(&name)?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a name is an open descriptor of this process, as `/proc` shows them: its text leads
/// nowhere, and only this process could have put it there.
#[cfg(target_os = "linux")]
fn is_descriptor(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    const PROC: i64 = 0x9fa0;
    // The widths differ between platforms.
    #[allow(clippy::unnecessary_cast)]
    let is_proc = rustix::fs::fstatfs(dir).is_ok_and(|fs| fs.f_type as i64 == PROC);
    is_proc && trusted_target(dir, name).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_descriptor(_dir: BorrowedFd<'_>, _name: &[u8]) -> bool {
    false
}

/// Whether a held directory is, or lies in, the one at an absolute path.
pub fn is_within(dir: BorrowedFd<'_>, root: &[u8]) -> io::Result<bool> {
    let identity = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    let root = identity(super::open::open_ambient_dir(root)?.as_fd())?;
    let mut here = openat(dir, c".", SEARCH, Mode::empty())?;
    loop {
        let this = identity(here.as_fd())?;
        if this == root {
            return Ok(true);
        }
        let above = openat(&here, c"..", SEARCH, Mode::empty())?;
        if identity(above.as_fd())? == this {
            return Ok(false);
        }
        here = above;
    }
}

/// A walk, component by component.
struct Walk<'a> {
    here: OwnedFd,
    followed: usize,
    trust: &'a Trust,
}

impl<'a> Walk<'a> {
    fn new(start: Option<BorrowedFd<'_>>, trust: &'a Trust) -> io::Result<Self> {
        let here = match start {
            Some(dir) => dir.try_clone_to_owned()?,
            None => open_start(false)?,
        };
        Ok(Walk { here, followed: 0, trust })
    }

    fn go(&mut self, path: &[u8], absent: Absent) -> io::Result<()> {
        let mut ahead = Vec::new();
        push_components(&mut ahead, path);
        self.components(ahead, path.first() == Some(&b'/'), absent)
    }

    fn components(&mut self, mut ahead: Vec<Vec<u8>>, absolute: bool, absent: Absent) -> io::Result<()> {
        if absolute {
            self.here = open_start(true)?;
        }
        while let Some(name) = ahead.pop() {
            let here = &self.here;
            let opened =
                open_or_search(|flags| openat(here, &name[..], flags | OFlags::NOFOLLOW, Mode::empty()));
            match opened {
                Ok(dir) => self.here = dir,
                Err(Errno::NOENT) if absent == Absent::Make => {
                    self.check_confined()?;
                    match mkdirat(here, &name[..], Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    // Not through a symlink that took its place.
                    self.here = openat(here, &name[..], DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
                }
                Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                    let target = match self.follow(&name) {
                        // Not a symlink at all.
                        Err(refusal) if super::is(&refusal, Errno::INVAL) => return Err(error.into()),
                        other => other?,
                    };
                    if target.first() == Some(&b'/') {
                        self.here = open_start(true)?;
                    }
                    push_components(&mut ahead, &target);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns where a symlink leads that may be followed.
    fn follow(&mut self, name: &[u8]) -> io::Result<Vec<u8>> {
        self.followed += 1;
        if self.followed > MAX_SYMLINKS {
            return Err(Errno::LOOP.into());
        }
        match self.trust.insecure_links {
            true => Ok(readlinkat(&self.here, name, Vec::new())?.into_bytes()),
            false => trusted_target(self.here.as_fd(), name),
        }
    }

    fn check_confined(&self) -> io::Result<()> {
        match &self.trust.confine_root {
            Some(root) if !is_within(self.here.as_fd(), root)? => Err(Errno::LOOP.into()),
            _ => Ok(()),
        }
    }
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
        return Err(io::Error::other(Untrusted));
    }
    Ok(())
}
