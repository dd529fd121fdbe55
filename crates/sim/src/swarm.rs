//! The swarm: draws a plan from a seed, from a distribution that is wide on purpose.
//!
//! Each seed switches most features on or off as a whole (Groce et al., "Swarm Testing", ISSTA 2012): a run with every fault
//! at once hides what one with a single kind shows. So each kind of fault is in some of the seeds, and there it is frequent;
//! queues are tiny in some seeds and large in others.

mod apart;
mod workload;

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::limits::Limits;
use ordain_db::node::{CheckpointMode, CheckpointOptions};
use ordain_db::sequencer::{EpochOptions, EpochPolicy};
use ordain_workload::random::{Chance, Random};

use crate::machine::clock::Clock;
use crate::machine::cost::CostTable;
use crate::machine::disk::{DiskOptions, Loss};
use crate::network::latency::Latency;
use crate::network::topology::{Region, Topology};
use crate::network::{InFlight, NetworkOptions};
use crate::plan::{
    ClientPlace, ClientPlan, Fault, Plan, PlannedFault, Replication, WorkloadKind, WorkloadPlan,
};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};

/// Most nodes of a cluster with several replicas.
const NODES_MAX: u16 = 15;

/// What the user fixes of the draw.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fixed {
    /// Number of partitions.
    pub partitions: Option<u16>,
    /// Number of replicas.
    pub replicas: Option<u16>,
    /// How several replicas agree; [`Replication::None`] fixes nothing, as several replicas must agree.
    pub replication: Option<Replication>,
    /// Number of calls.
    pub transactions: Option<u64>,
    /// The engine.
    pub engine: Option<EngineKind>,
    /// The workload; its options are drawn all the same.
    pub workload: Option<WorkloadKind>,
    /// Who decides when epochs close, where there are epochs.
    pub epochs: Option<EpochPolicy>,
}

/// Draws the plan of a seed.
pub fn draw(seed: u64, fixed: &Fixed) -> Plan {
    let mut random = Random::new(seed, "swarm", &[]);
    let random = &mut random;
    let fixed = &Fixed { engine: fixed.engine.or_else(|| unordered_engine(seed, fixed)), ..*fixed };
    // Without an order in advance there are neither replicas nor checkpoints.
    let unordered = fixed.engine.is_some_and(|engine| !engine.is_ordered());
    let fixed = &Fixed { replicas: if unordered { Some(1) } else { fixed.replicas }, ..*fixed };
    let engine = match random.below(4) {
        0 => EngineKind::Serial,
        _ => concurrent_engine(seed),
    };
    let (partitions, replicas) = nodes(random, fixed);
    let machines_each =
        if one_in(random, 4) { 1 + random.below(u64::from(partitions)) as u16 } else { partitions };
    let machines = machines_each * replicas;
    let transactions = transactions(random);
    let clients = clients(random, fixed.transactions.unwrap_or(transactions));
    let network = network(random, machines + clients.count + 1);
    let heal_at = MILLISECOND << random.between(6, 13);
    let disk = (!one_in(random, 5) || replicas > 1).then(|| disk(random));
    // A group of one may use the log of groups, too.
    let replication = match replicas == 1 && !one_in(random, 4) {
        true => Replication::None,
        false if unordered => Replication::None,
        false if replicas > 1 => agreement(seed, fixed),
        false => Replication::Sync,
    };
    let mut plan = Plan {
        seed,
        engine: fixed.engine.unwrap_or(engine),
        partitions,
        replicas,
        replication,
        subgroup: replication == Replication::Sync && replicas > 1 && subgroup(seed),
        machines,
        cores: 1 + random.below(4) as u16,
        workload: workload::draw(random, seed, partitions, fixed.workload),
        limits: limits(random),
        epochs: EpochOptions { policy: epochs(seed, fixed, unordered), microseconds: 100 << random.below(9) },
        step_events: [1, 3, 1 << 20][random.below(3) as usize],
        inbox_requests: [2, 20, 1 << 20][random.below(3) as usize],
        network,
        disk,
        checkpoints: checkpoints(random),
        clocks: clocks(random, machines),
        costs: costs(random),
        faults: Vec::new(),
        bug: None,
        heal_at,
        settle_within: 600 * SECOND,
        trace: true,
        clients,
    };
    plan.limits.throttles = throttles(seed);
    draw_help(seed, &mut plan.limits);
    plan.clients.early = early(seed).filter(|_| plan.engine.is_ordered());
    fit_to_sessions(&mut plan, fixed);
    if let Some(disk) = &plan.disk {
        // A record of the log has a whole batch, and must fit into a segment.
        plan.limits.batch_bytes = plan.limits.batch_bytes.min(disk.segment_bytes as usize / 4);
    }
    if unordered {
        fit_to_locks(&mut plan);
    }
    plan.faults = faults(random, &plan);
    plan.faults.extend(apart::wipes_and_hand_overs(&plan));
    plan.faults.extend(apart::damaged_checkpoints_and_lost_writes(&plan));
    plan.faults.sort_by_key(|fault| fault.at);
    plan
}

