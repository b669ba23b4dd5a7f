//! Trees to copy, runs to compare, and what is left of both.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use suisei_engine::context::Reporter;
use suisei_engine::ids::IdMap;
use suisei_engine::link::{handshake, NoticePort, Stream};
use suisei_engine::observe::{Event, Moment, Observer, What};
use suisei_engine::options::{Delete, DeleteWhen, Preserve, Select};
use suisei_engine::run::{self, LocalChoice, Requested, Start, Target};
use suisei_engine::source::Source;
use suisei_engine::{Context, Failure, TransferOptions};
use suisei_protocol::flist::FileKind;
use suisei_protocol::mux::Notice;
use suisei_protocol::session::{
    Capabilities, CompressWish, Direction, IncrementalRecursion, Offer, Recursion, Side, Version,
};
use suisei_protocol::transfer::Compressor;

/// Returns options like those of `-a`, as root would have them.
pub fn archive() -> TransferOptions {
    TransferOptions {
        select: Select { recursive: true, incremental: true, implied_dirs: true, ..Select::default() },
        preserve: Preserve {
            links: true,
            perms: true,
            times: true,
            group: true,
            owner: true,
            specials: true,
            ..Preserve::default()
        },
        ..TransferOptions::default()
    }
}

/// Adds a way of deleting.
pub fn deleting(mut options: TransferOptions, when: DeleteWhen) -> TransferOptions {
    options.delete = Delete { when: Some(when), ..Delete::default() };
    options
}

/// A source and a destination in a temporary directory.
pub struct Field {
    pub root: tempfile::TempDir,
}

impl Field {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("src")).unwrap();
        fs::create_dir(root.path().join("dst")).unwrap();
        Field { root }
    }

    pub fn src(&self) -> PathBuf {
        self.root.path().join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.root.path().join("dst")
    }

    /// Writes a file with a fixed old time.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        age(&path, 1_000_000_000);
    }

    /// Sets the modification time of every directory.
    pub fn age_directories(&self, seconds: u64) {
        for item in walkdir::WalkDir::new(self.root.path()).contents_first(true) {
            let item = item.unwrap();
            if item.file_type().is_dir() {
                age(item.path(), seconds);
            }
        }
    }

    /// A small tree of everything that needs no privilege.
    pub fn fill_source(&self) {
        self.write("src/a.txt", "hello\n");
        self.write("src/d/b.txt", "world!\n");
        self.write("src/d/e/c.bin", noise(200_000, 1));
        self.write("src/d/empty", "");
        self.write("src/run.sh", "#!/bin/sh\n");
        fs::set_permissions(self.src().join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::create_dir_all(self.src().join("hollow/inner")).unwrap();
        symlink("a.txt", self.src().join("link")).unwrap();
        symlink("../nowhere", self.src().join("d/dangling")).unwrap();
    }
}

/// Sets the modification time of a file or directory.
pub fn age(path: &Path, seconds: u64) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

/// Returns bytes that do not repeat.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

/// What a tree holds: path, then kind, mode, time and content in words.
pub fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let mut inodes: BTreeMap<u64, String> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for item in walkdir::WalkDir::new(root).sort_by_file_name() {
        let item = item.unwrap();
        let path = item.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let meta = item.path().symlink_metadata().unwrap();
        let words = if meta.is_symlink() {
            format!("link -> {}", fs::read_link(item.path()).unwrap().display())
        } else if meta.is_dir() {
            format!("dir {:o} {}", meta.mode() & 0o7777, meta.mtime())
        } else if meta.is_file() {
            let content = fs::read(item.path()).unwrap();
            let first = inodes.entry(meta.ino()).or_insert_with(|| path.clone());
            let group = if meta.nlink() > 1 { format!(" = {first}") } else { String::new() };
            format!(
                "file {:o} {} {} {:x}{group}",
                meta.mode() & 0o7777,
                meta.mtime(),
                content.len(),
                digest(&content)
            )
        } else {
            format!("special {:o}", meta.mode())
        };
        all.insert(path, words);
    }
    all
}

