//! Functors: that mistakes in them are found by [`check_functors`], and what happens to those that are not (ALO-102, ALO-144, trap T-09).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::collections::BTreeMap;

use ordain_db::cluster::Cluster;
use ordain_db::data::{ColumnType, DataError, Key, Schema, SchemaBuilder, Table, Value};
use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::ClientId;
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::translation::{Compared, Differences, check_functors};
use ordain_db::procedure::{
    Arithmetic, Catalog, Declaration, Declared, Functor, OwnRow, Procedure, ProcedureId, Procedures, Stop,
    Transaction, encode_arguments,
};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use interpreted::model::Model;
use interpreted::operation::{Declares, Program};
use interpreted::random::{cases, declared_program};
use interpreted::{Database, INTERPRET, arguments};

/// What is wrong with a [`Move`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    GuardPassesAlways,
    GuardStopsAlways,
    GuardSaysElse,
    GuardReadsMore,
    GuardWrites,
    FunctorTakesMore,
    FunctorStops,
    FunctorReadsWrongType,
    RunAddsOther,
    RunWritesMore,
    RunStops,
    FunctorsUncounted,
}

/// Moves an amount from one account to another if there is as much. Returns nothing.
struct Move {
    account: Table,
    mistake: Mistake,
}

/// From, to, how much.
type Arguments = (i32, i32, i64);

impl Move {
    fn check(&self, (from, _, amount): &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        match transaction.get(&self.account.key((*from,))?)? {
            Some(row) if row.int64("balance")? >= *amount => Ok(()),
            Some(_) => Err(Stop::abort("too little")),
            None => Err(Stop::abort("no account")),
        }
    }
}

impl Procedure for Move {
    type Arguments = Arguments;
    type Output = ();

    fn name(&self) -> &str {
        "move"
    }

    fn declare(
        &self,
        (from, to, amount): &Arguments,
        footprint: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        let column = self.account.column("balance")?;
        footprint.functor(&self.account.key((*from,))?, Functor::Own(0))?;
        let add = Functor::Arithmetic { column, operation: Arithmetic::Add(*amount) };
        footprint.functor(&self.account.key((*to,))?, add)?;
        footprint.guard(&self.account.key((*from,))?)?;
        footprint.only_functors();
        Ok(Declared::Complete)
    }

    fn guard(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        let to = self.account.key((arguments.1,))?;
        match self.mistake {
            Mistake::GuardPassesAlways => return Ok(()),
            Mistake::GuardStopsAlways => return Err(Stop::abort("never")),
            Mistake::GuardReadsMore => {
                transaction.get(&to)?;
            }
            Mistake::GuardWrites => transaction.delete(&self.account.key((arguments.0,))?)?,
            _ => {}
        }
        let said = self.check(arguments, transaction);
        said.map_err(|stop| if self.mistake == Mistake::GuardSaysElse { Stop::abort("no") } else { stop })
    }

    fn functors(&self) -> u16 {
        u16::from(self.mistake != Mistake::FunctorsUncounted)
    }

    fn functor(&self, (_, _, amount): &Arguments, _: u16, row: &mut OwnRow<'_>) -> Result<(), Stop> {
        let Some(before) = row.get()? else { return Err(Stop::Invalid("no account".to_owned())) };
        let balance = before.int64("balance")?;
        match self.mistake {
            Mistake::FunctorStops => {
                row.delete()?;
                return Err(Stop::abort("the functor will not"));
            }
            Mistake::FunctorReadsWrongType => {
                before.text("balance")?;
            }
            _ => {}
        }
        let more = i64::from(self.mistake == Mistake::FunctorTakesMore);
        row.set([("balance", Value::Int64(balance - amount - more))])?;
        Ok(())
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.check(arguments, transaction)?;
        let (from, to, amount) = *arguments;
        for (id, by) in [(from, -amount), (to, amount)] {
            let by = if self.mistake == Mistake::RunAddsOther { by * 2 } else { by };
            transaction.change(&self.account, &self.account.key((id,))?, "balance", Arithmetic::Add(by))?;
        }
        match self.mistake {
            Mistake::RunStops => return Err(Stop::abort("too late")),
            Mistake::RunWritesMore => transaction.put(&self.account, &self.account.key((99,))?, (1_i64,))?,
            _ => {}
        }
        Ok(())
    }
}

const MOVE: ProcedureId = ProcedureId(0);

fn catalog(mistake: Mistake) -> (Catalog, Table) {
    let account =
        Table::builder("account").column("id", ColumnType::Int32).column("balance", ColumnType::Int64);
    let mut schema = SchemaBuilder::new();
    let account = schema.table(account.primary_key(&["id"]).partition_by_column("id")).unwrap();
    let schema: Schema = schema.finish();
    let mut procedures = Procedures::new();
    assert_eq!(procedures.register(Move { account: account.clone(), mistake }).unwrap(), MOVE);
    (Catalog { schema, procedures }, account)
}

