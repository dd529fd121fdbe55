//! Definitions that write rows: `ALTER COLUMN … TYPE` and `CREATE TABLE … AS`. Their rows are written in the same transaction, so
//! there may be no more of them than one transaction can take.

use ordain_db::data::Direction;
use sqlparser::ast::{AlterColumnOperation, CreateTable, DataType, Expr};

use super::super::from::fields_of;
use super::super::names::name_of;
use super::super::row_texts::without_queries;
use super::super::scope::{Bound, Level, Relation};
use super::super::types::sql_type;
use super::super::{Binder, first_words};
use super::Draft;
use super::create::{Filled, check_columns};
use crate::catalog::{Column, Definition, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, Expression, Node, OnConflict, Path, SharedPlan};
use crate::types::cast::{self, CastContext};
use crate::types::{BaseType, Datum, SqlType};

/// The new values of a column whose type changes, over the row as it was.
pub(super) type Conversion = (u16, Expression);

impl Draft<'_> {
    /// Changes the type of a column. Where values stay as they are, only the definition changes.
    pub(super) fn change_type(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        number: u16,
        operation: &AlterColumnOperation,
    ) -> Result<Option<Conversion>, SqlError> {
        let AlterColumnOperation::SetDataType { data_type, using, .. } = operation else {
            return Err(SqlError::unsupported(format!("ALTER COLUMN {operation}")));
        };
        let column = table.columns[usize::from(number)].clone();
        let data_type = column_type(data_type)?;
        self.refuse_generating(name, table, number)?;
        if using.is_some() && column.generated.is_some() {
            let message = "cannot specify USING when altering type of generated column";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_DEFINITION, message)
                .with_detail(format!("Column \"{}\" is a generated column.", column.name)));
        }
        let conversion = match using {
            // What an index computes of the same value may be another one.
            None if is_kept(column.data_type, data_type)
                && !self.is_computed_with(name, table, number)? =>
            {
                None
            }
            using => Some((number, self.converted(schema, name, table, number, data_type, using.as_ref())?)),
        };
        if conversion.is_some() {
            let refers = table.foreign_keys.iter().any(|known| known.columns.contains(&number));
            let referred = self.referrers_of(table, "", |columns| columns.contains(&number));
            if refers || referred.first().is_some() {
                return Err(SqlError::unsupported(format!(
                    "changing the values of column \"{}\", which a foreign key is about,",
                    column.name
                ))
                .with_hint("Drop the foreign key, change the type, and add the foreign key again."));
            }
        }
        table.columns[usize::from(number)].data_type = data_type;
        if conversion.is_some() {
            // Every row is written anew, with all columns.
            table.columns[usize::from(number)].missing = Datum::Null;
        }
        let views = self.views_without(schema, name, table, &format!("column \"{}\"", column.name));
        if let Some(view) = views.first() {
            let message = "cannot alter type of a column used by a view or rule";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail(format!("{view} depends on column \"{}\".", column.name)));
        }
        self.check_expressions(name, table).map_err(|error| {
            let what = if column.generated.is_some() { "generation expression" } else { "default" };
            let is_given = column.default.is_none() && column.generated.is_none();
            if error.state != SqlState::DATATYPE_MISMATCH || is_given {
                return error;
            }
            let to = data_type.name();
            let message =
                format!("{what} for column \"{}\" cannot be cast automatically to type {to}", column.name);
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })?;
        Ok(conversion)
    }

    /// The value of a column as another type, over the row as it was.
    fn converted(
        &self,
        schema: &str,
        name: &str,
        table: &Table,
        number: u16,
        to: SqlType,
        using: Option<&Expr>,
    ) -> Result<Expression, SqlError> {
        let Some(Definition::Table(before)) = self.before.get(schema, name) else {
            return Err(SqlError::unsupported("changing the type of a column of a table that is renamed"));
        };
        let column = &table.columns[usize::from(number)];
        if usize::from(number) >= before.columns.len() {
            return Err(SqlError::unsupported("changing the type of a column that is added"));
        }
        let mut binder = Binder::new(self.before, self.surroundings);
        let relation =
            Relation { name: name.to_owned(), fields: fields_of(before), offset: 0, key: Vec::new() };
        binder.levels = vec![Level { relations: vec![relation], is_of_any_schema: true, ..Level::default() }];
        let value = match using {
            Some(written) => {
                let bound = binder.expression(written)?;
                Bound { expression: without_queries(bound.expression, "transform expression")?, ..bound }
            }
            None => Bound { expression: Expression::Column(number), data_type: column.data_type },
        };
        let from = value.data_type;
        let is_free = from == SqlType::UNKNOWN
            || cast::allowed(from, to).is_some_and(|weakest| weakest <= CastContext::Assignment);
        if !is_free {
            let takes_using = column.generated.is_none();
            let (column, to) = (&column.name, to.name());
            let (message, hint) = match using {
                None => (
                    format!("column \"{column}\" cannot be cast automatically to type {to}"),
                    format!("You might need to specify \"USING {column}::{to}\"."),
                ),
                Some(_) => (
                    format!(
                        "result of USING clause for column \"{column}\" cannot be cast automatically to type {to}"
                    ),
                    "You might need to add an explicit cast.".to_owned(),
                ),
            };
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
            return Err(if takes_using { error.with_hint(hint) } else { error });
        }
        binder.assigned_to(value, to, &column.name)
    }

    /// Has the rows of a table written anew into new storages where that has another primary key or none, or columns are converted or filled.
    pub(super) fn rewrite(
        &mut self,
        schema: &str,
        name: &str,
        table: &mut Table,
        mut conversions: Vec<Conversion>,
        filled: &[Filled],
    ) -> Result<(), SqlError> {
        let keyed_by =
            |table: &Table| table.primary_key.as_ref().map(|key| (key.columns.clone(), table.placing));
        let is_keyed_anew = matches!(self.before.get(schema, name), Some(Definition::Table(before)) if keyed_by(before) != keyed_by(table));
        if !is_keyed_anew && conversions.is_empty() && filled.is_empty() {
            return Ok(());
        }
        self.renew_storages(table);
        let mut binder = Binder::new(self.before, self.surroundings);
        let (schema, before) = binder.find_table(Some(schema), name)?;
        let source = binder.use_table(&schema, name, before)?;
        for (number, sequence) in filled {
            let column = &table.columns[usize::from(*number)];
            let Some(sequence) = sequence else {
                conversions.push((*number, binder.default_of(column)?));
                continue;
            };
            // It is made in the same transaction, so there is nothing yet to rely on.
            let Some(Definition::Sequence(made)) = self.catalog.get(&schema, sequence) else { continue };
            let expression = Expression::NextValue(binder.sequences.len() as u16);
            binder.sequences.push(made.shape(sequence));
            let value = Bound { expression, data_type: SqlType::INT8 };
            conversions.push((*number, binder.assigned_to(value, column.data_type, &column.name)?));
        }
        let expressions = new_row(before, table, &conversions);
        let (path, direction) = (Path::All, Direction::Ascending);
        let scan = Node::scan(source, path, direction, None);
        let shape = binder.shape(name, table)?;
        let target = binder.tables.len() as u16;
        binder.tables.push(shape);
        let source = Node::Project { input: Box::new(scan), expressions };
        self.rewrites.push(insertion(binder, target, source));
        Ok(())
    }

    /// Makes a table of the rows of a query.
    pub(super) fn create_table_as(
        &mut self,
        create: &CreateTable,
        schema: &str,
        name: &str,
        table: &mut Table,
    ) -> Result<(), SqlError> {
        let Some(query) = &create.query else { return Ok(()) };
        if !create.columns.is_empty() || !create.constraints.is_empty() {
            return Err(SqlError::unsupported("CREATE TABLE AS with a list of columns")
                .with_hint("Name the columns in the query."));
        }
        let mut binder = Binder::until_told(self.before, self.surroundings, self.told);
        let (action, fields) = binder.query_statement(query)?;
        let (Action::Query(source), Some(fields)) = (action, fields) else {
            return Err(SqlError::unsupported(format!(
                "CREATE TABLE AS {}",
                first_words(&query.to_string())
            )));
        };
        check_columns(fields.len())?;
        for field in &fields {
            if table.column(&field.name).is_some() {
                let message = format!("column \"{}\" specified more than once", field.name);
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            let data_type = if field.data_type.is_unknown() { SqlType::TEXT } else { field.data_type };
            table.columns.push(Column {
                name: field.name.clone(),
                data_type,
                not_null: false,
                default: None,
                generated: None,
                missing: Datum::Null,
                identity: None,
                dropped: false,
            });
        }
        self.set(schema, name, Some(Definition::Table(table.clone())));
        let number = binder.tables.len() as u16;
        binder.tables.push(table.shape(name));
        if create.with_data.as_ref().is_none_or(|with| with.data) {
            self.rows = Some(insertion(binder, number, source));
        }
        Ok(())
    }

    /// Gives a table and its indexes new storages; what is in the old ones is deleted by and by.
    pub(super) fn renew_storages(&mut self, table: &mut Table) {
        self.discard(table.storage, table.replicated);
        table.storage = self.storage();
        for place in 0..table.indexes.len() {
            self.discard(table.indexes[place].storage, table.replicated);
            table.indexes[place].storage = self.storage();
        }
    }
}

