//! The event log: what happens in a world, one line each, in plain words.
//!
//! A line begins with the virtual time in microseconds. `p` is a partition's node (`p0r1` that of replica 1, where there are
//! several), `m` a machine, `c` a client; `#4` is the
//! number of a message in the stream from one node to another (always 0 where nodes need no links), and a request is named by its client and its number there.
//! A log changes nothing: the events of a world are the same with and without one. It names requests that are sent again
//! and transactions that ran only in worlds whose plan is traced.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientRequest, Message, Ordered, Reply, RequestId, Verdict, Work};
use ordain_db::node::Outbox;
use ordain_db::position::{Epoch, NodeId, ReplicaId};

use super::auditor::Auditor;
use super::operator::Operator;
use super::{Parcel, World};
use crate::machine::cost::StepWork;
use crate::network::Host;
use crate::network::link::{Delivery, Frame, Packet};
use crate::plan::{Fault, Plan};
use crate::time::{MICROSECOND, Nanoseconds};

/// The lines that nobody has taken yet; `None` while nobody wants them.
#[derive(Default)]
pub(crate) struct Log(Option<Vec<String>>);

impl Log {
    /// Adds a line, which is only made when somebody wants it.
    #[inline]
    pub(super) fn note(&mut self, now: Nanoseconds, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(format!("{} {}", now / MICROSECOND, line()));
        }
    }

    /// Adds any number of lines.
    #[inline]
    pub(super) fn note_all(&mut self, now: Nanoseconds, lines: impl FnOnce() -> Vec<String>) {
        if self.is_wanted() {
            lines().into_iter().for_each(|line| self.note(now, || line));
        }
    }

    /// Whether somebody wants lines.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }
}

/// Runs a plan as [`run`](crate::run::run) does; the lines of its log. They end early when the code under test panics.
///
/// # Errors
/// When the plan cannot be carried out: its options contradict each other.
pub fn of_run(plan: &Plan) -> Result<Vec<String>, Error> {
    let workload = plan.workload.build()?;
    let mut world = World::new(plan, &*workload)?;
    world.log(true);
    // What a panic says is in the report of the run; the lines before it are wanted all the more.
    let _ = catch_unwind(AssertUnwindSafe(|| world.run()));
    Ok(world.take_log())
}

