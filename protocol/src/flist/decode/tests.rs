use std::sync::Arc;

use super::*;
use crate::error::Stop;
use crate::flist::{DirNdx, EntryEncoder, FileList, Ndx, Order};
use crate::session::{Compat, Layout, Session};
use crate::support::{archive, bytes, incremental, session};

/// Reads one list with its end mark; what is left over must be nothing.
fn read(
    decoder: &mut EntryDecoder,
    mut list: SegmentBuilder,
    bytes: &[u8],
) -> Result<(SegmentBuilder, IoErrors), Stop> {
    let mut at = 0;
    loop {
        for cut in 0..=bytes.len() - at {
            // Any shorter input is short and changes nothing.
            let before = list.len();
            match decoder.decode(&mut Reader::new(&bytes[at..at + cut]), &mut list) {
                Err(Stop::Short) if cut < bytes.len() - at => assert_eq!(list.len(), before),
                Err(stop) => return Err(stop),
                Ok(Listed::Entry) => {
                    at += cut;
                    break;
                }
                Ok(Listed::End(errors)) => {
                    at += cut;
                    assert_eq!(at, bytes.len());
                    return Ok((list, errors));
                }
            }
        }
    }
}

fn first_list(session: &Session, text: &str) -> Result<(SegmentBuilder, IoErrors), Stop> {
    let start = i32::from(session.recursion == crate::session::Recursion::Incremental);
    read(&mut EntryDecoder::new(session), SegmentBuilder::new(Ndx(start), None), &bytes(text))
}

/// Decodes a capture and demands that encoding in the same order gives the same bytes.
fn both_ways(session: &Session, text: &str) -> SegmentBuilder {
    let (list, errors) = first_list(session, text).unwrap();
    let mut copy = first_list(session, text).unwrap().0;
    copy.set_io_errors(errors);
    let mut out = Vec::new();
    EntryEncoder::new(session).encode(&copy.finish(), &mut out);
    assert_eq!(out, bytes(text));
    list
}

fn names(list: SegmentBuilder) -> Vec<String> {
    list.finish().iter().map(|(_, e)| String::from_utf8(e.wire_path().to_vec()).unwrap()).collect()
}

fn exit_code(stop: Result<(SegmentBuilder, IoErrors), Stop>) -> u8 {
    match stop {
        Err(Stop::Bad(error)) => error.exit_code(),
        Err(Stop::Short) => panic!("short"),
        Ok(_) => 0,
    }
}

fn checked_archive() -> Layout {
    Layout { hard_links: true, checksum: true, ..archive() }
}

#[test]
fn the_worked_example_of_32() {
    let list = both_ways(
        &session(32, checked_archive()),
        r#"01 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 00 | 00
        80 98 | 03 6e 75 6c | 00 00 00 | b6 21 00 00 | 01 | 03
        80 98 | 01 70 | 00 00 00 | a4 11 00 00
        80 98 | 03 6c 6e 6b | 00 01 00 | ff a1 00 00 | 01 61
        92 98 | 01 61 | 00 06 00 | a4 81 00 00 | 9c e4 00*12 ba 6b
        80 98 | 01 64 | 00 00 10 | ed 41 00 00
        82 b8 | 01 | 05 2f 68 61 72 64 | 04
        00 | 00"#,
    );
    assert_eq!(list.get(1).unwrap().rdev(), Some(Rdev { major: 1, minor: 3 }));
    assert_eq!(list.get(2).unwrap().kind(), FileKind::Fifo);
    assert_eq!(list.get(3).unwrap().link_target(), Some(&b"a"[..]));
    assert_eq!(list.get(4).unwrap().hard_link(), Some(HardLink::Group { group: 4, first: true }));
    let follower = list.get(6).unwrap();
    assert_eq!(follower.wire_path(), b"d/hard");
    assert_eq!((follower.size(), follower.mode().0, follower.mtime()), (6, 0o100_644, 0x6593_7D25));
    assert_eq!(follower.checksum(), list.get(4).unwrap().checksum());
    assert_eq!(follower.hard_link(), Some(HardLink::Group { group: 4, first: false }));
    let mut list = list;
    list.sort(Order::DirectoriesLast);
    assert_eq!(names(list), [".", "a", "lnk", "nul", "p", "d", "d/hard"]);
}

