//! The walk: arguments first, then directory by directory in the order of the list.
//!
//! Both kinds of list are made the same way. An incremental one sends a segment after every step
//! and takes the next directory from the top of a stack, which gives the depth-first order; a
//! whole one takes all steps at once. A `-R` argument is listed component by component, each in
//! the segment of the directory before it.
//! Wire: protocol/doc/11-incremental-recursion.md#4-order-of-segments-sender

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use suisei_protocol::flist::{
    EntryFlags, Extra, FileKind, FileList, IoErrors, Mode, Ndx, NewEntry, Order, RelPath, XattrTable,
};
use suisei_protocol::limits::PATH_MAX;
use suisei_protocol::session::Recursion;

use super::args::{parse, sanitise, Argument, Spec};
use super::base::{join, trim_slashes, Base, Bases};
use super::draft::{Draft, Listed, PendingDir, Scan, SeenIds};
use super::entered::{new_chain, trace_listing, trace_verdict, Entered};
use super::links::HardLinks;
use super::look::{
    as_sent, cannot_list, extra, is_hidden, is_unreadable, last, look, no_referent, sentence, unless_hidden,
    unreadable, vanished, xattrs, Seen,
};
use super::Source;
use crate::failure::reason;
use crate::filter::Chain;
use crate::observe::{Class, Event, Note, Who};
use crate::options::SourceLinks;
use crate::sys::users;
use crate::trace::{Topic, Trace};
use crate::tree::{Dir, Meta};
use crate::{unconverted, Context, Failure};

/// Makes the segments of a run.
pub(crate) struct Lister<'c> {
    ctx: &'c Context,
    order: Order,
    incremental: bool,
    bases: Bases,
    /// Filters by base: each knows the merge files of the directory that it is in.
    chains: HashMap<usize, Chain>,
    /// Judges arguments, to which no merge file applies.
    argument_filter: Chain,
    pending: Vec<PendingDir>,
    next_start: Ndx,
    next_dir: i32,
    groups: HardLinks,
    ids: SeenIds,
    /// Whether a leading `./` of a `-R` argument has been listed.
    root_implied: bool,
    xattrs: XattrTable,
    /// Whether the members of an argument's own content are being listed.
    in_top: bool,
    /// Full names of the directories whose filters apply, while somebody looks.
    entered: Entered,
}

impl<'c> Lister<'c> {
    /// Starts before the first list.
    pub(crate) fn new(ctx: &'c Context) -> Self {
        let incremental = ctx.session.recursion == Recursion::Incremental;
        Lister {
            ctx,
            order: Order::of(ctx.session.version),
            incremental,
            bases: Bases::new(ctx.options.select.symlinks, ctx.privileges()),
            chains: HashMap::new(),
            argument_filter: new_chain(ctx),
            pending: Vec::new(),
            next_start: Ndx(i32::from(incremental)),
            next_dir: 0,
            groups: HardLinks::default(),
            ids: SeenIds::default(),
            root_implied: false,
            xattrs: XattrTable::default(),
            in_top: false,
            entered: Entered::default(),
        }
    }

    /// Makes the first list: all arguments, and in a whole list everything below them.
    pub(crate) fn first(&mut self, source: Source) -> Result<Listed, Failure> {
        let started = Instant::now();
        let mut draft = Draft::new(self.next_start, None);
        let Source { arguments, names } = source;
        match names {
            None => {
                for argument in &arguments {
                    self.argument(&mut draft, argument, &[])?;
                }
            }
            Some(mut names) => {
                let dir = arguments.into_iter().next().unwrap_or_default();
                self.bases.open(&dir).map_err(|error| self.no_directory(&dir, &error))?;
                while let Some(name) = names.next()? {
                    self.argument(&mut draft, &sanitise(&name), &dir)?;
                }
            }
        }
        if !self.incremental {
            self.queue(draft.take_work());
            while let Some(dir) = self.pending.pop() {
                self.directory(&mut draft, dir)?;
                self.queue(draft.take_work());
            }
            self.ids.complete(&self.ctx.session, &mut draft.builder);
        }
        Ok(self.finish(draft, None, started))
    }

    /// Makes the next segment of an incremental list; nothing at its end. `list` holds the
    /// segments before it.
    pub(crate) fn next(&mut self, list: &mut FileList) -> Result<Option<Listed>, Failure> {
        let Some(dir) = self.pending.pop() else { return Ok(None) };
        let started = Instant::now();
        let announced = match dir.ndx {
            Some(ndx) => Some((ndx, list.take_dir(ndx).map_err(suisei_protocol::Error::from)?)),
            None => None,
        };
        let mut draft = Draft::new(self.next_start, announced);
        let base = dir.base.clone();
        self.directory(&mut draft, dir)?;
        Ok(Some(self.finish(draft, base, started)))
    }

