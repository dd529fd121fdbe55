//! `INSERT`, `UPDATE`, `DELETE`.

use ordain_db::data::Direction;
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, OnConflictAction,
    OnInsert, SelectItem, SetExpr, TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind,
};

use super::Binder;
use super::foreign_keys::Effect;
use super::from::fields_of;
use super::join::{Item, assemble};
use super::names::{last_name, name_of, parts_of, qualified};
use super::path::conjuncts;
use super::places;
use super::query::same_length;
use super::row_texts::without_queries;
use super::scope::{Bound, Field, Level, Relation};
use crate::catalog::{Column, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, ConflictTarget, Expression, Node, OnConflict, Path, TableShape};
use crate::syntax::at_name;
use crate::types::{Datum, SqlType};

/// What is told of rows that were written: columns and their values.
type Returning = (Option<Vec<Expression>>, Option<Vec<Field>>);

/// The table that a statement changes.
struct Target<'c> {
    schema: String,
    /// Its own name.
    name: String,
    /// Its name in the statement.
    alias: String,
    table: &'c Table,
    number: u16,
}

impl Target<'_> {
    /// Its schema, unless it has another name in the statement: see [`Level::schemas`].
    fn schemas(&self) -> Vec<(usize, String)> {
        if self.alias == self.name { vec![(0, self.schema.clone())] } else { Vec::new() }
    }
}

