//! Scripts of client sessions: requests and the order in, decisions out.

use std::error::Error;
use std::str::FromStr;

use bytes::Bytes;
use ordain_db::error::{Error as CallError, Outcome};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::{Epoch, NodeId, PartitionId, Position, ReplicaId};
use ordain_db::sequencer::Sessions;
use ordain_db::sequencer::sessions::{Admission, SavedSession};

/// `1` is the node of that partition in the first replica; `1r2` that in the replica 2.
#[derive(Clone, Copy)]
struct Entry(NodeId);

/// `e3.2`: the epoch and the index of a position of the partition whose sessions these are.
#[derive(Clone, Copy)]
struct Place(Position);

/// `e3`
#[derive(Clone, Copy)]
struct Through(Epoch);

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Entry, String> {
        let wrong = |_| format!("{text:?} is no node");
        let (partition, replica) = text.split_once('r').unwrap_or((text, "0"));
        let partition = PartitionId(partition.parse().map_err(wrong)?);
        Ok(Entry(NodeId { partition, replica: ReplicaId(replica.parse().map_err(wrong)?) }))
    }
}

impl FromStr for Through {
    type Err = String;

    fn from_str(text: &str) -> Result<Through, String> {
        let number = text.strip_prefix('e').and_then(|number| number.parse().ok());
        number.map(|number| Through(Epoch(number))).ok_or_else(|| format!("{text:?} is no epoch"))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let (epoch, index) = text.split_once('.').ok_or_else(|| format!("{text:?} is no position"))?;
        let index = index.parse().map_err(|_| format!("{text:?} is no position"))?;
        Ok(Place(Position { epoch: epoch.parse::<Through>()?.0, origin: HOME, index }))
    }
}

#[derive(goldenscript::Command)]
enum Command {
    /// A request comes to its client's home, by way of a node.
    Admit {
        client: u64,
        sequence: u64,
        #[arg(key, optional)]
        acknowledged: u64,
        #[arg(key)]
        entry: Option<Entry>,
    },
    /// A request is in the order.
    Ordered {
        client: u64,
        sequence: u64,
        at: Place,
        #[arg(key, optional)]
        acknowledged: u64,
    },
    /// The attempt at a position missed its footprint.
    Missed { client: u64, sequence: u64, at: Place },
    /// A request has its answer: a result, or the reason of an abort after `aborted`. It comes from what happened at a
    /// position, or without having entered the order.
    Answer {
        client: u64,
        sequence: u64,
        #[arg(optional)]
        result: String,
        #[arg(key)]
        aborted: Option<String>,
        #[arg(key)]
        at: Option<Place>,
    },
    /// A request could not be taken on.
    Withdraw { client: u64, sequence: u64 },
    /// Another node leads now.
    WithdrawAll,
    /// A checkpoint at the end of an epoch keeps the sessions.
    Save(Through),
    /// A new node begins with the sessions that were saved last.
    Restore,
    /// Clients with the numbers from one to another come with a request each, and get their answers if `answered`.
    Crowd {
        from: u64,
        to: u64,
        #[arg(key, optional)]
        answered: bool,
    },
    /// Number of sessions.
    Count,
    /// What is under way: requests without an answer, and the first epoch that has some in the order.
    UnderWay,
}

struct Runner {
    sessions: Sessions,
    saved: Vec<SavedSession>,
}

/// The partition whose sessions these are.
const HOME: PartitionId = PartitionId(0);

fn request(client: u64, sequence: u64) -> RequestId {
    RequestId { client: ClientId { home: HOME, number: client }, sequence }
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => format!("{:?}", String::from_utf8_lossy(result)),
        Err(error) => error.to_string(),
    }
}

fn to(entry: Option<NodeId>) -> String {
    entry.map_or("to nobody".to_owned(), |entry| format!("to {entry}"))
}

impl Runner {
    fn new() -> Runner {
        Runner { sessions: Sessions::new(Limits::default()), saved: Vec::new() }
    }

    fn admit(&mut self, client: u64, sequence: u64, acknowledged: u64, entry: NodeId) -> String {
        match self.sessions.admit::<NoFailpoints>(request(client, sequence), acknowledged, entry) {
            Admission::Enter => "enters".to_owned(),
            Admission::InFlight => "is in flight".to_owned(),
            Admission::Again(outcome) => format!("answered again: {}", show(&outcome)),
            Admission::Refuse(error) => format!("refused: {error}"),
        }
    }

