//! The guards and functors of workloads do what their runs do (ALO-144).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::procedure::transaction::Access;
use ordain_db::procedure::translation::{Compared, State, check_functors};
use ordain_db::procedure::{Stop, encode_arguments};
use ordain_workload::bank::{self, Bank};
use ordain_workload::limit::PlainStore;
use ordain_workload::micro::{self, Declare, Micro};
use ordain_workload::tpcc::{self, Mix, Tpcc};
use ordain_workload::{Part, Workload};

/// The rows of a store.
struct Rows<'a>(&'a mut PlainStore);

impl State for Rows<'_> {
    fn row(&mut self, key: &Key) -> Option<Vec<u8>> {
        self.0.get(key).unwrap().map(<[u8]>::to_vec)
    }

    fn rows(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Vec<(Key, Vec<u8>)> {
        let found = Access::scan(self.0, range, direction, limit).unwrap();
        found.into_iter().map(|found| (found.key, found.row.to_vec())).collect()
    }
}

/// What was compared for calls that are drawn and run one after the other.
#[derive(Default)]
struct Sum {
    functors: usize,
    commits: usize,
    /// Calls with functors that abort.
    aborts: usize,
    /// Calls without any.
    without: usize,
}

fn compare(workload: &dyn Workload, calls: usize) -> Sum {
    let mut store = PlainStore::load(workload).unwrap();
    let catalog = workload.catalog();
    let mut generator = workload.generator(5, 0, Part::WHOLE).unwrap();
    let mut sum = Sum::default();
    for number in 0..calls {
        let call = generator.next();
        let compared = check_functors(catalog, call.procedure, &call.arguments, &mut Rows(&mut store));
        let Compared { functors, commits } =
            compared.unwrap_or_else(|wrong| panic!("call {number}: {wrong}"));
        match store.run(catalog, &call) {
            Ok(_) => assert!(commits, "call {number}"),
            Err(Stop::Abort(_)) => assert!(!commits, "call {number}"),
            Err(stop) => panic!("call {number}: {stop:?}"),
        }
        sum.functors += functors;
        sum.commits += usize::from(commits);
        sum.aborts += usize::from(functors > 0 && !commits);
        sum.without += usize::from(functors == 0);
    }
    sum
}

#[test]
fn new_order_and_payment() {
    let tpcc = Tpcc::new(tpcc::Options {
        sites: 4,
        warehouses: 4,
        items: 200,
        districts_per_warehouse: 3,
        customers_per_district: 60,
        orders_per_district: 30,
        mix: Mix::NewOrderPayment(50.0),
        ..tpcc::Options::default()
    });
    let sum = compare(&tpcc.unwrap(), 4_000);
    // Payments by last name have none. New Orders have some for their stock, and abort where an item does not exist.
    assert!((800..1_600).contains(&sum.without), "{}", sum.without);
    assert!(sum.functors > 15_000 && sum.aborts > 5, "{} and {}", sum.functors, sum.aborts);
    assert!(sum.commits > 3_900, "{}", sum.commits);
}

#[test]
fn microbenchmark() {
    for (adds, functors) in [(Declare::Arithmetic, 10_000), (Declare::Own, 10_000), (Declare::Whole, 0)] {
        let options = micro::Options {
            sites: 4,
            records: 1_000,
            contention_index: 0.05,
            adds: Some(adds),
            ..micro::Options::default()
        };
        let sum = compare(&Micro::new(options).unwrap(), 1_000);
        assert_eq!((sum.functors, sum.commits), (functors, 1_000), "{adds:?}");
    }
}

#[test]
fn transfers() {
    use bank::Declare::{Functors, OnlyFunctors, Whole};
    for (transfers, functors) in [(Whole, 0), (Functors, 2), (OnlyFunctors, 2)] {
        let options = bank::Options {
            sites: 4,
            accounts: 40,
            balance: 100,
            amount_max: 90,
            multi_partition_percent: 50.0,
            transfers,
        };
        let sum = compare(&Bank::new(options).unwrap(), 2_000);
        assert_eq!(sum.functors, 2_000 * functors, "{transfers:?}");
        let aborts = 2_000 - sum.commits;
        assert!(sum.commits > 500 && aborts > 500, "{transfers:?}: {} commits", sum.commits);
    }
}

/// Arguments that no generator draws: one account twice, no money, and accounts that are not there.
#[test]
fn transfers_that_nobody_should_call() {
    for transfers in [bank::Declare::Functors, bank::Declare::OnlyFunctors] {
        let options = bank::Options { sites: 2, accounts: 10, transfers, ..bank::Options::default() };
        let bank = Bank::new(options).unwrap();
        let mut store = PlainStore::load(&bank).unwrap();
        let procedure = bank.generator(1, 0, Part::WHOLE).unwrap().next().procedure;
        let here = |id| bank::AccountName { site: 0, id };
        let calls =
            [(here(1), here(1), 5), (here(1), here(2), 0), (here(1), here(5), 5), (here(9), here(1), 5)];
        for (from, to, amount) in calls {
            let arguments = encode_arguments(&bank::Arguments { from, to, amount }).unwrap();
            let compared = check_functors(bank.catalog(), procedure, &arguments, &mut Rows(&mut store));
            assert!(!compared.unwrap().commits, "{from:?} {to:?} {amount}");
        }
    }
}
