//! The `--info` words that concern the server's side, as one word of its command line.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use suisei_protocol::session::Direction;

/// Words that a receiving server uses, in table order.
const RECEIVING: [&str; 10] =
    ["BACKUP", "COPY", "DEL", "MISC", "MOUNT", "NAME", "NONREG", "SKIP", "STATS", "SYMSAFE"];
/// Words that a sending server uses.
const SENDING: [&str; 6] = ["MISC", "MOUNT", "NAME", "REMOVE", "STATS", "SYMSAFE"];

/// Fewest words of one level that are worth an `ALL`.
const WORTH_ALL: usize = 5;

/// Returns the value of `--info` for a server, if the user set any word of its side.
/// `lists` are the user's own values; `server` is the server's direction.
pub fn for_server(lists: &[String], server: Direction) -> Option<String> {
    let words: &[&str] = match server {
        Direction::Receiving => &RECEIVING,
        Direction::Sending => &SENDING,
    };
    let levels: Vec<Option<u8>> = words.iter().map(|word| level(lists, word)).collect();
    let mut parts = Vec::new();
    let common = if levels.iter().all(Option::is_some) { most_common(&levels) } else { None };
    match common {
        Some(0) => parts.push("NONE".to_owned()),
        Some(level) => parts.push(show("ALL", level)),
        None => {}
    }
    for (word, level) in words.iter().zip(&levels) {
        if let Some(level) = level.filter(|&level| common != Some(level)) {
            parts.push(show(word, level));
        }
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

fn show(word: &str, level: u8) -> String {
    match level {
        1 => word.to_owned(),
        _ => format!("{word}{level}"),
    }
}

fn most_common(levels: &[Option<u8>]) -> Option<u8> {
    let count = |level: u8| levels.iter().filter(|&&l| l == Some(level)).count();
    (0..=4).find(|&level| count(level) >= WORTH_ALL)
}

/// Returns the last level that the lists give a word.
fn level(lists: &[String], word: &str) -> Option<u8> {
    let mut found = None;
    for item in lists.iter().flat_map(|list| list.split(',')) {
        let name = item.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &item[name.len()..];
        let given = if digits.is_empty() { 1 } else { digits.parse::<u8>().unwrap_or(4).min(4) };
        if name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case("ALL") {
            found = Some(given);
        } else if name.eq_ignore_ascii_case("NONE") {
            found = Some(0);
        }
    }
    found
}
