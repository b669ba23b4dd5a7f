//! Stock rsync's recorded bytes decode to the events on file, which agree with what the recorded
//! run showed and left behind; encoding the messages again gives the same bytes.

mod support;

use std::fs;

use support::events::print;
use support::recorded::{self, Opened};
use support::replay::Replay;
use support::Recorded;

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
        assert!(replay.ended_well(), "{} {side:?}: cut off\n{}", recorded.name, print(&replay.messages));
        replay
    })
}

fn events(recorded: &Recorded) -> String {
    let opened = recorded.open();
    let [up, down] = replay(recorded, &opened);
    let session = format!("{:?}", opened.client);
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