/// How many calls are made.
fn transactions(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => 1 + random.below(50),
        1 | 2 => 50 + random.below(450),
        _ => 500 + random.below(500),
    }
}

/// Each transaction of a session is several requests, and sessions make much of each.
fn fit_to_sessions(plan: &mut Plan, fixed: &Fixed) {
    if matches!(plan.workload, WorkloadPlan::Sql(_)) {
        plan.clients.transactions = fixed.transactions.unwrap_or(1 + plan.clients.transactions / 10);
        plan.clients.early = None;
    }
}

/// Hundreds of calls for a few keys over a slow network are deadlocks and little else, and what waits is sent again and again.
fn fit_to_locks(plan: &mut Plan) {
    plan.clients.window = plan.clients.window.min(UNORDERED_WINDOW_MAX);
    plan.clients.timeout = plan.clients.timeout.max(UNORDERED_TIMEOUT_MIN);
    plan.limits.lock_wait_microseconds = lock_wait(plan.seed);
    // Not both: where nothing but a limit of waits ends deadlocks, and all are begun row by row, next to nothing comes to an end.
    if plan.limits.lock_wait_microseconds.is_none() {
        plan.limits.lock_requests = lock_requests(plan.seed);
    }
    plan.limits.load_control = load_control(plan.seed);
    if plan.limits.lock_requests == LockRequests::AsItGoes {
        // Each row takes a round of messages: a thousand calls that all conflict take half an hour between continents.
        plan.settle_within = 3600 * SECOND;
    }
}

/// Calls that a client of an engine without an order has outstanding at most, and how long it waits at least before it sends one
/// again.
const UNORDERED_WINDOW_MAX: u64 = 8;
const UNORDERED_TIMEOUT_MIN: Nanoseconds = SECOND / 2;

/// The number of partitions, and that of replicas.
fn nodes(random: &mut Random, fixed: &Fixed) -> (u16, u16) {
    let partitions = match random.below(8) {
        0 => 1,
        1 | 2 => 2,
        3..=5 => 3,
        6 => 4,
        _ => 5 + random.below(4) as u16,
    };
    let replicas = match random.below(24) {
        0..=12 => 1,
        13..=15 => 2,
        16..=22 => 3,
        _ => 5,
    };
    let replicas = fixed.replicas.unwrap_or(replicas);
    // Replicas say so much to each other that many nodes make slow runs.
    let partitions = fixed.partitions.unwrap_or(partitions.min(NODES_MAX / replicas.min(NODES_MAX)));
    (partitions, replicas)
}

/// How several replicas agree. Drawn apart from all else, so that a seed draws the same with either.
fn agreement(seed: u64, fixed: &Fixed) -> Replication {
    let mut random = Random::new(seed, "asynchronous replication", &[]);
    let drawn = rarely(&mut random, 4, Replication::Sync, Replication::Async);
    fixed.replication.filter(|mode| *mode != Replication::None).unwrap_or(drawn)
}

/// How long a transaction may wait for locks of a partition, in microseconds, if that is limited. Much longer than messages take:
/// else nothing comes to an end under high contention. Drawn apart from all else.
fn lock_wait(seed: u64) -> Option<u64> {
    let mut random = Random::new(seed, "lock wait", &[]);
    one_in(&mut random, 3).then(|| 100_000 << random.below(4))
}

/// When transactions ask for their locks: as they go in one of three. Drawn apart from all else.
fn lock_requests(seed: u64) -> LockRequests {
    let mut random = Random::new(seed, "lock requests", &[]);
    rarely(&mut random, 3, LockRequests::Together, LockRequests::AsItGoes)
}

/// Whether transactions wait at the door while many wait for locks. Drawn apart from all else.
fn load_control(seed: u64) -> bool {
    let mut random = Random::new(seed, "load control", &[]);
    !one_in(&mut random, 3)
}