/// Account 0 has 10, account 1 has 20, account 2 as much as there can be.
fn rows(account: &Table) -> BTreeMap<Key, Vec<u8>> {
    let all = [(0, 10), (1, 20), (2, i64::MAX)];
    all.map(|(id, balance): (i32, i64)| (account.key((id,)).unwrap(), account.row((balance,)).unwrap()))
        .into()
}

fn check(mistake: Mistake, arguments: Arguments) -> Result<Compared, Differences> {
    let (catalog, account) = catalog(mistake);
    check_functors(&catalog, MOVE, &encode_arguments(&arguments).unwrap(), &mut rows(&account))
}

#[test]
fn a_right_translation_has_no_differences() {
    let compared = |commits| Ok(Compared { functors: 2, commits });
    assert_eq!(check(Mistake::None, (0, 1, 10)), compared(true));
    assert_eq!(check(Mistake::None, (0, 1, 11)), compared(false));
    assert_eq!(check(Mistake::None, (7, 1, 1)), compared(false));
    assert_eq!(check(Mistake::None, (0, 7, 1)), compared(true), "nothing is added where there is nothing");
    assert_eq!(check(Mistake::None, (0, 2, 1)), compared(true), "nothing is added where it would not fit");
}

#[test]
fn each_mistake_is_told() {
    let told = |mistake, arguments| check(mistake, arguments).unwrap_err().to_string();
    let is = |mistake, arguments, part: &str| {
        let told = told(mistake, arguments);
        assert!(told.contains(part), "{mistake:?}: {told}");
    };
    is(Mistake::GuardPassesAlways, (0, 1, 11), "the guard passes, but the run stops: Abort(\"too little\")");
    is(Mistake::GuardStopsAlways, (0, 1, 10), "the guard stops, but the run does not: Abort(\"never\")");
    is(
        Mistake::GuardSaysElse,
        (0, 1, 11),
        "the guard stops with Abort(\"no\"), the run with Abort(\"too little\")",
    );
    is(Mistake::GuardReadsMore, (0, 1, 10), "a guard reads only keys that were declared for it");
    is(
        Mistake::GuardWrites,
        (0, 1, 10),
        "a guard reads only keys that were declared for it, and writes none",
    );
    is(Mistake::FunctorTakesMore, (0, 1, 4), "the functor leaves (Int64(5)), the run (Int64(6))");
    is(Mistake::FunctorStops, (0, 1, 4), "the functor stops: Abort(\"the functor will not\")");
    is(Mistake::FunctorReadsWrongType, (0, 1, 4), "of table account: the functor stops: Invalid(");
    is(Mistake::RunAddsOther, (0, 1, 4), "the functor leaves (Int64(24)), the run (Int64(28))");
    is(Mistake::RunWritesMore, (0, 1, 4), "only functors are declared, but the run writes key");
    is(Mistake::RunStops, (0, 1, 4), "the guard passes, but the run stops: Abort(\"too late\")");
    // What no call of a test shows is not found.
    assert!(check(Mistake::GuardPassesAlways, (0, 1, 10)).is_ok());
    // All differences are told.
    assert_eq!(check(Mistake::RunAddsOther, (0, 1, 4)).unwrap_err().0.len(), 2);
}

#[test]
fn what_cannot_be_declared_is_told() {
    let (catalog, account) = catalog(Mistake::None);
    let wrong = check_functors(&catalog, MOVE, &[1], &mut rows(&account)).unwrap_err().to_string();
    assert!(wrong.starts_with("move cannot be declared: "), "{wrong}");
    let wrong = check(Mistake::FunctorsUncounted, (0, 1, 4)).unwrap_err().to_string();
    assert!(wrong.contains("move declares its functor 0, but has 0"), "{wrong}");
}

/// ALO-64: a functor that there is not is refused when the call is made, and not where it would be computed.
#[test]
fn a_functor_that_there_is_not_is_refused() {
    for partitions in [1, 2, 3] {
        let (outcomes, left, stopped, problems) =
            run(Mistake::FunctorsUncounted, partitions, 1, &[(0, 1, 4)]);
        let [Err(Error::Invalid(why))] = &outcomes[..] else { panic!("it is refused: {outcomes:?}") };
        assert!(why.contains("move declares its functor 0, but has 0"), "{why}");
        let (_, account) = catalog(Mistake::None);
        assert_eq!((left, stopped, problems), (rows(&account), 0, vec![]));
    }
}

