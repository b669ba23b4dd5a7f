//! What the recorder kept of one session; see `fixtures/README.md`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use suisei_protocol::session::{
    put_arguments, take_line, ArgumentBlock, Capabilities, CompressWish, DaemonClient, DaemonEvent,
    Direction, Greeting, Handshake, IncrementalRecursion, Layout, ModuleRequest, Offer, Progress, Session,
    Side, SumChoice, Version,
};
use suisei_protocol::transfer::Compressor;
use suisei_protocol::wire::Reader;

/// One recorded session.
pub struct Recorded {
    pub name: String,
    pub folder: PathBuf,
    /// Client to server.
    pub up: Vec<u8>,
    /// Server to client.
    pub down: Vec<u8>,
    /// The server's command line, or what came instead of it.
    pub words: Vec<String>,
    /// What stands in front of the handshake.
    pub start: Start,
    pub exit: i32,
    pub stdout: String,
    pub tree: String,
    /// The destination's files before the run.
    pub basis: HashMap<String, Vec<u8>>,
}

/// What stands in front of the handshake: nothing, secluded words, or a daemon's text phase.
#[derive(Default)]
pub struct Start {
    pub up: usize,
    pub down: usize,
    /// The version that a greeting settled.
    pub agreed: Option<Version>,
    /// The client's own version, where no version int tells.
    pub greeted: Option<Version>,
}

/// A handshake that both streams agree on.
pub struct Opened {
    pub client: Session,
    pub server: Session,
    /// Where the streams go on.
    pub up: usize,
    pub down: usize,
}

fn wire() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/wire")
}

/// Returns all recorded sessions, by name.
pub fn all() -> Vec<Recorded> {
    let mut folders: Vec<PathBuf> = fs::read_dir(wire().join("sessions"))
        .expect("the recorded sessions are part of the repository")
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    folders.into_iter().map(Recorded::load).collect()
}

impl Recorded {
    fn load(folder: PathBuf) -> Self {
        let observed = fs::read_to_string(folder.join("observed.txt")).unwrap();
        let section = |title: &str| {
            let (_, rest) = observed.split_once(&format!("== {title}\n")).unwrap();
            rest.split("== ").next().unwrap().trim_end().to_owned()
        };
        let basis = fs::read_dir(wire().join("basis").join(section("basis"))).into_iter().flatten();
        let mut recorded = Recorded {
            name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            up: fs::read(folder.join("up.bin")).unwrap(),
            down: fs::read(folder.join("down.bin")).unwrap(),
            words: section("server").lines().map(str::to_owned).collect(),
            exit: section("exit").parse().unwrap(),
            stdout: section("stdout"),
            tree: section("tree"),
            basis: basis
                .map(|file| file.unwrap())
                .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
                .collect(),
            start: Start::default(),
            folder,
        };
        recorded.begin();
        recorded
    }

    /// Reads what stands in front of the handshake.
    fn begin(&mut self) {
        if self.has("--daemon") {
            self.begin_daemon();
        }
        if self.bundle().0.contains('s') {
            let up = self.start.up;
            self.start.up += self.take_words(ArgumentBlock::secluded(), up);
        }
    }

    /// Lives through the text phase as a client; what it writes must be what was recorded.
    fn begin_daemon(&mut self) {
        let greeting = take_line(&mut Reader::new(&self.up), 1024).unwrap();
        let ours = Version::new(Greeting::parse(&greeting).unwrap().version).unwrap();
        let lines: Vec<&[u8]> = self.up.split(|b| *b == b'\n').collect();
        let module = ModuleRequest::parse(lines[1]).unwrap();
        let mut client = DaemonClient::new(ours, module, Vec::new()).unwrap();
        loop {
            let (consumed, event) = client.feed(&self.down[self.start.down..]).unwrap();
            self.start.down += consumed;
            match event.expect("the text phase is complete") {
                DaemonEvent::Line(_) => {}
                DaemonEvent::LoginWanted => client.login(b"bob", b"s3cret").unwrap(),
                DaemonEvent::Ready(agreed) => {
                    self.start.agreed = Some(agreed);
                    break;
                }
                DaemonEvent::ListEnd => panic!("{}: a list of modules", self.name),
            }
        }
        let written = client.output();
        assert!(self.up.starts_with(&written), "{}: what a daemon's client writes", self.name);
        self.start.greeted = Some(ours);
        self.words.clear();
        let block = ArgumentBlock::of_daemon(self.start.agreed.unwrap());
        self.start.up = written.len() + self.take_words(block, written.len());
    }

    /// Adds a block of words and returns its length; writing them again must give the same bytes.
    fn take_words(&mut self, mut block: ArgumentBlock, from: usize) -> usize {
        let mut reader = Reader::new(&self.up[from..]);
        let mut words = Vec::new();
        while let Some(word) = block.take_word(&mut reader).unwrap() {
            words.push(word);
        }
        let mut again = Vec::new();
        put_arguments(&block, &words, &mut again).unwrap();
        assert_eq!(again, self.up[from..from + reader.consumed()], "{}", self.name);
        self.words.extend(words.into_iter().map(|word| String::from_utf8(word).unwrap()));
        again.len()
    }

