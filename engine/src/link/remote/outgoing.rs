//! What waits to be written: whole chunks of data, and notices that go ahead of them.
//!
//! A chunk is cut into frames by the writer, and a notice leaves between two chunks, so never
//! inside a frame. Producers wait while half a megabyte is queued; the reader thread never does.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#177-ordering-rules-a-peer-relies-on

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use suisei_protocol::mux::{Carried, Mux, Notice};

use super::shared::{lock, wait_tick, Shared};
use crate::link::limit::Limiter;
use crate::link::stream::{wait, Ready};
use crate::link::TICK;
use crate::Failure;

/// Bytes of data that wait for the writer.
const QUEUE_BYTES: usize = 512 << 10;
/// Notices that wait for the writer.
const NOTICE_QUEUE: usize = 8192;
/// Most bytes of one vectored write.
const BATCH_BYTES: usize = 256 << 10;
/// Most slices of one vectored write: far below every platform's limit.
const BATCH_SLICES: usize = 64;

#[derive(Debug, Default)]
struct Queue {
    data: VecDeque<Bytes>,
    data_bytes: usize,
    notices: VecDeque<Notice>,
    /// Present once the connection has started.
    mux: Option<Mux>,
    /// Names travel outside of frames: notices wait.
    holds_notices: bool,
    /// The writer has taken something and is not done with it.
    is_writing: bool,
    /// Everything is thrown away: the stream is broken, or nobody listens.
    is_discarding: bool,
    /// The writer ends when nothing is left.
    is_closing: bool,
    broken: Option<io::ErrorKind>,
    errno: Option<i32>,
}

/// The queue between producers and the writer thread.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: Mutex<Queue>,
    queued: Condvar,
    written: Condvar,
}

/// Sends notices to the peer, between frames and ahead of queued data. Cheap to clone; notices
/// sent before the connection starts wait for it.
#[derive(Debug, Clone, Default)]
pub struct NoticePort(pub(super) Arc<Outgoing>);

impl NoticePort {
    /// Makes a port that is not connected yet.
    pub fn new() -> Self {
        NoticePort::default()
    }

    /// Queues a notice; blocks while thousands of them wait.
    pub fn send(&self, notice: Notice) {
        let mut queue = lock(&self.0.queue);
        while queue.notices.len() >= NOTICE_QUEUE && queue.mux.is_some() && !queue.is_discarding {
            queue = wait_tick(&self.0.written, queue, TICK);
        }
        if !queue.is_discarding {
            queue.notices.push_back(notice);
            self.0.queued.notify_one();
        }
    }
}

/// What the writer does next.
enum Work {
    Write { head: Vec<u8>, chunks: Vec<Bytes>, mux: Mux, is_keep_alive: bool },
    Nothing,
    Close,
}

impl Outgoing {
    /// Starts the stream.
    pub(super) fn start(&self, mux: Mux) {
        lock(&self.queue).mux = Some(mux);
        self.queued.notify_one();
    }

    /// Whether frames are written.
    pub(super) fn is_framed(&self) -> bool {
        lock(&self.queue).mux.as_ref().is_some_and(Mux::is_framed)
    }

