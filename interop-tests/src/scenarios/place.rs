//! How items get into place: devices, links, pruned directories.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::Before::{Absent, Older};
use super::{row, Scenario};
use crate::peers::Mode;
use crate::trees::{directory_times, file, is_root, set_time, PAST};

pub(super) const ROWS: &[Scenario] = &[
    // Directories that hold nothing.
    row(Older, "-aim"),
    row(Older, "-aim --delete"),
    row(Absent, "-avm --stats --exclude=leaf --exclude=other.o"),
    row(Older, "-rm --delete-excluded --exclude=*.o"),
    row(Older, "-aim --filter=P_nested/ --delete"),
    row(Absent, "-aim --include=*/ --include=*.o --exclude=*"),
    row(Older, "-aimH --protocol=29"),
    row(Older, "-dim"),
    row(Absent, "-am --list-only"),
    row(Absent, "-am --protocol=28").only(&[Mode::Push]),
    // Directories without recursion, as old servers need it.
    row(Older, "-aim --old-dirs"),
    row(Older, "--old-d -vpl --delete"),
    // Devices.
    row(Older, "-ai --drop-D"),
    row(Older, "-ri --devices --drop-D --delete"),
    row(Absent, "-ai --copy-devices"),
    row(Older, "-ri --copy-devices -c --no-D"),
    row(Older, "-ai --write-devices").with(devices),
    row(Older, "-aiI --write-devices --no-W").with(devices),
    row(Older, "-rin --write-devices --size-only").with(devices),
    row(Absent, "-ai --copy-devices --remove-source-files"),
    // Sources that go.
    row(Older, "-aiH --remove-sent-files --info=remove"),
    row(Older, "-aiH --remove-source-files --info=remove"),
    row(Older, "-ai --remove-sent-files --protocol=28 --info=remove"),
    // Munged symlinks.
    row(Older, "-aii --munge-links").with(munged),
    row(Older, "-aiH --munge-links --safe-links").with(munged),
    row(Older, "-ai --munge-links --copy-unsafe-links").with(munged),
    row(Older, "-aibK --munge-links --delete").with(munged),
    row(Older, "-a --munge-links --list-only").with(munged),
    row(Older, "-ai -M--munge-links").with(munged).only(&[Mode::Push, Mode::Pull]),
];

/// A file stands where the destination has a device.
fn devices(work: &Path) {
    file(&work.join("src"), "node", b"content", 0o644);
    if is_root() {
        let (mode, null) = (rustix::fs::Mode::from_raw_mode(0o600), rustix::fs::makedev(1, 3));
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, work.join("dst/node"), kind, mode, null)
            .expect("root makes devices");
        set_time(&work.join("dst/node"), PAST, 0);
    }
    directory_times(work);
}

/// Symlinks with and without the prefix, at both ends.
fn munged(work: &Path) {
    let links: [(&str, &str); 5] = [
        ("src/munged", "/rsyncd-munged/text.txt"),
        ("src/absolute", "/abs"),
        ("src/dir/up", "../munged"),
        ("dst/munged", "text.txt"),
        ("dst/dangling", "/rsyncd-munged/nowhere/at all"),
    ];
    for (name, target) in links {
        symlink(target, work.join(name)).expect("links can be made");
        set_time(&work.join(name), PAST, 0);
    }
    directory_times(work);
}
