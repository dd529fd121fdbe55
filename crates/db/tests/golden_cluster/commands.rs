//! The commands of cluster scripts.

use std::collections::BTreeMap;
use std::error::Error;
use std::str::FromStr;

use ordain_db::data::{Direction, Key};
use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, ClientRequest, Message, Operation, Page, Request, RequestId};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::sequencer::EpochPolicy;

use crate::display;
use crate::interpreted::name::{Name, Span};
use crate::interpreted::operation::{Declares, Operation as Step, Program};
use crate::interpreted::procedure::content;
use crate::interpreted::{Database, INTERPRET, arguments};
use crate::network::{Done, Network};

/// `p1`
#[derive(Clone, Copy)]
pub(crate) struct Partition(PartitionId);

/// `p2.p1`: from p2 to p1
#[derive(Clone, Copy)]
pub(crate) struct Link(PartitionId, PartitionId);

/// `7@p1`: the client with the number 7 and its home.
#[derive(Clone, Copy)]
pub(crate) struct Client(ClientId);

/// `e2.p1.0`
#[derive(Clone, Copy)]
pub(crate) struct Place(Position);

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        let number = text.strip_prefix('p').and_then(|number| number.parse().ok());
        number.map(|number| Partition(PartitionId(number))).ok_or_else(|| format!("{text:?} is no partition"))
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Link, String> {
        let (from, to) = text.split_once('.').ok_or_else(|| format!("{text:?} is no link"))?;
        Ok(Link(from.parse::<Partition>()?.0, to.parse::<Partition>()?.0))
    }
}

impl FromStr for Client {
    type Err = String;

    fn from_str(text: &str) -> Result<Client, String> {
        let (number, home) = text.split_once('@').ok_or_else(|| format!("{text:?} is no client"))?;
        let number = number.parse().map_err(|_| format!("{text:?} is no client"))?;
        Ok(Client(ClientId { home: home.parse::<Partition>()?.0, number }))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let parts: Vec<&str> = text.split('.').collect();
        let wrong = || format!("{text:?} is no position");
        let [epoch, origin, index] = parts.as_slice() else { return Err(wrong()) };
        let epoch = epoch.strip_prefix('e').and_then(|epoch| epoch.parse().ok()).ok_or_else(wrong)?;
        let index = index.parse().map_err(|_| wrong())?;
        Ok(Place(Position { epoch: Epoch(epoch), origin: origin.parse::<Partition>()?.0, index }))
    }
}

