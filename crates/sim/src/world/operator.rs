//! The operator: brings back replicas that have lost data, as `ordain replica remove` and then `ordain replica add` do.
//!
//! It sees to one replica at a time and to one of its nodes after the other. It asks all nodes of a partition for their status,
//! tells the leader what to propose, and asks again, until a goal is reached; all of that goes over the network, from the
//! auditor's host. First the nodes vote no longer, then they leave their groups: also those that have not lost anything, as the
//! command sees to whole replicas. Only then are all of them started, empty; then they get the log, catch up, and vote. Whoever
//! is to leave comes before those who come back.
//!
//! An empty node starts by the rule that a process with an empty directory follows itself (`standing` in the server): a majority
//! of those that vote, by what the one says that has come furthest, have said how they stand, and it does not vote.
//!
//! A proposal follows from a status that was asked for when the proposal before it was answered or given up. One that was given
//! up reaches nobody later: the connection is closed. And what a leader of an earlier term says is not believed. So nothing that
//! is out of date is ever proposed.
//!
//! Unlike the command it does not look whether the others can do without a replica: it tries again until they can. And it ends
//! the nodes that were removed itself; the server's end by themselves.

use std::collections::{BTreeMap, VecDeque};

use ordain_db::message::{ClientId, ClientRequest, Reply, RequestId};
use ordain_db::node::membership::{Members, Progress};
use ordain_db::node::{GroupStatus, Status};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};

use super::clients::Sent;
use super::process::Condition;
use super::{Happening, World};
use crate::plan::Plan;
use crate::time::{MILLISECOND, Nanoseconds};

/// The operator's number as a client; no client of a plan has it.
const NUMBER: u64 = (1 << 32) + 1;

/// The time between two looks. The command waits longer, during which more would go on than most runs have.
const PAUSE: Nanoseconds = 10 * MILLISECOND;

/// How much longer than a round trip it waits for answers.
const PATIENCE: Nanoseconds = 100 * MILLISECOND;

/// What is to be reached for all nodes of a replica before the next thing is begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    VotesNoLonger,
    HasLeft,
    MayStart,
    GetsTheLog,
    HasCaughtUp,
    Votes,
}

impl Goal {
    /// Whether the nodes are still to leave.
    fn is_to_leave(self) -> bool {
        matches!(self, Goal::VotesNoLonger | Goal::HasLeft)
    }

    fn next(self) -> Option<Goal> {
        match self {
            Goal::VotesNoLonger => Some(Goal::HasLeft),
            Goal::HasLeft => Some(Goal::MayStart),
            Goal::MayStart => Some(Goal::GetsTheLog),
            Goal::GetsTheLog => Some(Goal::HasCaughtUp),
            Goal::HasCaughtUp => Some(Goal::Votes),
            Goal::Votes => None,
        }
    }
}

/// A replica that has lost data.
#[derive(Debug)]
struct Job {
    replica: ReplicaId,
    nodes: Vec<NodeId>,
    goal: Goal,
    /// For so many of its nodes the goal is reached.
    reached: usize,
    /// What each node has said last of its group since the job began.
    said: BTreeMap<NodeId, GroupStatus>,
}

/// What the operator waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Time.
    Resting,
    /// Answers of all replicas, in order, to requests from this number on.
    Asking(u64),
    /// The answer to a proposal, which may have reached its node.
    Proposing { sequence: u64, arrived: bool },
}

/// What follows from an answer.
enum Next {
    /// Nothing.
    Wait,
    /// Look again after so long.
    Rest(Nanoseconds),
    /// Send a proposal.
    Propose(Sent),
    /// The nodes of a replica start.
    Start(ReplicaId),
    /// The nodes of a replica vote again.
    Finished(ReplicaId),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Operator {
    replicas: u16,
    patience: Nanoseconds,
    /// The replicas that are still to leave are seen to first.
    jobs: VecDeque<Job>,
    phase: Phase,
    /// The number of the next request.
    next: u64,
    /// What was planned for an earlier turn is void.
    turn: u64,
    /// By partition, the highest term of a leader that was heard of.
    terms: Vec<u64>,
}

impl Operator {
    pub(crate) fn new(plan: &Plan) -> Operator {
        Operator {
            replicas: plan.replicas,
            patience: plan.network.topology.round_trip_max() + PATIENCE,
            jobs: VecDeque::new(),
            phase: Phase::Resting,
            next: 0,
            turn: 0,
            terms: vec![0; usize::from(plan.partitions)],
        }
    }

