//! TPC-C: conditions, footprints, and the shares that the specification and the options ask for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use std::collections::BTreeSet;

use checked_access::{assert_holds, violated};
use ordain_db::data::{Key, KeyRange, Table, Value};
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Stop, decode_output};
use ordain_workload::limit::PlainStore;
use ordain_workload::tpcc::{
    CustomerName, NEW_ORDER, NewOrderArguments, NewOrderOutput, Options, PAYMENT, PaymentArguments,
    PaymentOutput, Tpcc,
};
use ordain_workload::{Call, Part, SnapshotReader, Totals, Workload};

fn small() -> Options {
    Options {
        sites: 8,
        warehouses: 8,
        items: 200,
        districts_per_warehouse: 3,
        customers_per_district: 60,
        orders_per_district: 30,
        new_order_percent: 50.0,
        ..Options::default()
    }
}

fn table(tpcc: &Tpcc, name: &str) -> Table {
    tpcc.catalog().schema.table_named(name).unwrap().clone()
}

/// Draws calls without running them.
fn draw(tpcc: &Tpcc, calls: usize) -> Vec<Call> {
    let mut generator = tpcc.generator(3, 0, Part::WHOLE).unwrap();
    (0..calls).map(|_| generator.next()).collect()
}

fn rows(store: &mut PlainStore, range: &KeyRange) -> Vec<(Key, Vec<u8>)> {
    let mut found = Vec::new();
    SnapshotReader::scan(store, range, &mut |key, row| found.push((Key::from_bytes(key), row.to_vec())))
        .unwrap();
    found
}

#[test]
fn conditions_hold_after_a_run() {
    let tpcc = Tpcc::new(small()).unwrap();
    let mut store = PlainStore::load(&tpcc).unwrap();
    assert_holds(&tpcc.check(&mut store, &Totals::new()).unwrap());
    let (mut store, totals) = checked_access::run(&tpcc, 4_000, 1, |_, _| ());
    let (new_order, payment) = (totals.of(NEW_ORDER), totals.of(PAYMENT));
    assert!(new_order.committed > 1_800 && (5..40).contains(&new_order.aborted), "{new_order:?}");
    assert!(payment.committed > 1_800 && payment.aborted == 0, "{payment:?}");
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    let tpcc = Tpcc::new(small()).unwrap();
    checked_access::assert_load_is_the_same_everywhere(&tpcc);
    checked_access::assert_generator_is_deterministic(&tpcc);
}

#[test]
fn new_order_inserts_what_it_returns() {
    let tpcc = Tpcc::new(Options { new_order_percent: 100.0, abort_percent: 20.0, ..small() }).unwrap();
    let mut ended = Vec::new();
    let (mut store, _) = checked_access::run(&tpcc, 500, 2, |call, result| {
        let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
        match result {
            Ok(result) => ended.push((arguments, decode_output::<NewOrderOutput>(result).unwrap())),
            Err(stop) => assert_eq!(*stop, Stop::abort("there is no item 201")),
        }
    });
    let (order_table, line_table) = (table(&tpcc, "orders"), table(&tpcc, "order_line"));
    for (arguments, output) in ended {
        let place = (arguments.warehouse, arguments.district, output.order);
        let row = store.get_row(&order_table.key(place).unwrap()).unwrap().to_vec();
        let row = order_table.read(&row);
        assert_eq!(row.int32("o_c_id").unwrap(), arguments.customer);
        assert_eq!(row.int32("o_ol_cnt").unwrap(), arguments.lines.len() as i32);
        assert!(row.is_null("o_carrier_id").unwrap());
        let all_local = arguments.lines.iter().all(|line| line.supply_warehouse == arguments.warehouse);
        assert_eq!(row.bool("o_all_local").unwrap(), all_local);
        let lines = rows(&mut store, &line_table.prefix(place).unwrap());
        assert_eq!(lines.len(), arguments.lines.len());
        let mut sum = 0;
        for (((_, row), line), result) in lines.iter().zip(&arguments.lines).zip(&output.lines) {
            let row = line_table.read(row);
            assert_eq!(row.int32("ol_i_id").unwrap(), line.item);
            assert_eq!(row.int64("ol_amount").unwrap(), result.amount);
            assert_eq!(result.amount, result.price * i64::from(line.quantity));
            assert_eq!(row.text("ol_dist_info").unwrap().len(), 24);
            assert!((10..=100).contains(&result.stock_quantity));
            sum += result.amount;
        }
        let tax = f64::from(10_000 + output.warehouse_tax + output.district_tax) / 10_000.0;
        let exact = sum as f64 * (1.0 - f64::from(output.discount) / 10_000.0) * tax;
        assert!((output.total as f64 - exact).abs() < 0.51, "{} against {exact}", output.total);
    }
}

