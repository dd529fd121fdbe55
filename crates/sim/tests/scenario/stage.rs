//! The world of a scenario: a plan that can be changed until the world begins, and faults that can be added later.

use std::error::Error;

use ordain_db::engine::EngineKind;
use ordain_db::error::Outcome;
use ordain_db::limits::Limits;
use ordain_db::message::{Operation as Asked, RequestId};
use ordain_db::node::CheckpointOptions;
use ordain_db::position::{NodeId, Position};
use ordain_db::procedure::encode_arguments;
use ordain_db::sequencer::EpochOptions;
use ordain_sim::checkers;
use ordain_sim::history::Invocation;
use ordain_sim::machine::cost::CostTable;
use ordain_sim::machine::disk::{DiskOptions, Loss};
use ordain_sim::network::NetworkOptions;
use ordain_sim::network::latency::Latency;
use ordain_sim::network::topology::Topology;
use ordain_sim::plan::{ClientPlace, ClientPlan, Fault, Plan, PlannedFault, Replication, WorkloadPlan};
use ordain_sim::time::{MICROSECOND, MILLISECOND, SECOND};
use ordain_sim::world::World;
use ordain_workload::append::{self, Append, Arguments, NUMBERS_PER_CALL, Operation, RowName, Seen};
use ordain_workload::random::Chance;
use ordain_workload::{Workload, bank};

use crate::names::Time;

/// Numbers of calls that are made by hand are above this, and so apart from those that client 0 draws.
const FIRST_CALL: u64 = 1 << 26;

/// What `cluster` says.
pub(crate) struct Cluster<'a> {
    pub(crate) partitions: u16,
    pub(crate) replicas: u16,
    pub(crate) checkpoints: Option<Time>,
    pub(crate) segment: Option<u64>,
    pub(crate) engine: EngineKind,
    pub(crate) workload: &'a str,
    pub(crate) seed: u64,
    pub(crate) sync: Option<Time>,
    pub(crate) latency: Time,
    pub(crate) cpu: Time,
}

/// See the [module](self). Plans and workloads are leaked: a test ends soon.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    workload: &'static dyn Workload,
    world: Option<World<'static>>,
    /// Whether faults can be added after the beginning.
    linked: bool,
    calls: Vec<(RequestId, Arguments)>,
    /// How the run ended, once it has.
    ended: Option<Option<String>>,
}

pub(crate) fn percent(percent: u8) -> Option<Chance> {
    (percent > 0).then(|| Chance::of_percent(f64::from(percent), "a chance of the scenario").unwrap())
}

impl Stage {
    pub(crate) fn new(cluster: &Cluster<'_>) -> Result<Stage, Box<dyn Error>> {
        let sites = cluster.partitions;
        let workload = match cluster.workload {
            "append" => WorkloadPlan::Append(append::Options { sites, ..append::Options::default() }),
            "bank" => WorkloadPlan::Bank(bank::Options {
                sites,
                accounts: 10 * u64::from(sites),
                balance: 100,
                amount_max: 30,
                multi_partition_percent: 50.0,
                ..bank::Options::default()
            }),
            other => return Err(format!("there is no workload {other:?} here: give append or bank").into()),
        };
        // No luck is involved: a crash loses exactly what was not synced.
        let disk = cluster.sync.map(|Time(sync)| DiskOptions {
            sync_min: sync,
            sync_max: sync,
            loss: Loss::All,
            segment_bytes: cluster.segment.unwrap_or(DiskOptions::default().segment_bytes),
            checkpoint_bytes_per_second: None,
        });
        let clients = ClientPlan {
            count: 1,
            window: 1,
            transactions: 0,
            starts_at: 0,
            think: 0,
            timeout: 50 * MILLISECOND,
            pause: MILLISECOND,
            wanders: false,
            snapshots: 0,
            place: ClientPlace::Network,
            early: None,
        };
        let plan = Plan {
            seed: cluster.seed,
            engine: cluster.engine,
            partitions: sites,
            replicas: cluster.replicas,
            replication: if cluster.replicas > 1 { Replication::Sync } else { Replication::None },
            subgroup: false,
            machines: sites * cluster.replicas,
            cores: 1,
            workload,
            clients,
            limits: Limits::default(),
            epochs: EpochOptions::default(),
            step_events: 1 << 20,
            inbox_requests: 1 << 20,
            network: NetworkOptions::reliable(Topology::uniform(Latency::fixed(cluster.latency.0))),
            disk,
            checkpoints: CheckpointOptions {
                interval_microseconds: cluster.checkpoints.map(|Time(interval)| interval / MICROSECOND),
                log_bytes: u64::MAX,
                ..CheckpointOptions::default()
            },
            clocks: Vec::new(),
            costs: CostTable { step: cluster.cpu.0 * 1_000, ..CostTable::default() },
            faults: Vec::new(),
            bug: None,
            heal_at: 0,
            settle_within: 60 * SECOND,
            trace: true,
        };
        let workload = Box::leak(plan.workload.build()?);
        Ok(Stage { plan, workload, world: None, linked: false, calls: Vec::new(), ended: None })
    }

