//! Which word of a command line could not be read, in the words of stock.
//!
//! clap names options; stock names the word as typed, a whole bundle included. Only this error
//! path walks the words by hand.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::row::Row;
use super::rows;
use crate::exit::Refusal;

fn refusal(word: &[u8], why: &str) -> Refusal {
    Refusal::usage([b"rsync: ", word, b": ", why.as_bytes()].concat())
}

/// Explains why a command line could not be parsed: how many words are good, and what is wrong
/// with the next one.
pub fn explain(words: &[OsString]) -> (usize, Refusal) {
    let mut words = words.iter().map(|word| word.as_bytes()).enumerate();
    while let Some((at, word)) = words.next() {
        if word == b"--" {
            break;
        }
        let wants_value = match word {
            [b'-', b'-', long @ ..] => {
                let name = long.split(|&b| b == b'=').next().unwrap_or_default();
                let Some((row, on)) = by_name(name) else { return (at, refusal(word, "unknown option")) };
                on && row.value.is_some() && name.len() == long.len()
            }
            [b'-', letters @ ..] if !letters.is_empty() => match bundle(letters) {
                Some(wants_value) => wants_value,
                None => return (at, refusal(word, "unknown option")),
            },
            _ => false,
        };
        if wants_value && words.next().is_none() {
            return (at, refusal(word, "missing argument"));
        }
    }
    (usize::MAX, Refusal::usage("rsync: the command line cannot be read"))
}

/// Whether a bundle wants the next word as a value; nothing if it holds an unknown letter.
fn bundle(letters: &[u8]) -> Option<bool> {
    for (i, &letter) in letters.iter().enumerate() {
        if letter == b'=' && i > 0 {
            return Some(false);
        }
        let row = by_letter(letter)?;
        if row.value.is_some() {
            return Some(i + 1 == letters.len());
        }
    }
    Some(false)
}

/// Finds the row of a letter.
pub(super) fn by_letter(letter: u8) -> Option<&'static Row> {
    rows().find(|row| row.short.is_some_and(|short| short as u32 == u32::from(letter)))
}

/// Finds the row of a long name, and whether the name switches it on.
pub(super) fn by_name(name: &[u8]) -> Option<(&'static Row, bool)> {
    rows().find_map(|row| {
        if row.long_names().any(|known| known.as_bytes() == name) {
            Some((row, true))
        } else if row.off.iter().any(|known| known.as_bytes() == name) {
            Some((row, false))
        } else {
            None
        }
    })
}

fn same(a: &Row, b: &Row) -> bool {
    a.long == b.long && a.short == b.short
}

/// Refuses a value for an option that takes none.
pub fn no_argument(row: &Row, value: &[u8], words: &[OsString]) -> Refusal {
    let ending = [b"=".as_slice(), value].concat();
    let names_row = |word: &[u8]| match word.strip_suffix(ending.as_slice()) {
        Some([b'-', b'-', name @ ..]) => by_name(name).is_some_and(|(found, _)| same(found, row)),
        Some([b'-', .., last]) => by_letter(*last).is_some_and(|found| same(found, row)),
        _ => false,
    };
    let word = words.iter().map(|word| word.as_bytes()).find(|word| names_row(word));
    refusal(word.unwrap_or(&ending), "option does not take an argument")
}

/// Returns the word that holds a value: attached to its option, or alone.
pub fn word_of(row: &Row, value: &[u8], words: &[OsString]) -> Vec<u8> {
    let attached = |word: &&[u8]| match word.strip_suffix(value) {
        Some([b'-', b'-', name @ .., b'=']) => row.long_names().any(|known| known.as_bytes() == name),
        Some([b'-', letters @ ..]) if !letters.starts_with(b"-") => {
            let letters = letters.strip_suffix(b"=").unwrap_or(letters);
            letters.last().is_some_and(|&last| row.short.is_some_and(|short| short as u32 == u32::from(last)))
        }
        _ => false,
    };
    let found = words.iter().map(|word| word.as_bytes()).find(attached);
    if row.value.is_none() || value.is_empty() {
        return found.unwrap_or_default().to_vec();
    }
    found.unwrap_or(value).to_vec()
}
