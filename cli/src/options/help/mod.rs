//! Texts that are shown instead of a transfer: usage, version, words of `--info` and `--debug`.
//!
//! The usage has the options of a first day in front, then all of them, topic by topic.
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

mod version;
mod words;

use std::fmt::Write;

use super::row::{Row, Support};
use super::typed::Show;
use super::{rows, TOPICS};
use crate::output::info;

pub use version::{version, COMPATIBLE};

/// Column of the descriptions.
const COLUMN: usize = 25;

/// What a newcomer needs, in this order: names of rows, or their letters.
pub const FIRST: [&str; 10] = [
    "archive",
    "verbose",
    "dry-run",
    "itemize-changes",
    "delete",
    "exclude",
    "P",
    "compress",
    "rsh",
    "backup",
];

/// How operands are written.
pub const SYNOPSIS: [&str; 2] = ["SOURCE... DESTINATION", "SOURCE"];

/// The forms of a place on another machine, and how it is reached.
pub const PLACES: [(&str, &str); 3] = [
    ("[USER@]HOST:PATH", "over a remote shell"),
    ("[USER@]HOST::MODULE/PATH", "from or to a daemon"),
    ("rsync://[USER@]HOST[:PORT]/MODULE/PATH", "the same"),
];

/// Returns a text.
pub fn text(show: Show) -> String {
    match show {
        Show::Help => usage(),
        Show::Version => version(),
        Show::VersionJson => version::json(),
        Show::InfoHelp => words::table("--info", words::INFO_WORDS, &info::INFO_BY_VERBOSITY),
        Show::DebugHelp => words::table("--debug", words::DEBUG_WORDS, &info::DEBUG_BY_VERBOSITY),
    }
}

/// Returns the usage.
pub fn usage() -> String {
    let mut text = version::first_lines();
    let _ = write!(
        text,
        "\nUsage: rsync [OPTION]... {}\n       rsync [OPTION]... {:24}(lists it)\n\n\
         The sources or the destination may be on another machine:\n",
        SYNOPSIS[0], SYNOPSIS[1]
    );
    for (form, meaning) in PLACES {
        let _ = writeln!(text, "  {form:40}{meaning}");
    }
    text.push_str("\nTo begin with (rsync -av --dry-run SOURCE/ DESTINATION/ changes nothing)\n");
    for row in first() {
        text.push_str(&entry(row));
    }
    text.push_str("\nAll options, by topic; --OPTION is undone by --no-OPTION where that makes sense\n");
    for topic in TOPICS {
        let _ = write!(text, "\n{}\n", topic.title);
        for row in topic.rows.iter().filter(|row| is_shown(row)) {
            text.push_str(&entry(row));
        }
    }
    text
}

/// Returns the rows of [`FIRST`].
pub fn first() -> impl Iterator<Item = &'static Row> {
    FIRST.iter().filter_map(|name| {
        let letter = name.chars().next().filter(|_| name.len() == 1);
        rows().find(|row| match letter {
            Some(_) => row.short == letter,
            None => row.long == *name,
        })
    })
}

/// Whether a user is told of a row: it works, and it is not for another rsync only.
pub fn is_shown(row: &Row) -> bool {
    row.support == Support::Full && !matches!(row.long, "server" | "sender" | "qsort")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_names_each_option_that_works() {
        let text = usage();
        for row in rows() {
            assert_eq!(text.contains(&format!("\n{}", entry(row))), is_shown(row), "{}", row.name());
        }
        assert!(text.contains("\n--recursive, -r          go into directories\n"), "{text}");
        assert!(text.contains("\n--rsh, -e=COMMAND        reach other machines by COMMAND\n"));
    }

    #[test]
    fn ten_options_come_first() {
        assert_eq!(first().count(), FIRST.len());
        let text = usage();
        let place = |heading: &str| text.find(heading).unwrap_or_else(|| panic!("{heading}: {text}"));
        for row in first() {
            let at = place(&format!("\n{}", entry(row)));
            assert!(place("To begin with") < at && at < place("All options, by topic"), "{}", row.name());
        }
    }
}
