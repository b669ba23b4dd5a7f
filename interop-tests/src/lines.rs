//! A program's output as a comparable multiset of lines.
//!
//! What differs between any two correct programs is made equal: the working folder, raw byte
//! counts on the wire, rates and times, the source position in the final line, process numbers.

use std::path::Path;

use bstr::ByteSlice;

/// Returns the lines of an output, sorted, in their comparable form.
pub fn comparable(text: &[u8], work: &Path) -> Vec<String> {
    let text = text.to_str_lossy().replace(&*work.to_string_lossy(), "$WORK");
    let mut lines: Vec<String> =
        text.split(['\n', '\r']).filter(|line| !line.is_empty()).filter_map(comparable_line).collect();
    // Totals are repeated whenever a list is done with, which hangs on timing.
    let mut last = String::new();
    lines.retain(|line| match line.split_once(" (xfr#").and_then(|(_, tail)| tail.split_once(',')) {
        Some((number, _)) => std::mem::replace(&mut last, number.to_owned()) != number,
        None => true,
    });
    lines.sort();
    lines
}

/// Returns the lines of a log in their comparable form: time and process read the same, and bytes
/// that either program escapes for its own reasons are text again.
pub fn comparable_log(text: &[u8], work: &Path) -> Vec<String> {
    let text = unescaped(text);
    let mut lines: Vec<String> = comparable(&text, work).iter().filter_map(|line| undated(line)).collect();
    lines.sort();
    lines
}

/// A dated line without its date and process, `T [P] ` in their place.
fn undated(line: &str) -> Option<String> {
    let is_date = line.len() > 22 && line.as_bytes()[4] == b'/' && line.as_bytes()[13] == b':';
    match line.split_once("] ").filter(|_| is_date) {
        Some((_, body)) => comparable_line(body).map(|body| format!("T [P] {body}")),
        None => Some(line.to_owned()),
    }
}

