//! Roles and links put together: a local run, and either end of a remote one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::source::Source;
use crate::{Context, Failure};

/// Raw bytes to and from a peer, just after the handshake.
#[derive(Debug)]
pub struct Stream {
    /// Where the peer's bytes come from.
    pub input: OwnedFd,
    /// Where ours go.
    pub output: OwnedFd,
    /// Bytes that the handshake read beyond its end.
    pub early: Vec<u8>,
}

/// Copies on one machine: three roles, typed links.
pub fn local(_ctx: Arc<Context>, _source: Source, _destination: &[u8]) -> Result<(), Failure> {
    todo!()
}

/// Sends to a peer: the client of a push, or the server of a pull.
pub fn sending(_ctx: Arc<Context>, _source: Source, _stream: Stream) -> Result<(), Failure> {
    todo!()
}

/// Receives from a peer: the client of a pull, or the server of a push.
pub fn receiving(_ctx: Arc<Context>, _destination: &[u8], _stream: Stream) -> Result<(), Failure> {
    todo!()
}
