//! Evidence: a history, put together so that checkers find what belongs together.
//!
//! The order of the versions of a key is known, and need not be guessed as for other databases: a version is what a
//! committed transaction wrote, or the loaded row, and versions stand in the order of the positions (Calvin §3.1, CAL-26).
//! Which version a read saw is told by the contents of the row. Where several versions have the same contents, the one that
//! the order prescribes for the reader is preferred: then equal rows give no false alarm.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::{Owner, Schema};
use ordain_db::error::{Error, Outcome};
use ordain_db::execution::Executed;
use ordain_db::execution::trace::Version;
use ordain_db::hash::FastMap;
use ordain_db::limits::PARTITIONS_MAX;
use ordain_db::message::{Operation, RequestId, Verdict, Work};
use ordain_db::position::{PartitionId, Position};
use ordain_workload::{Part, Workload};

use super::wording;
use crate::history::{History, Invocation};
use crate::time::Nanoseconds;

/// See the [module](self).
pub struct Evidence<'a> {
    pub(crate) history: &'a History,
    pub(crate) workload: &'a dyn Workload,
    /// Committed transactions in the order of their positions.
    pub(crate) committed: Vec<Committed<'a>>,
    loaded: FastMap<Bytes, Bytes>,
    /// By key: the versions after the loaded one, ascending.
    written: FastMap<&'a [u8], Vec<Written<'a>>>,
    attempts: BTreeMap<RequestId, Vec<Attempt<'a>>>,
}

/// A transaction that committed, with what all its active participants tell.
#[derive(Debug)]
pub(crate) struct Committed<'a> {
    pub(crate) position: Position,
    pub(crate) request: RequestId,
    /// The rows that it was given. Where participants differ, those of all of them.
    pub(crate) reads: Vec<&'a Version>,
    /// The rows that it wrote, of each key one.
    pub(crate) writes: Vec<&'a Version>,
}

/// A version of a key that a transaction wrote.
#[derive(Clone, Copy, Debug)]
struct Written<'a> {
    /// The transaction, as a place in [`Evidence::committed`].
    by: usize,
    row: Option<&'a [u8]>,
}

/// One place in the order that a request was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) position: Position,
    pub(crate) in_log: bool,
    pub(crate) opens_snapshot: bool,
    /// Why the request was given up there, if it was.
    pub(crate) gave_up: Option<&'a Error>,
    /// How it ended, where it was executed.
    pub(crate) verdict: Option<&'a Verdict>,
}

impl Attempt<'_> {
    /// Whether the attempt decided what becomes of the request: after a missed footprint it is tried again.
    pub(crate) fn decided(&self) -> bool {
        self.opens_snapshot
            || self.gave_up.is_some()
            || self.verdict.is_some_and(|verdict| *verdict != Verdict::FootprintMissed)
    }

    /// Whether the attempt ended so that the answer to the request is this one.
    pub(crate) fn gives(&self, outcome: &Outcome) -> bool {
        match (self.verdict, outcome) {
            (_, Ok(result)) if self.opens_snapshot => {
                postcard::from_bytes::<Position>(result).is_ok_and(|position| position == self.position)
            }
            (None, Err(answer)) => self.gave_up == Some(answer),
            (Some(Verdict::Committed(result)), Ok(answer)) => result == answer,
            (Some(Verdict::Failed(error)), Err(answer)) => error == answer,
            _ => false,
        }
    }

    /// How the attempt ended, for messages.
    pub(crate) fn describe(&self) -> String {
        let position = self.position;
        match self.verdict {
            _ if self.opens_snapshot => format!("opened its snapshot at {position}"),
            Some(verdict) => format!("{} at {position}", wording::verdict(verdict)),
            None if self.gave_up.is_some() => format!("was given up at {position}"),
            None => format!("was not executed at {position}"),
        }
    }
}

/// The versions of one key; version 0 is the loaded row, or its absence.
#[derive(Clone, Copy)]
pub(crate) struct Versions<'e> {
    loaded: Option<&'e [u8]>,
    written: &'e [Written<'e>],
}

