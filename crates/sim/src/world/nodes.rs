//! Nodes on machines: when they step, and what leaves them when.

use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::{DiskWrite, Event, Outbox};
use ordain_db::position::{NodeId, ReplicaId};

use super::auditor::Auditor;
use super::clients::Sent;
use super::operator::Operator;
use super::process::{Condition, Held, content_of};
use super::stages::Step;
use super::{Happening, Parcel, Turn, World, log};
use crate::machine::account::Spent;
use crate::machine::disk::WriteFailure;
use crate::network::Host;
use crate::network::link::{Delivery, Frame, Packet};
use crate::plan::Bug;

/// Calls that a client makes before others get its core.
const CLIENT_TURN_CALLS: usize = 16;

/// Writes that wait for a disk that is full before the node waits too.
const UNWRITTEN_MAX: usize = 4;

impl World<'_> {
    /// The machine of a node, by its number.
    pub(super) fn machine_of(&self, node: usize) -> usize {
        usize::from(self.plan.machine(self.processes[node].me))
    }

    pub(super) fn host_of(&self, node: NodeId) -> Host {
        Host(self.plan.machine(node))
    }

    /// The numbers of the nodes on a machine.
    pub(super) fn nodes_of(&self, machine: usize) -> Vec<usize> {
        (0..self.processes.len()).filter(|node| self.machine_of(*node) == machine).collect()
    }

    /// The numbers of the nodes of a replica.
    pub(super) fn nodes_of_replica(&self, replica: ReplicaId) -> Vec<usize> {
        (0..self.processes.len()).filter(|node| self.processes[*node].me.replica == replica).collect()
    }

    /// A packet of a peer has come.
    pub(super) fn frame(&mut self, from: NodeId, to: NodeId, frame: Frame<Message>) {
        let (now, peer, node) = (self.heap.now(), self.plan.number(from), self.plan.number(to));
        let process = &mut self.processes[node];
        if process.node.is_none() {
            let from = self.plan.name(from);
            self.log.note(now, || format!("{} is down and hears nothing of {from}", process.name));
            return;
        }
        if self.bare {
            let Packet::Data { message, .. } = frame.packet else { return };
            process.inbox.push_back(Event::Peer { from, message });
            return self.wake(node);
        }
        let (mut ready, mut out) = (Vec::new(), Vec::new());
        let number = match &frame.packet {
            Packet::Data { number, .. } => Some(*number),
            Packet::Acknowledge { .. } | Packet::Hello => None,
        };
        let link = &mut process.links[peer];
        link.receive(now, frame, &mut ready, &mut out);
        let received = link.received();
        let (names, plan) = (&process.name, self.plan);
        self.log.note_all(now, || log::arrived(&plan.name(from), names, number, received, &ready));
        process.inbox.extend(ready.into_iter().map(|delivery| match delivery {
            Delivery::Reset => Event::LinkReset(from),
            Delivery::Message(message) => Event::Peer { from, message },
        }));
        self.ship_frames(to, from, out);
        self.arm(node);
        self.wake(node);
    }

    /// Requests of clients have come.
    pub(super) fn requests(&mut self, to: NodeId, mut requests: Vec<ClientRequest>) {
        requests.retain(|request| self.operator.lets_pass(request));
        let node = self.plan.number(to);
        let process = &mut self.processes[node];
        if process.node.is_none() {
            self.log.note(self.heap.now(), || format!("{} is down and takes no requests", process.name));
            return;
        }
        process.take_requests(requests, self.plan.inbox_requests);
        self.wake(node);
    }

    /// Lets a node step that has something to do, as soon as a core is free.
    pub(super) fn wake(&mut self, node: usize) {
        let process = &mut self.processes[node];
        if process.condition == Condition::Ready && process.has_work() && !process.queued {
            process.queued = true;
            let machine = self.machine_of(node);
            self.machines[machine].queue.push_back(Turn::Node(node));
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
                Some(Turn::Node(node)) => {
                    // It may have ended, or wait for its disk.
                    if std::mem::take(&mut self.processes[node].queued)
                        && self.processes[node].condition == Condition::Ready
                    {
                        self.step(node);
                    }
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
        let machine = usize::from(self.plan.machine(self.clients[client].node()));
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
        let machine = usize::from(self.plan.machine(self.clients[client].node()));
        self.machines[machine].stepping -= 1;
        self.send_all(client, sends);
        self.dispatch(machine);
    }

    /// A node steps.
    fn step(&mut self, node: usize) {
        let (now, machine) = (self.heap.now(), self.machine_of(node));
        let process = &mut self.processes[node];
        let local_now = self.machines[machine].clock.at(now).max(process.last_now);
        let events = process.take_events(self.plan.step_events);
        let mut stages = self.stopwatch.as_mut().and_then(|watch| watch.stages.as_mut());
        if let Some(stages) = &mut stages {
            stages.taken(now, &events);
        }
        let mut outbox = Outbox::default();
        let work = match process.step(local_now, events, &mut outbox) {
            Ok(work) => work,
            Err(fatal) => return self.end(node, &fatal),
        };
        self.log.note(now, || log::step(&process.name, &work, &outbox));
        let cost = self.plan.costs.step(&work) * self.machines[machine].slowness;
        if let (Some(stages), Some(node)) = (stages, &process.node) {
            let (me, delivered) = (process.me, node.status(false).delivered);
            stages.stepped(&Step { me, begun: now, over: now + cost, delivered, outbox: &outbox });
        }
        let content = if self.plan.trace { content_of(&outbox) } else { 0 };
        process.condition = Condition::Stepping;
        let Outbox { sends, replies, disk, trace } = outbox;
        let held = Box::new(Held { content, sends, replies, disk });
        let life = process.life;
        self.happened.steps += 1;
        self.machines[machine].stepping += 1;
        self.heap.plan_after(cost, Happening::Done { node, life, held });
        if let Some(watch) = &mut self.stopwatch {
            let within = cost.min(watch.ends_at - self.heap.now());
            watch.spent += Spent::of(&work, &self.plan.costs).stretched(within);
        }
        if self.plan.trace {
            let Self { recorder, processes, .. } = self;
            let process = &processes[node];
            recorder.tell(node, process.me.partition, &process.name, process.life, trace);
            self.read_gauges(node);
        }
    }

    fn read_gauges(&mut self, number: usize) {
        let process = &self.processes[number];
        let Some(node) = &process.node else { return };
        let (status, limits) = (node.status(false), self.plan.limits);
        self.recorder.settle(number, process.me.partition, status.stable);
        let batches = limits.epochs_in_flight.saturating_mul(u64::from(self.plan.partitions));
        let delivered = batches.saturating_mul(limits.batch_calls as u64);
        let live = (limits.transactions_live + limits.sequencer_waiting) as u64;
        // Dependent calls that were let in before may come back from reconnaissance when the sequencer is full, and what the
        // node orders by itself is not turned away: ends of snapshots, and a checkpoint.
        let own = u64::from(self.plan.clients.snapshots) + 2;
        let waiting = (limits.sequencer_waiting + limits.reconnaissance) as u64 + own;
        let gauges = [
            ("the sequencer", status.waiting, waiting),
            ("live transactions", status.live, live.saturating_add(delivered)),
            ("waiting requests", process.requests_waiting as u64, self.plan.inbox_requests as u64),
        ];
        for (name, value, limit) in gauges {
            self.recorder.gauge(name, number, value, limit);
        }
    }

    /// A step's CPU time is over: what the node wants done is done.
    pub(super) fn done(&mut self, node: usize, life: u32, held: Held) {
        let machine = self.machine_of(node);
        let process = &mut self.processes[node];
        if process.life != life {
            return;
        }
        self.machines[machine].stepping -= 1;
        process.condition = Condition::Ready;
        process.unwritten.extend(held.disk);
        if !self.write(node) {
            return;
        }
        let me = self.processes[node].me;
        self.acknowledge(node);
        self.send_messages(me, held.sends);
        self.ship_replies(me, held.replies);
        self.arm(node);
        self.plan_deadline(node);
        self.wake(node);
        self.dispatch(machine);
    }

    /// Gives the disk what a node wants written, as far as there is room; whether the node goes on.
    pub(super) fn write(&mut self, node: usize) -> bool {
        let process = &mut self.processes[node];
        let Some(disk) = &mut process.disk else { return true };
        while let Some(write) = process.unwritten.pop_front() {
            // Cheap: records and chunks are shared.
            let again: DiskWrite = write.clone();
            match disk.write(write) {
                Ok(()) => {}
                Err(WriteFailure::Full) => {
                    process.unwritten.push_front(again);
                    if !std::mem::replace(&mut process.waits, true) {
                        let name = &process.name;
                        self.log.note(self.heap.now(), || format!("{name} waits for space on its disk"));
                    }
                    break;
                }
                Err(WriteFailure::Off) => {
                    self.lose_power(node);
                    return false;
                }
                Err(WriteFailure::Failed(reason)) => {
                    self.fail(node, reason);
                    return false;
                }
            }
        }
        process.waits &= !process.unwritten.is_empty();
        if process.unwritten.len() > UNWRITTEN_MAX && process.condition == Condition::Ready {
            process.condition = Condition::Full;
        } else if process.unwritten.is_empty() && process.condition == Condition::Full {
            process.condition = Condition::Ready;
        }
        if self.plan.bug == Some(Bug::ReplyBeforeDurable) {
            let mut events = Vec::new();
            disk.tell_early(&mut events);
            process.inbox.extend(events);
        }
        self.sync(node);
        true
    }

    /// Begins a sync of a node's disk if something is not durable and none is under way.
    fn sync(&mut self, node: usize) {
        let (now, process) = (self.heap.now(), &mut self.processes[node]);
        let Some(disk) = process.disk.as_mut().filter(|_| process.sync.is_none()) else { return };
        let mut events = Vec::new();
        if let Some(syncing) = disk.begin_sync(now, &mut events) {
            process.sync = Some(syncing);
            let life = process.life;
            self.heap.plan(syncing.completes_at, Happening::Synced { node, life });
        }
        process.inbox.extend(events);
    }

    pub(super) fn synced(&mut self, node: usize, life: u32) {
        let process = &mut self.processes[node];
        if process.life != life {
            return;
        }
        let mut events = Vec::new();
        if let (Some(syncing), Some(disk)) = (process.sync.take(), &mut process.disk) {
            if let Err(reason) = disk.complete_sync(syncing, &mut events) {
                return self.fail(node, reason);
            }
            self.log.note(self.heap.now(), || format!("{} synced its log", process.name));
        }
        process.inbox.extend(events);
        self.sync(node);
        self.wake(node);
    }

    /// Tells peers how many of their messages have come.
    fn acknowledge(&mut self, node: usize) {
        if self.bare {
            return;
        }
        let me = self.processes[node].me;
        for peer in 0..self.processes.len() {
            if peer != node {
                let mut out = Vec::new();
                self.processes[node].links[peer].acknowledge(&mut out);
                self.ship_frames(me, self.plan.node(peer), out);
            }
        }
    }

    fn send_messages(&mut self, me: NodeId, sends: Vec<(NodeId, Message)>) {
        let (now, node) = (self.heap.now(), self.plan.number(me));
        for (to, message) in sends {
            let mut out = Vec::new();
            if self.bare {
                out.push(Frame { from: 0, to: 0, packet: Packet::Data { number: 0, message } });
            } else {
                let peer = self.plan.number(to);
                let noted = self.log.is_wanted().then(|| log::describe_message(&message));
                if !self.processes[node].links[peer].send(now, message, &mut out) {
                    let (me, to) = (self.plan.name(me), self.plan.name(to));
                    self.log.note(now, || {
                        format!("{me} has no link to {to}: {} is lost", noted.unwrap_or_default())
                    });
                }
            }
            self.ship_frames(me, to, out);
        }
    }

    fn ship_frames(&mut self, from: NodeId, to: NodeId, frames: Vec<Frame<Message>>) {
        let (sender, receiver) = (self.host_of(from), self.host_of(to));
        for frame in frames {
            let bytes = match &frame.packet {
                Packet::Data { message, .. } => message.payload_bytes(),
                Packet::Acknowledge { .. } | Packet::Hello => 0,
            };
            self.ship(sender, receiver, bytes, Parcel::Frame { from, to, frame });
        }
    }

    fn ship_replies(&mut self, me: NodeId, replies: Vec<Reply>) {
        let mut batches: Vec<(usize, Vec<Reply>)> = Vec::new();
        for reply in replies {
            let from = reply.request.client;
            let client = match Auditor::is_auditor(from) || Operator::is_operator(from) {
                true => self.clients.len(),
                false => from.number as usize,
            };
            match batches.iter_mut().find(|(other, _)| *other == client) {
                Some((_, batch)) => batch.push(reply),
                None => batches.push((client, vec![reply])),
            }
        }
        let from = self.host_of(me);
        for (client, replies) in batches {
            let bytes = replies.iter().map(Reply::payload_bytes).sum();
            let host = Host((self.machines.len() + client) as u16);
            self.ship(from, host, bytes, Parcel::Replies(replies));
        }
    }

    /// Plans to step a node when it wants to be stepped although nothing comes.
    pub(super) fn plan_deadline(&mut self, node: usize) {
        let machine = self.machine_of(node);
        let process = &mut self.processes[node];
        let deadline = process.node.as_ref().and_then(|node| node.deadline());
        // What has passed already waits for an event and not for time.
        let Some(deadline) = deadline.filter(|deadline| *deadline > process.last_now) else { return };
        let at = self.machines[machine].clock.when(deadline).max(self.heap.now());
        if process.wake_at.is_none_or(|planned| planned > at) {
            process.wake_at = Some(at);
            let life = process.life;
            self.heap.plan(at, Happening::Deadline { node, life });
        }
    }

    pub(super) fn deadline(&mut self, node: usize, life: u32) {
        let now = self.heap.now();
        let process = &mut self.processes[node];
        if process.life != life || process.node.is_none() {
            return;
        }
        if process.wake_at.is_some_and(|at| at <= now) {
            process.wake_at = None;
        }
        process.more = true;
        self.wake(node);
    }

    /// Plans to look after a node's links when the first of them loses its patience.
    pub(super) fn arm(&mut self, node: usize) {
        let now = self.heap.now();
        let process = &mut self.processes[node];
        let links = process.links.iter().enumerate().filter(|(peer, _)| *peer != node);
        let Some(at) = links.filter_map(|(_, link)| link.deadline()).min() else { return };
        let at = at.max(now);
        if process.timer_at.is_none_or(|planned| planned > at) {
            process.timer_at = Some(at);
            let life = process.life;
            self.heap.plan(at, Happening::LinkTimer { node, life });
        }
    }

    pub(super) fn link_timer(&mut self, node: usize, life: u32) {
        let now = self.heap.now();
        let process = &mut self.processes[node];
        if process.life != life || process.node.is_none() {
            return;
        }
        if process.timer_at.is_some_and(|at| at <= now) {
            process.timer_at = None;
        }
        let me = process.me;
        for peer in (0..process.links.len()).filter(|peer| *peer != node) {
            let mut out = Vec::new();
            self.processes[node].links[peer].expire(now, &mut out);
            self.ship_frames(me, self.plan.node(peer), out);
        }
        self.arm(node);
    }
}
