//! Workloads on a simulated cluster: every engine and number of partitions ends in the same state.

use ordain_db::cluster::Cluster;
use ordain_db::engine::EngineKind;
use ordain_db::hash::Digest;
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::micro::{Micro, Options};
use ordain_workload::{Part, Workload};

fn run(workload: &dyn Workload, engine: EngineKind, partitions: u16, seed: u64) -> Digest {
    let mut cluster = Cluster::build(engine, partitions, workload.catalog(), seed, |me| {
        let mut storage = MemoryStorage::new();
        let part = Part::of(me, partitions);
        workload
            .load(part, &mut |key, row| {
                storage.put(key, key.hash(), row, Position::LOADED);
            })
            .unwrap();
        Box::new(storage)
    });
    let mut generator = workload.generator(7, 1, Part::WHOLE).unwrap();
    let client = ClientId { home: PartitionId(0), number: 1 };
    let ids: Vec<_> = (0..500)
        .map(|_| {
            let call = generator.next();
            cluster.call(PartitionId(0), client, call.procedure, call.arguments)
        })
        .collect();
    cluster.run_until_quiet();
    for id in ids {
        let _ = cluster.reply(id);
    }
    cluster.digest()
}

#[test]
fn micro_gives_one_state() {
    let options = Options {
        sites: 8,
        records: 8000,
        multi_partition_percent: 30.0,
        contention_index: 0.1,
        ..Options::default()
    };
    let workload = Micro::new(options).unwrap();
    let oracle = run(&workload, EngineKind::Serial, 1, 1);
    for engine in EngineKind::ALL {
        for partitions in [1, 2, 4, 8] {
            assert_eq!(run(&workload, engine, partitions, 2), oracle, "{engine:?} {partitions}");
        }
    }
}
