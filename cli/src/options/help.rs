//! Texts that are shown instead of a transfer: usage, version, words of `--info` and `--debug`.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use std::fmt::Write;

use suisei_protocol::session::Version;

use super::row::{Row, Support};
use super::typed::Show;
use super::TOPICS;
use crate::output::info;

/// The release of rsync whose options and output we follow: scripts ask for it.
const COMPATIBLE: &str = "3.5.0";

/// Column of the descriptions.
const COLUMN: usize = 25;

const INFO_WORDS: &[(&str, &str)] = &[
    ("BACKUP", "files that were backed up"),
    ("COPY", "local copies on the receiving side that failed"),
    ("DEL", "deletions on the receiving side"),
    ("FLIST", "sending and receiving of file lists (levels 1-2)"),
    ("MISC", "odds and ends (levels 1-2)"),
    ("MOUNT", "mount points that were found or skipped"),
    ("NAME", "1) names that are updated, 2) names that are up to date"),
    ("NONREG", "non-regular files that are skipped (default 1)"),
    ("PROGRESS", "1) progress of each file, 2) progress of the whole transfer"),
    ("REMOVE", "files removed on the sending side"),
    ("SKIP", "files that an option skips (levels 1-2)"),
    ("STATS", "statistics at the end (levels 1-3)"),
    ("SYMSAFE", "unsafe symlinks"),
];

const DEBUG_WORDS: &[(&str, &str)] = &[
    ("ACL", "ACLs"),
    ("BACKUP", "backups (levels 1-2)"),
    ("BIND", "binding of sockets"),
    ("CHDIR", "changes of the current directory"),
    ("CONNECT", "connections (levels 1-2)"),
    ("CMD", "commands that are run (levels 1-2)"),
    ("DEL", "deletions (levels 1-3)"),
    ("DELTASUM", "matching of blocks (levels 1-4)"),
    ("DUP", "duplicate names"),
    ("EXIT", "the end of a process (levels 1-3)"),
    ("FILTER", "decisions of filters (levels 1-3)"),
    ("FLIST", "file lists (levels 1-4)"),
    ("FUZZY", "similar names (levels 1-2)"),
    ("GENR", "the generator"),
    ("HASH", "hash tables"),
    ("HLINK", "hard links (levels 1-3)"),
    ("ICONV", "conversion of names (levels 1-2)"),
    ("IO", "input and output (levels 1-4)"),
    ("NSTR", "negotiation of algorithms (levels 1-2)"),
    ("OWN", "owners and groups (levels 1-2)"),
    ("PROTO", "versions of the protocol"),
    ("RECV", "the receiver"),
    ("SEND", "the sender"),
    ("TIME", "setting of times (levels 1-2)"),
];

/// Returns a text.
pub fn text(show: Show) -> String {
    match show {
        Show::Help => usage(),
        Show::Version => version(),
        Show::InfoHelp => words("--info", INFO_WORDS, &info::INFO_BY_VERBOSITY),
        Show::DebugHelp => words("--debug", DEBUG_WORDS, &info::DEBUG_BY_VERBOSITY),
    }
}

/// Returns the version. The first line is the one that programs look for.
pub fn version() -> String {
    format!(
        "rsync  version {COMPATIBLE}  protocol version {protocol}\n\
         suisei {ours}, an independent implementation in Rust. Licence: MIT OR Apache-2.0.\n\
         Capabilities:\n    \
         64-bit files, 64-bit inums, 64-bit timestamps, 64-bit long ints, socketpairs,\n    \
         symlinks, symtimes, hardlinks, hardlink-specials, hardlink-symlinks, IPv6,\n    \
         atimes, no batchfiles, inplace, append, no ACLs, no xattrs, optional\n    \
         secluded-args, no iconv, prealloc, no stop-at, no crtimes\n\
         Checksum list:\n    xxh128 xxh3 xxh64 (xxhash) md5 md4 sha1 none\n\
         Compress list:\n    zstd lz4 zlibx zlib none\n\
         Daemon auth list:\n    sha512 sha256 sha1 md5 md4\n",
        protocol = Version::NEWEST,
        ours = env!("CARGO_PKG_VERSION"),
    )
}

/// Returns the usage.
pub fn usage() -> String {
    let mut text = version();
    text.push_str(
        "\nUsage: rsync [OPTION]... SOURCE... DESTINATION\n       \
         rsync [OPTION]... SOURCE            (lists it)\n\n\
         The sources or the destination may be on another machine:\n  \
         [USER@]HOST:PATH                        over a remote shell\n  \
         [USER@]HOST::MODULE/PATH                from or to a daemon\n  \
         rsync://[USER@]HOST[:PORT]/MODULE/PATH  the same\n",
    );
    for topic in TOPICS {
        let _ = write!(text, "\n{}\n", topic.title);
        for row in topic.rows.iter().filter(|row| row.support == Support::Full && !is_internal(row)) {
            text.push_str(&entry(row));
        }
    }
    text
}

fn is_internal(row: &Row) -> bool {
    matches!(row.long, "server" | "sender")
}

fn entry(row: &Row) -> String {
    let mut names = String::new();
    if !row.long.is_empty() {
        let _ = write!(names, "--{}", row.long);
    }
    if let Some(letter) = row.short {
        let comma = if names.is_empty() { "" } else { ", " };
        let _ = write!(names, "{comma}-{letter}");
    }
    if let Some(value) = row.value {
        let _ = write!(names, "={value}");
    }
    if names.len() < COLUMN {
        format!("{names:COLUMN$}{}\n", row.help)
    } else {
        format!("{names}\n{:COLUMN$}{}\n", "", row.help)
    }
}

fn words(option: &str, meanings: &[(&str, &str)], levels: &[&str]) -> String {
    let mut text =
        String::from("Use OPT or OPT1 for level 1 output, OPT2 for level 2, etc.; OPT0 silences.\n\n");
    for (word, meaning) in meanings {
        let _ = writeln!(text, "{word:10} {meaning}");
    }
    let own = [
        ("ALL", format!("Set all {option} options (e.g. all4)")),
        ("NONE", format!("Silence all {option} options (same as all0)")),
        ("HELP", "Output this help message".to_owned()),
    ];
    text.push('\n');
    for (word, meaning) in own {
        let _ = writeln!(text, "{word:10} {meaning}");
    }
    text.push_str("\nOptions added at each level of verbosity:\n");
    for (level, list) in levels.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(text, "{level}) {list}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_version_where_they_look() {
        let text = version();
        let first = text.lines().next().unwrap();
        assert_eq!(first, format!("rsync  version {COMPATIBLE}  protocol version 32"));
        assert!(text.lines().nth(1).unwrap().starts_with("suisei "));
    }

    #[test]
    fn the_usage_names_each_option_that_works() {
        let text = usage();
        assert!(text.contains("\n--recursive, -r          go into directories\n"), "{text}");
        assert!(text.contains("\n--rsh, -e=COMMAND        reach other machines by COMMAND\n"));
        assert!(!text.contains("--fuzzy"));
    }
}
