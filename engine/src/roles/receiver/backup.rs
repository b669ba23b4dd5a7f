//! Backups: where they go, and the three ways to make one.
//!
//! Wire: protocol/doc/20-transfer.md#14-deletions---force-backups

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice;
use suisei_protocol::flist::{FileKind, RelPath, RelPathBuf};

use crate::observe::{Event, Note};
use crate::roles::destination::Destination;
use crate::sys::copy::{copy_contents, Holes};
use crate::tree::{Attributes, Dir, Meta, SymlinkPolicy, Times, Tree};
use crate::Context;

/// What happens to the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// It is about to be replaced by rename: a link is enough, so that its name never vanishes.
    Replaced,
    /// It goes: the backup is the original itself.
    Removed,
}

/// Makes backups for generator and receiver.
pub struct Backups<'a> {
    ctx: &'a Context,
    destination: &'a Destination,
    /// The tree of an absolute `--backup-dir`, once it was opened.
    absolute: Mutex<Option<Arc<Tree>>>,
}

impl<'a> Backups<'a> {
    /// Looks up the options.
    pub fn new(ctx: &'a Context, destination: &'a Destination) -> Self {
        Backups { ctx, destination, absolute: Mutex::default() }
    }

    /// Whether replaced and deleted items are backed up.
    pub fn are_wanted(&self) -> bool {
        self.ctx.options.place.backup && !self.ctx.options.dry_run
    }

    /// Whether a name already is that of a backup: with a suffix and no directory such files are
    /// not backed up again when they are deleted.
    pub fn is_backup_name(&self, name: &[u8]) -> bool {
        let place = &self.ctx.options.place;
        place.backup_dir.is_none() && !place.backup_suffix.is_empty() && name.ends_with(&place.backup_suffix)
    }

    /// Backs up what stands at `path`. An old backup is replaced.
    pub fn make(&self, path: RelPath<'_>, now: &Meta, original: Original) -> io::Result<()> {
        let dir = self.destination.tree.parent(path)?;
        let name = path.name();
        let (to, to_name) = self.prepared(path)?;
        match to.stat(&to_name)? {
            Some(meta) if meta.is_same_file(now) => return Ok(()),
            Some(meta) if meta.kind() == FileKind::Directory => to.rmdir(&to_name)?,
            Some(_) => to.unlink(&to_name)?,
            None => {}
        }
        let linked = original == Original::Replaced && to.hard_link(&dir, name, &to_name).is_ok();
        if !linked {
            match dir.rename(name, &to, &to_name) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    copy_item(&dir, name, now, &to, &to_name)?;
                    if original == Original::Removed {
                        dir.unlink(name)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.ctx.report(Event::Note(path, Note::BackedUp(&self.named(path))));
        Ok(())
    }

    /// Copies what stands at `path` to its backup name: `--inplace` goes on writing the original.
    pub fn copy(&self, path: RelPath<'_>, now: &Meta) -> io::Result<()> {
        let dir = self.destination.tree.parent(path)?;
        let (to, to_name) = self.prepared(path)?;
        copy_item(&dir, path.name(), now, &to, &to_name)?;
        self.ctx.report(Event::Note(path, Note::BackedUp(&self.named(path))));
        Ok(())
    }

    /// Returns where the backup of `path` lies, if its directory exists.
    pub fn existing(&self, path: RelPath<'_>) -> Option<(Arc<Dir>, Vec<u8>)> {
        let tree = self.tree(false).ok()?;
        let below = self.below(path);
        Some((tree.parent(below.as_path()).ok()?, below.as_path().name().to_vec()))
    }

    /// Returns the same, making the directories that are missing.
    fn prepared(&self, path: RelPath<'_>) -> io::Result<(Arc<Dir>, Vec<u8>)> {
        let tree = self.tree(true)?;
        let below = self.below(path);
        let below = below.as_path();
        let dir = match tree.parent(below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dirs(&tree, below.parent(), path.parent())?
            }
            other => other?,
        };
        Ok((dir, below.name().to_vec()))
    }

    /// Makes the missing directories of a backup, each with the attributes of its original.
    fn make_dirs(&self, tree: &Tree, wanted: RelPath<'_>, original: RelPath<'_>) -> io::Result<Arc<Dir>> {
        let depth = original.components().count();
        let parts: Vec<_> = wanted.components().collect();
        let first_copy = parts.len().saturating_sub(depth);
        let mut at = RelPathBuf::new(Vec::new());
        let mut model = RelPathBuf::new(Vec::new());
        let mut dir = tree.dir(RelPath::ROOT)?;
        for (i, part) in parts.into_iter().enumerate() {
            let is_copy = i >= first_copy;
            if is_copy {
                model = model.as_path().join(part);
            }
            if dir.stat(part)?.is_none() {
                dir.mkdir(part, 0o777)?;
                if let (true, Some(meta), Some(now)) =
                    (is_copy, self.destination.tree.stat(model.as_path())?, dir.stat(part)?)
                {
                    // Only root may give it away; the rest is set all the same.
                    let _ = dir.apply(part, &now, &all_of(&meta));
                }
            }
            at = at.as_path().join(part);
            dir = tree.dir(at.as_path())?;
        }
        Ok(dir)
    }

    /// Returns the tree in which backups lie.
    fn tree(&self, make: bool) -> io::Result<Arc<Tree>> {
        let Some(named) = self.absolute_dir() else { return Ok(self.destination.tree.clone()) };
        let mut held = self.absolute.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = &*held {
            return Ok(tree.clone());
        }
        let path = Path::new(OsStr::from_bytes(named));
        let tree = match Tree::open_trusted(path, SymlinkPolicy::Refuse) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => Tree::create(path, SymlinkPolicy::Refuse)?,
            other => other?,
        };
        Ok(held.insert(Arc::new(tree)).clone())
    }

