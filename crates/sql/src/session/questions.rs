//! Answers to what statements ask their session; see [`Question`].

use super::Session;
use super::database::of_database;
use crate::bind::Question;
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
        let zone = self.surroundings.zone;
        let inputs = Inputs { parameters: parameters.to_vec(), zone, ..Inputs::default() };
        questions.iter().map(|question| self.answer_to(question, &inputs)).collect()
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
                match text(value)? {
                    Some(value) => self.change_setting(&name, &value, local)?,
                    None => self.reset_setting(Some(&name)),
                }
                Ok(Datum::Text(self.settings.get(&name)?.to_owned()))
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
                self.interrupt.error().map_or(Ok(()), Err)?;
                // PostgreSQL gives a value of the type `void`, which is shown as an empty text.
                Ok(Datum::Text(String::new()))
            }
        }
    }

    /// The rows of a view of the state of the process, as an array.
    fn state_rows(&self, view: StateView) -> Result<Datum, SqlError> {
        let rows = self.database.state(view).map_err(of_database)?;
        let width = view.columns().len();
        if rows.iter().any(|row| row.len() != width) {
            let message = "a view of the state has rows of another width";
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
        Ok(Datum::Array(rows.into_iter().map(Datum::Array).collect()))
    }

    /// Notes the numbers that a statement has drawn from sequences.
    pub(super) fn note_drawn(&mut self, drawn: &[(u32, i64)]) {
        self.drawn.extend(drawn.iter().copied());
        if let Some((storage, _)) = drawn.last() {
            self.last_drawn = Some(*storage);
        }
    }
}
