//! Recorded sessions, and the shipped decoders run over them.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod events;
pub mod recorded;
pub mod replay;

pub use recorded::Recorded;
