//! How much faster a log is replayed than it was made: the same inputs, without clients, sequencing and waiting for the disk
//! (Calvin §5, CAL-100).

use std::time::Instant;

use ordain_db::position::PartitionId;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::Workload;

use super::super::{drive, options::RunOptions};
use super::{Place, rows};
use crate::database::Database;
use crate::durable;
use crate::output::Output;

/// A replay is to be so many times faster than the run.
const FASTER_MIN: f64 = 3.0;

/// Runs a workload, ends, and begins again; whether that was fast enough.
pub(super) fn run(run: &RunOptions, workload: &dyn Workload, output: &Output) -> Result<bool, String> {
    let place = Place::new(run)?;
    let (durable, cluster) = (place.options(), run.cluster());
    let rows = rows(workload, run.partitions);
    let text = |error: ordain_db::error::Error| error.to_string();
    let catalog = workload.catalog();
    let database =
        Database::durable(&durable, &cluster, &place.contents, catalog.clone(), &rows).map_err(text)?;
    let finished = drive(run, workload, &**database.process(), &database)?;
    database.close().map_err(text)?;
    let executed: u64 =
        finished.statuses.iter().map(|status| status.counters.committed + status.counters.aborted).sum();
    let ended = finished.measured.committed + finished.measured.aborted;
    let throughput = ended as f64 / finished.measured.elapsed.as_secs_f64();

    let begun = Instant::now();
    for partition in (0..run.partitions).map(PartitionId) {
        rows(partition, &mut MemoryStorage::new()).map_err(text)?;
    }
    let loaded = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let (directory, nodes) = durable::open(&durable, &cluster, &place.contents, catalog, &rows)?;
    let opened = begun.elapsed().as_secs_f64();
    let database = Database::of_nodes(&cluster, catalog.clone(), nodes, Some(directory)).map_err(text)?;
    database.wait_until_recovered().map_err(text)?;
    // It opens when everything before it has been executed.
    let snapshot = database.snapshot().map_err(text)?;
    let total = begun.elapsed().as_secs_f64();
    drop(snapshot);
    let digest = database.digest().map_err(text)?.to_string();
    database.close().map_err(text)?;
    if digest != finished.digest {
        return Err(format!("the digest was {}, and after the replay it is {digest}", finished.digest));
    }
    let replay = executed as f64 / (total - loaded).max(1e-9);
    let faster = replay / throughput;
    let holds = faster >= FASTER_MIN;
    let report = format!(
        "workload,partitions,clients,executed,run_txn_s,load_s,open_s,recovery_s,replay_txn_s,times_faster\n\
         {},{},{},{executed},{throughput:.0},{loaded:.3},{opened:.3},{total:.3},{replay:.0},{faster:.2}\n",
        workload.name(),
        run.partitions,
        run.outstanding(),
    );
    output.write("recovery.csv", &report)?;
    crate::sim::print(&format!(
        "the run: {throughput:.0} transactions/s, {executed} in all\n\
         recovery: {total:.3} s, of which {loaded:.3} s load the first rows: {replay:.0} transactions/s\n\
         {faster:.2} times faster than the run ({} {FASTER_MIN})\n",
        if holds { "at least" } else { "LESS THAN" },
    ))?;
    Ok(holds)
}
