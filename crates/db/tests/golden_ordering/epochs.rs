//! Scripts of the epoch manager and of the partitions that it authorises: clocks, and messages between them, moved by hand.
//!
//! Times are in milliseconds. Whatever a command makes possible happens at once, as far as messages are not held back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::str::FromStr;

use bytes::Bytes;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, Ordered, RequestId, Work};
use ordain_db::position::{Epoch, NodeId, PartitionId, PartitionSet};
use ordain_db::procedure::ProcedureId;
use ordain_db::sequencer::authority::{Authorisation, EpochMessage, EpochOrder, EpochReport};
use ordain_db::sequencer::{EpochManager, EpochOptions, EpochPolicy, Progress, Sequencer, Waiting};

use crate::tokens::{Number, number};

/// `p1`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Partition(usize);

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        number('p', text).map(Partition)
    }
}

#[derive(goldenscript::Command)]
enum Command {
    /// Begins with the sequencers of so many partitions and a manager beside that of p0.
    Cluster {
        partitions: u16,
        #[arg(key)]
        epochs: Option<EpochPolicy>,
        /// The length of a period in milliseconds.
        #[arg(key)]
        length: Option<u64>,
        /// Most transactions of a batch.
        #[arg(key)]
        batch: Option<usize>,
    },
    /// Moves the time on to so many milliseconds.
    Time(u64),
    /// Sets a partition's clock, by its difference from the time in milliseconds.
    Clock { at: Partition, ahead: i64 },
    /// A partition gets transactions.
    Add { at: Partition, names: Vec<String> },
    /// A partition does nothing from now on.
    Stall(Partition),
    /// It goes on.
    Wake(Partition),
    /// Messages from one to another are held back from now on.
    Hold { from: Partition, to: Partition },
    /// What was held back arrives, and all that follows.
    Release { from: Partition, to: Partition },
    /// What was held back is lost.
    Lose { from: Partition, to: Partition },
    /// What was held back arrives twice, the newest first.
    Shuffle { from: Partition, to: Partition },
    /// A partition gets an authorisation with a period from one millisecond to another.
    Grant {
        at: Partition,
        epoch: Number,
        start: u64,
        finish: u64,
        #[arg(key, optional)]
        next: u64,
    },
    /// Another node leads the group of a partition, and goes on after an epoch; that of p0 is the manager from now on.
    Elect {
        at: Partition,
        after: Number,
        #[arg(key)]
        length: Option<u64>,
    },
    /// What each partition has, and what it waits for.
    State,
}

#[derive(Clone)]
enum Mail {
    Epochs(EpochMessage),
    Follow(Epoch),
}

struct Place {
    sequencer: Sequencer,
    /// What waits.
    names: VecDeque<String>,
    /// How many of them were started when that was last looked at.
    started: usize,
    /// How far the clock is ahead of the time, in microseconds.
    ahead: i64,
    batches: BTreeMap<Epoch, Vec<String>>,
    is_stalled: bool,
}

struct Runner {
    now: u64,
    places: Vec<Place>,
    manager: EpochManager,
    policy: EpochPolicy,
    /// By sender and receiver.
    mail: BTreeMap<(Partition, Partition), VecDeque<Mail>>,
    held: BTreeSet<(Partition, Partition)>,
    complete: Epoch,
    lines: Vec<String>,
}

const MANAGER: Partition = Partition(0);

fn ordered(name: &str) -> Ordered {
    let client = ClientId { home: PartitionId(0), number: 0 };
    let work =
        Work::Call { procedure: ProcedureId(0), arguments: Bytes::from(name.to_owned()), reconnoitred: None };
    Ordered { request: RequestId { client, sequence: 0 }, acknowledged: 0, work }
}

/// `35` or, with microseconds, `35.001`
fn milliseconds(microseconds: u64) -> String {
    match microseconds % 1000 {
        0 => format!("{}", microseconds / 1000),
        rest => format!("{}.{rest:03}", microseconds / 1000),
    }
}

