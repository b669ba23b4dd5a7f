//! How a session starts: versions, capabilities, algorithm names, the daemon's text phase.
//!
//! Wire: protocol/doc/02-session-start.md, protocol/doc/03-daemon.md

mod compat;
mod session;
mod version;

pub use compat::Compat;
pub use session::{Direction, Layout, Recursion, Session, Side};
pub use version::Version;
