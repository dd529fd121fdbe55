//! Scripts of the sequencer and the merger: transactions in, batches out; batches in, one order out.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::str::FromStr;

use bytes::Bytes;
use ordain_db::failpoint::NoFailpoints;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, Ordered, RequestId, Work};
use ordain_db::position::{Epoch, PartitionId, PartitionSet};
use ordain_db::procedure::ProcedureId;
use ordain_db::sequencer::{EpochOptions, Merger, Progress, Sequencer, Waiting};

use crate::tokens::{Number, number};

/// `p1`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Partition(PartitionId);

/// A name and the partitions that take part: `a1@p0.p1`; all partitions when none are named.
struct Transaction {
    name: String,
    participants: Vec<Partition>,
}

/// An index in a full batch and a name: `3.a1`.
struct Indexed(u32, String);

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        number('p', text).map(|number| Partition(PartitionId(number)))
    }
}

impl FromStr for Transaction {
    type Err = String;

    fn from_str(text: &str) -> Result<Transaction, String> {
        let (name, participants) = text.split_once('@').unwrap_or((text, ""));
        let participants = participants.split('.').filter(|part| !part.is_empty()).map(str::parse);
        Ok(Transaction { name: name.to_owned(), participants: participants.collect::<Result<_, _>>()? })
    }
}

impl FromStr for Indexed {
    type Err = String;

    fn from_str(text: &str) -> Result<Indexed, String> {
        let (index, name) = text.split_once('.').ok_or("give an index and a name")?;
        Ok(Indexed(index.parse().map_err(|_| "give an index")?, name.to_owned()))
    }
}

#[derive(goldenscript::Command)]
enum Command {
    /// Begins with the sequencer of one partition, and the mergers of all.
    Cluster {
        partitions: u16,
        #[arg(key, optional)]
        me: u16,
    },
    /// Sets the clock, in milliseconds.
    Time(u64),
    /// Sets how far delivery has come and how busy execution is.
    Progress {
        delivered: Number,
        #[arg(key, optional)]
        busy: bool,
        #[arg(key, optional)]
        full: bool,
    },
    /// Says how many more transactions that this partition has a part in may be ordered.
    Room(usize),
    /// Gives the sequencer transactions.
    Add(Vec<Transaction>),
    /// Gives the sequencer so many transactions with so many bytes of arguments.
    AddMany {
        count: usize,
        #[arg(key, optional)]
        bytes: usize,
    },
    /// A peer has closed an epoch.
    Follow(Number),
    /// Whether the open epoch is to be closed.
    Due,
    /// Closes the open epoch and prints the parts of its batch.
    Close,
    /// Closes the open epoch and counts its batch.
    CloseMany {
        #[arg(optional)]
        epochs: Option<u64>,
    },
    /// Gives the merger of a partition its part of a batch.
    Receive {
        at: Partition,
        epoch: Number,
        origin: Partition,
        #[arg(optional)]
        part: Vec<Indexed>,
    },
    /// The merger of a partition goes on after an epoch, and so does the sequencer if it is the partition's.
    Resume { at: Partition, after: Number },
    /// The sequencer forgets what waits.
    Withdraw,
    /// Delivers what the merger of a partition can.
    Deliver(Partition),
}

struct Runner {
    me: PartitionId,
    now: u64,
    progress: Progress,
    sequencer: Sequencer,
    mergers: BTreeMap<Partition, Merger>,
}

/// A transaction whose name stands where arguments would.
fn ordered(name: &str, bytes: usize) -> Ordered {
    let client = ClientId { home: PartitionId(0), number: 0 };
    let arguments = Bytes::from(format!("{name}{}", " ".repeat(bytes)));
    let work = Work::Call { procedure: ProcedureId(0), arguments, reconnoitred: None };
    Ordered { request: RequestId { client, sequence: 0 }, acknowledged: 0, work }
}

fn name(ordered: &Ordered) -> String {
    let Work::Call { arguments, .. } = &ordered.work else { panic!("scripts have only calls") };
    String::from_utf8(arguments.to_vec()).unwrap().trim_end().to_owned()
}

impl Runner {
    fn new(partitions: u16, me: u16) -> Runner {
        let all = (0..partitions).map(|partition| Partition(PartitionId(partition)));
        Runner {
            me: PartitionId(me),
            now: 0,
            progress: Progress { delivered: Epoch(0), busy: false, full: false },
            sequencer: Sequencer::new(
                PartitionId(me),
                partitions,
                EpochOptions::default(),
                Limits::default(),
            ),
            mergers: all.map(|partition| (partition, Merger::new(partition.0, partitions))).collect(),
        }
    }

    fn add(&mut self, ordered: Ordered, participants: &[Partition]) {
        let mut set = PartitionSet::EMPTY;
        participants.iter().for_each(|partition| set.insert(partition.0));
        let participants = if set.is_empty() { PartitionSet::all(self.mergers.len() as u16) } else { set };
        self.sequencer.add(Waiting { ordered, footprint: None, participants });
    }

