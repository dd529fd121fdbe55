//! Engines: how a partition executes the transactions that the order gives it. One folder, one paper; siblings that do not
//! know each other.
//!
//! | engine | executes | paper |
//! |---|---|---|
//! | [`serial`] | one transaction at a time, in order | H-Store's mode in Ren et al. §2.1, §3.1 (DET-07); the oracle of the others |
//! | [`calvin`] | concurrently under ordered locks | Calvin §3.2 |
//! | [`aloha`] | by functors over versions: nobody excludes anybody, readers find the version before their position | Fan and Golab |
//! | [`two_phase`] | concurrently under two-phase locks, without an order in advance | Ren et al. §3.1 |
//! | `calvin-vll`: [`calvin`] with another [lock manager](calvin::lock_manager::vll) | likewise | Ren et al. §3.1.1 (DET-05) |

pub mod aloha;
pub mod calvin;
mod live_table;
pub mod serial;
pub mod two_phase;

use bytes::Bytes;

use crate::error::Fatal;
use crate::execution::{Call, Context, Waiting};
use crate::failpoint::Failpoints;
use crate::position::{PartitionId, Position};

/// An engine: a state machine fed with ordered transactions and with what other partitions send.
///
/// Every method runs to completion and never blocks; a transaction that must wait is a phase in the engine's own table.
pub trait Engine {
    /// Which mistakes the node is to make: [`NoFailpoints`](crate::failpoint::NoFailpoints) but in the simulator.
    type Failpoints: Failpoints;

    /// Tells a new engine that all transactions through a position have been executed already: those of a checkpoint.
    fn resume(&mut self, at: Position);

    /// Takes the next transaction of the order. Transactions come in ascending order of position.
    fn deliver(&mut self, call: Call, context: &mut Context<'_>);

    /// Takes read results that another participant pushed.
    ///
    /// # Errors
    /// When they are malformed, which means that the cluster is misconfigured: the node must stop.
    fn receive(&mut self, from: PartitionId, reads: &Bytes, context: &mut Context<'_>) -> Result<(), Fatal>;

    /// Does what is done once for all that a step has brought: nothing else is left to do in it.
    fn settle(&mut self, _context: &mut Context<'_>) {}

    /// Number of delivered transactions that have not finished here.
    fn live(&self) -> usize;

    /// The position of the first delivered transaction that has not finished here. All before it have.
    fn oldest_live(&mut self) -> Option<Position>;

    /// The delivered transactions that wait here, the oldest first, at most so many.
    fn waiting(&self, most: usize) -> Vec<Waiting<'_>>;

    /// The engine's state, for scripts and people: a line per live transaction with its phase.
    fn describe(&self, out: &mut String) {
        for waiting in self.waiting(usize::MAX) {
            out.push_str(&waiting.line());
            out.push('\n');
        }
    }
}

/// Which engine a cluster runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// See [`serial`].
    Serial,
    /// See [`calvin`]; with a queue of requests for each key.
    Calvin,
    /// See [`calvin`]; with [very lightweight locking](calvin::lock_manager::vll).
    CalvinVll,
    /// See [`two_phase`].
    TwoPhase,
    /// See [`two_phase`]; without any commit protocol, which is a bound to compare with and no database (DET-41). It has no
    /// shorter name, so that nobody chooses it by mistake.
    TwoPhaseWithoutCommitProtocol,
    /// See [`aloha`].
    Aloha,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [EngineKind; 6] = [
        EngineKind::Serial,
        EngineKind::Calvin,
        EngineKind::CalvinVll,
        EngineKind::Aloha,
        EngineKind::TwoPhase,
        EngineKind::TwoPhaseWithoutCommitProtocol,
    ];

    /// Those that execute an order on which all partitions and replicas agree in advance.
    pub const ORDERED: [EngineKind; 4] =
        [EngineKind::Serial, EngineKind::Calvin, EngineKind::CalvinVll, EngineKind::Aloha];

    /// Whether the engine executes an order that was agreed on in advance: then there may be replicas and checkpoints.
    pub fn is_ordered(self) -> bool {
        EngineKind::ORDERED.contains(&self)
    }

    /// The engine's name on command lines and in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Serial => "serial",
            EngineKind::Calvin => "calvin",
            EngineKind::CalvinVll => "calvin-vll",
            EngineKind::Aloha => "aloha",
            EngineKind::TwoPhase => "two-phase",
            EngineKind::TwoPhaseWithoutCommitProtocol => "two-phase-without-commit-protocol",
        }
    }

    /// Whether the engine keeps what a database promises; the bound without a commit protocol does not (DET-41).
    pub fn is_acid(self) -> bool {
        self != EngineKind::TwoPhaseWithoutCommitProtocol
    }

    /// The engine's name in tables, legends and reports: that of the bound says that it is no database (DET-41).
    pub fn label(self) -> &'static str {
        match self {
            EngineKind::TwoPhaseWithoutCommitProtocol => "two-phase-without-commit-protocol (not ACID)",
            other => other.name(),
        }
    }
}

impl std::str::FromStr for EngineKind {
    type Err = String;

    fn from_str(name: &str) -> Result<EngineKind, String> {
        EngineKind::ALL.into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
            let names: Vec<&str> = EngineKind::ALL.iter().map(|engine| engine.name()).collect();
            format!("there is no engine {name:?}: choose one of {}", names.join(", "))
        })
    }
}
