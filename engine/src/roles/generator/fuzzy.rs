//! Files of similar names (`--fuzzy`): the basis of a file that nothing older of its own name is
//! known of.
//!
//! Any basis is legal on the wire; this choice follows stock's, so that as much is matched.
//! Wire: protocol/doc/20-transfer.md#9---fuzzy-protocol--29

use std::collections::HashSet;
use std::sync::Arc;

use bstr::ByteSlice;
use suisei_protocol::flist::{EntryRef, FileKind, RelPath, RelPathBuf};

use super::Generator;
use crate::options::Fuzzy;
use crate::roles::attributes::same_instant;
use crate::tree::Dir;

/// One edit of a name. Distances count edits, then (as a fraction) how far bytes lie apart.
const UNIT: u64 = 1 << 16;
/// A name that is further away is not similar.
const DISTANCE_MAX: u64 = 25 * UNIT;
/// How much more the suffix counts than the name.
const SUFFIX_WEIGHT: u64 = 10;
/// Longest name that is compared: the work grows with the square of it.
const NAME_MAX: usize = 1024;

/// A file that may be similar.
#[derive(Debug)]
struct Candidate {
    name: Box<[u8]>,
    size: u64,
    mtime: i64,
    mtime_nsec: u32,
}

/// The candidates of the directory that the walk is in.
#[derive(Debug, Default)]
pub(super) struct Similar {
    directory: Option<RelPathBuf>,
    /// The directory itself, then the same one in each alternate directory.
    lists: Vec<Listing>,
    /// Files of this directory that were asked for: they change under our hands.
    asked: HashSet<Box<[u8]>>,
}

#[derive(Debug)]
struct Listing {
    dir: Arc<Dir>,
    candidates: Vec<Candidate>,
}

/// A chosen file.
#[derive(Debug)]
pub(super) struct Choice {
    /// 0 is the destination, above it an alternate directory.
    pub(super) list: usize,
    pub(super) dir: Arc<Dir>,
    pub(super) name: Box<[u8]>,
}

impl Similar {
    /// Makes this the directory of the walk. Whether it was another.
    fn enter(&mut self, directory: RelPath<'_>) -> bool {
        if self.directory.as_ref().is_some_and(|held| held.as_path() == directory) {
            return false;
        }
        *self = Similar { directory: Some(directory.to_owned()), ..Similar::default() };
        true
    }

    /// Notes that a file was asked for.
    pub(super) fn asked(&mut self, path: RelPath<'_>) {
        self.enter(path.parent());
        self.asked.insert(path.name().into());
    }

    fn choose(&self, entry: EntryRef<'_>, name: &[u8], window: i32) -> Option<(usize, &Candidate)> {
        let all = || {
            self.lists.iter().enumerate().flat_map(|(list, listing)| {
                let is_free = move |candidate: &&Candidate| list > 0 || !self.asked.contains(&candidate.name);
                listing.candidates.iter().filter(is_free).map(move |candidate| (list, candidate))
            })
        };
        let twin = all().find(|(_, candidate)| candidate.is_twin_of(entry, window));
        if twin.is_some() {
            return twin;
        }
        let suffix = suffix(name);
        let mut best = None;
        let mut nearest = DISTANCE_MAX;
        for (list, candidate) in all().filter(|(_, candidate)| candidate.name.len() <= NAME_MAX) {
            let apart = distance(&candidate.name, name, nearest).saturating_add(
                SUFFIX_WEIGHT * distance(self::suffix(&candidate.name), suffix, DISTANCE_MAX),
            );
            if apart <= nearest {
                nearest = apart;
                best = Some((list, candidate));
            }
        }
        best
    }
}

impl Candidate {
    fn is_twin_of(&self, entry: EntryRef<'_>, window: i32) -> bool {
        self.size == entry.size()
            && same_instant((entry.mtime(), entry.mtime_nsec()), (self.mtime, self.mtime_nsec), window)
    }
}

impl Generator<'_> {
    /// Returns the most similar file of a regular file that is not there.
    pub(super) fn similar(&mut self, entry: EntryRef<'_>, path: RelPath<'_>) -> Option<Choice> {
        let fuzzy = self.ctx.options.alternates.fuzzy;
        if fuzzy == Fuzzy::Off || path.name().len() > NAME_MAX {
            return None;
        }
        self.similar.enter(path.parent());
        if self.similar.lists.is_empty() {
            self.similar.lists = self.listings(path, fuzzy);
        }
        let window = self.ctx.options.compare.modify_window;
        let (list, candidate) = self.similar.choose(entry, path.name(), window)?;
        let dir = self.similar.lists[list].dir.clone();
        Some(Choice { list, dir, name: candidate.name.clone() })
    }

    fn listings(&self, path: RelPath<'_>, fuzzy: Fuzzy) -> Vec<Listing> {
        let alternates = match fuzzy {
            Fuzzy::Everywhere => self.destination.alternates.len(),
            _ => 0,
        };
        let own = if self.dirs.is_imagined_above(path) { None } else { self.disk.tree.parent(path).ok() };
        let others = (0..alternates).map(|number| self.destination.alternates.parent(number, path));
        let missing = || Arc::new(Dir::missing());
        std::iter::once(own)
            .chain(others)
            .map(|dir| match dir {
                Some(dir) => Listing { candidates: candidates(&dir), dir },
                None => Listing { candidates: Vec::new(), dir: missing() },
            })
            .collect()
    }
}

