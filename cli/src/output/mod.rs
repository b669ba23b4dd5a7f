//! Everything a user sees of a run: events become lines, and lines become bytes by one rule.
//!
//! [`Printer`] is the client's observer, [`Forwarder`] the server's. Both word events through
//! [`words`]; only here is anything escaped and written.
//! Wire: protocol/doc/22-output.md#1-where-text-goes

pub mod escape;
pub mod format;
pub mod human;
pub mod info;
pub mod itemize;
pub mod listing;
pub mod log;
mod printer;
pub mod progress;
mod screen;
mod server;
pub mod summary;
pub mod time;
pub mod trace;
mod words;

pub use printer::{Printer, Settings};
pub use screen::{Buffering, Channel, Screen};
pub use server::{Forwarder, ServerSettings};
pub use words::Itemizes;
pub use words::{cause, failure, final_line, is_explained, logged_totals, reason, role};
