//! Which foreign keys a statement must look at: those of the rows that it writes, and those that refer to rows that it takes away or
//! changes, and so on where these make others change.

use ordain_db::data::Direction;

use super::{Binder, walk};
use crate::catalog::{ForeignKey, Index, Named, Table};
use crate::error::{SqlError, SqlState};
use crate::execute::refers_to_nothing;
use crate::plan::{
    Action, Expression, ForeignKeyShape, IndexState, JoinKind, Node, Path, Plan, ReferentialAction, Search,
    SharedPlan, TableShape,
};
use crate::types::{Datum, SqlType, Zone, cast};

/// What happens to rows of a table.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Effect {
    /// There are new ones.
    Insert,
    /// These columns change.
    Update(Vec<u16>),
    /// Some are deleted.
    Delete,
}

impl Effect {
    /// Whether rows may have other values in some columns than before.
    fn writes(&self, columns: &[u16]) -> bool {
        match self {
            Effect::Insert => true,
            Effect::Update(changed) => columns.iter().any(|column| changed.contains(column)),
            Effect::Delete => false,
        }
    }

    /// Whether values that there were in some columns may be gone.
    fn takes(&self, columns: &[u16]) -> bool {
        matches!(self, Effect::Delete) || (*self != Effect::Insert && self.writes(columns))
    }
}

impl<'c> Binder<'c> {
    /// Adds the foreign keys to the plan that an effect on a table leads to.
    pub(super) fn follow(&mut self, schema: &str, name: &str, effect: Effect) -> Result<(), SqlError> {
        let mut known = vec![((schema.to_owned(), name.to_owned()), effect)];
        let mut place = 0;
        while let Some((at, effect)) = known.get(place).cloned() {
            let (_, table) = self.find_table(Some(&at.0), &at.1)?;
            let effect = self.with_generated(&at.1, table, effect)?;
            for foreign_key in &table.foreign_keys {
                if effect.writes(&foreign_key.columns) {
                    self.use_foreign_key(&at, table, foreign_key)?;
                }
            }
            for (child, foreign_key) in self.referring(table)? {
                if !effect.takes(&foreign_key.referenced) {
                    continue;
                }
                let (_, table) = self.find_table(Some(&child.0), &child.1)?;
                self.use_foreign_key(&child, table, foreign_key)?;
                let action =
                    if effect == Effect::Delete { foreign_key.on_delete } else { foreign_key.on_update };
                let next = match action {
                    ReferentialAction::NoAction | ReferentialAction::Restrict => continue,
                    ReferentialAction::Cascade if effect == Effect::Delete => Effect::Delete,
                    _ => Effect::Update(foreign_key.columns.clone()),
                };
                let next = (child, next);
                if !known.contains(&next) {
                    known.push(next);
                }
            }
            place += 1;
        }
        Ok(())
    }

    /// The effect with the generated columns that change when others do.
    fn with_generated(&mut self, name: &str, table: &Table, effect: Effect) -> Result<Effect, SqlError> {
        let Effect::Update(mut changed) = effect else { return Ok(effect) };
        for generated in self.generated(name, table)? {
            let mut follows = false;
            walk::columns(&generated.value, |column| follows |= changed.contains(&column));
            if follows {
                changed.push(generated.column);
            }
        }
        Ok(Effect::Update(changed))
    }

    /// The foreign keys that refer to a table, with the tables that have them.
    fn referring(&mut self, table: &Table) -> Result<Vec<(Named, &'c ForeignKey)>, SqlError> {
        let mut found = Vec::with_capacity(table.referrers.len());
        for referrer in &table.referrers {
            let (schema, name) = &referrer.table;
            let (_, child) = self.find_table(Some(schema), name)?;
            found.extend(
                child
                    .foreign_keys
                    .iter()
                    .filter(|known| known.object == referrer.object)
                    .map(|known| (referrer.table.clone(), known)),
            );
        }
        Ok(found)
    }

