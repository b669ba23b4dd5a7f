//! Extended attributes of one item: of an open descriptor, or of a member of a held directory.
//!
//! No call follows a symlink, unless that is what was asked for.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#3-extended-attributes--x-p30

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{openat, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::meta::Target;

/// First room for names and values.
const ROOM: usize = 1024;
/// Rounds of a call, each with four times the room: the last has 256 MiB.
const TRIES: u32 = 10;

/// Opening what has no side effects when it is opened.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An item whose attributes can be read and set.
#[derive(Debug)]
pub struct Held<'a>(Way<'a>);

/// How the calls reach an item.
#[derive(Debug)]
enum Way<'a> {
    /// By a descriptor of the caller's.
    Open(BorrowedFd<'a>),
    /// By a descriptor of its own.
    Own(OwnedFd),
    /// As a member of a directory.
    #[cfg(target_os = "linux")]
    Member { dir: BorrowedFd<'a>, name: CString, follow: bool },
}

impl<'a> Held<'a> {
    /// Takes an open descriptor.
    pub fn open(fd: BorrowedFd<'a>) -> Held<'a> {
        Held(Way::Open(fd))
    }

    /// Takes a member of a directory, whatever it is; `.` is the directory. `follow`: what it
    /// leads to.
    #[cfg(target_os = "linux")]
    pub fn member(dir: BorrowedFd<'a>, name: &[u8], follow: bool) -> io::Result<Held<'a>> {
        Ok(Held(Way::Member { dir, name: text(name)?, follow }))
    }

    /// Takes a member of a directory, whatever it is; `.` is the directory. `follow`: what it
    /// leads to.
    #[cfg(not(target_os = "linux"))]
    pub fn member(dir: BorrowedFd<'a>, name: &[u8], follow: bool) -> io::Result<Held<'a>> {
        // A symlink is opened itself. What may not be read, and devices, are held for events.
        let link = if follow { OFlags::empty() } else { OFlags::from_bits_retain(nix::libc::O_SYMLINK as _) };
        let events = OFlags::from_bits_retain(nix::libc::O_EVTONLY as _);
        let fd = openat(dir, name, READ | link, Mode::empty())
            .or_else(|_| openat(dir, name, READ | link | events, Mode::empty()))?;
        Ok(Held(Way::Own(fd)))
    }

    /// The same for a regular file or a directory, which is opened where that is allowed: it is
    /// then one item for all calls, whatever happens to its name.
    pub fn pinned(dir: BorrowedFd<'a>, name: &[u8]) -> io::Result<Held<'a>> {
        match openat(dir, name, READ | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Held(Way::Own(fd))),
            Err(_) => Held::member(dir, name, false),
        }
    }

    /// Returns the descriptor that the calls take.
    fn fd(&self) -> Result<BorrowedFd<'_>, &Self> {
        match &self.0 {
            Way::Open(fd) => Ok(*fd),
            Way::Own(fd) => Ok(fd.as_fd()),
            #[cfg(target_os = "linux")]
            Way::Member { .. } => Err(self),
        }
    }

    /// Returns the metadata of the item.
    pub fn meta(&self) -> io::Result<crate::tree::Meta> {
        match &self.0 {
            Way::Open(fd) => super::meta::of_open(fd),
            Way::Own(fd) => super::meta::of_open(fd),
            #[cfg(target_os = "linux")]
            Way::Member { dir, name, follow: true } => {
                super::meta::of_member_following(*dir, name.as_bytes())
            }
            #[cfg(target_os = "linux")]
            Way::Member { dir, name, follow: false } => super::meta::of_member(*dir, name.as_bytes()),
        }
    }

    /// Changes the permission bits of the item.
    pub fn chmod(&self, permissions: u32) -> io::Result<()> {
        match &self.0 {
            Way::Open(fd) => Target::Open(*fd).chmod(permissions),
            Way::Own(fd) => Target::Open(fd.as_fd()).chmod(permissions),
            #[cfg(target_os = "linux")]
            Way::Member { dir, name, .. } => Target::Member(*dir, name.as_bytes()).chmod(permissions),
        }
    }

    /// Returns the names of all attributes that may be seen, in no order. A file system without
    /// any has none.
    pub fn list(&self) -> io::Result<Vec<Box<[u8]>>> {
        let names = grow(|room| match self.fd() {
            Ok(fd) => rustix::fs::flistxattr(fd, room),
            #[cfg(target_os = "linux")]
            Err(member) => at::list(member, room),
            #[cfg(not(target_os = "linux"))]
            Err(_) => Err(Errno::NOSYS),
        });
        let names = match names {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
            names => names?,
        };
        let names = names.split(|&byte| byte == 0).filter(|name| is_shown(name));
        Ok(names.map(Into::into).collect())
    }

    /// Returns a value; nothing if there is no attribute of that name.
    pub fn value(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let name = text(name)?;
        let value = grow(|room| match self.fd() {
            Ok(fd) => rustix::fs::fgetxattr(fd, &name, room),
            #[cfg(target_os = "linux")]
            Err(member) => at::value(member, &name, room),
            #[cfg(not(target_os = "linux"))]
            Err(_) => Err(Errno::NOSYS),
        });
        match value {
            Err(error) if error == ABSENT => Ok(None),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
            value => Ok(Some(value?)),
        }
    }

    /// Sets a value, whether or not the attribute was there.
    pub fn set(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        let name = text(name)?;
        match self.fd() {
            Ok(fd) => rustix::fs::fsetxattr(fd, &name, value, XattrFlags::empty())?,
            #[cfg(target_os = "linux")]
            Err(member) => at::set(member, &name, value)?,
            #[cfg(not(target_os = "linux"))]
            Err(_) => return Err(Errno::NOSYS.into()),
        }
        Ok(())
    }

    /// Removes an attribute. None of that name is no error.
    pub fn remove(&self, name: &[u8]) -> io::Result<()> {
        let name = text(name)?;
        let answer = match self.fd() {
            Ok(fd) => rustix::fs::fremovexattr(fd, &name),
            #[cfg(target_os = "linux")]
            Err(member) => at::remove(member, &name),
            #[cfg(not(target_os = "linux"))]
            Err(_) => Err(Errno::NOSYS),
        };
        match answer {
            Err(error) if error == ABSENT => Ok(()),
            answer => Ok(answer?),
        }
    }

    /// Gives another item the same attributes. Labels that the system itself puts on every file may
    /// be refused.
    pub fn copy_to(&self, to: &Held<'_>) -> io::Result<()> {
        for name in self.list()?.iter().filter(|name| !name.starts_with(b"system.")) {
            let Some(value) = self.value(name)? else { continue };
            match to.set(name, &value) {
                Err(_) if name.starts_with(b"security.") => {}
                answer => answer?,
            }
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
const ABSENT: Errno = Errno::NODATA;
#[cfg(not(target_os = "linux"))]
const ABSENT: Errno = Errno::NOATTR;

/// Whether an attribute is the user's. macOS puts one on every file that a process with certain
/// rights writes, and lets nobody remove it: it says nothing of the file.
fn is_shown(name: &[u8]) -> bool {
    let own = cfg!(target_os = "macos") && name == b"com.apple.provenance";
    !name.is_empty() && !own
}

fn text(name: &[u8]) -> io::Result<CString> {
    CString::new(name).map_err(|_| Errno::INVAL.into())
}

/// Calls with more and more room until the answer fits.
fn grow(mut call: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; ROOM];
    for _ in 0..TRIES {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::RANGE)
}

/// The calls on a member (Linux 6.13), which the wrappers at hand do not have yet. Elsewhere the
/// member is held without being opened, and reached by its descriptor's name in `/proc`, which is
/// the held inode and nothing else.
#[cfg(target_os = "linux")]
mod at {
    use std::ffi::CStr;
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

    use nix::libc::{c_int, c_long, syscall, AT_SYMLINK_NOFOLLOW};
    use rustix::fs::{openat, Mode, OFlags, XattrFlags};
    use rustix::io::Errno;

    use super::{Held, Way};

    /// Their numbers, the same on every architecture that Rust runs Linux on.
    const SETXATTRAT: c_long = 463;
    const GETXATTRAT: c_long = 464;
    const LISTXATTRAT: c_long = 465;
    const REMOVEXATTRAT: c_long = 466;

    /// `struct xattr_args` of the kernel.
    #[repr(C, align(8))]
    struct Value {
        value: u64,
        size: u32,
        flags: u32,
    }

    struct Place<'a> {
        dir: BorrowedFd<'a>,
        name: &'a CStr,
        follow: bool,
    }

    fn place<'a>(held: &'a Held<'_>) -> Result<Place<'a>, Errno> {
        match &held.0 {
            Way::Member { dir, name, follow } => Ok(Place { dir: *dir, name, follow: *follow }),
            Way::Open(_) | Way::Own(_) => Err(Errno::BADF),
        }
    }

    impl Place<'_> {
        fn flags(&self) -> c_int {
            if self.follow {
                0
            } else {
                AT_SYMLINK_NOFOLLOW
            }
        }

        /// Holds the member, and returns its name in `/proc`.
        fn hold(&self) -> Result<(OwnedFd, String), Errno> {
            let follow = if self.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
            let fd = openat(self.dir, self.name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?;
            let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
            Ok((fd, name))
        }
    }

    pub(super) fn list(held: &Held<'_>, room: &mut [u8]) -> Result<usize, Errno> {
        let at = place(held)?;
        let (dir, name, flags) = (at.dir.as_raw_fd(), at.name.as_ptr(), at.flags());
        // SAFETY: the call reads a NUL-terminated string and writes at most the length of `room`
        // to it; both outlive it.
        let answer = unsafe { syscall(LISTXATTRAT, dir, name, flags, room.as_mut_ptr(), room.len()) };
        match checked(answer) {
            Err(Errno::NOSYS) => at.hold().and_then(|(_fd, name)| rustix::fs::listxattr(name, room)),
            answer => answer,
        }
    }

    pub(super) fn value(held: &Held<'_>, attribute: &CStr, room: &mut [u8]) -> Result<usize, Errno> {
        let at = place(held)?;
        let (dir, name, flags) = (at.dir.as_raw_fd(), at.name.as_ptr(), at.flags());
        let size = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let mut args = Value { value: room.as_mut_ptr() as u64, size, flags: 0 };
        let key = attribute.as_ptr();
        // SAFETY: the call reads NUL-terminated strings and writes at most `size` bytes to
        // `room`; all outlive it.
        let answer = unsafe { syscall(GETXATTRAT, dir, name, flags, key, &raw mut args, size_of::<Value>()) };
        match checked(answer) {
            Err(Errno::NOSYS) => {
                at.hold().and_then(|(_fd, name)| rustix::fs::getxattr(name, attribute, room))
            }
            answer => answer,
        }
    }

    pub(super) fn set(held: &Held<'_>, attribute: &CStr, value: &[u8]) -> Result<(), Errno> {
        let at = place(held)?;
        let (dir, name, flags) = (at.dir.as_raw_fd(), at.name.as_ptr(), at.flags());
        let size = u32::try_from(value.len()).map_err(|_| Errno::TOOBIG)?;
        let args = Value { value: value.as_ptr() as u64, size, flags: 0 };
        let key = attribute.as_ptr();
        // SAFETY: the call reads NUL-terminated strings and `size` bytes, which outlive it.
        let answer =
            unsafe { syscall(SETXATTRAT, dir, name, flags, key, &raw const args, size_of::<Value>()) };
        match checked(answer) {
            Err(Errno::NOSYS) => at
                .hold()
                .and_then(|(_fd, name)| rustix::fs::setxattr(name, attribute, value, XattrFlags::empty())),
            answer => answer.map(drop),
        }
    }

    pub(super) fn remove(held: &Held<'_>, attribute: &CStr) -> Result<(), Errno> {
        let at = place(held)?;
        let (dir, name, flags) = (at.dir.as_raw_fd(), at.name.as_ptr(), at.flags());
        // SAFETY: the call reads NUL-terminated strings that outlive it.
        let answer = unsafe { syscall(REMOVEXATTRAT, dir, name, flags, attribute.as_ptr()) };
        match checked(answer) {
            Err(Errno::NOSYS) => at.hold().and_then(|(_fd, name)| rustix::fs::removexattr(name, attribute)),
            answer => answer.map(drop),
        }
    }

    fn checked(answer: c_long) -> Result<usize, Errno> {
        let error = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
        usize::try_from(answer).map_err(|_| error())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_what_is_held_are_set_read_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        std::fs::write(temp.path().join("file"), "").unwrap();
        let open = std::fs::File::open(temp.path().join("file")).unwrap();
        let long = vec![7; 2000];
        let ways = [
            Held::open(open.as_fd()),
            Held::member(dir.as_fd(), b"file", false).unwrap(),
            Held::pinned(dir.as_fd(), b"file").unwrap(),
        ];
        for held in ways {
            held.set(b"user.one", b"1").unwrap();
            held.set(b"user.long", &long).unwrap();
            let mut names = held.list().unwrap();
            names.retain(|name| name.starts_with(b"user."));
            names.sort();
            assert_eq!(names, [b"user.long"[..].into(), Box::from(&b"user.one"[..])]);
            assert_eq!(held.value(b"user.long").unwrap(), Some(long.clone()));
            assert_eq!(held.value(b"user.none").unwrap(), None);
            held.remove(b"user.one").unwrap();
            held.remove(b"user.one").unwrap();
            assert_eq!(held.value(b"user.one").unwrap(), None);
            assert_eq!(held.set(b"user.a\0b", b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_symlink_is_the_item_unless_it_is_to_be_followed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        std::fs::write(temp.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", temp.path().join("link")).unwrap();
        Held::member(dir.as_fd(), b"file", false).unwrap().set(b"user.of", b"file").unwrap();
        let link = Held::pinned(dir.as_fd(), b"link").unwrap();
        assert!(link.list().unwrap().iter().all(|name| !name.starts_with(b"user.")));
        let behind = Held::member(dir.as_fd(), b"link", true).unwrap();
        assert_eq!(behind.value(b"user.of").unwrap(), Some(b"file".to_vec()));
    }
}