/// The row of a table as it will be, over the row as it was.
pub(super) fn new_row(before: &Table, table: &Table, conversions: &[Conversion]) -> Vec<Expression> {
    let value = |(number, column): (u16, &Column)| {
        let conversion = conversions.iter().find(|(converted, _)| *converted == number);
        match conversion {
            Some((_, expression)) => expression.clone(),
            None if usize::from(number) < before.columns.len() => Expression::Column(number),
            None => Expression::Constant(column.missing.clone()),
        }
    };
    (0..).zip(&table.columns).map(value).collect()
}

/// The plan that inserts the rows of a query into one of its tables.
fn insertion(binder: Binder<'_>, table: u16, source: Node) -> SharedPlan {
    let action = Action::Insert { table, source, on_conflict: OnConflict::Fail, returning: None };
    binder.finish(action, None).plan
}

fn column_type(written: &DataType) -> Result<SqlType, SqlError> {
    match written {
        DataType::Custom(name, _) if super::super::types::serial_type(written).is_some() => {
            let name = name.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, name_of);
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist")))
        }
        _ => sql_type(written),
    }
}

/// Whether all values of a type are, as they are stored, values of another.
fn is_kept(from: SqlType, to: SqlType) -> bool {
    let width = |data_type: SqlType| match data_type.base {
        BaseType::Int2 => 2,
        BaseType::Int4 => 4,
        _ => 8,
    };
    if from == to {
        return true;
    }
    if from.is_integer() && to.is_integer() {
        return width(from) <= width(to);
    }
    let is_varying =
        |data_type: SqlType| !data_type.array && matches!(data_type.base, BaseType::Varchar | BaseType::Text);
    if is_varying(from) && is_varying(to) {
        return match (from.length(), to.length()) {
            (_, None) => true,
            (Some(from), Some(to)) => from <= to,
            (None, Some(_)) => false,
        };
    }
    match (from.precision_and_scale(), to.precision_and_scale()) {
        (Some(_), None) => from.is_same(to),
        (Some((precision, scale)), Some((wider, same))) => precision <= wider && scale == same,
        _ => false,
    }
}