#[derive(goldenscript::Command)]
pub(crate) enum Command {
    /// Rows that the next cluster begins with.
    Load(Vec<(String, i64)>),
    /// Begins with a cluster of so many nodes.
    Cluster {
        partitions: u16,
        #[arg(key)]
        engine: Option<EngineKind>,
        /// Most live transactions of a node; by default the usual limit.
        #[arg(key)]
        live: Option<usize>,
        /// Most restarts of a call that misses its footprint; by default the usual limit.
        #[arg(key)]
        restarts: Option<u32>,
        /// After how many of them it is helped; by default the usual number.
        #[arg(key)]
        help: Option<u32>,
        /// Likewise if it touches several partitions; by default the same number.
        #[arg(key)]
        distributed_help: Option<u32>,
        /// How long a transaction may wait for locks of a node, in milliseconds.
        #[arg(key)]
        lock_wait: Option<u64>,
        /// Who decides when epochs close; by default each partition.
        #[arg(key)]
        epochs: Option<EpochPolicy>,
        /// When transactions of two-phase ask for their locks.
        #[arg(key)]
        locks: Option<LockRequests>,
        /// Whether transactions of two-phase wait at the door.
        #[arg(key)]
        load_control: Option<bool>,
    },
    /// The time, which moves only when nothing else can happen.
    Clock,
    /// A client calls the procedure by way of a node.
    Submit {
        entry: Partition,
        client: Client,
        #[arg(key)]
        declare: Option<Declares>,
        /// Whether it wants to be told of the call's position before the call is computed.
        #[arg(key, optional)]
        early: bool,
        #[arg(optional)]
        steps: Vec<Step>,
    },
    /// A client asks by way of a node what became of its early call with a number.
    Ask { entry: Partition, client: Client, of: u64 },
    /// A client sends a request again.
    Resend { entry: Partition, client: Client, sequence: u64 },
    /// Clients with the numbers from 1000 on call the procedure by way of a node, all at once.
    Crowd {
        entry: Partition,
        calls: u64,
        #[arg(key)]
        declare: Option<Declares>,
        #[arg(optional)]
        steps: Vec<Step>,
    },
    /// A client with the number 1000 opens so many snapshots.
    OpenMany { entry: Partition, snapshots: u64 },
    /// A client opens a snapshot by way of a node.
    Snapshot { entry: Partition, client: Client },
    /// Reads a span at one node as of a snapshot.
    Scan { entry: Partition, at: Place, span: Span },
    /// Closes a snapshot by way of a node.
    CloseSnapshot { entry: Partition, at: Place },
    /// Lets a node go on.
    Step(Partition),
    /// Delivers the oldest messages of a link, each in a step of its own or all together in one.
    Deliver {
        from: Partition,
        to: Partition,
        #[arg(optional)]
        count: Option<usize>,
        #[arg(key, optional)]
        together: bool,
    },
    /// Delivers the newest messages that a link has delivered once more.
    Redeliver {
        from: Partition,
        to: Partition,
        #[arg(optional)]
        count: Option<usize>,
    },
    /// Delivers everything until nothing happens any more, and prints the answers; with `trace` the messages too, with `count`
    /// only how many answers there are. The link `p2.p1` is left alone with `but=p2.p1`.
    Run {
        #[arg(key, optional)]
        trace: bool,
        #[arg(key, optional)]
        count: bool,
        #[arg(key)]
        but: Option<Link>,
    },
    /// Changes a row, `rounds` times, between the reconnaissance of a client's call, which fetches that row, and its execution.
    Disturb { rounds: u32, row: Name },
    /// Two nodes lose what is under way between them, and hear of it.
    Reset { one: Partition, other: Partition },
    /// Moves the time on by so many milliseconds, and wakes no node.
    Wait { milliseconds: u64 },
    /// The deadlocks that the nodes have counted.
    Deadlocks,
    /// The messages under way.
    Messages,
    /// The live transactions.
    State,
    /// How many transactions are live at each node, and how many are delivered there and are not live yet.
    Live,
    /// Rows as the nodes have them.
    Rows(Vec<Name>),
    /// How often each node has run the logic.
    Logic,
    /// How many functors each node has computed, and what it tells of those that stopped.
    Functors,
    /// What became of requests at their home.
    Counters(Partition),
}

pub(crate) struct Runner {
    database: Database,
    rows: Vec<(Key, Vec<u8>)>,
    network: Network,
    requests: BTreeMap<RequestId, Request>,
    next: BTreeMap<ClientId, u64>,
}

/// What of a step is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    All,
    Answers,
}

impl Runner {
    pub(crate) fn new() -> Runner {
        Runner {
            database: Database::new(),
            rows: Vec::new(),
            network: Network::new(EngineKind::Calvin, 1, &[], Limits::default(), EpochPolicy::default()),
            requests: BTreeMap::new(),
            next: BTreeMap::new(),
        }
    }

    fn show(&self, done: Done, print: Print) -> String {
        let mut lines = Vec::new();
        if print == Print::All {
            lines.extend(done.sent.iter().map(|(from, to, message)| {
                format!("{from} to {to}: {}", display::message(&self.database.tables, message))
            }));
        }
        lines.extend(done.replies.iter().map(|(at, reply)| {
            let operation = self.requests.get(&reply.request).map(|request| &request.operation);
            let outcome = display::outcome(&reply.outcome, operation);
            format!("{at} answers {}: {outcome}", display::request(reply.request))
        }));
        lines.join("\n")
    }

