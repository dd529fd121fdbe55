//! Nodes that shed calls while machines crash, leaders change and ways are cut. The swarm's load is too light for that: a node
//! sheds only when it has work for 50 ms, and twice as long as half of the others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod calm;

use ordain_db::engine::EngineKind;
use ordain_db::error::{Error, Outcome};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_sim::history::{History, Invocation};
use ordain_sim::machine::cost::CostTable;
use ordain_sim::machine::disk::DiskOptions;
use ordain_sim::network::InFlight;
use ordain_sim::plan::{ClientPlan, Fault, Plan, PlannedFault, Replication, WorkloadKind, WorkloadPlan};
use ordain_sim::run::observe;
use ordain_sim::time::{MILLISECOND, Nanoseconds, SECOND};
use ordain_sim::world::World;
use ordain_workload::append;
use ordain_workload::random::{Chance, Random};

/// Seeds of each cluster.
const SEEDS: u64 = 4;

const PARTITIONS: u16 = 3;
const REPLICAS: u16 = 3;

/// The partition whose nodes are slow, and how many times as long they take for everything.
const SLOW: PartitionId = PartitionId(0);
const FACTOR: u64 = 40;

/// When clients begin: the groups have elected their leaders.
const BEGIN: Nanoseconds = 3 * SECOND;
/// From when on there are faults: by then the slow node has a backlog.
const FAULTS: Nanoseconds = BEGIN + 800 * MILLISECOND;
/// When everything is healed.
const HEAL: Nanoseconds = BEGIN + 3 * SECOND;

/// Calls of a run that must be shed at least, for the run to be one that sheds.
const SHED_MIN: usize = 50;

/// When a run is looked at besides its end.
const LOOKS: [Nanoseconds; 4] = [FAULTS, FAULTS + SECOND / 2, FAULTS + SECOND, FAULTS + 2 * SECOND];

/// A cluster whose nodes have little to do but the slow one, for which there are more calls than it can execute.
fn plan(seed: u64, engine: EngineKind, replicas: u16) -> Plan {
    let mut plan = calm::plan(seed, PARTITIONS, replicas, WorkloadKind::Append, 12_000);
    plan.engine = engine;
    if !engine.is_ordered() {
        plan.replication = Replication::None;
    }
    (plan.limits.throttles, plan.limits.step_transactions, plan.epochs.microseconds) = (true, 4, 10_000);
    // Without an order, calls for ranges wait for each other for minutes.
    let rare = if engine.is_ordered() { 5.0 } else { 0.0 };
    plan.workload = WorkloadPlan::Append(append::Options {
        sites: PARTITIONS,
        multi_site_percent: 10.0,
        lists_per_site: 1_000,
        dependent_percent: rare,
        range_percent: rare,
        replicated_percent: 0.0,
        abort_percent: 5.0,
        hot_list_percent: 0.0,
        ..append::Options::default()
    });
    let execution = 50_000_000;
    plan.costs =
        CostTable { executed_alone: execution, executed_together: execution, ..CostTable::default() };
    plan.cores = 1;
    plan.clients = ClientPlan {
        count: 12,
        window: 1_000,
        starts_at: BEGIN,
        think: 4 * MILLISECOND,
        timeout: 300 * MILLISECOND,
        ..plan.clients
    };
    plan.network.loss = Some(Chance::of_percent(0.2, "loss").unwrap());
    plan.network.in_flight = InFlight::Lost;
    // What waits for a slow node makes large records of its log.
    plan.disk = plan.disk.map(|disk| DiskOptions { segment_bytes: 4 << 20, ..disk });
    (plan.heal_at, plan.trace) = (HEAL, true);
    plan
}

/// Makes the nodes of a partition slow, and adds what goes wrong meanwhile: the one that leads it crashes, and others do.
fn afflict(plan: &mut Plan) {
    let random = &mut Random::new(plan.seed, "throttling under faults", &[]);
    let slow = plan.machine(leader(plan));
    let nodes = (0..plan.replicas).map(|replica| NodeId { partition: SLOW, replica: ReplicaId(replica) });
    let mut faults: Vec<PlannedFault> = nodes
        .map(|node| Fault::Slow(plan.machine(node), FACTOR))
        .map(|fault| PlannedFault { at: BEGIN, lasts: HEAL - BEGIN, fault })
        .collect();
    let machines = u64::from(plan.machines);
    for number in 0..8 {
        let other = random.below(machines) as u16;
        let fault = match number {
            0 => Fault::Crash(slow),
            1 => Fault::Crash(other),
            2 => Fault::HandOver(slow),
            3 => Fault::Partition(vec![slow]),
            4 => Fault::Partition(vec![other]),
            5 => Fault::Cut(slow, other),
            6 => Fault::Clog(other, slow),
            _ => Fault::Pause(other),
        };
        let at = FAULTS + random.below(HEAL - FAULTS);
        faults.push(PlannedFault { at, lasts: random.below(SECOND / 4), fault });
    }
    faults.sort_by_key(|fault| fault.at);
    plan.faults = faults;
}

