//! How messages and answers are printed.

use ordain_db::data::Direction;
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{ClientId, Message, Operation, Ordered, Report, RequestId, Verdict, Want, Work};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::decode_output;

use crate::interpreted::Tables;
use crate::interpreted::name::Name;
use crate::interpreted::procedure::Seen;

pub(crate) fn client(client: ClientId) -> String {
    format!("{}@{}", client.number, client.home)
}

pub(crate) fn request(id: RequestId) -> String {
    if id.is_own() {
        return format!("{}'s own", id.client.home);
    }
    format!("{}#{}", client(id.client), id.sequence)
}

/// The answer to a call, or the position of a snapshot or of an early call.
pub(crate) fn outcome(outcome: &Outcome, operation: Option<&Operation>) -> String {
    let position = |result: &[u8]| postcard::from_bytes::<Position>(result).unwrap();
    match (outcome, operation) {
        (Ok(result), Some(Operation::OpenSnapshot)) => format!("snapshot {}", position(result)),
        (Ok(result), Some(Operation::CallEarly { .. })) => format!("ordered at {}", position(result)),
        (Ok(result), _) => {
            let seen: Vec<Seen> = decode_output(result).unwrap();
            let seen: Vec<String> = seen.iter().map(Seen::to_string).collect();
            if seen.is_empty() { "committed".to_owned() } else { seen.join("; ") }
        }
        (Err(error), _) => failure(error),
    }
}

fn failure(error: &Error) -> String {
    error.to_string()
}

fn ordered((index, ordered): &(u32, Ordered)) -> String {
    let id = request(ordered.request);
    match &ordered.work {
        Work::Call { reconnoitred: None, .. } => format!("{index} {id}"),
        Work::Call { reconnoitred: Some(_), .. } => format!("{index} {id} reconnoitred"),
        Work::OpenSnapshot(_) => format!("{index} {id} snapshot"),
        Work::GiveUp(error) => format!("{index} {id} gives up: {}", failure(error)),
        Work::CloseSnapshot(at) => format!("{index} {id} closes snapshot {at}"),
        Work::Checkpoint(_) => format!("{index} {id} checkpoint"),
    }
}

fn report(report: &Report) -> String {
    let verdict = match &report.verdict {
        Verdict::Committed(_) => "committed".to_owned(),
        Verdict::Failed(error) => failure(error),
        Verdict::FootprintMissed => "footprint missed".to_owned(),
    };
    format!("{} at {} {verdict}", request(report.request), report.position)
}

/// The transactions that a message has read results of. Each begins with its position and the length of its results.
fn read_positions(mut bytes: &[u8]) -> Vec<String> {
    let mut positions = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<18>() {
        let number = |from: usize, to: usize| {
            header[from..to].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let origin = PartitionId(number(8, 10) as u16);
        let position = Position { epoch: Epoch(number(0, 8)), origin, index: number(10, 14) as u32 };
        positions.push(position.to_string());
        bytes = &rest[number(14, 18) as usize..];
    }
    assert!(bytes.is_empty());
    positions
}

fn want(tables: &Tables, want: &Want) -> String {
    match want {
        Want::Key(key) => Name::of_key(tables, key).to_string(),
        Want::Range { range, direction, limit } => {
            let last = if *direction == Direction::Descending { "last " } else { "" };
            if *limit > 1 << 30 { format!("{range:?}") } else { format!("{last}{limit} of {range:?}") }
        }
    }
}

pub(crate) fn message(tables: &Tables, message: &Message) -> String {
    let list = |items: Vec<String>| if items.is_empty() { "empty".to_owned() } else { items.join(", ") };
    match message {
        Message::Batch { epoch, transactions, .. } => {
            format!("batch {epoch}: {}", list(transactions.iter().map(ordered).collect()))
        }
        Message::Reads { reads, .. } => format!("reads of {}", list(read_positions(reads))),
        Message::Reports { reports, .. } => format!("reports {}", list(reports.iter().map(report).collect())),
        Message::SnapshotReady { request: id, at, .. } => {
            format!("snapshot {at} of {} is ready", request(*id))
        }
        Message::CloseSnapshot(at) => format!("snapshot {at} is closed"),
        Message::Forward { requests, .. } => {
            format!("forwards {}", list(requests.iter().map(|forwarded| request(forwarded.id)).collect()))
        }
        Message::Replies(replies) => {
            format!("answers {}", list(replies.iter().map(|reply| request(reply.request)).collect()))
        }
        Message::Fetch { want: wanted, .. } => format!("fetch {}", want(tables, wanted)),
        Message::Fetched { want: wanted, rows, .. } => {
            let names = rows.iter().map(|(key, _)| Name::of_key(tables, key).to_string()).collect();
            format!("fetched {}: {}", want(tables, wanted), list(names))
        }
        Message::TwoPhase(message) => message.to_string(),
        Message::TwoPhaseSnapshot(message) => message.to_string(),
        Message::Epochs(message) => message.to_string(),
        Message::Load { load, room } => {
            format!("is {} us behind, sheds at {}, has room for {room}", load.backlog, load.level)
        }
        // What replicas say, which clusters without a log do not have.
        other => unreachable!("{other:?}"),
    }
}
