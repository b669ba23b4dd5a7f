//! Multiplexing: frames, and typed out-of-band messages.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#17-the-multiplexed-stream

mod notice;

pub use notice::{Notice, TextKind};
