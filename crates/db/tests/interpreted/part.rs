//! One of two partitions: an engine and what it works with, driven by hand.

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::engine::Engine;
use ordain_db::execution::{Call, Context, Effects};
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::Footprint;
use ordain_db::storage::memory::MemoryStorage;

use super::{Database, INTERPRET};

const PARTITIONS: u16 = 2;

pub(crate) struct Part<'a, E> {
    pub(crate) me: PartitionId,
    pub(crate) database: &'a Database,
    pub(crate) engine: E,
    pub(crate) storage: MemoryStorage,
    pub(crate) effects: Effects,
}

impl<'a, E: Engine> Part<'a, E> {
    pub(crate) fn new(me: u16, database: &'a Database, rows: &[(Key, Vec<u8>)], engine: E) -> Part<'a, E> {
        let me = PartitionId(me);
        let storage = database.load(rows, me, PARTITIONS);
        Part { me, database, engine, storage, effects: Effects::new(PARTITIONS) }
    }

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

    /// Delivers a call at a position, if the partition takes part in it.
    pub(crate) fn deliver(&mut self, position: Position, arguments: &Bytes) {
        let catalog = &self.database.catalog;
        let mut footprint = Box::<Footprint>::default();
        let declared =
            catalog.procedures.declare(INTERPRET, arguments, &catalog.schema, PARTITIONS, &mut footprint);
        declared.unwrap();
        if !footprint.participants(PartitionId(0)).contains(self.me) {
            return;
        }
        let client = ClientId { home: PartitionId(0), number: 0 };
        let call = Call {
            position,
            request: RequestId { client, sequence: position.epoch.0 << 32 | u64::from(position.index) },
            procedure: INTERPRET,
            arguments: arguments.clone(),
            footprint,
            reconnoitred: false,
        };
        self.with(|engine, context| engine.deliver(call, context));
    }

    /// Takes read results of the other partition.
    pub(crate) fn receive(&mut self, reads: Bytes) {
        let from = PartitionId(1 - self.me.0);
        self.with(|engine, context| {
            engine.receive(from, &reads, context).unwrap();
            engine.settle(context);
        });
    }

    /// The read results for the other partition since the last time.
    pub(crate) fn reads(&mut self) -> Bytes {
        self.effects.footprints.clear();
        self.effects.reports.clear();
        let messages = std::mem::take(&mut self.effects.reads[usize::from(1 - self.me.0)]);
        messages.into_iter().flat_map(|(_, reads)| reads).collect::<Vec<u8>>().into()
    }
}
