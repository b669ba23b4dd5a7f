//! A scripted generator, and what the sender says to it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use suisei_protocol::session::Session;
use suisei_protocol::transfer::{ItemFlags, SumHead, Token};

use super::*;
use crate::link::LocalSource;
use crate::source::tests::{arguments, context, recursive, session, worked_example};
use crate::TransferOptions;

type Log = Rc<RefCell<Vec<String>>>;

struct Script {
    messages: VecDeque<ToSender>,
    log: Log,
}

impl Inbox<ToSender> for Script {
    fn recv(&mut self) -> Result<ToSender, Failure> {
        self.log.borrow_mut().push("(waits)".into());
        self.messages.pop_front().ok_or(Failure::Sibling)
    }

    fn try_recv(&mut self) -> Result<Option<ToSender>, Failure> {
        Ok(None)
    }
}

struct Said {
    log: Log,
}

impl<L: Handover + std::fmt::Debug> Outbox<ToReceiver<L>> for Said {
    fn send(&mut self, message: ToReceiver<L>) -> Result<(), Failure> {
        let line = match message {
            ToReceiver::Segment(segment) => format!("segment {}+{}", segment.start(), segment.len()),
            ToReceiver::ListEnd => "list end".into(),
            ToReceiver::Item { ndx, item } => format!("item {ndx} {:04x}", item.flags.bits()),
            ToReceiver::Begin { ndx, head, .. } => format!("begin {ndx} count {}", head.count),
            ToReceiver::Token(Token::Literal(bytes)) => {
                format!("literal {}", String::from_utf8_lossy(&bytes))
            }
            ToReceiver::Token(Token::Copy(block)) => format!("copy {}", block.0),
            ToReceiver::Local(local) => format!("local {}", local.into_source().size),
            ToReceiver::End { sum } => format!("end {}", sum.len()),
            ToReceiver::Stats(stats) => format!("stats {}", stats.total_size),
            other => format!("{other:?}"),
        };
        self.log.borrow_mut().push(line);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn play<L: Handover + std::fmt::Debug>(
    session: Session,
    options: TransferOptions,
    source: Source,
    messages: Vec<ToSender>,
) -> (Result<(), Failure>, Vec<String>, Context) {
    let (ctx, _) = context(session, options);
    let log = Log::default();
    let mut inbox = Script { messages: messages.into(), log: log.clone() };
    let mut outbox = Said { log: log.clone() };
    let result = run::<L>(&ctx, source, &mut inbox, &mut outbox);
    let said = log.take();
    (result, said, ctx)
}

fn want(ndx: i32, basis: BlockSignature) -> ToSender {
    ToSender::Want { ndx: Ndx(ndx), item: Item::new(ItemFlags::TRANSFER), basis }
}

fn whole(ndx: i32) -> ToSender {
    want(ndx, BlockSignature::whole_file())
}

fn dones(n: usize) -> Vec<ToSender> {
    (0..n).map(|_| ToSender::Done).collect()
}

fn server(version: u32, recursion: Recursion) -> Session {
    Session { side: Side::Server, ..session(version, recursion) }
}

/// What was said, without the waiting.
fn spoken(said: &[String]) -> Vec<&str> {
    said.iter().map(String::as_str).filter(|line| *line != "(waits)").collect()
}

#[test]
fn the_worked_push_is_answered_in_order() {
    let root = worked_example();
    let mut messages = vec![
        ToSender::Item { ndx: Ndx(0), item: Item::new(ItemFlags::IS_NEW | ItemFlags::LOCAL_CHANGE) },
        whole(2),
    ];
    messages.extend(dones(8));
    let (result, said, _) = play::<Infallible>(
        session(32, Recursion::Incremental),
        recursive(),
        arguments(root.path(), &["nt/"]),
        messages,
    );
    result.unwrap();
    let expected = [
        "segment 1+4",
        "segment 6+2",
        "segment 9+1",
        "segment 11+0",
        "list end",
        "item 0 6000",
        "begin 2 count 0",
        "literal nt/f0",
        "end 16",
        "Done",
        "Done",
        "Done",
        "Done",
        "Done",
        "Done",
        "Done",
    ];
    assert_eq!(spoken(&said), expected, "seven DONEs answer eight");
}

#[test]
fn no_request_is_waited_for_while_a_segment_is_owed() {
    let root = worked_example();
    let (_, said, _) = play::<Infallible>(
        session(32, Recursion::Incremental),
        recursive(),
        arguments(root.path(), &["nt/"]),
        Vec::new(),
    );
    let waits = said.iter().position(|line| line == "(waits)").unwrap();
    assert_eq!(said[..waits].last().map(String::as_str), Some("list end"));
}

#[test]
fn look_ahead_stops_at_ten_thousand_entries_and_goes_on_with_the_requests() {
    let root = tempfile::tempdir().unwrap();
    for (dir, entries) in [5_000, 5_000, 1, 1].into_iter().enumerate() {
        let dir = root.path().join(format!("t/d{dir}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("0"), "").unwrap();
        for name in 1..entries {
            fs::hard_link(dir.join("0"), dir.join(name.to_string())).unwrap();
        }
    }
    let messages = vec![
        ToSender::Item { ndx: Ndx(6), item: Item::default() },
        ToSender::Done,
        ToSender::Item { ndx: Ndx(6 + 5_001), item: Item::default() },
    ];
    let (_, said, _) = play::<Infallible>(
        session(32, Recursion::Incremental),
        recursive(),
        arguments(root.path(), &["t/"]),
        messages,
    );
    let expected = [
        "segment 1+5",
        "segment 7+5000",
        "segment 5008+5000",
        "(waits)",
        "item 6 0000",
        "segment 10009+1",
        "segment 10011+1",
        "list end",
        "(waits)",
        "Done",
        "(waits)",
        "item 5007 0000",
        "(waits)",
    ];
    assert_eq!(said, expected);
}

/// Counts of DONE by version: G writes `asked`, S `answered`; the last of G's is the goodbye.
#[test]
fn the_ladder_of_every_version() {
    let root = worked_example();
    for (version, asked, answered) in [(27, 3, 2), (28, 3, 2), (29, 4, 3), (30, 4, 3), (31, 5, 4), (32, 5, 4)]
    {
        for side in [Side::Client, Side::Server] {
            let session = Session { side, ..session(version, Recursion::Whole) };
            let source = arguments(root.path(), &["nt/"]);
            let (result, said, _) = play::<Infallible>(session, recursive(), source, dones(asked));
            result.unwrap();
            let mut expected = vec!["segment 0+7", "list end"];
            expected.extend(vec!["Done"; answered]);
            if side == Side::Server {
                // Behind the last DONE of the transfer, before that of the deletions.
                let behind = expected.len() - usize::from(version >= 31);
                expected.insert(behind, "stats 22");
            }
            assert_eq!(spoken(&said), expected, "version {version}, {side:?}");
        }
    }
}

#[test]
fn a_server_echoes_deletions_where_it_reads_them() {
    let root = worked_example();
    let counts = DeleteCounts { files: 2, ..DeleteCounts::default() };
    let echo = format!("Deleted({counts:?})");
    let mut late = dones(3);
    late.push(ToSender::Deleted(counts));
    late.extend(dones(2));
    let mut early = dones(1);
    early.push(ToSender::Deleted(counts));
    early.extend(dones(4));
    let tail = |messages| {
        let source = arguments(root.path(), &["nt/"]);
        let (result, said, _) =
            play::<Infallible>(server(32, Recursion::Whole), recursive(), source, messages);
        result.unwrap();
        spoken(&said)[2..].iter().map(|line| line.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(tail(late), ["Done", "Done", "Done", "stats 22", &echo, "Done"]);
    assert_eq!(tail(early), ["Done", &echo, "Done", "Done", "stats 22", "Done"]);
}

#[test]
fn a_server_with_an_empty_list_ends_at_once() {
    let root = worked_example();
    let source = || arguments(root.path(), &["nt/nope"]);
    let (result, said, _) =
        play::<Infallible>(server(32, Recursion::Incremental), recursive(), source(), Vec::new());
    result.unwrap();
    assert_eq!(said, ["segment 1+0", "list end"]);
    let (result, ..) = play::<Infallible>(session(32, Recursion::Whole), recursive(), source(), dones(5));
    result.unwrap();
}

#[test]
fn what_cannot_be_opened_is_not_sent() {
    for (version, expected) in [(32, vec!["NotSent(Ndx(1))", "IoErrors(IoErrors(VANISHED))"]), (29, vec![])] {
        let root = worked_example();
        let (ctx, heard) = context(session(version, Recursion::Whole), recursive());
        let log = Log::default();
        let path = root.path().join("nt/f0");
        // The file goes once the list is out.
        struct Vanish<'a>(Script, &'a Path);
        impl Inbox<ToSender> for Vanish<'_> {
            fn recv(&mut self) -> Result<ToSender, Failure> {
                let _ = fs::remove_file(self.1);
                self.0.recv()
            }
            fn try_recv(&mut self) -> Result<Option<ToSender>, Failure> {
                self.0.try_recv()
            }
        }
        let mut messages = vec![whole(1)];
        messages.extend(dones(if version == 32 { 5 } else { 4 }));
        let mut inbox = Vanish(Script { messages: messages.into(), log: log.clone() }, &path);
        let mut outbox = Said { log: log.clone() };
        run::<Infallible>(&ctx, arguments(root.path(), &["nt/"]), &mut inbox, &mut outbox).unwrap();
        let said = log.take();
        let about: Vec<&str> = spoken(&said)[2..].iter().copied().filter(|line| *line != "Done").collect();
        assert_eq!(about, expected);
        assert_eq!(ctx.exit_code(), 24);
        let name = format!("file has vanished: \"{}\"", path.display());
        assert!(heard.take().contains(&name));
    }
}

#[test]
fn transfers_of_the_wrong_thing_or_too_late_are_fatal() {
    let root = worked_example();
    let failing = |messages: Vec<ToSender>| {
        let source = arguments(root.path(), &["nt/"]);
        let (result, ..) = play::<Infallible>(session(32, Recursion::Whole), recursive(), source, messages);
        let failure = result.unwrap_err();
        (failure.exit_code(), failure.to_string())
    };
    assert_eq!(failing(vec![whole(0)]), (2, "received request to transfer non-regular file: 0".into()));
    assert_eq!(failing(vec![whole(7)]), (2, "file-list index 7 is not in a known list".into()));
    let mut late = dones(2);
    late.push(whole(1));
    assert_eq!(failing(late).0, 2);
}

#[test]
fn confirmations_of_what_no_list_holds_are_fatal() {
    let root = worked_example();
    // 0 stands for the top directory itself, 99 for nothing.
    for ndx in [0, 99] {
        let mut options = recursive();
        options.place.remove = Remove::SourceFiles;
        let source = arguments(root.path(), &["nt/"]);
        let messages = vec![ToSender::Succeeded(Ndx(ndx))];
        let session = session(32, Recursion::Incremental);
        let (result, ..) = play::<Infallible>(session, options, source, messages);
        assert_eq!(result.unwrap_err().exit_code(), 2, "{ndx}");
    }
}

#[test]
fn a_dry_run_is_only_echoed() {
    let root = worked_example();
    let mut options = recursive();
    options.dry_run = true;
    let mut messages = vec![whole(1)];
    messages.extend(dones(5));
    let source = arguments(root.path(), &["nt/"]);
    let (result, said, ctx) = play::<Infallible>(session(32, Recursion::Whole), options, source, messages);
    result.unwrap();
    assert_eq!(spoken(&said)[2..4], ["begin 1 count 0", "Done"]);
    assert_eq!(ctx.stats.transferred.value(), 1);
}

#[test]
fn a_link_that_can_gets_the_open_file_and_no_sum() {
    let root = worked_example();
    let mut messages = vec![whole(1)];
    messages.extend(dones(5));
    let source = arguments(root.path(), &["nt/"]);
    let (result, said, _) = play::<LocalSource>(session(32, Recursion::Whole), recursive(), source, messages);
    result.unwrap();
    assert_eq!(spoken(&said)[2..5], ["begin 1 count 0", "local 5", "end 0"]);
}

/// A destination of 1500 bytes, as append mode describes it: a head without sums.
fn appended() -> BlockSignature {
    let head = SumHead { count: 3, block_len: 700, sum_len: 2, remainder: 100 };
    BlockSignature { head, ..BlockSignature::default() }
}

#[test]
fn append_sends_the_rest_once_and_everything_in_a_redo() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("t")).unwrap();
    fs::write(root.path().join("t/f"), [b"x".repeat(1500), b"tail".to_vec()].concat()).unwrap();
    let mut options = recursive();
    options.place.append = Append::Plain;
    options.place.inplace = true;
    let mut messages = vec![want(1, appended())];
    messages.extend(dones(1));
    messages.push(whole(1));
    messages.extend(dones(4));
    let source = arguments(root.path(), &["t/"]);
    let (result, said, _) = play::<Infallible>(session(32, Recursion::Whole), options, source, messages);
    result.unwrap();
    let all = format!("literal {}tail", "x".repeat(1500));
    let expected = ["begin 1 count 3", "literal tail", "end 16", "Done", "begin 1 count 0", &all, "end 16"];
    assert_eq!(spoken(&said)[2..9], expected);
}

#[test]
fn blocks_of_the_basis_are_copied_and_the_sum_is_the_files() {
    use suisei_protocol::sum::{BlockSum, Rolling, SumKind};
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("t")).unwrap();
    let basis: Vec<u8> = (0..700u32).map(|n| (n * 7 % 251) as u8).collect();
    let content = [b"new ".to_vec(), basis.clone()].concat();
    fs::write(root.path().join("t/f"), &content).unwrap();
    let mut sums = Rolling::of(&basis).value().to_le_bytes().to_vec();
    sums.extend_from_slice(&BlockSum::new(SumKind::Xxh128, 1).of(&basis)[..2]);
    let head = SumHead { count: 1, block_len: 700, sum_len: 2, remainder: 0 };
    let mut messages = vec![want(1, BlockSignature { head, sums: sums.into() })];
    messages.extend(dones(5));
    let source = arguments(root.path(), &["t/"]);
    let (result, said, ctx) =
        play::<Infallible>(session(32, Recursion::Whole), recursive(), source, messages);
    result.unwrap();
    assert_eq!(spoken(&said)[2..6], ["begin 1 count 1", "literal new ", "copy 0", "end 16"]);
    assert_eq!((ctx.stats.literal.value(), ctx.stats.matched.value()), (4, 700));
}

#[test]
fn confirmed_sources_go_unless_they_changed() {
    let root = worked_example();
    let nt = root.path().join("nt");
    fs::write(nt.join("changed"), "1").unwrap();
    let mut options = recursive();
    options.place.remove = Remove::SourceFiles;
    let (ctx, heard) = context(session(32, Recursion::Whole), options);
    let log = Log::default();
    struct Change<'a>(Script, &'a Path);
    impl Inbox<ToSender> for Change<'_> {
        fn recv(&mut self) -> Result<ToSender, Failure> {
            fs::write(self.1, "longer").unwrap();
            self.0.recv()
        }
        fn try_recv(&mut self) -> Result<Option<ToSender>, Failure> {
            self.0.try_recv()
        }
    }
    // Sorted: . changed f0 A A/f1 ...; the confirmation of f0 comes after the last phase.
    let mut messages = vec![whole(2), ToSender::Succeeded(Ndx(1)), ToSender::Succeeded(Ndx(3))];
    messages.extend(dones(4));
    messages.push(ToSender::Succeeded(Ndx(2)));
    messages.extend(dones(1));
    let changed = nt.join("changed");
    let mut inbox = Change(Script { messages: messages.into(), log: log.clone() }, &changed);
    let mut outbox = Said { log };
    run::<Infallible>(&ctx, arguments(root.path(), &["nt/"]), &mut inbox, &mut outbox).unwrap();
    assert!(!nt.join("f0").exists(), "confirmed");
    assert!(changed.exists() && nt.join("A").exists());
    let heard = heard.take();
    assert!(heard.contains(&"ERROR: Skipping sender remove for changed file: changed".into()), "{heard:?}");
    assert!(heard.contains(&"f0 SenderRemoved".into()), "{heard:?}");
    assert!(ctx.has_transfer_error());
}
