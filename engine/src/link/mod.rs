//! Links between roles: typed messages over channels, or the same messages as bytes.
//!
//! [`Inbox`] and [`Outbox`] are all that a role knows of its peer.

mod handshake;
mod limit;
mod local;
mod ports;
mod remote;
mod stream;

pub use handshake::handshake;
pub use local::{local, LocalInbox, LocalOutbox};
pub use ports::{Handover, Inbox, LocalSource, Outbox};
pub use remote::{Connection, NoticePort};
pub use stream::Stream;

pub(crate) use local::TICK;
pub(crate) use remote::Opening;
