//! Other directories as a basis, and similar names.

use std::path::Path;
use std::process::Command;

use super::Before::{Absent, Older, Same};
use super::{row, Scenario};
use crate::peers::Mode;
use crate::trees::{self, bytes, file, set_time, PAST};

/// What else stock says of a refused version hangs on timing.
const REFUSED: &[Mode] = &[Mode::Push];

/// A local run keeps nanoseconds, whatever its version.
const OLD: &[Mode] = &[Mode::Push, Mode::Pull];

pub(super) const ROWS: &[Scenario] = &[
    // One directory, each kind.
    row(Absent, "-ai --compare-dest=../prev").with(prev).also(&["prev"]),
    row(Absent, "-ai --copy-dest=../prev").with(prev).also(&["prev"]),
    row(Absent, "-ai --link-dest=../prev").with(prev).also(&["prev"]),
    row(Absent, "-aii --compare-dest={work}/prev").with(prev),
    row(Absent, "-aii --copy-dest={work}/prev").with(prev),
    row(Absent, "-aii --link-dest={work}/prev").with(prev),
    row(Absent, "-avvW --compare-dest=../prev").with(prev),
    row(Absent, "-avvW --copy-dest=../prev").with(prev),
    row(Absent, "-avvW --link-dest=../prev").with(prev),
    row(Absent, "-aivv --link-dest=../prev").with(prev),
    row(Absent, "-ain --link-dest=../prev").with(prev),
    row(Absent, "-aHni --link-dest=../prev").with(prev),
    // Where something is already.
    row(Older, "-aii --compare-dest=../prev").with(prev).also(&["prev"]),
    row(Older, "-aii --copy-dest=../prev").with(prev),
    row(Older, "-aii --link-dest=../prev").with(prev).also(&["prev"]),
    row(Same, "-aii --compare-dest=../prev").with(prev),
    row(Same, "-aii --link-dest=../prev --delete").with(prev),
    // Other ways to compare and to keep.
    row(Absent, "-rtii --link-dest=../prev").with(prev),
    row(Absent, "-rvvW --copy-dest=../prev").with(prev),
    row(Absent, "-rlii --compare-dest=../prev").with(prev),
    row(Absent, "-rii --no-W --link-dest=../prev").with(prev),
    row(Absent, "-aicc --link-dest=../prev").with(prev),
    row(Absent, "-aiiI --link-dest=../prev").with(prev),
    row(Absent, "-aii --size-only --copy-dest=../prev").with(prev),
    row(Absent, "-aiO --link-dest=../prev").with(prev),
    row(Absent, "-aiiJ --copy-dest=../prev").with(prev),
    // With others.
    row(Absent, "-aHii --link-dest=../prev").with(prev).also(&["prev"]),
    row(Absent, "-aHii --copy-dest=../prev").with(prev),
    row(Older, "-aHvvW --link-dest=../prev --delete").with(prev),
    row(Absent, "-aHi --link-dest=../prev").with(prev_with_links),
    row(Absent, "-aHii --copy-dest=../prev").with(prev_with_links),
    row(Absent, "-ai --link-dest=../prev --link-dest=../prev-2").with(two).also(&["prev", "prev-2"]),
    row(Absent, "-aii --copy-dest=../prev-2 --copy-dest=../prev").with(two),
    row(Absent, "-aii --compare-dest=../gone --compare-dest=../src/one --compare-dest=../prev").with(prev),
    row(Absent, "-ai --no-W --inplace --link-dest=../prev --stats").with(prev),
    row(Older, "-ai --no-W --inplace --copy-dest=../prev").with(prev),
    row(Older, "-aib --link-dest=../prev").with(prev),
    row(Older, "-aib --backup-dir={work}/kept --compare-dest=../prev --delete").with(prev).also(&["kept"]),
    row(Absent, "-ai --no-W --partial-dir=.pp --link-dest=../prev").with(prev),
    row(Older, "-ai --no-W --delay-updates --link-dest=../prev").with(prev),
    row(Absent, "-aiS --copy-dest=../prev").with(prev),
    row(Older, "-aii --existing --link-dest=../prev").with(prev),
    row(Older, "-aivv --ignore-existing --link-dest=../prev").with(|work| {
        prev(work);
        remove(&work.join("dst/dir/inner/deep"));
    }),
    row(Older, "-aiu --compare-dest=../prev").with(prev),
    row(Older, "-aiR --link-dest=../prev --delete-delay").with(prev),
    row(Absent, "-ai --no-W --remove-source-files --link-dest=../prev").with(prev),
    row(Older, "-ai --protocol=28 --link-dest=../prev").with(prev).only(OLD),
    row(Older, "-rti --no-W --protocol=28 --copy-dest=../prev").with(prev).only(OLD),
    row(Absent, "-aHii --protocol=29 --link-dest=../prev").with(prev).only(OLD),
    row(Absent, "-ai --no-W --protocol=30 --compare-dest=../prev").with(prev).only(OLD),
    row(Absent, "-a --protocol=28 --link-dest=../prev --link-dest=../gone").with(prev).only(REFUSED),
    row(Absent, "-a --protocol=28 --inplace --copy-dest=../prev").with(prev).only(REFUSED),
    row(Absent, "-ay --protocol=28").only(REFUSED),
    // Similar names.
    row(Absent, "-ai --no-W -y --stats").with(similar),
    row(Absent, "-rti --no-W -y").with(similar),
    row(Absent, "-ai -y --delete").with(similar),
    row(Absent, "-ai --no-W -y --delete-delay --stats").with(similar),
    row(Absent, "-ai --no-W -y --delete-after --stats").with(similar),
    row(Absent, "-aHi --no-W -y --stats").with(similar),
    row(Absent, "-ai --no-W -yy --stats --link-dest=../prev").with(similar),
    row(Absent, "-rti --no-W -yy --stats --compare-dest=../prev").with(similar),
    row(Absent, "-ai --no-W -y --stats --copy-dest=../prev --protocol=29").with(similar).only(OLD),
    row(Absent, "-ai --no-W -y --inplace --stats").with(similar),
    row(Absent, "-ainy").with(similar),
];

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.is_ok_and(|s| s.success()), "cp copies {}", from.display());
}

