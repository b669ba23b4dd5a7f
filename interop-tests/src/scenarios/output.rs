//! What is said about a run.

use super::Before::{Absent, Older};
use super::{listing, row, Scenario};

pub(super) const ROWS: &[Scenario] = &[
    // What is said.
    row(Absent, "-a --out-format=%i|%n%L|%l|%o|%B"),
    row(Absent, "-a --progress"),
    row(Absent, "-ah --stats --info=name"),
    row(Older, "-a --info=del,name2,skip -u --delete"),
    row(Older, "-ai --remove-source-files"),
    listing("", "src/"),
    listing("-a", "src/"),
    listing("-r --no-h", "src"),
    row(Absent, "-r --list-only"),
];
