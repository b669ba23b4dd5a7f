//! Counters of a run, shared by all roles.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use suisei_protocol::flist::FileKind;

/// A counter that any thread may add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Replaces the value.
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// Returns the value.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counts by kind, as the statistics block splits them.
#[derive(Debug, Default)]
pub struct KindCounts {
    /// Regular files.
    pub regular: Counter,
    /// Directories.
    pub dirs: Counter,
    /// Symlinks.
    pub links: Counter,
    /// Devices.
    pub devices: Counter,
    /// Pipes and sockets.
    pub specials: Counter,
}

impl KindCounts {
    /// Counts one of a kind.
    pub fn count(&self, kind: FileKind) {
        match kind {
            FileKind::Regular | FileKind::Missing => &self.regular,
            FileKind::Directory => &self.dirs,
            FileKind::Symlink => &self.links,
            FileKind::CharDevice | FileKind::BlockDevice => &self.devices,
            FileKind::Fifo | FileKind::Socket => &self.specials,
        }
        .add(1);
    }

    /// Returns the sum.
    pub fn total(&self) -> u64 {
        [&self.regular, &self.dirs, &self.links, &self.devices, &self.specials]
            .iter()
            .map(|c| c.value())
            .sum()
    }
}

/// Counters of a run.
#[derive(Debug, Default)]
pub struct Stats {
    /// Entries of the list, by kind.
    pub listed: KindCounts,
    /// Items that did not exist before, by kind.
    pub created: KindCounts,
    /// Items deleted, by kind.
    pub deleted: KindCounts,
    /// Files whose data moved.
    pub transferred: Counter,
    /// Sum of the sizes of all files and symlinks in the list.
    pub total_size: Counter,
    /// Sum of the sizes of the files whose data moved.
    pub transferred_size: Counter,
    /// Literal bytes.
    pub literal: Counter,
    /// Bytes taken from basis files.
    pub matched: Counter,
    /// Bytes of the list on the wire.
    pub list_bytes: Counter,
    /// Milliseconds to build the list.
    pub list_build_ms: Counter,
    /// Milliseconds to transfer the list.
    pub list_transfer_ms: Counter,
    /// Error texts of the peer that make the exit code 23.
    pub peer_errors: Counter,
    /// Raw bytes read from the peer; in a local run about what they would have been.
    pub bytes_read: Counter,
    /// Raw bytes written to the peer; in a local run about what they would have been.
    pub bytes_written: Counter,
}
