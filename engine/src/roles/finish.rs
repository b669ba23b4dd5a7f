//! Directory times and modes, last: when nothing changes inside any more.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#7-permissions-of-new-and-updated-items

use std::collections::HashMap;
use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, OwnedEntry, RelPath, RelPathBuf};

use super::attributes;
use crate::observe::{Class, Problem, What, Who};
use crate::tree::{Attributes, NotApplied, Times, Tree};
use crate::Context;

/// Seconds and nanoseconds of a modification time.
type Instant = (i64, u32);

/// What is put right at the end of the run.
#[derive(Debug, Default)]
pub struct Finisher {
    /// Directories that a late deletion touches.
    touched: Vec<(RelPathBuf, OwnedEntry)>,
    /// Directories whose times counted as right when they were dressed, though not to the
    /// nanosecond: those times.
    accepted: HashMap<RelPathBuf, Instant>,
    /// Directories that have more rights than they should, and the permissions they get.
    loosened: Vec<(RelPathBuf, u32)>,
}

impl Finisher {
    /// Notes a directory that is to get `permissions` at the end.
    pub fn loosened(&mut self, path: RelPath<'_>, permissions: u32) {
        self.loosened.push((path.to_owned(), permissions));
    }

    /// Notes a directory whose time counts as right, though it is not that of the entry.
    pub fn accepted(&mut self, path: RelPath<'_>, time: Instant) {
        self.accepted.insert(path.to_owned(), time);
    }

    /// Gives a directory the time of its entry, if that is kept and differs. A time that counted as
    /// right stays, as long as nothing has changed it.
    pub fn restore_time(&self, ctx: &Context, tree: &Tree, path: RelPath<'_>, entry: EntryRef<'_>) {
        restore_time(ctx, tree, path, entry, self.accepted.get(path.as_bytes()).copied());
    }

    /// Notes a directory whose time is to be set at the end, although its segment is finished.
    pub fn touched(&mut self, path: RelPath<'_>, entry: EntryRef<'_>) {
        self.touched.push((path.to_owned(), entry.to_owned()));
    }

    /// Puts right what was noted. Directories were noted before their content.
    pub fn finish(self, ctx: &Context, tree: &Tree) {
        for (path, entry) in &self.touched {
            self.restore_time(ctx, tree, path.as_path(), entry.entry());
        }
        for (path, permissions) in self.loosened.iter().rev() {
            let want = Attributes { permissions: Some(*permissions), ..Attributes::default() };
            if let Err(failed) = apply(ctx, tree, path.as_path(), &want) {
                let full = tree.full_name(path.as_path());
                let what = What::Reason { text: failed.call, path: &full, error: &failed.error };
                ctx.report_problem(Problem { who: Who::Generator, class: Class::Transfer, what });
            }
        }
    }
}

fn restore_time(
    ctx: &Context,
    tree: &Tree,
    path: RelPath<'_>,
    entry: EntryRef<'_>,
    accepted: Option<Instant>,
) {
    if !attributes::keeps_time(ctx, entry) {
        return;
    }
    let Ok(Some(meta)) = tree.parent(path).and_then(|dir| dir.stat(path.name())) else { return };
    // To the nanosecond: a directory that was filled within the second of its time has another.
    let now = (meta.mtime, meta.mtime_nsec);
    if meta.kind() == FileKind::Directory
        && (now == (entry.mtime(), entry.mtime_nsec()) || Some(now) == accepted)
    {
        return;
    }
    let times = Times { mtime: Some((entry.mtime(), entry.mtime_nsec())), atime: None };
    // Who may not set it was told when the directory was dressed.
    let _ = apply(ctx, tree, path, &Attributes { times: Some(times), ..Attributes::default() });
}

/// Applies attributes to a directory, or to the one that a symlink stands for where it may.
fn apply(ctx: &Context, tree: &Tree, path: RelPath<'_>, want: &Attributes) -> Result<(), NotApplied> {
    let applied = || -> io::Result<Result<(), NotApplied>> {
        let parent = tree.parent(path)?;
        match parent.stat(path.name())? {
            Some(meta) if meta.kind() == FileKind::Directory => Ok(parent.apply(path.name(), &meta, want)),
            Some(meta) if meta.kind() == FileKind::Symlink && ctx.options.select.keep_dirlinks => {
                let dir = tree.dir(path)?;
                Ok(dir.apply(b".", &dir.meta()?, want))
            }
            // Gone, or replaced by another: not ours any more.
            _ => Ok(Ok(())),
        }
    };
    applied().unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use suisei_protocol::flist::{EntryFlags, Extra, Mode, Ndx, NewEntry, Segment, SegmentBuilder};
    use suisei_protocol::session::Recursion;

    use super::*;
    use crate::source::tests as support;
    use crate::tree::SymlinkPolicy;
    use crate::TransferOptions;

    fn directory(path: &[u8], mtime: i64) -> Segment {
        let mut builder = SegmentBuilder::new(Ndx(0), None);
        let entry = NewEntry {
            path,
            mode: Mode(0o040_755),
            size: 0,
            mtime,
            mtime_nsec: 7,
            uid: 0,
            gid: 0,
            flags: EntryFlags::CONTENT_DIR,
        };
        builder.push(entry, Extra::default()).unwrap();
        builder.finish()
    }

    fn context(times: bool) -> Context {
        let mut options = TransferOptions::default();
        options.preserve.times = times;
        support::context(support::session(32, Recursion::Whole), options).0
    }

    #[test]
    fn times_and_modes_come_back_and_what_is_right_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("a/b")).unwrap();
        let tree = Tree::open(temp.path(), SymlinkPolicy::Refuse).unwrap();
        let path = RelPath::new(b"a/b");
        let segment = directory(b"a/b", 1_000_000_000);
        let entry = segment.get(0).unwrap();
        let mut finisher = Finisher::default();
        finisher.touched(path, entry);
        finisher.loosened(RelPath::new(b"a"), 0o555);
        finisher.loosened(path, 0o500);
        let ctx = context(true);
        finisher.finish(&ctx, &tree);
        let meta = std::fs::metadata(temp.path().join("a/b")).unwrap();
        assert_eq!((meta.mtime(), meta.mtime_nsec(), meta.mode() & 0o777), (1_000_000_000, 7, 0o500));
        assert_eq!(std::fs::metadata(temp.path().join("a")).unwrap().mode() & 0o777, 0o555);
        let changed = (meta.ctime(), meta.ctime_nsec());
        restore_time(&ctx, &tree, path, entry, None);
        let meta = std::fs::metadata(temp.path().join("a/b")).unwrap();
        assert_eq!((meta.ctime(), meta.ctime_nsec()), changed);
        assert!(!ctx.has_transfer_error());
    }

    #[test]
    fn without_kept_times_and_where_a_directory_is_gone_nothing_happens() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("a")).unwrap();
        let tree = Tree::open(temp.path(), SymlinkPolicy::Refuse).unwrap();
        let segment = directory(b"a", 5);
        let entry = segment.get(0).unwrap();
        restore_time(&context(false), &tree, RelPath::new(b"a"), entry, None);
        assert_ne!(std::fs::metadata(temp.path().join("a")).unwrap().mtime(), 5);
        let ctx = context(true);
        restore_time(&ctx, &tree, RelPath::new(b"gone"), entry, None);
        assert!(!ctx.has_transfer_error());
    }
}
