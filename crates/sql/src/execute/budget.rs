//! Memory that the statements of a process hold together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{SqlError, SqlState};

/// What is claimed at a time, so that few claims are made.
const STEP_BYTES: usize = 1 << 20;

/// What each statement may hold besides, so that small ones go on when large ones have all there is.
const FREE_BYTES: usize = 1 << 20;

/// How much of it there is.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    used: AtomicUsize,
}

impl Budget {
    /// So many bytes for all.
    pub fn new(most: usize) -> Budget {
        Budget { most, used: AtomicUsize::new(0) }
    }
}

/// Without a limit.
impl Default for Budget {
    fn default() -> Budget {
        Budget::new(usize::MAX)
    }
}

/// What one statement has of it, until this is dropped.
#[derive(Default)]
pub(super) struct Claim<'b> {
    budget: Option<&'b Budget>,
    bytes: usize,
}

impl<'b> Claim<'b> {
    /// Nothing yet.
    pub(super) fn of(budget: &'b Budget) -> Claim<'b> {
        Claim { budget: Some(budget), bytes: 0 }
    }

    /// Has at least so many bytes from now on.
    ///
    /// # Errors
    /// When others have too much.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        let claimed = bytes.saturating_sub(FREE_BYTES);
        let Some(budget) = self.budget.filter(|_| claimed > self.bytes) else { return Ok(()) };
        let more = (claimed - self.bytes).next_multiple_of(STEP_BYTES);
        let added = |used: usize| used.checked_add(more).filter(|used| *used <= budget.most);
        if budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_err() {
            let message = format!("all statements together hold more than {} MiB of rows", budget.most >> 20);
            return Err(SqlError::new(SqlState::OUT_OF_MEMORY, message)
                .with_hint("Wait for others to end, or read less at a time: add a condition or a LIMIT."));
        }
        self.bytes += more;
        Ok(())
    }

    /// Holds no more than so many bytes from now on.
    pub(super) fn let_go(&mut self, bytes: usize) {
        let claimed = bytes.saturating_sub(FREE_BYTES).next_multiple_of(STEP_BYTES);
        if let Some(budget) = self.budget.filter(|_| claimed < self.bytes) {
            budget.used.fetch_sub(self.bytes - claimed, Ordering::Relaxed);
            self.bytes = claimed;
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget {
            budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_has_another_one_cannot_have() {
        let budget = Budget::new(10 * STEP_BYTES);
        let [mut first, mut second] = [Claim::of(&budget), Claim::of(&budget)];
        first.hold(FREE_BYTES + 8 * STEP_BYTES).unwrap();
        first.let_go(FREE_BYTES + 6 * STEP_BYTES - 1);
        first.hold(1).unwrap();
        second.hold(FREE_BYTES + 4 * STEP_BYTES - 1).unwrap();
        let error = second.hold(FREE_BYTES + 4 * STEP_BYTES + 1).unwrap_err();
        assert_eq!(error.state, SqlState::OUT_OF_MEMORY);
        assert_eq!(error.message, "all statements together hold more than 10 MiB of rows");
        Claim::of(&budget).hold(FREE_BYTES).unwrap();
        drop(first);
        second.hold(FREE_BYTES + 10 * STEP_BYTES).unwrap();
        drop(second);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
        Claim::default().hold(usize::MAX).unwrap();
    }
}
