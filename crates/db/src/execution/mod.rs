//! Execution of one transaction at one participant: the five phases of Calvin §3.2, shared by the engines that follow them.
//!
//! 1. *Analysis*: [`Participation::of`] tells who takes part and who is active.
//! 2. *Local reads* and 3. *serving them*: [`remote_reads::serve`] sends this participant's part to the others.
//! 4. *Collecting*: [`remote_reads::Inbox`] keeps what has come until everything is there.
//! 5. *Logic and writes*: [`Executor::execute`] runs the procedure over all reads and applies the local writes.
//!
//! Every active participant has all reads and runs all of the logic, but for [functors], so all reach the same verdict without a message
//! (CAL-07 needs its notices only where a check runs at one participant alone; see trap 5).

pub mod captured;
pub(crate) mod effects;
pub mod exploration;
pub(crate) mod functors;
pub mod remote_reads;
pub mod run;
pub mod snapshot_reads;
pub mod trace;
mod traced;
pub mod waiting;
pub mod write_buffer;

use bytes::Bytes;

use crate::error::{Error, Fatal};
use crate::message::{Delivered, Reconnoitred, Report, RequestId, Verdict, Work};
use crate::position::{Epoch, PartitionId, PartitionSet, Position};
use crate::procedure::{Catalog, Footprint, ProcedureId};
use crate::storage::Storage;

pub use exploration::{Explored, Missing};
pub use remote_reads::{Inbox, Received};
pub use run::Executor;
pub use trace::{Executed, Scope, Trace};
pub use waiting::Waiting;

/// A call at its position, with the footprint that it was locked by.
#[derive(Debug)]
pub struct Call {
    /// Its place in the global order, and the version of its writes.
    pub position: Position,
    /// The request that it serves.
    pub request: RequestId,
    /// The procedure.
    pub procedure: ProcedureId,
    /// The encoded arguments.
    pub arguments: Bytes,
    /// What it may touch.
    pub footprint: Box<Footprint>,
    /// Whether the footprint was found by reconnaissance: then an access outside of it is no error but a restart.
    pub reconnoitred: bool,
}

/// Who takes part in a call, and as what (phase 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Participation {
    /// Whether this partition runs the logic; else it is passive and only serves its reads (CAL-52, CAL-55).
    pub active: bool,
    /// The other active participants: local read results go to them and to nobody else (CAL-54).
    pub send_reads_to: PartitionSet,
    /// The participants whose read results this one waits for; empty for a passive participant.
    pub await_reads_from: PartitionSet,
    /// Whether this participant reports the verdict to the origin.
    pub reports: bool,
}

impl Participation {
    /// The role of the partition `me` in a call.
    pub fn of(footprint: &Footprint, origin: PartitionId, me: PartitionId) -> Participation {
        let mut others = footprint.active(origin);
        let active = others.contains(me);
        others.remove(me);
        let mut await_reads_from = if active { footprint.readers() } else { PartitionSet::EMPTY };
        await_reads_from.remove(me);
        let serves = footprint.readers().contains(me);
        Participation {
            active,
            send_reads_to: if serves { others } else { PartitionSet::EMPTY },
            await_reads_from,
            reports: footprint.reporter(origin) == me,
        }
    }
}

/// What an engine works with: the node's parts, lent for one step.
pub struct Context<'a> {
    /// This partition.
    pub me: PartitionId,
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// The tables and procedures.
    pub catalog: &'a Catalog,
    /// This partition's rows.
    pub storage: &'a mut dyn Storage,
    /// What the engine wants sent.
    pub effects: &'a mut Effects,
}

/// What execution produces in a step.
#[derive(Debug)]
pub struct Effects {
    /// Read results by receiving partition, a message in the form of [`remote_reads`] for each epoch.
    pub reads: Vec<Vec<(Epoch, Vec<u8>)>>,
    /// Verdicts, for the origins of their positions.
    pub reports: Vec<Report>,
    /// Snapshots that can be read here, for the origins of their positions.
    pub snapshots: Vec<(RequestId, Position)>,
    /// Footprints whose buffers can be filled again.
    #[allow(clippy::vec_box, reason = "boxes move through queues as one word")]
    pub footprints: Vec<Box<Footprint>>,
    /// What was executed so far.
    pub executions: Executions,
    /// The last functor that stopped: its procedure, table, key and position, and why.
    pub functor_problem: Option<String>,
    /// Transactions that ran, if the node is asked to tell.
    pub executed: Option<Vec<Executed>>,
}

