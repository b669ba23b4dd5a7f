//! Links between roles: typed messages over channels, or the same messages as bytes.
//!
//! [`Inbox`] and [`Outbox`] are all that a role knows of its peer.

mod ports;
mod remote;
mod stream;

pub use ports::{Handover, Inbox, LocalSource, Outbox};
pub use remote::{Connection, NoticePort};
pub use stream::Stream;
