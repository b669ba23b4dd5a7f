use std::fs;
use std::path::PathBuf;

use super::*;

fn tree(links: SymlinkPolicy) -> (tempfile::TempDir, Tree) {
    let temp = tempfile::tempdir().unwrap();
    let tree = Tree::open(temp.path(), links).unwrap();
    (temp, tree)
}

fn path(bytes: &[u8]) -> RelPath<'_> {
    RelPath::new(bytes)
}

#[test]
fn directories_are_held_until_forgotten() {
    let (temp, tree) = tree(SymlinkPolicy::Refuse);
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    let first = tree.dir(path(b"a/b")).unwrap();
    assert!(Arc::ptr_eq(&first, &tree.dir(path(b"a/b")).unwrap()));
    fs::remove_dir(temp.path().join("a/b")).unwrap();
    fs::create_dir(temp.path().join("a/b")).unwrap();
    tree.forget(path(b"a"));
    let second = tree.dir(path(b"a/b")).unwrap();
    assert!(!second.meta().unwrap().is_same_file(&first.meta().unwrap()));
}

#[test]
fn parents_and_members_of_paths_are_found() {
    let (temp, tree) = tree(SymlinkPolicy::Refuse);
    fs::create_dir_all(temp.path().join("a/b")).unwrap();
    fs::write(temp.path().join("a/b/c"), "123").unwrap();
    assert_eq!(tree.stat(path(b"a/b/c")).unwrap().unwrap().size, 3);
    assert_eq!(tree.stat(path(b"no/b/c")).unwrap(), None);
    assert!(tree.stat(RelPath::ROOT).unwrap().unwrap().is_same_file(&tree.root().meta().unwrap()));
    let parent = tree.parent(path(b"a/b/c")).unwrap();
    assert!(parent.stat(b"c").unwrap().is_some());
    assert!(Arc::ptr_eq(&tree.parent(path(b"a")).unwrap(), tree.root()));
}

#[test]
fn makes_every_directory_on_the_way() {
    let (temp, tree) = tree(SymlinkPolicy::Refuse);
    fs::create_dir(temp.path().join("a")).unwrap();
    let dir = tree.mkdir_path(path(b"a/b/c/d"), 0o700).unwrap();
    dir.mkdir(b"e", 0o700).unwrap();
    assert!(temp.path().join("a/b/c/d/e").is_dir());
    fs::write(temp.path().join("file"), "").unwrap();
    assert!(tree.mkdir_path(path(b"file/x"), 0o700).is_err());

    let deep: PathBuf = temp.path().join("x/y/../z");
    let tree = Tree::create(&deep, SymlinkPolicy::Refuse, &Trust::default()).unwrap();
    tree.root().mkdir(b"here", 0o700).unwrap();
    assert!(temp.path().join("x/z/here").is_dir());
}

#[test]
fn a_tree_below_a_tree_is_named_by_both() {
    let (temp, tree) = tree(SymlinkPolicy::Refuse);
    fs::create_dir(temp.path().join("sub")).unwrap();
    let sub = tree.open_beneath(path(b"sub"), SymlinkPolicy::Refuse).unwrap();
    assert_eq!(sub.full_name(path(b"x")), tree.full_name(path(b"sub/x")));
    sub.root().mkdir(b"x", 0o700).unwrap();
    assert!(temp.path().join("sub/x").is_dir());
}

#[test]
fn a_missing_tree_has_empty_directories_everywhere() {
    let tree = Tree::missing(Path::new("/no/such"));
    assert!(tree.is_missing());
    assert_eq!(tree.stat(path(b"a/b")).unwrap(), None);
    assert!(tree.dir(path(b"a/b")).unwrap().list().unwrap().is_empty());
    assert_eq!(tree.full_name(path(b"a")), b"/no/such/a");
}

/// Watched: `../or/./e//x/../x/` in `/tmp/or` is named `/tmp/or/e/x/.`.
#[test]
fn names_for_messages_are_absolute_and_clean() {
    assert_eq!(absolute(b"/tmp/or/../or/./e//x/../x/"), b"/tmp/or/e/x");
    assert_eq!(absolute(b"/../.."), b"/");
    assert!(absolute(b"x").starts_with(b"/") && absolute(b"x").ends_with(b"/x"));
    let (temp, tree) = tree(SymlinkPolicy::Refuse);
    let root = temp.path().as_os_str().as_bytes();
    assert_eq!(tree.full_name(RelPath::ROOT), [root, b"/."].concat());
    let root = Tree::open(Path::new("/"), SymlinkPolicy::Refuse).unwrap();
    assert_eq!(root.full_name(path(b"etc")), b"/etc");
}

#[test]
fn paths_longer_than_one_call_takes_are_walked() {
    let (_temp, tree) = tree(SymlinkPolicy::Refuse);
    let name = [b'n'; 250];
    let mut long = RelPath::ROOT.to_owned();
    for _ in 0..20 {
        long = long.as_path().join(&name);
    }
    let made = tree.mkdir_path(long.as_path(), 0o700).unwrap().meta().unwrap();
    tree.forget(RelPath::ROOT);
    assert!(tree.dir(long.as_path()).unwrap().meta().unwrap().is_same_file(&made));
}
