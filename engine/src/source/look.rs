//! What one name stands for on disk, with symlinks treated as the user wants it.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::ByteSlice;
use rustix::io::Errno;
use suisei_protocol::flist::{Acl, Extra, FileKind, HardLink, IoErrors, RelPath, Xattr};
use suisei_protocol::sum::FileSum;

use super::base::Base;
use super::is_unsafe;
use super::links::MUNGED;
use crate::observe::{Class, Event, Note, Problem, What, Who};
use crate::options::SourceLinks;
use crate::tree::{AclKind, Devices, Dir, HeldItem, Meta};
use crate::xattrs::{self, Unreadable};
use crate::Context;

/// What a look at a name found.
#[derive(Debug)]
pub(super) enum Seen {
    /// This.
    Item(Meta),
    /// Nothing.
    Absent,
    /// A symlink that is to be followed, but leads nowhere.
    NoReferent,
}

/// Looks at a member of a directory. `wire` is its path on the wire.
pub(super) fn look(ctx: &Context, dir: &Dir, name: &[u8], wire: &[u8]) -> io::Result<Seen> {
    let Some(meta) = dir.stat(name)? else { return Ok(Seen::Absent) };
    if meta.kind() != FileKind::Symlink {
        return Ok(Seen::Item(meta));
    }
    match ctx.options.select.symlinks {
        SourceLinks::Keep => Ok(Seen::Item(meta)),
        SourceLinks::FollowAll => Ok(dir.stat_following(name)?.map_or(Seen::NoReferent, Seen::Item)),
        SourceLinks::FollowDirs => {
            let led = dir.stat_following(name).ok().flatten();
            Ok(Seen::Item(led.filter(|led| led.kind() == FileKind::Directory).unwrap_or(meta)))
        }
        SourceLinks::FollowUnsafe => {
            let target = dir.read_link(name)?;
            if !is_unsafe(&target, wire) {
                return Ok(Seen::Item(meta));
            }
            ctx.report(Event::Note(RelPath::new(wire), Note::UnsafeLinkCopied(&target)));
            Ok(dir.stat_following(name)?.map_or(Seen::NoReferent, Seen::Item))
        }
    }
}

/// Whether a source may be a symlink that is to be followed.
pub(crate) fn follows_last(ctx: &Context) -> bool {
    matches!(ctx.options.select.symlinks, SourceLinks::FollowAll | SourceLinks::FollowUnsafe)
}

/// Reports that something cannot be listed, and notes that the list is not complete.
pub(super) fn cannot_list(ctx: &Context, call: &'static str, path: &[u8], error: &io::Error) {
    ctx.add_io_errors(IoErrors::GENERAL);
    ctx.problem(Who::Sender, Class::Transfer, call, path, error);
}

/// Whether a module hides a name, itself or by a directory above it.
pub(super) fn is_hidden(ctx: &Context, is_dir: bool, name: impl FnOnce() -> Vec<u8>) -> bool {
    ctx.options.select.hidden.as_deref().is_some_and(|hidden| hidden.hides(&name(), is_dir))
}

/// What is hidden is not there.
pub(super) fn unless_hidden(ctx: &Context, found: io::Result<Seen>, name: &[u8]) -> io::Result<Seen> {
    match found {
        Ok(Seen::Item(meta)) if is_hidden(ctx, meta.kind() == FileKind::Directory, || name.to_vec()) => {
            Ok(Seen::Absent)
        }
        found => found,
    }
}

/// Whether something may not be read; symlinks are read by their name.
pub(super) fn is_unreadable(dir: &Dir, name: &[u8], meta: &Meta) -> bool {
    meta.kind() != FileKind::Symlink && !dir.may_read(name)
}

/// Reports a sentence around a quoted name.
pub(crate) fn sentence(ctx: &Context, class: Class, before: &'static str, path: &[u8], after: &'static str) {
    ctx.report_problem(Problem { who: Who::Sender, class, what: What::Sentence { before, path, after } });
}

/// Reports that something was there a moment ago.
pub(crate) fn vanished(ctx: &Context, kind: FileKind, path: &[u8]) {
    ctx.add_io_errors(IoErrors::VANISHED);
    let before = match kind {
        FileKind::Directory => "directory has vanished: \"",
        _ => "file has vanished: \"",
    };
    sentence(ctx, Class::Warning, before, path, "\"");
}

/// Reports a symlink that leads nowhere.
pub(super) fn no_referent(ctx: &Context, path: &[u8]) {
    ctx.add_io_errors(IoErrors::GENERAL);
    sentence(ctx, Class::Error, "symlink has no referent: \"", path, "\"");
}

/// Collects the rarer fields of an entry. Fails where they cannot be read.
pub(super) fn extra(ctx: &Context, base: &Base, wire: &[u8], meta: &Meta) -> io::Result<Extra> {
    let layout = &ctx.session.layout;
    let kind = meta.kind();
    let mut extra = Extra::default();
    if kind == FileKind::Symlink && layout.links {
        let target = base.parent(wire)?.read_link(last(wire))?;
        if target.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let munged = ctx.options.select.munge_links.then(|| target.strip_prefix(MUNGED)).flatten();
        extra.link_target = Some(munged.map_or(target.as_slice(), |rest| rest).into());
    }
    if kind.is_device() && layout.devices {
        extra.rdev = Some(meta.rdev);
    }
    // Below 28 the flags have no room to mark a linked file: every regular file says its inode.
    let marked = ctx.session.version.has_extended_flags();
    let linked =
        if marked { kind != FileKind::Directory && meta.nlink > 1 } else { kind == FileKind::Regular };
    if layout.hard_links && linked {
        extra.hard_link =
            Some(HardLink::Inode { dev: (meta.dev as i64).wrapping_add(1), ino: meta.ino as i64 });
    }
    if kind == FileKind::Regular && layout.checksum {
        extra.checksum = Some(list_sum(ctx, base, wire));
    }
    if layout.acls && kind != FileKind::Symlink {
        read_acls(ctx, base, wire, meta, &mut extra)?;
    }
    if layout.atimes && kind != FileKind::Directory {
        extra.atime = Some(meta.atime);
    }
    Ok(extra)
}

