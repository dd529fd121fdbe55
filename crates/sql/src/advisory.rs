//! Advisory locks: what sessions of a process agree on among themselves. They guard nothing by themselves, and live outside of the
//! database: another process of a cluster knows nothing of them, and they are gone when their process ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{SqlError, SqlState};

/// What is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AdvisoryKey {
    /// A number.
    One(i64),
    /// Two numbers, which have nothing to do with one.
    Two(i64, i64),
}

/// A lock as a session asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdvisoryLock {
    /// What it is of.
    pub key: AdvisoryKey,
    /// Whether others may have it shared, too.
    pub shared: bool,
    /// Whether it goes with the end of the transaction, and not before.
    pub in_transaction: bool,
}

/// What a session does with such locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdvisoryAct {
    /// Takes one; whether it has it.
    Take {
        /// Which.
        lock: AdvisoryLock,
        /// Whether it waits until it has it.
        waits: bool,
    },
    /// Gives one back, as often as it was taken; whether it had it.
    GiveBack(AdvisoryLock),
    /// Gives back all that go with the transaction, or all others.
    GiveBackAll {
        /// Which.
        in_transaction: bool,
    },
}

/// A lock that a session has.
#[derive(Debug)]
struct Held {
    session: u64,
    shared: bool,
    in_transaction: bool,
    times: u64,
}

/// Most locks that all sessions have together.
const LOCKS_MAX: usize = 100_000;

/// The locks of all sessions of a process.
#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    held: BTreeMap<AdvisoryKey, Vec<Held>>,
    /// How many there are.
    count: usize,
    /// What sessions wait for.
    waits: BTreeMap<u64, AdvisoryLock>,
}

