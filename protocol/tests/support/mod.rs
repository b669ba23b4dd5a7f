//! Recorded sessions, the shipped decoders run over them, and random trees.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod copy;
pub mod events;
pub mod recorded;
pub mod replay;
pub mod rewrite;
pub mod trees;

pub use recorded::Recorded;
