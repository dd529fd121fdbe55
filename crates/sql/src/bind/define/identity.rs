//! `ALTER TABLE … ALTER column`: identity columns.

use sqlparser::ast::SequenceOptions;

use super::create::Parts;
use super::{Draft, sequences};
use crate::catalog::{Definition, Sequence, Table};
use crate::error::{SqlError, SqlState};
use crate::syntax::IdentityChange;

impl Draft<'_> {
    /// Makes a column an identity column.
    pub(super) fn add_identity(
        &mut self,
        (schema, name): (&str, &str),
        table: &mut Table,
        number: u16,
        always: bool,
        options: &[SequenceOptions],
    ) -> Result<(), SqlError> {
        let column = &mut table.columns[usize::from(number)];
        let of = format!("column \"{}\" of relation \"{name}\"", column.name);
        if column.identity.is_some() {
            return Err(unfit(format!("{of} is already an identity column")));
        }
        if column.default.is_some() || column.generated.is_some() {
            return Err(unfit(format!("{of} already has a default value")));
        }
        if !column.not_null {
            return Err(unfit(format!("{of} must be declared NOT NULL before identity can be added")));
        }
        column.identity = Some(always);
        let mut parts = Parts::default();
        parts.sequences.push((column.name.clone(), column.data_type, options.to_vec()));
        self.add_parts(schema, name, table, parts, false)
    }

    pub(super) fn change_identity(
        &mut self,
        (schema, name): (&str, &str),
        table: &mut Table,
        number: u16,
        change: IdentityChange,
    ) -> Result<(), SqlError> {
        let column = &mut table.columns[usize::from(number)];
        let none = format!("column \"{}\" of relation \"{name}\" is not an identity column", column.name);
        if column.identity.is_none() {
            if change == IdentityChange::Drop(true) {
                self.remark(format!("{none}, skipping"));
                return Ok(());
            }
            return Err(unfit(none));
        }
        let (own, sequence) = self.sequence_of(schema, name, &column.name).ok_or_else(|| unfit(none))?;
        match change {
            IdentityChange::Always(always) => column.identity = Some(always),
            IdentityChange::Restart(restart) => {
                self.sequences.extend(sequences::beginning(&sequence, restart)?)
            }
            IdentityChange::Drop(_) | IdentityChange::DropExpression(_) => {
                (column.identity, column.default) = (None, None);
                self.set(schema, &own, None);
                self.discard(sequence.storage, false);
            }
        }
        Ok(())
    }

    /// The sequence that goes with a column.
    pub(super) fn sequence_of(&self, schema: &str, table: &str, column: &str) -> Option<(String, Sequence)> {
        self.catalog.iter().find_map(|(known, name, definition)| match definition {
            Definition::Sequence(sequence) if known == schema => {
                let (owner, of) = sequence.owner.as_ref()?;
                (owner == table && of == column).then(|| (name.to_owned(), sequence.clone()))
            }
            _ => None,
        })
    }
}

/// Fails for an identity column, which keeps its default and has no nulls.
pub(super) fn refuse_identity(name: &str, table: &Table, number: u16) -> Result<(), SqlError> {
    let column = &table.columns[usize::from(number)];
    if column.identity.is_none() {
        return Ok(());
    }
    let message = format!("column \"{}\" of relation \"{name}\" is an identity column", column.name);
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
        .with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY."))
}

fn unfit(problem: String) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, problem)
}
