//! A node: one partition of the database, as one state machine.
//!
//! [`Node::step`] takes what has happened and says what is to be sent. It never blocks and knows no clock, thread or socket: a
//! server and a simulator drive the same step.

mod any;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::data::{Key, KeyRange, Partitioning};
use crate::engine::Engine;
use crate::error::{Error, Fatal};
use crate::execution::{Call, Context, Effects, Executions, Trace};
use crate::failpoint::{Failpoint, Failpoints};
use crate::gateway::{Counters, Gateway, GatewayContext, reconnaissance};
use crate::hash::{Digest, FastMap, key_hash};
use crate::limits::{
    EPOCH_MICROSECONDS_DEFAULT, Limits, SCAN_PAGE_BYTES_MAX, SCAN_PAGE_ROWS_MAX, STEP_GARBAGE_MAX,
};
use crate::message::{ClientRequest, Delivered, Message, Page, Reply, Report, Request, RequestId, Work};
use crate::position::{Epoch, PartitionId, PartitionSet, Position};
use crate::procedure::Catalog;
use crate::sequencer::{Merger, Progress, Sequencer};
use crate::storage::{Statistics, Storage};

pub use any::{AnyNode, node, node_with};

/// Transactions whose rows are prefetched together.
const PREFETCH_CALLS: usize = 8;

/// Something that happened to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// Clients that are connected to this node ask.
    Requests(Vec<ClientRequest>),
    /// A peer said something. Peers' messages arrive once each and in the order in which they were sent.
    Peer {
        /// The peer.
        from: PartitionId,
        /// What it said.
        message: Message,
    },
}

/// What a node wants done. Messages to one receiver must arrive in this order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Messages to peers.
    pub sends: Vec<(PartitionId, Message)>,
    /// Answers to clients that are connected to this node.
    pub replies: Vec<Reply>,
    /// What was done, if the node is asked to tell; nobody needs to send it.
    pub trace: Trace,
}

/// What a node tells about itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// What became of requests whose home is here.
    pub counters: Counters,
    /// The last epoch that was delivered here.
    pub delivered: Epoch,
    /// Transactions that wait for an epoch.
    pub waiting: u64,
    /// Delivered transactions that have not finished.
    pub live: u64,
    /// Messages sent to other partitions.
    pub messages: u64,
    /// Their payload in bytes.
    pub message_bytes: u64,
    /// Rows held.
    pub rows: u64,
    /// Versions and deleted rows that are kept for snapshots or not yet freed.
    pub garbage: u64,
    /// Digest of this partition's rows, if asked for; see [`Node::digest`].
    pub digest: Option<u128>,
}

/// How a node fits into its cluster.
#[derive(Clone, Debug)]
pub struct NodeConfiguration {
    /// The partition that the node holds.
    pub me: PartitionId,
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// The length of an epoch in microseconds (CAL-20).
    pub epoch_microseconds: u64,
    /// The limits of its queues.
    pub limits: Limits,
    /// Whether the node tells what it orders and executes, for checkers; see [`Trace`].
    pub trace: bool,
}

impl NodeConfiguration {
    /// A node with the usual epoch and limits.
    pub fn new(me: PartitionId, partitions: u16) -> NodeConfiguration {
        let epoch_microseconds = EPOCH_MICROSECONDS_DEFAULT;
        NodeConfiguration { me, partitions, epoch_microseconds, limits: Limits::default(), trace: false }
    }
}

/// See the [module](self).
pub struct Node<E> {
    me: PartitionId,
    partitions: u16,
    limits: Limits,
    catalog: Catalog,
    storage: Box<dyn Storage + Send>,
    gateway: Gateway,
    sequencer: Sequencer,
    merger: Merger,
    engine: E,
    /// Delivered transactions that the engine has not got, in order.
    ready: VecDeque<Delivered>,
    effects: Effects,
    /// Snapshots that wait for earlier transactions to finish here, in order.
    opening: VecDeque<(Position, RequestId)>,
    /// Snapshots that can be read here.
    open: Vec<Position>,
    /// Snapshots ordered here, with the partitions that are not ready.
    unready: FastMap<RequestId, PartitionSet>,
    /// The transactions that are delivered next, and the hashes of their keys.
    group: Vec<Call>,
    hashes: Vec<u64>,
    messages: u64,
    message_bytes: u64,
}

