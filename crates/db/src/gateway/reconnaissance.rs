//! Reconnaissance: finding a dependent transaction's footprint by a trial run (OLLP, Calvin §3.2.1, CAL-63).
//!
//! The trial run reads recent state without isolation and without locks, is not in the log, is sent to no replica, and writes
//! nothing. What it touched is recorded as the footprint. Rows of other partitions are fetched when the run asks for them; the
//! run then starts again over what has been fetched, until it ends, or tells what is left of it
//! ([`Transaction::declare_rest`], DET-25). Logic that [runs past gaps](crate::procedure::Procedure::runs_past_gaps) goes on
//! without the rows until then, so that those which do not depend on each other are fetched together. What it has computed it
//! does not compute again, although local rows may have changed since. It may see torn state (trap 8): whatever it concludes, abort
//! included, is only a guess that execution checks in the order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::data::row::FixedValue;
use crate::data::{DataError, Direction, Key, KeyRange, Owner, Schema, Table};
use crate::error::Error;
use crate::hash::{FastMap, key_hash};
use crate::limits::{
    FOOTPRINT_ENTRIES_MAX, READ_RESULTS_BYTES_MAX, RECONNAISSANCE_ACCESSES_MAX, RECONNAISSANCE_ROUNDS_MAX,
    RECONNAISSANCE_WANTS_MAX,
};
use crate::message::Want;
use crate::position::{PartitionId, Position};
use crate::procedure::footprint::Access as Touch;
use crate::procedure::transaction::{Access, Found as Row};
use crate::procedure::{Catalog, Declaration, Footprint, ProcedureId, Stop, Transaction};
use crate::storage::Storage;

/// Rows that another partition found.
#[derive(Debug)]
pub struct Found {
    /// Who found them.
    pub from: PartitionId,
    /// What was wanted.
    pub want: Want,
    /// The rows.
    pub rows: Vec<(Key, Bytes)>,
}

/// How far a run has come.
#[derive(Debug)]
pub enum Scouted {
    /// It needs rows of other partitions.
    Wants(BTreeSet<(PartitionId, Want)>),
    /// It ended; the encoded footprint.
    Footprint(Vec<u8>),
    /// It cannot end.
    Failed(Error),
}

/// The first rows of a range in a direction, at most `limit`.
#[derive(Debug)]
struct RangePart {
    limit: u64,
    rows: Vec<(Key, Bytes)>,
}

/// A reconnaissance under way.
#[derive(Debug)]
pub struct Reconnaissance {
    me: PartitionId,
    partitions: u16,
    rounds: u32,
    /// Rows of other partitions, by key.
    keys: FastMap<Key, Option<Bytes>>,
    /// Parts of ranges on other partitions.
    ranges: BTreeMap<(KeyRange, Direction, PartitionId), RangePart>,
    /// Bytes of what each other partition has sent.
    fetched: BTreeMap<PartitionId, usize>,
    /// Rows that its runs have touched.
    accesses: u64,
    /// Answers that are still to come.
    awaited: usize,
    /// What its runs have computed, in their order, and in how many units of the procedure's own.
    computed: Vec<u64>,
    units: u64,
}

impl Reconnaissance {
    /// A run that knows nothing yet.
    pub fn new(me: PartitionId, partitions: u16) -> Reconnaissance {
        Reconnaissance {
            me,
            partitions,
            rounds: 0,
            keys: FastMap::default(),
            ranges: BTreeMap::new(),
            fetched: BTreeMap::new(),
            accesses: 0,
            awaited: 0,
            computed: Vec::new(),
            units: 0,
        }
    }

    /// What its runs have computed so far, in units of the procedure's own.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Takes rows; whether all that were wanted are there.
    pub fn found(&mut self, found: Found) -> bool {
        let bytes: usize = found.rows.iter().map(|(key, row)| key.len() + row.len()).sum();
        *self.fetched.entry(found.from).or_default() += bytes;
        match found.want {
            Want::Key(key) => {
                let row = found.rows.into_iter().next().map(|(_, row)| row);
                self.keys.insert(key, row);
            }
            Want::Range { range, direction, limit } => {
                let place = (range, direction, found.from);
                // One that was asked for again may come after a longer one.
                if self.ranges.get(&place).is_none_or(|known| known.limit <= limit) {
                    self.ranges.insert(place, RangePart { limit, rows: found.rows });
                }
            }
        }
        self.awaited = self.awaited.saturating_sub(1);
        self.awaited == 0
    }

