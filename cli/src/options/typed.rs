//! What was typed, option by option, before it means anything.
//!
//! Rows write it in command-line order; [`super::meaning`] reads it once everything is known.

use suisei_engine::chmod::Chmod;

/// Everything that was typed.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    /// Arguments that are no options.
    pub operands: Vec<Vec<u8>>,
    /// What takes part.
    pub select: Select,
    /// Attributes.
    pub preserve: Preserve,
    /// How the destination changes.
    pub change: Change,
    /// How content travels.
    pub delta: Delta,
    /// What is shown.
    pub output: Output,
    /// The way to the peer.
    pub connect: Connect,
    /// Options that were used but cannot be done yet, by name.
    pub not_yet: Vec<String>,
}

/// `-r` and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recursive {
    /// Not asked for.
    #[default]
    Off,
    /// By `-a`: `--files-from` switches it off.
    Archive,
    /// By `-r`.
    Explicit,
}

/// One filter word, in command-line order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterWord {
    /// `--filter`.
    Rule(Vec<u8>),
    /// `--exclude`.
    Exclude(Vec<u8>),
    /// `--include`.
    Include(Vec<u8>),
    /// `--exclude-from`.
    ExcludeFrom(Vec<u8>),
    /// `--include-from`.
    IncludeFrom(Vec<u8>),
}

/// What takes part.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Select {
    pub recursive: Recursive,
    pub no_incremental: bool,
    pub qsort: bool,
    pub dirs: Option<bool>,
    pub old_dirs: bool,
    pub relative: Option<bool>,
    pub no_implied_dirs: bool,
    pub one_file_system: u8,
    pub update: bool,
    pub existing: bool,
    pub ignore_existing: bool,
    pub max_size: Option<u64>,
    pub min_size: Option<u64>,
    pub prune_empty_dirs: bool,
    pub filters: Vec<FilterWord>,
    pub per_dir_filters: u8,
    pub cvs_exclude: bool,
    pub files_from: Option<Vec<u8>>,
    pub from0: bool,
    pub list_only: bool,
    pub ignore_missing_args: bool,
    pub delete_missing_args: bool,
    pub checksum: bool,
    pub size_only: bool,
    pub ignore_times: bool,
    pub modify_window: Option<i32>,
    pub copy_links: bool,
    pub copy_dirlinks: bool,
    pub keep_dirlinks: bool,
    pub copy_unsafe_links: bool,
    pub safe_links: bool,
    pub munge_links: bool,
    pub insecure_links: bool,
    pub confine_root: Option<Vec<u8>>,
}

/// Attributes.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Preserve {
    pub links: bool,
    pub perms: bool,
    pub executability: bool,
    pub owner: bool,
    pub group: bool,
    pub times: bool,
    pub atimes: u8,
    pub open_noatime: bool,
    pub crtimes: bool,
    pub omit_dir_times: bool,
    pub omit_link_times: bool,
    pub devices: bool,
    pub specials: bool,
    pub drop_devices: bool,
    pub hard_links: u8,
    pub acls: bool,
    pub xattrs: u8,
    pub numeric_ids: bool,
    pub super_user: Option<bool>,
    pub fake_super: bool,
    pub user_map: Option<Vec<u8>>,
    pub group_map: Option<Vec<u8>>,
    /// Whether `--chown` gave the maps: users, groups.
    pub by_chown: (bool, bool),
    pub chmod: Chmod,
}

/// How the destination changes.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Change {
    pub dry_run: bool,
    pub inplace: bool,
    pub append: Append,
    pub partial: bool,
    pub partial_dir: Option<Vec<u8>>,
    pub delay_updates: bool,
    pub temp_dir: Option<Vec<u8>>,
    pub backup: bool,
    pub backup_dir: Option<Vec<u8>>,
    pub suffix: Option<Vec<u8>>,
    pub sparse: bool,
    pub preallocate: bool,
    pub fsync: bool,
    pub mkpath: bool,
    pub delete: bool,
    pub delete_before: bool,
    /// `--delete-during` or `--delete-delay`: the last one counts.
    pub delete_during: Option<During>,
    pub delete_after: bool,
    pub delete_excluded: bool,
    pub max_delete: Option<i32>,
    pub force: bool,
    pub ignore_errors: bool,
    pub remove: Remove,
    pub write_devices: bool,
    pub copy_devices: bool,
    pub basis_dirs: Vec<(BasisKind, Vec<u8>)>,
    /// `--write-batch` or `--only-write-batch`: the last one counts.
    pub write_batch: Option<(Vec<u8>, Recorded)>,
    pub read_batch: Option<Vec<u8>>,
}

