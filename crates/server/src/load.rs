//! Filling partitions with a workload's rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ordain_db::position::{PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::{MemoryStorage, Options};
use ordain_workload::{Part, Workload};

use crate::process::Seed;

/// How often the bar is redrawn.
const REDRAW: Duration = Duration::from_millis(100);

/// Loads partitions of a cluster that keeps nothing, as many at a time as there are cores, and shows a bar on the terminal if there is one.
///
/// # Errors
/// When the workload cannot make its rows.
pub fn load(workload: &dyn Workload, own: &[PartitionId], partitions: u16) -> Result<Vec<Seed>, String> {
    let expected: u64 =
        own.iter().map(|partition| workload.rows_expected(Part::of(*partition, partitions))).sum();
    let style = ProgressStyle::with_template("loading {bar:40} {human_pos} of {human_len} rows, {eta} left");
    let bar = ProgressBar::new(expected).with_style(style.map_err(|error| format!("progress bar: {error}"))?);
    let loaded = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(own.len().max(1));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                bar.set_position(loaded.load(Ordering::Relaxed));
                std::thread::sleep(REDRAW);
            }
        });
        let loaders: Vec<_> =
            (0..threads)
                .map(|thread| {
                    let loaded = &loaded;
                    scope.spawn(move || {
                        let mine = own.iter().skip(thread).step_by(threads);
                        mine.map(|partition| load_one(workload, *partition, partitions, loaded))
                            .collect::<Result<Vec<Seed>, String>>()
                    })
                })
                .collect();
        let mut seeds = Vec::new();
        let mut failure = None;
        for loader in loaders {
            match loader.join() {
                Ok(Ok(loaded)) => seeds.extend(loaded),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some("a loading thread panicked".to_owned()),
            }
        }
        done.store(true, Ordering::Relaxed);
        failure.map_or(Ok(seeds), Err)
    });
    bar.finish_and_clear();
    let mut seeds = result?;
    seeds.sort_by_key(|seed| seed.partition);
    Ok(seeds)
}

fn load_one(
    workload: &dyn Workload,
    partition: PartitionId,
    partitions: u16,
    loaded: &AtomicU64,
) -> Result<Seed, String> {
    // Nothing that is loaded here is replicated: there is nobody to compare digests with.
    let mut storage = MemoryStorage::with_options(Options { write_digests: false });
    let mut rows = 0_u64;
    workload
        .load(Part::of(partition, partitions), &mut |key, row| {
            storage.load(key, key.hash(), row, Position::LOADED);
            rows += 1;
            if rows.is_multiple_of(4096) {
                loaded.fetch_add(4096, Ordering::Relaxed);
            }
        })
        .map_err(|error| format!("loading {partition}: {error}"))?;
    loaded.fetch_add(rows % 4096, Ordering::Relaxed);
    Ok(Seed { partition, storage: Box::new(storage) })
}

/// Fills a partition's storage with the rows of a workload, without showing how far it is: for a node without a checkpoint.
///
/// # Errors
/// When the workload cannot make its rows.
pub fn fill(
    workload: &dyn Workload,
    partition: PartitionId,
    partitions: u16,
    storage: &mut dyn Storage,
) -> Result<(), ordain_db::error::Error> {
    workload.load(Part::of(partition, partitions), &mut |key, row| {
        storage.load(key, key.hash(), row, Position::LOADED);
    })
}
