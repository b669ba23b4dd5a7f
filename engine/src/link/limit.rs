//! `--bwlimit`: a token bucket that the writer asks before each write.

use std::time::{Duration, Instant};

/// Longest single sleep, so that an ending run does not wait for the bucket.
const STEP: Duration = Duration::from_millis(50);
/// Credit that may pile up: a tenth of a second of the rate.
const BURST_PARTS: u64 = 10;

/// A token bucket over bytes.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_second: u64,
    credit: u64,
    counted: Instant,
}

impl Limiter {
    /// Starts with an empty bucket. `per_second` is at least 1.
    pub(crate) fn new(per_second: u64, now: Instant) -> Self {
        Limiter { per_second: per_second.max(1), credit: 0, counted: now }
    }

    /// Returns how many of `wanted` bytes may be written now, or how long to sleep first.
    pub(crate) fn grant(&mut self, wanted: usize, now: Instant) -> Result<usize, Duration> {
        let burst = (self.per_second / BURST_PARTS).max(512);
        let gained =
            u128::from(self.per_second) * now.saturating_duration_since(self.counted).as_micros() / 1_000_000;
        if gained > 0 {
            self.credit = self.credit.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX)).min(burst);
            self.counted = now;
        }
        // Small grants would turn a stream into a drizzle of packets.
        let enough = (wanted as u64).min(burst / 2).max(1);
        if self.credit < enough {
            let missing = enough - self.credit;
            let wait = Duration::from_micros(missing.saturating_mul(1_000_000) / self.per_second);
            return Err(wait.clamp(Duration::from_millis(1), STEP));
        }
        Ok(wanted.min(usize::try_from(self.credit).unwrap_or(usize::MAX)))
    }

    /// Takes what was really written out of the bucket.
    pub(crate) fn spend(&mut self, written: usize) {
        self.credit = self.credit.saturating_sub(written as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lets_a_second_of_bytes_pass() {
        let start = Instant::now();
        let mut limiter = Limiter::new(100_000, start);
        let (mut now, mut written) = (start, 0);
        while now < start + Duration::from_secs(10) {
            match limiter.grant(1 << 20, now) {
                Ok(bytes) => {
                    limiter.spend(bytes);
                    written += bytes;
                }
                Err(wait) => now += wait,
            }
        }
        assert!((900_000..=1_010_000).contains(&written), "{written}");
    }

    #[test]
    fn an_idle_bucket_does_not_save_up() {
        let start = Instant::now();
        let mut limiter = Limiter::new(1000, start);
        let later = start + Duration::from_secs(3600);
        assert!(limiter.grant(usize::MAX, later).unwrap() <= 1000);
    }
}