    fn answer(&mut self, id: RequestId, at: Option<Position>, outcome: &Outcome) -> String {
        match self.sessions.answer(id, at, outcome) {
            None => "is not answered: that is no news".to_owned(),
            Some(entry) => format!("answered {}", to(entry)),
        }
    }

    fn crowd(&mut self, from: u64, to: u64, answered: bool) -> String {
        let mut refused = 0;
        for client in from..=to {
            let id = request(client, 0);
            let admission = self.sessions.admit::<NoFailpoints>(id, 0, NodeId::first(HOME));
            refused += u64::from(matches!(admission, Admission::Refuse(_)));
            if answered {
                self.sessions.answer(id, None, &Ok(Bytes::new()));
            }
        }
        format!("{} clients, {refused} refused", to - from + 1)
    }

    fn withdraw_all(&mut self) -> String {
        let withdrawn = self.sessions.withdraw_all();
        let lines = withdrawn.iter().map(|(id, entry)| {
            format!("{}#{} withdrawn {}", id.client.number, id.sequence, to(Some(*entry)))
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { "nothing to withdraw".to_owned() } else { lines.join("\n") }
    }

    fn under_way(&self) -> String {
        let oldest = self.sessions.oldest_ordered();
        let oldest = oldest.map_or("none in the order".to_owned(), |epoch| format!("the oldest of {epoch}"));
        format!("{} without an answer, {oldest}", self.sessions.in_flight())
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        Ok(match command {
            Command::Admit { client, sequence, acknowledged, entry } => {
                let entry = entry.map_or(NodeId::first(HOME), |entry| entry.0);
                let admitted = self.admit(*client, *sequence, *acknowledged, entry);
                format!("{client}#{sequence} {admitted}")
            }
            Command::Ordered { client, sequence, at, acknowledged } => {
                let id = request(*client, *sequence);
                self.sessions.ordered(id, *acknowledged, at.0);
                let waits = if self.sessions.is_ordered(id, at.0) {
                    "waits for its end at"
                } else {
                    "has ended before"
                };
                format!("{client}#{sequence} {waits} {}", at.0)
            }
            Command::Missed { client, sequence, at } => {
                let id = request(*client, *sequence);
                let news = if self.sessions.missed(id, at.0) { "news" } else { "no news" };
                let again =
                    if self.sessions.has_missed(id) { "waits for another attempt" } else { "waits for none" };
                format!("{client}#{sequence} missed at {}: {news}, {again}", at.0)
            }
            Command::Answer { client, sequence, result, aborted, at } => {
                let outcome = match aborted {
                    Some(reason) => Err(CallError::Aborted(reason.clone())),
                    None => Ok(Bytes::from(result.clone())),
                };
                let at = at.map(|at| at.0);
                format!("{client}#{sequence} {}", self.answer(request(*client, *sequence), at, &outcome))
            }
            Command::Withdraw { client, sequence } => {
                let entry = self.sessions.withdraw(request(*client, *sequence));
                format!("{client}#{sequence} withdrawn {}", to(entry))
            }
            Command::WithdrawAll => self.withdraw_all(),
            Command::Save(through) => {
                self.saved = self.sessions.save(through.0);
                format!("{} sessions saved", self.saved.len())
            }
            Command::Restore => {
                self.sessions = Sessions::new(Limits::default());
                self.sessions.restore(self.saved.clone());
                format!("{} sessions", self.sessions.len())
            }
            Command::Crowd { from, to, answered } => self.crowd(*from, *to, *answered),
            Command::Count => format!("{} sessions", self.sessions.len()),
            Command::UnderWay => self.under_way(),
        })
    }
}

scripts!(
    "sessions",
    Runner::new(),
    acknowledged_requests_are_refused,
    another_node_leads,
    answers_go_where_the_client_is,
    checkpoints_keep_sessions,
    duplicates,
    idle_sessions_go_first_after_a_restart,
    lagging_replicas_take_the_word_of_clients,
    missed_attempts,
    ordered_requests_have_one_end,
    replicas_learn_from_the_order,
    sessions_are_limited,
    sessions_under_way_are_kept,
    window,
    withdrawn_requests_come_again,
);