    /// Runs the procedure from its start over local rows and those fetched.
    pub fn run(
        &mut self,
        procedure: ProcedureId,
        arguments: &[u8],
        catalog: &Catalog,
        storage: &mut dyn Storage,
    ) -> Scouted {
        if self.rounds == RECONNAISSANCE_ROUNDS_MAX || self.accesses > RECONNAISSANCE_ACCESSES_MAX {
            return Scouted::Failed(DataError::ReconnaissanceTooLong.into());
        }
        // Whatever else it found, its reads in the order would be refused.
        if self.fetched.values().any(|bytes| *bytes > READ_RESULTS_BYTES_MAX) {
            return Scouted::Failed(DataError::ReadsTooLarge.into());
        }
        self.rounds += 1;
        let mut trial = Trial {
            schema: &catalog.schema,
            storage,
            known: self,
            touched: Vec::new(),
            index: FastMap::default(),
            ranges: Vec::new(),
            scanned: BTreeSet::new(),
            own: BTreeMap::new(),
            wants: BTreeSet::new(),
            runs_past_gaps: catalog.procedures.runs_past_gaps(procedure),
            refused: None,
            accesses: 0,
            next_computed: 0,
            computed: Vec::new(),
            units: 0,
        };
        let mut scratch = Vec::new();
        let mut transaction = Transaction::new(&catalog.schema, &mut trial, &mut scratch);
        // Whatever its end, an abort included, is a guess from unisolated reads; the ordered run decides.
        let _guess = catalog.procedures.run(procedure, arguments, &mut transaction, &mut Vec::new());
        let Trial { touched, ranges, wants, refused, accesses, computed, units, .. } = trial;
        self.accesses += accesses;
        self.computed.extend(computed);
        self.units += units;
        if !wants.is_empty() {
            self.awaited = wants.len();
            return Scouted::Wants(wants);
        }
        if let Some(error) = refused {
            return Scouted::Failed(error.into());
        }
        match self.footprint(&touched, &ranges, &catalog.schema) {
            Ok(encoded) => Scouted::Footprint(encoded),
            Err(error) => Scouted::Failed(error),
        }
    }

    fn footprint(
        &self,
        touched: &[(Key, Touch)],
        ranges: &[(KeyRange, Touch)],
        schema: &Schema,
    ) -> Result<Vec<u8>, Error> {
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(schema, self.partitions, &mut footprint);
        for (key, access) in touched {
            declaration.touch(key, *access)?;
        }
        for (range, access) in ranges {
            declaration.touch_range(range, *access)?;
        }
        Ok(footprint.encode())
    }
}

/// One trial run.
struct Trial<'a> {
    schema: &'a Schema,
    storage: &'a mut dyn Storage,
    known: &'a Reconnaissance,
    touched: Vec<(Key, Touch)>,
    index: FastMap<Key, usize>,
    ranges: Vec<(KeyRange, Touch)>,
    /// Those of them that were read.
    scanned: BTreeSet<KeyRange>,
    /// The run's own writes; `None` is a deletion.
    own: BTreeMap<Key, Option<Vec<u8>>>,
    wants: BTreeSet<(PartitionId, Want)>,
    /// Whether it goes on without these.
    runs_past_gaps: bool,
    /// Why what it declared is no footprint.
    refused: Option<DataError>,
    /// Rows that it has touched.
    accesses: u64,
    /// Which computation comes next, and what was computed now, in so many units.
    next_computed: usize,
    computed: Vec<u64>,
    units: u64,
}

