//! What a statement asks its session before it runs: numbers that were drawn from sequences, settings, the time.
//!
//! A plan knows no session. The answers go into its inputs, so that it gives the same wherever it runs, and in a block the same again
//! at the block's end.

use sqlparser::ast::TableAlias;

use super::Binder;
use super::expression::{constant, text_constant};
use super::from::aliased;
use super::scope::{Bound, Field, Relation};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, List, Node};
use crate::state::{Signal, StateView};
use crate::types::{Datum, SqlType};

/// A question of a statement. What it names must not depend on rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Question {
    /// The number that the session has drawn last from a sequence.
    CurrentValue {
        /// Where the sequence is.
        storage: u32,
        /// Its name, for errors.
        name: String,
    },
    /// The number that the session has drawn last from any sequence.
    LastValue,
    /// The value of a parameter of the session.
    Setting {
        /// Its name.
        name: Expression,
        /// Whether null is an answer if there is no such parameter.
        missing_ok: Expression,
    },
    /// Sets a parameter of the session; its new value.
    ChangeSetting {
        /// Its name.
        name: Expression,
        /// The value.
        value: Expression,
        /// Whether it lasts until the end of the transaction.
        local: Expression,
    },
    /// The number by which statements of the session are cancelled.
    Process,
    /// The time at which the statement came.
    Time,
    /// Waits for some seconds before the statement runs.
    Pause(Expression),
    /// The rows of a view of the state of the process: an array of them.
    State(StateView),
    /// The numbers of all sessions of the process: an array.
    Processes,
    /// Takes an advisory lock, or gives it back; what the function says.
    Advisory {
        /// What is done.
        function: AdvisoryFunction,
        /// The number that is locked, or the two; none if it is about all.
        key: Vec<Expression>,
    },
}

/// What is done with an advisory lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdvisoryFunction {
    /// Whether it is taken.
    pub takes: bool,
    /// Whether it may have to be waited for.
    pub waits: bool,
    /// Whether it may be shared.
    pub shared: bool,
    /// Whether it goes with the transaction.
    pub in_transaction: bool,
}

impl AdvisoryFunction {
    /// The function with a name, if it is one.
    fn named(name: &str) -> Option<AdvisoryFunction> {
        let of = |takes, waits, shared, in_transaction| {
            Some(AdvisoryFunction { takes, waits, shared, in_transaction })
        };
        match name {
            "pg_advisory_lock" => of(true, true, false, false),
            "pg_advisory_lock_shared" => of(true, true, true, false),
            "pg_try_advisory_lock" => of(true, false, false, false),
            "pg_try_advisory_lock_shared" => of(true, false, true, false),
            "pg_advisory_xact_lock" => of(true, true, false, true),
            "pg_advisory_xact_lock_shared" => of(true, true, true, true),
            "pg_try_advisory_xact_lock" => of(true, false, false, true),
            "pg_try_advisory_xact_lock_shared" => of(true, false, true, true),
            "pg_advisory_unlock" => of(false, false, false, false),
            "pg_advisory_unlock_shared" => of(false, false, true, false),
            "pg_advisory_unlock_all" => of(false, true, false, false),
            _ => None,
        }
    }
}

