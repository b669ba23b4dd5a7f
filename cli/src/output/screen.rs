//! Standard output, standard error and the log: the last step of every line.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::escape::{escape, HighBytes};
use super::log::LogFile;

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// When standard output is written (`--outbuf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Buffering {
    /// After each line.
    #[default]
    Lines,
    /// When much has gathered, and at the end.
    Blocks,
}

/// How much of standard output gathers under [`Buffering::Blocks`], in bytes.
const BLOCK: usize = 32 * 1024;

/// Both streams, under one lock so that lines never mix.
///
/// A reader that went away ends the run: the first failed write sets the interrupt flag, and
/// [`Screen::is_closed`] tells that no more lines can be shown.
#[derive(Debug)]
pub struct Screen {
    high: HighBytes,
    /// `--stderr=all`: everything goes to standard error.
    all_to_err: bool,
    buffering: Buffering,
    state: Mutex<State>,
    closed: AtomicBool,
    interrupt: Arc<AtomicBool>,
    log: Option<LogFile>,
    /// Whether lines are drawn over each other: on a terminal. In a file each is one of its own.
    overwrites: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a progress line stands without its newline.
    line_open: bool,
    /// What standard output still has to get.
    pending: Vec<u8>,
}

impl Screen {
    /// Takes both streams. `interrupt` is set when standard output is closed by its reader.
    pub fn new(high: HighBytes, all_to_err: bool, buffering: Buffering, interrupt: Arc<AtomicBool>) -> Self {
        Screen {
            high,
            all_to_err,
            buffering,
            state: Mutex::default(),
            closed: AtomicBool::new(false),
            interrupt,
            log: None,
            overwrites: if all_to_err { io::stderr().is_terminal() } else { io::stdout().is_terminal() },
        }
    }

    /// Writes a log too.
    pub fn with_log(mut self, log: LogFile) -> Self {
        self.log = Some(log);
        self
    }

    /// Writes lines to the log alone, each with its newline.
    pub fn log_lines(&self, text: &[u8]) {
        if let Some(log) = &self.log {
            log.lines(text);
        }
    }

    /// Writes one line to the log alone; its body may hold any byte.
    pub fn log_line(&self, body: &[u8]) {
        if let Some(log) = &self.log {
            log.line(body);
        }
    }

    /// Whether the reader of standard output went away.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Writes whole lines, each with its newline, and logs them.
    pub fn lines(&self, channel: Channel, text: &[u8]) {
        self.show_lines(channel, text);
        self.log_lines(text);
    }

    /// Writes one line whose body may hold any byte, newlines included, and logs it.
    pub fn line(&self, channel: Channel, body: &[u8]) {
        self.show_line(channel, body);
        self.log_line(body);
    }

    /// Writes whole lines that concern the terminal only; an open progress line is ended first.
    pub fn show_lines(&self, channel: Channel, text: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let mut out = Vec::with_capacity(text.len() + 1);
        if std::mem::take(&mut state.line_open) {
            self.write(&mut state, Channel::Out, b"\n");
        }
        for line in text.split_inclusive(|&b| b == b'\n') {
            out.extend_from_slice(&escape(line, self.high));
        }
        self.write(&mut state, channel, &out);
    }

    /// Writes one line that concerns the terminal only.
    pub fn show_line(&self, channel: Channel, body: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if std::mem::take(&mut state.line_open) {
            self.write(&mut state, Channel::Out, b"\n");
        }
        let mut line = Vec::with_capacity(body.len() + 1);
        line.extend_from_slice(body);
        line.push(b'\n');
        self.write(&mut state, channel, &escape(&line, self.high));
    }

    /// Draws a progress line, which stays open unless it is complete.
    pub fn progress(&self, text: &str, complete: bool) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if self.overwrites {
            state.line_open = !complete;
            return self.write(&mut state, Channel::Out, text.as_bytes());
        }
        let mut line = text.trim_start_matches('\r').replace('\r', "\n");
        if !complete {
            line.push('\n');
        }
        self.write(&mut state, Channel::Out, line.as_bytes());
    }

    /// Ends an open progress line and writes what has gathered.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if std::mem::take(&mut state.line_open) {
            self.write(&mut state, Channel::Out, b"\n");
        }
        self.flush(&mut state);
    }

    fn write(&self, state: &mut State, channel: Channel, bytes: &[u8]) {
        if channel == Channel::Err || self.all_to_err {
            // Nobody may be listening; the exit code still tells.
            let _ = io::stderr().write_all(bytes);
            return;
        }
        state.pending.extend_from_slice(bytes);
        if self.buffering == Buffering::Lines || state.pending.len() >= BLOCK {
            self.flush(state);
        }
    }

    fn flush(&self, state: &mut State) {
        let bytes = std::mem::take(&mut state.pending);
        let mut out = io::stdout().lock();
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            self.closed.store(true, Relaxed);
            self.interrupt.store(true, Relaxed);
        }
    }
}
