//! What has arrived and waits for the role that reads: one queue, bounded by bytes, in the order
//! of arrival. The reader thread fills it and waits for nothing else.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#177-ordering-rules-a-peer-relies-on

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};

use bytes::{Bytes, BytesMut};
use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{FileKind, RelPath};
use suisei_protocol::mux::{Demux, Frame, Notice, TextKind};

use super::outgoing::Outgoing;
use super::shared::{lock, wait_tick, Reading, Shared};
use crate::link::stream::{wait, Ready};
use crate::link::TICK;
use crate::observe::{Event, Observer, Who};
use crate::Failure;

/// Bytes of data that wait for the role.
const QUEUE_BYTES: usize = 1 << 20;
/// Room for one read.
const READ_BYTES: usize = 128 << 10;
/// What a notice counts for in the bound.
const NOTICE_BYTES: usize = 64;
/// How long a peer that no longer reads may still say why.
const LAST_WORDS_TICKS: u32 = 50;

/// One thing that arrived.
#[derive(Debug)]
pub(super) enum Arrival {
    Data(Bytes),
    Notice(Notice),
    /// The end of the stream, or of its sense.
    End(Failure),
}

#[derive(Debug, Default)]
struct Queue {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

/// The queue between the reader thread and a role.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    queue: Mutex<Queue>,
    arrived: Condvar,
    taken: Condvar,
}

impl Incoming {
    fn push(&self, shared: &Shared, arrival: Arrival) {
        let size = size_of(&arrival);
        let mut queue = lock(&self.queue);
        while queue.bytes > 0 && queue.bytes + size > QUEUE_BYTES {
            if shared.is_stopped() || shared.reading() == Reading::Draining {
                break;
            }
            queue = wait_tick(&self.taken, queue, TICK);
            shared.note_input();
        }
        queue.bytes += size;
        queue.arrivals.push_back(arrival);
        self.arrived.notify_one();
    }

    /// Returns the next arrival if there is one.
    pub(super) fn try_take(&self) -> Option<Arrival> {
        let mut queue = lock(&self.queue);
        let arrival = queue.arrivals.pop_front()?;
        queue.bytes -= size_of(&arrival);
        self.taken.notify_one();
        Some(arrival)
    }

    /// Waits for the next arrival.
    pub(super) fn take(&self, shared: &Shared) -> Result<Arrival, Failure> {
        loop {
            if shared.is_stopped() {
                return Err(Failure::Sibling);
            }
            if shared.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            if let Some(arrival) = self.try_take() {
                return Ok(arrival);
            }
            let queue = lock(&self.queue);
            if queue.arrivals.is_empty() {
                drop(wait_tick(&self.arrived, queue, TICK));
            }
        }
    }

    /// Ends every wait.
    pub(super) fn wake(&self) {
        self.arrived.notify_all();
        self.taken.notify_all();
    }
}

fn size_of(arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Data(data) => data.len(),
        Arrival::Notice(Notice::Text(_, text)) => NOTICE_BYTES + text.len(),
        Arrival::Notice(Notice::Deleted { path, .. }) => NOTICE_BYTES + path.len(),
        Arrival::Notice(_) => NOTICE_BYTES,
        Arrival::End(_) => 0,
    }
}

/// Reports the notices that are meant for the user; gives back the others.
pub(super) fn report(observer: &dyn Observer, shared: &Shared, notice: Notice) -> Option<Notice> {
    match notice {
        Notice::Text(kind, text) => {
            if kind == TextKind::ErrorXfer {
                shared.stats.peer_errors.add(1);
            }
            observer.event(Event::PeerText(kind, &text));
        }
        Notice::Deleted { path, is_dir } => {
            let kind = if is_dir { FileKind::Directory } else { FileKind::Regular };
            observer.event(Event::Deleted { path: RelPath::new(&path), kind });
        }
        other => return Some(other),
    }
    None
}