/// Who decides when epochs close: an epoch manager in one of four seeds. Drawn apart from all else, too.
fn epochs(seed: u64, fixed: &Fixed, unordered: bool) -> EpochPolicy {
    let mut random = Random::new(seed, "epoch manager", &[]);
    let managed = rarely(&mut random, 3, EpochPolicy::Managed, EpochPolicy::ManagedStrictly);
    let drawn = rarely(&mut random, 4, EpochPolicy::Adaptive, managed);
    if unordered { EpochPolicy::Adaptive } else { fixed.epochs.unwrap_or(drawn) }
}

/// Whether nodes that lag shed calls. Drawn apart from all else, too.
fn throttles(seed: u64) -> bool {
    one_in(&mut Random::new(seed, "throttles", &[]), 6)
}

/// After how many misses a call is helped: in one of three seeds early. Drawn apart from all else, too.
fn draw_help(seed: u64, limits: &mut Limits) {
    let mut random = Random::new(seed, "help", &[]);
    let early = 1 + random.below(2) as u32;
    if one_in(&mut random, 3) {
        limits.restarts_before_help = early;
        limits.restarts_before_distributed_help = early;
    }
}

/// How often a call is to be acknowledged before it is computed. Drawn apart from all else, too.
fn early(seed: u64) -> Option<Chance> {
    let mut random = Random::new(seed, "early answers", &[]);
    one_in(&mut random, 4).then(|| percent([20.0, 100.0][random.below(2) as usize]))
}

/// Now and then an engine without an order in advance, if what is fixed leaves room for it. Drawn apart from all else, too.
fn unordered_engine(seed: u64, fixed: &Fixed) -> Option<EngineKind> {
    let alone = fixed.replicas.is_none_or(|replicas| replicas == 1);
    let room = alone && fixed.replication.is_none() && fixed.epochs.is_none();
    (room && one_in(&mut Random::new(seed, "locks without an order", &[]), 8)).then_some(EngineKind::TwoPhase)
}

/// Which engine runs transactions concurrently, and which lock manager `calvin` has. Drawn apart from all else, too.
fn concurrent_engine(seed: u64) -> EngineKind {
    if one_in(&mut Random::new(seed, "functors", &[]), 3) {
        return EngineKind::Aloha;
    }
    rarely(&mut Random::new(seed, "lock manager", &[]), 3, EngineKind::Calvin, EngineKind::CalvinVll)
}

/// Whether the replicas are a subgroup. Drawn apart from all else, too.
fn subgroup(seed: u64) -> bool {
    one_in(&mut Random::new(seed, "subgroup", &[]), 4)
}

fn one_in(random: &mut Random, count: u64) -> bool {
    random.below(count) == 0
}

/// One of two values, the second in one of `count` seeds.
fn rarely<T>(random: &mut Random, count: u64, usual: T, rare: T) -> T {
    if one_in(random, count) { rare } else { usual }
}

fn percent(percent: f64) -> Chance {
    Chance::of_percent(percent, "a chance of the swarm").expect("the swarm draws percentages")
}

fn clients(random: &mut Random, transactions: u64) -> ClientPlan {
    ClientPlan {
        count: 1 + random.below(12) as u16,
        window: [1, 1, 2, 10, 100][random.below(5) as usize],
        transactions,
        starts_at: 0,
        think: [0, MILLISECOND, 10 * MILLISECOND, 100 * MILLISECOND][random.below(4) as usize],
        timeout: (20 * MILLISECOND) << random.below(6),
        pause: MILLISECOND,
        wanders: random.below(2) == 0,
        snapshots: random.below(4) as u32,
        place: ClientPlace::Network,
        early: None,
    }
}

fn network(random: &mut Random, hosts: u16) -> NetworkOptions {
    let topology = match random.below(5) {
        0 => Topology::local(),
        1 | 2 => Topology::lan(),
        3 => Topology::uniform(Latency {
            minimum: random.below(MILLISECOND),
            spread: random.below(20 * MILLISECOND),
            tail_one_in: 50,
            tail: random.below(200 * MILLISECOND),
        }),
        _ => {
            let regions: Vec<Region> =
                (0..hosts).map(|_| Region::ALL[random.below(Region::ALL.len() as u64) as usize]).collect();
            Topology::wan(&regions)
        }
    };
    let chance = |random: &mut Random, most: i64| {
        (!one_in(random, 2)).then(|| percent(random.between(1, most * 10) as f64 / 10.0))
    };
    // A window of a link must pass within the link's patience: below that, resending fills the wire for ever.
    let narrow = 1 << random.between(20, 27);
    NetworkOptions {
        topology,
        bandwidth: rarely(random, 4, 0, narrow),
        loss: chance(random, 20),
        duplication: chance(random, 30),
        reordering: chance(random, 30),
        reordering_delay: MILLISECOND << random.below(6),
        in_flight: rarely(random, 2, InFlight::Delivered, InFlight::Lost),
    }
}