impl Trial<'_> {
    /// Asks for what is about to be read on other partitions, together.
    fn fetch_ahead(&mut self, ahead: &Footprint) -> Result<(), Stop> {
        for entry in ahead.keys().iter().filter(|entry| entry.access.read) {
            let key = Key::from_bytes(ahead.key(entry));
            if let Owner::Partition(owner) = entry.owner
                && owner != self.known.me
                && !self.known.keys.contains_key(&key)
            {
                self.wants.insert((owner, Want::Key(key)));
            }
        }
        self.go_on()
    }

    /// Stops the run where it lacks rows, unless it goes on without.
    fn go_on(&self) -> Result<(), Stop> {
        let most = if self.runs_past_gaps { RECONNAISSANCE_WANTS_MAX } else { 1 };
        if self.wants.len() < most { Ok(()) } else { Err(Stop::ReadPending) }
    }

    fn touch(&mut self, key: &Key, access: Touch) -> Result<(), Stop> {
        self.accesses += 1;
        if let Some(index) = self.index.get(key) {
            let known = &mut self.touched[*index].1;
            known.read |= access.read;
            known.write |= access.write;
            return Ok(());
        }
        // One too many is recorded, so that the footprint is refused for it: no later attempt could do with less.
        if self.touched.len() > FOOTPRINT_ENTRIES_MAX {
            return Err(Stop::Invalid(format!(
                "a transaction may touch at most {FOOTPRINT_ENTRIES_MAX} keys"
            )));
        }
        self.index.insert(key.clone(), self.touched.len());
        self.touched.push((key.clone(), access));
        Ok(())
    }

    /// The row of a key before the run's own writes.
    fn base(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        match self.schema.owner(key, self.known.partitions)? {
            Owner::Partition(owner) if owner != self.known.me => match self.known.keys.get(key) {
                Some(row) => Ok(row.as_deref()),
                None => {
                    self.wants.insert((owner, Want::Key(key.clone())));
                    self.go_on().map(|()| None)
                }
            },
            _ => {
                let record = self.storage.locate(key, key_hash(key));
                Ok(record.map(|record| self.storage.row(record)))
            }
        }
    }

    /// The rows of a range before the run's own writes, at most `limit`, in order.
    fn scan_base(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Row>, Stop> {
        let owner = self.schema.table_of(&range.start)?.range_owner(range, self.known.partitions);
        let mut rows = Vec::new();
        if owner.includes(self.known.me) {
            self.storage.scan(range, direction, Position::LATEST, &mut |key, row| {
                if rows.len() >= limit {
                    return ControlFlow::Break(());
                }
                rows.push(Row { key: Key::from_bytes(key), row: Bytes::copy_from_slice(row) });
                ControlFlow::Continue(())
            });
        }
        let others: Vec<PartitionId> = match owner {
            Owner::Partition(owner) => vec![owner],
            Owner::Replicated => Vec::new(),
            Owner::Split => (0..self.known.partitions).map(PartitionId).collect(),
        };
        for partition in others.into_iter().filter(|partition| *partition != self.known.me) {
            let known = self.known.ranges.get(&(range.clone(), direction, partition));
            match known.filter(|part| part.limit >= limit as u64) {
                Some(RangePart { rows: found, .. }) => {
                    rows.extend(
                        found
                            .iter()
                            .map(|(key, row)| Row { key: key.clone(), row: Bytes::copy_from_slice(row) }),
                    );
                }
                None => {
                    let want = Want::Range { range: range.clone(), direction, limit: limit as u64 };
                    self.wants.insert((partition, want));
                }
            }
        }
        self.go_on()?;
        rows.sort_unstable_by(|left, right| direction.compare(&left.key, &right.key));
        rows.truncate(limit);
        Ok(rows)
    }
}

