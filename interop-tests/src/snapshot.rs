//! A tree as comparable text: one line per item, everything that a transfer may preserve.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::ByteSlice;

/// Returns the lines of a tree, sorted by name. Times after `start` (seconds since the epoch)
/// read `now`: they are the run's own.
pub fn snapshot(root: &Path, start: u64) -> Vec<String> {
    let mut items = BTreeMap::new();
    let mut links = BTreeMap::new();
    if fs::symlink_metadata(root).is_err() {
        return vec!["(missing)".to_owned()];
    }
    collect(root, b"", start, &mut items, &mut links);
    items.into_values().collect()
}

/// Returns the present as [`snapshot`] wants it.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970").as_secs()
}

/// Returns the extended attributes of an item itself, sorted by name. Those of the system are its
/// ACLs and labels.
fn xattrs(path: &Path) -> String {
    let mut room = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(path, &mut room[..]) else { return String::new() };
    let mut names: Vec<Vec<u8>> =
        room[..length].split(|&b| b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let mut room = vec![0; 64 << 10];
        let Ok(length) = rustix::fs::lgetxattr(path, &name[..], &mut room[..]) else { continue };
        write!(text, " {}={}", name.as_bstr(), shown(&room[..length])).expect("a String takes all");
    }
    text
}

/// Returns a short value as text, and a long one as its length and hash.
fn shown(value: &[u8]) -> String {
    if value.len() <= 40 {
        return value.escape_ascii().to_string();
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(value);
    format!("[{} {:016x}]", value.len(), hasher.finish())
}

fn collect(
    path: &Path,
    name: &[u8],
    start: u64,
    items: &mut BTreeMap<Vec<u8>, String>,
    links: &mut BTreeMap<(u64, u64), Vec<u8>>,
) {
    let meta = fs::symlink_metadata(path).expect("nobody else changes the tree");
    let kind = meta.file_type();
    let mut line = format!("{} {:o} {}:{}", name.as_bstr(), meta.mode(), meta.uid(), meta.gid());
    if meta.mtime() >= start as i64 {
        line.push_str(" now");
    } else {
        write!(line, " {}.{:09}", meta.mtime(), meta.mtime_nsec()).expect("a String takes all");
    }
    if kind.is_symlink() {
        let target = fs::read_link(path).expect("a symlink has a target");
        write!(line, " -> {}", target.as_os_str().as_bytes().as_bstr()).expect("a String takes all");
    } else if kind.is_block_device() || kind.is_char_device() {
        write!(line, " dev {:x}", meta.rdev()).expect("a String takes all");
    } else if kind.is_file() {
        let content = fs::read(path).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        hasher.write(&content);
        write!(line, " {} bytes {:016x}", content.len(), hasher.finish()).expect("a String takes all");
    }
    if !kind.is_dir() && meta.nlink() > 1 {
        let first = links.entry((meta.dev(), meta.ino())).or_insert_with(|| name.to_vec());
        write!(line, " = {}", first.as_bstr()).expect("a String takes all");
    }
    line.push_str(&xattrs(path));
    items.insert(name.to_vec(), line);
    if kind.is_dir() {
        let mut members: Vec<_> = fs::read_dir(path)
            .map(|list| list.map(|m| m.expect("a member can be read").file_name()).collect())
            .unwrap_or_default();
        members.sort();
        for member in members {
            let mut child = name.to_vec();
            if !child.is_empty() {
                child.push(b'/');
            }
            child.extend_from_slice(member.as_bytes());
            collect(&path.join(&member), &child, start, items, links);
        }
    }
}
