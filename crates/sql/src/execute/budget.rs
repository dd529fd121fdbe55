//! Memory that the statements of a process hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Interrupt;
use crate::error::{SqlError, SqlState};

/// What is claimed at a time, so that few claims are made.
const STEP_BYTES: usize = 1 << 20;

/// What each statement may hold besides, and each session keep, so that small ones go on when large ones have all there is.
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

    /// Takes so many bytes of it.
    ///
    /// # Errors
    /// When others have too much.
    fn take(&self, bytes: usize) -> Result<(), SqlError> {
        let added = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.most);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        taken.map(drop).map_err(|_| {
            let message = format!("all statements together hold more than {} MiB of rows", self.most >> 20);
            SqlError::new(SqlState::OUT_OF_MEMORY, message).with_hint(
                "Wait for others to end, close cursors, or read less at a time: add a condition or a LIMIT.",
            )
        })
    }

    /// Counts bytes that are there already, if that is more than there is for all: then there is nothing left.
    fn count(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives so many bytes back.
    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What is claimed of a budget for so many bytes.
fn claimed_for(bytes: usize) -> usize {
    bytes.saturating_sub(FREE_BYTES).next_multiple_of(STEP_BYTES)
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
        budget.take(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Holds no more than so many bytes from now on.
    pub(super) fn let_go(&mut self, bytes: usize) {
        let claimed = claimed_for(bytes);
        if let Some(budget) = self.budget.filter(|_| claimed < self.bytes) {
            budget.give_back(self.bytes - claimed);
            self.bytes = claimed;
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(budget) = self.budget {
            budget.give_back(self.bytes);
        }
    }
}

/// What a session keeps of a budget for its client, beyond the statements that have made it: the rows of cursors and portals, and those of
/// results that wait to be sent. Only the session itself changes it.
#[derive(Debug)]
pub struct Keeping {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
    claimed: AtomicUsize,
}

impl Keeping {
    /// Nothing yet, of the budget of the session with this interrupt.
    pub fn of(interrupt: &Interrupt) -> Arc<Keeping> {
        let budget = Arc::clone(interrupt.budget());
        Arc::new(Keeping { budget, bytes: AtomicUsize::new(0), claimed: AtomicUsize::new(0) })
    }

    /// Keeps so many bytes in all from now on.
    ///
    /// # Errors
    /// When others have too much, unless these bytes `are_there` already and cannot be refused. Without effect then.
    fn keep(&self, bytes: usize, are_there: bool) -> Result<(), SqlError> {
        let (before, claimed) = (self.claimed.load(Ordering::Relaxed), claimed_for(bytes));
        match claimed.checked_sub(before) {
            None => self.budget.give_back(before - claimed),
            Some(0) => {}
            Some(more) if are_there => self.budget.count(more),
            Some(more) => self.budget.take(more)?,
        }
        self.claimed.store(claimed, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Some of what a session keeps, which is given back when this is dropped.
#[derive(Debug)]
pub struct Kept {
    of: Arc<Keeping>,
    bytes: usize,
}

impl Kept {
    /// Nothing yet.
    pub fn nothing(of: &Arc<Keeping>) -> Kept {
        Kept { of: Arc::clone(of), bytes: 0 }
    }

    /// Keeps so many bytes more.
    ///
    /// # Errors
    /// When others have too much, unless these bytes `are_there` already and cannot be refused.
    pub fn add(&mut self, bytes: usize, are_there: bool) -> Result<(), SqlError> {
        self.of.keep(self.of.bytes.load(Ordering::Relaxed) + bytes, are_there)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Less is never refused.
        let _ = self.of.keep(self.of.bytes.load(Ordering::Relaxed) - self.bytes, true);
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

    #[test]
    fn what_a_session_keeps_is_given_back() {
        let budget = Arc::new(Budget::new(10 * STEP_BYTES));
        let [one, other] = [(); 2].map(|()| Keeping::of(&Interrupt::sharing(Arc::clone(&budget))));
        let mut portals: Vec<Kept> = (0..11).map(|_| Kept::nothing(&one)).collect();
        portals.iter_mut().for_each(|kept| kept.add(STEP_BYTES, false).unwrap());
        let mut refused = Kept::nothing(&one);
        let error = refused.add(1, false).unwrap_err();
        assert_eq!(error.state, SqlState::OUT_OF_MEMORY);
        // Other statements have as little, but for what each may hold besides.
        Claim::of(&budget).hold(FREE_BYTES + 1).unwrap_err();
        let mut small = Kept::nothing(&other);
        small.add(FREE_BYTES, false).unwrap();
        // What has taken effect is not refused.
        small.add(5 * STEP_BYTES, true).unwrap();
        assert_eq!(budget.used.load(Ordering::Relaxed), 15 * STEP_BYTES);
        portals.truncate(5);
        assert_eq!(budget.used.load(Ordering::Relaxed), 9 * STEP_BYTES);
        refused.add(1, false).unwrap();
        drop((portals, refused, small));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
