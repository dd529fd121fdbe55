//! Grouping: a row for each group, with its aggregates.

use std::collections::{BTreeMap, BTreeSet};

use super::query::{hashed, sort_keyed};
use super::work::{work_of_comparing, work_of_copies};
use super::{Failure, Row, Run, size_of_row};
use crate::plan::{AggregateCall, GroupingSets, Node, SortKey};
use crate::types::aggregate::State;
use crate::types::{Datum, Zone};

/// A group while its rows come.
struct Group {
    /// What its rows have in common.
    values: Row,
    /// The number of its grouping set.
    set: usize,
    gathered: Vec<Gathered>,
}

/// What an aggregate has of a group.
struct Gathered {
    state: State,
    /// Arguments that have been counted, if equal ones count once.
    seen: BTreeSet<Vec<u8>>,
    /// Sort keys and arguments, if they are counted in an order.
    unsorted: Vec<(Row, Row)>,
}

impl Gathered {
    fn new(call: &AggregateCall, zone: Zone) -> Gathered {
        Gathered { state: State::new(&call.aggregate, zone), seen: BTreeSet::new(), unsorted: Vec::new() }
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
        let mut places: BTreeMap<(usize, Vec<u8>), usize> = BTreeMap::new();
        let mut found: Vec<Group> = Vec::new();
        let zone = self.inputs.zone;
        let begun = |call: &AggregateCall| Gathered::new(call, zone);
        self.each(input, usize::MAX, &mut |run, row| {
            let values = run.values(groups, &row)?;
            let counted = run.counted(aggregates, &row)?;
            let work = 4 * work_of_comparing(&values) + work_of_copies(&values);
            for (set, way) in ways.iter().enumerate() {
                run.go_on()?;
                run.work(work)?;
                let values = masked(&values, way);
                let place = *places.entry((set, hashed(&values))).or_insert(found.len());
                if place == found.len() {
                    run.hold(2 * size_of_row(&values) + aggregates.len() * size_of::<Gathered>())?;
                    found.push(Group { values, set, gathered: aggregates.iter().map(begun).collect() });
                }
                run.gather(aggregates, &counted, &mut found[place].gathered)?;
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

    /// The sort keys and arguments that a row gives to each aggregate; `None` for those for which it does not count.
    fn counted(
        &mut self,
        calls: &[AggregateCall],
        row: &[Datum],
    ) -> Result<Vec<Option<(Row, Row)>>, Failure> {
        let mut counted = Vec::with_capacity(calls.len());
        for call in calls {
            counted.push(if self.passes(call.filter.as_ref(), row)? {
                let arguments = self.values(&call.arguments, row)?;
                // What is sorted by an argument is sorted by its value: another one would draw another number.
                let of_argument =
                    |key: &SortKey| call.arguments.iter().position(|known| *known == key.expression);
                let mut keys = Row::with_capacity(call.order.len());
                for key in &call.order {
                    keys.push(match of_argument(key) {
                        Some(place) => arguments[place].clone(),
                        None => self.value(&key.expression, row)?,
                    });
                }
                Some((keys, arguments))
            } else {
                None
            });
        }
        Ok(counted)
    }

    fn gather(
        &mut self,
        calls: &[AggregateCall],
        counted: &[Option<(Row, Row)>],
        group: &mut [Gathered],
    ) -> Result<(), Failure> {
        for ((call, counted), gathered) in calls.iter().zip(counted).zip(group) {
            let Some((keys, arguments)) = counted else { continue };
            self.work(work_of_comparing(arguments) + work_of_copies(keys))?;
            if call.distinct && !gathered.seen.insert(hashed(arguments)) {
                continue;
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
