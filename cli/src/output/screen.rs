//! Standard output and standard error: the last step of every line.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::escape::{escape, HighBytes};

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Both streams, under one lock so that lines never mix.
///
/// A reader that went away ends the run: the first failed write sets the interrupt flag, and
/// [`Screen::is_closed`] tells that no more lines can be shown.
#[derive(Debug)]
pub struct Screen {
    high: HighBytes,
    /// `--stderr=all`: everything goes to standard error.
    all_to_err: bool,
    state: Mutex<State>,
    closed: AtomicBool,
    interrupt: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a progress line stands without its newline.
    line_open: bool,
}

impl Screen {
    /// Takes both streams. `interrupt` is set when standard output is closed by its reader.
    pub fn new(high: HighBytes, all_to_err: bool, interrupt: Arc<AtomicBool>) -> Self {
        Screen { high, all_to_err, state: Mutex::default(), closed: AtomicBool::new(false), interrupt }
    }

    /// Whether the reader of standard output went away.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Writes whole lines, each with its newline; an open progress line is ended first.
    pub fn lines(&self, channel: Channel, text: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let mut out = Vec::with_capacity(text.len() + 1);
        if std::mem::take(&mut state.line_open) {
            self.write(Channel::Out, b"\n");
        }
        for line in text.split_inclusive(|&b| b == b'\n') {
            out.extend_from_slice(&escape(line, self.high));
        }
        self.write(channel, &out);
    }

    /// Writes one line whose body may hold any byte, newlines included.
    pub fn line(&self, channel: Channel, body: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if std::mem::take(&mut state.line_open) {
            self.write(Channel::Out, b"\n");
        }
        let mut line = Vec::with_capacity(body.len() + 1);
        line.extend_from_slice(body);
        line.push(b'\n');
        self.write(channel, &escape(&line, self.high));
    }

    /// Draws a progress line, which stays open unless it is complete.
    pub fn progress(&self, text: &str, complete: bool) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.line_open = !complete;
        self.write(Channel::Out, text.as_bytes());
    }

    /// Ends an open progress line.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if std::mem::take(&mut state.line_open) {
            self.write(Channel::Out, b"\n");
        }
    }

    fn write(&self, channel: Channel, bytes: &[u8]) {
        let result = if channel == Channel::Err || self.all_to_err {
            io::stderr().write_all(bytes)
        } else {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        };
        if result.is_err() && channel == Channel::Out {
            self.closed.store(true, Relaxed);
            self.interrupt.store(true, Relaxed);
        }
    }
}
