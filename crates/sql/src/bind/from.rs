//! `FROM`: relations, and how they are joined.

use ordain_db::data::Direction;
use sqlparser::ast::{
    Expr, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor,
    TableWithJoins,
};

use super::coerce::common_type;
use super::functions::plain_argument;
use super::join::{Item, assemble, full_join, right_join, used_names};
use super::modify::foreign;
use super::names::{last_name, name_of, qualified};
use super::numbering::check_relations;
use super::path::conjuncts;
use super::scope::{Bound, Field, Level, Merged, Relation, Starred};
use super::{Binder, walk};
use crate::catalog::system::{self, DescribedView};
use crate::catalog::{Definition, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, JoinKind, Node, Path};
use crate::state::StateView;
use crate::syntax::at_name;
use crate::types::operators::BinaryOperator;
use crate::types::{Datum, SqlType, functions};

/// Where the joins of an item of `FROM` begin, behind those before the comma: which they do not see.
#[derive(Clone, Copy)]
struct First {
    item: usize,
    relation: usize,
    column: u16,
}

impl<'c> Binder<'c> {
    /// Binds `FROM` into the current level.
    pub(super) fn from(&mut self, tables: &[TableWithJoins]) -> Result<Vec<Item>, SqlError> {
        let mut items = Vec::new();
        self.level().clause = "JOIN conditions";
        for table in tables {
            let first = First {
                item: items.len(),
                relation: self.level().relations.len(),
                column: self.level().width(),
            };
            self.item(&mut items, &table.relation, JoinKind::Inner)?;
            for join in &table.joins {
                self.join(&mut items, first, join)?;
            }
        }
        self.level().clause = "";
        Ok(items)
    }

    /// Binds a join with the items and relations from `first` on.
    fn join(&mut self, items: &mut Vec<Item>, first: First, join: &Join) -> Result<(), SqlError> {
        let (kind, constraint, swapped) = match &join.join_operator {
            JoinOperator::Join(on) | JoinOperator::Inner(on) => (JoinKind::Inner, on, false),
            JoinOperator::CrossJoin(on) => (JoinKind::Inner, on, false),
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (JoinKind::Left, on, false),
            JoinOperator::Right(on) | JoinOperator::RightOuter(on) => (JoinKind::Left, on, true),
            JoinOperator::FullOuter(on) => (JoinKind::Full, on, false),
            other => return Err(SqlError::unsupported(format!("the join {other:?}"))),
        };
        let keeps_right = swapped || kind == JoinKind::Full;
        let last_relation = self.level().relations.len();
        self.item(items, &join.relation, kind)?;
        let end = self.level().relations.len();
        match kind {
            JoinKind::Inner => {}
            JoinKind::Left if swapped => self.level().padded.extend(first.relation..last_relation),
            JoinKind::Left => self.level().padded.extend(last_relation..end),
            JoinKind::Full => self.level().padded.extend(first.relation..end),
        }
        let pairs = self.merged_pairs(constraint, first.relation, last_relation)?;
        let mut on = Vec::new();
        if let JoinConstraint::On(condition) = constraint {
            self.level().seen_from = first.relation;
            let bound = self.condition(condition, "JOIN/ON");
            self.level().seen_from = 0;
            conjuncts(bound?, &mut on);
        }
        for (_, left, right) in &pairs {
            on.push(self.operate(BinaryOperator::Equal, left.clone(), right.clone())?.expression);
        }
        let Some(mut last) = items.pop() else { return Ok(()) };
        last.on = on;
        if !keeps_right {
            items.push(last);
            let columns = pairs.iter().map(|(_, left, right)| shared_column(kind, left, right));
            let columns = columns.collect::<Result<_, _>>()?;
            self.merge(first.relation, &pairs, columns);
            return Ok(());
        }
        let before = items.split_off(first.item);
        let joined = self.keeping_right(before, last, swapped, first, &pairs)?;
        items.push(joined);
        Ok(())
    }

