//! A recorded sample of a workload: the calls that the log of a data directory has.
//!
//! The log is the record of what was asked: every transaction with its procedure and arguments, in order. So what a database
//! has done can be done again on other engines, beginning with the rows that it had at first.
//!
//! # Limits
//! - Calls over snapshots are not in the log: there are none in a sample.
//! - A log that was cut after a checkpoint does not begin with the first rows, and is refused. So is the log of the engine
//!   `two-phase`, which has no calls in it.
//! - Runs that are longer than the sample call it again from its start. What inserts a row that is there already then aborts, or
//!   replaces it, as its procedure has it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ordain_consensus::EntryKind;
use ordain_db::data::Key;
use ordain_db::disk::committed::LogEntry;
use ordain_db::error::Error;
use ordain_db::message::{RequestId, Work};
use ordain_db::position::{Epoch, NodeId, PartitionId};
use ordain_db::procedure::{Catalog, ProcedureId};
use ordain_workload::{Call, CheckLine, Generator, Mode, Part, SnapshotReader, Totals, Workload};

use crate::backup::directory::Identity;
use crate::backup::source::NodeSource;
use crate::data_directory::LogKind;

/// Calls of a partition that are taken from a log; those after them are left out.
pub const CALLS_MAX: usize = 100_000;

/// The rows that a part of the database has before the first transaction: gives each to the sink.
pub type FirstRows = dyn Fn(Part, &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> + Send + Sync;

/// The calls of a log, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The number of partitions of the database.
    pub partitions: u16,
    /// The calls that were taken: the partition where each came in, and what was called.
    pub calls: Vec<(PartitionId, ProcedureId, bytes::Bytes)>,
    /// Calls in the log; of those after the last one that was taken, every attempt of a dependent one.
    pub found: u64,
}

impl Record {
    /// Reads the logs of a data directory. Its process may go on meanwhile.
    ///
    /// # Errors
    /// When the directory has not the logs of all partitions from the first transaction on, or one cannot be read.
    pub fn read(directory: &Path) -> Result<Record, String> {
        let identity = Identity::read(directory)?;
        let partitions = partitions_of(directory, &identity)?;
        let mut record = Record { partitions, calls: Vec::new(), found: 0 };
        let mut placed = Vec::new();
        for node in identity.nodes() {
            let mut of_node = CallsOfNode::default();
            of_node.read(directory, &identity, *node)?;
            record.found += of_node.found;
            placed.extend(of_node.calls);
        }
        placed.sort_by_key(|(epoch, home, _)| (*epoch, *home));
        record.calls = placed
            .into_iter()
            .map(|(_, home, (procedure, arguments))| (home, procedure, arguments))
            .collect();
        match record.calls.is_empty() {
            true => Err(format!("the log in {} has no calls: there is nothing to run", directory.display())),
            false => Ok(record),
        }
    }
}

/// How many partitions a directory has the logs of, which must be all.
fn partitions_of(directory: &Path, identity: &Identity) -> Result<u16, String> {
    let shown = directory.display();
    if identity.log() != LogKind::Order {
        return Err(format!(
            "the log in {shown} was made by {}, and has no calls in it: take a sample with another engine",
            identity.log().engines()
        ));
    }
    let nodes = identity.nodes();
    let partitions = identity.partitions().unwrap_or(nodes.len() as u16);
    let all = (0..partitions)
        .map(|partition| NodeId { partition: PartitionId(partition), replica: nodes[0].replica })
        .collect::<Vec<_>>();
    match nodes == all {
        true => Ok(partitions),
        false => Err(format!(
            "{shown} has not the logs of all {partitions} partitions of one replica: take a sample of a database in one process"
        )),
    }
}

/// What the log of one node has.
#[derive(Default)]
struct CallsOfNode {
    calls: Vec<(Epoch, PartitionId, (ProcedureId, bytes::Bytes))>,
    found: u64,
    /// Dependent requests among the calls: each is in the log once for every attempt.
    dependent: BTreeSet<RequestId>,
}

