//! Nodes on machines: when they step, what leaves them when, and how they come back after a crash.

use ordain_db::error::Error;
use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::{Event, Outbox};
use ordain_db::position::PartitionId;
use ordain_workload::Workload;
use ordain_workload::random::Random;

use super::auditor::Auditor;
use super::clients::Sent;
use super::process::{Condition, Held, Process, content_of, make_node};
use super::{Happening, Parcel, Turn, World, log};
use crate::machine::disk::Disk;
use crate::machine::journal::{AppendError, Journal, Record, recover};
use crate::network::Host;
use crate::network::link::{Link, Packet};
use crate::plan::{Bug, Plan};

/// Calls that a client makes before others get its core.
const CLIENT_TURN_CALLS: usize = 16;

/// A process at the beginning of the world.
pub(super) fn process(plan: &Plan, workload: &dyn Workload, me: PartitionId) -> Result<Process, Error> {
    let peers = usize::from(plan.partitions);
    let journal = plan.disk.map(|options| {
        Journal::create(Disk::new(options, Random::new(plan.seed, "disk", &[u64::from(me.0)])))
    });
    Ok(Process {
        me,
        node: Some(make_node(plan, workload, me, plan.trace)?),
        condition: Condition::Ready,
        life: 0,
        queued: false,
        inbox: Default::default(),
        requests_waiting: 0,
        more: false,
        held: Default::default(),
        links: (0..peers).map(|_| Link::new(plan.link())).collect(),
        received: vec![0; peers],
        journal,
        contents: Vec::new(),
        durable: 0,
        sync: None,
        wake_at: None,
        timer_at: None,
        last_now: 0,
        executions: Default::default(),
    })
}