#[test]
fn the_worked_example_of_29() {
    let list = both_ways(
        &session(29, checked_archive()),
        r#"01 | 01 2e | 00 10 00 00 | 25 7d 93 65 | ed 41 00 00 | 00 00 00 00 | 00 00 00 00
        9c 08 | 03 6e 75 6c | 00 00 00 00 | b6 21 00 00 | 01 00 00 00 | 03
        9c 09 | 01 70 | 00 00 00 00 | a4 11 00 00 | 00
        98 | 03 6c 6e 6b | 01 00 00 00 | ff a1 00 00 | 01 00 00 00 61
        9c 02 | 01 61 | 06 00 00 00 | a4 81 00 00 | 01 fe 00 00 | a3 e0 9b 00 | 63 48 00*12 b5 6d
        98 | 01 64 | 00 10 00 00 | ed 41 00 00
        bc 06 | 01 05 2f 68 61 72 64 | 06 00 00 00 | a4 81 00 00 | a3 e0 9b 00 | 63 48 00*12 b5 6d
        00"#,
    );
    let link = Some(HardLink::Inode { dev: 0xFE01, ino: 0x9B_E0A3 });
    assert_eq!(list.get(4).unwrap().hard_link(), link);
    assert_eq!(list.get(6).unwrap().hard_link(), link);
    let content: Vec<bool> =
        [0, 5].map(|i| list.get(i).unwrap().flags().contains(EntryFlags::CONTENT_DIR)).into();
    assert_eq!(content, [true, true], "derived: both lie below the top directory");
}

#[test]
fn the_same_tree_at_27() {
    let list = both_ways(
        &session(27, checked_archive()),
        r#"01 | 01 2e | 00 10 00 00 | 25 7d 93 65 | ed 41 00 00 | 00 00 00 00 | 00 00 00 00 | 00*16
        98 | 03 6e 75 6c | 00 00 00 00 | b6 21 00 00 | 03 01 00 00 | 00*16
        9c | 01 70 | 00 00 00 00 | a4 11 00 00 | 00*16
        98 | 01 61 | 06 00 00 00 | a4 81 00 00 | 01 fe 00 00 | a3 e0 9b 00 | 63 48 00*12 b5 6d
        b8 | 01 05 2f 68 61 72 64 | 06 00 00 00 | ed 81 00 00 | 01 fe 00 00 | a3 e0 9b 00 | 63 48 00*12 b5 6d
        00"#,
    );
    assert_eq!(list.get(1).unwrap().rdev(), Some(Rdev { major: 1, minor: 3 }));
    assert_eq!(list.get(1).unwrap().checksum(), None);
    assert_eq!(list.get(4).unwrap().hard_link(), Some(HardLink::Inode { dev: 0xFE01, ino: 0x9B_E0A3 }));
}

#[test]
fn large_device_numbers_at_27() {
    for (major, minor, number) in [(8, 300, 0x0010_082C), (259, 70_000, 0x1111_0370)] {
        let rdev = Rdev { major, minor };
        assert_eq!(rdev.to_linux(), number, "{rdev:?}");
        assert_eq!(Rdev::from_linux(number), rdev);
    }
}

#[test]
fn captured_directory_flags() {
    let times = Layout { recursive: true, ..Layout::default() };
    // `-dt nt/`: a child that is listed, not entered.
    let list = both_ways(
        &session(32, Layout::default()),
        "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 81 9a | 01 42 | 00 00 10 | 00 00",
    );
    assert_eq!(list.get(0).unwrap().flags(), EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR);
    assert_eq!(list.get(1).unwrap().flags(), EntryFlags::empty());
    // `-rtR ./A/AA`: implied parents.
    let relative = Layout { relative: true, ..times };
    let list = both_ways(
        &incremental(32, relative),
        "81 19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 81 9b | 01 41 | 00 00 10 | 00 00",
    );
    assert_eq!(list.get(1).unwrap().flags(), EntryFlags::IMPLIED_DIR);
}