impl CallsOfNode {
    fn read(&mut self, directory: &Path, identity: &Identity, node: NodeId) -> Result<(), String> {
        let mut source = NodeSource::open(directory, identity, node).map_err(|error| error.to_string())?;
        if source.founding().is_none() {
            return Err(format!(
                "the log of {node} in {} was cut after a checkpoint, and no longer begins with the first rows: take the sample \
                 of a database that is newer",
                directory.display()
            ));
        }
        let first = source.committed().first();
        source
            .entries(first, &mut |entry| self.take(&entry, node.partition))
            .map_err(|error| error.to_string())
    }

    fn take(&mut self, entry: &LogEntry, home: PartitionId) -> Result<(), String> {
        if entry.kind != EntryKind::Payload {
            return Ok(());
        }
        let batch = entry.decode_batch().map_err(|error| error.to_string())?;
        for ordered in batch.transactions {
            let Work::Call { procedure, arguments, reconnoitred } = ordered.work else { continue };
            let is_full = self.calls.len() >= CALLS_MAX;
            if reconnoitred.is_some() && !is_full && !self.dependent.insert(ordered.request) {
                continue;
            }
            self.found += 1;
            if !is_full {
                self.calls.push((batch.epoch, home, (procedure, arguments)));
            }
        }
        Ok(())
    }
}

/// A record as a workload: its calls again, at the partitions where they came in.
pub struct Sample {
    catalog: Catalog,
    rows: Arc<FirstRows>,
    record: Arc<Record>,
}

impl Sample {
    /// The calls of a record with the tables and procedures of the database, and the rows that it had at first.
    ///
    /// # Errors
    /// When the record calls procedures that the catalog has not.
    pub fn new(record: Arc<Record>, catalog: Catalog, rows: Arc<FirstRows>) -> Result<Sample, String> {
        let known = catalog.procedures.names().count();
        match record.calls.iter().find(|(_, procedure, _)| usize::from(procedure.0) >= known) {
            Some((_, procedure, _)) => Err(format!(
                "the log has a call of procedure {}, and there are {known}: give the tables and procedures with which it was made",
                procedure.0
            )),
            None => Ok(Sample { catalog, rows, record }),
        }
    }

    /// The calls of a record with the catalog and the first rows of a workload.
    ///
    /// # Errors
    /// When the record is of another workload.
    pub fn of_workload(record: Arc<Record>, workload: Box<dyn Workload>) -> Result<Sample, String> {
        let catalog = workload.catalog().clone();
        Sample::new(record, catalog, Arc::new(move |part, sink| workload.load(part, sink)))
    }
}

impl Workload for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        let mut rows = 0;
        // An error is told when the rows are wanted.
        let _ = (self.rows)(part, &mut |_, _| rows += 1);
        rows
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        (self.rows)(part, sink)
    }

    /// The calls that came in at the homes; where none did, all of them.
    fn generator(&self, _seed: u64, _client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        let calls = &self.record.calls;
        let numbered = calls.iter().enumerate();
        let own = numbered.filter(|(_, (home, _, _))| homes.includes(i64::from(home.0)));
        let mut places: Vec<usize> = own.map(|(place, _)| place).collect();
        if places.is_empty() {
            places = (0..calls.len()).collect();
        }
        Ok(Box::new(Again { record: Arc::clone(&self.record), places, next: 0 }))
    }

    /// What a sample leaves has no conditions of its own.
    fn check(&self, _reader: &mut dyn SnapshotReader, _totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        Ok(Vec::new())
    }
}

/// Calls of a record, over and over.
struct Again {
    record: Arc<Record>,
    /// At least one.
    places: Vec<usize>,
    next: usize,
}

