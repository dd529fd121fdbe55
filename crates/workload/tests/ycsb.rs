//! YCSB: conditions, footprints, shares of the mixes, and which rows are called.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use std::collections::{BTreeMap, BTreeSet};

use checked_access::{assert_holds, violated};
use ordain_db::procedure::decode_output;
use ordain_workload::limit::PlainStore;
use ordain_workload::ycsb::{
    Change, INSERT, Mix, NewRow, Options, READ, READ_MODIFY_WRITE, RowName, SCAN, Seen, Stretch, UPDATE, Ycsb,
};
use ordain_workload::{Call, Part, Totals, Workload};

fn options(mix: Mix) -> Options {
    Options {
        sites: 8,
        records: 1_600,
        mix,
        keys: 4,
        multi_partition_percent: 40.0,
        field_bytes: 7,
        ..Options::default()
    }
}

fn draw(ycsb: &Ycsb, calls: usize) -> Vec<Call> {
    let mut generator = ycsb.generator(3, 0, Part::WHOLE).unwrap();
    (0..calls).map(|_| generator.next()).collect()
}

/// The name of a call's procedure and its rows.
fn rows_of(ycsb: &Ycsb, call: &Call) -> (String, Vec<RowName>) {
    let (name, arguments) = (ycsb.catalog().procedures.name(call.procedure), &call.arguments);
    let rows = match name {
        READ => decode_output(arguments).unwrap(),
        UPDATE | READ_MODIFY_WRITE => {
            decode_output::<Vec<Change>>(arguments).unwrap().into_iter().map(|change| change.row).collect()
        }
        INSERT => decode_output::<Vec<NewRow>>(arguments).unwrap().into_iter().map(|new| new.row).collect(),
        SCAN => decode_output::<Vec<Stretch>>(arguments).unwrap().into_iter().map(|one| one.from).collect(),
        other => panic!("{other}"),
    };
    (name.to_owned(), rows)
}

#[test]
fn conditions_hold_after_a_run() {
    for mix in Mix::ALL {
        let ycsb = Ycsb::new(options(mix)).unwrap();
        let (mut store, totals) = checked_access::run(&ycsb, 2_000, 1, |_, result| {
            result.as_ref().unwrap();
        });
        assert_holds(&ycsb.check(&mut store, &totals).unwrap());
    }
}

#[test]
fn the_check_notices_lost_and_doubled_writes() {
    for (mix, procedure, condition) in [
        (Mix::A, UPDATE, "sum of versions = keys x commits of update and read-modify-write"),
        (Mix::F, READ_MODIFY_WRITE, "sum of versions = keys x commits of update and read-modify-write"),
        (Mix::E, INSERT, "inserted rows = keys x commits of insert"),
    ] {
        let ycsb = Ycsb::new(options(mix)).unwrap();
        let (mut store, mut totals) = checked_access::run(&ycsb, 200, 1, |_, _| ());
        totals.of_mut(procedure).committed += 1;
        assert_eq!(violated(&ycsb.check(&mut store, &totals).unwrap()), [condition]);
        totals.of_mut(procedure).committed -= 2;
        assert_eq!(violated(&ycsb.check(&mut store, &totals).unwrap()), [condition]);
        totals.of_mut(procedure).unknown += 1;
        assert_holds(&ycsb.check(&mut store, &totals).unwrap());
    }
}

#[test]
fn the_check_notices_lost_and_broken_rows() {
    let ycsb = Ycsb::new(options(Mix::C)).unwrap();
    let mut store = PlainStore::load(&ycsb).unwrap();
    let table = ycsb.catalog().schema.table_named("usertable").unwrap();
    store.delete_row(&table.key((3, 17_i64, 0_i64)).unwrap());
    let key = table.key((2, 5_i64, 0_i64)).unwrap();
    let mut values = vec![ordain_db::data::Value::Int64(0); 1];
    values.resize(11, ordain_db::data::Value::Bytes(b"short"));
    store.put_row(&key, &table.row(&values[..]).unwrap());
    let lines = ycsb.check(&mut store, &Totals::new()).unwrap();
    let expected = ["loaded rows of each site = rows loaded", "version >= 0, and each field has its length"];
    assert_eq!(violated(&lines), expected);
    assert!(lines[0].detail.starts_with("site 3: 199 against 200"), "{}", lines[0].detail);
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    for mix in Mix::ALL {
        let ycsb = Ycsb::new(options(mix)).unwrap();
        checked_access::assert_load_is_the_same_everywhere(&ycsb);
        checked_access::assert_generator_is_deterministic(&ycsb);
    }
}

#[test]
fn operations_have_the_shares_of_their_mix() {
    for (mix, expected) in [
        (Mix::A, [(READ, 2_000), (UPDATE, 2_000)]),
        (Mix::B, [(READ, 3_800), (UPDATE, 200)]),
        (Mix::C, [(READ, 4_000), (UPDATE, 0)]),
        (Mix::D, [(READ, 3_800), (INSERT, 200)]),
        (Mix::E, [(SCAN, 3_800), (INSERT, 200)]),
        (Mix::F, [(READ, 2_000), (READ_MODIFY_WRITE, 2_000)]),
    ] {
        let ycsb = Ycsb::new(options(mix)).unwrap();
        let mut counts = BTreeMap::<String, i32>::new();
        for call in draw(&ycsb, 4_000) {
            *counts.entry(rows_of(&ycsb, &call).0).or_default() += 1;
        }
        for (name, share) in expected {
            let count = counts.remove(name).unwrap_or(0);
            assert!(
                (count - share).abs() <= if share % 4_000 == 0 { 0 } else { 160 },
                "{mix:?}, {name}: {count}"
            );
        }
        assert!(counts.is_empty(), "{counts:?}");
    }
}

