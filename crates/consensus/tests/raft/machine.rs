//! A replica on its machine: a log, a disk that loses what it had not yet written, and a database that is a list.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::{LogRecord, LogStart, Membership, Persist, ReplicaId};

use crate::checker::Executed;
use crate::plan::{Mistake, Plan};
use crate::random::Random;

/// A part of the log on disk that is removed as a whole.
#[derive(Clone, Default)]
pub struct Segment {
    pub records: Vec<Bytes>,
    pub index_max: u64,
}

/// What is on its way to the disk.
pub struct Write {
    pub number: u64,
    pub records: Vec<Bytes>,
    pub must_sync: bool,
    pub index_max: Option<u64>,
    /// Set if these are a restatement: segments with entries through this index go when it is durable.
    pub remove_through: Option<u64>,
}

#[derive(Clone)]
pub struct Checkpoint {
    pub start: LogStart,
    pub state: Vec<Executed>,
}

pub struct Machine {
    pub replica: ReplicaId,
    pub options: RaftOptions,
    /// None while the machine is down.
    pub log: Option<RaftLog>,
    pub life: u64,
    pub segments: VecDeque<Segment>,
    /// Written, and not forced to the disk.
    pub cached: Vec<(Bytes, u64)>,
    pub writes: VecDeque<Write>,
    /// How many of the writes, from the oldest on, are being forced to the disk together.
    pub flushing: usize,
    pub checkpoint: Option<Checkpoint>,
    pub state: Vec<Executed>,
    /// The state through this place is known to be committed.
    pub verified: usize,
    pub wake_at: Option<u64>,
    /// Who is being sent a checkpoint, until when.
    pub transfers: BTreeMap<ReplicaId, u64>,
    /// None for a replica that joins a group.
    pub founded: Option<Membership>,
}

impl Machine {
    pub fn new(replica: ReplicaId, plan: &Plan, founded: Option<Membership>) -> Machine {
        let options = RaftOptions {
            heartbeat_us: 20_000,
            election_timeout_us_min: 100_000,
            election_timeout_us_max: 200_000,
            hand_out: plan.hand_out,
            message_bytes_max: 400,
            messages_in_flight_max: 8,
            hand_out_bytes_max: 100,
            ..RaftOptions::new(replica, plan.seed)
        };
        Machine {
            replica,
            options,
            log: None,
            life: 0,
            segments: VecDeque::from([Segment::default()]),
            cached: Vec::new(),
            writes: VecDeque::new(),
            flushing: 0,
            checkpoint: None,
            state: Vec::new(),
            verified: 0,
            wake_at: None,
            transfers: BTreeMap::new(),
            founded,
        }
    }

    /// Starts from what is on the disk.
    pub fn start(&mut self) -> Result<(), String> {
        assert!(self.log.is_none(), "it is down");
        self.life += 1;
        let records: Vec<Bytes> =
            self.segments.iter().flat_map(|segment| segment.records.iter().cloned()).collect();
        let options = self.options.clone();
        let log = match &self.founded {
            Some(membership) if records.is_empty() && self.checkpoint.is_none() => {
                RaftLog::found(options, membership.clone())
            }
            _ => {
                let position = self.checkpoint.as_ref().map(|checkpoint| &checkpoint.start);
                RaftLog::recover(options, records.into_iter(), position)
            }
        };
        self.log = Some(log.map_err(|error| format!("{} does not start: {error}", self.replica))?);
        self.state = self.checkpoint.as_ref().map_or(Vec::new(), |checkpoint| checkpoint.state.clone());
        self.verified = self.state.len();
        self.wake_at = None;
        Ok(())
    }

    /// Loses everything that the disk does not have. Of what was on its way, a beginning has been written.
    pub fn crash(&mut self, random: &mut Random) {
        let mut torn = std::mem::take(&mut self.cached);
        for write in self.writes.drain(..) {
            let index_max = write.index_max.unwrap_or(0);
            torn.extend(write.records.into_iter().map(|record| (record, index_max)));
        }
        let kept = random.below(torn.len() as u64 + 1);
        torn.truncate(usize::try_from(kept).expect("small"));
        self.store(torn);
        self.log = None;
        self.transfers.clear();
        self.flushing = 0;
    }

    fn store(&mut self, records: Vec<(Bytes, u64)>) {
        let segment = self.segments.back_mut().expect("there is a current segment");
        for (record, index_max) in records {
            segment.index_max = segment.index_max.max(index_max);
            segment.records.push(record);
        }
    }

    /// The writes that were under way have reached the disk. Gives the number of the last persist among them.
    pub fn written(&mut self, random: &mut Random) -> Option<u64> {
        let mut number = None;
        for write in self.writes.drain(..std::mem::take(&mut self.flushing)).collect::<Vec<_>>() {
            let index_max = write.index_max.unwrap_or(0);
            self.cached.extend(write.records.into_iter().map(|record| (record, index_max)));
            if write.must_sync {
                let cached = std::mem::take(&mut self.cached);
                self.store(cached);
            }
            match write.remove_through {
                None => number = Some(write.number),
                Some(index) => {
                    while self.segments.len() > 1 && self.segments[0].index_max <= index {
                        self.segments.pop_front();
                    }
                }
            }
            if random.permille(200) {
                self.segments.push_back(Segment::default());
            }
        }
        number
    }

    /// What is written for a persist; the mistake leaves votes out.
    pub fn write_of(persist: Persist, mistake: Mistake) -> Write {
        let Persist { number, mut records, must_sync, index_max } = persist;
        if mistake == Mistake::ForgetVotes {
            for record in &mut records {
                if let Ok(LogRecord::State { term, commit, .. }) = LogRecord::decode(record) {
                    *record = LogRecord::State { term, vote: None, commit }.encode();
                }
            }
        }
        Write { number, records, must_sync, index_max, remove_through: None }
    }

    /// Index of the last entry in the state.
    pub fn executed(&self) -> u64 {
        self.state.last().map_or(0, |(index, _, _)| *index)
    }
}