    pub(crate) fn is_operator(client: ClientId) -> bool {
        client.number == NUMBER
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a replica has lost data, and not all of its nodes vote again.
    pub(crate) fn sees_to(&self, replica: ReplicaId) -> bool {
        self.jobs.iter().any(|job| job.replica == replica)
    }

    /// What is done now, by its place.
    fn current(&self) -> usize {
        self.jobs.iter().position(|job| job.goal.is_to_leave()).unwrap_or(0)
    }

    /// What the operator is at, for people; nothing when it is done.
    pub(crate) fn describe(&self) -> String {
        let jobs = self.jobs.iter().map(|Job { replica, nodes, goal, reached, said }| {
            let group = nodes.get(*reached).and_then(|node| {
                let of_partition = said.iter().filter(|(other, _)| other.partition == node.partition);
                of_partition.map(|(_, group)| group).max_by_key(|group| (group.term, group.committed))
            });
            format!("\nthe operator sees to {replica}: {goal:?}, so far for {reached} nodes; {group:?}")
        });
        jobs.collect()
    }

    /// A replica has lost data.
    fn begin(&mut self, replica: ReplicaId, nodes: Vec<NodeId>) {
        self.jobs.retain(|job| job.replica != replica);
        let (goal, reached, said) = (Goal::VotesNoLonger, 0, BTreeMap::new());
        self.jobs.push_back(Job { replica, nodes, goal, reached, said });
    }

    /// Whether a request of a client gets to its node: a proposal that the operator has given up does not, nor does a copy.
    pub(crate) fn lets_pass(&mut self, request: &ClientRequest) -> bool {
        let ClientRequest::ChangeMembership { request, .. } = request else { return true };
        match &mut self.phase {
            Phase::Proposing { sequence, arrived } if *sequence == request.sequence => {
                !std::mem::replace(arrived, true)
            }
            _ => false,
        }
    }

    fn request(&self, home: PartitionId, sequence: u64) -> RequestId {
        RequestId { client: ClientId { home, number: NUMBER }, sequence }
    }

    /// Asks all nodes of the partition that is looked at; nothing when there is nothing to do.
    fn ask(&mut self) -> Vec<Sent> {
        let Some(job) = self.jobs.get(self.current()) else { return Vec::new() };
        let partition = job.nodes[job.reached].partition;
        let first = self.next;
        self.next += u64::from(self.replicas);
        self.phase = Phase::Asking(first);
        let ask = |replica| {
            let request = self.request(partition, first + u64::from(replica));
            let node = NodeId { partition, replica: ReplicaId(replica) };
            (node, ClientRequest::Status { request, digest: false })
        };
        (0..self.replicas).map(ask).collect()
    }

    fn reply(&mut self, reply: &Reply) -> Next {
        let sequence = reply.request.sequence;
        match self.phase {
            // Whether it was taken or refused shows when the leader is asked again.
            Phase::Proposing { sequence: proposed, .. } if sequence == proposed => Next::Rest(PAUSE),
            Phase::Asking(first) if (first..first + u64::from(self.replicas)).contains(&sequence) => {
                let status = reply.outcome.as_ref().ok();
                let status = status.and_then(|bytes| postcard::from_bytes::<Status>(bytes).ok());
                let replica = ReplicaId((sequence - first) as u16);
                match status.and_then(|status| Some((status.leads, status.group?))) {
                    Some((leads, group)) => self.said(replica, leads, group),
                    None => Next::Wait,
                }
            }
            _ => Next::Wait,
        }
    }

    /// A node has said how its group stands.
    fn said(&mut self, replica: ReplicaId, leads: bool, group: GroupStatus) -> Next {
        let current = self.current();
        let Some(job) = self.jobs.get_mut(current) else { return Next::Wait };
        let NodeId { partition, replica: wiped } = job.nodes[job.reached];
        job.said.insert(NodeId { partition, replica }, group.clone());
        let newest = &mut self.terms[partition.index()];
        let is_newest = leads && group.term >= *newest;
        if is_newest {
            *newest = group.term;
        }
        let change = match job.goal {
            Goal::MayStart if may_start(&job.said, job.nodes[job.reached]) => None,
            Goal::MayStart => return Next::Wait,
            _ if !is_newest => return Next::Wait,
            _ if !group.outgoing.is_empty() => return Next::Rest(PAUSE),
            Goal::VotesNoLonger => group.to_unvote(wiped),
            Goal::HasLeft => group.to_leave(wiped),
            Goal::GetsTheLog => group.to_learn(wiped),
            Goal::HasCaughtUp if group.progress(wiped) != Progress::CaughtUp => return Next::Rest(PAUSE),
            Goal::HasCaughtUp => None,
            Goal::Votes => group.to_vote(wiped),
        };
        match change {
            None => self.advance(),
            Some(Members { voters, learners }) => {
                let sequence = self.next;
                self.next += 1;
                self.phase = Phase::Proposing { sequence, arrived: false };
                let request = self.request(partition, sequence);
                let node = NodeId { partition, replica };
                Next::Propose((node, ClientRequest::ChangeMembership { request, voters, learners }))
            }
        }
    }

    /// A goal is reached for a node.
    fn advance(&mut self) -> Next {
        let current = self.current();
        let Some(job) = self.jobs.get_mut(current) else { return Next::Wait };
        let (replica, reached) = (job.replica, job.goal);
        job.reached += 1;
        if job.reached < job.nodes.len() {
            return Next::Rest(0);
        }
        job.reached = 0;
        match reached.next() {
            Some(next) => job.goal = next,
            None => {
                self.jobs.remove(current);
                return Next::Finished(replica);
            }
        }
        if reached == Goal::MayStart { Next::Start(replica) } else { Next::Rest(0) }
    }
}

impl World<'_> {
    /// A replica has lost data: the operator is to see to it.
    pub(super) fn call_operator(&mut self, replica: ReplicaId) {
        let nodes = self.nodes_of_replica(replica).into_iter().map(|node| self.processes[node].me).collect();
        self.operator.begin(replica, nodes);
        self.let_operator_rest(PAUSE);
    }

