//! The names of `--files-from`, one by one.
//!
//! Wire: protocol/doc/02-session-start.md#25---files-from

use std::fmt;
use std::io::{self, BufRead};

use suisei_protocol::limits::PATH_MAX;

use crate::Failure;

/// How the names of a local list are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// By LF or CR.
    Line,
    /// By NUL (`--from0`).
    Nul,
}

/// Where the names of `--files-from` come from.
pub enum Names {
    /// A list on this machine, already open: empty lines and comments are dropped.
    Local {
        /// The content of the list.
        content: Box<dyn BufRead + Send>,
        /// What ends a name.
        separator: Separator,
    },
    /// Names that the peer forwards: one per call, nothing at the end. No comments.
    Forwarded(Box<dyn FnMut() -> Result<Option<Vec<u8>>, Failure> + Send>),
}

impl Names {
    /// Returns the next name that counts; nothing at the end of the list.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Names::Forwarded(next) => next(),
            Names::Local { content, separator } => loop {
                let line = read_name(content.as_mut(), *separator).map_err(|error| Failure::FileIo {
                    text: format!("cannot read the files-from list: {error}"),
                })?;
                match line {
                    None => return Ok(None),
                    Some(name) if matches!(name.first(), None | Some(b'#' | b';')) => {}
                    name => return Ok(name),
                }
            },
        }
    }
}

/// Reads up to a separator or the end; what is longer than a path may be is cut.
fn read_name(content: &mut dyn BufRead, separator: Separator) -> io::Result<Option<Vec<u8>>> {
    let ends = |byte: &u8| match separator {
        Separator::Line => matches!(byte, b'\n' | b'\r'),
        Separator::Nul => *byte == 0,
    };
    let mut name = Vec::new();
    let mut started = false;
    loop {
        let buffer = match content.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok(started.then_some(name));
        }
        started = true;
        let end = buffer.iter().position(ends);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        name.extend_from_slice(&piece[..piece.len().min(PATH_MAX - 1 - name.len())]);
        let used = end.map_or(buffer.len(), |at| at + 1);
        content.consume(used);
        if end.is_some() {
            return Ok(Some(name));
        }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Names::Local { .. } => "Names::Local",
            Names::Forwarded(_) => "Names::Forwarded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut names: Names) -> Vec<String> {
        let mut list = Vec::new();
        while let Some(name) = names.next().unwrap() {
            list.push(String::from_utf8(name).unwrap());
        }
        list
    }

    #[test]
    fn local_lists_drop_comments_and_empty_lines() {
        let local =
            |text: &'static str, separator| Names::Local { content: Box::new(text.as_bytes()), separator };
        assert_eq!(all(local("a\n#c\r\n\n;d\rb c\n last", Separator::Line)), ["a", "b c", " last"]);
        assert_eq!(all(local("a\nb\0#c\0\0d\0", Separator::Nul)), ["a\nb", "d"]);
        assert!(all(local("", Separator::Line)).is_empty());
    }

    #[test]
    fn forwarded_names_may_begin_like_comments() {
        let mut left = vec![b"b".to_vec(), b"#a".to_vec()];
        assert_eq!(all(Names::Forwarded(Box::new(move || Ok(left.pop())))), ["#a", "b"]);
    }

    #[test]
    fn an_endless_name_is_cut() {
        let long = "x".repeat(10_000);
        let names = Names::Local { content: Box::new(io::Cursor::new(long)), separator: Separator::Nul };
        assert_eq!(all(names)[0].len(), PATH_MAX - 1);
    }
}
