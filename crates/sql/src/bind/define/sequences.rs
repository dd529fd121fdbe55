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
        let mut sequence = self.new_sequence(&schema, &name, SqlType::INT8, None, options)?;
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
                self.remark(format!("relation \"{name}\" does not exist, skipping"));
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
        &mut self,
        schema: &str,
        sequence: &mut Sequence,
        options: &[SequenceOptions],
    ) -> Result<(), SqlError> {
        let owner = options.iter().find_map(|option| match option {
            SequenceOptions::OwnedBy(owner) => Some(owner),
            _ => None,
        });
        let Some(owner) = owner else { return Ok(()) };
        if let Some((table, column)) = &sequence.owner
            && let Some(Definition::Table(definition)) = self.catalog.get(schema, table)
            && definition.columns.iter().any(|known| known.name == *column && known.identity.is_some())
        {
            let message = "cannot change ownership of identity sequence";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
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

    /// Makes a sequence for numbers of a type, which options may say to be another one.
    pub(super) fn new_sequence(
        &mut self,
        schema: &str,
        name: &str,
        data_type: SqlType,
        owner: Option<(String, String)>,
        options: &[SequenceOptions],
    ) -> Result<Sequence, SqlError> {
        let (object, storage) = (self.number(), self.storage());
        let mut sequence = Sequence {
            object,
            storage,
            data_type,
            start: 1,
            increment: 1,
            minimum: 1,
            maximum: i64::MAX,
            cycles: false,
            owner,
        };
        set_options(&mut sequence, options, true)?;
        self.set(schema, name, Some(Definition::Sequence(sequence.clone())));
        Ok(sequence)
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
    let needs_restart = |option: &&SequenceOptions| {
        matches!(option, SequenceOptions::IncrementBy(..) | SequenceOptions::StartWith(..))
    };
    match options.iter().find(needs_restart) {
        Some(option) if restart == Restart::No => {
            set_options(&mut sequence.clone(), options, false)?;
            Err(SqlError::unsupported(format!("ALTER SEQUENCE{option} without RESTART"))
                .with_hint("Add RESTART WITH and the number that comes next."))
        }
        _ => set_options(sequence, options, false),
    }
}

/// Sets what options name, and in a new sequence also what they do not name.
fn set_options(sequence: &mut Sequence, options: &[SequenceOptions], is_new: bool) -> Result<(), SqlError> {
    let (mut minimum, mut maximum, mut start) = (None, None, None);
    let changes_type = options.iter().any(|option| matches!(option, SequenceOptions::DataType(_)));
    let known = range_of(sequence.data_type).filter(|_| changes_type && !is_new);
    for option in options {
        match option {
            SequenceOptions::DataType(name) => sequence.data_type = sql_type(name)?,
            SequenceOptions::IncrementBy(by, _) => sequence.increment = number(by)?,
            SequenceOptions::MinValue(value) => minimum = Some(value.as_ref()),
            SequenceOptions::MaxValue(value) => maximum = Some(value.as_ref()),
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            // The parser notes `NO CYCLE`.
            SequenceOptions::Cycle(not) => sequence.cycles = !*not,
            SequenceOptions::Cache(count) => {
                let count = number(count)?;
                if count <= 0 {
                    return Err(invalid(format!("CACHE ({count}) must be greater than zero")));
                }
            }
            SequenceOptions::OwnedBy(_) => {}
        }
    }
    if sequence.increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let range = range_of(sequence.data_type)
        .ok_or_else(|| invalid("sequence type must be smallint, integer, or bigint"))?;
    let ascends = sequence.increment > 0;
    // A limit that was that of the type before is that of the new type.
    let follows_least = known.is_some_and(|(least, _)| least == sequence.minimum);
    let follows_most = known.is_some_and(|(_, most)| most == sequence.maximum);
    sequence.maximum = match maximum {
        Some(Some(value)) => number(value)?,
        None if !is_new && !follows_most => sequence.maximum,
        _ if ascends || follows_most => range.1,
        _ => -1,
    };
    sequence.minimum = match minimum {
        Some(Some(value)) => number(value)?,
        None if !is_new && !follows_least => sequence.minimum,
        _ if !ascends || follows_least => range.0,
        _ => 1,
    };
    if let Some(start) = start {
        sequence.start = start;
    } else if is_new {
        sequence.start = if ascends { sequence.minimum } else { sequence.maximum };
    }
    check_limits(sequence, range)
}

/// The least and the greatest number of a type that sequences may have.
fn range_of(data_type: SqlType) -> Option<(i64, i64)> {
    match data_type {
        SqlType::INT2 => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        SqlType::INT4 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        SqlType::INT8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

/// Fails for an identity column of a type that no sequence has.
pub(super) fn check_identity_type(data_type: SqlType) -> Result<(), SqlError> {
    match range_of(data_type) {
        Some(_) => Ok(()),
        None => Err(invalid("identity column type must be smallint, integer, or bigint")),
    }
}

fn check_limits(sequence: &Sequence, (least, most): (i64, i64)) -> Result<(), SqlError> {
    let (minimum, maximum) = (sequence.minimum, sequence.maximum);
    for (what, limit) in [("MAXVALUE", maximum), ("MINVALUE", minimum)] {
        if limit < least || limit > most {
            let of = sequence.data_type.name();
            return Err(invalid(format!("{what} ({limit}) is out of range for sequence data type {of}")));
        }
    }
    if minimum >= maximum {
        return Err(invalid(format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")));
    }
    check_within(sequence, "START", sequence.start)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn check_within(sequence: &Sequence, what: &str, value: i64) -> Result<(), SqlError> {
    let wrong = if value < sequence.minimum {
        format!("less than MINVALUE ({})", sequence.minimum)
    } else if value > sequence.maximum {
        format!("greater than MAXVALUE ({})", sequence.maximum)
    } else {
        return Ok(());
    };
    Err(invalid(format!("{what} value ({value}) cannot be {wrong}")))
}

fn number(written: &Expr) -> Result<i64, SqlError> {
    let text = written.to_string().replace(' ', "");
    let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, format!("\"{text}\" is no whole number"));
    match written {
        Expr::Value(value) if !matches!(value.value, Value::Number(..)) => Err(wrong()),
        _ => text.parse().map_err(|_| wrong()),
    }
}
