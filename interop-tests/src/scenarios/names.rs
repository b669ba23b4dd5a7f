//! Names in other charsets.

use super::Before::{Absent, Older, Same};
use super::{listing, row, Scenario};
use crate::peers::Mode;

pub(super) const ROWS: &[Scenario] = &[
    // Stock ends with a protocol error where a receiving side cannot convert a directory's name.
    row(Absent, "-ai --iconv=utf8,latin1 --exclude=\u{65e5}\u{672c}\u{8a9e}"),
    row(Older, "-ai --iconv=utf8,latin1 --exclude=\u{65e5}\u{672c}\u{8a9e} --delete"),
    row(Older, "-ai --iconv=utf8,iso-8859-15 --exclude=\u{65e5}\u{672c}\u{8a9e} --exclude=bad* --delete"),
    row(
        Older,
        "-aiH --iconv=utf8,cp866 --exclude=\u{65e5}\u{672c}\u{8a9e} --exclude=caf* --no-inc-recursive",
    ),
    row(Absent, "-ai --iconv=utf8,cp932 --exclude=caf*").only(&[Mode::Local, Mode::Push]),
    row(Absent, "-aiH --iconv=utf8,utf8 --exclude=bad*"),
    row(Older, "-aiH --iconv=utf8,utf8 --exclude=bad* --delete"),
    row(Same, "-aii --iconv=. --exclude=bad*"),
    row(Older, "-ai --iconv=utf8 --exclude=bad* --protocol=29 --delete"),
    row(Older, "-ai --iconv=utf8 --exclude=bad* --protocol=30 --delete"),
    row(Absent, "-ai --iconv=latin1,utf8 --exclude=bad*").only(&[Mode::Local, Mode::Push]),
    row(Absent, "-ais --iconv=utf8,latin1 --files-from=names"),
    // In a pull the names are refused, and stock's sender may or may not see its peer go.
    row(Absent, "-ai --iconv=utf8,latin1 --files-from=names").only(&[Mode::Local, Mode::Push]),
    row(Older, "-ai --iconv=-"),
    row(Older, "-ai --no-iconv"),
    row(Absent, "-a --iconv=utf8,latin1 --exclude=\u{65e5}\u{672c}\u{8a9e} --debug=iconv")
        .only(&[Mode::Push, Mode::Pull]),
    listing("-r --iconv=utf8,utf8", "src/"),
];
