//! Strategies for sessions and trees, and what of an entry must survive the wire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use suisei_protocol::flist::{
    Acl, DirNdx, EntryFlags, EntryRef, Extra, FileKind, FileList, HardLink, IdKind, IdName, IoErrors, Mode,
    NamedAccess, Ndx, NewEntry, Order, Rdev, Segment, SegmentBuilder, Xattr, XattrTable, XattrValue,
};
use suisei_protocol::session::{Compat, Direction, Layout, Recursion, Session, Side, Version};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::Compressor;

/// A sender's session: every version, every optional field.
pub fn sessions() -> impl Strategy<Value = Session> {
    (27u32..=32, any::<u32>()).prop_map(|(version, bits)| {
        let on = |bit: u32| bits & (1 << bit) != 0;
        let version = Version::new(version).unwrap();
        let mut compat = Compat::empty();
        if version.has_compat_flags() {
            compat.set(Compat::VARINT_FLIST, on(0));
            compat.set(Compat::SAFE_FLIST, on(1));
            compat.set(Compat::ID0_NAMES, on(2));
        }
        let incremental = on(3) && version.has_incremental_recursion();
        Session {
            side: if on(4) { Side::Server } else { Side::Client },
            direction: Direction::Sending,
            version,
            compat,
            seed: 1,
            transfer_sum: SumKind::Xxh64,
            list_sum: SumKind::Sha1,
            compressor: if on(5) { Compressor::None } else { Compressor::Zlibx },
            compress_level: 6,
            layout: Layout {
                uid: on(6),
                gid: on(7),
                devices: on(8),
                specials: on(9),
                links: on(10),
                hard_links: on(11),
                checksum: on(12),
                atimes: on(13),
                xattrs: on(19) && version.has_acls_and_xattrs(),
                crtimes: on(14) && compat.contains(Compat::VARINT_FLIST),
                numeric_ids: on(15),
                recursive: true,
                dry_run: on(16) && on(17),
                append: on(18),
                acls: on(19),
                ..Layout::default()
            },
            recursion: if incremental { Recursion::Incremental } else { Recursion::Whole },
            charset: None,
        }
    })
}

/// One entry of a tree, before a session decides what of it is sent.
#[derive(Debug, Clone)]
pub struct Node {
    mode: u32,
    size: u64,
    mtime: i64,
    nsec: u32,
    uid: u32,
    gid: u32,
    rdev: Rdev,
    dir_flags: EntryFlags,
    /// Entries of one inode share all fields but their path.
    inode: u8,
}

/// Paths and entries; every parent is there and is a directory.
pub type Tree = BTreeMap<Vec<u8>, Node>;

fn node() -> impl Strategy<Value = Node> {
    let mode =
        prop::sample::select(vec![0o100_644, 0o100_755, 0o120_777, 0o20_666, 0o60_660, 0o10_600, 0o140_755]);
    let time = prop_oneof![Just(1_700_000_000i64), 0..i64::from(u32::MAX), any::<i64>()];
    let size = prop_oneof![0u64..100_000, 0..i64::MAX as u64];
    let id = || prop_oneof![Just(0u32), Just(1000), Just(u32::MAX - 1)];
    let rdev = (0u32..300, 0u32..70_000).prop_map(|(major, minor)| Rdev { major, minor });
    let dir_flags = prop::sample::select(vec![
        EntryFlags::CONTENT_DIR,
        EntryFlags::CONTENT_DIR | EntryFlags::TOP_DIR,
        EntryFlags::IMPLIED_DIR,
        EntryFlags::empty(),
    ]);
    let nsec = prop_oneof![Just(0u32), 0..1_000_000_000u32];
    (mode, size, time, nsec, id(), id(), rdev, dir_flags, 0u8..12).prop_map(
        |(mode, size, mtime, nsec, uid, gid, rdev, dir_flags, inode)| Node {
            mode,
            size,
            mtime,
            nsec,
            uid,
            gid,
            rdev,
            dir_flags,
            inode,
        },
    )
}

