use std::fs;
use std::path::Path;
use std::sync::Arc;

use suisei_protocol::session::Recursion;

use super::*;
use crate::options::TransferOptions;
use crate::source::tests::{self as support, Heard};
use crate::tree::{SymlinkPolicy, Tree};

struct Bench {
    root: tempfile::TempDir,
    tree: Tree,
    ctx: Context,
    heard: Arc<Heard>,
}

impl Bench {
    fn new(version: u32, change: impl FnOnce(&mut TransferOptions)) -> Bench {
        let mut options = TransferOptions::default();
        options.delete.when = Some(DeleteWhen::During);
        change(&mut options);
        let (ctx, heard) = support::context(support::session(version, Recursion::Whole), options);
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::open(root.path(), SymlinkPolicy::Refuse).unwrap();
        Bench { root, tree, ctx, heard }
    }

    fn disk(&self) -> Disk<'_> {
        Disk { ctx: &self.ctx, tree: &self.tree, backups: None }
    }

    fn put(&self, paths: &[&str]) {
        for path in paths {
            let full = self.root.path().join(path);
            match path.strip_suffix('/') {
                Some(_) => fs::create_dir_all(full).unwrap(),
                None => {
                    fs::create_dir_all(full.parent().unwrap_or(Path::new("/"))).unwrap();
                    fs::write(full, "").unwrap();
                }
            }
        }
    }

    /// Scans the root and returns what was said, in short.
    fn scan(&self, deletion: &mut Deletion, listed: &[&str]) -> Vec<String> {
        let is_listed = |name: &[u8]| listed.iter().any(|listed| listed.as_bytes() == name);
        deletion.scan(self.disk(), RelPath::ROOT, &is_listed, Found::Deleted);
        self.lines()
    }

    fn lines(&self) -> Vec<String> {
        self.heard
            .take()
            .iter()
            .map(|line| line.replace("Deleted { path: ", "- ").replace(" }", ""))
            .collect()
    }
}

fn deleted(name: &str, kind: &str) -> String {
    format!("- {name:?}, kind: {kind}")
}

/// Captured with stock 3.5.0.
#[test]
fn the_order_is_that_of_the_list_backwards_content_first() {
    let bench = Bench::new(32, |_| {});
    bench.put(&["od/in/z", "od/y", "od2/q", "f1", "f2", "old", "zz/"]);
    let lines = bench.scan(&mut Deletion::new(&bench.ctx), &["f2"]);
    let (dir, file) = ("Directory", "Regular");
    let expected = [
        ("zz", dir),
        ("od2/q", file),
        ("od2", dir),
        ("od/in/z", file),
        ("od/in", dir),
        ("od/y", file),
        ("od", dir),
        ("old", file),
        ("f1", file),
    ];
    assert_eq!(lines, expected.map(|(name, kind)| deleted(name, kind)));
    assert_eq!(Deletion::counts(&bench.ctx), DeleteCounts { files: 5, dirs: 4, ..DeleteCounts::default() });
    assert!(bench.root.path().join("f2").exists());
}

/// Captured with stock 3.5.0 at protocol 28.
#[test]
fn old_versions_mix_files_and_directories() {
    let mut members = ["od", "old", "f1", "od2", "zz"].map(|name| {
        let kind =
            if name.starts_with('o') && name != "old" { FileKind::Directory } else { FileKind::Regular };
        Member { name: name.as_bytes().into(), kind }
    });
    let names = |members: &[Member]| -> Vec<String> {
        members.iter().map(|member| String::from_utf8_lossy(&member.name).into_owned()).collect()
    };
    sort_for_deletion(&mut members, false);
    assert_eq!(names(&members), ["zz", "old", "od2", "od", "f1"]);
    sort_for_deletion(&mut members, true);
    assert_eq!(names(&members), ["od2", "od", "zz", "old", "f1"]);
}

/// Captured with stock 3.5.0: `--max-delete=2` on this tree skips six.
#[test]
fn a_limit_stops_deletions_and_counts_what_it_stopped() {
    for dry_run in [false, true] {
        let bench = Bench::new(32, |options| {
            options.delete.max = Some(2);
            options.dry_run = dry_run;
        });
        bench.put(&["od/in/z", "od/y", "od2/q", "f1", "old", "zz/"]);
        let mut deletion = Deletion::new(&bench.ctx);
        let lines = bench.scan(&mut deletion, &[]);
        let expected = [
            deleted("zz", "Directory"),
            deleted("od2/q", "Regular"),
            "od/in NotEmpty".into(),
            "od NotEmpty".into(),
        ];
        assert_eq!(lines, expected);
        assert_eq!(deletion.skipped(), 6);
        assert_eq!(bench.root.path().join("od2/q").exists(), dry_run);
    }
}

#[test]
fn recorded_deletions_wait_for_the_end() {
    let bench = Bench::new(32, |_| {});
    bench.put(&["a", "d/b"]);
    let mut deletion = Deletion::new(&bench.ctx);
    deletion.scan(bench.disk(), RelPath::ROOT, &|_| false, Found::Recorded);
    assert!(bench.lines().is_empty() && bench.root.path().join("a").exists());
    assert!(deletion.has_recorded_in(RelPath::ROOT) && !deletion.has_recorded_in(RelPath::new(b"d")));
    deletion.delete_recorded(bench.disk());
    assert_eq!(
        bench.lines(),
        [deleted("d/b", "Regular"), deleted("d", "Directory"), deleted("a", "Regular")]
    );
}

#[test]
fn way_is_made_silently_but_content_is_reported() {
    let way = "could not make way for new regular file: ";
    let make_way = |bench: &Bench| {
        let meta = bench.tree.stat(RelPath::new(b"x")).unwrap().unwrap();
        Deletion::new(&bench.ctx).make_way(bench.disk(), RelPath::new(b"x"), &meta, FileKind::Regular)
    };
    let bench = Bench::new(32, |options| options.delete.max = Some(0));
    bench.put(&["x/"]);
    assert!(make_way(&bench), "the limit does not hold an empty directory");
    assert!(bench.lines().is_empty() && bench.ctx.stats.deleted.total() == 0);

    let bench = Bench::new(32, |options| options.delete = Delete { force: true, ..Delete::default() });
    bench.put(&["x/y/z"]);
    assert!(make_way(&bench));
    assert_eq!(bench.lines(), [deleted("x/y/z", "Regular"), deleted("x/y", "Directory")]);

    for dry_run in [false, true] {
        let bench = Bench::new(32, |options| {
            options.delete = Delete::default();
            options.dry_run = dry_run;
        });
        bench.put(&["x/y/z"]);
        assert!(!make_way(&bench), "neither --force nor a delete mode");
        assert_eq!(bench.lines(), ["x NotEmpty".to_string(), format!("{way}x")]);
    }
}
