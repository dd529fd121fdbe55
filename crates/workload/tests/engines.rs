//! Equal logs give equal states: every workload, on every engine and number of partitions, under any interleaving, leaves the
//! state and gives the answers that `serial` on one partition does, and passes its own check.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use ordain_db::cluster::Cluster;
use ordain_db::data::KeyRange;
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::hash::Digest;
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{Declared, Footprint};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::{Call, Mode, Part, SnapshotReader, Totals, Workload, append, bank, micro, tpcc, ycsb};

const SITES: u16 = 8;
const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };

fn load(workload: &dyn Workload, me: PartitionId, partitions: u16) -> Box<dyn Storage + Send> {
    let mut storage = MemoryStorage::new();
    workload
        .load(Part::of(me, partitions), &mut |key, row| {
            storage.put(key, key.hash(), row, Position::LOADED);
        })
        .unwrap();
    Box::new(storage)
}

/// Gives the calls to one sequencer, in order. Around a dependent call nothing else is under way, since its reconnaissance
/// takes a time that depends on the cluster.
fn run(
    workload: &dyn Workload,
    calls: &[Call],
    engine: EngineKind,
    partitions: u16,
    seed: u64,
) -> (Digest, Vec<Outcome>) {
    let catalog = workload.catalog();
    let mut cluster = Cluster::build(engine, partitions, catalog, seed, |me| load(workload, me, partitions));
    let mut ended = Vec::new();
    for call in calls {
        if call.mode == Mode::Snapshot {
            cluster.run_until_quiet();
            let at = cluster.open_snapshot(CLIENT).unwrap();
            let home = (call.home_partition(partitions), at);
            ended.push(Err(cluster.read(CLIENT, home, call.procedure, call.arguments.clone())));
            continue;
        }
        let mut footprint = Footprint::default();
        let procedures = &catalog.procedures;
        let declared =
            procedures.declare(call.procedure, &call.arguments, &catalog.schema, partitions, &mut footprint);
        let dependent = declared == Ok(Declared::Unknown);
        if dependent {
            cluster.run_until_quiet();
        }
        ended.push(Ok(cluster.call(PartitionId(0), CLIENT, call.procedure, call.arguments.clone())));
        if dependent {
            cluster.run_until_quiet();
        }
    }
    cluster.run_until_quiet();
    let outcomes: Vec<Outcome> = ended
        .into_iter()
        .map(|ended| ended.map_or_else(|read| read, |request| cluster.reply(request).clone()))
        .collect();
    check(workload, &mut cluster, calls, &outcomes);
    (cluster.digest(), outcomes)
}

struct Reader<'a>(&'a mut Cluster, Position);

impl SnapshotReader for Reader<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let mut rows = BTreeMap::new();
        for (key, row) in self.0.scan(CLIENT, self.1, range)? {
            // Each partition gives its copy of a replicated row.
            let copy = rows.entry(key).or_insert_with(|| row.clone());
            assert_eq!(*copy, row, "copies of a row");
        }
        rows.iter().for_each(|(key, row)| visit(key, row));
        Ok(())
    }
}

fn check(workload: &dyn Workload, cluster: &mut Cluster, calls: &[Call], outcomes: &[Outcome]) {
    let mut totals = Totals::new();
    for (call, outcome) in calls.iter().zip(outcomes) {
        let counts = totals.of_mut(workload.catalog().procedures.name(call.procedure));
        match outcome {
            Ok(_) => counts.committed += 1,
            Err(Error::Aborted(_)) => counts.aborted += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let at = cluster.open_snapshot(CLIENT).unwrap();
    for line in workload.check(&mut Reader(cluster, at), &totals).unwrap() {
        assert!(line.holds, "{}: {}", line.condition, line.detail);
    }
}

/// Returns the answers.
fn all_agree(workload: &dyn Workload, count: usize) -> Vec<Outcome> {
    let mut generator = workload.generator(7, 1, Part::WHOLE).unwrap();
    let calls: Vec<Call> = (0..count).map(|_| generator.next()).collect();
    all_agree_on(workload, &calls)
}

/// Likewise, for these calls.
fn all_agree_on(workload: &dyn Workload, calls: &[Call]) -> Vec<Outcome> {
    let oracle = run(workload, calls, EngineKind::Serial, 1, 0);
    assert!(oracle.1.iter().any(Result::is_ok), "something commits");
    for (engine, partitions) in [
        (EngineKind::Serial, 4),
        (EngineKind::Calvin, 1),
        (EngineKind::Calvin, 2),
        (EngineKind::Calvin, 4),
        (EngineKind::Calvin, 8),
        (EngineKind::CalvinVll, 1),
        (EngineKind::CalvinVll, 2),
        (EngineKind::CalvinVll, 4),
        (EngineKind::CalvinVll, 8),
        (EngineKind::Aloha, 1),
        (EngineKind::Aloha, 2),
        (EngineKind::Aloha, 4),
        (EngineKind::Aloha, 8),
    ] {
        for seed in 1..=2 {
            let (digest, outcomes) = run(workload, calls, engine, partitions, seed);
            assert_eq!(outcomes, oracle.1, "answers of {engine:?} on {partitions} partitions, seed {seed}");
            assert_eq!(digest, oracle.0, "state of {engine:?} on {partitions} partitions, seed {seed}");
        }
    }
    oracle.1
}

#[test]
fn micro_agrees_at_every_contention_and_share() {
    for contention_index in [1.0, 0.01, 0.0001] {
        for multi_partition_percent in [0.0, 10.0, 100.0] {
            let options = micro::Options {
                sites: SITES,
                records: 100_000,
                contention_index,
                multi_partition_percent,
                abort_percent: 5.0,
                ..micro::Options::default()
            };
            all_agree(&micro::Micro::new(options).unwrap(), 120);
        }
    }
}

/// However additions are declared, the answers are the same.
#[test]
fn micro_agrees_on_additions() {
    for declare in [micro::Declare::Arithmetic, micro::Declare::Own, micro::Declare::Whole] {
        let options = micro::Options {
            sites: SITES,
            records: 10_000,
            contention_index: 0.05,
            multi_partition_percent: 60.0,
            participants: 3,
            adds: Some(declare),
            ..micro::Options::default()
        };
        let outcomes = all_agree(&micro::Micro::new(options).unwrap(), 120);
        assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_ok_and(|result| result.is_empty())));
    }
}

