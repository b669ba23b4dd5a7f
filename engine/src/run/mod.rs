//! Roles and links put together: a local run, and either end of a remote one.
//!
//! A remote run goes through three calls: [`crate::link::handshake`] agrees on a session,
//! [`begin`] exchanges what precedes the list (filters, forwarded names) and starts the link's
//! threads, and [`sending`] or [`receiving`] runs the roles to the end.
//! Wire: protocol/doc/02-session-start.md#26-end-of-session

mod names;
mod replay;
mod rules;
mod session;
mod start;
mod weight;

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::session::{Direction, Session, Side};

use crate::context::{Batch, Reporter};
use crate::ids::IdMap;
use crate::link::{self, Connection, Handover, Inbox, LocalOutbox, LocalSource, NoticePort, Opening, Outbox};
use crate::link::{Record, Recorder, Stream};
use crate::observe::{Event, Observer, Who};
use crate::roles::receiver::requested::Checked;
use crate::roles::{generator, receiver, sender};
use crate::source::{Names, Source};
use crate::stats::Stats;
use crate::trace::{Topic, Trace};
use crate::{Context, Failure, TransferOptions};

pub use crate::roles::receiver::requested::Requested;
pub use names::ForwardedNames;
pub use replay::replaying;
pub use session::{allows_incremental, layout, local_session, needs, LocalChoice};

/// Requests that wait for a local sender.
const LOCAL_REQUESTS: usize = 512;
/// Replies that wait for a local receiver: each may hold an open file.
const LOCAL_REPLIES: usize = 64;

/// What a remote run needs before its roles can start.
pub struct Start {
    /// What both ends agreed on.
    pub session: Session,
    /// What the user wants. Received filter rules go in front of a server's own.
    pub options: TransferOptions,
    /// Where events go.
    pub observer: Arc<dyn Observer>,
    /// The way of this end's notices; a server's observer holds a clone.
    pub notices: NoticePort,
    /// Which role reports items.
    pub reporter: Reporter,
    /// Id maps of a receiving side.
    pub ids: IdMap,
    /// Set by a signal handler.
    pub interrupted: Arc<AtomicBool>,
    /// Bytes to and from the peer, as the handshake left them.
    pub stream: Stream,
    /// Where the run is recorded.
    pub record: Option<Record>,
    /// Whether the peer forwards the names of `--files-from` to this (sending) end.
    pub names_arrive: bool,
    /// Whether those names come in UTF-8 (`--iconv` with `-s`).
    pub names_in_utf8: bool,
}

/// A remote run whose roles can start.
pub struct Begun {
    /// What the roles share.
    pub context: Arc<Context>,
    /// The link to the peer.
    pub connection: Connection,
    /// Names that the peer forwarded, if it was to.
    pub names: Option<Names>,
}

impl Begun {
    /// Ends a run before its roles start, and tells the peer.
    pub fn refuse(self, who: Who, failure: Failure) -> Result<(), Failure> {
        self.connection.fail(who, failure);
        self.connection.end()
    }
}

/// Exchanges what precedes the file list and starts the link's threads.
pub fn begin(start: Start) -> Result<Begun, Failure> {
    let Start { session, mut options, observer, notices, reporter, ids, interrupted, stream, .. } = start;
    let Start { names_arrive, names_in_utf8, .. } = start;
    let names_charset = session.charset.filter(|_| names_in_utf8);
    let stats = Arc::new(Stats::default());
    let mut connection = Connection::open(Opening {
        session: &session,
        stream,
        notices,
        observer: observer.clone(),
        stats: stats.clone(),
        interrupted: interrupted.clone(),
        limits: options.limits,
    })?;
    let names = rules::exchange(&session, &mut options, &mut connection)
        .and_then(|()| names_arrive.then(|| names::receive(&mut connection, names_charset)).transpose());
    if session.side == Side::Server && options.report.traces.level(Topic::Filter) >= 2 {
        for rule in &options.select.filters {
            observer.event(Event::Trace(connection.who(), Trace::RuleAdded(rule)));
        }
    }
    connection.listen();
    let session_receives = session.direction == Direction::Receiving;
    let names = match names {
        Ok(names) => names,
        Err(failure) => {
            connection.fail(connection.who(), failure);
            return connection.end().and(Err(Failure::Sibling));
        }
    };
    let mut context = Context::new(session, options, observer, reporter, ids, interrupted);
    context.stats = stats;
    connection.record(start.record.clone().filter(|_| session_receives));
    context.batch = start.record.map_or(Batch::None, Batch::Written);
    Ok(Begun { context: Arc::new(context), connection, names })
}

