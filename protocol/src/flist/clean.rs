//! Names from a peer made clean, and duplicates blanked, on the receiving side.
//!
//! Wire: protocol/doc/10-file-list.md#duplicates, protocol/doc/10-file-list.md#11-what-a-receiver-must-check

use std::borrow::Cow;
use std::cmp::Ordering;

use super::order::{compare_keys, Key};
use super::{compare, EntryFlags, Order, SegmentBuilder};
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
        let by_name = self.by_name(order);
        let at = |place: usize| by_name.as_ref().map_or(place, |places| places[place] as usize);
        let mut kept = 0;
        for place in 1..self.len() {
            match self.compare_at(at(kept), at(place), order) {
                Ordering::Equal => kept = self.merge(at(kept), at(place), kept, place),
                _ => kept = place,
            }
        }
        if order != Order::Plain {
            self.blank_files_beside_directories(&at, order);
        }
    }

    /// Returns the positions in order of names, if that is not the order of positions.
    fn by_name(&self, order: Order) -> Option<Vec<u32>> {
        (order == Order::AsSent).then(|| {
            let mut places: Vec<u32> = (0..self.len() as u32).collect();
            places.sort_by(|&a, &b| self.compare_at(a as usize, b as usize, order));
            places
        })
    }

    fn compare_at(&self, a: usize, b: usize, order: Order) -> Ordering {
        match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => compare(a, b, order),
            _ => Ordering::Less,
        }
    }

    /// Blanks one of two entries of one name; returns the place of the other.
    fn merge(&mut self, kept: usize, other: usize, kept_place: usize, other_place: usize) -> usize {
        let (Some(a), Some(b)) = (self.get(kept), self.get(other)) else { return kept_place };
        let (a_flags, b_flags) = (a.flags(), b.flags());
        match (a.is_dir(), b.is_dir()) {
            (false, true) => {
                self.change_flags(kept, EntryFlags::BLANK, EntryFlags::empty());
                return other_place;
            }
            (true, true) => {
                let added = b_flags & (EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR);
                let removed = EntryFlags::IMPLIED_DIR - (a_flags & b_flags);
                self.change_flags(kept, added, removed);
            }
            _ => {}
        }
        self.change_flags(other, EntryFlags::BLANK, EntryFlags::empty());
        kept_place
    }

    /// From version 29 on a directory does not sort beside a file of its name.
    fn blank_files_beside_directories(&mut self, at: &impl Fn(usize) -> usize, order: Order) {
        for place in 0..self.len() {
            let Some(dir) = self.get(at(place)).filter(|e| e.is_dir() && !e.is_blank() && !e.path().is_root()) else {
                continue;
            };
            let file = Key { path: dir.wire_path(), is_dir: false };
            let (mut low, mut high) = (0, place);
            while low < high {
                let middle = low + (high - low) / 2;
                match self.get(at(middle)).map(|e| compare_keys(Key::of(e), file, order)) {
                    Some(Ordering::Less) => low = middle + 1,
                    _ => high = middle,
                }
            }
            let is_duplicate = self.get(at(low)).is_some_and(|e| compare_keys(Key::of(e), file, order).is_eq());
            if is_duplicate {
                self.change_flags(at(low), EntryFlags::BLANK, EntryFlags::empty());
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
        let clean = |name: &str| clean_name(name.as_bytes(), false).map(|n| String::from_utf8(n.into_owned()).unwrap());
        for (name, expected) in
            [("a/b", "a/b"), (".", "."), ("./", "."), ("", "."), ("a//b/./c/", "a/b/c"), ("./a", "a"), (".a/..b", ".a/..b")]
        {
            assert_eq!(clean(name).as_deref(), Ok(expected));
        }
        for name in ["..", "../x", "a/../x", "a/..", "/x", "/", "a\0b"] {
            assert!(clean(name).is_err(), "{name}");
        }
        let absolute = |name: &str| clean_name(name.as_bytes(), true).map(|n| String::from_utf8(n.into_owned()).unwrap());
        for (name, expected) in [("/a/b", "/a/b"), ("//a//b", "/a/b"), ("/", "/."), ("/.", "/."), ("/./a", "/a")] {
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
            let entry = NewEntry { path, mode, size: 0, mtime: 0, mtime_nsec: 0, uid: 0, gid: 0, flags: *flags };
            list.push(entry, Extra::default()).unwrap();
        }
        list.sort(order);
        list.blank_duplicates(order);
        let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
        list.finish().iter().map(|(_, e)| (text(e.wire_path()), e.flags())).collect()
    }

    #[test]
    fn directories_merge_and_the_implied_flag_needs_both() {
        use EntryFlags as F;
        let top = F::TOP_DIR | F::CONTENT_DIR;
        let list = blanked(&[(".", top), (".", top), ("a/", F::IMPLIED_DIR), ("a/", top)], Order::DirectoriesLast);
        assert_eq!(list[0], (".".into(), top));
        assert_eq!(list[1], (".".into(), top | F::BLANK));
        assert_eq!(list[2], ("a".into(), top));
        assert_eq!(list[3], ("a".into(), top | F::BLANK));
    }

    #[test]
    fn a_directory_wins_over_a_file_in_every_order() {
        for order in [Order::DirectoriesLast, Order::Plain, Order::AsSent] {
            let none = EntryFlags::empty();
            let list = blanked(&[("a", none), ("a", none), ("b", none), ("z", none), ("a/", none), ("a/x", none)], order);
            let live: Vec<&str> =
                list.iter().filter(|(_, flags)| !flags.contains(EntryFlags::BLANK)).map(|(name, _)| name.as_str()).collect();
            assert_eq!(live.len(), 4, "{order:?} {list:?}");
            assert_eq!(live.iter().filter(|name| **name == "a").count(), 1, "{order:?}");
            let files: Vec<_> = list.iter().filter(|(name, _)| name == "a").collect();
            assert_eq!(files.len(), 3, "{order:?}: every entry keeps its number");
        }
    }
}