    fn due(&self) -> String {
        let due = if self.sequencer.close_due(self.now, self.progress) { "due" } else { "not due" };
        let (open, waiting) = (self.sequencer.open(), self.sequencer.waiting());
        let full = if self.sequencer.is_full() { ", full" } else { "" };
        let deadline = self.sequencer.deadline(self.now);
        let deadline = deadline.map_or("no deadline".to_owned(), |at| format!("deadline {} ms", at / 1000));
        format!("{open} {due}, {deadline}, {waiting} waiting{full}")
    }

    fn close(&mut self) -> String {
        let mut closed = self.sequencer.close(self.now);
        assert!(closed.parts[self.me.index()].is_empty(), "the own part is handed over by itself");
        closed.parts[self.me.index()] =
            closed.own.drain(..).map(|(index, ordered, _)| (index, ordered)).collect();
        let lines = closed.parts.iter().enumerate().map(|(partition, part)| {
            let part: Vec<String> =
                part.iter().map(|(index, ordered)| format!("{index}.{}", name(ordered))).collect();
            format!(
                "{} to p{partition}: {}",
                closed.epoch,
                if part.is_empty() { "empty".to_owned() } else { part.join(" ") }
            )
        });
        let held_back = (closed.held_back > 0).then(|| format!("{} held back", closed.held_back));
        lines.chain(held_back).collect::<Vec<_>>().join("\n")
    }

    fn deliver(&mut self, at: Partition) -> Result<String, Box<dyn Error>> {
        let merger = self.mergers.get_mut(&at).ok_or("no such partition")?;
        let mut lines = Vec::new();
        let mut ready = VecDeque::new();
        while merger.deliver_next::<NoFailpoints>(&mut ready) {
            let order: Vec<String> = ready
                .drain(..)
                .map(|delivered| format!("{} {}", delivered.position, name(&delivered.ordered)))
                .collect();
            let order = if order.is_empty() { "nothing here".to_owned() } else { order.join(", ") };
            lines.push(format!("{} delivers {}: {order}", at.0, merger.delivered()));
        }
        let awaited: Vec<String> = merger.awaited().iter().map(PartitionId::to_string).collect();
        if !awaited.is_empty() {
            lines.push(format!("{} waits for {} of {}", at.0, merger.delivered().next(), awaited.join(" ")));
        }
        Ok(lines.join("\n"))
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        match command {
            Command::Cluster { partitions, me } => *self = Runner::new(*partitions, *me),
            Command::Time(milliseconds) => self.now = milliseconds * 1000,
            Command::Progress { delivered, busy, full } => {
                self.progress = Progress { delivered: delivered.0, busy: *busy, full: *full };
            }
            Command::Room(room) => self.sequencer.make_room(*room),
            Command::Add(transactions) => {
                for transaction in transactions {
                    self.add(ordered(&transaction.name, 0), &transaction.participants);
                }
            }
            Command::AddMany { count, bytes } => {
                let ordered = ordered("many", *bytes);
                (0..*count).for_each(|_| self.add(ordered.clone(), &[]));
            }
            Command::Follow(epoch) => self.sequencer.follow(epoch.0),
            Command::Due => return Ok(self.due()),
            Command::Close => return Ok(self.close()),
            Command::CloseMany { epochs } => {
                let closed: Vec<String> = (0..epochs.unwrap_or(1))
                    .map(|_| self.sequencer.close(self.now))
                    .map(|closed| format!("{}: {} transactions", closed.epoch, closed.own.len()))
                    .collect();
                return Ok(closed.join("\n"));
            }
            Command::Receive { at, epoch, origin, part } => {
                let merger = self.mergers.get_mut(at).ok_or("no such partition")?;
                let part = part.iter().map(|Indexed(index, name)| (*index, ordered(name, 0), None)).collect();
                merger.receive(origin.0, epoch.0, 0, part);
            }
            Command::Resume { at, after } => {
                let partitions = self.mergers.len() as u16;
                let mut merger = Merger::new(at.0, partitions);
                merger.resume(after.0, vec![0; usize::from(partitions)]);
                self.mergers.insert(*at, merger);
                if at.0 == self.me {
                    self.sequencer.resume(after.0);
                }
            }
            Command::Withdraw => self.sequencer.withdraw(),
            Command::Deliver(at) => return self.deliver(*at),
        }
        Ok(String::new())
    }
}

scripts!(
    "sequencing",
    Runner::new(1, 0),
    batches_are_limited,
    empty_batches_are_sent,
    epoch_closes_after_ten_milliseconds,
    epoch_closes_at_once,
    epoch_follows_peers,
    epochs_in_flight_are_limited,
    execution_takes_no_more,
    idle_makes_no_epochs,
    late_batch_stalls,
    merger_resumes,
    recipients_get_their_part,
    sequencer_resumes,
    the_same_batch_twice,
    whole_batches_are_interleaved,
);
