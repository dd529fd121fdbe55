//! Chains of dependent versions, far longer than a stack is deep (Fan and Golab, §IV-C; ALO-88, trap T-17): each transaction waits for what
//! the one before it makes, and all are entered before the first can be computed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::engine::Engine;
use ordain_db::engine::aloha::Aloha;
use ordain_db::hash::{Digest, key_hash};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::Storage;

use interpreted::model::Model;
use interpreted::name::Name;
use interpreted::operation::{Declares, Program};
use interpreted::part::Part;
use interpreted::{Database, arguments};

const LENGTH: u32 = 100_000;

fn deliver(part: &mut Part<'_, Aloha>, index: u32, arguments: &Bytes) {
    part.deliver(Position { epoch: Epoch(1), origin: PartitionId(0), index }, arguments);
}

/// That nothing is left of all the work.
fn assert_is_at_rest(part: &Part<'_, Aloha>) {
    let mut left = String::new();
    part.engine.describe(&mut left);
    assert_eq!((part.engine.live(), left.as_str()), (0, ""), "{}", part.me);
}

fn row(part: &Part<'_, Aloha>, name: &Name) -> Vec<u8> {
    let key = name.key(&part.database.tables);
    part.storage.row(part.storage.locate(&key, key_hash(&key)).unwrap()).to_vec()
}

fn program(declares: Declares, texts: &[&str]) -> Program {
    Program { declares, operations: texts.iter().map(|text| text.parse().unwrap()).collect() }
}

fn rows(database: &Database) -> Vec<(Key, Vec<u8>)> {
    [0, 1].map(|site| (Name::Account(site, 0).key(&database.tables), database.row(1))).to_vec()
}

/// One key with all its versions pending: the first waits for the other partition.
fn one_key(declares: Declares) {
    let database = Database::new();
    let rows = rows(&database);
    let mut parts = [0, 1].map(|me| Part::new(me, &database, &rows, Aloha::new()));
    let first = program(Declares::Exactly, &["abort-if-missing account/1/0", "set account/0/0 7"]);
    let add = Bytes::from(arguments(&program(declares, &["add account/0/0 1"])));
    for part in &mut parts {
        deliver(part, 0, &arguments(&first).into());
        (1..=LENGTH).for_each(|index| deliver(part, index, &add));
    }
    assert_eq!(parts[0].engine.live(), LENGTH as usize + 1);
    let pushed = parts[1].reads();
    parts[0].receive(pushed);
    parts.iter().for_each(assert_is_at_rest);
    // The row keeps its other columns.
    assert_eq!(row(&parts[0], &Name::Account(0, 0)), database.row(7 + i64::from(LENGTH)));
}

#[test]
fn one_key_is_computed_version_by_version() {
    one_key(Declares::Exactly);
}

#[test]
fn one_key_with_functors_is_computed_version_by_version() {
    one_key(Declares::Functors);
}

/// Each reads what the one before has written at the other partition: as many messages go to and fro as there are transactions, none asks,
/// and nothing is run twice.
#[test]
fn a_chain_goes_to_and_fro_between_partitions() {
    let database = Database::new();
    let rows = rows(&database);
    let mut model = Model { rows: rows.iter().cloned().collect() };
    let mut parts = [0, 1].map(|me| Part::new(me, &database, &rows, Aloha::new()));
    let there =
        Bytes::from(arguments(&program(Declares::Exactly, &["get account/0/0", "set account/1/0 mixed"])));
    let back =
        Bytes::from(arguments(&program(Declares::Exactly, &["get account/1/0", "set account/0/0 mixed"])));
    for index in 0..LENGTH {
        let arguments = if index % 2 == 0 { &there } else { &back };
        model.call(&database.catalog, arguments).unwrap();
        parts.iter_mut().for_each(|part| deliver(part, index, arguments));
    }
    assert!(parts.iter().all(|part| part.engine.live() > LENGTH as usize / 2 - 2));
    let (mut exchanges, runs) = (0, database.runs());
    while parts.iter().any(|part| part.engine.live() > 0) {
        let [first, second] = parts.each_mut().map(Part::reads);
        assert!(!first.is_empty() || !second.is_empty(), "stuck after {exchanges} exchanges");
        parts[0].receive(second);
        parts[1].receive(first);
        exchanges += 1;
    }
    parts.iter().for_each(assert_is_at_rest);
    assert_eq!(exchanges, LENGTH);
    assert_eq!(database.runs() - runs, LENGTH as usize);
    let mut digest = Digest::default();
    for site in [0, 1] {
        let name = Name::Account(site, 0);
        digest.add(&name.key(&database.tables), &row(&parts[site as usize], &name));
    }
    assert_eq!(digest, model.digest());
}
