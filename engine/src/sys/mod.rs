//! What this platform can do. All `unsafe` and all platform differences are here.
//!
//! Functions act on descriptors and on single names below a descriptor; only [`open`] resolves
//! longer paths, and says how. Nothing here knows of transfers.
#![allow(unsafe_code)]

pub mod acl;
pub mod confine;
pub mod copy;
pub mod hosts;
pub mod identity;
pub mod meta;
pub mod nodes;
pub mod open;
pub mod operator;
pub mod pipes;
pub mod process;
pub mod random;
pub mod stream;
pub mod users;
pub mod xattr;

/// Whether a call failed with this error number.
pub(crate) fn is(error: &std::io::Error, errno: rustix::io::Errno) -> bool {
    let untrusted = errno == rustix::io::Errno::LOOP && operator::is_untrusted(error);
    untrusted || error.raw_os_error() == Some(errno.raw_os_error())
}