/// Counts of the work that the order gave a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Executions {
    /// Transactions that were delivered, also those that only read here for others.
    pub delivered: u64,
    /// Runs of the logic that needed no other partition's reads.
    pub alone: u64,
    /// Runs of the logic over the reads of several partitions.
    pub together: u64,
    /// Functors that were computed by themselves, those that stopped included.
    pub functors: u64,
    /// Those that stopped, and left their keys alone.
    pub functors_stopped: u64,
    /// Runs that looked for what a call touches, over what it had locked.
    pub explorations: u64,
    /// What all these runs [computed](crate::procedure::Transaction::compute), in units of the procedures' own.
    pub units: u64,
    /// Runs of reconnaissance, each time that one went on with rows of other partitions included.
    pub reconnaissance: u64,
    /// What those computed, likewise.
    pub reconnaissance_units: u64,
}

impl Executions {
    /// Runs of procedures for transactions that were begun, whoever began them.
    pub fn runs(&self) -> u64 {
        self.alone + self.together + self.explorations
    }
}

impl Effects {
    /// Nothing to send in a cluster of `partitions`.
    pub fn new(partitions: u16) -> Effects {
        Effects {
            reads: vec![Vec::new(); usize::from(partitions)],
            reports: Vec::new(),
            snapshots: Vec::new(),
            footprints: Vec::new(),
            executions: Executions::default(),
            functor_problem: None,
            executed: None,
        }
    }

    /// The message of an epoch's read results for a partition, to be appended to.
    pub fn reads_of(&mut self, partition: PartitionId, epoch: Epoch) -> &mut Vec<u8> {
        let messages = &mut self.reads[partition.index()];
        let known = messages.iter().rposition(|(other, _)| *other == epoch);
        let place = known.unwrap_or_else(|| {
            messages.push((epoch, Vec::new()));
            messages.len() - 1
        });
        &mut messages[place].1
    }

    /// Adds a verdict.
    pub fn report(&mut self, position: Position, request: RequestId, verdict: Verdict) {
        self.reports.push(Report { position, request, verdict });
    }
}

impl Call {
    /// Appends the hashes of the keys that the partition holds.
    pub fn local_hashes(&self, me: PartitionId, hashes: &mut Vec<u64>) {
        let local = self.footprint.keys().iter().filter(|entry| entry.owner.includes(me));
        hashes.extend(local.map(|entry| entry.hash));
    }

    /// Gets the local rows into the cache. `hashes` is a buffer whose content is lost.
    pub fn prefetch(&self, hashes: &mut Vec<u64>, context: &Context<'_>) {
        hashes.clear();
        self.local_hashes(context.me, hashes);
        context.storage.prefetch(hashes);
    }

    /// Makes a call of a delivered transaction: takes its footprint from where it is known, or computes it again into `spare`.
    /// `None` for what is no call.
    ///
    /// # Errors
    /// When the footprint cannot be computed although the origin could: the nodes differ.
    pub fn of(
        delivered: Delivered,
        spare: &mut Vec<Box<Footprint>>,
        catalog: &Catalog,
        partitions: u16,
    ) -> Result<Option<Call>, Fatal> {
        let Delivered { position, ordered, footprint } = delivered;
        let Work::Call { procedure, arguments, reconnoitred } = ordered.work else { return Ok(None) };
        let footprint = match footprint {
            Some(footprint) => footprint,
            None => {
                let mut footprint = spare.pop().unwrap_or_default();
                place(procedure, &arguments, reconnoitred.as_ref(), catalog, partitions, &mut footprint)
                    .map_err(|error| Fatal::Unexecutable { position, error })?;
                footprint
            }
        };
        let reconnoitred = reconnoitred.is_some();
        Ok(Some(Call { position, request: ordered.request, procedure, arguments, footprint, reconnoitred }))
    }
}

/// Finds out again what an ordered call may touch.
///
/// # Errors
/// When it cannot be found out although it could before the call was ordered.
pub fn place(
    procedure: ProcedureId,
    arguments: &[u8],
    reconnoitred: Option<&Reconnoitred>,
    catalog: &Catalog,
    partitions: u16,
    footprint: &mut Footprint,
) -> Result<(), Error> {
    let Catalog { schema, procedures } = catalog;
    match reconnoitred {
        Some(found) => footprint.decode(&found.footprint, schema, partitions),
        None => procedures.declare(procedure, arguments, schema, partitions, footprint).map(|_| ()),
    }
}