/// Calls on a cluster of the engine, its rows at the end, and what its nodes tell of functors.
fn run(
    mistake: Mistake,
    partitions: u16,
    seed: u64,
    calls: &[Arguments],
) -> (Vec<Outcome>, BTreeMap<Key, Vec<u8>>, u64, Vec<String>) {
    let (catalog, account) = catalog(mistake);
    let load = |me: PartitionId| -> Box<dyn Storage + Send> {
        let mut storage = MemoryStorage::new();
        for (key, row) in rows(&account) {
            if catalog.schema.owner(&key, partitions).unwrap().includes(me) {
                storage.put(&key, key.hash(), &row, Position::LOADED);
            }
        }
        Box::new(storage)
    };
    let mut cluster = Cluster::build(EngineKind::Aloha, partitions, &catalog, seed, load);
    let client = ClientId { home: PartitionId(0), number: 1 };
    let encoded = calls.iter().map(|arguments| encode_arguments(arguments).unwrap());
    let sent: Vec<_> =
        encoded.map(|arguments| cluster.call(PartitionId(0), client, MOVE, arguments)).collect();
    cluster.run_until_quiet();
    let outcomes = sent.into_iter().map(|request| cluster.reply(request).clone()).collect();
    let statuses = cluster.statuses();
    let stopped = statuses.iter().map(|status| status.functors_stopped).sum();
    let mut problems: Vec<String> =
        statuses.into_iter().filter_map(|status| status.functor_problem).collect();
    problems.sort();
    let at = cluster.open_snapshot(client).unwrap();
    let scanned = cluster.scan(client, at, &account.all()).unwrap();
    let left = scanned.into_iter().map(|(key, row)| (Key::from_bytes(&key), row.to_vec())).collect();
    (outcomes, left, stopped, problems)
}

/// A functor that stops leaves its key alone, under any interleaving and wherever it is computed; those of other keys are applied, the
/// call commits, and the nodes tell.
#[test]
fn functors_that_stop_leave_their_keys_alone_and_are_told() {
    let (_, account) = catalog(Mistake::None);
    let expected = |balances: [i64; 3]| {
        let all = (0..).zip(balances);
        let row = |(id, balance): (i32, i64)| (account.key((id,)).unwrap(), account.row((balance,)).unwrap());
        all.map(row).collect::<BTreeMap<_, _>>()
    };
    let calls = [(0, 1, 4), (1, 0, 3), (0, 1, 1)];
    for (partitions, seed) in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (4, 5)] {
        let place = format!("{partitions} partitions, seed {seed}");
        for (mistake, why) in
            [(Mistake::FunctorStops, "the functor will not"), (Mistake::FunctorReadsWrongType, "balance")]
        {
            let (outcomes, left, stopped, problems) = run(mistake, partitions, seed, &calls);
            assert!(outcomes.iter().all(Result::is_ok), "{place}: {outcomes:?}");
            assert_eq!(left, expected([10 + 3, 20 + 4 + 1, i64::MAX]), "{place}");
            assert_eq!(stopped, 3, "{place}");
            let known = |problem: &String| {
                problem.starts_with("functor of move for key ") && problem.contains(" of table account at e")
            };
            assert!(problems.iter().all(known), "{place}: {problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(why)), "{place}: {problems:?}");
        }
        // Too large a sum.
        let (outcomes, left, stopped, problems) =
            run(Mistake::None, partitions, seed, &[(0, 2, 1), (1, 2, 20)]);
        assert!(outcomes.iter().all(Result::is_ok), "{place}: {outcomes:?}");
        assert_eq!((left, stopped), (expected([9, 0, i64::MAX]), 2), "{place}");
        assert!(problems.len() == 1 && problems[0].contains("exceeds its column"), "{place}: {problems:?}");
        let (_, left, stopped, problems) = run(Mistake::None, partitions, seed, &calls);
        assert_eq!((left, stopped, problems), (expected([8, 22, i64::MAX]), 0, vec![]), "{place}");
    }
}

fn check_programs(programs: &[Program]) {
    let database = Database::new();
    let mut model = Model { rows: database.initial().into_iter().collect() };
    for program in programs {
        let program = Program { declares: Declares::Functors, ..program.clone() };
        let arguments = arguments(&program);
        let compared = check_functors(&database.catalog, INTERPRET, &arguments, &mut model.rows);
        let compared = compared.unwrap_or_else(|wrong| panic!("{program:?}: {wrong}"));
        let outcome = model.call(&database.catalog, &arguments);
        assert_eq!(compared.commits, outcome.is_ok(), "{program:?}");
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn random_programs_do_the_same_by_functors(
        programs in proptest::collection::vec(declared_program(), 1..12),
    ) {
        check_programs(&programs);
    }
}

/// Else the property would say nothing.
#[test]
fn random_programs_have_functors() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let database = Database::new();
    let mut rows: BTreeMap<Key, Vec<u8>> = database.initial().into_iter().collect();
    let (mut functors, mut aborts) = (0, 0);
    for _ in 0..500 {
        let program = declared_program().new_tree(&mut runner).unwrap().current();
        let program = Program { declares: Declares::Functors, ..program };
        let compared = check_functors(&database.catalog, INTERPRET, &arguments(&program), &mut rows).unwrap();
        functors += compared.functors;
        aborts += usize::from(compared.functors > 0 && !compared.commits);
    }
    assert!(functors > 100 && aborts > 10, "{functors} functors, {aborts} calls with functors that abort");
}
