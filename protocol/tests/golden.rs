//! Stock rsync's recorded bytes decode to the events on file, which agree with what the recorded
//! run showed and left behind; encoding the messages again gives the same bytes.

mod support;

use std::collections::BTreeSet;
use std::fs;

use suisei_protocol::flist::{EntryRef, FileKind};
use suisei_protocol::message::ToReceiver;
use suisei_protocol::mux::{Carried, Mux, Notice};
use suisei_protocol::session::{Direction, Session};
use suisei_protocol::sum::FileSum;
use suisei_protocol::transfer::Compressor;
use support::events::print;
use support::recorded::{self, Opened};
use support::replay::{Message, Replay};
use support::{rewrite, Recorded};

/// Decodes both directions; up first.
fn replay(recorded: &Recorded, opened: &Opened) -> [Replay; 2] {
    let streams =
        [(&opened.server, &recorded.up[opened.up..]), (&opened.client, &recorded.down[opened.down..])];
    streams.map(|(session, bytes)| {
        let mut replay = Replay::new(recorded, session);
        let side = session.side;
        replay
            .feed(bytes)
            .unwrap_or_else(|e| panic!("{} {side:?}: {e}\n{}", recorded.name, print(&replay.messages)));
        let cut = recorded.exit == 1;
        assert!(
            replay.ended_well() || cut,
            "{} {side:?}: cut off\n{}",
            recorded.name,
            print(&replay.messages)
        );
        replay
    })
}

fn events(recorded: &Recorded) -> String {
    let opened = recorded.open();
    let [up, down] = replay(recorded, &opened);
    let s = &opened.client;
    let session = format!(
        "version {} compat {:#x} sums {:?} {:?} compressor {:?} level {} {:?}",
        s.version,
        s.compat.bits(),
        s.transfer_sum,
        s.list_sum,
        s.compressor,
        s.compress_level,
        s.recursion
    );
    format!("== session\n{session}\n== up\n{}== down\n{}", print(&up.messages), print(&down.messages))
}

#[test]
fn recorded_bytes_decode_to_the_events_on_file() {
    for recorded in recorded::all() {
        let path = recorded.folder.join("events.txt");
        let expected = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let decoded = events(&recorded);
        for (line, expected) in decoded.lines().zip(expected.lines()) {
            assert_eq!(line, expected, "{}", recorded.name);
        }
        assert_eq!(decoded.len(), expected.len(), "{}", recorded.name);
    }
}

/// Run by hand after recording, with `--ignored`; the difference is then reviewed.
#[test]
#[ignore = "writes the events on file"]
fn write_the_events() {
    for recorded in recorded::all() {
        fs::write(recorded.folder.join("events.txt"), events(&recorded)).unwrap();
    }
}

/// The direction that carries files.
fn to_receiver<'a>(recorded: &Recorded, opened: &'a Opened, streams: [Replay; 2]) -> (&'a Session, Replay) {
    let [up, down] = streams;
    if recorded.is_pull() {
        (&opened.client, down)
    } else {
        (&opened.server, up)
    }
}

fn md5(data: &[u8]) -> String {
    use md5::Digest;
    support::events::hex(&md5::Md5::digest(data))
}