fn period(authorisation: &Authorisation) -> String {
    let Authorisation { epoch, start, finish, .. } = authorisation;
    format!("{epoch} from {} to {}", milliseconds(*start), milliseconds(*finish))
}

fn show_order(order: &EpochOrder) -> String {
    match order {
        EpochOrder::Ask(_) | EpochOrder::Revoke(_) => order.to_string(),
        EpochOrder::Grant(authorisation) => format!("grants {}", period(authorisation)),
    }
}

impl Runner {
    fn new(partitions: u16, options: EpochOptions, limits: Limits) -> Runner {
        let place = |partition| Place {
            sequencer: Sequencer::new(PartitionId(partition), partitions, options, limits),
            names: VecDeque::new(),
            started: 0,
            ahead: 0,
            batches: BTreeMap::new(),
            is_stalled: false,
        };
        Runner {
            now: 0,
            places: (0..partitions).map(place).collect(),
            manager: EpochManager::new(1, partitions, options.microseconds),
            policy: options.policy,
            mail: BTreeMap::new(),
            held: BTreeSet::new(),
            complete: Epoch(0),
            lines: Vec::new(),
        }
    }

    fn all(&self) -> impl Iterator<Item = Partition> + use<> {
        (0..self.places.len()).map(Partition)
    }

    fn clock(&self, at: Partition) -> u64 {
        self.now.saturating_add_signed(self.places[at.0].ahead)
    }

    fn tell(&mut self, line: String) {
        self.lines.push(line);
    }

    fn send(&mut self, from: Partition, to: Partition, mail: Mail) {
        self.mail.entry((from, to)).or_default().push_back(mail);
    }

    /// Lets everything happen that can.
    fn settle(&mut self) -> String {
        loop {
            let before = self.lines.len();
            for at in self.all() {
                self.act(at);
            }
            let open: Vec<_> = self.mail.keys().copied().filter(|link| !self.held.contains(link)).collect();
            let mut arrived = false;
            for (from, to) in open {
                if self.places[to.0].is_stalled {
                    continue;
                }
                for mail in self.mail.remove(&(from, to)).unwrap_or_default() {
                    arrived = true;
                    self.arrive(to, mail);
                }
            }
            if !arrived && self.lines.len() == before {
                return std::mem::take(&mut self.lines).join("\n");
            }
        }
    }

    fn act(&mut self, at: Partition) {
        if self.places[at.0].is_stalled {
            return;
        }
        let now = self.clock(at);
        self.start(at);
        let progress = Progress { delivered: self.complete, busy: false, full: false };
        while self.places[at.0].sequencer.close_due(now, progress) {
            self.close(at);
            self.start(at);
        }
        if let Some(report) = self.places[at.0].sequencer.report(now) {
            self.tell(format!("p{} {report}", at.0));
            match at == MANAGER {
                true => self.manager.take(PartitionId(0), report),
                false => self.report(at, report),
            }
        }
        if at == MANAGER {
            self.manage();
        }
    }

    fn report(&mut self, at: Partition, report: EpochReport) {
        let clock = self.authority_clock(at);
        let partition = PartitionId(at.0 as u16);
        self.send(at, MANAGER, Mail::Epochs(EpochMessage::Report { partition, clock, report }));
    }

    fn authority_clock(&self, at: Partition) -> u64 {
        self.places[at.0].sequencer.authority().unwrap().clock(self.clock(at))
    }

    fn start(&mut self, at: Partition) {
        let now = self.clock(at);
        let place = &mut self.places[at.0];
        place.sequencer.start(now);
        let (open, started) = (place.sequencer.open(), place.sequencer.started());
        let names: Vec<String> = place.names.range(place.started..started).cloned().collect();
        place.started = started;
        if !names.is_empty() {
            let held = place.sequencer.authority().unwrap().held();
            let without = if held.is_none() { " without authorisation" } else { "" };
            self.tell(format!("p{} starts {} in {open}{without}", at.0, names.join(" ")));
        }
    }