    /// A join that keeps rows of the right. It is made by itself, whatever is before the comma.
    fn keeping_right(
        &mut self,
        mut before: Vec<Item>,
        mut last: Item,
        swapped: bool,
        first: First,
        pairs: &[(String, Bound, Bound)],
    ) -> Result<Item, SqlError> {
        if last.lateral && walk::is_correlated(&last.node) {
            return Err(SqlError::unsupported("RIGHT or FULL JOIN with rows that depend on the left"));
        }
        if first.column > 0 {
            for item in before.iter_mut().chain([&mut last]) {
                if item.lateral && walk::is_correlated(&item.node) {
                    let what = "RIGHT or FULL JOIN with rows that depend on what is before the comma";
                    return Err(SqlError::unsupported(what));
                }
                item.offset -= first.column;
                item.on.iter_mut().for_each(|on| walk::renumber(on, &|column| column - first.column));
            }
        }
        let width = last.offset + last.width;
        let in_order = before.iter().any(|item| item.in_order);
        let before = assemble(self, before, &mut Vec::new());
        let before = Item { in_order, ..Item::first(before, last.offset) };
        let node = if swapped { right_join(self, before, last) } else { full_join(before, last) };
        let item = self.with_merged(node, first, width, pairs, swapped)?;
        Ok(Item { offset: first.column, ..item })
    }

    /// Columns of the left and the right of a join that have the same name and become one.
    fn merged_pairs(
        &mut self,
        constraint: &JoinConstraint,
        first: usize,
        last: usize,
    ) -> Result<Vec<(String, Bound, Bound)>, SqlError> {
        let names = match constraint {
            JoinConstraint::Using(columns) => used_names(columns)?,
            JoinConstraint::Natural => self.shared_names(first, last),
            JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            JoinConstraint::UsingAlias(..) => return Err(SqlError::unsupported("an alias of USING")),
        };
        let right = self.level().relations.split_off(last);
        let inner = Level { relations: right, merged: self.level().merged.clone(), ..Level::default() };
        // Those of the right were bound in a level of their own, and numbered for this one.
        let inner = Level {
            merged: inner
                .merged
                .iter()
                .filter(|merged| merged.first >= last)
                .map(|merged| Merged { first: 0, ..merged.clone() })
                .collect(),
            ..inner
        };
        let known = self.level().merged.clone();
        self.level().merged.retain(|merged| merged.first < last);
        let mut pairs = Vec::with_capacity(names.len());
        for name in names {
            let left = self.level().find_since(first, None, &name)?.ok_or_else(|| not_in("left", &name))?;
            let right = inner.find(None, &name)?.ok_or_else(|| not_in("right", &name))?;
            let bound = |(column, data_type)| Bound { expression: Expression::Column(column), data_type };
            pairs.push((name, bound(left), bound(right)));
        }
        self.level().merged = known;
        self.level().relations.extend(inner.relations);
        Ok(pairs)
    }

    /// The names of columns that are both in relations before the last and in that.
    fn shared_names(&mut self, first: usize, last: usize) -> Vec<String> {
        let level = self.level();
        let merged = |right: bool| {
            let known = level
                .merged
                .iter()
                .filter(move |merged| merged.first >= first && (merged.first >= last) == right);
            known.map(|merged| merged.name.clone())
        };
        let shown = |relations: &[Relation]| {
            let fields = relations.iter().flat_map(|relation| &relation.fields).filter(|field| !field.hidden);
            fields.map(|field| field.name.clone()).collect::<Vec<_>>()
        };
        let right: Vec<String> = merged(true).chain(shown(&level.relations[last..])).collect();
        let left = merged(false).chain(shown(&level.relations[first..last]));
        left.filter(|name| right.contains(name)).collect()
    }

    /// Makes each pair of columns one, which is in `columns`.
    fn merge(&mut self, first: usize, pairs: &[(String, Bound, Bound)], columns: Vec<Bound>) {
        let level = self.level();
        let mut merged = Vec::with_capacity(pairs.len());
        for ((name, left, right), column) in pairs.iter().zip(columns) {
            for side in [left, right] {
                let Expression::Column(number) = side.expression else { continue };
                level.merged.retain(|known| known.column != number);
                let relation = level.relations.iter_mut().rfind(|relation| relation.offset <= number);
                let field = relation
                    .and_then(|relation| relation.fields.get_mut(usize::from(number - relation.offset)));
                if let Some(field) = field {
                    field.hidden = true;
                }
            }
            if let Expression::Column(number) = column.expression {
                merged.push(Merged {
                    name: name.clone(),
                    column: number,
                    data_type: column.data_type,
                    first,
                });
            }
        }
        merged.append(&mut level.merged);
        level.merged = merged;
    }