/// Returns the regular files of a directory that hold anything, by name. What cannot be listed has
/// none.
fn candidates(dir: &Dir) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = dir
        .list()
        .unwrap_or_default()
        .into_iter()
        .filter(|member| member.kind.is_none_or(|kind| kind == FileKind::Regular))
        .filter_map(|member| {
            let meta = dir.stat(&member.name).ok()??;
            (meta.kind() == FileKind::Regular && meta.size > 0).then_some(Candidate {
                name: member.name,
                size: meta.size,
                mtime: meta.mtime,
                mtime_nsec: meta.mtime_nsec,
            })
        })
        .collect();
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Returns the edit distance of two names: an edit counts a unit, and as many 65536ths as bytes
/// differ by. What is in front of the shorter one costs no fraction. More than `limit` if the
/// lengths alone are further apart.
fn distance(a: &[u8], b: &[u8], limit: u64) -> u64 {
    if (a.len().abs_diff(b.len()) as u64) * UNIT > limit {
        return u64::from(u16::MAX) * UNIT + 1;
    }
    if a.is_empty() || b.is_empty() {
        return a.iter().chain(b).map(|&byte| UNIT + u64::from(byte)).sum();
    }
    let mut above: Vec<u64> = (0..=b.len() as u64).map(|n| n * UNIT).collect();
    let mut row = above.clone();
    for (i, &x) in a.iter().enumerate() {
        row[0] = (i as u64 + 1) * UNIT;
        for (j, &y) in b.iter().enumerate() {
            let changed = if x == y { 0 } else { UNIT + u64::from(x.abs_diff(y)) };
            let without_x = above[j + 1] + UNIT + u64::from(x);
            let without_y = row[j] + UNIT + u64::from(y);
            row[j + 1] = (above[j] + changed).min(without_x).min(without_y);
        }
        std::mem::swap(&mut above, &mut row);
    }
    above[b.len()]
}

/// Returns the suffix that tells a file's type, with its dot: not those of backups, and a number
/// only where nothing else is in front of it.
fn suffix(name: &[u8]) -> &[u8] {
    let mut name = name.trim_start_with(|c| c == '.');
    name = without_backup(name);
    let mut number: &[u8] = b"";
    while let Some(dot) = name.rfind_byte(b'.') {
        let found = &name[dot..];
        if found.len() < 2 || !found[1..].iter().all(u8::is_ascii_digit) {
            return found;
        }
        (number, name) = (found, &name[..dot]);
    }
    number
}

/// Drops what marks a name as a backup: `.~N~` of one digit, `~`, or a word.
fn without_backup(name: &[u8]) -> &[u8] {
    if let [front @ .., b'.', b'~', digit, b'~'] = name {
        if digit.is_ascii_digit() && !front.is_empty() {
            return front;
        }
    }
    let marks = [&b"~"[..], b".bak", b".old", b".orig"];
    let fronts = marks.iter().filter_map(|mark| name.strip_suffix(*mark));
    fronts.into_iter().find(|front| !front.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(a: &str, b: &str) -> String {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let all = distance(b, a, DISTANCE_MAX) + SUFFIX_WEIGHT * distance(suffix(b), suffix(a), DISTANCE_MAX);
        format!("{}.{:05}", all / UNIT, all % UNIT)
    }

    /// As stock says with `--debug=FUZZY2`.
    #[test]
    fn captured_distances() {
        for line in [
            "a.txt xa.txt 1.00000",
            "a.txt ax.txt 1.00120",
            "a.txt a.txxt 11.01320",
            "ax.txt a.txt 1.00120",
            "a.txt b 45.03998",
            "ab ba 2.00002",
            "abc bca 2.00097",
            "abc c 2.00000",
            "abcd xaxbxcxd 4.00360",
            "kernel-2.6.1 kernel-2.6.10 1.00048",
            "a.txt a.txt.bak 4.00348",
            "a.txt a.txt~ 1.00126",
            "a.txt a.txt.orig 5.00479",
            "a.txt a.txt.1 2.00095",
            "a.txt a.txt.~1~ 4.00347",
            "a.txt a.txt.~ 32.03692",
            "a.txt a.txt.save 45.01627",
            "a.txt a.txt.~12~ 35.01867",
            "a.txt a.txt~~ 12.01512",
            "a.txt a.txt.1.old 6.00460",
            "a.txt a.txt.old.1 36.00790",
            "a.txt a.txt. 31.03566",
            ".hid x.hid 41.03550",
            "a. a 11.00506",
            "a.b.c a.d.c 1.00002",
            "k-2.6.1 k-2.7.1 11.00011",
            "k-2.6.1 k-2.6.2 1.00001",
            "foo.1.2 foo.3.2 11.00022",
            "foo.1.2.3 foo.4.2.3 11.00033",
            "foo foo.1~ 23.01171",
            "foo foo.old.1 46.04110",
            ".foo .foo.1 22.01045",
            "foo. foo.. 1.00046",
            "foo.bak.bak foo 48.04176",
            "a.old b.old 1.00001",
            "foo.c.~1~ foo.c.~2~ 1.00001",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(apart(words[0], words[1]), words[2], "{line}");
        }
    }

    #[test]
    fn lengths_that_differ_by_more_than_the_limit_are_not_compared() {
        assert_eq!(distance(b"zz8", b"b.txt", UNIT), 65535 * UNIT + 1);
    }
}
