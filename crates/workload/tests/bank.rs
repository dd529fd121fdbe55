//! Bank: conditions, footprints and the share of transfers between sites.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod checked_access;

use checked_access::{assert_holds, violated};
use ordain_db::procedure::decode_output;
use ordain_workload::bank::{Arguments, Bank, Options, TRANSFER};
use ordain_workload::limit::PlainStore;
use ordain_workload::{Part, Totals, Workload};

fn options() -> Options {
    Options { sites: 8, accounts: 160, multi_partition_percent: 25.0, ..Options::default() }
}

#[test]
fn conditions_hold_after_a_run() {
    let bank = Bank::new(options()).unwrap();
    let (mut store, totals) = checked_access::run(&bank, 5_000, 1, |_, _| ());
    let outcomes = totals.of(TRANSFER);
    assert!(outcomes.committed > 1_000 && outcomes.aborted > 100, "{outcomes:?}");
    assert_holds(&bank.check(&mut store, &totals).unwrap());
}

#[test]
fn the_check_notices_made_money_and_overdrafts() {
    let bank = Bank::new(options()).unwrap();
    let mut store = PlainStore::load(&bank).unwrap();
    let table = bank.catalog().schema.table_named("accounts").unwrap();
    store.put_row(&table.key((2, 3_i64)).unwrap(), &table.row((-5_i64,)).unwrap());
    let lines = bank.check(&mut store, &Totals::new()).unwrap();
    assert_eq!(violated(&lines), ["balance >= 0", "sum of all balances = money loaded"]);
    assert!(lines[1].detail.starts_with("account (2, 3) has balance -5"), "{}", lines[1].detail);
}

#[test]
fn load_and_calls_depend_on_seeds_alone() {
    let bank = Bank::new(options()).unwrap();
    checked_access::assert_load_is_the_same_everywhere(&bank);
    checked_access::assert_generator_is_deterministic(&bank);
}

#[test]
fn share_between_sites_is_as_asked() {
    let bank = Bank::new(options()).unwrap();
    let mut generator = bank.generator(3, 0, Part::WHOLE).unwrap();
    let mut between = 0;
    for _ in 0..4_000 {
        let Arguments { from, to, amount } = decode_output(&generator.next().arguments).unwrap();
        assert!(from != to && (1..=50_000).contains(&amount));
        between += u32::from(from.site != to.site);
    }
    assert!((900..1_100).contains(&between), "{between}");
}
