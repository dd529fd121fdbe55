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

mod index {
    use std::collections::BTreeMap;

    use super::*;
    use ordain_workload::micro::{CallKind, DependentArguments, EntryName, INCREMENT_BY_INDEX};
    use ordain_workload::micro::{IndexOptions, REINDEX, RecordName, ReindexArguments};
    use ordain_workload::{Call, Generator};

    fn indexed(index: IndexOptions) -> Options {
        Options { index: IndexOptions { entries_per_site: 20, ..index }, ..options() }
    }

    fn dependent(percent: f64) -> IndexOptions {
        IndexOptions { dependent_percent: percent, volatility: 10.0, ..IndexOptions::default() }
    }

    fn kinds(micro: &Micro, generator: &mut dyn Generator, calls: u32) -> BTreeMap<CallKind, f64> {
        let mut kinds = BTreeMap::new();
        for _ in 0..calls {
            let Call { procedure, arguments, .. } = generator.next();
            *kinds.entry(micro.kind_of(procedure, &arguments).unwrap()).or_insert(0.0) += 1.0;
        }
        kinds
    }

    /// DET-51, DET-54: the shares are those that were asked for, of each of the two kinds of calls.
    #[test]
    fn shares_are_as_requested() {
        for (dependent_percent, distributed) in
            [(0.0, 40.0), (30.0, 40.0), (100.0, 40.0), (30.0, 0.0), (30.0, 100.0)]
        {
            let options =
                Options { multi_partition_percent: distributed, ..indexed(dependent(dependent_percent)) };
            let micro = Micro::new(options).unwrap();
            let mut generator = micro.generator(3, 0, Part::WHOLE).unwrap();
            let kinds = kinds(&micro, &mut *generator, 10_000);
            let share = |kind| kinds.get(&kind).copied().unwrap_or(0.0) / 100.0;
            let (dependent, other) = (dependent_percent / 100.0, 1.0 - dependent_percent / 100.0);
            for (kind, expected) in [
                (CallKind::Local, other * (100.0 - distributed)),
                (CallKind::Distributed, other * distributed),
                (CallKind::Dependent, dependent * (100.0 - distributed)),
                (CallKind::DependentDistributed, dependent * distributed),
            ] {
                let exact = expected == 0.0 || expected == 100.0;
                let near = (share(kind) - expected).abs() < if exact { 0.001 } else { 2.0 };
                assert!(near, "{kind:?}: {} for {expected}", share(kind));
            }
        }
    }

    /// An entry names records of the caller's site among others, and lies on any of these sites alike.
    #[test]
    fn entries_name_ten_records_of_their_sites() {
        let micro = Micro::new(Options { participants: 3, ..indexed(dependent(100.0)) }).unwrap();
        let mut names: BTreeMap<(u16, u32), [RecordName; 10]> = BTreeMap::new();
        let table = micro.catalog().schema.table_named("entries").unwrap();
        let mut updates = micro.background(1, 9, Part::WHOLE).unwrap().unwrap();
        for _ in 0..5_000 {
            let call = updates.generator.next();
            assert_eq!(micro.kind_of(call.procedure, &call.arguments), Some(CallKind::IndexUpdate));
            let ReindexArguments { entry, records } = decode_output(&call.arguments).unwrap();
            assert_eq!(call.home, u32::from(entry.site));
            names.insert((entry.site, entry.number), records);
        }
        assert_eq!(names.len() as u64, micro.entries(), "every entry is updated some time");
        let mut rows = 0;
        let mut count =
            |key: &ordain_db::data::Key, _: &[u8]| rows += u64::from(key.table() == Some(table.id()));
        micro.load(Part::WHOLE, &mut count).unwrap();
        assert_eq!(rows, micro.entries());
        let mut generator = micro.generator(3, 0, Part::WHOLE).unwrap();
        let (mut spread, mut at_home) = (0, 0);
        for _ in 0..5_000 {
            let call = generator.next();
            let DependentArguments { entry: EntryName { site, number }, ahead, .. } =
                decode_output(&call.arguments).unwrap();
            let records = &names[&(site, number)];
            let mut sites: Vec<u16> = records.iter().map(|record| record.site).collect();
            sites.sort_unstable();
            sites.dedup();
            assert!(sites.contains(&site) && sites.contains(&(call.home as u16)) && ahead.is_empty());
            if sites.len() > 1 {
                assert_eq!(sites.len(), 3);
                spread += 1;
                at_home += u32::from(u32::from(site) == call.home);
            }
        }
        let share = f64::from(at_home) / f64::from(spread);
        assert!((share - 1.0 / 3.0).abs() < 0.05, "{share} of the entries lie at the caller's site");
    }

