//! The remote link: the messages of the roles as bytes over two file descriptors.

use suisei_protocol::mux::Notice;

/// The link to a peer: its threads run until it is dropped or ended.
#[derive(Debug)]
pub struct Connection {}

/// Sends notices to the peer, between frames and ahead of queued data. Cheap to clone; notices
/// sent before the connection starts wait for it.
#[derive(Debug, Clone, Default)]
pub struct NoticePort {}

impl NoticePort {
    /// Makes a port that is not connected yet.
    pub fn new() -> Self {
        NoticePort::default()
    }

    /// Queues a notice; blocks while a megabyte of them waits.
    pub fn send(&self, _notice: Notice) {
        todo!()
    }
}