    fn close(&mut self, at: Partition) {
        let now = self.clock(at);
        let place = &mut self.places[at.0];
        let follows = place.sequencer.peers_closed() >= place.sequencer.open();
        let closed = place.sequencer.close(now);
        let names: Vec<String> = place.names.drain(..closed.whole.len()).collect();
        place.started = 0;
        let shown = if names.is_empty() { "empty".to_owned() } else { names.join(" ") };
        place.batches.insert(closed.epoch, names);
        self.tell(format!("p{} closes {}: {shown}", at.0, closed.epoch));
        if !follows {
            for other in self.all().filter(|other| *other != at) {
                self.send(at, other, Mail::Follow(closed.epoch));
            }
        }
        self.deliver();
    }

    /// An epoch can be seen when all partitions have closed it.
    fn deliver(&mut self) {
        let next = self.complete.next();
        let batches: Option<Vec<&Vec<String>>> =
            self.places.iter().map(|place| place.batches.get(&next)).collect();
        if let Some(batches) = batches {
            let names: Vec<&str> = batches.into_iter().flatten().map(String::as_str).collect();
            let shown = if names.is_empty() { "nothing".to_owned() } else { names.join(" ") };
            self.complete = next;
            self.tell(format!("{next} is complete: {shown}"));
        }
    }

    fn manage(&mut self) {
        let mut orders = Vec::new();
        let clock = self.authority_clock(MANAGER);
        self.manager.advance(clock, &mut orders);
        let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (partition, order) in orders {
            said.entry(show_order(&order)).or_default().push(partition.to_string());
            let (manager, term) = (NodeId::first(PartitionId(0)), self.manager.term());
            let message = EpochMessage::Order { manager, term, clock, order };
            match partition.index() {
                0 => self.arrive(MANAGER, Mail::Epochs(message)),
                other => self.send(MANAGER, Partition(other), Mail::Epochs(message)),
            }
        }
        for (order, partitions) in said {
            self.tell(format!("the manager {order}: {}", partitions.join(" ")));
        }
    }

    fn arrive(&mut self, to: Partition, mail: Mail) {
        let now = self.clock(to);
        let sequencer = &mut self.places[to.0].sequencer;
        match mail {
            Mail::Follow(epoch) => sequencer.follow(epoch),
            Mail::Epochs(EpochMessage::Order { manager, term, clock, order }) => {
                let authority = sequencer.authority_mut().unwrap();
                let obeyed = authority.obey(manager, term);
                if obeyed.is_ok() {
                    authority.hear_clock(now, clock);
                }
                let taken = obeyed.and_then(|()| sequencer.take_order(now, order));
                if let Err(refusal) = taken {
                    self.tell(format!("p{} refuses what {}: {refusal}", to.0, show_order(&order)));
                }
            }
            Mail::Epochs(EpochMessage::Report { partition, clock, report }) => {
                sequencer.authority_mut().unwrap().hear_clock(now, clock);
                self.manager.take(partition, report);
            }
        }
    }

    fn grant(&mut self, at: Partition, authorisation: Authorisation) {
        let taken = self.places[at.0].sequencer.take_order(self.now, EpochOrder::Grant(authorisation));
        let taken = taken.map_or_else(|refusal| format!("refuses: {refusal}"), |()| "takes it".to_owned());
        self.tell(format!("p{} {taken}", at.0));
    }

    fn elect(&mut self, at: Partition, after: Epoch, length: Option<u64>) {
        let partitions = self.places.len() as u16;
        let place = &mut self.places[at.0];
        place.sequencer.withdraw();
        place.sequencer.resume(after);
        (place.started, place.is_stalled) = (0, false);
        place.names.clear();
        place.batches.retain(|epoch, _| *epoch <= after);
        if at == MANAGER {
            let length = length.map_or(place.sequencer.epoch_microseconds(), |length| length * 1000);
            self.manager = EpochManager::new(self.manager.term() + 1, partitions, length);
        }
    }

