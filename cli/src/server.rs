//! A server: the far end of somebody's transfer, on stdin and stdout.
//!
//! Wire: protocol/doc/02-session-start.md#22-start-handshake-raw-bytes-remote-shell

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use suisei_engine::context::Reporter;
use suisei_engine::ids::IdMap;
use suisei_engine::link::{handshake, NoticePort, Stream};
use suisei_engine::observe::Who;
use suisei_engine::run::{self, Begun, ForwardedNames, Start, Target};
use suisei_engine::source::{Names, Separator, Source};
use suisei_engine::tree::{Trust, Wanted};
use suisei_engine::{Failure, TransferOptions};
use suisei_protocol::filter::Rule;
use suisei_protocol::mux::Notice;
use suisei_protocol::session::{ArgumentBlock, Capabilities, Direction, Session, Side, Version};
use suisei_protocol::wire::Reader;
use suisei_protocol::Stop;

use crate::daemon::Terms;
use crate::exit::{copy_as, Code, Refusal};
use crate::filters;
use crate::glob;
use crate::named;
use crate::options::environment::Environment;
use crate::options::help;
use crate::options::iconv;
use crate::options::meaning::{self, BatchUse, FilesFrom, Wishes};
use crate::options::server_args::{self, ServerWords};
use crate::options::typed::{Recorded, Stderr};
use crate::output::escape::{escape, HighBytes};
use crate::output::format::Scene;
use crate::output::human::Human;
use crate::output::itemize::{Detail, Style, Way};
use crate::output::listing::Columns;
use crate::output::log::{DryRuns, ItemLog, LogFile};
use crate::output::{cause, failure, final_line, logged_totals, Forwarder, Itemizes, ServerSettings};

/// Runs a server to its end and returns the exit code. `line` is its command line without the
/// program's name.
pub fn run(line: &[Vec<u8>], environment: &Environment, interrupted: Arc<AtomicBool>) -> u8 {
    match serve(line, environment, interrupted) {
        Ok(code) => code,
        Err(refusal) => {
            if !refusal.text.is_empty() {
                say(&[refusal.text.as_slice(), b"\n"].concat());
            }
            say(final_line(refusal.code, refusal.who.unwrap_or("server")).as_bytes());
            refusal.code
        }
    }
}

fn say(text: &[u8]) {
    // Nobody may be listening any more; the exit code still tells.
    for line in text.split_inclusive(|&b| b == b'\n') {
        let _ = io::stderr().write_all(&escape(line, HighBytes::Escape));
    }
}

fn serve(line: &[Vec<u8>], environment: &Environment, interrupted: Arc<AtomicBool>) -> Result<u8, Refusal> {
    let mut stream = own_stream()?;
    let mut words = server_args::read(line, None)?;
    let secluded = words.secluded;
    if secluded {
        let mut more = read_secluded(&mut stream)?;
        if let Some(conversion) = iconv::here(&words.typed, environment)? {
            more = more.iter().map(|word| conversion.charset.message_from_utf8(word)).collect();
        }
        words = server_args::read(line, Some(&more))?;
    }
    if let Some(show) = words.typed.output.show {
        say(help::text(show).as_bytes());
        return Ok(Code::Ok as u8);
    }
    let direction = if words.typed.connect.sender { Direction::Sending } else { Direction::Receiving };
    if !words.complete {
        say(help::usage().as_bytes());
        let who = if direction == Direction::Sending { "sender" } else { "Receiver" };
        return Err(Refusal::usage("").said_by(who));
    }
    let wishes = meaning::resolve(words.typed, environment)?;
    let mut paths = wishes.typed.operands.clone();
    if secluded && direction == Direction::Sending {
        // No shell has expanded them.
        paths = paths.iter().flat_map(|path| glob::expand(path)).collect();
    }
    let who = if direction == Direction::Sending { "sender" } else { "Receiver" };
    copy_as(wishes.typed.connect.copy_as.as_deref(), who)?;
    let server = Server { direction, secluded, environment, interrupted, terms: None };
    server.serve(&wishes, words.capabilities.unwrap_or_default(), paths, stream)
}

/// Serves a daemon's client: the text phase is over, the handshake comes next.
pub fn serve_module(
    wishes: &Wishes,
    words: &ServerWords,
    paths: Vec<Vec<u8>>,
    stream: Stream,
    environment: &Environment,
    interrupted: Arc<AtomicBool>,
    terms: &Terms,
) -> Result<u8, Refusal> {
    let direction = if wishes.typed.connect.sender { Direction::Sending } else { Direction::Receiving };
    let server = Server { direction, secluded: words.secluded, environment, interrupted, terms: Some(terms) };
    server.serve(wishes, words.capabilities.unwrap_or_default(), paths, stream)
}

