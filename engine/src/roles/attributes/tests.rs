use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use suisei_protocol::flist::{Extra, Mode, Ndx, NewEntry, Rdev, Segment, SegmentBuilder};
use suisei_protocol::session::{Compat, Direction, Layout, Recursion, Session, Side, Version};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::Compressor;

use super::*;
use crate::context::Reporter;
use crate::ids::IdMap;
use crate::observe::{Event, Observer};
use crate::options::TransferOptions;

struct Deaf;

impl Observer for Deaf {
    fn event(&self, _event: Event<'_>) {}
}

fn context(preserve: Preserve) -> Context {
    let session = Session {
        side: Side::Client,
        direction: Direction::Receiving,
        version: Version::NEWEST,
        compat: Compat::empty(),
        seed: 0,
        transfer_sum: SumKind::Md5 { seed_first: true },
        list_sum: SumKind::Md5 { seed_first: true },
        compressor: Compressor::None,
        compress_level: 0,
        layout: Layout::default(),
        recursion: Recursion::Whole,
        charset: None,
    };
    let options = TransferOptions { preserve, ..TransferOptions::default() };
    let ids = IdMap::new(true, preserve.super_user);
    Context::new(session, options, Arc::new(Deaf), Reporter::Nobody, ids, Arc::new(AtomicBool::new(false)))
}

fn segment(mode: u32, atime: Option<i64>) -> Segment {
    let mut builder = SegmentBuilder::new(Ndx(0), None);
    let entry = NewEntry {
        path: b"x",
        mode: Mode(mode),
        size: 0,
        mtime: 1000,
        mtime_nsec: 5,
        uid: 70_001,
        gid: 70_002,
        flags: EntryFlags::empty(),
    };
    builder.push(entry, Extra { atime, ..Extra::default() }).unwrap();
    builder.finish()
}

fn meta(mode: u32) -> Meta {
    Meta {
        mode: Mode(mode),
        size: 0,
        mtime: 1000,
        mtime_nsec: 9,
        atime: 3000,
        atime_nsec: 7,
        uid: 1,
        gid: 2,
        rdev: Rdev::default(),
        dev: 1,
        ino: 1,
        nlink: 1,
    }
}

const FILE: u32 = 0o100_000;
const DIR: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

fn bits(preserve: Preserve, source: u32, existing: Option<u32>, made: u32, umask: u32) -> Option<u32> {
    let segment = segment(source, None);
    permissions(&preserve, segment.get(0).unwrap(), existing.map(meta).as_ref(), &meta(made), || umask)
}

/// The captured table of 24 section 7, `-r`.
#[test]
fn new_items_take_the_source_bits_that_the_umask_leaves() {
    let none = Preserve::default();
    let files = [(0o666, 0o644), (0o4755, 0o755), (0o1777, 0o755), (0o2711, 0o711), (0o444, 0o444)];
    for (source, expected) in files {
        assert_eq!(bits(none, FILE | source, None, FILE | 0o600, 0o022), Some(expected));
    }
    assert_eq!(bits(none, FILE | 0o666, None, FILE, 0o077), Some(0o600));
    assert_eq!(bits(none, FILE | 0o666, None, FILE, 0o002), Some(0o664));
    assert_eq!(bits(none, DIR | 0o2775, None, DIR, 0o022), Some(0o755));
    assert_eq!(bits(none, DIR | 0o755, None, DIR | 0o2755, 0o022), Some(0o2755), "given by the parent");
    assert_eq!(bits(none, FILE | 0o755, None, FILE | 0o2755, 0o022), Some(0o755));
    assert_eq!(bits(none, FILE | 0o644, Some(LINK | 0o777), FILE, 0o022), Some(0o644), "another type");
}

#[test]
fn existing_items_keep_their_bits_unless_asked() {
    let none = Preserve::default();
    assert_eq!(bits(none, FILE | 0o755, Some(FILE | 0o4640), FILE | 0o600, 0o022), Some(0o4640));
    let perms = Preserve { perms: true, executability: true, ..none };
    assert_eq!(bits(perms, FILE | 0o6755, Some(FILE | 0o640), FILE | 0o600, 0o022), Some(0o6755));
    assert_eq!(bits(perms, DIR | 0o755, Some(DIR | 0o2755), DIR | 0o2755, 0o022), Some(0o755));
    assert_eq!(bits(perms, LINK | 0o755, None, LINK | 0o777, 0o022), None);
}

/// Captured: existing 640, `-rE`.
#[test]
fn executability_gives_and_takes_x() {
    let exec = Preserve { executability: true, ..Preserve::default() };
    for source in [0o100, 0o755, 0o2711, 0o4755, 0o1777] {
        assert_eq!(bits(exec, FILE | source, Some(FILE | 0o640), FILE, 0o022), Some(0o750));
    }
    for source in [0o444, 0o600, 0o644, 0o666] {
        assert_eq!(bits(exec, FILE | source, Some(FILE | 0o640), FILE, 0o022), Some(0o640));
        assert_eq!(bits(exec, FILE | source, Some(FILE | 0o751), FILE, 0o022), Some(0o640));
    }
    assert_eq!(bits(exec, FILE | 0o755, Some(FILE | 0o614), FILE, 0o022), Some(0o614));
    assert_eq!(bits(exec, DIR | 0o755, Some(DIR | 0o600), DIR, 0o022), Some(0o600));
}

fn flags(preserve: Preserve, source: u32, existing: u32) -> ItemFlags {
    let segment = segment(source, Some(1));
    differs(&context(preserve), segment.get(0).unwrap(), &meta(existing))
}

#[test]
fn permissions_are_reported_where_they_would_change() {
    let perms = Preserve { perms: true, ..Preserve::default() };
    assert_eq!(flags(perms, FILE | 0o644, FILE | 0o4644), ItemFlags::REPORT_PERMS);
    assert_eq!(flags(perms, LINK | 0o644, LINK | 0o777), ItemFlags::empty());
    assert_eq!(flags(Preserve::default(), FILE | 0o644, FILE | 0o755), ItemFlags::empty());
    let exec = Preserve { executability: true, ..Preserve::default() };
    assert_eq!(flags(exec, FILE | 0o644, FILE | 0o755), ItemFlags::REPORT_PERMS);
    assert_eq!(flags(exec, FILE | 0o755, FILE | 0o640), ItemFlags::REPORT_PERMS);
    assert_eq!(flags(exec, FILE | 0o755, FILE | 0o200), ItemFlags::empty());
    assert_eq!(flags(exec, FILE | 0o755, FILE | 0o711), ItemFlags::empty());
}

#[test]
fn owners_are_reported_for_root_and_groups_where_settable() {
    let both = Preserve { owner: true, group: true, ..Preserve::default() };
    assert_eq!(flags(both, FILE, FILE), ItemFlags::empty());
    let root = Preserve { super_user: true, ..both };
    assert_eq!(flags(root, FILE, FILE), ItemFlags::REPORT_OWNER | ItemFlags::REPORT_GROUP);
    let segment = segment(FILE, None);
    let want = wanted(&context(both), segment.get(0).unwrap(), None, &meta(FILE), None);
    assert_eq!((want.uid, want.gid), (None, None));
    let want = wanted(&context(root), segment.get(0).unwrap(), None, &meta(FILE), None);
    assert_eq!((want.uid, want.gid), (Some(70_001), Some(70_002)));
}

#[test]
fn windows_compare_seconds_nanoseconds_or_a_range() {
    assert!(same_instant((1, 2), (1, 3), 0));
    assert!(!same_instant((1, 2), (2, 2), 0));
    assert!(!same_instant((1, 2), (1, 3), -1));
    assert!(same_instant((1, 2), (1, 2), -1));
    assert!(same_instant((1, 2), (3, 2), 2));
    assert!(!same_instant((1, 2), (4, 2), 2));
    assert!(!same_instant((i64::MIN, 0), (i64::MAX, 0), i32::MAX));
}

#[test]
fn nanoseconds_are_repaired_only_where_content_was_looked_at() {
    let times = Preserve { times: true, ..Preserve::default() };
    let (segment, existing) = (segment(FILE | 0o644, None), meta(FILE));
    let entry = segment.get(0).unwrap();
    let mut ctx = context(times);
    let exact = Some(Times { mtime: Some((1000, 5)), atime: None });
    assert_eq!(wanted(&ctx, entry, Some(&existing), &existing, None).times, None);
    let temp = Meta { ino: 2, ..existing };
    assert_eq!(wanted(&ctx, entry, Some(&existing), &temp, None).times, exact);
    let written = Meta { mtime_nsec: 10, ..existing };
    assert_eq!(wanted(&ctx, entry, Some(&existing), &written, None).times, exact, "in place");
    ctx.options.compare.checksum = true;
    assert_eq!(wanted(&ctx, entry, Some(&existing), &existing, None).times, exact);
}

#[test]
fn directory_and_symlink_times_can_be_left_out() {
    let all = Preserve { times: true, ..Preserve::default() };
    let late = |mode| Meta { mtime: 2000, ..meta(mode) };
    for (preserve, dirs, links) in [
        (all, true, true),
        (Preserve { omit_dir_times: true, ..all }, false, true),
        (Preserve { omit_link_times: true, ..all }, true, false),
        (Preserve::default(), false, false),
    ] {
        for (mode, kept) in [(DIR | 0o755, dirs), (LINK | 0o777, links)] {
            let segment = segment(mode, None);
            let (ctx, entry) = (context(preserve), segment.get(0).unwrap());
            assert_eq!(wanted(&ctx, entry, None, &late(mode), None).times.is_some(), kept);
            assert_eq!(differs(&ctx, entry, &late(mode)).contains(ItemFlags::REPORT_TIME), kept);
        }
    }
}

/// Captured: seconds decide, a symlink's is set without a word, a directory has none.
#[test]
fn access_times_count_in_seconds() {
    let atimes = Preserve { atimes: true, ..Preserve::default() };
    for (mode, atime, set, reported) in [
        (FILE, Some(3000), false, false),
        (FILE, Some(3001), true, true),
        (FILE, None, false, false),
        (LINK, Some(3001), true, false),
        (DIR, Some(3001), false, false),
    ] {
        let segment = segment(mode, atime);
        let (ctx, entry) = (context(atimes), segment.get(0).unwrap());
        let times = wanted(&ctx, entry, None, &meta(mode), None).times;
        assert_eq!(times, set.then_some(Times { mtime: None, atime: Some((3001, 0)) }));
        assert_eq!(differs(&ctx, entry, &meta(mode)).contains(ItemFlags::REPORT_ATIME), reported);
    }
}
