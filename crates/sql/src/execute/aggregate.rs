//! Grouping: a row for each group, with its aggregates.

use ordain_db::hash::Seed;

use super::keyed::{KeyMap, KeySet};
use super::order::sort_keyed;
use super::query::Wanted;
use super::work::{work_of_comparing, work_of_copies};
use super::{Failure, Row, Run, size_of_row};
use crate::plan::{AggregateCall, GroupingSets, Node, SortKey};
use crate::types::aggregate::State;
use crate::types::compare::hash_bytes;
use crate::types::{Datum, Zone};

/// A group while its rows come.
struct Group {
    /// What its rows have in common.
    values: Row,
    /// The number of its grouping set.
    set: usize,
    gathered: Vec<Gathered>,
}

/// What a row gives to an aggregate.
#[derive(Default)]
struct Counted {
    /// Whether it counts: if not, the rest is that of an earlier row.
    counts: bool,
    /// Sort keys, if rows are counted in an order.
    keys: Row,
    arguments: Row,
}

/// What an aggregate has of a group.
struct Gathered {
    state: State,
    /// Arguments that have been counted, if equal ones count once.
    seen: KeySet,
    /// Sort keys and arguments, if they are counted in an order.
    unsorted: Vec<(Row, Row)>,
}

impl Gathered {
    fn new(call: &AggregateCall, zone: Zone, seed: Seed) -> Gathered {
        let state = State::new(&call.aggregate, zone);
        Gathered { state, seen: KeySet::with_hasher(seed), unsorted: Vec::new() }
    }

    /// The work of finishing it.
    fn work(&self) -> u64 {
        self.state.work() + 8 * self.unsorted.len() as u64
    }

    fn finish(mut self, call: &AggregateCall) -> Result<Datum, Failure> {
        let mut sorted = std::mem::take(&mut self.unsorted);
        sort_keyed(&call.order, &mut sorted);
        for (_, arguments) in sorted {
            self.state.add(&arguments)?;
        }
        Ok(self.state.finish()?)
    }
}

impl Run<'_, '_> {
    /// The rows of an aggregation, in the order in which their groups came.
    pub(super) fn aggregate(&mut self, node: &Node) -> Result<Vec<Row>, Failure> {
        let Node::Aggregate { input, groups, sets, aggregates } = node else {
            return Err(super::malformed("aggregate").into());
        };
        let whole = [(0..groups.len() as u16).collect()];
        let ways: &[Vec<u16>] = sets.as_ref().map_or(&whole, |sets| &sets.sets);
        let mut places: KeyMap<usize> = KeyMap::with_hasher(self.hash_seed());
        let mut found: Vec<Group> = Vec::new();
        let (zone, seed) = (self.inputs.zone, self.hash_seed());
        let begun = |call: &AggregateCall| Gathered::new(call, zone, seed);
        // Of each row, one after the other.
        let (mut values, mut key) = (Row::new(), Vec::new());
        let mut counted: Vec<Counted> = aggregates.iter().map(|_| Counted::default()).collect();
        self.each(input, Wanted::ALL, &mut |run, row| {
            run.values_into(groups, row, &mut values)?;
            run.count_row(aggregates, row, &mut counted)?;
            let work = 4 * work_of_comparing(&values) + work_of_copies(&values);
            for (set, way) in ways.iter().enumerate() {
                run.go_on()?;
                run.work(work)?;
                put_key(set, way, &values, &mut key);
                let place = match places.get(key.as_slice()) {
                    Some(place) => *place,
                    None => {
                        let values = masked(&values, way);
                        run.hold(2 * size_of_row(&values) + aggregates.len() * size_of::<Gathered>())?;
                        places.insert(key.clone(), found.len());
                        found.push(Group { values, set, gathered: aggregates.iter().map(begun).collect() });
                        found.len() - 1
                    }
                };
                run.gather(aggregates, &counted, &mut found[place].gathered, &mut key)?;
            }
            Ok(true)
        })?;
        // What is grouped by nothing is one group, also without rows.
        for (set, _) in ways.iter().enumerate().filter(|(_, way)| way.is_empty()) {
            if !found.iter().any(|group| group.set == set) {
                let values = vec![Datum::Null; groups.len()];
                found.push(Group { values, set, gathered: aggregates.iter().map(begun).collect() });
            }
        }
        let finished = found.into_iter().map(|group| {
            self.work(group.gathered.iter().map(Gathered::work).sum())?;
            finish(group, aggregates, sets.as_ref())
        });
        finished.collect()
    }