impl AdvisoryLocks {
    /// Takes a lock if nobody stands in the way; whether the session has it now.
    ///
    /// # Errors
    /// When there are too many.
    pub fn take(&mut self, session: u64, lock: AdvisoryLock) -> Result<bool, SqlError> {
        if self.in_the_way(session, lock).next().is_some() {
            return Ok(false);
        }
        self.waits.remove(&session);
        let same = self.held.get_mut(&lock.key).into_iter().flatten().find(|held| {
            held.session == session
                && held.shared == lock.shared
                && held.in_transaction == lock.in_transaction
        });
        if let Some(held) = same {
            held.times = held.times.saturating_add(1);
            return Ok(true);
        }
        if self.count >= LOCKS_MAX {
            let message = format!("more than {LOCKS_MAX} advisory locks");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let AdvisoryLock { shared, in_transaction, .. } = lock;
        self.held.entry(lock.key).or_default().push(Held { session, shared, in_transaction, times: 1 });
        self.count += 1;
        Ok(true)
    }

    /// Notes that a session waits for a lock.
    ///
    /// # Errors
    /// When those that it waits for wait for it.
    pub fn wait(&mut self, session: u64, lock: AdvisoryLock) -> Result<(), SqlError> {
        self.waits.insert(session, lock);
        let (mut seen, mut next) = (BTreeSet::new(), vec![session]);
        while let Some(waiting) = next.pop() {
            let Some(wanted) = self.waits.get(&waiting) else { continue };
            let others: Vec<u64> = self.in_the_way(waiting, *wanted).collect();
            for other in others {
                if other == session {
                    self.waits.remove(&session);
                    return Err(SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
                        .with_detail("Sessions wait for advisory locks of each other.")
                        .with_hint("Take the locks in the same order everywhere."));
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        Ok(())
    }

    /// The session waits no longer.
    pub fn give_up(&mut self, session: u64) {
        self.waits.remove(&session);
    }

    /// Gives a lock back, as often as it was taken; whether the session had it.
    pub fn give_back(&mut self, session: u64, lock: AdvisoryLock) -> bool {
        let Some(known) = self.held.get_mut(&lock.key) else { return false };
        let place = known
            .iter()
            .position(|held| held.session == session && held.shared == lock.shared && !held.in_transaction);
        let Some(place) = place else { return false };
        known[place].times -= 1;
        if known[place].times == 0 {
            known.swap_remove(place);
            self.count -= 1;
        }
        if known.is_empty() {
            self.held.remove(&lock.key);
        }
        true
    }

    /// Gives back all locks of a session that go with its transaction, or all others.
    pub fn give_back_all(&mut self, session: u64, in_transaction: bool) {
        let is_given = |held: &Held| held.session == session && held.in_transaction == in_transaction;
        let mut given = 0;
        self.held.retain(|_, known| {
            let before = known.len();
            known.retain(|held| !is_given(held));
            given += before - known.len();
            !known.is_empty()
        });
        self.count -= given;
    }

    /// The sessions whose locks stand in the way of another's.
    fn in_the_way(&self, session: u64, lock: AdvisoryLock) -> impl Iterator<Item = u64> {
        let known = self.held.get(&lock.key).into_iter().flatten();
        known
            .filter(move |held| held.session != session && !(held.shared && lock.shared))
            .map(|held| held.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusive(key: i64) -> AdvisoryLock {
        AdvisoryLock { key: AdvisoryKey::One(key), shared: false, in_transaction: false }
    }

    #[test]
    fn a_lock_is_one_session_s_until_it_is_given_back_as_often_as_it_was_taken() {
        let mut locks = AdvisoryLocks::default();
        assert_eq!(locks.take(1, exclusive(7)), Ok(true));
        assert_eq!(locks.take(1, exclusive(7)), Ok(true));
        assert_eq!(locks.take(2, exclusive(7)), Ok(false));
        assert_eq!(locks.take(2, exclusive(8)), Ok(true));
        assert!(locks.give_back(1, exclusive(7)));
        assert_eq!(locks.take(2, exclusive(7)), Ok(false));
        assert!(locks.give_back(1, exclusive(7)));
        assert!(!locks.give_back(1, exclusive(7)));
        assert_eq!(locks.take(2, exclusive(7)), Ok(true));
        locks.give_back_all(2, false);
        assert!(locks.held.is_empty() && locks.count == 0);
    }

    #[test]
    fn shared_locks_go_together_and_two_numbers_are_not_one() {
        let mut locks = AdvisoryLocks::default();
        let shared = AdvisoryLock { shared: true, ..exclusive(7) };
        assert_eq!(locks.take(1, shared), Ok(true));
        assert_eq!(locks.take(2, shared), Ok(true));
        assert_eq!(locks.take(3, exclusive(7)), Ok(false));
        let two = AdvisoryLock { key: AdvisoryKey::Two(0, 7), ..exclusive(7) };
        assert_eq!(locks.take(3, two), Ok(true));
    }

    #[test]
    fn what_is_refused_for_the_limit_leaves_nothing() {
        let mut locks = AdvisoryLocks { count: LOCKS_MAX, ..AdvisoryLocks::default() };
        assert_eq!(locks.take(1, exclusive(7)).unwrap_err().state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(locks.held.is_empty());
    }

    #[test]
    fn a_lock_of_a_transaction_is_not_given_back_before_its_end() {
        let mut locks = AdvisoryLocks::default();
        let lock = AdvisoryLock { in_transaction: true, ..exclusive(7) };
        assert_eq!(locks.take(1, lock), Ok(true));
        assert!(!locks.give_back(1, exclusive(7)));
        locks.give_back_all(1, false);
        assert_eq!(locks.take(2, exclusive(7)), Ok(false));
        locks.give_back_all(1, true);
        assert_eq!(locks.take(2, exclusive(7)), Ok(true));
    }

    #[test]
    fn whoever_closes_a_ring_of_waits_is_told() {
        let mut locks = AdvisoryLocks::default();
        for session in 1..=3 {
            assert_eq!(locks.take(session, exclusive(i64::try_from(session).unwrap())), Ok(true));
        }
        assert_eq!(locks.wait(1, exclusive(2)), Ok(()));
        assert_eq!(locks.wait(2, exclusive(3)), Ok(()));
        let error = locks.wait(3, exclusive(1)).unwrap_err();
        assert_eq!(error.state, SqlState::DEADLOCK_DETECTED);
        // The others wait on.
        locks.give_back_all(3, false);
        assert_eq!(locks.take(2, exclusive(3)), Ok(true));
    }
}
