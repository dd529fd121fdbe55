//! A node: one partition of one replica of the database, as one state machine.
//!
//! [`Node::step`] takes what has happened and says what is to be sent. It never blocks and knows no clock, thread or socket: a
//! server and a simulator drive the same step.
//!
//! | file | what |
//! |---|---|
//! | `ordering` | epochs are closed, logged, and handed on once the log has them |
//! | `epochs` | an epoch manager says when they are closed, if there is one |
//! | `execution` | what was ordered goes to the engine, or opens and closes snapshots |
//! | `held` | which snapshots are open, and how those end that nobody closes |
//! | `outgoing` | what was produced becomes messages; [`streams`] keeps them, [`routes`] says where they go |
//! | `peers` | what nodes of other partitions and replicas say |
//! | `checkpoints` | the state at a point of the order goes to the disk; [`stability`] says what can go then |
//! | `stand_in` | another replica answers the clients of a leader that stands still |
//! | `transfer` | checkpoints go to replicas that are too far behind |
//! | `branches` | what was executed and then lost with a leader |
//! | `forwards` | requests that were sent on, for as long as they may be lost |
//! | `group` | who belongs to the replication group, and who leads it |
//! | [`agreement`] | replicas compare what they have written |
//! | `telling` | status, digests, pages of snapshots |

pub mod agreement;
mod any;
mod branches;
mod checkpoints;
mod details;
mod epochs;
mod execution;
mod forwards;
mod group;
mod held;
pub mod membership;
mod newest;
pub mod ordering;
mod outgoing;
mod pace;
mod peers;
pub mod routes;
pub mod stability;
mod stand_in;
pub mod streams;
mod telling;
mod transfer;
mod two_phase;

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::ReplicatedLog;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::{Error, Fatal};
use crate::execution::{Call, Context, Effects, Trace};
use crate::gateway::{CheckpointTurn, Gateway, GatewayContext, not_leading};
use crate::hash::{Digest, FastMap};
use crate::limits::{Limits, STEP_GARBAGE_MAX};
use crate::message::{ClientRequest, Delivered, Message, Operation, Reply, Request, RequestId};
use crate::position::{Entry, Epoch, NodeId, PartitionId, PartitionSet, Position, ReplicaId};
use crate::procedure::Catalog;
use crate::sequencer::{EpochOptions, Merger, Sequencer};
use crate::storage::Storage;

use agreement::Agreement;
pub use any::{AnyNode, node, node_with};
use branches::Branches;
use checkpoints::Checkpoints;
pub use checkpoints::{CheckpointMode, CheckpointOptions, NODE_SECTION, Resumed, SavedNode};
pub use details::{ContendedKey, Details, OpenSnapshot, WaitingTransaction};
use epochs::Epochs;
use forwards::Forwards;
pub use group::{FollowerGroupStatus, GroupStatus};
use held::Held;
pub use held::SILENCE_MICROSECONDS;
use newest::Unordered;
use ordering::Log;
use pace::Pace;
use routes::Routes;
use stand_in::StandIn;
use streams::Streams;
pub use telling::Status;
use transfer::Transfers;
pub use two_phase::TwoPhaseNode;

/// Something that happened to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// Clients that are connected to this node ask.
    Requests(Vec<ClientRequest>),
    /// A peer said something. While no [`Event::LinkReset`] comes in between, its messages arrive once each and in the order
    /// in which they were sent.
    Peer {
        /// The peer.
        from: NodeId,
        /// What it said.
        message: Message,
    },
    /// Messages to and from a peer may have been lost, as one of the two has started again. What is sent from now on arrives.
    LinkReset(NodeId),
    /// What [`DiskWrite::Append`] asked for is durable, through this number.
    Persisted(u64),
    /// A chunk of the checkpoint is durable.
    CheckpointChunkWritten,
    /// The checkpoint at the end of the epoch is durable as a whole.
    CheckpointWritten(Epoch),
    /// A piece of a checkpoint was read.
    CheckpointRead {
        /// The end of its epoch.
        epoch: Epoch,
        /// Where the piece begins.
        offset: u64,
        /// The piece; shorter than was asked for where the file ends.
        bytes: Bytes,
        /// Who wants it.
        to: NodeId,
    },
    /// The disk had no room for the checkpoint; what was written of it is removed.
    CheckpointFailed(String),
    /// The node is about to stop: if it leads its group, another is to lead.
    HandOverLeadership,
    /// The cluster has places for so many replicas now; what is smaller than before is ignored.
    Replicas(u16),
}

