//! Chains of dependent versions, far longer than a stack is deep (Fan and Golab, §IV-C; ALO-88, trap T-17): each transaction waits for what
//! the one before it makes, and all are entered before the first can be computed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::engine::Engine;
use ordain_db::engine::aloha::Aloha;
use ordain_db::execution::{Call, Context, Effects};
use ordain_db::hash::{Digest, key_hash};
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::Footprint;
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

use interpreted::model::Model;
use interpreted::name::Name;
use interpreted::operation::{Declares, Program};
use interpreted::{Database, INTERPRET, arguments};

const PARTITIONS: u16 = 2;
const LENGTH: u32 = 100_000;

/// One partition: an engine and what it works with.
struct Part {
    me: PartitionId,
    database: Database,
    engine: Aloha,
    storage: MemoryStorage,
    effects: Effects,
}

impl Part {
    fn new(me: u16, rows: &[(Key, Vec<u8>)]) -> Part {
        let (me, database) = (PartitionId(me), Database::new());
        let storage = database.load(rows, me, PARTITIONS);
        Part { me, database, engine: Aloha::new(), storage, effects: Effects::new(PARTITIONS) }
    }

    fn with<T>(&mut self, run: impl FnOnce(&mut Aloha, &mut Context<'_>) -> T) -> T {
        let mut context = Context {
            me: self.me,
            partitions: PARTITIONS,
            catalog: &self.database.catalog,
            storage: &mut self.storage,
            effects: &mut self.effects,
        };
        run(&mut self.engine, &mut context)
    }

    fn deliver(&mut self, index: u32, arguments: &Bytes) {
        let catalog = &self.database.catalog;
        let mut footprint = self.effects.footprints.pop().unwrap_or_default();
        let declared =
            catalog.procedures.declare(INTERPRET, arguments, &catalog.schema, PARTITIONS, &mut footprint);
        declared.unwrap();
        if !Footprint::participants(&footprint, PartitionId(0)).contains(self.me) {
            return;
        }
        let client = ClientId { home: PartitionId(0), number: 0 };
        let call = Call {
            position: Position { epoch: Epoch(1), origin: PartitionId(0), index },
            request: RequestId { client, sequence: u64::from(index) },
            procedure: INTERPRET,
            arguments: arguments.clone(),
            footprint,
            reconnoitred: false,
        };
        self.with(|engine, context| engine.deliver(call, context));
    }

    /// What it has pushed to the other partition since the last time.
    fn pushed(&mut self) -> Bytes {
        let messages = std::mem::take(&mut self.effects.reads[usize::from(1 - self.me.0)]);
        messages.into_iter().flat_map(|(_, reads)| reads).collect::<Vec<u8>>().into()
    }

    fn receive(&mut self, reads: Bytes) {
        if reads.is_empty() {
            return;
        }
        let from = PartitionId(1 - self.me.0);
        self.with(|engine, context| {
            engine.receive(from, &reads, context).unwrap();
            engine.settle(context);
        });
        self.effects.footprints.truncate(16);
        self.effects.reports.clear();
    }

    /// That nothing is left of all the work.
    fn assert_is_at_rest(&self) {
        let mut left = String::new();
        self.engine.describe(&mut left);
        assert_eq!((self.engine.live(), left.as_str()), (0, ""), "{}", self.me);
    }

    fn row(&self, name: &Name) -> Vec<u8> {
        let key = name.key(&self.database.tables);
        self.storage.row(self.storage.locate(&key, key_hash(&key)).unwrap()).to_vec()
    }
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
    let mut parts = [0, 1].map(|me| Part::new(me, &rows));
    let first = program(Declares::Exactly, &["abort-if-missing account/1/0", "set account/0/0 7"]);
    let add = Bytes::from(arguments(&program(declares, &["add account/0/0 1"])));
    for part in &mut parts {
        part.deliver(0, &arguments(&first).into());
        (1..=LENGTH).for_each(|index| part.deliver(index, &add));
    }
    assert_eq!(parts[0].engine.live(), LENGTH as usize + 1);
    let pushed = parts[1].pushed();
    parts[0].receive(pushed);
    parts.iter().for_each(Part::assert_is_at_rest);
    // The row keeps its other columns.
    assert_eq!(parts[0].row(&Name::Account(0, 0)), database.row(7 + i64::from(LENGTH)));
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
    let mut parts = [0, 1].map(|me| Part::new(me, &rows));
    let there =
        Bytes::from(arguments(&program(Declares::Exactly, &["get account/0/0", "set account/1/0 mixed"])));
    let back =
        Bytes::from(arguments(&program(Declares::Exactly, &["get account/1/0", "set account/0/0 mixed"])));
    for index in 0..LENGTH {
        let arguments = if index % 2 == 0 { &there } else { &back };
        model.call(&database.catalog, arguments).unwrap();
        parts.iter_mut().for_each(|part| part.deliver(index, arguments));
    }
    assert!(parts.iter().all(|part| part.engine.live() > LENGTH as usize / 2 - 2));
    let mut exchanges = 0;
    while parts.iter().any(|part| part.engine.live() > 0) {
        let [first, second] = parts.each_mut().map(Part::pushed);
        assert!(!first.is_empty() || !second.is_empty(), "stuck after {exchanges} exchanges");
        parts[0].receive(second);
        parts[1].receive(first);
        exchanges += 1;
    }
    parts.iter().for_each(Part::assert_is_at_rest);
    assert_eq!(exchanges, LENGTH);
    let runs: usize = parts.iter().map(|part| part.database.runs()).sum();
    assert_eq!(runs, LENGTH as usize);
    let mut digest = Digest::default();
    for site in [0, 1] {
        let name = Name::Account(site, 0);
        digest.add(&name.key(&database.tables), &parts[site as usize].row(&name));
    }
    assert_eq!(digest, model.digest());
}
