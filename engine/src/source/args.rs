//! What one source argument, or one name of `--files-from`, names.
//!
//! Wire: protocol/doc/10-file-list.md#10-from-arguments-to-entries-sender

use std::sync::Arc;

use super::base::{join, trim_slashes, Base};
use crate::tree::Meta;

/// An argument that was found.
#[derive(Debug)]
pub(super) struct Argument {
    /// The directory that it is relative to, as named.
    pub(super) dir: Vec<u8>,
    pub(super) base: Arc<Base>,
    pub(super) wire: Vec<u8>,
    /// Nothing: it does not exist, and its name is to be deleted.
    pub(super) meta: Option<Meta>,
    /// Whether a directory's content is listed.
    pub(super) contents: bool,
}

/// An argument, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    /// The directory that stock would change to, as named; empty: none.
    pub(super) dir: Vec<u8>,
    /// The path on the wire; `.` for the content of `dir` itself.
    pub(super) wire: Vec<u8>,
    /// A trailing slash: a symlink to a directory stands for the directory, whose content is
    /// listed even without recursion.
    pub(super) contents: bool,
    /// `-R` with a leading `./`: one `.` is implied.
    pub(super) implies_root: bool,
}

/// A `..` in the active part of a `-R` argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DotDot;

/// Takes an argument apart.
pub(super) fn parse(argument: &[u8], relative: bool) -> Result<Spec, DotDot> {
    if relative {
        parse_relative(argument)
    } else {
        Ok(parse_plain(argument))
    }
}

fn parse_plain(argument: &[u8]) -> Spec {
    let (dir, name) = match argument.iter().rposition(|&b| b == b'/') {
        Some(slash) => (&argument[..slash.max(1)], &argument[slash + 1..]),
        None => (&b""[..], argument),
    };
    let (dir, wire) = match name {
        b"" | b"." => (dir, &b"."[..]),
        b".." => (argument, &b"."[..]),
        name => (dir, name),
    };
    Spec { dir: dir.to_vec(), wire: wire.to_vec(), contents: wire == b".", implies_root: false }
}

fn parse_relative(argument: &[u8]) -> Result<Spec, DotDot> {
    let cut = argument.windows(3).position(|part| part == b"/./");
    let (dir, rest, absolute) = match cut {
        Some(at) => (&argument[..at.max(1)], trim_slashes(&argument[at + 3..]), false),
        None if argument.starts_with(b"/") => (&b"/"[..], argument, true),
        None => (&b""[..], argument, false),
    };
    let contents = matches!(rest, b"" | b".") || rest.ends_with(b"/") || rest.ends_with(b"/.");
    let mut wire = Vec::new();
    for part in rest.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(DotDot),
            part => wire = join(&wire, part),
        }
    }
    let implies_root = rest.starts_with(b"./") && !wire.is_empty();
    if wire.is_empty() {
        wire = b".".to_vec();
    } else if absolute {
        wire.insert(0, b'/');
    }
    Ok(Spec { dir: dir.to_vec(), wire, contents, implies_root })
}

/// Confines a name of `--files-from` to its directory: leading slashes and every `..` that would
/// leave it are dropped, other `..` are resolved. `/./` and a trailing slash keep their meaning.
pub fn sanitise(name: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in name.split(|&b| b == b'/') {
        match part {
            b"" => {}
            b".." => {
                while parts.last().is_some_and(|&last| last == b".") {
                    parts.pop();
                }
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut clean = parts.join(&b'/');
    if clean.is_empty() {
        clean = b".".to_vec();
    }
    if name.ends_with(b"/") {
        clean.push(b'/');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dir: &str, wire: &str, contents: bool) -> Spec {
        Spec { dir: dir.into(), wire: wire.into(), contents, implies_root: false }
    }

    #[test]
    fn plain_arguments_split_at_the_last_slash() {
        let table = [
            ("f", spec("", "f", false)),
            ("a/b/f", spec("a/b", "f", false)),
            ("/f", spec("/", "f", false)),
            ("a/", spec("a", ".", true)),
            ("a//", spec("a/", ".", true)),
            ("a/.", spec("a", ".", true)),
            (".", spec("", ".", true)),
            ("", spec("", ".", true)),
            ("..", spec("..", ".", true)),
            ("a/..", spec("a/..", ".", true)),
            ("/", spec("/", ".", true)),
        ];
        for (argument, expected) in table {
            assert_eq!(parse(argument.as_bytes(), false), Ok(expected), "{argument}");
        }
    }

    #[test]
    fn relative_arguments_keep_their_path() {
        let table = [
            ("a/b/f", spec("", "a/b/f", false)),
            ("a//b/./f", spec("a//b", "f", false)),
            ("/a/b", spec("/", "/a/b", false)),
            ("/a/./b/./c/", spec("/a", "b/c", true)),
            ("a/./", spec("a", ".", true)),
            ("a/.", spec("", "a", true)),
            ("/", spec("/", ".", true)),
            (".", spec("", ".", true)),
            ("./", spec("", ".", true)),
            ("/./a", spec("/", "a", false)),
        ];
        for (argument, expected) in table {
            assert_eq!(parse(argument.as_bytes(), true), Ok(expected), "{argument}");
        }
        let dot = parse(b"./a/b", true).unwrap();
        assert_eq!((dot.wire.as_slice(), dot.implies_root), (&b"a/b"[..], true));
        assert_eq!(parse(b"a/../f", true), Err(DotDot));
        assert_eq!(parse(b"../a/./f", true).map(|s| s.dir), Ok(b"../a".to_vec()));
    }

    #[test]
    fn names_cannot_leave_their_directory() {
        let table = [
            ("a/b", "a/b"),
            ("/a//b/", "a/b/"),
            ("../../etc/passwd", "etc/passwd"),
            ("a/../b", "b"),
            ("a/./../../b", "b"),
            ("a/./c", "a/./c"),
            ("..", "."),
            ("/", "./"),
        ];
        for (name, expected) in table {
            assert_eq!(sanitise(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }
}
