//! What a session needs of the database.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use ordain_db::data::key::KeyValue;
use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::error::{Error, Limit};
use ordain_db::procedure::ProcedureId;

use super::past::Past;
use crate::advisory::AdvisoryAct;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::execute::Interrupt;
use crate::execute::columns::QueryEngine;
use crate::keys::{DEFINITION_COLUMN, Storages};
use crate::procedure::decode_error;
use crate::routines::Routines;
use crate::state::{Signal, StateView};
use crate::types::{Datum, SqlType, Zone, text};

/// A database with the [procedure](crate::procedure) `sql`, seen from a session.
pub trait Database: Send + Sync {
    /// Calls the procedure with its encoded arguments, and waits for the encoded result, but not when the statement's time is over.
    ///
    /// # Errors
    /// As the database says; [`Error::Aborted`] is for [`decode_error`]. [`Error::Unavailable`] when it waits no longer: the call may yet
    /// take effect. After [`Error::Busy`] it has none.
    fn call(&self, arguments: Vec<u8>) -> Result<Bytes, Error>;

    /// The same for a procedure call that only reads: it sees everything that was committed before, and need not have a place in the
    /// order.
    ///
    /// # Errors
    /// As the database says.
    fn read(&self, arguments: Vec<u8>) -> Result<Bytes, Error>;

    /// The procedures that statements can call.
    fn routines(&self) -> Routines;

    /// Calls one of them with its encoded arguments, and waits for the encoded result.
    ///
    /// # Errors
    /// As the database says; [`Error::Aborted`] has the procedure's own reason.
    fn call_routine(&self, procedure: ProcedureId, arguments: Vec<u8>) -> Result<Bytes, Error>;

    /// Opens a snapshot that sees everything that was committed before.
    ///
    /// # Errors
    /// As the database says.
    fn snapshot(&self) -> Result<Box<dyn View>, Error>;

    /// The definitions, as of some time that is not long ago; newer ones than `outdated`, if that is given.
    ///
    /// # Errors
    /// As the database says.
    fn catalog(&self, outdated: Option<&Arc<Catalog>>) -> Result<Arc<Catalog>, Error>;

    /// The newest state that was kept from not after a time, in microseconds since 2000-01-01 UTC.
    ///
    /// # Errors
    /// When there is none, or no longer.
    fn past(&self, at: i64) -> Result<Past, SqlError>;

    /// The time: microseconds since 2000-01-01 UTC.
    fn now(&self) -> i64;

    /// A number that is like no other, nobody guesses, and is greater than those of before, but where clocks differ: rows without a primary key
    /// come in the order of these.
    fn unique(&self) -> u128;

    /// What tells a statement of the session to end. All that waits here ends soon after its time is over; what only reads and
    /// [pauses](Database::pause) do also when it is cancelled.
    fn interrupt(&self) -> Arc<Interrupt>;

    /// What may run parts of queries over snapshots, if there is anything.
    fn query_engine(&self) -> Option<Arc<dyn QueryEngine>> {
        None
    }

    /// Has the statement's time be over after some microseconds; with `None`, takes that back.
    fn alarm(&self, microseconds: Option<u64>);

    /// Waits for some microseconds, or until the statement is told to end.
    fn pause(&self, microseconds: u64);

    /// Number of partitions.
    fn partitions(&self) -> u16;

    /// The rows of a view of the state of the process, as of now, each with a value for each of its columns; bounded in number.
    ///
    /// # Errors
    /// When nodes of the process cannot be asked.
    fn state(&self, view: StateView) -> Result<Vec<Vec<Datum>>, Error>;

    /// The numbers of all sessions of the process.
    fn processes(&self) -> Vec<i32>;

    /// Does something to the session with a number, if it is still there.
    fn signal(&self, process: i32, signal: Signal);

    /// Does something to the advisory locks of the session; see [`AdvisoryAct`]. All are given back when this is dropped.
    ///
    /// # Errors
    /// When the statement is to end while it waits, or when there are no such locks.
    fn advisory(&self, act: AdvisoryAct) -> Result<bool, SqlError> {
        let _none = act;
        Err(SqlError::unsupported("an advisory lock outside of a server"))
    }

    /// Says that rows have become garbage, which is to be deleted by and by: see
    /// [`Definition::Garbage`](crate::catalog::Definition::Garbage).
    fn sweep(&self);
}

