//! The log file: each line with the time and the process in front.
//!
//! Lines are written one by one and at once, so a log tells how far a run came whatever became of
//! the terminal. They go through the same escaping as what is shown.
//! Wire: protocol/doc/22-output.md#13-log-file-and-daemon-log

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use suisei_engine::observe::{ItemReport, Moment};

use super::escape::{escape, HighBytes};
use super::format::{Format, Scene, Subject};
use super::itemize::Detail;
use super::time::{local_time, now, Clock};
use super::words;

/// What an item looks like in a log if nobody said so.
pub const DEFAULT_FORMAT: &[u8] = b"%i %n%L";

/// A log that is open.
pub struct LogFile {
    target: Target,
}

/// Takes one line, escaped and without a newline.
pub type LineSink = Box<dyn Fn(&[u8]) + Send + Sync>;

enum Target {
    File(File),
    Elsewhere(LineSink),
}

impl fmt::Debug for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.target {
            Target::File(_) => "LogFile",
            Target::Elsewhere(_) => "LogFile(elsewhere)",
        })
    }
}

impl LogFile {
    /// Opens a file for appending, and makes it if it is missing, writable for its owner only.
    pub fn open(path: &[u8]) -> io::Result<LogFile> {
        let path = Path::new(OsStr::from_bytes(path));
        let file = OpenOptions::new().append(true).create(true).mode(0o644).open(path)?;
        Ok(LogFile { target: Target::File(file) })
    }

    /// Takes lines elsewhere: a daemon has a log of its own.
    pub fn elsewhere(sink: LineSink) -> LogFile {
        LogFile { target: Target::Elsewhere(sink) }
    }

    /// What is done if a log file cannot be opened.
    pub const WITHOUT: &'static [u8] = b"Ignoring \"log file\" setting.\n";

    /// The line that says why a log file cannot be opened. `who` speaks.
    pub fn complaint(who: &str, path: &[u8], error: &io::Error) -> Vec<u8> {
        let mut text = format!("rsync: [{who}] failed to open log-file ").into_bytes();
        text.extend_from_slice(path);
        text.extend(format!(": {}\n", words::reason(error)).into_bytes());
        text
    }

    /// Writes whole lines, each with its newline; empty ones are left out.
    pub fn lines(&self, text: &[u8]) {
        for line in text.split(|&b| b == b'\n') {
            self.line(line);
        }
    }

    /// Writes one line whose body may hold any byte, newlines included.
    pub fn line(&self, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        let file = match &self.target {
            Target::File(file) => file,
            Target::Elsewhere(sink) => return sink(&escape(body, HighBytes::Escape)),
        };
        let mut line = format!("{} [{}] ", local_time(now(), Clock::Spaced), std::process::id()).into_bytes();
        line.extend_from_slice(&escape(body, HighBytes::Escape));
        line.push(b'\n');
        // A full disk must not end the run; the exit code tells of what matters.
        let _ = (&mut &*file).write_all(&line);
    }
}

/// How items stand in a log.
#[derive(Debug, Clone)]
pub struct ItemLog {
    format: Format,
    scene: Scene,
    detail: Detail,
    dry: DryRuns,
    transfers_only: bool,
}

/// Whether what a dry run would do stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRuns {
    /// As if it were done: a client's log, and every real run.
    Told,
    /// Not at all: a server's.
    Untold,
}

impl ItemLog {
    /// Takes `--log-file-format`; an empty format has no lines of items.
    pub fn new(format: Option<&[u8]>, scene: Scene, detail: Detail, dry: DryRuns) -> ItemLog {
        let format = Format::parse(format.unwrap_or(DEFAULT_FORMAT));
        ItemLog { format, scene, detail, dry, transfers_only: false }
    }

    /// Takes a daemon's `log format`: without `%i` only transfers have lines.
    pub fn of_transfers(format: Format, scene: Scene, detail: Detail, dry: DryRuns) -> ItemLog {
        let transfers_only = !format.has(b"i");
        ItemLog { format, scene, detail, dry, transfers_only }
    }

    /// Returns the line of an item, without its newline; nothing if it is not worth one.
    pub fn item(&self, report: &ItemReport<'_>) -> Option<Vec<u8>> {
        if report.moment != Moment::Finished || self.is_silent() {
            return None;
        }
        // Below 29 nobody says what differs, so only transfers are certain.
        let is_told = self.scene.style.has_flags && !self.transfers_only;
        if !report.item.is_transfer() && !is_told {
            return None;
        }
        self.detail.shows(report).then(|| self.format.line(&Subject::Item(report), &self.scene))
    }

    /// Returns the line of a deletion, without its newline.
    pub fn deletion(&self, subject: &Subject<'_>) -> Option<Vec<u8>> {
        (self.dry == DryRuns::Told).then(|| words::deletion(subject, Some(&self.format), &self.scene))
    }

    fn is_silent(&self) -> bool {
        self.format.is_empty() || self.dry == DryRuns::Untold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_dated_and_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = LogFile::open(path.as_os_str().as_bytes()).unwrap();
        log.lines(b"\nfirst\nsec\x1bond\n");
        log.line(b"two\nlines");
        let text = std::fs::read_to_string(&path).unwrap();
        let bodies: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once("] ")?.1)).collect();
        assert_eq!(bodies, ["first", "sec\\#033ond", "two\\#012lines"]);
        let pid = format!("[{}]", std::process::id());
        assert!(text.lines().all(|line| line.as_bytes()[4] == b'/' && line.contains(&pid)), "{text}");
    }
}
