//! SQL for clients that speak PostgreSQL's protocol: sockets, threads and clocks around the sessions of [`ordain_sql`].
//!
//! A [`Listener`] takes connections, each with a thread that reads, lets its session work and writes. Sessions see the database through
//! a [`SqlDatabase`], in this process or over the network. `docs/sql/server.md` is for those who run it.

pub mod activity;
mod advisory;
mod alarms;
pub mod cancel;
pub mod connection;
pub mod database;
pub mod history;
mod janitor;
pub mod listener;
pub mod metrics;
pub mod options;
mod state;
pub mod tls;
pub mod workload;

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::database::SqlDatabase;
pub use self::listener::{Door, Listener, ListenerOptions};
pub use self::metrics::Metrics;

/// Locks. What is behind the locks here is whole between any two statements that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static SESSION_RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread ends one client's session, and nothing else.
pub(crate) fn panic_is_caught() -> bool {
    SESSION_RUNS.try_with(Cell::get).unwrap_or(false)
}

/// Runs a session; `None` if it panicked. What a session has of the database is calls and snapshots, which stay whole.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    SESSION_RUNS.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    SESSION_RUNS.set(false);
    result.ok()
}
