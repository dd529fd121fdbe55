//! Times each step of real nodes, alone: a whole cluster in one thread, under a closed loop of calls.
//!
//! What the nodes are given does not depend on the clock: time passes by a set amount with each step, so that every round
//! of a measurement takes the very same steps. Time is the CPU time of the thread, and of a step's rounds the quickest counts:
//! what else a shared machine does can only add to it. A round goes over the nodes in turn, and each gets everything that has
//! come for it, as the thread of a partition does.

use std::collections::VecDeque;

use ordain_db::engine::EngineKind;
use ordain_db::message::{ClientId, ClientRequest, Message, Operation, Reply, Request, RequestId};
use ordain_db::node::{AnyNode, Event, NodeConfiguration, Outbox, node};
use ordain_db::position::{NodeId, PartitionId};
use ordain_sim::machine::calibration::Sample;
use ordain_sim::machine::cost::StepWork;
use ordain_workload::{Generator, Part, Workload};

use crate::cpu::thread_cpu_nanoseconds;
use crate::load::load;

/// How much time passes with each step, in microseconds.
const STEP_MICROSECONDS: u64 = 20;

/// The number of the clients; they need to be told apart from nobody.
const CLIENT_NUMBER: u64 = 1;

/// What is run on the nodes after each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Requests that are kept outstanding over all nodes; at least one at each. What is under way takes room in the caches,
    /// which the nodes share here.
    pub outstanding: usize,
    /// Transactions until it ends.
    pub transactions: u64,
}

/// A node, what is under way to it, and the client beside it.
struct Member {
    node: Box<dyn AnyNode>,
    messages: VecDeque<Event>,
    generator: Box<dyn Generator>,
    client: ClientId,
    /// Whether each request from number `first` on has its answer.
    answered: VecDeque<bool>,
    first: u64,
    outstanding: usize,
    more: bool,
}

/// See the [module](self).
pub struct Stepper {
    members: Vec<Member>,
    /// Virtual time in microseconds.
    now: u64,
    /// What it takes to read the clock, in nanoseconds.
    clock: u64,
    answers: u64,
}

impl Stepper {
    /// Loads a cluster whose nodes run an engine.
    ///
    /// # Errors
    /// When the workload cannot make its rows or has no calls for a partition.
    pub fn new(engine: EngineKind, workload: &dyn Workload, partitions: u16) -> Result<Stepper, String> {
        let own: Vec<PartitionId> = (0..partitions).map(PartitionId).collect();
        let mut members = Vec::new();
        for seed in load(workload, &own, partitions)? {
            let me = seed.partition;
            let configuration = NodeConfiguration::new(me, partitions);
            let generator = workload
                .generator(1, u32::from(me.0), Part::of(me, partitions))
                .map_err(|error| error.to_string())?;
            members.push(Member {
                node: node(engine, &configuration, workload.catalog().clone(), seed.storage, None),
                messages: VecDeque::new(),
                generator,
                client: ClientId { home: me, number: CLIENT_NUMBER },
                answered: VecDeque::new(),
                first: 0,
                outstanding: 0,
                more: false,
            });
        }
        Ok(Stepper { members, now: 0, clock: clock_nanoseconds(), answers: 0 })
    }

    /// Runs a phase; its steps, in order.
    ///
    /// # Errors
    /// When a node fails, or nothing can happen any more.
    pub fn run(&mut self, phase: Phase) -> Result<Vec<Sample>, String> {
        let mut samples = Vec::new();
        let end = self.answers + phase.transactions;
        let outstanding = (phase.outstanding / self.members.len()).max(1);
        while self.answers < end {
            let before = samples.len();
            for member in 0..self.members.len() {
                let events = self.events(member, outstanding);
                if !events.is_empty() || self.members[member].more {
                    samples.push(self.step(member, events)?);
                }
            }
            if samples.len() == before {
                self.pass_time(&mut samples)?;
            }
        }
        Ok(samples)
    }

    /// What has come for a node, with new calls of its client.
    fn events(&mut self, member: usize, outstanding: usize) -> Vec<Event> {
        let member = &mut self.members[member];
        let mut events: Vec<Event> = member.messages.drain(..).collect();
        let wanted = outstanding.saturating_sub(member.outstanding);
        if wanted > 0 {
            let requests = (0..wanted).map(|_| member.request()).collect();
            events.push(Event::Requests(requests));
        }
        events
    }

    /// Nobody has anything to do before the next deadline.
    fn pass_time(&mut self, samples: &mut Vec<Sample>) -> Result<(), String> {
        let deadline = self.members.iter().filter_map(|member| member.node.deadline()).min();
        let Some(deadline) = deadline.filter(|deadline| *deadline > self.now) else {
            return Err("the nodes that are measured are stuck: please report this".to_owned());
        };
        self.now = deadline;
        for member in 0..self.members.len() {
            samples.push(self.step(member, Vec::new())?);
        }
        Ok(())
    }

