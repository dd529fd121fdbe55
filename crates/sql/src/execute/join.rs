//! Joins: each row of the left with the rows of the right that go with it.
//!
//! The right side is read once and its rows are found by their values, or it depends on the row of the left and is looked up for each.
//! Where each look-up is a way to others, those of many rows are told ahead.

use ordain_db::data::Key;
use smallvec::{SmallVec, smallvec};

use super::declare::is_plain;
use super::keyed::{HELD_PER_KEY, KeyMap};
use super::query::Wanted;
use super::rows::SCAN_ROWS;
use super::work::work_of_copies;
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
    /// Bytes of values that must be equal, of the row of the left.
    key: Vec<u8>,
}

/// The rows of the right.
struct Rights {
    rows: Vec<Row>,
    /// Which of them have met one of the left.
    matched: Vec<bool>,
    /// Their places by the values that must be equal, if there are any.
    index: Option<Index>,
}

/// Places of rows by the bytes of some of their values.
type Index = KeyMap<SmallVec<[usize; 2]>>;

type Visit<'v, 'a, 't> = dyn FnMut(&mut Run<'a, 't>, &mut Row) -> Result<bool, Failure> + 'v;

impl<'a, 't> Run<'a, 't> {
    pub(super) fn join(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let Node::Join { left, right, widths, kind, equal, condition, dependent } = node else {
            return Err(malformed("join").into());
        };
        let wanted = wanted.of_some();
        let condition = condition.as_ref();
        let width = usize::from(widths.1);
        let mut join = Join { right, kind: *kind, equal, condition, width, rights: None, key: Vec::new() };
        if *dependent {
            return self.join_dependent(&mut join, left, wanted, visit);
        }
        let (rights, held) = self.holding(|run| {
            let rows = run.query(right)?;
            Ok(Rights { matched: vec![false; rows.len()], index: run.index(&rows, equal)?, rows })
        })?;
        let pairs_nothing = *kind == JoinKind::Inner && rights.rows.is_empty() && !left.is_volatile();
        join.rights = Some(rights);
        let mut wants = true;
        // As over columns: else a block would be shown rows, and fail at its place in the order with an error of the left.
        if pairs_nothing {
            self.let_go(held);
            return Ok(true);
        }
        self.each(left, wanted, &mut |run, left| {
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
        wanted: Wanted,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let mut wants = true;
        let looked_up = looked_up(join.right);
        // What has a value of its own each time comes in the same order everywhere.
        if !self.transaction.looks_ahead() || looked_up.is_none() || left.is_volatile() {
            self.each(left, wanted, &mut |run, left| {
                wants = run.join_row(join, left, visit)?;
                Ok(wants)
            })?;
            return Ok(wants);
        }
        let (mut lefts, mut size) = (Vec::new(), wanted.likely().clamp(1, SCAN_ROWS));
        let read = self.each(left, wanted, &mut |run, left| {
            run.hold(size_of_row(left))?;
            lefts.push(std::mem::take(left));
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
        for mut left in lefts {
            self.let_go(size_of_row(&left));
            if wants {
                wants = self.join_row(join, &mut left, visit)?;
            }
        }
        Ok(wants)
    }

    /// The key of a row that a look-up will read, unless that fails: it is told then.
    fn key_ahead(&mut self, shape: &TableShape, key: &[Expression]) -> Option<Key> {
        let values = self.values(key, &[]).ok().filter(|values| !values.contains(&Datum::Null))?;
        self.storages.sought_row(shape, &values).ok()?
    }

    /// Joins a row of the left.
    fn join_row(
        &mut self,
        join: &mut Join<'_>,
        left: &mut Row,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let Join { right, kind, equal, condition, width, rights, key } = join;
        let of = (*kind, *width, *condition);
        let Some(Rights { rows, matched, index }) = rights else {
            if let Some(found) = self.kept_table(right)
                && let Some(places) = self.around(left, |run| run.kept_places(&found, key))?
            {
                let candidates = places.iter().map(|place| (*place, &found.table.rows[*place]));
                return self.join_with(left, candidates, of, None, visit);
            }
            let (rights, held) = self.holding(|run| run.around(left, |run| run.query(right)))?;
            let wants = self.join_with(left, rights.iter().enumerate(), of, None, visit)?;
            self.let_go(held);
            return Ok(wants);
        };
        let Some(index) = index else {
            return self.join_with(left, rows.iter().enumerate(), of, Some(matched), visit);
        };
        let is_known = self.hash_key(equal.iter().map(|(left, _)| left), left, key)?;
        let places = index.get(key.as_slice()).filter(|_| is_known).map_or(&[][..], SmallVec::as_slice);
        let candidates = places.iter().map(|place| (*place, &rows[*place]));
        self.join_with(left, candidates, of, Some(matched), visit)
    }

    /// Joins a row of the left with rows of the right that may go with it, which have numbers.
    fn join_with<'r>(
        &mut self,
        left: &mut Row,
        candidates: impl Iterator<Item = (usize, &'r Row)>,
        (kind, width, condition): (JoinKind, usize, Option<&Expression>),
        mut matched: Option<&mut Vec<bool>>,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<bool, Failure> {
        let (mut found, mut both, columns) = (false, Row::new(), left.len());
        let mut candidates = candidates.peekable();
        while let Some((number, right)) = candidates.next() {
            self.go_on()?;
            self.work(work_of_copies(left.iter().chain(right)))?;
            // The last one needs no copy of the left.
            let row = if candidates.peek().is_none() {
                &mut *left
            } else {
                both.clone_from(left);
                &mut both
            };
            row.extend_from_slice(right);
            if self.passes(condition, row)? {
                found = true;
                if let Some(matched) = &mut matched {
                    matched[number] = true;
                }
                if !visit(self, row)? {
                    return Ok(false);
                }
            } else {
                row.truncate(columns);
            }
        }
        if found || kind == JoinKind::Inner {
            return Ok(true);
        }
        left.extend(std::iter::repeat_n(Datum::Null, width));
        visit(self, left)
    }

    /// What comes of a query within, for a row around it.
    fn around<T>(
        &mut self,
        row: &mut Row,
        query: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.outer.push(std::mem::take(row));
        let result = query(self);
        *row = self.outer.pop().unwrap_or_default();
        result
    }

    /// The rows of the right side of a join by the values that must be equal, if there are any.
    fn index(
        &mut self,
        rights: &[Row],
        equal: &[(Expression, Expression)],
    ) -> Result<Option<Index>, Failure> {
        if equal.is_empty() {
            return Ok(None);
        }
        let mut index = Index::with_hasher(self.hash_seed());
        let mut key = Vec::new();
        for (place, row) in rights.iter().enumerate() {
            if !self.hash_key(equal.iter().map(|(_, right)| right), row, &mut key)? {
                continue;
            }
            match index.get_mut(key.as_slice()) {
                Some(places) => places.push(place),
                None => {
                    self.hold(key.len() + HELD_PER_KEY)?;
                    index.insert(key.clone(), smallvec![place]);
                }
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
