//! What a world tells of its run.

use ordain_db::error::Error;
use ordain_db::execution::Executions;
use ordain_db::gateway::scouting::Scouting;
use ordain_db::message::{Operation, Verdict};
use ordain_db::node::Status;
use ordain_db::position::{Epoch, NodeId, PartitionId};
use ordain_workload::{CheckLine, Totals};

use super::stages::Stages;
use super::stopwatch::Stopwatch;
use super::{Measured, World};
use crate::history::{History, Sessions, SnapshotRead, outcomes_of_early_calls};
use crate::plan::WorkloadPlan;
use crate::run::Collected;
use crate::sql;
use crate::time::{MICROSECOND, Nanoseconds};

impl Measured {
    /// A percentile of the latencies, in whole microseconds: 50 is the median, 100 the longest; 0 if no call was answered.
    pub fn percentile_us(&self, percent: usize) -> u64 {
        let last = self.latencies.len().saturating_sub(1);
        let place = (self.latencies.len() * percent / 100).min(last);
        self.latencies.get(place).map_or(0, |latency| latency / MICROSECOND)
    }

    /// The mean of the latencies in microseconds; 0 if no call was answered.
    pub fn mean_us(&self) -> f64 {
        let all: u64 = self.latencies.iter().sum();
        all as f64 / MICROSECOND as f64 / self.latencies.len().max(1) as f64
    }
}

