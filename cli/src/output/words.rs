//! The wording of problems and notes, shared by both ends.
//!
//! Wire: protocol/doc/22-output.md#11-other-messages

use std::io;

use bstr::ByteSlice;
use suisei_engine::observe::{ItemReport, Note, Problem, What, Who};
use suisei_engine::sys::confine;
use suisei_engine::Failure;
use suisei_protocol::flist::{FileKind, RelPath};
use suisei_protocol::session::Direction;
use suisei_protocol::Error as WireError;

use super::format::{Format, Scene, Subject};
use super::info::{Info, InfoLevels};

/// Returns the `[WHO]` of a role.
pub fn role(who: Who) -> &'static str {
    match who {
        Who::Sender => "sender",
        Who::Generator => "generator",
        Who::Receiver => "receiver",
        Who::ReceivingSide => "Receiver",
    }
}

/// Returns a system error as stock words it: `No such file or directory (2)`.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => {
            let words = text.split(" (os error").next().unwrap_or(&text);
            format!("{words} ({code})")
        }
        None => text,
    }
}

/// Returns the line of a problem, its newline included.
pub fn problem(problem: &Problem<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    match problem.what {
        What::Call { call, path, error } => {
            line.extend(format!("rsync: [{}] {call} \"", role(problem.who)).into_bytes());
            line.extend_from_slice(path);
            line.push(b'"');
            line.extend(confine::label());
            line.extend(format!(" failed: {}", reason(error)).into_bytes());
        }
        What::Reason { text, path, error } => {
            line.extend(format!("rsync: [{}] {text} \"", role(problem.who)).into_bytes());
            line.extend_from_slice(path);
            line.push(b'"');
            line.extend(confine::label());
            line.extend(format!(": {}", reason(error)).into_bytes());
        }
        What::Around { before, path, after, error } => {
            line.extend(format!("rsync: [{}] {before}", role(problem.who)).into_bytes());
            line.extend_from_slice(path);
            line.extend(placed(after));
            line.extend(format!(": {}", reason(error)).into_bytes());
        }
        What::Sentence { before, path, after } => {
            line.extend_from_slice(before.as_bytes());
            line.extend_from_slice(path);
            line.extend(placed(after.as_bytes()));
        }
    }
    line.push(b'\n');
    line
}

/// Puts the place that a process is confined to behind the quote that ends a name.
fn placed(after: &[u8]) -> Vec<u8> {
    match after.strip_prefix(b"\"") {
        Some(rest) => [b"\"", confine::label().as_slice(), rest].concat(),
        None => after.to_vec(),
    }
}

/// Whether items are reported in a format with `%i`, which shows some notes without `-v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Itemizes {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// Whether a note is a warning, for standard error, rather than information.
pub fn is_warning(note: Note<'_>) -> bool {
    matches!(note, Note::FailedVerification(_))
}

/// Whether a note is for whoever looks on, and not for a log.
pub fn is_for_terminals(note: Note<'_>) -> bool {
    matches!(note, Note::UpToDate | Note::Adjusted)
}

/// Returns the line of a note, its newline included; nothing if the levels hide it.
pub fn note(path: RelPath<'_>, note: Note<'_>, levels: &InfoLevels, itemizes: Itemizes) -> Option<Vec<u8>> {
    let shown = match note {
        Note::UpToDate | Note::DirectoryUpToDate => levels.of(Info::Name) >= 2,
        Note::Exists(_) | Note::Newer | Note::OverMaxSize | Note::UnderMinSize | Note::NotCreating(_) => {
            levels.of(Info::Skip) >= 1
        }
        Note::NonRegular => levels.of(Info::Nonreg) >= 1,
        Note::Adjusted => levels.of(Info::Name) >= 2,
        Note::SkippingDirectory | Note::NotEmpty | Note::RecordSkipped => true,
        Note::MountPoint => levels.of(Info::Mount) >= 1,
        Note::SenderRemoved => levels.of(Info::Remove) >= 1,
        Note::UnsafeLinkIgnored(_) => levels.of(Info::Name) >= 1,
        Note::UnsafeLinkCopied(_) => levels.of(Info::Symsafe) >= 1,
        Note::FailedVerification(_) => levels.of(Info::Name) >= 1 || itemizes == Itemizes::Yes,
        Note::NotLinked(_) => levels.of(Info::Name) >= 1,
        Note::BackedUp(_) => levels.of(Info::Backup) >= 1,
    };
    if !shown {
        return None;
    }
    let name = path.as_bytes();
    let mut line = match note {
        Note::UpToDate => [name, b" is uptodate"].concat(),
        Note::DirectoryUpToDate => [name, b"/ is uptodate"].concat(),
        Note::Exists(detail) if levels.of(Info::Skip) >= 2 => {
            [name, b" exists (", detail.as_bytes(), b")"].concat()
        }
        Note::Exists(_) => [name, b" exists"].concat(),
        Note::Newer => [name, b" is newer"].concat(),
        Note::OverMaxSize => [name, b" is over max-size"].concat(),
        Note::UnderMinSize => [name, b" is under min-size"].concat(),
        Note::NotCreating(FileKind::Directory) => [b"not creating new directory \"", name, b"\""].concat(),
        Note::NotCreating(_) => [b"not creating new file \"", name, b"\""].concat(),
        Note::Adjusted => name.to_vec(),
        Note::NonRegular => [b"skipping non-regular file \"", name, b"\""].concat(),
        Note::SkippingDirectory => [b"skipping directory ", name].concat(),
        Note::RecordSkipped => [b"(Skipping batched update for \"", name, b"\")"].concat(),
        Note::NotEmpty => [b"cannot delete non-empty directory: ", name].concat(),
        Note::MountPoint => [b"cannot delete mount point: ", name].concat(),
        Note::SenderRemoved => [b"sender removed ", name].concat(),
        Note::UnsafeLinkIgnored(target) => {
            [b"ignoring unsafe symlink \"", name, b"\" -> \"", target, b"\""].concat()
        }
        Note::UnsafeLinkCopied(target) => {
            [b"copying unsafe symlink \"", name, b"\" -> \"", target, b"\""].concat()
        }
        Note::FailedVerification(state) => {
            let state = state.as_bytes();
            [b"WARNING: ", name, b" failed verification -- update ", state, b" (will try again)."].concat()
        }
        Note::NotLinked(text) => [b"rsync: [generator] link ", text].concat(),
        Note::BackedUp(to) => [b"backed up ", name, b" to ", to].concat(),
    };
    line.push(b'\n');
    Some(line)
}

