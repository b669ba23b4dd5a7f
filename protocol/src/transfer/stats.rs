//! Statistics that cross the wire at the end of a run.
//!
//! Wire: protocol/doc/02-session-start.md#262-statistics

/// What a server's sender reports after its last phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferStats {
    /// Bytes that the server read.
    pub read: u64,
    /// Bytes that the server wrote, up to just before these fields.
    pub written: u64,
    /// Total size of all files in the list.
    pub total_size: u64,
    /// Milliseconds to build the list; absent below 29.
    pub list_build_ms: u64,
    /// Milliseconds to transfer the list; absent below 29.
    pub list_transfer_ms: u64,
}

/// How many items of each kind were deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeleteCounts {
    /// Regular files.
    pub files: u32,
    /// Directories.
    pub dirs: u32,
    /// Symlinks.
    pub symlinks: u32,
    /// Devices.
    pub devices: u32,
    /// Pipes and sockets.
    pub specials: u32,
}

impl DeleteCounts {
    /// Returns the sum of all kinds.
    pub fn total(&self) -> u64 {
        [self.files, self.dirs, self.symlinks, self.devices, self.specials].iter().map(|&n| u64::from(n)).sum()
    }
}