    /// The plan, which may be changed as long as the world has not begun.
    pub(crate) fn plan_mut(&mut self) -> Result<&mut Plan, Box<dyn Error>> {
        match self.world {
            None => Ok(&mut self.plan),
            Some(_) => Err("the world has begun: say this before the first call or run".into()),
        }
    }

    /// The world, which begins now if it has not.
    pub(crate) fn world(&mut self) -> Result<&mut World<'static>, Box<dyn Error>> {
        if self.world.is_none() {
            self.linked = !self.plan.is_bare();
            let mut world = World::new(Box::leak(Box::new(self.plan.clone())), self.workload)?;
            world.log(true);
            self.world = Some(world);
        }
        self.world.as_mut().ok_or_else(|| "the world has just begun".into())
    }

    pub(crate) fn add_fault(
        &mut self,
        fault: Fault,
        at: Option<Time>,
        lasts: Option<Time>,
    ) -> Result<(), Box<dyn Error>> {
        let now = self.world.as_ref().map_or(0, World::now);
        let at = at.map_or(now, |at| at.0);
        if at < now {
            return Err("a fault cannot begin in the past: give a later at".into());
        }
        // Without an end it lasts until everything is healed.
        let lasts = lasts.map_or(3_600 * SECOND, |lasts| lasts.0);
        self.plan.faults.push(PlannedFault { at, lasts, fault });
        if let Some(world) = &mut self.world {
            if !self.linked {
                return Err("without disks the first fault must be said before the first call or run".into());
            }
            world.add_faults(Box::leak(Box::new(self.plan.clone())));
        }
        Ok(())
    }

    /// Lets a client turn to the replica of a node with what it sends next.
    pub(crate) fn turn(&mut self, client: u16, node: NodeId) -> Result<(), Box<dyn Error>> {
        if client >= self.plan.clients.count || node.replica.0 >= self.plan.replicas {
            return Err(format!("there is no client c{client}, or no node {node}").into());
        }
        self.world()?.turn(client, node.replica);
        Ok(())
    }

    pub(crate) fn call(
        &mut self,
        client: u16,
        operations: &[Operation],
        early: bool,
    ) -> Result<(), Box<dyn Error>> {
        let WorkloadPlan::Append(options) = &self.plan.workload else {
            return Err("calls by hand need workload=append".into());
        };
        if client >= self.plan.clients.count {
            return Err(format!("there is no client c{client}: say clients {} first", client + 1).into());
        }
        let procedure = Append::new(options.clone())?.procedure();
        let number = FIRST_CALL + self.calls.len() as u64 + 1;
        let arguments = Arguments { number, operations: operations.iter().copied().collect(), abort: None };
        let encoded = encode_arguments(&arguments)?.into();
        let asked = match early {
            true => Asked::CallEarly { procedure, arguments: encoded },
            false => Asked::Call { procedure, arguments: encoded },
        };
        let request = self.world()?.call(client, asked);
        self.calls.push((request, arguments));
        Ok(())
    }

    /// What the calls made by hand came to.
    pub(crate) fn answers(&self) -> Result<String, Box<dyn Error>> {
        let Some(world) = &self.world else { return Ok(String::new()) };
        let mut lines = Vec::new();
        for (number, (request, arguments)) in (1..).zip(&self.calls) {
            let invocation = world.invocation(*request).ok_or("a call is not recorded")?;
            let outcome = match (&invocation.operation, invocation.end()) {
                (Asked::CallEarly { .. }, Some((_, Ok(position)))) => {
                    let position: Position = postcard::from_bytes(position)?;
                    let end = question_about(world, *request).and_then(Invocation::end);
                    format!("ordered at {position}; {}", told(arguments, end.map(|(_, outcome)| outcome))?)
                }
                (_, end) => told(arguments, end.map(|(_, outcome)| outcome))?,
            };
            let (attempts, replies) = (invocation.attempts, invocation.replies.len());
            let client = request.client.number;
            lines.push(format!(
                "call {number} of c{client}, sent {attempts}x, answered {replies}x: {outcome}"
            ));
        }
        Ok(lines.join("\n"))
    }

    pub(crate) fn settle(&mut self) -> Result<String, Box<dyn Error>> {
        let world = self.world()?;
        let ended = world.settle();
        world.take_log();
        self.ended = Some(ended.clone());
        Ok(ended.unwrap_or_else(|| "at rest".to_owned()))
    }

    pub(crate) fn check(&mut self) -> Result<String, Box<dyn Error>> {
        let unfinished = self.ended.clone().ok_or("settle first: checkers judge a run that has ended")?;
        let workload = self.workload;
        let world = self.world()?;
        let mut lines = world.problems().to_vec();
        if world.halt_is_excused() {
            lines.push("the cluster ended early, as it must".to_owned());
        } else {
            let violations = checkers::check(&world.history(unfinished), workload);
            lines.extend(violations.iter().map(|violation| format!("violated: {violation}")));
        }
        if lines.is_empty() {
            lines.push("all properties hold".to_owned());
        }
        Ok(lines.join("\n"))
    }
}

