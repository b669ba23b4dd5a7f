//! Reading the words of a client, as a server.
//!
//! The words are wire format: every client writes them the same way, and nothing but the rows'
//! meaning is shared with a user's command line. Everything behind the lone `.` is a path.
//! Wire: protocol/doc/02-session-start.md#211-the-option-words-in-exact-order

use suisei_protocol::session::Capabilities;

use crate::exit::{Code, Refusal};
use crate::options::row::{Given, Row, Support};
use crate::options::rows;
use crate::options::typed::{Show, Typed};

/// What a client's words say.
#[derive(Debug, Clone)]
pub struct ServerWords {
    /// The options, and the paths as operands.
    pub typed: Typed,
    /// What the client offers behind `e`; nothing below version 30.
    pub capabilities: Option<Capabilities>,
    /// Whether more words follow on stdin (`-s`).
    pub secluded: bool,
    /// Whether there was anything behind the options, if only the lone `.`.
    pub complete: bool,
}

/// Reads the words of one or two lists; `--server` may be among them. The second list is what
/// came over stdin.
pub fn read(line: &[Vec<u8>], secluded: Option<&[Vec<u8>]>) -> Result<ServerWords, Refusal> {
    let mut reader = Reader { typed: Typed::default(), capabilities: None, complete: false, check: None };
    reader.typed.connect.server = true;
    reader.list(line)?;
    let wants_more = reader.typed.connect.secluded == Some(true);
    if let Some(words) = secluded {
        reader.list(words)?;
    }
    let Reader { typed, capabilities, complete, .. } = reader;
    Ok(ServerWords { typed, capabilities, secluded: wants_more, complete })
}

/// What a daemon is asked for by one word.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// An option; by its `off` name, if by one.
    Option(&'static Row, Option<&'a str>),
    /// The `-e` behind which the client says what it can do.
    Capabilities,
}

/// Whether a daemon does what it is asked for.
pub type Check<'a> = &'a dyn Fn(Asked<'_>) -> Result<(), Refusal>;

/// Reads a daemon's words, up to the first that is refused: the reason comes with what precedes it.
pub fn read_checked(
    line: &[Vec<u8>],
    secluded: Option<&[Vec<u8>]>,
    check: Check<'_>,
) -> (ServerWords, Option<Refusal>) {
    let mut reader =
        Reader { typed: Typed::default(), capabilities: None, complete: false, check: Some(check) };
    reader.typed.connect.server = true;
    let end = reader.list(line).and_then(|()| secluded.map_or(Ok(()), |words| reader.list(words)));
    let Reader { typed, capabilities, complete, .. } = reader;
    (ServerWords { typed, capabilities, secluded: secluded.is_some(), complete }, end.err())
}

fn refusal(word: &[u8], why: &str) -> Refusal {
    Refusal::usage([b"rsync: on remote machine: ", word, b": ", why.as_bytes()].concat())
}

struct Reader<'c> {
    typed: Typed,
    capabilities: Option<Capabilities>,
    complete: bool,
    check: Option<Check<'c>>,
}

