//! Reading and setting metadata, of open descriptors and of members of a held directory.
//!
//! No call on a member follows a symlink.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    fchmod, fchown, fstat, futimens, major, minor, statat, utimensat, AtFlags, Gid, RawMode, Stat, Timespec,
    Timestamps, Uid, UTIME_OMIT,
};
use rustix::io::Errno;
use suisei_protocol::flist::{Mode, Rdev};

use crate::tree::{Meta, Times};

/// What metadata is set on.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// An open descriptor.
    Open(BorrowedFd<'a>),
    /// A member of a held directory.
    Member(BorrowedFd<'a>, &'a [u8]),
}

/// Returns the metadata of an open descriptor.
pub fn of_open(fd: impl AsFd) -> io::Result<Meta> {
    Ok(meta(&fstat(fd)?))
}

/// Returns the metadata of a member itself.
pub fn of_member(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Meta> {
    Ok(meta(&statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// Returns the metadata of what a member leads to.
pub fn of_member_following(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Meta> {
    if let Some(root) = super::confine::root() {
        let (dir, name) = super::confine::locate(root, dir, name)?;
        return of_member(dir.as_fd(), &name);
    }
    Ok(meta(&statat(dir, name, AtFlags::empty())?))
}

// The widths of the fields differ between platforms; each holds its value.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
fn meta(stat: &Stat) -> Meta {
    Meta {
        mode: Mode(stat.st_mode as u32),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime: stat.st_mtime as i64,
        mtime_nsec: stat.st_mtime_nsec as u32,
        atime: stat.st_atime as i64,
        atime_nsec: stat.st_atime_nsec as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: Rdev { major: major(stat.st_rdev) as u32, minor: minor(stat.st_rdev) as u32 },
        dev: stat.st_dev as u64,
        ino: stat.st_ino as u64,
        nlink: stat.st_nlink as u64,
    }
}

impl Target<'_> {
    /// Changes owner and group; absent ones stay. The number 0xffffffff is no id: it stays too.
    pub fn chown(self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        let uid = uid.filter(|&id| id != u32::MAX).map(Uid::from_raw);
        let gid = gid.filter(|&id| id != u32::MAX).map(Gid::from_raw);
        match self {
            Target::Open(fd) => fchown(fd, uid, gid)?,
            Target::Member(dir, name) => rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?,
        }
        Ok(())
    }

    /// Changes the permission bits. A symlink is refused.
    pub fn chmod(self, permissions: u32) -> io::Result<()> {
        match self {
            Target::Open(fd) => Ok(fchmod(fd, mode_bits(permissions))?),
            Target::Member(dir, name) => chmod_member(dir, name, permissions),
        }
    }

    /// Changes times; absent ones stay.
    pub fn set_times(self, times: &Times) -> io::Result<()> {
        let times =
            Timestamps { last_access: timespec(times.atime), last_modification: timespec(times.mtime) };
        match self {
            Target::Open(fd) => futimens(fd, &times)?,
            Target::Member(dir, name) => utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)?,
        }
        Ok(())
    }
}

fn timespec(time: Option<(i64, u32)>) -> Timespec {
    match time {
        Some((seconds, nanoseconds)) => {
            Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() }
        }
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}

/// Returns permission bits as the platform's type.
pub(crate) fn mode_bits(permissions: u32) -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode((permissions & 0o7777) as RawMode)
}

#[cfg(not(target_os = "linux"))]
fn chmod_member(dir: BorrowedFd<'_>, name: &[u8], permissions: u32) -> io::Result<()> {
    if statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode as u32 & 0o170_000 == 0o120_000 {
        return Err(Errno::OPNOTSUPP.into());
    }
    Ok(rustix::fs::chmodat(dir, name, mode_bits(permissions), AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(target_os = "linux")]
fn chmod_member(dir: BorrowedFd<'_>, name: &[u8], permissions: u32) -> io::Result<()> {
    match fchmodat2(dir, name, permissions) {
        // Before Linux 6.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => chmod_member_slowly(dir, name, permissions),
        answer => Ok(answer?),
    }
}

/// The one call that changes a member's mode and never follows a symlink. The wrappers at hand do
/// not have it yet.
#[cfg(target_os = "linux")]
fn fchmodat2(dir: BorrowedFd<'_>, name: &[u8], permissions: u32) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;

    /// Its number, the same on every architecture that Rust runs Linux on.
    const FCHMODAT2: nix::libc::c_long = 452;

    let name = std::ffi::CString::new(name).map_err(|_| Errno::INVAL)?;
    // SAFETY: the call reads a NUL-terminated string that outlives it, and numbers.
    let answer = unsafe {
        nix::libc::syscall(
            FCHMODAT2,
            dir.as_raw_fd(),
            name.as_ptr(),
            nix::libc::c_uint::from(permissions & 0o7777),
            nix::libc::AT_SYMLINK_NOFOLLOW,
        )
    };
    if answer == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// Holds the member without opening it, checks that it is no symlink, and changes it through its
/// descriptor's name in `/proc`, which is the held inode and nothing else.
#[cfg(target_os = "linux")]
fn chmod_member_slowly(dir: BorrowedFd<'_>, name: &[u8], permissions: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{openat, OFlags};

    let held = openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode_bits(0))?;
    let mode = fstat(&held)?.st_mode & 0o170_000;
    if mode == 0o120_000 {
        return Err(Errno::OPNOTSUPP.into());
    }
    match rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), mode_bits(permissions)) {
        // No /proc: what can be opened without side effects is changed through its descriptor.
        Err(Errno::NOENT | Errno::NOTDIR) if mode == 0o100_000 || mode == 0o040_000 => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Ok(fchmod(openat(dir, name, flags, mode_bits(0))?, mode_bits(permissions))?)
        }
        answer => Ok(answer?),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use suisei_protocol::flist::FileKind;

    /// Old kernels and sandboxes must change the same things, and refuse the same.
    #[test]
    fn the_slow_chmod_does_what_the_fast_one_does() {
        let temp = tempfile::tempdir().unwrap();
        let held = std::fs::File::open(temp.path()).unwrap();
        let dir = held.as_fd();
        std::fs::write(temp.path().join("file"), "").unwrap();
        std::fs::create_dir(temp.path().join("dir")).unwrap();
        std::os::unix::fs::symlink("file", temp.path().join("link")).unwrap();
        crate::sys::nodes::make(dir, b"pipe", FileKind::Fifo, 0o600, Rdev::default()).unwrap();
        for chmod in [chmod_member, chmod_member_slowly] {
            for name in [&b"file"[..], b"dir", b"pipe"] {
                for permissions in [0o000, 0o1751] {
                    chmod(dir, name, permissions).unwrap();
                    assert_eq!(of_member(dir, name).unwrap().mode.permissions(), permissions);
                }
            }
            let refused = chmod(dir, b"link", 0o600).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
            assert_eq!(chmod(dir, b"none", 0o600).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
