//! `CREATE SEQUENCE`, and what its options mean.

use sqlparser::ast::{Expr, ObjectName, SequenceOptions, Value};

use super::super::names::{last_name, qualified};
use super::super::types::sql_type;
use super::Draft;
use crate::catalog::{Definition, Sequence};
use crate::error::{SqlError, SqlState};
use crate::syntax::{Restart, changed_sequence};
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
        if let Some((name, restart)) = changed_sequence(name)? {
            self.alter_sequence(&name, if_not_exists, options, restart)?;
            return Ok("ALTER SEQUENCE");
        }
        let (schema, name) = qualified(name)?;
        let schema = self.schema_of_new(schema, temporary)?;
        if !self.is_free(&schema, &name, if_not_exists)? {
            return Ok(TAG);
        }
        let mut sequence = self.new_sequence(&schema, &name, SqlType::INT8, None);
        apply_options(&mut sequence, options)?;
        self.give_to(&schema, &mut sequence, options)?;
        self.set(&schema, &name, Some(Definition::Sequence(sequence)));
        Ok(TAG)
    }

    fn alter_sequence(
        &mut self,
        name: &ObjectName,
        if_exists: bool,
        options: &[SequenceOptions],
        restart: Restart,
    ) -> Result<(), SqlError> {
        let (schema, name) = qualified(name)?;
        let (schema, mut sequence) = match self.locate(schema.as_deref(), &name) {
            Some((schema, Definition::Sequence(sequence))) => (schema, sequence),
            Some(_) => {
                let message = format!("\"{name}\" is not a sequence");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            None if if_exists => {
                self.notices.push(format!("relation \"{name}\" does not exist, skipping"));
                return Ok(());
            }
            None => return Err(super::super::undefined_table(schema.as_deref(), &name)),
        };
        change_options(&mut sequence, options, restart)?;
        self.give_to(&schema, &mut sequence, options)?;
        self.sequences.extend(beginning(&sequence, restart)?);
        self.set(&schema, &name, Some(Definition::Sequence(sequence)));
        Ok(())
    }

    /// `OWNED BY`: with which column a sequence goes.
    fn give_to(
        &self,
        schema: &str,
        sequence: &mut Sequence,
        options: &[SequenceOptions],
    ) -> Result<(), SqlError> {
        let owner = options.iter().find_map(|option| match option {
            SequenceOptions::OwnedBy(owner) => Some(owner),
            _ => None,
        });
        let Some(owner) = owner else { return Ok(()) };
        let Some(owner) = owner else {
            sequence.owner = None;
            return Ok(());
        };
        let mut table = owner.clone();
        let column = table.0.pop().map(|part| ObjectName(vec![part]));
        let column = column.as_ref().map(last_name).transpose()?.unwrap_or_default();
        if table.0.is_empty() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        let (in_schema, table) = qualified(&table)?;
        let (in_schema, definition) = match self.locate(in_schema.as_deref(), &table) {
            Some((in_schema, Definition::Table(definition))) => (in_schema, definition),
            Some(_) => {
                let message = format!("sequence cannot be owned by relation \"{table}\"");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            None => return Err(super::super::undefined_table(in_schema.as_deref(), &table)),
        };
        if in_schema != schema {
            let message = "sequence must be in same schema as table it is linked to";
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        if definition.column(&column).is_none() {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        }
        sequence.owner = Some((table, column));
        Ok(())
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

/// Where a sequence is that begins anew, and the number before the one that comes next.
pub(super) fn beginning(sequence: &Sequence, restart: Restart) -> Result<Option<(u32, i64)>, SqlError> {
    let next = match restart {
        Restart::No => return Ok(None),
        Restart::First => sequence.start,
        Restart::At(number) => number,
    };
    check_within(sequence, "RESTART", next)?;
    Ok(Some((sequence.storage, next.wrapping_sub(sequence.increment))))
}

/// Changes what options name. A sequence has no note of whether its first number was drawn, so what it gives next can only be told where
/// it begins anew.
fn change_options(
    sequence: &mut Sequence,
    options: &[SequenceOptions],
    restart: Restart,
) -> Result<(), SqlError> {
    for option in options {
        match option {
            SequenceOptions::IncrementBy(by, _) if restart != Restart::No => sequence.increment = number(by)?,
            SequenceOptions::StartWith(value, _) if restart != Restart::No => sequence.start = number(value)?,
            SequenceOptions::IncrementBy(..) | SequenceOptions::StartWith(..) => {
                return Err(SqlError::unsupported(format!("ALTER SEQUENCE{option} without RESTART"))
                    .with_hint("Add RESTART WITH and the number that comes next."));
            }
            SequenceOptions::MinValue(Some(value)) => sequence.minimum = number(value)?,
            SequenceOptions::MaxValue(Some(value)) => sequence.maximum = number(value)?,
            SequenceOptions::MinValue(None) => {
                sequence.minimum = if sequence.increment < 0 { i64::MIN } else { 1 };
            }
            SequenceOptions::MaxValue(None) => {
                sequence.maximum = if sequence.increment < 0 { -1 } else { i64::MAX };
            }
            // The parser notes `NO CYCLE`.
            SequenceOptions::Cycle(not) => sequence.cycles = !*not,
            SequenceOptions::DataType(_) => return Err(SqlError::unsupported("ALTER SEQUENCE AS")),
            SequenceOptions::Cache(_) | SequenceOptions::OwnedBy(_) => {}
        }
    }
    let (minimum, maximum) = (sequence.minimum, sequence.maximum);
    let invalid = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    if sequence.increment == 0 {
        return invalid("INCREMENT must not be zero".to_owned());
    }
    if minimum >= maximum {
        return invalid(format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"));
    }
    check_within(sequence, "START", sequence.start)
}

fn check_within(sequence: &Sequence, what: &str, value: i64) -> Result<(), SqlError> {
    let wrong = if value < sequence.minimum {
        format!("less than MINVALUE ({})", sequence.minimum)
    } else if value > sequence.maximum {
        format!("greater than MAXVALUE ({})", sequence.maximum)
    } else {
        return Ok(());
    };
    let message = format!("{what} value ({value}) cannot be {wrong}");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

fn number(written: &Expr) -> Result<i64, SqlError> {
    let text = written.to_string().replace(' ', "");
    let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, format!("\"{text}\" is no whole number"));
    match written {
        Expr::Value(value) if !matches!(value.value, Value::Number(..)) => Err(wrong()),
        _ => text.parse().map_err(|_| wrong()),
    }
}

pub(super) fn apply_options(sequence: &mut Sequence, options: &[SequenceOptions]) -> Result<(), SqlError> {
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
