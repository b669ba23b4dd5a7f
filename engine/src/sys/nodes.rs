//! Making devices, pipes and sockets.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use suisei_protocol::flist::{FileKind, Rdev};

/// Makes a node in `dir` with `permissions` less the umask. Other kinds are refused (EINVAL).
#[cfg(target_os = "linux")]
pub fn make(
    dir: BorrowedFd<'_>,
    name: &[u8],
    kind: FileKind,
    permissions: u32,
    rdev: Rdev,
) -> io::Result<()> {
    use rustix::fs::{makedev, mknodat, FileType};

    let (file_type, dev) = match kind {
        FileKind::CharDevice => (FileType::CharacterDevice, makedev(rdev.major, rdev.minor)),
        FileKind::BlockDevice => (FileType::BlockDevice, makedev(rdev.major, rdev.minor)),
        FileKind::Fifo => (FileType::Fifo, 0),
        FileKind::Socket => (FileType::Socket, 0),
        _ => return Err(Errno::INVAL.into()),
    };
    Ok(mknodat(dir, name, file_type, super::meta::mode_bits(permissions), dev)?)
}

/// Makes a node in `dir` with `permissions` less the umask. Other kinds are refused (EINVAL).
/// Sockets cannot be made like this here (EOPNOTSUPP).
#[cfg(not(target_os = "linux"))]
pub fn make(
    dir: BorrowedFd<'_>,
    name: &[u8],
    kind: FileKind,
    permissions: u32,
    rdev: Rdev,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let name = std::ffi::CString::new(name).map_err(|_| io::Error::from(Errno::INVAL))?;
    let kind_bits = match kind {
        FileKind::CharDevice => nix::libc::S_IFCHR,
        FileKind::BlockDevice => nix::libc::S_IFBLK,
        FileKind::Fifo => nix::libc::S_IFIFO,
        FileKind::Socket => return Err(Errno::OPNOTSUPP.into()),
        _ => return Err(Errno::INVAL.into()),
    };
    let permissions = (permissions & 0o7777) as nix::libc::mode_t;
    // SAFETY: both calls read a NUL-terminated string that outlives them, and numbers.
    let answer = unsafe {
        match kind {
            FileKind::Fifo => nix::libc::mkfifoat(dir.as_raw_fd(), name.as_ptr(), permissions),
            _ => nix::libc::mknodat(
                dir.as_raw_fd(),
                name.as_ptr(),
                kind_bits | permissions,
                rustix::fs::makedev(rdev.major, rdev.minor) as nix::libc::dev_t,
            ),
        }
    };
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
