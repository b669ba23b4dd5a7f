//! A segment in the making, with what its entries leave to do.
//!
//! Wire: protocol/doc/11-incremental-recursion.md#2-numbering

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use suisei_protocol::flist::{
    compare, DirNdx, IdKind, IdName, NamedAccess, Ndx, Order, OwnedEntry, Segment, SegmentBuilder,
};
use suisei_protocol::session::{Compat, Layout, Session};

use super::args::Argument;
use super::base::Base;
use crate::sys::users;

/// Where the entries of a segment lie on disk.
#[derive(Debug)]
pub(crate) enum Roots {
    /// All below one base; nothing where there are no entries.
    One(Option<Arc<Base>>),
    /// By position in the segment.
    PerEntry(Vec<Arc<Base>>),
}

impl Roots {
    /// Returns the base of the entry at a position.
    pub(crate) fn at(&self, position: usize) -> Option<&Arc<Base>> {
        match self {
            Roots::One(base) => base.as_ref(),
            Roots::PerEntry(bases) => bases.get(position),
        }
    }

    /// Returns the base of the directory that the segment lists, as far as its entries tell.
    pub(crate) fn of_directory(&self) -> Option<&Arc<Base>> {
        self.at(0)
    }
}

/// A finished segment.
#[derive(Debug)]
pub(crate) struct Listed {
    /// What is sent.
    pub(crate) segment: Arc<Segment>,
    /// Where its entries lie.
    pub(crate) roots: Roots,
    /// Where the directory that it lists lies.
    pub(crate) dir: Option<Arc<Base>>,
}

/// One reading of a directory.
#[derive(Debug)]
pub(super) struct Scan {
    /// The base that the directory's wire path is relative to.
    pub(super) base: Arc<Base>,
    /// `-x`: the only device whose directories are entered.
    pub(super) device: Option<u64>,
    /// Whether directories in it are entered too.
    pub(super) descend: bool,
}

/// What is to be listed of one directory.
#[derive(Debug, Default)]
pub(super) struct DirWork {
    /// Readings of it: several where several arguments name it.
    pub(super) scans: Vec<Scan>,
    /// `-R` arguments below it, with the length of their paths that is listed already.
    pub(super) deferred: Vec<(Rc<Argument>, usize)>,
}

/// A directory that waits for its turn.
#[derive(Debug)]
pub(super) struct PendingDir {
    /// Its number; nothing in a whole list.
    pub(super) ndx: Option<DirNdx>,
    /// Its wire path.
    pub(super) path: Box<[u8]>,
    /// Where it lies; nothing in a whole list.
    pub(super) base: Option<Arc<Base>>,
    /// What is to be listed of it.
    pub(super) work: DirWork,
}

/// A segment in the making: entries in order of discovery.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) builder: SegmentBuilder,
    /// By first position: the bases in order of use.
    runs: Vec<(usize, Arc<Base>)>,
    work: HashMap<Box<[u8]>, DirWork>,
}

impl Draft {
    pub(super) fn new(start: Ndx, dir: Option<(DirNdx, Arc<OwnedEntry>)>) -> Self {
        Draft { builder: SegmentBuilder::new(start, dir), runs: Vec::new(), work: HashMap::new() }
    }

    /// Notes where the next entry lies.
    pub(super) fn note_base(&mut self, base: &Arc<Base>) {
        if self.runs.last().is_none_or(|(_, last)| last.id != base.id) {
            self.runs.push((self.builder.len(), base.clone()));
        }
    }

    /// Notes that a directory of this segment is to be read. Twice from one base is once.
    pub(super) fn add_scan(&mut self, path: &[u8], scan: Scan) {
        let work = self.work.entry(path.into()).or_default();
        if work.scans.iter().all(|other| other.base.id != scan.base.id) {
            work.scans.push(scan);
        }
    }

    /// Notes that an argument goes on below a directory of this segment. Returns whether it is
    /// the first to do so.
    pub(super) fn defer(&mut self, path: &[u8], argument: &Rc<Argument>, listed: usize) -> bool {
        let work = self.work.entry(path.into()).or_default();
        work.deferred.push((argument.clone(), listed));
        work.deferred.len() == 1
    }

