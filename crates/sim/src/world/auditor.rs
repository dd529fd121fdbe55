//! A client that reads snapshots: it opens one, reads all rows of every partition page by page, and closes it.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::{Direction, KeyRange, Partitioning, Schema};
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, ClientRequest, Operation, Page, Reply, Request, RequestId};
use ordain_db::position::{NodeId, PartitionId, Position, ReplicaId};

use super::clients::Sent;
use super::{AUDITOR_PATIENCE, Happening, World};
use crate::history::{Invocation, SnapshotRead};
use crate::time::Nanoseconds;

/// Rows of a page: few, so that reading takes a while.
const PAGE_ROWS: u32 = 50;

/// The auditor's number as a client; no client of a plan has it.
const NUMBER: u64 = 1 << 32;

/// How often a page is asked for that is refused, until another snapshot is opened.
const REFUSALS_MAX: u32 = 8;

/// Numbers of scans are apart from those of ordered requests, which its session counts.
const FIRST_SCAN: u64 = 1 << 40;

#[derive(Debug)]
enum Phase {
    Resting,
    Opening(RequestId),
    Reading(Box<Reading>),
}

#[derive(Debug)]
struct Reading {
    request: RequestId,
    position: Position,
    partition: u16,
    table: usize,
    rest: KeyRange,
    scan: RequestId,
    rows: Vec<BTreeMap<Bytes, Bytes>>,
    /// How often the page was refused.
    refusals: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Auditor {
    id: ClientId,
    partitions: u16,
    replicas: u16,
    /// The replica that is asked.
    replica: ReplicaId,
    ranges: Vec<KeyRange>,
    /// By table: whether every partition holds all of its rows.
    replicated: Vec<bool>,
    phase: Phase,
    next_open: u64,
    next_scan: u64,
    /// What went wrong with a snapshot that was open.
    pub(crate) lost: Option<String>,
    /// The last snapshot that was read, by partition.
    pub(crate) last: Option<(Position, Vec<BTreeMap<Bytes, Bytes>>)>,
}

impl Auditor {
    pub(crate) fn new(schema: &Schema, partitions: u16, replicas: u16) -> Auditor {
        Auditor {
            id: ClientId { home: PartitionId(0), number: NUMBER },
            partitions,
            replicas,
            replica: ReplicaId(0),
            ranges: schema.tables().iter().map(|table| table.all()).collect(),
            replicated: schema
                .tables()
                .iter()
                .map(|table| *table.partitioning() == Partitioning::Replicated)
                .collect(),
            phase: Phase::Resting,
            next_open: 0,
            next_scan: FIRST_SCAN,
            lost: None,
            last: None,
        }
    }

    pub(crate) fn is_auditor(client: ClientId) -> bool {
        client.number == NUMBER
    }

    /// Whether no snapshot is being read.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting)
    }

    /// Begins with a new snapshot.
    pub(crate) fn open(&mut self, now: Nanoseconds) -> (RequestId, Invocation, Sent) {
        let request = RequestId { client: self.id, sequence: self.next_open };
        self.next_open += 1;
        self.phase = Phase::Opening(request);
        let operation = Operation::OpenSnapshot;
        let invocation = Invocation { operation, invoked_at: now, replies: Vec::new(), attempts: 0 };
        (request, invocation, self.opening(request))
    }

    fn home(&self) -> NodeId {
        NodeId { partition: self.id.home, replica: self.replica }
    }

    fn opening(&self, id: RequestId) -> Sent {
        let operation = Operation::OpenSnapshot;
        let request = Request { id, acknowledged: id.sequence, operation };
        (self.home(), ClientRequest::Ordered(request))
    }

    /// What is to be sent again, since no answer has come.
    pub(crate) fn retry(&mut self) -> Option<Sent> {
        // The replica that was asked may be gone.
        self.replica = ReplicaId((self.replica.0 + 1) % self.replicas);
        match &self.phase {
            Phase::Resting => None,
            Phase::Opening(request) => Some(self.opening(*request)),
            Phase::Reading(reading) => Some(reading.ask(self.replica)),
        }
    }

