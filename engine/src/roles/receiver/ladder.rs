//! The ladder of `Done`s as the receiver sees it.
//!
//! ```text
//! one per list, the last of which ends phase 0 ─► redo over ─► delayed updates over (29)
//!     ─► late deletions over (31)
//! ```
//!
//! Wire: protocol/doc/02-session-start.md#261-phases-and-done-exchange

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::session::{Direction, Session};

use crate::Failure;

/// What a `Done` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The oldest list is done with.
    ListFinished,
    /// No file is asked for again: delayed updates may be put in place.
    RedoFinished,
    /// Anything else.
    Other,
}

/// How far the run is.
#[derive(Debug)]
pub(super) struct Ladder {
    lists: u32,
    is_list_complete: bool,
    dones: u32,
    /// Steps behind those of the lists.
    phases: u32,
    has_delay_phase: bool,
    awaits_stats: bool,
}

impl Ladder {
    pub(super) fn new(session: &Session) -> Self {
        let version = session.version;
        Ladder {
            lists: 0,
            is_list_complete: false,
            dones: 0,
            phases: 1 + u32::from(version.has_delay_phase()) + u32::from(version.has_delete_phase()),
            has_delay_phase: version.has_delay_phase(),
            awaits_stats: session.direction == Direction::Receiving && session.sender_reports_stats(),
        }
    }

    /// Counts a list.
    pub(super) fn add_list(&mut self) -> Result<(), Failure> {
        if self.is_list_complete {
            return Err(rule("a file list after the last one"));
        }
        self.lists += 1;
        Ok(())
    }

    /// No list follows.
    pub(super) fn end_lists(&mut self) {
        self.is_list_complete = true;
    }

    /// The statistics have arrived.
    pub(super) fn stats_seen(&mut self) {
        self.awaits_stats = false;
    }

    /// Counts a `Done`, from 1.
    pub(super) fn done(&mut self) -> Result<(u32, Step), Failure> {
        self.dones += 1;
        if self.dones >= self.lists && !self.is_list_complete {
            return Err(rule("the last file list ended before the lists did"));
        }
        if self.dones > self.lists + self.phases {
            return Err(rule("one phase too many"));
        }
        let step = if self.dones < self.lists {
            Step::ListFinished
        } else if self.dones == self.lists + 1 {
            Step::RedoFinished
        } else {
            Step::Other
        };
        Ok((self.dones, step))
    }

    /// Whether the last `Done` ended a list.
    pub(super) fn ended_list(&self) -> bool {
        self.dones <= self.lists
    }

    /// Whether it ended a phase in which files could still be asked for.
    pub(super) fn ended_phase(&self) -> bool {
        self.dones <= self.lists + 1 + u32::from(self.has_delay_phase)
    }

    /// Returns the phase that the last `Done` began, from 1, if files may still come in it.
    pub(super) fn phase(&self) -> Option<u8> {
        let phase = self.dones.checked_sub(self.lists).filter(|_| self.is_list_complete)? + 1;
        u8::try_from(phase).ok().filter(|&phase| phase <= 1 + u8::from(self.has_delay_phase))
    }

    /// Fails if no file data may come any more.
    pub(super) fn check_transfer(&self) -> Result<(), Failure> {
        if self.is_list_complete && self.dones > self.lists {
            return Err(Failure::Protocol(PeerMisbehaved::LatePhase(2).into()));
        }
        Ok(())
    }

    /// Whether the sender has nothing more to say.
    pub(super) fn is_over(&self) -> bool {
        self.is_list_complete && self.dones == self.lists + self.phases && !self.awaits_stats
    }
}

fn rule(text: &'static str) -> Failure {
    Failure::Protocol(PeerMisbehaved::Rule(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TransferOptions;
    use crate::run::{local_session, LocalChoice};
    use suisei_protocol::session::{Side, Version};

    fn ladder(version: u32, side: Side) -> Ladder {
        let choice = LocalChoice { version: Version::new(version).unwrap(), ..LocalChoice::default() };
        let mut session = local_session(&TransferOptions::default(), choice);
        session.side = side;
        session.direction = Direction::Receiving;
        Ladder::new(&session)
    }

    #[test]
    fn counts_follow_the_version() {
        for (version, dones) in [(27, 2), (28, 2), (29, 3), (30, 3), (31, 4), (32, 4)] {
            let mut ladder = ladder(version, Side::Server);
            ladder.add_list().unwrap();
            ladder.end_lists();
            for _ in 0..dones {
                assert!(!ladder.is_over());
                ladder.done().unwrap();
            }
            assert!(ladder.is_over(), "{version}");
            assert!(ladder.done().is_err());
        }
    }

    #[test]
    fn a_client_waits_for_the_statistics() {
        let mut ladder = ladder(27, Side::Client);
        ladder.add_list().unwrap();
        ladder.end_lists();
        ladder.done().unwrap();
        ladder.done().unwrap();
        assert!(!ladder.is_over());
        ladder.stats_seen();
        assert!(ladder.is_over());
    }

    #[test]
    fn the_last_list_may_not_end_before_the_lists_do() {
        let mut ladder = ladder(32, Side::Server);
        ladder.add_list().unwrap();
        ladder.add_list().unwrap();
        assert_eq!(ladder.done().unwrap(), (1, Step::ListFinished));
        assert!(ladder.done().is_err());
    }

    #[test]
    fn no_data_after_the_redo_phase() {
        let mut ladder = ladder(32, Side::Server);
        ladder.add_list().unwrap();
        ladder.end_lists();
        ladder.done().unwrap();
        assert!(ladder.check_transfer().is_ok());
        assert_eq!(ladder.done().unwrap(), (2, Step::RedoFinished));
        assert!(ladder.check_transfer().is_err());
    }
}
