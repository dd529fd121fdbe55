//! An engine at rest holds nothing of what it has done: memory does not grow with the transactions that have finished.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::fmt::Debug;

use bytes::Bytes;
use ordain_db::engine::Engine;
use ordain_db::engine::calvin::Calvin;
use ordain_db::engine::serial::Serial;
use ordain_db::execution::{Call, Context, Effects};
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::Footprint;
use ordain_db::storage::memory::MemoryStorage;

use interpreted::operation::{Declares, Program};
use interpreted::{Database, INTERPRET, arguments};

const PARTITIONS: u16 = 2;

/// One partition: an engine and what it works with.
struct Part<'a, E> {
    me: PartitionId,
    database: &'a Database,
    engine: E,
    storage: MemoryStorage,
    effects: Effects,
}

impl<E: Engine> Part<'_, E> {
    fn with<T>(&mut self, run: impl FnOnce(&mut E, &mut Context<'_>) -> T) -> T {
        let mut context = Context {
            me: self.me,
            partitions: PARTITIONS,
            catalog: &self.database.catalog,
            storage: &mut self.storage,
            effects: &mut self.effects,
        };
        run(&mut self.engine, &mut context)
    }

    fn deliver(&mut self, number: u64, program: &Program) {
        let Database { catalog, .. } = self.database;
        let arguments = arguments(program);
        let mut footprint = Box::<Footprint>::default();
        catalog
            .procedures
            .declare(INTERPRET, &arguments, &catalog.schema, PARTITIONS, &mut footprint)
            .unwrap();
        let client = ClientId { home: PartitionId(0), number: 0 };
        let call = Call {
            position: Position { epoch: Epoch(100_000 + number), origin: PartitionId(0), index: 0 },
            request: RequestId { client, sequence: number },
            procedure: INTERPRET,
            arguments: arguments.into(),
            footprint,
            reconnoitred: false,
        };
        self.with(|engine, context| engine.deliver(call, context));
    }

    fn receive(&mut self, from: PartitionId, reads: Bytes) {
        self.with(|engine, context| engine.receive(from, &reads, context)).unwrap();
    }

    /// The read results for the other partition since the last time.
    fn reads(&mut self) -> Bytes {
        self.effects.footprints.clear();
        self.effects.reports.clear();
        std::mem::take(&mut self.effects.reads[usize::from(1 - self.me.0)]).into()
    }
}

/// Runs transactions with two active participants, some of which wait for locks, and says how much each engine shows of
/// itself in the end.
fn size_after<E: Engine + Debug>(transactions: u64, engine: fn() -> E) -> [usize; 2] {
    let database = Database::new();
    let program = |number: u64| {
        let put = format!("put account/0/{} 1", number % 3);
        let texts = [&put, "scan account/1", "add account/1/1 1", "get account/0/1"];
        let operations = texts.iter().map(|text| text.parse().unwrap());
        Program { declares: Declares::Exactly, operations: operations.collect() }
    };
    let mut parts = [0, 1].map(|me| Part {
        me: PartitionId(me),
        database: &database,
        engine: engine(),
        storage: MemoryStorage::new(),
        effects: Effects::new(PARTITIONS),
    });
    for number in 1..=transactions {
        parts.iter_mut().for_each(|part| part.deliver(number, &program(number)));
        if number % 10 == 0 || number == transactions {
            for round in 0.. {
                if parts.iter().all(|part| part.engine.live() == 0) {
                    break;
                }
                assert!(round < 100, "the engines are stuck");
                let [first, second] = parts.each_mut().map(Part::reads);
                parts[0].receive(PartitionId(1), second);
                parts[1].receive(PartitionId(0), first);
            }
        }
    }
    parts.map(|part| format!("{:?}", part.engine).len())
}

/// Ten times the transactions leave an engine as large as it was, but for a digit more in a counter.
fn forgets_what_has_finished<E: Engine + Debug>(engine: fn() -> E) {
    const COUNTER_DIGITS: usize = 4;
    let (few, many) = (size_after(120, engine), size_after(1200, engine));
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + COUNTER_DIGITS, "{few} characters grew to {many}");
    }
}

#[test]
fn calvin_forgets_what_has_finished() {
    forgets_what_has_finished(Calvin::new);
}

#[test]
fn serial_forgets_what_has_finished() {
    forgets_what_has_finished(Serial::new);
}