    /// Takes an answer; returns what to send next, and the snapshot when it was read to its end.
    pub(crate) fn reply(
        &mut self,
        request: RequestId,
        outcome: &Outcome,
    ) -> (Vec<Sent>, Option<SnapshotRead>) {
        match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Opening(opening) if opening == request => match outcome {
                Ok(position) => (self.begin(request, position), None),
                // Busy: another attempt follows.
                Err(_) => {
                    self.phase = Phase::Opening(opening);
                    (Vec::new(), None)
                }
            },
            Phase::Reading(reading) if reading.scan == request => match outcome {
                Ok(page) => self.page(*reading, page),
                Err(error) => (self.refused(reading, error), None),
            },
            phase => {
                self.phase = phase;
                (Vec::new(), None)
            }
        }
    }

    fn begin(&mut self, request: RequestId, position: &Bytes) -> Vec<Sent> {
        let Ok(position) = postcard::from_bytes(position) else {
            self.lost = Some("the answer to a snapshot's opening is no position".to_owned());
            return Vec::new();
        };
        let rest = self.ranges[0].clone();
        let rows = vec![BTreeMap::new(); usize::from(self.partitions)];
        let scan = self.scan_id();
        let reading = Reading { request, position, partition: 0, table: 0, rest, scan, rows, refusals: 0 };
        let sent = reading.ask(self.replica);
        self.phase = Phase::Reading(Box::new(reading));
        vec![sent]
    }

    fn scan_id(&mut self) -> RequestId {
        self.next_scan += 1;
        RequestId { client: self.id, sequence: self.next_scan }
    }

    fn page(&mut self, mut reading: Reading, page: &Bytes) -> (Vec<Sent>, Option<SnapshotRead>) {
        let Ok(page) = postcard::from_bytes::<Page>(page) else {
            self.lost = Some("the answer to a scan is no page".to_owned());
            return (Vec::new(), None);
        };
        reading.rows[usize::from(reading.partition)].extend(page.rows.owned());
        match page.rows.last() {
            Some((last, _)) if page.more => reading.rest = reading.rest.after(last),
            _ => {
                reading.table += 1;
                if reading.table == self.ranges.len() {
                    reading.table = 0;
                    reading.partition += 1;
                }
                reading.rest = self.ranges[reading.table].clone();
            }
        }
        if reading.partition == self.partitions {
            return self.finish(reading);
        }
        reading.scan = self.scan_id();
        let sent = reading.ask(self.replica);
        self.phase = Phase::Reading(Box::new(reading));
        (vec![sent], None)
    }

    fn finish(&mut self, reading: Reading) -> (Vec<Sent>, Option<SnapshotRead>) {
        let close = (self.home(), ClientRequest::CloseSnapshot(reading.position));
        let mut rows = reading.rows[0].clone();
        for part in &reading.rows[1..] {
            let own = part.iter().filter(|(key, _)| !self.is_replicated(key));
            rows.extend(own.map(|(key, row)| (key.clone(), row.clone())));
        }
        let snapshot = SnapshotRead { request: reading.request, position: reading.position, rows };
        self.last = Some((reading.position, reading.rows));
        (vec![close], Some(snapshot))
    }

    /// A page was refused. The node may have lost the snapshot, or not have come to it yet: another one is asked later, and in
    /// the end another snapshot is opened.
    fn refused(&mut self, mut reading: Box<Reading>, error: &Error) -> Vec<Sent> {
        reading.refusals += 1;
        if self.replicas > 1 && reading.refusals < REFUSALS_MAX {
            self.phase = Phase::Reading(reading);
            return Vec::new();
        }
        self.lost = Some(format!("the snapshot at {} was lost: {error}", reading.position));
        vec![(self.home(), ClientRequest::CloseSnapshot(reading.position))]
    }

    fn is_replicated(&self, key: &[u8]) -> bool {
        let table = self.ranges.iter().position(|range| range.contains(key));
        table.is_some_and(|table| self.replicated[table])
    }
}

impl World<'_> {
    /// Lets the auditor begin a snapshot, or send again what was not answered.
    pub(super) fn audit(&mut self) {
        let now = self.heap.now();
        let auditor = self.clients.len();
        if !self.auditor.is_resting() {
            if let Some((to, request)) = self.auditor.retry() {
                self.send_requests(auditor, to, vec![request]);
            }
        } else if self.snapshots_left > 0 {
            self.snapshots_left -= 1;
            let (id, invocation, (to, request)) = self.auditor.open(now);
            if self.plan.trace {
                self.recorder.requests.insert(id, invocation);
            }
            self.send_requests(auditor, to, vec![request]);
        } else {
            return;
        }
        let rest = AUDITOR_PATIENCE + self.random.below(AUDITOR_PATIENCE);
        self.heap.plan_after(rest, Happening::AuditorWakes);
    }

    pub(super) fn audited(&mut self, reply: &Reply) {
        let (sends, snapshot): (_, Option<SnapshotRead>) = self.auditor.reply(reply.request, &reply.outcome);
        for (to, request) in sends {
            self.send_requests(self.clients.len(), to, vec![request]);
        }
        self.recorder.snapshots.extend(snapshot);
        if let Some(lost) = self.auditor.lost.take() {
            if self.plan.replicas == 1 && self.happened.crashes + self.happened.failures == 0 {
                self.problems.push(lost);
            }
            // Snapshots need not outlive their nodes: another one is opened.
            self.snapshots_left += 1;
        }
    }
}

impl Reading {
    fn ask(&self, replica: ReplicaId) -> Sent {
        let (request, at, range) = (self.scan, self.position, self.rest.clone());
        let node = NodeId { partition: PartitionId(self.partition), replica };
        (node, ClientRequest::Scan { request, at, range, direction: Direction::Ascending, rows: PAGE_ROWS })
    }
}
