use std::fs;
use std::sync::mpsc::{channel, Receiver as Channel};
use std::sync::Arc;

use bytes::Bytes;
use suisei_protocol::flist::{EntryFlags, Extra, Mode, NewEntry, SegmentBuilder};
use suisei_protocol::session::{Session, Side};
use suisei_protocol::sum::{FileSum, SumKind};
use suisei_protocol::transfer::{BasisKind, BlockIndex, SumHead, Token};

use super::*;
use crate::ids::IdMap;
use crate::link::{local, LocalSource};
use crate::observe::Observer;
use crate::options::{Partial, TransferOptions};
use crate::run::{local_session, LocalChoice};
use crate::tree::{SymlinkPolicy, Tree};

struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event<'_>) {}
}

/// A receiving client, and a sender that follows a script.
struct Stage {
    root: tempfile::TempDir,
    options: TransferOptions,
}

const FILE: Ndx = Ndx(0);

impl Stage {
    fn new() -> Self {
        Stage { root: tempfile::tempdir().unwrap(), options: TransferOptions::default() }
    }

    fn list() -> ToReceiver<LocalSource> {
        let mut list = SegmentBuilder::new(FILE, None);
        let entry = NewEntry {
            path: b"file",
            mode: Mode(0o100_640),
            size: 5,
            mtime: 77,
            mtime_nsec: 0,
            uid: 0,
            gid: 0,
            flags: EntryFlags::empty(),
        };
        list.push(entry, Extra::default()).unwrap();
        list.push(NewEntry { path: b"dir", mode: Mode(0o040_755), ..entry }, Extra::default()).unwrap();
        ToReceiver::Segment(Arc::new(list.finish()))
    }

    /// Plays a script behind the list; returns how the receiver ended and what the generator heard.
    fn play(&self, script: Vec<ToReceiver<LocalSource>>) -> (Result<(), Failure>, Vec<FromReceiver>) {
        let choice = LocalChoice { seed: 1, ..LocalChoice::default() };
        let session = Session {
            side: Side::Server,
            direction: Direction::Receiving,
            ..local_session(&self.options, choice)
        };
        let ids = IdMap::new(true, true);
        let ctx = Context::new(
            session,
            self.options.clone(),
            Arc::new(Silent),
            Reporter::Nobody,
            ids,
            Arc::default(),
        );
        let tree = Arc::new(Tree::open(self.root.path(), SymlinkPolicy::Refuse).unwrap());
        let destination = Destination::new(tree, None);
        let (mut out, mut inbox) = local(100, Arc::default(), |_| 0);
        for message in [Self::list(), ToReceiver::ListEnd].into_iter().chain(script) {
            crate::link::Outbox::send(&mut out, message).unwrap();
        }
        drop(out);
        let (generator, heard): (_, Channel<FromReceiver>) = channel();
        let end = run(&ctx, &destination, &mut inbox, generator);
        (end, heard.into_iter().collect())
    }

