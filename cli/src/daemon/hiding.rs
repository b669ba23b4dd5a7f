//! What a module hides: its filter parameters as rules.
//!
//! Wire: protocol/doc/03-daemon.md#39-parameters

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use suisei_engine::filter::{FilterError, Hidden, LineEnd, RuleParser};
use suisei_engine::tree::open_operator_file;
use suisei_protocol::filter::OldKind;

use super::config::Settings;

/// Rules that are words: their pattern is the next word.
const WORDS: [&[u8]; 9] =
    [b"exclude", b"include", b"merge", b"dir-merge", b"hide", b"show", b"protect", b"risk", b"clear"];

/// Reads the rules of a module; nothing if there are none.
pub fn of(settings: &Settings<'_>) -> Result<Option<Arc<Hidden>>, String> {
    let mut read = read;
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    add(&mut parser, settings).map_err(|error| error.text)?;
    let rules = parser.finish();
    Ok((!rules.is_empty()).then(|| Arc::new(Hidden::new(&rules))))
}

fn add(parser: &mut RuleParser<'_>, settings: &Settings<'_>) -> Result<(), FilterError> {
    for rule in rules(&settings.text("filter")) {
        parser.filter(&rule)?;
    }
    for (name, kind) in [("include", OldKind::Include), ("exclude", OldKind::Exclude)] {
        if let Some(file) = settings.non_empty(&format!("{name} from")) {
            parser.patterns_from(&file, kind)?;
        }
        for pattern in words(&settings.text(name)) {
            parser.pattern(pattern, kind)?;
        }
    }
    Ok(())
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Splits rules at blanks: one that has only its kind so far goes on with the next word.
fn rules(text: &[u8]) -> Vec<Vec<u8>> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut is_open = false;
    for word in words(text) {
        match rules.last_mut().filter(|_| is_open) {
            Some(rule) => {
                rule.push(b' ');
                rule.extend_from_slice(word);
                is_open = false;
            }
            None => {
                rules.push(word.to_vec());
                is_open = is_kind(word);
            }
        }
    }
    rules
}

/// Whether a word is a rule without its pattern: `-`, `+s`, `merge,e`.
fn is_kind(word: &[u8]) -> bool {
    let name = word.split(|byte| matches!(byte, b',' | b'_')).next().unwrap_or_default();
    let is_letter = matches!(word.first(), Some(b'+' | b'-' | b'.' | b':' | b'H' | b'S' | b'P' | b'R'));
    let has_modifiers = || word[1..].iter().all(|byte| b"/!Csrpxenw+-,".contains(byte));
    (WORDS.contains(&name) && name != b"clear" && !word.contains(&b'_')) || (is_letter && has_modifiers())
}

fn read(name: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_operator_file(Path::new(OsStr::from_bytes(name)))?.read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_split_where_a_pattern_ends() {
        let split = |text: &str| -> Vec<String> {
            rules(text.as_bytes()).into_iter().map(|rule| String::from_utf8(rule).unwrap()).collect()
        };
        assert_eq!(split("- /d/y.txt"), ["- /d/y.txt"]);
        assert_eq!(
            split("+ a -s b exclude c -_d merge,e /f"),
            ["+ a", "-s b", "exclude c", "-_d", "merge,e /f"]
        );
        assert_eq!(split("  "), Vec::<String>::new());
    }
}