/// Something that a node wants done with its disk; [`NodeDisk`](crate::disk::NodeDisk) does it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskWrite {
    /// Append records to the log. Once they and all before them are durable, [`Event::Persisted`] with the number says so.
    Append {
        /// Ascending.
        number: u64,
        /// Opaque records, in order.
        records: Vec<Bytes>,
        /// The highest index in the log that the records have, if they have one.
        index_max: Option<u64>,
        /// Whether anything depends on the records being durable. If not, it is enough that they are written.
        must_sync: bool,
    },
    /// Append records that state anew what the oldest ones say, and then remove the oldest segments whose entries all have at
    /// most this index.
    TruncateLog {
        /// The index.
        through: u64,
        /// The records.
        restatement: Vec<Bytes>,
    },
    /// Begin the file of a checkpoint at the end of an epoch.
    BeginCheckpoint(Epoch),
    /// Append to it, and make that durable; then [`Event::CheckpointChunkWritten`].
    CheckpointChunk(Bytes),
    /// Give it its name, durably; then [`Event::CheckpointWritten`].
    EndCheckpoint,
    /// Read a piece of a checkpoint for another replica; then [`Event::CheckpointRead`].
    ReadCheckpoint {
        /// The end of its epoch.
        epoch: Epoch,
        /// Where the piece begins.
        offset: u64,
        /// How long it is at most.
        bytes: u64,
        /// Who wants it.
        to: NodeId,
    },
    /// Remove the checkpoint of an epoch, from which nobody starts.
    DropCheckpoint(Epoch),
    /// Start again from the checkpoint of an epoch from now on, and remove those of earlier epochs.
    RemoveCheckpoints {
        /// The epoch.
        before: Epoch,
    },
}

/// What a node wants done. Messages to one receiver must arrive in this order, and so must disk writes.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Messages to peers.
    pub sends: Vec<(NodeId, Message)>,
    /// Answers to clients that are connected to this node.
    pub replies: Vec<Reply>,
    /// For the disk. Nothing in this outbox waits for it: what must wait, the node holds back itself.
    pub disk: Vec<DiskWrite>,
    /// What was done, if the node is asked to tell; nobody needs to send it.
    pub trace: Trace,
}

/// How a node fits into its cluster.
#[derive(Clone, Debug)]
pub struct NodeConfiguration {
    /// The partition and the replica that the node holds.
    pub me: NodeId,
    /// Number of partitions in the cluster.
    pub partitions: u16,
    /// Number of replicas, each with all partitions.
    pub replicas: u16,
    /// The replicas, with this one, whose nodes all tell each other what only their own replica's would have to: none where each
    /// replica cares for itself (CAL-107, CAL-108). Not for asynchronous replication.
    pub subgroup: Vec<ReplicaId>,
    /// What tells the cluster from others; it is in every checkpoint.
    pub cluster: u64,
    /// Who decides when epochs close, and how long they are.
    pub epochs: EpochOptions,
    /// When and how checkpoints are taken, if there is a log.
    pub checkpoints: CheckpointOptions,
    /// Tells the node's lives apart, where its clients are gone when it begins again, as those of a server are, which have connections to it:
    /// the snapshots that they have opened [end](Entry::life) then. For engines with an order.
    pub life: u64,
    /// The limits of its queues.
    pub limits: Limits,
    /// Whether the node tells what it orders and executes, for checkers; see [`Trace`].
    pub trace: bool,
}

impl NodeConfiguration {
    /// A node of the only replica, with the usual epoch and limits.
    pub fn new(me: PartitionId, partitions: u16) -> NodeConfiguration {
        NodeConfiguration {
            me: NodeId::first(me),
            partitions,
            replicas: 1,
            subgroup: Vec::new(),
            cluster: 0,
            checkpoints: CheckpointOptions::default(),
            epochs: EpochOptions::default(),
            life: 0,
            limits: Limits::default(),
            trace: false,
        }
    }
}

