//! Where the time of a call goes, from the client's call to its answer, stage by stage (Fan and Golab §V-C1, Figure 10: ALO-X08,
//! ALO-129).
//!
//! Nodes are not asked: all of it is seen from outside, from what nodes take and say, so that engines are compared by one measure. The
//! stages follow the way on which the answer comes: that of the partition which reports.
//!
//! | stage | from | to |
//! |---|---|---|
//! | request | the call | its home's node begins the step that takes it |
//! | waiting for the epoch | | the batch that has it leaves the home |
//! | batches of all | | the epoch is delivered to the partition that reports: it has the batches of all |
//! | versions or locks | | the last participant that sends reads has sent them; where none are sent, the step that runs the call begins |
//! | remote reads | | the step that runs the call begins at the partition that reports |
//! | processing | | that step is over, with all that it does besides |
//! | answer | | the client has it |
//!
//! The paper's "functor installing" and "waiting for processing", and its "sequencing", are the first three here. Calls that touch their
//! home's partition alone are left out: nobody says when they are ordered.

use std::collections::BTreeMap;

use ordain_db::execution::remote_reads::result_at;
use ordain_db::message::{ClientRequest, Message, Reply, RequestId};
use ordain_db::node::{Event, Outbox};
use ordain_db::position::{Epoch, NodeId, Position};

use crate::time::Nanoseconds;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// To the home's node.
    Request,
    /// Until the batch leaves the home.
    Epoch,
    /// Until the batches of all origins are there.
    Batches,
    /// Until reads are served.
    Versions,
    /// Until those of others have come.
    RemoteReads,
    /// The step that runs it.
    Processing,
    /// From there to the client.
    Answer,
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Stage; 7] = [
        Stage::Request,
        Stage::Epoch,
        Stage::Batches,
        Stage::Versions,
        Stage::RemoteReads,
        Stage::Processing,
        Stage::Answer,
    ];

    /// The name in tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Request => "request",
            Stage::Epoch => "waiting for the epoch",
            Stage::Batches => "batches of all",
            Stage::Versions => "versions or locks",
            Stage::RemoteReads => "remote reads",
            Stage::Processing => "processing",
            Stage::Answer => "answer",
        }
    }
}

/// The time of some calls, by stage.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StageTimes {
    /// How many calls.
    pub calls: u64,
    /// The time of all of them in each stage, in the order of [`Stage::ALL`].
    pub sums: [Nanoseconds; Stage::ALL.len()],
}

impl StageTimes {
    /// The mean time of a stage in microseconds; 0 without calls.
    pub fn mean_us(&self, stage: Stage) -> f64 {
        self.sums[stage as usize] as f64 / 1e3 / self.calls.max(1) as f64
    }

    /// The mean time of all stages together, in microseconds.
    pub fn total_us(&self) -> f64 {
        Stage::ALL.iter().map(|stage| self.mean_us(*stage)).sum()
    }

    /// The share of a stage in all of the time, in percent.
    pub fn percent(&self, stage: Stage) -> f64 {
        let all: Nanoseconds = self.sums.iter().sum();
        self.sums[stage as usize] as f64 * 100.0 / all.max(1) as f64
    }

    /// Adds a call: the times from `from` on at which its stages ended. One that is missing, or earlier than one before it, took no time.
    fn add(&mut self, from: Nanoseconds, ends: [Nanoseconds; Stage::ALL.len()]) {
        let (mut before, last) = (from, ends[Stage::Answer as usize]);
        for (sum, end) in self.sums.iter_mut().zip(ends) {
            let end = end.clamp(before, last.max(before));
            *sum += end - before;
            before = end;
        }
        self.calls += 1;
    }
}

/// What is known of a call that is not answered.
#[derive(Clone, Copy, Default, Debug)]
struct Journey {
    taken: Nanoseconds,
    ordered: Option<(Position, Nanoseconds)>,
    /// When the last participant had sent its reads, if any did.
    served: Option<Nanoseconds>,
    /// The node that reports, and the step in which it ran the call.
    ran: Option<(NodeId, Nanoseconds, Nanoseconds)>,
}

/// A step of a node.
pub(super) struct Step<'a> {
    pub(super) me: NodeId,
    pub(super) begun: Nanoseconds,
    pub(super) over: Nanoseconds,
    /// The last epoch that was delivered to the node when it was over.
    pub(super) delivered: Epoch,
    pub(super) outbox: &'a Outbox,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Stages {
    journeys: BTreeMap<RequestId, Journey>,
    ordered: BTreeMap<Position, RequestId>,
    /// When an epoch was delivered to a node; with those before it that are not here.
    delivered: BTreeMap<NodeId, BTreeMap<Epoch, Nanoseconds>>,
    pub(super) times: StageTimes,
}

