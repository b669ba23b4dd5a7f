//! Base directories: what the wire paths of an argument are relative to, held open.
//!
//! A base is the directory that stock would change to. Where a component of a `-R` argument is
//! a symlink the operator named it, so it is followed, once: the base is then held open behind
//! the symlink, and everything below is still resolved without following any.
//! Wire: protocol/doc/10-file-list.md#10-from-arguments-to-entries-sender

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use suisei_protocol::flist::RelPath;

use crate::options::SourceLinks;
use crate::tree::{Dir, Meta, Privileges, SymlinkPolicy, Tree};

/// Own trees up to this many; further arguments share the working directory's where they can.
const TREES_MAX: usize = 64;

/// Where the entries of an argument lie on disk.
#[derive(Debug)]
pub(crate) struct Base {
    /// Number, for what is kept per base.
    pub(super) id: usize,
    tree: Arc<Tree>,
    /// Leading part of wire paths that the tree's root stands for; empty: none.
    stripped: Vec<u8>,
    /// Directory between the tree's root and the wire paths; empty: none.
    lead: Vec<u8>,
    /// Wire paths resolve in it with symlinks followed: only merge files are read through it.
    following: Option<Arc<Tree>>,
    /// The directory as it was named, for messages.
    named: Vec<u8>,
}

impl Base {
    /// Returns the path of a wire path below the held tree.
    fn below(&self, wire: &[u8]) -> Vec<u8> {
        let path = trim_slashes(wire);
        let path = match path.strip_prefix(self.stripped.as_slice()) {
            Some(rest) if !self.stripped.is_empty() && (rest.is_empty() || rest[0] == b'/') => {
                trim_slashes(rest)
            }
            _ => path,
        };
        match (self.lead.is_empty(), path) {
            (true, path) => path.to_vec(),
            (false, b"" | b".") => self.lead.clone(),
            (false, path) => join(&self.lead, path),
        }
    }

    /// Opens the directory at a wire path.
    pub(crate) fn dir(&self, wire: &[u8]) -> io::Result<Arc<Dir>> {
        self.tree.dir(RelPath::new(&self.below(wire)))
    }

    /// Opens the directory that holds a wire path.
    pub(crate) fn parent(&self, wire: &[u8]) -> io::Result<Arc<Dir>> {
        self.tree.parent(RelPath::new(&self.below(wire)))
    }

    /// Whether a wire path, or the directory there whose content is meant, comes out outside of the
    /// directory at an absolute path (`--confine-root`).
    pub(super) fn leaves(&self, wire: &[u8], contents: bool, root: &[u8]) -> bool {
        let dir = match contents {
            true => self.dir(wire).or_else(|_| self.parent(wire)),
            false => self.parent(wire),
        };
        dir.and_then(|dir| dir.is_within(root)).is_ok_and(|is_within| !is_within)
    }

    /// Returns the absolute name of a wire path, for messages.
    pub(crate) fn full_name(&self, wire: &[u8]) -> Vec<u8> {
        self.tree.full_name(RelPath::new(&self.below(wire)))
    }

    /// Returns a wire path with the base as it was named in front, without leading slash (`%f`).
    pub(crate) fn long_name(&self, wire: &[u8]) -> Vec<u8> {
        let path = trim_slashes(wire);
        let joined = match (self.named.is_empty(), path) {
            (true, _) => path.to_vec(),
            (false, b".") => self.named.clone(),
            (false, _) => join(&self.named, path),
        };
        trim_slashes(&joined).to_vec()
    }

    /// Returns the tree in which wire paths resolve as they stand, for merge files.
    pub(super) fn merge_tree(&self) -> &Tree {
        self.following.as_deref().unwrap_or(&self.tree)
    }

    /// Returns the metadata at a wire path; `follow`: of what its last component leads to.
    pub(super) fn stat(&self, wire: &[u8], follow: bool) -> io::Result<Option<Meta>> {
        let below = self.below(wire);
        let path = RelPath::new(&below);
        if path.is_root() {
            return self.tree.dir(path)?.meta().map(Some);
        }
        let parent = self.tree.parent(path)?;
        if follow {
            parent.stat_following(path.name())
        } else {
            parent.stat(path.name())
        }
    }
}

/// The directories that were named, each opened once.
#[derive(Debug)]
pub(super) struct Bases {
    links: SourceLinks,
    privileges: Privileges,
    opened: HashMap<Vec<u8>, Arc<Base>>,
    /// Behind symlinks of `-R` arguments: by named directory and the part of the wire path.
    behind: HashMap<(Vec<u8>, Vec<u8>), Arc<Base>>,
    following: HashMap<Vec<u8>, Arc<Tree>>,
    count: usize,
}

