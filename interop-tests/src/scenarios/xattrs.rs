//! Extended attributes, and privileged ones kept in them.

use std::path::Path;

use rustix::fs::{lsetxattr, XattrFlags};

use super::Before::{Absent, Older, Same};
use super::{row, Scenario};
use crate::peers::Mode;
use crate::trees;

/// On one machine stock forgets nanoseconds below version 31.
const REMOTE: &[Mode] = &[Mode::Push, Mode::Pull];

/// Adds attributes to some items of the source, and others to the same items of a destination.
fn some(work: &Path) {
    let (src, dst) = (work.join("src"), work.join("dst"));
    set(&src, "large.bin", "user.short", b"abc");
    set(&src, "large.bin", "user.long", &[b'L'; 100]);
    // The same list for others, one of them without data to send.
    for name in ["one", "block"] {
        set(&src, name, "user.short", b"abc");
        set(&src, name, "user.long", &[b'L'; 100]);
    }
    set(&src, "empty", "user.empty", b"");
    set(&src, "read-only", "user.note", b"r");
    set(&src, "with space", "user.a", &[b'A'; 32]);
    set(&src, "with space", "user.b", &[b'B'; 33]);
    set(&src, "dir", "user.dir", &[b'D'; 300]);
    set(&src, "dir/inner", "user.dir", b"inner");
    set(&src, "dir/file", "user.binary", b"\0\x01\xff");
    set(&src, "run.sh", "user.rsync.%stat", b"100644 0,0 7:8");
    set(&src, "run.sh", "user.rsync.trusted.x", b"kept");
    if trees::is_root() {
        set(&src, "link", "trusted.link", b"of the link");
        set(&src, "pipe", "trusted.pipe", b"of the pipe");
        set(&src, "null", "trusted.null", &[b'N'; 64]);
        set(&src, "one", "trusted.one", b"1");
        set(&src, "dir-2", "security.dir", b"2");
    }
    if dst.exists() {
        set(&dst, "one", "user.long", &[b'L'; 100]);
        set(&dst, "empty", "user.empty", b"no more");
        set(&dst, "with space", "user.b", &[b'b'; 33]);
        set(&dst, "with space", "user.extra", b"to be removed");
        set(&dst, "dir", "user.old", b"to be removed");
        set(&dst, "dir-2", "user.old", b"to be removed");
    }
}

fn set(root: &Path, name: &str, attribute: &str, value: &[u8]) {
    lsetxattr(root.join(name), attribute, value, XattrFlags::empty()).expect("attributes can be set");
}

/// Everything is there and equal but for attributes.
fn changed(work: &Path) {
    some(work);
    let dst = work.join("dst");
    set(&dst, "large.bin", "user.short", b"abc");
    set(&dst, "large.bin", "user.long", &[b'l'; 100]);
    set(&dst, "read-only", "user.note", b"w");
    set(&dst, "dir/file", "user.more", &[b'M'; 50]);
}

/// The same, with attributes of files that have several names: without `-H` it is chance which of
/// these is seen to differ.
fn linked(work: &Path) {
    changed(work);
    set(&work.join("src"), "text.txt", "user.short", b"abc");
    set(&work.join("src"), "text.txt", "user.long", &[b'L'; 100]);
    set(&work.join("dst"), "text.txt", "user.long", &[b'l'; 100]);
}

/// The same before a first copy.
fn linked_source(work: &Path) {
    some(work);
    set(&work.join("src"), "text.txt", "user.only", &[b'T'; 100]);
}

/// A source whose privileged metadata is stored: owners, a device, a symlink, a directory.
fn stored(work: &Path) {
    let src = work.join("src");
    some(work);
    trees::file(&src, "kept-device", b"", 0o600);
    trees::file(&src, "kept-link", b"text.txt", 0o600);
    trees::file(&src, "kept-pipe", b"", 0o600);
    set(&src, "kept-device", "user.rsync.%stat", b"20644 1,5 0:0");
    set(&src, "kept-link", "user.rsync.%stat", b"120777 0,0 12:34");
    set(&src, "kept-pipe", "user.rsync.%stat", b"10640 0,0 0:0");
    set(&src, "block", "user.rsync.%stat", b"104711 0,0 1234:4321");
    set(&src, "dir", "user.rsync.%stat", b"41777 0,0 77:88");
    set(&src, "dir/file", "user.rsync.security.x", b"of the file");
    trees::set_time(&src, trees::PAST + 10, 77);
}

pub(super) const ROWS: &[Scenario] = &[
    row(Absent, "-aX").with(some),
    row(Absent, "-aXi").with(some),
    row(Older, "-aXi").with(some),
    row(Same, "-aXii").with(some),
    row(Same, "-aXi").with(changed),
    row(Same, "-aXi --no-inc-recursive").with(changed),
    row(Older, "-aXXi").with(some),
    row(Absent, "-aXHi").with(linked_source),
    row(Older, "-aXHi --delete").with(linked_source),
    row(Same, "-aXHi").with(linked),
    row(Same, "-aXin").with(changed),
    row(Absent, "-aXi --no-links --no-D").with(some),
    row(Same, "-rXi").with(changed),
    row(Older, "-aXLi").with(some),
    row(Older, "-aXi --inplace --no-whole-file").with(some),
    row(Older, "-aXi --no-whole-file").with(some),
    row(Older, "-aXi --delay-updates").with(some),
    row(Older, "-aXbi").with(some),
    row(Older, "-aXbi --inplace").with(some),
    row(Older, "-aXRi --protocol=30").with(some).only(REMOTE),
    row(Same, "-aXi --protocol=30").with(changed).only(REMOTE),
    row(Same, "-aXi --protocol=31 --no-inc-recursive").with(changed),
    row(Older, "-aXi --filter=-x_*.long").with(some),
    row(Same, "-aXi --filter=-xr_user.extra --filter=-xs_*.short --delete").with(changed),
    row(Older, "-aXi --filter=+x_user.* --filter=-x_*").with(some),
    row(Same, "-aXvv").with(changed),
    row(Same, "-aXi --size-only -J").with(changed),
    row(Absent, "-aX --protocol=29").only(REMOTE),
    row(Absent, "-ai --fake-super"),
    row(Older, "-ai --fake-super --delete"),
    row(Same, "-aii --fake-super"),
    row(Absent, "-aXi --fake-super").with(some),
    row(Older, "-aXHi --fake-super").with(linked_source),
    row(Same, "-aXi --fake-super").with(changed),
    row(Absent, "-aXi --fake-super --numeric-ids").with(stored),
    row(Absent, "-ai -M--fake-super").with(stored).only(REMOTE),
    row(Older, "-aXi -M--fake-super").with(some).only(REMOTE),
    row(Absent, "-aX -M--fake-super --no-inc-recursive").with(stored).only(REMOTE),
    row(Older, "-rlptgoi --fake-super"),
    row(Older, "-abi --fake-super"),
    row(Absent, "-aXX --fake-super"),
    row(Same, "-aXvv --ignore-existing").with(changed),
];
