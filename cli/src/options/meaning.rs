//! What the typed options mean together: defaults, implications, conflicts.
//!
//! [`Wishes`] is the answer before anything is known of the peer; `wishes.rs` makes the engine's
//! options of it once the version is agreed.
//! Wire: protocol/doc/02-session-start.md#224-other-version-dependent-defaults-settled-here

use suisei_protocol::error::Misuse;
use suisei_protocol::session::{SumChoice, SumName, Version};

use super::delta;
use super::environment::Environment;
use super::iconv::{self, Conversion};
use super::typed::{Append, Recorded, Recursive, Remove, Typed};
use crate::exit::{Code, Refusal};
use crate::output::info::{DebugLevels, InfoLevels};
use crate::remote::spec;

/// Where `--delay-updates` keeps its files if nothing else was named.
const DELAY_DIR: &[u8] = b".~tmp~";
/// Longest name of a batch file.
const BATCH_NAME_MAX: usize = 256;

/// Where the file of `--files-from` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesFrom {
    /// On this machine (`-` is standard input).
    Here(Vec<u8>),
    /// On the machine of the remote end.
    There {
        /// The machine's name, empty for the one of the transfer.
        host: Vec<u8>,
        /// The file's path there.
        path: Vec<u8>,
    },
}

/// How arguments are protected from a remote shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Backslashes.
    Escape,
    /// `--old-args`: option values are escaped, paths are not.
    OldPaths,
    /// `--old-args` twice: nothing is.
    OldAll,
    /// `-s`: the words travel by stdin.
    Secluded,
}

/// What the command line means.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// What was typed.
    pub typed: Typed,
    /// Whether to recurse.
    pub recursive: bool,
    /// Whether directories are listed without recursion.
    pub dirs: bool,
    /// Whether paths are kept as typed.
    pub relative: bool,
    /// Whether this only lists, asked for or because there is no destination.
    pub listing: bool,
    /// Whether anything is deleted.
    pub deleting: bool,
    /// Whether replaced files are kept.
    pub backup: bool,
    /// Where they are kept, if not beside the new ones.
    pub backup_dir: Option<Vec<u8>>,
    /// Suffix of backups.
    pub suffix: Vec<u8>,
    /// Where unfinished files are kept.
    pub partial_dir: Option<Vec<u8>>,
    /// Whether `partial_dir` is only the default of `--delay-updates`.
    pub partial_dir_is_default: bool,
    /// `--partial` without a directory.
    pub partial: bool,
    /// Whether files are written in place.
    pub inplace: bool,
    /// Whether files go whole, if anybody said so.
    pub whole_file: Option<bool>,
    /// Whether content is compressed.
    pub compress: bool,
    /// The compressor that was chosen by name, in lower case; nothing: negotiate.
    pub compressor: Option<String>,
    /// How arguments are protected.
    pub protection: Protection,
    /// Where the names of a restricted transfer are.
    pub files_from: Option<FilesFrom>,
    /// Levels of `--info`, with all that implies some.
    pub info: InfoLevels,
    /// Levels of `--debug`.
    pub debug: DebugLevels,
    /// Format of item lines.
    pub format: Option<Vec<u8>>,
    /// `--protocol`, or the newest.
    pub version: Version,
    /// `--iconv`: the charset of this end's names.
    pub conversion: Option<Conversion>,
    /// What the run has to do with a batch file.
    pub batch: BatchUse,
}

/// What a run has to do with a batch file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchUse {
    /// Nothing.
    None,
    /// It is recorded in one. A server only hears whether nothing else is done.
    Write(Vec<u8>, Recorded),
    /// It replays one.
    Read(Vec<u8>),
}