impl<'e> Versions<'e> {
    fn row(&self, version: usize) -> Option<&'e [u8]> {
        match version.checked_sub(1) {
            None => self.loaded,
            Some(place) => self.written.get(place).and_then(|written| written.row),
        }
    }

    /// The transaction that wrote a version, as a place in [`Evidence::committed`]; `None` for loaded rows, and after the
    /// last version.
    pub(crate) fn writer(&self, version: usize) -> Option<usize> {
        self.written.get(version.checked_sub(1)?).map(|written| written.by)
    }

    /// The writers, in order.
    pub(crate) fn writers(&self) -> impl Iterator<Item = usize> + Clone + use<'e> {
        self.written.iter().map(|written| written.by)
    }

    /// The version that was seen by someone before whom `before` transactions had committed: the last one then, if it has
    /// these contents, else the nearest earlier one, else the nearest later one. `None` when no version has them.
    pub(crate) fn seen(&self, row: Option<&[u8]>, before: usize) -> Option<usize> {
        let expected = self.written.partition_point(|written| written.by < before);
        let earlier = (0..=expected).rev();
        earlier.chain(expected + 1..=self.written.len()).find(|version| self.row(*version) == row)
    }
}

impl<'a> Evidence<'a> {
    /// Puts a history together.
    ///
    /// # Errors
    /// When the history is not that of a cluster, or the workload cannot make its rows.
    pub fn new(history: &'a History, workload: &'a dyn Workload) -> Result<Evidence<'a>, String> {
        if history.partitions == 0 || usize::from(history.partitions) > PARTITIONS_MAX {
            return Err(format!("there is no cluster of {} partitions", history.partitions));
        }
        let mut loaded = FastMap::default();
        let emitted = workload.load(Part::WHOLE, &mut |key, row| {
            loaded.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(row));
        });
        emitted.map_err(|error| format!("the workload cannot load its rows: {error}"))?;
        let schema = &workload.catalog().schema;
        let executed = history.executed.iter();
        let committed: Vec<Committed<'a>> = executed
            .filter_map(|(position, runs)| Committed::of(*position, runs, schema, history.partitions))
            .collect();
        let mut written: FastMap<&'a [u8], Vec<Written<'a>>> = FastMap::default();
        for (by, transaction) in committed.iter().enumerate() {
            for (key, row) in transaction.writes.iter().copied() {
                written.entry(key).or_default().push(Written { by, row: row.as_deref() });
            }
        }
        let attempts = attempts(history);
        Ok(Evidence { history, workload, committed, loaded, written, attempts })
    }

    /// The tables.
    pub(crate) fn schema(&self) -> &'a Schema {
        &self.workload.catalog().schema
    }

    /// The versions of a key.
    pub(crate) fn versions(&self, key: &[u8]) -> Versions<'_> {
        let written = self.written.get(key).map_or(&[][..], Vec::as_slice);
        Versions { loaded: self.loaded.get(key).map(|row| &row[..]), written }
    }

    /// The keys that committed transactions wrote, in order.
    pub(crate) fn written_keys(&self) -> Vec<&'a [u8]> {
        let mut keys: Vec<&[u8]> = self.written.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// The places in the order that a request was given, ascending.
    pub(crate) fn attempts(&self, request: RequestId) -> &[Attempt<'a>] {
        self.attempts.get(&request).map_or(&[], Vec::as_slice)
    }

    /// All requests that were given places in the order, with these.
    pub(crate) fn ordered_requests(&self) -> impl Iterator<Item = (RequestId, &[Attempt<'a>])> {
        self.attempts.iter().map(|(request, attempts)| (*request, attempts.as_slice()))
    }

    /// Whether it is a read, or opened a snapshot, that may have been answered without a place in the order: each time that it was sent
    /// again anew.
    pub(crate) fn may_be_unordered(&self, invocation: &Invocation) -> bool {
        if invocation.unordered_snapshot().is_some() {
            return true;
        }
        let is_read = matches!(invocation.operation, Operation::Read { .. });
        is_read && self.history.partitions == 1 && self.history.engine.is_ordered()
    }

    /// Whether the run came to an end, so that nothing may be missing.
    pub(crate) fn finished(&self) -> bool {
        self.history.unfinished.is_none()
    }
}

