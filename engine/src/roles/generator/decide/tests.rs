use suisei_protocol::flist::{EntryFlags, Extra, Mode, Ndx, NewEntry, Rdev, Segment, SegmentBuilder};

use super::*;

/// A regular file of 100 bytes, changed at second 1000.
fn source() -> Segment {
    let mut builder = SegmentBuilder::new(Ndx(0), None);
    let entry = NewEntry {
        path: b"x",
        mode: Mode(0o100_644),
        size: 100,
        mtime: 1000,
        mtime_nsec: 5,
        uid: 0,
        gid: 0,
        flags: EntryFlags::empty(),
    };
    builder.push(entry, Extra::default()).unwrap();
    builder.finish()
}

fn existing(size: u64, mtime: i64) -> Meta {
    Meta {
        mode: Mode(0o100_600),
        size,
        mtime,
        mtime_nsec: 9,
        atime: 0,
        atime_nsec: 0,
        uid: 0,
        gid: 0,
        rdev: Rdev::default(),
        dev: 1,
        ino: 1,
        nlink: 1,
    }
}

fn verdict(rules: Rules, existing: Option<Meta>) -> Verdict {
    let segment = source();
    judge(&rules, segment.get(0).unwrap(), existing.as_ref(), || panic!("no content was to be compared"))
}

fn with_content(rules: Rules, same: bool) -> Verdict {
    let segment = source();
    judge(&rules, segment.get(0).unwrap(), Some(&existing(100, 2000)), || same)
}

const NONE: Rules = Rules {
    existing_only: false,
    ignore_existing: false,
    update_only: false,
    max_size: None,
    min_size: None,
    checksum: false,
    size_only: false,
    ignore_times: false,
    modify_window: 0,
    append: false,
};

#[test]
fn the_quick_check_looks_at_size_and_seconds() {
    assert_eq!(verdict(NONE, None), Verdict::Transfer);
    assert_eq!(verdict(NONE, Some(existing(100, 1000))), Verdict::UpToDate, "nanoseconds do not count");
    assert_eq!(verdict(NONE, Some(existing(101, 1000))), Verdict::Transfer);
    assert_eq!(verdict(NONE, Some(existing(100, 1001))), Verdict::Transfer);
}

#[test]
fn a_window_forgives_seconds_and_a_negative_one_nothing() {
    let within = Rules { modify_window: 2, ..NONE };
    assert_eq!(verdict(within, Some(existing(100, 1002))), Verdict::UpToDate);
    assert_eq!(verdict(within, Some(existing(100, 1003))), Verdict::Transfer);
    let exact = Rules { modify_window: -1, ..NONE };
    assert_eq!(verdict(exact, Some(existing(100, 1000))), Verdict::Transfer, "5 and 9 nanoseconds");
}

#[test]
fn size_only_and_ignore_times_move_the_check_both_ways() {
    let rules = Rules { size_only: true, ..NONE };
    assert_eq!(verdict(rules, Some(existing(100, 5))), Verdict::UpToDate);
    assert_eq!(verdict(rules, Some(existing(99, 1000))), Verdict::Transfer);
    let rules = Rules { ignore_times: true, ..NONE };
    assert_eq!(verdict(rules, Some(existing(100, 1000))), Verdict::Transfer);
    let both = Rules { size_only: true, ignore_times: true, ..NONE };
    assert_eq!(verdict(both, Some(existing(100, 5))), Verdict::UpToDate);
}

#[test]
fn checksums_are_compared_only_where_sizes_agree() {
    let rules = Rules { checksum: true, ..NONE };
    assert_eq!(with_content(rules, true), Verdict::UpToDate);
    assert_eq!(with_content(rules, false), Verdict::Transfer);
    assert_eq!(verdict(rules, Some(existing(99, 1000))), Verdict::Transfer);
    assert_eq!(with_content(Rules { ignore_times: true, ..rules }, true), Verdict::UpToDate);
}