    /// Whether no segment will follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }

    fn finish(&mut self, mut draft: Draft, dir: Option<Arc<Base>>, started: Instant) -> Listed {
        let roots = draft.sort(self.order);
        if self.incremental {
            let dirs = draft.number_dirs(&mut self.next_dir, &roots);
            self.queue(dirs);
        }
        if self.pending.is_empty() {
            self.entered.leave_all(self.ctx);
        }
        let range = Trace::ListRange(draft.builder.start(), draft.builder.len());
        self.ctx.trace(Topic::Flist, 3, Who::Sender, range);
        let session = &self.ctx.session;
        if session.layout.hard_links && session.version.has_hard_link_groups() {
            self.groups.number(&mut draft.builder);
        }
        if !self.ctx.options.delete.ignore_errors {
            draft.builder.set_io_errors(self.ctx.io_errors());
        }
        self.next_start = Ndx(self.next_start.0 + draft.builder.len() as i32 + 1);
        let spent = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ctx.stats.list_build_ms.add(spent);
        Listed { segment: Arc::new(draft.builder.finish()), roots, dir }
    }

    /// Puts directories on the stack, the first on top.
    fn queue(&mut self, dirs: Vec<PendingDir>) {
        self.pending.extend(dirs.into_iter().rev());
    }

    /// Lists what is asked for of one directory.
    fn directory(&mut self, draft: &mut Draft, dir: PendingDir) -> Result<(), Failure> {
        for scan in dir.work.scans {
            draft.note_base(&scan.base);
            self.scan(draft, &dir.path, &scan)?;
        }
        for (argument, listed) in dir.work.deferred {
            self.place(draft, &argument, listed)?;
        }
        Ok(())
    }

    // --- arguments ---

    /// Lists one argument. `within` is the directory that names of `--files-from` are relative to.
    fn argument(&mut self, draft: &mut Draft, argument: &[u8], within: &[u8]) -> Result<(), Failure> {
        self.ctx.check_interrupt()?;
        let mut spec = parse(argument, self.ctx.options.select.relative).map_err(|_| Failure::Usage {
            text: format!("found \"..\" dir in relative path: {}", String::from_utf8_lossy(argument)),
        })?;
        if !within.is_empty() {
            spec.dir = join(within, &spec.dir);
        }
        let implies_root = spec.implies_root;
        let is_named = !within.is_empty();
        let Some(argument) = self.admit(spec, is_named)?.map(Rc::new) else { return Ok(()) };
        if implies_root && !self.root_implied {
            self.root_implied = true;
            self.implied(draft, &argument, b".");
        }
        self.place(draft, &argument, 0)
    }

    /// Decides whether an argument, or a name of `--files-from`, takes part.
    fn admit(&mut self, spec: Spec, is_named: bool) -> Result<Option<Argument>, Failure> {
        let ctx = self.ctx;
        let select = &ctx.options.select;
        let opened = match spec.contents && !select.relative {
            _ if is_hidden(ctx, true, || self.absolute(&spec.dir)) => Err(Errno::NOENT.into()),
            true => self.bases.open(&spec.dir),
            false => self.bases.open_for_file(&spec.dir, &spec.wire),
        };
        let base = match opened {
            Ok(base) => base,
            Err(error) => {
                cannot_list(ctx, "change_dir", &self.absolute(&spec.dir), &error);
                return Ok(None);
            }
        };
        let (base, found) = self.find(base, &spec);
        let full_name = base.full_name(&spec.wire);
        let confined = ctx.options.trust.confine_root.as_ref().filter(|_| is_named);
        let found = match confined {
            Some(root) if base.leaves(&spec.wire, spec.contents, root) => Err(Errno::LOOP.into()),
            _ => found,
        };
        let meta = match unless_hidden(ctx, found, &full_name) {
            Ok(Seen::Item(meta)) => Some(meta),
            Ok(Seen::NoReferent) if select.symlinks == SourceLinks::FollowUnsafe => {
                no_referent(ctx, &full_name);
                return Ok(None);
            }
            Ok(Seen::Absent | Seen::NoReferent) if select.delete_missing_args => None,
            Ok(Seen::Absent | Seen::NoReferent) => {
                if !select.ignore_missing_args {
                    // Deletions may go on: nothing of what was listed is unknown.
                    let error = io::Error::from_raw_os_error(Errno::NOENT.raw_os_error());
                    ctx.problem(Who::Sender, Class::Transfer, "link_stat", &full_name, &error);
                }
                return Ok(None);
            }
            Err(error) => {
                cannot_list(ctx, "link_stat", &full_name, &error);
                return Ok(None);
            }
        };
        let is_dir = meta.is_some_and(|meta| meta.kind() == FileKind::Directory);
        let path = RelPath::new(trim_slashes(&spec.wire));
        if is_dir && !select.recursive && !select.dirs {
            ctx.report(Event::Note(path, Note::SkippingDirectory));
            return Ok(None);
        }
        trace_verdict(ctx, &self.argument_filter, path, is_dir);
        if !path.is_root() && self.argument_filter.verdict(path, is_dir).is_excluded() {
            return Ok(None);
        }
        let Spec { dir, wire, contents, .. } = spec;
        Ok(Some(Argument { dir, base, wire, meta, contents }))
    }

