//! The oracle: the log, executed again by one partition, one transaction after the other.
//!
//! What a cluster did is right if and only if it is what comes out here: the final state is a function of the input log
//! alone (Calvin §2, CAL-04), and execution is equivalent to exactly the sequencers' order (Calvin §3, CAL-06). The engine is
//! [`serial`](ordain_db::engine::serial) as it is meant to be, without failpoints, on the rows that the workload loads.
//!
//! A cluster of one partition has one origin only. Transactions are therefore given to the engine at positions that count up,
//! and what comes out carries the positions of the log again.
//!
//! What the oracle cannot know: a part of the reads that is too large to be sent between partitions fails a transaction in a
//! cluster, but not here. No workload comes near that limit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::engine::Engine;
use ordain_db::engine::serial::Serial;
use ordain_db::error::Outcome;
use ordain_db::execution::snapshot_reads::SnapshotReads;
use ordain_db::execution::{Call, Context, Effects, Executed};
use ordain_db::hash::{Digest, key_hash};
use ordain_db::message::{Delivered, Ordered};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::{Catalog, ProcedureId};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;
use ordain_workload::{Part, Workload};

/// See the [module](self).
pub struct Oracle<'a> {
    catalog: &'a Catalog,
    engine: Serial,
    storage: MemoryStorage,
    effects: Effects,
    /// Positions of the log that were run.
    ran: u64,
    /// The last of them.
    last: Position,
}

impl<'a> Oracle<'a> {
    /// The state that the workload loads.
    ///
    /// # Errors
    /// When the workload cannot make its rows.
    pub fn new(workload: &'a dyn Workload) -> Result<Oracle<'a>, String> {
        let mut storage = MemoryStorage::new();
        let loaded = workload.load(Part::WHOLE, &mut |key, row| {
            storage.put(key, key_hash(key), row, Position::LOADED);
        });
        loaded.map_err(|error| format!("the workload cannot load its rows: {error}"))?;
        let mut effects = Effects::new(1);
        effects.executed = Some(Vec::new());
        let (engine, last) = (Serial::new(), Position::LOADED);
        Ok(Oracle { catalog: workload.catalog(), engine, storage, effects, ran: 0, last })
    }

    /// Runs the next transaction of the log; `None` for what is no call; a snapshot that is opened there has
    /// [`rows`](Oracle::rows) as they are now.
    ///
    /// # Errors
    /// When the transaction cannot be executed, or when it does not come after the one before. The state is then that before
    /// the transaction.
    pub fn run(&mut self, position: Position, ordered: &Ordered) -> Result<Option<Executed>, String> {
        if position <= self.last {
            return Err(format!("{position} comes after {}: give the log in order", self.last));
        }
        let stands_for = Position { epoch: Epoch(self.ran + 1), origin: PartitionId(0), index: 0 };
        let delivered = Delivered { position: stands_for, ordered: ordered.clone(), footprint: None };
        let call = Call::of(delivered, &mut self.effects.footprints, self.catalog, 1);
        let call = call.map_err(|fatal| format!("{position} cannot be executed: {fatal}"))?;
        self.ran += 1;
        self.last = position;
        let Some(call) = call else { return Ok(None) };
        let mut context = Context {
            me: PartitionId(0),
            partitions: 1,
            catalog: self.catalog,
            storage: &mut self.storage,
            effects: &mut self.effects,
        };
        self.engine.deliver(call, &mut context);
        self.effects.reports.clear();
        let executed = self.effects.executed.as_mut().and_then(Vec::pop);
        let executed = executed.ok_or_else(|| format!("{position} waits, though one partition is alone"))?;
        Ok(Some(Executed { position, ..executed }))
    }

    /// What a procedure that only reads gives on the state after what was run so far.
    ///
    /// # Errors
    /// As the procedure says.
    pub fn read(&mut self, procedure: ProcedureId, arguments: &[u8]) -> Outcome {
        let reads = SnapshotReads {
            me: PartitionId(0),
            partitions: 1,
            schema: &self.catalog.schema,
            storage: &mut self.storage,
            at: Position::LATEST,
        };
        reads.run(self.catalog, procedure, arguments)
    }

    /// Visits all rows in ascending order of keys, as they are after what was run so far.
    pub fn visit_rows(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        let everything = KeyRange { start: Key::from_bytes(&[]), end: Key::from_bytes(&[0xFF; 2]) };
        self.storage.scan(&everything, Direction::Ascending, Position::LATEST, &mut |key, row| {
            visit(key, row);
            ControlFlow::Continue(())
        });
    }

    /// All rows as they are after what was run so far.
    pub fn rows(&mut self) -> BTreeMap<Bytes, Bytes> {
        let mut rows = BTreeMap::new();
        self.visit_rows(&mut |key, row| {
            rows.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(row));
        });
        rows
    }

