//! The one procedure that SQL needs of the database: it runs statements, one after the other, as one ordered transaction.
//!
//! A single statement is sent as it is. A block is sent when it commits: all of its statements, with digests of what the client was
//! shown of each. They run again at the block's place in the order, and the block commits if they show the same; else the client has
//! seen a state that is not the one its writes would follow, and gets a serialization failure (DESIGN: interactive transactions commit
//! by certification). So certified is what the client knows, and not what was read to find that out: `UPDATE t SET x = x + 1` shows the
//! number of rows only, and never conflicts with another one of the same row. What a client was shown before it went back to a savepoint, an
//! error included, it knows as well: such statements run again, too, and what they write is taken back. Rows must come in the same order, unless
//! it is [nothing](Plan::part_in_any_order) to the statement.

use std::cell::Cell;
use std::marker::PhantomData;

use ordain_db::data::DataError;
use ordain_db::failpoint::{Failpoint, Failpoints, NoFailpoints};
use ordain_db::hash::FastMap;
use ordain_db::procedure::overlay::Written;
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use smallvec::SmallVec;

use crate::error::{SqlError, SqlState, Subject};
use crate::execute::declare::{declare, declare_reliances};
use crate::execute::receive::{Collected, Digesting, Receive, Unseen};
use crate::execute::{Failure, Inputs, Output, Patience, Pending, Run, WORK_AHEAD_MAX, WORK_MAX};
use crate::keys::Storages;
use crate::plan::{Action, FORM, IndexState, Plan, SharedPlan, other_form};

/// The name under which the procedure is registered.
pub const NAME: &str = "sql";

/// A statement of a transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What it does.
    pub plan: SharedPlan,
    /// With what.
    pub inputs: Inputs,
    /// What the client was shown, if it was shown anything.
    pub shown: Option<Shown>,
}

/// What a client was shown of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Shown {
    /// A result with this [`digest`](Digesting::finish).
    Output(u64),
    /// An error with this [`digest`](Digesting::finish_with).
    Error(u64),
}

/// Steps that a block has gone back from to a savepoint: they show what they showed, and what they write is gone after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Undone {
    /// The number of the first.
    pub first: u32,
    /// The number of the one after the last.
    pub end: u32,
}

/// The version of the form of what follows; another one is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Form;

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FORM.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Form, D::Error> {
        match u8::deserialize(deserializer)? {
            FORM => Ok(Form),
            form => Err(de::Error::custom(other_form(form))),
        }
    }
}

/// The statements of a transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    /// One after the other.
    pub steps: SmallVec<[Step; 1]>,
    /// Which of them are undone: such parts come one after the other, or one within another.
    pub undone: Vec<Undone>,
}

impl From<Step> for Steps {
    fn from(step: Step) -> Steps {
        Steps { steps: SmallVec::from([step]), undone: Vec::new() }
    }
}

/// Steps are kept with each plan once: a block has many with the same.
impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.steps, &self.undone, serializer)
    }
}

fn serialize<S: Serializer>(steps: &[Step], undone: &[Undone], serializer: S) -> Result<S::Ok, S::Error> {
    let (mut plans, mut kept) = (SmallVec::<[&SharedPlan; 1]>::new(), SmallVec::<[_; 1]>::new());
    let mut numbers = FastMap::default();
    for Step { plan, inputs, shown } in steps {
        let next = plans.len() as u32;
        let number = match steps.len() {
            1 => next,
            _ => *numbers.entry(plan.encoded().map_err(ser::Error::custom)?).or_insert(next),
        };
        if number == next {
            plans.push(plan);
        }
        kept.push((number, inputs, shown));
    }
    (Form, plans, kept, undone).serialize(serializer)
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Steps, D::Error> {
        type Plans = SmallVec<[SharedPlan; 1]>;
        type Kept = SmallVec<[(u32, Inputs, Option<Shown>); 1]>;
        let (Form, plans, kept, undone) = <(Form, Plans, Kept, Vec<Undone>)>::deserialize(deserializer)?;
        let step = |(number, inputs, shown)| {
            let plan =
                plans.get(number as usize).cloned().ok_or_else(|| de::Error::custom("no such plan"))?;
            Ok(Step { plan, inputs, shown })
        };
        Ok(Steps { steps: kept.into_iter().map(step).collect::<Result<_, D::Error>>()?, undone })
    }
}

