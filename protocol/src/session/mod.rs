//! How a session starts: versions, capabilities, algorithm names, the daemon's text phase.
//!
//! Wire: protocol/doc/02-session-start.md, protocol/doc/03-daemon.md

mod arguments;
mod auth;
mod compat;
mod daemon;
mod greeting;
mod handshake;
mod names;
#[expect(clippy::module_inception, reason = "the result of the handshake has the folder's name")]
mod session;
mod version;

pub use arguments::{put_arguments, ArgumentBlock};
pub use auth::AuthDigest;
pub use compat::{Capabilities, Compat, IncrementalRecursion};
pub use daemon::{early_input_length, DaemonClient, DaemonEvent, ModuleRequest};
pub use greeting::{take_line, Greeting, Missing};
pub use handshake::{Handshake, Offer, Progress};
pub(crate) use names::sum_kinds;
pub use names::{local_sums, CompressWish, SumChoice, SumName};
pub use session::{Direction, Layout, Recursion, Session, Side};
pub use version::Version;
