//! The place of an entry on the disk: what stands there, and giving it its attributes.

use std::io::{self, Read};
use std::sync::Arc;

use suisei_protocol::flist::{EntryRef, FileKind, Mode, RelPath};
use suisei_protocol::sum::FileSum;
use suisei_protocol::transfer::{Item, ItemFlags};

use crate::observe::{Class, Problem, What, Who};
use crate::roles::acls::{self, AclDifference};
use crate::roles::attributes;
use crate::roles::backup::{Backups, Original};
use crate::trace::trace_owner;
use crate::tree::{Devices, Dir, Meta, NotApplied, Tree};
use crate::Context;

/// What the parts of the generator need to act on the disk.
#[derive(Clone, Copy)]
pub struct Disk<'a> {
    /// Options and observer.
    pub ctx: &'a Context,
    /// The destination.
    pub tree: &'a Tree,
    /// Where backups go, with `-b`.
    pub backups: Option<&'a Backups>,
}

/// What stands at an entry's place.
#[derive(Debug, Clone, Default)]
pub struct Spot {
    /// The directory that holds it, if that exists.
    pub dir: Option<Arc<Dir>>,
    /// The item, if there is one; symlinks are not followed.
    pub meta: Option<Meta>,
    /// How its access control lists differ from those of the entry.
    pub acls: AclDifference,
}

impl Spot {
    /// Returns the item if it is of this kind.
    pub fn of_kind(&self, kind: FileKind) -> Option<&Meta> {
        self.meta.as_ref().filter(|meta| meta.kind() == kind)
    }

    /// Notes in an item of what stood here that its lists differ.
    pub fn note_acls(&self, item: &mut Item) {
        if self.acls.any() && !item.flags.contains(ItemFlags::IS_NEW) {
            item.flags |= ItemFlags::REPORT_ACL;
        }
    }

    /// Returns the kind of the item.
    pub fn kind(&self) -> Option<FileKind> {
        self.meta.map(|meta| meta.kind())
    }
}

