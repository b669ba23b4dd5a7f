//! Links between roles: typed messages over channels, or the same messages as bytes.
//!
//! [`Inbox`] and [`Outbox`] are all that a role knows of its peer.

mod handshake;
mod limit;
mod local;
mod ports;
mod remote;
mod replay;
mod stream;
mod tee;

pub use handshake::handshake;
pub use local::{local, LocalInbox, LocalOutbox};
pub use ports::{Handover, Inbox, LocalSource, Outbox};
pub use remote::{Connection, NoticePort};
pub use replay::BatchInput;
pub use stream::Stream;
pub use tee::Record;

pub(crate) use local::TICK;
pub(crate) use remote::Opening;
pub(crate) use replay::replay;
pub(crate) use tee::Recorder;
