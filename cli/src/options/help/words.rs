//! The tables that `--info=help` and `--debug=help` show.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use std::fmt::Write;

pub(super) const INFO_WORDS: &[(&str, &str)] = &[
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

pub(super) const DEBUG_WORDS: &[(&str, &str)] = &[
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

/// Returns the table of one option's words.
pub(super) fn table(option: &str, meanings: &[(&str, &str)], levels: &[&str]) -> String {
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
