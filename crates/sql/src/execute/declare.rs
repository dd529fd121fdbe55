//! What a plan will touch, as far as that is known before anything is read.
//!
//! A plan whose keys follow from its inputs is declared as a whole, and so is ordered once and never starts over. For any other the
//! database finds the footprint by reconnaissance (Calvin §3.2.1).

use std::cell::Cell;

use ordain_db::data::{DataError, Key, KeyRange};
use ordain_db::procedure::Declaration;
use ordain_db::procedure::footprint::Access;

use super::entries::indexed;
use super::foreign_keys::{referenced_key, referring_range};
use super::rows::{Place, Reading, pick, spread, whole_keys};
use super::scalar::{evaluate_within, within};
use super::work::WORK_DECLARED_MAX;
use super::{Inputs, Row};
use crate::keys::{Bounds, Storages};
use crate::plan::{
    Action, AggregateCall, ConflictTarget, Expression, ForeignKeyShape, FrameBound, IndexShape, Node,
    OnConflict, Path, Plan, ReferentialAction, SortKey, TableShape, WindowCall,
};
use crate::types::{Datum, Values};

/// Declares what a plan touches; `None` if that is not all of it, or if there is a mistake in the plan or its inputs: the run tells it.
pub fn declare(
    plan: &Plan,
    inputs: &Inputs,
    storages: &Storages,
    declaration: &mut Declaration<'_>,
) -> Option<()> {
    declare_reliances(plan, storages, declaration).ok()?;
    let left = Cell::new(WORK_DECLARED_MAX);
    let mut known = Known { plan, inputs, storages, declaration, left };
    if !inputs.claims_tables {
        return known.action(&plan.action);
    }
    match &plan.action {
        Action::Query(_) => known.tables(Access::READ),
        Action::Insert { .. } | Action::Update { .. } | Action::Delete { .. } => known.tables(Access::UPDATE),
        other => known.action(other),
    }
}

/// Declares the look at the definitions that a plan was made from.
///
/// # Errors
/// When they are too many.
pub fn declare_reliances(
    plan: &Plan,
    storages: &Storages,
    declaration: &mut Declaration<'_>,
) -> Result<(), DataError> {
    for reliance in &plan.reliances {
        // What cannot be a key fails when it is read.
        if let Ok(key) = storages.definition(&reliance.schema, &reliance.name) {
            declaration.read(&key)?;
        }
    }
    Ok(())
}

struct Known<'a, 'd> {
    plan: &'a Plan,
    inputs: &'a Inputs,
    storages: &'a Storages,
    declaration: &'a mut Declaration<'d>,
    /// The work that it may do yet.
    left: Cell<u64>,
}