impl World<'_> {
    /// Whether to keep a log of what happens from now on. Lines that were not taken are dropped.
    pub fn log(&mut self, wanted: bool) {
        self.log = Log(wanted.then(Vec::new));
    }

    /// The lines since the last time, in the order of events.
    pub fn take_log(&mut self) -> Vec<String> {
        self.log.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that a parcel was given to the network, which delivers so many copies.
    #[inline]
    pub(super) fn log_sent(&mut self, from: Host, parcel: &Parcel, copies: usize) {
        if self.log.0.is_none() {
            return;
        }
        let fate = match copies {
            0 => ", which is lost".to_owned(),
            1 => String::new(),
            copies => format!(", which comes {copies} times"),
        };
        let lines: Vec<String> = match parcel {
            Parcel::Frame { from, to, frame } => {
                vec![describe_frame(&self.plan.name(*from), &self.plan.name(*to), frame)]
            }
            Parcel::Requests(node, requests) => {
                requests.iter().map(|request| self.describe_request(from, *node, request)).collect()
            }
            Parcel::Replies(replies) => {
                let from = self.name_host(from);
                replies
                    .iter()
                    .map(|reply| (name_client(reply.request), reply.request.sequence))
                    .map(|(client, sequence)| format!("{from} -> {client} answer {sequence}"))
                    .collect()
            }
        };
        for line in lines {
            self.log.note(self.heap.now(), || line + &fate);
        }
    }

    /// Notes that an answer has come to its client.
    pub(super) fn log_answered(&mut self, reply: &Reply) {
        let again = self.recorder.requests.get(&reply.request).is_some_and(|known| known.replies.len() > 1);
        self.log.note(self.heap.now(), || {
            let (client, sequence) = (name_client(reply.request), reply.request.sequence);
            let again = if again { " again" } else { "" };
            format!("{client} is answered {sequence}{again}: {}", outcome(&reply.outcome))
        });
    }

    /// Notes that a fault of the plan begins or ends.
    pub(super) fn log_fault(&mut self, index: usize, begins: bool) {
        let fault = &self.plan.faults[index].fault;
        let name = |host: u16| name_host(Host(host), self.plan);
        self.log.note(self.heap.now(), || describe_fault(fault, begins, &name));
    }

    fn name_host(&self, host: Host) -> String {
        name_host(host, self.plan)
    }

    fn describe_request(&self, from: Host, to: NodeId, request: &ClientRequest) -> String {
        let (from, to) = (self.name_host(from), self.plan.name(to));
        match request {
            ClientRequest::Ordered(request) => {
                let attempts = self.recorder.requests.get(&request.id).map_or(0, |known| known.attempts);
                let again = if attempts > 1 { " (again)" } else { "" };
                format!("{from} sends request {} to {to}{again}", request.id.sequence)
            }
            ClientRequest::Scan { at, .. } => format!("{from} reads a page of {to} as of {at}"),
            ClientRequest::Read { at, .. } => format!("{from} runs a read at {to} as of {at}"),
            ClientRequest::CloseSnapshot(at) => format!("{from} closes the snapshot {at}"),
            ClientRequest::Status { .. } | ClientRequest::Details { .. } => {
                format!("the operator asks {to} for its status")
            }
            ClientRequest::ChangeMembership { voters, learners, .. } => {
                let names =
                    |all: &[ReplicaId]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let learners = if learners.is_empty() {
                    String::new()
                } else {
                    format!(" and the learners {}", names(learners))
                };
                format!("the operator proposes to {to} the voters {}{learners}", names(voters))
            }
        }
    }
}

/// Machines are `m`, clients `c`, and the last host is the auditor, which is the operator's, too.
fn name_host(host: Host, plan: &Plan) -> String {
    match host.0.checked_sub(plan.machines) {
        None => format!("m{}", host.0),
        Some(client) if client == plan.callers() => "the auditor".to_owned(),
        Some(client) => format!("c{client}"),
    }
}

fn name_client(request: RequestId) -> String {
    match request.client {
        client if Auditor::is_auditor(client) => "the auditor".to_owned(),
        client if Operator::is_operator(client) => "the operator".to_owned(),
        client => format!("c{}", client.number),
    }
}

fn describe_fault(fault: &Fault, begins: bool, name: &dyn Fn(u16) -> String) -> String {
    let of = |host: &u16, begun: &str, ended: &str| {
        format!("{} {}", name(*host), if begins { begun } else { ended })
    };
    match fault {
        Fault::Crash(machine) => of(machine, "crashes", "starts again"),
        Fault::Pause(machine) => of(machine, "pauses", "goes on"),
        Fault::Slow(machine, factor) => {
            of(machine, &format!("takes {factor} times as long"), "is as quick as before")
        }
        Fault::Cut(from, to) => {
            format!("the way {} -> {} is {}", name(*from), name(*to), if begins { "cut" } else { "mended" })
        }
        Fault::Clog(from, to) => {
            format!("the way {} -> {} is {}", name(*from), name(*to), if begins { "clogged" } else { "free" })
        }
        Fault::Partition(side) => {
            let names: Vec<String> = side.iter().map(|host| name(*host)).collect();
            let verb = if begins { "cut off from" } else { "joined again with" };
            format!("{} are {verb} all others", names.join(", "))
        }
        Fault::FullDisk(machine) => of(machine, "has a full disk", "has space on its disk"),
        Fault::Corrupt(machine) => of(machine, "has flipped bits on its disk", "was not repaired"),
        Fault::Misdirect(machine) => of(machine, "has a misdirected write on its disk", "was not repaired"),
        Fault::DamagedCheckpoint(machine) => of(machine, "has a damaged checkpoint", "was not repaired"),
        Fault::LostWrite(machine) => of(machine, "will lose a write that it has synced", "was not repaired"),
        Fault::PowerCut(machine, operations) => {
            of(machine, &format!("will lose power after {operations} writes"), "has safe power again")
        }
        Fault::FailedSync(machine) => of(machine, "has a disk that fails", "has a disk that works"),
        Fault::Loss(machine) => of(machine, "is lost for ever", "is lost for ever"),
        Fault::Wipe(machine) => of(machine, "has empty disks", "starts again"),
        Fault::HandOver(machine) => of(machine, "is to hand over what it leads", "goes on"),
        Fault::ClockJump(machine, microseconds) => {
            of(machine, &format!("has a clock that jumps ahead by {microseconds} us"), "goes on")
        }
        Fault::ClockBack(machine, microseconds) => {
            of(machine, &format!("has a clock that is set back by {microseconds} us"), "goes on")
        }
    }
}