    /// Takes what is left to do, in the order of the paths.
    pub(super) fn take_work(&mut self) -> Vec<PendingDir> {
        let mut dirs: Vec<PendingDir> =
            self.work.drain().map(|(path, work)| PendingDir { ndx: None, path, base: None, work }).collect();
        dirs.sort_by(|a, b| a.path.cmp(&b.path));
        dirs
    }

    /// Sorts the entries, and the bases with them.
    pub(super) fn sort(&mut self, order: Order) -> Roots {
        let bases: HashSet<usize> = self.runs.iter().map(|(_, base)| base.id).collect();
        let roots = if bases.len() < 2 {
            Roots::One(self.runs.first().map(|(_, base)| base.clone()))
        } else {
            Roots::PerEntry(self.bases_in_order(order))
        };
        self.builder.sort(order);
        roots
    }

    fn bases_in_order(&self, order: Order) -> Vec<Arc<Base>> {
        let mut positions: Vec<usize> = (0..self.builder.len()).collect();
        if order != Order::AsSent {
            // The same stable sort as the builder's.
            positions.sort_by(|&a, &b| match (self.builder.get(a), self.builder.get(b)) {
                (Some(a), Some(b)) => compare(a, b, order),
                _ => std::cmp::Ordering::Equal,
            });
        }
        let base_of = |position: usize| {
            let run = self.runs.partition_point(|(first, _)| *first <= position);
            self.runs[run.max(1) - 1].1.clone()
        };
        positions.into_iter().map(base_of).collect()
    }

    /// Numbers the directories of the sorted entries from `next`, and takes what is to be listed
    /// of them in that order. A duplicate counts, but its work is the first one's.
    pub(super) fn number_dirs(&mut self, next: &mut i32, roots: &Roots) -> Vec<PendingDir> {
        let mut dirs: Vec<PendingDir> = Vec::new();
        for position in 0..self.builder.len() {
            let Some(entry) = self.builder.get(position).filter(|entry| entry.is_dir()) else { continue };
            let ndx = DirNdx(*next);
            *next += 1;
            let path = entry.wire_path();
            if entry.path().is_root() || dirs.last().is_some_and(|dir| *dir.path == *path) {
                continue;
            }
            let work = self.work.remove(path).unwrap_or_default();
            let base = roots.at(position).cloned();
            dirs.push(PendingDir { ndx: Some(ndx), path: path.into(), base, work });
        }
        dirs
    }
}

/// The ids whose names have been looked up, each once.
#[derive(Debug, Default)]
pub(super) struct SeenIds {
    users: HashSet<u32>,
    groups: HashSet<u32>,
}

impl SeenIds {
    /// Adds the names of a file's owner and group to a segment where they are met first.
    pub(super) fn meet(&mut self, session: &Session, uid: u32, gid: u32, builder: &mut SegmentBuilder) {
        let layout = &session.layout;
        for (is_sent, kind, id) in [(layout.uid, IdKind::User, uid), (layout.gid, IdKind::Group, gid)] {
            if is_sent {
                self.meet_one(session, kind, id, builder);
            }
        }
    }

    /// The same for the ids that an access control list names.
    pub(super) fn meet_named(
        &mut self,
        session: &Session,
        named: &[NamedAccess],
        builder: &mut SegmentBuilder,
    ) {
        named.iter().for_each(|named| self.meet_one(session, named.kind, named.id, builder));
    }

    fn meet_one(&mut self, session: &Session, kind: IdKind, id: u32, builder: &mut SegmentBuilder) {
        let is_new = !session.layout.numeric_ids
            && match kind {
                IdKind::User => self.users.insert(id),
                IdKind::Group => self.groups.insert(id),
            };
        let name = match kind {
            _ if !is_new => None,
            IdKind::User => users::user_name(id),
            IdKind::Group => users::group_name(id),
        };
        if let Some(name) = name {
            builder.push_id_name(IdName { kind, id, name });
        }
    }

    /// The lists behind a whole list end with the names of id 0, whether it was met or not.
    pub(super) fn complete(&mut self, session: &Session, builder: &mut SegmentBuilder) {
        if session.compat.contains(Compat::ID0_NAMES) && !session.names_ids_inline() {
            let Layout { uid, gid, acls, .. } = session.layout;
            for (has_list, kind) in [(uid || acls, IdKind::User), (gid || acls, IdKind::Group)] {
                if has_list {
                    self.meet_one(session, kind, 0, builder);
                }
            }
        }
    }
}
