//! The script beside a batch file: one command that replays it.
//!
//! Wire: protocol/doc/04-batch-and-files-from.md#45-the-sh-script

use suisei_protocol::filter::{texts_for_replay, Rule};
use suisei_protocol::session::{Direction, Version};

use crate::exit::Refusal;
use crate::options::parse::{self, Arity};

/// What a script is made of.
pub struct Script<'a> {
    /// The argument vector, the program's name first.
    pub words: &'a [Vec<u8>],
    /// The destination: of a remote one, the path.
    pub destination: &'a [u8],
    /// The filter rules of the run.
    pub rules: &'a [Rule],
    /// What ends a line of a filter file.
    pub nul_separated: bool,
}

/// What becomes of a word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    /// It is the option that names the batch file.
    Batch,
}

impl Script<'_> {
    /// Returns the script's text. A rule that cannot stand on a line of its own is refused.
    pub fn text(&self, direction: Direction, version: Version) -> Result<Vec<u8>, Refusal> {
        let rules = texts_for_replay(self.rules, direction, version);
        let mut text = quoted(self.words.first().map_or(b"rsync".as_slice(), Vec::as_slice));
        if !rules.is_empty() {
            let modern = version.has_modern_filters();
            text.extend_from_slice(if modern { b" --filter='._-'" } else { b" --exclude-from='-'" });
        }
        self.options(&mut text);
        text.extend_from_slice(b" ${1:-");
        text.extend(quoted(self.destination));
        text.push(b'}');
        if !rules.is_empty() {
            text.extend_from_slice(b" <<'#E#'\n");
            let end = if self.nul_separated { b'\0' } else { b'\n' };
            for rule in rules {
                if rule.contains(&b'\n') {
                    let why = "cannot write a filter rule containing a newline to the batch replay script";
                    return Err(Refusal::usage(why));
                }
                text.extend(rule);
                text.push(end);
            }
            text.extend_from_slice(if self.nul_separated { b";\n#E#" } else { b"#E#" });
        }
        text.push(b'\n');
        Ok(text)
    }

    /// Appends the words that are neither paths nor rules.
    fn options(&self, text: &mut Vec<u8>) {
        let mut words = self.words.iter().skip(1);
        while let Some(word) = words.next() {
            if word == b"--" {
                text.extend_from_slice(b" '--'");
                return;
            }
            let Some(arity) = parse::arity(word) else { continue };
            let value = (arity == Arity::NextWord).then(|| words.next()).flatten();
            match fate(word) {
                Fate::Dropped => {}
                Fate::Kept => {
                    for word in std::iter::once(word).chain(value) {
                        text.push(b' ');
                        text.extend(option(word));
                    }
                }
                Fate::Batch => {
                    let attached = word.iter().position(|&b| b == b'=').map(|at| &word[at + 1..]);
                    text.extend_from_slice(b" --read-batch");
                    text.push(if attached.is_some() { b'=' } else { b' ' });
                    text.extend(quoted(attached.or(value.map(Vec::as_slice)).unwrap_or_default()));
                }
            }
        }
    }
}

fn fate(word: &[u8]) -> Fate {
    let name = word.split(|&b| b == b'=').next().unwrap_or(word);
    match name {
        b"--write-batch" | b"--only-write-batch" => Fate::Batch,
        b"-f" | b"--filter" | b"--files-from" => Fate::Dropped,
        _ if name.starts_with(b"--include") || name.starts_with(b"--exclude") => Fate::Dropped,
        _ => Fate::Kept,
    }
}

/// Quotes a word; the name of an option stays outside if a value is attached.
fn option(word: &[u8]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
    match word.iter().position(|&b| b == b'=') {
        Some(at) if word.starts_with(b"-") && word[..at].iter().all(plain) => {
            [&word[..=at], &quoted(&word[at + 1..])].concat()
        }
        _ => quoted(word),
    }
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for &byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(other),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(words: &[&str], destination: &str) -> String {
        let words: Vec<Vec<u8>> =
            std::iter::once(&"rsync").chain(words).map(|word| word.as_bytes().to_vec()).collect();
        let script =
            Script { words: &words, destination: destination.as_bytes(), rules: &[], nul_separated: false };
        String::from_utf8(script.text(Direction::Sending, Version::NEWEST).unwrap()).unwrap()
    }

    #[test]
    fn captured_scripts() {
        let plain = script(&["-a", "--write-batch=bat", "src/", "dst/"], "dst/");
        assert_eq!(plain, "'rsync' '-a' --read-batch='bat' ${1:-'dst/'}\n");
        let words =
            ["-a", "--exclude-from", "exf", "--exclude", "x", "--include=y", "-f", "- foo", "-f- bar"];
        let tail = ["--write-batch", "s", "src/", "g1/"];
        let long = script(&[&words[..], &tail[..]].concat(), "g1/");
        assert_eq!(long, "'rsync' '-a' '-f- bar' --read-batch 's' ${1:-'g1/'}\n");
        let quotes = script(&["-a", "--write-batch=q'uo te", "src/", "-vf", "- foo", "d w"], "d w");
        assert_eq!(quotes, "'rsync' '-a' --read-batch='q'\\''uo te' '-vf' '- foo' ${1:-'d w'}\n");
        let dashes = script(&["-e", "./rsh", "--partial-dir=pp", "--write-batch=s", "--", "a", "b"], "b");
        assert_eq!(dashes, "'rsync' '-e' './rsh' --partial-dir='pp' --read-batch='s' '--' ${1:-'b'}\n");
    }
}
