//! Answers to what statements ask their session; see [`Question`].

use super::Session;
use super::database::of_database;
use super::past::PARAMETER;
use crate::advisory::{AdvisoryAct, AdvisoryKey, AdvisoryLock};
use crate::bind::{AdvisoryFunction, Question};
use crate::error::{SqlError, SqlState};
use crate::execute::{Inputs, evaluate};
use crate::plan::Expression;
use crate::state::StateView;
use crate::types::Datum;

/// Longest time that a statement waits by itself, in seconds: as long as any.
const PAUSE_SECONDS_MAX: f64 = 1e9;

impl Session {
    /// Answers the questions of a statement, in their order, with the values of its parameters.
    pub(super) fn answers(
        &mut self,
        questions: &[Question],
        parameters: &[Datum],
    ) -> Result<Vec<Datum>, SqlError> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let zone = self.surroundings.zone;
        let inputs = Inputs { parameters: parameters.into(), zone, ..Inputs::default() };
        questions.iter().map(|question| self.answer_to(question, &inputs)).collect()
    }

    /// The same again for a statement that was planned anew: what was done to advisory locks is not done twice.
    pub(super) fn answers_again(
        &mut self,
        questions: &[Question],
        parameters: &[Datum],
        before: Vec<Datum>,
    ) -> Result<Vec<Datum>, SqlError> {
        let is_act = |question: &Question| matches!(question, Question::Advisory { .. });
        if before.len() != questions.len() || !questions.iter().any(is_act) {
            return self.answers(questions, parameters);
        }
        let inputs =
            Inputs { parameters: parameters.into(), zone: self.surroundings.zone, ..Inputs::default() };
        let answers = questions.iter().zip(before).map(|(question, before)| {
            if is_act(question) { Ok(before) } else { self.answer_to(question, &inputs) }
        });
        answers.collect()
    }

    fn answer_to(&mut self, question: &Question, inputs: &Inputs) -> Result<Datum, SqlError> {
        let value_of = |expression: &Expression| {
            evaluate(expression, inputs).ok_or_else(|| {
                SqlError::unsupported("a function of the session with an argument that depends on rows")
            })
        };
        let text = |expression: &Expression| match value_of(expression)? {
            Datum::Text(text) => Ok(Some(text)),
            _ => Ok(None),
        };
        match question {
            Question::CurrentValue { storage, name } => match self.drawn.get(storage) {
                Some(value) => Ok(Datum::Int(*value)),
                None => {
                    let message =
                        format!("currval of sequence \"{name}\" is not yet defined in this session");
                    Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
                }
            },
            Question::LastValue => {
                let last = self.last_drawn.and_then(|storage| self.drawn.get(&storage));
                last.map(|value| Datum::Int(*value)).ok_or_else(|| {
                    let message = "lastval is not yet defined in this session";
                    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                })
            }
            Question::Setting { name, missing_ok } => {
                let Some(name) = text(name)? else { return Ok(Datum::Null) };
                match self.setting(&name) {
                    Ok(value) => Ok(Datum::Text(value.to_owned())),
                    Err(_) if value_of(missing_ok)? == Datum::Bool(true) => Ok(Datum::Null),
                    Err(error) => Err(error),
                }
            }
            Question::ChangeSetting { name, value, local } => {
                let local = value_of(local)? == Datum::Bool(true);
                let Some(name) = text(name)? else {
                    let message = "SET requires parameter name";
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                };
                if name.eq_ignore_ascii_case(PARAMETER) {
                    return Err(SqlError::unsupported("set_config of as_of").with_hint("Use SET."));
                }
                match text(value)? {
                    Some(value) => self.change_setting(&name, &value, local)?,
                    None => self.reset_setting(Some(&name)),
                }
                Ok(Datum::Text(self.settings.get(&name)?.to_owned()))
            }
            Question::Advisory { function, key } => {
                let key: Vec<Datum> = key.iter().map(value_of).collect::<Result<_, SqlError>>()?;
                self.act_on_lock(*function, &key)
            }
            Question::State(view) => self.state_rows(*view),
            Question::Processes => {
                let processes = self.database.processes().into_iter();
                Ok(Datum::Array(processes.map(|process| Datum::Int(i64::from(process))).collect()))
            }
            Question::Process => Ok(Datum::Int(i64::from(self.process))),
            Question::Time => Ok(Datum::Timestamp(self.database.now())),
            Question::Pause(seconds) => {
                let Datum::Float(seconds) = value_of(seconds)? else { return Ok(Datum::Null) };
                let microseconds = seconds.clamp(0.0, PAUSE_SECONDS_MAX) * 1e6;
                self.database.pause(microseconds as u64);
                self.interrupt.check()?;
                // PostgreSQL gives a value of the type `void`, which is shown as an empty text.
                Ok(Datum::Text(String::new()))
            }
        }
    }

    /// Takes or gives back an advisory lock; what the function says.
    fn act_on_lock(&mut self, function: AdvisoryFunction, key: &[Datum]) -> Result<Datum, SqlError> {
        let nothing = Datum::Text(String::new());
        let AdvisoryFunction { takes, waits, shared, in_transaction } = function;
        let key = match key {
            [] => {
                self.database.advisory(AdvisoryAct::GiveBackAll { in_transaction: false })?;
                return Ok(nothing);
            }
            [Datum::Int(one)] => AdvisoryKey::One(*one),
            [Datum::Int(one), Datum::Int(two)] => AdvisoryKey::Two(*one, *two),
            _ => return Ok(Datum::Null),
        };
        let lock = AdvisoryLock { key, shared, in_transaction };
        if takes {
            self.locks_in_transaction |= in_transaction;
            self.locks_in_session |= !in_transaction;
            let has_it = self.database.advisory(AdvisoryAct::Take { lock, waits })?;
            return Ok(if waits { nothing } else { Datum::Bool(has_it) });
        }
        let had_it = self.database.advisory(AdvisoryAct::GiveBack(lock))?;
        if !had_it {
            let kind = if shared { "ShareLock" } else { "ExclusiveLock" };
            self.warn(SqlState::WARNING, &format!("you don't own a lock of type {kind}"));
        }
        Ok(Datum::Bool(had_it))
    }

    /// The rows of a view of the state of the process, as an array.
    fn state_rows(&self, view: StateView) -> Result<Datum, SqlError> {
        let rows = match view {
            StateView::PreparedStatements => self.statements.rows(),
            StateView::Cursors => self.cursors.rows(),
            StateView::Settings => self.settings.rows(),
            other => self.database.state(other).map_err(of_database)?,
        };
        let width = view.columns().len();
        if rows.iter().any(|row| row.len() != width) {
            let message = "a view of the state has rows of another width";
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
        Ok(Datum::Array(rows.into_iter().map(Datum::Array).collect()))
    }

    /// Gives back the advisory locks that go with the transaction, which has ended.
    pub(super) fn give_locks_back(&mut self) {
        if std::mem::take(&mut self.locks_in_transaction) {
            // It does not fail.
            let _done = self.database.advisory(AdvisoryAct::GiveBackAll { in_transaction: true });
        }
    }

    /// Notes the numbers that a statement has drawn from sequences.
    pub(super) fn note_drawn(&mut self, drawn: &[(u32, i64)]) {
        self.drawn.extend(drawn.iter().copied());
        if let Some((storage, _)) = drawn.last() {
            self.last_drawn = Some(*storage);
        }
    }
}
