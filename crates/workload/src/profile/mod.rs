//! What a workload is like, in the terms of the study that compares engines (Ren, Thomson and Abadi): how many of its calls
//! span partitions, depend on data, and conflict.
//!
//! Everything is counted over a sample of calls: from what they declare, and for calls whose keys depend on data, from what they
//! touch when all calls of the sample run one after the other over the first rows.

mod contention;
mod touched;

use ordain_db::data::Owner;
use ordain_db::error::Error;
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Catalog, Declared, Footprint};

use self::contention::Meetings;
use self::touched::{Touched, record};
use crate::limit::PlainStore;
use crate::{Call, Mode, Part, Workload};

/// Calls of a sample at most: pairs of them are compared.
pub const CALLS_MAX: usize = 2_000;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// Calls that were looked at.
    pub calls: usize,
    /// Those over a snapshot, which take no part in anything below.
    pub snapshot_percent: f64,
    /// Share of transactions that touch several partitions, in percent.
    pub multi_partition_percent: f64,
    /// Partitions that such a one touches, in the mean; 0 if there is none.
    pub participants: f64,
    /// Share of transactions whose keys depend on data, in percent: they are reconnoitred (Calvin §3.2.1), or run again for each
    /// key that they lack.
    pub dependent_percent: f64,
    /// Keys and ranges that a transaction touches, in the mean.
    pub keys: f64,
    /// Share of transactions that write, in percent.
    pub writing_percent: f64,
    /// Share of the keys that are written for which a functor is declared, in percent (Fan and Golab §IV-B): the engine `aloha`
    /// needs nobody's reads for them.
    pub functor_percent: f64,
    /// Of two transactions that touch the same partition, the share that conflict there: both touch a key, and one of them writes
    /// it. 0 to 1. In the microbenchmark, where each transaction updates one of so many contended records, that is the study's
    /// contention index (CAL-117), and a little more by conflicts at the other records.
    pub contention_index: f64,
}

/// Looks at the first calls of a workload on so many partitions, as many of each partition's, at most [`CALLS_MAX`].
///
/// # Errors
/// When the workload makes no calls for a partition, or one of its calls cannot be made.
pub fn profile(workload: &dyn Workload, partitions: u16, seed: u64) -> Result<Profile, Error> {
    let mut generators = Vec::new();
    for home in (0..partitions).map(PartitionId) {
        generators.push(workload.generator(seed, u32::from(home.0), Part::of(home, partitions))?);
    }
    let homes = generators.len().max(1);
    let calls = (0..CALLS_MAX).filter_map(|number| {
        let home = number % homes;
        Some((PartitionId(home as u16), generators.get_mut(home)?.next()))
    });
    let calls: Vec<(PartitionId, Call)> = calls.collect();
    let ordered: Vec<&(PartitionId, Call)> =
        calls.iter().filter(|(_, call)| call.mode == Mode::Ordered).collect();
    let touched = touched_by(workload, partitions, &ordered)?;
    let mut meetings = Meetings::new(partitions);
    let (mut multi, mut participants, mut dependent, mut writing, mut keys) = (0, 0, 0, 0, 0);
    let (mut written, mut functors) = (0, 0);
    for ((home, _), (touched, depends)) in ordered.iter().zip(&touched) {
        let parts = touched.participants(*home, partitions);
        if parts.len() > 1 {
            multi += 1;
            participants += parts.len();
        }
        dependent += usize::from(*depends);
        writing += usize::from(touched.writes());
        keys += touched.keys.len() + touched.ranges.len();
        written += touched.keys.values().filter(|(_, write)| *write).count();
        functors += touched.functors;
        parts.iter().for_each(|partition| meetings.add(*partition, touched));
    }
    let percent = |part: usize, of: usize| part as f64 * 100.0 / (of as f64).max(1.0);
    Ok(Profile {
        calls: calls.len(),
        snapshot_percent: percent(calls.len() - ordered.len(), calls.len()),
        multi_partition_percent: percent(multi, ordered.len()),
        participants: participants as f64 / (multi as f64).max(1.0),
        dependent_percent: percent(dependent, ordered.len()),
        keys: keys as f64 / (ordered.len() as f64).max(1.0),
        writing_percent: percent(writing, ordered.len()),
        functor_percent: percent(functors, written),
        contention_index: meetings.conflicting_share(),
    })
}

/// What each call touches, and whether that depends on data.
fn touched_by(
    workload: &dyn Workload,
    partitions: u16,
    calls: &[&(PartitionId, Call)],
) -> Result<Vec<(Touched, bool)>, Error> {
    let catalog = workload.catalog();
    let mut touched = Vec::with_capacity(calls.len());
    for (_, call) in calls {
        touched.push(declared(catalog, call, partitions)?);
    }
    if touched.iter().all(Option::is_some) {
        return Ok(touched.into_iter().flatten().map(|touched| (touched, false)).collect());
    }
    // What a call reads may be what one before it wrote: so all of them run.
    let mut store = PlainStore::load(workload)?;
    let run = |((_, call), declared): (&&(PartitionId, Call), Option<Touched>)| match declared {
        Some(touched) => {
            // One that aborts has touched what it declared all the same.
            let _ = store.run(catalog, call);
            (touched, false)
        }
        None => (record(catalog, &mut store, call, partitions), true),
    };
    Ok(calls.iter().zip(touched).map(run).collect())
}

/// What a call declares; `None` if that depends on data.
fn declared(catalog: &Catalog, call: &Call, partitions: u16) -> Result<Option<Touched>, Error> {
    let mut footprint = Footprint::default();
    let Catalog { schema, procedures } = catalog;
    let declared = procedures.declare(call.procedure, &call.arguments, schema, partitions, &mut footprint)?;
    Ok((declared == Declared::Complete).then(|| Touched::of_footprint(&footprint)))
}

/// Whether a key or range is locked at a partition.
fn locked_at(owner: Owner, write: bool, partition: PartitionId) -> bool {
    match owner {
        Owner::Partition(owner) => owner == partition,
        Owner::Split => true,
        // Every partition reads its own copy.
        Owner::Replicated => write,
    }
}
