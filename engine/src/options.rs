//! What the user wants of a transfer, in groups. Meaning only: no spelling, no defaults of the
//! command line (those are `cli`'s), nothing that both ends negotiate (that is the session's).

use std::sync::Arc;
use std::time::Duration;

use suisei_protocol::filter::Rule;

use crate::chmod::Chmod;
use crate::filter::{Hidden, LineEnd};
use crate::trace::Topics;
use crate::tree::Trust;

/// Everything that the three roles need to know of the user's wishes.
#[derive(Debug, Clone, Default)]
pub struct TransferOptions {
    /// What takes part.
    pub select: Select,
    /// When a destination counts as up to date.
    pub compare: Compare,
    /// Which attributes are kept.
    pub preserve: Preserve,
    /// Which attributes become others on the way.
    pub rewrite: Rewrite,
    /// What is deleted, and when.
    pub delete: Delete,
    /// How files get into place.
    pub place: Place,
    /// How content is described.
    pub delta: Delta,
    /// What else may be like a file that is not there.
    pub alternates: Alternates,
    /// Time and bandwidth.
    pub limits: Limits,
    /// How far paths that the operator named are trusted.
    pub trust: Trust,
    /// What is reported.
    pub report: Report,
    /// `-n`: decide and report, change nothing.
    pub dry_run: bool,
    /// `--only-write-batch`: a dry run of the receiving side, while data moves as in any other.
    pub batch_only: bool,
}

/// What takes part in a transfer.
#[derive(Debug, Clone, Default)]
pub struct Select {
    /// `-r`.
    pub recursive: bool,
    /// `-d`: list directories without entering them.
    pub dirs: bool,
    /// `-R`.
    pub relative: bool,
    /// `--no-implied-dirs` is false here.
    pub implied_dirs: bool,
    /// `-x` (1) and `-xx` (2).
    pub one_file_system: u8,
    /// Filter rules of this end, in order.
    pub filters: Vec<Rule>,
    /// What ends a line of a merge file (`--from0`).
    pub filter_lines: LineEnd,
    /// Texts whose words this end's CVS list ends with: `$HOME/.cvsignore`, then `$CVSIGNORE`.
    pub cvs_names: Vec<Vec<u8>>,
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
    /// `-m`.
    pub prune_empty_dirs: bool,
    /// How a sender treats symlinks that it finds.
    pub symlinks: SourceLinks,
    /// `--safe-links` (receiving: skip; sending: with `--copy-unsafe-links`).
    pub safe_links: bool,
    /// `-K`: a symlink to a directory at the destination stands for the directory.
    pub keep_dirlinks: bool,
    /// `--ignore-missing-args`.
    pub ignore_missing_args: bool,
    /// `--delete-missing-args`.
    pub delete_missing_args: bool,
    /// `--no-inc-recursive` is false here.
    pub incremental: bool,
    /// `--copy-devices`: a sender's devices count as files of what they hold.
    pub copy_devices: bool,
    /// Targets of symlinks that a remote sender names stay below the transfer: in a module that is
    /// not a whole file system of its own, and does not munge them.
    pub confined_links: bool,
    /// What a sender may not read is left out silently, where it was not named itself.
    pub ignore_unreadable: bool,
    /// Names that a module hides from its clients, relative to the module.
    pub hidden: Option<Arc<Hidden>>,
    /// `--munge-links` at this end: a sender takes the prefix off, a remote receiver puts it on.
    pub munge_links: bool,
    /// `--trust-sender`: names that were not asked for are accepted.
    pub trust_sender: bool,
}

/// How a sender treats symlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceLinks {
    /// As symlinks.
    #[default]
    Keep,
    /// `-k`: those to directories are followed.
    FollowDirs,
    /// `-L`: all are followed.
    FollowAll,
    /// `--copy-unsafe-links`: those that leave the tree are followed.
    FollowUnsafe,
}

/// When a destination counts as up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compare {
    /// `-c`.
    pub checksum: bool,
    /// `--size-only`.
    pub size_only: bool,
    /// `-I`.
    pub ignore_times: bool,
    /// `--modify-window`: seconds; negative compares nanoseconds.
    pub modify_window: i32,
}

/// Which attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preserve {
    /// `-l`.
    pub links: bool,
    /// `-p`.
    pub perms: bool,
    /// `-E`.
    pub executability: bool,
    /// `-o`.
    pub owner: bool,
    /// `-g`.
    pub group: bool,
    /// `-t`.
    pub times: bool,
    /// `-O`.
    pub omit_dir_times: bool,
    /// `-J`.
    pub omit_link_times: bool,
    /// `--devices`.
    pub devices: bool,
    /// `--specials`.
    pub specials: bool,
    /// `--drop-D`: devices, pipes and sockets are listed, but this end makes none.
    pub drop_devices: bool,
    /// `-H`.
    pub hard_links: bool,
    /// `-U`.
    pub atimes: bool,
    /// `-A`.
    pub acls: bool,
    /// `-X`.
    pub xattrs: Xattrs,
    /// `--open-noatime`, also by `-UU`: reading leaves access times alone, where the platform can.
    pub open_noatime: bool,
    /// `--numeric-ids`.
    pub numeric_ids: bool,
    /// Whether the receiving process may do what only root may; with `fake_super` it acts so.
    pub super_user: bool,
    /// `--fake-super`: what only root may set is kept in extended attributes.
    pub fake_super: bool,
}

