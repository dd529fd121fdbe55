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
    CustomerName, DELIVERY, Deliveries, DeliveryArguments, DeliveryOutput, Layout, Mix, NEW_ORDER,
    NewOrderArguments, NewOrderOutput, ORDER_STATUS, Options, OrderNumbers, OrderStatusArguments,
    OrderStatusOutput, PAYMENT, PaymentArguments, PaymentOutput, Remote, STOCK_LEVEL, StockLevelArguments,
    StockLevelOutput, Tpcc,
};
use ordain_workload::{Call, Mode, Part, SnapshotReader, Totals, Workload};

fn small() -> Options {
    Options {
        sites: 8,
        warehouses: 8,
        items: 200,
        districts_per_warehouse: 3,
        customers_per_district: 60,
        orders_per_district: 30,
        mix: Mix::NewOrderPayment(50.0),
        ..Options::default()
    }
}

fn full() -> Options {
    Options { mix: Mix::FULL, ..small() }
}

fn name<'a>(tpcc: &'a Tpcc, call: &Call) -> &'a str {
    tpcc.catalog().procedures.name(call.procedure)
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

/// With dependent order numbers nothing is declared before the number is known, and orders do the same.
#[test]
fn dependent_order_numbers_do_the_same() {
    let with = |order_numbers| {
        let options = Options { mix: Mix::NewOrderPayment(100.0), order_numbers, ..small() };
        let tpcc = Tpcc::new(options).unwrap();
        let declared = checked_access::declare(tpcc.catalog(), &draw(&tpcc, 1)[0], 8);
        let (mut store, totals) = checked_access::run(&tpcc, 500, 1, |_, _| ());
        assert_holds(&tpcc.check(&mut store, &totals).unwrap());
        (declared.is_some(), rows(&mut store, &table(&tpcc, "order_line").all()))
    };
    let (declared, dependent) = (with(OrderNumbers::Declared), with(OrderNumbers::Dependent));
    assert!(declared.0 && !dependent.0);
    assert_eq!(declared.1, dependent.1);
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    let tpcc = Tpcc::new(small()).unwrap();
    checked_access::assert_load_is_the_same_everywhere(&tpcc);
    checked_access::assert_generator_is_deterministic(&tpcc);
}

