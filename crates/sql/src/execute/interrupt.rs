//! How a statement that runs is told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::budget::Budget;
use crate::error::{SqlError, SqlState};

/// What a statement looks at from time to time: whether it is to end before it is done, and why; and what it may hold besides all others.
#[derive(Debug, Default)]
pub struct Interrupt {
    told: AtomicU8,
    budget: Arc<Budget>,
}

/// Nobody has told it to end.
const NOT: u8 = 0;
/// Somebody has asked for its end.
const CANCELED: u8 = 1;
/// Its session is to end.
const TERMINATED: u8 = 2;
/// It has had all the time that its session gives it: that ends waits, too, so that it counts more than the others.
const TIMED_OUT: u8 = 3;

impl Interrupt {
    /// Of a session whose statements share this with others.
    pub fn sharing(budget: Arc<Budget>) -> Interrupt {
        Interrupt { budget, ..Interrupt::default() }
    }

    /// What all of them may hold together.
    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Has the statement end with 57014 as soon as it looks, since somebody has asked for that. One that waits for its place in the order
    /// goes on.
    pub fn cancel(&self) {
        self.told.fetch_max(CANCELED, Ordering::SeqCst);
    }

    /// Has the statement end as soon as it looks, and each one after it, since its session is to end.
    pub fn terminate(&self) {
        self.told.fetch_max(TERMINATED, Ordering::SeqCst);
    }

    /// Has the statement end as soon as it looks, since its time is over. One that waits for its place in the order waits no longer.
    pub fn time_out(&self) {
        self.told.fetch_max(TIMED_OUT, Ordering::SeqCst);
    }

    /// Before a statement that nobody has told to end.
    pub fn clear(&self) {
        let cleared = |told| (told != TERMINATED).then_some(NOT);
        let _is_cleared = self.told.fetch_update(Ordering::SeqCst, Ordering::SeqCst, cleared);
    }

    /// Whether the statement is to end.
    pub fn is_set(&self) -> bool {
        self.told.load(Ordering::Relaxed) != NOT
    }

    /// Whether its session is to end.
    pub fn is_terminated(&self) -> bool {
        self.told.load(Ordering::Relaxed) == TERMINATED
    }

    /// Whether its time is over.
    pub fn is_timed_out(&self) -> bool {
        self.told.load(Ordering::Relaxed) == TIMED_OUT
    }

    /// Goes on, unless the statement is to end.
    ///
    /// # Errors
    /// See [`error`](Interrupt::error).
    pub fn check(&self) -> Result<(), SqlError> {
        self.error().map_or(Ok(()), Err)
    }

    /// With what a statement without effect ends, if it is to end.
    pub fn error(&self) -> Option<SqlError> {
        let why = match self.told.load(Ordering::Relaxed) {
            NOT => return None,
            TERMINATED => return Some(terminated()),
            TIMED_OUT => "statement timeout",
            _ => "user request",
        };
        Some(SqlError::new(SqlState::QUERY_CANCELED, format!("canceling statement due to {why}")))
    }
}

/// With what a connection ends that the server, or another session, has ended.
pub fn terminated() -> SqlError {
    let problem = "terminating connection due to administrator command";
    SqlError::new(SqlState::ADMIN_SHUTDOWN, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_the_time_is_over_outlasts_a_request() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.error(), None);
        interrupt.cancel();
        assert!(interrupt.is_set() && !interrupt.is_timed_out());
        interrupt.time_out();
        interrupt.cancel();
        assert!(interrupt.is_timed_out());
        assert_eq!(interrupt.error().unwrap().message, "canceling statement due to statement timeout");
        interrupt.clear();
        assert!(!interrupt.is_set());
    }

    #[test]
    fn that_the_session_ends_outlasts_its_statement() {
        let interrupt = Interrupt::default();
        interrupt.cancel();
        interrupt.terminate();
        interrupt.cancel();
        interrupt.clear();
        assert!(interrupt.is_terminated() && !interrupt.is_timed_out());
        assert_eq!(interrupt.error(), Some(terminated()));
        interrupt.time_out();
        assert!(interrupt.is_timed_out());
    }
}
