//! CPU time per transaction of the pure core: whole clusters stepped by one thread, without sockets, threads or waiting.
//!
//! `cargo bench --package ordain-workload --bench step`, or with arguments `-- WORKLOAD PARTITIONS MULTI_PARTITION_PERCENT`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark reads a clock and prints"
)]

use std::time::Instant;

use ordain_db::cluster::Cluster;
use ordain_db::engine::EngineKind;
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::{Part, Workload, micro, tpcc};

const ROUNDS: usize = 5;
const BATCH: usize = 1000;
const BATCHES: usize = 20;

fn workload(name: &str, sites: u16, percent: f64) -> Box<dyn Workload> {
    match name {
        "micro" => {
            let options =
                micro::Options { sites, multi_partition_percent: percent, ..micro::Options::default() };
            Box::new(micro::Micro::new(options).unwrap())
        }
        _ => {
            let remote = tpcc::Remote::Orders(percent);
            let options = tpcc::Options { sites, warehouses: 4, remote, ..tpcc::Options::default() };
            Box::new(tpcc::Tpcc::new(options).unwrap())
        }
    }
}

/// Microseconds per transaction: the median of some rounds.
fn measure(workload: &dyn Workload, partitions: u16) -> f64 {
    let mut cluster = Cluster::build(EngineKind::Calvin, partitions, workload.catalog(), 1, |me| {
        let mut storage = MemoryStorage::new();
        let part = Part::of(me, partitions);
        let mut put = |key: &ordain_db::data::Key, row: &[u8]| {
            storage.put(key, key.hash(), row, Position::LOADED);
        };
        workload.load(part, &mut put).unwrap();
        Box::new(storage)
    });
    let homes = (0..partitions).map(PartitionId);
    let mut generators: Vec<_> = homes
        .map(|home| (home, workload.generator(1, u32::from(home.0), Part::of(home, partitions)).unwrap()))
        .collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut spent = 0.0;
        for _ in 0..BATCHES {
            for (home, generator) in &mut generators {
                for _ in 0..BATCH / usize::from(partitions) {
                    let call = generator.next();
                    let client = ClientId { home: *home, number: 1 };
                    cluster.call(*home, client, call.procedure, call.arguments);
                }
            }
            let begun = Instant::now();
            cluster.run_until_quiet();
            spent += begun.elapsed().as_secs_f64();
        }
        rounds.push(spent * 1e6 / (BATCH * BATCHES) as f64);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [name, partitions, percent] = arguments.as_slice() {
        let partitions = partitions.parse().unwrap();
        println!("{:.2} us", measure(&*workload(name, partitions, percent.parse().unwrap()), partitions));
        return;
    }
    println!("{:<8}{:>12}{:>18}{:>12}", "workload", "partitions", "multi-partition", "us/txn");
    for name in ["micro", "tpcc"] {
        for (partitions, percent) in [(1, 0.0), (2, 0.0), (2, 10.0), (2, 100.0), (4, 10.0)] {
            let cost = measure(&*workload(name, partitions, percent), partitions);
            println!("{name:<8}{partitions:>12}{percent:>17}%{cost:>12.2}");
        }
    }
}
