//! Names that a daemon's module hides: for its clients they do not exist.
//!
//! Wire: protocol/doc/03-daemon.md#39-parameters

use suisei_protocol::filter::Rule;
use suisei_protocol::flist::RelPath;

use super::chain::{Chain, FilterSide};

/// The rules of a module, for names relative to the module.
#[derive(Debug)]
pub struct Hidden {
    chain: Chain,
}

impl Hidden {
    /// Takes the rules, in order. Per-directory merge files have no meaning here.
    pub fn new(rules: &[Rule]) -> Hidden {
        Hidden { chain: Chain::new(rules, FilterSide::Sender, false).with_root(b"/") }
    }

    /// Whether a name is hidden, itself or by a directory above it. A leading slash is the
    /// module's.
    pub fn hides(&self, path: &[u8], is_dir: bool) -> bool {
        let path = trimmed(path);
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        above.into_iter().any(|dir| self.hides_member(dir, true)) || self.hides_member(path, is_dir)
    }

    /// The same for a member of a directory that is not hidden.
    fn hides_member(&self, path: &[u8], is_dir: bool) -> bool {
        let path = trimmed(path);
        !matches!(path, b"" | b".") && self.chain.verdict(RelPath::new(path), is_dir).is_excluded()
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().take_while(|byte| **byte == b'/').count();
    let path = &path[start..];
    let end = path.iter().rev().take_while(|byte| **byte == b'/').count();
    &path[..path.len() - end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::RuleParser;
    use suisei_protocol::filter::OldKind;

    #[test]
    fn what_a_stock_daemon_was_seen_to_hide() {
        let mut unreadable = |_: &[u8]| Err(std::io::ErrorKind::NotFound.into());
        let mut parser = RuleParser::new(&mut unreadable, crate::filter::LineEnd::Newline);
        for pattern in ["*.o", "/secret"] {
            parser.pattern(pattern.as_bytes(), OldKind::Exclude).unwrap();
        }
        let hidden = Hidden::new(&parser.finish());
        for path in ["b.o", "/d/e/z.o", "secret", "secret/", "/secret/in/t", "secret/s"] {
            assert!(hidden.hides(path.as_bytes(), false), "{path}");
        }
        for path in ["", ".", "/", "a.txt", "d/secret", "d/y.txt"] {
            assert!(!hidden.hides(path.as_bytes(), false), "{path}");
        }
    }
}
