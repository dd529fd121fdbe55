//! Benchmark workloads: each is a schema, its population, a generator of calls, the procedures that run them, and a checker.
//!
//! - [`micro`]: ten read-modify-writes with a contention index (Calvin §6.2).
//! - [`tpcc`]: TPC-C: New Order and Payment (Calvin §6.1), or all five transactions.
//! - [`bank`]: transfers that must conserve money.
//! - [`append`]: lists that tell the order of the calls that appended to them, for checkers of histories.
//! - [`ycsb`]: the six core mixes of YCSB, with transactions of several rows.
//! - [`profile`](mod@profile): how many calls of a workload span partitions, depend on data, and conflict.
//! - [`limit`]: the best plain single-threaded store, to run the same procedures as fast as a machine can.
//!
//! Everything is a pure function of options and seeds: the same options make the same rows, the same seed the same calls,
//! on any number of partitions. A workload thinks in *sites* (micro, bank) or warehouses: the value of the integer column
//! by which its tables are partitioned. A site is what its generator takes for a machine when it chooses local and remote
//! keys. By default a benchmark makes as many sites as the cluster has partitions; a test that wants the very same calls on
//! clusters of 1, 2, 4 and 8 partitions makes 8 sites on each.

pub mod append;
pub mod bank;
pub mod check;
pub mod limit;
pub mod micro;
pub mod part;
pub mod profile;
pub mod random;
pub mod tpcc;
pub mod ycsb;

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::error::Error;
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Catalog, ProcedureId};

pub use check::{CheckLine, Outcomes, SnapshotReader, Totals};
pub use part::Part;
pub use profile::{Profile, profile};

/// A workload with its options. Making one checks the options; after that nothing but broken rows can fail.
pub trait Workload: Send + Sync {
    /// The name by which it is chosen and reported.
    fn name(&self) -> &'static str;

    /// The tables and procedures; the same for equal options.
    fn catalog(&self) -> &Catalog;

    /// How many rows [`load`](Workload::load) emits for a part, to show progress. Exact.
    fn rows_expected(&self, part: Part) -> u64;

    /// Emits every row that is stored in the part: the rows that it owns, and all rows of replicated tables.
    ///
    /// Row contents depend on the options only: the union over the parts of any cluster is the same set of rows. Keys of one
    /// table come in no promised order.
    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error>;

    /// A source of calls whose home is in `homes`: [`Part::WHOLE`] for a client that serves the whole cluster, one partition's
    /// part for a client that sits beside it. Fails when `homes` has no site.
    ///
    /// `client` must be new for every generator that runs against one loaded database, restarts included: it makes the keys
    /// unique that calls insert.
    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error>;

    /// Calls that are made beside those of the clients, for the part of the data that `homes` owns: at a rate of their own,
    /// however long they take. None by default. `client` is like that of [`generator`](Workload::generator).
    fn background(&self, seed: u64, client: u32, homes: Part) -> Result<Option<Background>, Error> {
        let _ = (seed, client, homes);
        Ok(None)
    }

    /// Holds the workload's conditions against a state in which no call is under way.
    ///
    /// `totals` are all calls since the load. An error means that the state could not be read, not that it is wrong.
    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error>;
}

/// An endless source of calls, deterministic in its seed.
pub trait Generator: Send {
    /// The next call.
    fn next(&mut self) -> Call;
}

/// See [`Workload::background`].
pub struct Background {
    /// The calls.
    pub generator: Box<dyn Generator>,
    /// How many of them are made in a second, on average; more than 0.
    pub calls_per_second: f64,
}

/// How a procedure is called.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// As a transaction: it takes a position in the order.
    #[default]
    Ordered,
    /// Over the rows of a snapshot that was opened after the call began. The procedure only reads, and only rows of its home's
    /// partition and of replicated tables; it takes no position, and waits for no transaction.
    Snapshot,
}

/// One call of a procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The procedure.
    pub procedure: ProcedureId,
    /// Its encoded arguments.
    pub arguments: Bytes,
    /// The site or warehouse where most of its keys are.
    pub home: u32,
    /// How it is called.
    pub mode: Mode,
}

impl Call {
    /// Where the call is best submitted.
    pub fn home_partition(&self, partitions: u16) -> PartitionId {
        PartitionId((self.home % u32::from(partitions)) as u16)
    }
}

/// Encodes arguments that a generator made.
pub(crate) fn call<T: serde::Serialize>(procedure: ProcedureId, arguments: &T, home: u32) -> Call {
    let arguments = ordain_db::procedure::encode_arguments(arguments);
    let arguments = arguments.expect("generated arguments are small and have an encoding");
    Call { procedure, arguments: arguments.into(), home, mode: Mode::Ordered }
}
