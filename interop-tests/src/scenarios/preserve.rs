//! The everyday jobs, and what of a file is kept.

use super::Before::{Absent, Older, Same};
use super::{row, Scenario};

pub(super) const ROWS: &[Scenario] = &[
    // The everyday jobs.
    row(Absent, "-a"),
    row(Older, "-a"),
    row(Same, "-a"),
    row(Absent, "-av"),
    row(Older, "-av"),
    row(Same, "-avv"),
    row(Older, "-ai"),
    row(Same, "-aii"),
    row(Older, "-avn"),
    row(Absent, "-ain --delete"),
    row(Older, "-ain --delete"),
    row(Absent, "-av --stats"),
    row(Older, "-aq --delete"),
    row(Older, "-av --no-inc-recursive"),
    row(Absent, "-avH"),
    row(Older, "-aiH --delete"),
    row(Older, "-aiH --no-inc-recursive"),
    // Parts of -a.
    row(Absent, "-r"),
    row(Older, "-rv"),
    row(Absent, "-rlv"),
    row(Absent, "-rt"),
    row(Absent, "-rpi"),
    row(Absent, "-rlptgoi"),
    row(Older, "-rlptgoDi --numeric-ids"),
    row(Absent, "-ai --no-perms --no-times"),
    row(Older, "-rE"),
    row(Older, "-aiO"),
    row(Older, "-aiJ"),
    row(Older, "-ai --no-links --no-D"),
    row(Absent, "-dv"),
    row(Absent, "-v"),
];
