//! Pipes to a remote shell.

use std::os::fd::AsFd;

/// Enlarges the buffer of a pipe to about `bytes` where the platform can; other descriptors are
/// left alone. Never fails: a small pipe works too.
pub fn enlarge(_pipe: impl AsFd, _bytes: usize) {
    todo!()
}
