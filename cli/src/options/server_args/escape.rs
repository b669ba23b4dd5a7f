//! Backslashes that carry words through a remote shell.
//!
//! Wire: protocol/doc/02-session-start.md#213-argument-escaping-toward-a-remote-shell

use crate::options::meaning::Protection;

const SPECIAL: &[u8] = b" \t\n\r!#$&;|<>(){}\"'`\\";
const WILD: &[u8] = b"*?[]";

/// Escapes the value of an option.
pub fn value(text: &[u8], protection: Protection) -> Vec<u8> {
    if matches!(protection, Protection::OldAll | Protection::Secluded) {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if SPECIAL.contains(&byte) || WILD.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// How a leading tilde of a path is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tilde {
    /// The remote shell expands it.
    Expand,
    /// It is part of a name.
    Literal,
}

/// Escapes a path; wildcards stay active.
pub fn path(text: &[u8], protection: Protection, tilde: Tilde) -> Vec<u8> {
    let text: &[u8] = if text.is_empty() { b"." } else { text };
    let mut out = Vec::with_capacity(text.len());
    if text.starts_with(b"-") {
        out.extend_from_slice(b"./");
    }
    if protection != Protection::Escape {
        out.extend_from_slice(text);
        return out;
    }
    if tilde == Tilde::Literal && text.starts_with(b"~") {
        out.push(b'\\');
    }
    for (i, &byte) in text.iter().enumerate() {
        let escapes_wildcard = byte == b'\\' && text.get(i + 1).is_some_and(|next| WILD.contains(next));
        if SPECIAL.contains(&byte) && !escapes_wildcard {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_wildcards_and_values_do_not() {
        let p =
            |text: &str| String::from_utf8(path(text.as_bytes(), Protection::Escape, Tilde::Expand)).unwrap();
        assert_eq!(p("a b*"), "a\\ b*");
        assert_eq!(p("a\\*b"), "a\\*b");
        assert_eq!(p("a\\b"), "a\\\\b");
        assert_eq!(p("-y"), "./-y");
        assert_eq!(p(""), ".");
        assert_eq!(value(b"a b*", Protection::Escape), b"a\\ b\\*");
        assert_eq!(value(b"a b*", Protection::OldAll), b"a b*");
        assert_eq!(path(b"~x", Protection::Escape, Tilde::Literal), b"\\~x");
    }
}