impl Generator for Again {
    fn next(&mut self) -> Call {
        let place = self.places[self.next % self.places.len()];
        self.next += 1;
        let (home, procedure, arguments) = &self.record.calls[place];
        Call {
            procedure: *procedure,
            arguments: arguments.clone(),
            home: u32::from(home.0),
            mode: Mode::Ordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ordain_db::message::{ClientId, Ordered, Reconnoitred};
    use ordain_db::node::ordering::LoggedBatch;
    use ordain_db::position::Entry;
    use ordain_workload::bank;

    use super::*;

    /// A request of its home's client with one byte as arguments; a dependent one with the number of its attempt.
    fn ordered(sequence: u64, argument: u8, attempt: Option<u32>) -> Ordered {
        let client = ClientId { home: PartitionId(0), number: 1 };
        let reconnoitred = attempt.map(|restarts| Reconnoitred { footprint: Bytes::new(), restarts });
        let work = Work::Call {
            procedure: ProcedureId(0),
            arguments: Bytes::copy_from_slice(&[argument]),
            reconnoitred,
        };
        Ordered { request: RequestId { client, sequence }, acknowledged: 0, work }
    }

    fn entry(epoch: u64, transactions: Vec<Ordered>) -> LogEntry {
        let batch = LoggedBatch {
            epoch: Epoch(epoch),
            closed_at: 0,
            delivered: Epoch(0),
            shed: 0,
            held_back: 0,
            transactions,
        };
        let payload = postcard::to_allocvec(&batch).unwrap().into();
        LogEntry { index: epoch, term: 1, kind: EntryKind::Payload, payload }
    }

    #[test]
    fn a_call_is_taken_once_however_often_it_was_attempted() {
        let mut calls = CallsOfNode::default();
        let snapshot = Ordered {
            work: Work::OpenSnapshot(Entry::of(NodeId::first(PartitionId(0)))),
            ..ordered(9, 0, None)
        };
        for entry in [
            entry(1, vec![ordered(1, 10, None), ordered(2, 20, Some(0)), snapshot]),
            entry(2, vec![ordered(3, 30, Some(0)), ordered(2, 20, Some(1))]),
            LogEntry { kind: EntryKind::Membership, payload: Bytes::new(), ..entry(3, Vec::new()) },
        ] {
            calls.take(&entry, PartitionId(0)).unwrap();
        }
        let taken: Vec<(u64, u8)> =
            calls.calls.iter().map(|(epoch, _, (_, arguments))| (epoch.0, arguments[0])).collect();
        assert_eq!((taken, calls.found), (vec![(1, 10), (1, 20), (2, 30)], 3));
        let damaged = LogEntry { payload: Bytes::from_static(&[1]), ..entry(3, Vec::new()) };
        assert!(calls.take(&damaged, PartitionId(0)).unwrap_err().contains("no batch"));
    }

    #[test]
    fn calls_are_made_where_they_came_in_over_and_over() {
        let call = |home, argument| (PartitionId(home), ProcedureId(0), Bytes::copy_from_slice(&[argument]));
        let record =
            Arc::new(Record { partitions: 3, calls: vec![call(0, 1), call(1, 2), call(0, 3)], found: 3 });
        let bank = || {
            let options = bank::Options { sites: 3, accounts: 10, ..bank::Options::default() };
            Box::new(bank::Bank::new(options).unwrap())
        };
        let sample = Sample::of_workload(Arc::clone(&record), bank()).unwrap();
        let made = |part| {
            let mut generator = sample.generator(1, 0, part).unwrap();
            (0..4).map(|_| generator.next().arguments[0]).collect::<Vec<u8>>()
        };
        let of = |partition| Part::of(PartitionId(partition), 3);
        assert_eq!((made(of(0)), made(of(1))), (vec![1, 3, 1, 3], vec![2, 2, 2, 2]));
        // Nobody called there: whoever does calls what the others did.
        assert_eq!((made(of(2)), made(Part::WHOLE)), (vec![1, 2, 3, 1], vec![1, 2, 3, 1]));
        assert_eq!(sample.rows_expected(of(0)), bank().rows_expected(of(0)));
        let unknown =
            Record { calls: vec![(PartitionId(0), ProcedureId(99), Bytes::new())], ..(*record).clone() };
        let refused = Sample::of_workload(Arc::new(unknown), bank());
        assert!(refused.is_err_and(|problem| problem.contains("a call of procedure 99")));
    }
}
