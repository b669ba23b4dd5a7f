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
    lines.sort();
    lines
}

fn comparable_line(line: &str) -> Option<String> {
    if line.starts_with("sent ") && line.contains(" bytes/sec") {
        return Some("sent N bytes  received N bytes  N bytes/sec".to_owned());
    }
    if let Some((total, speedup)) = line.split_once("  speedup is ") {
        let suffix = speedup.find(" (").map_or("", |at| &speedup[at..]);
        return Some(format!("{total}  speedup is N{suffix}"));
    }
    for label in ["Total bytes sent", "Total bytes received", "File list size"] {
        if line.starts_with(label) {
            return Some(format!("{label}: N"));
        }
    }
    if line.starts_with("File list generation time") || line.starts_with("File list transfer time") {
        return None;
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
    Some(line.to_owned())
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
