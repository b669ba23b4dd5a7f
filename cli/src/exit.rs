//! Exit codes, and the refusals that lead to them before a run has begun.
//!
//! The words of a code are [`crate::output`]'s.
//!
//! Wire: protocol/doc/22-output.md#14-exit-codes

use suisei_engine::sys::identity::{Identity, Refused};
use suisei_engine::Failure;

/// rsync's exit codes that are made here; others come from the engine or from a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// Syntax or usage error.
    Syntax = 1,
    /// Protocol incompatibility.
    Protocol = 2,
    /// Errors selecting input or output files.
    Select = 3,
    /// Requested action not supported.
    Unsupported = 4,
    /// Error starting the client-server protocol.
    Start = 5,
    /// Error in socket I/O.
    Socket = 10,
    /// Error in file I/O.
    File = 11,
    /// Error in the protocol data stream.
    Stream = 12,
    /// Errors with program diagnostics.
    Messages = 13,
    /// Error in IPC code.
    Ipc = 14,
    /// Received SIGINT, SIGTERM, or SIGHUP.
    Signal = 20,
    /// Timeout waiting for a daemon connection.
    ConnectTimeout = 35,
}

/// The end of a run that never began: what was typed, or where it leads, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The exit code.
    pub code: u8,
    /// Lines for standard error, without the final newline; hostile until escaped.
    pub text: Vec<u8>,
    /// Which role the final line names, if the route told already.
    pub who: Option<&'static str>,
}

impl Refusal {
    /// Refuses with a code and a sentence.
    pub fn new(code: Code, text: impl Into<Vec<u8>>) -> Refusal {
        Refusal { code: code as u8, text: text.into(), who: None }
    }

    /// Refuses with code 1.
    pub fn usage(text: impl Into<Vec<u8>>) -> Refusal {
        Refusal::new(Code::Syntax, text)
    }

    /// Refuses with the final line only: the reasons were said.
    pub fn silent(code: Code) -> Refusal {
        Refusal::new(code, "")
    }

    /// Refuses with a code that something else chose.
    pub fn with_code(code: u8, text: impl Into<Vec<u8>>) -> Refusal {
        Refusal { code, text: text.into(), who: None }
    }

    /// Names the role that the final line is to name.
    pub fn said_by(mut self, who: &'static str) -> Refusal {
        self.who = Some(who);
        self
    }
}

/// Becomes the user of `--copy-as`, if there is one. `who` is the role of this end.
pub fn copy_as(named: Option<&[u8]>, who: &str) -> Result<(), Refusal> {
    let Some(named) = named else { return Ok(()) };
    Identity::find(named).and_then(|identity| identity.take_on()).map_err(|refused| match refused {
        Refused::Call { call, error } => {
            Refusal::usage(format!("rsync: [{who}] {call} failed: {}", crate::output::reason(&error)))
        }
        unknown => Refusal::usage(unknown.to_string()),
    })
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::with_code(failure.exit_code(), failure.to_string())
    }
}