    /// A join that keeps rows of the right, with columns for what it has made one: of either side, whichever has a value.
    fn with_merged(
        &mut self,
        node: Node,
        first: First,
        width: u16,
        pairs: &[(String, Bound, Bound)],
        swapped: bool,
    ) -> Result<Item, SqlError> {
        if pairs.is_empty() {
            return Ok(Item::first(node, width));
        }
        check_relations(1, usize::from(first.column + width) + pairs.len())?;
        let mut expressions: Vec<Expression> = (0..width).map(Expression::Column).collect();
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (name, left, right) in pairs {
            let (mut values, data_type) = self.unified(vec![left.clone(), right.clone()], "JOIN/USING")?;
            let column = first.column + expressions.len() as u16;
            columns.push(Bound { expression: Expression::Column(column), data_type });
            values.iter_mut().for_each(|value| walk::renumber(value, &|column| column - first.column));
            expressions.push(match values.pop() {
                // All rows of the right are there.
                Some(right) if swapped => right,
                right => Expression::Coalesce(values.into_iter().chain(right).collect()),
            });
            fields.push(Field { name: name.clone(), data_type, origin: None, hidden: true });
        }
        self.merge(first.relation, pairs, columns);
        let (all, offset) = (expressions.len() as u16, first.column + width);
        self.level().relations.push(Relation { name: String::new(), fields, offset, key: Vec::new() });
        Ok(Item::first(Node::Project { input: Box::new(node), expressions }, all))
    }