    /// Queues data; blocks while the queue is full. Counts the bytes of its frame headers; the
    /// payload was counted when it was encoded.
    pub(super) fn push(&self, shared: &Shared, data: Bytes) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
        if let Some(mux) = &queue.mux {
            let headers = mux.pieces(&data).map(|piece| piece.header().len()).sum::<usize>();
            shared.stats.bytes_written.add(headers as u64);
        }
        while queue.data_bytes > QUEUE_BYTES && !queue.is_discarding {
            if shared.is_stopped() {
                break;
            }
            if shared.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            queue = wait_tick(&self.written, queue, TICK);
        }
        // The reader finds out why the stream broke.
        if shared.is_stopped() || queue.broken.is_some() {
            return Err(Failure::Sibling);
        }
        if !queue.is_discarding {
            queue.data_bytes += data.len();
            queue.data.push_back(data);
            self.queued.notify_one();
        }
        Ok(())
    }

    /// Switches to raw names, once everything before them is written. Notices wait until
    /// [`Outgoing::resume`].
    pub(super) fn suspend_for_names(&self, shared: &Shared) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
        while !queue.is_idle() {
            if shared.is_stopped() {
                return Err(Failure::Sibling);
            }
            queue = wait_tick(&self.written, queue, TICK);
        }
        if let Some(mux) = &mut queue.mux {
            let was_framed = mux.is_framed();
            mux.suspend_for_names();
            queue.holds_notices = was_framed && !queue.mux.as_ref().is_some_and(Mux::is_framed);
        }
        Ok(())
    }

    /// Frames again, once the names are written.
    pub(super) fn resume(&self, shared: &Shared) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
        while queue.is_writing || !queue.data.is_empty() {
            if shared.is_stopped() {
                return Err(Failure::Sibling);
            }
            queue = wait_tick(&self.written, queue, TICK);
        }
        queue.holds_notices = false;
        if let Some(mux) = &mut queue.mux {
            mux.resume();
        }
        self.queued.notify_one();
        Ok(())
    }

    /// Throws queued data away; notices stay.
    pub(super) fn drop_data(&self) {
        let mut queue = lock(&self.queue);
        queue.data.clear();
        queue.data_bytes = 0;
        self.written.notify_all();
    }

    /// Waits until everything is written; false once nothing moved for that long.
    pub(super) fn flush(&self, shared: &Shared, patience: Duration) -> bool {
        let start = Instant::now();
        let mut queue = lock(&self.queue);
        while !queue.is_idle() && !queue.is_discarding {
            if start.elapsed().min(shared.since_output()) >= patience {
                return false;
            }
            queue = wait_tick(&self.written, queue, TICK);
        }
        true
    }

    /// Ends the writer: at once, or when everything is written.
    pub(super) fn close(&self, at_once: bool) {
        let mut queue = lock(&self.queue);
        queue.is_closing = true;
        queue.is_discarding |= at_once;
        self.queued.notify_all();
        self.written.notify_all();
    }

    /// Ends every wait of a producer.
    pub(super) fn wake(&self) {
        self.written.notify_all();
    }

    /// Returns the error that broke the stream, if one did.
    pub(super) fn broken(&self) -> Option<io::Error> {
        let queue = lock(&self.queue);
        queue.broken.map(|kind| queue.errno.map_or_else(|| kind.into(), io::Error::from_raw_os_error))
    }

    fn is_closing_at_once(&self) -> bool {
        let queue = lock(&self.queue);
        queue.is_closing && queue.is_discarding
    }

    fn fail(&self, error: &io::Error) {
        let mut queue = lock(&self.queue);
        queue.broken = Some(error.kind());
        queue.errno = error.raw_os_error();
        queue.is_discarding = true;
        queue.discard();
        self.written.notify_all();
    }

    /// Waits a tick for work and takes it.
    fn next_work(&self, shared: &Shared) -> Work {
        let mut queue = lock(&self.queue);
        queue.is_writing = false;
        if queue.is_discarding {
            queue.discard();
        }
        self.written.notify_all();
        if !queue.has_work() && !queue.is_closing {
            queue = wait_tick(&self.queued, queue, TICK);
        }
        let Some(mux) = queue.mux.clone().filter(|_| queue.has_work() || !queue.is_closing) else {
            return if queue.is_closing { Work::Close } else { Work::Nothing };
        };
        let mut head = Vec::new();
        if !queue.holds_notices {
            for notice in queue.notices.drain(..) {
                // What a version cannot carry is not worth a word: the peer would not know it.
                let (Carried::Yes | Carried::No) = mux.put_notice(&notice, &mut head);
            }
        }
        let chunks = queue.take_chunks();
        let is_keep_alive = head.is_empty() && chunks.is_empty();
        if is_keep_alive {
            let due = shared.is_keep_alive_due() && mux.put_keep_alive(&mut head) == Carried::Yes;
            if !due {
                return Work::Nothing;
            }
        }
        shared.stats.bytes_written.add(head.len() as u64);
        queue.is_writing = true;
        Work::Write { head, chunks, mux, is_keep_alive }
    }
}