impl Access for Trial<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<&[u8]>, Stop> {
        self.touch(key, Touch::READ)?;
        if self.own.contains_key(key) {
            return Ok(self.own[key].as_deref());
        }
        self.base(key)
    }

    fn put(&mut self, key: &Key, row: &[u8]) -> Result<(), Stop> {
        self.touch(key, Touch::WRITE)?;
        self.own.insert(key.clone(), Some(row.to_vec()));
        Ok(())
    }

    fn replace(&mut self, table: &Table, key: &Key, values: &[FixedValue]) -> Result<bool, Stop> {
        self.touch(key, Touch::UPDATE)?;
        let current = match self.own.get(key) {
            Some(own) => own.clone(),
            None => self.base(key)?.map(<[u8]>::to_vec),
        };
        let Some(mut row) = current else { return Ok(false) };
        values.iter().for_each(|value| table.layout().replace(&mut row, value));
        self.own.insert(key.clone(), Some(row));
        Ok(true)
    }

    fn delete(&mut self, key: &Key) -> Result<(), Stop> {
        self.touch(key, Touch::WRITE)?;
        self.own.insert(key.clone(), None);
        Ok(())
    }

    fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Row>, Stop> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let hidden = self.own.range::<Key, _>(&range.start..&range.end).count();
        let wanted = limit.saturating_add(hidden);
        let base = self.scan_base(range, direction, wanted)?;
        self.accesses += base.len() as u64;
        let cut = (base.len() == wanted).then(|| base.last().map(|row| row.key.clone())).flatten();
        let mut rows: BTreeMap<Key, Bytes> = base.into_iter().map(|row| (row.key, row.row)).collect();
        for (key, own) in self.own.range::<Key, _>(&range.start..&range.end) {
            match own {
                Some(row) if cut.as_ref().is_none_or(|cut| direction.compare(key, cut).is_le()) => {
                    rows.insert(key.clone(), Bytes::copy_from_slice(row));
                }
                Some(_) => {}
                None => {
                    rows.remove(key);
                }
            }
        }
        let rows = direction.of_ascending(rows.into_iter()).take(limit);
        let found: Vec<Row> = rows.map(|(key, row)| Row { key, row }).collect();
        // Only what was seen is protected: up to the last row when the limit ended the scan.
        let seen = match found.last() {
            Some(last) if found.len() == limit => range.seen(direction, &last.key),
            _ => range.clone(),
        };
        if self.scanned.insert(seen.clone()) {
            self.ranges.push((seen, Touch::READ));
        }
        Ok(found)
    }

    fn looks_ahead(&self) -> Option<u16> {
        Some(self.known.partitions)
    }

    fn look_ahead(&mut self, ahead: &Footprint, refused: Option<DataError>, all: bool) -> Result<(), Stop> {
        if let Some(error) = refused {
            self.refused = Some(error.clone());
            return Err(error.into());
        }
        if !all {
            return self.fetch_ahead(ahead);
        }
        for entry in ahead.keys() {
            self.touch(&Key::from_bytes(ahead.key(entry)), entry.access)?;
        }
        self.ranges.extend(ahead.ranges().iter().map(|entry| (entry.range.clone(), entry.access)));
        Err(Stop::FootprintKnown)
    }

    fn is_past_gaps(&self) -> bool {
        !self.wants.is_empty()
    }

    fn computed(&mut self) -> Option<u64> {
        if self.is_past_gaps() {
            // Computed from what there is not. What it gives is thrown away with the run.
            return Some(0);
        }
        let known = self.known.computed.get(self.next_computed).copied();
        self.next_computed += 1;
        known
    }

    fn note_computed(&mut self, units: u64, result: u64) {
        self.units += units;
        self.computed.push(result);
    }
}

/// Serves a reconnaissance read of another partition from this one's newest rows.
pub fn serve(want: &Want, storage: &mut dyn Storage) -> Vec<(Key, Bytes)> {
    match want {
        Want::Key(key) => {
            let record = storage.locate(key, key_hash(key));
            let row = record.map(|record| Bytes::copy_from_slice(storage.row(record)));
            row.map(|row| (key.clone(), row)).into_iter().collect()
        }
        Want::Range { range, direction, limit } => {
            let mut rows: Vec<(Key, Bytes)> = Vec::new();
            let mut bytes = 0;
            storage.scan(range, *direction, Position::LATEST, &mut |key, row| {
                if rows.len() as u64 >= *limit || bytes > READ_RESULTS_BYTES_MAX {
                    return ControlFlow::Break(());
                }
                bytes += key.len() + row.len();
                rows.push((Key::from_bytes(key), Bytes::copy_from_slice(row)));
                ControlFlow::Continue(())
            });
            rows
        }
    }
}