impl Bases {
    pub(super) fn new(links: SourceLinks, privileges: Privileges) -> Self {
        Bases {
            links,
            privileges,
            opened: HashMap::new(),
            behind: HashMap::new(),
            following: HashMap::new(),
            count: 0,
        }
    }

    /// Opens a directory as it was named; empty is the working directory.
    pub(super) fn open(&mut self, named: &[u8]) -> io::Result<Arc<Base>> {
        if let Some(base) = self.opened.get(named) {
            return Ok(base.clone());
        }
        let tree = Arc::new(Tree::open(path_of(named), self.policy())?.keeping(self.privileges));
        let base = self.number(tree, named);
        let base = Arc::new(base);
        self.opened.insert(named.to_vec(), base.clone());
        Ok(base)
    }

    /// The same for something in the directory that is not listed itself: once many directories
    /// are held, one below the working directory is reached from there.
    pub(super) fn open_for_file(&mut self, named: &[u8], wire: &[u8]) -> io::Result<Arc<Base>> {
        let plain = !named.is_empty()
            && named[0] != b'/'
            && named.split(|&b| b == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
        if self.opened.len() < TREES_MAX || !plain || self.opened.contains_key(named) {
            return self.open(named);
        }
        let start = self.open(b"")?;
        let mut base = self.number(start.tree.clone(), named);
        base.lead = named.to_vec();
        match base.stat(wire, false) {
            Ok(Some(meta)) if meta.kind() != suisei_protocol::flist::FileKind::Directory => {
                Ok(Arc::new(base))
            }
            _ => self.open(named),
        }
    }

    /// Opens what stands at `stripped`, below a directory as it was named, as the operator's own
    /// path: symlinks on the way are followed.
    pub(super) fn open_behind(&mut self, named: &[u8], stripped: &[u8]) -> io::Result<Arc<Base>> {
        let stripped = trim_slashes(stripped);
        let key = (named.to_vec(), stripped.to_vec());
        if let Some(base) = self.behind.get(&key) {
            return Ok(base.clone());
        }
        let tree =
            Arc::new(Tree::open(path_of(&join(named, stripped)), self.policy())?.keeping(self.privileges));
        let following = self.following(named)?;
        let mut base = self.number(tree, named);
        base.stripped = stripped.to_vec();
        base.following = Some(following);
        let base = Arc::new(base);
        self.behind.insert(key, base.clone());
        Ok(base)
    }

    /// Stats an implied parent: what the path leads to.
    pub(super) fn stat_implied(&mut self, named: &[u8], wire: &[u8]) -> io::Result<Option<Meta>> {
        let tree = self.following(named)?;
        let path = RelPath::new(trim_slashes(wire));
        if path.is_root() {
            return tree.dir(path)?.meta().map(Some);
        }
        tree.parent(path)?.stat_following(path.name())
    }

    fn following(&mut self, named: &[u8]) -> io::Result<Arc<Tree>> {
        if let Some(tree) = self.following.get(named) {
            return Ok(tree.clone());
        }
        let tree = Arc::new(Tree::open(path_of(named), SymlinkPolicy::FollowAll)?.keeping(self.privileges));
        self.following.insert(named.to_vec(), tree.clone());
        Ok(tree)
    }

    fn number(&mut self, tree: Arc<Tree>, named: &[u8]) -> Base {
        let id = self.count;
        self.count += 1;
        Base { id, tree, stripped: Vec::new(), lead: Vec::new(), following: None, named: named.to_vec() }
    }

    fn policy(&self) -> SymlinkPolicy {
        match self.links {
            SourceLinks::Keep => SymlinkPolicy::Refuse,
            // A followed link may lead out of the tree: the user asked for what it leads to.
            SourceLinks::FollowDirs | SourceLinks::FollowAll | SourceLinks::FollowUnsafe => {
                SymlinkPolicy::FollowAll
            }
        }
    }
}

fn path_of(named: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(if named.is_empty() { b"." } else { named }))
}

pub(super) fn trim_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().take_while(|&&b| b == b'/').count();
    &path[start..]
}

/// Joins a directory as it was named (possibly empty or ending in a slash) and a path.
pub(super) fn join(dir: &[u8], path: &[u8]) -> Vec<u8> {
    let mut joined = dir.to_vec();
    if !joined.is_empty() && !joined.ends_with(b"/") && !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(path);
    joined
}
