//! Hard-link groups, symlinks that leave the tree, and munged ones.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h

use std::collections::HashMap;

use suisei_protocol::flist::{HardLink, RelPath, SegmentBuilder};

/// What stands in front of a munged target: a path that leads nowhere.
///
/// Wire: protocol/doc/12-owners-links-xattrs-acls.md#munged-symlinks
pub(crate) const MUNGED: &[u8] = b"/rsyncd-munged/";

/// Brings the target of a symlink at `path` below the root of the transfer: leading slashes and
/// every `..` that would leave it are dropped, other `..` behind a name are resolved.
///
/// Wire: protocol/doc/03-daemon.md#39-parameters
pub(crate) fn confined_target(path: RelPath<'_>, target: &[u8]) -> Vec<u8> {
    let depth = path.as_bytes().iter().filter(|byte| **byte == b'/').count();
    let mut ups = 0;
    let mut names: Vec<&[u8]> = Vec::new();
    let mut ends_in_name = true;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                ends_in_name = names.pop().is_none() && ups < depth;
                ups += usize::from(ends_in_name);
            }
            name => {
                ends_in_name = true;
                names.push(name);
            }
        }
    }
    let parts: Vec<&[u8]> = std::iter::repeat_n(&b".."[..], ups).chain(names).collect();
    let mut confined = parts.join(&b'/');
    if confined.is_empty() {
        return b".".to_vec();
    }
    if !ends_in_name {
        // What was dropped at the end leaves its slash, as in stock.
        confined.push(b'/');
    }
    confined
}

/// The groups of a run, from device and inode to the wire number of the first member.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    first: HashMap<(i64, i64), i32>,
}

impl HardLinks {
    /// Names the group of every linked entry of a sorted segment, in place of device and inode.
    pub(super) fn number(&mut self, builder: &mut SegmentBuilder) {
        for position in 0..builder.len() {
            let link = builder.get(position).and_then(|entry| entry.hard_link());
            if let Some(HardLink::Inode { dev, ino }) = link {
                let number = builder.start().0 + position as i32;
                let group = *self.first.entry((dev, ino)).or_insert(number);
                builder.set_hard_link(position, HardLink::Group { group, first: group == number });
            }
        }
    }
}

/// Whether a symlink at `path` (as it is sent) leads out of the transferred tree: its target is
/// absolute or empty, climbs above the top, or climbs at all behind its start, where another
/// symlink could make it lead anywhere.
pub(crate) fn is_unsafe(target: &[u8], path: &[u8]) -> bool {
    // Stock refuses a final `/..` wherever it leads.
    if target.is_empty() || target[0] == b'/' || target.ends_with(b"/..") {
        return true;
    }
    let parts = |text| <[u8]>::split(text, |&b| b == b'/').filter(|part: &&[u8]| !part.is_empty());
    let mut climbs = parts(path).count().saturating_sub(1);
    let mut descended = false;
    for part in parts(target) {
        if part != b".." {
            descended = true;
        } else if descended || climbs == 0 {
            return true;
        } else {
            climbs -= 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_unsafe;

    /// As `rsync -rlv --copy-unsafe-links` 3.5.0 reports them.
    #[test]
    fn judges_as_stock_does() {
        let table = [
            ("a", "good", false),
            ("nope", "dangling", false),
            ("/etc/hostname", "abs", true),
            ("d/../a", "dotty", true),
            ("../l/a", "viaup", true),
            ("../l/a", "l/viaup", false),
            ("../../x", "d/up2", true),
            ("../../x", "l/d/up2", false),
            ("../a", "d/up1", false),
            ("./../../a", "u/v/dotfirst", true),
            ("../..", "u/v/updir", true),
            ("..", "u/top", false),
            ("..", "up", true),
            ("u/..", "trail", true),
            ("...", "u/three", false),
            ("u//v", "dbl", false),
            ("..//../a", "u/v/dblup", false),
            ("", "d/x", true),
        ];
        for (target, path, expected) in table {
            assert_eq!(is_unsafe(target.as_bytes(), path.as_bytes()), expected, "{path} -> {target}");
        }
    }
}
