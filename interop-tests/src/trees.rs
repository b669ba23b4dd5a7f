//! Trees to transfer: small ones with one of everything, and large regular ones.

use std::ffi::OsStr;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

use rustix::fs::{chownat, mknodat, utimensat, AtFlags, FileType, Gid, Mode, Timespec, Timestamps, Uid, CWD};

/// The time that built items carry: 2024-01-02, with nanoseconds.
pub const PAST: i64 = 1_704_164_645;

/// Returns `len` bytes that depend on `seed` and do not compress to nothing.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Half of the words repeat, so that compressors find something.
        let word = if state & 1 == 0 { 0x6F_6C_6C_65_68_20_21_0A } else { state };
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Writes a file with the given content, mode and a time in the past.
pub fn file(root: &Path, name: impl AsRef<OsStr>, content: &[u8], mode: u32) {
    let path = root.join(name.as_ref());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("the work folder is writable");
    }
    fs::write(&path, content).expect("the work folder is writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    set_time(&path, PAST, 123_456_789);
}

/// Sets the modification time of an item itself.
pub fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("the item is ours");
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn pipe(root: &Path, name: &str) {
    mknodat(CWD, root.join(name), FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("pipes can be made");
    set_time(&root.join(name), PAST, 0);
}

/// Builds a small tree with one of everything that a user can make, and with devices and foreign
/// owners as root.
pub fn mixed(root: &Path) {
    fs::create_dir_all(root).expect("the work folder is writable");
    file(root, "empty", b"", 0o644);
    file(root, "one", b"1", 0o600);
    file(root, "text.txt", &bytes(1, 2_302), 0o644);
    file(root, "block", &bytes(2, 700), 0o664);
    file(root, "large.bin", &bytes(3, 300_000), 0o640);
    file(root, "run.sh", b"#!/bin/sh\n", 0o755);
    file(root, "setuid", b"s", 0o4755);
    file(root, "read-only", b"r", 0o444);
    file(root, "-dash", b"-", 0o644);
    file(root, "with space", b"w", 0o644);
    file(root, "back\\slash", b"b", 0o644);
    file(root, "caf\u{e9}", "caf\u{e9}".as_bytes(), 0o644);
    file(root, OsStr::from_bytes(b"bad\xff"), b"latin", 0o644);
    file(root, "\u{65e5}\u{672c}\u{8a9e}/\u{30d5}\u{30a1}\u{30a4}\u{30eb}", b"jp", 0o644);
    file(root, "dir/inner/deep/leaf", &bytes(4, 40_000), 0o644);
    file(root, "dir/inner/other.o", b"object", 0o644);
    file(root, "dir/file", &bytes(5, 5_000), 0o644);
    file(root, "dir-2/file", b"beside", 0o644);
    file(root, "dir.o", b"not a dir", 0o644);
    file(root, ".hidden/.rc", b"rc", 0o600);
    fs::create_dir_all(root.join("empty-dir/nested")).expect("the work folder is writable");
    fs::hard_link(root.join("text.txt"), root.join("hard-1")).expect("links can be made");
    fs::hard_link(root.join("text.txt"), root.join("dir/hard-2")).expect("links can be made");
    symlink("text.txt", root.join("link")).expect("links can be made");
    symlink("nowhere/at all", root.join("dangling")).expect("links can be made");
    symlink("dir", root.join("dir-link")).expect("links can be made");
    symlink("../../outside", root.join("dir/unsafe")).expect("links can be made");
    for link in ["link", "dangling", "dir-link", "dir/unsafe"] {
        set_time(&root.join(link), PAST - 60, 5);
    }
    pipe(root, "pipe");
    sparse(&root.join("sparse"));
    if is_root() {
        mknodat(
            CWD,
            root.join("null"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            rustix::fs::makedev(1, 3),
        )
        .expect("root makes devices");
        set_time(&root.join("null"), PAST, 0);
        file(root, "foreign", b"owned by others", 0o644);
        let (uid, gid) = (Uid::from_raw(1234), Gid::from_raw(5678));
        chownat(CWD, root.join("foreign"), Some(uid), Some(gid), AtFlags::empty())
            .expect("root gives files away");
    }
    directory_times(root);
}

fn sparse(path: &Path) {
    let mut file = fs::File::create(path).expect("the work folder is writable");
    file.write_all(b"head").expect("there is room");
    file.seek(SeekFrom::Start(200_000)).expect("files can be sparse");
    file.write_all(b"tail").expect("there is room");
    drop(file);
    set_time(path, PAST, 0);
}

/// Gives every directory a fixed time, deepest first.
pub fn directory_times(dir: &Path) {
    for member in fs::read_dir(dir).expect("the tree is ours").flatten() {
        if member.file_type().is_ok_and(|t| t.is_dir()) {
            directory_times(&member.path());
        }
    }
    set_time(dir, PAST + 10, 77);
}

/// Builds what an earlier, different state of [`mixed`] left at the destination: some files equal,
/// some older, shorter or longer, some of another type, some extra.
pub fn older(root: &Path) {
    fs::create_dir_all(root).expect("the work folder is writable");
    file(root, "empty", b"", 0o644);
    file(root, "text.txt", &[b"inserted", &bytes(1, 2_302)[..]].concat(), 0o644);
    file(root, "block", &bytes(2, 700), 0o600);
    let mut large = bytes(3, 300_000);
    large[150_000..150_100].fill(0);
    large.truncate(280_000);
    file(root, "large.bin", &large, 0o640);
    file(root, "run.sh", b"#!/bin/ls\n", 0o755);
    set_time(&root.join("run.sh"), PAST + 5, 0);
    file(root, "one", b"1", 0o600);
    set_time(&root.join("one"), PAST + 100_000, 0);
    file(root, "with space", b"w", 0o644);
    file(root, "dir/inner/deep", b"a file where a directory will be", 0o644);
    file(root, "dir-2/file/x", b"a directory where a file will be", 0o644);
    file(root, "dir/extra", b"extra", 0o644);
    file(root, "dir/extra.o", b"extra object", 0o644);
    file(root, "extra-dir/a/b", b"extra", 0o644);
    file(root, "extra-dir/keep.o", b"extra", 0o644);
    file(root, "zzz", b"extra", 0o644);
    symlink("elsewhere", root.join("link")).expect("links can be made");
    symlink("gone", root.join("extra-link")).expect("links can be made");
    set_time(&root.join("link"), PAST - 60, 0);
    set_time(&root.join("extra-link"), PAST - 60, 0);
    directory_times(root);
}

/// Builds `files` small files in `dirs` directories with a few links among them.
pub fn regular(root: &Path, dirs: usize, files: usize) {
    for d in 0..dirs {
        let dir = root.join(format!("d{:03}/sub{}", d, d % 3));
        fs::create_dir_all(&dir).expect("the work folder is writable");
        for f in 0..files / dirs {
            let n = d * files + f;
            file(
                &dir,
                format!("file-{f:04}-{}", n % 7),
                &bytes(n as u64, (n * 37) % 6_000),
                0o600 | (n as u32 % 8) << 3,
            );
        }
        symlink("file-0000-0", dir.join("link")).expect("links can be made");
        set_time(&dir.join("link"), PAST, 0);
        if d % 4 == 0 {
            fs::hard_link(dir.join(first_name(&dir)), dir.join("hard")).expect("links can be made");
        }
    }
    directory_times(root);
}

fn first_name(dir: &Path) -> std::ffi::OsString {
    let mut names: Vec<_> =
        fs::read_dir(dir).expect("the tree is ours").flatten().map(|m| m.file_name()).collect();
    names.sort();
    names.swap_remove(0)
}
