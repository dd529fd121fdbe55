//! A machine's clock: wrong by an offset and a rate.

use crate::time::{MICROSECOND, Nanoseconds};

/// How a machine's clock differs from virtual time. It goes back only while nobody looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Clock {
    /// What it shows at time 0, in microseconds.
    pub offset_microseconds: u64,
    /// By how many millionths it is too fast; slow when negative. More than -1,000,000.
    pub drift_millionths: i64,
}

impl Clock {
    /// What the clock shows, in microseconds.
    pub fn at(&self, now: Nanoseconds) -> u64 {
        let elapsed = i128::from(now / MICROSECOND);
        let drifted = elapsed + elapsed * i128::from(self.drift_millionths) / 1_000_000;
        self.offset_microseconds + drifted as u64
    }

    /// Sets the clock back, but not before the world began.
    pub fn set_back(&mut self, microseconds: u64) {
        self.offset_microseconds = self.offset_microseconds.saturating_sub(microseconds);
    }

    /// A moment at which the clock shows at least `microseconds`, not long after the first.
    pub fn when(&self, microseconds: u64) -> Nanoseconds {
        let local = i128::from(microseconds.saturating_sub(self.offset_microseconds));
        let rate = 1_000_000 + i128::from(self.drift_millionths);
        let elapsed = local * 1_000_000 / rate + 2;
        elapsed as u64 * MICROSECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn clocks_drift_and_their_deadlines_come() {
        for drift_millionths in [-200_000, -50, 0, 7, 300_000] {
            let clock = Clock { offset_microseconds: 123, drift_millionths };
            assert_eq!(clock.at(0), 123);
            assert_eq!(clock.at(SECOND) as i64, 123 + 1_000_000 + drift_millionths);
            for local in [0, 123, 124, 5_000, 77_777_777] {
                let when = clock.when(local);
                assert!(clock.at(when) >= local, "{local} at {when}");
                assert!(when < 5_000 || clock.at(when - 5_000) <= local, "{when} is not long after {local}");
            }
        }
    }
}