/// Works out what was typed.
pub fn resolve(mut typed: Typed, environment: &Environment) -> Result<Wishes, Refusal> {
    iconv::default(&mut typed, environment);
    let max_alloc = typed.delta.max_alloc.as_deref().or_else(|| environment.non_empty("RSYNC_MAX_ALLOC"));
    typed.delta.max_alloc = delta::max_alloc(max_alloc)?;
    let conversion = iconv::here(&typed, environment).map_err(|refusal| {
        let pulls = || typed.operands.first().is_some_and(|first| spec::split_host(first).is_some());
        let receives = if typed.connect.server { !typed.connect.sender } else { pulls() };
        refusal.said_by(if receives { "Receiver" } else { "sender" })
    })?;
    let files_from = typed.select.files_from.as_deref().map(files_from);
    let is_alone = typed.operands.len() <= 1 && !typed.connect.server && typed.change.read_batch.is_none();
    let listing = typed.select.list_only || is_alone;
    let recursive = match typed.select.recursive {
        Recursive::Explicit => true,
        Recursive::Archive => files_from.is_none(),
        Recursive::Off => false,
    } || typed.select.old_dirs;
    let dirs = !recursive && typed.select.dirs.unwrap_or(files_from.is_some() || listing);
    let protection = protection(&typed, environment)?;
    let whole_file = if has_no_checksum(&typed)? { Some(true) } else { typed.delta.whole_file };
    let (compress, compressor) = compression(&typed)?;
    let deleting = deletes(&typed);
    check_deletion(&typed, deleting, recursive || dirs)?;
    let backup = typed.change.backup || typed.change.backup_dir.is_some();
    let suffix = suffix(&typed)?;
    let backup_dir = typed.change.backup_dir.clone().filter(|dir| !is_here(dir));
    let (partial_dir, partial_dir_is_default) = partial_dir(&typed, environment);
    if typed.preserve.fake_super && typed.preserve.xattrs > 1 {
        return Err(Refusal::usage("rsync: --fake-super conflicts with -XX"));
    }
    check_places(&typed)?;
    check_basis_dirs(&typed)?;
    let inplace = typed.change.writes_in_place();
    let partial =
        !inplace && partial_dir.is_none() && (typed.change.partial || typed.change.partial_dir.is_some());
    check_munging(&typed)?;
    if typed.select.insecure_links && typed.select.confine_root.is_some() {
        return Err(Refusal::usage("rsync: --insecure-links cannot be combined with --confine-root"));
    }
    let (info, debug) = levels(&typed);
    let format = match &typed.output.out_format {
        Some(format) => Some(format.clone()),
        None if typed.output.itemize > 0 => Some(b"%i %n%L".to_vec()),
        None => None,
    };
    let version = version(&typed)?;
    let batch = batch(&typed)?;
    let relative = typed.select.relative.unwrap_or(files_from.is_some());
    Ok(Wishes {
        recursive,
        dirs,
        relative,
        listing,
        deleting,
        backup,
        backup_dir,
        suffix,
        partial_dir,
        partial_dir_is_default,
        partial,
        inplace,
        whole_file,
        compress,
        compressor,
        protection,
        files_from,
        info,
        debug,
        format,
        version,
        conversion,
        batch,
        typed,
    })
}

fn batch(typed: &Typed) -> Result<BatchUse, Refusal> {
    let (write, read) = (&typed.change.write_batch, &typed.change.read_batch);
    let refused = |text: &str| Err(Refusal::usage(text));
    if typed.connect.server {
        return Ok(match write {
            Some((name, Recorded::Only)) => BatchUse::Write(name.clone(), Recorded::Only),
            _ => BatchUse::None,
        });
    }
    if write.is_some() && read.is_some() {
        return refused("rsync: --write-batch and --read-batch can not be used together");
    }
    if read.is_some() && typed.select.files_from.is_some() {
        return refused("rsync: --read-batch cannot be used with --files-from");
    }
    if read.is_some() && typed.change.remove != Remove::Nothing {
        return refused("rsync: --read-batch cannot be used with --remove-source-files");
    }
    let name = read.as_ref().or(write.as_ref().map(|(name, _)| name));
    if name.is_some_and(|name| name.len() > BATCH_NAME_MAX) {
        return refused("rsync: the batch-file name must be 256 characters or less.");
    }
    Ok(match (write, read) {
        (_, Some(name)) => BatchUse::Read(name.clone()),
        (Some((name, what)), _) if !typed.change.dry_run => BatchUse::Write(name.clone(), *what),
        _ => BatchUse::None,
    })
}

fn files_from(value: &[u8]) -> FilesFrom {
    match spec::split_host(value) {
        Some((machine, path)) => FilesFrom::There { host: machine.host, path },
        None => FilesFrom::Here(value.to_vec()),
    }
}