#[test]
fn decoded_files_have_the_sums_that_were_sent_and_are_those_left_behind() {
    let mut checked = 0;
    for recorded in recorded::all() {
        let opened = recorded.open();
        let streams = replay(&recorded, &opened);
        let (session, stream) = to_receiver(&recorded, &opened, streams);
        let mut last = std::collections::BTreeMap::new();
        for transfer in stream.transfers() {
            let mut sum = FileSum::new(session.transfer_sum, session.seed);
            sum.update(&transfer.content[transfer.summed_from..]);
            last.insert(&transfer.path, (transfer, sum.finish() == transfer.sum));
        }
        for (path, (transfer, verified)) in last {
            let name = String::from_utf8(path.clone()).unwrap();
            let line = format!(" {name} md5:{}", md5(&transfer.content));
            let kept = recorded.tree.lines().any(|l| l.ends_with(&line));
            assert!(verified && kept, "{}: {name}: verified {verified}, kept {kept}", recorded.name);
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked} files");
}

/// One line of the recorded tree.
fn tree_line(entry: EntryRef<'_>, session: &Session) -> Vec<Option<String>> {
    let layout = &session.layout;
    let time = match session.version.has_nanoseconds() {
        true => format!("{}.{:09}", entry.mtime(), entry.mtime_nsec()),
        false => entry.mtime().to_string(),
    };
    let size = match entry.kind() {
        FileKind::Directory => None,
        _ => Some(entry.size().to_string()),
    };
    vec![
        Some(format!("{:o}", entry.mode().0)),
        size,
        Some(time),
        layout.uid.then(|| entry.uid().to_string()),
        layout.gid.then(|| entry.gid().to_string()),
    ]
}

#[test]
fn decoded_entries_are_those_left_behind() {
    let mut checked = 0;
    for recorded in recorded::all().iter().filter(|r| r.exit == 0) {
        let opened = recorded.open();
        let streams = replay(recorded, &opened);
        let (session, stream) = to_receiver(recorded, &opened, streams);
        let (letters, dry) = (recorded.words.join(" "), session.layout.dry_run);
        if dry || !session.layout.uid || letters.contains("-dest") {
            continue;
        }
        for message in &stream.messages {
            let Message::ToReceiver(ToReceiver::Segment(segment)) = message else { continue };
            for (_, entry) in segment.iter() {
                let path = String::from_utf8(entry.wire_path().to_vec()).unwrap();
                let link = entry.link_target().map(|t| format!(" -> {}", String::from_utf8_lossy(t)));
                let name = format!("{path}{}", link.unwrap_or_default());
                let line = recorded.tree.lines().find(|l| {
                    let rest = l.splitn(7, ' ').nth(6).unwrap();
                    rest.split(" md5:").next() == Some(&name)
                });
                let line = line.unwrap_or_else(|| panic!("{}: {name} is missing", recorded.name));
                for (ours, theirs) in tree_line(entry, session).into_iter().zip(line.split(' ')) {
                    let Some(ours) = ours else { continue };
                    assert!(theirs.starts_with(&ours), "{}: {name}: {ours} in {line}", recorded.name);
                }
                if let Some(rdev) = entry.rdev() {
                    let number = u64::from_str_radix(line.split(' ').nth(5).unwrap(), 16).unwrap();
                    let minor = (number & 0xFF) | (number >> 12 & 0xFFFF_FF00);
                    assert_eq!((rdev.major, u64::from(rdev.minor)), ((number >> 8 & 0xFFF) as u32, minor));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 1000, "{checked} entries");
}

#[test]
fn decoded_items_and_deletions_are_those_shown() {
    for recorded in recorded::all() {
        let opened = recorded.open();
        let has_items = opened.client.version.has_item_flags();
        let streams = replay(&recorded, &opened);
        let deleted: Vec<String> = streams[1].messages.iter().filter_map(deleted_name).collect();
        let (_, stream) = to_receiver(&recorded, &opened, streams);
        let (mut shown, mut gone) = (BTreeSet::new(), Vec::new());
        for line in recorded.stdout.lines() {
            let Some((flags, name)) = line.split_once(' ').filter(|(flags, _)| *flags != "skipping") else {
                continue;
            };
            let name = name.trim_start().split(" -> ").next().unwrap().split(" => ").next().unwrap();
            let name = name.trim_end_matches('/');
            if flags == "*deleting" {
                gone.push(line.split_once(' ').unwrap().1.trim_start().to_owned());
            } else {
                shown.insert(if name.is_empty() { "." } else { name }.to_owned());
            }
        }
        if !recorded.is_pull() && has_items {
            assert_eq!(deleted, gone, "{}", recorded.name);
        }
        let decoded = item_names(&stream);
        if has_items {
            assert_eq!(decoded, shown, "{}", recorded.name);
        } else {
            assert!(decoded.is_subset(&shown), "{}: {decoded:?} {shown:?}", recorded.name);
        }
    }
}

fn deleted_name(message: &Message) -> Option<String> {
    match message {
        Message::Notice(Notice::Deleted { path, is_dir }) => {
            Some(format!("{}{}", String::from_utf8_lossy(path), if *is_dir { "/" } else { "" }))
        }
        _ => None,
    }
}

/// Names of the entries that were worth an item.
fn item_names(stream: &Replay) -> BTreeSet<String> {
    let mut names = std::collections::HashMap::new();
    let mut items = BTreeSet::new();
    for message in &stream.messages {
        let Message::ToReceiver(message) = message else { continue };
        match message {
            ToReceiver::Segment(segment) => {
                names.insert(segment.start().0 - 1, segment.gap_entry().map(|e| e.wire_path().to_vec()));
                names.extend(segment.iter().map(|(ndx, e)| (ndx.0, Some(e.wire_path().to_vec()))));
            }
            ToReceiver::Item { ndx, item } | ToReceiver::Begin { ndx, item, .. }
                if !item.flags.significant().is_empty() =>
            {
                let name = names[&ndx.0].clone().expect("an item of a known entry");
                items.insert(String::from_utf8(name).unwrap());
            }
            _ => {}
        }
    }
    items
}

#[test]
fn encoding_again_gives_the_same_bytes() {
    let mut pieces = 0;
    for recorded in recorded::all() {
        let opened = recorded.open();
        let ends = [(&opened.client, &opened.server), (&opened.server, &opened.client)];
        for (stream, (writer, reader)) in replay(&recorded, &opened).into_iter().zip(ends) {
            let preface = stream.filter_len + stream.names_len;
            let data = &stream.data[preface..];
            let again = if writer.direction == Direction::Sending {
                rewrite::to_receiver(&recorded, writer, reader, data)
            } else {
                rewrite::to_sender(writer, reader, data)
            };
            for piece in &again {
                let recorded_bytes = &data[piece.range.clone()];
                // Two deflaters or two versions of zstd may find different matches.
                if !(piece.is_token && writer.compressor != Compressor::None) {
                    assert_eq!(
                        piece.bytes, recorded_bytes,
                        "{} {:?}: {}",
                        recorded.name, writer.side, piece.text
                    );
                }
                pieces += 1;
            }
            let mut second = Replay::new(&recorded, reader);
            second.feed_data(&stream.data[..preface]).unwrap();
            again.iter().for_each(|piece| second.feed_data(&piece.bytes).unwrap());
            let without_notices = stream.messages.iter().filter(|m| !matches!(m, Message::Notice(_)));
            assert_eq!(print(&second.messages), print(without_notices), "{}", recorded.name);
        }
    }
    assert!(pieces > 5000, "{pieces} pieces");
}

#[test]
fn framing_again_gives_the_same_data_and_notices() {
    for recorded in recorded::all() {
        let opened = recorded.open();
        let ends = [(&opened.client, &opened.server), (&opened.server, &opened.client)];
        for (stream, (writer, reader)) in replay(&recorded, &opened).into_iter().zip(ends) {
            let (filters, rest) = stream.data.split_at(stream.filter_len);
            let (names, rest) = rest.split_at(stream.names_len);
            let mut mux = Mux::new(writer);
            let mut bytes = Vec::new();
            mux.put_data(filters, &mut bytes);
            if !names.is_empty() {
                mux.suspend_for_names();
                mux.put_data(names, &mut bytes);
                mux.resume();
            }
            for notice in notices(&stream) {
                assert_eq!(mux.put_notice(notice, &mut bytes), Carried::Yes, "{}", recorded.name);
            }
            mux.put_data(rest, &mut bytes);
            let mut second = Replay::new(&recorded, reader);
            second.feed(&bytes).unwrap();
            assert_eq!(second.data, stream.data, "{}", recorded.name);
            let first_notices: Vec<&Notice> = notices(&stream).collect();
            assert_eq!(notices(&second).collect::<Vec<_>>(), first_notices);
            let overtook =
                |m: &Message| matches!(m, Message::Notice(_) | Message::Filter(_) | Message::Name(_));
            let first = second.messages.iter().position(|m| !overtook(m)).unwrap_or(second.messages.len());
            let behind = second.messages[first..].iter().any(|m| matches!(m, Message::Notice(_)));
            assert!(!behind, "{}: a notice fell behind the data after it", recorded.name);
        }
    }
}

fn notices(stream: &Replay) -> impl Iterator<Item = &Notice> {
    stream.messages.iter().filter_map(|message| match message {
        Message::Notice(notice) => Some(notice),
        _ => None,
    })
}
