//! Queries.
//!
//! Rows go one by one from each node to what is around it, which stops them when it has enough. Nodes that need all rows before they
//! can give the first keep them; [`HELD_BYTES_MAX`](super::HELD_BYTES_MAX) is the limit of that.

use std::rc::Rc;

use super::evaluate::holds;
use super::keyed::{HELD_PER_KEY, KeyMap, Seen, count};
use super::rows::{Reading, Stored};
use super::work::work_of_copies;
use super::{Failure, Row, Run, size_of_row};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, List, Node, SetOperation};
use crate::types::Datum;
use crate::types::functions::length;

/// Most steps of a recursive query.
const STEPS_MAX: usize = 100_000;

/// Most rows of a recursive query.
const RECURSIVE_ROWS_MAX: usize = 10_000_000;

/// How many rows of a query are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// No more than that are taken, whatever they are: no more need be in order.
    most: usize,
    /// About so many are likely to be read: so many are read at a time, to begin with.
    likely: usize,
}

impl Wanted {
    /// All that there are.
    pub(super) const ALL: Wanted = Wanted::first(usize::MAX);

    /// The first ones.
    pub(super) const fn first(most: usize) -> Wanted {
        Wanted { most, likely: most }
    }

    /// How many are wanted of rows only some of which are passed on.
    pub(super) fn of_some(self) -> Wanted {
        Wanted { most: usize::MAX, ..self }
    }

    /// How many are wanted of rows of which only the first are passed on, after some that are not.
    fn of_first(self, limit: usize, offset: usize) -> Wanted {
        let read = |wanted: usize| wanted.min(limit).saturating_add(offset);
        Wanted { most: read(self.most), likely: read(self.likely) }
    }

    pub(super) fn most(self) -> usize {
        self.most
    }

    pub(super) fn likely(self) -> usize {
        self.likely
    }
}