    fn absolute_dir(&self) -> Option<&[u8]> {
        self.ctx.options.place.backup_dir.as_deref().filter(|dir| dir.starts_with(b"/"))
    }

    /// Returns the path of the backup below its tree.
    fn below(&self, path: RelPath<'_>) -> RelPathBuf {
        let place = &self.ctx.options.place;
        let mut whole = match place.backup_dir.as_deref() {
            Some(dir) if !dir.starts_with(b"/") => {
                RelPath::new(clean(dir)).join(path.as_bytes()).into_bytes()
            }
            _ => path.as_bytes().to_vec(),
        };
        whole.extend_from_slice(&place.backup_suffix);
        RelPathBuf::new(whole)
    }

    /// Returns the name of the backup for the user.
    fn named(&self, path: RelPath<'_>) -> Vec<u8> {
        match self.absolute_dir() {
            Some(dir) => [dir.trim_end_with(|c| c == '/'), b"/", self.below(path).as_bytes()].concat(),
            None => self.below(path).into_bytes(),
        }
    }
}

/// Strips what a relative directory option may have in front and behind.
fn clean(dir: &[u8]) -> &[u8] {
    let mut dir = dir.trim_end_with(|c| c == '/');
    while let Some(rest) = dir.strip_prefix(b"./") {
        dir = rest.trim_start_with(|c| c == '/');
    }
    dir
}

/// Copies an item with its attributes.
fn copy_item(from: &Dir, name: &[u8], now: &Meta, to: &Arc<Dir>, to_name: &[u8]) -> io::Result<()> {
    match now.kind() {
        FileKind::Regular => {
            let (file, meta) = from.open_regular(name)?;
            let temp = to.create_temp(to_name, 0o600)?;
            copy_contents(&file, temp.as_file(), meta.size, Holes::Keep)?;
            // Only root may give it away; the rest is set all the same.
            let _ = temp.apply(&temp.meta()?, &all_of(&meta));
            temp.place(to, to_name)
        }
        FileKind::Symlink => {
            let target = from.read_link(name)?;
            to.replace(to_name, &mut |temp| to.symlink(&target, temp))
        }
        kind => to.replace(to_name, &mut |temp| to.mknod(temp, kind, now.mode.permissions(), now.rdev)),
    }
}

fn all_of(meta: &Meta) -> Attributes {
    Attributes {
        uid: Some(meta.uid),
        gid: Some(meta.gid),
        permissions: Some(meta.mode.permissions()),
        times: Some(Times {
            mtime: Some((meta.mtime, meta.mtime_nsec)),
            atime: None,
        }),
    }
}