/// Returns what is said of a deletion, without its newline: by the format if that names operations.
pub fn deletion(subject: &Subject<'_>, format: Option<&Format>, scene: &Scene) -> Vec<u8> {
    match format.filter(|format| format.has(b"io")) {
        Some(format) => format.line(subject, scene),
        None => [b"deleting ", &Format::parse(b"%n").line(subject, scene)[..]].concat(),
    }
}

/// Returns the line that says how much moved, for a log that has no summary.
pub fn logged_totals(sent: u64, received: u64, total_size: u64) -> String {
    format!("sent {sent} bytes  received {received} bytes  total size {total_size}\n")
}

/// Returns the line that begins a log.
pub fn logged_start(direction: Direction) -> &'static [u8] {
    match direction {
        Direction::Sending => b"building file list\n",
        Direction::Receiving => b"receiving file list\n",
    }
}

/// Returns the line that says why deletions stopped, its newline included.
pub fn deletion_skipped() -> &'static [u8] {
    b"IO error encountered -- skipping file deletion\n"
}

/// Returns the line that says which charset an end's names are in, its newline included.
pub fn charset(name: &str, direction: Direction) -> Vec<u8> {
    let who = match direction {
        Direction::Sending => Who::Sender,
        Direction::Receiving => Who::ReceivingSide,
    };
    format!("[{}] charset: {name}\n", role(who)).into_bytes()
}

/// Returns the line that says how many deletions were not done, its newline included.
pub fn delete_limit(skipped: u64) -> Vec<u8> {
    format!("Deletions stopped due to --max-delete limit ({skipped} skipped)\n").into_bytes()
}

/// Returns the line that says whether block sums are made, its newline included.
pub fn delta_mode(enabled: bool) -> &'static [u8] {
    match enabled {
        true => b"delta-transmission enabled\n",
        false => b"delta-transmission disabled for local transfer or --whole-file\n",
    }
}

/// Returns the line that names an item, its newline included: what `%n%L` makes of it.
pub fn item_name(report: &ItemReport<'_>) -> Vec<u8> {
    let mut line = report.entry.path().as_bytes().to_vec();
    if report.entry.is_dir() {
        line.push(b'/');
    }
    match (report.entry.link_target(), report.item.xname.as_deref()) {
        (Some(target), _) => line.extend([&b" -> "[..], target].concat()),
        (None, Some(leader)) if !leader.is_empty() => line.extend([&b" => "[..], leader].concat()),
        _ => {}
    }
    line.push(b'\n');
    line
}

/// Returns the line of the search totals, its newline included.
pub fn match_totals(matches: u64, hash_hits: u64, false_alarms: u64, data: u64) -> Vec<u8> {
    format!("total: matches={matches}  hash_hits={hash_hits}  false_alarms={false_alarms} data={data}\n")
        .into_bytes()
}

/// Returns the line that says that the destination was made, its newline included.
pub fn destination_created(path: &[u8], levels: u32) -> Vec<u8> {
    let mut line = match levels {
        0 => b"created directory ".to_vec(),
        1 => b"created 1 directory for ".to_vec(),
        n => format!("created {n} directories for ").into_bytes(),
    };
    line.extend_from_slice(path);
    line.push(b'\n');
    line
}

/// Returns the lines that say why this end ends the run: the cause, then the final line. The
/// peer has explained its own exit already.
pub fn failure(who: Who, failure: &Failure) -> Vec<u8> {
    if is_explained(failure) {
        return Vec::new();
    }
    let mut lines = cause(who, failure);
    lines.extend(final_line(failure.exit_code(), role(who)).into_bytes());
    lines
}