    /// Looks for an argument. Symlinks on the way to a `-R` argument are followed, as is one that
    /// ends in a slash: the base is then the directory behind them.
    fn find(&mut self, base: Arc<Base>, spec: &Spec) -> (Arc<Base>, io::Result<Seen>) {
        let wire = spec.wire.as_slice();
        if wire == b"." {
            let found = base.stat(wire, true);
            return (base, found.map(|meta| meta.map_or(Seen::Absent, Seen::Item)));
        }
        let mut base = base;
        let way = RelPath::new(trim_slashes(wire)).parent();
        let mut parent = base.parent(wire);
        if parent.is_err() && !way.is_root() {
            if let Ok(behind) = self.bases.open_behind(&spec.dir, way.as_bytes()) {
                parent = behind.parent(wire);
                base = behind;
            }
        }
        let parent = match parent {
            Ok(parent) => parent,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (base, Ok(Seen::Absent)),
            Err(error) => return (base, Err(error)),
        };
        let found = look(self.ctx, &parent, last(wire), wire);
        match found {
            Ok(Seen::Item(meta)) if spec.contents && meta.kind() == FileKind::Symlink => {
                match self.bases.open_behind(&spec.dir, wire) {
                    Ok(behind) => {
                        let meta = behind.stat(wire, true);
                        (behind, meta.map(|meta| meta.map_or(Seen::Absent, Seen::Item)))
                    }
                    Err(_) => (base, found),
                }
            }
            found => (base, found),
        }
    }

    /// Lists the next component of an argument: an implied directory, or the argument itself.
    fn place(&mut self, draft: &mut Draft, argument: &Rc<Argument>, listed: usize) -> Result<(), Failure> {
        let wire = &argument.wire;
        // A leading slash belongs to the first component.
        let from = listed + wire[listed..].iter().take_while(|&&b| b == b'/').count();
        match wire[from..].iter().position(|&b| b == b'/') {
            Some(slash) => {
                let implied = wire[..from + slash].to_vec();
                if draft.defer(&implied, argument, implied.len()) {
                    self.implied(draft, argument, &implied);
                }
                Ok(())
            }
            None => self.itself(draft, argument),
        }
    }

    /// Lists a parent directory that is there only because `-R` names something in it.
    fn implied(&mut self, draft: &mut Draft, argument: &Argument, wire: &[u8]) {
        let select = &self.ctx.options.select;
        if !select.implied_dirs && !self.ctx.session.version.flags_directory_content() {
            return;
        }
        match self.bases.stat_implied(&argument.dir, wire) {
            Ok(Some(meta)) => {
                self.push(draft, &argument.base, wire, &meta, EntryFlags::IMPLIED_DIR);
            }
            Ok(None) => vanished(self.ctx, FileKind::Directory, &argument.base.full_name(wire)),
            Err(error) => cannot_list(self.ctx, "link_stat", &argument.base.full_name(wire), &error),
        }
    }

    /// Lists an argument itself, and notes its content.
    fn itself(&mut self, draft: &mut Draft, argument: &Argument) -> Result<(), Failure> {
        let select = &self.ctx.options.select;
        let Argument { base, wire, .. } = argument;
        let Some(meta) = &argument.meta else {
            self.push_missing(draft, base, wire);
            return Ok(());
        };
        let content = meta.kind() == FileKind::Directory && (select.recursive || argument.contents);
        let flags = match content {
            true => EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR,
            false => EntryFlags::empty(),
        };
        if self.push(draft, base, wire, meta, flags).is_none() || !content {
            return Ok(());
        }
        let device = (select.one_file_system > 0).then_some(meta.dev);
        let scan = Scan { base: base.clone(), device, descend: select.recursive };
        if wire == b"." {
            return self.scan(draft, wire, &scan);
        }
        draft.add_scan(wire, scan);
        Ok(())
    }

