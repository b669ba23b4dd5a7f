//! What ends a run early, each with rsync's exit code.

use std::io;
use std::time::Duration;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::Error as WireError;

use crate::observe::Who;

/// The end of a run, before its time.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The peer's bytes, or ours, break the protocol.
    #[error("{0}")]
    Protocol(#[from] WireError),
    /// The connection ended where it must not.
    #[error("connection unexpectedly closed ({received} bytes received so far) [{who:?}]")]
    PeerClosed {
        /// Bytes read from it.
        received: u64,
        /// Who was reading.
        who: Who,
    },
    /// Reading from or writing to the connection failed.
    #[error("{call} error: {error}")]
    Connection {
        /// `read` or `write`.
        call: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The batch file cannot be written.
    #[error("safe_write failed to write {bytes} bytes to batch file: {error}")]
    Record {
        /// Bytes that were to be written.
        bytes: usize,
        /// The reason.
        error: io::Error,
    },
    /// Neither direction moved for the whole timeout.
    #[error("io timeout after {} seconds -- exiting", .0.as_secs())]
    Timeout(Duration),
    /// The peer ends with this code and has already said why.
    #[error("the peer ended with code {0}")]
    PeerExit(u8),
    /// Source or destination cannot be used (exit 3): CALL, NAME, reason.
    #[error("{text}")]
    Selection {
        /// The whole sentence, as stock words it.
        text: String,
    },
    /// A file operation that the run cannot do without (exit 11).
    #[error("{text}")]
    FileIo {
        /// The whole sentence, as stock words it; empty if it was told already.
        text: String,
    },
    /// What was asked for cannot be done together (exit 1).
    #[error("{text}")]
    Usage {
        /// The whole sentence.
        text: String,
    },
    /// What was asked for is not done here (exit 4).
    #[error("{text}")]
    Refused {
        /// The whole sentence.
        text: String,
    },
    /// SIGINT, SIGTERM or SIGHUP.
    #[error("received SIGINT, SIGTERM, or SIGHUP")]
    Interrupted,
    /// Another role of this end failed first and reports it.
    #[error("another role ended first")]
    Sibling,
}

impl From<PeerMisbehaved> for Failure {
    fn from(error: PeerMisbehaved) -> Self {
        Failure::Protocol(error.into())
    }
}

impl Failure {
    /// Returns rsync's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Protocol(error) => error.exit_code(),
            Failure::PeerClosed { .. } | Failure::Record { .. } => 12,
            Failure::Connection { .. } => 10,
            Failure::Timeout(_) => 30,
            Failure::PeerExit(code) => *code,
            Failure::Selection { .. } => 3,
            Failure::FileIo { .. } => 11,
            Failure::Usage { .. } => 1,
            Failure::Refused { .. } => 4,
            Failure::Interrupted => 20,
            Failure::Sibling => 12,
        }
    }
}

/// Returns the reason of a failed call as stock words it: `No such file or directory (2)`.
pub(crate) fn reason(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    let text = error.to_string();
    let tail = format!(" (os error {number})");
    format!("{} ({number})", text.strip_suffix(&tail).unwrap_or(&text))
}
