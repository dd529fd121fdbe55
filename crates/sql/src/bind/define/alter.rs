//! `ALTER TABLE`.

use ordain_db::data::Direction;
use sqlparser::ast::{AlterColumnOperation, AlterTable, AlterTableOperation, DropBehavior, GeneratedAs};

use super::super::Binder;
use super::super::names::{name_of, qualified};
use super::constraints::multiple_keys;
use super::create::{Filled, Parts, columns_of};
use super::generated::refuse_generated;
use super::identity::refuse_identity;
use super::passes::{PASSES, Pass, pass_of};
use super::rewrite::{Conversion, new_row};
use super::storage_options::check_changed;
use super::{Draft, Verification};
use crate::catalog::{Check, Definition, PrimaryKey, Sequence, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, Expression, Node, Path};
use crate::syntax::{IdentityChange, altered_kind, identity_change};

/// What an `ALTER TABLE` comes to besides the definition of its table.
#[derive(Default)]
pub(super) struct Changes {
    pub conversions: Vec<Conversion>,
    pub filled: Vec<Filled>,
    /// Conditions that no row may fulfil as it will be, each with the error if one does.
    pub refused: Vec<(Expression, SqlError)>,
    /// Constraints of new columns that are not there yet.
    pub parts: Parts,
}

impl Draft<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<&'static str, SqlError> {
        const TAG: &str = "ALTER TABLE";
        let (written, kind) = altered_kind(&alter.name);
        let (schema, name) = qualified(&written)?;
        let (schema, mut table) = match self.locate(schema.as_deref(), &name) {
            Some((_, known)) if !is_called(kind.as_deref(), &known) => {
                let message = format!("\"{name}\" is not a {}", kind.unwrap_or_default());
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            Some((schema, Definition::Table(table))) => (schema, table),
            None if alter.if_exists => {
                self.remark(format!("relation \"{name}\" does not exist, skipping"));
                return Ok(match kind.as_deref() {
                    Some("view") => "ALTER VIEW",
                    Some(_) => "ALTER SEQUENCE",
                    None => TAG,
                });
            }
            Some((schema, other)) => return self.alter_other(&schema, &name, other, &alter.operations),
            None => return Err(super::super::undefined_table(schema.as_deref(), &name)),
        };
        if let [AlterTableOperation::RenameTable { table_name }] = alter.operations.as_slice() {
            let name = self.rename(&schema, &name, &mut table, table_name)?;
            self.set(&schema, &name, Some(Definition::Table(table)));
            return Ok(TAG);
        }
        self.has_others = alter.operations.len() > 1;
        if self.has_others && alter.operations.iter().any(is_rename) {
            let message = "syntax error: RENAME among other changes of a table";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("Rename it by a statement of its own."));
        }
        let passes = alter.operations.iter().map(pass_of).collect::<Result<Vec<Pass>, SqlError>>()?;
        let mut changes = Changes::default();
        for pass in PASSES {
            let of_pass = passes.iter().zip(&alter.operations).filter(|(known, _)| **known == pass);
            for (_, operation) in of_pass {
                self.alter(&schema, &name, &mut table, operation, &mut changes)?;
            }
            self.constrain_new_columns(&schema, &name, &mut table, pass, &mut changes)?;
        }
        self.verify(&schema, &name, &table, &mut changes)?;
        self.rewrite(&schema, &name, &mut table, changes.conversions, &changes.filled)?;
        self.set(&schema, &name, Some(Definition::Table(table)));
        Ok(TAG)
    }

    /// Adds constraints of new columns once all columns are there, and keys before what may refer to them.
    fn constrain_new_columns(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        pass: Pass,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let parts = match pass {
            Pass::Keys => Parts {
                primary_key: changes.parts.primary_key.take(),
                unique: std::mem::take(&mut changes.parts.unique),
                ..Parts::default()
            },
            Pass::Constraints => std::mem::take(&mut changes.parts),
            _ => return Ok(()),
        };
        if parts.primary_key.is_some() && table.primary_key.is_some() {
            return Err(multiple_keys(name));
        }
        self.add_verified_parts(schema, name, table, parts, changes)
    }

    fn alter(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        operation: &AlterTableOperation,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        self.go_on()?;
        match operation {
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                self.add_constraint(schema, name, table, constraint, *not_valid, changes)
            }
            AlterTableOperation::ValidateConstraint { name: constraint } => {
                self.validate_constraint(schema, name, table, &name_of(constraint))
            }
            AlterTableOperation::AddColumn { if_not_exists, column_def, .. } => {
                let column = name_of(&column_def.name);
                if *if_not_exists && table.column(&column).is_some() {
                    let message = format!("column \"{column}\" of relation \"{name}\" already exists");
                    self.skip(&SqlError::new(SqlState::DUPLICATE_COLUMN, message));
                    return Ok(());
                }
                self.extend(schema, name, table, column_def, changes)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascade = *drop_behavior == Some(DropBehavior::Cascade);
                for column in column_names {
                    self.drop_column(schema, name, table, &name_of(column), (*if_exists, cascade))?;
                }
                Ok(())
            }
            AlterTableOperation::DropConstraint { if_exists, name: constraint, drop_behavior } => {
                let cascade = *drop_behavior == Some(DropBehavior::Cascade);
                self.drop_constraint(schema, name, table, &name_of(constraint), (*if_exists, cascade))
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => self.rename_column(
                schema,
                name,
                table,
                (&name_of(old_column_name), &name_of(new_column_name)),
            ),
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(schema, name, table, (&name_of(old_name), name_of(new_name)))
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(schema, name, table, &name_of(column_name), op, changes)
            }
            AlterTableOperation::SetOptionsParens { options } => check_changed(options),
            AlterTableOperation::OwnerTo { new_owner } => self.check_owner(new_owner),
            AlterTableOperation::ReplicaIdentity { .. } => Ok(()),
            other => Err(SqlError::unsupported(format!("ALTER TABLE {other}"))),
        }
    }

    pub(super) fn drop_column(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        column: &str,
        (if_exists, cascade): (bool, bool),
    ) -> Result<(), SqlError> {
        let Some(number) = table.column(column) else {
            if if_exists {
                self.remark(format!("column \"{column}\" of relation \"{name}\" does not exist, skipping"));
                return Ok(());
            }
            return Err(undefined(name, column));
        };
        let on = format!("column {column} of table {name}");
        let referrers = self.referrers_of(table, &on, |columns| columns.contains(&number));
        let at = (schema.to_owned(), name.to_owned());
        let generated = self.generated_with((schema, name), table, number, &on)?;
        self.drop_dependents(&on, generated, cascade, Some((&at, &mut *table)))?;
        self.drop_dependents(&on, referrers, cascade, Some((&at, &mut *table)))?;
        let is_of_key = |key: &PrimaryKey| key.columns.iter().chain(&key.included).any(|of| *of == number);
        if table.primary_key.as_ref().is_some_and(is_of_key) {
            self.remove_primary_key(schema, name, table, &on, cascade)?;
        }
        while let Some(place) = table.foreign_keys.iter().position(|known| known.columns.contains(&number)) {
            self.remove_foreign_key(schema, name, table, place)?;
        }
        self.drop_indexes_of((schema, name), table, number, (&on, cascade))?;
        if let Some((sequence, Sequence { storage, .. })) = self.sequence_of(schema, name, column) {
            self.set(schema, &sequence, None);
            self.discard(storage, false);
        }
        for check in std::mem::take(&mut table.checks) {
            if !self.columns_in(name, table, &check.condition)?.contains(&number) {
                table.checks.push(check);
            }
        }
        let dropped = &mut table.columns[usize::from(number)];
        (dropped.name, dropped.dropped) = (String::new(), true);
        (dropped.default, dropped.generated, dropped.not_null) = (None, None, false);
        let views = self.views_without(schema, name, table, &on);
        self.drop_dependents(&on, views, cascade, None)?;
        self.check_expressions(name, table)
    }

    fn drop_constraint(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        constraint: &str,
        (if_exists, cascade): (bool, bool),
    ) -> Result<(), SqlError> {
        if let Some(place) = table.checks.iter().position(|check| check.name == constraint) {
            table.checks.remove(place);
            return Ok(());
        }
        if let Some(place) =
            table.indexes.iter().position(|index| index.constraint && index.name == constraint)
        {
            let what = format!("constraint {constraint} on table {name}");
            return self.remove_index(schema, name, table, place, &what, cascade);
        }
        if let Some(place) = table.foreign_keys.iter().position(|known| known.name == constraint) {
            return self.remove_foreign_key(schema, name, table, place);
        }
        if table.primary_key.as_ref().is_some_and(|key| key.name == constraint) {
            let what = format!("constraint {constraint} on table {name}");
            return self.remove_primary_key(schema, name, table, &what, cascade);
        }
        let message = format!("constraint \"{constraint}\" of relation \"{name}\" does not exist");
        if if_exists {
            self.remark(format!("{message}, skipping"));
            return Ok(());
        }
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    }

    fn alter_column(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        column: &str,
        operation: &AlterColumnOperation,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let number = required(name, table, column)?;
        match operation {
            AlterColumnOperation::SetDataType { .. } => {
                let conversion = self.change_type(schema, name, table, number, operation)?;
                changes.conversions.extend(conversion);
                Ok(())
            }
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                let always = !matches!(generated_as, Some(GeneratedAs::ByDefault));
                let options = sequence_options.as_deref().unwrap_or_default();
                self.add_identity((schema, name), table, number, always, options)
            }
            AlterColumnOperation::SetDefault { value } => {
                let column = &mut table.columns[usize::from(number)];
                let change = identity_change(value)?;
                if let Some(IdentityChange::DropExpression(may_be_none)) = change {
                    return self.drop_expression(name, column, may_be_none);
                }
                if let Some(change) = change {
                    return self.change_identity((schema, name), table, number, change);
                }
                refuse_identity(name, table, number)?;
                refuse_generated(name, &table.columns[usize::from(number)], false)?;
                table.columns[usize::from(number)].default = Some(self.default_text(value));
                self.check_expressions(name, table)
            }
            AlterColumnOperation::DropDefault => {
                refuse_identity(name, table, number)?;
                refuse_generated(name, &table.columns[usize::from(number)], true)?;
                table.columns[usize::from(number)].default = None;
                Ok(())
            }
            AlterColumnOperation::DropNotNull => {
                if table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&number)) {
                    let message = format!("column \"{column}\" is in a primary key");
                    return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
                }
                refuse_identity(name, table, number)?;
                table.columns[usize::from(number)].not_null = false;
                Ok(())
            }
            AlterColumnOperation::SetNotNull => {
                changes.refused.push(contains_nulls(name, table, number));
                table.columns[usize::from(number)].not_null = true;
                Ok(())
            }
            other => Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
        }
    }

    /// Asks that the rows that are there fulfil a check.
    pub(super) fn verify_check(
        &self,
        name: &str,
        table: &Table,
        check: &Check,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        let condition = binder.check_condition(name, table, &check.condition)?;
        let fails = Expression::IsBoolean { operand: Box::new(condition), value: false, negated: false };
        let message =
            format!("check constraint \"{}\" of relation \"{name}\" is violated by some row", check.name);
        let error = SqlError::new(SqlState::CHECK_VIOLATION, message).of_constraint(name, &check.name);
        changes.refused.push((fails, error));
        Ok(())
    }

    /// Asks that no row of a table as it will be fulfils what is refused. Values that are computed for each row are not known before rows
    /// are written, which tests them.
    fn verify(
        &mut self,
        schema: &str,
        name: &str,
        table: &Table,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        for (mut condition, error) in std::mem::take(&mut changes.refused) {
            let columns = columns_of(&mut condition);
            if changes.filled.iter().any(|(filled, _)| columns.contains(filled)) {
                continue;
            }
            let mut binder = Binder::new(self.before, self.surroundings);
            let (schema, before) = binder.find_table(Some(schema), name)?;
            let expressions = new_row(before, table, &changes.conversions);
            let is_same = (0..).zip(&expressions).all(|(number, value)| *value == Expression::Column(number));
            let number = binder.use_table(&schema, name, before)?;
            let (path, direction) = (Path::All, Direction::Ascending);
            let scan = Node::scan(number, path, direction, None);
            let rows = if is_same { scan } else { Node::Project { input: Box::new(scan), expressions } };
            let refused = Node::Filter { input: Box::new(rows), condition };
            let limit = Some(Expression::Constant(crate::types::Datum::Int(1)));
            let first = Node::Limit { input: Box::new(refused), limit, offset: None, ties: Vec::new() };
            let plan = binder.finish(Action::Query(first), None).plan;
            self.verifications.push(Verification { plan, error });
        }
        Ok(())
    }
}

/// The condition that a column is null, and the error if it is in some row although it must not.
pub(super) fn contains_nulls(name: &str, table: &Table, number: u16) -> (Expression, SqlError) {
    let is_null = Expression::IsNull { operand: Box::new(Expression::Column(number)), negated: false };
    let column = &table.columns[usize::from(number)].name;
    let message = format!("column \"{column}\" of relation \"{name}\" contains null values");
    (is_null, SqlError::new(SqlState::NOT_NULL_VIOLATION, message).of_column(name, column))
}

/// Whether something may be altered by what it was called: a table is what any relation may be called.
fn is_called(kind: Option<&str>, known: &Definition) -> bool {
    match kind {
        Some("view") => matches!(known, Definition::View { .. }),
        Some(_) => matches!(known, Definition::Sequence(_)),
        None => true,
    }
}

fn is_rename(operation: &AlterTableOperation) -> bool {
    matches!(
        operation,
        AlterTableOperation::RenameTable { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::RenameConstraint { .. }
    )
}

pub(super) fn required(name: &str, table: &Table, column: &str) -> Result<u16, SqlError> {
    table.column(column).ok_or_else(|| undefined(name, column))
}

fn undefined(name: &str, column: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}