/// Tells the peer why there will be no transfer, before anything of it was read.
pub fn refuse(start: Start, failure: Failure) -> Failure {
    let Start { session, options, observer, notices, interrupted, stream, .. } = start;
    let opening = Opening {
        session: &session,
        stream,
        notices,
        observer,
        stats: Arc::default(),
        interrupted,
        limits: options.limits,
    };
    match Connection::open(opening) {
        Ok(mut connection) => {
            connection.listen();
            end_with(connection, failure)
        }
        Err(failure) => failure,
    }
}

/// The same, once what precedes the file list was read.
pub fn refuse_begun(begun: Begun, failure: Failure) -> Failure {
    end_with(begun.connection, failure)
}

fn end_with(connection: Connection, failure: Failure) -> Failure {
    let who = connection.who();
    connection.fail(who, failure);
    connection.end().err().unwrap_or(Failure::Sibling)
}

/// What a receiving end is told by its arguments.
pub struct Target {
    /// The destination as named.
    pub path: Vec<u8>,
    /// Names of `--files-from` that this end forwards to the sender.
    pub forward: Option<ForwardedNames>,
    /// What a client asked for: names beyond it are refused. Nothing: the check is off.
    pub requested: Option<Requested>,
}

/// Copies on one machine: three roles, typed links.
pub fn local(ctx: Arc<Context>, source: Source, destination: &[u8]) -> Result<(), Failure> {
    if let Some((feature, needed)) = needs(&ctx.options) {
        if let Err(error) = ctx.session.version.require(feature, needed) {
            let failure = Failure::Protocol(error.into());
            ctx.report(Event::Failed { who: Who::Sender, failure: &failure });
            return Err(failure);
        }
    }
    match ctx.batch.record() {
        None => joined(&ctx, source, destination, |source: &LocalSource| source.size, Ok),
        // A file handed over would leave nothing to record.
        Some(record) => {
            let recorded = |outbox| Recorder::new(&ctx.session, outbox, record.clone());
            joined(&ctx, source, destination, |never: &Infallible| match *never {}, recorded)
        }
    }
}

/// Runs three roles on typed links; `tee` wraps the sender's outbox.
fn joined<L: Handover, O: Outbox<ToReceiver<L>> + Send>(
    ctx: &Context,
    source: Source,
    destination: &[u8],
    size_of: fn(&L) -> u64,
    tee: impl FnOnce(LocalOutbox<ToReceiver<L>>) -> Result<O, Failure>,
) -> Result<(), Failure> {
    crate::sys::users::umask();
    let first = FirstFailure::default();
    let (written, read) = (ctx.stats.clone(), ctx.stats.clone());
    let (to_receiver, replies) = link::local(LOCAL_REPLIES, ctx.interrupted.clone(), move |message| {
        let bytes = weight::of_reply(message, size_of);
        written.bytes_written.add(bytes);
        bytes
    });
    let mut to_receiver = tee(to_receiver.limited(ctx.options.limits.bytes_per_second))?;
    let (requests_out, mut requests) = link::local(LOCAL_REQUESTS, ctx.interrupted.clone(), move |message| {
        let bytes = weight::of_request(message);
        read.bytes_read.add(bytes);
        bytes
    });
    thread::scope(|scope| {
        let first = &first;
        scope.spawn(move || {
            let end = sender::run(ctx, source, &mut requests, &mut to_receiver);
            first.note(Who::Sender, end);
        });
        receiving_side(ctx, replies, requests_out, destination, &|who, end| first.note(who, end), || Ok(()));
    });
    first.into_end(ctx)
}

/// Sends to a peer: the client of a push, or the server of a pull.
pub fn sending(ctx: Arc<Context>, mut connection: Connection, source: Source) -> Result<(), Failure> {
    let end = connection.sender_ends().and_then(|(mut inbox, mut outbox)| match ctx.batch.record() {
        None => sender::run(&ctx, source, &mut inbox, &mut outbox),
        Some(record) => {
            let mut outbox = Recorder::new(&ctx.session, outbox, record.clone())?;
            sender::run(&ctx, source, &mut inbox, &mut outbox)
        }
    });
    if let Err(failure) = end {
        connection.fail(Who::Sender, failure);
    }
    connection.end()
}