    /// Binds a relation and adds it to the level.
    fn item(&mut self, items: &mut Vec<Item>, factor: &TableFactor, kind: JoinKind) -> Result<(), SqlError> {
        let orders = self.orders;
        let (node, mut inner, lateral) = self.factor(factor)?;
        let in_order = self.orders > orders;
        let (offset, place) = (self.level().width(), self.level().relations.len());
        let fields = inner.relations.iter().map(|relation| relation.fields.len());
        check_relations(place + 1, usize::from(offset) + fields.sum::<usize>())?;
        let mut width = 0;
        for (number, relation) in inner.relations.iter().enumerate() {
            let schema = inner.schema(number);
            let level = self.level();
            // Tables of two schemas may have the same name.
            let is_other = |known: usize| {
                schema.is_some() && level.schema(known).is_some_and(|known| Some(known) != schema)
            };
            let is_taken =
                (0..place).any(|known| level.relations[known].name == relation.name && !is_other(known));
            if is_taken && !relation.name.is_empty() {
                let message = format!("table name \"{}\" specified more than once", relation.name);
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
        for relation in &mut inner.relations {
            relation.offset += offset;
            width += relation.fields.len() as u16;
        }
        let schemas = inner.schemas.into_iter().map(|(number, schema)| (number + place, schema));
        self.level().schemas.extend(schemas);
        self.level().padded.extend(inner.padded.into_iter().map(|number| number + place));
        let merged = inner.merged.into_iter();
        let merged =
            merged.map(|one| Merged { column: one.column + offset, first: one.first + place, ..one });
        self.level().merged.extend(merged);
        self.level().relations.extend(inner.relations);
        items.push(Item { node, offset, width, kind, on: Vec::new(), lateral, in_order });
        Ok(())
    }

    /// A relation by itself: its rows, the level that it is, and whether it sees those before it.
    fn factor(&mut self, factor: &TableFactor) -> Result<(Node, Level, bool), SqlError> {
        let of = |(node, relation, lateral)| {
            (node, Level { relations: vec![relation], ..Level::default() }, lateral)
        };
        match factor {
            TableFactor::Table { name, alias, args: Some(_), with_ordinality, .. }
                if last_name(name)? == "pg_partition_ancestors" =>
            {
                Ok(of(no_ancestors(*with_ordinality, alias.as_ref())?))
            }
            TableFactor::Table { with_hints, partitions, index_directives, version, json_path, .. }
                if !with_hints.is_empty()
                    || !partitions.is_empty()
                    || !index_directives.is_empty()
                    || version.is_some()
                    || json_path.is_some() =>
            {
                Err(foreign("a table"))
            }
            TableFactor::Table { sample: Some(_), .. } => Err(SqlError::unsupported("TABLESAMPLE")),
            TableFactor::Table { name, alias, args: None, .. } => {
                let named = self.named(name, alias.as_ref());
                let (node, relation) = named.map_err(|error| at_name(error, name))?;
                let schema = if alias.is_none() { self.schema_named(name)? } else { None };
                let schemas = schema.map(|schema| (0, schema)).into_iter().collect();
                Ok((node, Level { relations: vec![relation], schemas, ..Level::default() }, false))
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                Ok(of(self.table_function(name, &args.args, *with_ordinality, alias.as_ref())?))
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                Ok(of(self.table_function(name, args, *with_ordinality, alias.as_ref())?))
            }
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                let calls = [("unnest".to_owned(), array_exprs.clone())];
                Ok(of(self.sets(&calls, *with_ordinality, alias.as_ref())?))
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let (node, fields) = if *lateral {
                    self.deeper(|binder| binder.query(subquery))?
                } else {
                    let level = self.levels.pop();
                    let bound = self.deeper(|binder| binder.query(subquery));
                    self.levels.extend(level);
                    bound?
                };
                Ok(of((node, aliased(String::new(), fields, alias.as_ref())?, *lateral)))
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let level = self.levels.pop();
                self.levels.push(Level::default());
                let bound = self.deeper(|binder| binder.from(std::slice::from_ref(table_with_joins)));
                let columns = match (&bound, alias) {
                    (Ok(_), Some(_)) => Some(self.all_of(None)),
                    _ => None,
                };
                let inner = self.levels.pop().unwrap_or_default();
                self.levels.extend(level);
                let node = assemble(self, bound?, &mut Vec::new());
                match columns {
                    Some(columns) => Ok(of(joined_as(node, columns?, alias.as_ref())?)),
                    None => Ok((node, inner, false)),
                }
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    /// The schema of the table or view that a name stands for, unless it is a query of `WITH`.
    fn schema_named(&mut self, name: &ObjectName) -> Result<Option<String>, SqlError> {
        let (schema, last) = qualified(name)?;
        if schema.is_none() && self.named.iter().any(|known| known.name == last) {
            return Ok(None);
        }
        let is_of_system = StateView::find(schema.as_deref(), &last).is_some() || system::is_named(&last);
        if is_of_system {
            return Ok(Some(schema.unwrap_or_else(|| "pg_catalog".to_owned())));
        }
        Ok(self.find(schema.as_deref(), &last).map(|(schema, _)| schema))
    }

    fn named(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<(Node, Relation), SqlError> {
        let (schema, last) = qualified(name)?;
        if schema.is_none()
            && let Some(place) = self.named.iter().rposition(|known| known.name == last)
        {
            let (node, fields) = self.with_query(place)?;
            return Ok((node, aliased(last, fields, alias)?));
        }
        if let Some(view) = StateView::find(schema.as_deref(), &last) {
            return self.state_view(view, last, alias);
        }
        if matches!(schema.as_deref(), None | Some("pg_catalog")) && functions::is_view(&last) {
            let (node, relation, _) = self.sets(&[(last, Vec::new())], false, alias)?;
            return Ok((node, relation));
        }
        let views = if system::describes_views(&last) { self.described_views() } else { Vec::new() };
        if let Some((rows, fields)) =
            system::table(self.catalog, &views, self.surroundings, schema.as_deref(), &last)
        {
            let constant = |row: Vec<Datum>| row.into_iter().map(Expression::Constant).collect();
            let node = Node::Values(rows.into_iter().map(constant).collect());
            let fields = fields.into_iter().map(|(name, data_type)| Field {
                name: name.to_owned(),
                data_type,
                origin: None,
                hidden: name == system::TABLE_NUMBER,
            });
            return Ok((node, aliased(last, fields.collect(), alias)?));
        }
        let found = self.find(schema.as_deref(), &last);
        if let (None, Some((schema, _))) = (&schema, &found) {
            self.name_meant(name.0.last().and_then(|part| part.as_ident()), schema);
        }
        match found {
            Some((schema, Definition::Table(table))) => {
                self.name_relation(&schema, &last);
                let number = self.use_table(&schema, &last, table)?;
                let (path, direction) = (Path::All, Direction::Ascending);
                let node = Node::scan(number, path, direction, None);
                let mut relation = aliased(last, fields_of(table), alias)?;
                relation.key = table.primary_key.as_ref().map_or_else(Vec::new, |key| key.columns.clone());
                Ok((node, relation))
            }
            Some((schema, Definition::View { columns, query, .. })) => {
                self.rely(&schema, &last);
                self.name_relation(&schema, &last);
                self.count_expansion()?;
                let query = crate::syntax::parse_query(query)?;
                self.texts += 1;
                let bound = self.apart(|binder| binder.query(&query));
                self.texts -= 1;
                let (node, mut fields) = bound?;
                for (field, name) in fields.iter_mut().zip(columns) {
                    field.name.clone_from(name);
                }
                Ok((node, aliased(last, fields, alias)?))
            }
            Some(_) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is not a table"))),
            None => Err(super::undefined_table(schema.as_deref(), &last)),
        }
    }

    /// All views with their columns. One that reads system tables itself sees them without this.
    fn described_views(&self) -> Vec<DescribedView<'c>> {
        if self.describes {
            return Vec::new();
        }
        let views = self.catalog.iter().filter_map(|(schema, name, definition)| {
            let Definition::View { object, columns, query } = definition else { return None };
            let query = crate::syntax::parse_query(query).ok()?;
            let binder = &mut Binder { describes: true, ..Binder::new(self.catalog, self.surroundings) };
            let (_, fields) = binder.query(&query).ok()?;
            let types = fields.into_iter().map(|field| field.data_type);
            let columns = columns.iter().map(String::as_str).zip(types).collect();
            Some(DescribedView { schema, name, object: *object, columns })
        });
        views.collect()
    }

    /// Notes that the statement names a relation, unless a view in it does.
    fn name_relation(&mut self, schema: &str, name: &str) {
        let named = (schema.to_owned(), name.to_owned());
        if self.texts == 0 && !self.relations.contains(&named) {
            self.relations.push(named);
        }
    }

    /// Does something that sees no query around it.
    fn apart<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        let levels = std::mem::take(&mut self.levels);
        let done = self.deeper(act);
        self.levels = levels;
        done
    }

    /// A function in `FROM`, which sees the row of those before it.
    fn table_function(
        &mut self,
        name: &ObjectName,
        arguments: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<(Node, Relation, bool), SqlError> {
        let name = last_name(name)?;
        let mut written = Vec::new();
        for argument in arguments {
            written.push(plain_argument(argument)?);
        }
        if name == "generate_series" && !ordinality {
            self.levels.push(Level { clause: "functions in FROM", ..Level::default() });
            let bound = self.series(&written);
            self.levels.pop();
            // A series of integers is not made as a whole.
            if let Some((bounds, data_type)) = bound? {
                return Ok((Node::Series { bounds }, single(&name, data_type, alias)?, true));
            }
        }
        if functions::is_set(&name) {
            return self.sets(&[(name, written)], ordinality, alias);
        }
        if ordinality {
            return Err(SqlError::unsupported("WITH ORDINALITY of a function with one row"));
        }
        // A function with one value is a relation with one row.
        self.levels.push(Level { clause: "functions in FROM", ..Level::default() });
        let bound = self.function_named(&name, &written);
        self.levels.pop();
        let bound = bound?;
        let relation = single(&name, bound.data_type, alias)?;
        Ok((Node::Values(vec![vec![bound.expression]]), relation, true))
    }

    /// The bounds of a series of integers; `None` for any other.
    fn series(&mut self, written: &[Expr]) -> Result<Option<([Expression; 3], SqlType)>, SqlError> {
        let mut values = Vec::new();
        for argument in written {
            values.push(self.expression(argument)?);
        }
        let is_integer = |value: &Bound| value.data_type.is_integer() || value.data_type.is_unknown();
        if !values.iter().all(is_integer) || values.iter().all(|value| value.data_type.is_unknown()) {
            return Ok(None);
        }
        let (mut values, data_type) = self.unified(values, "generate_series")?;
        if values.len() == 2 {
            values.push(Expression::Constant(Datum::Int(1)));
        }
        Ok(<[Expression; 3]>::try_from(values).ok().map(|bounds| (bounds, data_type)))
    }

    pub(super) fn shape_of(&self, table: u16) -> &crate::plan::TableShape {
        &self.tables[usize::from(table)]
    }
}

/// Which of two columns of a join that keeps no rows of the right alone stands for both: where they are equal, that which has the type
/// that both share. Where the right may have no row it is the left, even if its type is the narrower one.
fn shared_column(kind: JoinKind, left: &Bound, right: &Bound) -> Result<Bound, SqlError> {
    let common = common_type(left.data_type, right.data_type, "JOIN/USING")?;
    let is_right = kind == JoinKind::Inner && !common.is_same(left.data_type);
    Ok(if is_right { right.clone() } else { left.clone() })
}

/// No rows, since no table is a partition of another.
fn no_ancestors(
    with_ordinality: bool,
    alias: Option<&TableAlias>,
) -> Result<(Node, Relation, bool), SqlError> {
    let field =
        |name: &str, data_type| Field { name: name.to_owned(), data_type, origin: None, hidden: false };
    let mut fields = vec![field("relid", SqlType::OID)];
    fields.extend(with_ordinality.then(|| field("ordinality", SqlType::INT8)));
    Ok((Node::Values(Vec::new()), aliased("pg_partition_ancestors".to_owned(), fields, alias)?, false))
}

fn not_in(side: &str, name: &str) -> SqlError {
    let message = format!("column \"{name}\" specified in USING clause does not exist in {side} table");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// The columns of a table.
pub(super) fn fields_of(table: &Table) -> Vec<Field> {
    let field = |(place, column): (i16, &crate::catalog::Column)| Field {
        name: column.name.clone(),
        data_type: column.data_type,
        origin: Some((table.object, place)),
        hidden: column.dropped,
    };
    (1..).zip(&table.columns).map(field).collect()
}

/// A join under an alias: one relation, of the columns that `*` stands for in it.
fn joined_as(
    node: Node,
    columns: Vec<Starred>,
    alias: Option<&TableAlias>,
) -> Result<(Node, Relation, bool), SqlError> {
    let (fields, expressions) =
        columns.into_iter().map(|Starred { field, column, .. }| (field, Expression::Column(column))).unzip();
    let node = Node::Project { input: Box::new(node), expressions };
    Ok((node, aliased(String::new(), fields, alias)?, false))
}

fn single(name: &str, data_type: SqlType, alias: Option<&TableAlias>) -> Result<Relation, SqlError> {
    let name = alias.map_or_else(|| name.to_owned(), |alias| name_of(&alias.name));
    let field = Field { name: name.clone(), data_type, origin: None, hidden: false };
    aliased(name, vec![field], alias)
}

/// The relation under its alias, if it has one.
pub(super) fn aliased(
    name: String,
    mut fields: Vec<Field>,
    alias: Option<&TableAlias>,
) -> Result<Relation, SqlError> {
    let Some(alias) = alias else { return Ok(Relation { name, fields, offset: 0, key: Vec::new() }) };
    let columns: Vec<&Ident> = alias.columns.iter().map(|column| &column.name).collect();
    let mut visible = fields.iter_mut().filter(|field| !field.hidden);
    for column in columns {
        match visible.next() {
            Some(field) => field.name = name_of(column),
            None => {
                let message = format!("table \"{}\" has fewer columns than its alias", name_of(&alias.name));
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
        }
    }
    drop(visible);
    Ok(Relation { name: name_of(&alias.name), fields, offset: 0, key: Vec::new() })
}
