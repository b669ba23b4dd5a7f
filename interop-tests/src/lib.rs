//! What the interop tests share: trees, snapshots of them, peers, and the table of scenarios.
//!
//! Stock rsync is the oracle: what stock/stock leaves on disk, prints and returns is expected of
//! ours/stock, stock/ours and ours/ours.

pub mod daemon;
pub mod lines;
pub mod peers;
pub mod scenarios;
pub mod site;
pub mod snapshot;
pub mod sshd;
pub mod trees;
