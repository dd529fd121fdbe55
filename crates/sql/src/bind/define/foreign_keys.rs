//! Foreign keys: `REFERENCES`, `FOREIGN KEY`, and what becomes of them when a table changes.
//!
//! One that is added to a table with rows is in force from then on; that the rows from before it refer to something is checked
//! afterwards, over a snapshot, since all that is written later is checked anyway.

use sqlparser::ast::{
    self, ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial, ForeignKeyConstraint,
};

use super::super::foreign_keys::{RowCheck, can_refer, no_unique_constraint, target};
use super::super::names::{name_of, qualified};
use super::super::{Binder, Surroundings, is_temporary};
use super::Draft;
use crate::catalog::{Catalog, Definition, ForeignKey, Named, Referrer, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{ReferentialAction, SharedPlan};

/// A foreign key whose table may have rows from before it, which are to be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validation {
    /// The table, with its schema.
    pub table: Named,
    /// The name of the foreign key.
    pub name: String,
    /// Whether it is dropped if one of them refers to nothing.
    pub is_new: bool,
}

/// A foreign key as written.
pub(super) struct NewForeignKey {
    pub name: Option<String>,
    /// The columns, by number.
    pub columns: Vec<u16>,
    pub written: ForeignKeyConstraint,
    /// Whether rows from before it are left as they are.
    pub not_valid: bool,
}

/// The check that a validation asks for.
///
/// # Errors
/// When the foreign key is not there any more.
pub fn validation(
    catalog: &Catalog,
    surroundings: &Surroundings,
    validation: &Validation,
) -> Result<RowCheck, SqlError> {
    let mut binder = Binder::new(catalog, surroundings);
    let (schema, name) = &validation.table;
    let (_, table) = binder.find_table(Some(schema), name)?;
    let foreign_key = &table.foreign_keys[place(name, table, &validation.name)?];
    RowCheck::of(binder, &validation.table, table, foreign_key)
}

/// The change after a check: the foreign key is known to hold, or is dropped.
///
/// # Errors
/// When the foreign key is not there any more.
pub fn validated(
    catalog: &Catalog,
    surroundings: &Surroundings,
    validation: &Validation,
    holds: bool,
) -> Result<SharedPlan, SqlError> {
    let mut draft = Draft::new(catalog, surroundings, true);
    let (schema, name) = &validation.table;
    let mut table = draft.table(schema, name)?;
    let place = place(name, &table, &validation.name)?;
    if holds {
        table.foreign_keys[place].validated = true;
    } else {
        draft.remove_foreign_key(schema, name, &mut table, place)?;
    }
    draft.set(schema, name, Some(Definition::Table(table)));
    draft.finish("")?.plan.ok_or_else(|| undefined(name, &validation.name))
}

fn place(name: &str, table: &Table, foreign_key: &str) -> Result<usize, SqlError> {
    let place = table.foreign_keys.iter().position(|known| known.name == foreign_key);
    place.ok_or_else(|| undefined(name, foreign_key))
}

