//! What a module grants to the server that works for its client.
//!
//! Wire: protocol/doc/03-daemon.md#34-argument-block

use std::sync::Arc;
use std::time::Duration;

use suisei_engine::chmod::Chmod;
use suisei_engine::filter::Hidden;
use suisei_engine::TransferOptions;
use suisei_protocol::session::{Direction, Version};

use crate::exit::Refusal;
use crate::options::meaning::Wishes;
use crate::options::typed::Remove;
use crate::output::format::Format;
use crate::output::info::{DebugLevels, InfoLevels};
use crate::output::log::LogFile;

/// What a daemon's module makes of a server.
#[derive(Debug)]
pub struct Terms {
    /// What the greetings agreed on.
    pub version: Version,
    /// Nothing may be sent here.
    pub read_only: bool,
    /// Nothing may be fetched from here.
    pub write_only: bool,
    /// The longest silence.
    pub timeout: Option<Duration>,
    /// Most bytes per second.
    pub bytes_per_second: Option<u64>,
    /// The highest verbosity.
    pub verbosity: u32,
    /// Deletions go on after errors.
    pub ignore_errors: bool,
    /// Ids are never translated.
    pub numeric_ids: bool,
    /// Where everything is logged.
    pub log: Arc<LogFile>,
    /// How transfers stand there; nothing: not at all.
    pub log_format: Option<Format>,
    /// Names that do not exist for clients.
    pub hidden: Option<Arc<Hidden>>,
    /// What may not be read is left out.
    pub ignore_unreadable: bool,
    /// What becomes of modes; nothing: as the client wishes.
    pub chmod: Option<Chmod>,
    /// Whether reading leaves access times alone; nothing: as the client wishes.
    pub open_noatime: Option<bool>,
    /// What becomes of symlinks.
    pub links: Links,
    /// Why there will be no transfer, found before it began.
    pub refusal: Option<Refusal>,
}

/// What becomes of symlinks that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// They stay as they are.
    Kept,
    /// They get a prefix here that clients do not see.
    Munged,
    /// Those that come are kept from leaving the transfer.
    Confined,
}

impl Terms {
    /// Brings what a client wants within what is granted.
    pub fn limit(&self, wishes: &mut Wishes) {
        let (mut info, mut debug) = (InfoLevels::default(), DebugLevels::default());
        info.imply_verbosity(self.verbosity);
        debug.imply_verbosity(self.verbosity);
        wishes.info.limit(&info);
        wishes.debug.limit(&debug);
        wishes.typed.preserve.numeric_ids |= self.numeric_ids;
        wishes.typed.change.ignore_errors |= self.ignore_errors;
    }

    /// Lowers time and bandwidth.
    pub(crate) fn limit_options(&self, options: &mut TransferOptions) {
        let lower = |own: Option<u64>, most: Option<u64>| match (own, most) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        };
        if let Some(chmod) = &self.chmod {
            options.rewrite.chmod = chmod.clone();
        }
        if let Some(open_noatime) = self.open_noatime {
            options.preserve.open_noatime = open_noatime;
        }
        options.select.ignore_unreadable = self.ignore_unreadable;
        options.select.hidden.clone_from(&self.hidden);
        options.select.munge_links = self.links == Links::Munged;
        options.select.confined_links = self.links == Links::Confined;
        let limits = &mut options.limits;
        limits.bytes_per_second = lower(limits.bytes_per_second, self.bytes_per_second);
        limits.timeout = match (limits.timeout, self.timeout) {
            (Some(own), Some(most)) => Some(own.min(most)),
            (own, most) => own.or(most),
        };
    }

    /// Returns why a direction is closed.
    pub(crate) fn forbids(&self, wishes: &Wishes, direction: Direction) -> Option<&'static str> {
        let removes = wishes.typed.change.remove != Remove::Nothing;
        match direction {
            Direction::Sending if self.write_only => Some("ERROR: module is write only"),
            Direction::Sending if self.read_only && removes => {
                Some("ERROR: --remove-source-files cannot be used with a read-only module")
            }
            Direction::Receiving if self.read_only => Some("ERROR: module is read only"),
            _ => None,
        }
    }
}
