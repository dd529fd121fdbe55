//! `CREATE`.

use std::collections::BTreeSet;

use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, FunctionArguments, GeneratedAs, OnCommit, SchemaName,
    SequenceOptions, TableConstraint,
};

use super::super::Binder;
use super::super::expression::SYSTEM_COLUMNS;
use super::super::functions::arguments_of;
use super::super::names::{known_collation, last_name, name_of, qualified};
use super::super::path::is_fixed;
use super::super::qualify::relation_word;
use super::super::types::{serial_type, sql_type};
use super::super::walk::walk;
use super::Draft;
use super::alter::{Changes, contains_nulls};
use super::constraints::{
    constrain, free_constraint, is_free_constraint, multiple_keys, refuse_late, refuse_unique, set_key,
};
use super::foreign_keys::NewForeignKey;
use super::generated::{check_generated, check_sources, set_generation};
use super::indexes::NewIndex;
use super::sequences::check_identity_type;
use super::storage_options::is_replicated;
use crate::catalog::{Check, Column, Definition, PUBLIC, PrimaryKey, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::syntax::likened;
use crate::types::{Datum, SqlType};

/// Most columns of a table.
const COLUMNS_MAX: usize = 1600;

/// A new column whose values are computed for each row that is there: numbers of a sequence of its own, or else its default.
pub(super) type Filled = (u16, Option<String>);

/// What belongs to a table besides its columns, while it is made.
#[derive(Default)]
pub(super) struct Parts {
    pub primary_key: Option<NewKey>,
    pub unique: Vec<NewKey>,
    pub checks: Vec<(Option<String>, String)>,
    pub foreign_keys: Vec<NewForeignKey>,
    /// Columns that get numbers from sequences, and the types of these.
    pub sequences: Vec<(String, SqlType, Vec<SequenceOptions>)>,
}

/// A primary key or a unique constraint.
pub(super) struct NewKey {
    pub name: Option<String>,
    /// The columns, by number.
    pub columns: Vec<u16>,
    /// The columns that it includes besides.
    pub included: Vec<u16>,
}

impl Parts {
    /// How many constraints there are besides a primary key.
    fn constraints(&self) -> usize {
        self.unique.len() + self.checks.len() + self.foreign_keys.len()
    }
}

impl Draft<'_> {
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<&'static str, SqlError> {
        const TAG: &str = "CREATE TABLE";
        refuse_table_options(create)?;
        let (schema, name) = qualified(&create.name)?;
        let schema = self.schema_of_new(schema, create.temporary)?;
        if !self.is_free(&schema, &name, create.if_not_exists)? {
            return Ok(if create.query.is_some() { "CREATE TABLE AS" } else { TAG });
        }
        let mut table = Table {
            replicated: is_replicated(&create.table_options)?,
            ..Table::empty(self.number(), self.storage())
        };
        let mut parts = Parts::default();
        if create.query.is_some() {
            self.create_table_as(create, &schema, &name, &mut table)?;
            return Ok("CREATE TABLE AS");
        }
        let mut likes = Vec::new();
        for column in &create.columns {
            match likened(column) {
                Some((other, options)) => {
                    let other = (&other, options.as_str());
                    likes.push(self.columns_like(other, &name, &mut table, &mut parts)?);
                }
                None => self.add_column(&name, &mut table, &mut parts, column)?,
            }
        }
        self.qualify_generated(&name, &mut table, 0);
        for constraint in &create.constraints {
            constrain(&name, &table, &mut parts, constraint)?;
        }
        // Its name is taken before those of its parts.
        self.set(&schema, &name, Some(Definition::Table(table.clone())));
        self.add_parts(&schema, &name, &mut table, parts, true)?;
        for mut like in likes {
            self.finish_like(&schema, &name, &mut table, &mut like);
        }
        if let Some(written) = create.partition_by.as_deref() {
            table.placing = placing(written, &table)?;
        }
        self.check_expressions(&name, &table)?;
        self.set(&schema, &name, Some(Definition::Table(table)));
        Ok(TAG)
    }

    /// Adds what a table has besides columns.
    pub(super) fn add_parts(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        parts: Parts,
        is_empty: bool,
    ) -> Result<(), SqlError> {
        let sequences = parts.sequences;
        for (column, data_type, options) in sequences {
            self.go_on()?;
            check_identity_type(data_type)?;
            let sequence = self.free_name(schema, &[name, &column, "seq"]);
            let owner = Some((name.to_owned(), column.clone()));
            self.new_sequence(schema, &sequence, data_type, owner, &options)?;
            if let Some(number) = table.column(&column) {
                table.columns[usize::from(number)].default = Some(next_value(schema, &sequence));
            }
        }
        if let Some(key) = parts.primary_key {
            self.set_primary_key(schema, name, table, key)?;
        }
        for key in parts.unique {
            self.go_on()?;
            self.unique(schema, name, table, key, is_empty)?;
        }
        for (check_name, condition) in parts.checks {
            self.go_on()?;
            let binder = Binder::new(&self.catalog, self.surroundings);
            let condition = binder.qualified_expression(&condition, Some((name, table)));
            let check_name = match check_name {
                Some(given) => given,
                None => self.free_check(name, table, &condition)?,
            };
            is_free_constraint(name, table, &check_name)?;
            table.checks.push(Check { object: self.number(), name: check_name, condition });
        }
        for foreign_key in parts.foreign_keys {
            self.go_on()?;
            self.add_foreign_key(schema, name, table, foreign_key, is_empty)?;
        }
        Ok(())
    }

    /// The columns that a condition on the rows of a table is about, by number.
    pub(super) fn columns_in(
        &self,
        name: &str,
        table: &Table,
        condition: &str,
    ) -> Result<BTreeSet<u16>, SqlError> {
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        Ok(columns_of(&mut binder.check_condition(name, table, condition)?))
    }

    /// A name for a check that the table does not have yet: with the column, if the check is about one.
    fn free_check(&self, name: &str, table: &Table, condition: &str) -> Result<String, SqlError> {
        let columns = self.columns_in(name, table, condition)?;
        let stem = match columns.first() {
            Some(column) if columns.len() == 1 => {
                format!("{name}_{}_check", table.columns[usize::from(*column)].name)
            }
            _ => format!("{name}_check"),
        };
        Ok(free_constraint(table, &stem))
    }

    /// Adds a unique constraint.
    fn unique(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        key: NewKey,
        is_empty: bool,
    ) -> Result<(), SqlError> {
        let NewKey { name: index_name, columns, included } = key;
        let named = columns.iter().chain(&included);
        let names: Vec<&str> =
            named.map(|column| table.columns[usize::from(*column)].name.as_str()).collect();
        let default = || self.free_name(schema, &[&[name], names.as_slice(), &["key"]].concat());
        let index_name = index_name.unwrap_or_else(default);
        self.is_free(schema, &index_name, false)?;
        let index = NewIndex::of_constraint(index_name, columns, included);
        self.add_index(schema, name, table, NewIndex { is_empty, ..index });
        Ok(())
    }

    fn add_column(
        &mut self,
        table_name: &str,
        table: &mut Table,
        parts: &mut Parts,
        written: &ColumnDef,
    ) -> Result<(), SqlError> {
        self.go_on()?;
        let name = name_of(&written.name);
        refuse_name(&name, table)?;
        let serial = serial_type(&written.data_type);
        let data_type = match serial {
            Some(data_type) => data_type,
            None => sql_type(&written.data_type)?,
        };
        let number = table.columns.len() as u16;
        table.columns.push(Column {
            name: name.clone(),
            data_type,
            not_null: serial.is_some(),
            default: None,
            generated: None,
            missing: Datum::Null,
            identity: None,
            dropped: false,
        });
        if serial.is_some() {
            parts.sequences.push((name.clone(), data_type, Vec::new()));
        }
        for option in &written.options {
            let named = option.name.as_ref().map(name_of);
            let column = &mut table.columns[usize::from(number)];
            match &option.option {
                ColumnOption::Null | ColumnOption::Comment(_) => {}
                ColumnOption::Collation(name) => known_collation(name)?,
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Default(value) => column.default = Some(self.default_text(value)),
                ColumnOption::PrimaryKey(key) => {
                    refuse_late("PRIMARY KEY", key.characteristics.as_ref())?;
                    let key = NewKey { name: named, columns: vec![number], included: Vec::new() };
                    set_key(table_name, parts, key)?;
                }
                ColumnOption::Unique(unique) => {
                    refuse_unique(unique)?;
                    let (columns, included) = (vec![number], Vec::new());
                    parts.unique.push(NewKey { name: named, columns, included });
                }
                ColumnOption::Check(check) => {
                    let named = named.or_else(|| check.name.as_ref().map(name_of));
                    parts.checks.push((named, check.expr.to_string()));
                }
                ColumnOption::Generated { generated_as, generation_expr: None, sequence_options, .. } => {
                    column.identity = Some(matches!(generated_as, GeneratedAs::Always));
                    column.not_null = true;
                    let options = sequence_options.clone().unwrap_or_default();
                    parts.sequences.push((name.clone(), data_type, options));
                }
                ColumnOption::Generated { generation_expr: Some(written), .. } => {
                    set_generation(table_name, column, written)?;
                }
                ColumnOption::ForeignKey(written) => {
                    let name = named.or_else(|| written.name.as_ref().map(name_of));
                    let (columns, written) = (vec![number], written.clone());
                    parts.foreign_keys.push(NewForeignKey { name, columns, written, not_valid: false });
                }
                other => return Err(SqlError::unsupported(format!("the column option {other}"))),
            }
        }
        check_sources(table_name, &table.columns[usize::from(number)], serial.is_some())
    }

    /// Adds a column to a table that has rows; its constraints are left to be added.
    pub(super) fn extend(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        column: &ColumnDef,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let others = changes.parts.constraints();
        self.add_column(name, table, &mut changes.parts, column)?;
        let is_constrained = changes.parts.constraints() > others;
        let sequences = std::mem::take(&mut changes.parts.sequences);
        let last = table.columns.len() - 1;
        let is_numbered = !sequences.is_empty();
        self.qualify_generated(name, table, last);
        let is_generated = table.columns[last].generated.is_some();
        let mut is_computed = false;
        if let Some(default) = table.columns[last].default.clone() {
            match self.constant_default(&table.columns[last], &default)? {
                Some(value) => table.columns[last].missing = value,
                None => is_computed = true,
            }
        }
        if (is_numbered || is_computed) && is_constrained {
            let what = "a new column whose values are computed for each row, and a constraint of it,";
            return Err(SqlError::unsupported(what).with_hint("Add the column, and then the constraint."));
        }
        let is_computed = is_computed || is_generated;
        let column = &table.columns[last];
        if column.not_null && column.missing.is_null() && !is_numbered && !is_computed {
            let (is_null, error) = contains_nulls(name, table, last as u16);
            changes.refused.push((is_null, error.with_hint("Give it a default.")));
        }
        let column = column.name.clone();
        self.add_parts(schema, name, table, Parts { sequences, ..Parts::default() }, false)?;
        let owner = Some((name.to_owned(), column));
        changes.filled.extend(self.catalog.iter().find_map(
            |(known, sequence, definition)| match definition {
                Definition::Sequence(one) if is_numbered && known == schema && one.owner == owner => {
                    Some((last as u16, Some(sequence.to_owned())))
                }
                _ => None,
            },
        ));
        changes.filled.extend(is_computed.then_some((last as u16, None)));
        self.check_expressions(name, table)
    }

    /// The text of a default as it is kept.
    pub(super) fn default_text(&self, written: &Expr) -> String {
        Binder::new(&self.catalog, self.surroundings).qualified_expression(&written.to_string(), None)
    }

    /// The value of a default, if that is the same for all rows.
    fn constant_default(&self, column: &Column, default: &str) -> Result<Option<Datum>, SqlError> {
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        let written = crate::syntax::parse_expression(default)?;
        let bound = binder.expression(&written)?;
        let value = binder.assigned_to(bound, column.data_type, &column.name)?;
        let (now, zone) = (self.surroundings.now, self.surroundings.zone);
        let inputs = crate::execute::Inputs { now, zone, ..Default::default() };
        Ok(if is_fixed(&value) { crate::execute::evaluate(&value, &inputs) } else { None })
    }

    /// Adds a constraint to a table that has rows.
    pub(super) fn add_constraint(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        constraint: &TableConstraint,
        not_valid: bool,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let mut parts = Parts::default();
        constrain(name, table, &mut parts, constraint)?;
        if not_valid && parts.foreign_keys.is_empty() {
            return Err(SqlError::unsupported("NOT VALID of anything but a foreign key"));
        }
        parts.foreign_keys.iter_mut().for_each(|foreign_key| foreign_key.not_valid = not_valid);
        if let Some(key) = parts.primary_key.take() {
            self.add_primary_key(schema, name, table, key)?;
        }
        self.add_verified_parts(schema, name, table, parts, changes)
    }

    /// Adds to a table that has rows what it has besides columns: its rows must fulfil the checks.
    pub(super) fn add_verified_parts(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        parts: Parts,
        changes: &mut Changes,
    ) -> Result<(), SqlError> {
        let known = table.checks.len();
        self.add_parts(schema, name, table, parts, false)?;
        for check in &table.checks[known..] {
            self.verify_check(name, table, check, changes)?;
        }
        Ok(())
    }

    fn add_primary_key(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        key: NewKey,
    ) -> Result<(), SqlError> {
        if table.primary_key.is_some() {
            return Err(multiple_keys(name));
        }
        if table.indexes.iter().any(|index| index.covering) {
            let message =
                format!("another primary key of table \"{name}\" is being made, or was not finished");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("Wait for it, or drop its index."));
        }
        if self.at_once || self.has_others || !table.indexes.is_empty() {
            // The rows are written anew, as the entries of indexes name them by their keys.
            return self.set_primary_key(schema, name, table, key);
        }
        let NewKey { name: key_name, columns, included } = key;
        let key_name = key_name.unwrap_or_else(|| self.free_name(schema, &[name, "pkey"]));
        self.is_free(schema, &key_name, false)?;
        let index = NewIndex::of_constraint(key_name, columns, included);
        self.add_index(schema, name, table, NewIndex { covering: true, ..index });
        Ok(())
    }

    /// Gives the table of a definition that has no rows, or whose rows are written anew, its primary key.
    fn set_primary_key(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        NewKey { name: key_name, columns, included }: NewKey,
    ) -> Result<(), SqlError> {
        let key_name = key_name.unwrap_or_else(|| self.free_name(schema, &[name, "pkey"]));
        self.is_free(schema, &key_name, false)?;
        for column in &columns {
            table.columns[usize::from(*column)].not_null = true;
        }
        table.primary_key =
            Some(PrimaryKey { object: self.number(), name: key_name.clone(), columns, included });
        self.set(schema, &key_name, Some(Definition::Index(name.to_owned())));
        Ok(())
    }

    pub(super) fn create_schema(
        &mut self,
        name: &SchemaName,
        if_not_exists: bool,
    ) -> Result<&'static str, SqlError> {
        // Whoever it is given to, there is one user's worth of rights.
        let name = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => last_name(name)?,
            SchemaName::UnnamedAuthorization(user) => name_of(user),
        };
        if name.starts_with("pg_") || name == crate::catalog::STATE_SCHEMA {
            let message = format!("unacceptable schema name \"{name}\"");
            let detail = "The prefix \"pg_\" and the name \"ordain\" are reserved for what the server tells of itself.";
            return Err(SqlError::new(SqlState::RESERVED_NAME, message).with_detail(detail));
        }
        if self.catalog.has_schema(&name) || name == "information_schema" {
            let message = format!("schema \"{name}\" already exists");
            let error = SqlError::new(SqlState::DUPLICATE_SCHEMA, message);
            if !if_not_exists {
                return Err(error);
            }
            self.rely(&name, "");
            self.skip(&error);
        } else {
            let made = (name != PUBLIC).then(|| Definition::Schema { object: self.number() });
            self.set(&name, "", made);
        }
        Ok("CREATE SCHEMA")
    }

    /// Fails unless the checks, indexes and defaults of a table can be bound. The change relies on what they name.
    pub(super) fn check_expressions(&mut self, name: &str, table: &Table) -> Result<(), SqlError> {
        let mut binder = Binder::new(&self.catalog, self.surroundings);
        binder.shape(name, table)?;
        check_generated(&mut binder, name, table)?;
        binder.check_indexes(name, table)?;
        table.columns.iter().try_for_each(|column| binder.check_default(column))?;
        let (named, draws) = (binder.reliances, !binder.sequences.is_empty());
        named.iter().for_each(|named| self.rely(&named.schema, &named.name));
        if draws && self.names_others(&named) {
            self.count_on();
        }
        Ok(())
    }
}

