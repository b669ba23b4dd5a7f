//! The server's observer: the client prints items, the server only says what went wrong.
//!
//! Errors go to our own standard error, which a remote shell shows to the user, unless the client
//! asked for messages; information always goes as messages.
//! Wire: protocol/doc/22-output.md#1-where-text-goes

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use suisei_engine::observe::{Class, Event, ItemReport, Observer, Who};
use suisei_engine::Failure;
use suisei_protocol::flist::{FileKind, RelPath};
use suisei_protocol::mux::{Notice, TextKind};
use suisei_protocol::session::Direction;

use super::escape::{escape, HighBytes};
use super::format::Subject;
use super::info::{Debug, DebugLevels, Info, InfoLevels};
use super::listing::{self, Columns};
use super::log::{ItemLog, LogFile};
use super::trace::{self, Ends};
use super::words::{self, Itemizes};

/// Where the server's messages can be handed over, once the link stands.
pub type NoticeSink = Box<dyn Fn(Notice) + Send + Sync>;

/// What the client told us about messages.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Levels of `--info`, the client's verbosity included.
    pub info: InfoLevels,
    /// Whether the client reports items with `%i`.
    pub itemizes: Itemizes,
    /// `-q`: information is only logged.
    pub quiet: bool,
    /// Whether errors go as messages rather than to standard error.
    pub errors_as_messages: bool,
    /// `--msgs2stderr`: everything goes to standard error.
    pub all_to_stderr: bool,
    /// Whether items without data have messages (29).
    pub has_item_flags: bool,
    /// Whether deletions have a message of their own (29).
    pub has_deleted_message: bool,
    /// Levels of `--debug`, as the client's verbosity implies them.
    pub debug: DebugLevels,
    /// Columns of a listing.
    pub columns: Columns,
    /// Which way the data goes.
    pub direction: Direction,
    /// How items stand in the log.
    pub items: Option<ItemLog>,
}

/// The server's observer.
pub struct Forwarder {
    settings: ServerSettings,
    sink: OnceLock<NoticeSink>,
    log: Option<Arc<LogFile>>,
}

impl Forwarder {
    /// Starts without a link: texts go to standard error until [`Forwarder::attach`].
    pub fn new(settings: ServerSettings, log: Option<Arc<LogFile>>) -> Self {
        Forwarder { settings, sink: OnceLock::new(), log }
    }

    /// Hands over the way to the client.
    pub fn attach(&self, sink: NoticeSink) {
        // A second link in one process does not exist; the first stays.
        let _ = self.sink.set(sink);
    }

    fn log(&self, line: &[u8]) {
        if let Some(log) = &self.log {
            log.line(line.strip_suffix(b"\n").unwrap_or(line));
        }
    }

    fn log_item(&self, line: impl FnOnce(&ItemLog) -> Option<Vec<u8>>) {
        if let Some(line) = self.settings.items.as_ref().and_then(line) {
            self.log(&line);
        }
    }

    /// Says which charset names are in (debug ICONV).
    pub fn charset(&self, name: &str, direction: Direction) {
        if self.settings.debug.of(Debug::Iconv) >= 1 {
            self.info(words::charset(name, direction));
        }
    }

    fn info(&self, line: Vec<u8>) {
        self.log(&line);
        self.send_info(line);
    }

    fn send_info(&self, line: Vec<u8>) {
        if self.settings.quiet {
            return;
        }
        if self.settings.all_to_stderr {
            return stderr(&line);
        }
        if let Some(sink) = self.sink.get() {
            sink(Notice::Text(TextKind::Info, words::cut(line).into()));
        }
    }

    fn error(&self, kind: TextKind, line: Vec<u8>) {
        self.log(&line);
        match self.sink.get() {
            Some(sink) if self.settings.errors_as_messages && !self.settings.all_to_stderr => {
                sink(Notice::Text(kind, words::cut(line).into()));
            }
            _ => stderr(&line),
        }
    }

    fn failed(&self, who: Who, failure: &Failure) {
        for line in words::failure(who, failure).split_inclusive(|&b| b == b'\n') {
            self.error(TextKind::Error, line.to_vec());
        }
    }

    /// Logs an item. Below 29 the generator also names what it makes, as no item tells the client.
    fn item(&self, report: &ItemReport<'_>) {
        self.log_item(|items| items.item(report));
        let is_untold = !self.settings.has_item_flags && !report.item.is_transfer();
        if is_untold && self.settings.info.of(Info::Name) >= 1 {
            self.info(words::item_name(report));
        }
    }

    fn deleted(&self, path: RelPath<'_>, kind: FileKind) {
        let is_dir = kind == FileKind::Directory;
        self.log_item(|items| items.deletion(&Subject::Deletion(path, kind)));
        if self.settings.has_deleted_message {
            if let Some(sink) = self.sink.get() {
                sink(Notice::Deleted { path: path.as_bytes().to_vec().into(), is_dir });
            }
        } else if self.settings.info.of(Info::Del) >= 1 {
            let slash: &[u8] = if is_dir { b"/\n" } else { b"\n" };
            self.send_info([b"deleting ", path.as_bytes(), slash].concat());
        }
    }
}

fn stderr(line: &[u8]) {
    // Nobody may be listening any more; the exit code still tells.
    let _ = io::stderr().write_all(&escape(line, HighBytes::Escape));
}

impl Observer for Forwarder {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Deleted { path, kind } => self.deleted(path, kind),
            Event::Note(path, note) => {
                match words::note(path, note, &self.settings.info, self.settings.itemizes) {
                    Some(line) if words::is_warning(note) => self.error(TextKind::Warning, line),
                    Some(line) if words::is_for_terminals(note) => self.send_info(line),
                    Some(line) => self.info(line),
                    None => {}
                }
            }
            Event::Problem(problem) => {
                let kind = match problem.class {
                    Class::Warning => TextKind::Warning,
                    Class::Error => TextKind::Error,
                    Class::Transfer => TextKind::ErrorXfer,
                };
                self.error(kind, words::problem(&problem));
            }
            Event::Failed { who, failure } => self.failed(who, failure),
            Event::DeletionSkipped => self.info(words::deletion_skipped().to_vec()),
            Event::DeleteLimit { skipped } => self.error(TextKind::Warning, words::delete_limit(skipped)),
            Event::DestinationCreated { path, levels }
                if self.settings.info.of(Info::Name) >= 1 || self.settings.itemizes == Itemizes::Yes =>
            {
                self.info(words::destination_created(path, levels));
            }
            Event::DeltaMode { enabled } if self.settings.debug.of(Debug::Flist) >= 1 => {
                self.info(words::delta_mode(enabled).to_vec());
            }
            Event::MatchTotals { matches, hash_hits, false_alarms, data }
                if self.settings.debug.of(Debug::Deltasum) >= 1 =>
            {
                self.info(words::match_totals(matches, hash_hits, false_alarms, data));
            }
            Event::Listed(entry) => self.info(listing::line(entry, self.settings.columns)),
            Event::Trace(who, trace) => {
                for mut line in trace::lines(who, &trace, Ends::There) {
                    line.push(b'\n');
                    self.info(line);
                }
            }
            Event::ListStarted { .. } => self.log(words::logged_start(self.settings.direction)),
            Event::Item(report) => self.item(&report),
            // The client reports items, progress and totals; our peer's texts are not for us.
            _ => {}
        }
    }
}
