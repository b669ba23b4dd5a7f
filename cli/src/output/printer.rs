//! The client's observer: decides which events become lines, in the user's format.
//!
//! Wire: protocol/doc/22-output.md#4-order-of-output-in-a-run

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use suisei_engine::observe::{Event, ItemReport, Moment, Observer, Progress, Who};
use suisei_protocol::flist::FileKind;
use suisei_protocol::mux::TextKind;
use suisei_protocol::session::Direction;
use suisei_protocol::transfer::ItemFlags;

use super::format::{Format, Scene, Subject};
use super::human::Human;
use super::info::{Debug, DebugLevels, Info, InfoLevels};
use super::itemize::Detail;
use super::listing::{self, Columns};
use super::log::ItemLog;
use super::progress::{Meter, Scope};
use super::screen::{Channel, Screen};
use super::trace::{self, Ends};
use super::words::{self, Itemizes};

/// What the user wants to see.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Levels of `--info`, verbosity included.
    pub info: InfoLevels,
    /// Levels of `--debug`, verbosity included.
    pub debug: DebugLevels,
    /// `-q`: no information.
    pub quiet: bool,
    /// `--out-format`, or `%i %n%L` for `-i`.
    pub format: Option<Format>,
    /// Which items are worth a line.
    pub detail: Detail,
    /// How items stand in the log, if there is one.
    pub log: Option<ItemLog>,
    /// Which ends report here.
    pub ends: Ends,
    /// Number style.
    pub human: Human,
    /// Columns of a listing.
    pub columns: Columns,
    /// Whether directories take part (`-r`, `-d`): without them no list header is printed.
    pub with_dirs: bool,
    /// Whether a batch file is replayed.
    pub replays: bool,
}

/// The client's observer.
pub struct Printer {
    settings: Settings,
    direction: Direction,
    scene: Scene,
    plain_format: Format,
    screen: Arc<Screen>,
    meter: Option<Mutex<Meter>>,
    failed: Mutex<Option<Who>>,
}

impl Printer {
    /// Puts settings, session values and streams together. `direction` is this end's; a local
    /// run counts as sending.
    pub fn new(settings: Settings, direction: Direction, scene: Scene, screen: Arc<Screen>) -> Self {
        let scope = match settings.info.of(Info::Progress) {
            0 => None,
            1 => Some(Scope::File),
            _ => Some(Scope::Total),
        };
        let human = settings.human;
        Printer {
            settings,
            direction,
            scene,
            plain_format: Format::parse(b"%n%L"),
            screen,
            meter: scope.map(|scope| Mutex::new(Meter::new(scope, human))),
            failed: Mutex::default(),
        }
    }

    /// Returns the role that ended the run, if one did. Its cause is printed; the final line is
    /// the caller's, who knows the exit code of the far end too.
    pub fn failed(&self) -> Option<Who> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which charset names are in (debug ICONV).
    pub fn charset(&self, name: &str) {
        if self.settings.debug.of(Debug::Iconv) >= 1 {
            self.info(&words::charset(name, self.direction));
        }
    }

    fn info(&self, line: &[u8]) {
        match self.settings.quiet {
            true => self.screen.log_lines(line),
            false => self.screen.lines(Channel::Out, line),
        }
    }

    /// Shows lines that concern the terminal only.
    fn show(&self, line: &[u8]) {
        if !self.settings.quiet {
            self.screen.show_lines(Channel::Out, line);
        }
    }

    /// The same for one line whose names may hold newlines.
    fn show_line(&self, body: &[u8]) {
        if !self.settings.quiet {
            self.screen.show_line(Channel::Out, body);
        }
    }

    /// The same for one line whose names may hold newlines.
    fn info_line(&self, body: &[u8]) {
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        match self.settings.quiet {
            true => self.screen.log_line(body),
            false => self.screen.line(Channel::Out, body),
        }
    }

    fn error(&self, body: &[u8]) {
        self.screen.line(Channel::Err, body.strip_suffix(b"\n").unwrap_or(body));
    }

    fn list_started(&self, incremental: bool) {
        self.screen.log_lines(words::logged_start(self.direction));
        let counts = match self.settings.info.of(Info::Flist) {
            0 => return,
            level => level >= 2,
        };
        match (incremental, self.direction) {
            (true, Direction::Sending) => self.show(b"sending incremental file list\n"),
            (true, Direction::Receiving) => self.show(b"receiving incremental file list\n"),
            (false, _) if !self.settings.with_dirs => {}
            (false, Direction::Sending) if counts => {
                self.show(b"building file list ... \n");
                self.show_open(" 0 files...\r");
            }
            (false, Direction::Receiving) if counts => self.show_open("receiving file list ... "),
            (false, Direction::Sending) => self.show(b"building file list ... done\n"),
            (false, Direction::Receiving) => self.show(b"receiving file list ... done\n"),
        }
    }

    /// Shows the beginning of a line.
    fn show_open(&self, text: &str) {
        if !self.settings.quiet {
            self.screen.progress(text, true);
        }
    }

    fn list_finished(&self, entries: usize) {
        if self.settings.info.of(Info::Flist) >= 2 && self.settings.with_dirs {
            let noun = if entries == 1 { "file" } else { "files" };
            self.show(format!("{entries} {noun} to consider\n").as_bytes());
        }
    }