/// See the [module](self).
pub struct Node<E> {
    id: NodeId,
    /// The partition of `id`.
    me: PartitionId,
    partitions: u16,
    replicas: u16,
    cluster: u64,
    limits: Limits,
    catalog: Catalog,
    storage: Box<dyn Storage + Send>,
    gateway: Gateway,
    sequencer: Sequencer,
    epochs: Epochs,
    merger: Merger,
    engine: E,
    log: Log,
    routes: Routes,
    streams: Streams,
    checkpoints: Checkpoints,
    forwards: Forwards,
    branches: Branches,
    agreement: Agreement,
    transfers: Transfers,
    stand_in: StandIn,
    /// What was written in the epochs that have just finished.
    written: Vec<(Epoch, Digest)>,
    /// Delivered transactions that the engine has not got, in order.
    ready: VecDeque<Delivered>,
    /// How many of them were ordered here.
    own_ready: usize,
    effects: Effects,
    /// Snapshots that wait for earlier transactions to finish here, in order.
    opening: VecDeque<(Position, RequestId)>,
    /// Snapshots that can be read here, each with the time since when.
    open: Vec<(Position, u64)>,
    /// Those of them that have no place in the order.
    unordered: Unordered,
    held: Held,
    /// Snapshots ordered here, with the partitions that are not ready.
    unready: FastMap<RequestId, PartitionSet>,
    /// The transactions that are delivered next, and the hashes of their keys.
    group: Vec<Call>,
    hashes: Vec<u64>,
    messages: u64,
    message_bytes: u64,
    /// The time of the last step.
    now: u64,
    pace: Pace,
}