impl Disk<'_> {
    /// Whether nothing may be changed.
    pub fn is_dry(&self) -> bool {
        self.ctx.options.dry_run
    }

    /// What a device in a file's place counts as.
    pub fn devices(&self) -> Devices {
        Devices::content_if(self.ctx.options.place.write_devices)
    }

    /// Looks at a place. What cannot be looked at is reported, and nothing returned.
    pub fn look(&self, path: RelPath<'_>) -> Option<Spot> {
        let answer = match self.tree.parent(path) {
            Ok(dir) => dir.stat(path.name()).map(|meta| Spot { dir: Some(dir), meta, ..Spot::default() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Spot::default()),
            Err(error) => Err(error),
        };
        answer.map_err(|error| self.reason("recv_generator: failed to stat", path, &error)).ok()
    }

    /// Returns the directory for a new item, making missing parents that the list need not hold
    /// (`--no-implied-dirs`).
    pub fn parent(&self, spot: &Spot, path: RelPath<'_>) -> io::Result<Arc<Dir>> {
        match &spot.dir {
            Some(dir) => Ok(dir.clone()),
            None if self.ctx.options.select.relative => self.tree.mkdir_path(path.parent(), 0o777),
            None => self.tree.parent(path),
        }
    }

    /// Compares the lists of what stands at a place with those of its entry.
    pub fn compare_acls(&self, spot: &mut Spot, path: RelPath<'_>, entry: EntryRef<'_>) {
        if let (Some(dir), Some(meta)) = (&spot.dir, spot.of_kind(entry.kind())) {
            spot.acls = acls::compare(self.ctx, entry, dir, path.name(), meta);
        }
    }

    /// Gives the item at `path` the attributes of its entry. `existing` is what stood there
    /// before, `made` what stands there now. Returns what its item is to be compared with: stock
    /// looks again at what a change of owner may have taken setuid or setgid from, and takes the
    /// permissions of a list that it has set for those that were there.
    pub fn dress(
        &self,
        dir: &Dir,
        path: RelPath<'_>,
        entry: EntryRef<'_>,
        existing: Option<&Meta>,
        made: &Meta,
        acls: AclDifference,
    ) -> Meta {
        let want = attributes::wanted(self.ctx, entry, existing, made, Some(dir));
        trace_owner(self.ctx, Who::Generator, path.as_bytes(), made, &want);
        if let Err(failed) = dir.apply(path.name(), made, &want) {
            self.not_applied(path, &failed);
            return *made;
        }
        let (uid, gid) = (want.uid.unwrap_or(made.uid), want.gid.unwrap_or(made.gid));
        let mut mode = made.mode.0;
        if let (true, Some(permissions)) =
            (acls.access && !self.ctx.options.preserve.fake_super, want.permissions)
        {
            mode = mode & !0o777 | permissions & 0o777;
        }
        if (uid, gid) == (made.uid, made.gid) || mode & 0o6000 == 0 {
            return Meta { mode: Mode(mode), ..*made };
        }
        let kept = if mode & 0o010 == 0 { 0o2000 } else { 0 };
        Meta { uid, gid, mode: Mode(mode & !0o6000 | mode & kept), ..*made }
    }

    /// Gives a new item its attributes.
    pub fn dress_new(&self, dir: &Dir, path: RelPath<'_>, entry: EntryRef<'_>) {
        match dir.stat(path.name()) {
            Ok(Some(made)) => drop(self.dress(dir, path, entry, None, &made, AclDifference::default())),
            Ok(None) => {}
            Err(error) => self.reason("recv_generator: failed to stat", path, &error),
        }
    }

    /// Reports attributes that could not be set.
    pub fn not_applied(&self, path: RelPath<'_>, failed: &NotApplied) {
        for failed in failed.all() {
            match failed.call {
                "chown" => self.call("chown", path, &failed.error),
                kind if kind.starts_with("ACL_TYPE_") => self.problem(
                    Class::Transfer,
                    What::Around {
                        before: "set_acl: xacl_set(",
                        path: path.as_bytes(),
                        after: format!(", {kind})").as_bytes(),
                        error: &failed.error,
                    },
                ),
                call => self.reason(call, path, &failed.error),
            }
        }
    }

    /// Keeps a backup of what is about to be replaced by a rename. Whether that may go on.
    pub fn back_up(&self, path: RelPath<'_>) -> bool {
        match self.backups {
            Some(backups) => backups.keep(self.ctx, Who::Generator, self.tree, path, Original::Stays).is_ok(),
            None => true,
        }
    }

    /// Whether the content of a regular file has this sum.
    pub fn has_sum(&self, spot: &Spot, path: RelPath<'_>, sum: &[u8]) -> bool {
        let Some(dir) = &spot.dir else { return false };
        let session = &self.ctx.session;
        let summed = || -> io::Result<bool> {
            let (mut file, _) = dir.open_content(path.name(), self.devices())?;
            self.ctx.spare_atime(&file)?;
            let mut hasher = FileSum::unseeded(session.list_sum);
            let mut buffer = vec![0; 256 * 1024];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(hasher.finish()[..] == *sum),
                    n => hasher.update(&buffer[..n]),
                }
            }
        };
        // The sum of what cannot be read is zeros, here as at the sender.
        summed().unwrap_or_else(|_| sum.iter().all(|&byte| byte == 0))
    }

    /// Reports `CALL "PATH" failed: REASON`.
    pub fn call(&self, call: &'static str, path: RelPath<'_>, error: &io::Error) {
        self.ctx.problem(Who::Generator, Class::Transfer, call, &self.tree.full_name(path), error);
    }

    /// Reports `TEXT "PATH": REASON`.
    pub fn reason(&self, text: &'static str, path: RelPath<'_>, error: &io::Error) {
        self.reason_at(text, &self.tree.full_name(path), error);
    }

    /// Reports a failed call on two names: `CALL "PATH"AFTER: REASON`.
    pub fn pair(
        &self,
        class: Class,
        before: &'static str,
        path: RelPath<'_>,
        after: &[u8],
        error: &io::Error,
    ) {
        self.pair_at(class, before, &self.tree.full_name(path), after, error);
    }

    /// Reports `TEXT "PATH": REASON` for a path outside the destination.
    pub fn reason_at(&self, text: &'static str, path: &[u8], error: &io::Error) {
        self.problem(Class::Transfer, What::Reason { text, path, error });
    }

    /// Reports a failed call on two names, the first of them outside the destination.
    pub fn pair_at(&self, class: Class, before: &'static str, path: &[u8], after: &[u8], error: &io::Error) {
        self.problem(class, What::Around { before, path, after, error });
    }

    /// Reports `FUNCTION(PATH) failed: REASON`; `before` ends in the parenthesis.
    pub fn function(&self, before: &'static str, path: RelPath<'_>, error: &io::Error) {
        self.problem(
            Class::Transfer,
            What::Around { before, path: path.as_bytes(), after: b") failed", error },
        );
    }

    /// Reports a sentence that ends in the name.
    pub fn sentence(&self, class: Class, before: &'static str, path: &[u8]) {
        self.problem(class, What::Sentence { before, path, after: "" });
    }

    /// Whether a daemon's module hides this name: nothing happens to it.
    pub fn hides(&self, path: RelPath<'_>, is_dir: bool) -> bool {
        let hidden = self.ctx.options.select.hidden.as_deref();
        hidden.is_some_and(|hidden| hidden.hides(&self.tree.full_name(path), is_dir))
    }

    /// Says that a hidden name was refused.
    pub fn refuse(&self, kind: &'static str, path: RelPath<'_>) {
        let name = [path.as_bytes(), b"\""].concat();
        self.problem(Class::Transfer, What::Sentence { before: kind, path: &name, after: "" });
    }

    fn problem(&self, class: Class, what: What<'_>) {
        self.ctx.report_problem(Problem { who: Who::Generator, class, what });
    }
}
