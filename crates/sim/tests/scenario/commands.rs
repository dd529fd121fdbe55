//! The commands of scenarios; the table in `scenarios.rs` tells what they do.

use std::error::Error;

use ordain_db::engine::EngineKind;
use ordain_sim::machine::clock::Clock;
use ordain_sim::plan::{Bug, Fault};
use ordain_sim::time::{MICROSECOND, MILLISECOND};
use ordain_workload::append::Operation;

use crate::names::{FaultKind, HostName, Node, Row, Time};
use crate::stage::{Cluster, Stage, percent};

#[derive(goldenscript::Command)]
pub(crate) enum Command {
    Cluster {
        partitions: u16,
        #[arg(key)]
        replicas: Option<u16>,
        #[arg(key)]
        checkpoints: Option<Time>,
        #[arg(key)]
        segment: Option<u64>,
        #[arg(key)]
        engine: Option<EngineKind>,
        #[arg(key)]
        workload: Option<String>,
        #[arg(key)]
        seed: Option<u64>,
        #[arg(key)]
        disk: Option<bool>,
        #[arg(key)]
        sync: Option<Time>,
        #[arg(key)]
        latency: Option<Time>,
        #[arg(key)]
        cpu: Option<Time>,
    },
    Clients {
        count: u16,
        #[arg(key)]
        transactions: Option<u64>,
        #[arg(key)]
        window: Option<u64>,
        #[arg(key)]
        think: Option<Time>,
        #[arg(key)]
        timeout: Option<Time>,
    },
    Network {
        #[arg(key, optional)]
        loss: u8,
        #[arg(key, optional)]
        duplication: u8,
        #[arg(key, optional)]
        reordering: u8,
        #[arg(key)]
        delay: Option<Time>,
    },
    Clock {
        machine: HostName,
        #[arg(key)]
        ahead: Option<Time>,
        #[arg(key, optional)]
        drift: i64,
    },
    Bug(Bug),
    Fault {
        kind: FaultKind,
        hosts: Vec<HostName>,
        #[arg(key)]
        times: Option<u64>,
        #[arg(key)]
        after: Option<u64>,
        #[arg(key)]
        by: Option<Time>,
        #[arg(key)]
        at: Option<Time>,
        #[arg(key = "for")]
        lasts: Option<Time>,
    },
    Call {
        client: HostName,
        #[arg(key, optional)]
        early: bool,
        operations: Vec<(String, String)>,
    },
    Turn {
        client: HostName,
        node: Node,
    },
    Hide(Vec<String>),
    Run(Time),
    Answers,
    Show(Node),
    Heal,
    Settle,
    Check,
}

/// How bad a fault is.
struct FaultDetails {
    times: Option<u64>,
    after: Option<u64>,
    by: Option<Time>,
}

#[derive(Default)]
pub(crate) struct Runner {
    stage: Option<Stage>,
    hidden: Vec<String>,
}

impl Runner {
    fn stage(&mut self) -> Result<&mut Stage, Box<dyn Error>> {
        self.stage.as_mut().ok_or_else(|| "begin with cluster".into())
    }

    /// Adds a clock to the plan; machines before it without one are right.
    fn clock(&mut self, machine: u16, clock: Clock) -> Result<(), Box<dyn Error>> {
        let clocks = &mut self.stage()?.plan_mut()?.clocks;
        let machine = usize::from(machine);
        clocks.resize(clocks.len().max(machine + 1), Clock::default());
        clocks[machine] = clock;
        Ok(())
    }

    fn fault(
        &mut self,
        kind: FaultKind,
        hosts: &[HostName],
        details: FaultDetails,
    ) -> Result<Fault, Box<dyn Error>> {
        let plan = &self.stage()?.plan;
        let numbers: Result<Vec<u16>, String> = hosts
            .iter()
            .map(|host| match *host {
                HostName::Machine(machine) if machine < plan.machines => Ok(machine),
                HostName::Client(client) if client < plan.clients.count => Ok(plan.machines + client),
                HostName::Machine(machine) => Err(format!("there is no machine m{machine}")),
                HostName::Client(client) => Err(format!("there is no client c{client}: say clients first")),
            })
            .collect();
        let numbers = numbers?;
        let is_machine = matches!(hosts, [HostName::Machine(_)]);
        Ok(match (kind, numbers.as_slice()) {
            (FaultKind::Partition, side) => Fault::Partition(side.to_vec()),
            (FaultKind::Cut, [from, to]) => Fault::Cut(*from, *to),
            (FaultKind::Clog, [from, to]) => Fault::Clog(*from, *to),
            (FaultKind::Crash, [machine]) if is_machine => Fault::Crash(*machine),
            (FaultKind::Pause, [machine]) if is_machine => Fault::Pause(*machine),
            (FaultKind::Slow, [machine]) if is_machine => Fault::Slow(*machine, details.times.unwrap_or(10)),
            (FaultKind::FullDisk, [machine]) if is_machine => Fault::FullDisk(*machine),
            (FaultKind::Corrupt, [machine]) if is_machine => Fault::Corrupt(*machine),
            (FaultKind::Misdirect, [machine]) if is_machine => Fault::Misdirect(*machine),
            (FaultKind::DamagedCheckpoint, [machine]) if is_machine => Fault::DamagedCheckpoint(*machine),
            (FaultKind::LostWrite, [machine]) if is_machine => Fault::LostWrite(*machine),
            (FaultKind::PowerCut, [machine]) if is_machine => {
                Fault::PowerCut(*machine, details.after.unwrap_or(0))
            }
            (FaultKind::FailedSync, [machine]) if is_machine => Fault::FailedSync(*machine),
            (FaultKind::Loss, [machine]) if is_machine => Fault::Loss(*machine),
            (FaultKind::Wipe, [machine]) if is_machine => Fault::Wipe(*machine),
            (FaultKind::HandOver, [machine]) if is_machine => Fault::HandOver(*machine),
            (FaultKind::ClockJump, [machine]) if is_machine => {
                Fault::ClockJump(*machine, details.by.map_or(1_000_000, |by| by.0 / MICROSECOND))
            }
            (FaultKind::ClockBack, [machine]) if is_machine => {
                Fault::ClockBack(*machine, details.by.map_or(1_000_000, |by| by.0 / MICROSECOND))
            }
            _ => return Err("cut and clog take two hosts, other faults one machine".into()),
        })
    }

