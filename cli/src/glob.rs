//! Wildcards in path arguments that no shell has expanded (`-s`).
//!
//! Wire: protocol/doc/02-session-start.md#214-secluded-args--s

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where names are looked up.
pub trait Names {
    /// Returns the names of a directory's members; empty is the working directory.
    fn members(&self, dir: &[u8]) -> Vec<Vec<u8>>;
    /// Whether there is something at a path.
    fn exists(&self, path: &[u8]) -> bool;
}

/// The whole file system, from the working directory.
struct Everything;

impl Names for Everything {
    fn members(&self, dir: &[u8]) -> Vec<Vec<u8>> {
        let dir: &[u8] = if dir.is_empty() { b"." } else { dir };
        let entries = fs::read_dir(Path::new(OsStr::from_bytes(dir))).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().as_bytes().to_vec()).collect()
    }

    fn exists(&self, path: &[u8]) -> bool {
        fs::symlink_metadata(Path::new(OsStr::from_bytes(path))).is_ok()
    }
}

/// Expands `*`, `?` and `[` to the names that match, sorted; a path without a match stays as it is.
pub fn expand(path: &[u8]) -> Vec<Vec<u8>> {
    expand_in(&Everything, path)
}

/// The same, among these names.
pub fn expand_in(names: &dyn Names, path: &[u8]) -> Vec<Vec<u8>> {
    if !is_wild(path) {
        return vec![path.to_vec()];
    }
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, part) in path.split(|&b| b == b'/').enumerate() {
        let slash: &[u8] = if at > 0 { b"/" } else { b"" };
        let extend = |base: &Vec<u8>| -> Vec<Vec<u8>> {
            let base = [base.as_slice(), slash].concat();
            if is_wild(part) {
                members(names, &base, part)
                    .into_iter()
                    .map(|name| [base.as_slice(), &name].concat())
                    .collect()
            } else {
                vec![[base.as_slice(), part].concat()]
            }
        };
        found = found.iter().flat_map(extend).collect();
    }
    found.retain(|path| names.exists(path));
    found.sort();
    if found.is_empty() {
        found.push(path.to_vec());
    }
    found
}

fn is_wild(text: &[u8]) -> bool {
    text.iter().any(|b| b"*?[".contains(b))
}

/// Returns the members of a directory that match; hidden ones only if the pattern says so.
fn members(names: &dyn Names, dir: &[u8], pattern: &[u8]) -> Vec<Vec<u8>> {
    let shows = |name: &Vec<u8>| !name.starts_with(b".") || pattern.starts_with(b".");
    names.members(dir).into_iter().filter(|name| shows(name) && matches(pattern, name)).collect()
}

/// Whether a whole name matches a pattern of the shell: `*`, `?`, sets, backslashes.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        [b'?', rest @ ..] => !name.is_empty() && matches(rest, &name[1..]),
        [b'[', ..] => match (class(pattern), name) {
            (Some((holds, rest)), [first, others @ ..]) => holds(*first) && matches(rest, others),
            _ => false,
        },
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            name.first() == Some(literal) && matches(rest, &name[1..])
        }
    }
}

/// Splits a set off a pattern that begins with one.
fn class(pattern: &[u8]) -> Option<(impl Fn(u8) -> bool + '_, &[u8])> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let start = if negated { 2 } else { 1 };
    // A bracket in front is a member.
    let end = pattern.iter().skip(start + 1).position(|&b| b == b']')? + start + 1;
    let set = &pattern[start..end];
    let holds = move |byte: u8| {
        let mut at = 0;
        let mut found = false;
        while at < set.len() {
            if at + 2 < set.len() && set[at + 1] == b'-' {
                found |= (set[at]..=set[at + 2]).contains(&byte);
                at += 3;
            } else {
                found |= set[at] == byte;
                at += 1;
            }
        }
        found != negated
    };
    Some((holds, &pattern[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[abc", "a", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn paths_expand_to_what_exists() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a1", "a2", ".a3", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("f"), "").unwrap();
        }
        let base = dir.path().to_str().unwrap().to_owned();
        let shown = |pattern: &str| -> Vec<String> {
            let found = expand(format!("{base}/{pattern}").as_bytes());
            found.iter().map(|path| String::from_utf8_lossy(path)[base.len() + 1..].to_owned()).collect()
        };
        assert_eq!(shown("a*/f"), ["a1/f", "a2/f"]);
        assert_eq!(shown("*/g"), ["*/g"]);
        assert_eq!(shown(".*/f"), [".a3/f"]);
        assert_eq!(shown("b"), ["b"]);
    }
}