    fn state(&self) -> String {
        let lines = self.all().map(|at| {
            let sequencer = &self.places[at.0].sequencer;
            let held = sequencer.authority().unwrap().held();
            let held = held.map_or("holds nothing".to_owned(), |held| format!("holds {}", period(&held)));
            let deadline = sequencer.deadline(self.clock(at));
            let deadline = deadline
                .map_or("no deadline".to_owned(), |deadline| format!("deadline {}", milliseconds(deadline)));
            let (open, waiting, started) = (sequencer.open(), sequencer.waiting(), sequencer.started());
            let clock = milliseconds(self.authority_clock(at));
            format!(
                "p{}: {open} open, {held}, {started} of {waiting} started, clock {clock}, {deadline}",
                at.0
            )
        });
        let granted = self.manager.granted().map_or("nothing".to_owned(), |granted| period(&granted));
        let deadline = self.manager.deadline();
        let deadline =
            deadline.map_or("no deadline".to_owned(), |at| format!("deadline {}", milliseconds(at)));
        let manager = format!("manager: has granted {granted}, {deadline}");
        lines.chain([manager]).collect::<Vec<_>>().join("\n")
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        match command {
            Command::Cluster { partitions, epochs, length, batch } => {
                let policy = epochs.unwrap_or(EpochPolicy::Managed);
                let usual = EpochOptions::of(policy);
                let microseconds = length.map_or(usual.microseconds, |length| length * 1000);
                let limits = Limits::default();
                let limits = Limits { batch_calls: batch.unwrap_or(limits.batch_calls), ..limits };
                *self = Runner::new(*partitions, EpochOptions { policy, microseconds }, limits);
                return Ok(format!("epochs are {} for {}", self.policy, milliseconds(microseconds)));
            }
            Command::Time(milliseconds) => self.now = milliseconds * 1000,
            Command::Clock { at, ahead } => self.places[at.0].ahead = ahead * 1000,
            Command::Add { at, names } => {
                for name in names {
                    let participants = PartitionSet::one(PartitionId(0));
                    let waiting = Waiting { ordered: ordered(name), footprint: None, participants };
                    self.places[at.0].sequencer.add(waiting);
                    self.places[at.0].names.push_back(name.clone());
                }
            }
            Command::Stall(at) => self.places[at.0].is_stalled = true,
            Command::Wake(at) => self.places[at.0].is_stalled = false,
            Command::Hold { from, to } => {
                self.held.insert((*from, *to));
            }
            Command::Release { from, to } => {
                self.held.remove(&(*from, *to));
            }
            Command::Lose { from, to } => {
                self.mail.remove(&(*from, *to));
            }
            Command::Shuffle { from, to } => {
                let mail = self.mail.remove(&(*from, *to)).unwrap_or_default();
                for mail in mail.iter().rev().flat_map(|mail| [mail, mail]) {
                    self.arrive(*to, mail.clone());
                }
            }
            Command::Grant { at, epoch, start, finish, next } => {
                let (start, finish, next_length) = (start * 1000, finish * 1000, next * 1000);
                self.grant(*at, Authorisation { epoch: epoch.0, start, finish, next_length });
            }
            Command::Elect { at, after, length } => self.elect(*at, after.0, *length),
            Command::State => return Ok(self.state()),
        }
        Ok(self.settle())
    }
}

scripts!(
    "epochs",
    Runner::new(1, EpochOptions::of(EpochPolicy::Managed), Limits::default()),
    bound_is_used_up,
    clocks_differ,
    grants_are_repeated_and_reordered,
    idle_makes_no_epochs,
    length_changes,
    malformed_grants,
    manager_changes,
    messages_are_lost,
    one_epoch_after_the_other,
    overtaken_grants,
    partition_changes_its_leader,
    straggler,
    straggler_with_strict_epochs,
);
