//! `max connections`: one record lock for each connection of a module, as in stock, so that both
//! may share a lock file.
//!
//! Wire: protocol/doc/03-daemon.md#39-parameters

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{fcntl, FcntlArg};
use nix::libc;
use suisei_engine::sys::operator;

/// Bytes of one record.
const RECORD: i64 = 4;

/// A place among the connections, held while this lives.
#[derive(Debug)]
pub struct Slot {
    _file: Option<File>,
}

/// Why there is no place.
#[derive(Debug)]
pub enum NoSlot {
    /// All are taken.
    Full,
    /// The lock file cannot be opened.
    LockFile(io::Error),
}

/// Takes one of `most` places; 0 is no limit, a negative number no place at all.
pub fn take(lock_file: &[u8], most: i64) -> Result<Slot, NoSlot> {
    match most {
        0 => return Ok(Slot { _file: None }),
        ..0 => return Err(NoSlot::Full),
        _ => {}
    }
    let file = operator::open_private(lock_file).map_err(NoSlot::LockFile)?;
    for number in 0..most {
        let record = libc::flock {
            l_type: libc::F_WRLCK as _,
            l_whence: libc::SEEK_SET as _,
            l_start: number * RECORD,
            l_len: RECORD,
            l_pid: 0,
        };
        if fcntl(file.as_fd(), FcntlArg::F_SETLK(&record)).is_ok() {
            return Ok(Slot { _file: Some(file) });
        }
    }
    Err(NoSlot::Full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_needs_no_file_and_a_negative_one_closes() {
        assert!(take(b"/nonexistent/lock", 0).is_ok());
        assert!(matches!(take(b"/nonexistent/lock", -1), Err(NoSlot::Full)));
        assert!(matches!(take(b"/nonexistent/lock", 1), Err(NoSlot::LockFile(_))));
    }
}