    /// Digest of all rows as they are after what was run so far: the sum of what the nodes of a cluster of any size say.
    pub fn digest(&self) -> Digest {
        self.storage.digest(Position::LATEST, &|_| true)
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::message::{Verdict, Work};
    use ordain_db::position::{Entry, NodeId};
    use ordain_db::procedure::ProcedureId;

    use super::*;
    use crate::checkers::example::{self, position};

    fn transfer(sequence: u64, from: (u16, u32), to: (u16, u32), amount: i64) -> Ordered {
        let arguments = example::transfer(from, to, amount);
        let work = Work::Call { procedure: ProcedureId(0), arguments, reconnoitred: None };
        Ordered { request: example::request(1, sequence), acknowledged: 0, work }
    }

    #[test]
    fn the_log_is_run_in_order_with_its_own_positions() {
        let bank = example::bank();
        let mut oracle = Oracle::new(&bank).unwrap();
        let loaded = (oracle.rows(), oracle.digest());
        // The origins of a log are those of the cluster.
        let first = oracle.run(position(1, 2, 9), &transfer(0, (0, 0), (1, 0), 30)).unwrap().unwrap();
        assert_eq!(first.position, position(1, 2, 9));
        assert_eq!(first.reads, vec![example::version(0, 0, 100), example::version(1, 0, 100)]);
        assert_eq!(first.writes, vec![example::version(0, 0, 70), example::version(1, 0, 130)]);
        let second = oracle.run(position(2, 0, 0), &transfer(1, (0, 0), (1, 1), 71)).unwrap().unwrap();
        assert!(matches!(second.verdict, Verdict::Failed(_)), "{:?}", second.verdict);
        assert_eq!((second.reads[0].clone(), second.writes), (example::version(0, 0, 70), Vec::new()));
        assert_eq!(oracle.rows().len(), loaded.0.len());
        assert_ne!((oracle.rows(), oracle.digest()), loaded);
        let snapshot = Ordered {
            request: example::request(1, 2),
            acknowledged: 0,
            work: Work::OpenSnapshot(Entry::of(NodeId::first(PartitionId(0)))),
        };
        assert_eq!(oracle.run(position(2, 0, 1), &snapshot).unwrap(), None);
        let back = oracle.run(position(2, 1, 0), &transfer(3, (1, 0), (0, 0), 30)).unwrap().unwrap();
        assert!(matches!(back.verdict, Verdict::Committed(_)));
        assert_eq!((oracle.rows(), oracle.digest()), loaded);
    }

    #[test]
    fn what_cannot_be_run_is_an_error() {
        let bank = example::bank();
        let mut oracle = Oracle::new(&bank).unwrap();
        let mut unknown = transfer(0, (0, 0), (1, 0), 30);
        if let Work::Call { procedure, .. } = &mut unknown.work {
            *procedure = ProcedureId(7);
        }
        let problem = oracle.run(position(1, 1, 0), &unknown).unwrap_err();
        assert!(problem.starts_with("e1.p1.0 cannot be executed: "), "{problem}");
        assert!(problem.contains("there is no procedure number 7"), "{problem}");
        let good = transfer(0, (0, 0), (1, 0), 30);
        oracle.run(position(1, 1, 0), &good).unwrap().unwrap();
        let problem = oracle.run(position(1, 0, 5), &good).unwrap_err();
        assert_eq!(problem, "e1.p0.5 comes after e1.p1.0: give the log in order");
    }
}