    /// The run cannot do without this directory.
    fn no_directory(&mut self, named: &[u8], error: &io::Error) -> Failure {
        let name = self.absolute(named);
        let name = String::from_utf8_lossy(&name);
        Failure::Selection {
            text: format!("rsync: [sender] change_dir \"{name}\" failed: {}", reason(error)),
        }
    }

    /// Returns the absolute name of a directory that cannot be opened.
    fn absolute(&mut self, named: &[u8]) -> Vec<u8> {
        match self.bases.open(b"") {
            Ok(here) if !named.starts_with(b"/") => here.full_name(named),
            _ => named.to_vec(),
        }
    }

    // --- directories ---

    /// Lists the members of a directory.
    fn scan(&mut self, draft: &mut Draft, wire: &[u8], scan: &Scan) -> Result<(), Failure> {
        let ctx = self.ctx;
        ctx.check_interrupt()?;
        let base = &scan.base;
        let opened = base.dir(wire).and_then(|dir| {
            let members = match ctx.options.preserve.open_noatime {
                true => dir.list_sparing_atime()?,
                false => dir.list()?,
            };
            Ok((dir, members))
        });
        let (dir, members) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                vanished(ctx, FileKind::Directory, &base.full_name(wire));
                return Ok(());
            }
            Err(error) => {
                cannot_list(ctx, "opendir", &base.full_name(wire), &error);
                return Ok(());
            }
        };
        let mut chain = self.chains.remove(&base.id).unwrap_or_else(|| new_chain(ctx));
        // A merge file that cannot be read has no rules, as in stock.
        if let Err(error) = chain.enter(base.merge_tree(), RelPath::new(trim_slashes(wire))) {
            ctx.note_untrusted(Who::Sender, &error);
        }
        self.entered.enter(ctx, || base.full_name(wire), self.incremental && !chain.has_merges());
        let mut path = Vec::new();
        if wire != b"." {
            path.extend_from_slice(wire);
            path.push(b'/');
        }
        let stem = path.len();
        self.in_top = wire == b".";
        for member in members {
            path.truncate(stem);
            path.extend_from_slice(&member.name);
            let shown = RelPath::new(trim_slashes(&path));
            // Where the kind is known, what is excluded need not be looked at.
            let known = member.kind.filter(|kind| *kind != FileKind::Symlink);
            if let Some(kind) = known {
                trace_verdict(ctx, &chain, shown, kind == FileKind::Directory);
            }
            let mut judged = known.map(|kind| kind == FileKind::Directory);
            let is_excluded = |is_dir: bool| {
                chain.verdict(shown, is_dir).is_excluded() || is_hidden(ctx, is_dir, || base.full_name(&path))
            };
            if judged.is_some_and(&is_excluded) {
                continue;
            }
            // What leads nowhere is a problem only if it is wanted.
            let is_unwanted = || is_excluded(false);
            let Some(meta) = self.member(&dir, base, &path, member.kind, &is_unwanted) else { continue };
            if ctx.options.select.ignore_unreadable && is_unreadable(&dir, &member.name, &meta) {
                continue;
            }
            let is_dir = meta.kind() == FileKind::Directory;
            if judged != Some(is_dir) {
                trace_verdict(ctx, &chain, shown, is_dir);
            }
            if judged.replace(is_dir) == Some(is_dir) || !is_excluded(is_dir) {
                self.push_member(draft, scan, &path, &meta);
            }
        }
        self.in_top = false;
        self.chains.insert(base.id, chain);
        Ok(())
    }

    /// Looks at a member of a directory; reports what is not there any more.
    fn member(
        &self,
        dir: &Dir,
        base: &Base,
        path: &[u8],
        kind: Option<FileKind>,
        is_hidden: &dyn Fn() -> bool,
    ) -> Option<Meta> {
        let ctx = self.ctx;
        if path.len() >= PATH_MAX {
            let over = path.len() + 1 - PATH_MAX;
            ctx.add_io_errors(IoErrors::GENERAL);
            let text = [over.to_string().as_bytes(), b": ", path].concat();
            sentence(ctx, Class::Error, "filename overflows max-path len by ", &text, "");
            return None;
        }
        match look(ctx, dir, last(path), path) {
            Ok(Seen::Item(meta)) => Some(meta),
            Ok(Seen::Absent) => {
                vanished(ctx, kind.unwrap_or(FileKind::Regular), &base.full_name(path));
                None
            }
            Ok(Seen::NoReferent) => {
                if !is_hidden() {
                    no_referent(ctx, &base.full_name(path));
                }
                None
            }
            Err(error) => {
                cannot_list(ctx, "readlink_stat", &base.full_name(path), &error);
                None
            }
        }
    }

    fn push_member(&mut self, draft: &mut Draft, scan: &Scan, path: &[u8], meta: &Meta) {
        if meta.kind() != FileKind::Directory {
            self.push(draft, &scan.base, path, meta, EntryFlags::empty());
            return;
        }
        let crosses = scan.device.is_some_and(|device| device != meta.dev);
        if crosses && self.ctx.options.select.one_file_system > 1 {
            return;
        }
        if !scan.descend || crosses {
            self.push(draft, &scan.base, path, meta, EntryFlags::empty());
            return;
        }
        if self.push(draft, &scan.base, path, meta, EntryFlags::CONTENT_DIR).is_none() {
            return;
        }
        draft.add_scan(path, Scan { base: scan.base.clone(), device: scan.device, descend: true });
    }

    // --- entries ---

    /// Lists an entry; returns nothing where that cannot be, which is then reported.
    fn push(
        &mut self,
        draft: &mut Draft,
        base: &Arc<Base>,
        wire: &[u8],
        meta: &Meta,
        flags: EntryFlags,
    ) -> Option<()> {
        let ctx = self.ctx;
        let mut meta = as_sent(ctx, base, wire, *meta);
        meta.mode = ctx.options.rewrite.chmod.apply(meta.mode, users::umask());
        let meta = &meta;
        trace_listing(ctx, wire, flags);
        let mut extra = match extra(ctx, base, wire, meta) {
            Ok(extra) => extra,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                vanished(ctx, meta.kind(), &base.full_name(wire));
                return None;
            }
            Err(error) => {
                cannot_list(ctx, "readlink_stat", &base.full_name(wire), &error);
                return None;
            }
        };
        if !unconverted::can_travel(ctx, wire, extra.link_target.as_deref(), || base.full_name(wire)) {
            return None;
        }
        let kind = meta.kind();
        extra.xattrs = match xattrs(ctx, base, wire, kind) {
            Ok(items) => self.xattrs.list(items),
            Err(error) => {
                // Like stock, which reads what a `.` holds as `./NAME`.
                let shown = if self.in_top { [b"./", wire].concat() } else { wire.to_vec() };
                let mut name = base.full_name(wire);
                name.truncate(name.len() - wire.len().min(name.len()));
                unreadable(ctx, &[name, shown].concat(), &error);
                return None;
            }
        };
        let size = if kind.is_device() || kind.is_special() { 0 } else { meta.size };
        let entry = NewEntry {
            path: wire,
            mode: meta.mode,
            size,
            mtime: meta.mtime,
            mtime_nsec: meta.mtime_nsec,
            uid: meta.uid,
            gid: meta.gid,
            flags,
        };
        let acls = [extra.access_acl.clone(), extra.default_acl.clone()];
        draft.note_base(base);
        if draft.builder.push(entry, extra).is_err() {
            ctx.add_io_errors(IoErrors::GENERAL);
            sentence(ctx, Class::Error, "name too long for the protocol: ", wire, "");
            return None;
        }
        self.ids.meet(&ctx.session, meta.uid, meta.gid, &mut draft.builder);
        for acl in acls.iter().flatten() {
            self.ids.meet_named(&ctx.session, &acl.named, &mut draft.builder);
        }
        ctx.stats.listed.count(kind);
        if matches!(kind, FileKind::Regular | FileKind::Symlink) {
            ctx.stats.total_size.add(size);
        }
        Some(())
    }

    /// Lists the name of a missing argument, for the other side to delete it.
    fn push_missing(&mut self, draft: &mut Draft, base: &Arc<Base>, wire: &[u8]) {
        let entry = NewEntry {
            path: wire,
            mode: Mode(0),
            size: 0,
            mtime: 0,
            mtime_nsec: 0,
            uid: 0,
            gid: 0,
            flags: EntryFlags::empty(),
        };
        draft.note_base(base);
        let extra = Extra::default();
        if draft.builder.push(entry, extra).is_ok() {
            self.ids.meet(&self.ctx.session, 0, 0, &mut draft.builder);
        }
    }
}
