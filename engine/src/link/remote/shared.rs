//! What the threads of one connection share: the first failure, the clock of the two directions,
//! and the order to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::link::stream::WakePipe;
use crate::observe::Who;
use crate::stats::Stats;
use crate::Failure;

/// Largest timeout that a daemon may announce, in seconds.
const TIMEOUT_MAX: i32 = 86_400;
/// How many timeouts a peer may be silent while it takes our keep-alives.
const SILENT_TIMEOUTS: u32 = 4;

/// Locks, whatever a thread that panicked left behind.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition for at most a tick, so that a signal is noticed.
pub(super) fn wait_tick<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// How far the reader goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Everything is passed on.
    Normal,
    /// The run is over: only texts count, until the peer closes or acknowledges.
    Draining,
}

#[derive(Debug)]
pub(super) struct Shared {
    first_failure: Mutex<Option<(Option<Who>, Failure)>>,
    stopped: AtomicBool,
    draining: AtomicBool,
    /// Milliseconds after `started` at which draining ends.
    deadline: AtomicU64,
    started: Instant,
    last_input: AtomicU64,
    last_output: AtomicU64,
    last_keep_alive: AtomicU64,
    /// Seconds; 0 is none.
    timeout: AtomicU64,
    keeps_alive: AtomicBool,
    pub(super) wake: WakePipe,
    pub(super) stats: Arc<Stats>,
    pub(super) interrupted: Arc<AtomicBool>,
}

impl Shared {
    pub(super) fn new(
        stats: Arc<Stats>,
        interrupted: Arc<AtomicBool>,
        timeout: Option<Duration>,
    ) -> std::io::Result<Self> {
        Ok(Shared {
            first_failure: Mutex::new(None),
            stopped: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            deadline: AtomicU64::new(u64::MAX),
            started: Instant::now(),
            last_input: AtomicU64::new(0),
            last_output: AtomicU64::new(0),
            last_keep_alive: AtomicU64::new(0),
            timeout: AtomicU64::new(timeout.map_or(0, |t| t.as_secs())),
            keeps_alive: AtomicBool::new(false),
            wake: WakePipe::new()?,
            stats,
            interrupted,
        })
    }

    /// Records the failure if it is the first real one: a role's, or a thread's of the connection.
    pub(super) fn record(&self, who: Option<Who>, failure: Failure) {
        let mut first = lock(&self.first_failure);
        if first.is_none() && !matches!(failure, Failure::Sibling) {
            *first = Some((who, failure));
        }
        self.stopped.store(true, Relaxed);
    }

    pub(super) fn take_failure(&self) -> Option<(Option<Who>, Failure)> {
        lock(&self.first_failure).take()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    pub(super) fn reading(&self) -> Reading {
        if self.draining.load(Relaxed) {
            Reading::Draining
        } else {
            Reading::Normal
        }
    }

    pub(super) fn drain_for(&self, time: Duration) {
        let end = self.started.elapsed().saturating_add(time).as_millis();
        self.deadline.store(u64::try_from(end).unwrap_or(u64::MAX), Relaxed);
        self.draining.store(true, Relaxed);
    }

    pub(super) fn is_past_deadline(&self) -> bool {
        self.now() >= self.deadline.load(Relaxed)
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(super) fn note_input(&self) {
        self.last_input.store(self.now(), Relaxed);
    }

    pub(super) fn note_output(&self) {
        self.last_output.store(self.now(), Relaxed);
    }

    /// Returns how long nothing was written.
    pub(super) fn since_output(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.last_output.load(Relaxed)))
    }

    pub(super) fn note_keep_alive(&self) {
        self.last_keep_alive.store(self.now(), Relaxed);
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        Some(self.timeout.load(Relaxed)).filter(|&t| t > 0).map(Duration::from_secs)
    }

    /// Takes a daemon's announcement: it lowers the timeout, never raises or disables it.
    pub(super) fn announce_timeout(&self, seconds: i32) {
        if (1..=TIMEOUT_MAX).contains(&seconds) {
            let seconds = seconds as u64;
            if self.timeout().is_none_or(|t| t.as_secs() > seconds) {
                self.timeout.store(seconds, Relaxed);
            }
        }
    }

    /// Fails if neither direction moved for the whole timeout. As in stock, keep-alives that can
    /// still be written speak for a peer that is busy and has no way to say so; but not for ever.
    pub(super) fn check_timeout(&self) -> Result<(), Failure> {
        let Some(timeout) = self.timeout() else { return Ok(()) };
        let since =
            |moment: &AtomicU64| Duration::from_millis(self.now().saturating_sub(moment.load(Relaxed)));
        let idle = since(&self.last_input).min(since(&self.last_output));
        let is_excused = since(&self.last_keep_alive) < timeout && idle < timeout * SILENT_TIMEOUTS;
        if idle >= timeout && !is_excused {
            return Err(Failure::Timeout(timeout));
        }
        Ok(())
    }

    pub(super) fn allow_keep_alives(&self) {
        self.keeps_alive.store(true, Relaxed);
    }

    /// Returns who speaks for this end now: a receiving side has two roles once it asks for files.
    pub(super) fn speaker(&self, at_first: Who) -> Who {
        match at_first {
            Who::ReceivingSide if self.keeps_alive.load(Relaxed) => Who::Receiver,
            who => who,
        }
    }

    /// Whether half the timeout passed without output.
    pub(super) fn is_keep_alive_due(&self) -> bool {
        let Some(timeout) = self.timeout().filter(|_| self.keeps_alive.load(Relaxed)) else { return false };
        let lull = timeout.as_secs().div_ceil(2) * 1000;
        let last = self.last_output.load(Relaxed).max(self.last_keep_alive.load(Relaxed));
        self.now().saturating_sub(last) >= lull
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(timeout: Option<u64>) -> Shared {
        Shared::new(Arc::default(), Arc::default(), timeout.map(Duration::from_secs)).unwrap()
    }

    #[test]
    fn a_daemon_lowers_the_timeout_and_nothing_else() {
        let ours = shared(Some(60));
        for (announced, then) in [(0, 60), (-1, 60), (90_000, 60), (70, 60), (30, 30), (40, 30)] {
            ours.announce_timeout(announced);
            assert_eq!(ours.timeout(), Some(Duration::from_secs(then)));
        }
        let none = shared(None);
        none.announce_timeout(600);
        assert_eq!(none.timeout(), Some(Duration::from_secs(600)));
    }

    #[test]
    fn keep_alives_excuse_a_silent_peer_for_some_time_only() {
        let mut shared = shared(Some(1));
        let ago = |seconds| Instant::now() - Duration::from_secs(seconds);
        shared.started = ago(2);
        assert!(shared.check_timeout().is_err());
        shared.note_keep_alive();
        assert!(shared.check_timeout().is_ok());
        shared.started = ago(5);
        shared.note_keep_alive();
        assert!(shared.check_timeout().is_err());
        shared.note_input();
        assert!(shared.check_timeout().is_ok());
    }

    #[test]
    fn the_first_real_failure_is_kept() {
        let shared = shared(None);
        shared.record(None, Failure::Sibling);
        assert!(shared.is_stopped());
        shared.record(None, Failure::PeerExit(11));
        shared.record(Some(Who::Sender), Failure::Interrupted);
        assert!(matches!(shared.take_failure(), Some((None, Failure::PeerExit(11)))));
    }
}