impl<'a> Known<'a, '_> {
    fn key(&mut self, key: &Key, access: Access) -> Option<()> {
        self.declaration.touch(key, access).ok()
    }

    fn range(&mut self, range: &KeyRange, access: Access) -> Option<()> {
        self.declaration.touch_range(range, access).ok()
    }

    fn table(&self, number: u16) -> Option<&'a TableShape> {
        self.plan.tables.get(usize::from(number))
    }

    /// Declares all tables, with their indexes, and all sequences.
    fn tables(&mut self, access: Access) -> Option<()> {
        for shape in &self.plan.tables {
            let indexes = shape.indexes.iter().map(|index| index.storage);
            for storage in indexes.chain([shape.storage]) {
                self.range(&self.storages.all(shape.replicated, storage).ok()?, access)?;
            }
        }
        for sequence in &self.plan.sequences {
            self.key(&self.storages.sequence(sequence.storage).ok()?, Access::UPDATE)?;
        }
        Some(())
    }

    fn action(&mut self, action: &Action) -> Option<()> {
        match action {
            Action::Query(node) => self.query(node),
            Action::Insert { table, source, on_conflict, returning } => {
                is_plain_list(returning.as_deref().unwrap_or_default()).then_some(())?;
                self.insert(*table, source, on_conflict)
            }
            Action::Update { table, source, assignments, returning } => {
                is_plain_list(returning.as_deref().unwrap_or_default()).then_some(())?;
                let shape = self.table(*table)?;
                self.keys_are_given(*table)?;
                if assignments.iter().any(|(column, value)| moves(shape, *column) || !is_plain(value)) {
                    return None;
                }
                // The entries of an index that holds rows change with them.
                if shape.indexes.iter().any(|index| index.covering) {
                    return None;
                }
                self.assigned_references(*table, assignments)?;
                self.scan(source, Access::UPDATE)
            }
            Action::Delete { table, source, returning } => {
                is_plain_list(returning.as_deref().unwrap_or_default()).then_some(())?;
                self.table(*table)?.indexes.is_empty().then_some(())?;
                self.referring(*table, source)?;
                self.scan(source, Access::UPDATE)
            }
            Action::Define { changes, fill, sequences } => {
                for change in changes {
                    self.key(&self.storages.definition(&change.schema, &change.name).ok()?, Access::UPDATE)?;
                }
                for (storage, _) in sequences {
                    self.key(&self.storages.sequence(*storage).ok()?, Access::UPDATE)?;
                }
                if !fill.is_empty() {
                    self.inputs.claims_tables.then_some(())?;
                    self.tables(Access::UPDATE)?;
                }
                Some(())
            }
            Action::Load { table, rows } => {
                self.keys_are_given(*table)?;
                self.load(self.table(*table)?, rows)
            }
            Action::Reserve(_) => {
                let sequence = self.plan.sequences.first()?;
                self.key(&self.storages.sequence(sequence.storage).ok()?, Access::UPDATE)
            }
            // What is checked, the statements declare that leave it.
            Action::Settle { .. } => Some(()),
            // A call has no keys of its own: it is another procedure.
            Action::Fill { .. } | Action::Clear { .. } | Action::Call { .. } => None,
        }
    }

    /// Declares the reads of a query.
    fn query(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Values(rows) => rows.iter().all(|row| is_plain_list(row)).then_some(()),
            Node::Scan { .. } => self.scan(node, Access::READ),
            Node::Series { bounds } => is_plain_list(bounds).then_some(()),
            Node::Unnest { lists, .. } => lists.iter().all(|list| is_plain(&list.array)).then_some(()),
            Node::Filter { input, condition } => {
                is_plain(condition).then_some(())?;
                self.query(input)
            }
            Node::Project { input, expressions } => {
                is_plain_list(expressions).then_some(())?;
                self.query(input)
            }
            Node::Join { left, right, equal, condition, dependent, .. } => {
                let plain = condition.as_ref().is_none_or(is_plain)
                    && equal.iter().all(|(left, right)| is_plain(left) && is_plain(right));
                (plain && !dependent).then_some(())?;
                self.query(left)?;
                self.query(right)
            }
            Node::Working(_) => Some(()),
            Node::Once { query, .. } => self.query(query),
            // How much of it is read depends on the rows around.
            Node::Kept { .. } => None,
            Node::Recursive { first, step, .. } => {
                self.query(first)?;
                self.query(step)
            }
            Node::Window { input, partition, order, calls, .. } => {
                let plain = is_plain_list(partition)
                    && order.iter().all(|key| is_plain(&key.expression))
                    && calls.iter().all(is_plain_window);
                plain.then_some(())?;
                self.query(input)
            }
            Node::Aggregate { input, groups, aggregates, .. } => {
                (is_plain_list(groups) && aggregates.iter().all(is_plain_call)).then_some(())?;
                self.query(input)
            }
            Node::Sort { input, keys } => {
                keys.iter().all(|key: &SortKey| is_plain(&key.expression)).then_some(())?;
                self.query(input)
            }
            Node::Distinct { input, on } => {
                is_plain_list(on).then_some(())?;
                self.query(input)
            }
            Node::Limit { input, limit, offset, ties } => {
                let plain = |count: &Option<Expression>| count.as_ref().is_none_or(is_plain);
                (plain(limit) && plain(offset) && is_plain_list(ties)).then_some(())?;
                self.query(input)
            }
            Node::Combine { left, right, .. } => {
                self.query(left)?;
                self.query(right)
            }
        }
    }

    /// Declares the rows of a scan: all of its path, in whatever direction it goes and wherever a limit ends it.
    fn scan(&mut self, node: &Node, access: Access) -> Option<()> {
        let Node::Scan { table, path, filter, .. } = node else { return None };
        filter.as_ref().is_none_or(is_plain).then_some(())?;
        let shape = self.table(*table)?;
        match path {
            Path::All => {
                let range = self.storages.all(shape.replicated, shape.storage).ok()?;
                self.range(&range, access)
            }
            Path::Keys(keys) => {
                for key in keys {
                    let values = self.values(key)?;
                    if !values.contains(&Datum::Null) {
                        let key = self.storages.sought_row(shape, &values).ok()?;
                        key.iter().try_for_each(|key| self.key(key, access))?;
                    }
                }
                Some(())
            }
            // The rows that the entries of an index stand for are known when these have been read.
            Path::Range { index: Some(_), .. } | Path::Ranges { index: Some(_), .. } => None,
            Path::Ranges { index: None, prefixes, array } => {
                let prefixes = prefixes.iter().map(|prefix| self.values(prefix));
                let prefixes = prefixes.collect::<Option<Vec<Values>>>()?;
                let array = match array {
                    Some(array) => Some(evaluate_within(array, self.inputs, &mut 0, &self.left)?),
                    None => None,
                };
                let prefixes = spread(prefixes, array);
                if let Some(keys) = whole_keys(self.storages, shape, &prefixes).ok()? {
                    return keys.iter().try_for_each(|key| self.key(key, access));
                }
                let ranges =
                    self.storages.ranges(shape.replicated, shape.storage, shape.placing, &prefixes).ok()?;
                ranges.iter().try_for_each(|range| self.range(range, access))
            }
            Path::Range { index: None, equal, lower, upper, not_null } => {
                let equal = self.values(equal)?;
                let lower = self.bound(lower.as_ref())?;
                let upper = self.bound(upper.as_ref())?;
                fn borrowed(bound: &Option<(Datum, bool)>) -> Option<(&Datum, bool)> {
                    bound.as_ref().map(|(value, included)| (value, *included))
                }
                let (lower, upper) = (borrowed(&lower), borrowed(&upper));
                let is_null = |bound: Option<(&Datum, bool)>| matches!(bound, Some((Datum::Null, _)));
                if equal.contains(&Datum::Null) || is_null(lower) || is_null(upper) {
                    return Some(());
                }
                let bounds = Bounds { equal: &equal, lower, upper, not_null: *not_null };
                let range =
                    self.storages.range(shape.replicated, shape.storage, shape.placing, &bounds).ok()?;
                self.range(&range, access)
            }
        }
    }

    fn values(&self, expressions: &[Expression]) -> Option<Values> {
        expressions
            .iter()
            .map(|expression| evaluate_within(expression, self.inputs, &mut 0, &self.left))
            .collect()
    }

    /// The value of a bound; the outer `None` if it is not known.
    #[expect(clippy::option_option, reason = "a bound that is not there is known")]
    fn bound(&self, bound: Option<&(Expression, bool)>) -> Option<Option<(Datum, bool)>> {
        let Some((expression, included)) = bound else { return Some(None) };
        Some(Some((evaluate_within(expression, self.inputs, &mut 0, &self.left)?, *included)))
    }

    fn insert(&mut self, table: u16, source: &Node, on_conflict: &OnConflict) -> Option<()> {
        let shape = self.table(table)?;
        let Node::Values(rows) = source else { return None };
        self.keys_are_given(table)?;
        if let OnConflict::Update { target, assignments, condition } = on_conflict {
            let plain = condition.as_ref().is_none_or(is_plain)
                && assignments.iter().all(|(column, value)| !moves(shape, *column) && is_plain(value));
            // The row that an entry of an index stands for is known when that has been read.
            (plain && *target == ConflictTarget::Key && shape.indexes.is_empty()).then_some(())?;
            let refers = |(column, _): &(u16, Expression)| {
                self.references(table).any(|foreign_key| foreign_key.columns.contains(column))
            };
            (!assignments.iter().any(refers)).then_some(())?;
        }
        is_checked_plainly(shape).then_some(())?;
        let mut randoms = 0;
        for (number, row) in (1..).zip(rows) {
            let values = self.written(table, row, &mut randoms)?;
            self.row(shape, &values, number)?;
            for foreign_key in self.references(table) {
                self.reference(foreign_key, &pick(&values, &foreign_key.columns))?;
            }
        }
        Some(())
    }

    /// `None` if what follows from other columns decides where rows, entries, or what they refer to are: that is known when it runs.
    fn keys_are_given(&self, table: u16) -> Option<()> {
        let shape = self.table(table)?;
        let decides = |column: &u16| {
            moves(shape, *column)
                || self.references(table).any(|foreign_key| foreign_key.columns.contains(column))
        };
        (!shape.generated.iter().any(|generated| decides(&generated.column))).then_some(())
    }

    /// The foreign keys of a table that the statement must look at.
    fn references(&self, table: u16) -> impl Iterator<Item = &'a ForeignKeyShape> + use<'a> {
        let plan: &'a Plan = self.plan;
        plan.foreign_keys.iter().filter(move |foreign_key| foreign_key.table == table)
    }

    /// Declares the look for what a row refers to.
    fn reference(&mut self, foreign_key: &ForeignKeyShape, values: &[Datum]) -> Option<()> {
        if values.contains(&Datum::Null) {
            return Some(());
        }
        let key = referenced_key(self.storages, self.plan, foreign_key, values).ok()?;
        key.iter().try_for_each(|key| self.key(key, Access::READ))
    }

    /// Declares the looks for what changed rows refer to, if all of it is known.
    fn assigned_references(&mut self, table: u16, assignments: &[(u16, Expression)]) -> Option<()> {
        for foreign_key in self.references(table) {
            let mut values = Vec::with_capacity(foreign_key.columns.len());
            for column in &foreign_key.columns {
                let (_, value) = assignments.iter().find(|(assigned, _)| assigned == column)?;
                values.push(evaluate_within(value, self.inputs, &mut 0, &self.left)?);
            }
            self.reference(foreign_key, &values)?;
        }
        Some(())
    }

    /// Declares the looks for rows that refer to those that are deleted, if there must be none and the keys are known.
    fn referring(&mut self, table: u16, source: &Node) -> Option<()> {
        let plan: &'a Plan = self.plan;
        for foreign_key in plan.foreign_keys.iter().filter(|known| known.referenced == table) {
            let forbids = [ReferentialAction::NoAction, ReferentialAction::Restrict];
            (forbids.contains(&foreign_key.on_delete) && foreign_key.target.is_none()).then_some(())?;
            let Node::Scan { path: Path::Keys(keys), .. } = source else { return None };
            for key in keys {
                let values = self.values(key)?;
                let places = foreign_key
                    .referenced_columns
                    .iter()
                    .map(|column| self.table(table)?.key.iter().position(|known| known == column));
                let places: Vec<usize> = places.collect::<Option<_>>()?;
                let key: Row =
                    places.into_iter().map(|place| values.get(place).cloned()).collect::<Option<_>>()?;
                if key.contains(&Datum::Null) {
                    continue;
                }
                let (range, place, is_exact) =
                    referring_range(self.storages, plan, foreign_key, &key).ok()?;
                // The rows of entries that may be of others are known when these have been read.
                (is_exact || matches!(place, Place::Rows)).then_some(())?;
                self.range(&range, Access::READ)?;
            }
        }
        Some(())
    }

    /// The values of a row as far as keys need them: another may depend on more than the inputs. `randoms` counts random values, which
    /// are taken in the same order as when the rows are made.
    fn written(&mut self, table: u16, row: &[Expression], randoms: &mut u64) -> Option<Row> {
        let shape = self.table(table)?;
        let mut values = Vec::with_capacity(row.len());
        for (column, expression) in (0..).zip(row) {
            let is_needed = moves(shape, column)
                || self.references(table).any(|foreign_key| foreign_key.columns.contains(&column));
            match (evaluate_within(expression, self.inputs, randoms, &self.left), expression) {
                (Some(value), _) => values.push(value),
                (None, _) if is_needed => return None,
                (None, Expression::NextValue(sequence)) if self.inputs.drawn.is_none() => {
                    let sequence = self.plan.sequences.get(usize::from(*sequence))?;
                    self.key(&self.storages.sequence(sequence.storage).ok()?, Access::UPDATE)?;
                    values.push(Datum::Null);
                }
                (None, Expression::NextValue(_)) => values.push(Datum::Null),
                (None, _) => return None,
            }
        }
        Some(values)
    }

    /// Declares a new row and its entries.
    fn row(&mut self, shape: &TableShape, values: &[Datum], number: u64) -> Option<()> {
        let key = if shape.key.is_empty() {
            self.storages.hidden(shape, self.inputs.seed, number).ok()?
        } else {
            self.storages.row(shape, &pick(values, &shape.key)).ok()?
        };
        self.key(&key, Access::UPDATE)?;
        for index in &shape.indexes {
            self.entry(shape, index, values, &key)?;
        }
        Some(())
    }

    fn entry(&mut self, shape: &TableShape, index: &IndexShape, values: &[Datum], key: &Key) -> Option<()> {
        let indexed =
            within(self.inputs, &mut 0, &self.left, |scalar| indexed(scalar, shape, index, values))?;
        let Some(values) = indexed else { return Some(()) };
        let entry = self.storages.entry(shape, index, &values, key).ok()?;
        self.key(&entry, if index.unique { Access::UPDATE } else { Access::WRITE })
    }

    fn load(&mut self, shape: &TableShape, rows: &[Vec<u8>]) -> Option<()> {
        for (number, bytes) in (1..).zip(rows) {
            let mut values = Row::new();
            super::rows::decode(Reading::whole(shape), bytes, &mut values).ok()?;
            self.row(shape, &values, number)?;
        }
        Some(())
    }
}