fn describe_frame(from: &str, to: &str, frame: &Frame<Message>) -> String {
    match &frame.packet {
        Packet::Data { number, message } => format!("{from} -> {to} #{number} {}", describe_message(message)),
        Packet::Acknowledge { next } => format!("{from} -> {to} acknowledges all below #{next}"),
        Packet::Hello => format!("{from} -> {to} hello"),
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

pub(super) fn describe_message(message: &Message) -> String {
    match message {
        Message::Batch { epoch, transactions, .. } => {
            format!("batch {epoch} ({})", counted(transactions.len(), "transaction"))
        }
        Message::Reads { reads, .. } => format!("reads ({} bytes)", reads.len()),
        Message::Reports { reports, .. } => {
            let names = reports.iter().map(|report| name_request(report.request));
            format!("reports of {}", names.collect::<Vec<_>>().join(", "))
        }
        Message::SnapshotReady { at, .. } => format!("the snapshot {at} is ready"),
        Message::CloseSnapshot(at) => format!("the snapshot {at} is closed"),
        Message::Forward { requests, .. } => {
            let names = requests.iter().map(|request| name_request(request.id));
            format!("forwards {}", names.collect::<Vec<_>>().join(", "))
        }
        Message::Replies(replies) => {
            let names = replies.iter().map(|reply| name_request(reply.request));
            format!("answers to {}", names.collect::<Vec<_>>().join(", "))
        }
        Message::Fetch { ticket, .. } => format!("fetches rows for reconnaissance {ticket}"),
        Message::Fetched { ticket, rows, .. } => {
            format!("gives {} to reconnaissance {ticket}", counted(rows.len(), "row"))
        }
        Message::Consensus(_) => "consensus".to_owned(),
        Message::Follow(epoch) => format!("asks to close {epoch}"),
        Message::Subscribe { after, .. } => format!("subscribes to all after {after}"),
        Message::Serving { delivered } => format!("agrees on all through {delivered}"),
        Message::Unsubscribe => "unsubscribes".to_owned(),
        Message::Unserved { through, .. } => format!("has nothing of epochs through {through} any more"),
        Message::Superseded { epoch, .. } => format!("the group has agreed on another batch of {epoch}"),
        Message::Alive(reached) => format!("is alive, and has executed epochs through {}", reached.executed),
        Message::CheckpointWritten { epoch, .. } => format!("has the checkpoint of {epoch}"),
        Message::CheckpointWanted { by, .. } => format!("wants a checkpoint for {by}"),
        Message::CheckpointOffer(epoch) => format!("offers the checkpoint of {epoch}"),
        Message::TwoPhase(message) => message.to_string(),
        Message::TwoPhaseSnapshot(message) => message.to_string(),
        Message::Epochs(message) => message.to_string(),
        Message::Load { load, room } => {
            format!("is {} us behind, sheds at {}, has room for {room}", load.backlog, load.level)
        }
        Message::CheckpointNeeded(after) => format!("needs a checkpoint after {after}"),
        Message::CheckpointFetch { epoch, offset } => {
            format!("asks for the checkpoint of {epoch} from byte {offset}")
        }
        Message::CheckpointPiece { epoch, offset, bytes, .. } => {
            format!("gives {} bytes of the checkpoint of {epoch} from byte {offset}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}

/// `request 3 of c2`
fn name_request(request: RequestId) -> String {
    format!("request {} of {}", request.sequence, name_client(request))
}

/// How a packet of a peer was taken: what could be handed to the node because of it. `next` is the number of the message that
/// is to come next.
pub(super) fn arrived<T>(
    from: &str,
    to: &str,
    number: Option<u64>,
    next: u64,
    ready: &[Delivery<T>],
) -> Vec<String> {
    let mut lines = Vec::new();
    if ready.first().is_some_and(|first| matches!(first, Delivery::Reset)) {
        lines.push(format!("{to} has a new link to {from}"));
    }
    let taken = ready.iter().filter(|delivery| matches!(delivery, Delivery::Message(_))).count() as u64;
    lines.extend(number.map(|number| match taken {
        0 if number < next => format!("{to} drops #{number} of {from}, which it has"),
        0 => format!("{to} keeps #{number} of {from} until those before it come"),
        1 => format!("{to} takes #{number} of {from}"),
        more => format!("{to} takes #{number} to #{} of {from}", number + more - 1),
    }));
    lines
}

/// From what a node is made again.
pub(super) fn recovered(name: &str, epoch: Epoch, records: usize, cut_bytes: u64) -> String {
    let checkpoint =
        if epoch == Epoch(0) { String::new() } else { format!("the checkpoint of {epoch} and ") };
    let cut = if cut_bytes == 0 { String::new() } else { format!(", and cuts {cut_bytes} bytes") };
    format!("{name} recovers from {checkpoint}{}{cut}", counted(records, "record"))
}

/// What a step did.
pub(super) fn step(me: &str, work: &StepWork, outbox: &Outbox) -> String {
    let mut did = Vec::new();
    for (count, noun) in [(work.requests, "request"), (work.messages_received, "message")] {
        did.extend((count > 0).then(|| counted(count as usize, noun)));
    }
    for (epoch, transactions) in &outbox.trace.closed {
        let names: Vec<String> = transactions.iter().map(closed).collect();
        let names = if names.is_empty() { String::new() } else { format!(" with {}", names.join(", ")) };
        did.push(format!("closed {epoch}{names}"));
    }
    for executed in &outbox.trace.executed {
        let position = executed.position;
        did.push(match &executed.verdict {
            Verdict::Committed(_) => format!("executed {position}"),
            Verdict::Failed(error) => format!("executed {position} ({error})"),
            Verdict::FootprintMissed => format!("executed {position} (its footprint did not hold)"),
        });
    }
    if work.replies > 0 {
        did.push(format!("answers {}", work.replies));
    }
    if did.is_empty() {
        return format!("{me} steps");
    }
    format!("{me} steps: {}", did.join(", "))
}

fn closed((_, ordered): &(u32, Ordered)) -> String {
    match ordered.work {
        Work::Call { .. } => name_request(ordered.request),
        Work::OpenSnapshot(_) => format!("a snapshot of {}", name_client(ordered.request)),
        Work::GiveUp(_) => format!("the end of {}", name_request(ordered.request)),
        Work::CloseSnapshot(at) => format!("the end of the snapshot {at}"),
        Work::Checkpoint(_) => "a checkpoint".to_owned(),
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Ok(_) => "committed".to_owned(),
        Err(error) => error.to_string(),
    }
}
