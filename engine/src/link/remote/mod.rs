//! The remote link: the messages of the roles as bytes over two file descriptors.
//!
//! A reader thread splits the stream into a bounded queue and never waits for the writer thread,
//! which sends chunks of whole frames with notices between them; the roles encode and decode in
//! their own threads. The first failure stops everybody, and the end of a run is the same for all:
//! texts first, then the exit code, then silence until the peer closes.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#17-the-multiplexed-stream

mod incoming;
mod outgoing;
mod ports;
mod shared;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rustix::net::{shutdown, AddressFamily, Shutdown};
use suisei_protocol::codec::{Input, ToReceiverEncoder, ToSenderDecoder, ToSenderEncoder};
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::mux::{Demux, Frame, Mux, Notice};
use suisei_protocol::session::{Direction, Session, Side};

use self::incoming::{report, Arrival, Incoming, Reader};
use self::outgoing::{Outgoing, Writer};
use self::ports::{RemoteInbox, RemoteOutbox, Requests};
use self::shared::Shared;
use super::limit::Limiter;
use super::{Record, Stream};
use crate::observe::{Event, Observer, Who};
use crate::options::Limits;
use crate::stats::Stats;
use crate::Failure;

pub use outgoing::NoticePort;
pub(crate) use ports::{Decoder, Replies};

/// How long the last bytes may wait without any of them leaving.
const FLUSH_TIME: Duration = Duration::from_secs(30);
/// How long a peer may take to close after the last word, without a timeout of its own.
const DRAIN_TIME: Duration = Duration::from_secs(60);
/// How long a peer that no longer reads may take to say why.
const LAST_WORDS_TIME: Duration = Duration::from_secs(5);
/// The same once a signal has come.
const HURRIED_TIME: Duration = Duration::from_secs(1);

/// Whether an ending connection waits for its peer to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drain {
    /// It has nothing more to say, and waits for our exit.
    Never,
    /// Over a network: what it still sends would break the connection with our last bytes in it.
    IfNetwork,
    /// Its last words count.
    Always,
    /// It was told why we end.
    UntilAnswer,
}

/// What a connection is opened with.
pub(crate) struct Opening<'a> {
    pub(crate) session: &'a Session,
    pub(crate) stream: Stream,
    pub(crate) notices: NoticePort,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) interrupted: Arc<AtomicBool>,
    pub(crate) limits: Limits,
}

/// The link to a peer, with its two threads.
pub struct Connection {
    session: Session,
    shared: Arc<Shared>,
    incoming: Arc<Incoming>,
    outgoing: Arc<Outgoing>,
    observer: Arc<dyn Observer>,
    who: Who,
    /// Present until the reader thread runs.
    quiet: Option<Reader>,
    /// Where what arrives for a receiver is recorded.
    record: Option<Record>,
    /// Data that was read before the reader thread ran, and belongs to the role.
    leftover: Input,
    reader: Option<JoinHandle<()>>,
    writer: Option<JoinHandle<OwnedFd>>,
}

