//! How content is described, summed, compressed and placed.

use super::Before::{Absent, Older};
use super::{row, Scenario};

pub(super) const ROWS: &[Scenario] = &[
    // How files are described and placed.
    row(Older, "-ai --no-whole-file"),
    row(Older, "-aiW"),
    row(Older, "-ai --no-W -B 1000"),
    row(Older, "-ai --inplace --no-W"),
    row(Older, "-ai --append"),
    row(Older, "-ai --append-verify"),
    row(Older, "-ai --partial"),
    row(Older, "-ai --partial-dir=.pp"),
    row(Older, "-ai --delay-updates"),
    row(Older, "-ai --temp-dir={work}/tmp")
        .with(|work| std::fs::create_dir(work.join("tmp")).expect("the work folder is writable")),
    row(Older, "-ab --delete"),
    row(Older, "-ai --backup-dir={work}/kept --delete").also(&["kept"]),
    row(Older, "-aiS"),
    row(Absent, "-a --fsync"),
    // Compression and sums.
    row(Older, "-aiz"),
    row(Older, "-aizz"),
    row(Older, "-ai --zc=zlib --no-W"),
    row(Older, "-ai --zc=zlibx --zl=9"),
    row(Older, "-ai --zc=zstd --no-W"),
    row(Older, "-ai --zc=lz4 --no-W"),
    row(Older, "-aic --cc=md5 --no-W"),
    row(Older, "-aic --cc=md4 --no-W"),
    row(Older, "-aic --cc=sha1 --no-W"),
    row(Older, "-aic --cc=xxh64 --no-W"),
    row(Older, "-aic --cc=xxh3 --no-W"),
    row(Older, "-ai --checksum-seed=7 --no-W"),
];
