//! Joins: each row of the left with the rows of the right that go with it.
//!
//! The right side is read once and its rows are found by their values, or it depends on the row of the left and is looked up for each.
//! Where each look-up is a way to others, those of many rows are told ahead.

use std::collections::BTreeMap;

use ordain_db::data::Key;

use super::declare::is_plain;
use super::query::{HELD_PER_KEY, hashed};
use super::rows::SCAN_ROWS;
use super::work::{work_of_comparing, work_of_copies};
use super::{Failure, Row, Run, malformed, size_of_row};
use crate::plan::{Expression, JoinKind, Node, Path, TableShape};
use crate::types::Datum;

/// A join that runs.
struct Join<'p> {
    right: &'p Node,
    kind: JoinKind,
    equal: &'p [(Expression, Expression)],
    condition: Option<&'p Expression>,
    /// How many columns the right has.
    width: usize,
    /// Its rows, if they do not depend on those of the left.
    rights: Option<Rights>,
}

/// The rows of the right.
struct Rights {
    rows: Vec<Row>,
    /// Which of them have met one of the left.
    matched: Vec<bool>,
    /// Their places by the values that must be equal, if there are any.
    index: Option<BTreeMap<Vec<u8>, Vec<usize>>>,
}

type Visit<'v, 'a, 't> = dyn FnMut(&mut Run<'a, 't>, Row) -> Result<bool, Failure> + 'v;

impl<'a, 't> Run<'a, 't> {
    pub(super) fn join(
        &mut self,
        node: &Node,
        most: usize,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let Node::Join { left, right, widths, kind, equal, condition, dependent } = node else {
            return Err(malformed("join").into());
        };
        let condition = condition.as_ref();
        let mut join =
            Join { right, kind: *kind, equal, condition, width: usize::from(widths.1), rights: None };
        if *dependent {
            return self.join_dependent(&mut join, left, most, visit);
        }
        let (rights, held) = self.holding(|run| {
            let rows = run.query(right)?;
            Ok(Rights { matched: vec![false; rows.len()], index: run.index(&rows, equal)?, rows })
        })?;
        join.rights = Some(rights);
        let mut wants = true;
        self.each(left, most, &mut |run, left| {
            wants = run.join_row(&mut join, left, visit)?;
            Ok(wants)
        })?;
        if let Some(rights) = join.rights.filter(|_| wants && *kind == JoinKind::Full) {
            let alone = rights.rows.iter().zip(&rights.matched).filter(|(_, matched)| !**matched);
            let alone = alone.map(|(right, _)| {
                let mut row = vec![Datum::Null; usize::from(widths.0)];
                row.extend_from_slice(right);
                row
            });
            wants = self.visit_all(alone, visit)?;
        }
        self.let_go(held);
        Ok(wants)
    }

    /// Looks the right up for each row of the left; if it pays, many rows are there before their look-ups are told.
    fn join_dependent(
        &mut self,
        join: &mut Join<'_>,
        left: &Node,
        most: usize,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let mut wants = true;
        let looked_up = looked_up(join.right);
        // What has a value of its own each time comes in the same order everywhere.
        if !self.transaction.looks_ahead() || looked_up.is_none() || left.is_volatile() {
            self.each(left, most, &mut |run, left| {
                wants = run.join_row(join, left, visit)?;
                Ok(wants)
            })?;
            return Ok(wants);
        }
        let (mut lefts, mut size) = (Vec::new(), most.clamp(1, SCAN_ROWS));
        let read = self.each(left, most, &mut |run, left| {
            run.hold(size_of_row(&left))?;
            lefts.push(left);
            if lefts.len() >= size {
                size = (2 * size).min(SCAN_ROWS);
                wants = run.join_rows(join, looked_up, std::mem::take(&mut lefts), visit)?;
            }
            Ok(wants)
        });
        // Where the left fails, it does so after the rows that came before.
        if !matches!(read, Err(Failure::Stop(_))) && wants {
            wants = self.join_rows(join, looked_up, lefts, visit)?;
        }
        read.map(|_| wants)
    }

    /// Joins rows of the left whose look-ups are told before.
    fn join_rows(
        &mut self,
        join: &mut Join<'_>,
        looked_up: Option<(u16, &[Vec<Expression>])>,
        lefts: Vec<Row>,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        if let Some((table, keys)) = looked_up
            && lefts.len() > 1
            && !self.is_kept(join.right)
        {
            let shape = self.table(table)?;
            let mut ahead = Vec::with_capacity(lefts.len());
            for left in &lefts {
                self.outer.push(left.clone());
                keys.iter().for_each(|key| ahead.extend(self.key_ahead(shape, key)));
                self.outer.pop();
            }
            self.read_soon(|_| Ok(ahead))?;
        }
        let mut wants = true;
        for left in lefts {
            self.let_go(size_of_row(&left));
            if wants {
                wants = self.join_row(join, left, visit)?;
            }
        }
        Ok(wants)
    }