/// What a sender reads from and writes to.
pub(crate) type SenderEnds = (RemoteInbox<ToSender, Requests>, RemoteOutbox<ToReceiverEncoder>);
/// What a receiver reads from, and a generator writes to.
pub(crate) type ReceiverEnds = (RemoteInbox<ToReceiver, Replies>, RemoteOutbox<ToSenderEncoder>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts writing. Reading is the caller's, by [`Connection::read_unit`], until
    /// [`Connection::listen`].
    pub(crate) fn open(opening: Opening<'_>) -> Result<Self, Failure> {
        let Opening { session, stream, notices, observer, stats, interrupted, limits } = opening;
        let connect = |error| Failure::Connection { call: "set up", error };
        stream.prepare().map_err(connect)?;
        let shared = Arc::new(Shared::new(stats, interrupted, limits.timeout).map_err(connect)?);
        let outgoing = notices.0;
        let incoming = Arc::new(Incoming::default());
        let who = match session.direction {
            Direction::Sending => Who::Sender,
            Direction::Receiving => Who::ReceivingSide,
        };
        let mut demux = Demux::new(session);
        shared.stats.bytes_read.add(stream.early.len() as u64);
        demux.feed(Bytes::from(stream.early));
        let reader = Reader {
            input: stream.input,
            demux,
            buffer: BytesMut::new(),
            shared: shared.clone(),
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            who,
        };
        let writer = Writer {
            output: stream.output,
            outgoing: outgoing.clone(),
            shared: shared.clone(),
            limiter: limits.bytes_per_second.map(|rate| Limiter::new(rate, Instant::now())),
            is_keep_alive: false,
        };
        outgoing.start(Mux::new(session));
        if session.direction == Direction::Sending {
            shared.allow_keep_alives();
        }
        Ok(Connection {
            session: session.clone(),
            shared,
            incoming,
            outgoing,
            observer,
            who,
            quiet: Some(reader),
            record: None,
            leftover: Input::new(),
            reader: None,
            writer: Some(std::thread::spawn(move || writer.run())),
        })
    }

    /// Reads one unit in the caller's thread, before [`Connection::listen`].
    pub(crate) fn read_unit<T>(
        &mut self,
        mut unit: impl FnMut(&mut suisei_protocol::wire::Reader<'_>) -> suisei_protocol::Decode<T>,
    ) -> Result<T, Failure> {
        loop {
            match self.leftover.decode(&mut unit) {
                Ok(value) => return Ok(value),
                Err(suisei_protocol::Stop::Bad(error)) => return Err(error.into()),
                Err(suisei_protocol::Stop::Short) => {}
            }
            let Some(reader) = &mut self.quiet else { return Err(Failure::Sibling) };
            let is_last_word = match reader.step()? {
                Some(Frame::Data(data)) => {
                    self.leftover.push(data);
                    false
                }
                Some(Frame::Notice(notice)) => reader.notice(notice, &*self.observer),
                None => true,
            };
            if is_last_word {
                return Err(Failure::Sibling);
            }
        }
    }

    /// Announces that names come next, raw where this version sends them so.
    pub(crate) fn expect_names(&mut self) {
        if let Some(reader) = &mut self.quiet {
            reader.demux.expect_names();
        }
    }

    /// Starts the reader thread.
    pub(crate) fn listen(&mut self) {
        if let Some(reader) = self.quiet.take() {
            let observer = self.observer.clone();
            self.reader = Some(std::thread::spawn(move || reader.run(observer)));
        }
    }

    /// Queues bytes that no role encodes: the filter list, forwarded names.
    pub(crate) fn write(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        self.shared.stats.bytes_written.add(bytes.len() as u64);
        self.outgoing.push(&self.shared, Bytes::from(bytes))
    }

    /// Runs `write` while names may travel raw; notices wait.
    pub(crate) fn forwarding_names(
        &self,
        write: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.outgoing.suspend_for_names(&self.shared)?;
        write()?;
        self.outgoing.resume(&self.shared)
    }

    /// Records what the sender says from now on.
    pub(crate) fn record(&mut self, record: Option<Record>) {
        self.record = record;
    }

    /// From now on a receiving side may send keep-alives: its transfer stage begins.
    pub(crate) fn allow_keep_alives(&self) {
        self.shared.allow_keep_alives();
    }

    /// Returns the ends of a sender.
    pub(crate) fn sender_ends(&mut self) -> Result<SenderEnds, Failure> {
        let encoder = ToReceiverEncoder::new(&self.session)?;
        let decoder = Requests(ToSenderDecoder::new(&self.session));
        Ok((self.inbox(decoder), self.outbox(encoder)))
    }

    /// Returns the ends of a receiving side: the receiver's inbox and the generator's outbox.
    pub(crate) fn receiver_ends(&mut self) -> Result<ReceiverEnds, Failure> {
        let decoder = Replies::new(&self.session)?;
        Ok((self.inbox(decoder), self.outbox(ToSenderEncoder::new(&self.session))))
    }

    fn inbox<M, D>(&mut self, decoder: D) -> RemoteInbox<M, D> {
        RemoteInbox {
            decoder,
            input: std::mem::take(&mut self.leftover),
            beside: VecDeque::new(),
            incoming: self.incoming.clone(),
            shared: self.shared.clone(),
            observer: self.observer.clone(),
            who: self.who,
            record: self.record.clone(),
        }
    }

    fn outbox<E>(&self, encoder: E) -> RemoteOutbox<E> {
        RemoteOutbox {
            encoder,
            buffer: Vec::new(),
            outgoing: self.outgoing.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Records a failure of one role and ends every wait of the others.
    pub(crate) fn fail(&self, who: Who, failure: Failure) {
        self.shared.record(Some(who), failure);
        self.incoming.wake();
        self.outgoing.wake();
    }

    /// Returns the role that speaks for this end.
    pub(crate) fn who(&self) -> Who {
        self.shared.speaker(self.who)
    }

    /// Ends the run: reports the recorded failure, tells the peer, and waits until it closed.
    ///
    /// Wire: protocol/doc/01-integers-and-multiplexing.md#176-error_exit-synchronised-failure-protocol--31
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        let Some((who, failure)) = self.verdict() else {
            // Whatever the peer no longer reads now it did not need: its last word has arrived.
            self.outgoing.flush(&self.shared, self.patience(FLUSH_TIME));
            // A client may still be told what a server has to say at its very end; a server is not.
            let drain = if self.session.side == Side::Client { Drain::Always } else { Drain::Never };
            self.part(drain, DRAIN_TIME);
            return Ok(());
        };
        self.report_rest();
        self.observer.event(Event::Failed { who: who.unwrap_or(self.who()), failure: &failure });
        let told = self.tell(&failure);
        self.part(if told { Drain::UntilAnswer } else { Drain::IfNetwork }, DRAIN_TIME);
        Err(failure)
    }

    /// Returns the failure of the run. Where only the writing failed, the peer may still say why.
    fn verdict(&mut self) -> Option<(Option<Who>, Failure)> {
        if let Some(found) = self.shared.take_failure() {
            return Some(found);
        }
        if !self.shared.is_stopped() {
            return None;
        }
        let end = Instant::now() + LAST_WORDS_TIME;
        loop {
            let was_over = self.reader.as_ref().is_none_or(JoinHandle::is_finished);
            match self.incoming.try_take() {
                Some(Arrival::End(failure)) => return Some((None, failure)),
                Some(Arrival::Notice(notice)) => drop(report(&*self.observer, &self.shared, notice)),
                Some(Arrival::Data(_)) => {}
                None if was_over || Instant::now() >= end => break,
                None => std::thread::sleep(super::TICK / 10),
            }
            if let Some(found) = self.shared.take_failure() {
                return Some(found);
            }
        }
        let broken = self.outgoing.broken().map(|error| Failure::Connection { call: "write", error });
        Some((None, broken.unwrap_or(Failure::Sibling)))
    }

    /// Ends a run whose peer expects nothing more and is about to close.
    pub(crate) fn end_quietly(mut self) {
        self.part(Drain::Always, DRAIN_TIME);
    }

    fn patience(&self, most: Duration) -> Duration {
        if self.shared.is_interrupted() {
            return HURRIED_TIME;
        }
        self.shared.timeout().unwrap_or(most).min(most)
    }

    /// Reports the texts that arrived before the failure.
    fn report_rest(&mut self) {
        while let Some(arrival) = self.incoming.try_take() {
            if let Arrival::Notice(notice) = arrival {
                report(&*self.observer, &self.shared, notice);
            }
        }
    }

    /// Tells the peer why this end stops; returns whether it knows.
    fn tell(&self, failure: &Failure) -> bool {
        self.outgoing.drop_data();
        let last_word = match failure {
            Failure::PeerExit(_) => Some(Notice::ErrorExit(None)),
            _ => Some(failure.exit_code())
                .filter(|code| !matches!(code, 0 | 10 | 12 | 19 | 30))
                .map(|code| Notice::ErrorExit(Some(i32::from(code)))),
        };
        let can_tell = self.session.version.has_error_exit() && self.outgoing.is_framed();
        let Some(last_word) = last_word.filter(|_| can_tell) else {
            self.outgoing.flush(&self.shared, self.patience(HURRIED_TIME));
            return false;
        };
        NoticePort(self.outgoing.clone()).send(last_word);
        self.outgoing.flush(&self.shared, self.patience(FLUSH_TIME))
            && !matches!(failure, Failure::PeerExit(_))
    }

    /// Closes the output and ends the threads; draining reads on until the peer has closed too.
    fn part(&mut self, drain: Drain, time: Duration) {
        self.outgoing.close(true);
        let output = self.writer.take().and_then(|writer| writer.join().ok());
        let is_network = output.as_ref().is_some_and(is_network);
        // A peer that was told an exit code answers it; to find the end of the stream behind it
        // would be an error to it.
        let _kept = output.filter(|fd| {
            if drain != Drain::UntilAnswer {
                // Not every holder of this socket is ours to close.
                let _ = shutdown(fd, Shutdown::Write);
            }
            drain == Drain::UntilAnswer
        });
        self.listen();
        let drains = match drain {
            Drain::Never => false,
            Drain::IfNetwork => is_network,
            Drain::Always | Drain::UntilAnswer => true,
        };
        let time = if drains { self.patience(time) } else { Duration::ZERO };
        self.shared.drain_for(time);
        self.incoming.wake();
        self.report_rest();
        if time.is_zero() {
            self.shared.wake.wake();
        }
        if let Some(reader) = self.reader.take() {
            // A reader that panicked has nothing more to say.
            let _ = reader.join();
        }
        self.report_rest();
    }
}

/// Whether this is a connection over a network. The pair of sockets to a remote shell is none: its
/// client waits for our exit, not for an end.
fn is_network(fd: &OwnedFd) -> bool {
    rustix::net::getsockname(fd).is_ok_and(|address| address.address_family() != AddressFamily::UNIX)
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.fail(self.who, Failure::Sibling);
            self.part(Drain::IfNetwork, HURRIED_TIME);
        }
    }
}

#[cfg(test)]
mod tests;