/// Whether a row goes elsewhere, or one of its entries in indexes does, when a column of it changes.
fn moves(shape: &TableShape, column: u16) -> bool {
    let depends = |index: &IndexShape| !shape.all_read(index, |read| read != column);
    shape.key.contains(&column) || shape.indexes.iter().any(depends)
}

fn is_checked_plainly(shape: &TableShape) -> bool {
    shape.checks.iter().all(|check| is_plain(&check.condition))
        && shape.generated.iter().all(|generated| is_plain(&generated.value))
}

fn is_plain_call(call: &AggregateCall) -> bool {
    is_plain_list(&call.arguments)
        && call.filter.as_ref().is_none_or(is_plain)
        && call.order.iter().all(|key| is_plain(&key.expression))
}

fn is_plain_window(call: &WindowCall) -> bool {
    let plain = |bound: &FrameBound| match bound {
        FrameBound::Preceding(offset) | FrameBound::Following(offset) => is_plain(offset),
        _ => true,
    };
    is_plain_list(&call.arguments)
        && call.filter.as_ref().is_none_or(is_plain)
        && call.frame.distance.as_ref().is_none_or(|distance| is_plain(&distance.value))
        && plain(&call.frame.start)
        && plain(&call.frame.end)
}

fn is_plain_list(expressions: &[Expression]) -> bool {
    expressions.iter().all(is_plain)
}

