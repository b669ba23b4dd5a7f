//! What the recorder kept of one session; see `fixtures/README.md`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use suisei_protocol::session::{
    Capabilities, CompressWish, Direction, Handshake, IncrementalRecursion, Layout, Offer, Progress, Session,
    Side, SumChoice, Version,
};
use suisei_protocol::transfer::Compressor;

/// One recorded session.
pub struct Recorded {
    pub name: String,
    pub folder: PathBuf,
    /// Client to server.
    pub up: Vec<u8>,
    /// Server to client.
    pub down: Vec<u8>,
    /// The server's command line.
    pub words: Vec<String>,
    pub exit: i32,
    pub stdout: String,
    pub tree: String,
    /// The destination's files before the run.
    pub basis: HashMap<String, Vec<u8>>,
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
        Recorded {
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
            folder,
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
            numeric_ids: self.has("--numeric-ids"),
            relative: has('R'),
            recursive: has('r'),
            dry_run: has('n'),
            append: self.appends() > 0,
            missing_args: self.has("--delete-missing-args"),
            confirm: self.has("--remove-source-files"),
        }
    }

    /// What one end brought, as the command line says.
    pub fn offer(&self, side: Side, seed: i32) -> Offer {
        let (letters, capabilities) = self.bundle();
        let announced = u32::from_le_bytes(self.up[..4].try_into().unwrap());
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
            version: if side == Side::Client { Version::new(announced).unwrap() } else { Version::NEWEST },
            agreed: None,
            capabilities: Capabilities::parse(capabilities.as_bytes()),
            recursion: if refused { IncrementalRecursion::Refused } else { IncrementalRecursion::Allowed },
            sums: sums.flatten(),
            compress,
            compress_level: None,
            seed,
            checksum_list: None,
            compress_list: None,
            layout: self.layout(),
        }
    }

    /// Runs the handshake of both ends, and checks that our server would have written the
    /// recorded bytes.
    pub fn open(&self) -> Opened {
        let (client, down) = shake(Handshake::new(self.offer(Side::Client, 0)).unwrap(), &self.down);
        let mut server = Handshake::new(self.offer(Side::Server, client.seed)).unwrap();
        let Ok(Progress::Done { consumed: up, session }) = server.feed(&self.up) else {
            panic!("{}: the server's handshake", self.name)
        };
        assert_eq!(server.output(), &self.down[..down], "{}: what a server opens with", self.name);
        let same = Session { side: client.side, direction: client.direction, ..session.clone() };
        assert_eq!(client, same, "{}: both ends agree", self.name);
        Opened { client, server: session, up, down }
    }
}

fn shake(mut handshake: Handshake, input: &[u8]) -> (Session, usize) {
    match handshake.feed(input) {
        Ok(Progress::Done { consumed, session }) => (session, consumed),
        other => panic!("the client's handshake: {other:?}"),
    }
}