    fn content(&self) -> Option<Vec<u8>> {
        fs::read(self.root.path().join("file")).ok()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.root.path()).unwrap();
        let mut names: Vec<_> = names.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn begin(item: Item, head: SumHead) -> ToReceiver<LocalSource> {
    ToReceiver::Begin { ndx: FILE, item, head }
}

fn whole() -> ToReceiver<LocalSource> {
    begin(Item::new(ItemFlags::TRANSFER), SumHead::default())
}

fn literal(data: &'static [u8]) -> ToReceiver<LocalSource> {
    ToReceiver::Token(Token::Literal(Bytes::from_static(data)))
}

fn end_of(data: &[u8]) -> ToReceiver<LocalSource> {
    let mut sum = FileSum::new(SumKind::Xxh128, 1);
    sum.update(data);
    ToReceiver::End { sum: sum.finish() }
}

fn fates(heard: &[FromReceiver]) -> Vec<Fate> {
    let fate = |message: &FromReceiver| match message {
        FromReceiver::Finished(FILE, fate) => Some(*fate),
        _ => None,
    };
    heard.iter().filter_map(fate).collect()
}

fn code(end: Result<(), Failure>) -> u8 {
    end.map_or_else(|failure| failure.exit_code(), |()| 0)
}

fn dones(n: usize) -> impl Iterator<Item = ToReceiver<LocalSource>> {
    std::iter::repeat_with(|| ToReceiver::Done).take(n)
}

#[test]
fn a_wrong_sum_is_asked_for_once_more_and_then_given_up() {
    let stage = Stage::new();
    let mut script = vec![whole(), literal(b"hello"), end_of(b"other")];
    script.extend(dones(1));
    script.extend([whole(), literal(b"hello"), end_of(b"other")]);
    script.extend(dones(3));
    let (end, heard) = stage.play(script);
    assert_eq!(code(end), 0);
    assert_eq!(fates(&heard), [Fate::Redo, Fate::Failed]);
    assert_eq!(stage.names(), [] as [&str; 0], "nothing unverified stays");
}

#[test]
fn an_unverified_file_is_kept_where_partial_files_are() {
    let mut stage = Stage::new();
    stage.options.place.partial = Partial::Dir(b".pp".to_vec());
    let script = vec![whole(), literal(b"hello"), end_of(b"other")];
    let (_, heard) = stage.play(script);
    assert_eq!(fates(&heard), [Fate::Redo]);
    assert_eq!(fs::read(stage.root.path().join(".pp/file")).unwrap(), b"hello");
    let partial = Item { basis: Some(BasisKind::PartialDir), ..Item::new(ItemFlags::TRANSFER) };
    let head = SumHead { count: 1, block_len: 5, sum_len: 2, remainder: 0 };
    let copy = ToReceiver::Token(Token::Copy(BlockIndex(0)));
    let (_, heard) = stage.play(vec![begin(partial, head), copy, literal(b"!"), end_of(b"hello!")]);
    assert_eq!(fates(&heard), [Fate::Placed]);
    assert_eq!(stage.content().unwrap(), b"hello!");
    assert_eq!(stage.names(), ["file"], "the partial file and its directory are gone");
}

#[test]
fn a_lost_sender_leaves_the_old_file() {
    let stage = Stage::new();
    fs::write(stage.root.path().join("file"), "old").unwrap();
    let (end, _) = stage.play(vec![whole(), literal(b"hel")]);
    assert!(matches!(end, Err(Failure::Sibling)));
    assert_eq!(stage.content().unwrap(), b"old");
    assert_eq!(stage.names(), ["file"]);
}

#[test]
fn delayed_files_move_when_redo_is_over() {
    let mut stage = Stage::new();
    stage.options.place.partial = Partial::Dir(b".~tmp~".to_vec());
    stage.options.place.delay_updates = true;
    let file = || [whole(), literal(b"hello"), end_of(b"hello")];
    let (_, heard) = stage.play(file().into_iter().chain(dones(1)).collect());
    assert_eq!(fates(&heard), [Fate::Delayed]);
    assert_eq!(stage.content(), None);
    let (end, heard) = stage.play(file().into_iter().chain(dones(4)).collect());
    assert_eq!(code(end), 0);
    assert_eq!(fates(&heard), [Fate::Delayed, Fate::Placed]);
    assert_eq!(stage.content().unwrap(), b"hello");
    assert_eq!(stage.names(), ["file"]);
}

#[test]
fn lies_end_with_the_codes_of_stock() {
    let copy = |n| ToReceiver::Token(Token::Copy(BlockIndex(n)));
    let head = SumHead { count: 1, block_len: 5, sum_len: 2, remainder: 0 };
    let item = |basis| Item { basis: Some(basis), ..Item::new(ItemFlags::TRANSFER) };
    let transfer = || Item::new(ItemFlags::TRANSFER);
    let late = dones(2).chain([whole()]).collect();
    let scripts: [(&str, Vec<ToReceiver<LocalSource>>); 9] = [
        ("a block without a basis", vec![begin(transfer(), head), copy(0)]),
        ("a block beyond the basis", vec![begin(transfer(), head), copy(1)]),
        ("fuzzy without --fuzzy", vec![begin(item(BasisKind::Fuzzy(0)), head)]),
        ("an alternate directory that is none", vec![begin(item(BasisKind::AlternateDir(0)), head)]),
        ("data of a directory", vec![ToReceiver::Begin { ndx: Ndx(1), item: transfer(), head }]),
        ("an unknown index", vec![ToReceiver::Item { ndx: Ndx(9), item: transfer() }]),
        ("data after the redo phase", late),
        ("data without a file", vec![literal(b"x")]),
        ("a phase too many", dones(5).collect()),
    ];
    for (what, script) in scripts {
        let stage = Stage::new();
        let expected = if what == "a phase too many" { 0 } else { 2 };
        assert_eq!(code(stage.play(script).0), expected, "{what}");
        assert_eq!(stage.names(), [] as [&str; 0], "{what}");
    }
}

#[test]
fn a_refusal_to_send_reaches_the_generator() {
    let (_, heard) = Stage::new().play(vec![ToReceiver::NotSent(FILE)]);
    assert_eq!(fates(&heard), [Fate::NotSent]);
}

#[test]
fn what_stands_in_the_way_costs_one_file_only() {
    let stage = Stage::new();
    fs::create_dir(stage.root.path().join("file")).unwrap();
    let mut script = vec![whole(), literal(b"hello"), end_of(b"hello")];
    script.extend(dones(4));
    let (end, heard) = stage.play(script);
    assert_eq!(code(end), 0);
    assert_eq!(fates(&heard), [Fate::Failed]);
    assert_eq!(stage.names(), ["file"]);
}
