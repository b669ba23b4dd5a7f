//! Time stamps in the user's zone.

use std::time::{SystemTime, UNIX_EPOCH};

/// How date and time are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `YYYY/MM/DD hh:mm:ss`
    Spaced,
    /// `YYYY/MM/DD-hh:mm:ss`
    Dashed,
}

/// Returns the current time in seconds since the epoch.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}

/// Formats seconds since the epoch in the local zone.
pub fn local_time(seconds: i64, clock: Clock) -> String {
    use chrono::{Local, TimeZone};
    let format = match clock {
        Clock::Spaced => "%Y/%m/%d %H:%M:%S",
        Clock::Dashed => "%Y/%m/%d-%H:%M:%S",
    };
    match Local.timestamp_opt(seconds, 0).earliest() {
        Some(time) => time.format(format).to_string(),
        None => format!("(time {seconds})"),
    }
}