/// Takes stdin and stdout and leaves `/dev/null` in their place: what is printed by accident cannot
/// reach the client, and the client sees the end of the stream when it is dropped.
fn own_stream() -> Result<Stream, Refusal> {
    let failed = |error: io::Error| Refusal::new(Code::Ipc, format!("rsync: [server] dup: {error}"));
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdout(&nothing).map_err(|error| failed(error.into()))?;
    Ok(Stream { input, output, early: Vec::new() })
}

/// Reads the words that follow on stdin; what lies behind them stays in the stream.
fn read_secluded(stream: &mut Stream) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut block = ArgumentBlock::secluded();
    let mut words = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut reader = Reader::new(&stream.early);
        let word = block.take_word(&mut reader);
        let consumed = reader.consumed();
        match word {
            Ok(None) => {
                stream.early.drain(..consumed);
                // The first word stands for the program's name.
                return Ok(words.split_off(1.min(words.len())));
            }
            Ok(Some(word)) => {
                stream.early.drain(..consumed);
                words.push(word);
            }
            Err(Stop::Short) => match rustix::io::read(&stream.input, &mut buffer) {
                Ok(0) => return Err(Failure::PeerClosed { received: 0, who: Who::ReceivingSide }.into()),
                Ok(read) => stream.early.extend_from_slice(&buffer[..read]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Failure::Connection { call: "read", error: error.into() }.into()),
            },
            Err(Stop::Bad(error)) => return Err(Refusal::with_code(error.exit_code(), error.to_string())),
        }
    }
}

struct Server<'a> {
    direction: Direction,
    secluded: bool,
    environment: &'a Environment,
    interrupted: Arc<AtomicBool>,
    terms: Option<&'a Terms>,
}

