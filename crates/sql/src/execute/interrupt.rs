//! How a statement that runs is told to end.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{SqlError, SqlState};

/// What a statement looks at from time to time: whether it is to end before it is done, and why.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

/// Nobody has told it to end.
const NOT: u8 = 0;
/// Somebody has asked for its end.
const CANCELED: u8 = 1;
/// It has had all the time that its session gives it.
const TIMED_OUT: u8 = 2;

impl Interrupt {
    /// Has the statement end with 57014 as soon as it looks, since somebody has asked for that. One that waits for its place in the order
    /// goes on.
    pub fn cancel(&self) {
        // That the time is over stays known: it ends waits, too.
        let _ = self.0.compare_exchange(NOT, CANCELED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Has the statement end as soon as it looks, since its time is over. One that waits for its place in the order waits no longer.
    pub fn time_out(&self) {
        self.0.store(TIMED_OUT, Ordering::SeqCst);
    }

    /// Before a statement that nobody has told to end.
    pub fn clear(&self) {
        self.0.store(NOT, Ordering::SeqCst);
    }

    /// Whether the statement is to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != NOT
    }

    /// Whether its time is over.
    pub fn is_timed_out(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TIMED_OUT
    }

    /// With what a statement without effect ends, if it is to end.
    pub fn error(&self) -> Option<SqlError> {
        let why = match self.0.load(Ordering::Relaxed) {
            NOT => return None,
            TIMED_OUT => "statement timeout",
            _ => "user request",
        };
        Some(SqlError::new(SqlState::QUERY_CANCELED, format!("canceling statement due to {why}")))
    }
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
}