/// Puts back bytes from 0x80 on: stock leaves most of them raw in a log, valid text or not.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = rest.get(2..5).filter(|_| rest.starts_with(b"\\#"));
        let code = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match code.filter(|&code| code >= 0x80) {
            Some(code) => {
                out.push(code);
                rest = &rest[5..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn comparable_line(line: &str) -> Option<String> {
    if line.starts_with("sent ") && line.contains("  total size ") {
        let size = line.rsplit(' ').next().unwrap_or_default();
        return Some(format!("sent N bytes  received N bytes  total size {size}"));
    }
    if line.starts_with("sent ") && line.contains(" bytes/sec") {
        return Some("sent N bytes  received N bytes  N bytes/sec".to_owned());
    }
    if let Some((total, speedup)) = line.split_once("  speedup is ") {
        let suffix = speedup.find(" (").map_or("", |at| &speedup[at..]);
        return Some(format!("{total}  speedup is N{suffix}"));
    }
    // How often two blocks share a slot is a matter of the table.
    if let Some((front, back)) = line.split_once("hash_hits=") {
        let rest = back.trim_start_matches(|c: char| c.is_ascii_digit());
        return Some(format!("{front}hash_hits=N{rest}"));
    }
    for label in [" starting pid=", "client_run waiting on ", "client_run2 waiting on "] {
        if let Some((front, _)) = line.split_once(label) {
            return Some(format!("{front}{label}P"));
        }
    }
    if let Some((front, tail)) = line.split_once("_exit_cleanup(").filter(|_| line.starts_with('[')) {
        let code = tail.split_once(',').map_or(tail, |(code, _)| code);
        let what = tail.split_once(')').map_or("", |(_, what)| what);
        return Some(format!("{front}_exit_cleanup({code}, file=F, line=L){what}"));
    }
    let owner = line.strip_prefix("set uid of .").or_else(|| line.strip_prefix("set gid of ."));
    if let Some((name, change)) = owner.and_then(|rest| rest.split_once(" from ")) {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        return Some(format!("{}.{stem}.XXXXXX from {change}", &line[..11]));
    }
    // A temporary name ends in six random letters.
    if let Some((from, to)) = line.strip_prefix("renaming ").and_then(|rest| rest.split_once(" to ")) {
        let stem = from.rsplit_once('.').map_or(from, |(stem, _)| stem);
        return Some(format!("renaming {stem}.XXXXXX to {to}"));
    }
    // Numbers of processes and the time of day, where a format labels them.
    if let Some(fields) = line.strip_suffix("|pid") {
        let fields: Vec<&str> = fields.split('|').collect();
        return Some(format!("{}|T|P|pid", fields[..fields.len().saturating_sub(2)].join("|")));
    }
    for label in ["Total bytes sent", "Total bytes received", "File list size"] {
        if line.starts_with(label) {
            return Some(format!("{label}: N"));
        }
    }
    if line.starts_with("File list generation time") || line.starts_with("File list transfer time") {
        return None;
    }
    if line.starts_with("cmd[0]=") {
        let is_program = |word: &str| word.ends_with("/suisei") || word.ends_with("/rsync");
        let words = line.split(' ').map(|word| if is_program(word) { "PROGRAM" } else { word });
        return Some(words.collect::<Vec<_>>().join(" "));
    }
    if let Some((front, _)) = line.split_once(" port ").filter(|(front, _)| front.starts_with("opening tcp "))
    {
        return Some(format!("{front} port N"));
    }
    if line.starts_with("opening connection using: ") {
        let word = |word| if str::ends_with(word, "/suisei") { "/usr/bin/rsync" } else { word };
        return Some(line.split(' ').map(word).collect::<Vec<_>>().join(" "));
    }
    // A stock client that received an empty list tries to write to a server that has ended.
    if line == "rsync: [Receiver] write error: Broken pipe (32)" {
        return None;
    }
    if line.starts_with("rsync error: ") || line.starts_with("rsync warning: ") {
        let (text, tail) = line.split_once(" at ").unwrap_or((line, ""));
        let who = tail.split_once('[').and_then(|(_, who)| who.split_once('=')).map_or("", |(who, _)| who);
        return Some(format!("{text} at FILE(LINE) [{who}=V]"));
    }
    if line.trim_start().split_once('%').is_some_and(|(front, _)| is_progress(front)) {
        return comparable_progress(line);
    }
    Some(without_temp_name(line))
}

/// Replaces the random part of a temp file's name that ends a quoted path.
fn without_temp_name(line: &str) -> String {
    let random = |at: usize| {
        let part = line.get(at + 1..at + 7).unwrap_or_default();
        part.len() == 6 && part.bytes().all(|b| b.is_ascii_alphanumeric()) && line[..at].contains("/.")
    };
    match line.find("\" failed: ").and_then(|end| end.checked_sub(7)) {
        Some(at) if line.as_bytes()[at] == b'.' && random(at) => {
            format!("{}.XXXXXX{}", &line[..at], &line[at + 7..])
        }
        _ => line.to_owned(),
    }
}

fn is_progress(front: &str) -> bool {
    let mut words = front.split_whitespace();
    let number = |w: &str| w.chars().all(|c| c.is_ascii_digit() || c == ',');
    words.next().is_some_and(number) && words.next().is_some_and(number) && words.next().is_none()
}

/// Only a finished file's line is certain to be printed; its rate and time are not.
fn comparable_progress(line: &str) -> Option<String> {
    let (front, _) = line.split_once('%')?;
    let (_, counts) = line.split_once("(xfr#")?;
    Some(format!("{front}% (xfr#{}", counts.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incidental_numbers_are_made_equal() {
        let text = b"./\nsent 1,234 bytes  received 5 bytes  9.00 bytes/sec\ntotal size is 7  speedup is 0.01 (DRY RUN)\n\
            rsync error: some files (code 23) at main.c(1338) [sender=3.5.0]\n\r     5 100%    1.00kB/s    0:00:00 (xfr#1, to-chk=0/1)\n";
        assert_eq!(
            comparable(text, Path::new("/nowhere")),
            [
                "     5 100% (xfr#1, to-chk=0/1)",
                "./",
                "rsync error: some files (code 23) at FILE(LINE) [sender=V]",
                "sent N bytes  received N bytes  N bytes/sec",
                "total size is 7  speedup is N (DRY RUN)",
            ]
        );
    }
}