    /// The lines of the log that nobody hid.
    fn lines(&mut self) -> Result<String, Box<dyn Error>> {
        let lines = self.stage()?.world()?.take_log();
        let is_hidden = |line: &String, word: &String| match word.strip_suffix('$') {
            Some(end) => line.ends_with(end),
            None => line.contains(word.as_str()),
        };
        let shown = lines.iter().filter(|line| !self.hidden.iter().any(|word| is_hidden(line, word)));
        Ok(shown.map(String::as_str).collect::<Vec<_>>().join("\n"))
    }
}

fn operation(name: &str, argument: &str) -> Result<Operation, Box<dyn Error>> {
    if name == "write-setting" {
        return Ok(Operation::WriteSetting(argument.parse()?));
    }
    let row = argument.parse::<Row>()?.0;
    Ok(match name {
        "read" => Operation::ReadList(row),
        "append" => Operation::Append(row),
        "follow" => Operation::FollowPointer(row),
        "insert-note" => Operation::InsertNote(row),
        "delete-note" => Operation::DeleteNote(row),
        "write-note" => Operation::WriteNote(row),
        _ => return Err(format!("there is no operation {name:?}").into()),
    })
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        match command {
            Command::Cluster {
                partitions,
                replicas,
                checkpoints,
                segment,
                engine,
                workload,
                seed,
                disk,
                sync,
                latency,
                cpu,
            } => {
                let sync = disk.unwrap_or(true).then(|| sync.unwrap_or(Time(MILLISECOND)));
                self.stage = Some(Stage::new(&Cluster {
                    partitions: *partitions,
                    replicas: replicas.unwrap_or(1),
                    checkpoints: *checkpoints,
                    segment: *segment,
                    engine: engine.unwrap_or(EngineKind::Calvin),
                    workload: workload.as_deref().unwrap_or("append"),
                    seed: seed.unwrap_or(1),
                    sync,
                    latency: latency.unwrap_or(Time(100 * MICROSECOND)),
                    cpu: cpu.unwrap_or(Time(10 * MICROSECOND)),
                })?);
            }
            Command::Clients { count, transactions, window, think, timeout } => {
                let clients = &mut self.stage()?.plan_mut()?.clients;
                clients.count = *count;
                clients.transactions = transactions.unwrap_or(0);
                clients.window = window.unwrap_or(1);
                clients.think = think.map_or(0, |think| think.0);
                clients.timeout = timeout.map_or(clients.timeout, |timeout| timeout.0);
            }
            Command::Network { loss, duplication, reordering, delay } => {
                let network = &mut self.stage()?.plan_mut()?.network;
                network.loss = percent(*loss);
                network.duplication = percent(*duplication);
                network.reordering = percent(*reordering);
                network.reordering_delay = delay.map_or(MILLISECOND, |delay| delay.0);
            }
            Command::Clock { machine: HostName::Machine(machine), ahead, drift } => {
                let offset_microseconds = ahead.map_or(0, |ahead| ahead.0 / MICROSECOND);
                self.clock(*machine, Clock { offset_microseconds, drift_millionths: *drift })?;
            }
            Command::Clock { .. } => return Err("only machines have clocks".into()),
            Command::Bug(bug) => self.stage()?.plan_mut()?.bug = Some(*bug),
            Command::Fault { kind, hosts, times, after, by, at, lasts } => {
                let details = FaultDetails { times: *times, after: *after, by: *by };
                let fault = self.fault(*kind, hosts, details)?;
                self.stage()?.add_fault(fault, *at, *lasts)?;
            }
            Command::Call { client: HostName::Client(client), early, operations } => {
                let operations: Result<Vec<Operation>, Box<dyn Error>> =
                    operations.iter().map(|(name, argument)| operation(name, argument)).collect();
                self.stage()?.call(*client, &operations?, *early)?;
                return self.lines();
            }
            Command::Call { .. } => return Err("only clients call".into()),
            Command::Turn { client: HostName::Client(client), node } => {
                self.stage()?.turn(*client, node.0)?;
            }
            Command::Turn { .. } => return Err("only clients turn to nodes".into()),
            Command::Hide(words) => self.hidden = words.clone(),
            Command::Run(time) => {
                let world = self.stage()?.world()?;
                world.run_until(world.now() + time.0);
                return self.lines();
            }
            Command::Answers => return self.stage()?.answers(),
            Command::Show(node) => return Ok(self.stage()?.world()?.describe(node.0)),
            Command::Heal => {
                self.stage()?.world()?.heal();
                return self.lines();
            }
            Command::Settle => return self.stage()?.settle(),
            Command::Check => return self.stage()?.check(),
        }
        Ok(String::new())
    }
}