    fn number(&mut self, client: ClientId, operation: Operation) -> Request {
        let sequence = self.next.entry(client).or_insert(0);
        let id = RequestId { client, sequence: *sequence };
        *sequence += 1;
        let request = Request { id, acknowledged: 0, operation };
        self.requests.insert(id, request.clone());
        request
    }

    fn call(&mut self, client: ClientId, program: &Program) -> ClientRequest {
        let operation = Operation::Call { procedure: INTERPRET, arguments: arguments(program).into() };
        ClientRequest::Ordered(self.number(client, operation))
    }

    fn submit(&mut self, entry: PartitionId, requests: Vec<ClientRequest>) -> Result<String, Box<dyn Error>> {
        let done = self.network.request(entry, requests)?;
        Ok(self.show(done, Print::All))
    }

    /// Many requests at once; what is refused is printed, the rest is counted.
    fn flood(&mut self, entry: PartitionId, operations: Vec<Operation>) -> Result<String, Box<dyn Error>> {
        let client = |number: u64| ClientId { home: entry, number: 1000 + number / 10_000 };
        let numbered = (0_u64..).zip(operations);
        let requests = numbered.map(|(number, operation)| self.number(client(number), operation));
        let requests = requests.map(ClientRequest::Ordered).collect();
        let done = self.network.request(entry, requests)?;
        let (committed, refused): (Vec<_>, Vec<_>) =
            done.replies.into_iter().partition(|(_, reply)| reply.outcome.is_ok());
        let shown = self.show(Done { sent: Vec::new(), replies: refused }, Print::Answers);
        Ok(format!("{} committed\n{shown}", committed.len()))
    }

    fn crowd(
        &mut self,
        entry: PartitionId,
        calls: u64,
        declares: Declares,
        steps: &[Step],
    ) -> Result<String, Box<dyn Error>> {
        let arguments = arguments(&Program { declares, operations: steps.to_vec() });
        let call = Operation::Call { procedure: INTERPRET, arguments: arguments.into() };
        self.flood(entry, vec![call; calls as usize])
    }

    fn scan(&mut self, entry: PartitionId, at: Position, span: &Span) -> Result<String, Box<dyn Error>> {
        let client = ClientId { home: entry, number: 999 };
        let request = RequestId { client, sequence: 0 };
        let range = span.range(&self.database.tables);
        let scan = ClientRequest::Scan { request, at, range, direction: Direction::Ascending, rows: 100 };
        let done = self.network.request(entry, vec![scan])?;
        let page: Page = postcard::from_bytes(done.replies[0].1.outcome.as_ref().map_err(Clone::clone)?)?;
        let rows = page.rows.iter().map(|(key, row)| {
            let value = content(&self.database.tables.item.read(row)).unwrap();
            format!("{} = {value}", Name::of_key(&self.database.tables, key))
        });
        Ok(rows.collect::<Vec<_>>().join(", "))
    }

    /// Each answer to a fetch is held back until a later writer's change of the fetched row is ordered.
    fn disturb(&mut self, rounds: u32, row: &Name) -> Result<String, Box<dyn Error>> {
        let hold = |_, message: &Message| !matches!(message, Message::Fetched { .. });
        for round in 0..rounds {
            self.network.run(&hold)?;
            let held = self.network.links.iter().find(|(_, queue)| !queue.is_empty());
            let Some(((from, to), _)) = held else {
                return Ok(format!("nothing fetches after {round} rounds"));
            };
            let (from, to) = (*from, *to);
            let program =
                Program { declares: Declares::Exactly, operations: vec![format!("add {row} 1").parse()?] };
            let write = self.call(ClientId { home: to, number: 9999 }, &program);
            self.network.request(to, vec![write])?;
            self.network.deliver(from, to, 1)?;
        }
        let done = self.network.run(&hold)?;
        Ok(self.show(done, Print::Answers))
    }