#[test]
fn size_limits_are_inclusive_and_come_first() {
    let max = |max_size| Rules { max_size: Some(max_size), ..NONE };
    assert_eq!(verdict(max(100), None), Verdict::Transfer);
    assert_eq!(verdict(max(99), None), Verdict::Skip(Note::OverMaxSize));
    assert_eq!(verdict(max(99), Some(existing(100, 1000))), Verdict::Skip(Note::OverMaxSize));
    let min = |min_size| Rules { min_size: Some(min_size), ..NONE };
    assert_eq!(verdict(min(100), None), Verdict::Transfer);
    assert_eq!(verdict(min(101), None), Verdict::Skip(Note::UnderMinSize));
}

#[test]
fn update_skips_what_is_newer_and_checks_the_rest() {
    let rules = Rules { update_only: true, ..NONE };
    assert_eq!(verdict(rules, Some(existing(5, 1001))), Verdict::Skip(Note::Newer));
    assert_eq!(verdict(rules, Some(existing(100, 1000))), Verdict::UpToDate);
    assert_eq!(verdict(rules, Some(existing(5, 1000))), Verdict::Transfer);
    assert_eq!(verdict(rules, Some(existing(5, 999))), Verdict::Transfer);
    let window = Rules { modify_window: 2, ..rules };
    assert_eq!(verdict(window, Some(existing(5, 999))), Verdict::Skip(Note::Newer), "1000 - 999 < 2");
    assert_eq!(verdict(window, Some(existing(5, 998))), Verdict::Transfer);
}

#[test]
fn appending_needs_a_shorter_file() {
    let rules = Rules { append: true, ..NONE };
    assert_eq!(verdict(rules, Some(existing(99, 5))), Verdict::Transfer);
    assert_eq!(verdict(rules, Some(existing(100, 5))), Verdict::NothingToAppend);
    assert_eq!(verdict(rules, Some(existing(101, 5))), Verdict::NothingToAppend);
    assert_eq!(verdict(rules, Some(existing(100, 1000))), Verdict::UpToDate);
    assert_eq!(verdict(rules, None), Verdict::Transfer);
}

#[test]
fn a_redo_transfers_whatever_the_rules() {
    let rules = Rules {
        existing_only: true,
        ignore_existing: true,
        update_only: true,
        max_size: Some(1),
        min_size: Some(1 << 40),
        checksum: true,
        size_only: true,
        ignore_times: false,
        modify_window: 0,
        append: true,
    };
    let redo = rules.for_redo();
    assert_eq!(verdict(redo, Some(existing(100, 1000))), Verdict::Transfer);
    assert_eq!(verdict(redo, Some(existing(200, 9999))), Verdict::Transfer);
    assert_eq!(presence(&redo, FileKind::Regular, Some(FileKind::Regular)), Presence::Takes);
    assert_eq!(presence(&redo, FileKind::Regular, None), Presence::Takes);
}

#[test]
fn presence_is_asked_of_every_kind() {
    use FileKind::{Directory, Regular, Symlink};
    let rules = Rules { existing_only: true, ..NONE };
    assert_eq!(presence(&rules, Symlink, None), Presence::NotCreating);
    assert_eq!(presence(&rules, Directory, None), Presence::NotCreating);
    assert_eq!(presence(&rules, Regular, Some(Directory)), Presence::Takes);
    let rules = Rules { ignore_existing: true, ..NONE };
    assert_eq!(presence(&rules, Regular, None), Presence::Takes);
    assert_eq!(presence(&rules, Regular, Some(Regular)), Presence::Exists);
    assert_eq!(presence(&rules, Regular, Some(Directory)), Presence::Exists);
    assert_eq!(presence(&rules, Directory, Some(Symlink)), Presence::Exists);
    assert_eq!(presence(&rules, Directory, Some(Directory)), Presence::Takes);
}
