//! The procedure of the microbenchmark that is given its records.

use std::hint::black_box;

use ordain_db::data::{DataError, Key, Table, Value};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::{INCREMENT, RECORDS_PER_TRANSACTION, column};

/// Which record: its site and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RecordName {
    /// The site.
    pub site: u16,
    /// The number among the site's records; the contended ones come first.
    pub id: u32,
}

/// What to increment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The sum of the counters must be below this, or the call aborts.
    pub sum_below: i64,
    /// The records, all different.
    pub records: [RecordName; RECORDS_PER_TRANSACTION],
}

/// Reads ten records, checks that no counter is negative and that their sum is below a bound, and increments each.
/// Returns the sum before.
pub struct Increment {
    records: Table,
    /// With each record.
    work: Work,
}

impl Increment {
    pub(super) fn new(records: Table, work: Work) -> Increment {
        Increment { records, work }
    }
}

/// The key of a record.
#[inline]
pub(super) fn key_of(records: &Table, name: RecordName) -> Result<Key, DataError> {
    records.key((i32::from(name.site), i64::from(name.id)))
}

/// What keeps the processor busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) rounds: u32,
    /// See [`Options::work_is_counted_only`](super::Options::work_is_counted_only).
    pub(super) is_counted_only: bool,
}

impl Work {
    #[inline]
    pub(super) fn run(self, transaction: &mut Transaction<'_>) {
        if self.rounds == 0 {
            return;
        }
        transaction.compute(u64::from(self.rounds), || {
            if !self.is_counted_only {
                busy_work(self.rounds);
            }
            0
        });
    }
}

/// Keeps the processor busy for so many rounds: integers only, the result thrown away, which the compiler must not notice
/// (trap 24). Each round needs the one before. Who calibrates it calls the very code that transactions run.
#[inline(never)]
pub fn busy_work(rounds: u32) {
    let mut value = 1_u64;
    for round in 0..rounds {
        value = black_box((value ^ u64::from(round)).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

impl Procedure for Increment {
    type Arguments = Arguments;
    type Output = i64;

    fn name(&self) -> &str {
        INCREMENT
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for name in arguments.records {
            footprint.update(&key_of(&self.records, name)?)?;
        }
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<i64, Stop> {
        let mut keys: [Key; RECORDS_PER_TRANSACTION] = Default::default();
        let mut counters = [0; RECORDS_PER_TRANSACTION];
        for (index, name) in arguments.records.into_iter().enumerate() {
            keys[index] = key_of(&self.records, name)?;
            let row = transaction.get(&keys[index])?;
            let row = row.ok_or_else(|| Stop::Invalid(format!("there is no record {name:?}")))?;
            counters[index] = row.int64(column::COUNTER)?;
            self.work.run(transaction);
        }
        let sum: i64 = counters.iter().sum();
        if counters.iter().any(|counter| *counter < 0) || sum >= arguments.sum_below {
            return Err(Stop::abort(format!("the counters sum to {sum}, not below {}", arguments.sum_below)));
        }
        for (key, counter) in keys.iter().zip(counters) {
            transaction.set(&self.records, key, [(column::COUNTER, Value::Int64(counter + 1))])?;
        }
        Ok(sum)
    }
}
