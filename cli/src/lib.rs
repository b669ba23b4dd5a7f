//! The command: words, printing, transports, exit codes.
//!
//! [`options`] reads the command line, [`client`] and [`server`] run one end of a transfer with
//! the engine, [`remote`] leads to the other machine, [`output`] words and prints.

pub mod exit;
pub mod options;
pub mod output;
pub mod plan;
pub mod remote;
pub mod signals;

/// Runs the program; `words` is the whole argument vector.
pub fn main(_words: Vec<std::ffi::OsString>) -> std::process::ExitCode {
    todo!()
}
