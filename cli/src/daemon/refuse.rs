//! `refuse options`: what a module does not let its clients ask for.
//!
//! Wire: protocol/doc/03-daemon.md#312-refuse-options

use std::collections::BTreeSet;

use suisei_protocol::session::Direction;

use crate::exit::{Code, Refusal};
use crate::glob;
use crate::options::meaning::Wishes;
use crate::options::row::Row;
use crate::options::rows;
use crate::options::typed::{Append, During, Remove, Typed};

/// What no wildcard touches: without these there is no protocol, or they refuse nothing real.
const NOT_BY_WILDCARD: [&str; 15] = [
    "rsh",
    "from0",
    "secluded-args",
    "dry-run",
    "iconv",
    "no-iconv",
    "checksum-seed",
    "out-format",
    "sender",
    "server",
    "copy-devices",
    "write-devices",
    "log-file",
    "log-file-format",
    "insecure-links",
];

/// What `archive` stands for: the letters of `-a`.
const ARCHIVE: [&str; 9] = ["recursive", "dirs", "links", "perms", "times", "group", "owner", "devices", "D"];

/// What is refused unless a module says otherwise.
const BY_DEFAULT: [&str; 2] = ["copy-devices", "write-devices"];
/// What no module can allow.
const ALWAYS: [&str; 4] = ["log-file", "log-file-format", "insecure-links", "copy-as"];
/// What only a daemon's own command line may hold.
const FOREIGN: [&str; 4] = ["daemon", "config", "dparam", "detach"];

/// The options that a module refuses, by the name that a client would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    names: BTreeSet<&'static str>,
}

/// A spelling: the name, its letter, and the row that it belongs to.
type Spelling = (&'static str, Option<char>, &'static Row);

fn spellings() -> impl Iterator<Item = Spelling> {
    rows().flat_map(|row| {
        let own = row.short.filter(|_| row.long.is_empty()).map(|_| ("", row.short, row));
        let on = row.long_names().enumerate().map(|(at, name)| (name, row.short.filter(|_| at == 0), row));
        let off = row.off.iter().map(|name| (*name, None, row));
        own.into_iter().chain(on).chain(off).collect::<Vec<_>>()
    })
}

impl Refused {
    /// Reads the terms of a module. `has_charset`: names are converted here.
    pub fn read(terms: &[u8], has_charset: bool) -> Refused {
        let mut refused = Refused { names: BTreeSet::from(BY_DEFAULT) };
        if !has_charset {
            refused.names.insert("iconv");
        }
        for term in terms.split(u8::is_ascii_whitespace).filter(|term| !term.is_empty()) {
            let (accepts, term) = match term.strip_prefix(b"!") {
                Some(term) => (true, term),
                None => (false, term),
            };
            refused.apply(&String::from_utf8_lossy(term), accepts);
        }
        refused.names.extend(ALWAYS);
        if !has_charset {
            refused.names.insert("iconv");
        }
        refused
    }

    fn apply(&mut self, term: &str, accepts: bool) {
        if matches!(term, "a" | "archive") {
            return ARCHIVE.iter().for_each(|name| self.set(name, accepts));
        }
        if !term.contains(['*', '?', '[']) {
            let exact = spellings().find(|(name, letter, _)| {
                *name == term || letter.is_some_and(|letter| term.chars().eq([letter]))
            });
            let Some((name, _, row)) = exact else { return };
            if row.off.contains(&name) {
                row.off.iter().for_each(|name| self.set(name, accepts));
            } else {
                self.set(main_name(row), accepts);
            }
            return;
        }
        for (name, letter, row) in spellings() {
            let letter = letter.map(String::from).unwrap_or_default();
            let is_meant = [name, &letter]
                .iter()
                .any(|text| !text.is_empty() && glob::matches(term.as_bytes(), text.as_bytes()));
            if is_meant && !NOT_BY_WILDCARD.contains(&name) {
                self.set(if row.off.contains(&name) { name } else { main_name(row) }, accepts);
            }
        }
    }