#[test]
fn payment_by_name_takes_the_middle_customer() {
    let tpcc =
        Tpcc::new(Options { new_order_percent: 0.0, customers_per_district: 2_000, ..small() }).unwrap();
    let mut ended = Vec::new();
    let (mut store, _) = checked_access::run(&tpcc, 200, 2, |call, result| {
        let arguments: PaymentArguments = decode_output(&call.arguments).unwrap();
        ended.push((arguments, decode_output::<PaymentOutput>(result.as_ref().unwrap()).unwrap()));
    });
    let customers = table(&tpcc, "customer");
    let mut several = 0;
    for (arguments, output) in ended {
        let CustomerName::Last(last) = arguments.customer else { continue };
        let place = (arguments.customer_warehouse, arguments.customer_district);
        let mut named = Vec::new();
        for (key, row) in rows(&mut store, &customers.prefix(place).unwrap()) {
            let row = customers.read(&row);
            if row.text("c_last").unwrap() == last.as_str() {
                let number = customers.key_values(&key).unwrap()[2].integer().unwrap();
                named.push((row.text("c_first").unwrap().to_owned(), number));
            }
        }
        named.sort();
        several += usize::from(named.len() > 1);
        assert_eq!(i64::from(output.customer), named[named.len().div_ceil(2) - 1].1);
        assert_eq!(output.data.is_empty(), output.credit.as_str() == "GC");
    }
    assert!(several > 20, "{several}");
}

/// CAL-118: the measured share is what was asked, and no order spans two warehouses of one site.
#[test]
fn shares_of_new_orders_are_as_asked() {
    let options = Options { sites: 8, warehouses: 80, ..Options::default() };
    let tpcc = Tpcc::new(options).unwrap();
    let (mut remote, mut aborted, mut lines) = (0, 0, 0);
    for call in draw(&tpcc, 20_000) {
        let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
        assert_eq!(call.home, arguments.warehouse as u32);
        assert!((1..=80).contains(&arguments.warehouse) && (1..=10).contains(&arguments.district));
        assert!((1..=3_000).contains(&arguments.customer) && (5..=15).contains(&arguments.lines.len()));
        let others: BTreeSet<i32> = arguments
            .lines
            .iter()
            .map(|line| line.supply_warehouse)
            .filter(|supplier| *supplier != arguments.warehouse)
            .collect();
        assert!(others.len() <= 1, "one other warehouse at most");
        assert!(others.iter().all(|other| other % 8 != arguments.warehouse % 8), "another site");
        remote += others.len();
        aborted += usize::from(arguments.lines.last().unwrap().item == 100_001);
        lines += arguments.lines.len();
        assert!(arguments.lines.iter().all(|line| (1..=100_001).contains(&line.item)));
    }
    assert!((1_850..2_150).contains(&remote), "{remote}");
    assert!((150..250).contains(&aborted), "{aborted}");
    assert!((198_000..202_000).contains(&lines), "{lines}");
}

/// The footprint has two participants for a remote order, in any cluster that keeps the sites apart.
#[test]
fn remote_orders_take_two_partitions() {
    let tpcc = Tpcc::new(Options { remote_percent: 100.0, ..small() }).unwrap();
    for call in draw(&tpcc, 200).iter().filter(|call| call.procedure.0 == 0) {
        let footprint = checked_access::declare(tpcc.catalog(), call, 8).unwrap();
        let home = call.home_partition(8);
        assert_eq!(footprint.participants(home).len(), 2);
        assert!(footprint.participants(home).contains(home));
        let alone = checked_access::declare(tpcc.catalog(), call, 1).unwrap();
        assert_eq!(alone.participants(PartitionId(0)).len(), 1);
    }
}

#[test]
fn shares_of_payments_are_as_asked() {
    let options = Options { sites: 8, warehouses: 80, new_order_percent: 0.0, ..Options::default() };
    let tpcc = Tpcc::new(options).unwrap();
    let (mut remote, mut by_name, mut numbers) = (0, 0, BTreeSet::new());
    for call in draw(&tpcc, 20_000) {
        let arguments: PaymentArguments = decode_output(&call.arguments).unwrap();
        if arguments.customer_warehouse == arguments.warehouse {
            assert_eq!(arguments.customer_district, arguments.district);
        } else {
            assert_ne!(arguments.customer_warehouse % 8, arguments.warehouse % 8);
            remote += 1;
        }
        let named = matches!(arguments.customer, CustomerName::Last(_));
        assert_eq!(checked_access::declare(tpcc.catalog(), &call, 8).is_none(), named);
        by_name += u32::from(named);
        assert!((100..=500_000).contains(&arguments.amount));
        assert!(arguments.number != 0 && numbers.insert(arguments.number));
    }
    assert!((2_850..3_150).contains(&remote), "{remote}");
    assert!((11_800..12_200).contains(&by_name), "{by_name}");
}

#[test]
fn one_site_is_all_local() {
    let tpcc = Tpcc::new(Options { sites: 1, remote_percent: 100.0, ..small() }).unwrap();
    for call in draw(&tpcc, 200).iter().filter(|call| call.procedure.0 == 0) {
        let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
        assert!(arguments.lines.iter().all(|line| line.supply_warehouse == arguments.warehouse));
    }
}

