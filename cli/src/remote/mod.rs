//! Ways to the other machine: what an operand names, and the transports that lead there.

pub mod daemon;
pub mod link;
pub mod password;
pub mod proxy;
pub mod rsh;
pub mod socket;
pub mod spec;
#[cfg(feature = "ssh2")]
pub mod ssh;
pub mod terminal;
pub mod wait;
