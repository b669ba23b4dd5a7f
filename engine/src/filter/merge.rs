//! Merge files that are read in every directory.
//!
//! Wire: protocol/doc/13-filters.md#per-directory-files

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use suisei_protocol::filter::{Rule, RuleFlags};
use suisei_protocol::flist::FileKind;

use crate::tree::{open_named_file, Dir, Trust, Wanted};

/// A merge rule that is active in the current directory and below.
#[derive(Debug, Clone)]
pub(super) struct MergeFile {
    /// Its name in each directory.
    pub(super) name: Vec<u8>,
    /// The directory from whose place on parents of the transfer are read too.
    pub(super) parents: Option<Vec<u8>>,
    /// How it is read, and what its rules inherit.
    pub(super) flags: RuleFlags,
}

impl MergeFile {
    /// Takes the name of a merge rule apart.
    pub(super) fn new(rule: &Rule) -> Self {
        let (parents, name) = match rule.pattern.iter().rposition(|&byte| byte == b'/') {
            Some(0) => (Some(b"/".to_vec()), rule.pattern[1..].to_vec()),
            Some(slash) => (Some(rule.pattern[..slash].to_vec()), rule.pattern[slash + 1..].to_vec()),
            None => (None, rule.pattern.clone()),
        };
        MergeFile { name, parents, flags: rule.flags }
    }

    /// Whether its rules are passed on to directories below.
    pub(super) fn is_inherited(&self) -> bool {
        !self.flags.intersects(RuleFlags::NO_INHERIT | RuleFlags::CVS)
    }

    /// Returns the directories above `first`, an absolute path, whose files are read before it.
    pub(super) fn parents_of(&self, first: &[u8]) -> Vec<Vec<u8>> {
        let Some(named) = &self.parents else { return Vec::new() };
        let top = match named.starts_with(b"/") {
            true => clean(named),
            false => clean(&[first, b"/", named].concat()),
        };
        let mut above = vec![Vec::new()];
        for part in first.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
            let next = [above.last().map_or(&[][..], Vec::as_slice), b"/", part].concat();
            above.push(next);
        }
        above.pop();
        // Nothing is read unless the named directory is one of those above.
        let from = above.iter().position(|dir| *dir == top).unwrap_or(above.len());
        above.split_off(from)
    }
}

/// Resolves `.` and `..` in an absolute path by its text. The root becomes empty.
fn clean(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| [&b"/"[..], part]).flatten().copied().collect()
}

/// Reads a merge file in a directory of the transfer; nothing if there is none. A symlink counts
/// if it belongs to root or to this user, as far as `trust` goes.
pub(super) fn read_member(dir: &Dir, name: &[u8], trust: &Trust) -> io::Result<Option<Vec<u8>>> {
    let Some(meta) = dir.stat(name)? else { return Ok(None) };
    let is_outside = || match &trust.confine_root {
        Some(root) => dir.is_within(root).map(|within| !within),
        None => Ok(false),
    };
    match meta.kind() {
        FileKind::Regular if is_outside()? => Err(Errno::LOOP.into()),
        FileKind::Regular => content(dir.open_file(name)?),
        FileKind::Symlink => found(dir.open_operator_file(name, trust)),
        _ => Ok(None),
    }
}

/// Reads a merge file in a directory above the transfer; nothing if there is none.
pub(super) fn read_above(dir: &[u8], name: &[u8], trust: &Trust) -> io::Result<Option<Vec<u8>>> {
    let path = [dir, b"/", name].concat();
    found(open_named_file(Path::new(OsStr::from_bytes(&path)), Wanted::Regular, trust))
}

fn found(opened: io::Result<File>) -> io::Result<Option<Vec<u8>>> {
    match opened {
        Ok(file) => content(file),
        // A pipe or the like holds no rules.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn content(mut file: File) -> io::Result<Option<Vec<u8>>> {
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use suisei_protocol::filter::RuleKind;

    use super::*;

    fn parents(name: &[u8], first: &[u8]) -> Vec<String> {
        let rule = Rule { kind: RuleKind::DirMerge, flags: RuleFlags::empty(), pattern: name.to_vec() };
        let merge = MergeFile::new(&rule);
        assert_eq!(merge.name, b".r");
        merge.parents_of(first).into_iter().map(|dir| String::from_utf8(dir).unwrap()).collect()
    }

    #[test]
    fn parents_are_read_from_the_named_directory_down() {
        assert_eq!(parents(b"/.r", b"/t/sub/u"), ["", "/t", "/t/sub"]);
        assert_eq!(parents(b"/t/.r", b"/t/sub/u"), ["/t", "/t/sub"]);
        assert_eq!(parents(b"../.r", b"/t/sub/u"), ["/t/sub"]);
        assert_eq!(parents(b"../../.r", b"/t/sub/u"), ["/t", "/t/sub"]);
        for none in [&b".r"[..], b"x/.r", b"/t/sub/u/.r", b"/elsewhere/.r"] {
            assert!(parents(none, b"/t/sub/u").is_empty());
        }
        assert!(parents(b"/.r", b"/").is_empty());
    }
}
