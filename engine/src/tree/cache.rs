//! The directories opened last, so that the next item beside or below them needs no lookup.

use std::collections::HashMap;
use std::sync::Arc;

use suisei_protocol::flist::{RelPath, RelPathBuf};

use super::Dir;

/// Directories held at most. Each is a descriptor, and 1024 may be all that a process gets.
const CAPACITY: usize = 128;

/// Open directories by their path below the root.
#[derive(Debug, Default)]
pub(super) struct DirCache {
    dirs: HashMap<RelPathBuf, Slot>,
    clock: u64,
    forgotten: u64,
}

/// How often something had been forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Age(u64);

#[derive(Debug)]
struct Slot {
    dir: Arc<Dir>,
    used: u64,
}

impl DirCache {
    /// Returns a directory, and remembers that it was used.
    pub(super) fn find(&mut self, path: RelPath<'_>) -> Option<Arc<Dir>> {
        self.clock += 1;
        let slot = self.dirs.get_mut(path.as_bytes())?;
        slot.used = self.clock;
        Some(slot.dir.clone())
    }

    /// Returns the age that [`DirCache::insert`] asks for: take it before the disk is asked.
    pub(super) fn age(&self) -> Age {
        Age(self.forgotten)
    }

    /// Adds a directory in place of the one that was not used for longest. Does nothing if
    /// something was forgotten since: it may have been this.
    pub(super) fn insert(&mut self, path: RelPath<'_>, dir: Arc<Dir>, age: Age) {
        if age != self.age() {
            return;
        }
        if self.dirs.len() >= CAPACITY && !self.dirs.contains_key(path.as_bytes()) {
            let oldest = self.dirs.iter().min_by_key(|(_, slot)| slot.used).map(|(path, _)| path.clone());
            if let Some(oldest) = oldest {
                self.dirs.remove(&oldest);
            }
        }
        self.clock += 1;
        self.dirs.insert(path.to_owned(), Slot { dir, used: self.clock });
    }

    /// Drops the directory at `path` and those below it.
    pub(super) fn forget(&mut self, path: RelPath<'_>) {
        self.forgotten += 1;
        if path.is_root() {
            self.dirs.clear();
            return;
        }
        let path = path.as_bytes();
        self.dirs.retain(|held, _| match held.as_bytes().strip_prefix(path) {
            Some(rest) => !(rest.is_empty() || rest[0] == b'/'),
            None => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> RelPath<'_> {
        RelPath::new(bytes)
    }

    #[test]
    fn the_one_unused_for_longest_makes_room() {
        let mut cache = DirCache::default();
        for number in 0..CAPACITY {
            cache.insert(path(number.to_string().as_bytes()), Arc::new(Dir::missing()), Age(0));
        }
        assert!(cache.find(path(b"0")).is_some());
        cache.insert(path(b"new"), Arc::new(Dir::missing()), Age(0));
        assert!(cache.find(path(b"0")).is_some());
        assert!(cache.find(path(b"1")).is_none());
        assert_eq!(cache.dirs.len(), CAPACITY);
    }

    #[test]
    fn forgetting_takes_what_is_below_but_not_what_is_beside() {
        let mut cache = DirCache::default();
        for name in [&b"a"[..], b"a/b", b"a/b/c", b"ab", b"a.b"] {
            cache.insert(path(name), Arc::new(Dir::missing()), Age(0));
        }
        cache.forget(path(b"a"));
        let mut left: Vec<_> = cache.dirs.keys().map(RelPathBuf::as_bytes).collect();
        left.sort();
        assert_eq!(left, [&b"a.b"[..], b"ab"]);
    }

    #[test]
    fn what_was_looked_up_before_a_removal_is_not_kept() {
        let mut cache = DirCache::default();
        let age = cache.age();
        cache.forget(path(b"a"));
        cache.insert(path(b"a"), Arc::new(Dir::missing()), age);
        assert!(cache.find(path(b"a")).is_none());
    }
}