impl Server<'_> {
    fn serve(
        &self,
        wishes: &Wishes,
        capabilities: Capabilities,
        paths: Vec<Vec<u8>>,
        stream: Stream,
    ) -> Result<u8, Refusal> {
        self.check_batch(wishes)?;
        let mut offer = wishes.offer(Side::Server, self.direction, self.environment)?;
        offer.capabilities = capabilities;
        offer.agreed = self.terms.map(|terms| terms.version);
        if offer.seed == 0 {
            offer.seed = seed();
        }
        let timeout = self.options(wishes, Vec::new(), wishes.version).limits.timeout;
        let (session, stream) = match handshake(stream, offer, timeout, &self.interrupted) {
            Ok(agreed) => agreed,
            Err(error) => return Ok(self.end_early(&error)),
        };
        let log = match self.terms {
            Some(terms) => Some(terms.log.clone()),
            None => self.open_log(wishes),
        };
        let list = names_file(wishes);
        let start = self.start(wishes, session, stream, list.as_ref(), log.clone())?;
        let forbidden = self.terms.and_then(|terms| terms.forbids(wishes, self.direction));
        let forbidden = forbidden.map(|text| Failure::Usage { text: text.into() });
        let refusal = self.terms.and_then(|terms| terms.refusal.as_ref()).map(refused);
        let is_receiving = self.direction == Direction::Receiving;
        if let Some(failure) = refusal {
            return Ok(run::refuse(start, failure).exit_code());
        }
        let forbidden = match forbidden {
            Some(failure) if is_receiving => return Ok(run::refuse(start, failure).exit_code()),
            forbidden => forbidden,
        };
        let begun = match run::begin(start) {
            Ok(begun) => begun,
            Err(error) => return Ok(self.end_early(&error)),
        };
        if let Some(failure) = forbidden {
            return Ok(run::refuse_begun(begun, failure).exit_code());
        }
        let context = begun.context.clone();
        let result = match self.direction {
            Direction::Sending => self.send(wishes, begun, paths, list),
            Direction::Receiving => self.receive(wishes, begun, paths, list),
        };
        let result = result?;
        let code = result.as_ref().map_or_else(Failure::exit_code, |()| context.exit_code());
        if let Some(log) = log.filter(|_| self.direction == Direction::Sending || code == 0) {
            let stats = &context.stats;
            let (sent, received) = (stats.bytes_written.value(), stats.bytes_read.value());
            log.lines(logged_totals(sent, received, stats.total_size.value()).as_bytes());
        }
        Ok(code)
    }

    fn options(&self, wishes: &Wishes, rules: Vec<Rule>, version: Version) -> TransferOptions {
        let mut options = wishes.transfer(rules, version, false);
        if let Some(terms) = self.terms {
            terms.limit_options(&mut options);
        }
        options
    }

    fn start(
        &self,
        wishes: &Wishes,
        session: Session,
        stream: Stream,
        list: Option<&NamesFile>,
        log: Option<Arc<LogFile>>,
    ) -> Result<Start, Refusal> {
        let notices = NoticePort::new();
        let observer = Arc::new(Forwarder::new(self.settings(wishes, &session, log.is_some()), log.clone()));
        let port = notices.clone();
        observer.attach(Box::new(move |notice| port.send(notice)));
        if let Some(conversion) = &wishes.conversion {
            observer.charset(&conversion.name, self.direction);
        }
        // A daemon has no home whose list would count.
        let nobody = Environment::default();
        let environment = if self.terms.is_some() { &nobody } else { self.environment };
        let rules = filters::of_server(wishes, self.direction, session.version, environment)?;
        let mut options = self.options(wishes, rules, session.version);
        options.select.cvs_names = filters::personal_cvs_names(environment);
        let announced = self.terms.and_then(|terms| terms.timeout).and(options.limits.timeout);
        if let Some(timeout) = announced {
            notices.send(Notice::IoTimeout(i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX)));
        }
        Ok(Start {
            ids: IdMap::new(options.preserve.numeric_ids, options.preserve.super_user),
            names_arrive: self.direction == Direction::Sending && matches!(list, Some(NamesFile::Client)),
            session,
            options,
            observer,
            notices,
            // The client reports; this end's roles only for the log.
            reporter: match (&log, self.direction) {
                (None, _) => Reporter::Nobody,
                (Some(_), Direction::Sending) => Reporter::Sender,
                (Some(_), Direction::Receiving) => Reporter::Receiver,
            },
            interrupted: self.interrupted.clone(),
            stream,
            names_in_utf8: self.secluded,
            record: None,
        })
    }

    /// Opens the log; one that cannot be opened is done without.
    fn open_log(&self, wishes: &Wishes) -> Option<Arc<LogFile>> {
        let path = wishes.typed.output.log_file.as_ref()?;
        match LogFile::open(path) {
            Ok(log) => Some(Arc::new(log)),
            Err(error) => {
                say(&LogFile::complaint("server", path, &error));
                say(LogFile::WITHOUT);
                None
            }
        }
    }

    fn settings(&self, wishes: &Wishes, session: &Session, has_log: bool) -> ServerSettings {
        let scene = Scene {
            style: Style {
                way: if self.direction == Direction::Sending { Way::Out } else { Way::In },
                has_flags: session.version.has_item_flags(),
                keeps_times: wishes.typed.preserve.times,
                keeps_link_times: wishes.typed.preserve.times,
            },
            operation: if self.direction == Direction::Sending { "send" } else { "recv" },
            transfer_sum: session.transfer_sum,
            list_sum: session.list_sum,
        };
        let format = wishes.typed.output.log_file_format.as_deref();
        let dry = if wishes.typed.change.dry_run { DryRuns::Untold } else { DryRuns::Told };
        let detail = match wishes.typed.output.out_format.as_deref() {
            Some(format) if format.starts_with(b"%i%I") => Detail::All,
            _ => Detail::Changed,
        };
        let mut settings = settings(wishes, session);
        settings.items = match self.terms {
            None => has_log.then(|| ItemLog::new(format, scene, detail, dry)),
            Some(terms) => {
                // A daemon's standard error leads nowhere.
                settings.errors_as_messages = true;
                settings.all_to_stderr = false;
                terms.log_format.clone().map(|format| ItemLog::of_transfers(format, scene, detail, dry))
            }
        };
        settings
    }

    /// Only a client writes or reads batch files.
    fn check_batch(&self, wishes: &Wishes) -> Result<(), Refusal> {
        let change = &wishes.typed.change;
        if matches!(change.write_batch, Some((_, Recorded::Too))) {
            say(b"ignoring --write-batch option sent to server\n");
        }
        if change.read_batch.is_some() {
            say(b"ignoring --read-batch option sent to server\n");
        }
        let is_alone = matches!(wishes.batch, BatchUse::Write(..));
        if is_alone && self.direction == Direction::Sending {
            // Stock finds out that it has no file when it writes to it.
            let error = io::Error::from_raw_os_error(rustix::io::Errno::BADF.raw_os_error());
            let failure = Failure::Record { bytes: 4, error };
            let mut text = cause(Who::Sender, &failure);
            text.pop();
            return Err(Refusal::with_code(failure.exit_code(), text));
        }
        Ok(())
    }

    fn open(&self, path: &[u8], trust: &Trust) -> Result<File, Refusal> {
        named::open_list(path, trust, if self.terms.is_some() { Wanted::Regular } else { Wanted::Any })
    }

    fn send(
        &self,
        wishes: &Wishes,
        begun: Begun,
        mut paths: Vec<Vec<u8>>,
        list: Option<NamesFile>,
    ) -> Result<Result<(), Failure>, Refusal> {
        if paths.is_empty() && (wishes.recursive || wishes.dirs || wishes.listing) {
            paths.push(b".".to_vec());
        }
        let directory = || paths.first().cloned().unwrap_or_else(|| b".".to_vec());
        let source = match (begun.names, list) {
            (Some(names), _) => Source::with_names(directory(), names),
            (None, Some(NamesFile::Here(path))) => {
                let separator = if wishes.typed.select.from0 { Separator::Nul } else { Separator::Line };
                let content = Box::new(BufReader::new(self.open(&path, &wishes.trust_in_files())?));
                Source::with_names(directory(), Names::Local { content, separator })
            }
            (None, _) => Source::new(paths),
        };
        Ok(run::sending(begun.context, begun.connection, source))
    }

    fn receive(
        &self,
        wishes: &Wishes,
        begun: Begun,
        paths: Vec<Vec<u8>>,
        list: Option<NamesFile>,
    ) -> Result<Result<(), Failure>, Refusal> {
        let forward = match list {
            Some(NamesFile::Here(path)) => Some(ForwardedNames {
                file: Box::new(self.open(&path, &wishes.trust_in_files())?),
                nul_separated: wishes.typed.select.from0,
                charset: wishes.conversion.as_ref().filter(|_| self.secluded).map(|c| c.charset),
            }),
            _ => None,
        };
        let path = paths.into_iter().next().unwrap_or_else(|| b".".to_vec());
        Ok(run::receiving(begun.context, begun.connection, Target { path, forward, requested: None }))
    }

    fn end_early(&self, error: &Failure) -> u8 {
        let who = if self.direction == Direction::Sending { Who::Sender } else { Who::ReceivingSide };
        say(&failure(who, error));
        error.exit_code()
    }
}