impl<E: Engine> Node<E> {
    /// A node with the rows that are in `storage` and no history.
    pub fn new(
        configuration: &NodeConfiguration,
        catalog: Catalog,
        engine: E,
        storage: Box<dyn Storage + Send>,
    ) -> Node<E> {
        let NodeConfiguration { me, partitions, epoch_microseconds, limits, trace } = *configuration;
        let mut effects = Effects::new(partitions);
        effects.executed = trace.then(Vec::new);
        Node {
            me,
            partitions,
            limits,
            catalog,
            storage,
            gateway: Gateway::new(me, partitions, limits),
            sequencer: Sequencer::new(me, partitions, epoch_microseconds, limits),
            merger: Merger::new(me, partitions),
            engine,
            ready: VecDeque::new(),
            effects,
            opening: VecDeque::new(),
            open: Vec::new(),
            unready: FastMap::default(),
            group: Vec::new(),
            hashes: Vec::new(),
            messages: 0,
            message_bytes: 0,
        }
    }

    /// Takes the events (leaving the buffer empty), moves on, and says what is to be sent. `now` is in microseconds and never
    /// goes back.
    ///
    /// Returns whether there is more to do at once: the driver sends what is in the outbox, and steps again with what has
    /// come meanwhile.
    ///
    /// # Errors
    /// When going on would make this node differ from others; it must stop.
    pub fn step(&mut self, now: u64, events: &mut Vec<Event>, outbox: &mut Outbox) -> Result<bool, Fatal> {
        for event in events.drain(..) {
            match event {
                Event::Requests(requests) => self.take_requests(requests, outbox),
                Event::Peer { from, message } => self.take_message(from, message, outbox)?,
            }
        }
        let closed = self.order(now, outbox);
        // The batches of a closed epoch go out before execution begins, so that peers need not wait for it.
        if !closed || self.partitions == 1 {
            self.execute()?;
        }
        self.open_snapshots();
        self.flush(outbox);
        let garbage_left = self.storage.collect_garbage(STEP_GARBAGE_MAX) >= STEP_GARBAGE_MAX;
        let executes = !self.ready.is_empty() && self.engine.live() < self.limits.transactions_live;
        // Execution may have made room for an epoch, and a restart may have brought work for one.
        Ok(executes || garbage_left || self.sequencer.close_due(now, self.progress()))
    }

    /// What decides whether an epoch may close.
    fn progress(&self) -> Progress {
        Progress {
            delivered: self.merger.delivered(),
            busy: self.ready.len() >= self.limits.step_transactions,
            full: self.ready.len() >= self.limits.sequencer_waiting,
        }
    }

    /// When the node next wants to be stepped although nothing has happened, in microseconds.
    pub fn deadline(&self) -> Option<u64> {
        self.sequencer.deadline()
    }

    /// Whether nothing is under way here.
    pub fn is_idle(&self) -> bool {
        self.sequencer.waiting() == 0
            && self.sequencer.open() == self.merger.delivered().next()
            && self.ready.is_empty()
            && self.engine.live() == 0
            && self.gateway.in_flight() == 0
            && self.opening.is_empty()
    }

