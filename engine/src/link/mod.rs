//! Links between roles: typed messages over channels, or the same messages as bytes.
//!
//! [`Inbox`] and [`Outbox`] are all that a role knows of its peer.

mod ports;

pub use ports::{Handover, Inbox, LocalSource, Outbox};
