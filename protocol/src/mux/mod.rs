//! Multiplexing: frames, and typed out-of-band messages.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#17-the-multiplexed-stream

mod demux;
mod frame;
#[expect(clippy::module_inception, reason = "the counterpart of demux")]
mod mux;
mod notice;
#[cfg(test)]
mod tests_support;

pub use demux::{Demux, Frame};
pub use mux::{Carried, Mux, Piece};
pub use notice::{Notice, TextKind};