/// Who leads the partition that is to be slow when the clients begin.
fn leader(plan: &Plan) -> NodeId {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    world.run_until(BEGIN);
    let nodes = (0..plan.replicas).map(|replica| NodeId { partition: SLOW, replica: ReplicaId(replica) });
    nodes.into_iter().find(|node| world.leads(*node)).expect("a leader is elected")
}

/// Whether a call was shed with this answer.
fn is_shed(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Error::Busy(why)) if why.contains("lags behind"))
}

/// How many calls were shed, each time that they were sent.
fn shed(history: &History) -> usize {
    let replies = history.requests.values().flat_map(|invocation| &invocation.replies);
    replies.filter(|(_, outcome)| is_shed(outcome)).count()
}

/// Calls that were shed each time that they were sent so far have no place in the order and were not executed; how many there are.
fn nothing_came_of_shed_calls(plan: &Plan) -> usize {
    let workload = plan.workload.build().unwrap();
    let mut world = World::new(plan, &*workload).unwrap();
    let mut only_shed = 0;
    for time in LOOKS {
        world.run_until(time);
        let history = world.history(Some("it goes on".to_owned()));
        let refused = |invocation: &Invocation| {
            invocation.attempts > 0
                && invocation.replies.len() == invocation.attempts as usize
                && invocation.replies.iter().all(|(_, outcome)| is_shed(outcome))
        };
        let ordered = history.log.iter().map(|(position, ordered)| (ordered.request, position));
        let executed = history
            .executed
            .iter()
            .flat_map(|(position, runs)| runs.iter().map(move |(_, run)| (run.request, position)));
        for (request, position) in ordered.chain(executed) {
            let is_refused = history.requests.get(&request).is_some_and(refused);
            assert!(!is_refused, "{request:?} was shed, and is at {position}\n{plan}");
        }
        only_shed += history.requests.values().filter(|invocation| refused(invocation)).count();
    }
    only_shed
}

/// Runs all seeds of a cluster. In most, calls must be shed: else all would be well although nothing was tried.
fn all_properties_hold(engine: EngineKind, replicas: u16) {
    let (mut shedding, mut only_shed, mut crashes, mut handed_over) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut plan = plan(seed, engine, replicas);
        afflict(&mut plan);
        let workload = plan.workload.build().unwrap();
        let (report, history) = observe(&plan, &*workload).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        assert_eq!(report.halted, None, "no disk is damaged");
        let shed = shed(&history.unwrap());
        shedding += u64::from(shed >= SHED_MIN);
        only_shed += nothing_came_of_shed_calls(&plan);
        crashes += report.happened.crashes;
        handed_over += report.happened.hand_overs;
    }
    assert!(shedding >= SEEDS - 1, "calls were shed in {shedding} of {SEEDS} seeds");
    assert!(only_shed > 0, "no call was looked at that was shed only");
    assert!(crashes >= SEEDS, "{crashes} crashes");
    assert!(handed_over > 0 || replicas == 1);
}

#[test]
fn calvin_keeps_all_properties_while_it_sheds() {
    all_properties_hold(EngineKind::Calvin, 1);
}

#[test]
fn vll_keeps_all_properties_while_it_sheds() {
    all_properties_hold(EngineKind::CalvinVll, 1);
}

#[test]
fn calvin_with_replicas_keeps_all_properties_while_it_sheds() {
    all_properties_hold(EngineKind::Calvin, REPLICAS);
}

#[test]
fn two_phase_keeps_all_properties_while_it_sheds() {
    all_properties_hold(EngineKind::TwoPhase, 1);
}

/// Nothing else comes when the last calls are sent again, so that no epoch would close for any other reason. They were refused for
/// ever once: the share that was shed stayed what it was, and so did the round that decides on whom.
#[test]
fn the_last_calls_are_served() {
    let mut shedding = 0;
    for seed in 0..SEEDS {
        let mut plan = plan(seed, EngineKind::Calvin, 1);
        (plan.clients.transactions, plan.clients.think) = (3_500, MILLISECOND);
        let fault = Fault::Slow(plan.machine(NodeId::first(SLOW)), FACTOR);
        plan.faults = vec![PlannedFault { at: BEGIN, lasts: HEAL - BEGIN, fault }];
        let workload = plan.workload.build().unwrap();
        let (report, history) = observe(&plan, &*workload).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        shedding += u64::from(shed(&history.unwrap()) >= SHED_MIN);
    }
    assert!(shedding >= SEEDS - 1, "calls were shed in {shedding} of {SEEDS} seeds");
}