/// Whether somebody else says why the run ends.
pub fn is_explained(failure: &Failure) -> bool {
    matches!(failure, Failure::PeerExit(_) | Failure::Sibling)
}

/// Returns the line that says why this end ends the run, its newline included.
pub fn cause(who: Who, failure: &Failure) -> Vec<u8> {
    let name = role(who);
    let cause = match failure {
        Failure::PeerExit(_) | Failure::Sibling => return Vec::new(),
        Failure::Interrupted => String::new(),
        Failure::Timeout(after) => {
            format!("[{name}] io timeout after {} seconds -- exiting\n", after.as_secs())
        }
        Failure::PeerClosed { received, .. } => {
            format!("rsync: connection unexpectedly closed ({received} bytes received so far) [{name}]\n")
        }
        Failure::Connection { call, error } => {
            format!("rsync: [{name}] {call} error: {}\n", reason(error))
        }
        Failure::Record { bytes, error } => {
            format!(
                "rsync: [{name}] safe_write failed to write {bytes} bytes to batch file: {}\n",
                reason(error)
            )
        }
        Failure::Protocol(error @ (WireError::PeerIncompatible(_) | WireError::Misuse(_))) => {
            format!("{error}\n")
        }
        Failure::Protocol(error) => match error.to_string() {
            // Stock says these without a name.
            text if text.starts_with("ERROR: ") => format!("{text}\n"),
            text => format!("{text} [{name}]\n"),
        },
        Failure::FileIo { text } if text.is_empty() => String::new(),
        Failure::Selection { text }
        | Failure::FileIo { text }
        | Failure::Usage { text }
        | Failure::Refused { text } => {
            format!("{text}\n")
        }
    };
    cause.into_bytes()
}

/// Returns the final line of a run that did not end well, its newline included: scripts match on
/// its shape.
///
/// Wire: protocol/doc/22-output.md#14-exit-codes
pub fn final_line(code: u8, who: &str) -> String {
    let text = match code {
        1 => "syntax or usage error",
        2 => "protocol incompatibility",
        3 => "errors selecting input/output files, dirs",
        4 => "requested action not supported",
        5 => "error starting client-server protocol",
        10 => "error in socket IO",
        11 => "error in file IO",
        12 => "error in rsync protocol data stream",
        13 => "errors with program diagnostics",
        14 => "error in IPC code",
        15 => "sibling process crashed",
        16 => "sibling process terminated abnormally",
        19 => "received SIGUSR1",
        20 => "received SIGINT, SIGTERM, or SIGHUP",
        21 => "waitpid() failed",
        22 => "error allocating core memory buffers",
        23 => "some files/attrs were not transferred (see previous errors)",
        24 => "some files vanished before they could be transferred",
        25 => "the --max-delete limit stopped deletions",
        30 => "timeout in data send/receive",
        35 => "timeout waiting for daemon connection",
        124 => "remote shell failed",
        125 => "remote shell killed",
        126 => "remote command could not be run",
        127 => "remote command not found",
        _ => "unexplained error",
    };
    let kind = if code == 24 { "warning" } else { "error" };
    format!("rsync {kind}: {text} (code {code}) at main.rs(1) [{who}={}]\n", env!("CARGO_PKG_VERSION"))
}

/// Cuts a text that would not fit a message: 5119 bytes, ending in `[...]` before the newline.
pub fn cut(mut text: Vec<u8>) -> Vec<u8> {
    const MOST: usize = 5119;
    if text.len() > MOST {
        let newline = text.last() == Some(&b'\n');
        text.truncate(MOST - b"[...]".len() - usize::from(newline));
        text.extend_from_slice(b"[...]");
        if newline {
            text.push(b'\n');
        }
    }
    debug_assert!(text.find(b"\0").is_none() || text.len() <= MOST);
    text
}

#[cfg(test)]
mod tests {
    use suisei_engine::observe::Class;

    use super::*;

    #[test]
    fn a_failed_call_names_role_path_and_reason() {
        let error = io::Error::from_raw_os_error(2);
        let p = Problem {
            who: Who::Sender,
            class: Class::Transfer,
            what: What::Call { call: "link_stat", path: b"/tmp/x", error: &error },
        };
        assert_eq!(
            problem(&p).as_bstr(),
            b"rsync: [sender] link_stat \"/tmp/x\" failed: No such file or directory (2)\n".as_bstr()
        );
    }

    #[test]
    fn skips_are_shown_from_their_level_on() {
        let mut levels = InfoLevels::default();
        levels.imply_verbosity(1);
        assert_eq!(note(RelPath::new(b"a"), Note::Newer, &levels, Itemizes::No), None);
        levels.imply_verbosity(2);
        assert_eq!(
            note(RelPath::new(b"a"), Note::Newer, &levels, Itemizes::No).unwrap().as_bstr(),
            "a is newer\n"
        );
        assert_eq!(
            note(RelPath::new(b"a"), Note::Exists("uptodate"), &levels, Itemizes::No).unwrap().as_bstr(),
            "a exists\n"
        );
    }
}
