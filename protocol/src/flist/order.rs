//! The order of a file list, on which both ends must agree exactly.
//!
//! Wire: protocol/doc/10-file-list.md#9-numbering-sorting-duplicates

use std::cmp::Ordering;

use super::EntryRef;
use crate::session::{Session, Version};

/// Which order gives the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From 29 on: in each directory the files first, then each directory with its content.
    DirectoriesLast,
    /// Below 29: plain order of the joined paths.
    Plain,
    /// With `--iconv`: the order of transmission.
    AsSent,
}

impl Order {
    /// Returns the order that a version sorts by.
    pub fn of(version: Version) -> Order {
        if version.sorts_directories_last() {
            Order::DirectoriesLast
        } else {
            Order::Plain
        }
    }

    /// Returns the order of a received list's indexes: names may sort differently in the charsets
    /// of both ends.
    pub fn received(session: &Session) -> Order {
        match session.charset {
            Some(_) => Order::AsSent,
            None => Order::of(session.version),
        }
    }
}

/// Compares two entries; equal means that they are duplicates of one name. [`Order::AsSent`]
/// compares names as [`Order::DirectoriesLast`] does.
pub fn compare(a: EntryRef<'_>, b: EntryRef<'_>, order: Order) -> Ordering {
    compare_keys(Key::of(a), Key::of(b), order)
}

/// What decides an entry's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) path: &'a [u8],
    pub(super) is_dir: bool,
}

impl<'a> Key<'a> {
    pub(super) fn of(entry: EntryRef<'a>) -> Self {
        Key { path: entry.wire_path(), is_dir: entry.is_dir() }
    }
}

pub(super) fn compare_keys(a: Key<'_>, b: Key<'_>, order: Order) -> Ordering {
    match order {
        Order::Plain => a.path.cmp(b.path),
        Order::DirectoriesLast | Order::AsSent => directories_last(a, b),
    }
}

/// What is left of a path in the first component in which two paths differ.
struct Tail<'a> {
    /// Whether the component is a directory's: such sort behind the files beside them.
    within_dir: bool,
    /// The component's bytes from the first difference on, with the slash behind a directory.
    text: &'a [u8],
    /// Whether the slash is not among `text` but implied.
    slash: bool,
}

impl<'a> Tail<'a> {
    fn new(key: Key<'a>, start: usize, differs: usize) -> Self {
        let component = &key.path[start..];
        let text = &key.path[differs..];
        if component.contains(&b'/') {
            return Tail { within_dir: true, text, slash: false };
        }
        match key.is_dir {
            true if component == b"." => Tail { within_dir: false, text: b"", slash: false },
            is_dir => Tail { within_dir: is_dir, text, slash: is_dir },
        }
    }

    /// Returns the next byte, the implied slash included.
    fn next(&self) -> Option<u8> {
        self.text.first().copied().or(self.slash.then_some(b'/'))
    }
}

