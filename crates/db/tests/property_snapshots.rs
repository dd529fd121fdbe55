//! A snapshot that is opened and read among concurrent transfers always shows the same total.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use ordain_db::cluster::Cluster;
use ordain_db::engine::EngineKind;
use ordain_db::message::{ClientId, ClientRequest};
use ordain_db::position::{PartitionId, Position};
use proptest::prelude::*;

use interpreted::name::{Name, Span};
use interpreted::operation::{Amount, Declares, Operation, Program, Target};
use interpreted::procedure::content;
use interpreted::random::cases;
use interpreted::{Database, INTERPRET, arguments};

/// Rows with money: one table of each placement, but the replicated one, whose rows say where money goes.
fn purse() -> impl Strategy<Value = Name> {
    prop_oneof![
        (0..3_i32, 0..3_i64).prop_map(|(site, number)| Name::Account(site, number)),
        ("[afk]", 0..2).prop_map(|(word, number)| Name::Word(format!("{word}{number}"))),
        (0..7_i64, 0..2_i32).prop_map(|(id, part)| Name::Line(id * 5, part)),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    let span = prop_oneof![
        (0..3_i32).prop_map(Span::Site),
        Just(Span::Words),
        (0..7_i64).prop_map(|id| Span::Parts(id * 5)),
        Just(Span::Accounts),
    ];
    prop_oneof![
        3 => purse().prop_map(Target::Named),
        1 => (span, 0..3_i32).prop_map(|(span, item)| Target::At(span, Name::Item(item))),
    ]
}

/// A transfer, the opening of an empty purse, or a change of where dependent transfers go.
fn program() -> impl Strategy<Value = Program> {
    let transfer = (target(), target(), 1..200_i64).prop_map(|(from, to, amount)| {
        vec![
            Operation::AbortIfMissing(from.clone()),
            Operation::AbortIfMissing(to.clone()),
            Operation::AbortIfBelow(from.clone(), amount),
            Operation::Add(from, -amount),
            Operation::Add(to, amount),
        ]
    });
    let opening = target().prop_map(|purse| {
        vec![Operation::AbortIfPresent(purse.clone()), Operation::Put(purse, Amount::Constant(0))]
    });
    let index = (0..3_i32, 0..12_i64).prop_map(|(item, value)| {
        vec![Operation::Put(Target::Named(Name::Item(item)), Amount::Constant(value))]
    });
    let operations = prop_oneof![8 => transfer, 1 => opening, 1 => index];
    (operations, any::<bool>()).prop_map(|(operations, declared)| {
        let declares = if declared { Declares::Exactly } else { Declares::Nothing };
        Program { declares, operations }
    })
}

/// What a client does, and how many steps the cluster makes afterwards; after `None` a snapshot is opened and read.
type Action = (u16, Option<Program>, usize);

fn action() -> impl Strategy<Value = Action> {
    (0..6_u16, proptest::option::weighted(0.9, program()), 0..6_usize)
}

fn is_money(database: &Database, key: &[u8]) -> bool {
    !database.tables.item.all().contains(key)
}

fn total<'a>(database: &Database, rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> i64 {
    let money = rows.filter(|(key, _)| is_money(database, key));
    money.map(|(_, row)| content(&database.tables.item.read(row)).unwrap().value).sum()
}

fn total_at(database: &Database, cluster: &mut Cluster, at: Position) -> i64 {
    let client = ClientId { home: PartitionId(0), number: 99 };
    let tables = &database.tables;
    let mut rows = Vec::new();
    for table in [&tables.account, &tables.word, &tables.line] {
        rows.extend(cluster.scan(client, at, &table.all()).unwrap());
    }
    total(database, rows.iter().map(|(key, row)| (&key[..], &row[..])))
}

fn check(actions: &[Action], engine: EngineKind, partitions: u16, seed: u64) {
    let database = Database::new();
    let initial = database.initial();
    let expected = total(&database, initial.iter().map(|(key, row)| (key.bytes(), row.as_slice())));
    let mut cluster = Cluster::build(engine, partitions, &database.catalog, seed, |me| {
        Box::new(database.load(&initial, me, partitions))
    });
    let mut open = Vec::new();
    for (number, program, steps) in actions {
        let home = PartitionId(number % partitions);
        let client = ClientId { home, number: u64::from(*number) };
        match program {
            Some(program) => {
                cluster.call(home, client, INTERPRET, arguments(program));
                (0..*steps).for_each(|_| {
                    cluster.step();
                });
            }
            None => {
                let at = cluster.open_snapshot(client).unwrap();
                assert_eq!(
                    total_at(&database, &mut cluster, at),
                    expected,
                    "{engine:?} on {partitions} at {at}"
                );
                open.push(at);
            }
        }
    }
    cluster.run_until_quiet();
    let last = cluster.open_snapshot(ClientId { home: PartitionId(0), number: 0 }).unwrap();
    for at in open.into_iter().chain([last]) {
        assert_eq!(
            total_at(&database, &mut cluster, at),
            expected,
            "{engine:?} on {partitions} at {at}, later"
        );
        cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(at));
    }
    cluster.run_until_quiet();
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn snapshots_conserve_the_total(actions in proptest::collection::vec(action(), 1..150), seed: u64) {
        for engine in EngineKind::ALL {
            for partitions in [1, 2, 3, 8] {
                check(&actions, engine, partitions, seed);
            }
        }
    }
}
