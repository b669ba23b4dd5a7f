//! Options of the user's own making: the alias files that stock reads through its option library.
//!
//! A line `rsync alias --NAME WORDS...` makes `--NAME` stand for the words; `-X` for a letter.
//! `rsync exec --NAME PROGRAM WORDS...` runs a program instead, with all other options spelled out.
//! Wire: protocol/doc/24-environment-and-exit.md#2-aliases

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::environment::Environment;
use super::misread::{by_letter, by_name};

/// Whose lines count.
const PROGRAM: &[u8] = b"rsync";

/// Stands for the argument of an alias, in its words.
const ARGUMENT: &[u8] = b"!#:+";

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alias,
    Exec,
}

/// One line of a file.
#[derive(Debug, Clone)]
struct Entry {
    kind: Kind,
    /// With its dashes.
    option: Vec<u8>,
    words: Vec<Vec<u8>>,
}

/// All entries, in the order of the files.
#[derive(Debug, Clone, Default)]
pub struct Aliases {
    entries: Vec<Entry>,
}

/// A command line without aliases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The words that are left.
    pub words: Vec<OsString>,
    /// The program that an `exec` entry runs, with its own words.
    pub program: Option<Vec<OsString>>,
}

/// A word that still has to be looked at, and the aliases it came from.
#[derive(Debug, Clone)]
struct Pending {
    word: Vec<u8>,
    from: Vec<usize>,
}

impl Aliases {
    /// Reads the machine's files, then the user's; what cannot be read is not there.
    pub fn of_system(environment: &Environment) -> Aliases {
        let mut aliases = Aliases::default();
        aliases.read_file(Path::new("/etc/popt"));
        let mut more: Vec<_> = std::fs::read_dir("/etc/popt.d")
            .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
            .unwrap_or_default();
        more.sort();
        for path in more {
            aliases.read_file(&path);
        }
        if let Some(home) = environment.non_empty("HOME") {
            aliases.read_file(&Path::new(OsStr::from_bytes(home)).join(".popt"));
        }
        aliases
    }

    fn read_file(&mut self, path: &Path) {
        if let Ok(text) = std::fs::read(path) {
            self.read(&text);
        }
    }

    /// Adds the entries of a text. A line that does not end is no line.
    pub fn read(&mut self, text: &[u8]) {
        let mut line = Vec::new();
        for part in text.split_inclusive(|&b| b == b'\n') {
            let Some(part) = part.strip_suffix(b"\n") else { return };
            line.extend_from_slice(part);
            if line.last() == Some(&b'\\') {
                line.pop();
                continue;
            }
            self.entries.extend(entry(&line));
            line.clear();
        }
    }

