//! The microbenchmark: conditions, footprints and the shares that its options ask for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use std::collections::BTreeMap;

use checked_access::{assert_holds, violated};
use ordain_db::procedure::decode_output;
use ordain_workload::limit::PlainStore;
use ordain_workload::micro::{Arguments, INCREMENT, Micro, Options};
use ordain_workload::{Part, Workload};

fn options() -> Options {
    Options {
        sites: 8,
        records: 8_000,
        contention_index: 0.01,
        multi_partition_percent: 40.0,
        ..Options::default()
    }
}

/// Draws calls and decodes their arguments.
fn draw(micro: &Micro, calls: usize) -> Vec<Arguments> {
    let mut generator = micro.generator(3, 0, Part::WHOLE).unwrap();
    (0..calls).map(|_| decode_output(&generator.next().arguments).unwrap()).collect()
}

fn sites_of(arguments: &Arguments) -> Vec<u16> {
    let mut sites: Vec<u16> = arguments.records.iter().map(|name| name.site).collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

#[test]
fn conditions_hold_after_a_run() {
    let micro = Micro::new(Options { abort_percent: 5.0, ..options() }).unwrap();
    let (mut store, totals) = checked_access::run(&micro, 3_000, 1, |_, _| ());
    let outcomes = totals.of(INCREMENT);
    assert!((100..200).contains(&outcomes.aborted), "{outcomes:?}");
    assert_holds(&micro.check(&mut store, &totals).unwrap());
}

#[test]
fn the_check_notices_a_lost_update() {
    let micro = Micro::new(options()).unwrap();
    let (mut store, mut totals) = checked_access::run(&micro, 100, 1, |_, _| ());
    totals.of_mut(INCREMENT).committed += 1;
    assert_eq!(violated(&micro.check(&mut store, &totals).unwrap()), ["sum of all counters = 10 x commits"]);
    totals.of_mut(INCREMENT).committed -= 2;
    totals.of_mut(INCREMENT).unknown += 1;
    assert_holds(&micro.check(&mut store, &totals).unwrap());
}

#[test]
fn the_check_notices_a_lost_record() {
    let micro = Micro::new(options()).unwrap();
    let mut store = PlainStore::load(&micro).unwrap();
    let table = micro.catalog().schema.table_named("records").unwrap();
    store.delete_row(&table.key((3, 17_i64)).unwrap());
    let lines = micro.check(&mut store, &ordain_workload::Totals::new()).unwrap();
    assert_eq!(violated(&lines), ["records of each site = records loaded"]);
    assert!(lines[0].detail.starts_with("site 3: 999 against 1000"), "{}", lines[0].detail);
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    let micro = Micro::new(options()).unwrap();
    checked_access::assert_load_is_the_same_everywhere(&micro);
    checked_access::assert_generator_is_deterministic(&micro);
}

#[test]
fn key_and_row_are_128_bytes() {
    let micro = Micro::new(options()).unwrap();
    micro.load(Part::WHOLE, &mut |key, row| assert_eq!(key.len() + row.len(), 128)).unwrap();
}

#[test]
fn records_differ_and_one_of_each_site_is_contended() {
    for participants in 2..=4 {
        let micro = Micro::new(Options { participants, ..options() }).unwrap();
        let (mut multi_site, mut contended_hits) = (0, BTreeMap::new());
        for arguments in draw(&micro, 5_000) {
            let sites = sites_of(&arguments);
            assert!(sites.len() == 1 || sites.len() == usize::from(participants));
            multi_site += usize::from(sites.len() > 1);
            for site in &sites {
                let contended = |name: &&ordain_workload::micro::RecordName| {
                    name.site == *site && name.id < micro.contended()
                };
                assert_eq!(arguments.records.iter().filter(contended).count(), 1);
            }
            for (place, name) in arguments.records.iter().enumerate() {
                assert!(!arguments.records[..place].contains(name));
                *contended_hits.entry((name.site, name.id)).or_insert(0) +=
                    u32::from(name.id < micro.contended());
            }
        }
        assert!((1_900..2_100).contains(&multi_site), "{multi_site}");
        // CAL-117: each transaction updates a fraction `contention_index` of the contended set of each of its sites.
        let visits = 5_000.0 + 2_000.0 * f64::from(participants - 1);
        let expected = visits / 8.0 / f64::from(micro.contended());
        for ((site, id), hits) in contended_hits.iter().filter(|((_, id), _)| *id < micro.contended()) {
            let hits = f64::from(*hits);
            assert!((hits - expected).abs() < 5.0 * expected.sqrt(), "({site}, {id}): {hits} for {expected}");
        }
    }
}

#[test]
fn one_site_makes_single_site_calls() {
    let micro = Micro::new(Options { sites: 1, multi_partition_percent: 100.0, ..options() }).unwrap();
    assert!(draw(&micro, 100).iter().all(|arguments| sites_of(arguments) == [0]));
}

#[test]
fn bad_options_are_refused() {
    for bad in [
        Options { sites: 0, ..options() },
        Options { records: 870, ..options() },
        Options { contention_index: 0.0, ..options() },
        Options { contention_index: 1.5, ..options() },
        Options { participants: 5, ..options() },
        Options { multi_partition_percent: -1.0, ..options() },
    ] {
        assert!(Micro::new(bad.clone()).is_err(), "{bad:?}");
    }
}
