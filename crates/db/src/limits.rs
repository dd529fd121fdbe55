//! Every limit of the database, in one place.
//!
//! A limit is either checked where input enters (and answered with a clear error) or bounds a queue
//! (and answered with push-back). Nothing grows without one of these numbers.

use ordain_consensus::PAYLOAD_BYTES_MAX;

use crate::engine::two_phase::requests::LockRequests;

/// Longest encoded key in bytes, the table prefix included.
pub const KEY_BYTES_MAX: usize = 1024;

/// Longest encoded row in bytes.
pub const ROW_BYTES_MAX: usize = 60 * 1024;

/// Most columns of one table, key columns included.
pub const COLUMNS_MAX: usize = 256;

/// Most tables of one schema. Table numbers stay below `u16::MAX` so that every key prefix has a successor.
pub const TABLES_MAX: usize = 4096;

/// Most partitions of one cluster.
pub const PARTITIONS_MAX: usize = 256;

/// Most procedures that can be registered.
pub const PROCEDURES_MAX: usize = u16::MAX as usize;

/// Longest encoded arguments of one call in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// Longest encoded result of one call in bytes.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Most keys and ranges in one footprint.
pub const FOOTPRINT_ENTRIES_MAX: usize = 16 * 1024;

/// Most bytes of the keys and bounds of ranges in one footprint: a footprint that was found is in the log with its call, in one record.
pub const FOOTPRINT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most bytes that one participant may contribute to the reads of one transaction. They are sent in one piece, which networks must take.
pub const READ_RESULTS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most bytes of the reads of all participants of one transaction where the log gets them in one record: with the engine `two-phase`.
pub const LOGGED_READS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most bytes of writes that one transaction may buffer.
pub const WRITE_BYTES_MAX: usize = 48 * 1024 * 1024;

/// Longest reason of an abort by logic in bytes; longer reasons are cut at a character border.
pub const ABORT_REASON_BYTES_MAX: usize = 1024;

/// Most calls in one batch of a sequencer. What is left waits for the next epoch.
pub const BATCH_CALLS_MAX: usize = 8 * 1024;

/// Most argument and footprint bytes in one batch. What is left waits for the next epoch.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

// A batch is one record of the log, and its last call may be as large as a call can be.
const _: () = assert!(
    BATCH_BYTES_MAX + ARGUMENTS_BYTES_MAX + FOOTPRINT_BYTES_MAX + 2 * 1024 * 1024 <= PAYLOAD_BYTES_MAX,
    "the log takes every batch"
);

/// Most calls that wait at one sequencer for an epoch; more are refused as busy.
pub const SEQUENCER_WAITING_MAX: usize = 64 * 1024;

/// Most epochs that a partition closes ahead of what it has received from all peers.
pub const EPOCHS_IN_FLIGHT_MAX: u64 = 64;

/// Most delivered transactions of one partition that have not finished. Delivery pauses above it.
pub const TRANSACTIONS_LIVE_MAX: usize = 16 * 1024;

/// Most waiting transactions that a node tells of at a time: those that have waited longest.
pub const DETAILS_TRANSACTIONS_MAX: usize = 256;

/// Most keys of these transactions that are looked at to find those which several need: well below a millisecond.
pub const DETAILS_KEYS_MAX: usize = 4096;

/// Most transactions that a node executes in one step before it lets its driver send what was produced.
pub const STEP_TRANSACTIONS_MAX: usize = 256;

/// How long a step should take at most for the transactions that it executes, in microseconds: see the node's pace.
pub const STEP_MICROSECONDS: u64 = 2_000;

/// Most transactions that a step executes when it is not known how long they take, as after a pause.
pub const STEP_TRANSACTIONS_FIRST: usize = 8;

/// Most old versions that a node frees in one step; more than a step of usual transactions makes.
pub const STEP_GARBAGE_MAX: usize = 16 * STEP_TRANSACTIONS_MAX;

/// Most bytes of arguments and footprints that wait at one sequencer for an epoch; more are refused as busy.
pub const SEQUENCER_WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Most sequence numbers of one client that may be outstanding or unacknowledged.
pub const SESSION_WINDOW_MAX: u64 = 16 * 1024;

/// Most client sessions that one partition remembers.
pub const SESSIONS_MAX: usize = 64 * 1024;

/// Most dependent transactions that one gateway has under way, from reconnaissance to the verdict.
pub const RECONNAISSANCE_MAX: usize = 4096;

/// Most rounds of remote reads of one reconnaissance run.
pub const RECONNAISSANCE_ROUNDS_MAX: u32 = 4096;

/// Rows and ranges of other partitions that a reconnaissance run lacks before it waits for them, where it goes on without.
pub const RECONNAISSANCE_WANTS_MAX: usize = 4096;

/// Rows that the runs of one reconnaissance may touch together before it begins no further one: a run begins anew for each round, on the
/// thread that others wait for.
pub const RECONNAISSANCE_ACCESSES_MAX: u64 = 2 * 1024 * 1024;

/// Most deterministic restarts of one request after a footprint miss (CAL-64).
pub const RESTARTS_MAX: u32 = 32;

/// Misses of one request after which its attempts declare more than reconnaissance finds; see
/// [`widening`](crate::gateway::widening). An attempt may miss by chance. What is declared then makes others wait, who miss the
/// more for it; so it comes late enough that few calls need it, and early enough that calls which make each other miss do not try
/// in vain for long.
pub const RESTARTS_BEFORE_HELP: u32 = 4;

