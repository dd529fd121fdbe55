//! Scripts of client sessions: requests in, decisions out.

use std::error::Error;

use bytes::Bytes;
use ordain_db::error::{Error as CallError, Outcome};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::limits::Limits;
use ordain_db::message::{ClientId, RequestId};
use ordain_db::position::PartitionId;
use ordain_db::sequencer::Sessions;
use ordain_db::sequencer::sessions::Admission;

#[derive(goldenscript::Command)]
enum Command {
    /// A request comes to its client's home, by way of a node.
    Admit {
        client: u64,
        sequence: u64,
        #[arg(key, optional)]
        acknowledged: u64,
        #[arg(key, optional)]
        entry: u16,
    },
    /// A request has its answer: a result, or the reason of an abort after `aborted`.
    Answer {
        client: u64,
        sequence: u64,
        #[arg(optional)]
        result: String,
        #[arg(key)]
        aborted: Option<String>,
    },
    /// A request could not be taken on.
    Withdraw { client: u64, sequence: u64 },
    /// Clients with the numbers from one to another come with a request each, and get their answers if `answered`.
    Crowd {
        from: u64,
        to: u64,
        #[arg(key, optional)]
        answered: bool,
    },
    /// Number of sessions.
    Count,
}

struct Runner(Sessions);

fn request(client: u64, sequence: u64) -> RequestId {
    RequestId { client: ClientId { home: PartitionId(0), number: client }, sequence }
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => format!("{:?}", String::from_utf8_lossy(result)),
        Err(error) => error.to_string(),
    }
}

impl Runner {
    fn admit(&mut self, client: u64, sequence: u64, acknowledged: u64, entry: u16) -> String {
        match self.0.admit::<NoFailpoints>(request(client, sequence), acknowledged, PartitionId(entry)) {
            Admission::Enter => "enters".to_owned(),
            Admission::InFlight => "is in flight".to_owned(),
            Admission::Again(outcome) => format!("answered again: {}", show(&outcome)),
            Admission::Refuse(error) => format!("refused: {error}"),
        }
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let to =
            |entry: Option<PartitionId>| entry.map_or("to nobody".to_owned(), |entry| format!("to {entry}"));
        Ok(match command {
            Command::Admit { client, sequence, acknowledged, entry } => {
                let admitted = self.admit(*client, *sequence, *acknowledged, *entry);
                format!("{client}#{sequence} {admitted}")
            }
            Command::Answer { client, sequence, result, aborted } => {
                let outcome = match aborted {
                    Some(reason) => Err(CallError::Aborted(reason.clone())),
                    None => Ok(Bytes::from(result.clone())),
                };
                let entry = self.0.answer(request(*client, *sequence), &outcome);
                format!("{client}#{sequence} answered {}", to(entry))
            }
            Command::Withdraw { client, sequence } => {
                let entry = self.0.withdraw(request(*client, *sequence));
                format!("{client}#{sequence} withdrawn {}", to(entry))
            }
            Command::Crowd { from, to, answered } => {
                let mut refused = 0;
                for client in *from..=*to {
                    let admission = self.0.admit::<NoFailpoints>(request(client, 0), 0, PartitionId(0));
                    refused += u64::from(matches!(admission, Admission::Refuse(_)));
                    if *answered {
                        self.0.answer(request(client, 0), &Ok(Bytes::new()));
                    }
                }
                format!("{} clients, {refused} refused", to - from + 1)
            }
            Command::Count => format!("{} sessions", self.0.len()),
        })
    }
}

scripts!(
    "sessions",
    Runner(Sessions::new(Limits::default())),
    acknowledged_requests_are_refused,
    answers_go_where_the_client_is,
    duplicates,
    sessions_are_limited,
    sessions_under_way_are_kept,
    window,
    withdrawn_requests_come_again,
);