    /// Steps a node and hands on what it sends.
    fn step(&mut self, member: usize, mut events: Vec<Event>) -> Result<Sample, String> {
        self.now += STEP_MICROSECONDS;
        let work = StepWork::of_events(&events);
        let mut outbox = Outbox::default();
        let stepped = &mut self.members[member];
        let before = stepped.node.executions();
        let begun = thread_cpu_nanoseconds();
        let more = stepped.node.step(self.now, &mut events, &mut outbox);
        let nanoseconds = (thread_cpu_nanoseconds() - begun).saturating_sub(self.clock);
        stepped.more = more.map_err(|fatal| format!("a node that was measured failed: {fatal}"))?;
        let work = work.and_did(&outbox, before, stepped.node.executions());
        let from = NodeId::first(stepped.client.home);
        for (to, message) in outbox.sends {
            self.send(from, to, message);
        }
        for reply in outbox.replies {
            self.members[member].take(&reply);
            self.answers += 1;
        }
        Ok(Sample { work, nanoseconds })
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        self.members[to.partition.index()].messages.push_back(Event::Peer { from, message });
    }
}

impl Member {
    fn request(&mut self) -> ClientRequest {
        let call = self.generator.next();
        let sequence = self.first + self.answered.len() as u64;
        self.answered.push_back(false);
        self.outstanding += 1;
        let operation = Operation::Call { procedure: call.procedure, arguments: call.arguments };
        let id = RequestId { client: self.client, sequence };
        ClientRequest::Ordered(Request { id, acknowledged: self.first, operation })
    }

    fn take(&mut self, reply: &Reply) {
        let place = (reply.request.sequence - self.first) as usize;
        self.answered[place] = true;
        self.outstanding -= 1;
        while self.answered.front().is_some_and(|answered| *answered) {
            self.answered.pop_front();
            self.first += 1;
        }
    }
}

/// The median time between two looks at the clock.
fn clock_nanoseconds() -> u64 {
    let mut times: Vec<u64> = (0..1_001)
        .map(|_| {
            let begun = thread_cpu_nanoseconds();
            thread_cpu_nanoseconds() - begun
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The shortest time of each step over rounds that took the same steps.
///
/// # Errors
/// When they did not: then the database is not deterministic.
pub fn quickest(rounds: &[&[Sample]]) -> Result<Vec<Sample>, String> {
    let Some((first, others)) = rounds.split_first() else { return Ok(Vec::new()) };
    let same = |other: &&[Sample]| {
        other.len() == first.len() && other.iter().zip(*first).all(|(one, two)| one.work == two.work)
    };
    if !others.iter().all(same) {
        return Err("two rounds of one measurement took different steps: please report this".to_owned());
    }
    let quickest = |step: usize| {
        let times = rounds.iter().map(|round| round[step].nanoseconds);
        Sample { work: first[step].work, nanoseconds: times.min().unwrap_or_default() }
    };
    Ok((0..first.len()).map(quickest).collect())
}

#[cfg(test)]
mod tests {
    use ordain_workload::micro::{Micro, Options};

    use super::*;

    fn rounds(engine: EngineKind, partitions: u16) -> Vec<Vec<Sample>> {
        let options = Options {
            sites: partitions,
            records: 20_000,
            contention_index: 0.01,
            multi_partition_percent: 50.0,
            ..Options::default()
        };
        let workload = Micro::new(options).unwrap();
        let round = || {
            let mut stepper = Stepper::new(engine, &workload, partitions).unwrap();
            let mut samples = stepper.run(Phase { outstanding: 1, transactions: 50 }).unwrap();
            samples.extend(stepper.run(Phase { outstanding: 100, transactions: 1_000 }).unwrap());
            samples
        };
        vec![round(), round(), round()]
    }

    #[test]
    fn every_round_takes_the_same_steps() {
        for engine in [EngineKind::Calvin, EngineKind::Aloha] {
            let rounds = rounds(engine, 3);
            let slices: Vec<&[Sample]> = rounds.iter().map(Vec::as_slice).collect();
            let steps = quickest(&slices).unwrap();
            assert_eq!(steps.len(), rounds[0].len());
            let sum = |part: fn(&StepWork) -> u64| steps.iter().map(|sample| part(&sample.work)).sum::<u64>();
            assert!(sum(|work| work.replies) >= 1_050);
            // Every message and every ordered transaction of a peer that was sent arrived, but for the last ones.
            assert!(sum(|work| work.messages_sent).abs_diff(sum(|work| work.messages_received)) < 100);
            assert!(sum(|work| work.executed_together) > sum(|work| work.transactions_received) / 2);
            assert!(sum(|work| work.executed_alone) > 300);
        }
    }

    #[test]
    fn one_partition_sends_nothing() {
        let rounds = rounds(EngineKind::Calvin, 1);
        assert!(rounds[0].iter().all(|sample| sample.work.messages_sent == 0));
        assert!(rounds[0].iter().all(|sample| sample.work.executed_together == 0));
    }

    #[test]
    fn rounds_that_differ_are_an_error() {
        let one = Sample { work: StepWork::default(), nanoseconds: 5 };
        let other = Sample { work: StepWork { replies: 1, ..StepWork::default() }, nanoseconds: 5 };
        assert!(quickest(&[&[one], &[one, one]]).is_err());
        assert!(quickest(&[&[one], &[other]]).is_err());
        let times = [9, 2, 4].map(|nanoseconds| [Sample { nanoseconds, ..one }]);
        let times = times.each_ref().map(<[Sample; 1]>::as_slice);
        assert_eq!(quickest(&times), Ok(vec![Sample { nanoseconds: 2, ..one }]));
    }
}