    fn find(&self, kind: Kind, option: &[u8]) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.kind == kind && entry.option == option)
    }

    /// Puts the words of aliases in their place.
    pub fn expand(&self, words: &[OsString]) -> Expanded {
        let mut expanded = Expanded::default();
        if self.entries.is_empty() {
            expanded.words = words.to_vec();
            return expanded;
        }
        let typed = words.iter().map(|word| Pending { word: word.as_bytes().to_vec(), from: Vec::new() });
        let mut queue: Vec<Pending> = typed.rev().collect();
        while let Some(next) = queue.pop() {
            if next.word == b"--" {
                expanded.words.push("--".into());
                expanded.words.extend(queue.drain(..).rev().map(|rest| OsString::from_vec(rest.word)));
            } else if next.word.starts_with(b"--") {
                self.long(next, &mut queue, &mut expanded);
            } else if next.word.len() > 1 && next.word.starts_with(b"-") {
                self.bundle(next, &mut queue, &mut expanded);
            } else {
                expanded.words.push(OsString::from_vec(next.word));
            }
        }
        expanded
    }

    fn long(&self, next: Pending, queue: &mut Vec<Pending>, expanded: &mut Expanded) {
        let at = next.word.iter().position(|&b| b == b'=');
        let (name, value) = match at {
            Some(at) => (&next.word[..at], Some(next.word[at + 1..].to_vec())),
            None => (next.word.as_slice(), None),
        };
        if self.replace(name, value.as_deref(), &next.from, queue) {
            return;
        }
        if value.is_none() && self.runs(name, expanded) {
            return;
        }
        let takes_next =
            value.is_none() && by_name(&name[2..]).is_some_and(|(row, on)| on && row.value.is_some());
        expanded.words.push(OsString::from_vec(next.word));
        if takes_next {
            expanded.words.extend(queue.pop().map(|value| OsString::from_vec(value.word)));
        }
    }

    fn bundle(&self, next: Pending, queue: &mut Vec<Pending>, expanded: &mut Expanded) {
        let letters = &next.word[1..];
        for (at, &letter) in letters.iter().enumerate() {
            let option = [b'-', letter];
            let rest = &letters[at + 1..];
            let is_alias = self.find(Kind::Alias, &option).is_some_and(|alias| !next.from.contains(&alias));
            if is_alias || self.find(Kind::Exec, &option).is_some() {
                if at > 0 {
                    expanded.words.push(OsString::from_vec(next.word[..=at].to_vec()));
                }
                if !rest.is_empty() {
                    queue.push(Pending { word: [b"-", rest].concat(), from: next.from.clone() });
                }
                if !self.replace(&option, None, &next.from, queue) && !self.runs(&option, expanded) {
                    expanded.words.push(OsString::from_vec(option.to_vec()));
                }
                return;
            }
            if by_letter(letter).is_some_and(|row| row.value.is_some()) {
                expanded.words.push(OsString::from_vec(next.word.clone()));
                if rest.is_empty() {
                    expanded.words.extend(queue.pop().map(|value| OsString::from_vec(value.word)));
                }
                return;
            }
        }
        expanded.words.push(OsString::from_vec(next.word));
    }

    /// Puts the words of an alias at the front of the queue. An alias that is unknown, that
    /// stands for itself, or that stands for what nobody knows, stays as it was typed: it is
    /// refused by the name that the user wrote.
    fn replace(&self, option: &[u8], value: Option<&[u8]>, from: &[usize], queue: &mut Vec<Pending>) -> bool {
        let Some(index) = self.find(Kind::Alias, option) else { return false };
        if from.last() == Some(&index) {
            return false;
        }
        if from.contains(&index) {
            return true;
        }
        let words = &self.entries[index].words;
        if !words.iter().all(|word| self.is_known(word)) {
            return false;
        }
        let takes_argument = words.iter().any(|word| contains(word, ARGUMENT));
        let argument = match value {
            Some(value) => Some(value.to_vec()),
            None if takes_argument => queue.pop().map(|next| next.word),
            None => None,
        };
        let from = [from, &[index]].concat();
        // Without a place of its own the value is the one that the last word wants.
        let open = words.last().is_some_and(|word| wants_value(word));
        if let Some(value) = argument.clone().filter(|_| open && !takes_argument) {
            queue.push(Pending { word: value, from: from.clone() });
        }
        for word in words.iter().rev() {
            let word = match &argument {
                Some(value) => substitute(word, value),
                None => word.clone(),
            };
            queue.push(Pending { word, from: from.clone() });
        }
        true
    }

    fn runs(&self, option: &[u8], expanded: &mut Expanded) -> bool {
        let Some(index) = self.find(Kind::Exec, option) else { return false };
        let words = self.entries[index].words.iter();
        // The first program runs.
        expanded.program.get_or_insert_with(|| words.map(|word| OsString::from_vec(word.clone())).collect());
        true
    }

    fn is_known(&self, word: &[u8]) -> bool {
        let mine = |option: &[u8]| self.entries.iter().any(|entry| entry.option == option);
        match word {
            [b'-', b'-', name @ ..] if !name.is_empty() => {
                let name = name.split(|&b| b == b'=').next().unwrap_or_default();
                by_name(name).is_some() || mine(&[b"--", name].concat())
            }
            _ => true,
        }
    }
}

fn contains(word: &[u8], part: &[u8]) -> bool {
    word.windows(part.len()).any(|window| window == part)
}

fn substitute(word: &[u8], value: &[u8]) -> Vec<u8> {
    match word.windows(ARGUMENT.len()).position(|window| window == ARGUMENT) {
        Some(at) => [&word[..at], value, &word[at + ARGUMENT.len()..]].concat(),
        None => word.to_vec(),
    }
}

/// Whether a word is an option whose value stands in the next one.
fn wants_value(word: &[u8]) -> bool {
    match word {
        [b'-', b'-', name @ ..] => by_name(name).is_some_and(|(row, on)| on && row.value.is_some()),
        [b'-', .., last] => by_letter(*last).is_some_and(|row| row.value.is_some()),
        _ => false,
    }
}

fn entry(line: &[u8]) -> Option<Entry> {
    let mut words = split(line);
    if words.len() < 4 || words[0] != PROGRAM {
        return None;
    }
    let kind = match words[1].as_slice() {
        b"alias" => Kind::Alias,
        b"exec" => Kind::Exec,
        _ => return None,
    };
    let option = words[2].clone();
    let is_option = match option.as_slice() {
        b"--server" | b"--daemon" => false,
        [b'-', b'-', _, ..] => true,
        [b'-', letter] => *letter != b'-',
        _ => false,
    };
    // Texts for the library's own help.
    let mut words = words.split_off(3);
    words.retain(|word| !word.starts_with(b"--POPTdesc=") && !word.starts_with(b"--POPTargs="));
    (is_option && !words.is_empty()).then_some(Entry { kind, option, words })
}

/// Splits a line into words, as a shell does: quotes and backslashes protect. A `#` at its front
/// makes it a comment.
fn split(line: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'#', None) if words.is_empty() && word.is_none() => return words,
            (_, Some(mark)) if byte == mark => quote = None,
            (b'\\', Some(mark)) => {
                let escaped = bytes.next_if(|&next| next == mark);
                word.get_or_insert_default().push(escaped.unwrap_or(b'\\'));
            }
            (_, Some(_)) => word.get_or_insert_default().push(byte),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (b'\\', None) => word.get_or_insert_default().extend(bytes.next()),
            (_, None) if byte.is_ascii_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    // `rsync alias --x ''` has an operand that is nothing: the library drops it.
    words.retain(|word| !word.is_empty());
    words
}