/// DET-57: with an index that is updated meanwhile, and at every place of the dependent read.
#[test]
fn micro_agrees_on_dependent_calls_and_updates_of_the_index() {
    for (multi_partition_percent, position_percent) in [(0.0, 0), (50.0, 30), (100.0, 100)] {
        let options = micro::Options {
            sites: SITES,
            records: 10_000,
            contention_index: 0.05,
            multi_partition_percent,
            abort_percent: 5.0,
            index: micro::IndexOptions {
                dependent_percent: 60.0,
                entries_per_site: 2,
                position_percent,
                volatility: 1.0,
            },
            ..micro::Options::default()
        };
        let micro = micro::Micro::new(options).unwrap();
        let (mut calls, mut updates) = (
            micro.generator(7, 1, Part::WHOLE).unwrap(),
            micro.background(7, 2, Part::WHOLE).unwrap().unwrap().generator,
        );
        let calls: Vec<Call> = (0..120).flat_map(|_| [calls.next(), updates.next()]).collect();
        all_agree_on(&micro, &calls);
    }
}

#[test]
fn tpcc_agrees_at_every_share_of_remote_transactions() {
    for remote_percent in [0.0, 10.0, 100.0] {
        let options = tpcc::Options { mix: tpcc::Mix::NewOrderPayment(60.0), ..small_tpcc(remote_percent) };
        all_agree(&tpcc::Tpcc::new(options).unwrap(), 150);
    }
}

#[test]
fn scaled_tpcc_agrees() {
    let options = tpcc::Options {
        layout: tpcc::Layout::DistrictsAndItems,
        warehouses: 1,
        districts_per_warehouse: 2 * SITES,
        ..small_tpcc(0.0)
    };
    all_agree(&tpcc::Tpcc::new(options).unwrap(), 150);
}

fn small_tpcc(remote_percent: f64) -> tpcc::Options {
    tpcc::Options {
        sites: SITES,
        warehouses: 8,
        items: 200,
        customers_per_district: 12,
        orders_per_district: 12,
        remote: tpcc::Remote::Orders(remote_percent),
        payment_remote_percent: remote_percent,
        abort_percent: 5.0,
        ..tpcc::Options::default()
    }
}

/// All five transactions; and the answers are the same in the order and over snapshots, with dependent and declared Deliveries.
#[test]
fn the_full_mix_of_tpcc_agrees_however_it_is_called() {
    for remote_percent in [0.0, 50.0] {
        use tpcc::Deliveries::{Declared, Dependent};
        let [first, second] = [(Mode::Ordered, Dependent), (Mode::Snapshot, Declared)].map(|how| {
            let mix = tpcc::Mix::Full { reads: how.0, deliveries: how.1 };
            let options = tpcc::Options { mix, ..small_tpcc(remote_percent) };
            all_agree(&tpcc::Tpcc::new(options).unwrap(), 300)
        });
        assert_eq!(first, second);
    }
}

#[test]
fn bank_agrees_at_every_share_of_transfers_between_sites() {
    use bank::Declare::{Functors, OnlyFunctors, Whole};
    for (multi_partition_percent, transfers) in
        [(0.0, Whole), (10.0, Whole), (100.0, Whole), (50.0, Functors), (50.0, OnlyFunctors)]
    {
        let options = bank::Options {
            sites: SITES,
            accounts: 64,
            balance: 1_000,
            amount_max: 500,
            multi_partition_percent,
            transfers,
        };
        all_agree(&bank::Bank::new(options).unwrap(), 300);
    }
}

#[test]
fn append_agrees_at_every_share_of_calls_of_two_sites() {
    for (multi_site_percent, lists_per_site) in [(0.0, 1), (20.0, 4), (100.0, 8)] {
        let options = append::Options {
            sites: SITES,
            lists_per_site,
            operations_max: append::OPERATIONS_MAX,
            multi_site_percent,
            dependent_percent: 20.0,
            range_percent: 30.0,
            replicated_percent: 10.0,
            abort_percent: 25.0,
            ..append::Options::default()
        };
        all_agree(&append::Append::new(options).unwrap(), 200);
    }
}

#[test]
fn ycsb_agrees_in_every_mix_with_one_row_and_several() {
    for mix in ycsb::Mix::ALL {
        for (keys, multi_partition_percent) in [(1, 0.0), (4, 50.0)] {
            let options = ycsb::Options {
                sites: SITES,
                records: 800,
                mix,
                keys,
                multi_partition_percent,
                field_bytes: 5,
                ..ycsb::Options::default()
            };
            all_agree(&ycsb::Ycsb::new(options).unwrap(), 150);
        }
    }
}