    fn row(&self, name: &Name) -> String {
        let key = name.key(&self.database.tables);
        let held = self.network.nodes.iter().enumerate().filter_map(|(node, open)| {
            let row = open.row(&key)?;
            let value = content(&self.database.tables.item.read(&row)).unwrap();
            Some(format!("{value} at p{node}"))
        });
        let held: Vec<String> = held.collect();
        format!("{name}: {}", if held.is_empty() { "missing".to_owned() } else { held.join(", ") })
    }

    fn messages(&self) -> String {
        let all = self
            .network
            .links
            .iter()
            .flat_map(|((from, to), queue)| queue.iter().map(move |message| (from, to, message)));
        let lines = all.map(|(from, to, message)| {
            format!("{from} to {to}: {}", display::message(&self.database.tables, message))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn deadlocks(&self) -> String {
        let nodes = self.network.nodes.iter().enumerate().filter_map(|(node, open)| {
            let counted = open.deadlocks()?;
            Some(format!(
                "p{node}: {} local, {} distributed, {} phantom, {} timeouts of which {} false, {} restarts",
                counted.local_deadlocks,
                counted.distributed_deadlocks,
                counted.phantom_deadlocks,
                counted.lock_timeouts,
                counted.false_timeouts,
                counted.restarts,
            ))
        });
        nodes.collect::<Vec<_>>().join("\n")
    }

    fn functors(&self) -> String {
        let nodes = self.network.nodes.iter().enumerate().map(|(node, open)| {
            let status = open.status(false);
            let problem = status.functor_problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            let (computed, stopped) = (open.executions().functors, status.functors_stopped);
            format!("p{node}: {computed} computed, {stopped} stopped{problem}")
        });
        nodes.collect::<Vec<_>>().join("\n")
    }

    fn state(&self) -> String {
        let nodes = self.network.nodes.iter().enumerate().flat_map(|(index, node)| {
            let described = node.describe();
            let lines: Vec<String> = described.lines().map(|line| format!("p{index}: {line}")).collect();
            if lines.is_empty() {
                vec![format!("p{index}: {}", if node.is_idle() { "idle" } else { "not idle" })]
            } else {
                lines
            }
        });
        nodes.collect::<Vec<_>>().join("\n")
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        Ok(match command {
            Command::Load(rows) => {
                for (name, value) in rows {
                    let name: Name = name.parse()?;
                    self.rows.push((name.key(&self.database.tables), self.database.row(*value)));
                }
                String::new()
            }
            Command::Cluster {
                partitions,
                engine,
                live,
                restarts,
                help,
                distributed_help,
                lock_wait,
                epochs,
                locks,
                load_control,
            } => {
                let rows = std::mem::take(&mut self.rows);
                let usual = Limits::default();
                let limits = Limits {
                    transactions_live: live.unwrap_or(usual.transactions_live),
                    restarts: restarts.unwrap_or(usual.restarts),
                    restarts_before_help: help.unwrap_or(usual.restarts_before_help),
                    restarts_before_distributed_help: distributed_help
                        .or(*help)
                        .unwrap_or(usual.restarts_before_distributed_help),
                    lock_wait_microseconds: lock_wait.map(|wait| wait * 1000),
                    lock_requests: locks.unwrap_or_default(),
                    load_control: load_control.unwrap_or(usual.load_control),
                    ..usual
                };
                let engine = engine.unwrap_or(EngineKind::Calvin);
                let network = Network::new(engine, *partitions, &rows, limits, epochs.unwrap_or_default());
                *self = Runner { network, ..Runner::new() };
                String::new()
            }
            Command::Clock => format!("{} ms", self.network.now / 1000),
            Command::Submit { entry, client, declare, early, steps } => {
                let declares = declare.clone().unwrap_or(Declares::Exactly);
                let program = Program { declares, operations: steps.clone() };
                let (procedure, arguments) = (INTERPRET, arguments(&program).into());
                let operation = match early {
                    true => Operation::CallEarly { procedure, arguments },
                    false => Operation::Call { procedure, arguments },
                };
                let request = self.number(client.0, operation);
                self.submit(entry.0, vec![ClientRequest::Ordered(request)])?
            }
            Command::Ask { entry, client, of } => {
                let request = self.number(client.0, Operation::AskOutcome { of: *of });
                self.submit(entry.0, vec![ClientRequest::Ordered(request)])?
            }
            Command::Resend { entry, client, sequence } => {
                let id = RequestId { client: client.0, sequence: *sequence };
                let request = self.requests.get(&id).ok_or("never sent")?.clone();
                self.submit(entry.0, vec![ClientRequest::Ordered(request)])?
            }
            Command::Crowd { entry, calls, declare, steps } => {
                self.crowd(entry.0, *calls, declare.clone().unwrap_or(Declares::Exactly), steps)?
            }
            Command::OpenMany { entry, snapshots } => {
                self.flood(entry.0, vec![Operation::OpenSnapshot; *snapshots as usize])?
            }
            Command::Snapshot { entry, client } => {
                let request = self.number(client.0, Operation::OpenSnapshot);
                self.submit(entry.0, vec![ClientRequest::Ordered(request)])?
            }
            Command::Scan { entry, at, span } => self.scan(entry.0, at.0, span)?,
            Command::CloseSnapshot { entry, at } => {
                self.submit(entry.0, vec![ClientRequest::CloseSnapshot(at.0)])?
            }
            Command::Step(node) => {
                let done = self.network.wake(node.0)?;
                self.show(done, Print::All)
            }
            Command::Deliver { from, to, count, together } => {
                let count = count.unwrap_or(1);
                let done = match together {
                    true => self.network.deliver_together(from.0, to.0, count)?,
                    false => self.network.deliver(from.0, to.0, count)?,
                };
                self.show(done, Print::All)
            }
            Command::Redeliver { from, to, count } => {
                let done = self.network.redeliver(from.0, to.0, count.unwrap_or(1))?;
                self.show(done, Print::All)
            }
            Command::Run { trace, count, but } => {
                let but = but.map(|link| (link.0, link.1));
                let done = self.network.run(&|link, _| Some(link) != but)?;
                if *count {
                    format!("{} answers", done.replies.len())
                } else {
                    self.show(done, if *trace { Print::All } else { Print::Answers })
                }
            }
            Command::Disturb { rounds, row } => self.disturb(*rounds, row)?,
            Command::Reset { one, other } => {
                let done = self.network.reset(one.0, other.0)?;
                self.show(done, Print::All)
            }
            Command::Wait { milliseconds } => {
                self.network.now += milliseconds * 1000;
                String::new()
            }
            Command::Deadlocks => self.deadlocks(),
            Command::Messages => self.messages(),
            Command::State => self.state(),
            Command::Live => {
                let nodes = self.network.nodes.iter().enumerate().map(|(index, node)| {
                    let live =
                        node.describe().lines().filter(|line| !line.contains("waits for p")).count() as u64;
                    format!("p{index}: {live} live, {} to come", node.status(false).live - live)
                });
                nodes.collect::<Vec<_>>().join("\n")
            }
            Command::Rows(names) => names.iter().map(|name| self.row(name)).collect::<Vec<_>>().join("\n"),
            Command::Logic => {
                let runs = self.network.databases.iter().enumerate();
                runs.map(|(node, database)| format!("p{node} {}", database.runs()))
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            Command::Functors => self.functors(),
            Command::Counters(node) => {
                let counters = self.network.nodes[node.0.index()].status(false).counters;
                format!(
                    "{} committed, {} aborted, {} failed, {} restarts, {} reconnaissance, {} helped, {} refused",
                    counters.committed,
                    counters.aborted,
                    counters.failed,
                    counters.restarts,
                    counters.reconnaissance,
                    counters.helped,
                    counters.refused
                )
            }
        })
    }
}
