//! Rows that run against daemons: what one does differently must not show.

use crate::peers::Mode;

use super::Before::{Absent, Older, Same};
use super::{from, row, Scenario};

const SERVED: &[Mode] = &[Mode::DaemonPush, Mode::DaemonPull];

const fn served(row: Scenario) -> Scenario {
    row.only(SERVED)
}

pub(super) const ROWS: &[Scenario] = &[
    served(row(Absent, "-a --protocol=27")),
    served(row(Older, "-a --protocol=28 --delete")),
    served(row(Older, "-ai --protocol=29 --delete")),
    served(row(Older, "-ai --protocol=30 --delete")),
    served(row(Older, "-ai --protocol=31 --delete")),
    served(row(Older, "-aHi --delete --stats")),
    served(row(Same, "-aii")),
    served(row(Older, "-av --delete")),
    served(row(Older, "-avv --delete")),
    served(row(Older, "-avn --delete")),
    served(row(Older, "-aic --exclude=*.o")),
    served(row(Older, "-aiz --compress-choice=zlibx")),
    served(row(Older, "-aiz --zc=zstd --no-whole-file")),
    served(row(Older, "-ais --delete-delay")),
    served(row(Older, "-aib --suffix=.old")),
    served(row(Older, "-ai --partial-dir=.pp --delay-updates")),
    served(row(Older, "-ai --inplace")),
    served(row(Older, "-ai --numeric-ids --no-inc-recursive")),
    served(row(Older, "-ai --bwlimit=100000 --timeout=30")),
    served(row(Older, "-aR")),
    served(from("src/dir src/text.txt", "-ai")),
    served(from("src/missing src/text.txt", "-ai")),
    served(row(Absent, "-ai --files-from=names")),
    row(Older, "-ai --update --existing").served(),
];