    /// DET-59: a tenth of the records is taken before for each tenth of the work, and none that an entry may name; one is always
    /// found through the index.
    #[test]
    fn the_work_before_the_read_brings_its_records() {
        for (position_percent, expected) in [(0, 0), (9, 0), (10, 1), (55, 5), (90, 9), (100, 9)] {
            let index = IndexOptions { position_percent, ..dependent(100.0) };
            let micro = Micro::new(indexed(index)).unwrap();
            let mut generator = micro.generator(3, 0, Part::WHOLE).unwrap();
            for _ in 0..200 {
                let arguments: DependentArguments = decode_output(&generator.next().arguments).unwrap();
                assert_eq!(arguments.ahead.len(), expected);
                let cold = 1_000 - micro.contended();
                let first = micro.contended() + cold / 2;
                assert!(arguments.ahead.iter().all(|record| record.id >= first));
            }
        }
    }

    /// DET-55: so many updates for each entry, and not in all.
    #[test]
    fn the_rate_of_updates_is_that_of_each_entry_times_their_number() {
        let micro = Micro::new(indexed(dependent(20.0))).unwrap();
        assert_eq!(micro.entries(), 160);
        let of = |part| micro.background(1, 9, part).unwrap().unwrap().calls_per_second;
        assert_eq!((of(Part::WHOLE), of(Part::of(ordain_db::position::PartitionId(1), 4))), (1_600.0, 400.0));
        let calm = IndexOptions { volatility: 0.0, ..dependent(20.0) };
        assert!(Micro::new(indexed(calm)).unwrap().background(1, 9, Part::WHOLE).unwrap().is_none());
    }

    #[test]
    fn conditions_hold_after_a_run_and_notice_what_is_wrong() {
        let micro = Micro::new(Options { abort_percent: 5.0, ..indexed(dependent(50.0)) }).unwrap();
        let (mut store, mut totals) = checked_access::run(&micro, 2_000, 1, |_, _| ());
        assert!(totals.of(INCREMENT_BY_INDEX).committed > 800 && totals.of(INCREMENT).committed > 800);
        let mut updates = micro.background(1, 9, Part::WHOLE).unwrap().unwrap();
        for _ in 0..100 {
            store.run(micro.catalog(), &updates.generator.next()).unwrap();
            totals.of_mut(REINDEX).committed += 1;
        }
        assert_holds(&micro.check(&mut store, &totals).unwrap());
        totals.of_mut(INCREMENT_BY_INDEX).committed += 1;
        assert_eq!(
            violated(&micro.check(&mut store, &totals).unwrap()),
            ["sum of all counters = 10 x commits"]
        );
        totals.of_mut(INCREMENT_BY_INDEX).committed -= 1;
        let table = micro.catalog().schema.table_named("entries").unwrap();
        let row = table.row((&[0_u8; 60][..],)).unwrap();
        store.put_row(&table.key((1, 3_i64)).unwrap(), &row);
        store.delete_row(&table.key((1, 4_i64)).unwrap());
        let lines = micro.check(&mut store, &totals).unwrap();
        assert_eq!(violated(&lines), ["entries = entries loaded", "an entry names ten records of its sites"]);
    }

    #[test]
    fn load_and_calls_depend_on_seeds_alone() {
        let micro = Micro::new(indexed(dependent(50.0))).unwrap();
        checked_access::assert_load_is_the_same_everywhere(&micro);
        checked_access::assert_generator_is_deterministic(&micro);
    }

    #[test]
    fn bad_options_are_refused() {
        for bad in [
            IndexOptions { dependent_percent: 101.0, ..dependent(0.0) },
            IndexOptions { position_percent: 101, ..dependent(1.0) },
            IndexOptions { volatility: -1.0, ..dependent(1.0) },
            IndexOptions { volatility: f64::NAN, ..dependent(1.0) },
        ] {
            assert!(Micro::new(indexed(bad)).is_err(), "{bad:?}");
        }
        for entries_per_site in [0, 1, u32::MAX] {
            let index = IndexOptions { entries_per_site, ..dependent(1.0) };
            assert!(Micro::new(Options { index, ..options() }).is_err());
        }
        let few = Options { records: 8 * 119, ..indexed(dependent(1.0)) };
        assert!(Micro::new(few).is_err());
    }
}
