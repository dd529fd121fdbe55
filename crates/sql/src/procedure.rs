//! The one procedure that SQL needs of the database: it runs statements, one after the other, as one ordered transaction.
//!
//! A single statement is sent as it is. A block is sent when it commits: all of its statements, with digests of what the client was
//! shown of each. They run again at the block's place in the order, and the block commits if they show the same; else the client has
//! seen a state that is not the one its writes would follow, and gets a serialization failure (DESIGN: interactive transactions commit
//! by certification). So certified is what the client knows, and not what was read to find that out: `UPDATE t SET x = x + 1` shows the
//! number of rows only, and never conflicts with another one of the same row.

use ordain_db::data::DataError;
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use crate::error::{SqlError, SqlState, Subject};
use crate::execute::declare::declare;
use crate::execute::{Failure, Inputs, Output, Patience, Run};
use crate::keys::Storages;
use crate::plan::Plan;

/// The name under which the procedure is registered.
pub const NAME: &str = "sql";

/// A statement of a transaction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What it does.
    pub plan: Plan,
    /// With what.
    pub inputs: Inputs,
    /// The [`digest`] of what the client was shown, if it was shown anything.
    pub shown: Option<u64>,
}

/// The digest of what a client is shown of a statement.
pub fn digest(output: &Output) -> u64 {
    let mut bytes = output.written.to_le_bytes().to_vec();
    for row in &output.rows {
        bytes.extend_from_slice(&(row.len() as u64).to_le_bytes());
        bytes.extend_from_slice(row);
    }
    ordain_db::hash::key_hash(&bytes)
}

/// See the [module](self).
pub struct SqlProcedure {
    storages: Storages,
}

impl SqlProcedure {
    /// The procedure over the tables of a schema.
    pub fn new(storages: Storages) -> SqlProcedure {
        SqlProcedure { storages }
    }
}

impl Procedure for SqlProcedure {
    type Arguments = Vec<Step>;
    type Output = Output;

    fn name(&self) -> &str {
        NAME
    }

    fn declare(&self, steps: &Vec<Step>, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for step in steps {
            if declare(&step.plan, &step.inputs, &self.storages, footprint).is_none() {
                return Ok(Declared::Unknown);
            }
        }
        Ok(Declared::Complete)
    }

    fn run(&self, steps: &Vec<Step>, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let mut last = Output::default();
        let mut deferred = Vec::new();
        for step in steps {
            let pending;
            (last, pending) =
                Run::run(transaction, &self.storages, &step.plan, &step.inputs, None, Patience::Limited)
                    .map_err(stop)?;
            deferred.push(pending);
            if step.shown.is_some_and(|shown| shown != digest(&last)) {
                return Err(stop(Failure::Sql(changed())));
            }
        }
        for (step, pending) in steps.iter().zip(deferred) {
            Run::settle(transaction, &self.storages, &step.plan, &step.inputs, pending).map_err(stop)?;
        }
        // What a block did was shown already.
        if steps.iter().any(|step| step.shown.is_some()) { Ok(Output::default()) } else { Ok(last) }
    }
}

/// The arguments of a call.
///
/// # Errors
/// When they are too long.
pub fn encode_steps(steps: &[Step]) -> Result<Vec<u8>, SqlError> {
    let bytes = postcard::to_allocvec(steps).map_err(|error| {
        SqlError::new(SqlState::INTERNAL_ERROR, format!("a statement cannot be sent: {error}"))
    })?;
    if bytes.len() > ordain_db::limits::ARGUMENTS_BYTES_MAX {
        return Err(too_much());
    }
    Ok(bytes)
}

/// The error of a transaction whose statements are too long together.
pub fn too_much() -> SqlError {
    let limit = ordain_db::limits::ARGUMENTS_BYTES_MAX >> 20;
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("the statements of the transaction are more than {limit} MiB"),
    )
    .with_hint("Split it. COPY into a table that the same block has created or truncated has no such limit.")
}

fn stop(failure: Failure) -> Stop {
    match failure {
        Failure::Stop(stop) => stop,
        Failure::Sql(error) => Stop::abort(encode(&error)),
    }
}

fn changed() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access: what the transaction was shown has changed",
    )
    .with_hint("Run the transaction again. A single statement never fails so.")
}

/// Between the parts of an error in the reason of an abort.
const SEPARATOR: char = '\u{1f}';

/// An error as the reason of an abort.
fn encode(error: &SqlError) -> String {
    let subject = error.subject.as_deref().cloned().unwrap_or_default();
    let parts = [
        error.state.as_str(),
        &error.message,
        error.detail.as_deref().unwrap_or_default(),
        error.hint.as_deref().unwrap_or_default(),
        &subject.table,
        &subject.column,
        &subject.constraint,
    ];
    parts.map(|part| part.replace(SEPARATOR, " ")).join(&SEPARATOR.to_string())
}

/// The error that a reason of an abort stands for.
pub fn decode_error(reason: &str) -> SqlError {
    let mut parts = reason.split(SEPARATOR);
    let state = parts.next().and_then(|state| <[u8; 5]>::try_from(state.as_bytes()).ok());
    let (Some(state), Some(message)) = (state, parts.next()) else {
        return SqlError::new(SqlState::INTERNAL_ERROR, reason);
    };
    let mut part = || parts.next().filter(|part| !part.is_empty()).map(str::to_owned);
    let (detail, hint) = (part(), part());
    let subject = part().map(|table| {
        let (column, constraint) = (part().unwrap_or_default(), part().unwrap_or_default());
        Box::new(Subject { table, column, constraint })
    });
    SqlError { state: SqlState(state), message: message.to_owned(), detail, hint, position: None, subject }
}
