//! The client's observer: decides which events become lines, in the user's format.
//!
//! Wire: protocol/doc/22-output.md#4-order-of-output-in-a-run

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use suisei_engine::observe::{Event, ItemReport, Moment, Observer, Who};
use suisei_protocol::flist::FileKind;
use suisei_protocol::mux::TextKind;
use suisei_protocol::session::Direction;
use suisei_protocol::transfer::ItemFlags;

use super::format::{Format, Scene, Subject};
use super::human::Human;
use super::info::{Debug, DebugLevels, Info, InfoLevels};
use super::listing::{self, Columns};
use super::progress::{Meter, Scope};
use super::screen::{Channel, Screen};
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
    /// How often `-i` was given (`-i -vv` counts as twice).
    pub itemize: u8,
    /// Number style.
    pub human: Human,
    /// Columns of a listing.
    pub columns: Columns,
    /// Whether directories take part (`-r`, `-d`): without them no list header is printed.
    pub with_dirs: bool,
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

    fn info(&self, line: &[u8]) {
        if !self.settings.quiet {
            self.screen.lines(Channel::Out, line);
        }
    }

    /// The same for one line whose names may hold newlines.
    fn info_line(&self, body: &[u8]) {
        if !self.settings.quiet {
            self.screen.line(Channel::Out, body.strip_suffix(b"\n").unwrap_or(body));
        }
    }

    fn error(&self, body: &[u8]) {
        self.screen.line(Channel::Err, body.strip_suffix(b"\n").unwrap_or(body));
    }

    fn list_started(&self, incremental: bool) {
        if self.settings.info.of(Info::Flist) == 0 {
            return;
        }
        match (incremental, self.direction) {
            (true, Direction::Sending) => self.info(b"sending incremental file list\n"),
            (true, Direction::Receiving) => self.info(b"receiving incremental file list\n"),
            (false, _) if !self.settings.with_dirs => {}
            (false, Direction::Sending) => self.info(b"building file list ... done\n"),
            (false, Direction::Receiving) => self.info(b"receiving file list ... done\n"),
        }
    }

    fn list_finished(&self, entries: usize) {
        if self.settings.info.of(Info::Flist) >= 2 && self.settings.with_dirs {
            let noun = if entries == 1 { "file" } else { "files" };
            self.info(format!("{entries} {noun} to consider\n").as_bytes());
        }
    }

    fn item(&self, report: &ItemReport<'_>) {
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
            self.info_line(&format.line(&Subject::Item(report), &self.scene));
        }
    }

    /// Below 29 items without data come from the generator: with the format where that runs in this
    /// process, else (a local run has stock's other process there) as names.
    fn old_item(&self, report: &ItemReport<'_>) {
        let names = self.settings.info.of(Info::Name);
        let flags = report.item.flags;
        let itemizing = self.settings.format.as_ref().filter(|format| format.has(b"i"));
        let format = match (itemizing, self.direction) {
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
        self.info_line(&format.line(&Subject::Item(report), &self.scene));
    }

    fn is_worth_a_line(&self, report: &ItemReport<'_>) -> bool {
        let flags = report.item.flags;
        let significant = flags.significant();
        let is_link_made = report.item.xname.as_ref().is_some_and(|name| !name.is_empty());
        let names = self.settings.info.of(Info::Name);
        if self.settings.itemize > 0 || self.settings.format.as_ref().is_some_and(|f| f.has(b"i")) {
            return self.settings.itemize > 1 || names >= 2 || !significant.is_empty() || is_link_made;
        }
        if report.item.is_transfer() || is_link_made {
            return true;
        }
        // What only got attributes is named by a note.
        let made_here = flags.contains(ItemFlags::LOCAL_CHANGE) || report.entry.kind() == FileKind::Directory;
        if significant.is_empty() || !made_here {
            return false;
        }
        flags.contains(ItemFlags::LOCAL_CHANGE) || report.entry.kind() == FileKind::Directory || names >= 2
    }

    fn itemizes(&self) -> Itemizes {
        match self.settings.format.as_ref().is_some_and(|f| f.has(b"i")) {
            true => Itemizes::Yes,
            false => Itemizes::No,
        }
    }

    fn deleted(&self, subject: &Subject<'_>) {
        let format = self.settings.format.as_ref();
        if self.settings.info.of(Info::Del) == 0 && self.settings.info.of(Info::Name) == 0 && format.is_none()
        {
            return;
        }
        match format.filter(|f| f.has(b"io")) {
            Some(format) => self.info_line(&format.line(subject, &self.scene)),
            None => {
                let name = Format::parse(b"%n").line(subject, &self.scene);
                self.info_line(&[b"deleting ", &name[..]].concat());
            }
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
            Event::Progress(report) => {
                if let Some(meter) = self.meter.as_ref().filter(|_| !self.settings.quiet) {
                    let mut meter = meter.lock().unwrap_or_else(|e| e.into_inner());
                    let line = meter.line(&report, Instant::now());
                    self.screen.progress(&line.text, line.complete);
                }
            }
            Event::Deleted { path, kind } => self.deleted(&Subject::Deletion(path, kind)),
            Event::Note(path, note) => match words::note(path, note, &self.settings.info, self.itemizes()) {
                Some(line) if words::is_warning(note) => self.error(&line),
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
            Event::MatchTotals { matches, hash_hits, false_alarms, data } => {
                if self.settings.debug.of(Debug::Deltasum) >= 1 {
                    self.info(&words::match_totals(matches, hash_hits, false_alarms, data));
                }
            }
        }
    }
}