    /// Adds a foreign key to the plan; its number.
    pub(super) fn use_foreign_key(
        &mut self,
        at: &Named,
        table: &Table,
        foreign_key: &ForeignKey,
    ) -> Result<usize, SqlError> {
        let number = self.use_table(&at.0, &at.1, table)?;
        let known = |known: &ForeignKeyShape| known.table == number && known.name == foreign_key.name;
        if let Some(place) = self.foreign_keys.iter().position(known) {
            return Ok(place);
        }
        let (schema, name) = &foreign_key.table;
        let (_, other) = self.find_table(Some(schema), name)?;
        let referenced = self.use_table(schema, name, other)?;
        let target = target(other, &foreign_key.referenced).ok_or_else(|| no_unique_constraint(name))?;
        let mut defaults = Vec::new();
        if [foreign_key.on_delete, foreign_key.on_update].contains(&ReferentialAction::SetDefault) {
            for column in &foreign_key.columns {
                defaults.push(self.default_of(&table.columns[usize::from(*column)])?);
            }
        }
        let search = search(self.shape_of(number), self.shape_of(referenced), foreign_key);
        self.foreign_keys.push(ForeignKeyShape {
            name: foreign_key.name.clone(),
            table: number,
            columns: foreign_key.columns.clone(),
            referenced,
            referenced_columns: foreign_key.referenced.clone(),
            target,
            search,
            on_delete: foreign_key.on_delete,
            on_update: foreign_key.on_update,
            deferred: foreign_key.deferrable == Some(true),
            defaults,
        });
        Ok(self.foreign_keys.len() - 1)
    }
}

/// What is unique in some columns of a table: the primary key (`None`), or an index.
#[expect(clippy::option_option, reason = "a table may have neither")]
pub(super) fn target(table: &Table, columns: &[u16]) -> Option<Option<u16>> {
    let is_same = |others: &[u16]| {
        others.len() == columns.len() && others.iter().all(|column| columns.contains(column))
    };
    if table.primary_key.as_ref().is_some_and(|key| is_same(&key.columns)) {
        return Some(None);
    }
    let is_usable = |index: &Index| {
        let is_whole = index.unique && !index.covering && index.state == IndexState::Ready;
        is_whole && index.plain_columns().is_some_and(|others| is_same(&others))
    };
    let place = table.indexes.iter().position(is_usable)?;
    u16::try_from(place).ok().map(Some)
}

/// The error of a foreign key that refers to columns that are not unique.
pub(super) fn no_unique_constraint(table: &str) -> SqlError {
    let message =
        format!("there is no unique constraint matching given keys for referenced table \"{table}\"");
    SqlError::new(SqlState::INVALID_FOREIGN_KEY, message)
}

/// The way to the rows of a table that refer to a key: the index, or the primary key, that begins with most of the columns.
fn search(shape: &TableShape, other: &TableShape, foreign_key: &ForeignKey) -> Search {
    let types = |(own, referenced): (&u16, &u16)| {
        let column_type = |shape: &TableShape, column: u16| shape.columns[usize::from(column)].data_type;
        is_alike(column_type(shape, *own), column_type(other, *referenced))
    };
    if !foreign_key.columns.iter().zip(&foreign_key.referenced).all(types) {
        return Search::All;
    }
    let places = |columns: &[u16]| {
        let place = |column: &u16| foreign_key.columns.iter().position(|known| known == column);
        columns.iter().map_while(place).map(|place| place as u16).collect::<Vec<u16>>()
    };
    let mut best = (None, places(&shape.key));
    for (number, index) in (0..).zip(&shape.indexes) {
        if index.state == IndexState::Ready && !index.covering && index.predicate.is_none() {
            let places = places(&index.columns);
            if places.len() > best.1.len() {
                best = (Some(number), places);
            }
        }
    }
    let (index, places) = best;
    if places.is_empty() { Search::All } else { Search::Range { index, places } }
}

/// Whether equal values of two types have the same form in keys.
fn is_alike(own: SqlType, referenced: SqlType) -> bool {
    own.is_same(referenced) || (own.is_integer() && referenced.is_integer())
}

/// Whether a column of a type can refer to one of another.
pub(super) fn can_refer(own: SqlType, referenced: SqlType) -> bool {
    is_alike(own, referenced) || cast::allowed(own, referenced) == Some(cast::CastContext::Implicit)
}

