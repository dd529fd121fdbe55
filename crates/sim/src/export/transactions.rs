//! The calls of a history as all formats need them: processes that do one thing after the other, and what became of each call.

use std::collections::BTreeMap;

use ordain_db::error::{Error, Outcome};
use ordain_db::message::ClientId;
use ordain_workload::append::{Append, Arguments, Operation, Seen};

use crate::history::{History, Invocation, outcomes_of_early_calls};
use crate::time::Nanoseconds;

/// One call, with what it did to lists.
pub(super) struct Transaction {
    /// Who called. A process does one call after the other, and none after one that was not answered: a client that has
    /// several calls under way is several processes.
    pub(super) process: u64,
    pub(super) invoked_at: Nanoseconds,
    pub(super) end: End,
    pub(super) steps: Vec<Step>,
}

/// What became of a call, with the time of its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Committed(Nanoseconds),
    /// It had no effect.
    Aborted(Nanoseconds),
    /// It may have taken effect, or may still.
    Unknown,
}

/// What a call did to one list.
pub(super) enum Step {
    Read {
        list: u64,
        /// `None` unless the call committed.
        numbers: Option<Vec<u64>>,
    },
    Append {
        list: u64,
        number: u64,
        /// The last number before, 0 for none. `None` unless the call committed.
        after: Option<u64>,
    },
}

/// One end of a call.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) transaction: &'a Transaction,
    pub(super) at: Nanoseconds,
    /// Whether it is the call's answer, or what stands for one that did not come.
    pub(super) ended: bool,
}

/// The calls of the workload that concern lists, by the times when they were sent.
pub(super) fn transactions(history: &History, append: &Append) -> Result<Vec<Transaction>, Error> {
    let mut calls = Vec::new();
    let early = outcomes_of_early_calls(&history.requests);
    for (id, invocation) in &history.requests {
        let end = match invocation.is_acknowledged_early() {
            true => early.get(id).copied(),
            false => invocation.end(),
        };
        if let Some((arguments, seen, end)) = decode(invocation, end, append)? {
            calls.push((invocation.invoked_at, *id, arguments, seen, end));
        }
    }
    calls.sort_by_key(|(invoked_at, id, ..)| (*invoked_at, *id));
    let mut lists = BTreeMap::new();
    calls.iter().for_each(|(_, _, arguments, seen, _)| places(arguments, seen, append, &mut lists));
    let mut processes = Processes::default();
    let mut transactions = Vec::new();
    for (invoked_at, id, arguments, seen, end) in calls {
        let steps = steps(&arguments, &seen, append, &lists);
        if steps.is_empty() {
            continue;
        }
        let process = processes.give(id.client, invoked_at, end);
        transactions.push(Transaction { process, invoked_at, end, steps });
    }
    Ok(transactions)
}

/// What a request was to do, what it saw if it committed, and how it ended. `None` when it is no call of the workload.
fn decode(
    invocation: &Invocation,
    end: Option<&(Nanoseconds, Outcome)>,
    append: &Append,
) -> Result<Option<(Arguments, Vec<Seen>, End)>, Error> {
    let arguments = match invocation.operation.call() {
        Some((procedure, arguments)) if procedure == append.procedure() => arguments,
        _ => return Ok(None),
    };
    let arguments = Append::decode_arguments(arguments)?;
    let (seen, end) = match end {
        Some((at, Ok(result))) => (Append::decode_result(&arguments, result)?, End::Committed(*at)),
        Some((at, Err(Error::Aborted(_) | Error::Invalid(_) | Error::Exceeds(..) | Error::Contended))) => {
            (Vec::new(), End::Aborted(*at))
        }
        Some((
            _,
            Err(Error::Busy(_) | Error::Acknowledged(_) | Error::Unavailable(_) | Error::NotOpen(_)),
        ))
        | None => (Vec::new(), End::Unknown),
    };
    Ok(Some((arguments, seen, end)))
}

/// Where numbers were seen: that tells which list a call appended to whose answer did not.
fn places(arguments: &Arguments, seen: &[Seen], append: &Append, places: &mut BTreeMap<u64, u64>) {
    for (operation, seen) in arguments.operations.iter().zip(seen) {
        let (list, numbers) = match (operation, seen) {
            (Operation::ReadList(list), Seen::List(numbers)) => (list, numbers.as_slice()),
            (_, Seen::Appended { list, last, .. }) => (list, std::slice::from_ref(last)),
            _ => continue,
        };
        for number in numbers {
            places.entry(*number).or_insert(append.list_number(*list));
        }
    }
}
fn steps(arguments: &Arguments, seen: &[Seen], append: &Append, lists: &BTreeMap<u64, u64>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (index, operation) in arguments.operations.iter().enumerate() {
        let number = arguments.number_of(index);
        let (named, seen) = match (operation, seen.get(index)) {
            (Operation::ReadList(list), seen) => {
                let numbers = match seen {
                    Some(Seen::List(numbers)) => Some(numbers.clone()),
                    _ => None,
                };
                steps.push(Step::Read { list: append.list_number(*list), numbers });
                continue;
            }
            (Operation::Append(list), seen) => (Some(append.list_number(*list)), seen),
            (Operation::FollowPointer(_), seen) => (None, seen),
            _ => continue,
        };
        let (list, after) = match seen {
            Some(Seen::Appended { list, last, .. }) => (Some(append.list_number(*list)), Some(*last)),
            _ => (named.or_else(|| lists.get(&number).copied()), None),
        };
        steps.extend(list.map(|list| Step::Append { list, number, after }));
    }
    steps
}

/// Who does what: for each client its processes, with the time from which each may do something again.
#[derive(Default)]
struct Processes {
    by_client: BTreeMap<ClientId, Vec<(u64, Nanoseconds)>>,
    count: u64,
}

impl Processes {
    /// A process of the client that has nothing under way.
    fn give(&mut self, client: ClientId, from: Nanoseconds, end: End) -> u64 {
        let until = match end {
            End::Committed(at) | End::Aborted(at) => at,
            End::Unknown => Nanoseconds::MAX,
        };
        let processes = self.by_client.entry(client).or_default();
        if let Some((process, free_from)) = processes.iter_mut().find(|(_, free_from)| *free_from <= from) {
            *free_from = until;
            return *process;
        }
        processes.push((self.count, until));
        self.count += 1;
        self.count - 1
    }
}

/// Both ends of each call in the order of their times; those of unanswered calls come last, at the time of the last event.
pub(super) fn events(transactions: &[Transaction]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    let mut last = 0;
    for (index, transaction) in transactions.iter().enumerate() {
        let invoked_at = transaction.invoked_at;
        events.push(((invoked_at, 1, index, false), transaction));
        last = last.max(invoked_at);
        if let End::Committed(at) | End::Aborted(at) = transaction.end {
            // At one time: answers to earlier requests, then requests, each with its answer if it took no time.
            events.push(((at, u8::from(at <= invoked_at), index, true), transaction));
            last = last.max(at);
        }
    }
    let unanswered =
        transactions.iter().enumerate().filter(|(_, transaction)| transaction.end == End::Unknown);
    events.extend(unanswered.map(|(index, transaction)| ((last, 2, index, true), transaction)));
    events.sort_by_key(|(order, _)| *order);
    let event = |((at, _, _, ended), transaction)| Event { transaction, at, ended };
    events.into_iter().map(event).collect()
}