/// Splits the incoming stream, in the reader thread or, before it runs, in the caller's.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) input: OwnedFd,
    pub(super) demux: Demux,
    pub(super) buffer: BytesMut,
    pub(super) shared: Arc<Shared>,
    pub(super) incoming: Arc<Incoming>,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) who: Who,
}

impl Reader {
    /// Reads until the peer closes, breaks the protocol, or the run no longer listens.
    pub(super) fn run(mut self, observer: Arc<dyn Observer>) {
        loop {
            let step = self.step();
            let ended = match step {
                Ok(Some(Frame::Data(_))) if self.shared.reading() == Reading::Draining => false,
                Ok(Some(Frame::Data(data))) => {
                    self.incoming.push(&self.shared, Arrival::Data(data));
                    false
                }
                Ok(Some(Frame::Notice(notice))) => self.notice(notice, &*observer),
                Ok(None) => true,
                Err(failure) => {
                    self.incoming.push(&self.shared, Arrival::End(failure));
                    true
                }
            };
            if ended {
                return;
            }
        }
    }

    /// Handles a notice; returns whether it was the peer's last word.
    pub(super) fn notice(&self, notice: Notice, observer: &dyn Observer) -> bool {
        let draining = self.shared.reading() == Reading::Draining;
        match notice {
            Notice::Noop => {}
            Notice::IoTimeout(seconds) => self.shared.announce_timeout(seconds),
            Notice::ErrorExit(_) if draining => return true,
            Notice::ErrorExit(code) => {
                let code = code.and_then(|c| u8::try_from(c).ok()).filter(|&c| c != 0);
                self.shared.record(None, code.map_or_else(unprovoked, Failure::PeerExit));
                self.incoming.wake();
                self.outgoing.wake();
                return true;
            }
            text if draining => {
                report(observer, &self.shared, text);
            }
            other => self.incoming.push(&self.shared, Arrival::Notice(other)),
        }
        false
    }

    /// Returns the next frame; nothing when the run no longer listens.
    pub(super) fn step(&mut self) -> Result<Option<Frame>, Failure> {
        loop {
            if let Some(frame) = self.demux.next_frame()? {
                return Ok(Some(frame));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Reads more; false when the run no longer listens.
    fn read(&mut self) -> Result<bool, Failure> {
        self.shared.note_input();
        let mut ticks_after_output = 0;
        loop {
            if self.shared.is_past_deadline() {
                return Ok(false);
            }
            let wake = Some(self.shared.wake.as_fd());
            let ready = wait(self.input.as_fd(), Ready::Read, wake, TICK).map_err(read_failure)?;
            if ready && self.fill()? {
                return Ok(true);
            }
            if ready {
                continue;
            }
            if self.shared.reading() == Reading::Normal {
                self.shared.check_timeout()?;
                if self.shared.is_interrupted() {
                    return Err(Failure::Interrupted);
                }
            }
            if let Some(error) = self.outgoing.broken() {
                ticks_after_output += 1;
                if ticks_after_output > LAST_WORDS_TICKS {
                    return Err(Failure::Connection { call: "write", error });
                }
            }
        }
    }

    /// Reads what is there; false if nothing was, after all.
    fn fill(&mut self) -> Result<bool, Failure> {
        self.buffer.reserve(READ_BYTES);
        match crate::sys::stream::read_into(&self.input, &mut self.buffer) {
            Ok(0) => {
                Err(Failure::PeerClosed { received: self.shared.stats.bytes_read.value(), who: self.who })
            }
            Ok(n) => {
                self.shared.note_input();
                self.shared.stats.bytes_read.add(n as u64);
                self.demux.feed(self.buffer.split().freeze());
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(read_failure(error)),
        }
    }
}

fn read_failure(error: std::io::Error) -> Failure {
    Failure::Connection { call: "read", error }
}

/// An acknowledgement of an exit that this end did not announce would end a run as a success.
fn unprovoked() -> Failure {
    let rule = PeerMisbehaved::RuleWithCode { text: "unprovoked ERROR_EXIT acknowledgement", code: 12 };
    Failure::Protocol(rule.into())
}
