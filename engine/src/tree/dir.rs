//! A held directory and every verb on its members. Names are single components.
//!
//! Each verb is one system call on (descriptor, name): nothing between the root and the member is
//! looked up again, so nobody can put a symlink in the way. Names with a slash, `..` and empty
//! names are refused; `.` is the directory itself where that has a meaning.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{openat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use suisei_protocol::flist::{Acl, FileKind, Rdev};
use suisei_protocol::limits::PATH_MAX;

use super::apply::apply;
use super::temp::temp_base;
use super::{stored, stored_acl, Attributes, HeldItem, Meta, NotApplied, Privileges, TempFile, WantedAcls};
use crate::sys::acl::{self, AclKind};
use crate::sys::meta::{self, mode_bits, Target};
use crate::sys::operator::{self, Trust, Wanted};
use crate::sys::{confine, nodes, open};

/// Reading, without following a symlink, and without waiting for the writer of a pipe.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Reading and writing what is there.
const IN_PLACE: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Making a file that must not be there.
pub(super) const NEW: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Rounds of a verb that races with others before it gives up.
pub(super) const TRIES: u32 = 100;

/// Whether a device counts as a regular file of what it holds (`--copy-devices`,
/// `--write-devices`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// It does not.
    AreNodes,
    /// It does; its size is that of a block device, 0 for others.
    AreContent,
}

impl Devices {
    /// Reads an option.
    pub fn content_if(given: bool) -> Devices {
        if given {
            Devices::AreContent
        } else {
            Devices::AreNodes
        }
    }
}

/// One member of a directory, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirMember {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its kind, where the file system tells without a stat.
    pub kind: Option<FileKind>,
}

/// A directory held open. One that stands for a missing root has no descriptor and no members.
#[derive(Debug)]
pub struct Dir {
    fd: Option<OwnedFd>,
    pub(super) privileges: Privileges,
}

impl Dir {
    /// Holds an open directory.
    pub fn new(fd: OwnedFd) -> Dir {
        Dir { fd: Some(fd), privileges: Privileges::Real }
    }

    /// Holds an open directory whose members' metadata is kept as this says.
    pub(super) fn keeping(fd: OwnedFd, privileges: Privileges) -> Dir {
        Dir { fd: Some(fd), privileges }
    }

    fn stores(&self) -> bool {
        self.privileges == Privileges::Stored
    }

    /// Stands for a directory that does not exist.
    pub fn missing() -> Dir {
        Dir { fd: None, privileges: Privileges::Real }
    }

    /// Whether this stands for a directory that does not exist.
    pub fn is_missing(&self) -> bool {
        self.fd.is_none()
    }