fn undefined(table: &str, constraint: &str) -> SqlError {
    let message = format!("constraint \"{constraint}\" of relation \"{table}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

impl Draft<'_> {
    /// Adds a foreign key to a table.
    pub(super) fn add_foreign_key(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        new: NewForeignKey,
        is_empty: bool,
    ) -> Result<(), SqlError> {
        let written = &new.written;
        refuse_match(written.match_kind)?;
        let deferrable = deferrable(written.characteristics.as_ref())?;
        let at = (schema.to_owned(), name.to_owned());
        let other_name = self.referenced_table(&written.foreign_table)?;
        refuse_other_lifetime(schema, &other_name.0)?;
        let other = if other_name == at { table.clone() } else { self.table(&other_name.0, &other_name.1)? };
        let referenced = referenced_columns(&other_name.1, &other, &new)?;
        let constraint = match new.name {
            Some(constraint) => constraint,
            None => free_foreign_key(name, table, &new.columns),
        };
        super::constraints::is_free_constraint(name, table, &constraint)?;
        if new.columns.len() != referenced.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
        }
        if target(&other, &referenced).is_none() {
            return Err(no_unique_constraint(&other_name.1));
        }
        check_types(&constraint, table, &new.columns, &other, &referenced)?;
        refuse_writes(table, &new.columns, written)?;
        let validates = !is_empty && !new.not_valid;
        let foreign_key = ForeignKey {
            object: self.number(),
            name: constraint.clone(),
            columns: new.columns,
            table: other_name.clone(),
            referenced,
            on_delete: action(written.on_delete),
            on_update: action(written.on_update),
            deferrable,
            validated: is_empty || (validates && self.at_once),
        };
        let referrer = Referrer { table: at.clone(), object: foreign_key.object };
        if other_name == at {
            table.referrers.push(referrer);
        } else {
            let mut other = other;
            other.referrers.push(referrer);
            self.set(&other_name.0, &other_name.1, Some(Definition::Table(other)));
        }
        table.foreign_keys.push(foreign_key);
        if validates {
            self.validations.push(Validation { table: at, name: constraint, is_new: true });
        }
        Ok(())
    }

    fn referenced_table(&mut self, written: &ast::ObjectName) -> Result<Named, SqlError> {
        let (schema, name) = qualified(written)?;
        match self.locate(schema.as_deref(), &name) {
            Some((schema, Definition::Table(_))) => Ok((schema, name)),
            Some(_) => {
                let message = format!("referenced relation \"{name}\" is not a table");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            None => Err(super::super::undefined_table(schema.as_deref(), &name)),
        }
    }

    /// Drops a foreign key of a table; the table that it refers to forgets it.
    pub(super) fn remove_foreign_key(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        place: usize,
    ) -> Result<(), SqlError> {
        let gone = table.foreign_keys.remove(place);
        if gone.table == (schema.to_owned(), name.to_owned()) {
            table.referrers.retain(|known| known.object != gone.object);
            return Ok(());
        }
        let (other_schema, other_name) = &gone.table;
        let mut other = self.table(other_schema, other_name)?;
        other.referrers.retain(|known| known.object != gone.object);
        self.set(other_schema, other_name, Some(Definition::Table(other)));
        Ok(())
    }

    /// Asks that the rows that are there refer to something by a foreign key that is in force.
    pub(super) fn validate_constraint(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        constraint: &str,
    ) -> Result<(), SqlError> {
        let checks = table.checks.iter().map(|check| &check.name);
        let indexes = table.indexes.iter().filter(|index| index.constraint).map(|index| &index.name);
        if checks.chain(indexes).any(|known| known == constraint) {
            return Ok(());
        }
        let place = place(name, table, constraint)?;
        if !table.foreign_keys[place].validated {
            table.foreign_keys[place].validated = self.at_once;
            let table = (schema.to_owned(), name.to_owned());
            self.validations.push(Validation { table, name: constraint.to_owned(), is_new: false });
        }
        Ok(())
    }

    /// Gives a table another name where foreign keys know it.
    pub(super) fn rename_in_foreign_keys(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        new: &str,
    ) -> Result<(), SqlError> {
        let (old, new) = ((schema.to_owned(), name.to_owned()), (schema.to_owned(), new.to_owned()));
        let rename = |known: &mut Named| {
            if *known == old {
                known.clone_from(&new);
            }
        };
        let mut others: Vec<Named> = table.referrers.iter().map(|referrer| referrer.table.clone()).collect();
        others.extend(table.foreign_keys.iter().map(|foreign_key| foreign_key.table.clone()));
        let rename_in = |table: &mut Table| {
            table.foreign_keys.iter_mut().for_each(|foreign_key| rename(&mut foreign_key.table));
            table.referrers.iter_mut().for_each(|referrer| rename(&mut referrer.table));
        };
        for (schema, name) in others.into_iter().filter(|other| *other != old) {
            let mut other = self.table(&schema, &name)?;
            rename_in(&mut other);
            self.set(&schema, &name, Some(Definition::Table(other)));
        }
        rename_in(table);
        Ok(())
    }
}

/// Fails if of two tables one goes with its session, and the other does not.
fn refuse_other_lifetime(schema: &str, referenced: &str) -> Result<(), SqlError> {
    let kind = |schema| if is_temporary(schema) { "temporary" } else { "permanent" };
    let (own, other) = (kind(schema), kind(referenced));
    if own == other {
        return Ok(());
    }
    let message = format!("constraints on {own} tables may reference only {own} tables");
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}

/// The columns that a foreign key refers to, by number: those of the primary key if none are written.
fn referenced_columns(name: &str, other: &Table, new: &NewForeignKey) -> Result<Vec<u16>, SqlError> {
    if new.written.referred_columns.is_empty() {
        return other.primary_key.as_ref().map(|key| key.columns.clone()).ok_or_else(|| {
            let message = format!("there is no primary key for referenced table \"{name}\"");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        });
    }
    numbers_of(other, &new.written.referred_columns)
}

/// The numbers of columns in a foreign key.
pub(super) fn numbers_of(table: &Table, written: &[ast::Ident]) -> Result<Vec<u16>, SqlError> {
    let mut columns = Vec::with_capacity(written.len());
    for column in written {
        let column = name_of(column);
        columns.push(table.column(&column).ok_or_else(|| {
            let message = format!("column \"{column}\" referenced in foreign key constraint does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })?);
    }
    Ok(columns)
}

fn check_types(
    constraint: &str,
    table: &Table,
    columns: &[u16],
    other: &Table,
    referenced: &[u16],
) -> Result<(), SqlError> {
    for (column, referenced) in columns.iter().zip(referenced) {
        let own = &table.columns[usize::from(*column)];
        let other = &other.columns[usize::from(*referenced)];
        if !can_refer(own.data_type, other.data_type) {
            let message = format!("foreign key constraint \"{constraint}\" cannot be implemented");
            let detail = format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                other.name,
                own.data_type.name(),
                other.data_type.name()
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail));
        }
    }
    Ok(())
}

/// A name for a foreign key that the table does not have yet.
fn free_foreign_key(name: &str, table: &Table, columns: &[u16]) -> String {
    let columns = columns.iter().map(|column| table.columns[usize::from(*column)].name.as_str());
    let parts: Vec<&str> = std::iter::once(name).chain(columns).chain(["fkey"]).collect();
    let base = parts.join("_");
    super::constraints::free_constraint(table, &base[..base.floor_char_boundary(60)])
}

/// Fails if a foreign key would change what follows from other columns.
fn refuse_writes(table: &Table, columns: &[u16], written: &ForeignKeyConstraint) -> Result<(), SqlError> {
    if !columns.iter().any(|column| table.columns[usize::from(*column)].generated.is_some()) {
        return Ok(());
    }
    let (on_delete, on_update) = (action(written.on_delete), action(written.on_update));
    let event = match (on_delete, on_update) {
        (ReferentialAction::SetNull | ReferentialAction::SetDefault, _) => "DELETE",
        (_, ReferentialAction::NoAction | ReferentialAction::Restrict) => return Ok(()),
        _ => "UPDATE",
    };
    let message = format!("invalid ON {event} action for foreign key constraint containing generated column");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
}

fn refuse_match(kind: Option<ConstraintReferenceMatchKind>) -> Result<(), SqlError> {
    match kind {
        None | Some(ConstraintReferenceMatchKind::Simple) => Ok(()),
        Some(kind) => Err(SqlError::unsupported(kind.to_string())
            .with_hint("Use MATCH SIMPLE, and NOT NULL or CHECK for columns that must not be null.")),
    }
}

/// Whether a foreign key may be checked at the end of the transaction, and if so whether it is.
fn deferrable(written: Option<&ConstraintCharacteristics>) -> Result<Option<bool>, SqlError> {
    let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = written else {
        return Ok(None);
    };
    if *enforced == Some(false) {
        return Err(SqlError::unsupported("a foreign key that is NOT ENFORCED"));
    }
    let is_deferred = *initially == Some(DeferrableInitial::Deferred);
    match deferrable {
        Some(false) if is_deferred => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        Some(true) => Ok(Some(is_deferred)),
        _ => Ok(is_deferred.then_some(true)),
    }
}

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}
