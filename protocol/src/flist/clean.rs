//! Names from a peer made clean, and duplicates blanked, on the receiving side.
//!
//! Wire: protocol/doc/10-file-list.md#duplicates, protocol/doc/10-file-list.md#11-what-a-receiver-must-check

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::order::{compare_keys, Key};
use super::{compare, EntryFlags, EntryRef, Order, Segment, SegmentBuilder};
use crate::error::PeerMisbehaved;

/// Refuses a name that leaves the tree; collapses slashes and `.` components of any other. A
/// leading slash survives, and is refused unless `relative` names are asked for.
pub(super) fn clean_name(name: &[u8], relative: bool) -> Result<Cow<'_, [u8]>, PeerMisbehaved> {
    let absolute = name.first() == Some(&b'/');
    let unsafe_name = || PeerMisbehaved::UnsafeName(String::from_utf8_lossy(name).into_owned());
    // A NUL would end the name early in every system call.
    if (absolute && !relative) || name.contains(&0) {
        return Err(unsafe_name());
    }
    let inner = if absolute { &name[1..] } else { name };
    let mut clean = true;
    for part in inner.split(|&byte| byte == b'/') {
        match part {
            b".." => return Err(unsafe_name()),
            b"" => clean = false,
            b"." if inner.len() > 1 => clean = false,
            _ => {}
        }
    }
    if clean {
        return Ok(Cow::Borrowed(name));
    }
    let mut rebuilt = Vec::with_capacity(name.len());
    for part in inner.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        if absolute || !rebuilt.is_empty() {
            rebuilt.push(b'/');
        }
        rebuilt.extend_from_slice(part);
    }
    if rebuilt.is_empty() {
        rebuilt.extend_from_slice(if absolute { b"/." } else { b"." });
    }
    Ok(Cow::Owned(rebuilt))
}

impl SegmentBuilder {
    /// Blanks all but one of the entries of each name, once the entries are in index order. A
    /// directory wins over anything else, else the first; directories merge their flags.
    pub fn blank_duplicates(&mut self, order: Order) {
        for (position, flags) in Duplicates::of(self.segment(), order).changed {
            self.change_flags(position, flags, EntryFlags::all());
        }
    }
}

impl Segment {
    /// Copies a sender's segment as a receiver has it, without its duplicates; nothing if there
    /// are none. For local links: no decoder does it there.
    pub fn without_duplicates(&self, order: Order) -> Option<Segment> {
        let changed = Duplicates::of(self, order).changed;
        (!changed.is_empty()).then(|| self.with_flags(&changed))
    }

    /// Copies a whole list without directories in which, however deep, there is nothing but
    /// directories (`-m`). One for which `is_kept` says so stays, and those that lead to it. The
    /// root is no one's to drop.
    ///
    /// Wire: protocol/doc/10-file-list.md#--prune-empty-dirs--m
    pub fn without_empty_dirs(&self, is_kept: &dyn Fn(EntryRef<'_>) -> bool) -> Segment {
        let mut needed: HashSet<&[u8]> = HashSet::new();
        for (_, entry) in self.iter().filter(|(_, entry)| !entry.is_blank()) {
            let path = entry.path();
            if entry.is_dir() {
                if path.is_root() || !is_kept(entry) {
                    continue;
                }
                needed.insert(path.as_bytes());
            }
            let mut above = path.parent();
            while !above.is_root() && needed.insert(above.as_bytes()) {
                above = above.parent();
            }
        }
        let mut changed = HashMap::new();
        for (position, (_, entry)) in self.iter().enumerate() {
            let is_needed = !entry.is_dir() || entry.path().is_root();
            if !is_needed && !needed.contains(entry.path().as_bytes()) {
                changed.insert(position, entry.flags() | EntryFlags::BLANK);
            }
        }
        self.with_flags(&changed)
    }
}

/// Entries of one name, found in a list in index order.
struct Duplicates<'a> {
    list: &'a Segment,
    order: Order,
    /// Positions in order of names, where that is not index order.
    by_name: Option<Vec<u32>>,
    /// New flags by position.
    changed: HashMap<usize, EntryFlags>,
}

impl<'a> Duplicates<'a> {
    fn of(list: &'a Segment, order: Order) -> Self {
        let by_name = (order == Order::AsSent).then(|| {
            let mut places: Vec<u32> = (0..list.len() as u32).collect();
            places.sort_by(|&a, &b| match (list.get(a as usize), list.get(b as usize)) {
                (Some(a), Some(b)) => compare(a, b, order),
                _ => Ordering::Equal,
            });
            places
        });
        let mut found = Duplicates { list, order, by_name, changed: HashMap::new() };
        found.merge_equal_names();
        if order != Order::Plain {
            found.blank_files_beside_directories();
        }
        found
    }

    fn position(&self, place: usize) -> usize {
        match &self.by_name {
            Some(places) => places.get(place).map_or(place, |&position| position as usize),
            None => place,
        }
    }