/// Spells a command line out: long names, values as words of their own, operands last.
pub fn spelled_out(words: &[OsString]) -> Vec<OsString> {
    let mut options: Vec<Vec<u8>> = Vec::new();
    let mut operands: Vec<Vec<u8>> = Vec::new();
    let mut words = words.iter().map(|word| word.as_bytes());
    while let Some(word) = words.next() {
        match word {
            b"--" => operands.extend(words.by_ref().map(<[u8]>::to_vec)),
            [b'-', b'-', long @ ..] => {
                let (name, value) = match long.iter().position(|&b| b == b'=') {
                    Some(at) => (&long[..at], Some(&long[at + 1..])),
                    None => (long, None),
                };
                let takes = by_name(name).is_some_and(|(row, on)| on && row.value.is_some());
                options.push([b"--", name].concat());
                let value = if takes { value.or_else(|| words.next()) } else { value };
                options.extend(value.map(<[u8]>::to_vec));
            }
            [b'-', letters @ ..] if !letters.is_empty() => {
                for (at, &letter) in letters.iter().enumerate() {
                    let row = by_letter(letter);
                    let long = row.map(|row| row.long).filter(|long| !long.is_empty());
                    options.push(match long {
                        Some(long) => [b"--", long.as_bytes()].concat(),
                        None => vec![b'-', letter],
                    });
                    if row.is_some_and(|row| row.value.is_some()) {
                        let rest = &letters[at + 1..];
                        let attached = rest.strip_prefix(b"=").unwrap_or(rest);
                        let value = if rest.is_empty() { words.next() } else { Some(attached) };
                        options.extend(value.map(<[u8]>::to_vec));
                        break;
                    }
                }
            }
            _ => operands.push(word.to_vec()),
        }
    }
    options.into_iter().chain(operands).map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(file: &str, line: &str) -> String {
        let mut aliases = Aliases::default();
        aliases.read(file.as_bytes());
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Expanded { words, program } = aliases.expand(&words);
        let shown = |words: Vec<OsString>| words.join(OsStr::new(" ")).into_string().unwrap();
        match program {
            Some(program) => format!("{} | {}", shown(program), shown(spelled_out(&words))),
            None => shown(words),
        }
    }

    #[test]
    fn an_alias_stands_for_its_words() {
        for (file, line, meant) in [
            ("rsync alias --zoom -rtv --stats\n", "--zoom a b", "-rtv --stats a b"),
            ("rsync alias -Z --compress --zc=zlib\n", "-rZt a b", "-r --compress --zc=zlib -t a b"),
            ("rsync alias -a -rc\n", "-a a", "-rc a"),
            ("rsync alias --delete --delete --max-delete=3\n", "--delete a", "--delete --max-delete=3 a"),
            ("rsync alias --zz -r\nrsync alias --zz -c\n", "--zz a", "-c a"),
            ("rsync alias --yy -c\nrsync alias --zz -r --yy\n", "--zz a", "-r -c a"),
            ("  # no\nrsync alias --zz -r \\\n  -c\n", "--zz a", "-r   -c a"),
            ("rsync alias --zz -B\n", "--zz=900 a", "-B 900 a"),
            ("rsync alias --zz -r --block-size=!#:+\n", "--zz 900 a", "-r --block-size=900 a"),
            ("rsync alias --zz -r\n", "--exclude --zz a -- --zz", "--exclude --zz a -- --zz"),
            ("rsync alias --zz '--suffix=a b' \"-r\"\n", "--zz a", "--suffix=a b -r a"),
        ] {
            let file = file.replace("\\\n  ", "\\\n");
            assert_eq!(expanded(&file, line), meant.replace("   ", " "), "{file}{line}");
        }
    }

    #[test]
    fn what_is_no_alias_stays_as_typed() {
        for file in [
            "other alias --zz -r\n",
            "rsync alias zz -r\n",
            "rsync alias --zz\n",
            "rsync alias --zz -r",
            "rsync ALIAS --zz -r\n",
            "rsync alias --zz --nobody-knows -r\n",
        ] {
            assert_eq!(expanded(file, "--zz a"), "--zz a", "{file}");
        }
        assert_eq!(expanded("rsync alias --server -r\n", "--server ."), "--server .");
        assert_eq!(expanded("rsync alias --zz --zz -c\n", "--zz a"), "--zz -c a");
        assert_eq!(expanded("rsync alias --aa --bb -r\nrsync alias --bb --aa -c\n", "--aa a"), "-c -r a");
    }

    #[test]
    fn a_program_gets_all_options_spelled_out() {
        let file = "rsync exec --zz prog x\n";
        assert_eq!(
            expanded(file, "-rPe ssh a --zz -v -- -q"),
            "prog x | --recursive -P --rsh ssh --verbose a -q"
        );
        assert_eq!(expanded(file, "--zc=zlib --zz --no-v -B5"), "prog x | --zc zlib --no-v --block-size 5");
        assert_eq!(expanded("rsync exec -Z prog\n", "-rZ a"), "prog | --recursive a");
    }
}