    /// The key of a row that a look-up will read, unless that fails: it is told then.
    fn key_ahead(&mut self, shape: &TableShape, key: &[Expression]) -> Option<Key> {
        let values = self.values(key, &[]).ok().filter(|values| !values.contains(&Datum::Null))?;
        self.storages.row(shape, &values).ok()
    }

    /// Joins a row of the left.
    fn join_row(
        &mut self,
        join: &mut Join<'_>,
        left: Row,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let (looked_up, held) = match &join.rights {
            Some(_) => (Vec::new(), 0),
            None => self.holding(|run| run.within(&left, join.right))?,
        };
        let candidates = match &join.rights {
            Some(rights) => self.candidates(&left, join.equal, rights)?,
            None => (0..looked_up.len()).collect(),
        };
        let (mut found, mut wants) = (false, true);
        for candidate in candidates {
            let right = match &join.rights {
                Some(rights) => &rights.rows[candidate],
                None => &looked_up[candidate],
            };
            self.go_on()?;
            self.work(work_of_copies(left.iter().chain(right)))?;
            let mut row = left.clone();
            row.extend_from_slice(right);
            if self.passes(join.condition, &row)? {
                found = true;
                if let Some(rights) = &mut join.rights {
                    rights.matched[candidate] = true;
                }
                wants = visit(self, row)?;
                if !wants {
                    break;
                }
            }
        }
        if !found && join.kind != JoinKind::Inner {
            let mut row = left;
            row.extend(std::iter::repeat_n(Datum::Null, join.width));
            wants = visit(self, row)?;
        }
        self.let_go(held);
        Ok(wants)
    }

    /// The places of the rows of the right that may match one of the left.
    fn candidates(
        &mut self,
        left: &[Datum],
        equal: &[(Expression, Expression)],
        rights: &Rights,
    ) -> Result<Vec<usize>, Failure> {
        let Some(index) = &rights.index else { return Ok((0..rights.rows.len()).collect()) };
        let mut key = Vec::with_capacity(equal.len());
        for (expression, _) in equal {
            key.push(self.value(expression, left)?);
        }
        self.work(work_of_comparing(&key))?;
        let none = key.contains(&Datum::Null);
        Ok(if none { Vec::new() } else { index.get(&hashed(&key)).cloned().unwrap_or_default() })
    }

    /// The rows of a query within, for a row around it.
    fn within(&mut self, around: &[Datum], node: &Node) -> Result<Vec<Row>, Failure> {
        self.work(work_of_copies(around))?;
        self.outer.push(around.to_vec());
        let rows = self.query(node);
        self.outer.pop();
        rows
    }

    /// The rows of the right side of a join by the values that must be equal, if there are any.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn index(
        &mut self,
        rights: &[Row],
        equal: &[(Expression, Expression)],
    ) -> Result<Option<BTreeMap<Vec<u8>, Vec<usize>>>, Failure> {
        if equal.is_empty() {
            return Ok(None);
        }
        let mut index: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (place, row) in rights.iter().enumerate() {
            let mut key = Vec::with_capacity(equal.len());
            for (_, right) in equal {
                key.push(self.value(right, row)?);
            }
            self.work(work_of_comparing(&key))?;
            if !key.contains(&Datum::Null) {
                let key = hashed(&key);
                self.hold(key.len() + HELD_PER_KEY)?;
                index.entry(key).or_default().push(place);
            }
        }
        Ok(Some(index))
    }
}

/// The table in which a query looks rows up, and their keys, if these are known before it reads anything.
fn looked_up(node: &Node) -> Option<(u16, &[Vec<Expression>])> {
    match node {
        Node::Scan { table, path: Path::Keys(keys), .. } => {
            keys.iter().flatten().all(is_plain).then_some((*table, keys))
        }
        Node::Kept { input, direct: Some(Path::Keys(keys)), .. } => match &**input {
            Node::Scan { table, .. } => keys.iter().flatten().all(is_plain).then_some((*table, keys)),
            _ => None,
        },
        Node::Filter { input, .. } | Node::Project { input, .. } => looked_up(input),
        _ => None,
    }
}
