//! Collects what the nodes tell and what clients see, for the [`History`](crate::history::History).
//!
//! All replicas of a partition, in all their lives, must tell the same: the order is one, and whatever was executed was
//! agreed on before. So everything that is told is compared with what was told of the same place before. Where that was
//! something else, the last word counts: it is of a node that has not crashed since.
//!
//! With asynchronous replication a node may execute what is lost with a leader, and then goes back. There what a node tells is
//! held until it cannot be lost any more: until it is in a checkpoint of the whole replica, or until the run is over and the life
//! of the node is its last. What it told in another life after its last such checkpoint is forgotten.

use std::collections::BTreeMap;

use ordain_db::execution::{Executed, Trace};
use ordain_db::message::{Ordered, Reply, RequestId};
use ordain_db::position::{Epoch, NodeId, PartitionId, Position};

use crate::history::{Gauge, Invocation, Observed, PageRead, SnapshotRead};
use crate::plan::Plan;
use crate::time::Nanoseconds;

/// Most disagreements that are kept.
const DISAGREEMENTS_MAX: usize = 20;

/// A batch: transactions with their indexes.
type Batch = Vec<(u32, Ordered)>;

/// What was told of each place of a partition's part of the order, by any of its nodes.
#[derive(Default)]
struct Places {
    closed: BTreeMap<Epoch, (Batch, String)>,
    executed: BTreeMap<Position, (Executed, String)>,
}

/// What a node has told that may be lost.
#[derive(Default)]
struct Held {
    /// Of which life this is.
    who: String,
    closed: Vec<(Epoch, Batch)>,
    executed: Vec<Executed>,
}

/// How far one node has come in its present life.
#[derive(Clone, Default)]
struct Told {
    /// The epochs through this one were told before, or are in the checkpoint from which the life began.
    resumed: Epoch,
    /// The last batch that was told: without a gap where there is an order, else of those that were told.
    closed: Epoch,
    /// The transactions that were executed after `resumed`.
    executed: Vec<Position>,
}

/// See the [module](self).
pub(crate) struct Recorder {
    places: Vec<Places>,
    told: Vec<Told>,
    /// Whether a partition's part of the order has no gaps.
    ordered: bool,
    /// By node; `None` where nothing may be lost.
    held: Option<Vec<Held>>,
    disagreements: Vec<String>,
    pub(crate) requests: BTreeMap<RequestId, Invocation>,
    pub(crate) snapshots: Vec<SnapshotRead>,
    pub(crate) pages: Vec<PageRead>,
    pub(crate) observed: Vec<Observed>,
    gauges: BTreeMap<(&'static str, usize), (u64, u64)>,
}

impl Recorder {
    pub(crate) fn new(plan: &Plan) -> Recorder {
        Recorder {
            places: (0..plan.partitions).map(|_| Places::default()).collect(),
            told: vec![Told::default(); plan.nodes()],
            ordered: plan.engine.is_ordered(),
            held: plan.may_lose().then(|| (0..plan.nodes()).map(|_| Held::default()).collect()),
            disagreements: Vec::new(),
            requests: BTreeMap::new(),
            snapshots: Vec::new(),
            pages: Vec::new(),
            observed: Vec::new(),
            gauges: BTreeMap::new(),
        }
    }

    /// A node begins a new life with the state at the end of an epoch.
    pub(crate) fn resume(&mut self, node: usize, epoch: Epoch) {
        self.told[node] = Told { resumed: epoch, closed: epoch, executed: Vec::new() };
        if let Some(held) = &mut self.held {
            held[node] = Held::default();
        }
    }

    /// Takes what a node tells. `name` is that of the node and its life.
    pub(crate) fn tell(&mut self, node: usize, partition: PartitionId, name: &str, life: u32, trace: Trace) {
        let who = || format!("{name} (life {life})");
        match &mut self.held {
            Some(held) => {
                let held = &mut held[node];
                if held.who.is_empty() {
                    held.who = who();
                }
                held.closed.extend(trace.closed);
                held.executed.extend(trace.executed);
            }
            None => self.take(node, partition, &who, trace.closed, trace.executed),
        }
    }