fn directories_last(a: Key<'_>, b: Key<'_>) -> Ordering {
    let differs = a.path.iter().zip(b.path).take_while(|(x, y)| x == y).count();
    let start = a.path[..differs].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let x = Tail::new(a, start, differs);
    let y = Tail::new(b, start, differs);
    // With an equal byte one path goes on below a directory where the other ends with it.
    (x.within_dir, x.next(), x.text.len()).cmp(&(y.within_dir, y.next(), y.text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&str], order: Order) -> Vec<String> {
        let mut keys: Vec<(Vec<u8>, bool)> = names
            .iter()
            .map(|name| (name.trim_end_matches('/').as_bytes().to_vec(), name.ends_with('/') || *name == "."))
            .collect();
        keys.sort_by(|a, b| {
            compare_keys(Key { path: &a.0, is_dir: a.1 }, Key { path: &b.0, is_dir: b.1 }, order)
        });
        let text = |(path, is_dir): (Vec<u8>, bool)| {
            let slash = if is_dir && path != b"." { "/" } else { "" };
            format!("{}{slash}", String::from_utf8(path).unwrap())
        };
        keys.into_iter().map(text).collect()
    }

    fn check(expected: &[&str], order: Order) {
        let mut shuffled = expected.to_vec();
        for turn in 0..expected.len() {
            shuffled.rotate_left(1);
            if turn % 2 == 1 {
                shuffled.reverse();
            }
            assert_eq!(sorted(&shuffled, order), expected);
        }
    }

    #[test]
    fn the_captured_tree_in_both_schemes() {
        let new = [
            ".",
            "-x",
            "Zed",
            "a.c",
            "b",
            "z",
            ".h/",
            ".h/q",
            "a/",
            "a/z",
            "foo-bar/",
            "foo-bar/x",
            "foo/",
            "foo/.h",
            "foo/x",
            "foo/sub/",
            "foo/sub/f",
        ];
        check(&new, Order::DirectoriesLast);
        let old = [
            "-x",
            ".",
            ".h/",
            ".h/q",
            "Zed",
            "a/",
            "a.c",
            "a/z",
            "b",
            "foo/",
            "foo-bar/",
            "foo-bar/x",
            "foo/.h",
            "foo/sub/",
            "foo/sub/f",
            "foo/x",
            "z",
        ];
        check(&old, Order::Plain);
    }

    #[test]
    fn the_table_of_small_sets() {
        check(&["a.c", "b", "a/", "a/z"], Order::DirectoriesLast);
        check(&["a/", "a.c", "a/z", "b"], Order::Plain);
        check(&["foo-bar/", "foo-bar/x", "foo/", "foo/x"], Order::DirectoriesLast);
        check(&["foo/", "foo-bar/", "foo-bar/x", "foo/x"], Order::Plain);
        check(&[".", "lnk", "nul", "d/", "d/hard"], Order::DirectoriesLast);
    }

    #[test]
    fn bytes_are_unsigned() {
        let z = Key { path: b"z", is_dir: false };
        let e9 = Key { path: &[0xE9], is_dir: false };
        for order in [Order::DirectoriesLast, Order::Plain] {
            assert_eq!(compare_keys(z, e9, order), Ordering::Less);
        }
    }

    #[test]
    fn a_directory_and_a_file_of_one_name_are_equal_only_below_29() {
        let file = Key { path: b"a", is_dir: false };
        let dir = Key { path: b"a", is_dir: true };
        assert_eq!(compare_keys(file, dir, Order::DirectoriesLast), Ordering::Less);
        assert_eq!(compare_keys(file, dir, Order::Plain), Ordering::Equal);
        assert_eq!(compare_keys(dir, dir, Order::DirectoriesLast), Ordering::Equal);
        let dot = Key { path: b".", is_dir: true };
        assert_eq!(compare_keys(dot, dot, Order::DirectoriesLast), Ordering::Equal);
        assert_eq!(
            compare_keys(dot, Key { path: b"-x", is_dir: false }, Order::DirectoriesLast),
            Ordering::Less
        );
    }

    /// The sort key of the specification, spelled out.
    fn spelled(path: &str, is_dir: bool) -> Vec<(u8, Vec<u8>)> {
        let parts: Vec<&str> = path.split('/').collect();
        let last = parts.len() - 1;
        let part = |(i, part): (usize, &&str)| match (i == last, is_dir) {
            (true, true) if *part == "." => (0, Vec::new()),
            (true, false) => (0, part.as_bytes().to_vec()),
            _ => (1, format!("{part}/").into_bytes()),
        };
        parts.iter().enumerate().map(part).collect()
    }

    #[test]
    fn agrees_with_the_spelled_out_key() {
        let alphabet = ["a", "b", "-", ".", "/", "a/b", "aa"];
        let mut paths = vec![String::from(".")];
        for x in alphabet {
            for y in alphabet {
                for z in alphabet {
                    let path = format!("{x}{y}{z}");
                    let clean = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
                    if clean {
                        paths.push(path);
                    }
                }
            }
        }
        for a in &paths {
            for b in &paths {
                for (a_dir, b_dir) in [(false, false), (false, true), (true, false), (true, true)] {
                    let file_named_dot = (a == "." && !a_dir) || (b == "." && !b_dir);
                    if file_named_dot {
                        continue;
                    }
                    let ours = compare_keys(
                        Key { path: a.as_bytes(), is_dir: a_dir },
                        Key { path: b.as_bytes(), is_dir: b_dir },
                        Order::DirectoriesLast,
                    );
                    assert_eq!(ours, spelled(a, a_dir).cmp(&spelled(b, b_dir)), "{a} {a_dir} {b} {b_dir}");
                }
            }
        }
    }
}