impl<E: Engine> Node<E> {
    /// A node with the rows that are in `storage` and no history. Without a log it keeps nothing and has no replicas.
    pub fn new(
        configuration: &NodeConfiguration,
        catalog: Catalog,
        engine: E,
        storage: Box<dyn Storage + Send>,
        log: Option<Box<dyn ReplicatedLog>>,
    ) -> Node<E> {
        let NodeConfiguration { me: id, partitions, replicas, cluster, limits, .. } = *configuration;
        let me = id.partition;
        let mut effects = Effects::new(partitions);
        effects.executed = configuration.trace.then(Vec::new);
        let mut streams = Streams::new(partitions, log.as_ref().map(|_| limits.stream_bytes));
        if log.is_none() {
            // Nobody starts again, so nobody subscribes.
            for partition in (0..partitions).map(PartitionId) {
                let nothing = streams.subscribe(partition, id.replica, Epoch(0));
                debug_assert_eq!(nothing, Ok(Vec::new()), "nothing was said yet");
            }
        }
        let volatile = log.is_none();
        let gateway = Gateway::new(me, partitions, limits);
        let mut node = Node {
            id,
            me,
            partitions,
            replicas,
            cluster,
            limits,
            catalog,
            storage,
            gateway,
            sequencer: Sequencer::new(me, partitions, configuration.epochs, limits),
            epochs: Epochs::default(),
            merger: Merger::new(me, partitions),
            engine,
            log: Log::new(log),
            routes: Routes::new(id, partitions, replicas, configuration.subgroup.clone()),
            streams,
            checkpoints: Checkpoints::new(me, partitions, configuration.checkpoints),
            forwards: Forwards::default(),
            branches: Branches::default(),
            agreement: Agreement::new(id.replica),
            transfers: Transfers::default(),
            stand_in: StandIn::default(),
            written: Vec::new(),
            ready: VecDeque::new(),
            own_ready: 0,
            effects,
            opening: VecDeque::new(),
            open: Vec::new(),
            unordered: Unordered::new(),
            held: Held::new(Entry { node: id, life: configuration.life }),
            unready: FastMap::default(),
            group: Vec::new(),
            hashes: Vec::new(),
            messages: 0,
            message_bytes: 0,
            now: 0,
            pace: Pace::new(limits.step_transactions),
        };
        if volatile {
            let (gateway, mut context) = node.gateway();
            gateway.lead(&mut context);
        }
        node
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
        self.now = now;
        self.pace.begin(now);
        let executed = self.effects.executions.delivered;
        self.check_installed()?;
        for event in events.drain(..) {
            match event {
                Event::Requests(requests) => self.take_requests(requests, outbox),
                Event::Peer { from, message } => self.take_message(now, from, message, outbox)?,
                Event::LinkReset(peer) => self.reset_link(peer, outbox),
                Event::Persisted(number) => {
                    if let Some(log) = &mut self.log.replicated {
                        log.persisted(number);
                    }
                }
                Event::CheckpointChunkWritten => self.checkpoints.chunk_written(),
                Event::CheckpointWritten(epoch) => self.checkpoint_written(now, epoch, outbox),
                Event::CheckpointFailed(reason) => {
                    self.give_transfer_up(now);
                    self.checkpoint_failed(&reason, outbox);
                }
                Event::HandOverLeadership => self.hand_over_leadership(),
                Event::Replicas(replicas) => self.grow(replicas),
                Event::CheckpointRead { epoch, offset, bytes, to } => {
                    self.send_piece(to, epoch, offset, bytes, outbox);
                }
            }
        }
        let (gateway, mut context) = self.gateway();
        gateway.go_on(&mut context);
        let closed = self.order(now, outbox)?;
        // The batches of a closed epoch go out before execution begins, so that peers need not wait for it.
        if !closed || self.partitions == 1 {
            self.execute()?;
        }
        let (engine, mut context) = self.engine();
        engine.settle(&mut context);
        self.open_snapshots();
        self.agree(outbox)?;
        self.watch(now, outbox)?;
        self.ask_for_ends(outbox);
        self.flush(outbox);
        // A checkpoint may begin when the last answer before its point is recorded.
        let checkpoint_goes_on = self.checkpoint(now, outbox);
        self.read_pieces(now, outbox);
        self.ask_to_stand_in(now, outbox);
        let garbage_left = self.storage.collect_garbage(STEP_GARBAGE_MAX) >= STEP_GARBAGE_MAX;
        let executes = !self.ready.is_empty()
            && self.engine.live() < self.limits.transactions_live
            && !self.checkpoints.is_frozen();
        // Execution may have made room for an epoch, and a restart may have brought work for one.
        self.make_room();
        let more = self.is_installed()
            || executes
            || garbage_left
            || checkpoint_goes_on
            || self.may_dispatch()
            || self.may_deliver()
            || self.may_close(now)
            || self.epochs_are_pressing();
        self.pace.end(now, self.effects.executions.delivered - executed, more);
        Ok(more)
    }

    /// When the node next wants to be stepped although nothing has happened, in microseconds. What was due at the last step waits
    /// for an event.
    pub fn deadline(&self) -> Option<u64> {
        let orders = self.gateway.leads() && self.me == PartitionId(0);
        let checkpoint = self.checkpoints.deadline().filter(|_| orders);
        let log = self.log.replicated.as_ref().and_then(|log| log.deadline());
        let paced = self.checkpoints.paced_until();
        let (gateway, routes) = (self.gateway.deadline(), self.routes.deadline());
        let deadlines = [
            self.epoch_deadline(),
            checkpoint,
            paced,
            self.transfers.deadline(),
            log,
            gateway,
            routes,
            self.held.deadline(),
        ];
        deadlines.into_iter().flatten().filter(|deadline| *deadline > self.now).min()
    }

    /// Whether nothing is under way here.
    pub fn is_idle(&self) -> bool {
        self.has_nothing_else() && self.checkpoints.is_idle()
    }

    /// The same, besides a checkpoint.
    fn has_nothing_else(&self) -> bool {
        let logged = self.log.closed.is_empty() && self.log.committed.is_empty();
        let in_flight = self.log.replicated.as_ref().map_or(0, |log| log.in_flight());
        self.sequencer.waiting() == 0
            && logged
            && in_flight == 0
            && self.log.dispatched == self.merger.delivered()
            && self.epochs.is_resting()
            && self.ready.is_empty()
            && self.engine.live() == 0
            && self.gateway.in_flight() == 0
            && self.opening.is_empty()
            && self.held.is_settled()
    }

