//! Which files take part, and what is deleted.

use super::Before::{Absent, Older, Same};
use super::{from, row, Scenario};

pub(super) const ROWS: &[Scenario] = &[
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
];