/// Reaches the extended attributes of a source for `read`.
pub(crate) fn with_xattrs<T>(
    base: &Base,
    wire: &[u8],
    read: impl FnOnce(&HeldItem<'_>) -> T,
) -> io::Result<T> {
    let path = RelPath::new(wire);
    if path.is_root() {
        return Ok(read(&base.dir(wire)?.xattrs(b".", false)?));
    }
    // Those of a symlink itself, also where it is followed, as in stock.
    let parent = base.parent(wire)?;
    let item = parent.xattrs(last(wire), false)?;
    Ok(read(&item))
}

/// Reads the extended attributes of a source as they travel. Kinds that the receiving side will
/// not make have none.
pub(super) fn xattrs(
    ctx: &Context,
    base: &Base,
    wire: &[u8],
    kind: FileKind,
) -> Result<Vec<Xattr>, Unreadable> {
    let layout = &ctx.session.layout;
    let is_made = match kind {
        FileKind::Symlink => layout.links,
        kind if kind.is_device() => layout.devices,
        kind if kind.is_special() => layout.specials,
        _ => true,
    };
    if !layout.xattrs || !is_made {
        return Ok(Vec::new());
    }
    with_xattrs(base, wire, |item| xattrs::read(ctx, item))
        .unwrap_or_else(|error| Err(Unreadable { name: None, error }))
}

/// Reports a source whose attributes cannot be read: it is not listed.
pub(super) fn unreadable(ctx: &Context, path: &[u8], unreadable: &Unreadable) {
    let (before, after) = match &unreadable.name {
        Some(name) => {
            let after = format!("\",\"{}\",0) failed", name.as_bstr());
            ("get_xattr_data: lgetxattr(\"", after)
        }
        None => ("get_xattr_names: llistxattr(\"", "\",1024) failed".to_owned()),
    };
    let what = What::Around { before, path, after: after.as_bytes(), error: &unreadable.error };
    ctx.add_io_errors(IoErrors::GENERAL);
    ctx.report_problem(Problem { who: Who::Sender, class: Class::Transfer, what });
}

/// Reads the access control lists of a source, less what its mode says.
fn read_acls(ctx: &Context, base: &Base, wire: &[u8], meta: &Meta, extra: &mut Extra) -> io::Result<()> {
    let path = RelPath::new(wire);
    let (dir, name) = match path.is_root() {
        true => (base.dir(wire)?, &b"."[..]),
        false => (base.parent(wire)?, last(wire)),
    };
    let follow = ctx.options.select.symlinks != SourceLinks::Keep;
    let some = |acl: Acl| Some(acl).filter(|acl| !acl.is_empty()).map(Arc::new);
    if let Some(acl) = dir.acl(name, AclKind::Access, follow)? {
        extra.access_acl = some(acl.without_mode(meta.mode.permissions()));
    }
    if meta.kind() == FileKind::Directory {
        extra.default_acl = dir.acl(name, AclKind::Default, follow)?.and_then(some);
    }
    Ok(())
}

/// `--copy-devices`: a device is sent as a new file of what it holds.
pub(super) fn as_sent(ctx: &Context, base: &Base, wire: &[u8], meta: Meta) -> Meta {
    if !ctx.options.select.copy_devices || !meta.kind().is_device() {
        return meta;
    }
    // What cannot be opened holds nothing; why is told when its content is asked for.
    let held = match open(ctx, base, wire) {
        Ok((_, held)) if held.is_same_file(&meta) => held,
        _ => meta.as_content(|| 0),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Meta { mtime: now.as_secs() as i64, mtime_nsec: 0, ..held }
}

/// Sums a file for `-c`. What cannot be read has a sum of zeros: it is an error only if its
/// content is asked for.
fn list_sum(ctx: &Context, base: &Base, wire: &[u8]) -> Box<[u8]> {
    let kind = ctx.session.list_sum;
    sum_of(ctx, base, wire).unwrap_or_else(|_| vec![0; kind.len()].into())
}

fn sum_of(ctx: &Context, base: &Base, wire: &[u8]) -> io::Result<Box<[u8]>> {
    let mut file = open(ctx, base, wire)?.0;
    let mut sum = FileSum::unseeded(ctx.session.list_sum);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match io::Read::read(&mut file, &mut buffer) {
            Ok(0) => return Ok(sum.finish().to_vec().into()),
            Ok(n) => sum.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a source, which must be a regular file or count as one, with the metadata of what was opened.
pub(crate) fn open(ctx: &Context, base: &Base, wire: &[u8]) -> io::Result<(std::fs::File, Meta)> {
    let dir = base.parent(wire)?;
    let devices = Devices::content_if(ctx.options.select.copy_devices);
    let opened = match dir.open_content(last(wire), devices) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) && follows_last(ctx) => {
            dir.open_content_following(last(wire), devices)
        }
        opened => opened,
    };
    opened.and_then(|(file, meta)| ctx.spare_atime(&file).map(|()| (file, meta)))
}

/// Returns the last component.
pub(crate) fn last(wire: &[u8]) -> &[u8] {
    RelPath::new(wire).name()
}