#[test]
fn below_30_content_ends_with_the_top_directory() {
    let relative = Layout { relative: true, recursive: true, ..Layout::default() };
    // A (implied), A/AA (top), A/AA/d, B (beside), B/c.
    let text = "18 | 01 41 | 00*4 | 25 7d 93 65 | ed 41 00 00
        bb | 01 03 2f 41 41 | 00*4
        ba | 04 02 2f 64 | 00*4
        9a | 01 42 | 00*4
        ba | 01 02 2f 63 | 00*4
        00";
    let list = first_list(&session(29, relative), text).unwrap().0;
    let flags: Vec<EntryFlags> = (0..5).map(|i| list.get(i).unwrap().flags()).collect();
    let top = EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR;
    let none = EntryFlags::empty();
    assert_eq!(flags, [none, top, EntryFlags::CONTENT_DIR, none, none]);
}

#[test]
fn captured_access_times() {
    let layout = Layout { atimes: true, ..archive() };
    let list = both_ways(
        &session(32, layout),
        "01 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 00 | 00
        80 98 | 02 66 30 | 00 02 00 | a4 81 00 00 | 6b 4b c8 0d
        c0 ba 40 | 01 | 01 31 | 00 02 00
        00 00",
    );
    assert_eq!(list.get(0).unwrap().atime(), None, "directories have none");
    assert_eq!(list.get(1).unwrap().atime(), Some(0x6B0D_C84B));
    assert_eq!(list.get(2).unwrap().atime(), Some(0x6B0D_C84B));
}

#[test]
fn names_of_ids_travel_with_their_first_entry() {
    let list = both_ways(
        &incremental(32, archive()),
        r#"8c 01 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 00 | 04 "root" | 00 | 04 "root"
        84 90 | 01 61 | 00 06 00 | a4 81 00 00 | 83 e8 | 05 "alice"
        80 92 | 01 62 | 00 06 00 | 00
        80 9a | 01 63 | 00 06 00
        00 00"#,
    );
    assert_eq!(list.get(1).unwrap().uid(), 1000);
    assert_eq!(list.get(3).unwrap().uid(), 0);
    let segment = list.finish();
    let ids: Vec<(IdKind, u32)> = segment.id_names().iter().map(|name| (name.kind, name.id)).collect();
    assert_eq!(ids, [(IdKind::User, 0), (IdKind::Group, 0), (IdKind::User, 1000)]);
}

#[test]
fn the_worked_push_of_segments_and_back() {
    let session = incremental(32, Layout { recursive: true, ..Layout::default() });
    let texts = [
        "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00
        80 9a | 01 42 | 00 00 10 | 80 9a | 01 41 | 00 00 10
        80 98 | 02 66 30 | 00 02 00 | a4 81 00 00 | 00 00",
        "80 9a | 04 41 2f 66 31 | 00 03 00 | 80 b8 | 02 | 02 41 41 | 00 00 10 | ed 41 00 00 | 00 00",
        "80 b8 | 04 | 03 2f 66 32 | 00 04 00 | a4 81 00 00 | 00 00",
        "00 00",
    ];
    let mut decoder = EntryDecoder::new(&session);
    let mut encoder = EntryEncoder::new(&session);
    let mut lists = FileList::new();
    for (text, dir) in texts.iter().zip([None, Some(1), Some(3), Some(2)]) {
        let dir = dir.map(|n| (DirNdx(n), lists.take_dir(DirNdx(n)).unwrap()));
        let start = lists.next_start(Ndx(1));
        let mut list = read(&mut decoder, SegmentBuilder::new(start, dir.clone()), &bytes(text)).unwrap().0;
        let mut copy = SegmentBuilder::new(start, dir);
        for i in 0..list.len() {
            let entry = list.get(i).unwrap();
            let fields = NewEntry {
                path: entry.wire_path(),
                mode: entry.mode(),
                size: entry.size(),
                mtime: entry.mtime(),
                mtime_nsec: entry.mtime_nsec(),
                uid: entry.uid(),
                gid: entry.gid(),
                flags: entry.flags(),
            };
            copy.push(fields, entry.extra().cloned().unwrap_or_default()).unwrap();
        }
        let mut out = Vec::new();
        encoder.encode(&copy.finish(), &mut out);
        assert_eq!(out, bytes(text));
        list.sort(Order::DirectoriesLast);
        lists.push(Arc::new(list.finish()));
    }
    let numbers: Vec<(i32, String)> = lists
        .live()
        .flat_map(|s| {
            s.iter()
                .map(|(ndx, e)| (ndx.0, String::from_utf8(e.wire_path().to_vec()).unwrap()))
                .collect::<Vec<_>>()
        })
        .collect();
    let expected = [(1, "."), (2, "f0"), (3, "A"), (4, "B"), (6, "A/f1"), (7, "A/AA"), (9, "A/AA/f2")]
        .map(|(n, s)| (n, s.to_owned()));
    assert_eq!(numbers, expected);
}

