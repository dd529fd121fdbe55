//! States of the past, kept for reads `AS OF` a time.
//!
//! A thread opens a snapshot at regular moments and keeps it for the retention. The database keeps of each row what these snapshots see, so
//! a row that is changed often costs one version for each moment and not one for each change. A state counts as of the time at which its
//! snapshot was ready: it has whatever was acknowledged before that was asked for, and nothing that began later.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
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

/// Most states that all processes of a cluster keep; half of the snapshots that a node may have open.
const STATES_MAX: usize = 500;

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
    fn keep(&self, state: State, retention: Duration, states_max: usize) {
        let mut states = lock(&self.0);
        let mut old = VecDeque::new();
        states.push_back(state);
        while states.len() > states_max
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
pub(super) fn start(shared: &Arc<Shared>, retention: Duration) -> io::Result<()> {
    let states_max = (STATES_MAX / shared.processes).max(1);
    let step = (retention / states_max as u32).max(STEP_MIN);
    let shared = Arc::downgrade(shared);
    let run = move || {
        let mut begun = Instant::now();
        while let Some(database) = shared.upgrade() {
            if let Err(error) = take(&database, retention, states_max) {
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

fn take(database: &Arc<Shared>, retention: Duration, states_max: usize) -> Result<(), Error> {
    let session = SessionDatabase::new(database)?;
    let snapshot = session.open_snapshot()?;
    let (ready, taken) = (session.now(), Instant::now());
    let catalog = session.definitions_of(&snapshot)?;
    database.history.keep(
        State { ready, taken, snapshot: Arc::new(snapshot), catalog },
        retention,
        states_max,
    );
    Ok(())
}