/// What a client was told of a call.
fn told(arguments: &Arguments, outcome: Option<&Outcome>) -> Result<String, Box<dyn Error>> {
    Ok(match outcome {
        None => "no answer".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(result)) => {
            let seen = Append::decode_result(arguments, result)?;
            let seen =
                arguments.operations.iter().zip(&seen).map(|(operation, seen)| describe(operation, seen));
            seen.collect::<Vec<_>>().join(", ")
        }
    })
}

/// What its client asked about an early call.
fn question_about<'w>(world: &'w World<'_>, call: RequestId) -> Option<&'w Invocation> {
    let later = (call.sequence + 1..).map(|sequence| world.invocation(RequestId { sequence, ..call }));
    let mut later = later.map_while(|invocation| invocation);
    later.find(|asked| matches!(asked.operation, Asked::AskOutcome { of } if of == call.sequence))
}

fn row(name: RowName) -> String {
    format!("{}/{}", name.site, name.id)
}

/// The call that wrote a number; numbers that the workload's own calls wrote are given as they are.
fn writer(number: u64) -> String {
    let call = number / NUMBERS_PER_CALL;
    if call > FIRST_CALL { (call - FIRST_CALL).to_string() } else { format!("#{number}") }
}

fn describe(operation: &Operation, seen: &Seen) -> String {
    match (operation, seen) {
        (Operation::ReadList(list), Seen::List(numbers)) => {
            let writers: Vec<String> = numbers.iter().map(|number| writer(*number)).collect();
            format!("{} = [{}]", row(*list), writers.join(" "))
        }
        (_, Seen::Appended { list, length: 0, .. }) => format!("first in {}", row(*list)),
        (_, Seen::Appended { list, last, .. }) => format!("after {} in {}", writer(*last), row(*list)),
        (_, Seen::Nothing) => "done".to_owned(),
        (_, other) => format!("{other:?}"),
    }
}
