//! The lines of `--progress` and `--info=progress2`.
//!
//! Scripts parse them, so columns and rounding are stock's.
//! Wire: protocol/doc/22-output.md#8-progress

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use suisei_engine::observe::Progress;

use super::human::Human;

/// Whose progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each file's.
    File,
    /// The whole run's.
    Total,
}

/// Samples kept for the current rate.
const SAMPLES: usize = 5;

/// Draws progress lines from reports.
#[derive(Debug)]
pub struct Meter {
    scope: Scope,
    human: Human,
    /// (when, bytes) of recent updates, oldest first.
    samples: VecDeque<(Instant, u64)>,
    started: Instant,
    /// Bytes of files that are finished, for the total.
    before: u64,
    /// Length of the tail that an overwritten line had.
    tail: usize,
    fresh: bool,
}

/// A progress line, ready to be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The text, from its leading carriage return on.
    pub text: String,
    /// Whether it ends in a newline already.
    pub complete: bool,
}

impl Meter {
    /// Starts measuring.
    pub fn new(scope: Scope, human: Human) -> Self {
        Meter {
            scope,
            human,
            samples: VecDeque::new(),
            started: Instant::now(),
            before: 0,
            tail: 0,
            fresh: true,
        }
    }

    /// Returns the line for a report at time `now`.
    pub fn line(&mut self, report: &Progress, now: Instant) -> Line {
        let (offset, size) = match self.scope {
            Scope::File => (report.offset, report.size),
            Scope::Total => (self.before + report.offset, report.total_size),
        };
        if self.fresh && self.scope == Scope::File {
            self.begin_file(now);
        }
        self.fresh = false;
        if self.samples.is_empty() {
            self.started = now;
        }
        self.samples.push_back((now, offset));
        while self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        let elapsed = now.duration_since(self.started);
        let at_end =
            report.finished && (self.scope == Scope::File || report.to_check == 0 && report.list_complete);
        let rate = if at_end { kib_per_second(offset, elapsed) } else { self.recent_rate(now, offset) };
        let time = if at_end { elapsed.as_secs_f64() } else { remaining(size.saturating_sub(offset), rate) };
        let mut text = format!(
            "\r{:>15} {:>3}% {} {}",
            self.human.bytes(offset),
            percent(offset, size),
            rate_text(rate),
            clock(time)
        );
        let tail = if report.finished { tail(report) } else { "  ".to_owned() };
        text.push_str(&tail);
        if report.finished {
            self.before += report.size.max(report.offset);
            self.fresh = true;
        }
        let complete = report.finished && self.scope == Scope::File;
        if complete {
            text.push('\n');
        } else {
            let blanks = self.tail.saturating_sub(tail.len());
            text.extend(std::iter::repeat_n(' ', blanks));
            self.tail = tail.len();
        }
        Line { text, complete }
    }

    /// A file that starts within 1.5 s of the last sample is measured from that sample on.
    fn begin_file(&mut self, now: Instant) {
        let recent = self.samples.back().map(|&(when, _)| when);
        self.samples.clear();
        if let Some(when) = recent.filter(|&when| now.duration_since(when) < Duration::from_millis(1500)) {
            self.started = when;
            self.samples.push_back((when, 0));
        }
    }

    fn recent_rate(&self, now: Instant, offset: u64) -> f64 {
        match self.samples.front() {
            Some(&(when, then)) => kib_per_second(offset.saturating_sub(then), now.duration_since(when)),
            None => 0.0,
        }
    }
}

fn tail(report: &Progress) -> String {
    let word = if report.list_complete { "to" } else { "ir" };
    format!(" (xfr#{}, {word}-chk={}/{})", report.transferred, report.to_check, report.known)
}

fn percent(offset: u64, size: u64) -> u64 {
    if offset == size {
        100
    } else if size == 0 {
        0
    } else {
        (u128::from(offset) * 100 / u128::from(size)) as u64
    }
}

fn kib_per_second(bytes: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 {
        bytes as f64 / seconds / 1024.0
    } else {
        0.0
    }
}

/// Seconds that are left; by stock's formula, which divides KiB by 1000.
fn remaining(bytes: u64, kib_per_second: f64) -> f64 {
    if kib_per_second > 0.0 {
        bytes as f64 / kib_per_second / 1000.0
    } else {
        0.0
    }
}

fn rate_text(kib: f64) -> String {
    let (value, unit) = if kib > 1024.0 * 1024.0 {
        (kib / 1024.0 / 1024.0, "GB/s")
    } else if kib > 1024.0 {
        (kib / 1024.0, "MB/s")
    } else {
        (kib, "kB/s")
    };
    format!("{value:>7.2}{unit}")
}

fn clock(seconds: f64) -> String {
    if !(0.0..=9999.0 * 3600.0).contains(&seconds) {
        return "  ??:??:??".to_owned();
    }
    let s = seconds as u64;
    format!("{:>4}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(offset: u64, size: u64, finished: bool) -> Progress {
        Progress {
            offset,
            size,
            finished,
            transferred: 1,
            to_check: 6,
            known: 8,
            total_size: 6_000_000,
            list_complete: true,
        }
    }

    #[test]
    fn a_file_ends_with_its_counts_and_a_newline() {
        let start = Instant::now();
        let mut meter = Meter::new(Scope::File, Human::Grouped);
        let first = meter.line(&report(32_768, 3_000_000, false), start);
        assert_eq!(first.text, "\r         32,768   1%    0.00kB/s    0:00:00  ");
        let last = meter.line(&report(3_000_000, 3_000_000, true), start + Duration::from_millis(3640));
        assert_eq!(last.text, "\r      3,000,000 100%  804.86kB/s    0:00:03 (xfr#1, to-chk=6/8)\n");
        assert!(last.complete);
    }

    #[test]
    fn a_total_is_overwritten_and_padded() {
        let start = Instant::now();
        let mut meter = Meter::new(Scope::Total, Human::Grouped);
        let done = meter.line(&report(3_000_000, 3_000_000, true), start);
        assert!(done.text.ends_with("(xfr#1, to-chk=6/8)") && done.text.contains(" 50%"));
        let next = meter.line(&report(1, 3_000_000, false), start + Duration::from_secs(1));
        assert!(next.text.ends_with(&" ".repeat(" (xfr#1, to-chk=6/8)".len())), "{:?}", next.text);
    }

    #[test]
    fn impossible_times_are_marked() {
        assert_eq!(clock(3_725.0), "   1:02:05");
        assert_eq!(clock(f64::INFINITY), "  ??:??:??");
    }
}