    /// Borrows the descriptor; NotFound if there is no directory.
    pub fn held(&self) -> io::Result<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or_else(|| Errno::NOENT.into())
    }

    /// Returns the descriptor for a call on `name`.
    fn at(&self, name: &[u8]) -> io::Result<BorrowedFd<'_>> {
        if name.is_empty() || name == b".." || name.contains(&b'/') || name.contains(&0) {
            return Err(Errno::INVAL.into());
        }
        self.held()
    }

    /// Returns the metadata of the directory itself.
    pub fn meta(&self) -> io::Result<Meta> {
        let meta = meta::of_open(self.held()?)?;
        match self.privileges {
            Privileges::Real => Ok(meta),
            Privileges::Stored => stored::dressed(self.xattrs(b".", false), meta),
        }
    }

    /// Returns the metadata of a member without following symlinks; nothing if it does not exist.
    pub fn stat(&self, name: &[u8]) -> io::Result<Option<Meta>> {
        self.stat_by(name, meta::of_member)
    }

    /// Returns the metadata of what a member leads to; nothing if it leads nowhere.
    pub fn stat_following(&self, name: &[u8]) -> io::Result<Option<Meta>> {
        self.stat_by(name, meta::of_member_following)
    }

    /// Returns a member's metadata as [`Dir::stat`] does, a device seen as `devices` says. The size
    /// of one that cannot be opened is 0.
    pub fn stat_as(&self, name: &[u8], devices: Devices) -> io::Result<Option<Meta>> {
        let meta = self.stat(name)?;
        Ok(match devices {
            Devices::AreNodes => meta,
            Devices::AreContent => {
                meta.map(|meta| meta.as_content(|| self.open_file(name).map_or(0, |file| device_size(&file))))
            }
        })
    }

    /// Whether a member, or what it leads to, may be read.
    pub fn may_read(&self, name: &[u8]) -> bool {
        let access = |dir| rustix::fs::accessat(dir, name, rustix::fs::Access::READ_OK, AtFlags::EACCESS);
        self.at(name).is_ok_and(|dir| access(dir).is_ok())
    }

    /// Fails if the directory may not be searched, so that no member of it can be reached.
    pub fn check_search(&self) -> io::Result<()> {
        meta::of_member(self.held()?, b".").map(drop)
    }

    fn stat_by(
        &self,
        name: &[u8],
        stat: impl Fn(BorrowedFd<'_>, &[u8]) -> io::Result<Meta>,
    ) -> io::Result<Option<Meta>> {
        if self.is_missing() {
            return Ok(None);
        }
        let answer = match name {
            b"." => self.meta(),
            _ => stat(self.at(name)?, name),
        };
        match answer {
            Ok(meta) if self.stores() && name != b"." => {
                stored::dressed(self.xattrs(name, false), meta).map(Some)
            }
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the members, without `.` and `..`, in no order.
    pub fn list(&self) -> io::Result<Vec<DirMember>> {
        self.list_prepared(|_| Ok(()))
    }

    /// The same, with the access time of the directory left alone.
    pub fn list_sparing_atime(&self) -> io::Result<Vec<DirMember>> {
        self.list_prepared(|dir| open::spare_atime(dir))
    }

    fn list_prepared(&self, prepare: impl Fn(&OwnedFd) -> io::Result<()>) -> io::Result<Vec<DirMember>> {
        if self.is_missing() {
            return Ok(Vec::new());
        }
        // Listing moves the position of a descriptor: use one that nobody shares.
        let dir = open::reopen_dir(self.held()?)?;
        prepare(&dir)?;
        let mut members = Vec::new();
        for member in rustix::fs::Dir::new(dir)? {
            let member = member?;
            let name = member.file_name().to_bytes();
            if name != b"." && name != b".." {
                // A file may stand for anything.
                let kind = kind_of(member.file_type());
                let kind = kind.filter(|kind| !self.stores() || *kind != FileKind::Regular);
                members.push(DirMember { name: name.into(), kind });
            }
        }
        Ok(members)
    }

    /// Opens a member for reading. A symlink is refused; a pipe does not block.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        Ok(openat(self.at(name)?, name, READ, Mode::empty())?.into())
    }

    /// Opens what a member leads to for reading.
    pub fn open_file_following(&self, name: &[u8]) -> io::Result<File> {
        let dir = self.at(name)?;
        if let Some(root) = confine::root() {
            let (dir, name) = confine::locate(root, dir, name)?;
            return Ok(openat(&dir, &name[..], READ, Mode::empty())?.into());
        }
        Ok(openat(dir, name, READ - OFlags::NOFOLLOW, Mode::empty())?.into())
    }

    /// Opens a member that must be a regular file for reading, with the metadata of what was
    /// opened. Anything else is refused (InvalidInput, or ELOOP for a symlink).
    pub fn open_regular(&self, name: &[u8]) -> io::Result<(File, Meta)> {
        regular(self.open_file(name)?)
    }

    /// Opens a regular file that a member, or the symlink that it is, leads to, by the rules for paths that the
    /// operator named.
    pub fn open_operator_file(&self, name: &[u8], trust: &Trust) -> io::Result<File> {
        operator::open_file(Some(self.at(name)?), name, Wanted::Regular, trust)
    }

    /// Whether the directory is, or lies in, the one at an absolute path.
    pub fn is_within(&self, root: &[u8]) -> io::Result<bool> {
        operator::is_within(self.held()?, root)
    }

    /// The same, a device seen as `devices` says.
    pub fn open_content(&self, name: &[u8], devices: Devices) -> io::Result<(File, Meta)> {
        content(self.open_file(name)?, devices)
    }

    /// The same for what a member leads to.
    pub fn open_content_following(&self, name: &[u8], devices: Devices) -> io::Result<(File, Meta)> {
        content(self.open_file_following(name)?, devices)
    }

    /// Reads a regular member of at most `limit` bytes (FileTooLarge above), such as a merge file.
    pub fn read_small(&self, name: &[u8], limit: u64) -> io::Result<Vec<u8>> {
        let (file, _) = self.open_regular(name)?;
        let mut content = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(content)
    }

    /// Opens a member for writing in place (reading too), creating it with `mode` if it is not
    /// there. A symlink is refused, a device unless it counts as content. An existing file that is not writable is made so for the open
    /// and restored at once.
    pub fn open_in_place(&self, name: &[u8], mode: u32, devices: Devices) -> io::Result<File> {
        let dir = self.at(name)?;
        for _ in 0..TRIES {
            // O_CREAT alone would also create what a dangling symlink names, and is refused in
            // sticky directories for files of others: so either it is there, or it is new.
            match openat(dir, name, IN_PLACE, Mode::empty()) {
                Ok(file) => return only_content(file, devices),
                Err(Errno::NOENT) => match openat(dir, name, NEW, mode_bits(mode)) {
                    Err(Errno::EXIST) => continue,
                    answer => return Ok(answer?.into()),
                },
                Err(Errno::ACCESS) => return self.open_unwritable(name),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::AGAIN.into())
    }

    fn open_unwritable(&self, name: &[u8]) -> io::Result<File> {
        let dir = self.at(name)?;
        let before = meta::of_member(dir, name)?;
        let permissions = before.mode.permissions();
        if before.kind() != FileKind::Regular || permissions & 0o600 == 0o600 {
            return Err(Errno::ACCESS.into());
        }
        let member = Target::Member(dir, name);
        // Not the owner: the answer to the open is the one to report.
        member.chmod(permissions | 0o600).map_err(|_| io::Error::from(Errno::ACCESS))?;
        let opened = openat(dir, name, IN_PLACE, Mode::empty());
        match opened {
            Ok(file) if meta::of_open(&file)?.is_same_file(&before) => {
                Target::Open(file.as_fd()).chmod(permissions)?;
                Ok(file.into())
            }
            Ok(_) => Err(Errno::AGAIN.into()),
            Err(error) => {
                member.chmod(permissions)?;
                Err(error.into())
            }
        }
    }

    /// Creates a temp file for a future member `name`: `.name.XXXXXX`, mode
    /// `(mode | 0o200) & 0o700`.
    ///
    /// Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file
    pub fn create_temp(self: &Arc<Self>, name: &[u8], mode: u32) -> io::Result<TempFile> {
        self.at(name)?;
        TempFile::create(self, &temp_base(name, b"."), mode)
    }

    /// The same for `--temp-dir`, where the name gets no dot in front.
    pub fn create_temp_elsewhere(self: &Arc<Self>, name: &[u8], mode: u32) -> io::Result<TempFile> {
        self.at(name)?;
        TempFile::create(self, &temp_base(name, b""), mode)
    }

    /// Makes a directory with `mode` less the umask.
    pub fn mkdir(&self, name: &[u8], mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self.at(name)?, name, mode_bits(mode))?)
    }

    /// Makes a symlink.
    pub fn symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        if self.stores() {
            return self.stand_for(name, target, FileKind::Symlink, 0o777, Rdev::default());
        }
        Ok(rustix::fs::symlinkat(target, self.at(name)?, name)?)
    }

    /// Makes a device, pipe or socket with `permissions` less the umask.
    pub fn mknod(&self, name: &[u8], kind: FileKind, permissions: u32, rdev: Rdev) -> io::Result<()> {
        if self.stores() {
            return self.stand_for(name, b"", kind, permissions, rdev);
        }
        nodes::make(self.at(name)?, name, kind, permissions, rdev)
    }

    /// Makes a file that stands for something else.
    fn stand_for(
        &self,
        name: &[u8],
        content: &[u8],
        kind: FileKind,
        permissions: u32,
        rdev: Rdev,
    ) -> io::Result<()> {
        let mut file = File::from(openat(self.at(name)?, name, NEW, mode_bits(0o600))?);
        file.write_all(content)?;
        stored::stand_for(&HeldItem::open(file.as_fd()), kind, permissions, rdev)
    }

    /// Makes `name` a hard link of `from_name` in `from` (symlinks themselves are linked).
    pub fn hard_link(&self, from: &Dir, from_name: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::linkat(from.at(from_name)?, from_name, self.at(name)?, name, AtFlags::empty())?)
    }

    /// Makes something under an unused name of the form `.name.N` by `make`, then renames it over
    /// `name`: how symlinks, devices and hard links replace an existing item.
    pub fn replace(&self, name: &[u8], make: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let dir = self.at(name)?;
        let base = temp_base(name, b".");
        let first = std::process::id() % 999_900;
        for number in first..first + TRIES {
            let made = [&base[..], format!(".{number}").as_bytes()].concat();
            match make(&made) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            let renamed = rustix::fs::renameat(dir, &made[..], dir, name);
            // Renaming one hard link over another of the same file does nothing at all.
            let left = rustix::fs::unlinkat(dir, &made[..], AtFlags::empty());
            debug_assert!(renamed.is_err() || left.is_ok() || left == Err(Errno::NOENT));
            return Ok(renamed?);
        }
        Err(Errno::EXIST.into())
    }

    /// Renames a member, replacing what is there.
    pub fn rename(&self, from_name: &[u8], to: &Dir, to_name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::renameat(self.at(from_name)?, from_name, to.at(to_name)?, to_name)?)
    }

    /// Removes a member that is not a directory.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.at(name)?, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.at(name)?, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns the target of a symlink.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        match rustix::fs::readlinkat(self.at(name)?, name, Vec::new()) {
            Err(Errno::INVAL) if self.stores() => self.read_small(name, PATH_MAX as u64),
            target => Ok(target?.into_bytes()),
        }
    }

    /// Whether a member is a symlink where only a file may stand for one.
    pub fn is_foreign_link(&self, name: &[u8]) -> bool {
        self.stores() && self.at(name).is_ok_and(|dir| rustix::fs::readlinkat(dir, name, Vec::new()).is_ok())
    }

    /// Opens a member directory without following a symlink (ELOOP).
    pub fn open_dir(&self, name: &[u8]) -> io::Result<Arc<Dir>> {
        Ok(Arc::new(Dir::keeping(open::open_member_dir(self.at(name)?, name)?, self.privileges)))
    }

    /// Returns a second holder of the same directory.
    pub fn try_clone(&self) -> io::Result<Dir> {
        Ok(Dir { fd: self.fd.as_ref().map(OwnedFd::try_clone).transpose()?, privileges: self.privileges })
    }

    /// Reaches the extended attributes of a member, or of what it leads to.
    pub fn xattrs(&self, name: &[u8], follow: bool) -> io::Result<HeldItem<'_>> {
        HeldItem::member(self.at(name)?, name, follow)
    }

    /// The same for setting them: what can be opened without side effects is held open.
    pub fn xattrs_to_set(&self, name: &[u8], kind: FileKind) -> io::Result<HeldItem<'_>> {
        match kind {
            FileKind::Regular | FileKind::Directory => HeldItem::pinned(self.at(name)?, name),
            _ => self.xattrs(name, false),
        }
    }

    /// Returns an access control list of a member, or of what it leads to; nothing if it has none.
    pub fn acl(&self, name: &[u8], kind: AclKind, follow: bool) -> io::Result<Option<Acl>> {
        let dir = self.at(name)?;
        match name {
            _ if self.privileges == Privileges::Stored => stored_acl::read(&self.xattrs(name, follow)?, kind),
            b"." if rustix::fs::fcntl_getfl(dir).is_ok_and(is_full) => acl::read(&HeldItem::open(dir), kind),
            _ => acl::read(&HeldItem::member(dir, name, follow)?, kind),
        }
    }

    /// Returns all access control lists of a member, as they are set on another like it.
    pub fn acls(&self, name: &[u8], kind: FileKind) -> io::Result<WantedAcls> {
        let access = self.acl(name, AclKind::Access, false)?.unwrap_or_default();
        let default = match kind {
            FileKind::Directory => Some(self.acl(name, AclKind::Default, false)?),
            _ => None,
        };
        Ok(WantedAcls { access, default })
    }

    /// Applies attributes to a member without following symlinks: owner, then mode, then times.
    /// `now` is what a stat of it says. Does nothing that `now` already satisfies. The error says
    /// which step failed; `?` in a function of [`io::Result`] keeps the reason alone.
    pub fn apply(&self, name: &[u8], now: &Meta, want: &Attributes) -> Result<(), NotApplied> {
        let dir = self.at(name).map_err(|error| NotApplied::new("stat", error))?;
        // The directory itself is changed through its descriptor, unless that may only search.
        let target = match name {
            b"." if rustix::fs::fcntl_getfl(dir).is_ok_and(is_full) => Target::Open(dir),
            _ => Target::Member(dir, name),
        };
        match self.privileges {
            Privileges::Real => apply(target, now, want),
            Privileges::Stored => {
                let item = self.xattrs_to_set(name, FileKind::Regular);
                let item = item.map_err(|error| NotApplied::new("stat", error))?;
                stored::apply(target, &item, now, want)
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn is_full(flags: OFlags) -> bool {
    !flags.contains(OFlags::PATH)
}

#[cfg(not(target_os = "linux"))]
fn is_full(_flags: OFlags) -> bool {
    true
}

/// Lets through what may be written in place.
fn only_content(file: OwnedFd, devices: Devices) -> io::Result<File> {
    match meta::of_open(&file)?.kind() {
        FileKind::Regular => Ok(file.into()),
        kind if kind.is_device() && devices == Devices::AreContent => Ok(file.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Returns what a block device holds, in bytes; 0 for what has no end.
fn device_size(device: &File) -> u64 {
    rustix::fs::seek(device, rustix::fs::SeekFrom::End(0)).unwrap_or(0)
}

fn kind_of(file_type: rustix::fs::FileType) -> Option<FileKind> {
    use rustix::fs::FileType;
    Some(match file_type {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::CharacterDevice => FileKind::CharDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::Unknown => return None,
    })
}

fn regular(file: File) -> io::Result<(File, Meta)> {
    content(file, Devices::AreNodes)
}

fn content(file: File, devices: Devices) -> io::Result<(File, Meta)> {
    let mut meta = meta::of_open(&file)?;
    if devices == Devices::AreContent {
        meta = meta.as_content(|| device_size(&file));
    }
    if meta.kind() != FileKind::Regular {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, meta))
}

#[cfg(test)]
mod tests;
