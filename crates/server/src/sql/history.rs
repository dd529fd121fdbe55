//! States of the past, kept for reads `AS OF` a time.
//!
//! A thread opens a snapshot at regular moments and keeps it for the retention. The database keeps of each row what these snapshots see, so
//! a row that is changed often costs one version for each moment and not one for each change. A state counts as of the time at which its
//! snapshot was ready: it has whatever was acknowledged before that was asked for, and nothing that began later.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use ordain_db::error::Error;
use ordain_sql::catalog::Catalog;
use ordain_sql::error::SqlError;
use ordain_sql::session::{Database, not_kept};

use super::database::{SessionDatabase, Shared};
use super::lock;
use crate::connection::Snapshot;

/// The least time between two states.
const STEP_MIN: Duration = Duration::from_secs(1);

/// Most states that are kept; half of the snapshots that a node may have open.
const STATES_MAX: u32 = 500;

/// The longest retention.
pub const RETENTION_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is kept, oldest first.
#[derive(Default)]
pub(super) struct History(Mutex<VecDeque<State>>);

struct State {
    /// When its snapshot was ready, in microseconds since 2000-01-01 UTC.
    ready: i64,
    taken: Instant,
    snapshot: Arc<Snapshot>,
    catalog: Arc<Catalog>,
}

impl History {
    /// The newest state from not after a time.
    pub(super) fn past(&self, at: i64) -> Result<(Arc<Snapshot>, Arc<Catalog>), SqlError> {
        let states = lock(&self.0);
        let found = states.iter().rfind(|state| state.ready <= at);
        found
            .map(|state| (Arc::clone(&state.snapshot), Arc::clone(&state.catalog)))
            .ok_or_else(|| not_kept(states.front().map(|state| state.ready)))
    }

    /// Keeps one more, and forgets those that are older than the retention.
    fn keep(&self, state: State, retention: Duration) {
        let mut states = lock(&self.0);
        let mut old = VecDeque::new();
        states.push_back(state);
        while states.len() > STATES_MAX as usize
            || states.front().is_some_and(|state| state.taken.elapsed() > retention)
        {
            old.extend(states.pop_front());
        }
        drop(states);
        // Their snapshots are closed here, outside of the lock.
        drop(old);
    }
}

/// Starts the thread. It ends when the database is gone.
pub(super) fn start(shared: Weak<Shared>, retention: Duration) -> io::Result<()> {
    let step = (retention / STATES_MAX).max(STEP_MIN);
    let run = move || {
        let mut begun = Instant::now();
        while let Some(database) = shared.upgrade() {
            if let Err(error) = take(&database, retention) {
                tracing::debug!(%error, "no state could be kept for AS OF");
            }
            drop(database);
            begun += step;
            // After a long pause of the machine nothing is made up for.
            begun = begun.max(Instant::now().checked_sub(step).unwrap_or(begun));
            std::thread::sleep(begun.saturating_duration_since(Instant::now()));
        }
    };
    std::thread::Builder::new().name("sql-history".to_owned()).spawn(run).map(drop)
}

fn take(database: &Arc<Shared>, retention: Duration) -> Result<(), Error> {
    let session = SessionDatabase::new(database)?;
    let snapshot = session.open_snapshot()?;
    let (ready, taken) = (session.now(), Instant::now());
    let catalog = session.definitions_of(&snapshot)?;
    database.history.keep(State { ready, taken, snapshot: Arc::new(snapshot), catalog }, retention);
    Ok(())
}