impl Run<'_, '_> {
    /// All rows of a query, which are held from then on.
    pub(super) fn query(&mut self, node: &Node) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        self.each(node, Wanted::ALL, &mut |run, row| {
            run.hold(size_of_row(row))?;
            rows.push(std::mem::take(row));
            Ok(true)
        })?;
        Ok(rows)
    }

    /// Visits the rows of a query, as many as are wanted, until the visitor says that it has enough. It may take each row or change it: whoever
    /// gives it makes the next anew. Whether it wants more when there are no more.
    pub(super) fn each(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        if !self.ready.is_empty()
            && let Some(wants) = self.give_ready(node, visit)?
        {
            return Ok(wants);
        }
        // A scan notes itself what it gives.
        if !self.inputs.observes || matches!(node, Node::Scan { .. }) {
            return self.each_unobserved(node, wanted, visit);
        }
        self.observe_run(node);
        self.each_unobserved(node, wanted, &mut |run, row| {
            run.observe_row(node);
            visit(run, row)
        })
    }

    fn each_unobserved(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        match node {
            Node::Values(rows) => {
                for row in rows {
                    let mut row = self.values(row, &[])?;
                    if !visit(self, &mut row)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Scan { .. } => {
                let reading = (wanted.likely(), u64::MAX);
                self.scan_rows(node, reading, &mut |run, stored| visit(run, &mut stored.values))
            }
            Node::Series { bounds } => self.series(bounds, visit),
            Node::Unnest { lists, ordinality } => self.unnest(lists, *ordinality, visit),
            Node::Filter { input, condition } => self.gated(Some(condition), |run, gives| {
                run.each(input, wanted.of_some(), &mut |run, row| {
                    *gives = true;
                    if run.holds(condition, row)? { visit(run, row) } else { Ok(true) }
                })
            }),
            Node::Project { input, expressions } => {
                let mut values = Row::new();
                self.each(input, wanted, &mut |run, row| {
                    run.values_into(expressions, row, &mut values)?;
                    let held = held_if_long(&values);
                    if held == 0 {
                        return visit(run, &mut values);
                    }
                    run.hold(held)?;
                    let wants = visit(run, &mut values)?;
                    run.let_go(held);
                    Ok(wants)
                })
            }
            Node::Distinct { input, on } => {
                let mut seen = Seen::new(self);
                let wants = self.each(input, wanted.of_some(), &mut |run, row| {
                    let is_new = match on.is_empty() {
                        true => seen.is_new(run, row)?,
                        false => {
                            let values = run.values(on, row)?;
                            seen.is_new(run, &values)?
                        }
                    };
                    if is_new { visit(run, row) } else { Ok(true) }
                })?;
                self.let_go(seen.bytes);
                Ok(wants)
            }
            Node::Limit { .. } => self.limit(node, wanted, visit),
            other => self.each_gathered(other, wanted, visit),
        }
    }

    /// Visits the rows of nodes with several inputs, and of those that need all rows of theirs.
    fn each_gathered(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        if matches!(node, Node::Aggregate { .. } | Node::Sort { .. } | Node::Window { .. })
            && let Some(wants) = self.by_columns(node, wanted, visit)?
        {
            return Ok(wants);
        }
        match node {
            Node::Join { .. } => self.join(node, wanted, visit),
            Node::Combine { operation, all, left, right } => {
                self.combine((*operation, *all), (left, right), wanted, visit)
            }
            Node::Recursive { number, first, step, all } => {
                self.recursive(*number, (first, step), *all, visit)
            }
            Node::Working(number) => {
                let rows = self.working.get(number).cloned().ok_or_else(|| super::malformed("step"))?;
                self.visit_all(rows.iter().cloned(), visit)
            }
            Node::Kept { .. } => self.kept(node, visit),
            Node::Once { number, query } => {
                let rows = self.once(*number, query)?;
                self.visit_all(rows.iter().cloned(), visit)
            }
            Node::Sort { input, keys } => {
                let gathered = self.holding(|run| run.sort(input, keys, wanted.most()))?;
                self.visit_gathered(gathered, visit)
            }
            Node::Aggregate { .. } => {
                let gathered = self.holding(|run| run.aggregate(node))?;
                self.visit_gathered(gathered, visit)
            }
            Node::Window { input, partition, order, calls, .. } => {
                let gathered = self.holding(|run| run.window(input, partition, order, calls))?;
                self.visit_gathered(gathered, visit)
            }
            _ => Err(super::malformed("node").into()),
        }
    }

    pub(super) fn visit_all(
        &mut self,
        rows: impl IntoIterator<Item = Row>,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        for mut row in rows {
            self.go_on()?;
            self.work(work_of_copies(&row))?;
            if !visit(self, &mut row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for rows that are held until then.
    fn visit_gathered(
        &mut self,
        (rows, held): (Vec<Row>, usize),
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let wants = self.visit_all(rows, visit)?;
        self.let_go(held);
        Ok(wants)
    }

    fn limit(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let Node::Limit { input, limit, offset, ties } = node else {
            return Err(super::malformed("limit").into());
        };
        let state = SqlState::INVALID_ROW_COUNT_IN_OFFSET;
        let offset = self.count(offset.as_ref(), "OFFSET", state)?.unwrap_or(0);
        let limit = self.count(limit.as_ref(), "LIMIT", SqlState::INVALID_ROW_COUNT_IN_LIMIT)?;
        if limit.is_none() && !ties.is_empty() {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(SqlError::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT, message).into());
        }
        let limit = limit.unwrap_or(usize::MAX);
        if limit == 0 {
            return Ok(true);
        }
        if !ties.is_empty() {
            return self.limit_with_ties(input, (offset, limit.saturating_add(offset)), ties, visit);
        }
        let (mut seen, mut wants) = (0, true);
        self.each(input, wanted.of_first(limit, offset), &mut |run, row| {
            seen += 1;
            if seen > offset {
                wants = visit(run, row)?;
            }
            Ok(wants && seen < limit.saturating_add(offset))
        })?;
        Ok(wants)
    }

    /// Visits the rows after some and up to others, and those that are equal to the last of them.
    fn limit_with_ties(
        &mut self,
        input: &Node,
        (first, end): (usize, usize),
        ties: &[Expression],
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let (mut seen, mut wants, mut last, mut own) = (0, true, Vec::new(), Vec::new());
        self.each(input, Wanted::ALL, &mut |run, row| {
            seen += 1;
            if seen >= end {
                run.hash_key(ties.iter(), row, &mut own)?;
                if seen == end {
                    last.clone_from(&own);
                } else if own != last {
                    return Ok(false);
                }
            }
            if seen > first {
                wants = visit(run, row)?;
            }
            Ok(wants)
        })?;
        Ok(wants)
    }

    /// Visits the rows of queries that are combined. A chain of `EXCEPT` comes with a level for each of its queries and is run as one, so
    /// that each row is hashed once and the stack does not grow with it; chains of `UNION` come as flat as they can be.
    fn combine(
        &mut self,
        (operation, all): (SetOperation, bool),
        (left, right): (&Node, &Node),
        wanted: Wanted,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let (mut first, mut others) = (left, vec![right]);
        // Nodes that are observed, or whose rows may be there already, are visited one by one.
        if !self.inputs.observes && self.ready.is_empty() {
            while let Node::Combine { operation: before, all: all_before, left, right } = first
                && follows((*before, *all_before), (operation, all))
            {
                others.push(right);
                first = left;
            }
        }
        let mut counts: KeyMap<usize> = KeyMap::with_hasher(self.hash_seed());
        let (mut held, mut key) = (0, Vec::new());
        if operation != SetOperation::Union {
            let ((), held_here) = self.holding(|run| {
                for other in &others {
                    run.each(other, Wanted::ALL, &mut |run, row| {
                        run.hash(row, &mut key)?;
                        if count(&mut counts, &key) {
                            run.hold(key.len() + HELD_PER_KEY)?;
                        }
                        Ok(true)
                    })?;
                }
                Ok(())
            })?;
            held = held_here;
        }
        let mut seen = Seen::new(self);
        let mut give = |run: &mut Self, row: &mut Row| {
            // All rows of both need no look at each.
            if all && operation == SetOperation::Union {
                return visit(run, row);
            }
            run.hash(row, &mut key)?;
            if operation != SetOperation::Union {
                let count = counts.get_mut(key.as_slice()).filter(|count| **count > 0);
                let stays = count.is_some() == (operation == SetOperation::Intersect);
                if all && let Some(count) = count {
                    *count -= 1;
                }
                if !stays {
                    return Ok(true);
                }
            }
            if all || seen.insert(run, &key)? { visit(run, row) } else { Ok(true) }
        };
        let mut wants = self.each(first, wanted.of_some(), &mut give)?;
        if operation == SetOperation::Union {
            for other in others.into_iter().rev() {
                wants = wants && self.each(other, wanted.of_some(), &mut give)?;
            }
        }
        self.let_go(held + seen.bytes);
        Ok(wants)
    }

    fn recursive(
        &mut self,
        number: u16,
        (first, step): (&Node, &Node),
        all: bool,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let (mut seen, mut count, mut held) = (Seen::new(self), 0, 0);
        for number_of_step in 0..STEPS_MAX {
            let mut fresh = Vec::new();
            self.each(if number_of_step == 0 { first } else { step }, Wanted::ALL, &mut |run, row| {
                if all || seen.is_new(run, row)? {
                    let size = size_of_row(row);
                    run.hold(size)?;
                    held += size;
                    fresh.push(std::mem::take(row));
                }
                Ok(true)
            })?;
            count += fresh.len();
            if count > RECURSIVE_ROWS_MAX {
                return Err(endless(format!("gives more than {RECURSIVE_ROWS_MAX} rows")).into());
            }
            let fresh = Rc::new(fresh);
            let wants = self.visit_all(fresh.iter().cloned(), visit)?;
            if !wants || fresh.is_empty() {
                self.let_go(held + seen.bytes);
                return Ok(wants);
            }
            self.working.insert(number, fresh);
        }
        Err(endless(format!("takes more than {STEPS_MAX} steps")).into())
    }

    /// Visits the rows of a scan that pass its filter, with their keys, until the visitor has enough or more than `most` rows were read; whether
    /// neither was so. About so many as are `likely` are read, to begin with.
    pub(super) fn scan_rows(
        &mut self,
        node: &Node,
        (likely, most): (usize, u64),
        visit: &mut dyn FnMut(&mut Self, &mut Stored) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let Node::Scan { table, path, direction, filter, needed } = node else {
            return Err(super::malformed("scan").into());
        };
        let table = Reading { shape: self.table(*table)?, needed: needed.as_deref() };
        let (mut read, mut goes_on) = (0, true);
        self.observe_run(node);
        self.gated(filter.as_ref(), |run, gives| {
            run.scan(table, (path, *direction), likely, &mut |run, stored| {
                *gives = true;
                read += 1;
                if read > most {
                    goes_on = false;
                } else if run.passes(filter.as_ref(), &stored.values)? {
                    run.observe_row(node);
                    goes_on = visit(run, stored)?;
                }
                Ok(goes_on)
            })?;
            Ok(goes_on)
        })
    }

    /// Whether a condition holds for a row. What stands behind a part of it that is false or null is not asked, as in PostgreSQL: within a value
    /// null decides nothing.
    pub(super) fn holds(&mut self, condition: &Expression, row: &[Datum]) -> Result<bool, Failure> {
        if let Expression::And(parts) = condition {
            for part in parts {
                if !self.holds(part, row)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(holds(&*self.operand(condition, row)?))
    }

    /// Whether a condition holds for a row, if there is a condition.
    pub(super) fn passes(&mut self, condition: Option<&Expression>, row: &[Datum]) -> Result<bool, Failure> {
        self.go_on()?;
        condition.map_or(Ok(true), |condition| self.holds(condition, row))
    }

    /// What comes of a query whose rows a condition is asked of: nothing, if it fails before it gives one, and a part of the condition that
    /// depends on none of its rows does not hold. So there may be keys in it that cannot be computed then.
    fn gated(
        &mut self,
        condition: Option<&Expression>,
        query: impl FnOnce(&mut Self, &mut bool) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let (before, mut gives) = (self.before_part(), false);
        let error = match query(self, &mut gives) {
            // What it gave may be held by others.
            Err(failure) if !gives => self.left_out(before, failure)?,
            done => return done,
        };
        for part in condition.map_or(&[][..], Expression::conjuncts) {
            if !part.reads_row() && !part.is_volatile() && !self.holds(part, &[])? {
                return Ok(true);
            }
        }
        Err(error.into())
    }

    fn count(
        &mut self,
        expression: Option<&Expression>,
        clause: &str,
        state: SqlState,
    ) -> Result<Option<usize>, Failure> {
        let Some(expression) = expression else { return Ok(None) };
        match self.value(expression, &[])? {
            Datum::Int(count) => usize::try_from(count)
                .map(Some)
                .map_err(|_| SqlError::new(state, format!("{clause} must not be negative")).into()),
            _ => Ok(None),
        }
    }

    fn series(
        &mut self,
        bounds: &[Expression; 3],
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let mut numbers = [0; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            match self.value(bound, &[])? {
                Datum::Int(value) => *number = value,
                _ => return Ok(true),
            }
        }
        let [first, last, step] = numbers;
        if step == 0 {
            let message = "step size cannot equal zero";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).into());
        }
        let (mut next, mut row) = (Some(first), Row::new());
        while let Some(number) = next
            && (if step > 0 { number <= last } else { number >= last })
        {
            self.go_on()?;
            row.clear();
            row.push(Datum::Int(number));
            if !visit(self, &mut row)? {
                return Ok(false);
            }
            next = number.checked_add(step);
        }
        Ok(true)
    }

    /// The elements of arrays side by side; nulls where one has ended.
    fn unnest(
        &mut self,
        lists: &[List],
        ordinality: bool,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let (mut arrays, mut held, mut wants, mut row) =
            (Vec::with_capacity(lists.len()), 0, true, Row::new());
        for list in lists {
            let elements = match self.value(&list.array, &[])? {
                Datum::Array(elements) => elements,
                _ => Vec::new(),
            };
            let size = size_of_row(&elements);
            self.hold(size)?;
            held += size;
            arrays.push((elements.into_iter().fuse(), usize::from(list.width)));
        }
        let count = arrays.iter().map(|(elements, _)| elements.len()).max().unwrap_or(0);
        for number in 1..=count {
            row.clear();
            for (elements, width) in &mut arrays {
                match elements.next() {
                    Some(Datum::Array(values)) if *width > 1 => row.extend(values),
                    Some(element) => row.push(element),
                    None => row.extend(std::iter::repeat_n(Datum::Null, *width)),
                }
            }
            if ordinality {
                row.push(Datum::Int(number as i64));
            }
            self.go_on()?;
            wants = visit(self, &mut row)?;
            if !wants {
                break;
            }
        }
        self.let_go(held);
        Ok(wants)
    }
}

/// Bytes of a row on its way to whoever wants it, if they are many.
fn held_if_long(values: &[Datum]) -> usize {
    const LONG: u64 = 1 << 20;
    if values.iter().map(length).sum::<u64>() > LONG { size_of_row(values) } else { 0 }
}

/// Whether queries that are combined by the first of two ways, and then with another by the second, may all be combined by the second at
/// once: `UNION` removes what an earlier `UNION ALL` leaves twice, and what is taken away may be taken away together.
fn follows(before: (SetOperation, bool), after: (SetOperation, bool)) -> bool {
    match after {
        (SetOperation::Union, false) => before.0 == SetOperation::Union,
        (SetOperation::Union, true) | (SetOperation::Except, _) => before == after,
        (SetOperation::Intersect, _) => false,
    }
}

fn endless(how: String) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("a recursive query {how}"))
        .with_hint("Add a condition that ends it, or use UNION instead of UNION ALL if it goes in circles.")
}