fn chmod(path: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("the item is ours");
}

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("the item is ours");
}

/// An earlier copy: some items equal, some with other attributes, values or content, some missing.
fn prev(work: &Path) {
    let prev = work.join("prev");
    copy(&work.join("src"), &prev);
    remove(&prev.join("one"));
    chmod(&prev.join("run.sh"), 0o604);
    let mut large = bytes(3, 300_000);
    large[150_000..150_100].fill(0);
    file(&prev, "large.bin", &large, 0o604);
    set_time(&prev.join("large.bin"), PAST - 500, 0);
    set_time(&prev.join("with space"), PAST - 500, 0);
    file(&prev, "dir/inner/deep/leaf", &bytes(4, 40_000)[..39_000], 0o644);
    remove(&prev.join("dir/inner/other.o"));
    remove(&prev.join("block"));
    std::fs::create_dir(prev.join("block")).expect("the work folder is writable");
    remove(&prev.join("dangling"));
    std::os::unix::fs::symlink("elsewhere", prev.join("dangling")).expect("links can be made");
    set_time(&prev.join("dangling"), PAST - 700, 0);
    set_time(&prev.join("link"), PAST - 700, 0);
    chmod(&prev.join("pipe"), 0o600);
    chmod(&prev.join("empty-dir"), 0o700);
    set_time(&prev.join("empty-dir"), PAST + 10, 77);
    for dir in ["block", "dir/inner/deep", "dir/inner", "dir", "dir-2", ""] {
        set_time(&prev.join(dir), PAST + 10, 77);
    }
    set_time(&prev.join("dir-2"), PAST - 900, 0);
}

/// The same with a group of hard links that is another one there.
fn prev_with_links(work: &Path) {
    prev(work);
    let prev = work.join("prev");
    remove(&prev.join("hard-1"));
    copy(&prev.join("text.txt"), &prev.join("hard-1"));
    remove(&prev.join("dir/hard-2"));
    set_time(&prev.join("dir"), PAST + 10, 77);
    set_time(&prev, PAST + 10, 77);
}

fn two(work: &Path) {
    prev(work);
    trees::older(&work.join("prev-2"));
}

/// Files whose names the source does not have, in the destination and in `prev`.
fn similar(work: &Path) {
    let (src, dst, prev) = (work.join("src"), work.join("dst"), work.join("prev"));
    let leaf = bytes(4, 40_000);
    file(&dst, "dir/inner/deep/leaf.old", &leaf[..35_000], 0o601);
    file(&dst, "large.bin.1", &bytes(3, 299_000), 0o640);
    file(&dst, "large", &bytes(9, 299_000), 0o640);
    file(&dst, "other name", &bytes(1, 2_302), 0o604);
    file(&dst, "empty.1", b"", 0o604);
    file(&prev, "dir/file-2", &bytes(5, 4_500), 0o640);
    file(&prev, "run.sh", b"#!/bin/sh\n", 0o755);
    for dir in ["dir/inner/deep", "dir/inner", "dir"] {
        set_time(&dst.join(dir), PAST + 10, 77);
        if dir == "dir" {
            set_time(&prev.join(dir), PAST + 10, 77);
        }
    }
    file(&src, "late", &bytes(7, 9_000), 0o644);
    file(&src, "lately", &bytes(7, 9_100), 0o644);
    file(&dst, "late", &bytes(7, 8_000), 0o644);
    for dir in [&src, &dst, &prev] {
        set_time(dir, PAST + 10, 77);
    }
}