fn digest(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Writes down events in words.
#[derive(Default)]
pub struct Log(Mutex<Vec<String>>);

impl Log {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Log {
    fn event(&self, event: Event<'_>) {
        let line = match event {
            Event::Item(report) if report.moment == Moment::Finished => {
                format!("{:04x} {}", report.item.flags.bits(), report.entry.path().as_bytes().escape_ascii())
            }
            Event::Deleted { path, .. } => format!("deleted {}", path.as_bytes().escape_ascii()),
            Event::Note(path, note) => format!("note {} {note:?}", path.as_bytes().escape_ascii()),
            Event::Problem(problem) => match problem.what {
                What::Call { call, path, error } | What::Reason { text: call, path, error } => {
                    format!("problem {call} {} {error}", path.escape_ascii())
                }
                What::Around { before, path, error, .. } => {
                    format!("problem {before}{} {error}", path.escape_ascii())
                }
                What::Sentence { before, path, after } => {
                    format!("problem {before}{}{after}", path.escape_ascii())
                }
            },
            Event::DestinationCreated { levels, .. } => format!("created {levels}"),
            Event::DeletionSkipped => "deletion skipped".into(),
            Event::Failed { who, failure } => format!("failed {who:?}: {failure}"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// A server's observer: sends deletions to its client, as a server must.
struct Server {
    log: Arc<Log>,
    notices: NoticePort,
}

impl Observer for Server {
    fn event(&self, event: Event<'_>) {
        if let Event::Deleted { path, kind } = &event {
            let path = path.as_bytes().to_vec().into();
            self.notices.send(Notice::Deleted { path, is_dir: *kind == FileKind::Directory });
        }
        self.log.event(event);
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The client's exit code.
    pub code: u8,
    /// What the client's observer saw.
    pub lines: Vec<String>,
    /// What the server's observer saw.
    pub server_lines: Vec<String>,
    pub literal: u64,
    pub matched: u64,
    pub transferred: u64,
}

impl Outcome {
    /// The lines of items that move data.
    pub fn transfers(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter(|line| line.starts_with(['8', '9', 'a', 'b']))
            .map(|line| &line[5..])
            .collect()
    }
}

pub fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

/// Returns the path with a slash behind it: the content of a directory.
pub fn content_of(path: &Path) -> Vec<u8> {
    [bytes(path), b"/".to_vec()].concat()
}

fn ids() -> IdMap {
    IdMap::new(true, true)
}

fn context(
    session: suisei_protocol::session::Session,
    options: TransferOptions,
    log: &Arc<Log>,
    reporter: Reporter,
) -> Context {
    Context::new(session, options, log.clone(), reporter, ids(), Arc::default())
}

fn outcome(ctx: &Context, end: Result<(), Failure>, log: &Log, server: &Log) -> Outcome {
    Outcome {
        code: end.map_or_else(|failure| failure.exit_code(), |()| ctx.exit_code()),
        lines: log.lines(),
        server_lines: server.lines(),
        literal: ctx.stats.literal.value(),
        matched: ctx.stats.matched.value(),
        transferred: ctx.stats.transferred.value(),
    }
}

/// Copies over the local link.
pub fn local(options: &TransferOptions, version: u32, sources: Vec<Vec<u8>>, destination: &[u8]) -> Outcome {
    let choice = LocalChoice { version: Version::new(version).unwrap(), seed: 1, ..LocalChoice::default() };
    let session = run::local_session(options, choice);
    let log = Arc::new(Log::default());
    let ctx = Arc::new(context(session, options.clone(), &log, Reporter::Receiver));
    let end = run::local(ctx.clone(), Source::new(sources), destination);
    outcome(&ctx, end, &log, &Log::default())
}

/// Which end the user is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Push,
    Pull,
}

/// A run over two sockets, both ends ours.
#[derive(Clone)]
pub struct Remote {
    pub options: TransferOptions,
    pub version: u32,
    pub way: Way,
    pub compress: CompressWish,
}

impl Remote {
    pub fn new(options: &TransferOptions, version: u32, way: Way) -> Self {
        Remote { options: options.clone(), version, way, compress: CompressWish::Off }
    }

    pub fn compressed(self, compressor: Compressor) -> Self {
        Remote { compress: CompressWish::Fixed(compressor), ..self }
    }

    fn offer(&self, side: Side, direction: Direction) -> Offer {
        let client_direction = match self.way {
            Way::Push => Direction::Sending,
            Way::Pull => Direction::Receiving,
        };
        let recursion = run::allows_incremental(&self.options, direction);
        let offered = run::allows_incremental(&self.options, client_direction);
        Offer {
            side,
            direction,
            version: Version::new(self.version).unwrap(),
            agreed: None,
            capabilities: Capabilities::ours(offered),
            recursion,
            sums: None,
            compress: self.compress,
            compress_level: None,
            seed: 1,
            checksum_list: None,
            compress_list: None,
            charset: None,
            recorded: false,
            layout: run::layout(&self.options),
            needs: None,
        }
    }

    /// Runs both ends; `sources` and `destination` as the respective end would get them.
    pub fn run(&self, sources: Vec<Vec<u8>>, destination: &[u8]) -> Outcome {
        let (client, server) = UnixStream::pair().unwrap();
        let (client_direction, server_direction) = match self.way {
            Way::Push => (Direction::Sending, Direction::Receiving),
            Way::Pull => (Direction::Receiving, Direction::Sending),
        };
        let server_log = Arc::new(Log::default());
        let client_log = Arc::new(Log::default());
        let requested =
            (self.way == Way::Pull).then(|| Requested { arguments: sources.clone(), names: None });
        std::thread::scope(|scope| {
            let server_end = scope.spawn({
                let (sources, log) = (sources.clone(), server_log.clone());
                move || self.end(Side::Server, server_direction, server, sources, destination, &log, None)
            });
            let (end, ctx) = self.end(
                Side::Client,
                client_direction,
                client,
                sources,
                destination,
                &client_log,
                requested,
            );
            let (server_end, server_ctx) = server_end.join().unwrap();
            let mut outcome = outcome(&ctx, end, &client_log, &server_log);
            let server_code =
                server_end.map_or_else(|failure| failure.exit_code(), |()| server_ctx.exit_code());
            outcome.code = outcome.code.max(server_code);
            outcome
        })
    }

    #[allow(clippy::too_many_arguments, reason = "one place only")]
    fn end(
        &self,
        side: Side,
        direction: Direction,
        socket: UnixStream,
        sources: Vec<Vec<u8>>,
        destination: &[u8],
        log: &Arc<Log>,
        requested: Option<Requested>,
    ) -> (Result<(), Failure>, Arc<Context>) {
        let stream =
            Stream { input: socket.try_clone().unwrap().into(), output: socket.into(), early: Vec::new() };
        let interrupted = Arc::new(AtomicBool::new(false));
        let (session, stream) = handshake(stream, self.offer(side, direction), None, &interrupted).unwrap();
        assert_eq!(session.version.number(), self.version as u8);
        let mut options = self.options.clone();
        if side == Side::Server {
            options.select.filters.clear();
        }
        let reporter = match (side, direction) {
            (Side::Server, _) => Reporter::Nobody,
            (Side::Client, Direction::Sending) => Reporter::Sender,
            (Side::Client, Direction::Receiving) => Reporter::Receiver,
        };
        let notices = NoticePort::new();
        let observer: Arc<dyn Observer> = match side {
            Side::Client => log.clone(),
            Side::Server => Arc::new(Server { log: log.clone(), notices: notices.clone() }),
        };
        let begun = run::begin(Start {
            record: None,
            session,
            options,
            observer,
            notices,
            reporter,
            ids: ids(),
            interrupted,
            stream,
            names_arrive: false,
            names_in_utf8: false,
        })
        .unwrap();
        let context = begun.context;
        let end = match direction {
            Direction::Sending => run::sending(context.clone(), begun.connection, Source::new(sources)),
            Direction::Receiving => {
                let target = Target { path: destination.to_vec(), forward: None, requested };
                run::receiving(context.clone(), begun.connection, target)
            }
        };
        (end, context)
    }
}

/// Whether a version sends lists in segments with such options.
pub fn is_incremental(options: &TransferOptions, version: u32) -> bool {
    version >= 30 && run::allows_incremental(options, Direction::Receiving) == IncrementalRecursion::Allowed
}

/// Kept for tests that build sessions by hand.
pub const WHOLE: Recursion = Recursion::Whole;
