//! A node and the disk that outlives it.

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::solo::{SoloLog, SoloOptions};
use ordain_consensus::{HandOut, Membership, ReplicatedLog};
use ordain_db::message::ClientRequest;
use ordain_db::node::{AnyNode, DiskWrite, Event};
use ordain_db::position::{NodeId, ReplicaId};

use crate::seeded::Seeded;

/// Which log the nodes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogKind {
    Solo,
    Raft,
    /// What is handed out may be lost: a leader does not wait for the others.
    Asynchronous,
}

/// What logs are given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    /// What elections depend on.
    pub(crate) seed: u64,
    /// Most bytes that are handed out at once, beyond the first payload.
    pub(crate) hand_out_bytes_max: usize,
}

/// The records of a log, of which the first are durable.
#[derive(Default, Debug)]
pub(crate) struct Disk {
    records: Vec<Bytes>,
    durable: usize,
    /// Syncs under way: when one is done, what number it makes durable, and how many records.
    syncs: VecDeque<(u64, u64, usize)>,
}

impl Disk {
    /// Appends, and begins a sync that is done after the others.
    fn append(&mut self, number: u64, records: Vec<Bytes>, done_at: u64) {
        self.records.extend(records);
        let done_at = self.syncs.back().map_or(done_at, |(last, ..)| done_at.max(*last));
        self.syncs.push_back((done_at, number, self.records.len()));
    }

    /// When the first sync is done.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.syncs.front().map(|(done_at, ..)| *done_at)
    }

    fn finish_syncs(&mut self, now: u64, events: &mut Vec<Event>) {
        while self.deadline().is_some_and(|done_at| done_at <= now) {
            let Some((_, number, durable)) = self.syncs.pop_front() else { return };
            self.durable = durable;
            events.push(Event::Persisted(number));
        }
    }

    /// What was durable is kept, and by chance some of what follows.
    fn crash(&mut self, random: &mut Seeded) {
        let kept = self.durable + random.below(self.records.len() - self.durable + 1);
        self.records.truncate(kept);
        self.durable = kept;
        self.syncs.clear();
    }

    /// The log that the records make; a new one if there are none.
    pub(crate) fn log(
        &self,
        kind: LogKind,
        me: ReplicaId,
        replicas: u16,
        options: LogOptions,
    ) -> Box<dyn ReplicatedLog> {
        let LogOptions { seed, hand_out_bytes_max } = options;
        let records = self.records.iter().cloned();
        match kind {
            LogKind::Solo => {
                assert_eq!(replicas, 1, "this log is not replicated");
                let options = SoloOptions { hand_out_bytes_max, ..SoloOptions::new(me) };
                match self.records.is_empty() {
                    true => Box::new(SoloLog::found(options)),
                    false => Box::new(SoloLog::recover(options, records, None).unwrap()),
                }
            }
            LogKind::Raft | LogKind::Asynchronous => {
                let hand_out = match kind {
                    LogKind::Asynchronous => HandOut::AfterLocalSync,
                    _ => HandOut::AfterMajority,
                };
                let options = RaftOptions { hand_out_bytes_max, hand_out, ..RaftOptions::new(me, seed) };
                let members = Membership::of_voters((0..replicas).map(ReplicaId));
                match self.records.is_empty() {
                    true => Box::new(RaftLog::found(options, members).unwrap()),
                    false => Box::new(RaftLog::recover(options, records, None).unwrap()),
                }
            }
        }
    }
}

/// A node while it lives, and its disk.
pub(crate) struct Machine {
    pub(crate) id: NodeId,
    pub(crate) node: Option<Box<dyn AnyNode>>,
    pub(crate) disk: Disk,
    /// How often the node has begun.
    pub(crate) life: u64,
    /// What clients have asked here.
    pub(crate) requests: Vec<ClientRequest>,
    /// Whether the node has said that there is more to do.
    pub(crate) more: bool,
    /// When it was stepped last.
    pub(crate) stepped_at: u64,
    /// Until when it does nothing.
    pub(crate) paused_until: u64,
}

impl Machine {
    pub(crate) fn new(id: NodeId) -> Machine {
        Machine {
            id,
            node: None,
            disk: Disk::default(),
            life: 0,
            requests: Vec::new(),
            more: false,
            stepped_at: 0,
            paused_until: 0,
        }
    }

    pub(crate) fn start(&mut self, node: Box<dyn AnyNode>) {
        assert!(self.node.is_none(), "{} is up", self.id);
        self.node = Some(node);
        self.more = true;
    }

    pub(crate) fn crash(&mut self, random: &mut Seeded) {
        self.node = None;
        self.requests.clear();
        self.more = false;
        self.disk.crash(random);
    }

    /// The next time at which the node wants to be stepped, by itself or for its disk.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let node = self.node.as_ref()?;
        [node.deadline(), self.disk.deadline()].into_iter().flatten().min()
    }

    /// Whether the node has something to do at the time `now`, but for messages.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let timed = self.deadline().is_some_and(|deadline| deadline <= now) && self.stepped_at < now;
        self.more || !self.requests.is_empty() || timed
    }

    /// What has happened here, but for messages.
    pub(crate) fn take(&mut self, now: u64, random: &mut Seeded, events: &mut Vec<Event>) {
        self.disk.finish_syncs(now, events);
        if !self.requests.is_empty() && random.once_in(2) {
            let taken = 1 + random.below(self.requests.len());
            events.push(Event::Requests(self.requests.drain(..taken).collect()));
        }
    }

    pub(crate) fn write(&mut self, writes: Vec<DiskWrite>, now: u64, random: &mut Seeded) {
        for write in writes {
            match write {
                DiskWrite::Append { number, records, .. } => {
                    let done_at = now + random.between(20, 3_000);
                    self.disk.append(number, records, done_at);
                }
                other => panic!("no checkpoints were asked for: {other:?}"),
            }
        }
    }
}
