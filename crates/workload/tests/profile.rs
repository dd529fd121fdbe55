//! What a profile says of workloads whose options say it too.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_workload::{Mode, Profile, Workload, bank, micro, profile, tpcc, ycsb};

fn of(workload: &dyn Workload, partitions: u16) -> Profile {
    profile(workload, partitions, 1).unwrap()
}

fn micro(contention_index: f64, multi_partition_percent: f64, participants: u16) -> Profile {
    let options = micro::Options {
        sites: 4,
        records: 400_000,
        contention_index,
        multi_partition_percent,
        participants,
        ..micro::Options::default()
    };
    of(&micro::Micro::new(options).unwrap(), 4)
}

#[test]
fn the_contention_of_the_microbenchmark_is_its_index() {
    for (index, percent) in [(0.1, 0.0), (0.01, 0.0), (0.01, 100.0), (0.001, 20.0)] {
        let found = micro(index, percent, 2).contention_index;
        // Conflicts at the other records come on top: about 81 of 100,000 for a pair.
        assert!((found - index).abs() < 0.002 + index * 0.15, "{index} {percent}: {found}");
    }
    assert!(micro(0.0001, 0.0, 2).contention_index < 0.003);
}

#[test]
fn shares_are_those_of_the_options() {
    let found = micro(0.01, 20.0, 3);
    assert!((found.multi_partition_percent - 20.0).abs() < 3.0, "{found:?}");
    assert_eq!((found.participants, found.keys), (3.0, 10.0));
    assert_eq!((found.dependent_percent, found.writing_percent, found.snapshot_percent), (0.0, 100.0, 0.0));
    let none = micro(0.01, 0.0, 3);
    assert_eq!((none.multi_partition_percent, none.participants), (0.0, 0.0));
}

#[test]
fn functors_are_those_that_are_declared() {
    let adds = |adds| {
        let options = micro::Options { sites: 4, records: 400_000, adds, ..micro::Options::default() };
        of(&micro::Micro::new(options).unwrap(), 4).functor_percent
    };
    let declared = [Some(micro::Declare::Arithmetic), Some(micro::Declare::Own)].map(adds);
    assert_eq!((declared, adds(Some(micro::Declare::Whole)), adds(None)), ([100.0; 2], 0.0, 0.0));
    let orders = tpcc::Options { sites: 2, warehouses: 4, items: 1_000, ..tpcc::Options::default() };
    let found = of(&tpcc::Tpcc::new(orders).unwrap(), 2).functor_percent;
    // The district and all stock have one. The order and its lines are ranges, as their number is drawn.
    assert!(found > 90.0, "{found}");
}

#[test]
fn mixes_have_what_their_transactions_have() {
    let full = |reads, deliveries| {
        let options = tpcc::Options {
            sites: 2,
            warehouses: 4,
            items: 1_000,
            customers_per_district: 30,
            orders_per_district: 30,
            mix: tpcc::Mix::Full { reads, deliveries },
            ..tpcc::Options::default()
        };
        of(&tpcc::Tpcc::new(options).unwrap(), 2)
    };
    // Deliveries, 4 of 100, and Payments and Order-Statuses by last name depend on data, as their options have them.
    let dependent = full(Mode::Ordered, tpcc::Deliveries::Dependent);
    let declared = full(Mode::Ordered, tpcc::Deliveries::Declared);
    let less = dependent.dependent_percent - declared.dependent_percent;
    assert!((2.0..6.0).contains(&less), "{dependent:?} {declared:?}");
    let snapshots = full(Mode::Snapshot, tpcc::Deliveries::Declared);
    assert!((5.0..11.0).contains(&snapshots.snapshot_percent), "{snapshots:?}");
    // Two warehouses at each partition, and Payments update the warehouse.
    assert!((0.1..0.9).contains(&dependent.contention_index), "{dependent:?}");
    let reads = ycsb::Options { sites: 2, records: 1_000, mix: ycsb::Mix::C, ..ycsb::Options::default() };
    let reads = of(&ycsb::Ycsb::new(reads).unwrap(), 2);
    assert_eq!((reads.contention_index, reads.writing_percent, reads.keys), (0.0, 0.0, 1.0));
    let bank = bank::Options { sites: 2, multi_partition_percent: 100.0, ..bank::Options::default() };
    assert_eq!(of(&bank::Bank::new(bank).unwrap(), 2).multi_partition_percent, 100.0);
    let alone = bank::Options { sites: 2, multi_partition_percent: 100.0, ..bank::Options::default() };
    assert_eq!(of(&bank::Bank::new(alone).unwrap(), 1).multi_partition_percent, 0.0);
}
