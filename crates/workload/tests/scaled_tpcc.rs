//! Scaled TPC-C: one warehouse over all partitions, by district and by item (Fan and Golab §V-A1, ALO-X02).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use std::collections::BTreeSet;

use checked_access::{assert_holds, violated};
use ordain_db::position::PartitionId;
use ordain_db::procedure::decode_output;
use ordain_workload::limit::PlainStore;
use ordain_workload::tpcc::{Layout, Mix, NEW_ORDER, NewOrderArguments, Options, Tpcc};
use ordain_workload::{Part, SnapshotReader, Workload};

/// Ten districts on each of so many partitions.
fn scaled(partitions: u16) -> Tpcc {
    let options = Options {
        sites: partitions,
        layout: Layout::DistrictsAndItems,
        warehouses: 1,
        items: 2_000,
        districts_per_warehouse: 10 * partitions,
        customers_per_district: 60,
        orders_per_district: 30,
        mix: Mix::NewOrderPayment(100.0),
        ..Options::default()
    };
    Tpcc::new(options).unwrap()
}

#[test]
fn conditions_hold_after_a_run_and_notice_what_is_lost() {
    let tpcc = scaled(4);
    let (mut store, totals) = checked_access::run(&tpcc, 2_000, 1, |_, _| ());
    let new_order = totals.of(NEW_ORDER);
    assert!(new_order.committed > 1_900 && (5..60).contains(&new_order.aborted), "{new_order:?}");
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
    let undelivered = tpcc.catalog().schema.table_named("new_order").unwrap();
    // Of the thirty-seventh district, which an ordinary warehouse does not have.
    store.delete_row(&undelivered.key((1, 37, 25)).unwrap());
    assert!(violated(&tpcc.check(&mut store, &totals).unwrap()).join(";").contains("3.3.2.3"));
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    checked_access::assert_load_is_the_same_everywhere(&scaled(4));
    checked_access::assert_generator_is_deterministic(&scaled(4));
}

/// Every row is in one part, but for items and the warehouse, which are in all.
#[test]
fn parts_hold_what_is_placed_there() {
    let (tpcc, partitions) = (scaled(4), 4);
    let mut whole = PlainStore::load(&tpcc).unwrap();
    for table in tpcc.catalog().schema.tables() {
        let mut rows = 0;
        SnapshotReader::scan(&mut whole, &table.all(), &mut |_, _| rows += 1).unwrap();
        let mut in_parts = 0;
        for partition in (0..partitions).map(PartitionId) {
            tpcc.load(Part::of(partition, partitions), &mut |key, _| {
                in_parts += u64::from(key.table().unwrap() == table.id());
            })
            .unwrap();
        }
        let copies = if ["item", "warehouse"].contains(&table.name()) { u64::from(partitions) } else { 1 };
        assert_eq!(in_parts, rows * copies, "{}", table.name());
    }
}

/// "A transaction likely touches more than two partitions, more as servers grow": the mean is reported, and rises.
#[test]
fn more_partitions_take_part_the_more_there_are() {
    let participants = |partitions: u16| {
        let tpcc = scaled(partitions);
        let (mut sum, calls, mut districts) = (0, 400, BTreeSet::new());
        let part = Part::of(PartitionId(1), partitions);
        let mut generator = tpcc.generator(3, 0, part).unwrap();
        for _ in 0..calls {
            let call = generator.next();
            let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
            assert!(part.includes(arguments.district.into()) && arguments.warehouse == 1);
            districts.insert(arguments.district);
            let home = call.home_partition(partitions);
            assert_eq!(home, PartitionId(1));
            sum +=
                checked_access::declare(tpcc.catalog(), &call, partitions).unwrap().participants(home).len();
        }
        assert_eq!(districts.len(), 10, "calls come from all districts of the part");
        sum as f64 / f64::from(calls)
    };
    let [two, four, eight] = [2, 4, 8].map(participants);
    assert!(two > 1.9 && four > two + 1.0 && eight > four + 1.0, "{two} {four} {eight}");
}

/// The specification draws items unevenly; no partition is to have much more of them than its share for that.
#[test]
fn lines_are_spread_evenly() {
    for partitions in [2, 8, 16] {
        let tpcc = scaled(partitions);
        let stock = tpcc.catalog().schema.table_named("stock").unwrap();
        let part = Part::of(PartitionId(0), partitions);
        let mut generator = tpcc.generator(3, 0, part).unwrap();
        let mut lines = vec![0_u32; usize::from(partitions)];
        for _ in 0..4_000 {
            let arguments: NewOrderArguments = decode_output(&generator.next().arguments).unwrap();
            for line in &arguments.lines {
                let key = stock.key((1, line.item)).unwrap();
                let holder = (0..partitions)
                    .find(|partition| Part::of(PartitionId(*partition), partitions).holds(stock, &key));
                lines[usize::from(holder.unwrap())] += 1;
            }
        }
        let (most, all) = (*lines.iter().max().unwrap(), lines.iter().sum::<u32>());
        let share = f64::from(most) * f64::from(partitions) / f64::from(all);
        assert!(share < 1.5, "{share}: {lines:?}");
    }
}
