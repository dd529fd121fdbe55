//! `CREATE SEQUENCE`, and what its options mean.

use sqlparser::ast::{Expr, ObjectName, SequenceOptions, Value};

use super::super::names::qualified;
use super::super::types::sql_type;
use super::Draft;
use crate::catalog::{Definition, Sequence};
use crate::error::{SqlError, SqlState};
use crate::types::SqlType;

impl Draft<'_> {
    pub(super) fn create_sequence(
        &mut self,
        name: &ObjectName,
        temporary: bool,
        if_not_exists: bool,
        options: &[SequenceOptions],
    ) -> Result<&'static str, SqlError> {
        const TAG: &str = "CREATE SEQUENCE";
        let (schema, name) = qualified(name)?;
        let schema = self.schema_of_new(schema, temporary)?;
        if !self.is_free(&schema, &name, if_not_exists)? {
            return Ok(TAG);
        }
        let mut sequence = self.new_sequence(&schema, &name, SqlType::INT8, None);
        apply_options(&mut sequence, options)?;
        self.set(&schema, &name, Some(Definition::Sequence(sequence)));
        Ok(TAG)
    }

    pub(super) fn new_sequence(
        &mut self,
        schema: &str,
        name: &str,
        data_type: SqlType,
        owner: Option<(String, String)>,
    ) -> Sequence {
        let maximum = match data_type {
            SqlType::INT2 => i64::from(i16::MAX),
            SqlType::INT4 => i64::from(i32::MAX),
            _ => i64::MAX,
        };
        let (object, storage) = (self.number(), self.storage());
        let sequence = Sequence {
            object,
            storage,
            data_type,
            start: 1,
            increment: 1,
            minimum: 1,
            maximum,
            cycles: false,
            owner,
        };
        self.set(schema, name, Some(Definition::Sequence(sequence.clone())));
        sequence
    }
}

pub(super) fn apply_options(sequence: &mut Sequence, options: &[SequenceOptions]) -> Result<(), SqlError> {
    let number = |written: &Expr| -> Result<i64, SqlError> {
        let text = written.to_string().replace(' ', "");
        let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, format!("\"{text}\" is no whole number"));
        match written {
            Expr::Value(value) if !matches!(value.value, Value::Number(..)) => Err(wrong()),
            _ => text.parse().map_err(|_| wrong()),
        }
    };
    let mut start = None;
    for option in options {
        match option {
            SequenceOptions::DataType(name) => sequence.data_type = sql_type(name)?,
            SequenceOptions::IncrementBy(by, _) => sequence.increment = number(by)?,
            SequenceOptions::MinValue(Some(value)) => sequence.minimum = number(value)?,
            SequenceOptions::MaxValue(Some(value)) => sequence.maximum = number(value)?,
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            // The parser notes `NO CYCLE`.
            SequenceOptions::Cycle(not) => sequence.cycles = !*not,
            SequenceOptions::MinValue(None)
            | SequenceOptions::MaxValue(None)
            | SequenceOptions::Cache(_)
            | SequenceOptions::OwnedBy(_) => {}
        }
    }
    if sequence.increment == 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "INCREMENT must not be zero"));
    }
    if sequence.increment < 0 && sequence.maximum == i64::MAX {
        (sequence.minimum, sequence.maximum) = (i64::MIN, -1);
    }
    sequence.start =
        start.unwrap_or(if sequence.increment > 0 { sequence.minimum } else { sequence.maximum });
    if !(sequence.minimum..=sequence.maximum).contains(&sequence.start) {
        let message = format!("START value ({}) must lie between MINVALUE and MAXVALUE", sequence.start);
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(())
}