#[test]
fn rows_differ_and_span_sites_as_asked() {
    for mix in Mix::ALL {
        let ycsb = Ycsb::new(options(mix)).unwrap();
        let mut multi_site = 0;
        for call in draw(&ycsb, 4_000) {
            let (_, rows) = rows_of(&ycsb, &call);
            let sites: BTreeSet<u16> = rows.iter().map(|row| row.site).collect();
            assert!(sites.len() <= 2 && sites.contains(&(call.home as u16)));
            assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 4);
            multi_site += usize::from(sites.len() == 2);
        }
        assert!((1_450..1_750).contains(&multi_site), "{mix:?}: {multi_site}");
    }
}

#[test]
fn calls_of_rows_follow_their_ranks() {
    let ycsb = Ycsb::new(Options {
        sites: 1,
        records: 1_000,
        keys: 1,
        multi_partition_percent: 0.0,
        ..options(Mix::C)
    });
    let ycsb = ycsb.unwrap();
    let mut calls = BTreeMap::<u32, u32>::new();
    for call in draw(&ycsb, 100_000) {
        *calls.entry(rows_of(&ycsb, &call).1[0].slot).or_default() += 1;
    }
    let mut counts: Vec<(u32, u32)> = calls.into_iter().map(|(slot, count)| (count, slot)).collect();
    counts.sort_unstable_by(|left, right| right.cmp(left));
    // The rows of 1,000 ranks weigh 7.73 times the first.
    assert!((12_500..13_400).contains(&counts[0].0), "{:?}", &counts[..5]);
    assert!((6_200..6_900).contains(&counts[1].0), "{:?}", &counts[..5]);
    // Each rank has a row of its own, and the first ones lie apart.
    assert!(counts.len() > 990, "{}", counts.len());
    assert!(counts[0].1.abs_diff(counts[1].1) > 100 && counts[1].1.abs_diff(counts[2].1) > 100);
}

#[test]
fn the_latest_rows_are_read_most() {
    let ycsb =
        Ycsb::new(Options { sites: 1, keys: 1, multi_partition_percent: 0.0, ..options(Mix::D) }).unwrap();
    let (mut inserted, mut newest, mut reads) = (Vec::new(), 0, 0);
    for call in draw(&ycsb, 20_000) {
        match rows_of(&ycsb, &call) {
            (name, rows) if name == INSERT => inserted.extend(rows),
            (_, rows) => {
                reads += 1;
                newest += u32::from(inserted.last().is_some_and(|row| *row == rows[0]));
            }
        }
    }
    // The first of 1,600 ranks has 12.2% of the weight.
    assert!((11 * reads..14 * reads).contains(&(100 * newest)), "{newest} of {reads}");
}

#[test]
fn scans_meet_what_was_inserted() {
    let ycsb = Ycsb::new(options(Mix::E)).unwrap();
    let mut longest = 0;
    let mut end = |call: &Call, result: &Result<Vec<u8>, ordain_db::procedure::Stop>| {
        if ycsb.catalog().procedures.name(call.procedure) == SCAN {
            let stretches: Vec<Stretch> = decode_output(&call.arguments).unwrap();
            let asked: u32 = stretches.iter().map(|stretch| stretch.length).sum();
            let seen: Seen = decode_output(result.as_ref().unwrap()).unwrap();
            assert!((1..=asked).contains(&seen.rows));
            longest = longest.max(seen.rows);
        }
    };
    let (store, _) = checked_access::run(&ycsb, 1_000, 1, &mut end);
    assert!(longest > 200, "{longest}");
    let table = ycsb.catalog().schema.table_named("usertable").unwrap();
    let mut store = store;
    let (mut between, mut last) = (0, 0);
    let mut rows = BTreeSet::new();
    ordain_workload::SnapshotReader::scan(&mut store, &table.all(), &mut |key, _| {
        rows.insert(key.to_vec());
    })
    .unwrap();
    for key in rows {
        let number = table.key_values(&key).unwrap()[2].integer().unwrap();
        between += u32::from(number == 0 && last > 0);
        last = number;
    }
    assert!(between > 100, "inserted rows lie between loaded ones: {between}");
}

#[test]
fn bad_options_are_refused() {
    let good = options(Mix::E);
    for bad in [
        Options { sites: 0, ..good.clone() },
        Options { records: 56, ..good.clone() },
        Options { keys: 0, ..good.clone() },
        Options { keys: 65, ..good.clone() },
        Options { keys: 1, ..good.clone() },
        Options { theta: -1.0, ..good.clone() },
        Options { theta: f64::NAN, ..good.clone() },
        Options { multi_partition_percent: 101.0, ..good.clone() },
        Options { field_bytes: 0, ..good.clone() },
        Options { field_bytes: 4_000, ..good.clone() },
        Options { scan_length_max: 0, ..good.clone() },
        Options { scan_length_max: 1_000_000, ..good.clone() },
    ] {
        assert!(Ycsb::new(bad.clone()).is_err(), "{bad:?}");
    }
}