/// A snapshot.
pub trait View: Send {
    /// The row of a key.
    ///
    /// # Errors
    /// As the database says.
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        let mut found = None;
        self.scan(&KeyRange::one(key.bytes()), Direction::Ascending, 1, &mut |_, row| {
            found = Some(Bytes::copy_from_slice(row));
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The rows of some keys, in their order. Whoever is far away asks for all of them at once.
    ///
    /// # Errors
    /// As the database says.
    fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Visits the rows of a range that come first in a direction, at most `limit`, over all partitions, in the order of their keys, until
    /// the visitor breaks.
    ///
    /// # Errors
    /// As the database says.
    #[expect(clippy::type_complexity, reason = "a name would say less")]
    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error>;
}

/// All definitions that a snapshot sees.
///
/// # Errors
/// As the database says, or when a row is no definition.
pub fn definitions(view: &dyn View, storages: &Storages) -> Result<Catalog, Error> {
    let (mut catalog, mut taken) = (Catalog::new(), Ok(()));
    view.scan(&storages.definitions.all(), Direction::Ascending, usize::MAX, &mut |key, row| {
        taken = take_definition(&mut catalog, storages, key, row);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    taken.map(|()| catalog)
}

/// Takes a row of the table of definitions.
///
/// # Errors
/// When it is none.
pub fn take_definition(
    catalog: &mut Catalog,
    storages: &Storages,
    key: &[u8],
    row: &[u8],
) -> Result<(), Error> {
    let table = &storages.definitions;
    let definition = table.read(row).byte_string(DEFINITION_COLUMN)?;
    if let [KeyValue::Text(schema), KeyValue::Text(name)] = table.key_values(key)?.as_slice() {
        let inserted = catalog.insert(schema, name, definition);
        inserted.map_err(|error| Error::Unavailable(error.to_string()))?;
    }
    Ok(())
}

/// What a statement without tables sees.
pub(super) struct NoRows;

impl View for NoRows {
    fn scan(
        &self,
        _: &KeyRange,
        _: Direction,
        _: usize,
        _: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// The error of a time from before anything was kept; `oldest` is when the oldest state that there is was complete.
pub fn not_kept(oldest: Option<i64>) -> SqlError {
    let Some(oldest) = oldest else {
        let message = "no history is kept: AS OF has nothing to read";
        return SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_hint("Start the server with --sql-history-seconds.");
    };
    let mut written = Vec::new();
    text::format(&Datum::Timestamp(oldest), SqlType::TIMESTAMPTZ, Zone::Utc, &mut written);
    let message = format!("the past is kept from {} on", String::from_utf8_lossy(&written));
    SqlError::new(SqlState::SNAPSHOT_TOO_OLD, message)
}

/// What an error of the database is to a client.
pub(super) fn of_database(error: Error) -> SqlError {
    match error {
        Error::Aborted(reason) => decode_error(&reason),
        Error::Exceeds(Limit::Writes, reason) => {
            of_limit(&reason).with_hint("Do it in parts. COPY into a table without rows has no such limit.")
        }
        Error::Invalid(reason) | Error::Exceeds(_, reason) => of_limit(&reason),
        Error::Busy(reason) => {
            SqlError::new(SqlState::INSUFFICIENT_RESOURCES, reason).with_hint("Wait, and try again.")
        }
        Error::Contended => {
            let message = "the rows that the statement needs changed each time before it could run";
            SqlError::new(SqlState::SERIALIZATION_FAILURE, message).with_hint("Run it again.")
        }
        Error::NotOpen(_) => {
            let message = "the snapshot is not open any more: the process through which it was opened has ended, or was not heard of for long";
            SqlError::new(SqlState::SNAPSHOT_TOO_OLD, message).with_hint("Begin the transaction again.")
        }
        Error::Acknowledged(_) => SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()),
        Error::Unavailable(reason) => SqlError::new(SqlState::STATEMENT_COMPLETION_UNKNOWN, reason),
    }
}

/// What the database takes no call for. Of which procedure it is, only programs ask.
fn of_limit(reason: &str) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, reason.strip_prefix("sql: ").unwrap_or(reason))
}

/// What an error of a call is to a client: one that was not taken has no effect, and one that was may have.
pub(super) fn of_call(error: Error, interrupt: &Interrupt) -> SqlError {
    match error {
        Error::Busy(_) if interrupt.is_set() => interrupt.error().unwrap_or_else(|| of_database(error)),
        Error::Unavailable(_) if interrupt.is_timed_out() => {
            let message = "statement timeout while waiting for a place in the order";
            SqlError::new(SqlState::STATEMENT_COMPLETION_UNKNOWN, message)
                .with_detail("The statement has been sent, is not taken back, and may yet take effect.")
                .with_hint("Find out whether it has before you run it again.")
        }
        error => of_database(error),
    }
}

/// What an error of something that only reads is to a client: it has no effect, whenever it ends.
pub(super) fn of_read(error: Error, interrupt: &Interrupt) -> SqlError {
    match error {
        Error::Busy(_) => interrupt.error().unwrap_or_else(|| of_database(error)),
        Error::Unavailable(_) => interrupt.error().unwrap_or_else(|| {
            let message = "the database does not answer: a partition has no majority of its replicas, or is not reached";
            SqlError::new(SqlState::CANNOT_CONNECT_NOW, message).with_hint("Wait, and try again.")
        }),
        error => of_database(error),
    }
}
