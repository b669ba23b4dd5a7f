//! Deletion: what is extraneous, in which order it goes, what stops it; and making way for an
//! item of another kind.
//!
//! Wire: protocol/doc/20-transfer.md#14-deletions---force-backups, protocol/doc/11-incremental-recursion.md#7-deletion-in-inc-mode

use std::io;

use rustix::io::Errno;
use suisei_protocol::flist::{FileKind, IoErrors, RelPath, RelPathBuf};
use suisei_protocol::transfer::DeleteCounts;

use super::place::Disk;
use crate::filter::{Chain, FilterSide};
use crate::observe::{Class, Event, Note, Who};
use crate::options::{Delete, DeleteWhen};
use crate::roles::backup::Original;
use crate::trace::{trace_rule, Going, Origin, Topic, Trace};
use crate::tree::{Attributes, Dir, Meta};
use crate::Context;

/// When the items that a scan finds go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// At once.
    Deleted,
    /// At the end of the run (`--delete-delay`).
    Recorded,
}

/// Whether a directory takes its content along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// It does.
    GoesToo,
    /// A directory with content stays.
    Stays,
}

/// One member of a directory that is scanned.
#[derive(Debug, PartialEq, Eq)]
struct Member {
    name: Box<[u8]>,
    kind: FileKind,
}

/// The options, and how far deletion has come.
pub struct Deletion {
    options: Delete,
    /// Nothing: no rule protects anything.
    chain: Option<Chain>,
    directories_last: bool,
    one_file_system: bool,
    /// What the lists so far say of errors at the sender.
    errors: IoErrors,
    /// Whether `IO error encountered` was said.
    announced: bool,
    /// Deletions that count for `--max-delete`.
    done: u64,
    /// Deletions that `--max-delete` stopped.
    skipped: u64,
    recorded: Vec<(RelPathBuf, FileKind)>,
}

impl Deletion {
    /// Reads the options.
    pub fn new(ctx: &Context) -> Self {
        let options = &ctx.options;
        let rules = &options.select.filters;
        let chain = (!rules.is_empty()).then(|| {
            Chain::new(rules, FilterSide::Receiver, options.delete.excluded)
                .with_line_end(options.select.filter_lines)
                .with_trust(&options.trust)
        });
        Deletion {
            options: options.delete,
            chain,
            directories_last: ctx.session.version.sorts_directories_last(),
            one_file_system: options.select.one_file_system > 0,
            errors: IoErrors::empty(),
            announced: false,
            done: 0,
            skipped: 0,
            recorded: Vec::new(),
        }
    }

    /// When extraneous items are deleted, if at all.
    pub fn when(&self) -> Option<DeleteWhen> {
        self.options.when
    }

    /// Whether the deletion statistics are part of this run.
    pub fn is_counted(&self) -> bool {
        self.options.when.is_some() || self.options.force
    }

    /// Returns how many deletions `--max-delete` stopped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes errors of the sender's that came with, or before, what is scanned next. What a later
    /// list says does not hold back an earlier one, so that the outcome does not hang on timing.
    pub fn learn(&mut self, errors: IoErrors) {
        self.errors |= errors;
    }

