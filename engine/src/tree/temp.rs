//! A temp file beside its target: placed by rename, or gone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use rustix::fs::{openat, unlinkat, AtFlags};
use rustix::io::Errno;

use super::apply::apply;
use super::dir::{NEW, TRIES};
use super::{stored, Attributes, Dir, HeldItem, Meta, NotApplied, Privileges, Times, WantedAcls};
use crate::sys;
use crate::sys::copy::Holes;
use crate::sys::meta::{mode_bits, Target};

/// Bytes of a name that a temp name keeps at most.
const KEPT: usize = 246;

/// Characters of the random part.
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A temp file. Dropping it removes it.
#[derive(Debug)]
pub struct TempFile {
    dir: Arc<Dir>,
    name: Vec<u8>,
    file: File,
    placed: bool,
    /// The lists that it was given, for a copy elsewhere.
    acls: OnceLock<WantedAcls>,
}

impl TempFile {
    /// Creates a file of the name `base.XXXXXX`.
    pub(super) fn create(dir: &Arc<Dir>, base: &[u8], mode: u32) -> io::Result<TempFile> {
        for _ in 0..TRIES {
            let mut random = [0; 6];
            sys::random::fill(&mut random)?;
            let mut name = Vec::with_capacity(base.len() + 7);
            name.extend_from_slice(base);
            name.push(b'.');
            name.extend(random.iter().map(|&byte| LETTERS[usize::from(byte) % LETTERS.len()]));
            match openat(dir.held()?, &name[..], NEW, mode_bits((mode | 0o200) & 0o700)) {
                Ok(file) => {
                    return Ok(TempFile {
                        dir: dir.clone(),
                        name,
                        file: file.into(),
                        placed: false,
                        acls: OnceLock::new(),
                    })
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Returns the open file, for reading and writing.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Borrows the open file, for positioned reads and for system calls on it.
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Returns the directory that holds the temp file.
    pub fn dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// Returns the name of the temp file.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Applies attributes through the open descriptor, as [`Dir::apply`] does to a member.
    pub fn apply(&self, now: &Meta, want: &Attributes) -> Result<(), NotApplied> {
        if let Some(acls) = &want.acls {
            // The first are the entry's; none come later.
            let _ = self.acls.set(acls.clone());
        }
        let target = Target::Open(self.file.as_fd());
        match self.dir.privileges {
            Privileges::Real => apply(target, now, want),
            Privileges::Stored => stored::apply(target, &self.xattrs(), now, want),
        }
    }

    /// Reaches the extended attributes of the open file.
    pub fn xattrs(&self) -> HeldItem<'_> {
        HeldItem::open(self.file.as_fd())
    }

    /// Returns the metadata of the open file.
    pub fn meta(&self) -> io::Result<Meta> {
        let meta = sys::meta::of_open(&self.file)?;
        match self.dir.privileges {
            Privileges::Real => Ok(meta),
            Privileges::Stored => stored::dressed(Ok(self.xattrs()), meta),
        }
    }

    /// Renames the file over `name` in `dir`. Where that is another file system, the file is copied
    /// into a temp file there first, with its attributes.
    pub fn place(mut self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        match self.dir.rename(&self.name, dir, name) {
            Ok(()) => {
                self.placed = true;
                Ok(())
            }
            Err(error) if sys::is(&error, Errno::XDEV) => self.place_copy(dir, name),
            Err(error) => Err(error),
        }
    }

    fn place_copy(self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        let meta = self.meta()?;
        let dir = Arc::new(dir.try_clone()?);
        let copy = dir.create_temp(name, 0o600)?;
        sys::copy::copy_contents(&self.file, &copy.file, meta.size, Holes::Keep)?;
        let want = Attributes {
            uid: Some(meta.uid),
            gid: Some(meta.gid),
            permissions: Some(meta.mode.permissions()),
            times: Some(Times {
                mtime: Some((meta.mtime, meta.mtime_nsec)),
                atime: Some((meta.atime, meta.atime_nsec)),
            }),
            acls: self.acls.get().cloned(),
        };
        copy.apply(&copy.meta()?, &want)?;
        self.xattrs().copy_to(&copy.xattrs())?;
        dir.rename(&copy.name, &dir, name)?;
        let mut copy = copy;
        copy.placed = true;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let (false, Ok(dir)) = (self.placed, self.dir.held()) {
            // Nothing to be done about a failure here.
            let _ = unlinkat(dir, &self.name[..], AtFlags::empty());
        }
    }
}

/// Returns the name without its random part: `front` and the name, less one leading dot if the
/// front already is one, cut to 246 bytes without splitting a character, less one trailing dot.
pub(super) fn temp_base(name: &[u8], front: &[u8]) -> Vec<u8> {
    let name = match name {
        [b'.', rest @ ..] if front == b"." => rest,
        _ => name,
    };
    let mut kept = &name[..name.len().min(KEPT)];
    if name.get(KEPT).is_some_and(|&cut| cut >= 0x80) {
        let high = kept.iter().rev().take_while(|&&byte| byte >= 0x80).count();
        kept = &kept[..kept.len() - high];
    }
    kept = kept.strip_suffix(b".").unwrap_or(kept);
    [front, kept].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    fn dir() -> (tempfile::TempDir, Arc<Dir>) {
        let temp = tempfile::tempdir().unwrap();
        let fd: OwnedFd = File::open(temp.path()).unwrap().into();
        (temp, Arc::new(Dir::new(fd)))
    }

    fn base(name: &[u8]) -> Vec<u8> {
        temp_base(name, b".")
    }

    /// Every case was watched in stock 3.5.0.
    #[test]
    fn temp_names_are_those_of_stock() {
        assert_eq!(base(b"foo.c"), b".foo.c");
        assert_eq!(base(b".bashrc"), b".bashrc");
        assert_eq!(base(b"..x"), b"..x");
        assert_eq!(base(b"foo."), b".foo");
        assert_eq!(base(b"foo.."), b".foo.");
        assert_eq!(base(&[b'a'; 255]).len(), 1 + 246);
        let long = |count, tail: &str| base(&[vec![b'c'; count], tail.into()].concat());
        assert_eq!(long(246, "\u{e9}c").len(), 1 + 246);
        assert_eq!(long(245, "\u{e9}d"), long(245, ""));
        assert_eq!(long(244, "\u{e9}\u{e9}"), long(244, ""));
        assert_eq!(long(243, "\u{e9}h\u{e9}z").len(), 1 + 246, "only high bytes at the cut go");
        assert_eq!(long(243, ".\u{e9}\u{e9}z"), long(243, ""), "the dot that is last then goes too");
        assert_eq!(long(245, ".xx"), long(245, ""));
    }

    #[test]
    fn a_temp_dir_name_keeps_its_dot_and_gets_none() {
        assert_eq!(temp_base(b".bash", b""), b".bash");
        assert_eq!(temp_base(b"foo..", b""), b"foo.");
        assert_eq!(temp_base(&[&b"."[..], &[b'f'; 254]].concat(), b"").len(), 246);
    }

    #[test]
    fn a_dropped_temp_file_is_gone_and_a_placed_one_is_not() {
        use std::io::Write;
        let (temp, dir) = dir();
        std::fs::write(temp.path().join("x"), "old").unwrap();
        let mut file = dir.create_temp(b"x", 0o664).unwrap();
        let name = file.name().to_vec();
        assert!(name.starts_with(b".x.") && name.len() == 9);
        assert_eq!(dir.stat(&name).unwrap().unwrap().mode.0, 0o100_600);
        file.file().write_all(b"new").unwrap();
        drop(file);
        assert_eq!(dir.stat(&name).unwrap(), None);
        assert_eq!(std::fs::read(temp.path().join("x")).unwrap(), b"old");

        let mut file = dir.create_temp(b"x", 0o664).unwrap();
        file.file().write_all(b"new").unwrap();
        file.place(&dir, b"x").unwrap();
        assert_eq!(std::fs::read(temp.path().join("x")).unwrap(), b"new");
        assert_eq!(dir.list().unwrap().len(), 1);
    }

    #[test]
    fn a_read_only_mode_still_makes_a_writable_temp_file() {
        let (_temp, dir) = dir();
        let file = dir.create_temp(b"x", 0o555).unwrap();
        assert_eq!(file.meta().unwrap().mode.permissions(), 0o700);
    }

    #[test]
    fn a_copy_into_place_carries_everything() {
        use std::io::Write;
        let (_one, from) = dir();
        let (two, to) = dir();
        let mut file = from.create_temp_elsewhere(b"x", 0o600).unwrap();
        file.file().write_all(b"content").unwrap();
        let times = Times { mtime: Some((1_000_000_000, 5)), atime: None };
        let want = Attributes { permissions: Some(0o640), times: Some(times), ..Attributes::default() };
        file.apply(&file.meta().unwrap(), &want).unwrap();
        file.place_copy(&to, b"x").unwrap();
        let meta = to.stat(b"x").unwrap().unwrap();
        assert_eq!((meta.mode.permissions(), meta.mtime, meta.mtime_nsec), (0o640, 1_000_000_000, 5));
        assert_eq!(std::fs::read(two.path().join("x")).unwrap(), b"content");
        assert!(from.list().unwrap().is_empty());
    }
}
