//! What a replicated log is given, and how time becomes ticks.

use crate::log::{HandOut, PAYLOAD_BYTES_MAX, RecoverError, ReplicaId};

use super::conversion::id_of;

/// Ticks in the interval between two heartbeats. Timeouts are whole ticks.
pub(super) const TICKS_PER_HEARTBEAT: usize = 5;

/// What a [`RaftLog`](super::RaftLog) is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RaftOptions {
    /// This replica.
    pub replica: ReplicaId,
    /// What election timeouts are drawn from, together with the replica, the term and the number of the attempt. Give all
    /// replicas of a group the same.
    pub seed: u64,
    /// Time between a leader's heartbeats in microseconds.
    pub heartbeat_us: u64,
    /// Least time in microseconds without a leader after which a replica stands for election. A leader that has not heard of
    /// a majority for this time steps down.
    pub election_timeout_us_min: u64,
    /// Most time in microseconds without a leader after which a replica stands for election. The wider the span, the rarer
    /// are elections in which the votes are split.
    pub election_timeout_us_max: u64,
    /// When a leader hands out what it proposed.
    pub hand_out: HandOut,
    /// Most bytes of payloads that are proposed here and not yet committed.
    pub in_flight_bytes_max: usize,
    /// Most bytes of a payload.
    pub payload_bytes_max: usize,
    /// Most bytes of payloads that one call of [`advance`](crate::ReplicatedLog::advance) hands out, beyond the first payload.
    pub hand_out_bytes_max: usize,
    /// Most bytes of entries that are sent in one message to a follower that catches up, beyond the first entry.
    pub message_bytes_max: u64,
    /// Most messages with entries that are on their way to one follower.
    pub messages_in_flight_max: usize,
}

impl RaftOptions {
    /// The usual limits and timeouts: heartbeats every 50 ms, elections after 500 ms to 1 s.
    pub fn new(replica: ReplicaId, seed: u64) -> RaftOptions {
        RaftOptions {
            replica,
            seed,
            heartbeat_us: 50_000,
            election_timeout_us_min: 500_000,
            election_timeout_us_max: 1_000_000,
            hand_out: HandOut::AfterMajority,
            in_flight_bytes_max: 64 << 20,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            hand_out_bytes_max: 4 << 20,
            message_bytes_max: 1 << 20,
            messages_in_flight_max: 256,
        }
    }

    pub(super) fn validate(&self) -> Result<(), RecoverError> {
        let wrong = |reason: &str| Err(RecoverError::Options(reason.to_owned()));
        if self.heartbeat_us < TICKS_PER_HEARTBEAT as u64 {
            return wrong("heartbeats must be at least 5 microseconds apart");
        }
        if self.election_timeout_us_min < 2 * self.heartbeat_us {
            return wrong("the least election timeout must be at least two heartbeats");
        }
        if self.election_timeout_us_max < self.election_timeout_us_min + self.heartbeat_us {
            return wrong("election timeouts must span at least a heartbeat, or votes are split for ever");
        }
        if self.messages_in_flight_max == 0 {
            return wrong("at least one message must be allowed to be in flight");
        }
        if self.payload_bytes_max == 0 || self.in_flight_bytes_max < self.payload_bytes_max {
            return wrong("a payload of the largest size must fit into what may be in flight");
        }
        Ok(())
    }

    /// Length of a tick in microseconds.
    pub(super) fn tick_us(&self) -> u64 {
        self.heartbeat_us / TICKS_PER_HEARTBEAT as u64
    }

    /// The least election timeout in ticks.
    pub(super) fn election_ticks_min(&self) -> usize {
        ticks(self.election_timeout_us_min, self.tick_us())
    }

    /// The most ticks of an election timeout.
    pub(super) fn election_ticks_max(&self) -> usize {
        ticks(self.election_timeout_us_max, self.tick_us())
    }

    pub(super) fn config(&self, applied: u64) -> ::raft::Config {
        ::raft::Config {
            id: id_of(self.replica),
            election_tick: self.election_ticks_min(),
            heartbeat_tick: TICKS_PER_HEARTBEAT,
            min_election_tick: self.election_ticks_min(),
            max_election_tick: self.election_ticks_max() + 1,
            applied,
            max_size_per_msg: self.message_bytes_max,
            max_inflight_msgs: self.messages_in_flight_max,
            check_quorum: true,
            pre_vote: true,
            // Proposals are batched here: the library's way is wrong (see the module's page).
            batch_append: false,
            skip_bcast_commit: false,
            ..::raft::Config::default()
        }
    }

    /// The election timeout in ticks: the same for the same replica, term and attempt, and different between replicas and
    /// attempts with the odds of a random draw. `raft` draws one from a generator that nobody can seed; this one replaces it.
    pub(super) fn election_ticks(&self, term: u64, attempt: u64) -> usize {
        let span = self.election_ticks_max() - self.election_ticks_min() + 1;
        let mut hash = self.seed;
        for word in [id_of(self.replica), term, attempt] {
            hash = mixed(hash ^ word);
        }
        let offset = hash % span as u64;
        self.election_ticks_min() + usize::try_from(offset).expect("less than the span, which is a usize")
    }
}

fn ticks(duration_us: u64, tick_us: u64) -> usize {
    usize::try_from(duration_us / tick_us).unwrap_or(usize::MAX / 4).min(usize::MAX / 4)
}

/// One step of the generator SplitMix64 (Steele, Lea and Flood 2014): every bit of the input changes half of the output's.
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
