//! Does the destination need an update? The gates and the quick check, without touching the disk.
//!
//! Two questions, in stock's order. [`presence`] is asked of every entry: may it be created, may
//! what is there be touched at all? [`judge`] is asked of regular files: does data have to move?
//! Between the two come hard links, symlinks, devices and the removal of what has another type.
//! Wire: protocol/doc/20-transfer.md#7-does-the-file-need-an-update-quick-check-and-gates

use suisei_protocol::flist::{EntryRef, FileKind};

use crate::observe::Note;
use crate::options::{Append, TransferOptions};
use crate::roles::attributes::same_time;
use crate::tree::Meta;

/// The options that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// `--existing`.
    pub existing_only: bool,
    /// `--ignore-existing`.
    pub ignore_existing: bool,
    /// `-u`.
    pub update_only: bool,
    /// `--max-size`, inclusive.
    pub max_size: Option<u64>,
    /// `--min-size`, inclusive.
    pub min_size: Option<u64>,
    /// `-c`.
    pub checksum: bool,
    /// `--size-only`.
    pub size_only: bool,
    /// `-I`.
    pub ignore_times: bool,
    /// `--modify-window` in seconds; negative compares nanoseconds.
    pub modify_window: i32,
    /// `--append` or `--append-verify`.
    pub append: bool,
}

impl Rules {
    /// Takes the rules of a first attempt.
    pub fn of(options: &TransferOptions) -> Rules {
        let TransferOptions { select, compare, place, .. } = options;
        Rules {
            existing_only: select.existing_only,
            ignore_existing: select.ignore_existing,
            update_only: select.update_only,
            max_size: select.max_size,
            min_size: select.min_size,
            checksum: compare.checksum,
            size_only: compare.size_only,
            ignore_times: compare.ignore_times,
            modify_window: compare.modify_window,
            append: place.append != Append::Off,
        }
    }

    /// Returns the rules for a file that failed its verification: nothing stops it.
    ///
    /// Wire: protocol/doc/20-transfer.md#51-redo-phase
    pub fn for_redo(&self) -> Rules {
        Rules { ignore_times: true, modify_window: self.modify_window, ..Rules::default() }
    }
}

/// Whether an entry takes part at all, given what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Takes,
    /// `--existing`: nothing is there, and nothing is created.
    NotCreating,
    /// `--ignore-existing`: what is there stays.
    Exists,
}

/// Asks the first question.
pub fn presence(rules: &Rules, kind: FileKind, existing: Option<FileKind>) -> Presence {
    match existing {
        None if rules.existing_only => Presence::NotCreating,
        // A directory that is one already is never in the way.
        Some(FileKind::Directory) if kind == FileKind::Directory => Presence::Takes,
        Some(_) if rules.ignore_existing => Presence::Exists,
        _ => Presence::Takes,
    }
}

/// What is to be done about a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, for the reason that the note tells.
    Skip(Note<'static>),
    /// Its content is right: only attributes are set.
    UpToDate,
    /// `--append`: it is not shorter than the source; not even attributes are set.
    NothingToAppend,
    /// Data has to move.
    Transfer,
}

/// Returns why a regular file is passed over, if it is: part of the second question.
pub fn gate(rules: &Rules, entry: EntryRef<'_>, existing: Option<&Meta>) -> Option<Note<'static>> {
    if rules.max_size.is_some_and(|max| entry.size() > max) {
        Some(Note::OverMaxSize)
    } else if rules.min_size.is_some_and(|min| entry.size() < min) {
        Some(Note::UnderMinSize)
    } else if rules.update_only && existing.is_some_and(|meta| is_newer(meta, entry, rules.modify_window)) {
        Some(Note::Newer)
    } else {
        None
    }
}

/// Asks the second question. `existing` is the regular file at the destination, if one is there;
/// `same_content` compares its sum with the entry's (`-c`) and is asked at most once.
pub fn judge(
    rules: &Rules,
    entry: EntryRef<'_>,
    existing: Option<&Meta>,
    same_content: impl FnOnce() -> bool,
) -> Verdict {
    if let Some(note) = gate(rules, entry, existing) {
        return Verdict::Skip(note);
    }
    let Some(existing) = existing else { return Verdict::Transfer };
    if is_same(rules, entry, existing, same_content) {
        return Verdict::UpToDate;
    }
    if rules.append && existing.size >= entry.size() {
        return Verdict::NothingToAppend;
    }
    Verdict::Transfer
}

/// The quick check of a regular file.
pub fn is_same(
    rules: &Rules,
    entry: EntryRef<'_>,
    existing: &Meta,
    same_content: impl FnOnce() -> bool,
) -> bool {
    if entry.size() != existing.size {
        false
    } else if rules.checksum {
        same_content()
    } else if rules.size_only {
        true
    } else {
        !rules.ignore_times && same_time(entry, existing, rules.modify_window)
    }
}

/// `-u` counts whole seconds, and a window moves the border towards older files.
fn is_newer(existing: &Meta, entry: EntryRef<'_>, window: i32) -> bool {
    i128::from(entry.mtime()) - i128::from(existing.mtime) < i128::from(window)
}

#[cfg(test)]
mod tests;