/// Receives from a peer: the client of a pull, or the server of a push.
pub fn receiving(ctx: Arc<Context>, mut connection: Connection, target: Target) -> Result<(), Failure> {
    crate::sys::users::umask();
    let ctx = &*ctx;
    let (inbox, outbox) = match connection.receiver_ends() {
        Ok(ends) => ends,
        Err(failure) => {
            connection.fail(Who::ReceivingSide, failure);
            return connection.end();
        }
    };
    let link = &connection;
    let note = |who, end: Result<(), Failure>| {
        if let Err(failure) = end {
            link.fail(who, failure);
        }
    };
    let end = thread::scope(|scope| {
        let forward = target.forward;
        let note = &note;
        let forwarder = scope.spawn(move || {
            note(Who::ReceivingSide, forward.map_or(Ok(()), |names| names::forward(link, names)));
        });
        let before_generator = move || {
            // Nothing of the generator may come before the end of the names.
            forwarder.join().map_err(|_| Failure::Sibling)?;
            link.allow_keep_alives();
            Ok(())
        };
        let inbox = Checked::new(ctx, inbox, target.requested);
        receiving_side(ctx, inbox, outbox, &target.path, note, before_generator)
    });
    match end {
        Ended::Ladder => connection.end(),
        Ended::EmptyList => {
            connection.end_quietly();
            Ok(())
        }
    }
}

/// How a receiving side ended.
enum Ended {
    /// After the last `Done`, or by a failure that was noted.
    Ladder,
    /// The sender had nothing and is gone.
    EmptyList,
}

/// Reads the first list, opens the destination, and runs generator and receiver side by side.
fn receiving_side<L: Handover>(
    ctx: &Context,
    mut inbox: impl Inbox<ToReceiver<L>>,
    mut outbox: impl Outbox<ToSender> + Send,
    path: &[u8],
    note: &(impl Fn(Who, Result<(), Failure>) + Sync),
    before_generator: impl FnOnce() -> Result<(), Failure>,
) -> Ended {
    let begun = start::begin(ctx, &mut inbox, path);
    let ready = begun.and_then(|begun| before_generator().map(|()| begun));
    let start::Beginning { destination, replay } = match ready {
        Ok(Some(beginning)) => beginning,
        Ok(None) => return Ended::EmptyList,
        Err(failure) => {
            note(Who::ReceivingSide, Err(failure));
            return Ended::Ladder;
        }
    };
    let (to_generator, from_receiver) = channel();
    inbox.hurry_by(to_generator.clone());
    thread::scope(|scope| {
        let destination = &destination;
        scope.spawn(move || {
            let mut guard = NoteOnDrop { note, who: Who::Generator, end: Err(Failure::Sibling) };
            guard.end = generator::run(ctx, destination, from_receiver, &mut outbox);
        });
        let mut guard = NoteOnDrop { note, who: Who::Receiver, end: Err(Failure::Sibling) };
        guard.end =
            receiver::run(ctx, destination, &mut start::Replayed::new(replay, &mut inbox), to_generator);
        drop(guard);
        // A local sender that still waits for this side must see it gone.
        drop(inbox);
    });
    Ended::Ladder
}

/// Notes how a role ended, also when it panics: nobody may wait for it then.
struct NoteOnDrop<'a, N: Fn(Who, Result<(), Failure>)> {
    note: &'a N,
    who: Who,
    end: Result<(), Failure>,
}

impl<N: Fn(Who, Result<(), Failure>)> Drop for NoteOnDrop<'_, N> {
    fn drop(&mut self) {
        (self.note)(self.who, std::mem::replace(&mut self.end, Ok(())));
    }
}

/// The failure that a local run is told by.
#[derive(Debug, Default)]
struct FirstFailure(Mutex<Option<(Who, Failure)>>);

impl FirstFailure {
    /// Keeps the first failure; a real one replaces that of a role that only saw another end.
    fn note(&self, who: Who, end: Result<(), Failure>) {
        let Err(failure) = end else { return };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(_, f)| matches!(f, Failure::Sibling)) {
            *first = Some((who, failure));
        }
    }

    /// Reports the failure, if there was one.
    fn into_end(self, ctx: &Context) -> Result<(), Failure> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some((who, failure)) = first else { return Ok(()) };
        ctx.report(Event::Failed { who, failure: &failure });
        Err(failure)
    }
}
