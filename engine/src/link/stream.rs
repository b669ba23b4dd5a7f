//! Raw bytes to and from a peer.

use std::os::fd::OwnedFd;

/// Raw bytes to and from a peer.
#[derive(Debug)]
pub struct Stream {
    /// Where the peer's bytes come from.
    pub input: OwnedFd,
    /// Where ours go.
    pub output: OwnedFd,
    /// Bytes that were read but belong to the next stage.
    pub early: Vec<u8>,
}