    fn at(&self, place: usize) -> Option<EntryRef<'a>> {
        self.list.get(self.position(place))
    }

    fn flags(&self, place: usize) -> EntryFlags {
        let listed = || self.at(place).map_or(EntryFlags::empty(), EntryRef::flags);
        self.changed.get(&self.position(place)).copied().unwrap_or_else(listed)
    }

    fn blank(&mut self, place: usize) {
        let flags = self.flags(place);
        if !flags.contains(EntryFlags::BLANK) {
            self.changed.insert(self.position(place), flags | EntryFlags::BLANK);
        }
    }

    fn merge_equal_names(&mut self) {
        let mut kept = 0;
        for place in 1..self.list.len() {
            let (Some(a), Some(b)) = (self.at(kept), self.at(place)) else { return };
            if compare(a, b, self.order).is_ne() {
                kept = place;
            } else if b.is_dir() && !a.is_dir() {
                self.blank(kept);
                kept = place;
            } else {
                if a.is_dir() && b.is_dir() {
                    self.merge(kept, place);
                }
                self.blank(place);
            }
        }
    }

    fn merge(&mut self, kept: usize, other: usize) {
        let (a, b) = (self.flags(kept), self.flags(other));
        let added = b & (EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR);
        let merged = (a | added) - (EntryFlags::IMPLIED_DIR - b);
        if merged != a {
            self.changed.insert(self.position(kept), merged);
        }
    }

    /// From version 29 on a directory does not sort beside a file of its name.
    fn blank_files_beside_directories(&mut self) {
        for place in 0..self.list.len() {
            let Some(dir) = self.at(place).filter(|e| e.is_dir() && !e.path().is_root()) else { continue };
            let file = Key { path: dir.wire_path(), is_dir: false };
            let (mut low, mut high) = (0, place);
            while low < high {
                let middle = low + (high - low) / 2;
                match self.at(middle).map(|e| compare_keys(Key::of(e), file, self.order)) {
                    Some(Ordering::Less) => low = middle + 1,
                    _ => high = middle,
                }
            }
            if self.at(low).is_some_and(|e| compare_keys(Key::of(e), file, self.order).is_eq()) {
                self.blank(low);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flist::{Extra, Mode, Ndx, NewEntry};

    #[test]
    fn names_become_clean_or_are_refused() {
        let clean = |name: &str| {
            clean_name(name.as_bytes(), false).map(|n| String::from_utf8(n.into_owned()).unwrap())
        };
        for (name, expected) in [
            ("a/b", "a/b"),
            (".", "."),
            ("./", "."),
            ("", "."),
            ("a//b/./c/", "a/b/c"),
            ("./a", "a"),
            (".a/..b", ".a/..b"),
        ] {
            assert_eq!(clean(name).as_deref(), Ok(expected));
        }
        for name in ["..", "../x", "a/../x", "a/..", "/x", "/", "a\0b"] {
            assert!(clean(name).is_err(), "{name}");
        }
        let absolute = |name: &str| {
            clean_name(name.as_bytes(), true).map(|n| String::from_utf8(n.into_owned()).unwrap())
        };
        for (name, expected) in
            [("/a/b", "/a/b"), ("//a//b", "/a/b"), ("/", "/."), ("/.", "/."), ("/./a", "/a")]
        {
            assert_eq!(absolute(name).as_deref(), Ok(expected));
        }
        assert!(absolute("/../x").is_err());
    }

    fn blanked(names: &[(&str, EntryFlags)], order: Order) -> Vec<(String, EntryFlags)> {
        let mut list = SegmentBuilder::new(Ndx(1), None);
        for (name, flags) in names {
            let is_dir = name.ends_with('/') || *name == ".";
            let mode = Mode(if is_dir { 0o40755 } else { 0o100_644 });
            let path = name.trim_end_matches('/').as_bytes();
            let entry =
                NewEntry { path, mode, size: 0, mtime: 0, mtime_nsec: 0, uid: 0, gid: 0, flags: *flags };
            list.push(entry, Extra::default()).unwrap();
        }
        list.sort(order);
        let sent = list.clone().finish();
        list.blank_duplicates(order);
        let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
        let lines = |s: &Segment| s.iter().map(|(_, e)| (text(e.wire_path()), e.flags())).collect::<Vec<_>>();
        let clean = list.finish();
        assert!(clean.without_duplicates(order).is_none());
        assert_eq!(lines(&sent.without_duplicates(order).unwrap()), lines(&clean));
        lines(&clean)
    }

    #[test]
    fn directories_merge_and_the_implied_flag_needs_both() {
        use EntryFlags as F;
        let top = F::TOP_DIR | F::CONTENT_DIR;
        let list =
            blanked(&[(".", top), (".", top), ("a/", F::IMPLIED_DIR), ("a/", top)], Order::DirectoriesLast);
        assert_eq!(list[0], (".".into(), top));
        assert_eq!(list[1], (".".into(), top | F::BLANK));
        assert_eq!(list[2], ("a".into(), top));
        assert_eq!(list[3], ("a".into(), top | F::BLANK));
    }

    #[test]
    fn a_directory_wins_over_a_file_in_every_order() {
        for order in [Order::DirectoriesLast, Order::Plain, Order::AsSent] {
            let none = EntryFlags::empty();
            let list = blanked(
                &[("a", none), ("a", none), ("b", none), ("z", none), ("a/", none), ("a/x", none)],
                order,
            );
            let live: Vec<&str> = list
                .iter()
                .filter(|(_, flags)| !flags.contains(EntryFlags::BLANK))
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(live.len(), 4, "{order:?} {list:?}");
            assert_eq!(live.iter().filter(|name| **name == "a").count(), 1, "{order:?}");
            let files: Vec<_> = list.iter().filter(|(name, _)| name == "a").collect();
            assert_eq!(files.len(), 3, "{order:?}: every entry keeps its number");
        }
    }
}