    fn take_requests(&mut self, requests: Vec<ClientRequest>, outbox: &mut Outbox) {
        let mut forwards: Vec<(PartitionId, Request)> = Vec::new();
        for request in requests {
            match request {
                ClientRequest::Ordered(request) if request.id.is_own() => {
                    let problem = "the highest client number is the cluster's own: draw another".to_owned();
                    outbox.replies.push(Reply { request: request.id, outcome: Err(Error::Invalid(problem)) });
                }
                ClientRequest::Ordered(request)
                    if request.id.client.home == self.me && self.gateway.leads() =>
                {
                    match self.answer_at_once(&request) {
                        Some(outcome) => outbox.replies.push(Reply { request: request.id, outcome }),
                        None => self.submit(request, self.held.entry()),
                    }
                }
                ClientRequest::Ordered(request) => {
                    if let Some(outcome) = self.answer_behind(&request) {
                        outbox.replies.push(Reply { request: request.id, outcome });
                        continue;
                    }
                    let home = request.id.client.home;
                    if home.0 >= self.partitions {
                        let problem = format!("client home {home} is outside of the cluster");
                        let outcome = Err(Error::Invalid(problem));
                        outbox.replies.push(Reply { request: request.id, outcome });
                    } else {
                        forwards.push((home, request));
                    }
                }
                ClientRequest::Scan { request, at, range, direction, rows } => {
                    let page = self.scan_page(at, &range, direction, rows as usize);
                    let outcome = page.map(|page| encode_body(&page));
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::Read { request, at, procedure, arguments } => {
                    let outcome = self.read_snapshot(at, procedure, &arguments);
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::CloseSnapshot(at) => self.close_snapshot(at, outbox),
                ClientRequest::ChangeMembership { request, voters, learners } => {
                    let outcome = self.change_membership(&voters, &learners);
                    outbox.replies.push(Reply { request, outcome });
                }
                ClientRequest::Status { request, digest } => {
                    outbox.replies.push(Reply { request, outcome: Ok(encode_body(&self.status(digest))) });
                }
                ClientRequest::Details { request } => {
                    outbox.replies.push(Reply { request, outcome: Ok(encode_body(&self.details())) });
                }
            }
        }
        for (home, requests) in outgoing::grouped(forwards) {
            self.forward(home, self.held.entry(), requests, outbox);
        }
    }

    /// Sends requests towards the leader of their home.
    fn forward(&mut self, home: PartitionId, entry: Entry, requests: Vec<Request>, outbox: &mut Outbox) {
        let to = if home == self.me { self.leader() } else { Some(self.routes.to(home)) };
        match to {
            Some(to) => {
                if self.replicas > 1 {
                    requests.iter().for_each(|request| self.forwards.note(to, entry.node, request.id));
                }
                self.send(to, Message::Forward { entry, requests }, outbox);
            }
            None => {
                for request in requests {
                    self.reply(
                        entry.node,
                        Reply { request: request.id, outcome: Err(not_leading()) },
                        outbox,
                    );
                }
            }
        }
    }

    fn submit(&mut self, request: Request, entry: Entry) {
        if matches!(request.operation, Operation::Checkpoint) {
            self.gateway.checkpoint_turn = self.turn_of_request();
        }
        let (gateway, mut context) = self.gateway();
        gateway.submit::<E::Failpoints>(request, entry, &mut context);
        if std::mem::take(&mut self.gateway.has_ordered_checkpoint)
            && let CheckpointTurn::Of(replica) = self.gateway.checkpoint_turn
        {
            self.begin_turn(Some(replica));
        }
    }

    /// The gateway, with the parts that it works with.
    fn gateway(&mut self) -> (&mut Gateway, GatewayContext<'_>) {
        let context = GatewayContext {
            now: self.now,
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
}

fn encode_body<T: Serialize>(body: &T) -> Bytes {
    Bytes::from(postcard::to_allocvec(body).expect("replies have no unserialisable parts"))
}