/// The cardinalities of clause 4.3.3.1 at the specification's scale.
#[test]
fn population_of_one_warehouse_follows_the_specification() {
    let tpcc = Tpcc::new(Options::default()).unwrap();
    let mut counts = vec![0_u32; tpcc.catalog().schema.tables().len()];
    let (mut bad_credit, mut original_items, mut original_stock) = (0, 0, 0);
    let [customer, item, stock] = ["customer", "item", "stock"].map(|name| table(&tpcc, name));
    tpcc.load(Part::WHOLE, &mut |key, row| {
        let id = key.table().unwrap();
        counts[usize::from(id.0)] += 1;
        if id == customer.id() {
            bad_credit += u32::from(customer.read(row).text("c_credit").unwrap() == "BC");
        } else if id == item.id() {
            original_items += u32::from(item.read(row).text("i_data").unwrap().contains("ORIGINAL"));
        } else if id == stock.id() {
            original_stock += u32::from(stock.read(row).text("s_data").unwrap().contains("ORIGINAL"));
        }
    })
    .unwrap();
    let count = |name: &str| counts[usize::from(table(&tpcc, name).id().0)];
    assert_eq!(
        (count("warehouse"), count("district"), count("item"), count("stock")),
        (1, 10, 100_000, 100_000)
    );
    assert_eq!((count("customer"), count("customer_by_name"), count("history")), (30_000, 30_000, 30_000));
    assert_eq!((count("orders"), count("new_order")), (30_000, 9_000));
    assert!((297_000..303_000).contains(&count("order_line")), "{}", count("order_line"));
    assert!((2_800..3_200).contains(&bad_credit), "{bad_credit}");
    assert!((9_700..10_300).contains(&original_items), "{original_items}");
    assert!((9_700..10_300).contains(&original_stock), "{original_stock}");
}

/// Every condition bites: one row is broken, and the conditions that must notice do.
#[test]
fn the_check_notices_broken_rows() {
    let tpcc = Tpcc::new(small()).unwrap();
    let broken = |name: &str, key: Key, column: &str, value: Value<'_>| {
        let mut store = PlainStore::load(&tpcc).unwrap();
        let table = table(&tpcc, name);
        let mut scratch = Vec::new();
        let schema = &tpcc.catalog().schema;
        let mut transaction = ordain_db::procedure::Transaction::new(schema, &mut store, &mut scratch);
        assert!(transaction.set(&table, &key, [(column, value)]).unwrap());
        violated(&tpcc.check(&mut store, &Totals::new()).unwrap()).join("; ")
    };
    let warehouse = table(&tpcc, "warehouse").key((3,)).unwrap();
    let found = broken("warehouse", warehouse, "w_ytd", Value::Int64(1));
    assert!(found.contains("3.3.2.1") && found.contains("3.3.2.8"), "{found}");
    let district = table(&tpcc, "district").key((3, 2)).unwrap();
    let found = broken("district", district, "d_next_o_id", Value::Int32(30));
    assert!(found.contains("max(o_id)") && found.contains("max(no_o_id)"), "{found}");
    let order = table(&tpcc, "orders").key((3, 2, 5)).unwrap();
    assert!(broken("orders", order, "o_ol_cnt", Value::Int32(99)).contains("3.3.2.4"));
    let stock = table(&tpcc, "stock").key((3, 7)).unwrap();
    assert!(broken("stock", stock, "s_ytd", Value::Int32(1)).contains("order lines supplied"));
    let customer = table(&tpcc, "customer").key((3, 2, 5)).unwrap();
    let found = broken("customer", customer, "c_ytd_payment", Value::Int64(0));
    assert!(found.contains("c_balance") && found.contains("of its customers"), "{found}");
}

#[test]
fn the_check_notices_lost_and_extra_rows() {
    let tpcc = Tpcc::new(small()).unwrap();
    let (mut store, totals) = checked_access::run(&tpcc, 200, 1, |_, _| ());
    let new_order = table(&tpcc, "new_order");
    store.delete_row(&new_order.key((3, 2, 25)).unwrap());
    assert!(violated(&tpcc.check(&mut store, &totals).unwrap()).join(";").contains("3.3.2.3"));
    store.put_row(&new_order.key((3, 2, 25)).unwrap(), &[]);
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
    store.put_row(&new_order.key((9, 2, 25)).unwrap(), &[]);
    assert!(violated(&tpcc.check(&mut store, &totals).unwrap()).join(";").contains("unknown warehouse"));
    let mut totals = totals;
    totals.of_mut(NEW_ORDER).committed += 1;
    totals.of_mut(PAYMENT).committed += 1;
    let found = violated(&tpcc.check(&mut store, &totals).unwrap()).join(";");
    assert!(found.contains("committed New Orders") && found.contains("committed Payments"), "{found}");
}

#[test]
fn bad_options_are_refused() {
    for bad in [
        Options { warehouses: 0, ..small() },
        Options { districts_per_warehouse: 11, ..small() },
        Options { sites: 0, ..small() },
        Options { remote_percent: 101.0, ..small() },
    ] {
        assert!(Tpcc::new(bad.clone()).is_err(), "{bad:?}");
    }
}
