//! Insertions whose expressions read tables: what becomes of every row is decided before any is written, since a statement does not see
//! its own changes.

use std::collections::BTreeSet;

use ordain_db::data::Key;

use super::modify::{Change, matches, second_time};
use super::rows::Reading;
use super::{Failure, Few, Output, Row, Run};
use crate::plan::{ConflictTarget, Expression, OnConflict, TableShape};
use crate::types::Datum;

/// Whether what an insertion computes of its rows reads tables, which may be the one that it writes.
pub(super) fn reads_tables(on_conflict: &OnConflict, returning: Option<&[Expression]>) -> bool {
    let mut found = false;
    let mut look = |expression: &Expression| {
        expression.visit(0, &mut |part, _| found |= matches!(part, Expression::Subquery { .. }));
    };
    if let OnConflict::Update { assignments, condition, .. } = on_conflict {
        assignments.iter().map(|(_, value)| value).chain(condition).for_each(&mut look);
    }
    returning.into_iter().flatten().for_each(&mut look);
    found
}

/// What becomes of a row.
enum Decision {
    Add(Key, Row),
    Replace(Change),
}

/// What the statement will have done to keys of rows and entries of unique indexes.
#[derive(Default)]
struct Decided {
    /// Those of rows as it leaves them.
    taken: BTreeSet<Key>,
    /// Those that its rows had before and have no longer.
    given_up: BTreeSet<Key>,
}

/// What stands in the way of a new row.
struct Obstacle {
    target: ConflictTarget,
    /// The key of the row that is there; `None` if it is one that the statement has written itself.
    key: Option<Key>,
}

impl Run<'_, '_> {
    /// The same as [`insert`](Run::insert) once its rows are known.
    pub(super) fn insert_decided(
        &mut self,
        table: u16,
        rows: Vec<Row>,
        on_conflict: &OnConflict,
        returning: Option<&[Expression]>,
    ) -> Result<Output, Failure> {
        let shape = self.table(table)?;
        let mut output = Output::default();
        let mut decided = Decided::default();
        let mut decisions = Vec::with_capacity(rows.len());
        for values in rows {
            self.check_row(shape, &values)?;
            let key = self.key_of(shape, &values)?;
            let decision = match self.obstacle(shape, (&key, &values), on_conflict.arbiter(), &decided)? {
                None => Decision::Add(key, values),
                Some(obstacle) => match self.change_instead(shape, obstacle, values, on_conflict)? {
                    Some(change) => Decision::Replace(change),
                    None => continue,
                },
            };
            let written = match &decision {
                Decision::Add(key, values) => {
                    decided.taken.extend(self.places(shape, key, values)?.into_iter().map(|(_, at)| at));
                    values
                }
                Decision::Replace(change) => {
                    let moved = self.moved_key(shape, &change.key, &change.new)?;
                    let before = self.places(shape, &change.key, &change.old)?;
                    decided.given_up.extend(before.into_iter().map(|(_, at)| at));
                    let after = self.places(shape, &moved, &change.new)?;
                    decided.taken.extend(after.into_iter().map(|(_, at)| at));
                    &change.new
                }
            };
            output.written += 1;
            self.tell(returning, written, &mut output)?;
            decisions.push(decision);
        }
        for decision in decisions {
            match decision {
                Decision::Add(key, values) => {
                    self.add(shape, &key, &values)?;
                    self.note(table, None, Some((&key, &values)));
                }
                Decision::Replace(change) => self.replace(table, Few::from([change]))?,
            }
        }
        self.enforce()?;
        Ok(output)
    }

    /// The change of the row that stands in the way of another, if that is what is to be done.
    fn change_instead(
        &mut self,
        shape: &TableShape,
        obstacle: Obstacle,
        values: Row,
        on_conflict: &OnConflict,
    ) -> Result<Option<Change>, Failure> {
        match on_conflict {
            OnConflict::Nothing(target) if matches(*target, obstacle.target) => Ok(None),
            OnConflict::Update { target, assignments, condition } if matches(*target, obstacle.target) => {
                let Some(key) = obstacle.key else { return Err(second_time().into()) };
                let old = self.read(Reading::whole(shape), &key)?.unwrap_or_default();
                let new = self.merged(shape, &old, values, assignments, condition.as_ref())?;
                Ok(new.map(|new| Change { key, old, new, besides: Vec::new() }))
            }
            _ => Err(self.duplicate(shape, obstacle.target, &values)?.into()),
        }
    }

    fn obstacle(
        &mut self,
        shape: &TableShape,
        (key, values): (&Key, &[Datum]),
        arbiter: Option<ConflictTarget>,
        decided: &Decided,
    ) -> Result<Option<Obstacle>, Failure> {
        let mut places = self.places(shape, key, values)?;
        places.sort_by_key(|(target, _)| Some(*target) != arbiter);
        for (target, place) in places {
            if decided.taken.contains(&place) {
                return Ok(Some(Obstacle { target, key: None }));
            }
            if decided.given_up.contains(&place) {
                continue;
            }
            let there = match target {
                ConflictTarget::Index(number) => {
                    let index = super::rows::index_of(shape, number)?;
                    self.unique_conflict(shape, index, key, values)?
                }
                ConflictTarget::Key | ConflictTarget::Any => {
                    self.transaction.get(&place)?.is_some().then_some(place)
                }
            };
            if there.is_some() {
                return Ok(Some(Obstacle { target, key: there }));
            }
        }
        Ok(None)
    }

    /// Where a row needs to be the only one.
    fn places(
        &mut self,
        shape: &TableShape,
        key: &Key,
        values: &[Datum],
    ) -> Result<Vec<(ConflictTarget, Key)>, Failure> {
        let mut places = Vec::new();
        if !shape.key.is_empty() {
            places.push((ConflictTarget::Key, key.clone()));
        }
        for (number, index) in (0..).zip(&shape.indexes) {
            let entry = self.unique_entry(shape, index, key, values)?;
            places.extend(entry.map(|entry| (ConflictTarget::Index(number), entry)));
        }
        Ok(places)
    }
}