/// The columns of a row that an expression over it reads, by number.
pub(super) fn columns_of(expression: &mut Expression) -> BTreeSet<u16> {
    let mut columns = BTreeSet::new();
    walk(expression, 0, &mut |expression, _| {
        if let Expression::Column(number) = expression {
            columns.insert(*number);
        }
    });
    columns
}

/// Fails if a table has so many columns, dropped ones included, that it cannot have them.
pub(super) fn check_columns(count: usize) -> Result<(), SqlError> {
    if count <= COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("tables can have at most {COLUMNS_MAX} columns");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// Fails for a name that no further column can have, and if there can be none.
pub(super) fn refuse_name(name: &str, table: &Table) -> Result<(), SqlError> {
    check_columns(table.columns.len() + 1)?;
    let message = if table.column(name).is_some() {
        format!("column \"{name}\" specified more than once")
    } else if SYSTEM_COLUMNS.contains(&name) {
        format!("column name \"{name}\" conflicts with a system column name")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
}

/// The default of a column that takes its numbers from a sequence.
fn next_value(schema: &str, sequence: &str) -> String {
    format!("nextval({})", relation_literal(schema, sequence))
}

/// A relation as a literal that names it, whatever the path.
pub(super) fn relation_literal(schema: &str, name: &str) -> String {
    format!("'{}'", relation_word(schema, name).replace('\'', "''"))
}

fn refuse_table_options(create: &CreateTable) -> Result<(), SqlError> {
    if create.on_commit.is_some() && !create.temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let refused = [
        (create.inherits.is_some(), "INHERITS"),
        (create.like.is_some(), "LIKE without parentheses"),
        (create.partition_of.is_some(), "PARTITION OF"),
        (create.on_commit == Some(OnCommit::DeleteRows), "ON COMMIT DELETE ROWS"),
    ];
    match refused.iter().find(|(is_there, _)| *is_there) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}

/// `PARTITION BY HASH (columns)`: the leading columns of the primary key that decide where a row is.
fn placing(written: &Expr, table: &Table) -> Result<u8, SqlError> {
    let wrong = || {
        SqlError::unsupported(format!("PARTITION BY {written}"))
            .with_hint("PARTITION BY HASH takes the first columns of the primary key, in their order.")
    };
    let Expr::Function(function) = written else { return Err(wrong()) };
    if last_name(&function.name)? != "hash" || !matches!(function.args, FunctionArguments::List(_)) {
        return Err(wrong());
    }
    let key = table.primary_key.as_ref().ok_or_else(wrong)?;
    let columns = arguments_of(function)?;
    for (place, column) in columns.iter().enumerate() {
        let Expr::Identifier(name) = column else { return Err(wrong()) };
        if key.columns.get(place).copied() != table.column(&name_of(name)) {
            return Err(wrong());
        }
    }
    u8::try_from(columns.len()).ok().filter(|count| *count > 0).ok_or_else(wrong)
}