    /// What a node has told of its present life through an epoch cannot be lost any more.
    pub(crate) fn settle(&mut self, node: usize, partition: PartitionId, through: Epoch) {
        let Some(held) = &mut self.held else { return };
        if through <= self.told[node].closed {
            return;
        }
        let Held { who, closed, executed } = std::mem::take(&mut held[node]);
        let (closed, closed_later) = closed.into_iter().partition(|(epoch, _)| *epoch <= through);
        let (executed, executed_later) = executed.into_iter().partition(|run| run.position.epoch <= through);
        held[node] = Held { who: who.clone(), closed: closed_later, executed: executed_later };
        self.take(node, partition, &|| who.clone(), closed, executed);
    }

    /// Compares what a node tells with what was told before.
    fn take(
        &mut self,
        node: usize,
        partition: PartitionId,
        who: &dyn Fn() -> String,
        closed: Vec<(Epoch, Batch)>,
        executed: Vec<Executed>,
    ) {
        let Recorder { places, told, ordered, disagreements, .. } = self;
        let (places, told) = (&mut places[partition.index()], &mut told[node]);
        let mut disagree = |problem: String| {
            if disagreements.len() < DISAGREEMENTS_MAX {
                disagreements.push(problem);
            }
        };
        for (epoch, batch) in closed {
            if *ordered && epoch != told.closed.next() {
                disagree(format!("{} has {epoch} of its log after {}", who(), told.closed));
            }
            // Where there is no order in advance, a snapshot is told when it can be read: after later commits.
            told.closed = told.closed.max(epoch);
            match places.closed.get(&epoch) {
                Some((before, _)) if *before == batch => continue,
                Some((before, other)) => disagree(format!(
                    "{} and {other} have different batches of {partition} in {epoch}: {} and {}",
                    who(),
                    describe(&batch),
                    describe(before)
                )),
                None => {}
            }
            places.closed.insert(epoch, (batch, who()));
        }
        for executed in executed {
            let position = executed.position;
            told.executed.push(position);
            match places.executed.get(&position) {
                Some((before, _)) if *before == executed => continue,
                Some((before, other)) => disagree(format!(
                    "{} and {other} did not do the same at {position}: {} and {}",
                    who(),
                    describe_run(&executed),
                    describe_run(before)
                )),
                None => {}
            }
            places.executed.insert(position, (executed, who()));
        }
    }

    /// Compares what the nodes that are there have told in the end. `finished`: whether all must have come equally far.
    pub(crate) fn compare(&mut self, plan: &Plan, alive: &[NodeId], finished: bool) {
        for partition in (0..plan.partitions).map(PartitionId) {
            let places = &self.places[partition.index()];
            let nodes: Vec<(NodeId, &Told)> = alive
                .iter()
                .filter(|node| node.partition == partition)
                .map(|node| (*node, &self.told[plan.number(*node)]))
                .collect();
            let Some(last) = nodes.iter().map(|(_, told)| told.closed).max() else { continue };
            if let Some((epoch, (_, who))) =
                places.closed.iter().next_back().filter(|(epoch, _)| self.ordered && **epoch > last)
            {
                self.disagreements
                    .push(format!("{who} had {epoch} of {partition}, and the log ends at {last}"));
            }
            for (node, told) in nodes.into_iter().filter(|_| finished) {
                let name = plan.name(node);
                if self.ordered && told.closed != last {
                    self.disagreements.push(format!(
                        "the log of {name} ends at {}, that of another at {last}",
                        told.closed
                    ));
                }
                let after = Position::end_of(told.resumed);
                let expected = places.executed.keys().filter(|position| **position > after);
                let mut executed = told.executed.clone();
                executed.sort_unstable();
                if !expected.eq(executed.iter()) {
                    let all = places.executed.range(after..).count();
                    self.disagreements.push(format!(
                        "{name} has executed {} transactions after {}, all replicas together {all}, in all their lives",
                        executed.len(),
                        told.resumed
                    ));
                }
            }
        }
    }

    /// Notes that replicas do not agree.
    pub(crate) fn disagree(&mut self, problem: String) {
        self.disagreements.push(problem);
    }

    /// What replicas told differently.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        self.disagreements.clone()
    }

