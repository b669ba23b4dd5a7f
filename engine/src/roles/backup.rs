//! Backups (`-b`): where the old version of an item goes, and how it gets there.
//!
//! Beside the item under a suffix, or below `--backup-dir` under the same relative path, whose
//! directories take over the attributes of the originals. An older backup is replaced.
//! Wire: protocol/doc/20-transfer.md#14-deletions---force-backups

use std::io;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use suisei_protocol::flist::{FileKind, RelPath};

use crate::observe::{Class, Event, Note, Problem, What, Who};
use crate::options::Xattrs;
use crate::sys::copy::{copy_contents, Holes};
use crate::trace::{BackupBy, Topic, Trace};
use crate::tree::{Absent, Attributes, Devices, Dir, Meta, Times, Tree, Trust};
use crate::Context;

/// What is left under the item's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original {
    /// Nothing: the item moves (deletions, and items of another kind in the way).
    Moves,
    /// The item, where a hard link can do that: a rename is about to replace it.
    Stays,
    /// The item, in any case: it is about to be written in place.
    IsCopied,
}

/// Where backups go.
#[derive(Debug)]
pub struct Backups {
    suffix: Vec<u8>,
    dir: Option<BackupDir>,
    /// Whether copies get the access control lists of their originals (`-A`).
    keeps_acls: bool,
    keeps_xattrs: bool,
}

/// `--backup-dir`, opened (and made) when the first backup needs it.
#[derive(Debug)]
struct BackupDir {
    /// As named: below the destination, unless it is absolute.
    named: Vec<u8>,
    trust: Trust,
    tree: OnceLock<Arc<Tree>>,
}

/// The place of one backup.
struct Place {
    dir: Arc<Dir>,
    name: Vec<u8>,
    /// For messages.
    shown: Vec<u8>,
}

impl Backups {
    /// Reads the options; nothing without `-b`.
    pub fn new(ctx: &Context) -> Option<Backups> {
        let place = &ctx.options.place;
        if !place.backup {
            return None;
        }
        let dir = place.backup_dir.as_ref().map(|named| BackupDir {
            named: named.clone(),
            trust: ctx.options.trust.clone(),
            tree: OnceLock::new(),
        });
        Some(Backups {
            suffix: place.backup_suffix.clone(),
            dir,
            keeps_acls: ctx.options.preserve.acls,
            keeps_xattrs: ctx.options.preserve.xattrs != Xattrs::Off,
        })
    }

    /// Whether a deletion keeps no backup of `name`, because it is a backup itself.
    pub fn spares(&self, name: &[u8]) -> bool {
        self.dir.is_none() && !self.suffix.is_empty() && name.ends_with(&self.suffix)
    }

    /// Keeps the item at `path` of `tree` as a backup and reports it. Nothing there is no error.
    pub fn keep(
        &self,
        ctx: &Context,
        who: Who,
        tree: &Tree,
        path: RelPath<'_>,
        original: Original,
    ) -> io::Result<()> {
        let from = tree.parent(path)?;
        let Some(meta) = from.stat(path.name())? else { return Ok(()) };
        let place = self.place(tree, path).inspect_err(|error| {
            // Stock says no more of a path that it may not follow.
            if crate::sys::is(error, Errno::LOOP) {
                return ctx.note_untrusted(who, error);
            }
            let full = tree.full_name(path);
            ctx.problem(who, Class::Transfer, "make_backup", &full, error);
        })?;
        let item = Item {
            from: &from,
            name: path.name(),
            meta: &meta,
            keeps_acls: self.keeps_acls,
            keeps_xattrs: self.keeps_xattrs,
        };
        match move_aside(item, &place, original) {
            Ok(by) => {
                ctx.trace(Topic::Backup, 1, who, Trace::BackedUp(path.as_bytes(), by));
                ctx.report(Event::Note(path, Note::BackedUp(&place.shown)));
                Ok(())
            }
            Err(error) => {
                let after = [b"\" -> \"", &self.full_name(tree, &place)[..], b"\""].concat();
                let full = tree.full_name(path);
                let what = What::Around {
                    before: "keep_backup failed: \"",
                    path: &full,
                    after: &after,
                    error: &error,
                };
                ctx.report_problem(Problem { who, class: Class::Transfer, what });
                Err(error)
            }
        }
    }

    /// Opens the backup of the item at `path` for reading, if there is one.
    pub fn open(&self, tree: &Tree, path: RelPath<'_>) -> io::Result<(std::fs::File, Meta)> {
        let place = self.place(tree, path)?;
        place.dir.open_regular(&place.name)
    }

    fn place(&self, tree: &Tree, path: RelPath<'_>) -> io::Result<Place> {
        let name = [path.name(), &self.suffix].concat();
        let Some(dir) = &self.dir else {
            let shown = [path.as_bytes(), &self.suffix].concat();
            return Ok(Place { dir: tree.parent(path)?, name, shown });
        };
        let shown = [&dir.named[..], b"/", path.as_bytes(), &self.suffix].concat();
        let backups = dir.open(tree)?;
        Ok(Place { dir: mirror(tree, &backups, path.parent(), self.keeps_acls)?, name, shown })
    }

