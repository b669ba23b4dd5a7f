//! Statistics that cross the wire at the end of a run.
//!
//! Wire: protocol/doc/02-session-start.md#262-statistics

use crate::error::{Decode, PeerMisbehaved};
use crate::limits::DELETED_MAX;
use crate::session::Version;
use crate::wire::{put_varint, put_varlong30, Reader};

/// Fewest bytes of a statistics number from version 30 on.
const NUMBER_MIN: usize = 3;

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

impl TransferStats {
    /// Takes a statistics block. The numbers are for display only: negative ones count as 0.
    pub fn decode(input: &mut Reader<'_>, version: Version) -> Decode<TransferStats> {
        let mut number = || input.varlong30(NUMBER_MIN, version).map(|n| u64::try_from(n).unwrap_or(0));
        let mut stats = TransferStats {
            read: number()?,
            written: number()?,
            total_size: number()?,
            ..Default::default()
        };
        if version.has_list_times() {
            stats.list_build_ms = number()?;
            stats.list_transfer_ms = number()?;
        }
        Ok(stats)
    }

    /// Appends the statistics block.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let times: &[u64] = match version.has_list_times() {
            true => &[self.list_build_ms, self.list_transfer_ms],
            false => &[],
        };
        for &number in [self.read, self.written, self.total_size].iter().chain(times) {
            put_varlong30(i64::try_from(number).unwrap_or(i64::MAX), NUMBER_MIN, version, out);
        }
    }
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
        [self.files, self.dirs, self.symlinks, self.devices, self.specials]
            .iter()
            .map(|&n| u64::from(n))
            .sum()
    }

    /// Takes the counts that follow `NDX_DEL_STATS`.
    ///
    /// Wire: protocol/doc/20-transfer.md#6-phases-end-of-run
    pub fn decode(input: &mut Reader<'_>) -> Decode<DeleteCounts> {
        let mut count = || -> Decode<u32> {
            let value = input.varint()?;
            match u32::try_from(value) {
                Ok(count) if value <= DELETED_MAX => Ok(count),
                _ => {
                    Err(PeerMisbehaved::OutOfRange { field: "delete count", value: i64::from(value) }.into())
                }
            }
        };
        Ok(DeleteCounts {
            files: count()?,
            dirs: count()?,
            symlinks: count()?,
            devices: count()?,
            specials: count()?,
        })
    }

    /// Appends the counts, each cut to what a peer accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for count in [self.files, self.dirs, self.symlinks, self.devices, self.specials] {
            put_varint(count.min(DELETED_MAX as u32) as i32, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn stats(bytes: &[u8], number: u32) -> TransferStats {
        let version = Version::new(number).unwrap();
        let mut input = Reader::new(bytes);
        let stats = TransferStats::decode(&mut input, version).unwrap();
        assert!(input.rest().is_empty());
        let mut again = Vec::new();
        stats.encode(version, &mut again);
        assert_eq!(again, bytes);
        stats
    }

    #[test]
    fn captured_statistics_of_each_form() {
        let new = stats(&[0, 0x49, 0, 0, 0xD3, 0, 0, 0x0D, 0, 0, 1, 0, 0, 0, 0], 32);
        let expected =
            TransferStats { read: 73, written: 211, total_size: 13, list_build_ms: 1, list_transfer_ms: 0 };
        assert_eq!(new, expected);
        let old = [0x48, 0, 0, 0, 0xDC, 0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(stats(&old, 29).written, 220);
        let oldest = stats(&[0x34, 0, 0, 0, 0xC8, 0, 0, 0, 13, 0, 0, 0], 27);
        assert_eq!((oldest.read, oldest.list_build_ms), (52, 0));
    }

    #[test]
    fn captured_delete_counts() {
        let bytes = [2, 1, 0, 0, 0];
        let counts = DeleteCounts::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(counts, DeleteCounts { files: 2, dirs: 1, ..Default::default() });
        assert_eq!(counts.total(), 3);
        let mut again = Vec::new();
        counts.encode(&mut again);
        assert_eq!(again, bytes);
        assert_eq!(DeleteCounts::decode(&mut Reader::new(&bytes[..4])), Err(Stop::Short));
    }

    #[test]
    fn negative_and_huge_delete_counts_are_refused() {
        for lie in [-1, DELETED_MAX + 1] {
            let mut bytes = Vec::new();
            put_varint(lie, &mut bytes);
            bytes.extend([0; 4]);
            assert!(matches!(DeleteCounts::decode(&mut Reader::new(&bytes)), Err(Stop::Bad(_))), "{lie}");
        }
    }
}