impl Stages {
    /// A node begins a step with these events.
    pub(super) fn taken(&mut self, now: Nanoseconds, events: &[Event]) {
        for event in events {
            let Event::Requests(requests) = event else { continue };
            for id in requests.iter().filter_map(ClientRequest::id) {
                // One that comes again was taken before.
                self.journeys.entry(id).or_insert(Journey { taken: now, ..Journey::default() });
            }
        }
    }

    /// A node has stepped.
    pub(super) fn stepped(&mut self, step: &Step<'_>) {
        let epochs = self.delivered.entry(step.me).or_default();
        if epochs.last_key_value().is_none_or(|(last, _)| *last < step.delivered) {
            epochs.insert(step.delivered, step.begun);
        }
        for (_, message) in &step.outbox.sends {
            match message {
                Message::Batch { epoch, transactions, .. } => {
                    for (index, ordered) in transactions {
                        let position = Position { epoch: *epoch, origin: step.me.partition, index: *index };
                        self.order(ordered.request, position, step.over);
                    }
                }
                Message::Reads { reads, .. } => {
                    for position in positions_of(reads) {
                        let journey =
                            self.ordered.get(&position).and_then(|request| self.journeys.get_mut(request));
                        if let Some(journey) = journey {
                            journey.served = journey.served.max(Some(step.over));
                        }
                    }
                }
                Message::Reports { reports, .. } => {
                    reports.iter().for_each(|report| self.ran(report.request, step));
                }
                _ => {}
            }
        }
        for reply in &step.outbox.replies {
            self.ran(reply.request, step);
        }
    }

    fn order(&mut self, request: RequestId, position: Position, at: Nanoseconds) {
        let Some(journey) = self.journeys.get_mut(&request) else { return };
        // The other participants get the same batch; another attempt has another position.
        if journey.ordered.is_none_or(|(other, _)| other != position) {
            *journey = Journey { taken: journey.taken, ordered: Some((position, at)), ..Journey::default() };
            self.ordered.insert(position, request);
        }
    }

    /// A node reports of a call, or answers it. Who reports to the home ran it, else the home did.
    fn ran(&mut self, request: RequestId, step: &Step<'_>) {
        if let Some(journey) = self.journeys.get_mut(&request)
            && journey.ran.is_none()
        {
            journey.ran = Some((step.me, step.begun, step.over));
        }
    }

    /// A client has its answer, so long after it called.
    pub(super) fn answered(&mut self, now: Nanoseconds, reply: &Reply, latency: Nanoseconds) {
        let Some(Journey { taken, ordered, served, ran }) = self.journeys.remove(&reply.request) else {
            return;
        };
        let (Some((position, closed)), Some((node, begun, over))) = (ordered, ran) else { return };
        self.ordered.remove(&position);
        let epochs = self.delivered.get(&node).and_then(|epochs| epochs.range(position.epoch..).next());
        let Some((_, delivered)) = epochs else { return };
        // Reads that the one who reports sends in the step in which it has all others' are nothing that it waited for.
        let served = served.map_or(begun, |served| served.min(begun));
        self.times.add(now - latency, [taken, closed, *delivered, served, begun, over, now]);
    }
}

/// The positions of the transactions whose reads are in a message.
fn positions_of(reads: &[u8]) -> impl Iterator<Item = Position> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (position, result) = result_at(reads, at)?;
        at = result.end;
        Some(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_to_the_latency() {
        let mut times = StageTimes::default();
        times.add(100, [110, 130, 160, 160, 200, 250, 300]);
        assert_eq!((times.calls, times.sums), (1, [10, 20, 30, 0, 40, 50, 50]));
        // What seems to end before it begins, or after the answer, takes no time or the rest.
        times.add(100, [110, 150, 140, 400, 120, 130, 300]);
        assert_eq!(times.sums, [20, 60, 30, 150, 40, 50, 50]);
        assert_eq!(times.sums.iter().sum::<u64>(), 2 * 200);
        assert!((times.percent(Stage::Epoch) - 15.0).abs() < 1e-9);
        assert!((times.total_us() - 0.2).abs() < 1e-9);
        assert_eq!(StageTimes::default().total_us(), 0.0);
    }
}
