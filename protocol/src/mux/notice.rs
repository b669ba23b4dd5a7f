//! Out-of-band messages, typed.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#172-codes

use bytes::Bytes;

use crate::flist::{IoErrors, Ndx};

/// What a text message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// An error that makes the final exit code 23.
    ErrorXfer,
    /// Ordinary output.
    Info,
    /// An error that does not by itself change the exit code.
    Error,
    /// A warning.
    Warning,
}

/// A message beside the data stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Text for the user, its final newline included. Hostile until escaped.
    Text(TextKind, Bytes),
    /// The sender's error bits changed.
    IoErrors(IoErrors),
    /// A daemon's timeout in seconds.
    IoTimeout(i32),
    /// A keep-alive of old peers.
    Noop,
    /// The peer ends with this exit code; without one it acknowledges ours.
    ErrorExit(Option<i32>),
    /// The receiving side has this file in place (`--remove-source-files`).
    Success(Ndx),
    /// The receiving side deleted this.
    Deleted {
        /// Path below the destination.
        path: Bytes,
        /// Whether it was a directory.
        is_dir: bool,
    },
    /// The sender will not send this file.
    NoSend(Ndx),
}