impl Reader<'_> {
    fn list(&mut self, words: &[Vec<u8>]) -> Result<(), Refusal> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_slice() {
                b"." => {
                    self.complete = true;
                    self.typed.operands.extend(words.cloned());
                    return Ok(());
                }
                [b'-', b'-', name @ ..] if !name.is_empty() => self.long(word, name, &mut words)?,
                [b'-', letters @ ..] if !letters.is_empty() => self.bundle(word, letters, &mut words)?,
                _ => {
                    self.complete = true;
                    self.typed.operands.push(word.clone());
                }
            }
            if self.typed.output.show.is_some_and(Show::ends_the_line) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn long(
        &mut self,
        word: &[u8],
        name: &[u8],
        words: &mut std::slice::Iter<'_, Vec<u8>>,
    ) -> Result<(), Refusal> {
        let at = name.iter().position(|&b| b == b'=');
        let (name, attached) = match at {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let Some((row, on)) = named(name) else { return Err(refusal(word, "unknown option")) };
        self.ask(Asked::Option(row, std::str::from_utf8(name).ok().filter(|_| !on)))?;
        let takes_value = on && row.value.is_some();
        match (takes_value, attached) {
            (true, Some(value)) => self.apply(row, Given { on, value, word }),
            (true, None) => {
                let value = words.next().ok_or_else(|| refusal(word, "missing argument"))?;
                self.apply(row, Given { on, value, word: value })
            }
            (false, None) => self.apply(row, Given { on, value: b"", word }),
            (false, Some(_)) => Err(refusal(word, "option does not take an argument")),
        }
    }

    fn bundle(
        &mut self,
        word: &[u8],
        letters: &[u8],
        words: &mut std::slice::Iter<'_, Vec<u8>>,
    ) -> Result<(), Refusal> {
        for (at, &letter) in letters.iter().enumerate() {
            let rest = &letters[at + 1..];
            if letter == b'e' {
                // Between machines -e is no shell: its value is what the client can do.
                self.ask(Asked::Capabilities)?;
                self.capabilities = Some(Capabilities::parse(rest));
                return Ok(());
            }
            let row = rows().find(|row| row.short.is_some_and(|short| short as u32 == u32::from(letter)));
            let Some(row) = row else { return Err(refusal(word, "unknown option")) };
            self.ask(Asked::Option(row, None))?;
            if row.value.is_none() {
                self.apply(row, Given { on: true, value: b"", word })?;
                continue;
            }
            let attached = rest.strip_prefix(b"=").unwrap_or(rest);
            if !rest.is_empty() {
                return self.apply(row, Given { on: true, value: attached, word });
            }
            let value = words.next().ok_or_else(|| refusal(word, "missing argument"))?;
            return self.apply(row, Given { on: true, value, word: value });
        }
        Ok(())
    }

    fn ask(&self, asked: Asked<'_>) -> Result<(), Refusal> {
        self.check.map_or(Ok(()), |check| check(asked))
    }

    fn apply(&mut self, row: &Row, given: Given<'_>) -> Result<(), Refusal> {
        match row.support {
            Support::NotYet if given.on => {
                let text = format!("rsync: on remote machine: {}: not supported yet", row.name());
                return Err(Refusal::new(Code::Unsupported, text));
            }
            Support::Never(text) if given.on => {
                return Err(Refusal::usage(text.replace("This rsync does", "The server does")));
            }
            _ => {}
        }
        let word = [b"on remote machine: ", given.word].concat();
        (row.apply)(&mut self.typed, &Given { word: &word, ..given })
    }
}

fn named(name: &[u8]) -> Option<(&'static Row, bool)> {
    rows().find_map(|row| {
        let is = |known: &str| known.as_bytes() == name;
        if row.long_names().any(is) {
            Some((row, true))
        } else if row.off.iter().any(|known| is(known)) {
            Some((row, false))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::typed::{Append, During, Recursive};

    fn read_line(line: &str) -> Result<ServerWords, Refusal> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        read(&words, None)
    }

    #[test]
    fn a_bundle_ends_with_the_capabilities() {
        let words =
            read_line("--server --sender -vvnlogDtpre.iLsfxCIvu --append --append -@-1 . a -b").unwrap();
        assert!(words.typed.connect.sender && words.typed.change.dry_run && words.typed.preserve.specials);
        assert_eq!(words.typed.output.verbose, 2);
        assert_eq!(words.typed.select.recursive, Recursive::Explicit);
        assert_eq!(words.typed.change.append, Append::Verify);
        assert_eq!(words.typed.select.modify_window, Some(-1));
        assert_eq!(words.typed.operands, [b"a".to_vec(), b"-b".to_vec()]);
        assert!(words.capabilities.unwrap().offers_incremental_recursion());
    }

    #[test]
    fn words_of_old_clients_have_no_capabilities() {
        let words = read_line("--server -g -l -o -p -D -r -t --delete-delay . dst").unwrap();
        assert!(words.capabilities.is_none());
        assert_eq!(words.typed.change.delete_during, Some(During::Delay));
    }

    #[test]
    fn values_may_be_dots_and_words_of_their_own() {
        let words = read_line("--server -B700 --partial-dir . --suffix=.x . dst").unwrap();
        assert_eq!(words.typed.change.partial_dir.as_deref(), Some(b".".as_slice()));
        assert_eq!(words.typed.delta.block_size, 700);
        assert_eq!(words.typed.operands, [b"dst".to_vec()]);
    }

    #[test]
    fn secluded_words_follow() {
        let line: Vec<Vec<u8>> = [b"--server".to_vec(), b"-sre.LsfxCIvu".to_vec()].into();
        assert!(read(&line, None).unwrap().secluded);
        let more: Vec<Vec<u8>> = ["--delete", ".", "a b"].map(|word| word.as_bytes().to_vec()).into();
        let words = read(&line, Some(&more)).unwrap();
        assert!(words.typed.change.delete);
        assert_eq!(words.typed.operands, [b"a b".to_vec()]);
    }

    #[test]
    fn unknown_words_are_refused_before_any_protocol_byte() {
        let text = |line: &str| String::from_utf8(read_line(line).unwrap_err().text).unwrap();
        assert_eq!(text("--server --foo . a"), "rsync: on remote machine: --foo: unknown option");
        assert_eq!(text("--server -rQ . a"), "rsync: on remote machine: -rQ: unknown option");
        assert_eq!(
            text("--server --stop-at=x . a"),
            "rsync: on remote machine: --stop-at: not supported yet"
        );
    }
}