/// Which extended attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Xattrs {
    /// None.
    #[default]
    Off,
    /// `-X`: all but those that hold what `--fake-super` keeps.
    Plain,
    /// `-XX`: those too.
    All,
}

/// Attributes that become others on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewrite {
    /// `--chmod`, of this end: a sender changes what it lists, a receiver what it was sent.
    pub chmod: Chmod,
    /// `--usermap`, as typed: a receiver's rules.
    pub user_map: Option<Vec<u8>>,
    /// `--groupmap`, as typed: a receiver's rules.
    pub group_map: Option<Vec<u8>>,
}

/// When extraneous items are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteWhen {
    /// Before the first request.
    Before,
    /// When the generator reaches each directory.
    During,
    /// Decided during, done at the end.
    Delay,
    /// Scanned and done at the end.
    After,
}

/// What is deleted, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delete {
    /// Nothing: no deletion. Plain `--delete` is already resolved by version.
    pub when: Option<DeleteWhen>,
    /// `--delete-excluded`.
    pub excluded: bool,
    /// `--max-delete`.
    pub max: Option<u64>,
    /// `--force`.
    pub force: bool,
    /// `--ignore-errors`.
    pub ignore_errors: bool,
}

/// How an interrupted or unfinished file is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Partial {
    /// Not at all.
    #[default]
    Discard,
    /// `--partial`: in place of the destination.
    Keep,
    /// `--partial-dir`: beside it or elsewhere.
    Dir(Vec<u8>),
}

/// `--append` and `--append-verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Append {
    /// Neither.
    #[default]
    Off,
    /// The old data is trusted.
    Plain,
    /// The old data is part of the sum.
    Verify,
}

/// Which sources go once they are at the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Remove {
    /// None.
    #[default]
    Nothing,
    /// All that are no directories.
    SourceFiles,
    /// The older meaning: files whose data was sent, and symlinks that were made.
    SentFiles,
}

/// How files get into place.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// `--inplace` (also by append).
    pub inplace: bool,
    /// `--append`, `--append-verify`.
    pub append: Append,
    /// `--partial`, `--partial-dir`.
    pub partial: Partial,
    /// `--delay-updates`; `partial` is then a directory.
    pub delay_updates: bool,
    /// `-T`.
    pub temp_dir: Option<Vec<u8>>,
    /// `-b`.
    pub backup: bool,
    /// `--backup-dir`.
    pub backup_dir: Option<Vec<u8>>,
    /// `--suffix`, or its default.
    pub backup_suffix: Vec<u8>,
    /// `-S`.
    pub sparse: bool,
    /// `--preallocate`.
    pub preallocate: bool,
    /// `--fsync`.
    pub fsync: bool,
    /// `--remove-source-files`, `--remove-sent-files`.
    pub remove: Remove,
    /// `--write-devices`: content goes into a device that stands in a file's place.
    pub write_devices: bool,
    /// `--mkpath`.
    pub mkpath: bool,
}

/// How content is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delta {
    /// Whether files are sent whole: the option, or its default rule, already resolved.
    pub whole_file: bool,
    /// `--block-size`.
    pub block_size: Option<u32>,
}

/// What is done with an item that an alternate directory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlternateKind {
    /// `--compare-dest`: left out if it is the same.
    #[default]
    Compare,
    /// `--copy-dest`: copied.
    Copy,
    /// `--link-dest`: hard-linked if it is the same.
    Link,
}

/// `-y`: where files of similar names are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fuzzy {
    /// Nowhere.
    #[default]
    Off,
    /// `-y`: beside the missing file.
    Beside,
    /// `-yy`: in the alternate directories too.
    Everywhere,
}

/// What else may be like a file that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternates {
    /// What the directories are for.
    pub kind: AlternateKind,
    /// Alternate directories, at most 20; relative ones start at the destination.
    pub dirs: Vec<Vec<u8>>,
    /// Files of similar names.
    pub fuzzy: Fuzzy,
}

/// Time and bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// `--timeout`; a daemon's message may lower it later.
    pub timeout: Option<Duration>,
    /// `--bwlimit` in bytes per second.
    pub bytes_per_second: Option<u64>,
}

/// Which items the generator reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ItemDetail {
    /// Those that change.
    #[default]
    Changed,
    /// Unchanged ones too (`-ii`, `-i` with `-vv`, or `--log-format=%i%I` on a server).
    All,
}

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Which items are worth a message.
    pub items: ItemDetail,
    /// `-vv`: up-to-date items are reported as such.
    pub up_to_date: bool,
    /// `--list-only`: the receiving client lists and asks for nothing.
    pub list_only: bool,
    /// Whether progress events are wanted.
    pub progress: bool,
    /// Whether the sums of files are shown (`%C`): a local run must then make them.
    pub sums: bool,
    /// Whether items are reported with their source prefix, also where the receiver reports.
    pub long_names: bool,
    /// What is looked into, and how deep.
    pub traces: Topics,
}
