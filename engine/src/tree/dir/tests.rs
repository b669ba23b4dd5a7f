use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use super::*;
use crate::sys::users::effective_uid;
use crate::tree::Times;

/// A temporary directory, held.
struct Held {
    temp: tempfile::TempDir,
    dir: Arc<Dir>,
}

impl Held {
    fn new() -> Held {
        let temp = tempfile::tempdir().unwrap();
        let dir = Arc::new(Dir::new(File::open(temp.path()).unwrap().into()));
        Held { temp, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(&self, name: &str) -> u32 {
        self.dir.stat(name.as_bytes()).unwrap().unwrap().mode.0
    }
}

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn stat_tells_a_link_from_what_it_leads_to() {
    let held = Held::new();
    held.write("file", "12345");
    held.dir.symlink(b"file", b"link").unwrap();
    held.dir.symlink(b"nothing", b"dangling").unwrap();
    let link = held.dir.stat(b"link").unwrap().unwrap();
    assert_eq!((link.kind(), link.size), (FileKind::Symlink, 4));
    let file = held.dir.stat_following(b"link").unwrap().unwrap();
    assert_eq!((file.kind(), file.size, file.nlink), (FileKind::Regular, 5, 1));
    assert_eq!(file.ino, fs::metadata(held.path("file")).unwrap().ino());
    assert_eq!(held.dir.stat(b"nothing").unwrap(), None);
    assert_eq!(held.dir.stat_following(b"dangling").unwrap(), None);
    assert_eq!(held.dir.read_link(b"dangling").unwrap(), b"nothing");
    assert!(held.dir.stat(b".").unwrap().unwrap().is_same_file(&held.dir.meta().unwrap()));
}

#[test]
fn lists_every_member_once_each_time() {
    let held = Held::new();
    held.write("file", "");
    fs::create_dir(held.path("dir")).unwrap();
    held.dir.symlink(b"x", b"link").unwrap();
    held.dir.mknod(b"pipe", FileKind::Fifo, 0o600, Rdev::default()).unwrap();
    for _ in 0..2 {
        let mut members = held.dir.list().unwrap();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&[u8]> = members.iter().map(|member| &*member.name).collect();
        assert_eq!(names, [&b"dir"[..], b"file", b"link", b"pipe"]);
        for (member, kind) in
            members.iter().zip([FileKind::Directory, FileKind::Regular, FileKind::Symlink, FileKind::Fifo])
        {
            assert!(member.kind.is_none_or(|told| told == kind));
        }
    }
}

#[test]
fn only_regular_files_are_read_where_asked_for() {
    let held = Held::new();
    held.write("file", "content");
    held.dir.mknod(b"pipe", FileKind::Fifo, 0o600, Rdev::default()).unwrap();
    held.dir.mkdir(b"dir", 0o755).unwrap();
    let (_, meta) = held.dir.open_regular(b"file").unwrap();
    assert_eq!(meta.size, 7);
    for name in [&b"pipe"[..], b"dir"] {
        assert_eq!(held.dir.open_regular(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
    assert_eq!(held.dir.read_small(b"file", 7).unwrap(), b"content");
    assert_eq!(held.dir.read_small(b"file", 6).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn in_place_opens_what_is_there_and_creates_what_is_not() {
    let held = Held::new();
    held.write("old", "keep me");
    let file = held.dir.open_in_place(b"old", 0o600, Devices::AreNodes).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 7);
    held.dir.open_in_place(b"new", 0o600, Devices::AreNodes).unwrap();
    assert_eq!(held.mode("new"), 0o100_600);
    held.dir.mknod(b"pipe", FileKind::Fifo, 0o600, Rdev::default()).unwrap();
    assert_eq!(
        held.dir.open_in_place(b"pipe", 0o600, Devices::AreNodes).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn in_place_gives_a_read_only_file_its_mode_back() {
    let held = Held::new();
    held.write("file", "x");
    held.chmod("file", 0o440);
    // What the open does for an ordinary user, whom alone the mode stops.
    let file = held.dir.open_unwritable(b"file").unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"y", 0).unwrap();
    assert_eq!(held.mode("file"), 0o100_440);
    held.dir.open_in_place(b"file", 0o600, Devices::AreNodes).unwrap();
    assert_eq!(held.mode("file"), 0o100_440);
}

#[test]
fn makes_directories_links_and_nodes() {
    let held = Held::new();
    held.dir.mkdir(b"d", 0o700).unwrap();
    assert_eq!(held.mode("d"), 0o040_700);
    held.write("file", "");
    held.dir.symlink(b"file", b"link").unwrap();
    let sub = held.dir.open_dir(b"d").unwrap();
    sub.hard_link(&held.dir, b"link", b"link too").unwrap();
    assert_eq!(sub.stat(b"link too").unwrap().unwrap().kind(), FileKind::Symlink);
    sub.mknod(b"socket", FileKind::Socket, 0o600, Rdev::default()).unwrap();
    assert_eq!(sub.stat(b"socket").unwrap().unwrap().kind(), FileKind::Socket);
    assert_eq!(errno(sub.mknod(b"x", FileKind::Regular, 0o600, Rdev::default())), Some(22));
    if effective_uid() == 0 {
        let rdev = Rdev { major: 1, minor: 3 };
        match sub.mknod(b"null", FileKind::CharDevice, 0o600, rdev) {
            Ok(()) => assert_eq!(sub.stat(b"null").unwrap().unwrap().rdev, rdev),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}

#[test]
fn replaces_files_links_and_names_of_the_same_file() {
    let held = Held::new();
    held.write("a", "a");
    held.write("b", "b");
    let dir = &held.dir;
    dir.replace(b"b", &mut |name| dir.symlink(b"a", name)).unwrap();
    assert_eq!(dir.read_link(b"b").unwrap(), b"a");
    dir.replace(b"b", &mut |name| dir.hard_link(dir, b"a", name)).unwrap();
    dir.replace(b"b", &mut |name| dir.hard_link(dir, b"a", name)).unwrap();
    assert_eq!(dir.stat(b"a").unwrap().unwrap().nlink, 2);
    assert_eq!(dir.list().unwrap().len(), 2, "nothing is left beside them");
}

#[test]
fn replace_takes_the_next_number_and_cleans_up_after_failure() {
    let held = Held::new();
    let dir = &held.dir;
    let taken = format!(".x.{}", std::process::id() % 999_900);
    held.write(&taken, "");
    dir.replace(b".x", &mut |name| dir.symlink(b"t", name)).unwrap();
    assert_eq!(dir.read_link(b".x").unwrap(), b"t");
    dir.mkdir(b"d", 0o755).unwrap();
    assert!(dir.replace(b"d", &mut |name| dir.symlink(b"t", name)).is_err());
    assert_eq!(dir.list().unwrap().len(), 3);
}

#[test]
fn renames_and_removes() {
    let held = Held::new();
    held.dir.mkdir(b"d", 0o755).unwrap();
    held.write("a", "a");
    let sub = held.dir.open_dir(b"d").unwrap();
    held.dir.rename(b"a", &sub, b"b").unwrap();
    assert_eq!(fs::read(held.path("d/b")).unwrap(), b"a");
    assert_eq!(held.dir.rmdir(b"d").unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
    sub.unlink(b"b").unwrap();
    held.dir.rmdir(b"d").unwrap();
    assert_eq!(held.dir.stat(b"d").unwrap(), None);
}

#[test]
fn applies_modes_and_times_to_members_and_itself() {
    let held = Held::new();
    held.write("file", "");
    held.dir.symlink(b"file", b"link").unwrap();
    let times = Times { mtime: Some((-5, 999_999_999)), atime: Some((1_000_000_000, 1)) };
    let want = Attributes { permissions: Some(0o1751), times: Some(times), ..Attributes::default() };
    for name in [&b"file"[..], b"link", b"."] {
        let now = held.dir.stat(name).unwrap().unwrap();
        held.dir.apply(name, &now, &want).unwrap();
        let after = held.dir.stat(name).unwrap().unwrap();
        assert_eq!((after.mtime, after.mtime_nsec), (-5, 999_999_999));
        assert_eq!((after.atime, after.atime_nsec), (1_000_000_000, 1));
        if name == b"link" {
            assert_eq!(after.mode, now.mode);
        } else {
            assert_eq!(after.mode.permissions(), 0o1751);
        }
    }
    assert_eq!(held.mode("file"), 0o101_751);
}

#[test]
fn an_absent_time_stays() {
    let held = Held::new();
    held.write("file", "");
    let before = held.dir.stat(b"file").unwrap().unwrap();
    let times = Times { mtime: Some((5, 6)), atime: None };
    let want = Attributes { times: Some(times), ..Attributes::default() };
    held.dir.apply(b"file", &before, &want).unwrap();
    let after = held.dir.stat(b"file").unwrap().unwrap();
    assert_eq!((after.mtime, after.mtime_nsec), (5, 6));
    assert_eq!((after.atime, after.atime_nsec), (before.atime, before.atime_nsec));
}

#[test]
fn a_chown_does_not_cost_the_setuid_bit() {
    if effective_uid() != 0 {
        eprintln!("skipped: only root may give files away");
        return;
    }
    let held = Held::new();
    for (permissions, expected) in [(None, 0o6755), (Some(0o4711), 0o4711)] {
        held.write("file", "");
        fs::set_permissions(held.path("file"), fs::Permissions::from_mode(0o6755)).unwrap();
        let now = held.dir.stat(b"file").unwrap().unwrap();
        let want = Attributes { uid: Some(now.uid + 1), gid: Some(7), permissions, ..Attributes::default() };
        held.dir.apply(b"file", &now, &want).unwrap();
        let after = held.dir.stat(b"file").unwrap().unwrap();
        assert_eq!((after.uid, after.gid), (now.uid + 1, 7));
        assert_eq!(after.mode.permissions(), expected);
    }
}

#[test]
fn a_failed_step_is_named_and_does_not_stop_the_next() {
    if effective_uid() == 0 {
        eprintln!("skipped: nothing fails for root");
        return;
    }
    let held = Held::new();
    held.write("file", "");
    let now = held.dir.stat(b"file").unwrap().unwrap();
    let want = Attributes { uid: Some(0), permissions: Some(0o600), ..Attributes::default() };
    let failed = held.dir.apply(b"file", &now, &want).unwrap_err();
    assert_eq!(failed.call, "chown");
    assert_eq!(failed.error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(held.mode("file"), 0o100_600);
}

#[test]
fn a_missing_directory_is_empty_and_cannot_be_changed() {
    let dir = Arc::new(Dir::missing());
    assert_eq!(dir.stat(b"x").unwrap(), None);
    assert_eq!(dir.stat(b".").unwrap(), None);
    assert!(dir.list().unwrap().is_empty());
    assert_eq!(dir.mkdir(b"x", 0o755).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(dir.create_temp(b"x", 0o600).unwrap_err().kind(), io::ErrorKind::NotFound);
}