impl<'a> Committed<'a> {
    /// What the runs at one position tell together, if any of them committed.
    fn of(
        position: Position,
        runs: &'a [(PartitionId, Executed)],
        schema: &Schema,
        partitions: u16,
    ) -> Option<Committed<'a>> {
        let mut committed = runs.iter().filter(|(_, run)| matches!(run.verdict, Verdict::Committed(_)));
        let (_, first) = committed.clone().next()?;
        let mut reads: Vec<&Version> = first.reads.iter().collect();
        if committed.clone().any(|(_, run)| run.reads != first.reads) {
            reads = committed.clone().flat_map(|(_, run)| &run.reads).collect();
            reads.sort_unstable();
            reads.dedup();
        }
        // Who writes what it does not hold is found elsewhere; here it would hide what the holder wrote.
        let holds = |partition: PartitionId, key: &[u8]| {
            schema.owner(key, partitions).unwrap_or(Owner::Split).includes(partition)
        };
        let mut writes: Vec<&Version> = committed
            .by_ref()
            .flat_map(|(partition, run)| run.writes.iter().filter(|(key, _)| holds(*partition, key)))
            .collect();
        writes.sort_by(|left, right| left.0.cmp(&right.0));
        writes.dedup_by(|next, kept| next.0 == kept.0);
        Some(Committed { position, request: first.request, reads, writes })
    }
}

fn attempts(history: &History) -> BTreeMap<RequestId, Vec<Attempt<'_>>> {
    let mut attempts: BTreeMap<RequestId, Vec<Attempt<'_>>> = BTreeMap::new();
    for (position, ordered) in &history.log {
        let runs = history.executed.get(position).map_or(&[][..], Vec::as_slice);
        let verdict = runs.iter().find(|(_, run)| run.request == ordered.request && run.scope.has_result());
        let verdict = verdict.map(|(_, run)| &run.verdict);
        let opens_snapshot = matches!(ordered.work, Work::OpenSnapshot(_));
        let gave_up = match &ordered.work {
            Work::GiveUp(error) => Some(error),
            _ => None,
        };
        let attempt = Attempt { position: *position, in_log: true, opens_snapshot, gave_up, verdict };
        attempts.entry(ordered.request).or_default().push(attempt);
    }
    for (position, runs) in &history.executed {
        let logged = history.log.get(position).map(|ordered| ordered.request);
        let mut last = None;
        for (_, run) in runs.iter().filter(|(_, run)| Some(run.request) != logged) {
            if last != Some(run.request) {
                last = Some(run.request);
                let verdict = Some(&run.verdict);
                let attempt = Attempt {
                    position: *position,
                    in_log: false,
                    opens_snapshot: false,
                    gave_up: None,
                    verdict,
                };
                attempts.entry(run.request).or_default().push(attempt);
            }
        }
    }
    for (request, invocation) in &history.requests {
        if let Some(position) = invocation.unordered_snapshot() {
            let attempt =
                Attempt { position, in_log: true, opens_snapshot: true, gave_up: None, verdict: None };
            attempts.entry(*request).or_default().push(attempt);
        }
    }
    attempts.values_mut().for_each(|attempts| attempts.sort_by_key(|attempt| attempt.position));
    attempts
}

/// Whether an answer says what became of the request. [`Error::Busy`] asks to send it again, [`Error::Unavailable`] leaves
/// it open, and [`Error::Acknowledged`] says that it was answered before.
pub(crate) fn decides(outcome: &Outcome) -> bool {
    !matches!(outcome, Err(Error::Busy(_) | Error::Unavailable(_) | Error::Acknowledged(_)))
}

impl Invocation {
    /// The first answer that says what became of the request.
    pub(crate) fn decision(&self) -> Option<&(Nanoseconds, Outcome)> {
        self.replies.iter().find(|(_, outcome)| decides(outcome))
    }
}

/// Finds the lowest key whose row differs; `None` when all are equal. Both sides ascend by key.
pub(crate) fn first_difference<'v>(
    expected: impl Iterator<Item = Seen<'v>>,
    found: impl Iterator<Item = Seen<'v>>,
) -> Option<Difference<'v>> {
    let (mut expected, mut found) = (expected.peekable(), found.peekable());
    loop {
        let (left, right) = (expected.peek().copied(), found.peek().copied());
        let key = match (left, right) {
            (None, None) => return None,
            (Some((key, _)), None) | (None, Some((key, _))) => key,
            (Some((left, _)), Some((right, _))) => left.min(right),
        };
        let left = expected.next_if(|(other, _)| *other == key);
        let right = found.next_if(|(other, _)| *other == key);
        if left != right {
            return Some((key, left.map(|(_, row)| row), right.map(|(_, row)| row)));
        }
    }
}

/// A key with its row, or its absence.
pub(crate) type Seen<'v> = (&'v [u8], Option<&'v [u8]>);

/// A key with its row on either side. The outer `None`: the side does not name the key.
pub(crate) type Difference<'v> = (&'v [u8], Option<Option<&'v [u8]>>, Option<Option<&'v [u8]>>);