/// A check that all rows of a table refer to something by a foreign key.
#[derive(Clone, Debug)]
pub struct RowCheck {
    /// The query that gives the values of a row that does not, if there is one.
    pub plan: SharedPlan,
    foreign_key: ForeignKeyShape,
}

impl RowCheck {
    /// The check of one of a plan's foreign keys, with what that plan relies on.
    fn new(plan: &Plan, foreign_key: &ForeignKeyShape) -> RowCheck {
        let plan = Plan {
            reliances: plan.reliances.clone(),
            tables: plan.tables.clone(),
            ..Plan::of(violation(foreign_key, &plan.tables))
        };
        RowCheck { plan: plan.into(), foreign_key: foreign_key.clone() }
    }

    /// The checks of all foreign keys of the table that a plan inserts into, which is its first.
    pub fn of_written(plan: &Plan) -> Vec<RowCheck> {
        let foreign_keys = plan.foreign_keys.iter().filter(|foreign_key| foreign_key.table == 0);
        foreign_keys.map(|foreign_key| RowCheck::new(plan, foreign_key)).collect()
    }

    /// The check of a foreign key of a table.
    ///
    /// # Errors
    /// When what the foreign key needs is not there.
    pub(super) fn of(
        mut binder: Binder<'_>,
        at: &Named,
        table: &Table,
        foreign_key: &ForeignKey,
    ) -> Result<RowCheck, SqlError> {
        let number = binder.use_foreign_key(at, table, foreign_key)?;
        let plan = binder.finish(Action::Query(Node::Values(Vec::new())), None).plan;
        Ok(RowCheck::new(&plan, &plan.foreign_keys[number]))
    }

    /// The error of an encoded row that the query gave, with moments in a zone.
    ///
    /// # Errors
    /// When it is no row.
    pub fn error(&self, row: &[u8], zone: Zone) -> Result<SqlError, SqlError> {
        let mut values = Vec::new();
        crate::types::row::decode(row, &mut values)?;
        let ForeignKeyShape { name, table, columns, referenced, .. } = &self.foreign_key;
        let shape = |table: u16| &self.plan.tables[usize::from(table)];
        Ok(refers_to_nothing(shape(*table), name, columns, &shape(*referenced).name, &values, zone))
    }
}

/// A query that gives the values of a row that refers to nothing, if there is one.
fn violation(foreign_key: &ForeignKeyShape, tables: &[TableShape]) -> Action {
    let shape = |table: u16| &tables[usize::from(table)];
    let (own, other) = (shape(foreign_key.table), shape(foreign_key.referenced));
    let scan = |table, filter| Box::new(Node::scan(table, Path::All, Direction::Ascending, filter));
    let is_null =
        |column, negated| Expression::IsNull { operand: Box::new(Expression::Column(column)), negated };
    let refers = foreign_key.columns.iter().map(|column| is_null(*column, true)).collect();
    let mut equal = Vec::with_capacity(foreign_key.columns.len());
    for (column, referenced) in foreign_key.columns.iter().zip(&foreign_key.referenced_columns) {
        let from = own.columns[usize::from(*column)].data_type;
        let to = other.columns[usize::from(*referenced)].data_type;
        let value = Expression::Column(*column);
        let value = if is_alike(from, to) {
            value
        } else {
            Expression::Cast { operand: Box::new(value), from, to: to.plain() }
        };
        equal.push((value, Expression::Column(*referenced)));
    }
    let widths = (own.columns.len() as u16, other.columns.len() as u16);
    let joined = Node::Join {
        left: scan(foreign_key.table, Some(Expression::And(refers))),
        right: scan(foreign_key.referenced, None),
        widths,
        kind: JoinKind::Left,
        equal,
        condition: None,
        dependent: false,
    };
    let found = foreign_key.referenced_columns.first().copied().unwrap_or_default();
    let lonely = Node::Filter { input: Box::new(joined), condition: is_null(widths.0 + found, false) };
    let expressions = foreign_key.columns.iter().map(|column| Expression::Column(*column)).collect();
    let values = Node::Project { input: Box::new(lonely), expressions };
    let limit = Some(Expression::Constant(Datum::Int(1)));
    Action::Query(Node::Limit { input: Box::new(values), limit, offset: None, ties: Vec::new() })
}
