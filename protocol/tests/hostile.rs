//! Scripted lies end in the named error, with rsync's exit code, within memory limits.

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::Cell;

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use suisei_protocol::codec::{Input, ToReceiverDecoder, ToSenderDecoder};
use suisei_protocol::mux::Demux;
use suisei_protocol::session::{
    ArgumentBlock, Compat, DaemonClient, Direction, Layout, ModuleRequest, Recursion, Session, Side, Version,
};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::Compressor;
use suisei_protocol::wire::Reader;
use suisei_protocol::{Error, Stop};

/// Counts what each thread holds, so that an allocation that is never touched counts too.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    HELD.with(|held| {
        held.set(held.get() + change);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        count(block.size() as isize);
        System.alloc(block)
    }

    unsafe fn dealloc(&self, at: *mut u8, block: Block) {
        count(-(block.size() as isize));
        System.dealloc(at, block);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something; returns its result and the most bytes it held at any time.
fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = run();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

/// What a decoder may hold beside what was fed to it.
const SLACK: usize = 256 * 1024;

fn session(direction: Direction) -> Session {
    Session {
        side: if direction == Direction::Receiving { Side::Client } else { Side::Server },
        direction,
        version: Version::NEWEST,
        compat: Compat::all() - Compat::INC_RECURSE,
        seed: 1,
        transfer_sum: SumKind::Xxh128,
        list_sum: SumKind::Xxh128,
        compressor: Compressor::None,
        compress_level: 0,
        layout: Layout { links: true, recursive: true, hard_links: true, ..Layout::default() },
        recursion: Recursion::Whole,
        charset: None,
    }
}

fn receiving() -> Session {
    session(Direction::Receiving)
}

fn incremental() -> Session {
    Session { recursion: Recursion::Incremental, compat: Compat::all(), ..receiving() }
}

fn compressed(compressor: Compressor) -> Session {
    Session { compressor, compress_level: 3, ..receiving() }
}

/// Decodes until an error or the end of the bytes, dropping what comes out.
fn read(session: &Session, bytes: &[u8]) -> Result<(), Error> {
    let mut input = Input::new();
    input.push(Bytes::copy_from_slice(bytes));
    let stop = match session.direction {
        Direction::Receiving => {
            let mut decoder = ToReceiverDecoder::new(session)?;
            loop {
                if let Err(stop) = decoder.decode(&mut input) {
                    break stop;
                }
            }
        }
        Direction::Sending => {
            let mut decoder = ToSenderDecoder::new(session);
            loop {
                if let Err(stop) = decoder.decode(&mut input) {
                    break stop;
                }
            }
        }
    };
    match stop {
        Stop::Short => Ok(()),
        Stop::Bad(error) => Err(error),
    }
}

/// A list entry: flags word 0, no prefix.
fn entry(name: &[u8], mode: u32) -> Vec<u8> {
    let length = [4, name.len() as u8];
    [&length, name, &[0, 0, 0], &[0x65, 0x25, 0x7D, 0x93], &mode.to_le_bytes()].concat()
}

const FILE: u32 = 0o100_644;
const DIR: u32 = 0o40_755;
const LINK: u32 = 0o120_777;
/// The end of a list without errors.
const END: &[u8] = &[0, 0];

/// A list of one regular file, and an item that asks for its data with this sum head.
fn begun(head: [i32; 4]) -> Vec<u8> {
    [entry(b"f", FILE), END.to_vec(), vec![0x01, 0x00, 0x80], ints(&head)].concat()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A lie: to whom, which bytes, what the error says, its exit code.
type Lie = (&'static str, Session, Vec<u8>, &'static str, u8);

fn expect(lies: Vec<Lie>) {
    for (what, session, bytes, text, code) in lies {
        let (result, held) = measured(|| read(&session, &bytes));
        let error = result.expect_err(what);
        assert!(error.to_string().contains(text), "{what}: {error}");
        assert_eq!(error.exit_code(), code, "{what}: {error}");
        assert!(held < bytes.len() + SLACK, "{what}: held {held} bytes for {}", bytes.len());
    }
}

#[test]
fn names_and_fields_of_entries() {
    let long = |length: &[u8]| [&[0x40], length, b"x".repeat(20).as_slice()].concat();
    let target = [entry(b"l", LINK), vec![0xF0, 0xFF, 0xFF, 0xFF, 0x7F]].concat();
    let size = [&[4, 1, b'f'][..], &[0xFC; 1], &[0xFF; 8]].concat();
    let nsec =
        [&[0xA0, 0, 1, b'f'][..], &[0, 0, 0], &[0x65, 0x25, 0x7D, 0x93], &[0xF0, 0, 0, 0, 0x7F]].concat();
    let group = [&[0x82, 0, 1, b'f'][..], &[5]].concat();
    let ahead = [&[0x82, 0, 1, b'f'][..], &[0]].concat();
    // The flags of a first link, 0x1204, and a regular file.
    let first_link = [&[0x92, 0x04], &entry(b"f", FILE)[1..]].concat();
    let layout = Layout { hard_links: false, ..receiving().layout };
    let without_links = Session { layout, ..receiving() };
    expect(vec![
        ("climbing", receiving(), entry(b"../x", FILE), "unsafe", 4),
        ("climbing inside", receiving(), entry(b"a/../../x", FILE), "unsafe", 4),
        ("absolute", receiving(), entry(b"/etc/passwd", FILE), "unsafe", 4),
        ("with a NUL", receiving(), entry(b"a\0b", FILE), "unsafe", 4),
        ("prefix of nothing", receiving(), vec![0x20, 9, 1, b'x'], "prefix", 2),
        ("2 GiB of name", receiving(), long(&[0xF0, 0xFF, 0xFF, 0xFF, 0x7F]), "overflow", 22),
        ("negative name", receiving(), long(&[0xF0, 0xFF, 0xFF, 0xFF, 0xFF]), "overflow", 22),
        ("a path too long by one", receiving(), long(&[0x90, 0x00]), "overflow", 22),
        ("2 GiB of target", receiving(), target, "overflow", 22),
        ("negative size", receiving(), size, "negative size", 4),
        ("nanoseconds", receiving(), nsec, "nano", 2),
        ("no such kind", receiving(), entry(b"f", 0o170_644), "mode", 2),
        ("nothing to delete was announced", receiving(), entry(b"f", 0), "mode", 2),
        ("a link to nothing", receiving(), group, "hard-link", 2),
        ("a link to itself", receiving(), ahead, "hard-link", 2),
        ("a link without -H", without_links, first_link, "not asked for", 2),
        ("a file as the top", receiving(), entry(b".", FILE), "not a directory", 2),
        ("a file as the top, by no name at all", receiving(), entry(b"", FILE), "not a directory", 2),
        ("endless flags", receiving(), vec![0xFF], "too long", 12),
    ]);
}

#[test]
fn segments_and_indexes() {
    let list = |names: &[(&[u8], u32)]| {
        let entries: Vec<u8> = names.iter().flat_map(|(name, mode)| entry(name, *mode)).collect();
        [&entries, END].concat()
    };
    // Directory 0 is the top itself, directory 1 is "d".
    let first = list(&[(b".", DIR), (b"d", DIR)]);
    let then = |rest: &[u8]| [&first, rest].concat();
    // Both start a segment for directory 1: -102 is 101 above the memory of 1.
    let twice = then(&[&[0xFF, 0x65], list(&[(b"d/x", FILE)]).as_slice(), &[0xFF, 0xFE, 0, 0]].concat());
    let outside = then(&[&[0xFF, 0x65], entry(b"e/x", FILE).as_slice()].concat());
    let after_end = then(&[0xFF, 0x01, 0xFF, 0x64]);
    let ends_twice = then(&[0xFF, 0x01, 0xFF, 0xFE, 0, 0]);
    // The second "d" is blank, and has index 3 and directory number 2.
    let merged = list(&[(b".", DIR), (b"d", DIR), (b"d", DIR)]);
    let then_merged = |rest: &[u8]| [&merged, rest].concat();
    let plain = |rest: &[u8]| [&list(&[(b"f", FILE)]), rest].concat();
    let old = Session { version: Version::new(30).unwrap(), ..receiving() };
    expect(vec![
        ("a directory that was not listed", incremental(), then(&[0xFF, 0x7F]), "directory index", 2),
        ("the same directory twice", incremental(), twice, "directory index", 2),
        ("an entry of another directory", incremental(), outside, "outside the directory", 4),
        ("a segment after the end of lists", incremental(), after_end, "index", 2),
        ("the end of lists twice", incremental(), ends_twice, "index -2", 2),
        ("a first list with a path", incremental(), entry(b"d/x", FILE), "outside the directory", 4),
        ("the segment of a duplicate", incremental(), then_merged(&[0xFF, 0x66]), "directory index", 2),
        ("the segment of the top", incremental(), then(&[0xFF, 0x64]), "directory index", 2),
        ("an item of a duplicate", incremental(), then_merged(&[0x04, 0, 0x20]), "cleared file index 3", 2),
        ("data of a listed directory", incremental(), then(&[0x01, 0, 0x80]), "non-regular file: 0", 2),
        (
            "the directory of a list that has none",
            incremental(),
            [list(&[(b"d", DIR)]), vec![0x01, 0, 0x20]].concat(),
            "index 0",
            2,
        ),
        ("an end of phase before the end of lists", incremental(), then(&[0x00]), "ended before", 2),
        ("the end of segments without recursion", receiving(), plain(&[0xFF, 0x01]), "index -2", 2),
        ("a signal that does not exist", receiving(), plain(&[0xFF, 0x03]), "index -4", 2),
        ("deletions before 31", old, plain(&[0xFF, 0x02]), "index -3", 2),
        (
            "too many deletions",
            receiving(),
            plain(&[0xFF, 0x02, 0xF0, 1, 0, 0, 0x10, 0, 0, 0, 0]),
            "delete count",
            2,
        ),
        ("a segment without recursion", receiving(), plain(&[0xFF, 0x64]), "index", 2),
        ("an index of no list", receiving(), plain(&[0x09, 0, 0x80]), "index 8", 2),
        (
            "data of a directory",
            receiving(),
            [list(&[(b"d", DIR)]), vec![0x01, 0, 0x80]].concat(),
            "non-regular",
            2,
        ),
        (
            "the highest index",
            receiving(),
            [list(&[]), vec![0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0x80]].concat(),
            "index 2147483647",
            2,
        ),
        ("more phases than there are", receiving(), plain(&[0; 24]), "follows the goodbye", 2),
    ]);
}

#[test]
fn sum_heads_and_tokens() {
    let whole = [0; 4];
    let then = |head, tokens: &[i32]| [begun(head), ints(tokens)].concat();
    let flags = |bytes: &[u8]| [begun([4, 700, 2, 0]), bytes.to_vec()].concat();
    expect(vec![
        ("blocks below zero", receiving(), begun([-1, 700, 2, 0]), "checksum count", 2),
        ("2^31 blocks", receiving(), begun([i32::MAX, 700, 2, 0]), "checksum count", 2),
        ("blocks of nothing", receiving(), begun([1, 0, 2, 0]), "block length", 2),
        ("huge blocks", receiving(), begun([1, 131_073, 2, 0]), "block length", 2),
        ("sums longer than the digest", receiving(), begun([1, 700, 17, 0]), "checksum length", 2),
        ("a remainder above the block", receiving(), begun([1, 700, 2, 701]), "remainder", 2),
        ("a block of no basis", receiving(), then(whole, &[-1]), "block index", 2),
        ("the block behind the last", receiving(), then([4, 700, 2, 0], &[-5]), "block index 4 (count=4)", 2),
        ("the lowest token", receiving(), then([4, 700, 2, 0], &[i32::MIN]), "block index", 2),
        (
            "a negative long token",
            compressed(Compressor::Zlibx),
            flags(&[0x20, 0xFF, 0xFF, 0xFF, 0xFF]),
            "token number",
            2,
        ),
        ("an empty run", compressed(Compressor::Zstd), flags(&[0xC0, 0, 0]), "token number", 2),
        ("a run over the end", compressed(Compressor::Lz4), flags(&[0xC0, 9, 0]), "block index", 2),
        ("no deflate", compressed(Compressor::Zlib), flags(&[0x40, 3, 0xFF, 0xFF, 0xFF, 0]), "damaged", 12),
        ("no zstd", compressed(Compressor::Zstd), flags(&[0x40, 4, 1, 2, 3, 4, 0]), "damaged", 12),
        ("no lz4", compressed(Compressor::Lz4), flags(&[0x40, 2, 0xF0, 0xFF, 0]), "damaged", 12),
    ]);
}

#[test]
fn requests_of_a_generator() {
    let sending = || session(Direction::Sending);
    let want = |head: &[i32]| [vec![0x01, 0x00, 0x80], ints(head)].concat();
    let counts = [vec![0xFF, 0x02], vec![0xF0, 0x01, 0, 0, 0x10], vec![0; 4]].concat();
    expect(vec![
        ("2^31 blocks", sending(), want(&[i32::MAX, 700, 16, 0]), "checksum count", 2),
        ("sums longer than the digest", sending(), want(&[1, 700, 17, 0]), "checksum length", 2),
        ("a long second name", sending(), vec![0x01, 0x00, 0x90, 0x90, 0x00], "second name", 2),
        ("negative blocks", sending(), want(&[1, -1, 16, 0]), "block length", 2),
        ("blocks of nothing", sending(), want(&[1, 0, 16, 0]), "block length", 2),
        ("huge blocks", sending(), want(&[1, 131_073, 16, 0]), "block length", 2),
        ("a remainder above the block", sending(), want(&[1, 700, 16, 701]), "remainder", 2),
        ("the sender's own signal", sending(), vec![0xFF, 0x01], "index", 2),
        ("a segment", sending(), vec![0xFF, 0x64], "index", 2),
        ("too many deletions", sending(), counts, "", 2),
    ]);
}

#[test]
fn announced_sums_are_not_believed_before_they_arrive() {
    let sending = session(Direction::Sending);
    let request = [vec![0x01, 0x00, 0x80], ints(&[1 << 28, 700, 16, 0]), vec![7; 5000]].concat();
    let (result, held) = measured(|| read(&sending, &request));
    assert_eq!(result, Ok(()), "it may still come");
    assert!(held < request.len() * 2 + SLACK, "held {held} bytes of an announced 5 GiB");
}

/// 64 MiB of zeros as one deflate stream in items of at most 16383 bytes.
fn deflate_bomb() -> Vec<u8> {
    let mut deflate = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(1 << 20);
    let zeros = vec![0; 1 << 20];
    for _ in 0..64 {
        deflate.compress_vec(&zeros, &mut out, FlushCompress::None).unwrap();
    }
    deflate.compress_vec(&[], &mut out, FlushCompress::Sync).unwrap();
    items(&out[..out.len() - 4])
}

fn items(data: &[u8]) -> Vec<u8> {
    let item = |piece: &[u8]| [&[0x40 | (piece.len() >> 8) as u8, piece.len() as u8], piece].concat();
    data.chunks(16_383).flat_map(item).collect()
}

#[test]
fn abbreviated_links_do_not_copy_what_they_repeat() {
    let target = vec![b't'; 4000];
    // A symlink that leads group 0, and links to it of seven bytes each.
    let mut leader = [&[0x92, 0x04], &entry(b"l", LINK)[1..]].concat();
    leader.extend_from_slice(&[0x8F, 0xA0]);
    leader.extend_from_slice(&target);
    let links = (0..20_000u32)
        .flat_map(|n| [0x82, 0x04, 3, b'a' + (n / 26 % 26) as u8, b'a' + (n % 26) as u8, b'l', 0]);
    let bytes: Vec<u8> = leader.into_iter().chain(links).collect();
    let (result, held) = measured(|| read(&receiving(), &bytes));
    assert_eq!(result, Ok(()));
    assert!(held < bytes.len() * 100, "held {held} bytes for {}", bytes.len());
}

#[test]
fn bombs_come_out_in_pieces() {
    let zstd = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    for (compressor, bomb) in [
        (Compressor::Zlibx, deflate_bomb()),
        (Compressor::Zlib, deflate_bomb()),
        (Compressor::Zstd, items(&zstd)),
    ] {
        let bytes = [begun([0; 4]), bomb, vec![0], vec![0; 16]].concat();
        assert!(bytes.len() < 1 << 20);
        let (result, held) = measured(|| read(&compressed(compressor), &bytes));
        assert_eq!(result, Ok(()), "{compressor:?}");
        // zstd's window of 2 MiB belongs to the library, which allocates for itself.
        assert!(held < bytes.len() * 2 + (1 << 20), "{compressor:?}: held {held} bytes");
    }
}

#[test]
fn many_tiny_entries_cost_memory_in_proportion() {
    let count = 200_000u32;
    let mut bytes = Vec::new();
    for number in 0..count {
        // Same mode and time as before, a name of four bytes: 12 bytes an entry.
        bytes.extend_from_slice(&[0x80 | 0x02, 0x82]);
        bytes.extend_from_slice(&[4]);
        bytes.extend_from_slice(&number.to_be_bytes().map(|b| b'a' + b % 26));
        bytes.extend_from_slice(&[0, 0, 0]);
    }
    let first = entry(b"a", FILE);
    let bytes = [first, bytes].concat();
    let (_, held) = measured(|| read(&receiving(), &bytes));
    assert!(held < bytes.len() * 24, "held {held} bytes for {}", bytes.len());
}

#[test]
fn frames_that_announce_much_and_bring_nothing() {
    let pull = receiving();
    let read = |bytes: &[u8]| {
        let mut demux = Demux::new(&pull);
        demux.feed(Bytes::copy_from_slice(bytes));
        loop {
            match demux.next_frame() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    };
    for (tag, text, code) in
        [(0x09, "multiplexing overflow", 12), (0x1D, "invalid multi-message", 12), (0x6C, "tag", 12)]
    {
        let (result, held) = measured(|| read(&[0xFF, 0xFF, 0xFF, tag]));
        let error = result.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!((error.exit_code(), held < 4096), (code, true));
    }
    let empty = [0, 0, 0, 7].repeat(100_000);
    let (result, held) = measured(|| read(&empty));
    assert_eq!(result, Ok(()));
    assert!(held < empty.len() + 4096);
}

#[test]
fn lines_and_words_without_end() {
    let endless = vec![b'x'; 1 << 20];
    let request = ModuleRequest::Module(b"m".to_vec());
    let mut client = DaemonClient::new(Version::NEWEST, request, Vec::new()).unwrap();
    assert_eq!(client.feed(&endless).unwrap_err().exit_code(), 5);
    let greeted = [b"@RSYNCD: 31.0\n".as_slice(), &endless].concat();
    let request = ModuleRequest::Module(b"m".to_vec());
    let mut client = DaemonClient::new(Version::NEWEST, request, Vec::new()).unwrap();
    assert_eq!(client.feed(&greeted).unwrap_err().exit_code(), 12);
    let mut block = ArgumentBlock::of_daemon(Version::NEWEST);
    let (result, held) = measured(|| block.take_word(&mut Reader::new(&endless)));
    assert!(matches!(result, Err(Stop::Bad(_))));
    assert!(held < 8192);
}
