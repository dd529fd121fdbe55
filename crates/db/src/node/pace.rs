//! How much a node executes in one step.
//!
//! Between two steps the driver sends what was produced and hands in what has come; the node closes epochs, serves reads and agrees
//! with its group. So a step must be short, whatever its transactions compute: all others wait for the batches and read results
//! of a node that does nothing but execute. A node has no clock, but it is told the time with each step: where one step follows
//! the other at once, the time between them is what the first one took. After a pause nothing is known of what is to come, so the
//! first step executes little, and has more to do at once.

use crate::limits::{STEP_MICROSECONDS, STEP_TRANSACTIONS_FIRST};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pace {
    /// Most transactions of a step.
    most: usize,
    /// How many the next step may have.
    allowed: usize,
    /// When the last step began, in microseconds, how many it executed, and whether the next one follows at once.
    last: Option<(u64, u64, bool)>,
    /// Of steps that executed something and that the next one followed at once, the late ones counting most: the time that they took,
    /// in microseconds, and what they executed.
    taken: (u64, u64),
    /// The time of steps since then that executed nothing, in microseconds.
    besides: u64,
}

/// The time over which it is averaged what transactions take, in microseconds.
const AVERAGED_MICROSECONDS: u64 = 200_000;

impl Pace {
    /// At most so many transactions in a step.
    pub(super) fn new(most: usize) -> Pace {
        Pace { most, allowed: most.min(STEP_TRANSACTIONS_FIRST), last: None, taken: (0, 0), besides: 0 }
    }

    /// How many transactions the next step may execute.
    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// How long it takes to execute so many transactions, in microseconds, with all else that there is to do meanwhile; 0 if none was
    /// executed yet.
    pub(super) fn time_for(&self, transactions: u64) -> u64 {
        let (took, executed) = self.taken;
        transactions.saturating_mul(took).checked_div(executed).unwrap_or(0)
    }

    /// How many transactions are executed in so many microseconds, with all else that there is to do meanwhile; as many as one likes if
    /// none was executed yet.
    pub(super) fn fits(&self, microseconds: u64) -> usize {
        let (took, executed) = self.taken;
        let fits = microseconds.saturating_mul(executed).checked_div(took);
        fits.and_then(|fits| usize::try_from(fits).ok()).unwrap_or(usize::MAX)
    }

    /// A step begins.
    pub(super) fn begin(&mut self, now: u64) {
        let Some((began, executed, follows)) = self.last.take() else { return };
        let took = now.saturating_sub(began);
        if !follows {
            self.besides = 0;
            self.allowed = self.fits(STEP_MICROSECONDS).clamp(1, STEP_TRANSACTIONS_FIRST.min(self.most));
            return;
        }
        self.average(took.min(AVERAGED_MICROSECONDS), executed);
        if executed > 0 {
            let fits = (STEP_MICROSECONDS * executed).checked_div(took).unwrap_or(u64::MAX);
            self.allowed = usize::try_from(fits).unwrap_or(usize::MAX).clamp(1, self.most);
        }
    }

    /// A step that began then has executed so many; whether there is more to do at once.
    pub(super) fn end(&mut self, began: u64, executed: u64, more: bool) {
        self.last = Some((began, executed, more));
    }

    fn average(&mut self, took: u64, executed: u64) {
        if executed == 0 {
            self.besides = (self.besides + took).min(AVERAGED_MICROSECONDS);
            return;
        }
        let (before, count) = self.taken;
        self.taken = (before + took + std::mem::take(&mut self.besides), count + executed);
        while self.taken.0 > AVERAGED_MICROSECONDS && self.taken.1 > 1 {
            self.taken = (self.taken.0 / 2, self.taken.1 / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_transactions_is_what_the_last_ones_took() {
        let mut pace = Pace::new(256);
        assert_eq!((pace.time_for(9), pace.fits(9)), (0, usize::MAX), "nothing is known yet");
        let mut now = 0;
        let mut steps = |pace: &mut Pace, count: u32, executed: u64, took: u64| {
            for _ in 0..count {
                pace.begin(now);
                pace.end(now, executed, true);
                now += took;
            }
            pace.begin(now);
        };
        steps(&mut pace, 10, 20, 100);
        assert_eq!((pace.time_for(1_000), pace.fits(5_000)), (5_000, 1_000));
        // A step that executes nothing takes time from the next one that does.
        steps(&mut pace, 10, 0, 100);
        assert_eq!(pace.time_for(1_000), 5_000);
        steps(&mut pace, 10, 20, 100);
        assert_eq!(pace.time_for(1_000), 7_500);
        // What was long ago does not count.
        steps(&mut pace, 10_000, 1, 100);
        assert!((95_000..=101_000).contains(&pace.time_for(1_000)), "{}", pace.time_for(1_000));
        // One that takes very long is not forgotten.
        steps(&mut pace, 20, 1, 10 * AVERAGED_MICROSECONDS);
        assert!(pace.time_for(1) > AVERAGED_MICROSECONDS / 2, "{}", pace.time_for(1));
    }

    #[test]
    fn a_pause_takes_no_time_from_transactions() {
        let mut pace = Pace::new(256);
        for second in 0..100 {
            let now = second * 1_000_000;
            pace.begin(now);
            pace.end(now, 10, true);
            pace.begin(now + 100);
            // It closes an epoch, and the next one executes what is left.
            pace.end(now + 100, 0, true);
            pace.begin(now + 200);
            pace.end(now + 200, 10, false);
        }
        assert_eq!(pace.time_for(1_000), 10_000);
    }

    /// How many transactions a step may have that follows at once on one that took so long for so many.
    fn allowed_after(executed: u64, took: u64) -> usize {
        let mut pace = Pace::new(256);
        pace.end(1_000, executed, true);
        pace.begin(1_000 + took);
        pace.allowed()
    }

    #[test]
    fn long_transactions_make_small_steps() {
        assert_eq!(allowed_after(256, 700), 256, "short ones do not");
        assert_eq!(allowed_after(256, 256 * 100), 20);
        assert_eq!(allowed_after(256, 256 * 5_000), 1);
        assert_eq!(allowed_after(8, 0), 256);
        assert_eq!(allowed_after(0, 50_000), STEP_TRANSACTIONS_FIRST, "it did something else");
    }

    /// What comes after a pause may take longer than what came before, so it is not begun all at once.
    #[test]
    fn the_first_step_after_a_pause_is_small() {
        let mut pace = Pace::new(256);
        assert_eq!(pace.allowed(), STEP_TRANSACTIONS_FIRST);
        pace.end(0, 8, true);
        pace.begin(100);
        assert_eq!(pace.allowed(), 160);
        pace.end(100, 0, true);
        pace.begin(200);
        assert_eq!(pace.allowed(), 160, "it did something else");
        pace.end(200, 160, false);
        pace.begin(1_000_000);
        assert_eq!(pace.allowed(), STEP_TRANSACTIONS_FIRST);
        pace.end(1_000_000, 8, true);
        pace.begin(1_240_000);
        assert_eq!(pace.allowed(), 1, "they are long now");
        pace.end(1_240_000, 1, false);
        pace.begin(2_000_000);
        assert_eq!(pace.allowed(), 1, "they were before the pause");
        assert_eq!(Pace::new(2).allowed(), 2);
    }
}