    fn item(&self, report: &ItemReport<'_>) {
        if let Some(line) = self.settings.log.as_ref().and_then(|log| log.item(report)) {
            self.screen.log_line(&line);
        }
        let is_transfer = report.item.is_transfer();
        if !is_transfer && !self.scene.style.has_flags {
            return self.old_item(report);
        }
        let format = match &self.settings.format {
            Some(format) => format,
            None if self.settings.info.of(Info::Name) >= 1 => &self.plain_format,
            None => return,
        };
        let when = if is_transfer && !format.needs_end() { Moment::Begun } else { Moment::Finished };
        let due = report.moment == when;
        if due && self.is_worth_a_line(report) {
            self.show_line(&format.line(&Subject::Item(report), &self.scene));
        }
    }

    /// Below 29 items without data come from the generator: with the format where that runs in this
    /// process, else (a local run has stock's other process there) as names. A replay has no format for them.
    fn old_item(&self, report: &ItemReport<'_>) {
        let names = self.settings.info.of(Info::Name);
        let flags = report.item.flags;
        let itemizing = self.settings.format.as_ref().filter(|format| format.has(b"i"));
        let format = match (itemizing, self.direction) {
            (Some(_), _) if self.settings.replays => return,
            (Some(format), Direction::Receiving) if self.is_worth_a_line(report) => format,
            (Some(_), Direction::Receiving) => return,
            (_, Direction::Sending) if names >= 1 => &self.plain_format,
            (None, Direction::Receiving) if names >= 1 => {
                let is_dir = report.entry.kind() == FileKind::Directory;
                if !is_dir && !flags.contains(ItemFlags::LOCAL_CHANGE) {
                    return;
                }
                &self.plain_format
            }
            _ => return,
        };
        self.show_line(&format.line(&Subject::Item(report), &self.scene));
    }

    fn is_worth_a_line(&self, report: &ItemReport<'_>) -> bool {
        self.settings.detail.shows(report)
    }

    fn itemizes(&self) -> Itemizes {
        match self.settings.format.as_ref().is_some_and(|f| f.has(b"i")) {
            true => Itemizes::Yes,
            false => Itemizes::No,
        }
    }

    fn deleted(&self, subject: &Subject<'_>) {
        if let Some(line) = self.settings.log.as_ref().and_then(|log| log.deletion(subject)) {
            self.screen.log_line(&line);
        }
        let format = self.settings.format.as_ref();
        let info = &self.settings.info;
        if info.of(Info::Del) > 0 || info.of(Info::Name) > 0 || format.is_some() {
            self.show_line(&words::deletion(subject, format, &self.scene));
        }
    }

    fn progress(&self, report: &Progress) {
        if let Some(meter) = self.meter.as_ref().filter(|_| !self.settings.quiet) {
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let line = meter.line(report, Instant::now());
            self.screen.progress(&line.text, line.complete);
        }
    }

    fn peer_text(&self, kind: TextKind, text: &[u8]) {
        match kind {
            TextKind::Info => self.info(text),
            TextKind::ErrorXfer | TextKind::Error | TextKind::Warning => {
                self.screen.lines(Channel::Err, text)
            }
        }
    }
}

impl Observer for Printer {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::ListStarted { incremental } => self.list_started(incremental),
            Event::ListFinished { entries } => self.list_finished(entries),
            Event::DestinationCreated { path, levels } => {
                let wanted = self.settings.format.as_ref().is_some_and(|f| f.has(b"i"));
                if self.settings.info.of(Info::Name) >= 1 || wanted {
                    self.info_line(&words::destination_created(path, levels));
                }
            }
            Event::DeltaMode { enabled } => {
                if self.settings.debug.of(Debug::Flist) >= 1 {
                    self.info(words::delta_mode(enabled));
                }
            }
            Event::Item(report) => self.item(&report),
            Event::Progress(report) => self.progress(&report),
            Event::ListDone(report) if self.settings.info.of(Info::Progress) >= 2 => self.progress(&report),
            Event::ListDone(_) => {}
            Event::Deleted { path, kind } => self.deleted(&Subject::Deletion(path, kind)),
            Event::Note(path, note) => match words::note(path, note, &self.settings.info, self.itemizes()) {
                Some(line) if words::is_warning(note) => self.error(&line),
                // The other process of a local run sends it as a message, which is logged.
                Some(line) if words::is_for_terminals(note) && self.direction == Direction::Receiving => {
                    self.show_line(line.strip_suffix(b"\n").unwrap_or(&line));
                }
                Some(line) => self.info_line(&line),
                None => {}
            },
            Event::Problem(problem) => self.error(&words::problem(&problem)),
            Event::Failed { who, failure } => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(who);
                self.screen.lines(Channel::Err, &words::cause(who, failure));
            }
            Event::DeletionSkipped => self.info(words::deletion_skipped()),
            Event::DeleteLimit { skipped } => self.error(&words::delete_limit(skipped)),
            Event::PeerText(kind, text) => self.peer_text(kind, text),
            Event::Listed(entry) => self.info_line(&listing::line(entry, self.settings.columns)),
            Event::Trace(who, trace) => {
                for line in trace::lines(who, &trace, self.settings.ends) {
                    self.info_line(&line);
                }
            }
            Event::MatchTotals { matches, hash_hits, false_alarms, data } => {
                if self.settings.debug.of(Debug::Deltasum) >= 1 {
                    self.info(&words::match_totals(matches, hash_hits, false_alarms, data));
                }
            }
        }
    }
}