impl World<'_> {
    /// Lets the clients work for some time, and then measures for some time.
    pub fn measure(&mut self, warm_up: Nanoseconds, time: Nanoseconds) -> Measured {
        self.run_until(self.now() + warm_up);
        self.watch(time, None, None)
    }

    /// The same, and tells which call took how long.
    pub fn measure_calls(&mut self, warm_up: Nanoseconds, time: Nanoseconds) -> Measured {
        self.run_until(self.now() + warm_up);
        self.watch(time, Some(Vec::new()), None)
    }

    /// The same without calls, and tells where their time went. For engines with an order, where nothing fails.
    pub fn measure_stages(&mut self, warm_up: Nanoseconds, time: Nanoseconds) -> Measured {
        self.run_until(self.now() + warm_up);
        self.watch(time, None, Some(Stages::default()))
    }

    /// Measures for some time from now on, and looks at the world now and then.
    pub fn watch_in_pieces(
        &mut self,
        time: Nanoseconds,
        piece: Nanoseconds,
        mut look: impl FnMut(&World<'_>),
    ) -> Measured {
        let ends_at = self.now() + time;
        self.stopwatch = Some(Stopwatch { ends_at, ..Stopwatch::default() });
        while self.now() < ends_at {
            self.run_until((self.now() + piece.max(1)).min(ends_at));
            look(self);
        }
        self.measured()
    }

    fn watch(
        &mut self,
        time: Nanoseconds,
        calls: Option<Vec<(Operation, Nanoseconds)>>,
        stages: Option<Stages>,
    ) -> Measured {
        let ends_at = self.now() + time;
        self.stopwatch = Some(Stopwatch { ends_at, calls, stages, ..Stopwatch::default() });
        self.run_until(ends_at);
        self.measured()
    }

    /// What the stopwatch shows, which is over.
    fn measured(&mut self) -> Measured {
        let Stopwatch { mut latencies, mut acknowledgements, calls, stages, background, spent, .. } =
            self.stopwatch.take().unwrap_or_default();
        latencies.sort_unstable();
        acknowledgements.sort_unstable();
        let stages = stages.map(|stages| stages.times).unwrap_or_default();
        let calls = calls.unwrap_or_default();
        Measured { latencies, acknowledgements, calls, background, busy: spent.busy(), spent, stages }
    }

    /// How long the call waits for its answer that has waited longest, of those that have none; 0 if all have. Calls of
    /// background clients do not count.
    pub fn longest_wait(&self) -> Nanoseconds {
        let oldest = self.clients.iter().filter_map(|client| client.oldest_call()).min();
        oldest.map_or(0, |invoked_at| self.now().saturating_sub(invoked_at))
    }

    /// What a node has run so far; `None` if it is not there.
    pub fn runs(&self, node: NodeId) -> Option<Executions> {
        self.processes[self.plan.number(node)].node.as_ref().map(|node| node.executions())
    }

    /// What reconnaissance has cost a node, and what came of it; `None` if it is not there.
    pub fn scouting(&self, node: NodeId) -> Option<Scouting> {
        self.processes[self.plan.number(node)].node.as_ref().map(|node| node.scouting())
    }

    /// How many transactions have got their places in an epoch at a node since it started.
    pub fn starts(&self, node: NodeId) -> u64 {
        self.processes[self.plan.number(node)].node.as_ref().map_or(0, |node| node.starts())
    }

    /// What a node says of itself, without a digest; `None` if it is not there.
    pub fn status(&self, node: NodeId) -> Option<Status> {
        self.processes[self.plan.number(node)].node.as_ref().map(|node| node.status(false))
    }

    /// Whether a node is there and leads its group.
    pub fn leads(&self, node: NodeId) -> bool {
        let process = self.processes[self.plan.number(node)].node.as_ref();
        process.is_some_and(|node| node.status(false).leads)
    }

    /// Whether a node is there and executes nothing now, for a checkpoint.
    pub fn is_frozen(&self, node: NodeId) -> bool {
        let process = self.processes[self.plan.number(node)].node.as_ref();
        process.is_some_and(|node| node.status(false).frozen)
    }

    /// The last epoch that was delivered to a node; `None` if it is not there.
    pub fn delivered(&self, node: NodeId) -> Option<Epoch> {
        let process = self.processes[self.plan.number(node)].node.as_ref();
        process.map(|node| node.status(false).delivered)
    }

    /// The last epoch of which a node has run all transactions; `None` if it is not there, or has no epochs.
    pub fn executed(&mut self, node: NodeId) -> Option<Epoch> {
        let process = self.processes[self.plan.number(node)].node.as_mut();
        process.and_then(|node| node.executed())
    }

    /// How many transactions a node has run since it started: each counts at every partition that it touches.
    pub fn executions(&self, node: NodeId) -> u64 {
        self.processes[self.plan.number(node)].executions.delivered
    }

    /// The newest epoch at whose end all nodes of a node's replica have a checkpoint; `None` if it is not there.
    pub fn stable(&self, node: NodeId) -> Option<Epoch> {
        let process = self.processes[self.plan.number(node)].node.as_ref();
        process.map(|node| node.status(false).stable)
    }

    /// What was noticed during the run that no history shows.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What the run leaves behind for the checkers.
    pub fn history(&mut self, unfinished: Option<String>) -> History {
        let (alive, finished) = (self.alive(), unfinished.is_none());
        if finished {
            for node in &alive {
                self.recorder.settle(self.plan.number(*node), node.partition, Epoch(u64::MAX));
            }
        }
        self.recorder.compare(self.plan, &alive, finished);
        let statuses = self.statuses(finished);
        let last = self.auditor.last.as_ref().map(|(_, rows)| rows.clone()).unwrap_or_default();
        let conditions = match self.recorder.snapshots.last().filter(|_| unfinished.is_none()) {
            Some(snapshot) => self.conditions(snapshot),
            None => Vec::new(),
        };
        History {
            engine: self.plan.engine,
            partitions: self.plan.partitions,
            may_lose: self.plan.may_lose(),
            requests: self.recorder.requests.clone(),
            log: self.recorder.log(self.plan, &alive, finished),
            executed: self.recorder.executed(),
            snapshots: self.snapshots(),
            pages: if self.plan.may_lose() { Vec::new() } else { self.recorder.pages.clone() },
            sessions: self.sessions(unfinished.is_none()),
            rows: last,
            statuses,
            disagreements: self.recorder.disagreements(),
            gauges: self.recorder.gauges(self.plan),
            conditions,
            unfinished,
        }
    }

    /// The snapshots that were read; where what they show may have been lost, the one after everything came to rest.
    fn snapshots(&self) -> Vec<SnapshotRead> {
        let all = &self.recorder.snapshots;
        let first = if self.plan.may_lose() { all.len().saturating_sub(1) } else { 0 };
        all[first..].to_vec()
    }

    /// What clients with sessions learnt.
    fn sessions(&self, finished: bool) -> Option<Sessions> {
        let WorkloadPlan::Sql(options) = &self.plan.workload else { return None };
        let last = self.recorder.snapshots.last().filter(|_| finished);
        let lists = last.and_then(|last| sql::lists(self.workload.catalog(), &last.rows).ok());
        Some(Sessions { observed: self.recorder.observed.clone(), lists, total: sql::total(options) })
    }

    /// What one node of each partition says of itself; notes those that have other rows, once all have come equally far.
    fn statuses(&mut self, finished: bool) -> Vec<Status> {
        let mut statuses = Vec::new();
        for partition in (0..self.plan.partitions).map(PartitionId) {
            let nodes = self.processes.iter().filter(|process| process.me.partition == partition);
            let all: Vec<(String, Status)> = nodes
                .filter_map(|process| Some((process.name.clone(), process.node.as_ref()?.status(true))))
                .collect();
            let Some((first, status)) = all.first() else { continue };
            for (name, other) in all.iter().filter(|(_, other)| finished && other.digest != status.digest) {
                let digests = (status.digest.unwrap_or_default(), other.digest.unwrap_or_default());
                self.recorder.disagree(format!(
                    "{first} and {name} have different rows in the end: digests {:032x} and {:032x}",
                    digests.0, digests.1
                ));
            }
            // The one that leads knows what became of requests.
            let leading = all.iter().find(|(_, status)| status.leads).map_or(status, |(_, status)| status);
            statuses.push(leading.clone());
        }
        statuses
    }

    /// What clients were told.
    fn totals_of_answers(&self) -> Totals {
        let mut totals = Totals::new();
        let early = outcomes_of_early_calls(&self.recorder.requests);
        for (id, invocation) in &self.recorder.requests {
            let Some((procedure, _)) = invocation.operation.call() else { continue };
            let outcomes = totals.of_mut(self.workload.catalog().procedures.name(procedure));
            let end = match invocation.is_acknowledged_early() {
                true => early.get(id).copied(),
                false => invocation.end(),
            };
            match end {
                Some((_, Ok(_))) => outcomes.committed += 1,
                Some((_, Err(Error::Aborted(_)))) => outcomes.aborted += 1,
                Some(_) => {}
                None => outcomes.unknown += 1,
            }
        }
        totals
    }

    /// What became of the calls that are in the order: what clients were told may be lost.
    fn totals_of_order(&self) -> Totals {
        let mut totals = Totals::new();
        for run in self.recorder.executed().values().filter_map(|runs| runs.first()) {
            let invocation = self.recorder.requests.get(&run.1.request);
            let Some((procedure, _)) = invocation.and_then(|invocation| invocation.operation.call()) else {
                continue;
            };
            let outcomes = totals.of_mut(self.workload.catalog().procedures.name(procedure));
            match &run.1.verdict {
                Verdict::Committed(_) => outcomes.committed += 1,
                Verdict::Failed(Error::Aborted(_)) => outcomes.aborted += 1,
                Verdict::Failed(_) | Verdict::FootprintMissed => {}
            }
        }
        totals
    }

    /// The workload's conditions over a snapshot.
    fn conditions(&self, snapshot: &SnapshotRead) -> Vec<CheckLine> {
        let totals = if self.plan.may_lose() { self.totals_of_order() } else { self.totals_of_answers() };
        let lines = self.workload.check(&mut Collected(&snapshot.rows), &totals);
        lines.unwrap_or_else(|error| {
            vec![CheckLine {
                condition: "the state can be read".to_owned(),
                holds: false,
                detail: error.to_string(),
            }]
        })
    }
}
