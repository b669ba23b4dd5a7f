use suisei_protocol::session::Recursion;

use super::*;
use crate::source::tests as support;
use crate::TransferOptions;

fn context(dir: Option<&str>, suffix: &str) -> (Context, Arc<support::Heard>) {
    let mut options = TransferOptions::default();
    options.place.backup = true;
    options.place.backup_dir = dir.map(|dir| dir.as_bytes().to_vec());
    options.place.backup_suffix = suffix.as_bytes().to_vec();
    support::context(support::session(32, Recursion::Whole), options)
}

#[test]
fn a_suffix_keeps_the_item_beside_itself_and_replaces_an_older_backup() {
    let temp = tempfile::tempdir().unwrap();
    let tree = Tree::open(temp.path(), crate::tree::SymlinkPolicy::Refuse).unwrap();
    std::fs::create_dir(temp.path().join("d")).unwrap();
    std::fs::write(temp.path().join("d/f"), "old").unwrap();
    std::fs::write(temp.path().join("d/f~"), "older").unwrap();
    let (ctx, heard) = context(None, "~");
    let backups = Backups::new(&ctx).unwrap();
    backups.keep(&ctx, Who::Generator, &tree, RelPath::new(b"d/f"), Original::Stays).unwrap();
    assert_eq!(std::fs::read(temp.path().join("d/f~")).unwrap(), b"old");
    assert!(temp.path().join("d/f").exists(), "the original stays until it is replaced");
    assert_eq!(heard.take().len(), 1);
    assert!(backups.spares(b"x~") && !backups.spares(b"x"));
}

#[test]
fn a_backup_dir_mirrors_the_directories_with_their_modes() {
    use std::os::unix::fs::PermissionsExt;
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("dst");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::set_permissions(root.join("a"), std::fs::Permissions::from_mode(0o711)).unwrap();
    std::fs::write(root.join("a/b/f"), "old").unwrap();
    // A file in the way of a directory gives way, and so does a directory in the way of a file.
    std::fs::create_dir_all(temp.path().join("bk/a/b/f/x")).unwrap();
    let tree = Tree::open(&root, crate::tree::SymlinkPolicy::Refuse).unwrap();
    let (ctx, heard) = context(Some("../bk"), "");
    let backups = Backups::new(&ctx).unwrap();
    backups.keep(&ctx, Who::Generator, &tree, RelPath::new(b"a/b/f"), Original::Moves).unwrap();
    assert!(!root.join("a/b/f").exists());
    assert_eq!(std::fs::read(temp.path().join("bk/a/b/f")).unwrap(), b"old");
    assert_eq!(heard.take().len(), 1);

    std::fs::remove_dir_all(temp.path().join("bk")).unwrap();
    std::fs::create_dir(temp.path().join("bk")).unwrap();
    std::fs::write(temp.path().join("bk/a"), "in the way").unwrap();
    std::fs::write(root.join("a/b/f"), "new").unwrap();
    let backups = Backups::new(&ctx).unwrap();
    backups.keep(&ctx, Who::Generator, &tree, RelPath::new(b"a/b/f"), Original::IsCopied).unwrap();
    assert_eq!(std::fs::read(root.join("a/b/f")).unwrap(), b"new");
    assert_eq!(std::fs::read(temp.path().join("bk/a/b/f")).unwrap(), b"new");
    let mode = std::fs::metadata(temp.path().join("bk/a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o711);
}
