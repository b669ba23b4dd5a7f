//! A root directory held open, and safe ways from it to any directory below.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use suisei_protocol::flist::RelPath;

use super::cache::DirCache;
use super::{Dir, Meta, Privileges};
use crate::sys;
use crate::sys::operator::{self, Absent, Trust, Wanted};

/// What a resolution does with symlinks *below* the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Refuses every symlink that stands for a directory.
    Refuse,
    /// Follows symlinks to directories that stay below the root, as `-K` on a receiver asks for.
    /// Those that leave it are refused, as in stock.
    FollowDirs,
    /// Follows every symlink, wherever it leads (`-L` and `-k` on a sender).
    FollowAll,
}

/// A directory that is held open. Shared by the roles of one end.
#[derive(Debug)]
pub struct Tree {
    root: Arc<Dir>,
    /// Absolute, for messages only.
    name: Vec<u8>,
    links: SymlinkPolicy,
    privileges: Privileges,
    dirs: Mutex<DirCache>,
}

impl Tree {
    /// Opens a root that the operator named: its own path is followed as the platform does. For
    /// sources, and for destinations under `--insecure-links`.
    pub fn open(path: &Path, links: SymlinkPolicy) -> io::Result<Tree> {
        let bytes = path.as_os_str().as_bytes();
        let root = sys::open::open_ambient_dir(bytes)?;
        Ok(Tree::hold(root, absolute(bytes), links))
    }

    /// Opens a root that the operator named, without following symlinks that belong to anyone but
    /// root and this user, as far as `trust` goes: they fail with ELOOP, as in stock. For
    /// destinations.
    pub fn open_trusted(path: &Path, links: SymlinkPolicy, trust: &Trust) -> io::Result<Tree> {
        let bytes = path.as_os_str().as_bytes();
        let root = operator::open_dir_from(None, bytes, Absent::Refuse, trust)?;
        Ok(Tree::hold(root, absolute(bytes), links))
    }

    /// The same, making the directories that are not there, mode 0777 less the umask (`--mkpath`).
    pub fn create(path: &Path, links: SymlinkPolicy, trust: &Trust) -> io::Result<Tree> {
        let bytes = path.as_os_str().as_bytes();
        let root = operator::open_dir_from(None, bytes, Absent::Make, trust)?;
        Ok(Tree::hold(root, absolute(bytes), links))
    }

    /// Opens a directory that an option names, absolute or from this root on, by the same rules;
    /// below it no symlink is followed. For temp, partial, backup and basis directories.
    pub fn open_named(&self, path: &[u8], absent: Absent, trust: &Trust) -> io::Result<Tree> {
        let name = match path.first() {
            Some(b'/') => absolute(path),
            _ => absolute(&[&self.name, &b"/"[..], path].concat()),
        };
        // A confined process starts at what it is confined to.
        let root = match sys::confine::root() {
            Some(_) => operator::open_dir_from(None, &name, absent, trust)?,
            None if path.first() == Some(&b'/') => operator::open_dir_from(None, path, absent, trust)?,
            None => operator::open_dir_from(Some(self.root.held()?), path, absent, trust)?,
        };
        Ok(Tree::hold(root, name, SymlinkPolicy::Refuse).keeping(self.privileges))
    }

    /// Stands for a root that does not exist (a dry run to a new destination): nothing is in it.
    /// Every directory below it can be had, and is as empty; every change fails with ENOENT.
    pub fn missing(path: &Path) -> Tree {
        Tree {
            root: Arc::new(Dir::missing()),
            name: absolute(path.as_os_str().as_bytes()),
            links: SymlinkPolicy::Refuse,
            privileges: Privileges::Real,
            dirs: Mutex::default(),
        }
    }

    fn hold(root: OwnedFd, name: Vec<u8>, links: SymlinkPolicy) -> Tree {
        let root = Arc::new(Dir::new(root));
        Tree { root, name, links, privileges: Privileges::Real, dirs: Mutex::default() }
    }

    /// Says where metadata is kept that only root may set. Call before anything is done below.
    pub fn keeping(mut self, privileges: Privileges) -> Tree {
        if let Some(root) = Arc::get_mut(&mut self.root) {
            root.privileges = privileges;
            self.privileges = privileges;
        }
        self
    }

    /// Returns where metadata is kept that only root may set.
    pub fn privileges(&self) -> Privileges {
        self.privileges
    }

    /// Whether this root does not exist.
    pub fn is_missing(&self) -> bool {
        self.root.is_missing()
    }

    /// Returns the root directory.
    pub fn root(&self) -> &Arc<Dir> {
        &self.root
    }

    /// Returns what is done with symlinks below the root.
    pub fn links(&self) -> SymlinkPolicy {
        self.links
    }