    /// What a row gives to each aggregate, in place of what the row before gave.
    fn count_row(
        &mut self,
        calls: &[AggregateCall],
        row: &[Datum],
        counted: &mut [Counted],
    ) -> Result<(), Failure> {
        for (call, Counted { counts, keys, arguments }) in calls.iter().zip(counted) {
            *counts = self.passes(call.filter.as_ref(), row)?;
            if !*counts {
                continue;
            }
            self.values_into(&call.arguments, row, arguments)?;
            keys.clear();
            // What is sorted by an argument is sorted by its value: another one would draw another number.
            let of_argument =
                |key: &SortKey| call.arguments.iter().position(|known| *known == key.expression);
            for key in &call.order {
                keys.push(match of_argument(key) {
                    Some(place) => arguments[place].clone(),
                    None => self.value(&key.expression, row)?,
                });
            }
        }
        Ok(())
    }

    fn gather(
        &mut self,
        calls: &[AggregateCall],
        counted: &[Counted],
        group: &mut [Gathered],
        key: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        for ((call, counted), gathered) in calls.iter().zip(counted).zip(group) {
            let Counted { counts: true, keys, arguments } = counted else { continue };
            self.work(work_of_comparing(arguments) + work_of_copies(keys))?;
            if call.distinct {
                key.clear();
                arguments.iter().for_each(|argument| hash_bytes(argument, key));
                if gathered.seen.contains(key.as_slice()) {
                    continue;
                }
                gathered.seen.insert(key.clone());
            }
            let kept =
                if call.distinct || call.aggregate.keeps_arguments() { size_of_row(arguments) } else { 0 };
            if call.order.is_empty() {
                let before = gathered.state.text_bytes();
                gathered.state.add(arguments)?;
                // A text of them may be longer than they are.
                self.hold(kept.max(gathered.state.text_bytes().saturating_sub(before)))?;
            } else {
                self.hold(kept)?;
                self.hold(size_of_row(keys) + size_of_row(arguments))?;
                gathered.unsorted.push((keys.clone(), arguments.clone()));
            }
        }
        Ok(())
    }
}

/// The bytes that a group of a set is found by: in place of others, those of the set's number and its values.
fn put_key(set: usize, way: &[u16], values: &[Datum], key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&set.to_le_bytes());
    way.iter().filter_map(|place| values.get(usize::from(*place))).for_each(|value| hash_bytes(value, key));
}

/// The values of the groups of a set; those of the others are null.
fn masked(values: &[Datum], set: &[u16]) -> Row {
    let value = |(place, value): (usize, &Datum)| {
        if set.contains(&(place as u16)) { value.clone() } else { Datum::Null }
    };
    values.iter().enumerate().map(value).collect()
}

fn finish(group: Group, calls: &[AggregateCall], sets: Option<&GroupingSets>) -> Result<Row, Failure> {
    let mut row = group.values;
    for (gathered, call) in group.gathered.into_iter().zip(calls) {
        row.push(gathered.finish(call)?);
    }
    if let Some(sets) = sets {
        let set = &sets.sets[group.set];
        for question in &sets.questions {
            let bits = question.iter().fold(0, |bits, asked| 2 * bits + i64::from(!set.contains(asked)));
            row.push(Datum::Int(bits));
        }
    }
    Ok(row)
}
