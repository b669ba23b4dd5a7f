//! The table: option sets, each run local, push and pull with stock at either end.

use std::path::Path;

use crate::peers::Mode;
use crate::trees;

/// What stands at the destination before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing, not even the directory.
    Absent,
    /// An earlier, different state.
    Older,
    /// The same tree, copied with everything.
    Same,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The options, separated by single spaces: also the row's name. `{work}` is the folder.
    pub options: &'static str,
    /// What stands at the destination.
    pub before: Before,
    /// Source arguments, separated by single spaces.
    pub sources: &'static str,
    /// The destination; empty for a listing.
    pub destination: &'static str,
}

const ALL: &[Mode] = &[Mode::Local, Mode::Push, Mode::Pull];

impl Scenario {
    /// Returns the modes in which this row makes sense.
    pub fn modes(&self) -> &'static [Mode] {
        // A listing has no destination, so nothing to push to.
        if self.destination.is_empty() {
            &[Mode::Local, Mode::Pull]
        } else {
            ALL
        }
    }

    /// Makes what the options refer to beside `src` and `dst`.
    pub fn prepare(work: &Path) {
        std::fs::write(work.join("names"), "dir/inner\n# not a name\n\ntext.txt\ncaf\u{e9}\nmissing\n")
            .expect("writable");
        std::fs::write(work.join("names0"), "dir/file\0text.txt\0").expect("writable");
        std::fs::write(work.join("rules"), "# objects\n*.o\n\n; and more\nlarge.bin\n").expect("writable");
        std::fs::write(work.join("keep"), "+ */\n+ *.o\n- *\n").expect("writable");
        std::fs::create_dir(work.join("tmp")).expect("writable");
        trees::file(&work.join("src"), ".rules", b"- *.sh\n", 0o644);
        trees::set_time(&work.join("src"), trees::PAST + 10, 77);
    }
}

const fn row(before: Before, options: &'static str) -> Scenario {
    Scenario { options, before, sources: "src/", destination: "dst/" }
}

const fn from(sources: &'static str, options: &'static str) -> Scenario {
    Scenario { options, before: Absent, sources, destination: "dst/" }
}

const fn listing(options: &'static str, sources: &'static str) -> Scenario {
    Scenario { options, before: Absent, sources, destination: "" }
}

use Before::{Absent, Older, Same};

/// The rows.
pub const SCENARIOS: &[Scenario] = &[
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
    // Deletion.
    row(Older, "-av --delete"),
    row(Older, "-ai --delete-before"),
    row(Older, "-ai --delete-during"),
    row(Older, "-ai --delete-delay"),
    row(Older, "-ai --delete-after"),
    row(Older, "-ai --delete --exclude=*.o"),
    row(Older, "-ai --delete-excluded --exclude=*.o"),
    row(Older, "-ai --delete --max-delete=2"),
    row(Older, "-ai --force"),
    row(Older, "-rdi --delete"),
    // When a file counts as the same.
    row(Older, "-aic"),
    row(Same, "-aic"),
    row(Older, "-aiI"),
    row(Older, "-ai --size-only"),
    row(Older, "-aiu"),
    row(Older, "-ai --existing"),
    // Stock gives a file that stands where a directory would go the time of that directory.
    row(Older, "-ai --ignore-existing --exclude=deep"),
    row(Absent, "-ai --max-size=5000"),
    row(Absent, "-ai --min-size=2K"),
    row(Older, "-ai --modify-window=2"),
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
    row(Older, "-ai --temp-dir={work}/tmp"),
    row(Older, "-ab --delete"),
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
    // What is selected.
    row(Absent, "-av --exclude=*.o --exclude=/dir/inner"),
    row(Absent, "-av --include=*/ --include=*.o --exclude=*"),
    row(Absent, "-av --exclude-from=rules"),
    row(Absent, "-av --include-from=keep --exclude=*"),
    row(Absent, "-avx"),
    row(Absent, "-avL --exclude=dangling --exclude=unsafe"),
    row(Absent, "-avk"),
    row(Absent, "-av --safe-links"),
    row(Absent, "-av --files-from=names"),
    row(Absent, "-av --files-from=names0 -0"),
    row(Absent, "-avr --files-from=names"),
    from("src", "-av"),
    from("src/dir src/text.txt", "-av"),
    from("src/dir/inner src/dir-2", "-avR"),
    from("src/./dir/inner/deep", "-avR"),
    from("src/dir/inner/deep/leaf", "-aiR --no-implied-dirs"),
    from("src/text.txt", "-ai"),
    from("src/missing src/one", "-av"),
    from("src/missing", "-a"),
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
