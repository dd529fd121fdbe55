//! Observes which order a cluster chose: an engine that notes what is delivered to the engine within it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use ordain_db::cluster::Cluster;
use ordain_db::engine::aloha::Aloha;
use ordain_db::engine::calvin::{Calvin, CalvinVll};
use ordain_db::engine::serial::Serial;
use ordain_db::engine::{Engine, EngineKind};
use ordain_db::error::Fatal;
use ordain_db::execution::{Call, Context, Effects, Executions, Waiting};
use ordain_db::message::{RequestId, Verdict, Work};
use ordain_db::node::{AnyNode, Event, Node, NodeConfiguration, Outbox, Resumed, Status};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::{Catalog, Footprint};
use ordain_db::storage::memory::MemoryStorage;

use crate::interpreted::{Database, INTERPRET};

/// A transaction as the order has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ordered {
    pub(crate) request: RequestId,
    pub(crate) arguments: Bytes,
    /// The encoded footprint, which does not depend on the number of partitions.
    pub(crate) footprint: Vec<u8>,
    pub(crate) reconnoitred: bool,
}

/// A transaction, where it stands in the order, and which partition it was delivered to.
type Observation = (PartitionId, Position, Ordered);

struct Observed<E> {
    engine: E,
    observations: Sender<Observation>,
    last: Position,
}

impl<E: Engine> Engine for Observed<E> {
    type Failpoints = E::Failpoints;

    fn resume(&mut self, at: Position) {
        self.last = at;
        self.engine.resume(at);
    }

    fn deliver(&mut self, call: Call, context: &mut Context<'_>) {
        assert!(call.position > self.last, "{} comes after {}", call.position, self.last);
        self.last = call.position;
        let ordered = Ordered {
            request: call.request,
            arguments: call.arguments.clone(),
            footprint: call.footprint.encode(),
            reconnoitred: call.reconnoitred,
        };
        self.observations.send((context.me, call.position, ordered)).unwrap();
        self.engine.deliver(call, context);
    }

    fn receive(&mut self, from: PartitionId, reads: &Bytes, context: &mut Context<'_>) -> Result<(), Fatal> {
        self.engine.receive(from, reads, context)
    }

    fn settle(&mut self, context: &mut Context<'_>) {
        self.engine.settle(context);
    }

    fn live(&self) -> usize {
        self.engine.live()
    }

    fn oldest_live(&mut self) -> Option<Position> {
        self.engine.oldest_live()
    }

    fn waiting(&self, most: usize) -> Vec<Waiting<'_>> {
        self.engine.waiting(most)
    }

    fn describe(&self, out: &mut String) {
        self.engine.describe(out);
    }
}

/// A node without an order in advance, which tells what it has committed, and where.
struct Traced {
    node: Box<dyn AnyNode>,
    me: PartitionId,
    catalog: Catalog,
    observations: Sender<Observation>,
}

impl Traced {
    /// Whose home the node is, that one tells of a transaction.
    fn observe(&self, position: Position, request: RequestId, work: Work) {
        let Work::Call { procedure, arguments, reconnoitred } = work else { return };
        let footprint = reconnoitred.as_ref().map_or_else(
            || {
                let Catalog { schema, procedures } = &self.catalog;
                let mut footprint = Footprint::default();
                procedures.declare(procedure, &arguments, schema, 1, &mut footprint).unwrap();
                footprint.encode()
            },
            |reconnoitred| reconnoitred.footprint.to_vec(),
        );
        let ordered = Ordered { request, arguments, footprint, reconnoitred: reconnoitred.is_some() };
        self.observations.send((self.me, position, ordered)).unwrap();
    }
}

impl AnyNode for Traced {
    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal> {
        let more = self.node.step(now, events, outbox)?;
        for (epoch, calls) in outbox.trace.closed.drain(..) {
            for (index, call) in calls {
                let position = Position { epoch, origin: self.me, index };
                self.observe(position, call.request, call.work);
            }
        }
        outbox.trace.executed.clear();
        Ok(more)
    }

    fn resume(&mut self, resumed: Resumed) {
        self.node.resume(resumed);
    }

    fn know_checkpoints(&mut self, on_disk: &[(Epoch, u64)]) {
        self.node.know_checkpoints(on_disk);
    }

    fn deadline(&self) -> Option<u64> {
        self.node.deadline()
    }