/// Whether an expression reads nothing but its row, those around and the inputs.
pub(super) fn is_plain(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_)
        | Expression::Parameter(_)
        | Expression::Column(_)
        | Expression::Outer { .. }
        | Expression::Local(_)
        | Expression::Answer(_) => true,
        // Random values are taken in order, which only a run knows beyond new rows.
        Expression::Subquery { .. }
        | Expression::NextValue(_)
        | Expression::SetValue { .. }
        | Expression::Random(_)
        | Expression::Signal { .. } => false,
        Expression::Binary { left, right, .. } => is_plain(left) && is_plain(right),
        Expression::Unary { operand, .. }
        | Expression::Not(operand)
        | Expression::Cast { operand, .. }
        | Expression::Coerce { operand, .. }
        | Expression::IsNull { operand, .. }
        | Expression::IsBoolean { operand, .. } => is_plain(operand),
        Expression::And(list)
        | Expression::Or(list)
        | Expression::Coalesce(list)
        | Expression::Array(list)
        | Expression::Call { arguments: list, .. } => is_plain_list(list),
        Expression::Case { branches, otherwise } => {
            branches.iter().all(|(condition, result)| is_plain(condition) && is_plain(result))
                && otherwise.as_ref().is_none_or(|otherwise| is_plain(otherwise))
        }
        Expression::InList { operand, list, .. } => is_plain(operand) && is_plain_list(list),
        Expression::Quantified { left, array, .. } => is_plain(left) && is_plain(array),
        Expression::Element { array, index } => is_plain(array) && is_plain(index),
        Expression::Let { values, body } => is_plain_list(values) && is_plain(body),
    }
}