impl<'c> Binder<'c> {
    fn target(&mut self, written: &ObjectName, alias: Option<String>) -> Result<Target<'c>, SqlError> {
        let (schema, name) = qualified(written)?;
        let found = self.find_table(schema.as_deref(), &name);
        let (schema, table) = found.map_err(|error| at_name(error, written))?;
        let number = self.use_table(&schema, &name, table)?;
        let alias = alias.unwrap_or_else(|| name.clone());
        Ok(Target { schema, name, alias, table, number })
    }

    pub(super) fn insert(&mut self, insert: &Insert) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        if insert.overwrite || insert.or.is_some() || insert.ignore || insert.has_table_keyword {
            return Err(foreign("INSERT"));
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into anything but a table"));
        };
        let alias = insert.table_alias.as_ref().map(|alias| name_of(&alias.alias));
        let target = self.target(name, alias)?;
        let columns = target_columns(&target, &insert.columns)?;
        let named = !insert.columns.is_empty();
        self.overriding = insert.overriding;
        let source = match insert.source.as_deref() {
            None => self.default_row(&target)?,
            Some(query) => match query.body.as_ref() {
                SetExpr::Values(values)
                    if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() =>
                {
                    let rows: Vec<&[Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
                    self.value_rows(&target, &columns, named, &rows)?
                }
                _ => self.selected_rows(&target, &columns, named, query)?,
            },
        };
        let on_conflict = match &insert.on {
            None => OnConflict::Fail,
            Some(OnInsert::OnConflict(on)) => self.on_conflict(&target, on)?,
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").with_hint("Use ON CONFLICT.")),
        };
        let (returning, fields) = self.returning(&target, insert.returning.as_deref())?;
        self.follow(&target.schema, &target.name, Effect::Insert)?;
        if let OnConflict::Update { assignments, .. } = &on_conflict {
            self.follow(&target.schema, &target.name, Effect::Update(columns_of(assignments)))?;
        }
        Ok((Action::Insert { table: target.number, source, on_conflict, returning }, fields))
    }

    fn default_row(&mut self, target: &Target<'_>) -> Result<Node, SqlError> {
        let mut row = Vec::new();
        for column in &target.table.columns {
            row.push(self.default_of(column)?);
        }
        Ok(Node::Values(vec![row]))
    }

    /// Rows of `VALUES`: for each column of the table a value.
    fn value_rows(
        &mut self,
        target: &Target<'_>,
        columns: &[u16],
        named: bool,
        written: &[&[Expr]],
    ) -> Result<Node, SqlError> {
        let mut rows = Vec::with_capacity(written.len());
        for (place, values) in written.iter().enumerate() {
            same_length(&written[place.saturating_sub(1)..=place])?;
            check_count(values.len(), columns.len(), named)?;
            let mut row = Vec::with_capacity(target.table.columns.len());
            for (number, column) in (0..).zip(&target.table.columns) {
                let place = columns.iter().position(|given| *given == number);
                row.push(match place.and_then(|place| values.get(place)) {
                    Some(written) if !is_default(written) && self.takes_given(column)? => {
                        self.assigned_value(written, column)?
                    }
                    _ => self.default_of(column)?,
                });
            }
            rows.push(row);
        }
        Ok(Node::Values(rows))
    }

    /// Rows of a query: its columns, and defaults.
    fn selected_rows(
        &mut self,
        target: &Target<'_>,
        columns: &[u16],
        named: bool,
        query: &ast::Query,
    ) -> Result<Node, SqlError> {
        let (mut input, mut fields) = self.open(|binder| binder.query(query))?;
        check_count(fields.len(), columns.len(), named)?;
        // Literals and parameters are of the types of their columns.
        if let Node::Project { expressions, .. } = &mut input
            && expressions.len() == fields.len()
        {
            for ((expression, field), number) in expressions.iter_mut().zip(&mut fields).zip(columns) {
                if field.data_type == SqlType::UNKNOWN {
                    let value = Bound { expression: expression.clone(), data_type: SqlType::UNKNOWN };
                    field.data_type = target.table.columns[usize::from(*number)].data_type.plain();
                    *expression = self.implicit(value, field.data_type)?.expression;
                }
            }
        }
        let mut expressions = Vec::with_capacity(target.table.columns.len());
        for (number, column) in (0..).zip(&target.table.columns) {
            let given = columns.iter().take(fields.len()).position(|given| *given == number);
            expressions.push(match given {
                Some(place) if self.takes_given(column)? => {
                    let data_type = fields[place].data_type;
                    let value = Bound { expression: Expression::Column(place as u16), data_type };
                    self.assigned_to(value, column.data_type, &column.name)?
                }
                _ => self.default_of(column)?,
            });
        }
        Ok(Node::Project { input: Box::new(input), expressions })
    }

    /// Whether a column takes the value that it is given, and not its own nevertheless. Fails if it takes no others.
    fn takes_given(&self, column: &Column) -> Result<bool, SqlError> {
        let message = || format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
        if column.generated.is_some() {
            return Err(generated(message(), &column.name));
        }
        match (column.identity, self.overriding) {
            (Some(_), Some(ast::InsertOverriding::User)) => return Ok(false),
            (Some(true), None) => {}
            _ => return Ok(true),
        }
        Err(always_generated(message(), &column.name).with_hint("Use OVERRIDING SYSTEM VALUE to override."))
    }

    /// The value of a column that is given none; nothing for a generated one, which gets its own when the row is made.
    pub(super) fn default_of(&mut self, column: &Column) -> Result<Expression, SqlError> {
        let Some(default) = column.default.as_ref().filter(|_| !column.dropped) else {
            return Ok(Expression::Constant(Datum::Null));
        };
        let written = crate::syntax::parse_expression(default)?;
        let levels = std::mem::take(&mut self.levels);
        self.texts += 1;
        let value = self
            .expression(&written)
            .and_then(|value| self.assigned_to(value, column.data_type, &column.name));
        self.texts -= 1;
        self.levels = levels;
        without_queries(value?, "DEFAULT expression")
    }

    fn on_conflict(&mut self, target: &Target<'_>, on: &ast::OnConflict) -> Result<OnConflict, SqlError> {
        let conflict = match &on.conflict_target {
            None => ConflictTarget::Any,
            Some(ast::ConflictTarget::Columns { columns, predicate }) => {
                self.arbiter((&target.name, target.table), target.number, columns, predicate.as_ref())?
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                self.arbiter_named((&target.name, target.table), target.number, &last_name(name)?)?
            }
        };
        match &on.action {
            OnConflictAction::DoNothing => Ok(OnConflict::Nothing(conflict)),
            OnConflictAction::DoUpdate(_) if conflict == ConflictTarget::Any => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            )),
            OnConflictAction::DoUpdate(update) => {
                let width = target.table.columns.len() as u16;
                let there = Relation {
                    name: target.alias.clone(),
                    fields: fields_of(target.table),
                    offset: 0,
                    key: Vec::new(),
                };
                let mut new = Relation {
                    name: "excluded".to_owned(),
                    fields: fields_of(target.table),
                    offset: width,
                    key: Vec::new(),
                };
                // A column without a relation is that of the row that is there.
                new.fields.iter_mut().for_each(|field| field.hidden = true);
                let schemas = target.schemas();
                self.levels.push(Level { relations: vec![there, new], schemas, ..Level::default() });
                let bound = self.do_update(target, update);
                self.levels.pop();
                let (assignments, condition) = bound?;
                Ok(OnConflict::Update { target: conflict, assignments, condition })
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "used once")]
    fn do_update(
        &mut self,
        target: &Target<'_>,
        update: &ast::DoUpdate,
    ) -> Result<(Vec<(u16, Expression)>, Option<Expression>), SqlError> {
        let assignments = self.assignments(target, &update.assignments)?;
        let condition = match &update.selection {
            Some(condition) => Some(self.condition(condition, "WHERE")?),
            None => None,
        };
        Ok((assignments, condition))
    }

    /// New values of columns, over the current level.
    fn assignments(
        &mut self,
        target: &Target<'_>,
        written: &[Assignment],
    ) -> Result<Vec<(u16, Expression)>, SqlError> {
        let mut pairs: Vec<(&ObjectName, &Expr)> = Vec::new();
        for assignment in written {
            match (&assignment.target, &assignment.value) {
                (AssignmentTarget::ColumnName(name), value) => pairs.push((name, value)),
                (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                    pairs.extend(names.iter().zip(values));
                }
                _ => return Err(SqlError::unsupported("an assignment of a row that is computed")),
            }
        }
        let mut assignments: Vec<(u16, Expression)> = Vec::new();
        for (named, written) in pairs {
            let name = assigned_column(named)?;
            let number = column_number(target, &name).map_err(|error| at_name(error, named))?;
            let column = &target.table.columns[usize::from(number)];
            let value = if is_default(written) {
                self.default_of(column)?
            } else if column.identity == Some(true) || column.generated.is_some() {
                let message = format!("column \"{name}\" can only be updated to DEFAULT");
                let refused = if column.generated.is_some() { generated } else { always_generated };
                return Err(refused(message, &name));
            } else {
                self.assigned_value(written, column)?
            };
            if assignments.iter().any(|(known, _)| *known == number) {
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            assignments.push((number, value));
        }
        Ok(assignments)
    }

    /// An expression as a value of a column.
    fn assigned_value(&mut self, written: &Expr, column: &Column) -> Result<Expression, SqlError> {
        let value = self.expression(written)?;
        let assigned = self.assigned_to(value, column.data_type, &column.name);
        assigned.map_err(|error| places::of_expression(error, written))
    }

    fn returning(
        &mut self,
        target: &Target<'_>,
        items: Option<&[SelectItem]>,
    ) -> Result<Returning, SqlError> {
        let Some(items) = items else { return Ok((None, None)) };
        let relation = Relation {
            name: target.alias.clone(),
            fields: fields_of(target.table),
            offset: 0,
            key: Vec::new(),
        };
        let schemas = target.schemas();
        self.levels.push(Level { relations: vec![relation], schemas, ..Level::default() });
        let outputs = self.outputs(items, false);
        self.levels.pop();
        let (fields, expressions) = outputs?.into_iter().unzip();
        Ok((Some(expressions), Some(fields)))
    }

    pub(super) fn update(&mut self, update: &Update) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        if !update.table.joins.is_empty() || !update.order_by.is_empty() || update.limit.is_some() {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
        if update.or.is_some() {
            return Err(foreign("UPDATE"));
        }
        let target = self.target_of(&update.table)?;
        let others: &[TableWithJoins] = match &update.from {
            None => &[],
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from,
        };
        self.levels.push(Level::default());
        let bound = self.update_within(&target, update, others);
        self.levels.pop();
        bound
    }

    fn update_within(
        &mut self,
        target: &Target<'_>,
        update: &Update,
        others: &[TableWithJoins],
    ) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        let source = self.source(target, others, update.selection.as_ref())?;
        let assignments = self.assignments(target, &update.assignments)?;
        let (returning, fields) = self.returning_here(update.returning.as_deref())?;
        self.follow(&target.schema, &target.name, Effect::Update(columns_of(&assignments)))?;
        Ok((Action::Update { table: target.number, source, assignments, returning }, fields))
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [table] = tables.as_slice() else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        if !delete.order_by.is_empty() || delete.limit.is_some() || !table.joins.is_empty() {
            return Err(SqlError::unsupported("this form of DELETE"));
        }
        if !delete.tables.is_empty() {
            return Err(foreign("DELETE"));
        }
        let target = self.target_of(table)?;
        self.levels.push(Level::default());
        let bound = self.delete_within(&target, delete);
        self.levels.pop();
        bound
    }

    fn delete_within(
        &mut self,
        target: &Target<'_>,
        delete: &Delete,
    ) -> Result<(Action, Option<Vec<Field>>), SqlError> {
        let others = delete.using.as_deref().unwrap_or_default();
        let source = self.source(target, others, delete.selection.as_ref())?;
        let (returning, fields) = self.returning_here(delete.returning.as_deref())?;
        self.follow(&target.schema, &target.name, Effect::Delete)?;
        Ok((Action::Delete { table: target.number, source, returning }, fields))
    }

    fn target_of(&mut self, table: &TableWithJoins) -> Result<Target<'c>, SqlError> {
        match &table.relation {
            TableFactor::Table { name, alias, args: None, .. } => {
                self.target(name, alias.as_ref().map(|alias| name_of(&alias.name)))
            }
            other => Err(SqlError::unsupported(format!("a change of {other}"))),
        }
    }

    /// The rows of the target, and what others they are joined with, that fulfil a condition; binds all of them into the level.
    fn source(
        &mut self,
        target: &Target<'_>,
        others: &[TableWithJoins],
        condition: Option<&Expr>,
    ) -> Result<Node, SqlError> {
        let mut fields = fields_of(target.table);
        let mut table = target.number;
        if target.table.primary_key.is_none() && !others.is_empty() {
            // Of rows that were joined, nothing else tells which they are: a column without a name, as one that was dropped.
            let data_type = SqlType::BYTEA;
            fields.push(Field { name: String::new(), data_type, origin: None, hidden: true });
            let shape = TableShape { gives_key: true, ..self.shape_of(table).clone() };
            table = self.tables.len() as u16;
            self.tables.push(shape);
        }
        let relation = Relation { name: target.alias.clone(), fields, offset: 0, key: Vec::new() };
        let scan = Node::scan(table, Path::All, Direction::Ascending, None);
        let mut items = vec![Item::first(scan, relation.fields.len() as u16)];
        self.level().schemas.extend(target.schemas());
        self.level().relations.push(relation);
        items.extend(self.from(others)?);
        let mut conditions = Vec::new();
        if let Some(condition) = condition {
            conjuncts(self.condition(condition, "WHERE")?, &mut conditions);
        }
        Ok(assemble(self, items, &mut conditions))
    }

    /// What is told of changed rows, over the current level.
    fn returning_here(&mut self, items: Option<&[SelectItem]>) -> Result<Returning, SqlError> {
        let Some(items) = items else { return Ok((None, None)) };
        let (fields, expressions) = self.outputs(items, false)?.into_iter().unzip();
        Ok((Some(expressions), Some(fields)))
    }

    /// A default as written is one that its column can take.
    pub(super) fn check_default(&mut self, column: &Column) -> Result<(), SqlError> {
        self.default_of(column).map(|_| ())
    }
}