    /// Scans a directory: what `is_listed` does not know and no filter protects is extraneous.
    pub fn scan(
        &mut self,
        disk: Disk<'_>,
        path: RelPath<'_>,
        is_listed: &dyn Fn(&[u8]) -> bool,
        found: Found,
    ) {
        if self.is_stopped(disk.ctx) {
            return;
        }
        disk.ctx.trace(Topic::Del, 2, Who::Generator, Trace::Scanned(path.as_bytes()));
        let dir = match disk.tree.dir(path) {
            Ok(dir) => dir,
            // Not there yet, or something else is: nothing in it to delete.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return
            }
            Err(error) if crate::sys::is(&error, Errno::LOOP) => return,
            Err(error) => return disk.call("opendir", path, &error),
        };
        if !self.enter(disk, path) || self.is_foreign(disk, &dir) {
            return;
        }
        trace_entered(disk, path);
        for member in self.members(disk, &dir, path) {
            let child = path.join(&member.name);
            let is_dir = member.kind == FileKind::Directory;
            self.trace_member(disk.ctx, child.as_path(), is_dir);
            let is_kept = self.is_protected(child.as_path(), is_dir) || disk.hides(child.as_path(), is_dir);
            if is_listed(child.as_bytes()) || is_kept {
                continue;
            }
            if self.is_mount_point(&dir, &member) {
                disk.ctx.report(Event::Note(child.as_path(), Note::MountPoint));
            } else if found == Found::Recorded {
                self.recorded.push((child, member.kind));
            } else {
                self.delete(disk, child.as_path(), member.kind, Content::GoesToo);
                // A deleted directory was entered in between.
                if is_dir && !self.enter(disk, path) {
                    return;
                }
            }
        }
    }

    /// Deletes what was recorded.
    pub fn delete_recorded(&mut self, disk: Disk<'_>) {
        for (path, kind) in std::mem::take(&mut self.recorded) {
            self.delete(disk, path.as_path(), kind, Content::GoesToo);
        }
    }

    /// Whether the scan of this directory, just done, recorded anything.
    pub fn has_recorded_in(&self, path: RelPath<'_>) -> bool {
        self.recorded.last().is_some_and(|(last, _)| last.as_path().parent() == path)
    }

    /// Deletes a missing argument (`--delete-missing-args`).
    pub fn delete_missing(&mut self, disk: Disk<'_>, path: RelPath<'_>, kind: FileKind) {
        let content = if self.is_counted() { Content::GoesToo } else { Content::Stays };
        self.delete(disk, path, kind, content);
    }

    /// Removes an item that has another kind than its entry, which is of `kind`. The item itself is
    /// neither reported nor counted, the content of a directory is. Whether the way is free.
    pub fn make_way(&mut self, disk: Disk<'_>, path: RelPath<'_>, meta: &Meta, kind: FileKind) -> bool {
        let why = Going::MakesWay { kind, recurses: self.is_counted() };
        let (name, mode) = (path.as_bytes(), meta.mode.0);
        disk.ctx.trace(Topic::Del, 2, Who::Generator, Trace::Deleting { path: name, mode, why });
        let free = if meta.kind() == FileKind::Directory {
            let empty = if self.is_counted() {
                self.delete_content(disk, path, why)
            } else {
                let members = disk.tree.dir(path).map(|dir| self.members(disk, &dir, path));
                for member in members.iter().flatten() {
                    let is_dir = member.kind == FileKind::Directory;
                    self.trace_member(disk.ctx, path.join(&member.name).as_path(), is_dir);
                }
                members.is_ok_and(|members| members.is_empty())
            };
            if !empty {
                disk.ctx.report(Event::Note(path, Note::NotEmpty));
            }
            empty && (disk.is_dry() || self.remove(disk, path, FileKind::Directory))
        } else {
            disk.is_dry() || self.remove(disk, path, meta.kind())
        };
        if !free {
            let what = match kind {
                FileKind::Directory => "could not make way for new directory: ",
                FileKind::Symlink => "could not make way for new symlink: ",
                kind if kind.is_device() => "could not make way for new device file: ",
                kind if kind.is_special() => "could not make way for new special file: ",
                _ => "could not make way for new regular file: ",
            };
            disk.sentence(Class::Transfer, what, path.as_bytes());
        }
        free
    }

    /// Returns the counts for the deletion statistics.
    pub fn counts(ctx: &Context) -> DeleteCounts {
        let deleted = &ctx.stats.deleted;
        let count = |counter: &crate::stats::Counter| u32::try_from(counter.value()).unwrap_or(u32::MAX);
        DeleteCounts {
            files: count(&deleted.regular),
            dirs: count(&deleted.dirs),
            symlinks: count(&deleted.links),
            devices: count(&deleted.devices),
            specials: count(&deleted.specials),
        }
    }

    /// An error of the sender's might be why something is not listed.
    fn is_stopped(&mut self, ctx: &Context) -> bool {
        let stopped = self.errors.contains(IoErrors::GENERAL) && !self.options.ignore_errors;
        if stopped && !self.announced {
            self.announced = true;
            ctx.report(Event::DeletionSkipped);
        }
        stopped
    }

    fn is_protected(&self, path: RelPath<'_>, is_dir: bool) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.verdict(path, is_dir).is_excluded())
    }

    /// Makes `path` the current directory of the filters. Rules that cannot be read might protect
    /// anything.
    fn enter(&mut self, disk: Disk<'_>, path: RelPath<'_>) -> bool {
        match self.chain.as_mut().map(|chain| chain.enter(disk.tree, path)) {
            None | Some(Ok(())) => true,
            Some(Err(error)) => {
                disk.ctx.note_untrusted(Who::Generator, &error);
                disk.reason("failed to open merge file in", path, &error);
                false
            }
        }
    }

    /// Says which rule decides about a member of a directory, or that it was looked at.
    fn trace_member(&self, ctx: &Context, path: RelPath<'_>, is_dir: bool) {
        if let Some(chain) = self.chain.as_ref().filter(|_| ctx.traces(Topic::Filter, 1)) {
            trace_rule(ctx, Who::Generator, chain, path, is_dir);
        }
        if ctx.traces(Topic::Flist, 2) && !self.is_protected(path, is_dir) {
            let listing = Trace::Listing(path.as_bytes(), Origin::Directory);
            ctx.trace(Topic::Flist, 2, Who::Generator, listing);
        }
    }

    fn trace_deletion(&self, disk: Disk<'_>, path: RelPath<'_>, why: Going) {
        if disk.ctx.traces(Topic::Del, 2) {
            let meta = disk.tree.parent(path).and_then(|parent| parent.stat(path.name()));
            let mode = meta.ok().flatten().map_or(0, |meta| meta.mode.0);
            let deleting = Trace::Deleting { path: path.as_bytes(), mode, why };
            disk.ctx.trace(Topic::Del, 2, Who::Generator, deleting);
        }
    }

    /// Deletes an item, and the content of a directory if it goes too.
    fn delete(&mut self, disk: Disk<'_>, path: RelPath<'_>, kind: FileKind, content: Content) {
        self.trace_deletion(disk, path, Going::Extraneous);
        if kind == FileKind::Directory {
            let empty = match content {
                Content::GoesToo => self.delete_content(disk, path, Going::Extraneous),
                Content::Stays => {
                    disk.tree.dir(path).and_then(|dir| dir.list()).map_or(true, |members| members.is_empty())
                }
            };
            if !empty {
                disk.ctx.report(Event::Note(path, Note::NotEmpty));
                return;
            }
        }
        self.delete_one(disk, path, kind);
    }

    /// Deletes what is in a directory, as far as filters let it. Whether nothing was left over.
    fn delete_content(&mut self, disk: Disk<'_>, path: RelPath<'_>, why: Going) -> bool {
        let dir = match disk.tree.dir(path) {
            Ok(dir) => dir,
            Err(error) => {
                disk.call("opendir", path, &error);
                return true;
            }
        };
        if !self.enter(disk, path) {
            return false;
        }
        trace_entered(disk, path);
        self.make_writable(disk, &dir, path);
        let mut all = true;
        disk.ctx.trace(Topic::Del, 3, Who::Generator, Trace::DeletingContent(path.as_bytes(), why));
        for member in self.members(disk, &dir, path) {
            let child = path.join(&member.name);
            let is_dir = member.kind == FileKind::Directory;
            self.trace_member(disk.ctx, child.as_path(), is_dir);
            let chain = self.chain.as_ref();
            let is_protected =
                chain.is_some_and(|chain| chain.verdict_in_deletion(child.as_path(), is_dir).is_excluded());
            if is_protected || disk.hides(child.as_path(), is_dir) {
                all = false;
            } else if self.is_mount_point(&dir, &member) {
                disk.ctx.report(Event::Note(child.as_path(), Note::MountPoint));
                all = false;
            } else {
                if is_dir {
                    if !self.delete_content(disk, child.as_path(), Going::Nested) {
                        all = false;
                        disk.ctx.report(Event::Note(child.as_path(), Note::NotEmpty));
                    }
                    all &= self.enter(disk, path);
                }
                self.trace_deletion(disk, child.as_path(), Going::Nested);
                all &= self.delete_one(disk, child.as_path(), member.kind);
            }
        }
        disk.ctx.trace(Topic::Filter, 2, Who::Generator, Trace::FiltersLeft);
        all
    }

    /// Deletes one item that has no content (any more), within `--max-delete`, and reports it.
    fn delete_one(&mut self, disk: Disk<'_>, path: RelPath<'_>, kind: FileKind) -> bool {
        if self.options.max.is_some_and(|max| self.done >= max) {
            self.skipped += 1;
            return false;
        }
        if !disk.is_dry() && !self.remove(disk, path, kind) {
            return false;
        }
        self.done += 1;
        disk.ctx.stats.deleted.count(kind);
        disk.ctx.report(Event::Deleted { path, kind });
        true
    }

    /// Removes one item from the disk, or moves it to its backup.
    fn remove(&self, disk: Disk<'_>, path: RelPath<'_>, kind: FileKind) -> bool {
        let parent = match disk.tree.parent(path) {
            Ok(parent) => parent,
            Err(error) => {
                disk.function("delete_file: unlink(", path, &error);
                return false;
            }
        };
        if kind == FileKind::Directory {
            disk.tree.forget(path);
            return match parent.rmdir(path.name()) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    disk.ctx.report(Event::Note(path, Note::NotEmpty));
                    false
                }
                Err(error) => {
                    disk.function("delete_file: rmdir(", path, &error);
                    false
                }
            };
        }
        let backups = disk.backups.filter(|backups| !backups.spares(path.name()));
        let (call, answer) = match backups {
            Some(backups) => {
                let kept = backups.keep(disk.ctx, Who::Generator, disk.tree, path, Original::Moves);
                ("delete_file: make_backup(", kept)
            }
            None => ("delete_file: unlink(", parent.unlink(path.name())),
        };
        match answer {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                disk.function(call, path, &error);
                false
            }
        }
    }

    /// Lists a directory in the order of deletion: the list's order, backwards.
    fn members(&self, disk: Disk<'_>, dir: &Dir, path: RelPath<'_>) -> Vec<Member> {
        let listed = match dir.list() {
            Ok(listed) => listed,
            Err(error) => {
                disk.call("opendir", path, &error);
                return Vec::new();
            }
        };
        let mut members: Vec<Member> = listed
            .into_iter()
            .filter_map(|member| {
                let kind = match member.kind {
                    Some(kind) => kind,
                    None => dir.stat(&member.name).ok()??.kind(),
                };
                Some(Member { name: member.name, kind })
            })
            .collect();
        sort_for_deletion(&mut members, self.directories_last);
        members
    }

    /// A directory of ours that may not be written gives nothing away; root needs no permission.
    fn make_writable(&self, disk: Disk<'_>, dir: &Dir, path: RelPath<'_>) {
        if disk.is_dry() || disk.ctx.options.preserve.super_user {
            return;
        }
        if let Ok(meta) = dir.meta() {
            let permissions = meta.mode.permissions();
            if permissions & 0o200 == 0 {
                let want = Attributes { permissions: Some(permissions | 0o200), ..Attributes::default() };
                // If this fails, so will the deletions, and they are reported.
                let _ = disk.tree.parent(path).map(|parent| parent.apply(path.name(), &meta, &want));
            }
        }
    }

    /// Whether `-x` keeps a scan out of a directory: it is on another file system than the root.
    fn is_foreign(&self, disk: Disk<'_>, dir: &Dir) -> bool {
        self.one_file_system
            && match (disk.tree.root().meta(), dir.meta()) {
                (Ok(root), Ok(meta)) => root.dev != meta.dev,
                _ => true,
            }
    }

    fn is_mount_point(&self, dir: &Dir, member: &Member) -> bool {
        self.one_file_system
            && member.kind == FileKind::Directory
            && match (dir.meta(), dir.stat(&member.name)) {
                (Ok(meta), Ok(Some(inside))) => meta.dev != inside.dev,
                _ => true,
            }
    }
}

/// Says whose filters apply from here on.
fn trace_entered(disk: Disk<'_>, path: RelPath<'_>) {
    if disk.ctx.traces(Topic::Filter, 2) {
        let name = disk.tree.full_name(path);
        let name = [name.strip_suffix(b"/.").unwrap_or(&name), b"/"].concat();
        disk.ctx.trace(Topic::Filter, 2, Who::Generator, Trace::FiltersEntered(&name));
    }
}

/// Brings members into the order of deletion: that of the list, backwards.
fn sort_for_deletion(members: &mut [Member], directories_last: bool) {
    let key = |member: &Member| -> (bool, Vec<u8>) {
        let is_dir = directories_last && member.kind == FileKind::Directory;
        let mut name = member.name.to_vec();
        if is_dir {
            name.push(b'/');
        }
        (is_dir, name)
    };
    members.sort_by_cached_key(key);
    members.reverse();
}

#[cfg(test)]
mod tests;