/// Steps that are lent, as [`Steps`] are kept.
struct Lent<'s>(&'s [Step], &'s [Undone]);

impl Serialize for Lent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, self.1, serializer)
    }
}

/// Whether an error tells of the rows that a statement has met, so that whoever was shown it knows something of them. Others tell of how far
/// the database has come with the statement.
pub fn depends_on_rows(error: &SqlError) -> bool {
    let other = [
        SqlState::SERIALIZATION_FAILURE,
        SqlState::QUERY_CANCELED,
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        SqlState::INTERNAL_ERROR,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // Class 57 is about the server, 08 about the way to it, 53 about its resources.
    !other.contains(&error.state) && ![*b"57", *b"08", *b"53"].contains(&[error.state.0[0], error.state.0[1]])
}

/// See the [module](self).
pub struct SqlProcedure<F = NoFailpoints> {
    storages: Storages,
    mistakes: PhantomData<fn() -> F>,
}

impl SqlProcedure {
    /// The procedure over the tables of a schema.
    pub fn new(storages: Storages) -> SqlProcedure {
        SqlProcedure::with(storages)
    }
}

impl<F: Failpoints> SqlProcedure<F> {
    /// The same with mistakes: for the simulator.
    pub fn with(storages: Storages) -> SqlProcedure<F> {
        SqlProcedure { storages, mistakes: PhantomData }
    }
}

impl<F: Failpoints> Procedure for SqlProcedure<F> {
    type Arguments = Steps;
    type Output = Output;

    fn name(&self) -> &str {
        NAME
    }

    fn declare(&self, steps: &Steps, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for step in &steps.steps {
            if declare(&step.plan, &step.inputs, &self.storages, footprint).is_none() {
                return Ok(Declared::Unknown);
            }
        }
        Ok(Declared::Complete)
    }

    /// Errors end a statement and not the run, whose work is limited.
    fn runs_past_gaps(&self) -> bool {
        true
    }

    fn run(&self, steps: &Steps, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let Steps { steps, undone, .. } = steps;
        transaction.declare_next(|declaration| {
            steps.iter().try_for_each(|step| declare_reliances(&step.plan, &self.storages, declaration))
        })?;
        let left = Cell::new(if transaction.is_past_gaps() { WORK_AHEAD_MAX } else { WORK_MAX });
        let patience = Patience::Limited(&left);
        let (mut last, mut deferred) = (Output::default(), Vec::<(&Step, Vec<Pending>)>::new());
        // What the parts that are undone have written by now, and had written when each of those began that have not ended.
        let (mut written, mut before) = (Written::new(), Vec::new());
        for (number, step) in (0..).zip(steps) {
            let begin = undone.iter().filter(|part| part.first == number && part.first < part.end);
            before.extend(begin.map(|_| (written.clone(), deferred.len())));
            let (output, pending) = if before.is_empty() {
                self.step((number, step), &deferred, patience, transaction)?
            } else {
                transaction.over(&mut written, |transaction| {
                    self.step((number, step), &deferred, patience, transaction)
                })?
            };
            last = output;
            if !pending.is_empty() {
                deferred.push((step, pending));
            }
            for _ in undone.iter().filter(|part| part.end == number + 1 && part.first < part.end) {
                let left = before.pop().ok_or_else(|| Stop::Invalid("parts are undone across".to_owned()))?;
                deferred.truncate(left.1);
                written = left.0;
            }
        }
        for (step, pending) in deferred {
            Run::settle(transaction, &self.storages, &step.plan, &step.inputs, patience, pending)
                .map_err(stop)?;
        }
        // What a block did was shown already.
        if steps.iter().any(|step| step.shown.is_some()) { Ok(Output::default()) } else { Ok(last) }
    }
}

impl<F: Failpoints> SqlProcedure<F> {
    /// Runs a statement, which must show what it has shown. `deferred` is what the ones before have left for the end.
    fn step(
        &self,
        (number, step): (u32, &Step),
        deferred: &[(&Step, Vec<Pending>)],
        patience: Patience<'_>,
        transaction: &mut Transaction<'_>,
    ) -> Result<(Output, Vec<Pending>), Stop> {
        let Step { plan, inputs, shown } = step;
        let forgetful = F::on(Failpoint::ForgetBuildingIndex).then(|| without_building(plan));
        let plan = forgetful.as_ref().unwrap_or(plan);
        let mut rows = Collected::default();
        let mut nobody = Unseen;
        let mut unseen = Digesting::new(&mut nobody, inputs, true);
        let receiver: &mut dyn Receive = if shown.is_some() { &mut unseen } else { &mut rows };
        let outcome = match &plan.action {
            Action::Settle { constraints } => self.settle(constraints, deferred, patience, transaction),
            _ => Run::run(transaction, &self.storages, plan, inputs, None, patience, receiver),
        };
        if transaction.is_past_gaps() && !matches!(outcome, Err(Failure::Stop(_))) {
            // What the statements after it read does not depend on it for the most part.
            return Ok(outcome.unwrap_or_default());
        }
        let Some(shown) = *shown else {
            return outcome.map(|(output, pending)| (rows.complete(output), pending)).map_err(stop);
        };
        let (now, rows) = match &outcome {
            Ok((output, _)) => {
                let digest = unseen.finish(output);
                (Shown::Output(digest.value_of(plan)), digest.rows())
            }
            Err(Failure::Sql(error)) if depends_on_rows(error) => {
                (Shown::Error(unseen.finish_with(error)), 0)
            }
            Err(_) => return outcome.map_err(stop),
        };
        let skips = F::on(Failpoint::SkipCertification) && outcome.is_ok();
        if now == shown || skips {
            return Ok(outcome.unwrap_or_default());
        }
        let error = changed().with_detail(difference(number, step, &outcome, rows));
        Err(stop(Failure::Sql(error)))
    }

    /// Checks what statements have left of these foreign keys.
    fn settle(
        &self,
        constraints: &[(u32, String)],
        deferred: &[(&Step, Vec<Pending>)],
        patience: Patience<'_>,
        transaction: &mut Transaction<'_>,
    ) -> Result<(Output, Vec<Pending>), Failure> {
        for (Step { plan, inputs, .. }, pending) in deferred {
            let due = pending.iter().filter(|pending| pending.is_of(plan, constraints)).cloned().collect();
            Run::settle(transaction, &self.storages, plan, inputs, patience, due)?;
        }
        Ok((Output::default(), Vec::new()))
    }
}

/// Most tables that are named in an error.
const NAMED_TABLES_MAX: usize = 4;

/// Longest part of another error that is told, in bytes.
const TOLD_ERROR_BYTES: usize = 200;

/// What a statement shows at its place in the order, where it shows something else than before. Of that only a digest is there.
fn difference(
    number: u32,
    step: &Step,
    outcome: &Result<(Output, Vec<Pending>), Failure>,
    rows: u64,
) -> String {
    let tables: Vec<&str> = step.plan.tables.iter().map(|shape| shape.name.as_str()).collect();
    let more = if tables.len() > NAMED_TABLES_MAX { ", …" } else { "" };
    let named = tables[..tables.len().min(NAMED_TABLES_MAX)].join(", ");
    let of = if named.is_empty() { String::new() } else { format!(", which is about {named}{more},") };
    let before = if matches!(step.shown, Some(Shown::Error(_))) { "an error" } else { "something else" };
    let now = match outcome {
        Ok(_) if matches!(step.plan.action, Action::Query(_)) => match rows {
            1 => "gives 1 row".to_owned(),
            rows => format!("gives {rows} rows"),
        },
        Ok(_) if matches!(step.plan.action, Action::Settle { .. }) => "passes".to_owned(),
        Ok((output, _)) => match output.written {
            1 => "writes 1 row".to_owned(),
            rows => format!("writes {rows} rows"),
        },
        Err(Failure::Sql(error)) => {
            format!("fails: {}", &error.message[..error.message.floor_char_boundary(TOLD_ERROR_BYTES)])
        }
        Err(Failure::Stop(_)) => "is stopped".to_owned(),
    };
    let number = number + 1;
    format!(
        "Statement {number} of the transaction{of} showed {before} before; at its place in the order it {now}."
    )
}

/// A plan that overlooks indexes which are being built.
fn without_building(plan: &SharedPlan) -> SharedPlan {
    if !matches!(plan.action, Action::Insert { .. } | Action::Update { .. } | Action::Delete { .. }) {
        return plan.clone();
    }
    let mut plan = Plan::clone(plan);
    for table in &mut plan.tables {
        // Plans name indexes by their numbers, so that only the last ones can be left out.
        while table.indexes.pop_if(|index| index.state == IndexState::Building).is_some() {}
    }
    plan.into()
}

/// Bytes that one short statement has when it is encoded, or a few more.
const STEPS_BYTES: usize = 512;

/// The arguments of a call.
///
/// # Errors
/// When they are too long.
pub fn encode_steps(steps: &[Step], undone: &[Undone]) -> Result<Vec<u8>, SqlError> {
    let bytes =
        postcard::to_extend(&Lent(steps, undone), Vec::with_capacity(STEPS_BYTES)).map_err(|error| {
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
    .with_hint("Split it. COPY into a table without rows has no such limit.")
}

fn stop(failure: Failure) -> Stop {
    match failure {
        Failure::Stop(stop) => stop,
        Failure::Sql(error) => Stop::abort(encode_error(&error)),
    }
}

fn changed() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access: what the transaction was shown has changed",
    )
    .with_hint("Run the transaction again. A statement by itself is tried again by the server.")
}

/// What the second part of the reason is if the error is of definitions that have changed.
const STALE: &str = "stale";

/// Between the parts of an error in the reason of an abort.
const SEPARATOR: char = '\u{1f}';

/// An error as the reason of an abort.
pub(crate) fn encode_error(error: &SqlError) -> String {
    let subject = error.subject.as_deref().cloned().unwrap_or_default();
    // A reason that is too long is cut: what has values in it comes last.
    let parts = [
        error.state.as_str(),
        if error.is_stale { STALE } else { "" },
        &subject.table,
        &subject.column,
        &subject.constraint,
        error.hint.as_deref().unwrap_or_default(),
        &error.message,
        error.detail.as_deref().unwrap_or_default(),
    ];
    parts.map(|part| part.replace(SEPARATOR, " ")).join(&SEPARATOR.to_string())
}

/// The error that a reason of an abort stands for.
pub fn decode_error(reason: &str) -> SqlError {
    let parts: Vec<&str> = reason.split(SEPARATOR).collect();
    let [state, stale, table, column, constraint, hint, message, detail @ ..] = parts.as_slice() else {
        return SqlError::new(SqlState::INTERNAL_ERROR, reason);
    };
    let Ok(state) = <[u8; 5]>::try_from(state.as_bytes()) else {
        return SqlError::new(SqlState::INTERNAL_ERROR, reason);
    };
    let given = |part: &str| Some(part.to_owned()).filter(|part| !part.is_empty());
    let (detail, hint) = (detail.first().and_then(|detail| given(detail)), given(hint));
    let subject = given(table).map(|table| {
        let (column, constraint) = ((*column).to_owned(), (*constraint).to_owned());
        Box::new(Subject { table, column, constraint, ..Subject::default() })
    });
    let is_stale = *stale == STALE;
    SqlError { detail, hint, subject, is_stale, ..SqlError::new(SqlState(state), *message) }
}
