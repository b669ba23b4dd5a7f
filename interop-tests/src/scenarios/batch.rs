//! Batch files, limits and clocks.

use std::path::Path;
use std::process::Command;

use super::Before::{Absent, Older, Same};
use super::{row, Scenario};
use crate::peers::Mode;

/// Records, with stock, what brings `dst` up to date.
fn recorded(work: &Path) {
    let script =
        "cp -a dst ref 2>/dev/null; exec /usr/bin/rsync -a --no-i-r --delete --write-batch=batch src/ ref/";
    let status = Command::new("sh").args(["-c", script]).current_dir(work).status();
    assert!(status.is_ok_and(|s| s.success()), "stock records a run");
}

/// The same, of data that is compressed.
fn recorded_deflated(work: &Path) {
    let script = "cp -a dst ref; exec /usr/bin/rsync -az --delete --write-batch=batch src/ ref/";
    let status = Command::new("sh").args(["-c", script]).current_dir(work).status();
    assert!(status.is_ok_and(|s| s.success()), "stock records a run");
}

const fn replay(scenario: Scenario) -> Scenario {
    scenario.only(&[Mode::Local])
}

pub(super) const ROWS: &[Scenario] = &[
    row(Older, "-ai --write-batch={work}/batch"),
    row(Older, "-aiv --delete --write-batch={work}/batch"),
    row(Older, "-aic --no-i-r --write-batch={work}/batch"),
    row(Absent, "-aiz --write-batch={work}/batch"),
    row(Older, "-ai --protocol=29 --write-batch={work}/batch").only(&[Mode::Push, Mode::Pull]),
    row(Older, "-aHi --exclude=*.o --filter=P_* --delete --write-batch={work}/batch"),
    row(Older, "-aiv --delete --only-write-batch={work}/batch"),
    row(Older, "-ai --protocol=30 --only-write-batch={work}/batch").only(&[Mode::Push, Mode::Pull]),
    row(Older, "-ain --write-batch={work}/batch"),
    row(Older, "-aiv -M--write-batch={work}/ignored").only(&[Mode::Push, Mode::Pull]),
    replay(row(Older, "-ai --no-i-r --delete --read-batch={work}/batch").with(recorded)),
    replay(row(Older, "-aivv --no-i-r --read-batch={work}/batch").with(recorded)),
    replay(row(Older, "-rv --no-i-r --read-batch={work}/batch").with(recorded)),
    replay(row(Older, "-ain --no-i-r --delete-after --read-batch={work}/batch").with(recorded)),
    replay(row(Same, "-ai --no-i-r --read-batch={work}/batch").with(recorded)),
    replay(row(Older, "-aiz --read-batch={work}/batch").with(recorded_deflated)),
    replay(row(Older, "-ab --suffix=.old --read-batch={work}/batch").with(recorded_deflated)),
];
