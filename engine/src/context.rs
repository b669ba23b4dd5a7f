//! What all roles of one end share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use suisei_protocol::flist::{IoErrors, Ndx};
use suisei_protocol::session::{Direction, Session};

use crate::ids::IdMap;
use crate::link::Record;
use crate::observe::{Class, Event, Moment, Observer, Problem, What, Who};
use crate::options::TransferOptions;
use crate::stats::Stats;
use crate::tree::{is_untrusted, spare_atime, Privileges};
use crate::xattrs::{self, XattrFilters};
use crate::Failure;

/// Which role reports items and progress to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporter {
    /// The sender: a client that pushes.
    Sender,
    /// The receiver: a client that pulls, and every local run.
    Receiver,
    /// Nobody at this end: a server.
    Nobody,
}

/// The sentence for a path that was refused because of the owner of a symlink on its way.
pub const UNTRUSTED: &str = "refusing to follow a symlink owned by an untrusted user; \
    use --insecure-links locally or \"insecure links = yes\" in a daemon module \
    ONLY if every path component is trusted";

/// Whether the run has to do with a batch file.
#[derive(Debug, Clone, Default)]
pub enum Batch {
    /// It has not.
    #[default]
    None,
    /// It is recorded in one.
    Written(Record),
    /// Its sender is one.
    Read,
}

impl Batch {
    /// Returns the record.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Batch::Written(record) => Some(record),
            Batch::None | Batch::Read => None,
        }
    }
}

/// What all roles of one end share.
pub struct Context {
    /// What both ends agreed on.
    pub session: Session,
    /// What the user wants.
    pub options: TransferOptions,
    /// Where events go.
    pub observer: Arc<dyn Observer>,
    /// Which role reports items.
    pub reporter: Reporter,
    /// Counters, shared with the link's threads.
    pub stats: Arc<Stats>,
    /// The sender's ids in ours (used by the receiving side).
    pub ids: IdMap,
    /// Rules for names of extended attributes.
    pub xattr_filters: XattrFilters,
    /// Long values of extended attributes (used by the receiving side).
    pub xattr_store: xattrs::Store,
    /// Set by a signal handler: end soon, leave nothing behind.
    pub interrupted: Arc<AtomicBool>,
    /// The batch file.
    pub batch: Batch,
    io_errors: AtomicU8,
    transfer_error: AtomicBool,
    /// Names with their source prefix of what a local sender passes on; nothing if none is wanted.
    long_names: Option<Mutex<HashMap<Ndx, Vec<u8>>>>,
}

impl Context {
    /// Puts the parts together.
    pub fn new(
        session: Session,
        options: TransferOptions,
        observer: Arc<dyn Observer>,
        reporter: Reporter,
        ids: IdMap,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let is_local = reporter == Reporter::Receiver && session.direction == Direction::Sending;
        let xattr_filters = XattrFilters::new(&options.select, options.delete.excluded);
        Context {
            long_names: (is_local && options.report.long_names).then(Mutex::default),
            session,
            options,
            observer,
            reporter,
            stats: Arc::default(),
            ids,
            xattr_filters,
            xattr_store: xattrs::Store::default(),
            interrupted,
            batch: Batch::None,
            io_errors: AtomicU8::new(0),
            transfer_error: AtomicBool::new(false),
        }
    }

    /// Returns where metadata is kept that only root may set.
    pub fn privileges(&self) -> Privileges {
        match self.options.preserve.fake_super {
            true => Privileges::Stored,
            false => Privileges::Real,
        }
    }

    /// Reports an event.
    pub fn report(&self, event: Event<'_>) {
        self.observer.event(event);
    }

    /// Notes the long name of an item that a local sender is about to pass on: only the sender knows
    /// it, and the receiver reports.
    pub(crate) fn note_long_name(&self, ndx: Ndx, name: impl FnOnce() -> Vec<u8>) {
        if let Some(names) = &self.long_names {
            names.lock().unwrap_or_else(PoisonError::into_inner).insert(ndx, name());
        }
    }

    /// Returns what was noted, and forgets it with the item's last report.
    pub(crate) fn long_name(&self, ndx: Ndx, moment: Moment) -> Option<Vec<u8>> {
        let mut names = self.long_names.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            Moment::Begun => names.get(&ndx).cloned(),
            Moment::Finished => names.remove(&ndx),
        }
    }

    /// Reports a failed call on one item, and notes its effect on the exit code.
    pub fn problem(&self, who: Who, class: Class, call: &'static str, path: &[u8], error: &std::io::Error) {
        self.report_problem(Problem { who, class, what: What::Call { call, path, error } });
    }

    /// Reports a problem, and notes its effect on the exit code.
    pub fn report_problem(&self, problem: Problem<'_>) {
        if problem.class == Class::Transfer {
            self.transfer_error.store(true, Relaxed);
        }
        self.report(Event::Problem(problem));
    }

    /// Says why a path of an option was refused, if the owner of a symlink on its way is why.
    pub fn note_untrusted(&self, who: Who, error: &std::io::Error) {
        if is_untrusted(error) {
            let what = What::Sentence { before: UNTRUSTED, path: b"", after: "" };
            self.report_problem(Problem { who, class: Class::Warning, what });
        }
    }

    /// Notes that something could not be transferred, for the exit code.
    pub fn note_transfer_error(&self) {
        self.transfer_error.store(true, Relaxed);
    }

    /// Whether something could not be transferred.
    pub fn has_transfer_error(&self) -> bool {
        self.transfer_error.load(Relaxed)
    }

    /// Adds error bits.
    pub fn add_io_errors(&self, errors: IoErrors) {
        self.io_errors.fetch_or(errors.bits(), Relaxed);
    }

    /// Returns the error bits.
    pub fn io_errors(&self) -> IoErrors {
        IoErrors::from_bits_truncate(self.io_errors.load(Relaxed))
    }

    /// Fails if a signal asked for the end.
    pub fn check_interrupt(&self) -> Result<(), Failure> {
        if self.interrupted.load(Relaxed) {
            Err(Failure::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Prepares an open file for reading: its access time is left alone, if that is wanted.
    pub fn spare_atime(&self, file: &std::fs::File) -> std::io::Result<()> {
        match self.options.preserve.open_noatime {
            true => spare_atime(file),
            false => Ok(()),
        }
    }

    /// Returns the exit code of a run that nothing fatal ended.
    ///
    /// Wire: protocol/doc/24-environment-and-exit.md#4-exit-codes
    pub fn exit_code(&self) -> u8 {
        let errors = self.io_errors();
        if errors.contains(IoErrors::GENERAL)
            || self.has_transfer_error()
            || self.stats.peer_errors.value() > 0
        {
            23
        } else if errors.contains(IoErrors::VANISHED) {
            24
        } else if errors.contains(IoErrors::DELETE_LIMIT) {
            25
        } else {
            0
        }
    }
}