impl World<'_> {
    pub(super) fn machine_of(&self, partition: usize) -> usize {
        partition % self.machines.len()
    }

    pub(super) fn host_of(&self, partition: usize) -> Host {
        Host(self.machine_of(partition) as u16)
    }

    /// The partitions on a machine.
    pub(super) fn partitions_of(&self, machine: usize) -> Vec<usize> {
        (machine..self.processes.len()).step_by(self.machines.len()).collect()
    }

    /// A packet of a peer has come.
    pub(super) fn packet(&mut self, from: PartitionId, to: PartitionId, packet: Packet<Message>) {
        let (now, process) = (self.heap.now(), &mut self.processes[to.index()]);
        if process.node.is_none() {
            self.log.note(now, || format!("{to} is down and hears nothing of {from}"));
            return;
        }
        let (mut ready, mut out) = (Vec::new(), Vec::new());
        if self.bare {
            let Packet::Data { message, .. } = packet else { return };
            ready.push(message);
        } else {
            let number = match &packet {
                Packet::Data { number, .. } => Some(*number),
                Packet::Acknowledge { .. } => None,
            };
            let received = process.links[from.index()].received();
            process.links[from.index()].receive(now, packet, &mut ready, &mut out);
            if let Some(number) = number {
                self.log.note(now, || log::arrived(from, to, number, received, ready.len()));
            }
        }
        process.inbox.extend(ready.into_iter().map(|message| Event::Peer { from, message }));
        self.ship_packets(to, from, out);
        self.arm(to.index());
        self.wake(to.index());
    }

    /// Requests of clients have come.
    pub(super) fn requests(&mut self, to: PartitionId, requests: Vec<ClientRequest>) {
        let process = &mut self.processes[to.index()];
        if process.node.is_none() {
            self.log.note(self.heap.now(), || format!("{to} is down and takes no requests"));
            return;
        }
        process.take_requests(requests, self.plan.inbox_requests);
        self.wake(to.index());
    }

    /// Lets a node step that has something to do, as soon as a core is free.
    pub(super) fn wake(&mut self, partition: usize) {
        let process = &mut self.processes[partition];
        if process.condition == Condition::Ready && process.has_work() && !process.queued {
            process.queued = true;
            let machine = self.machine_of(partition);
            self.machines[machine].queue.push_back(Turn::Node(partition));
            self.dispatch(machine);
        }
    }

    /// Gives the free cores of a machine to the nodes that wait for them.
    pub(super) fn dispatch(&mut self, machine: usize) {
        loop {
            let machine = &mut self.machines[machine];
            if !machine.up || machine.paused || machine.stepping >= self.plan.cores {
                return;
            }
            match machine.queue.pop_front() {
                None => return,
                Some(Turn::Node(partition)) => {
                    self.processes[partition].queued = false;
                    self.step(partition);
                }
                Some(Turn::Client(client, sends)) => {
                    machine.stepping += 1;
                    let cost = self.plan.costs.calls(sends.len() as u64);
                    self.heap.plan_after(cost, Happening::ClientSends { client, sends });
                }
            }
        }
    }

    /// Lets a client make calls, as soon as a core of its machine is free.
    pub(super) fn make_calls(&mut self, client: usize, mut sends: Vec<Sent>) {
        let machine = self.machine_of(self.clients[client].id.home.index());
        // Nodes need not wait for the last of many calls.
        while !sends.is_empty() {
            let rest = sends.split_off(sends.len().min(CLIENT_TURN_CALLS));
            let turn = Turn::Client(client, std::mem::replace(&mut sends, rest));
            self.machines[machine].queue.push_back(turn);
        }
        self.dispatch(machine);
    }

    /// A client has made its calls.
    pub(super) fn calls_made(&mut self, client: usize, sends: Vec<Sent>) {
        let machine = self.machine_of(self.clients[client].id.home.index());
        self.machines[machine].stepping -= 1;
        self.send_all(client, sends);
        self.dispatch(machine);
    }

    /// A node steps: the journal has its input before anything else happens.
    fn step(&mut self, partition: usize) {
        let (now, machine) = (self.heap.now(), self.machine_of(partition));
        let process = &mut self.processes[partition];
        let local_now = self.machines[machine].clock.at(now).max(process.last_now);
        let events = process.take_events(self.plan.step_events);
        let mut offset = 0;
        if let Some(journal) = &mut process.journal {
            match journal.append(local_now, &events) {
                Ok(end) => offset = end,
                Err(AppendError::Full(_)) => {
                    process.return_events(events);
                    process.condition = Condition::Full;
                    self.log.note(now, || format!("{} waits for space on its disk", process.me));
                    return;
                }
                Err(AppendError::TooLong { .. }) => {
                    process.stop("a step is too long for its journal".to_owned());
                    return;
                }
            }
        }
        let mut outbox = Outbox::default();
        let work = match process.step(local_now, events, &mut outbox) {
            Ok(work) => work,
            Err(fatal) => {
                self.problems.push(format!("{} stopped: {fatal}", process.me));
                return process.stop(fatal);
            }
        };
        self.log.note(now, || log::step(process.me, &work, &outbox));
        let content = if self.plan.trace { content_of(&outbox) } else { 0 };
        if process.journal.is_some() {
            process.contents.push(content);
        }
        process.condition = Condition::Stepping;
        let (sends, replies, received) = (outbox.sends, outbox.replies, process.received.clone());
        let held = Box::new(Held { offset, content, sends, replies, received });
        let life = process.life;
        self.happened.steps += 1;
        self.machines[machine].stepping += 1;
        let cost = self.plan.costs.step(&work) * self.machines[machine].slowness;
        self.heap.plan_after(cost, Happening::Done { partition, life, held });
        if let Some(watch) = &mut self.stopwatch {
            watch.busy += cost.min(watch.ends_at - self.heap.now());
        }
        if self.plan.trace {
            self.recorder.tell(partition, outbox.trace);
            self.read_gauges(partition);
        }
        self.sync(partition);
    }

    fn read_gauges(&mut self, partition: usize) {
        let process = &self.processes[partition];
        let Some(node) = &process.node else { return };
        let (status, limits) = (node.status(false), self.plan.limits);
        let batches = limits.epochs_in_flight.saturating_mul(u64::from(self.plan.partitions));
        let delivered = batches.saturating_mul(limits.batch_calls as u64);
        let live = (limits.transactions_live + limits.sequencer_waiting) as u64;
        // Dependent calls that were let in before may come back from reconnaissance when the sequencer is full.
        let waiting = limits.sequencer_waiting + limits.reconnaissance;
        self.recorder.gauge("the sequencer", partition, status.waiting, waiting as u64);
        self.recorder.gauge("live transactions", partition, status.live, live.saturating_add(delivered));
        self.recorder.gauge(
            "waiting requests",
            partition,
            process.requests_waiting as u64,
            self.plan.inbox_requests as u64,
        );
    }

    /// Begins a sync of a node's journal if something is not durable and none is under way.
    fn sync(&mut self, partition: usize) {
        let (now, process) = (self.heap.now(), &mut self.processes[partition]);
        let Some(journal) = &mut process.journal else { return };
        if process.sync.is_some() || journal.disk().durable() == journal.disk().length() {
            return;
        }
        let ticket = journal.disk_mut().begin_sync(now);
        process.sync = Some(ticket);
        let life = process.life;
        self.heap.plan(ticket.completes_at, Happening::Synced { partition, life });
    }

    pub(super) fn synced(&mut self, partition: usize, life: u32) {
        let process = &mut self.processes[partition];
        if process.life != life {
            return;
        }
        if let (Some(ticket), Some(journal)) = (process.sync.take(), &mut process.journal) {
            journal.disk_mut().complete_sync(ticket);
            self.log.note(self.heap.now(), || format!("{} synced its journal", process.me));
        }
        self.release(partition);
        self.sync(partition);
    }

    /// A step's CPU time is over.
    pub(super) fn done(&mut self, partition: usize, life: u32, mut held: Held) {
        let machine = self.machine_of(partition);
        let process = &mut self.processes[partition];
        if process.life != life {
            return;
        }
        self.machines[machine].stepping -= 1;
        process.condition = Condition::Ready;
        let early = match self.plan.bug {
            Some(Bug::ReplyBeforeDurable) => std::mem::take(&mut held.replies),
            _ => Vec::new(),
        };
        if self.plan.bug == Some(Bug::AcknowledgeBeforeDurable) {
            self.acknowledge(partition, &held.received);
        }
        self.processes[partition].held.push_back(held);
        self.ship_replies(partition, early);
        self.release(partition);
        self.plan_deadline(partition);
        self.wake(partition);
        self.dispatch(machine);
    }

    /// Lets leave the machine what no longer depends on anything that is not durable.
    fn release(&mut self, partition: usize) {
        loop {
            let process = &mut self.processes[partition];
            let durable = process.journal.as_ref().map_or(u64::MAX, |journal| journal.disk().durable());
            if process.held.front().is_none_or(|held| held.offset > durable) {
                break;
            }
            let Some(Held { sends, replies, received, .. }) = process.held.pop_front() else { break };
            self.acknowledge(partition, &received);
            self.send_messages(partition, sends);
            self.ship_replies(partition, replies);
        }
        self.arm(partition);
    }

    /// Tells peers how many of their messages are safe here.
    fn acknowledge(&mut self, partition: usize, received: &[u64]) {
        if self.bare {
            return;
        }
        for (peer, count) in received.iter().enumerate().filter(|(peer, _)| *peer != partition) {
            let mut out = Vec::new();
            self.processes[partition].links[peer].acknowledge_through(*count, &mut out);
            self.ship_packets(PartitionId(partition as u16), PartitionId(peer as u16), out);
        }
    }

    fn send_messages(&mut self, partition: usize, sends: Vec<(PartitionId, Message)>) {
        let (now, me) = (self.heap.now(), PartitionId(partition as u16));
        for (to, message) in sends {
            let mut out = Vec::new();
            if self.bare {
                out.push(Packet::Data { number: 0, message });
            } else {
                self.processes[partition].links[to.index()].send(now, message, &mut out);
            }
            self.ship_packets(me, to, out);
        }
    }

    fn ship_packets(&mut self, from: PartitionId, to: PartitionId, packets: Vec<Packet<Message>>) {
        let (sender, receiver) = (self.host_of(from.index()), self.host_of(to.index()));
        for packet in packets {
            let bytes = match &packet {
                Packet::Data { message, .. } => message.payload_bytes(),
                Packet::Acknowledge { .. } => 0,
            };
            self.ship(sender, receiver, bytes, Parcel::Packet { from, to, packet });
        }
    }

    fn ship_replies(&mut self, partition: usize, replies: Vec<Reply>) {
        let mut batches: Vec<(usize, Vec<Reply>)> = Vec::new();
        for reply in replies {
            let client = match Auditor::is_auditor(reply.request.client) {
                true => self.clients.len(),
                false => reply.request.client.number as usize,
            };
            match batches.iter_mut().find(|(other, _)| *other == client) {
                Some((_, batch)) => batch.push(reply),
                None => batches.push((client, vec![reply])),
            }
        }
        let from = self.host_of(partition);
        for (client, replies) in batches {
            let bytes = replies.iter().map(Reply::payload_bytes).sum();
            let host = Host((self.machines.len() + client) as u16);
            self.ship(from, host, bytes, Parcel::Replies(replies));
        }
    }

    /// Plans to step a node when it wants to be stepped although nothing comes.
    fn plan_deadline(&mut self, partition: usize) {
        let machine = self.machine_of(partition);
        let process = &mut self.processes[partition];
        let deadline = process.node.as_ref().and_then(|node| node.deadline());
        // What has passed already waits for an event and not for time.
        let Some(deadline) = deadline.filter(|deadline| *deadline > process.last_now) else { return };
        let at = self.machines[machine].clock.when(deadline);
        if process.wake_at.is_none_or(|planned| planned > at) {
            process.wake_at = Some(at);
            let life = process.life;
            self.heap.plan(at, Happening::Deadline { partition, life });
        }
    }

    pub(super) fn deadline(&mut self, partition: usize, life: u32) {
        let now = self.heap.now();
        let process = &mut self.processes[partition];
        if process.life != life || process.node.is_none() {
            return;
        }
        if process.wake_at.is_some_and(|at| at <= now) {
            process.wake_at = None;
        }
        process.more = true;
        self.wake(partition);
    }

    /// Plans to look after a node's links when the first of them loses its patience.
    fn arm(&mut self, partition: usize) {
        let process = &mut self.processes[partition];
        let Some(at) = process.links.iter().filter_map(|link| link.deadline()).min() else { return };
        if process.timer_at.is_none_or(|planned| planned > at) {
            process.timer_at = Some(at);
            let life = process.life;
            self.heap.plan(at, Happening::LinkTimer { partition, life });
        }
    }

    pub(super) fn link_timer(&mut self, partition: usize, life: u32) {
        let now = self.heap.now();
        let process = &mut self.processes[partition];
        if process.life != life || process.node.is_none() {
            return;
        }
        if process.timer_at.is_some_and(|at| at <= now) {
            process.timer_at = None;
        }
        for peer in 0..process.links.len() {
            let mut out = Vec::new();
            let link = &mut self.processes[partition].links[peer];
            if link.deadline().is_some_and(|deadline| deadline <= now) {
                link.expire(now, &mut out);
            }
            self.ship_packets(PartitionId(partition as u16), PartitionId(peer as u16), out);
        }
        self.arm(partition);
    }

    /// A machine loses power.
    pub(super) fn crash(&mut self, machine: usize) {
        self.happened.crashes += 1;
        let down = &mut self.machines[machine];
        (down.up, down.paused, down.stepping) = (false, false, 0);
        down.queue.clear();
        down.deferred.clear();
        for partition in self.partitions_of(machine) {
            self.recorder.forget(partition);
            self.processes[partition].crash();
        }
    }

    /// A machine starts: its nodes are made again from their journals.
    pub(super) fn restart(&mut self, machine: usize) {
        self.machines[machine].up = true;
        for partition in self.partitions_of(machine) {
            if matches!(self.processes[partition].condition, Condition::Stopped(_)) {
                continue;
            }
            let Some(journal) = self.processes[partition].journal.take() else {
                self.processes[partition].stop("it crashed and kept no journal".to_owned());
                continue;
            };
            let disk = journal.into_disk();
            match recover(disk.read()) {
                Ok(recovered) => {
                    let steps = recovered.records.len();
                    self.log.note(self.heap.now(), || log::recovered(partition, steps));
                    let (valid, durable) = (recovered.valid_bytes, self.processes[partition].durable);
                    if valid < durable {
                        let lost =
                            format!("p{partition} had {durable} durable bytes and found {valid} of them");
                        self.problems.push(lost);
                    }
                    self.processes[partition].journal = Some(Journal::resume(disk, &recovered));
                    self.replay(partition, recovered.records);
                }
                Err(damage) => {
                    self.log.note(self.heap.now(), || format!("p{partition} does not start: {damage}"));
                    if !self.damaged[machine] {
                        self.problems.push(format!(
                            "p{partition} does not start, and its disk had no fault: {damage}"
                        ));
                    }
                    self.processes[partition].stop(damage.to_string());
                }
            }
        }
    }

    /// Feeds the journaled steps to a new node. What it sends has the numbers that it had before, so that peers know what they
    /// have; answers to clients are not sent again, since clients ask again.
    fn replay(&mut self, partition: usize, records: Vec<Record>) {
        let me = PartitionId(partition as u16);
        let node = match make_node(self.plan, self.workload, me, self.plan.trace) {
            Ok(node) => node,
            Err(error) => return self.processes[partition].stop(error.to_string()),
        };
        let mut received = vec![0; self.processes.len()];
        for event in records.iter().flat_map(|record| &record.events) {
            if let Event::Peer { from, .. } = event {
                received[from.index()] += 1;
            }
        }
        let now = self.heap.now();
        let process = &mut self.processes[partition];
        process.links = received.iter().map(|count| Link::resumed(self.plan.link(), *count)).collect();
        process.node = Some(node);
        let (mut cost, mut packets) = (0, Vec::new());
        process.contents.truncate(records.len());
        for (index, Record { now_microseconds, events, .. }) in records.into_iter().enumerate() {
            let mut outbox = Outbox::default();
            match process.step(now_microseconds, events, &mut outbox) {
                Ok(work) => cost += self.plan.costs.step(&work),
                Err(fatal) => {
                    self.problems.push(format!("{me} stopped while its journal was replayed: {fatal}"));
                    return process.stop(fatal);
                }
            }
            if self.plan.trace && process.contents[index] != content_of(&outbox) {
                self.problems
                    .push(format!("{me} sent something else in step {index} than before it crashed"));
            }
            for (to, message) in outbox.sends {
                let mut out = Vec::new();
                process.links[to.index()].send(now, message, &mut out);
                packets.push((to, out));
            }
            self.recorder.tell(partition, outbox.trace);
        }
        for (to, out) in packets {
            self.ship_packets(me, to, out);
        }
        self.arm(partition);
        self.begin_again(partition, cost);
    }

    /// The replay of a journal takes CPU time; then the node goes on.
    fn begin_again(&mut self, partition: usize, cost: u64) {
        let machine = self.machine_of(partition);
        let process = &mut self.processes[partition];
        process.condition = Condition::Stepping;
        process.more = true;
        let received = process.received.clone();
        let held = Box::new(Held { offset: 0, content: 0, sends: Vec::new(), replies: Vec::new(), received });
        let life = process.life;
        self.machines[machine].stepping += 1;
        self.heap.plan_after(cost, Happening::Done { partition, life, held });
    }

    /// Notes nodes that once sent what their journal did not hold.
    pub(super) fn find_forgotten_messages(&mut self) {
        for process in &self.processes {
            let forgotten: u64 = process.links.iter().map(Link::forgotten).sum();
            if forgotten > 0 {
                let problem = format!("{} forgot {forgotten} messages that its peers have", process.me);
                self.problems.push(problem);
            }
        }
    }

    /// Why the cluster will not go on, if a node stopped for good.
    pub(super) fn halted(&self) -> Option<String> {
        self.processes.iter().find_map(|process| match &process.condition {
            Condition::Stopped(reason) => Some(format!("{} stopped: {reason}", process.me)),
            _ => None,
        })
    }

    /// Whether the halt is one that faults of the plan excuse: a node does not start from a damaged journal.
    pub fn halt_is_excused(&self) -> bool {
        self.processes.iter().enumerate().any(|(partition, process)| {
            matches!(process.condition, Condition::Stopped(_)) && self.damaged[self.machine_of(partition)]
        })
    }
}
