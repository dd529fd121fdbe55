//! Transactions that find their records through the index, and its updates (Ren et al. §3.6).

use ordain_db::data::{DataError, Key, Table, Value};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::index::{self, EntryName, Named};
use super::procedure::{Work, key_of};
use super::{INCREMENT_BY_INDEX, RECORDS_PER_TRANSACTION, REINDEX, RecordName, column};

/// What to increment, found through the index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DependentArguments {
    /// The sum of the counters must be below this, or the call aborts.
    pub sum_below: i64,
    /// The entry that names the records.
    pub entry: EntryName,
    /// Records to take before the index is read, instead of the last ones that the entry names: no more than nine, and none that
    /// an entry may name.
    pub ahead: Vec<RecordName>,
}

/// Reads the records that it was given, works, reads the index, reads the records that it names, works, and does the rest like
/// [`Increment`](super::Increment). Which share of the work comes before the index is read does not change how much there is (DET-59).
/// Returns the sum before.
pub struct IncrementByIndex {
    records: Table,
    entries: Table,
    /// Before and after the index is read.
    work: [Work; 2],
}

impl IncrementByIndex {
    pub(super) fn new(records: Table, entries: Table, work: [Work; 2]) -> IncrementByIndex {
        IncrementByIndex { records, entries, work }
    }

    /// Reads the counters of records, and adds their keys.
    fn take(
        &self,
        names: &[RecordName],
        taken: &mut Vec<(Key, i64)>,
        transaction: &mut Transaction<'_>,
    ) -> Result<(), Stop> {
        for name in names {
            let key = key_of(&self.records, *name)?;
            let row = transaction.get(&key)?;
            let row = row.ok_or_else(|| Stop::Invalid(format!("there is no record {name:?}")))?;
            taken.push((key, row.int64(column::COUNTER)?));
        }
        Ok(())
    }

    fn declare(&self, names: &[RecordName], declaration: &mut Declaration<'_>) -> Result<(), DataError> {
        names.iter().try_for_each(|name| declaration.update(&key_of(&self.records, *name)?))
    }
}

impl Procedure for IncrementByIndex {
    type Arguments = DependentArguments;
    type Output = i64;

    fn name(&self) -> &str {
        INCREMENT_BY_INDEX
    }

    fn run(&self, arguments: &DependentArguments, transaction: &mut Transaction<'_>) -> Result<i64, Stop> {
        let DependentArguments { sum_below, entry, ahead } = arguments;
        if ahead.len() >= RECORDS_PER_TRANSACTION {
            return Err(Stop::Invalid(format!("{} records are given: give at most nine", ahead.len())));
        }
        let entry_key = index::key(&self.entries, *entry)?;
        transaction.declare_next(|declaration| {
            self.declare(ahead, declaration)?;
            declaration.read(&entry_key)
        })?;
        let mut taken = Vec::with_capacity(RECORDS_PER_TRANSACTION);
        self.take(ahead, &mut taken, transaction)?;
        self.work[0].run(transaction);
        let row = transaction.get(&entry_key)?;
        let row = row.ok_or_else(|| Stop::Invalid(format!("there is no entry {entry:?}")))?;
        let named = index::decode(&row)?;
        let named = &named[..RECORDS_PER_TRANSACTION - ahead.len()];
        transaction.declare_rest(|declaration| {
            self.declare(ahead, declaration)?;
            self.declare(named, declaration)
        })?;
        self.take(named, &mut taken, transaction)?;
        self.work[1].run(transaction);
        let sum: i64 = taken.iter().map(|(_, counter)| counter).sum();
        if taken.iter().any(|(_, counter)| *counter < 0) || sum >= *sum_below {
            return Err(Stop::abort(format!("the counters sum to {sum}, not below {sum_below}")));
        }
        for (key, counter) in taken {
            transaction.set(&self.records, &key, [(column::COUNTER, Value::Int64(counter + 1))])?;
        }
        Ok(sum)
    }
}

/// What an entry is to name from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReindexArguments {
    /// The entry.
    pub entry: EntryName,
    /// The records.
    pub records: Named,
}

/// Lets an entry of the index name other records: an ordinary transaction of one partition (DET-57).
pub struct Reindex {
    entries: Table,
}

impl Reindex {
    pub(super) fn new(entries: Table) -> Reindex {
        Reindex { entries }
    }
}

impl Procedure for Reindex {
    type Arguments = ReindexArguments;
    type Output = ();

    fn name(&self) -> &str {
        REINDEX
    }

    fn declare(
        &self,
        arguments: &ReindexArguments,
        footprint: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        footprint.write(&index::key(&self.entries, arguments.entry)?)?;
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &ReindexArguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        let key = index::key(&self.entries, arguments.entry)?;
        let records = index::encode(&arguments.records);
        transaction.put(&self.entries, &key, (&records[..],))
    }
}