    fn take_requests(&mut self, requests: Vec<ClientRequest>, outbox: &mut Outbox) {
        let mut forwards: Vec<(PartitionId, Request)> = Vec::new();
        for request in requests {
            match request {
                ClientRequest::Ordered(request) if request.id.client.home == self.me => {
                    self.submit(request, self.me);
                }
                ClientRequest::Ordered(request) => {
                    let home = request.id.client.home;
                    if home.0 >= self.partitions {
                        let problem = format!("client home {home} is outside of the cluster");
                        outbox
                            .replies
                            .push(Reply { request: request.id, outcome: Err(Error::Invalid(problem)) });
                    } else {
                        forwards.push((home, request));
                    }
                }
                ClientRequest::Scan { request, at, range, rows } => {
                    let outcome = self.scan_page(at, &range, rows as usize).map(|page| encode_body(&page));
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::CloseSnapshot(at) => self.close_snapshot_everywhere(at, outbox),
                ClientRequest::Status { request, digest } => {
                    let outcome = Ok(encode_body(&self.status(digest)));
                    outbox.replies.push(Reply { request, outcome });
                }
            }
        }
        for (home, requests) in grouped(forwards) {
            self.send(home, Message::Forward(requests), outbox);
        }
    }

    fn submit(&mut self, request: Request, entry: PartitionId) {
        let (gateway, mut context) = self.gateway();
        gateway.submit::<E::Failpoints>(request, entry, &mut context);
    }

    /// The gateway, with the parts that it works with.
    fn gateway(&mut self) -> (&mut Gateway, GatewayContext<'_>) {
        let context = GatewayContext {
            catalog: &self.catalog,
            storage: &mut *self.storage,
            sequencer: &mut self.sequencer,
        };
        (&mut self.gateway, context)
    }

    /// The engine, with the parts that it works with.
    fn engine(&mut self) -> (&mut E, Context<'_>) {
        let context = Context {
            me: self.me,
            partitions: self.partitions,
            catalog: &self.catalog,
            storage: &mut *self.storage,
            effects: &mut self.effects,
        };
        (&mut self.engine, context)
    }

    fn take_message(
        &mut self,
        from: PartitionId,
        message: Message,
        outbox: &mut Outbox,
    ) -> Result<(), Fatal> {
        match message {
            Message::Batch { epoch, transactions } => {
                self.sequencer.follow(epoch);
                let part = transactions.into_iter().map(|(index, ordered)| (index, ordered, None)).collect();
                self.merger.receive(from, epoch, part);
            }
            Message::Reads(reads) => {
                let (engine, mut context) = self.engine();
                engine.receive(from, &reads, &mut context)?;
            }
            Message::Reports(reports) => reports.into_iter().for_each(|report| self.report(report)),
            Message::SnapshotReady { request, at } => self.snapshot_ready(request, at, from),
            Message::CloseSnapshot(at) => self.close_snapshot(at),
            Message::Forward(requests) => {
                requests.into_iter().for_each(|request| self.submit(request, from));
            }
            Message::Replies(replies) => outbox.replies.extend(replies),
            Message::Fetch { ticket, want } => {
                let rows = reconnaissance::serve(&want, &mut *self.storage);
                self.send(from, Message::Fetched { ticket, want, rows }, outbox);
            }
            Message::Fetched { ticket, want, rows } => {
                let (gateway, mut context) = self.gateway();
                gateway.fetched(from, ticket, want, rows, &mut context);
            }
        }
        Ok(())
    }

    /// Closes epochs that are due and delivers those that are complete; whether any was closed.
    fn order(&mut self, now: u64, outbox: &mut Outbox) -> bool {
        let mut closed_any = false;
        loop {
            while self.merger.deliver_next::<E::Failpoints>(&mut self.ready) {}
            if !self.sequencer.close_due(now, self.progress()) {
                return closed_any;
            }
            closed_any = true;
            let closed = self.sequencer.close(now);
            if self.effects.executed.is_some() {
                outbox.trace.closed.push((closed.epoch, closed.whole()));
            }
            self.merger.receive(self.me, closed.epoch, closed.own);
            for (partition, transactions) in closed.parts.into_iter().enumerate() {
                let partition = PartitionId(partition as u16);
                let skipped = E::Failpoints::on(Failpoint::SkipEmptyBatch) && transactions.is_empty();
                if partition != self.me && !skipped {
                    self.send(partition, Message::Batch { epoch: closed.epoch, transactions }, outbox);
                }
            }
        }
    }

    /// Gives delivered transactions to the engine, as many as a step may execute, in groups whose rows are prefetched together.
    fn execute(&mut self) -> Result<(), Fatal> {
        let mut left = self.limits.step_transactions;
        while !self.ready.is_empty() {
            let room = self.limits.transactions_live.saturating_sub(self.engine.live());
            let most = room.min(left).min(PREFETCH_CALLS);
            if most == 0 {
                break;
            }
            left -= most;
            self.place_group(most)?;
            let mut group = std::mem::take(&mut self.group);
            for call in group.drain(..) {
                let (engine, mut context) = self.engine();
                engine.deliver(call, &mut context);
            }
            self.group = group;
        }
        Ok(())
    }

    /// Takes the next delivered transactions up to a snapshot, finds their footprints, and prefetches their rows.
    fn place_group(&mut self, most: usize) -> Result<(), Fatal> {
        self.hashes.clear();
        while self.group.len() < most {
            let Some(delivered) = self.ready.front() else { break };
            if delivered.ordered.work == Work::OpenSnapshot {
                // What is ahead of the snapshot is delivered first: later writes must find it open.
                if self.group.is_empty() {
                    self.begin_snapshot();
                }
                break;
            }
            let Some(delivered) = self.ready.pop_front() else { break };
            let call = Call::of(delivered, &mut self.gateway.spare, &self.catalog, self.partitions)?;
            let Some(call) = call else { continue };
            self.effects.executions.delivered += 1;
            call.local_hashes(self.me, &mut self.hashes);
            self.group.push(call);
        }
        self.storage.prefetch(&self.hashes);
        Ok(())
    }

    /// Opens the snapshot that is next in the order.
    fn begin_snapshot(&mut self) {
        if let Some(Delivered { position, ordered, .. }) = self.ready.pop_front() {
            self.storage.open_snapshot(position);
            self.opening.push_back((position, ordered.request));
        }
    }

    /// Reports snapshots for which all earlier transactions have finished here.
    fn open_snapshots(&mut self) {
        while let Some((at, request)) = self.opening.front().copied() {
            let early = E::Failpoints::on(Failpoint::OpenSnapshotEarly);
            if self.engine.oldest_live().is_some_and(|oldest| oldest < at) && !early {
                return;
            }
            self.opening.pop_front();
            self.open.push(at);
            if at.origin == self.me {
                self.snapshot_ready(request, at, self.me);
            } else {
                self.effects.snapshots.push((at.origin, request, at));
            }
        }
    }

    fn snapshot_ready(&mut self, request: RequestId, at: Position, from: PartitionId) {
        // A peer may be ready before this node has come to the snapshot's position itself.
        let all = PartitionSet::all(self.partitions);
        let missing = self.unready.entry(request).or_insert(all);
        missing.remove(from);
        if missing.is_empty() {
            self.unready.remove(&request);
            self.gateway.answer(request, Ok(encode_body(&at)));
        }
    }

    fn close_snapshot_everywhere(&mut self, at: Position, outbox: &mut Outbox) {
        let mut others = PartitionSet::all(self.partitions);
        others.remove(self.me);
        for partition in others.iter() {
            self.send(partition, Message::CloseSnapshot(at), outbox);
        }
        self.close_snapshot(at);
    }

    fn close_snapshot(&mut self, at: Position) {
        let Some(place) = self.open.iter().position(|open| *open == at) else { return };
        self.open.swap_remove(place);
        self.storage.close_snapshot(at);
        if at.origin == self.me {
            self.gateway.snapshot_closed();
        }
    }

    fn report(&mut self, report: Report) {
        let (gateway, mut context) = self.gateway();
        gateway.report(report, &mut context);
    }

    /// Turns what the engine and the gateway produced into messages and replies.
    fn flush(&mut self, outbox: &mut Outbox) {
        for partition in 0..self.partitions {
            let reads = std::mem::take(&mut self.effects.reads[usize::from(partition)]);
            if !reads.is_empty() {
                self.send(PartitionId(partition), Message::Reads(Bytes::from(reads)), outbox);
            }
        }
        let mut reports = std::mem::take(&mut self.effects.reports);
        let mut remote: Vec<(PartitionId, Report)> = Vec::new();
        for (origin, report) in reports.drain(..) {
            if origin == self.me { self.report(report) } else { remote.push((origin, report)) }
        }
        self.effects.reports = reports;
        for (origin, reports) in grouped(remote) {
            self.send(origin, Message::Reports(reports), outbox);
        }
        for (origin, request, at) in std::mem::take(&mut self.effects.snapshots) {
            self.send(origin, Message::SnapshotReady { request, at }, outbox);
        }
        if let Some(executed) = &mut self.effects.executed {
            outbox.trace.executed.append(executed);
        }
        self.gateway.spare.append(&mut self.effects.footprints);
        for (partition, ticket, want) in std::mem::take(&mut self.gateway.effects.fetches) {
            self.send(partition, Message::Fetch { ticket, want }, outbox);
        }
        let mut answers = std::mem::take(&mut self.gateway.effects.answers);
        let mut remote: Vec<(PartitionId, Reply)> = Vec::new();
        for (entry, request, outcome) in answers.drain(..) {
            let reply = Reply { request, outcome };
            if entry == self.me { outbox.replies.push(reply) } else { remote.push((entry, reply)) }
        }
        self.gateway.effects.answers = answers;
        for (entry, replies) in grouped(remote) {
            self.send(entry, Message::Replies(replies), outbox);
        }
    }

    fn send(&mut self, to: PartitionId, message: Message, outbox: &mut Outbox) {
        debug_assert_ne!(to, self.me, "a node does not send to itself");
        self.messages += 1;
        self.message_bytes += message.payload_bytes() as u64;
        outbox.sends.push((to, message));
    }

    /// A page of a range as of an open snapshot.
    fn scan_page(&mut self, at: Position, range: &KeyRange, rows: usize) -> Result<Page, Error> {
        if !self.open.contains(&at) {
            return Err(Error::Invalid(format!("there is no snapshot open at {at}: open one")));
        }
        let mut page = Page::default();
        let mut bytes = 0;
        let rows_max = rows.clamp(1, SCAN_PAGE_ROWS_MAX);
        self.storage.scan(range, at, &mut |key, row| {
            if page.rows.len() >= rows_max || bytes >= SCAN_PAGE_BYTES_MAX {
                page.more = true;
                return ControlFlow::Break(());
            }
            bytes += key.len() + row.len();
            page.rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(row)));
            ControlFlow::Continue(())
        });
        Ok(page)
    }

    /// What the node tells about itself.
    pub fn status(&self, digest: bool) -> Status {
        let Statistics { rows, garbage, .. } = self.storage.statistics();
        Status {
            counters: self.gateway.counters,
            delivered: self.merger.delivered(),
            waiting: self.sequencer.waiting() as u64,
            live: (self.engine.live() + self.ready.len()) as u64,
            messages: self.messages,
            message_bytes: self.message_bytes,
            rows: rows as u64,
            garbage: garbage as u64,
            digest: digest.then(|| self.digest().0),
        }
    }

    /// What was executed so far.
    pub fn executions(&self) -> Executions {
        self.effects.executions
    }

    /// Digest of the newest state. The digests of all partitions add up to the same sum for any number of partitions: rows that
    /// every partition holds are counted at partition 0 only.
    pub fn digest(&self) -> Digest {
        let schema = &self.catalog.schema;
        let counted = |key: &[u8]| {
            let replicated =
                schema.table_of(key).is_ok_and(|table| *table.partitioning() == Partitioning::Replicated);
            !replicated || self.me == PartitionId(0)
        };
        self.storage.digest(Position::LATEST, &counted)
    }

    /// The newest row of a key, without regard to transactions: for tests and tools.
    pub fn peek(&self, key: &Key) -> Option<&[u8]> {
        let record = self.storage.locate(key, key_hash(key))?;
        Some(self.storage.row(record))
    }

    /// Live transactions, a line each, for scripts and people.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        self.engine.describe(&mut out);
        let awaited = self.merger.awaited();
        if !awaited.is_empty() {
            let names: Vec<String> = awaited.iter().map(PartitionId::to_string).collect();
            out.push_str(&format!("{} waits for {}\n", self.merger.delivered().next(), names.join(" ")));
        }
        out
    }
}

/// Puts items for one receiver together; receivers in ascending order, items in theirs.
fn grouped<T>(items: Vec<(PartitionId, T)>) -> Vec<(PartitionId, Vec<T>)> {
    let mut groups: Vec<(PartitionId, Vec<T>)> = Vec::new();
    for (to, item) in items {
        match groups.iter_mut().find(|(other, _)| *other == to) {
            Some((_, group)) => group.push(item),
            None => groups.push((to, vec![item])),
        }
    }
    groups
}

fn encode_body<T: Serialize>(body: &T) -> Bytes {
    Bytes::from(postcard::to_allocvec(body).expect("replies have no unserialisable parts"))
}