/// A tree with its root `.`.
pub fn trees() -> impl Strategy<Value = Tree> {
    let name = prop_oneof![
        prop::sample::select(vec!["a", "b", "a.c", "foo", "foo-bar", ".h", "-x", "z"])
            .prop_map(|s| s.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>().prop_filter("no separator", |b| !b"/\0".contains(b)), 1..200),
    ]
    .prop_filter("a real name", |name| name != b"." && name != b"..");
    let path = prop::collection::vec(name, 1..4);
    prop::collection::vec((path, node()), 0..20).prop_map(|items| {
        let mut tree = Tree::new();
        let dir = |like: &Node| Node { mode: 0o40_755, ..like.clone() };
        for (parts, node) in items {
            tree.entry(b".".to_vec()).or_insert_with(|| dir(&node));
            for end in 1..parts.len() {
                let parent = tree.entry(parts[..end].join(&b'/')).or_insert_with(|| dir(&node));
                parent.mode = 0o40_755;
            }
            tree.entry(parts.join(&b'/')).or_insert(node);
        }
        tree
    })
}

/// Cuts a tree into the segments that a sender of this session has, in index order.
pub fn segments(session: &Session, tree: &Tree) -> Vec<Arc<Segment>> {
    let mut builder = Lists {
        session,
        tree,
        lists: FileList::new(),
        groups: HashMap::new(),
        named: Vec::new(),
        xattrs: XattrTable::default(),
    };
    let mut out = Vec::new();
    if session.recursion == Recursion::Whole {
        out.push(builder.segment(Ndx(0), None, |_| true));
        return out;
    }
    out.push(builder.segment(Ndx(1), None, |path| !path.contains(&b'/')));
    for n in 0.. {
        let Ok(dir) = builder.lists.take_dir(DirNdx(n)) else {
            if n == 0 {
                continue;
            }
            break;
        };
        let parent = dir.entry().path().as_bytes().to_vec();
        let start = builder.lists.next_start(Ndx(1));
        let below =
            |path: &[u8]| path.iter().rposition(|&b| b == b'/').is_some_and(|slash| path[..slash] == parent);
        out.push(builder.segment(start, Some((DirNdx(n), dir)), below));
    }
    out
}

struct Lists<'a> {
    session: &'a Session,
    tree: &'a Tree,
    lists: FileList,
    groups: HashMap<u8, i32>,
    named: Vec<(IdKind, u32)>,
    xattrs: XattrTable,
}