fn disk(random: &mut Random) -> DiskOptions {
    let sync_min = (10 * MICROSECOND) << random.below(8);
    DiskOptions {
        sync_min,
        sync_max: sync_min << random.below(6),
        loss: rarely(random, 4, Loss::Drawn, Loss::All),
        segment_bytes: (64 << 10) << random.below(7),
        checkpoint_bytes_per_second: None,
    }
}

/// Checkpoints that are so frequent that short runs have some, or none at all.
fn checkpoints(random: &mut Random) -> CheckpointOptions {
    let interval_microseconds = (!one_in(random, 3)).then(|| 5_000 << random.below(9));
    let log_bytes = 1_000 << random.below(9);
    CheckpointOptions {
        mode: rarely(random, 4, CheckpointMode::Concurrent, CheckpointMode::Freeze),
        interval_microseconds,
        log_bytes: rarely(random, 2, 256 << 20, log_bytes),
        ..CheckpointOptions::default()
    }
}

/// Clocks that are wrong by up to ten seconds and, one in four, as wrong in their rate as no real clock is.
fn clocks(random: &mut Random, machines: u16) -> Vec<Clock> {
    if one_in(random, 3) {
        return Vec::new();
    }
    let drift = rarely(random, 4, 200, 200_000);
    let mut clock = |_| Clock {
        offset_microseconds: random.below(10_000_000),
        drift_millionths: random.between(-drift, drift),
    };
    (0..machines).map(&mut clock).collect()
}

fn costs(random: &mut Random) -> CostTable {
    // Picoseconds; from faster than any machine to a hundred times slower than a usual one.
    let scale = 1 << random.below(8);
    let mut cost = |most: u64| random.below(most * 1_000) * scale;
    CostTable {
        step: cost(1_000),
        request: cost(2_000),
        message: cost(1_000),
        byte: cost(2),
        transaction_received: cost(1_000),
        delivered: cost(1_000),
        executed_alone: cost(10_000),
        executed_together: cost(10_000),
        functor: None,
        trial: 0,
        unit: 0,
        reply: cost(1_000),
        checkpoint_byte: 0,
        call: 0,
        locks: 0,
        edge: 0,
    }
}

fn limits(random: &mut Random) -> Limits {
    let usual = Limits::default();
    let mut tiny = |usual: usize, most: u64| match random.below(3) {
        0 => 1 + random.below(most) as usize,
        _ => usual,
    };
    Limits {
        batch_calls: tiny(usual.batch_calls, 10),
        batch_bytes: tiny(usual.batch_bytes, 500),
        sequencer_waiting: tiny(usual.sequencer_waiting, 20),
        sequencer_waiting_bytes: tiny(usual.sequencer_waiting_bytes, 2_000),
        epochs_in_flight: tiny(usual.epochs_in_flight as usize, 4) as u64,
        transactions_live: tiny(usual.transactions_live, 10),
        step_transactions: tiny(usual.step_transactions, 10),
        session_window: usual.session_window,
        sessions: usual.sessions,
        reconnaissance: tiny(usual.reconnaissance, 4),
        restarts: tiny(usual.restarts as usize, 3) as u32,
        restarts_before_help: usual.restarts_before_help,
        restarts_before_distributed_help: usual.restarts_before_distributed_help,
        snapshots: usual.snapshots,
        stream_bytes: usual.stream_bytes,
        lock_wait_microseconds: None,
        lock_requests: LockRequests::default(),
        load_control: usual.load_control,
        throttles: false,
    }
}

/// The kinds of faults, of which each seed has some.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Crash,
    Pause,
    Slow,
    Cut,
    Partition,
    Isolate,
    Clog,
    FullDisk,
    Damage,
    PowerCut,
    FailedSync,
    Loss,
    ClockJump,
}