/// Likewise for a request that touches several partitions. All rows of the ranges that help it are sent to the others then, while
/// nobody else goes on there; so it comes when it is all but certain that chance alone does not let the request through.
pub const RESTARTS_BEFORE_DISTRIBUTED_HELP: u32 = 12;

/// Misses of one request after which its attempts declare whole tables, if these are not too large to be sent to others.
pub const RESTARTS_BEFORE_TABLES: u32 = 16;

/// How long a call that has missed its footprint twice waits before its next reconnaissance, in microseconds; twice as long after
/// each further miss. The first time it goes on at once: one miss is most often chance.
pub const BACK_OFF_MICROSECONDS: u64 = 2_500;

/// The longest such wait, in microseconds: with twice as long ones the slowest calls take almost twice as long, and no more is done.
pub const BACK_OFF_MICROSECONDS_MAX: u64 = 40_000;

/// Most snapshots that may be open at one time on one node.
pub const SNAPSHOTS_MAX: usize = 1024;

/// Most rows that one page of a snapshot scan returns.
pub const SCAN_PAGE_ROWS_MAX: usize = 16 * 1024;

/// Most bytes that one page of a snapshot scan returns, but for its last row.
pub const SCAN_PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most bytes of messages to other partitions that a node keeps for those who may need them again.
pub const STREAM_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Epoch length in microseconds (CAL-20: 10 ms).
pub const EPOCH_MICROSECONDS_DEFAULT: u64 = 10_000;

/// Length of a validity period in microseconds, where there is an epoch manager (ALO-25: 25 ms).
pub const MANAGED_EPOCH_MICROSECONDS_DEFAULT: u64 = 25_000;

/// How long the epoch manager and the partitions wait for each other before they say again what may be lost, in microseconds.
pub const EPOCH_SILENCE_MICROSECONDS: u64 = 100_000;

/// The limits of a node's queues, as far as a driver may choose them.
///
/// None of them changes what a transaction does, only when it is done or whether it is refused as busy: the nodes of a
/// cluster may differ in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// See [`BATCH_CALLS_MAX`].
    pub batch_calls: usize,
    /// See [`BATCH_BYTES_MAX`].
    pub batch_bytes: usize,
    /// See [`SEQUENCER_WAITING_MAX`].
    pub sequencer_waiting: usize,
    /// See [`SEQUENCER_WAITING_BYTES_MAX`].
    pub sequencer_waiting_bytes: usize,
    /// See [`EPOCHS_IN_FLIGHT_MAX`].
    pub epochs_in_flight: u64,
    /// See [`TRANSACTIONS_LIVE_MAX`].
    pub transactions_live: usize,
    /// See [`STEP_TRANSACTIONS_MAX`].
    pub step_transactions: usize,
    /// See [`SESSION_WINDOW_MAX`].
    pub session_window: u64,
    /// See [`SESSIONS_MAX`].
    pub sessions: usize,
    /// See [`RECONNAISSANCE_MAX`].
    pub reconnaissance: usize,
    /// See [`RESTARTS_MAX`].
    pub restarts: u32,
    /// See [`RESTARTS_BEFORE_HELP`].
    pub restarts_before_help: u32,
    /// See [`RESTARTS_BEFORE_DISTRIBUTED_HELP`]; not below `restarts_before_help`.
    pub restarts_before_distributed_help: u32,
    /// See [`SNAPSHOTS_MAX`].
    pub snapshots: usize,
    /// See [`STREAM_BYTES_MAX`].
    pub stream_bytes: usize,
    /// Whether nodes take on less where they lag behind the others, with any engine: see [`throttle`](crate::sequencer::throttle).
    pub throttles: bool,
    /// How long a transaction of the engine `two-phase` may wait for locks of a partition before it is begun again, in
    /// microseconds (DET-37); twice as long with each attempt, up to 4 s. `None`, the default: as long as no deadlock is found.
    pub lock_wait_microseconds: Option<u64>,
    /// When a transaction of the engine `two-phase` asks for its locks.
    pub lock_requests: LockRequests,
    /// Whether transactions of the engine `two-phase` wait at the door while many wait for locks: see
    /// [`admission`](crate::engine::two_phase::admission). Nodes of one cluster may differ in it.
    pub load_control: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            batch_calls: BATCH_CALLS_MAX,
            batch_bytes: BATCH_BYTES_MAX,
            sequencer_waiting: SEQUENCER_WAITING_MAX,
            sequencer_waiting_bytes: SEQUENCER_WAITING_BYTES_MAX,
            epochs_in_flight: EPOCHS_IN_FLIGHT_MAX,
            transactions_live: TRANSACTIONS_LIVE_MAX,
            step_transactions: STEP_TRANSACTIONS_MAX,
            session_window: SESSION_WINDOW_MAX,
            sessions: SESSIONS_MAX,
            reconnaissance: RECONNAISSANCE_MAX,
            restarts: RESTARTS_MAX,
            restarts_before_help: RESTARTS_BEFORE_HELP,
            restarts_before_distributed_help: RESTARTS_BEFORE_DISTRIBUTED_HELP,
            snapshots: SNAPSHOTS_MAX,
            stream_bytes: STREAM_BYTES_MAX,
            throttles: false,
            lock_wait_microseconds: None,
            lock_requests: LockRequests::default(),
            load_control: true,
        }
    }
}

const _: () = assert!(TABLES_MAX < u16::MAX as usize);
const _: () = assert!(BATCH_CALLS_MAX <= SEQUENCER_WAITING_MAX);
const _: () = assert!(PARTITIONS_MAX <= 256, "PartitionSet holds 256 bits");