    /// Returns the directory at `path`, from the cache of open directories if it is there.
    pub fn dir(&self, path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        if path.is_root() || self.is_missing() {
            return Ok(self.root.clone());
        }
        let (parent, age) = {
            let mut dirs = self.lock();
            if let Some(dir) = dirs.find(path) {
                return Ok(dir);
            }
            let parent = match path.parent() {
                parent if parent.is_root() => Some(self.root.clone()),
                parent => dirs.find(parent),
            };
            (parent, dirs.age())
        };
        // The lock is not held while the disk is asked.
        let dir = Arc::new(Dir::keeping(self.resolve(path, parent.as_deref())?, self.privileges));
        self.lock().insert(path, dir.clone(), age);
        Ok(dir)
    }

    fn resolve(&self, path: RelPath<'_>, parent: Option<&Dir>) -> io::Result<OwnedFd> {
        if let Some(parent) = parent.filter(|_| path.name() != b"..") {
            match sys::open::open_member_dir(parent.held()?, path.name()) {
                // A symlink is judged from the root, which it may climb up to.
                Err(error) if sys::is(&error, Errno::LOOP) && self.links != SymlinkPolicy::Refuse => {}
                answer => return answer,
            }
        }
        sys::open::open_beneath(self.root.held()?, path.as_bytes(), self.links)
    }

    /// Returns the directory that holds the last component of `path`.
    pub fn parent(&self, path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        self.dir(path.parent())
    }

    /// Returns the metadata of what is at `path` without following its last component; nothing if
    /// it, or a directory above it, does not exist.
    pub fn stat(&self, path: RelPath<'_>) -> io::Result<Option<Meta>> {
        match self.parent(path) {
            Ok(dir) => dir.stat(path.name()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the directory at `path` as a root of its own, with its own policy.
    pub fn open_beneath(&self, path: RelPath<'_>, links: SymlinkPolicy) -> io::Result<Tree> {
        let root = Arc::new(self.dir(path)?.try_clone()?);
        let name = if path.is_root() { self.name.clone() } else { self.full_name(path) };
        Ok(Tree { root, name, links, privileges: self.privileges, dirs: Mutex::default() })
    }

    /// Returns the directory at `path`, making those on the way that are not there, each below the
    /// one held before it, with `mode` less the umask.
    pub fn mkdir_path(&self, path: RelPath<'_>, mode: u32) -> io::Result<Arc<Dir>> {
        match self.dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_root() => {}
            answer => return answer,
        }
        let parent = self.mkdir_path(path.parent(), mode)?;
        match parent.mkdir(path.name(), mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        self.forget(path);
        self.dir(path)
    }

    /// Drops cached directories at and below `path`. Call when a directory is removed or replaced.
    pub fn forget(&self, path: RelPath<'_>) {
        self.lock().forget(path);
    }

    /// Returns the name of `path` for messages: the absolute path of the root joined with it.
    pub fn full_name(&self, path: RelPath<'_>) -> Vec<u8> {
        if self.name.is_empty() {
            return path.as_bytes().to_vec();
        }
        let slash: &[u8] = if self.name.ends_with(b"/") { b"" } else { b"/" };
        [&self.name, slash, path.as_bytes()].concat()
    }

    fn lock(&self) -> MutexGuard<'_, DirCache> {
        // A cache is whole after every step.
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a regular file that steers a run (configuration, secrets) for reading, with no symlink on
/// the way that belongs to anyone but root and this user.
pub fn open_operator_file(path: &Path) -> io::Result<File> {
    open_named_file(path, Wanted::Regular, &Trust::default())
}

/// The same for what an option names, as far as `trust` goes.
pub fn open_named_file(path: &Path, wanted: Wanted, trust: &Trust) -> io::Result<File> {
    operator::open_file(None, path.as_os_str().as_bytes(), wanted, trust)
}

/// Returns the absolute, textually cleaned form of a path. In a confined process it begins at the
/// directory it is confined to, whose own name is empty.
fn absolute(path: &[u8]) -> Vec<u8> {
    let is_confined = sys::confine::root().is_some();
    let mut parts: Vec<&[u8]> = Vec::new();
    let here = match path.first() {
        Some(b'/') => Vec::new(),
        _ if is_confined => Vec::new(),
        // Messages do without a working directory that cannot be told.
        _ => rustix::process::getcwd(Vec::new()).map(std::ffi::CString::into_bytes).unwrap_or_default(),
    };
    for part in here.split(|&b| b == b'/').chain(path.split(|&b| b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    if is_confined && parts.is_empty() {
        return Vec::new();
    }
    [b"/", &parts.join(&b'/')[..]].concat()
}

#[cfg(test)]
mod tests;
