//! Options that change the road, and words that are refused.

use super::Before::{Absent, Older, Same};
use super::{from, row, Scenario};
use crate::peers::Mode;

pub(super) const ROWS: &[Scenario] = &[
    // Options that change the road.
    row(Absent, "-ai --bwlimit=100000"),
    row(Absent, "-ai --timeout=30"),
    row(Older, "-ais"),
    row(Absent, "-ai --old-args"),
    row(Older, "-ai --protect-args --delete --suffix=.s -b"),
    row(Absent, "-ai --trust-sender --no-motd"),
    row(Absent, "-a4 --motd --blocking-io"),
    row(Absent, "-a6 --address=127.0.0.1 --sockopts=TCP_NODELAY"),
    row(Older, "-ai --inc-recursive --no-i-r --i-r"),
    row(Older, "-ai --protocol=31 --delete"),
    row(Older, "-rlpti --protocol=30 --del").only(&[Mode::Push, Mode::Pull]),
    row(Older, "-aM--no-times -i"),
    row(Absent, "-avM-v"),
    row(Older, "-ai -M--bwlimit=100000"),
    // Options that others leave alone here.
    row(Older, "-rli --devices --specials --super"),
    row(Older, "-rlDi --no-super --numeric-ids --no-numeric-ids"),
    row(Absent, "-ai --copy-unsafe-links"),
    row(Older, "-aiK --delete"),
    from("src/dir/inner/deep/leaf", "-aiR --no-implied-dirs --implied-dirs"),
    from("src/dir/inner/deep/leaf", "-aiR --no-i-d --i-d"),
    row(Older, "-ai --ignore-non-existing"),
    row(Older, "-ai --preallocate --no-W"),
    row(Older, "-ai --del --ignore-errors"),
    from("src/missing src/one", "-ai --ignore-missing-args"),
    from("src/missing src/one", "-ai --delete-missing-args"),
    row(Older, "-aiF --delete"),
    row(Older, "-aiFF --delete"),
    row(Older, "-aiC --delete"),
    row(Older, "-ai --cvs-exclude --delete-excluded"),
    row(Older, "-aic --checksum-choice=xxh128,md5 --no-W"),
    row(Older, "-ai --old-compress --no-W"),
    row(Older, "-ai --new-compress --no-W"),
    row(Older, "-ai --compress-choice=zstd --compress-level=3 --no-W"),
    row(Older, "-aiz --skip-compress=txt --no-W"),
    row(Absent, "-a --mkpath").to("dst/new/deeper/"),
    row(Same, "-aN"),
    // What cannot be.
    row(Absent, "--no-such-option"),
    row(Absent, "-a --max-size=many"),
    row(Absent, "-a --inplace --partial-dir=.pp"),
];