fn faults(random: &mut Random, plan: &Plan) -> Vec<PlannedFault> {
    let mut kinds = Vec::new();
    let mut include = |random: &mut Random, kind: Kind, possible: bool, one_in_seeds: u64| {
        if one_in(random, one_in_seeds) && possible {
            kinds.push(kind);
        }
    };
    let disk = plan.disk.is_some();
    include(random, Kind::Crash, disk, 2);
    include(random, Kind::Pause, true, 3);
    include(random, Kind::Slow, true, 4);
    include(random, Kind::Cut, true, 4);
    include(random, Kind::Partition, true, 4);
    include(random, Kind::Isolate, true, 4);
    include(random, Kind::Clog, true, 4);
    include(random, Kind::FullDisk, disk, 6);
    include(random, Kind::Damage, disk, 16);
    include(random, Kind::PowerCut, disk, 4);
    include(random, Kind::FailedSync, disk, 6);
    include(random, Kind::Loss, plan.replicas > 2, 4);
    include(random, Kind::ClockJump, true, 6);
    if kinds.is_empty() {
        return Vec::new();
    }
    let count = 1 + random.below(20);
    let mut faults: Vec<PlannedFault> = (0..count)
        .map(|_| {
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            fault(random, plan, kind)
        })
        .collect();
    let crashes: Vec<PlannedFault> =
        faults.iter().filter_map(|fault| crash_after_damage(random, plan, fault)).collect();
    faults.extend(crashes);
    let cuts: Vec<PlannedFault> =
        faults.iter().filter_map(|fault| cut_in_recovery(random, &kinds, fault)).collect();
    faults.extend(cuts);
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Damage shows when the machine starts again: often it crashes not long after.
fn crash_after_damage(random: &mut Random, plan: &Plan, damage: &PlannedFault) -> Option<PlannedFault> {
    let (Fault::Corrupt(machine) | Fault::Misdirect(machine)) = damage.fault else { return None };
    let at = damage.at + random.below(plan.heal_at.saturating_sub(damage.at) + 1);
    let lasts = random.below(100 * MILLISECOND);
    (!one_in(random, 3)).then_some(PlannedFault { at, lasts, fault: Fault::Crash(machine) })
}

/// The power goes again while a machine that has crashed recovers, often enough after a crash.
fn cut_in_recovery(random: &mut Random, kinds: &[Kind], crash: &PlannedFault) -> Option<PlannedFault> {
    let Fault::Crash(machine) = crash.fault else { return None };
    if !kinds.contains(&Kind::PowerCut) || one_in(random, 2) {
        return None;
    }
    // It is planned while the machine is down, and is over when that would have been up again for a while.
    let at = crash.at + random.below(crash.lasts + 1);
    let lasts = crash.at + crash.lasts - at + random.below(100 * MILLISECOND);
    Some(PlannedFault { at, lasts, fault: Fault::PowerCut(machine, random.below(8)) })
}

fn machine(random: &mut Random, plan: &Plan) -> u16 {
    random.below(u64::from(plan.machines)) as u16
}

/// When a fault begins, and how long it lasts.
fn when(random: &mut Random, plan: &Plan) -> (Nanoseconds, Nanoseconds) {
    let at = random.below(plan.heal_at);
    let longest = MILLISECOND << random.below(12);
    (at, random.below(longest))
}

fn fault(random: &mut Random, plan: &Plan, kind: Kind) -> PlannedFault {
    let machine = machine(random, plan);
    let hosts = u64::from(plan.machines + plan.clients.count);
    let other = random.below(hosts) as u16;
    let (at, lasts) = when(random, plan);
    let fault = match kind {
        Kind::Crash => Fault::Crash(machine),
        Kind::Pause => Fault::Pause(machine),
        Kind::Slow => Fault::Slow(machine, 2 << random.below(8)),
        Kind::Cut => {
            if random.below(2) == 0 {
                Fault::Cut(machine, other)
            } else {
                Fault::Cut(other, machine)
            }
        }
        Kind::Partition => Fault::Partition((0..hosts as u16).filter(|_| random.below(2) == 0).collect()),
        Kind::Isolate => Fault::Partition(vec![machine]),
        Kind::Clog => {
            if random.below(2) == 0 {
                Fault::Clog(machine, other)
            } else {
                Fault::Clog(other, machine)
            }
        }
        Kind::FullDisk => Fault::FullDisk(machine),
        Kind::Damage => {
            if random.below(2) == 0 {
                Fault::Corrupt(machine)
            } else {
                Fault::Misdirect(machine)
            }
        }
        Kind::PowerCut => {
            let most = 1 << random.below(8);
            Fault::PowerCut(machine, random.below(most))
        }
        Kind::FailedSync => Fault::FailedSync(machine),
        Kind::Loss => Fault::Loss(machine),
        Kind::ClockJump => {
            let microseconds = 1_000 << random.below(16);
            match random.below(2) {
                0 => Fault::ClockJump(machine, microseconds),
                _ => Fault::ClockBack(machine, microseconds),
            }
        }
    };
    PlannedFault { at, lasts, fault }
}
