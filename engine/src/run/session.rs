//! What a session follows from options alone: the fields of the list, whether segments are
//! allowed, and the whole session of a local run.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#1-when-it-is-on

use std::time::{SystemTime, UNIX_EPOCH};

use suisei_protocol::session::{
    Compat, Direction, IncrementalRecursion, Layout, Recursion, Session, Side, Version,
};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::Compressor;

use crate::options::{AlternateKind, Append, DeleteWhen, Fuzzy, Remove, TransferOptions, Xattrs};

/// What both ends of a local run would have agreed on.
#[derive(Debug, Clone, Copy)]
pub struct LocalChoice {
    /// `--protocol`, or the newest.
    pub version: Version,
    /// Sum of blocks and files.
    pub transfer_sum: SumKind,
    /// Sum of `-c`.
    pub list_sum: SumKind,
    /// `--checksum-seed`; 0 takes one from the clock.
    pub seed: i32,
}

impl Default for LocalChoice {
    fn default() -> Self {
        LocalChoice {
            version: Version::NEWEST,
            transfer_sum: SumKind::Xxh128,
            list_sum: SumKind::Xxh128,
            seed: 0,
        }
    }
}

/// Returns the option that old versions lack, if one is given, and the first version that has it.
///
/// Wire: protocol/doc/02-session-start.md#224-other-version-dependent-defaults-settled-here
pub fn needs(options: &TransferOptions) -> Option<(&'static str, u8)> {
    let alternates = &options.alternates;
    let (dirs, inplace) = (alternates.dirs.len(), options.place.inplace);
    let feature = match alternates.kind {
        _ if alternates.fuzzy != Fuzzy::Off => "--fuzzy",
        AlternateKind::Compare if dirs > 0 && inplace => "--compare-dest with --inplace",
        AlternateKind::Copy if dirs > 0 && inplace => "--copy-dest with --inplace",
        AlternateKind::Link if dirs > 0 && inplace => "--link-dest with --inplace",
        AlternateKind::Compare if dirs > 1 => "Using more than one --compare-dest option",
        AlternateKind::Copy if dirs > 1 => "Using more than one --copy-dest option",
        AlternateKind::Link if dirs > 1 => "Using more than one --link-dest option",
        _ if options.select.prune_empty_dirs => "--prune-empty-dirs",
        _ => return None,
    };
    Some((feature, 29))
}

/// Returns the session of a local run. Its end counts as the sender's, as in stock.
pub fn local_session(options: &TransferOptions, choice: LocalChoice) -> Session {
    let incremental = choice.version.has_incremental_recursion()
        && allows_incremental(options, Direction::Receiving) == IncrementalRecursion::Allowed;
    Session {
        side: Side::Client,
        direction: Direction::Sending,
        version: choice.version,
        compat: if choice.version.has_compat_flags() { Compat::all() } else { Compat::empty() },
        seed: if choice.seed == 0 { clock_seed() } else { choice.seed },
        transfer_sum: choice.transfer_sum,
        list_sum: choice.list_sum,
        compressor: Compressor::None,
        compress_level: 0,
        layout: layout(options),
        recursion: if incremental { Recursion::Incremental } else { Recursion::Whole },
        charset: None,
    }
}

fn clock_seed() -> i32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() as i32) ^ ((std::process::id() as i32) << 6)
}

/// Returns which optional fields entries and items carry.
pub fn layout(options: &TransferOptions) -> Layout {
    let keep = &options.preserve;
    Layout {
        uid: keep.owner,
        gid: keep.group,
        devices: keep.devices,
        specials: keep.specials,
        links: keep.links,
        hard_links: keep.hard_links,
        checksum: options.compare.checksum,
        atimes: keep.atimes,
        crtimes: false,
        acls: keep.acls,
        xattrs: keep.xattrs != Xattrs::Off,
        numeric_ids: keep.numeric_ids,
        relative: options.select.relative,
        recursive: options.select.recursive,
        dry_run: options.dry_run && !options.batch_only,
        withheld: false,
        append: options.place.append != Append::Off,
        missing_args: options.select.delete_missing_args,
        confirm: options.place.remove != Remove::Nothing,
    }
}

/// Whether this end's options allow incremental recursion (the client's letter `i`; the server's
/// own test).
pub fn allows_incremental(options: &TransferOptions, direction: Direction) -> IncrementalRecursion {
    let select = &options.select;
    let needs_whole_list = direction == Direction::Receiving
        && (matches!(options.delete.when, Some(DeleteWhen::Before | DeleteWhen::After))
            || options.place.delay_updates
            || select.prune_empty_dirs);
    if select.recursive && select.incremental && !needs_whole_list {
        IncrementalRecursion::Allowed
    } else {
        IncrementalRecursion::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use IncrementalRecursion::{Allowed, Refused};

    #[test]
    fn only_a_receiving_side_needs_the_whole_list() {
        let mut options = TransferOptions::default();
        assert_eq!(allows_incremental(&options, Direction::Sending), Refused);
        options.select.recursive = true;
        options.select.incremental = true;
        options.select.prune_empty_dirs = true;
        assert_eq!(allows_incremental(&options, Direction::Sending), Allowed);
        assert_eq!(allows_incremental(&options, Direction::Receiving), Refused);
        options.select.prune_empty_dirs = false;
        options.delete.when = Some(DeleteWhen::Delay);
        assert_eq!(allows_incremental(&options, Direction::Receiving), Allowed);
        options.delete.when = Some(DeleteWhen::After);
        assert_eq!(allows_incremental(&options, Direction::Receiving), Refused);
    }
}