impl Queue {
    fn has_work(&self) -> bool {
        !self.data.is_empty() || !(self.notices.is_empty() || self.holds_notices)
    }

    fn is_idle(&self) -> bool {
        !self.is_writing && self.data.is_empty() && self.notices.is_empty()
    }

    fn take_chunks(&mut self) -> Vec<Bytes> {
        let mut chunks = Vec::new();
        let mut bytes = 0;
        while let Some(chunk) = self.data.front().filter(|c| bytes == 0 || bytes + c.len() <= BATCH_BYTES) {
            bytes += chunk.len();
            chunks.extend(self.data.pop_front());
        }
        self.data_bytes -= bytes;
        chunks
    }

    fn discard(&mut self) {
        self.data.clear();
        self.data_bytes = 0;
        self.notices.clear();
    }
}

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) output: OwnedFd,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) shared: Arc<Shared>,
    pub(super) limiter: Option<Limiter>,
    /// Whether what is being written says nothing.
    pub(super) is_keep_alive: bool,
}

impl Writer {
    /// Writes until the queue is closed; gives the descriptor back.
    pub(super) fn run(mut self) -> OwnedFd {
        loop {
            match self.outgoing.next_work(&self.shared) {
                Work::Nothing => {}
                Work::Close => return self.output,
                Work::Write { head, chunks, mux, is_keep_alive } => {
                    self.is_keep_alive = is_keep_alive;
                    if let Err(error) = self.write(&head, &chunks, &mux) {
                        self.outgoing.fail(&error);
                    }
                }
            }
        }
    }

    fn write(&mut self, head: &[u8], chunks: &[Bytes], mux: &Mux) -> io::Result<()> {
        let pieces: Vec<_> = chunks.iter().flat_map(|chunk| mux.pieces(chunk)).collect();
        let mut slices = Vec::with_capacity(1 + 2 * pieces.len());
        slices.push(IoSlice::new(head));
        for piece in &pieces {
            slices.push(IoSlice::new(piece.header()));
            slices.push(IoSlice::new(piece.payload()));
        }
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let Some(written) = self.write_some(rest)? else { return Ok(()) };
            IoSlice::advance_slices(&mut rest, written);
        }
        Ok(())
    }

    /// Writes a part of the slices; nothing if the run ended meanwhile.
    fn write_some(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let slices = &slices[..slices.len().min(BATCH_SLICES)];
        loop {
            if self.outgoing.is_closing_at_once() {
                return Ok(None);
            }
            if !wait(self.output.as_fd(), Ready::Write, None, TICK)? {
                if let Err(failure) = self.shared.check_timeout() {
                    self.shared.record(None, failure);
                    self.outgoing.wake();
                }
                continue;
            }
            let result = match self.granted(slices) {
                Some(limit) if limit < slices[0].len() => {
                    rustix::io::write(&self.output, &slices[0][..limit])
                }
                Some(_) if self.limiter.is_some() => rustix::io::write(&self.output, &slices[0]),
                Some(_) => rustix::io::writev(&self.output, slices),
                None => continue,
            };
            match result {
                Ok(written) => {
                    match self.is_keep_alive {
                        true => self.shared.note_keep_alive(),
                        false => self.shared.note_output(),
                    }
                    if let Some(limiter) = &mut self.limiter {
                        limiter.spend(written);
                    }
                    return Ok(Some(written));
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks the limiter how much of the slices may go; sleeps a step and returns nothing if none.
    fn granted(&mut self, slices: &[IoSlice<'_>]) -> Option<usize> {
        let wanted = slices.iter().map(|s| s.len()).sum();
        let Some(limiter) = &mut self.limiter else { return Some(wanted) };
        match limiter.grant(wanted, Instant::now()) {
            Ok(bytes) => Some(bytes),
            Err(time) => {
                std::thread::sleep(time);
                None
            }
        }
    }
}