    fn full_name(&self, tree: &Tree, place: &Place) -> Vec<u8> {
        match (&self.dir, place.shown.first()) {
            (Some(_), Some(b'/')) => place.shown.clone(),
            _ => tree.full_name(RelPath::new(&place.shown)),
        }
    }
}

impl BackupDir {
    fn open(&self, destination: &Tree) -> io::Result<Arc<Tree>> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree.clone());
        }
        let tree = destination.open_named(&self.named, Absent::Make, &self.trust)?;
        Ok(self.tree.get_or_init(|| Arc::new(tree)).clone())
    }
}

/// Returns the directory `path` of `backups`, making what is missing with the owner and mode that
/// it has in `tree`.
fn mirror(tree: &Tree, backups: &Tree, path: RelPath<'_>, keeps_acls: bool) -> io::Result<Arc<Dir>> {
    match backups.dir(path) {
        Ok(dir) => return Ok(dir),
        Err(error) if path.is_root() => return Err(error),
        Err(_) => {}
    }
    let parent = mirror(tree, backups, path.parent(), keeps_acls)?;
    let name = path.name();
    match parent.mkdir(name, 0o777) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Something that is not a directory is in the way of one.
            parent.unlink(name)?;
            parent.mkdir(name, 0o777)?;
        }
        other => other?,
    }
    let held = tree.dir(path).and_then(|dir| Ok((dir.meta()?, dir)));
    if let (Ok((original, dir)), Some(made)) = (held, parent.stat(name)?) {
        let want = Attributes {
            uid: Some(original.uid),
            gid: Some(original.gid),
            permissions: Some(original.mode.permissions() | 0o700),
            times: None,
            acls: keeps_acls.then(|| dir.acls(b".", FileKind::Directory).ok()).flatten(),
        };
        // A backup in a directory of our own is better than none.
        let _ = parent.apply(name, &made, &want);
    }
    backups.forget(path);
    backups.dir(path)
}

/// What is kept.
#[derive(Clone, Copy)]
struct Item<'a> {
    from: &'a Dir,
    name: &'a [u8],
    meta: &'a Meta,
    keeps_acls: bool,
    keeps_xattrs: bool,
}

fn move_aside(item: Item<'_>, place: &Place, original: Original) -> io::Result<BackupBy> {
    let Item { from, name, .. } = item;
    let to = &place.dir;
    if to.stat(&place.name)?.is_some_and(|old| old.kind() == FileKind::Directory) {
        remove_all(to, &place.name)?;
    }
    match original {
        Original::IsCopied => return copy(item, place, Devices::AreContent).map(|()| BackupBy::Copy),
        Original::Stays => {
            if to.replace(&place.name, &mut |temp| to.hard_link(from, name, temp)).is_ok() {
                return Ok(BackupBy::Link);
            }
        }
        Original::Moves => {}
    }
    match from.rename(name, to, &place.name) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(item, place, Devices::AreNodes)?;
            if original == Original::Moves {
                from.unlink(name)?;
            }
            Ok(BackupBy::Copy)
        }
        other => other.map(|()| BackupBy::Rename),
    }
}

fn copy(item: Item<'_>, place: &Place, devices: Devices) -> io::Result<()> {
    let Item { from, name, meta, keeps_acls, keeps_xattrs } = item;
    let to = &place.dir;
    let want = Attributes {
        uid: Some(meta.uid),
        gid: Some(meta.gid),
        permissions: Some(meta.mode.permissions()),
        times: Some(Times {
            mtime: Some((meta.mtime, meta.mtime_nsec)),
            atime: Some((meta.atime, meta.atime_nsec)),
        }),
        acls: keeps_acls.then(|| from.acls(name, meta.kind()).ok()).flatten(),
    };
    let is_content = meta.kind().is_device() && devices == Devices::AreContent;
    if meta.kind() == FileKind::Regular || is_content {
        let (source, meta) = from.open_content(name, devices)?;
        let temp = to.create_temp(&place.name, 0o600)?;
        let holes = if is_content { Holes::Fill } else { Holes::Keep };
        copy_contents(&source, temp.as_file(), meta.size, holes)?;
        // An owner that cannot be kept does not make the copy worthless.
        let _ = temp.apply(&temp.meta()?, &want);
        if keeps_xattrs {
            let _ = from.xattrs(name, false).and_then(|original| original.copy_to(&temp.xattrs()));
        }
        return temp.place(to, &place.name);
    }
    match meta.kind() {
        FileKind::Symlink => {
            let target = from.read_link(name)?;
            to.replace(&place.name, &mut |temp| to.symlink(&target, temp))?;
        }
        kind => {
            to.replace(&place.name, &mut |temp| to.mknod(temp, kind, meta.mode.permissions(), meta.rdev))?
        }
    }
    if let Some(made) = to.stat(&place.name)? {
        let _ = to.apply(&place.name, &made, &want);
    }
    Ok(())
}

/// Removes a directory that stands where a backup goes.
fn remove_all(parent: &Dir, name: &[u8]) -> io::Result<()> {
    let dir = parent.open_dir(name)?;
    for member in dir.list()? {
        match dir.unlink(&member.name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => remove_all(&dir, &member.name)?,
            other => other?,
        }
    }
    parent.rmdir(name)
}

#[cfg(test)]
mod tests;