fn deletes(typed: &Typed) -> bool {
    let c = &typed.change;
    c.delete || c.delete_before || c.delete_during.is_some() || c.delete_after || c.delete_excluded
}

fn check_deletion(typed: &Typed, deleting: bool, has_directories: bool) -> Result<(), Refusal> {
    let c = &typed.change;
    if [c.delete_before, c.delete_during.is_some(), c.delete_after].iter().filter(|&&given| given).count() > 1
    {
        return Err(Refusal::usage("rsync: You may not combine multiple --delete-WHEN options."));
    }
    if deleting && !has_directories {
        let text = "rsync: --delete does not work without --recursive (-r) or --dirs (-d).";
        return Err(Refusal::usage(text));
    }
    Ok(())
}

fn suffix(typed: &Typed) -> Result<Vec<u8>, Refusal> {
    let dir = typed.change.backup_dir.as_deref().map(clean_dir);
    let suffix = match (&typed.change.suffix, &dir) {
        (Some(suffix), _) => suffix.clone(),
        (None, Some(_)) => Vec::new(),
        (None, None) => b"~".to_vec(),
    };
    if suffix.contains(&b'/') {
        return Err(Refusal::usage(
            [b"rsync: --suffix cannot contain slashes: ", suffix.as_slice()].concat(),
        ));
    }
    if suffix.is_empty() && dir.is_none() {
        return Err(Refusal::usage("rsync: --suffix cannot be empty without a --backup-dir"));
    }
    if suffix.is_empty() && dir.is_some_and(|dir| is_here(&dir)) {
        let text = "rsync: --suffix cannot be empty when --backup-dir is the same as the dest dir";
        return Err(Refusal::usage(text));
    }
    Ok(suffix)
}

fn is_here(dir: &[u8]) -> bool {
    matches!(clean_dir(dir).as_slice(), b"" | b".")
}

