//! The words between two machines: `rsync --server ... . PATHS`.
//!
//! Wire: protocol/doc/02-session-start.md#211-the-option-words-in-exact-order

pub mod escape;
mod info;
mod read;
mod write;

pub use read::{read, read_checked, Asked, ServerWords};
pub use write::{write, Far, RemoteWords};
