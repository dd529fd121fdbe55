//! Deletes rows that belong to nothing any more: of tables and indexes that were dropped or emptied, and of transactions that were loading
//! them when their process ended.
//!
//! Whoever drops a table only says so in its definitions, among which the rows stand as garbage from then on. A thread deletes them in
//! small transactions, and removes the definition when none is left. It looks when it is told to and when it starts, since the process
//! that was told before may have ended in between; and now and then, for rows that are being loaded and whose [time](Loading) is over.
//! Processes that do so at the same time do no harm: rows are deleted once.

use std::io;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use ordain_db::error::Error;
use ordain_db::procedure::{decode_output, encode_arguments};
use ordain_sql::bind::forget;
use ordain_sql::catalog::{Catalog, Definition, Loading};
use ordain_sql::execute::{Inputs, Output};
use ordain_sql::plan::{Action, Plan};
use ordain_sql::procedure::{Step, Steps};
use ordain_sql::session::Database;

use super::database::{SessionDatabase, Shared};

/// Most rows that one transaction deletes: statements wait for one such transaction, some milliseconds.
const CHUNK_ROWS: u32 = 250;

/// How many times as long as a transaction took it rests afterwards, where the rows of one table or index are left: statements go first,
/// and the more of them there are, the longer a transaction takes. The more is left, the shorter it rests, so that it does not become ever
/// more.
const REST: u32 = 3;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(1);

/// How long after a failure it tries again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// How long it waits to be told at most.
const LOOK_PAUSE: Duration = Duration::from_secs(3600);

/// Starts the thread. It ends when the other end of `told` is gone.
pub(super) fn start(shared: Weak<Shared>, told: Receiver<()>) -> io::Result<()> {
    let run = move || {
        let mut patience = Duration::ZERO;
        loop {
            match told.recv_timeout(patience) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while told.try_recv().is_ok() {}
            patience = match sweep(&shared, &told) {
                // What was dropped meanwhile may have been told, and not heard.
                Ok(true) => Duration::ZERO,
                Ok(false) => LOOK_PAUSE,
                Err(error) => {
                    tracing::debug!(%error, "rows of what was dropped are yet to be deleted");
                    RETRY_PAUSE
                }
            };
        }
    };
    std::thread::Builder::new().name("sql-janitor".to_owned()).spawn(run).map(drop)
}

/// Deletes what is garbage now; whether there was any.
fn sweep(shared: &Weak<Shared>, told: &Receiver<()>) -> Result<bool, Error> {
    let Some(session) = session(shared)? else { return Ok(false) };
    let mut catalog = session.fresh_catalog()?;
    let overdue: Vec<&Loading> = catalog.overdue(session.now()).collect();
    for loading in &overdue {
        tracing::info!(
            ?loading,
            "deleting rows of a transaction that has loaded them and nothing more for its time"
        );
        unless_done(call(&session, loading.end(&Catalog::new())))?;
    }
    if !overdue.is_empty() {
        catalog = session.fresh_catalog()?;
    }
    drop(session);
    let garbage = garbage(&catalog);
    let mut swept = Ok(!garbage.is_empty());
    for (index, storage) in garbage.iter().enumerate() {
        let storages = (garbage.len() - index) as u32;
        // The others may be sound.
        if let Err(error) = clear(shared, told, &catalog, *storage, storages) {
            swept = Err(error);
        }
    }
    swept
}

/// A session for one transaction: nothing here keeps the database open while it waits.
fn session(shared: &Weak<Shared>) -> Result<Option<SessionDatabase>, Error> {
    shared.upgrade().map(|shared| SessionDatabase::new(&shared)).transpose()
}

fn garbage(catalog: &Catalog) -> Vec<(u32, bool)> {
    let storage = |(_, _, definition): (&str, &str, &Definition)| match definition {
        Definition::Garbage { storage, replicated } => Some((*storage, *replicated)),
        _ => None,
    };
    catalog.iter().filter_map(storage).collect()
}

/// Deletes all rows of a storage, which is the first of so many, and then what is said of it.
fn clear(
    shared: &Weak<Shared>,
    told: &Receiver<()>,
    catalog: &Catalog,
    (storage, replicated): (u32, bool),
    storages: u32,
) -> Result<(), Error> {
    let (mut deleted, mut after) = (0, None);
    loop {
        let Some(session) = session(shared)? else { return Ok(()) };
        let is_all = after.is_none();
        let plan = Plan::of(Action::Clear { storage, replicated, after, rows: CHUNK_ROWS });
        let began = Instant::now();
        let Output { mut rows, written, .. } = call(&session, plan)?;
        deleted += written;
        after = rows.pop();
        if after.is_none() && is_all {
            break;
        }
        // Rows that were deleted, and that open snapshots see, are in the way of who begins at the start: at the end it does so once more, for
        // rows that came meanwhile.
        drop(session);
        if told.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(());
        }
        std::thread::sleep((began.elapsed() * REST / storages).min(REST_MAX));
    }
    let Some(session) = session(shared)? else { return Ok(()) };
    unless_done(call(&session, forget(catalog, storage)))?;
    tracing::debug!(storage, deleted, "deleted the rows of what was dropped");
    Ok(())
}

/// The outcome of what another process may have done already.
fn unless_done(outcome: Result<Output, Error>) -> Result<(), Error> {
    match outcome {
        Ok(_) | Err(Error::Aborted(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn call(session: &SessionDatabase, plan: Plan) -> Result<Output, Error> {
    let inputs = Inputs { now: session.now(), seed: session.unique(), ..Inputs::default() };
    let steps = Steps::from(Step { plan: plan.into(), inputs, shown: None });
    decode_output(&session.call(encode_arguments(&steps)?)?)
}
