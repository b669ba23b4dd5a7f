//! Lines of `--list-only`.
//!
//! Wire: protocol/doc/22-output.md#10---list-only

use suisei_protocol::flist::{EntryRef, FileKind};

use super::format::mode_string;
use super::human::Human;
use super::time::{local_time, Clock};

/// Which columns a listing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Number style; decides the width of the size column.
    pub human: Human,
    /// `-U`: access times.
    pub atimes: bool,
    /// `-l`: targets of symlinks.
    pub links: bool,
}

/// Returns the line of an entry, its newline included.
pub fn line(entry: EntryRef<'_>, columns: Columns) -> Vec<u8> {
    let width = if columns.human == Human::Plain { 11 } else { 14 };
    let mut out = mode_string(entry).to_vec();
    out.extend(format!(" {:>width$} ", columns.human.bytes(entry.size())).into_bytes());
    out.extend(local_time(entry.mtime(), Clock::Spaced).into_bytes());
    if columns.atimes {
        let atime = entry.atime().filter(|_| entry.kind() != FileKind::Directory);
        out.extend(
            format!(" {:>19}", atime.map(|t| local_time(t, Clock::Spaced)).unwrap_or_default()).into_bytes(),
        );
    }
    out.push(b' ');
    out.extend_from_slice(entry.path().as_bytes());
    if let Some(target) = entry.link_target().filter(|_| columns.links) {
        out.extend_from_slice(b" -> ");
        out.extend_from_slice(target);
    }
    out.push(b'\n');
    out
}