/// Where the names of `--files-from` are, seen from a server.
enum NamesFile {
    /// The client forwards them.
    Client,
    /// In a file on this machine.
    Here(Vec<u8>),
}

fn names_file(wishes: &Wishes) -> Option<NamesFile> {
    match wishes.files_from.as_ref()? {
        FilesFrom::Here(path) if path == b"-" => Some(NamesFile::Client),
        FilesFrom::Here(path) | FilesFrom::There { path, .. } => Some(NamesFile::Here(path.clone())),
    }
}

/// What a client is told that asked for what is refused.
fn refused(refusal: &Refusal) -> Failure {
    Failure::Refused { text: format!("\n{}", String::from_utf8_lossy(&refusal.text)) }
}

fn settings(wishes: &Wishes, session: &Session) -> ServerSettings {
    let mode = wishes.typed.output.stderr;
    ServerSettings {
        info: wishes.info.clone(),
        itemizes: match wishes.typed.output.out_format.as_ref().is_some_and(|f| f.starts_with(b"%i")) {
            true => Itemizes::Yes,
            false => Itemizes::No,
        },
        quiet: wishes.typed.output.quiet > 0,
        errors_as_messages: match mode {
            Some(mode) => mode == Stderr::Client,
            None => session.version.server_sends_all_texts(),
        },
        all_to_stderr: mode == Some(Stderr::All),
        direction: session.direction,
        items: None,
        has_item_flags: session.version.has_item_flags(),
        has_deleted_message: session.version.has_deleted_message(),
        debug: wishes.debug.clone(),
        columns: Columns {
            human: Human::default(),
            atimes: wishes.typed.preserve.atimes > 0,
            links: wishes.typed.preserve.links,
        },
    }
}

fn seed() -> i32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() as i32) ^ ((std::process::id() as i32) << 6)
}
