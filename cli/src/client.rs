//! A client: one run from plan to exit code.
//!
//! Wire: protocol/doc/22-output.md#4-order-of-output-in-a-run

mod batched;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Instant;

use suisei_engine::context::{Batch, Reporter};
use suisei_engine::ids::IdMap;
use suisei_engine::link::{handshake, NoticePort};
use suisei_engine::observe::Who;
use suisei_engine::run::{self, Begun, ForwardedNames, LocalChoice, Requested, Start, Target};
use suisei_engine::source::{Names, Separator, Source};
use suisei_engine::tree::Wanted;
use suisei_engine::{Context, Failure, TransferOptions};
use suisei_protocol::batch::recorded_sums;
use suisei_protocol::filter::{Rule, RuleFlags};
use suisei_protocol::session::{local_sums, Direction, Session, Side};

use crate::batch::Recording;
use crate::exit::{copy_as, Code, Refusal};
use crate::filters;
use crate::named;
use crate::options::environment::Environment;
use crate::options::meaning::{FilesFrom, Protection, Wishes};
use crate::output::format::{Format, Scene};
use crate::output::human::Human;
use crate::output::info::{Debug, Info};
use crate::output::itemize::{Detail, Style, Way};
use crate::output::listing::Columns;
use crate::output::log::{DryRuns, ItemLog};
use crate::output::trace::{command_words, rule_added, Ends};
use crate::output::{
    cause, final_line, is_explained, logged_totals, role, summary, Channel, Printer, Screen, Settings,
};
use crate::plan::Plan;
use crate::remote::link::{Dialer, Link, Peer};
use crate::remote::spec::{self, Kind, Machine, Route};

/// One run of a client.
pub struct Client<'a> {
    /// The argument vector, the program's name first.
    pub words: &'a [Vec<u8>],
    /// What to do.
    pub plan: &'a Plan,
    /// Variables.
    pub environment: &'a Environment,
    /// Both output streams.
    pub screen: Arc<Screen>,
    /// Set by a signal.
    pub interrupted: Arc<AtomicBool>,
}

/// What the command line names beside the files.
struct Inputs {
    rules: Vec<Rule>,
    /// A list of names on this machine.
    names: Option<Box<dyn BufRead + Send>>,
    /// The batch file that is written.
    recording: Option<Recording>,
}

/// How a run ended.
struct End {
    code: u8,
    who: &'static str,
    /// Whether the final line was printed by somebody else.
    explained: bool,
}