    fn let_operator_rest(&mut self, time: Nanoseconds) {
        self.operator.phase = Phase::Resting;
        self.plan_operator(time);
    }

    fn plan_operator(&mut self, time: Nanoseconds) {
        self.operator.turn += 1;
        self.heap.plan_after(time, Happening::OperatorWakes(self.operator.turn));
    }

    /// The operator has rested, or waited for answers for long enough.
    pub(super) fn operate(&mut self, turn: u64) {
        if turn != self.operator.turn {
            return;
        }
        let sends = self.operator.ask();
        if !sends.is_empty() {
            self.plan_operator(self.operator.patience);
        }
        for (to, request) in sends {
            self.send_requests(self.clients.len(), to, vec![request]);
        }
    }

    /// An answer has come to the operator.
    pub(super) fn operated(&mut self, reply: &Reply) {
        match self.operator.reply(reply) {
            Next::Wait => {}
            Next::Rest(time) => self.let_operator_rest(time),
            Next::Propose((to, request)) => {
                self.plan_operator(self.operator.patience);
                self.send_requests(self.clients.len(), to, vec![request]);
            }
            Next::Start(replica) => {
                self.start_to_join(replica);
                self.let_operator_rest(PAUSE);
            }
            Next::Finished(replica) => {
                self.happened.rejoined += 1;
                self.log.note(self.heap.now(), || format!("all nodes of {replica} vote again"));
                self.let_operator_rest(0);
            }
        }
    }

    /// The nodes of a replica that has lost data are no members any more. Those that run end; all start with empty disks.
    fn start_to_join(&mut self, replica: ReplicaId) {
        self.log.note(self.heap.now(), || format!("the nodes of {replica} may start, with empty disks"));
        let nodes = self.nodes_of_replica(replica);
        for node in &nodes {
            let machine = self.machine_of(*node);
            self.machines[machine].forget_damage();
            if self.processes[*node].condition != Condition::Wiped {
                self.stop_stepping(*node);
                self.processes[*node].wipe();
                self.dispatch(machine);
            }
            let process = &mut self.processes[*node];
            (process.joins, process.condition) = (true, Condition::Down);
        }
        for node in nodes {
            if self.machines[self.machine_of(node)].up && self.processes[node].condition == Condition::Down {
                self.start(node);
            }
        }
    }
}

/// Whether a node with an empty disk may start: what the node of its group knows that has come furthest says that it does not
/// vote, and a majority of those that do have said how they stand.
fn may_start(said: &BTreeMap<NodeId, GroupStatus>, node: NodeId) -> bool {
    // One that has just joined knows of no members yet.
    let of_group =
        || said.iter().filter(|(other, group)| other.partition == node.partition && !group.voters.is_empty());
    let Some((_, newest)) = of_group().max_by_key(|(_, group)| group.committed) else { return false };
    let has_said = |voter: &&ReplicaId| of_group().any(|(other, _)| other.replica == **voter);
    let majority = |voters: &[ReplicaId]| voters.iter().filter(has_said).count() > voters.len() / 2;
    majority(&newest.voters)
        && (newest.outgoing.is_empty() || majority(&newest.outgoing))
        && !newest.voters.contains(&node.replica)
        && !newest.outgoing.contains(&node.replica)
}
