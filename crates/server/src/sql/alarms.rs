//! Tells statements that their time is over: a thread that sleeps until the next one's is.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ordain_sql::execute::Interrupt;

use super::lock;

/// The alarms of all sessions: at most one for each.
#[derive(Default)]
pub(super) struct Alarms {
    set: Mutex<Set>,
    changed: Condvar,
}

#[derive(Default)]
struct Set {
    /// The number that was given last.
    last: u64,
    due: BTreeMap<(Instant, u64), Arc<Interrupt>>,
    closed: bool,
}

/// What an alarm is taken back by.
pub(super) type Due = (Instant, u64);

impl Alarms {
    /// Starts the thread, which ends when they are [closed](Alarms::close).
    pub(super) fn start() -> io::Result<Arc<Alarms>> {
        let alarms = Arc::<Alarms>::default();
        let run = Arc::clone(&alarms);
        std::thread::Builder::new().name("sql-alarms".to_owned()).spawn(move || run.ring())?;
        Ok(alarms)
    }

    /// Has a statement's time be over after a while.
    pub(super) fn set(&self, after: Duration, interrupt: Arc<Interrupt>) -> Due {
        let mut set = lock(&self.set);
        set.last += 1;
        let due = (Instant::now() + after, set.last);
        set.due.insert(due, interrupt);
        if set.due.first_key_value().is_some_and(|(first, _)| *first == due) {
            self.changed.notify_one();
        }
        due
    }

    /// Takes an alarm back. Afterwards it does not ring.
    pub(super) fn take_back(&self, due: Due) {
        lock(&self.set).due.remove(&due);
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        lock(&self.set).closed = true;
        self.changed.notify_one();
    }

    fn ring(&self) {
        let mut set = lock(&self.set);
        while !set.closed {
            let Some(entry) = set.due.first_entry() else {
                set = self.changed.wait(set).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = entry.key().0.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Under the lock, so that none rings that was taken back.
                entry.remove().time_out();
            } else {
                let waited = self.changed.wait_timeout(set, left);
                set = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_taken_back_rings_the_earliest_first() {
        let alarms = Alarms::start().unwrap();
        let [late, early, never] = [(); 3].map(|()| Arc::new(Interrupt::default()));
        alarms.set(Duration::from_millis(60), Arc::clone(&late));
        let due = alarms.set(Duration::from_millis(1), Arc::clone(&never));
        alarms.take_back(due);
        alarms.set(Duration::from_millis(2), Arc::clone(&early));
        while !late.is_set() {
            std::thread::yield_now();
        }
        assert!(early.is_timed_out() && late.is_timed_out() && !never.is_set());
        alarms.close();
    }
}