    /// Whether the names of `--files-from` travel in front of the list.
    pub fn has_names(&self) -> bool {
        match self.is_pull() {
            true => self.has("--files-from=-"),
            false => self.has("--files-from"),
        }
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    /// Whether the server sends.
    pub fn is_pull(&self) -> bool {
        self.has("--sender")
    }

    /// How often `--append` was given: twice means `--append-verify`.
    pub fn appends(&self) -> usize {
        self.words.iter().filter(|w| *w == "--append").count()
    }

    /// Whether the client sends a filter list.
    pub fn has_filters(&self) -> bool {
        self.is_pull() || self.words.iter().any(|w| w.starts_with("--delete"))
    }

    fn value(&self, option: &str) -> Option<&str> {
        self.words.iter().find_map(|w| w.strip_prefix(option))
    }

    /// The bundle of letters, and what stands behind its `e`.
    fn bundle(&self) -> (&str, &str) {
        let is_bundle = |w: &&String| w.starts_with('-') && !w.starts_with("--");
        let bundle = self.words.iter().find(is_bundle).map_or("", |w| &w[1..]);
        bundle.split_once('e').unwrap_or((bundle, ""))
    }

    fn layout(&self) -> Layout {
        let (letters, _) = self.bundle();
        let has = |letter| letters.contains(letter);
        Layout {
            uid: has('o'),
            gid: has('g'),
            devices: has('D'),
            specials: has('D'),
            links: has('l'),
            hard_links: has('H'),
            checksum: has('c'),
            atimes: has('U'),
            crtimes: has('N'),
            acls: has('A'),
            xattrs: has('X'),
            numeric_ids: self.has("--numeric-ids"),
            relative: has('R'),
            recursive: has('r'),
            dry_run: has('n'),
            withheld: false,
            append: self.appends() > 0,
            missing_args: self.has("--delete-missing-args"),
            confirm: self.has("--remove-source-files"),
        }
    }

    /// What one end brought, as the command line says.
    pub fn offer(&self, side: Side, seed: i32) -> Offer {
        let (letters, capabilities) = self.bundle();
        let own = self.start.greeted.unwrap_or_else(|| {
            let int = self.up[self.start.up..][..4].try_into().unwrap();
            Version::new(u32::from_le_bytes(int)).unwrap()
        });
        let server_sends = self.is_pull();
        let sends = (side == Side::Server) == server_sends;
        let late = ["--delay-updates", "--delete-before", "--delete-after"];
        let refused = !sends && self.words.iter().any(|w| late.contains(&w.as_str()));
        let sums = self.value("--checksum-choice=").map(|c| SumChoice::parse(c).unwrap());
        let compress = match self.value("--compress-choice=") {
            Some(choice) => CompressWish::parse(choice).unwrap(),
            None if self.has("--new-compress") => CompressWish::Fixed(Compressor::Zlibx),
            None if self.has("--old-compress") => CompressWish::Fixed(Compressor::Zlib),
            None if letters.contains('z') => CompressWish::Negotiate,
            None => CompressWish::Off,
        };
        Offer {
            side,
            direction: if sends { Direction::Sending } else { Direction::Receiving },
            version: if side == Side::Client { own } else { Version::NEWEST },
            agreed: self.start.agreed,
            capabilities: Capabilities::parse(capabilities.as_bytes()),
            recursion: if refused { IncrementalRecursion::Refused } else { IncrementalRecursion::Allowed },
            sums: sums.flatten(),
            compress,
            compress_level: None,
            seed,
            checksum_list: None,
            compress_list: None,
            charset: None,
            recorded: false,
            layout: self.layout(),
            needs: None,
        }
    }

    /// Runs the handshake of both ends, and checks that our server would have written the
    /// recorded bytes.
    pub fn open(&self) -> Opened {
        let Start { up, down, .. } = self.start;
        let (client, end) = shake(Handshake::new(self.offer(Side::Client, 0)).unwrap(), &self.down[down..]);
        let mut server = Handshake::new(self.offer(Side::Server, client.seed)).unwrap();
        let Ok(Progress::Done { consumed, session }) = server.feed(&self.up[up..]) else {
            panic!("{}: the server's handshake", self.name)
        };
        assert_eq!(server.output(), &self.down[down..down + end], "{}: what a server opens with", self.name);
        let same = Session { side: client.side, direction: client.direction, ..session.clone() };
        assert_eq!(client, same, "{}: both ends agree", self.name);
        Opened { client, server: session, up: up + consumed, down: down + end }
    }
}

fn shake(mut handshake: Handshake, input: &[u8]) -> (Session, usize) {
    match handshake.feed(input) {
        Ok(Progress::Done { consumed, session }) => (session, consumed),
        other => panic!("the client's handshake: {other:?}"),
    }
}
