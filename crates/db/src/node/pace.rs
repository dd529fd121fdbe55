//! How much a node executes in one step.
//!
//! Between two steps the driver sends what was produced and hands in what has come; the node closes epochs, serves reads and agrees
//! with its group. So a step must be short, whatever its transactions compute: all others wait for the batches and read results
//! of a node that does nothing but execute. A node has no clock, but it is told the time with each step: where one step follows
//! the other at once, the time between them is what the first one took.

use crate::limits::{STEP_MICROSECONDS, STEP_TRANSACTIONS_MIN};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pace {
    /// Most transactions of a step.
    most: usize,
    /// How many the next step may have.
    allowed: usize,
    /// When the last step began, in microseconds, and how many it executed, if the next one follows at once.
    last: Option<(u64, u64)>,
}

impl Pace {
    /// At most so many transactions in a step.
    pub(super) fn new(most: usize) -> Pace {
        Pace { most, allowed: most, last: None }
    }

    /// How many transactions the next step may execute.
    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// A step begins.
    pub(super) fn begin(&mut self, now: u64) {
        let Some((began, executed)) = self.last.take() else { return };
        let took = now.saturating_sub(began);
        if executed > 0 {
            let fits = (STEP_MICROSECONDS * executed).checked_div(took).unwrap_or(u64::MAX);
            let fits = usize::try_from(fits).unwrap_or(usize::MAX);
            self.allowed = fits.clamp(STEP_TRANSACTIONS_MIN.min(self.most), self.most);
        }
    }

    /// A step that began then has executed so many; whether there is more to do at once.
    pub(super) fn end(&mut self, began: u64, executed: u64, more: bool) {
        self.last = more.then_some((began, executed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many transactions a step may have after one that took so long for so many.
    fn allowed_after(executed: u64, took: u64) -> usize {
        let mut pace = Pace::new(256);
        pace.begin(1_000);
        assert_eq!(pace.allowed(), 256);
        pace.end(1_000, executed, true);
        pace.begin(1_000 + took);
        pace.allowed()
    }

    #[test]
    fn long_transactions_make_small_steps() {
        assert_eq!(allowed_after(256, 700), 256, "short ones do not");
        assert_eq!(allowed_after(256, 256 * 100), 20);
        assert_eq!(allowed_after(256, 256 * 5_000), STEP_TRANSACTIONS_MIN);
        assert_eq!(allowed_after(256, 0), 256);
        assert_eq!(allowed_after(0, 50_000), 256, "it did something else");
    }

    #[test]
    fn a_pause_is_not_taken_for_work() {
        let mut pace = Pace::new(256);
        pace.begin(0);
        pace.end(0, 256, false);
        pace.begin(1_000_000);
        assert_eq!(pace.allowed(), 256);
        pace.end(1_000_000, 1, true);
        pace.begin(1_000_000 + STEP_MICROSECONDS);
        assert_eq!(pace.allowed(), STEP_TRANSACTIONS_MIN);
        pace.end(1_100_000, STEP_TRANSACTIONS_MIN as u64, true);
        pace.begin(1_100_010);
        assert_eq!(pace.allowed(), 256, "it recovers at once");
        assert_eq!(Pace::new(2).allowed(), 2);
    }
}
