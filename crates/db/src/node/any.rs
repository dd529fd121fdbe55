//! The one place where an engine is chosen by its name.

use ordain_consensus::ReplicatedLog;

use super::two_phase::TwoPhaseNode;
use super::{Event, Node, NodeConfiguration, Outbox, Resumed, Status};
use crate::engine::aloha::Aloha;
use crate::engine::calvin::{Calvin, CalvinVll};
use crate::engine::serial::Serial;
use crate::engine::two_phase::CommitProtocol;
use crate::engine::{Engine, EngineKind};
use crate::error::Fatal;
use crate::execution::Executions;
use crate::failpoint::{Failpoints, NoFailpoints};
use crate::gateway::scouting::Scouting;
use crate::position::Epoch;
use crate::procedure::Catalog;
use crate::storage::Storage;

/// What a node of any engine does: a driver holds it without knowing which.
pub trait AnyNode: Send {
    /// See [`Node::step`].
    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal>;
    /// See [`Node::resume`].
    fn resume(&mut self, resumed: Resumed);
    /// See [`Node::know_checkpoints`].
    fn know_checkpoints(&mut self, on_disk: &[(Epoch, u64)]);
    /// See [`Node::deadline`].
    fn deadline(&self) -> Option<u64>;
    /// See [`Node::is_idle`].
    fn is_idle(&self) -> bool;
    /// See [`Node::status`].
    fn status(&self, digest: bool) -> Status;
    /// See [`Node::executions`].
    fn executions(&self) -> Executions;
    /// See [`Node::scouting`]; nothing for an engine that looks for footprints as it locks.
    fn scouting(&self) -> Scouting {
        Scouting::default()
    }
    /// See [`Node::starts`]; 0 for a node without epochs.
    fn starts(&self) -> u64 {
        0
    }
    /// See [`Node::executed`]; `None` for a node without epochs.
    fn executed(&mut self) -> Option<Epoch>;
    /// See [`Node::describe`].
    fn describe(&self) -> String;
}

impl<E: Engine + Send> AnyNode for Node<E> {
    fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal> {
        Node::step(self, now, events, outbox)
    }

    fn resume(&mut self, resumed: Resumed) {
        Node::resume(self, resumed);
    }

    fn know_checkpoints(&mut self, on_disk: &[(Epoch, u64)]) {
        Node::know_checkpoints(self, on_disk);
    }

    fn deadline(&self) -> Option<u64> {
        Node::deadline(self)
    }

    fn is_idle(&self) -> bool {
        Node::is_idle(self)
    }

    fn status(&self, digest: bool) -> Status {
        Node::status(self, digest)
    }

    fn executions(&self) -> Executions {
        Node::executions(self)
    }

    fn scouting(&self) -> Scouting {
        Node::scouting(self)
    }

    fn starts(&self) -> u64 {
        Node::starts(self)
    }

    fn executed(&mut self) -> Option<Epoch> {
        Some(Node::executed(self))
    }

    fn describe(&self) -> String {
        Node::describe(self)
    }
}

/// Makes a node that runs the engine.
pub fn node(
    engine: EngineKind,
    configuration: &NodeConfiguration,
    catalog: Catalog,
    storage: Box<dyn Storage + Send>,
    log: Option<Box<dyn ReplicatedLog>>,
) -> Box<dyn AnyNode> {
    node_with::<NoFailpoints>(engine, configuration, catalog, storage, log)
}

/// Makes a node that runs the engine and makes mistakes.
pub fn node_with<F: Failpoints>(
    engine: EngineKind,
    configuration: &NodeConfiguration,
    catalog: Catalog,
    storage: Box<dyn Storage + Send>,
    log: Option<Box<dyn ReplicatedLog>>,
) -> Box<dyn AnyNode> {
    match engine {
        EngineKind::Serial => {
            Box::new(Node::new(configuration, catalog, Serial::<F>::default(), storage, log))
        }
        EngineKind::Calvin => {
            Box::new(Node::new(configuration, catalog, Calvin::<F>::default(), storage, log))
        }
        EngineKind::CalvinVll => {
            Box::new(Node::new(configuration, catalog, CalvinVll::<F>::default(), storage, log))
        }
        EngineKind::Aloha => Box::new(Node::new(configuration, catalog, Aloha::<F>::default(), storage, log)),
        EngineKind::TwoPhase => {
            let protocol = CommitProtocol::TwoPhase;
            Box::new(TwoPhaseNode::<F>::new(protocol, configuration, catalog, storage, log))
        }
        EngineKind::TwoPhaseWithoutCommitProtocol => {
            let protocol = CommitProtocol::None;
            Box::new(TwoPhaseNode::<F>::new(protocol, configuration, catalog, storage, log))
        }
    }
}