impl Binder<'_> {
    /// Notes that the statement draws from a sequence, or sets it.
    pub(super) fn draws(&mut self, sequence: u16) {
        self.drawn.push(self.sequences[usize::from(sequence)].storage);
    }

    /// Refuses to tell, in one statement, which number it draws itself: what it asks is answered before.
    pub(super) fn refuse_own_numbers(&self) -> Result<(), SqlError> {
        for question in &self.questions {
            let function = match question {
                Question::CurrentValue { storage, .. } if self.drawn.contains(storage) => "currval",
                Question::LastValue if !self.drawn.is_empty() => "lastval",
                _ => continue,
            };
            return Err(SqlError::unsupported(format!(
                "{function} of a number that the same statement draws"
            ))
            .with_hint("Ask in a statement of its own, or use RETURNING."));
        }
        Ok(())
    }

    /// A function whose value the session knows, by its name; `None` for any other.
    pub(super) fn session_function(
        &mut self,
        name: &str,
        arguments: &[Bound],
    ) -> Result<Option<Bound>, SqlError> {
        let taken = |count: std::ops::RangeInclusive<usize>| {
            if count.contains(&arguments.len()) {
                return Ok(());
            }
            let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
            Err(crate::types::functions::undefined(name, &types))
        };
        if let Some(function) = AdvisoryFunction::named(name) {
            let is_all = !function.takes && function.waits;
            taken(if is_all { 0..=0 } else { 1..=2 })?;
            return self.advisory(function, arguments).map(Some);
        }
        let no = || constant(Datum::Bool(false), SqlType::BOOL);
        let argument = |place: usize| arguments.get(place).cloned().unwrap_or_else(no);
        let (question, data_type) = match name {
            "lastval" => (taken(0..=0).map(|()| Question::LastValue)?, SqlType::INT8),
            "pg_backend_pid" => (taken(0..=0).map(|()| Question::Process)?, SqlType::INT4),
            "statement_timestamp" | "clock_timestamp" => {
                (taken(0..=0).map(|()| Question::Time)?, SqlType::TIMESTAMPTZ)
            }
            "timeofday" => {
                taken(0..=0)?;
                let time = self.asked(Question::Time, SqlType::TIMESTAMPTZ)?;
                let form = text_constant("Dy Mon DD HH24:MI:SS.US YYYY TZ");
                return self.call("to_char", vec![time, form]).map(Some);
            }
            "current_setting" => {
                taken(1..=2)?;
                let name = self.argument(argument(0), SqlType::TEXT)?;
                let missing_ok = self.argument(argument(1), SqlType::BOOL)?;
                (Question::Setting { name, missing_ok }, SqlType::TEXT)
            }
            "set_config" => {
                taken(3..=3)?;
                let name = self.argument(argument(0), SqlType::TEXT)?;
                let value = self.argument(argument(1), SqlType::TEXT)?;
                let local = self.argument(argument(2), SqlType::BOOL)?;
                (Question::ChangeSetting { name, value, local }, SqlType::TEXT)
            }
            "pg_sleep" => {
                taken(1..=1)?;
                (Question::Pause(self.argument(argument(0), SqlType::FLOAT8)?), SqlType::TEXT)
            }
            "pg_cancel_backend" => {
                taken(1..=1)?;
                return self.signal(argument(0), Signal::Cancel).map(Some);
            }
            "pg_terminate_backend" => {
                // The time for which PostgreSQL would wait for the end.
                taken(1..=2)?;
                return self.signal(argument(0), Signal::Terminate).map(Some);
            }
            "txid_current" | "pg_current_xact_id" => {
                return Err(SqlError::unsupported(format!("{name}()"))
                    .with_hint("A transaction has no number until it has its place in the order."));
            }
            _ => return Ok(None),
        };
        self.asked(question, data_type).map(Some)
    }

    /// Each call is one of its own: a lock can be taken several times.
    fn advisory(&mut self, function: AdvisoryFunction, arguments: &[Bound]) -> Result<Bound, SqlError> {
        let data_type = if arguments.len() == 1 { SqlType::INT8 } else { SqlType::INT4 };
        let mut key = Vec::with_capacity(arguments.len());
        for argument in arguments {
            key.push(self.argument(argument.clone(), data_type)?);
        }
        // PostgreSQL gives a value of the type `void` where there is nothing to tell, which is shown as an empty text.
        let data_type = if function.waits { SqlType::TEXT } else { SqlType::BOOL };
        self.asked_anew(Question::Advisory { function, key }, data_type)
    }

    /// What a session does to another one, if there is one with the number.
    fn signal(&mut self, process: Bound, signal: Signal) -> Result<Bound, SqlError> {
        let process = Box::new(self.argument(process, SqlType::INT4)?);
        let processes = Box::new(self.asked(Question::Processes, SqlType::INT4.array_of())?.expression);
        let expression = Expression::Signal { process, processes, signal };
        Ok(Bound { expression, data_type: SqlType::BOOL })
    }

    /// A view of the state of the process, as a relation.
    pub(super) fn state_view(
        &mut self,
        view: StateView,
        name: String,
        alias: Option<&TableAlias>,
    ) -> Result<(Node, Relation), SqlError> {
        // The type stands for rows, which have none of their own.
        let array = self.asked(Question::State(view), SqlType::TEXT.array_of())?.expression;
        let columns = view.columns();
        let fields = columns.iter().map(|(name, data_type)| Field {
            name: (*name).to_owned(),
            data_type: *data_type,
            origin: None,
            hidden: false,
        });
        let lists = vec![List { array, width: columns.len() as u16 }];
        Ok((Node::Unnest { lists, ordinality: false }, aliased(name, fields.collect(), alias)?))
    }

    /// Adds a question to the statement; its answer.
    pub(super) fn asked(&mut self, question: Question, data_type: SqlType) -> Result<Bound, SqlError> {
        match self.questions.iter().position(|known| *known == question) {
            Some(place) => answer(place, data_type),
            None => self.asked_anew(question, data_type),
        }
    }

    fn asked_anew(&mut self, question: Question, data_type: SqlType) -> Result<Bound, SqlError> {
        self.questions.push(question);
        answer(self.questions.len() - 1, data_type)
    }
}

fn answer(place: usize, data_type: SqlType) -> Result<Bound, SqlError> {
    let place = u16::try_from(place)
        .map_err(|_| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many functions of the session"))?;
    Ok(Bound { expression: Expression::Answer(place), data_type })
}
