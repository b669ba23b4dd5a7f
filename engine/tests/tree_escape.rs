//! Nobody leaves a held root: not by names, not by symlinks, not by renaming under our feet; and
//! the kernel's resolution and our own walk give the same answers.
//!
//! Each case is something that a local user or a peer can do to another rsync's tree.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use suisei_engine::sys::open::{open_beneath, open_beneath_slowly};
use suisei_engine::tree::{
    is_untrusted, open_named_file, Attributes, Devices, Dir, SymlinkPolicy, Tree, Trust, Wanted,
};
use suisei_protocol::flist::{FileKind, Rdev, RelPath};

/// ELOOP, what stock says to whoever meets a symlink that it must not follow.
const TOO_MANY_LINKS: i32 = rustix::io::Errno::LOOP.raw_os_error();

/// A root with a secret beside it.
struct Place {
    temp: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let temp = tempfile::tempdir().unwrap();
        for dir in ["root/a/b", "root/c", "outside/dir"] {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        fs::write(temp.path().join("outside/secret"), "secret").unwrap();
        fs::set_permissions(temp.path().join("outside/secret"), fs::Permissions::from_mode(0o600)).unwrap();
        Place { temp }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn tree(&self, links: SymlinkPolicy) -> Tree {
        Tree::open(&self.path("root"), links).unwrap()
    }

    fn link(&self, target: &str, at: &str) {
        symlink(target, self.path(at)).unwrap();
    }

    fn assert_outside_untouched(&self) {
        let mut names: Vec<_> =
            fs::read_dir(self.path("outside")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["dir", "secret"]);
        assert_eq!(fs::read_dir(self.path("outside/dir")).unwrap().count(), 0);
        assert_eq!(fs::read(self.path("outside/secret")).unwrap(), b"secret");
        assert_eq!(fs::metadata(self.path("outside/secret")).unwrap().permissions().mode(), 0o100_600);
    }
}

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// What a resolution led to: an inode, or an error number.
fn answer(result: io::Result<std::os::fd::OwnedFd>) -> Result<(u64, u64), Option<i32>> {
    match result {
        Ok(fd) => {
            let meta = Dir::new(fd).meta().unwrap();
            Ok((meta.dev, meta.ino))
        }
        Err(error) => Err(error.raw_os_error()),
    }
}

fn both_resolvers(root: &Path, path: &[u8], links: SymlinkPolicy) -> Result<(u64, u64), Option<i32>> {
    let root = File::open(root).unwrap();
    let fast = answer(open_beneath(root.as_fd(), path, links));
    let slow = answer(open_beneath_slowly(root.as_fd(), path, links));
    assert_eq!(fast, slow, "{} under {links:?}", String::from_utf8_lossy(path));
    fast
}

#[test]
fn both_resolvers_agree_on_every_way_out() {
    let place = Place::new();
    fs::write(place.path("root/file"), "").unwrap();
    let outside = place.path("outside").to_str().unwrap().to_owned();
    let inside = place.path("root/c").to_str().unwrap().to_owned();
    for (target, at) in [
        ("b", "root/a/down"),
        ("../c", "root/a/side"),
        ("a/down", "root/chain"),
        ("a/../a/./b/", "root/winding"),
        (".", "root/self"),
        ("..", "root/up"),
        ("../..", "root/a/up2"),
        ("../outside", "root/out"),
        ("../root/a", "root/return"),
        ("a/side/../../outside", "root/indirect"),
        ("a/up2/outside", "root/staged"),
        (&outside, "root/absolute"),
        (&inside, "root/absolute-inside"),
        ("loop", "root/loop"),
        ("nothing", "root/dangling"),
        ("file", "root/to-file"),
        ("/proc/self/cwd", "root/magic"),
    ] {
        place.link(target, at);
    }
    let root = place.path("root");
    let inode = |path: &str| answer(Ok(File::open(place.path(path)).unwrap().into()));
    let follow = |path: &[u8]| both_resolvers(&root, path, SymlinkPolicy::FollowDirs);
    let refuse = |path: &[u8]| both_resolvers(&root, path, SymlinkPolicy::Refuse);

    for path in [&b"."[..], b"a", b"a/b", b"a//b", b"./a/./b", b"c"] {
        assert_eq!(refuse(path), follow(path));
        assert!(refuse(path).is_ok());
    }
    for (path, target) in [
        (&b"a/down"[..], "root/a/b"),
        (b"a/side", "root/c"),
        (b"chain", "root/a/b"),
        (b"winding", "root/a/b"),
        (b"self", "root"),
        (b"self/self/a/side", "root/c"),
    ] {
        assert_eq!(follow(path), inode(target));
        assert_eq!(refuse(path), Err(Some(TOO_MANY_LINKS)));
    }
    for path in [
        &b"up"[..],
        b"a/up2",
        b"out",
        b"out/dir",
        b"return",
        b"return/b",
        b"indirect",
        b"staged",
        b"absolute",
        b"absolute/dir",
        b"absolute-inside",
        b"loop",
        b"magic",
    ] {
        assert_eq!(follow(path), Err(Some(TOO_MANY_LINKS)));
        assert_eq!(refuse(path), Err(Some(TOO_MANY_LINKS)));
    }
    for path in [&b"nothing"[..], b"dangling", b"a/nothing/b"] {
        assert!(follow(path).is_err());
        assert!(refuse(path).is_err());
    }
    assert_eq!(follow(b"file"), Err(Some(20)));
    assert_eq!(follow(b"to-file"), Err(Some(20)));
    assert_eq!(refuse(b"file/x"), Err(Some(20)));
    for path in [&b".."[..], b"a/../..", b"a/..", b"/", b"/etc", b"", b"../outside"] {
        assert_eq!(follow(path), Err(Some(22)));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn magic_links_lead_nowhere() {
    let opened = File::open("/etc").unwrap();
    let held = format!("fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
    for path in [&b"cwd"[..], b"root", b"root/etc", held.as_bytes()] {
        for links in [SymlinkPolicy::Refuse, SymlinkPolicy::FollowDirs] {
            assert_eq!(both_resolvers(Path::new("/proc/self"), path, links), Err(Some(TOO_MANY_LINKS)));
        }
    }
}

#[test]
fn cached_parents_do_not_weaken_the_policy() {
    let place = Place::new();
    place.link("../../outside", "root/a/out");
    place.link("../c", "root/a/side");
    let strict = place.tree(SymlinkPolicy::Refuse);
    let lenient = place.tree(SymlinkPolicy::FollowDirs);
    for tree in [&strict, &lenient] {
        tree.dir(RelPath::new(b"a")).unwrap();
        assert_eq!(errno(tree.dir(RelPath::new(b"a/out"))), Some(TOO_MANY_LINKS));
        assert_eq!(errno(tree.dir(RelPath::new(b"a/out/dir"))), Some(TOO_MANY_LINKS));
        assert_eq!(errno(tree.mkdir_path(RelPath::new(b"a/out/new"), 0o777)), Some(TOO_MANY_LINKS));
    }
    assert_eq!(errno(strict.dir(RelPath::new(b"a/side"))), Some(TOO_MANY_LINKS));
    lenient.dir(RelPath::new(b"a/side")).unwrap().mkdir(b"made", 0o755).unwrap();
    assert!(place.path("root/c/made").is_dir());
    let free = place.tree(SymlinkPolicy::FollowAll);
    assert!(free.dir(RelPath::new(b"a/out")).unwrap().stat(b"secret").unwrap().is_some());
    place.assert_outside_untouched();
}

#[test]
fn every_verb_refuses_names_that_are_paths() {
    let place = Place::new();
    let tree = place.tree(SymlinkPolicy::FollowAll);
    let root = tree.root();
    for name in [&b".."[..], b"../outside/secret", b"a/b", b"/etc/passwd", b"", b"a\0b"] {
        let invalid = Some(22);
        assert_eq!(errno(root.stat(name)), invalid);
        assert_eq!(errno(root.stat_following(name)), invalid);
        assert_eq!(errno(root.open_file(name)), invalid);
        assert_eq!(errno(root.open_file_following(name)), invalid);
        assert_eq!(errno(root.open_in_place(name, 0o600, Devices::AreNodes)), invalid);
        assert_eq!(errno(root.open_dir(name)), invalid);
        assert_eq!(errno(root.read_small(name, 10)), invalid);
        assert_eq!(errno(root.read_link(name)), invalid);
        assert_eq!(errno(root.create_temp(name, 0o600)), invalid);
        assert_eq!(errno(root.create_temp_elsewhere(name, 0o600)), invalid);
        assert_eq!(errno(root.mkdir(name, 0o700)), invalid);
        assert_eq!(errno(root.symlink(b"x", name)), invalid);
        assert_eq!(errno(root.mknod(name, FileKind::Fifo, 0o600, Rdev::default())), invalid);
        assert_eq!(errno(root.hard_link(root, b"a", name)), invalid);
        assert_eq!(errno(root.hard_link(root, name, b"new")), invalid);
        assert_eq!(errno(root.rename(b"a", root, name)), invalid);
        assert_eq!(errno(root.rename(name, root, b"new")), invalid);
        assert_eq!(errno(root.replace(name, &mut |made| root.symlink(b"x", made))), invalid);
        assert_eq!(errno(root.unlink(name)), invalid);
        assert_eq!(errno(root.rmdir(name)), invalid);
        let meta = root.meta().unwrap();
        let want = Attributes { permissions: Some(0), ..Attributes::default() };
        assert_eq!(errno(root.apply(name, &meta, &want).map_err(io::Error::from)), invalid);
    }
    place.assert_outside_untouched();
}

/// What a stat saw as a file or directory is a symlink by the time of the next call.
#[test]
fn a_member_swapped_for_a_symlink_is_acted_on_itself() {
    let place = Place::new();
    place.link("../outside/secret", "root/file");
    place.link("../outside/dir", "root/dir");
    place.link("../outside/not-there", "root/new");
    let tree = place.tree(SymlinkPolicy::Refuse);
    let root = tree.root();
    for name in [&b"file"[..], b"dir", b"new"] {
        assert_eq!(errno(root.open_file(name)), Some(TOO_MANY_LINKS));
        assert_eq!(errno(root.open_regular(name)), Some(TOO_MANY_LINKS));
        assert_eq!(errno(root.open_in_place(name, 0o666, Devices::AreNodes)), Some(TOO_MANY_LINKS));
        assert_eq!(errno(root.open_dir(name)), Some(TOO_MANY_LINKS));
        assert_eq!(errno(root.read_small(name, 100)), Some(TOO_MANY_LINKS));
        assert!(root.mkdir(name, 0o777).is_err());
        assert!(root.rmdir(name).is_err());
    }

    // The stat still says that it is a file of someone else with another mode.
    let stale = place.tree(SymlinkPolicy::Refuse).dir(RelPath::new(b"a")).unwrap().meta().unwrap();
    let want = Attributes { permissions: Some(0o4777), ..Attributes::default() };
    let failed = root.apply(b"file", &stale, &want).unwrap_err();
    assert_eq!(failed.call, "failed to set permissions on");

    root.hard_link(root, b"file", b"hard").unwrap();
    assert_eq!(root.read_link(b"hard").unwrap(), b"../outside/secret");
    root.rename(b"hard", &tree.dir(RelPath::new(b"c")).unwrap(), b"moved").unwrap();
    root.replace(b"new", &mut |made| root.symlink(b"elsewhere", made)).unwrap();
    let temp = root.create_temp(b"dir", 0o666).unwrap();
    temp.place(root, b"dir").unwrap();
    assert_eq!(root.stat(b"dir").unwrap().unwrap().kind(), FileKind::Regular);
    root.unlink(b"file").unwrap();
    place.assert_outside_untouched();
}

#[test]
fn a_held_directory_stays_what_it_is_when_its_name_is_taken() {
    let place = Place::new();
    let tree = place.tree(SymlinkPolicy::Refuse);
    let held = tree.dir(RelPath::new(b"a/b")).unwrap();
    fs::rename(place.path("root/a"), place.path("root/moved")).unwrap();
    place.link("../outside", "root/a");
    fs::create_dir(place.path("outside/b")).unwrap();
    held.mkdir(b"made", 0o755).unwrap();
    held.create_temp(b"x", 0o600).unwrap().place(&held, b"x").unwrap();
    assert!(place.path("root/moved/b/made").is_dir());
    assert_eq!(fs::read_dir(place.path("outside/b")).unwrap().count(), 0);
    tree.forget(RelPath::new(b"a"));
    assert_eq!(errno(tree.dir(RelPath::new(b"a/b"))), Some(TOO_MANY_LINKS));
}

/// Swaps two names for as long as `work` runs.
fn while_swapping(one: PathBuf, other: PathBuf, work: impl FnOnce()) {
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let done = done.clone();
        let spare = one.with_extension("spare");
        std::thread::spawn(move || {
            while !done.load(Relaxed) {
                fs::rename(&one, &spare).unwrap();
                fs::rename(&other, &one).unwrap();
                fs::rename(&one, &other).unwrap();
                fs::rename(&spare, &one).unwrap();
            }
        })
    };
    work();
    done.store(true, Relaxed);
    swapper.join().unwrap();
}

#[test]
fn racing_a_directory_against_a_symlink_never_writes_outside() {
    let place = Place::new();
    place.link("../outside/dir", "root/trap");
    for links in [SymlinkPolicy::Refuse, SymlinkPolicy::FollowDirs] {
        let tree = place.tree(links);
        let (mut tried, mut made) = (0u32, 0u32);
        while_swapping(place.path("root/a"), place.path("root/trap"), || {
            // The swapper may be held up between two renames for long: go on until both were met.
            while tried < 2000 || made == 0 {
                tried += 1;
                tree.forget(RelPath::ROOT);
                let name = format!("f{tried}");
                if let Ok(dir) = tree.dir(RelPath::new(b"a")) {
                    let _ = dir.mkdir(name.as_bytes(), 0o755);
                    let _ = dir.rmdir(name.as_bytes());
                    made += 1;
                }
                let root = tree.root();
                let slow = open_beneath_slowly(root.held().unwrap(), b"a", links);
                if let Ok(dir) = slow.map(Dir::new) {
                    let _ = dir.symlink(b"x", name.as_bytes());
                    let _ = dir.unlink(name.as_bytes());
                }
            }
        });
        place.assert_outside_untouched();
    }
}

/// A symlink that climbs through a directory which is moved out of the root while it is resolved.
#[test]
fn racing_renames_do_not_let_dot_dot_climb_out() {
    let place = Place::new();
    fs::create_dir_all(place.path("root/a/b/deep")).unwrap();
    place.link("deep/../../b", "root/a/b/climb");
    fs::create_dir(place.path("other")).unwrap();
    let tree = place.tree(SymlinkPolicy::FollowDirs);
    let expected = tree.dir(RelPath::new(b"a/b")).unwrap().meta().unwrap();
    while_swapping(place.path("root/a/b/deep"), place.path("other"), || {
        for _ in 0..2000 {
            let root = tree.root().held().unwrap();
            let opened = [
                open_beneath(root, b"a/b/climb", SymlinkPolicy::FollowDirs),
                open_beneath_slowly(root, b"a/b/climb", SymlinkPolicy::FollowDirs),
            ];
            for dir in opened.into_iter().flatten() {
                assert!(Dir::new(dir).meta().unwrap().is_same_file(&expected));
            }
        }
    });
}

#[test]
fn operator_paths_follow_our_own_symlinks_only() {
    let place = Place::new();
    place.link("root", "ours");
    place.link("ours/../outside/secret", "file");
    let open = |path: &str| Tree::open_trusted(&place.path(path), SymlinkPolicy::Refuse, &Trust::default());
    open("root/a").unwrap();
    open("ours/a/../a").unwrap();
    assert_eq!(errno(open("nothing")), Some(2));
    assert_eq!(errno(open("outside/secret")), Some(20));
    assert_eq!(errno(open("outside/secret/x")), Some(20));
    let file = |name, trust| open_named_file(&place.path(name), Wanted::Regular, trust);
    let strict = Trust::default();
    let mut content = String::new();
    io::Read::read_to_string(&mut file("file", &strict).unwrap(), &mut content).unwrap();
    assert_eq!(content, "secret");
    assert!(file("root", &strict).is_err());
    let inside = Trust {
        confine_root: Some(place.path("root").into_os_string().into_encoded_bytes()),
        ..strict.clone()
    };
    assert_eq!(errno(file("file", &inside)), Some(TOO_MANY_LINKS), "trusted, but it comes out elsewhere");

    if std::os::unix::fs::lchown(place.path("ours"), Some(1), None).is_err() {
        eprintln!("the rest was skipped: only root may give a symlink away");
        return;
    }
    for path in ["ours", "ours/", "ours/a", "root/../ours/a"] {
        assert!(is_untrusted(&open(path).unwrap_err()), "{path}");
    }
    let made = Tree::create(&place.path("ours/new"), SymlinkPolicy::Refuse, &strict);
    assert!(is_untrusted(&made.unwrap_err()));
    assert!(is_untrusted(&file("file", &strict).unwrap_err()));
    let lax = Trust { insecure_links: true, ..Trust::default() };
    Tree::open_trusted(&place.path("ours/a"), SymlinkPolicy::Refuse, &lax).unwrap();
    file("file", &lax).unwrap();
    place.assert_outside_untouched();
}
