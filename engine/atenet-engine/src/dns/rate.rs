//! How many questions an actor may ask.

use std::time::Instant;

/// A bucket that holds two seconds' worth.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    tokens: f64,
    filled: Instant,
}

impl Rate {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, tokens: 2.0 * per_second, filled: now }
    }

    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * self.per_second).min(2.0 * self.per_second);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let start = Instant::now();
        let mut rate = Rate::new(100, start);
        assert_eq!((0..1000).filter(|_| rate.take(start)).count(), 200);
        assert_eq!((0..1000).filter(|_| rate.take(start + Duration::from_millis(500))).count(), 50);
        assert_eq!((0..1000).filter(|_| rate.take(start + Duration::from_secs(60))).count(), 200);
    }
}
