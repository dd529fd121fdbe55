//! What a world tells of its run.

use ordain_db::error::Error;
use ordain_db::message::Operation;
use ordain_db::node::Status;
use ordain_db::position::PartitionId;
use ordain_workload::{CheckLine, Totals};

use super::{Measured, Stopwatch, World};
use crate::history::{History, SnapshotRead};
use crate::run::Collected;
use crate::time::Nanoseconds;

impl World<'_> {
    /// Lets the clients work for some time, and then measures for some time.
    pub fn measure(&mut self, warm_up: Nanoseconds, time: Nanoseconds) -> Measured {
        self.run_until(self.now() + warm_up);
        let ends_at = self.now() + time;
        self.stopwatch = Some(Stopwatch { ends_at, ..Stopwatch::default() });
        self.run_until(ends_at);
        let Stopwatch { mut latencies, busy, .. } = self.stopwatch.take().unwrap_or_default();
        latencies.sort_unstable();
        Measured { latencies, busy }
    }

    /// What was noticed during the run that no history shows.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What the run leaves behind for the checkers.
    pub fn history(&mut self, unfinished: Option<String>) -> History {
        let (alive, finished) = (self.alive(), unfinished.is_none());
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
            requests: self.recorder.requests.clone(),
            log: self.recorder.log(self.plan, &alive, finished),
            executed: self.recorder.executed(),
            snapshots: self.recorder.snapshots.clone(),
            rows: last,
            statuses,
            disagreements: self.recorder.disagreements(),
            gauges: self.recorder.gauges(self.plan),
            conditions,
            unfinished,
        }
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

    /// The workload's conditions over a snapshot.
    fn conditions(&self, snapshot: &SnapshotRead) -> Vec<CheckLine> {
        let mut totals = Totals::new();
        for invocation in self.recorder.requests.values() {
            let Operation::Call { procedure, .. } = &invocation.operation else { continue };
            let outcomes = totals.of_mut(self.workload.catalog().procedures.name(*procedure));
            match invocation.end() {
                Some((_, Ok(_))) => outcomes.committed += 1,
                Some((_, Err(Error::Aborted(_)))) => outcomes.aborted += 1,
                Some(_) => {}
                None => outcomes.unknown += 1,
            }
        }
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