impl Lists<'_> {
    fn segment(
        &mut self,
        start: Ndx,
        dir: Option<(DirNdx, Arc<suisei_protocol::flist::OwnedEntry>)>,
        belongs: impl Fn(&[u8]) -> bool,
    ) -> Arc<Segment> {
        let mut list = SegmentBuilder::new(start, dir);
        let mut first_of_inode: BTreeMap<u8, Node> = BTreeMap::new();
        for node in self.tree.values().filter(|node| node.mode & 0o170_000 != 0o40_000) {
            first_of_inode.entry(node.inode).or_insert_with(|| node.clone());
        }
        for (path, node) in self.tree.iter().filter(|(path, _)| belongs(path)) {
            let node = match first_of_inode.get(&node.inode) {
                Some(first) if self.session.layout.hard_links && node.mode & 0o170_000 != 0o40_000 => first,
                _ => node,
            };
            self.push(&mut list, path, node);
        }
        list.set_io_errors(IoErrors::from_bits_truncate(self.tree.len() as u8));
        list.sort(Order::of(self.session.version));
        if self.session.version.has_hard_link_groups() {
            self.number_links(&mut list);
        }
        let segment = Arc::new(list.finish());
        self.lists.push(segment.clone());
        segment
    }

    fn push(&mut self, list: &mut SegmentBuilder, path: &[u8], node: &Node) {
        let Session { layout, version, .. } = self.session;
        let kind = Mode(node.mode).kind();
        let is_dir = kind == FileKind::Directory;
        let mtime = if version.has_varints() { node.mtime } else { i64::from(node.mtime as u32) };
        let entry = NewEntry {
            path,
            mode: Mode(node.mode),
            size: node.size,
            mtime,
            mtime_nsec: if version.has_nanoseconds() { node.nsec } else { 0 },
            uid: if layout.uid { node.uid } else { 0 },
            gid: if layout.gid { node.gid } else { 0 },
            flags: if is_dir { node.dir_flags } else { EntryFlags::empty() },
        };
        let regular_only = !version.has_extended_flags();
        let has_acl = layout.acls && version.has_acls_and_xattrs() && kind != FileKind::Symlink;
        let linked = layout.hard_links && !is_dir && (!regular_only || kind == FileKind::Regular);
        let extra = Extra {
            link_target: (layout.links && kind == FileKind::Symlink).then(|| b"target".as_slice().into()),
            rdev: (layout.devices && kind.is_device()).then_some(node.rdev),
            hard_link: linked.then_some(HardLink::Inode { dev: 5, ino: i64::from(node.inode) << 30 }),
            checksum: (layout.checksum && kind == FileKind::Regular).then(|| [node.inode; 20].into()),
            atime: (layout.atimes && !is_dir).then_some(node.size as i64),
            crtime: layout.crtimes.then_some(if node.inode % 2 == 0 { mtime } else { 77 }),
            access_acl: (has_acl && node.inode % 3 != 0).then(|| acl(node, false)),
            default_acl: (has_acl && is_dir && node.inode % 2 == 0).then(|| acl(node, true)),
            xattrs: if layout.xattrs { self.xattrs.list(xattrs(node.inode)) } else { None },
        };
        let acls = extra.access_acl.iter().chain(&extra.default_acl);
        let in_acls = acls.flat_map(|acl| acl.named.iter().map(|named| (named.kind, named.id)));
        let owner = layout.uid.then_some((IdKind::User, entry.uid));
        let group = layout.gid.then_some((IdKind::Group, entry.gid));
        for (kind, id) in owner.into_iter().chain(group).chain(in_acls) {
            if !self.named.contains(&(kind, id)) {
                self.named.push((kind, id));
                list.push_id_name(IdName { kind, id, name: format!("name{id}").into() });
            }
        }
        list.push(entry, extra).unwrap();
    }

    fn number_links(&mut self, list: &mut SegmentBuilder) {
        for position in 0..list.len() {
            let Some(HardLink::Inode { ino, .. }) = list.get(position).and_then(|e| e.hard_link()) else {
                continue;
            };
            let number = list.start().0 + position as i32;
            let group = *self.groups.entry((ino >> 30) as u8).or_insert(number);
            list.set_hard_link(position, HardLink::Group { group, first: group == number });
        }
    }
}

/// A list that depends on the inode: some are equal, and some have names.
fn acl(node: &Node, complete: bool) -> Arc<Acl> {
    let bits = node.inode % 8;
    let kind = if bits % 2 == 0 { IdKind::User } else { IdKind::Group };
    let named = (0..bits).map(|n| NamedAccess { kind, id: 70 + u32::from(n), access: n % 8 }).collect();
    Arc::new(Acl {
        user: complete.then_some(7),
        group: Some(bits),
        mask: complete.then_some(5),
        other: complete.then_some(1),
        named,
    })
}

/// Attributes of an inode: none, short ones, long ones.
fn xattrs(inode: u8) -> Vec<Xattr> {
    let value = |number: u8| XattrValue::of(&vec![inode % 5; usize::from(number) * 20]);
    (1..=inode % 4)
        .map(|n| Xattr { name: format!("user.{n}").into_bytes().into(), value: value(n) })
        .collect()
}

/// Everything of an entry that its session sends. Below 30 the receiver derives directory flags.
pub fn fields(session: &Session, entry: EntryRef<'_>) -> String {
    let flags = session.version.flags_directory_content().then(|| entry.flags());
    let mut extra = entry.extra().cloned().unwrap_or_default();
    let xattrs = extra.xattrs.take();
    let xattrs = xattrs.as_ref().map(|list| list.items());
    format!(
        "{:?} {:o} {} {}.{} {}:{} {flags:?} {extra:?} {xattrs:?}",
        entry.path(),
        entry.mode().0,
        entry.size(),
        entry.mtime(),
        entry.mtime_nsec(),
        entry.uid(),
        entry.gid(),
    )
}