#[test]
fn a_hard_link_over_segments_is_not_abbreviated() {
    let layout = Layout { hard_links: true, recursive: true, ..Layout::default() };
    let session = incremental(32, layout);
    let mut decoder = EntryDecoder::new(&session);
    let first = "19 | 01 2e | 00 00 10 | 65 25 7d 93 | ed 41 00 00 | 80 9a | 02 7a 7a | 00 00 10
        92 98 | 01 61 | 00 06 00 | a4 81 00 00 | 00 00";
    let mut list = read(&mut decoder, SegmentBuilder::new(Ndx(1), None), &bytes(first)).unwrap().0;
    list.sort(Order::DirectoriesLast);
    let mut lists = FileList::new();
    lists.push(Arc::new(list.finish()));
    let dir = (DirNdx(1), lists.take_dir(DirNdx(1)).unwrap());
    let second = bytes("82 9a | 07 7a 7a 2f 68 61 72 64 | 03 | 00 06 00 | 00 00");
    let list = read(&mut decoder, SegmentBuilder::new(Ndx(5), Some(dir)), &second).unwrap().0;
    let link = list.get(0).unwrap();
    assert_eq!(link.hard_link(), Some(HardLink::Group { group: 3, first: false }));
    assert_eq!((link.size(), link.mode().0), (6, 0o100_644));
}

#[test]
fn error_codes_at_the_end_of_a_list() {
    let plain = Layout::default();
    let mut at_30 = session(30, plain);
    at_30.compat = Compat::empty();
    let mut at_31 = session(31, plain);
    at_31.compat = Compat::SAFE_FLIST;
    assert_eq!(first_list(&at_31, "04 10 01").unwrap().1, IoErrors::GENERAL);
    assert_eq!(first_list(&session(32, plain), "00 ff").err(), Some(Malformed::LongInteger.into()));
    assert_eq!(first_list(&session(32, plain), "00 0b").unwrap().1, IoErrors::GENERAL | IoErrors::VANISHED);
    assert_eq!(exit_code(first_list(&at_30, "04 10 01")), 2, "the mark was not negotiated");
    assert_eq!(exit_code(first_list(&session(29, plain), "04 10 01")), 2);
}

/// A regular file of version 32 without options, but for its flags and name.
fn file(flags: &str, name: &str) -> String {
    format!("{flags} | {name} | 00 06 00 | 65 25 7d 93 | a4 81 00 00 | 00 00")
}