    pub(crate) fn sent(&mut self, request: RequestId) {
        if let Some(invocation) = self.requests.get_mut(&request) {
            invocation.attempts += 1;
        }
    }

    pub(crate) fn replied(&mut self, now: Nanoseconds, reply: &Reply) {
        if let Some(invocation) = self.requests.get_mut(&reply.request) {
            invocation.replies.push((now, reply.outcome.clone()));
        }
    }

    /// Notes the length of a queue of a node.
    pub(crate) fn gauge(&mut self, name: &'static str, node: usize, value: u64, limit: u64) {
        let (highest, allowed) = self.gauges.entry((name, node)).or_insert((0, limit));
        *highest = value.max(*highest);
        *allowed = limit;
    }

    pub(crate) fn gauges(&self, plan: &Plan) -> Vec<Gauge> {
        let gauges = self.gauges.iter().map(|((name, node), (highest, limit))| Gauge {
            name: format!("{name} of {}", plan.name(plan.node(*node))),
            highest: *highest,
            limit: *limit,
        });
        gauges.collect()
    }

    /// The order, as the nodes have it that are there: batches that only earlier lives had are lost. In a run that did not
    /// finish, nodes may not have told again what they have.
    pub(crate) fn log(&self, plan: &Plan, alive: &[NodeId], finished: bool) -> BTreeMap<Position, Ordered> {
        let mut log = BTreeMap::new();
        for (origin, places) in self.places.iter().enumerate() {
            let origin = PartitionId(origin as u16);
            let last = alive
                .iter()
                .filter(|node| node.partition == origin)
                .map(|node| self.told[plan.number(*node)].closed)
                .max();
            let last = if finished { last.unwrap_or_default() } else { Epoch(u64::MAX) };
            for (epoch, (batch, _)) in places.closed.range(..=last) {
                for (index, ordered) in batch {
                    log.insert(Position { epoch: *epoch, origin, index: *index }, ordered.clone());
                }
            }
        }
        log
    }

    /// What was executed, each transaction once for each partition.
    pub(crate) fn executed(&self) -> BTreeMap<Position, Vec<(PartitionId, Executed)>> {
        let mut executed: BTreeMap<Position, Vec<(PartitionId, Executed)>> = BTreeMap::new();
        for (partition, places) in self.places.iter().enumerate() {
            let partition = PartitionId(partition as u16);
            for (position, (run, _)) in &places.executed {
                executed.entry(*position).or_default().push((partition, run.clone()));
            }
        }
        executed
    }
}

fn describe(batch: &Batch) -> String {
    let requests: Vec<String> = batch
        .iter()
        .map(|(index, ordered)| format!("{index}: {}", crate::checkers::wording::request(ordered.request)))
        .collect();
    format!("[{}]", requests.join(", "))
}

fn describe_run(run: &Executed) -> String {
    let verdict = crate::checkers::wording::verdict(&run.verdict);
    let request = crate::checkers::wording::request(run.request);
    format!("{request} {verdict}, with {} rows read and {} written", run.reads.len(), run.writes.len())
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;
    use ordain_db::message::{ClientId, Work};
    use ordain_db::position::Entry;

    use super::*;
    use crate::swarm::{Fixed, draw};

    #[test]
    fn what_is_told_after_something_later_does_not_take_that_out_of_the_log() {
        let plan = draw(1, &Fixed { engine: Some(EngineKind::TwoPhase), ..Fixed::default() });
        let mut recorder = Recorder::new(&plan);
        let home = PartitionId(0);
        let client = ClientId { home, number: 1 };
        for (epoch, sequence) in [(8, 0), (7, 1)] {
            let request = RequestId { client, sequence };
            let batch = vec![(
                0,
                Ordered {
                    request,
                    acknowledged: 0,
                    work: Work::OpenSnapshot(Entry::of(NodeId::first(PartitionId(0)))),
                },
            )];
            recorder.take(0, home, &|| "p0".to_owned(), vec![(Epoch(epoch), batch)], Vec::new());
        }
        let log = recorder.log(&plan, &[NodeId::first(home)], true);
        assert_eq!(log.keys().map(|position| position.epoch).collect::<Vec<_>>(), [Epoch(7), Epoch(8)]);
    }
}