/// What is done beside recording a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// `--write-batch`: everything.
    Too,
    /// `--only-write-batch`: nothing.
    Only,
}

impl Change {
    /// Whether files are written in place, by whichever option.
    pub fn writes_in_place(&self) -> bool {
        self.inplace || self.write_devices || self.append != Append::Off
    }
}

/// `--delete-during` and `--delete-delay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the option of its name
pub enum During {
    Plain,
    Delay,
}

/// `--append` and `--append-verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // each is the option of its name
pub enum Append {
    #[default]
    Off,
    Plain,
    Verify,
}

/// `--remove-source-files` and `--remove-sent-files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // each is the option of its name
pub enum Remove {
    #[default]
    Nothing,
    SourceFiles,
    SentFiles,
}

/// `--compare-dest`, `--copy-dest` or `--link-dest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the option of its name
pub enum BasisKind {
    Compare,
    Copy,
    Link,
}

impl BasisKind {
    /// Returns the option with its dashes.
    pub fn option(self) -> &'static str {
        match self {
            BasisKind::Compare => "--compare-dest",
            BasisKind::Copy => "--copy-dest",
            BasisKind::Link => "--link-dest",
        }
    }
}

/// How content travels.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Delta {
    pub whole_file: Option<bool>,
    pub block_size: u32,
    pub fuzzy: u8,
    pub compress: bool,
    pub compress_choice: Option<Vec<u8>>,
    pub compress_level: Option<i32>,
    pub skip_compress: Option<Vec<u8>>,
    pub checksum_choice: Option<Vec<u8>>,
    pub checksum_seed: i32,
    /// KiB per second; 0: no limit.
    pub bwlimit: u64,
    pub timeout: i32,
    pub max_alloc: Option<Vec<u8>>,
}

/// Where messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// Errors to standard error; a server writes them to its own.
    Errors,
    /// Everything to standard error, at both ends.
    All,
    /// A server sends everything to the client.
    Client,
}

/// Something to show instead of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the option of its name
pub enum Show {
    Help,
    Version,
    VersionJson,
    InfoHelp,
    DebugHelp,
}

impl Show {
    /// Whether what stands behind the option does not count any more.
    pub fn ends_the_line(self) -> bool {
        !matches!(self, Show::Version | Show::VersionJson)
    }
}

/// `--outbuf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the option of its name
pub enum Outbuf {
    None,
    Line,
    Full,
}

/// What is shown.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Output {
    pub show: Option<Show>,
    pub verbose: u32,
    pub quiet: u32,
    pub stderr: Option<Stderr>,
    /// Values of `--info`, in order.
    pub info: Vec<String>,
    /// Values of `--debug`, in order.
    pub debug: Vec<String>,
    pub stats: bool,
    pub progress: bool,
    pub human: u32,
    pub no_human: bool,
    pub itemize: u32,
    pub out_format: Option<Vec<u8>>,
    pub log_file: Option<Vec<u8>>,
    pub log_file_format: Option<Vec<u8>>,
    pub eight_bit: bool,
    pub outbuf: Option<Outbuf>,
}

/// The way to the peer.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct Connect {
    pub rsh: Option<Vec<u8>>,
    pub rsync_path: Option<Vec<u8>>,
    pub remote_options: Vec<Vec<u8>>,
    pub secluded: Option<bool>,
    pub old_args: Option<u32>,
    pub trust_sender: bool,
    pub protocol: Option<i32>,
    pub port: Option<i32>,
    pub address: Option<Vec<u8>>,
    pub sockopts: Option<Vec<u8>>,
    pub family: Family,
    pub blocking_io: Option<bool>,
    pub timeout: i32,
    pub password_file: Option<Vec<u8>>,
    pub early_input: Option<Vec<u8>>,
    pub no_motd: bool,
    pub iconv: Option<Vec<u8>>,
    pub copy_as: Option<Vec<u8>>,
    pub server: bool,
    pub sender: bool,
}

/// `-4` and `-6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Neither.
    #[default]
    Any,
    /// `-4`.
    V4,
    /// `-6`.
    V6,
}
