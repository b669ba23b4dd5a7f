//! Paths that the operator names, and the symlinks on them.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::Before::Older;
use super::{row, Scenario};
use crate::peers::Mode;
use crate::trees::{directory_times, is_root, set_time, PAST};

/// A row with symlinks of our own, and one with those of somebody else.
pub(super) const ROWS: &[Scenario] = &[
    row(Older, "-ai --backup-dir={work}/link/b").with(own).also(&["real"]),
    row(Older, "-ai --temp-dir={work}/link").with(own),
    row(Older, "-ai --delay-updates --partial-dir={work}/link").with(own).also(&["real", "link"]),
    row(Older, "-ai --files-from=link/names").with(own),
    row(Older, "-ai --exclude-from=link/rules --filter=:_{work}/link/rules").with(own),
    few("-aib --temp-dir={work}/link --suffix=.old").with(foreign),
    row(Older, "-ai --delay-updates --partial-dir=sub --backup-dir={work}/link/b").with(foreign),
    row(Older, "-aic --files-from=link/names").with(foreign),
    row(Older, "-aic --exclude-from=link/rules").with(foreign),
    row(Older, "-aic --filter=._link/rules").with(foreign),
    row(Older, "-aic --filter=:_{work}/link/rules").with(foreign),
    // A server is not told: it ends at its first backup, and how much was said by then varies.
    row(Older, "-ai --insecure-links --backup-dir={work}/link/b")
        .with(foreign)
        .also(&["real"])
        .only(&[Mode::Local, Mode::Pull]),
    row(Older, "-ai --insecure-links --files-from=link/names -T {work}/link").with(foreign),
    row(Older, "-ai --confine-root={work}/dst --backup-dir=kept --delete").with(own),
    few("-ai --confine-root={work}/dst --delay-updates --partial-dir={work}/real").with(own),
    row(Older, "-ai --confine-root={work}/dst --files-from=names").with(own),
    row(Older, "-ai --confine-root={work}/src --files-from=names").with(own),
    row(Older, "-ai --confine-root=dst"),
    row(Older, "-ai --confine-root=/tmp --insecure-links"),
];

/// With names that every locale shows alike: a forked receiver of stock's escapes others.
const fn few(options: &'static str) -> Scenario {
    Scenario { sources: "src/text.txt src/one src/dir-2", ..row(Older, options) }
}

fn own(work: &Path) {
    std::fs::create_dir(work.join("real")).expect("the work folder is writable");
    std::fs::write(work.join("real/names"), "text.txt\nnew/none\n").expect("the work folder is writable");
    std::fs::write(work.join("real/rules"), "- *.o\n").expect("the work folder is writable");
    symlink("real", work.join("link")).expect("links can be made");
    for name in ["real/names", "real/rules", "link"] {
        set_time(&work.join(name), PAST, 0);
    }
    directory_times(work);
}

fn foreign(work: &Path) {
    own(work);
    if is_root() {
        let (uid, gid) = (Some(1234), Some(1234));
        std::os::unix::fs::lchown(work.join("link"), uid, gid).expect("root gives links away");
    }
}
