//! Waits for advisory locks.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use ordain_sql::advisory::{AdvisoryAct, AdvisoryLocks};
use ordain_sql::error::SqlError;
use ordain_sql::execute::Interrupt;

use super::lock;

/// How long a session waits without looking whether it is to end.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// The advisory locks of all sessions of the process.
#[derive(Default)]
pub(super) struct Advisory {
    locks: Mutex<AdvisoryLocks>,
    given_back: Condvar,
    sessions: Mutex<u64>,
}

impl Advisory {
    /// A number for a session that no other has.
    pub(super) fn session(&self) -> u64 {
        let mut last = lock(&self.sessions);
        *last += 1;
        *last
    }

    /// Does what a session asks for.
    pub(super) fn act(
        &self,
        session: u64,
        act: AdvisoryAct,
        interrupt: &Interrupt,
    ) -> Result<bool, SqlError> {
        let mut locks = lock(&self.locks);
        match act {
            AdvisoryAct::Take { lock: wanted, waits: false } => locks.take(session, wanted),
            AdvisoryAct::Take { lock: wanted, waits: true } => loop {
                if locks.take(session, wanted)? {
                    return Ok(true);
                }
                if let Some(error) = interrupt.error() {
                    locks.give_up(session);
                    return Err(error);
                }
                locks.wait(session, wanted)?;
                let waited = self.given_back.wait_timeout(locks, WAIT_STEP);
                locks = waited.unwrap_or_else(PoisonError::into_inner).0;
            },
            AdvisoryAct::GiveBack(held) => {
                let had = locks.give_back(session, held);
                self.given_back.notify_all();
                Ok(had)
            }
            AdvisoryAct::GiveBackAll { in_transaction } => {
                locks.give_back_all(session, in_transaction);
                self.given_back.notify_all();
                Ok(true)
            }
        }
    }

    /// The session has ended.
    pub(super) fn end(&self, session: u64) {
        let mut locks = lock(&self.locks);
        locks.give_up(session);
        [true, false].into_iter().for_each(|in_transaction| locks.give_back_all(session, in_transaction));
        self.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use ordain_sql::advisory::{AdvisoryKey, AdvisoryLock};
    use ordain_sql::error::SqlState;

    use super::*;

    #[test]
    fn whoever_waits_has_the_lock_when_the_session_before_ends_or_is_told_to_end() {
        let lock = AdvisoryLock { key: AdvisoryKey::One(1), shared: false, in_transaction: false };
        let take = AdvisoryAct::Take { lock, waits: true };
        let advisory = Arc::<Advisory>::default();
        let (first, second) = (advisory.session(), advisory.session());
        assert_eq!(advisory.act(first, take, &Interrupt::default()), Ok(true));
        let try_it = AdvisoryAct::Take { lock, waits: false };
        assert_eq!(advisory.act(second, try_it, &Interrupt::default()), Ok(false));
        let waits = Arc::clone(&advisory);
        let waiting = thread::spawn(move || waits.act(second, take, &Interrupt::default()));
        advisory.end(first);
        assert_eq!(waiting.join().unwrap(), Ok(true));
        let interrupt = Interrupt::default();
        interrupt.cancel();
        let error = advisory.act(first, take, &interrupt).unwrap_err();
        assert_eq!(error.state, SqlState::QUERY_CANCELED);
        // It does not wait any more, so nobody waits for it.
        advisory.end(second);
        assert_eq!(advisory.act(first, try_it, &Interrupt::default()), Ok(true));
    }
}