    fn is_idle(&self) -> bool {
        self.node.is_idle()
    }

    fn status(&self, digest: bool) -> Status {
        self.node.status(digest)
    }

    fn executed(&mut self) -> Option<Epoch> {
        self.node.executed()
    }

    fn executions(&self) -> Executions {
        self.node.executions()
    }

    fn describe(&self) -> String {
        self.node.describe()
    }
}

/// What a cluster delivered to its engines.
pub(crate) struct Observer(Receiver<Observation>);

impl Observer {
    /// The order so far. All partitions that take part in a transaction were given the same one.
    pub(crate) fn order(&self) -> BTreeMap<Position, Ordered> {
        let mut order: BTreeMap<Position, Ordered> = BTreeMap::new();
        for (partition, position, ordered) in self.0.try_iter() {
            let known = order.entry(position).or_insert_with(|| ordered.clone());
            assert_eq!(*known, ordered, "{partition} was given another transaction at {position}");
        }
        order
    }
}

/// A cluster with the initial rows whose order is observed.
pub(crate) fn cluster(
    database: &Database,
    engine: EngineKind,
    partitions: u16,
    seed: u64,
) -> (Cluster, Observer) {
    let (observations, receiver) = channel();
    let rows = database.initial();
    let nodes = (0..partitions).map(PartitionId).map(|me| -> Box<dyn AnyNode> {
        let configuration = NodeConfiguration::new(me, partitions);
        let storage = Box::new(database.load(&rows, me, partitions));
        let (observations, catalog) = (observations.clone(), database.catalog.clone());
        let last = Position::LOADED;
        match engine {
            EngineKind::Serial => {
                let engine = Observed { engine: Serial::new(), observations, last };
                Box::new(Node::new(&configuration, catalog, engine, storage, None))
            }
            EngineKind::Calvin => {
                let engine = Observed { engine: Calvin::new(), observations, last };
                Box::new(Node::new(&configuration, catalog, engine, storage, None))
            }
            EngineKind::CalvinVll => {
                let engine = Observed { engine: <CalvinVll>::default(), observations, last };
                Box::new(Node::new(&configuration, catalog, engine, storage, None))
            }
            EngineKind::Aloha => {
                let engine = Observed { engine: Aloha::new(), observations, last };
                Box::new(Node::new(&configuration, catalog, engine, storage, None))
            }
            EngineKind::TwoPhase | EngineKind::TwoPhaseWithoutCommitProtocol => {
                let configuration = NodeConfiguration { trace: true, ..configuration };
                let node = ordain_db::node::node(engine, &configuration, catalog.clone(), storage, None);
                Box::new(Traced { node, me, catalog, observations })
            }
        }
    });
    (Cluster::new(nodes.collect(), seed), Observer(receiver))
}

/// The serial engine on one partition, given an order instead of choosing one.
pub(crate) struct Oracle<'a> {
    database: &'a Database,
    engine: Serial,
    pub(crate) storage: MemoryStorage,
}

impl Oracle<'_> {
    pub(crate) fn new(database: &Database) -> Oracle<'_> {
        let storage = database.load(&database.initial(), PartitionId(0), 1);
        Oracle { database, engine: Serial::new(), storage }
    }

    /// Runs the next transaction of the order.
    pub(crate) fn run(&mut self, position: Position, ordered: &Ordered) -> (RequestId, Verdict) {
        let mut footprint = Box::<Footprint>::default();
        footprint.decode(&ordered.footprint, &self.database.catalog.schema, 1).unwrap();
        // One partition is the origin of all.
        let index = u32::from(position.origin.0) << 24 | position.index;
        let call = Call {
            position: Position { epoch: position.epoch, origin: PartitionId(0), index },
            request: ordered.request,
            procedure: INTERPRET,
            arguments: ordered.arguments.clone(),
            footprint,
            reconnoitred: ordered.reconnoitred,
        };
        let mut effects = Effects::new(1);
        let mut context = Context {
            me: PartitionId(0),
            partitions: 1,
            catalog: &self.database.catalog,
            storage: &mut self.storage,
            effects: &mut effects,
        };
        self.engine.deliver(call, &mut context);
        let report = effects.reports.pop().expect("one partition has nothing to wait for");
        assert!(effects.reports.is_empty());
        (report.request, report.verdict)
    }
}
