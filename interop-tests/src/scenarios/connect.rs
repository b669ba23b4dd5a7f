//! Options that change the road, and words that are refused.

use super::Before::{Absent, Older};
use super::{row, Scenario};

pub(super) const ROWS: &[Scenario] = &[
    // Options that change the road.
    row(Absent, "-ai --bwlimit=100000"),
    row(Absent, "-ai --timeout=30"),
    row(Older, "-ais"),
    row(Absent, "-ai --old-args"),
    // What cannot be.
    row(Absent, "--no-such-option"),
    row(Absent, "-a --max-size=many"),
    row(Absent, "-a --inplace --partial-dir=.pp"),
];
