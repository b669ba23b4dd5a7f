//! From source arguments to file lists.
//!
//! Wire: protocol/doc/10-file-list.md#10-from-arguments-to-entries-sender

use std::fmt;
use std::io::BufRead;

use crate::Failure;

/// How the names of a local `--files-from` list are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// By LF or CR.
    Line,
    /// By NUL (`--from0`).
    Nul,
}

/// Where the names of `--files-from` come from.
///
/// Wire: protocol/doc/02-session-start.md#25---files-from
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

/// The source arguments, and the walk over what they name.
#[derive(Debug)]
pub struct Source {
    arguments: Vec<Vec<u8>>,
    names: Option<Names>,
}

impl Source {
    /// Takes the arguments as the user gave them (a server: those behind the `.`), relative to the
    /// working directory.
    pub fn new(arguments: Vec<Vec<u8>>) -> Self {
        Source { arguments, names: None }
    }

    /// Takes one directory, and the names below it that restrict the transfer (`--files-from`).
    pub fn with_names(directory: Vec<u8>, names: Names) -> Self {
        Source { arguments: vec![directory], names: Some(names) }
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