/// Removes what does not change the meaning of a directory's name.
fn clean_dir(dir: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> =
        dir.split(|&b| b == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    if dir.starts_with(b"/") {
        parts.insert(0, b"");
        if parts.len() == 1 {
            return b"/".to_vec();
        }
    }
    if parts.is_empty() && !dir.is_empty() {
        return b".".to_vec();
    }
    parts.join(&b'/')
}

fn partial_dir(typed: &Typed, environment: &Environment) -> (Option<Vec<u8>>, bool) {
    let c = &typed.change;
    let typed_dir = c.partial_dir.clone();
    let inplace = c.writes_in_place();
    let from_environment = || {
        environment
            .non_empty("RSYNC_PARTIAL_DIR")
            .filter(|_| c.partial && !inplace && !c.delay_updates)
            .map(<[u8]>::to_vec)
    };
    let dir = typed_dir.or_else(from_environment).map(|dir| clean_dir(&dir)).filter(|dir| !is_here(dir));
    match dir {
        Some(dir) => (Some(dir), false),
        None if c.delay_updates => (Some(DELAY_DIR.to_vec()), true),
        None => (None, false),
    }
}

fn check_places(typed: &Typed) -> Result<(), Refusal> {
    let c = &typed.change;
    let option = if c.append != Append::Off { "--append" } else { "--inplace" };
    if c.append != Append::Off && typed.delta.whole_file == Some(true) {
        return Err(Refusal::usage("rsync: --append cannot be used with --whole-file"));
    }
    if c.writes_in_place() {
        let other = match () {
            () if c.partial_dir.is_some() => "--partial-dir",
            () if c.delay_updates => "--delay-updates",
            () => return Ok(()),
        };
        return Err(Refusal::usage(format!("rsync: {option} cannot be used with {other}")));
    }
    Ok(())
}

/// A munged symlink must lead nowhere.
fn check_munging(typed: &Typed) -> Result<(), Refusal> {
    if typed.select.munge_links && std::path::Path::new("/rsyncd-munged").is_dir() {
        let text = "Symlink munging is unsafe when a /rsyncd-munged directory exists.";
        return Err(Refusal::new(Code::Unsupported, text));
    }
    Ok(())
}

fn check_basis_dirs(typed: &Typed) -> Result<(), Refusal> {
    let Some((first, _)) = typed.change.basis_dirs.first() else { return Ok(()) };
    match typed.change.basis_dirs.iter().find(|(kind, _)| kind != first) {
        Some((other, _)) => Err(Refusal::usage(format!(
            "rsync: ERROR: the {} option conflicts with the {} option",
            other.option(),
            first.option()
        ))),
        None => Ok(()),
    }
}

/// Returns whether to compress, and the name that was chosen.
fn compression(typed: &Typed) -> Result<(bool, Option<String>), Refusal> {
    let choice =
        typed.delta.compress_choice.as_ref().map(|name| String::from_utf8_lossy(name).to_ascii_lowercase());
    match choice.as_deref() {
        Some("none") => Ok((false, None)),
        Some("zlib" | "zlibx" | "zstd" | "lz4") => Ok((true, choice)),
        None | Some("auto") => Ok((typed.delta.compress || typed.delta.compress_level.is_some(), None)),
        Some(_) => {
            let name = typed.delta.compress_choice.as_deref().unwrap_or_default();
            Err(Refusal::new(Code::Unsupported, [b"unknown compress name: ", name].concat()))
        }
    }
}

/// Whether the chosen checksum is none at all: files must go whole then. Refuses unknown names.
fn has_no_checksum(typed: &Typed) -> Result<bool, Refusal> {
    let Some(names) = &typed.delta.checksum_choice else { return Ok(false) };
    let choice = SumChoice::parse(&String::from_utf8_lossy(names)).map_err(misuse)?;
    Ok(choice.is_some_and(|choice| choice.transfer == Some(SumName::None)))
}

fn protection(typed: &Typed, environment: &Environment) -> Result<Protection, Refusal> {
    let c = &typed.connect;
    if c.secluded == Some(true) {
        if c.old_args.is_some_and(|count| count > 0) {
            return Err(Refusal::usage("rsync: --secluded-args conflicts with --old-args."));
        }
        return Ok(Protection::Secluded);
    }
    let old = match c.old_args {
        Some(count) => count,
        None => environment.number("RSYNC_OLD_ARGS"),
    };
    let asked = environment.number("RSYNC_PROTECT_ARGS") > 0;
    let old_is_silent = match c.old_args {
        Some(count) => count == 0,
        None => environment.non_empty("RSYNC_OLD_ARGS").is_none(),
    };
    Ok(match old {
        0 if asked && c.secluded.is_none() && old_is_silent => Protection::Secluded,
        0 => Protection::Escape,
        1 => Protection::OldPaths,
        _ => Protection::OldAll,
    })
}

fn levels(typed: &Typed) -> (InfoLevels, DebugLevels) {
    let (mut info, mut debug) = (InfoLevels::default(), DebugLevels::default());
    info.imply_verbosity(typed.output.verbose);
    debug.imply_verbosity(typed.output.verbose);
    if typed.output.stats {
        info.imply(if typed.output.verbose >= 2 { "STATS3" } else { "STATS2" });
    }
    if typed.output.progress {
        let has_format = typed.output.out_format.is_some() || typed.output.itemize > 0;
        info.imply(if has_format { "FLIST2,PROGRESS" } else { "FLIST2,PROGRESS,NAME" });
    }
    // Rows refused unknown words already.
    for list in &typed.output.info {
        let _ = info.set(list);
    }
    for list in &typed.output.debug {
        let _ = debug.set(list);
    }
    (info, debug)
}

fn version(typed: &Typed) -> Result<Version, Refusal> {
    let Some(number) = typed.connect.protocol else { return Ok(Version::NEWEST) };
    let newest = Version::NEWEST.number();
    if number > i32::from(newest) {
        let text = format!("--protocol must be no more than {newest} on the Client.");
        return Err(Refusal::new(Code::Protocol, text));
    }
    u32::try_from(number).ok().and_then(Version::new).ok_or_else(|| {
        let text = format!("--protocol must be at least {} on the Client.", Version::OLDEST.number());
        Refusal::new(Code::Protocol, text)
    })
}

pub(super) fn misuse(error: Misuse) -> Refusal {
    Refusal::with_code(error.exit_code(), error.to_string())
}