#[test]
fn hostile_entries_end_with_the_right_code() {
    let plain = session(32, Layout::default());
    let relative = session(32, Layout { relative: true, ..Layout::default() });
    let inc = incremental(32, Layout::default());
    let inc_relative = incremental(32, Layout { relative: true, ..Layout::default() });
    let cases: &[(&Session, String, u8)] = &[
        (&plain, file("18", r#"01 "x""#), 0),
        (&plain, file("18", r#"04 "../x""#), 4),
        (&plain, file("18", r#"06 "a/../x""#), 4),
        (&plain, file("18", r#"02 "/x""#), 4),
        (&relative, file("18", r#"02 "/x""#), 0),
        (&plain, file("18", r#"01 ".""#), 2),
        (&plain, file("18", r#"02 "./""#), 2),
        (&relative, file("18", r#"02 "/.""#), 2),
        (&plain, file("38", r#"03 01 "x""#), 2),
        (&plain, "58 f0 ff ff ff ff".into(), 22),
        (&plain, "58 90 00".into(), 22),
        (&plain, file("58", r#"01 "x""#), 0),
        (&plain, r#"18 | 01 "x" | 00 06 00 | 65 25 7d 93 | a4 01 00 00 | 00 00"#.into(), 2),
        (&plain, r#"18 | 01 "x" | 00 06 00 | 65 25 7d 93 | 00 00 00 00 | 00 00"#.into(), 2),
        (&plain, r#"18 | 01 "x" | fc ff*8 | 65 25 7d 93 | a4 81 00 00 | 00 00"#.into(), 4),
        (&plain, r#"a0 18 | 01 "x" | 00 06 00 | 65 25 7d 93 | f0 00 ca 9a 3b | a4 81 00 00"#.into(), 2),
        (&plain, r#"82 18 | 01 "x" | 00"#.into(), 2),
        (&plain, r#"82 18 | 01 "x" | f0 ff ff ff ff"#.into(), 2),
        (&inc, file("18", r#"01 "x""#), 0),
        (&inc, file("18", r#"03 "a/x""#), 4),
        (&inc_relative, file("18", r#"02 "/x""#), 0),
        (&inc_relative, file("18", r#"04 "/a/x""#), 4),
    ];
    for (session, text, code) in cases {
        assert_eq!(exit_code(first_list(session, text)), *code, "{text}");
    }
}

#[test]
fn a_link_to_an_entry_that_leads_no_group_is_refused() {
    let layout = Layout { hard_links: true, ..Layout::default() };
    let text = r#"18 | 01 "x" | 00 06 00 | 65 25 7d 93 | a4 81 00 00 | 82 9a | 01 "y" | 00"#;
    assert_eq!(exit_code(first_list(&session(32, layout), text)), 2);
    let text = r#"92 18 | 01 "x" | 00 06 00 | 65 25 7d 93 | a4 81 00 00 | 82 9a | 01 "y" | 00 | 00 00"#;
    assert_eq!(exit_code(first_list(&session(32, layout), text)), 0);
}

#[test]
fn an_over_long_symlink_target_is_refused_before_it_arrives() {
    let layout = Layout { links: true, ..Layout::default() };
    let text = r#"18 | 01 "x" | 00 06 00 | 65 25 7d 93 | ff a1 00 00 | 90 00"#;
    assert_eq!(exit_code(first_list(&session(32, layout), text)), 22);
}

#[test]
fn a_missing_argument_is_legal_where_it_was_asked_for() {
    let layout = Layout { missing_args: true, ..Layout::default() };
    let list =
        first_list(&session(32, layout), &file("1a", r#"01 "x""#).replace("a4 81 00 00 | ", "")).unwrap().0;
    assert_eq!(list.get(0).unwrap().kind(), FileKind::Missing);
}

#[test]
fn a_device_is_never_same_as_one_before_a_special_at_27() {
    let session = session(27, archive());
    let mut list = SegmentBuilder::new(Ndx(0), None);
    let rdev = Rdev { major: 1, minor: 3 };
    for (path, mode) in [(&b"a"[..], 0o20_666), (b"b", 0o10_644), (b"c", 0o20_666), (b"d", 0o20_666)] {
        let entry = NewEntry {
            path,
            mode: Mode(mode),
            size: 0,
            mtime: 1,
            mtime_nsec: 0,
            uid: 0,
            gid: 0,
            flags: EntryFlags::empty(),
        };
        let rdev = (mode == 0o20_666).then_some(rdev);
        list.push(entry, Extra { rdev, ..Extra::default() }).unwrap();
    }
    let mut out = Vec::new();
    EntryEncoder::new(&session).encode(&list.finish(), &mut out);
    let list = read(&mut EntryDecoder::new(&session), SegmentBuilder::new(Ndx(0), None), &out).unwrap().0;
    let rdevs: Vec<Option<Rdev>> = (0..4).map(|i| list.get(i).unwrap().rdev()).collect();
    assert_eq!(rdevs, [Some(rdev), None, Some(rdev), Some(rdev)]);
    let numbers = out.windows(4).filter(|bytes| *bytes == [3, 1, 0, 0]).count();
    assert_eq!(numbers, 2, "sent for a and c");
}
