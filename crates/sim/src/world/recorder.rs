//! Collects what the nodes tell and what clients see, for the [`History`](crate::history::History).

use std::collections::BTreeMap;

use ordain_db::execution::{Executed, Trace};
use ordain_db::message::{Ordered, Reply, RequestId};
use ordain_db::position::{Epoch, PartitionId, Position};

use crate::history::{Gauge, Invocation, SnapshotRead};
use crate::time::Nanoseconds;

/// What one node told in its present life.
#[derive(Default)]
struct Told {
    closed: Vec<(Epoch, Vec<(u32, Ordered)>)>,
    executed: Vec<Executed>,
}

/// See the [module](self).
pub(crate) struct Recorder {
    told: Vec<Told>,
    pub(crate) requests: BTreeMap<RequestId, Invocation>,
    pub(crate) snapshots: Vec<SnapshotRead>,
    gauges: BTreeMap<(&'static str, usize), (u64, u64)>,
}

impl Recorder {
    pub(crate) fn new(partitions: u16) -> Recorder {
        Recorder {
            told: (0..partitions).map(|_| Told::default()).collect(),
            requests: BTreeMap::new(),
            snapshots: Vec::new(),
            gauges: BTreeMap::new(),
        }
    }

    /// Forgets what a node told that has crashed.
    pub(crate) fn forget(&mut self, partition: usize) {
        self.told[partition] = Told::default();
    }

    pub(crate) fn tell(&mut self, partition: usize, trace: Trace) {
        let told = &mut self.told[partition];
        told.closed.extend(trace.closed);
        told.executed.extend(trace.executed);
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
    pub(crate) fn gauge(&mut self, name: &'static str, partition: usize, value: u64, limit: u64) {
        let (highest, allowed) = self.gauges.entry((name, partition)).or_insert((0, limit));
        *highest = value.max(*highest);
        *allowed = limit;
    }

    pub(crate) fn gauges(&self) -> Vec<Gauge> {
        let gauges = self.gauges.iter().map(|((name, partition), (highest, limit))| Gauge {
            name: format!("{name} of p{partition}"),
            highest: *highest,
            limit: *limit,
        });
        gauges.collect()
    }

    /// The order, from the batches of all nodes.
    pub(crate) fn log(&self) -> BTreeMap<Position, Ordered> {
        let mut log = BTreeMap::new();
        for (origin, told) in self.told.iter().enumerate() {
            for (epoch, transactions) in &told.closed {
                for (index, ordered) in transactions {
                    let origin = PartitionId(origin as u16);
                    log.insert(Position { epoch: *epoch, origin, index: *index }, ordered.clone());
                }
            }
        }
        log
    }

    pub(crate) fn executed(&self) -> BTreeMap<Position, Vec<(PartitionId, Executed)>> {
        let mut executed: BTreeMap<Position, Vec<(PartitionId, Executed)>> = BTreeMap::new();
        for (partition, told) in self.told.iter().enumerate() {
            for run in &told.executed {
                let partition = PartitionId(partition as u16);
                executed.entry(run.position).or_default().push((partition, run.clone()));
            }
        }
        executed
    }
}