    fn set(&mut self, name: &'static str, accepts: bool) {
        if accepts {
            self.names.remove(name);
        } else {
            self.names.insert(name);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Refuses one use of an option; `name` is the spelling of an `off` name.
    pub fn check(&self, row: &'static Row, off: Option<&str>) -> Result<(), Refusal> {
        if FOREIGN.contains(&row.long) {
            return Err(Refusal::usage("rsync: Attempt to hack rsync thwarted!"));
        }
        match off {
            Some(name) if self.has(name) => Err(refusal(name, None)),
            None if self.has(main_name(row)) => Err(refusal(main_name(row), row.short)),
            _ => Ok(()),
        }
    }

    /// Refuses the `-e` behind which a client says what it can do.
    pub fn check_capabilities(&self) -> Result<(), Refusal> {
        if self.has("rsh") {
            return Err(refusal("rsh", Some('e')));
        }
        Ok(())
    }

    /// Refuses what other options imply. A refused way of deletion leaves the other one.
    pub fn check_implied(&self, wishes: &Wishes, direction: Direction) -> Result<(), Refusal> {
        let change = &wishes.typed.change;
        let removes = direction == Direction::Sending && change.remove != Remove::Nothing;
        if self.has("delete") && (wishes.deleting || removes) {
            return Err(refusal("delete", None));
        }
        let names_no_dir = change.partial_dir.as_deref().is_some_and(|dir| matches!(dir, b"" | b"."));
        if self.has("partial") && (change.partial || wishes.inplace || names_no_dir) {
            return Err(refusal("partial", None));
        }
        if self.has("inplace") && (change.append != Append::Off || change.write_devices) {
            return Err(refusal("inplace", None));
        }
        if self.has("compress") && wishes.compress {
            return Err(refusal("compress", Some('z')));
        }
        Ok(())
    }

    /// Leads plain `--delete` away from a way that is refused.
    pub fn steer_deletion(&self, typed: &mut Typed, deletes_during: bool) {
        let change = &mut typed.change;
        let is_plain = change.delete_during.is_none() && !change.delete_before && !change.delete_after;
        if !is_plain || !(change.delete || change.delete_excluded) {
            return;
        }
        if deletes_during && self.has("delete-during") {
            change.delete_before = true;
        } else if !deletes_during && self.has("delete-before") {
            change.delete_during = Some(During::Plain);
        }
    }
}

/// The name of a row in messages; options that have only a letter go by that.
fn main_name(row: &'static Row) -> &'static str {
    match (row.long, row.short) {
        ("", Some('D')) => "D",
        ("", Some('P')) => "P",
        (long, _) => long,
    }
}

fn refusal(name: &str, letter: Option<char>) -> Refusal {
    let letter = letter.map(|letter| format!(" (-{letter})")).unwrap_or_default();
    let text = format!("rsync: The server is configured to refuse --{name}{letter}");
    Refusal::new(Code::Unsupported, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(terms: &str, name: &str) -> String {
        let refused = Refused::read(terms.as_bytes(), false);
        let (found, _, row) = spellings()
            .find(|(long, letter, _)| *long == name || letter.is_some_and(|l| name.chars().eq([l])))
            .expect("such an option exists");
        let off = row.off.contains(&found).then_some(found);
        match refused.check(row, off) {
            Ok(()) => "fine".into(),
            Err(refusal) => String::from_utf8(refusal.text).unwrap().split("refuse ").last().unwrap().into(),
        }
    }

    #[test]
    fn what_a_stock_daemon_was_seen_to_refuse() {
        for (terms, name, expected) in [
            ("*", "recursive", "--recursive (-r)"),
            ("*", "dirs", "--dirs (-d)"),
            ("*", "dry-run", "fine"),
            ("*", "rsh", "fine"),
            ("* !a !v", "recursive", "fine"),
            ("* !a !v", "verbose", "fine"),
            ("* !a !v", "checksum", "--checksum (-c)"),
            ("archive", "links", "--links (-l)"),
            ("archive", "d", "--dirs (-d)"),
            ("z", "compress", "--compress (-z)"),
            ("no-*", "no-implied-dirs", "--no-implied-dirs"),
            ("no-*", "implied-dirs", "fine"),
            ("del", "delete-during", "--delete-during"),
            ("del", "delete", "fine"),
            ("checksum-choice", "cc", "--checksum-choice"),
            ("s", "secluded-args", "--secluded-args (-s)"),
            ("dry-run", "n", "--dry-run (-n)"),
            ("nosuchthing", "recursive", "fine"),
            ("", "write-devices", "--write-devices"),
            ("!write-devices", "write-devices", "fine"),
            ("!iconv !insecure-links", "insecure-links", "--insecure-links"),
            ("!iconv", "iconv", "--iconv"),
        ] {
            assert_eq!(text(terms, name), expected, "{terms:?} {name}");
        }
        assert_eq!(text("", "config"), "rsync: Attempt to hack rsync thwarted!");
    }
}