/// The error of a form that other databases have.
pub(super) fn foreign(what: &str) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("syntax error: {what} with words that PostgreSQL does not know"),
    )
}

/// The columns that are assigned to.
fn columns_of(assignments: &[(u16, Expression)]) -> Vec<u16> {
    assignments.iter().map(|(column, _)| *column).collect()
}

/// The numbers of the columns that are given, in order.
fn target_columns(target: &Target<'_>, written: &[ObjectName]) -> Result<Vec<u16>, SqlError> {
    if written.is_empty() {
        let all = (0..).zip(&target.table.columns).filter(|(_, column)| !column.dropped);
        return Ok(all.map(|(number, _)| number).collect());
    }
    let mut columns = Vec::with_capacity(written.len());
    for written in written {
        let name = last_name(written)?;
        let number = column_number(target, &name).map_err(|error| at_name(error, written))?;
        if columns.contains(&number) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(number);
    }
    Ok(columns)
}

fn column_number(target: &Target<'_>, name: &str) -> Result<u16, SqlError> {
    target.table.column(name).ok_or_else(|| {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", target.name);
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

fn assigned_column(name: &ObjectName) -> Result<String, SqlError> {
    let mut parts = parts_of(name)?;
    match (parts.len(), parts.pop()) {
        (1, Some(name)) => Ok(name),
        _ => Err(SqlError::unsupported(format!("the assignment to {name}"))),
    }
}

fn check_count(given: usize, columns: usize, named: bool) -> Result<(), SqlError> {
    if named && given < columns {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "INSERT has more target columns than expressions"));
    }
    if given > columns {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "INSERT has more expressions than target columns"));
    }
    Ok(())
}

fn generated(message: String, column: &str) -> SqlError {
    SqlError::new(SqlState::GENERATED_ALWAYS, message)
        .with_detail(format!("Column \"{column}\" is a generated column."))
}

fn always_generated(message: String, column: &str) -> SqlError {
    SqlError::new(SqlState::GENERATED_ALWAYS, message)
        .with_detail(format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS."))
}

fn is_default(written: &Expr) -> bool {
    matches!(written, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}
