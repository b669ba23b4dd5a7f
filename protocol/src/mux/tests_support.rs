//! Sessions for tests of the stream.

use crate::session::{Compat, Direction, Layout, Recursion, Session, Side, Version};
use crate::sum::SumKind;
use crate::transfer::Compressor;

/// Returns a plain session.
pub(crate) fn session(side: Side, direction: Direction, version: u32) -> Session {
    Session {
        side,
        direction,
        version: Version::new(version).unwrap(),
        compat: Compat::empty(),
        seed: 1,
        transfer_sum: SumKind::Md4,
        list_sum: SumKind::Md4,
        compressor: Compressor::None,
        compress_level: 0,
        layout: Layout::default(),
        recursion: Recursion::Whole,
        charset: None,
    }
}