impl Client<'_> {
    /// Runs to the end and returns the exit code. Everything is said when it returns.
    pub fn run(&self) -> u8 {
        let started = Instant::now();
        let who = self.who();
        self.warn_of_quotes();
        let end = self.inputs().map_err(|refusal| (refusal, "client")).and_then(|mut inputs| {
            inputs.recording = self.record().map_err(|refusal| (refusal, "Receiver"))?;
            self.follow(inputs, started).map_err(|refusal| (refusal, who))
        });
        let end = end.unwrap_or_else(|(refusal, who)| {
            if !refusal.text.is_empty() {
                self.screen.lines(Channel::Err, &[refusal.text.as_slice(), b"\n"].concat());
            }
            End { code: refusal.code, who, explained: false }
        });
        self.screen.finish();
        self.trace_exit(&end);
        if end.code != 0 && !end.explained {
            self.screen.lines(Channel::Err, final_line(end.code, end.who).as_bytes());
        }
        end.code
    }

    /// Says which rules the command line makes, if somebody looks (debug FILTER 2). What verbosity
    /// implies is known only behind the words: then it is the rule of the backups alone.
    fn trace_rules(&self, rules: &[Rule]) {
        let wishes = self.wishes();
        if wishes.debug.of(Debug::Filter) < 2 || wishes.typed.output.quiet > 0 {
            return;
        }
        let own = [b"*", &wishes.suffix[..]].concat();
        let all = wishes.debug.is_typed(Debug::Filter);
        for rule in rules.iter().filter(|rule| !rule.flags.contains(RuleFlags::FROM_FILE)) {
            if all || rule.flags == RuleFlags::RECEIVER && rule.pattern == own {
                self.screen.line(Channel::Out, &rule_added("client", rule));
            }
        }
    }

    /// Says how the process ends, if somebody looks (debug EXIT).
    fn trace_exit(&self, end: &End) {
        let is_pull = matches!(self.plan.route, Route::Pull { .. });
        let exit = self.wishes().debug.of(Debug::Exit);
        let pid = std::process::id();
        // What a receiving side ends with is known only at the very end.
        let known = if is_pull { 0 } else { end.code };
        let who = end.who;
        let place = format!("[{who}] _exit_cleanup(code={known}, file=main.rs, line=1)");
        let mut lines = Vec::new();
        if is_pull && self.wishes().debug.of(Debug::Recv) >= 1 {
            lines.push(format!("client_run2 waiting on {pid}\n"));
        }
        if !is_pull && exit >= 2 {
            lines.push(format!("client_run waiting on {pid}\n"));
        }
        if exit >= 2 {
            lines.push(format!("{place}: entered\n"));
        }
        if exit >= 1 {
            lines.push(format!("{place}: about to call exit({})\n", end.code));
        }
        if self.wishes().typed.output.quiet == 0 {
            lines.iter().for_each(|line| self.screen.lines(Channel::Out, line.as_bytes()));
        }
    }

    /// Reads what the command line names before anything happens.
    fn inputs(&self) -> Result<Inputs, Refusal> {
        let pulls = matches!(self.plan.route, Route::Pull { .. });
        let rules = filters::of_client(self.wishes(), pulls, self.environment, &self.screen)?;
        self.trace_rules(&rules);
        Ok(Inputs { rules, names: self.open_names()?, recording: None })
    }

    /// Warns of quotes that no shell will take away.
    fn warn_of_quotes(&self) {
        let (machine, paths) = match &self.plan.route {
            Route::Push { machine, path, .. } => (machine, std::slice::from_ref(path)),
            Route::Pull { machine, paths, .. } => (machine, paths.as_slice()),
            Route::Local { .. } | Route::Replay { .. } => return,
        };
        let protected = matches!(self.wishes().protection, Protection::Escape | Protection::Secluded);
        if machine.kind != Kind::Shell || !protected || self.wishes().typed.output.quiet > 0 {
            return;
        }
        for path in paths.iter().filter(|path| spec::is_quoted_twice(path)) {
            let (before, after) = (b"rsync: the quotes in ", b" are part of the name (see --old-args)");
            self.screen.line(Channel::Err, &[before.as_slice(), path, after].concat());
        }
    }

    fn follow(&self, inputs: Inputs, started: Instant) -> Result<End, Refusal> {
        match &self.plan.route {
            Route::Local { sources, destination } => {
                self.local(inputs, sources, destination.as_deref(), started)
            }
            Route::Replay { destination } => self.replay(inputs, destination, started),
            Route::Push { sources, machine, path } => self.push(inputs, sources, machine, path, started),
            Route::Pull { machine, paths, destination } => {
                self.pull(inputs, machine, paths, destination.as_deref(), started)
            }
        }
    }

    fn who(&self) -> &'static str {
        match &self.plan.route {
            Route::Pull { .. } | Route::Replay { .. } => "Receiver",
            _ => "sender",
        }
    }

    fn wishes(&self) -> &Wishes {
        &self.plan.wishes
    }

    fn local(
        &self,
        Inputs { rules, names, recording }: Inputs,
        sources: &[Vec<u8>],
        destination: Option<&[u8]>,
        started: Instant,
    ) -> Result<End, Refusal> {
        let wishes = self.wishes();
        let source = match names {
            Some(content) => Source::with_names(sources[0].clone(), self.local_names(content)),
            None => Source::new(sources.to_vec()),
        };
        copy_as(wishes.typed.connect.copy_as.as_deref(), self.who())?;
        let options = wishes.transfer(rules, wishes.version, true);
        let (transfer_sum, list_sum) = match recording {
            Some(_) => recorded_sums(wishes.sums()?, wishes.version),
            None => local_sums(wishes.sums()?, wishes.version),
        };
        let seed = wishes.typed.delta.checksum_seed;
        let choice = LocalChoice { version: wishes.version, transfer_sum, list_sum, seed };
        let mut session = run::local_session(&options, choice);
        // A listing says of names that they could not travel.
        session.charset = wishes.conversion.as_ref().map(|conversion| conversion.charset);
        if let Some(path) = destination.filter(|_| wishes.debug.of(Debug::Cmd) >= 2) {
            let words = [b".".to_vec(), path.to_vec()];
            self.screen.show_lines(Channel::Out, &command_words(None, &Machine::here(), path, &words));
        }
        let batch = match recording {
            Some(recording) => {
                self.compress_record(&mut session)?;
                self.begin_record(recording, &session, &options)?
            }
            None => Batch::None,
        };
        let printer = self.printer(&session, &options, Way::In, "send");
        let ids = IdMap::new(options.preserve.numeric_ids, options.preserve.super_user);
        let observer = printer.clone();
        let interrupted = self.interrupted.clone();
        let mut context = Context::new(session, options, observer, Reporter::Receiver, ids, interrupted);
        context.batch = batch;
        let context = Arc::new(context);
        let result = run::local(context.clone(), source, destination.unwrap_or(b"."));
        Ok(self.finish(&context, result, &printer, 0, started))
    }

    fn push(
        &self,
        Inputs { rules, names, recording }: Inputs,
        sources: &[Vec<u8>],
        machine: &Machine,
        path: &[u8],
        started: Instant,
    ) -> Result<End, Refusal> {
        let link = self.dial(machine, std::slice::from_ref(&path.to_vec()), Direction::Sending)?;
        let Some(link) = link else { return Ok(End { code: 0, who: "sender", explained: true }) };
        self.converse(link, Direction::Sending, (rules, recording), started, |begun| {
            let source = match (begun.names, names) {
                (Some(names), _) => Source::with_names(sources[0].clone(), names),
                (None, Some(content)) => Source::with_names(sources[0].clone(), self.local_names(content)),
                (None, None) => Source::new(sources.to_vec()),
            };
            run::sending(begun.context, begun.connection, source)
        })
    }

    fn pull(
        &self,
        Inputs { rules, names, recording }: Inputs,
        machine: &Machine,
        paths: &[Vec<u8>],
        destination: Option<&[u8]>,
        started: Instant,
    ) -> Result<End, Refusal> {
        let names = names.map(read_names).transpose()?;
        let link = self.dial(machine, paths, Direction::Receiving)?;
        let Some(link) = link else { return Ok(End { code: 0, who: "Receiver", explained: true }) };
        self.converse(link, Direction::Receiving, (rules, recording), started, |begun| {
            let nul_separated = self.wishes().typed.select.from0;
            let requested = self.requested(machine, paths, names.as_deref());
            let charset = self.wishes().names_charset();
            let forward = names.map(|bytes| {
                let file = Box::new(io::Cursor::new(bytes));
                ForwardedNames { file, nul_separated, charset }
            });
            let path = destination.unwrap_or(b".").to_vec();
            run::receiving(begun.context, begun.connection, Target { path, forward, requested })
        })
    }

    fn dial(
        &self,
        machine: &Machine,
        paths: &[Vec<u8>],
        direction: Direction,
    ) -> Result<Option<Link>, Refusal> {
        let dialer = Dialer {
            machine,
            paths,
            direction,
            wishes: self.wishes(),
            environment: self.environment,
            screen: &self.screen,
            who: self.who(),
            interrupted: &self.interrupted,
        };
        dialer.dial()
    }

    /// Goes through handshake and transfer; `transfer` runs the roles.
    fn converse(
        &self,
        link: Link,
        direction: Direction,
        (rules, recording): (Vec<Rule>, Option<Recording>),
        started: Instant,
        transfer: impl FnOnce(Begun) -> Result<(), Failure>,
    ) -> Result<End, Refusal> {
        let wishes = self.wishes();
        let Link { peer, stream, agreed } = link;
        let mut offer = wishes.offer(Side::Client, direction, self.environment)?;
        offer.agreed = agreed;
        let timeout = wishes.transfer(Vec::new(), wishes.version, false).limits.timeout;
        let (session, stream) = match handshake(stream, offer, timeout, &self.interrupted) {
            Ok(agreed) => agreed,
            Err(failure) => return Ok(self.end_early(&failure, direction, peer)),
        };
        let options = wishes.transfer(rules, session.version, false);
        let is_here = matches!(&self.plan.route, Route::Push { machine, .. } if machine.kind == Kind::Here);
        let batch =
            recording.map(|recording| self.begin_record(recording, &session, &options)).transpose()?;
        let (way, operation) = match direction {
            Direction::Sending if is_here => (Way::In, "send"),
            Direction::Sending => (Way::Out, "send"),
            Direction::Receiving => (Way::In, "recv"),
        };
        let printer = self.printer(&session, &options, way, operation);
        if let Some(conversion) = &wishes.conversion {
            printer.charset(&conversion.name);
        }
        let there = matches!(wishes.files_from, Some(FilesFrom::There { .. }));
        let start = Start {
            ids: IdMap::new(options.preserve.numeric_ids, options.preserve.super_user),
            reporter: if direction == Direction::Sending { Reporter::Sender } else { Reporter::Receiver },
            session,
            options,
            observer: printer.clone(),
            notices: NoticePort::new(),
            interrupted: self.interrupted.clone(),
            stream,
            record: batch.and_then(|batch| batch.record().cloned()),
            names_arrive: there && direction == Direction::Sending,
            names_in_utf8: wishes.protection == Protection::Secluded,
        };
        let begun = match run::begin(start) {
            Ok(begun) => begun,
            // The link has told the printer.
            Err(failure) => return Ok(self.ended(&failure, direction, peer)),
        };
        let context = begun.context.clone();
        let result = match copy_as(wishes.typed.connect.copy_as.as_deref(), self.who()) {
            Ok(()) => transfer(begun),
            // Captured: a server that sends is told, one that receives is left.
            Err(refusal) if direction == Direction::Receiving => {
                let text = String::from_utf8_lossy(&refusal.text).into_owned();
                begun.refuse(Who::ReceivingSide, Failure::Usage { text })
            }
            Err(refusal) => return Err(refusal),
        };
        let far = far_code(peer, result.as_ref().err());
        Ok(self.finish(&context, result, &printer, far, started))
    }

    /// Ends a run whose roles never started. The stream is closed already.
    fn end_early(&self, failure: &Failure, direction: Direction, peer: Peer) -> End {
        self.screen.lines(Channel::Err, &cause(Self::end_of(direction), failure));
        self.ended(failure, direction, peer)
    }

    fn end_of(direction: Direction) -> Who {
        match direction {
            Direction::Sending => Who::Sender,
            Direction::Receiving => Who::ReceivingSide,
        }
    }

    /// Ends after a failure that was told already.
    fn ended(&self, failure: &Failure, direction: Direction, peer: Peer) -> End {
        let who = Self::end_of(direction);
        let code = failure.exit_code().max(far_code(peer, Some(failure)));
        End { code, who: role(who), explained: is_explained(failure) }
    }

    fn finish(
        &self,
        context: &Context,
        result: Result<(), Failure>,
        printer: &Printer,
        far: u8,
        started: Instant,
    ) -> End {
        let speaker = match &self.plan.route {
            Route::Pull { .. } | Route::Replay { .. } if context.stats.listed.total() == 0 => "Receiver",
            Route::Pull { .. } | Route::Replay { .. } => "generator",
            _ => "sender",
        };
        let who = printer.failed().map_or(speaker, role);
        match result {
            Ok(()) => {
                self.summarise(context, started);
                self.log_totals(context, far);
                End { code: context.exit_code().max(far), who, explained: false }
            }
            Err(Failure::Interrupted) if self.screen.is_closed() => {
                self.log_totals(context, Code::Messages as u8);
                End { code: Code::Messages as u8, who, explained: false }
            }
            Err(failure) => {
                let code = failure.exit_code().max(far);
                self.log_totals(context, code);
                End { code, who, explained: is_explained(&failure) && code == failure.exit_code() }
            }
        }
    }

    fn summarise(&self, context: &Context, started: Instant) {
        let wishes = self.wishes();
        let level = wishes.info.of(Info::Stats);
        if wishes.typed.output.quiet > 0 || level == 0 {
            return;
        }
        let human = self.human();
        let mut text = String::new();
        if level >= 2 {
            text = summary::block(&context.stats, context.session.version, human);
        }
        let kind = match context.options.dry_run {
            true if context.options.batch_only => " (BATCH ONLY)",
            true => " (DRY RUN)",
            false => "",
        };
        text += &summary::totals(&context.stats, started.elapsed().as_secs(), kind, human);
        self.screen.finish();
        self.screen.lines(Channel::Out, text.as_bytes());
    }

    /// Ends a log in which no summary stands, or that of a failure. A receiving side that fails
    /// leaves it out.
    fn log_totals(&self, context: &Context, code: u8) {
        let stats = &context.stats;
        let is_failure = code.max(context.exit_code()) != 0;
        let wishes = self.wishes();
        let is_summed_up = wishes.typed.output.quiet == 0 && wishes.info.of(Info::Stats) > 0;
        let is_pull = matches!(self.plan.route, Route::Pull { .. });
        if is_failure && is_pull || !is_failure && is_summed_up {
            return;
        }
        let (sent, received) = (stats.bytes_written.value(), stats.bytes_read.value());
        self.screen.log_lines(logged_totals(sent, received, stats.total_size.value()).as_bytes());
    }

    fn human(&self) -> Human {
        let output = &self.wishes().typed.output;
        if output.no_human {
            Human::Plain
        } else {
            Human::after(output.human)
        }
    }

    fn printer(
        &self,
        session: &Session,
        options: &TransferOptions,
        way: Way,
        operation: &'static str,
    ) -> Arc<Printer> {
        let wishes = self.wishes();
        let output = &wishes.typed.output;
        let itemizes = wishes.itemizes();
        let detail = match (itemizes, output.itemize > 1 || wishes.info.of(Info::Name) >= 2) {
            (false, _) => Detail::Made,
            (true, false) => Detail::Changed,
            (true, true) => Detail::All,
        };
        let mut settings = Settings {
            info: wishes.info.clone(),
            debug: wishes.debug.clone(),
            quiet: output.quiet > 0,
            format: wishes.format.as_deref().map(Format::parse),
            detail,
            log: None,
            ends: match self.plan.route {
                Route::Local { .. } => Ends::Both,
                _ => Ends::Here,
            },
            human: self.human(),
            columns: Columns {
                human: self.human(),
                atimes: options.preserve.atimes,
                links: options.preserve.links,
            },
            with_dirs: wishes.recursive || wishes.dirs,
            replays: matches!(self.plan.route, Route::Replay { .. }),
        };
        // Captured: `t` for `-J`, too; `T` where a far receiver cannot say that its links have times.
        let version = session.version;
        let echoes_to_us = version.has_item_flags() && session.direction == Direction::Receiving;
        let knows_link_times = version.has_compat_flags() || echoes_to_us;
        let keeps_link_times = options.preserve.times && knows_link_times;
        let style = Style {
            way,
            has_flags: session.version.has_item_flags(),
            keeps_times: options.preserve.times,
            keeps_link_times,
        };
        let scene =
            Scene { style, operation, transfer_sum: session.transfer_sum, list_sum: session.list_sum };
        settings.log = output
            .log_file
            .as_ref()
            .map(|_| ItemLog::new(output.log_file_format.as_deref(), scene, detail, DryRuns::Told));
        Arc::new(Printer::new(settings, session.direction, scene, self.screen.clone()))
    }

    /// Opens a list of names on this machine.
    fn open_names(&self) -> Result<Option<Box<dyn BufRead + Send>>, Refusal> {
        let Some(FilesFrom::Here(path)) = &self.wishes().files_from else { return Ok(None) };
        if path == b"-" {
            return Ok(Some(Box::new(BufReader::new(io::stdin()))));
        }
        let file = named::open_list(path, &self.wishes().trust_in_files(), Wanted::Any)?;
        Ok(Some(Box::new(BufReader::new(file))))
    }

    fn local_names(&self, content: Box<dyn BufRead + Send>) -> Names {
        let separator = if self.wishes().typed.select.from0 { Separator::Nul } else { Separator::Line };
        Names::Local { content, separator }
    }

    fn requested(&self, machine: &Machine, paths: &[Vec<u8>], names: Option<&[u8]>) -> Option<Requested> {
        let wishes = self.wishes();
        let by_far_list = matches!(wishes.files_from, Some(FilesFrom::There { .. }));
        // The remote shell may have made any words of old arguments.
        let by_shell = matches!(wishes.protection, Protection::OldPaths | Protection::OldAll);
        if wishes.typed.connect.trust_sender || by_far_list || by_shell {
            return None;
        }
        let nul = wishes.typed.select.from0;
        let is_end = |b: &u8| *b == 0 || (!nul && matches!(b, b'\n' | b'\r'));
        let split =
            |bytes: &[u8]| bytes.split(is_end).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
        let arguments = match machine.kind {
            Kind::Shell | Kind::Here => paths.to_vec(),
            // The module stands in front.
            Kind::Daemon => paths.iter().map(|path| behind_module(path).to_vec()).collect(),
        };
        Some(Requested { arguments, names: names.map(split) })
    }
}

/// Reads a list of names as a whole: it is forwarded, and what comes back is checked against it.
fn read_names(mut content: Box<dyn BufRead + Send>) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes).map_err(|error| Refusal::usage(format!("rsync: files-from: {error}")))?;
    Ok(bytes)
}

/// Returns the exit code of the far end, as far as it counts: one that we left does not.
fn far_code(peer: Peer, failure: Option<&Failure>) -> u8 {
    match failure {
        None | Some(Failure::PeerClosed { .. } | Failure::Connection { .. } | Failure::PeerExit(_)) => {
            peer.wait()
        }
        Some(_) => 0,
    }
}

fn behind_module(path: &[u8]) -> &[u8] {
    path.iter().position(|&b| b == b'/').map_or(b"", |slash| &path[slash + 1..])
}