#[test]
fn new_order_inserts_what_it_returns() {
    let tpcc =
        Tpcc::new(Options { mix: Mix::NewOrderPayment(100.0), abort_percent: 20.0, ..small() }).unwrap();
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
        Tpcc::new(Options { mix: Mix::NewOrderPayment(0.0), customers_per_district: 2_000, ..small() })
            .unwrap();
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
    let tpcc = Tpcc::new(Options { remote: Remote::Orders(100.0), ..small() }).unwrap();
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
    let options = Options { sites: 8, warehouses: 80, mix: Mix::NewOrderPayment(0.0), ..Options::default() };
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
    let tpcc = Tpcc::new(Options { sites: 1, remote: Remote::Orders(100.0), ..small() }).unwrap();
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

/// One row is broken.
type Break<'a> = &'a dyn Fn(&Tpcc, &mut PlainStore);

/// Sets a column of a row.
fn set(tpcc: &Tpcc, store: &mut PlainStore, (name, key): (&str, &[i32]), column: &str, value: Value<'_>) {
    let table = table(tpcc, name);
    let key: Vec<Value<'_>> = key.iter().map(|part| Value::Int32(*part)).collect();
    let mut scratch = Vec::new();
    let mut transaction = ordain_db::procedure::Transaction::new(&tpcc.catalog().schema, store, &mut scratch);
    assert!(transaction.set(&table, &table.key(&key[..]).unwrap(), [(column, value)]).unwrap());
}

fn delete(tpcc: &Tpcc, store: &mut PlainStore, name: &str, key: &[i32]) {
    let key: Vec<Value<'_>> = key.iter().map(|part| Value::Int32(*part)).collect();
    let key = table(tpcc, name).key(&key[..]).unwrap();
    assert!(store.get_row(&key).is_some());
    store.delete_row(&key);
}

/// The conditions that a broken state of a full mix violates, up to their colons.
fn found_broken(tpcc: &Tpcc, breaks: Break<'_>) -> Vec<String> {
    let (mut store, totals) = checked_access::run(tpcc, 600, 1, |_, _| ());
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
    breaks(tpcc, &mut store);
    let lines = tpcc.check(&mut store, &totals).unwrap();
    violated(&lines).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

/// Each of the conditions 1 to 12 notices a row that breaks it. Those that a single row cannot break alone stand with what
/// else it breaks: 8 and 9 together imply 1, and 6 implies 4.
#[test]
fn each_consistency_condition_notices_what_breaks_it() {
    let tpcc = Tpcc::new(full()).unwrap();
    // Order 5 was delivered when it was loaded, order 30 is the last that was loaded and undelivered for long.
    let cases: &[(&[&str], Break<'_>)] = &[
        (&["3.3.2.1", "3.3.2.9"], &|tpcc, store| {
            set(tpcc, store, ("district", &[3, 2]), "d_ytd", Value::Int64(1));
        }),
        (&["3.3.2.2"], &|tpcc, store| {
            set(tpcc, store, ("district", &[3, 2]), "d_next_o_id", Value::Int32(900));
        }),
        (&["3.3.2.3", "3.3.2.5", "3.3.2.11"], &|tpcc, store| {
            delete(tpcc, store, "new_order", &[3, 2, 30]);
        }),
        (&["3.3.2.4", "3.3.2.6"], &|tpcc, store| {
            set(tpcc, store, ("orders", &[3, 2, 5]), "o_ol_cnt", Value::Int32(99));
        }),
        (&["3.3.2.5", "3.3.2.7"], &|tpcc, store| {
            set(tpcc, store, ("orders", &[3, 2, 30]), "o_carrier_id", Value::Int32(1));
        }),
        // One line more in one order and one less in another of the district.
        (&["3.3.2.6"], &|tpcc, store| {
            let lines = |store: &mut PlainStore, order: i32| {
                let prefix = table(tpcc, "order_line").prefix((3, 2, order)).unwrap();
                rows(store, &prefix).len() as i32
            };
            let (first, second) = (lines(store, 5), lines(store, 6));
            set(tpcc, store, ("orders", &[3, 2, 5]), "o_ol_cnt", Value::Int32(first + 1));
            set(tpcc, store, ("orders", &[3, 2, 6]), "o_ol_cnt", Value::Int32(second - 1));
        }),
        // The amount of what was delivered when it was loaded is 0.
        (&["3.3.2.7"], &|tpcc, store| {
            set(tpcc, store, ("order_line", &[3, 2, 5, 1]), "ol_delivery_d", Value::Null);
        }),
        (&["3.3.2.1", "3.3.2.8"], &|tpcc, store| {
            set(tpcc, store, ("warehouse", &[3]), "w_ytd", Value::Int64(1));
        }),
        // Money that moved from one district to another of the warehouse.
        (&["3.3.2.9"], &|tpcc, store| {
            let mut paid = |district: i32, more: i64| {
                let table = table(tpcc, "district");
                let row = store.get_row(&table.key((3, district)).unwrap()).unwrap().to_vec();
                let ytd = table.read(&row).int64("d_ytd").unwrap();
                set(tpcc, store, ("district", &[3, district]), "d_ytd", Value::Int64(ytd + more));
            };
            paid(1, 5);
            paid(2, -5);
        }),
        (&["3.3.2.10", "3.3.2.12"], &|tpcc, store| {
            set(tpcc, store, ("customer", &[3, 2, 5]), "c_balance", Value::Int64(1));
        }),
        (&["3.3.2.11"], &|tpcc, store| {
            set(tpcc, store, ("customer", &[3, 2, 5]), "c_delivery_cnt", Value::Int32(-1));
        }),
        (&["3.3.2.12", "c_ytd_payment = sum(h_amount) of the customer"], &|tpcc, store| {
            set(tpcc, store, ("customer", &[3, 2, 5]), "c_ytd_payment", Value::Int64(1));
        }),
    ];
    for (number, (expected, breaks)) in (1..).zip(cases) {
        let found = found_broken(&tpcc, breaks);
        assert!(expected.contains(&format!("3.3.2.{number}").as_str()), "{number}");
        assert_eq!(found, *expected, "condition {number}");
    }
}

#[test]
fn the_check_notices_broken_stock_and_indexes() {
    let tpcc = Tpcc::new(full()).unwrap();
    let found =
        found_broken(&tpcc, &|tpcc, store| set(tpcc, store, ("stock", &[3, 7]), "s_ytd", Value::Int32(-1)));
    assert_eq!(found, ["s_ytd, s_order_cnt, s_remote_cnt = order lines supplied"]);
    let newest = |tpcc: &Tpcc, store: &mut PlainStore| {
        let index = table(tpcc, "orders_by_customer");
        rows(store, &index.prefix((3, 2)).unwrap()).pop().unwrap().0
    };
    let found = found_broken(&tpcc, &|tpcc, store| {
        let key = newest(tpcc, store);
        store.delete_row(&key);
    });
    assert_eq!(found, ["orders_by_customer has each order once"]);
    let found = found_broken(&tpcc, &|tpcc, store| {
        let key = newest(tpcc, store);
        let columns = table(tpcc, "orders_by_customer").key_values(&key).unwrap();
        let [customer, order] = [2, 3].map(|column: usize| columns[column].integer().unwrap() as i32);
        store.delete_row(&key);
        let other = (3, 2, customer % 60 + 1, order);
        store.put_row(&table(tpcc, "orders_by_customer").key(other).unwrap(), &[]);
    });
    assert_eq!(found, ["orders_by_customer has each order once"]);
}

#[test]
fn the_full_mix_keeps_the_conditions() {
    let tpcc = Tpcc::new(full()).unwrap();
    let (mut store, totals) = checked_access::run(&tpcc, 6_000, 1, |_, _| ());
    // Three clients with a deck each.
    let committed = [NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL].map(|name| totals.of(name));
    let calls = committed.map(|outcomes| outcomes.committed + outcomes.aborted);
    assert_eq!(calls, [2_700, 2_580, 240, 240, 240]);
    assert!(committed[1..].iter().all(|outcomes| outcomes.aborted == 0), "{committed:?}");
    let lines = tpcc.check(&mut store, &totals).unwrap();
    assert_holds(&lines);
    let mut totals = totals;
    totals.of_mut(DELIVERY).committed = 0;
    let found = violated(&tpcc.check(&mut store, &totals).unwrap()).join(";");
    assert!(found.contains("districts of committed Deliveries"), "{found}");
}

/// With declared ranges every access of a Delivery lies in its footprint, which is that of one partition.
#[test]
fn declared_deliveries_stay_in_their_footprint() {
    let mix = Mix::Full { reads: Mode::Ordered, deliveries: Deliveries::Declared };
    let tpcc = Tpcc::new(Options { mix, ..full() }).unwrap();
    let (mut store, totals) = checked_access::run(&tpcc, 2_000, 1, |call, _| {
        if name(&tpcc, call) == DELIVERY {
            let footprint = checked_access::declare(tpcc.catalog(), call, 4).expect("it is declared");
            assert_eq!(footprint.participants(PartitionId(0)).len(), 1);
        }
    });
    assert!(totals.of(DELIVERY).committed > 50);
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
}

/// Districts that have nothing to deliver are skipped and counted, in the answer and in the check.
#[test]
fn deliveries_take_the_oldest_order_of_each_district() {
    let tpcc = Tpcc::new(Options { warehouses: 1, sites: 1, orders_per_district: 10, ..full() }).unwrap();
    let mut next = [8, 8, 8];
    let mut skipped = 0;
    let (mut store, totals) = checked_access::run(&tpcc, 2_000, 2, |call, result| {
        if name(&tpcc, call) != DELIVERY {
            return;
        }
        let output: DeliveryOutput = decode_output(result.as_ref().unwrap()).unwrap();
        assert_eq!(output.orders.len(), 3);
        for (next, delivered) in next.iter_mut().zip(&output.orders) {
            assert!(delivered.is_none_or(|delivered| delivered == *next), "{delivered:?} after {next}");
            *next += i32::from(delivered.is_some());
        }
        skipped += output.skipped();
    });
    let lines = tpcc.check(&mut store, &totals).unwrap();
    assert_holds(&lines);
    let told = format!("less {skipped} skipped");
    assert!(lines.iter().any(|line| line.condition.ends_with(&told)), "{told} in {lines:#?}");
    // All that is left is delivered, and then there is nothing to deliver.
    let undelivered = |store: &mut PlainStore| rows(store, &table(&tpcc, "new_order").all()).len();
    assert!(undelivered(&mut store) > 0);
    let delivery = tpcc.catalog().procedures.find(DELIVERY).unwrap();
    let arguments = DeliveryArguments { warehouse: 1, carrier: 3, date: 77 };
    let arguments = ordain_db::procedure::encode_arguments(&arguments).unwrap();
    let call = Call { procedure: delivery, arguments: arguments.into(), home: 1, mode: Mode::Ordered };
    for _ in 0..2_000 {
        store.run(tpcc.catalog(), &call).unwrap();
    }
    assert_eq!(undelivered(&mut store), 0);
    let last: DeliveryOutput = decode_output(store.run(tpcc.catalog(), &call).unwrap()).unwrap();
    assert_eq!(last.skipped(), 3);
    let mut totals = totals;
    totals.of_mut(DELIVERY).committed += 2_001;
    assert_holds(&tpcc.check(&mut store, &totals).unwrap());
}

#[test]
fn order_status_gives_the_last_order() {
    let tpcc = Tpcc::new(Options { warehouses: 2, sites: 2, orders_per_district: 60, ..full() }).unwrap();
    let mut ordered = std::collections::BTreeMap::new();
    let (mut since, mut delivered) = (0, 0);
    checked_access::run(&tpcc, 6_000, 2, |call, result| {
        let Ok(result) = result else { return };
        match name(&tpcc, call) {
            NEW_ORDER => {
                let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
                let output: NewOrderOutput = decode_output(result).unwrap();
                let customer = (arguments.warehouse, arguments.district, arguments.customer);
                ordered.insert(customer, (arguments, output));
            }
            ORDER_STATUS => {
                let arguments: OrderStatusArguments = decode_output(&call.arguments).unwrap();
                let output: OrderStatusOutput = decode_output(result).unwrap();
                let found = output.order.unwrap();
                let carried = found.carrier.is_some();
                assert!(found.lines.iter().all(|line| line.delivery_date.is_some() == carried));
                delivered += u32::from(carried);
                let customer = (arguments.warehouse, arguments.district, output.customer);
                let Some((arguments, answer)) = ordered.get(&customer) else { return };
                since += 1;
                assert_eq!((found.order, found.entry_date), (answer.order, arguments.entry_date));
                let lines = found.lines.iter().map(|line| (line.item, line.supply_warehouse, line.quantity));
                let asked =
                    arguments.lines.iter().map(|line| (line.item, line.supply_warehouse, line.quantity));
                assert!(lines.eq(asked));
                let amounts = found.lines.iter().map(|line| line.amount);
                assert!(amounts.eq(answer.lines.iter().map(|line| line.amount)));
            }
            _ => {}
        }
    });
    assert!(since > 50 && delivered > 20, "{since} and {delivered}");
}

#[test]
fn stock_level_counts_low_items_of_the_last_twenty_orders() {
    let tpcc = Tpcc::new(Options { warehouses: 1, sites: 1, ..full() }).unwrap();
    let (mut store, _) = checked_access::run(&tpcc, 2_000, 2, |_, _| ());
    let procedure = tpcc.catalog().procedures.find(STOCK_LEVEL).unwrap();
    let [districts, lines, stock] = ["district", "order_line", "stock"].map(|name| table(&tpcc, name));
    let mut seen = BTreeSet::new();
    for (district, threshold) in [(1, 10), (2, 20), (3, 60), (1, 101)] {
        let row = store.get_row(&districts.key((1, district)).unwrap()).unwrap().to_vec();
        let next = districts.read(&row).int32("d_next_o_id").unwrap();
        let last = lines.range((1, district, next - 20), (1, district, next)).unwrap();
        let items: BTreeSet<i32> = rows(&mut store, &last)
            .iter()
            .map(|(_, row)| lines.read(row).int32("ol_i_id").unwrap())
            .collect();
        let low = items.iter().filter(|item| {
            let row = store.get_row(&stock.key((1, **item)).unwrap()).unwrap();
            stock.read(row).int32("s_quantity").unwrap() < threshold
        });
        let expected = low.count() as u32;
        let arguments = StockLevelArguments { warehouse: 1, district, threshold };
        let arguments = ordain_db::procedure::encode_arguments(&arguments).unwrap();
        let call = Call { procedure, arguments: arguments.into(), home: 1, mode: Mode::Ordered };
        let footprint = checked_access::declare(tpcc.catalog(), &call, 4).expect("it is declared");
        assert_eq!(footprint.participants(PartitionId(0)).len(), 1);
        let output: StockLevelOutput = decode_output(store.run(tpcc.catalog(), &call).unwrap()).unwrap();
        assert_eq!(output.low, expected);
        seen.insert(expected);
    }
    assert!(seen.len() > 2, "{seen:?}");
}

/// Clause 5.2.3: the shares are exact in every hundred calls. Reads are called as was asked.
#[test]
fn the_full_mix_has_the_shares_of_the_specification() {
    for reads in [Mode::Ordered, Mode::Snapshot] {
        let tpcc =
            Tpcc::new(Options { mix: Mix::Full { reads, deliveries: Deliveries::Dependent }, ..small() })
                .unwrap();
        let calls = draw(&tpcc, 1_000);
        let count = |calls: &[Call], of: &str| calls.iter().filter(|call| name(&tpcc, call) == of).count();
        for hundred in calls.chunks(100) {
            let shares =
                [NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL].map(|of| count(hundred, of));
            assert_eq!(shares, [45, 43, 4, 4, 4]);
        }
        assert_ne!(calls[..100], calls[100..200], "each deck is shuffled");
        for call in &calls {
            let reads_only = [ORDER_STATUS, STOCK_LEVEL].contains(&name(&tpcc, call));
            assert_eq!(call.mode, if reads_only { reads } else { Mode::Ordered });
            assert_eq!(call.home, call_warehouse(&tpcc, call) as u32);
        }
    }
}

fn call_warehouse(tpcc: &Tpcc, call: &Call) -> i32 {
    match name(tpcc, call) {
        NEW_ORDER => decode_output::<NewOrderArguments>(&call.arguments).unwrap().warehouse,
        PAYMENT => decode_output::<PaymentArguments>(&call.arguments).unwrap().warehouse,
        ORDER_STATUS => decode_output::<OrderStatusArguments>(&call.arguments).unwrap().warehouse,
        DELIVERY => decode_output::<DeliveryArguments>(&call.arguments).unwrap().warehouse,
        _ => decode_output::<StockLevelArguments>(&call.arguments).unwrap().warehouse,
    }
}

/// Clause 2.4.1.5: 1% of lines come from elsewhere, each from a warehouse of its own.
#[test]
fn shares_of_remote_lines_are_as_asked() {
    let options = Options { sites: 8, warehouses: 80, remote: Remote::Lines(1.0), ..Options::default() };
    let tpcc = Tpcc::new(options).unwrap();
    let (mut lines, mut remote, mut several) = (0, 0, 0);
    for call in draw(&tpcc, 50_000) {
        let arguments: NewOrderArguments = decode_output(&call.arguments).unwrap();
        let suppliers = arguments.lines.iter().map(|line| line.supply_warehouse);
        let others: Vec<i32> = suppliers.filter(|supplier| *supplier != arguments.warehouse).collect();
        assert!(others.iter().all(|other| other % 8 != arguments.warehouse % 8), "another site");
        lines += arguments.lines.len();
        remote += others.len();
        several += usize::from(others.iter().any(|other| *other != others[0]));
    }
    let percent = remote as f64 * 100.0 / lines as f64;
    assert!((0.95..=1.05).contains(&percent), "{percent}");
    assert!(several > 0);
}

#[test]
fn the_check_notices_lost_and_extra_rows() {
    let tpcc = Tpcc::new(small()).unwrap();
    let (mut store, totals) = checked_access::run(&tpcc, 200, 1, |_, _| ());
    let new_order = table(&tpcc, "new_order");
    store.delete_row(&new_order.key((3, 2, 25)).unwrap());
    assert!(violated(&tpcc.check(&mut store, &totals).unwrap()).join(";").contains("3.3.2.3:"));
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
        Options { layout: Layout::DistrictsAndItems, mix: Mix::NewOrderPayment(100.0), ..small() },
        Options { layout: Layout::DistrictsAndItems, warehouses: 1, ..small() },
        Options { remote: Remote::Orders(101.0), ..small() },
    ] {
        assert!(Tpcc::new(bad.clone()).is_err(), "{bad:?}");
    }
}
