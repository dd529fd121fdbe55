//! The library: open a database in this process, call procedures, read snapshots.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ordain_db::data::{SchemaBuilder, Table, TableBuilder};
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::position::{NodeId, PartitionId};
use ordain_db::procedure::{Catalog, Procedure, Procedures};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::{MemoryStorage, Options};
use ordain_sql::keys::Storages;
use ordain_sql::procedure::SqlProcedure;

use crate::connection::{Connection, Handle};
use crate::data_directory::{Contents, DataDirectory};
use crate::durable::{self, DurableOptions, FirstRows};
use crate::partition::{Elsewhere, PeerLink};
use crate::port::Port;
use crate::process::{ClusterOptions, LocalNode, Process, Seed};
use crate::replies::Replies;
use crate::sql::SqlDatabase;

/// How long [`Database::close`] waits for calls under way.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before a node that recovers is looked at again.
const RECOVERY_PAUSE: Duration = Duration::from_millis(2);

/// Collects the tables and procedures of a database, then opens it.
#[derive(Default)]
pub struct DatabaseBuilder {
    schema: SchemaBuilder,
    procedures: Procedures,
    options: ClusterOptions,
    directory: Option<PathBuf>,
}

impl DatabaseBuilder {
    /// Adds a table.
    ///
    /// # Errors
    /// When the definition is wrong.
    pub fn table(&mut self, table: TableBuilder) -> Result<Table, Error> {
        Ok(self.schema.table(table)?)
    }

    /// Registers a procedure.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn procedure<P: Procedure>(&mut self, procedure: P) -> Result<Handle<P>, Error> {
        Ok(Handle::new(self.procedures.register(procedure)?))
    }

    /// Lets clients query the database with SQL, too, beside the tables and procedures of its own: see [`Database::sql`]. Rows of its own
    /// tables are not seen by SQL.
    ///
    /// # Errors
    /// When a table or procedure has a name that SQL needs.
    pub fn sql(mut self) -> Result<Self, Error> {
        let storages = Storages::register(&mut self.schema)?;
        self.procedures.register(SqlProcedure::new(storages))?;
        Ok(self)
    }

    /// Sets the number of partitions, each with a thread of its own; 1 by default.
    #[must_use]
    pub fn partitions(mut self, partitions: u16) -> Self {
        self.options.partitions = partitions;
        self
    }

    /// Chooses the engine; `calvin` by default.
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.options.engine = engine;
        self
    }

    /// Keeps the database in a directory: what a call has returned survives the end of the process and of the machine. The
    /// directory is made if it is not there. Without one, the database is in memory only.
    #[must_use]
    pub fn data_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Opens the database: an empty one, or with a data directory what is there. The tables, the procedures and the number of
    /// partitions must be those with which the directory was made. The procedures' code must do the same as then: the log is
    /// run again.
    ///
    /// # Errors
    /// When an option is wrong, a thread cannot be started, or the data directory cannot be used: says why.
    pub fn open(self) -> Result<Database, Error> {
        let catalog = Catalog { schema: self.schema.finish(), procedures: self.procedures };
        if let Some(directory) = self.directory {
            let ClusterOptions { engine, partitions, .. } = self.options;
            let contents = Contents::alone(engine, partitions, fingerprint(&self.options, &catalog));
            let durable = DurableOptions::new(directory);
            return Database::durable(&durable, &self.options, &contents, catalog, &|_, _| Ok(()));
        }
        let seeds = (0..self.options.partitions).map(|partition| Seed {
            partition: PartitionId(partition),
            storage: Box::new(MemoryStorage::with_options(Options { write_digests: false }))
                as Box<dyn Storage + Send>,
        });
        Database::with_rows(&self.options, catalog, seeds.collect())
    }
}

/// A database whose partitions all run in this process: in memory, or kept in a data directory.
///
/// Calls and snapshots are those of the [`Connection`] that it derefs to.
pub struct Database {
    process: Arc<Process>,
    connection: Connection,
}

impl Database {
    /// Starts the definition of a database.
    pub fn builder() -> DatabaseBuilder {
        DatabaseBuilder::default()
    }

    /// Opens a database over partitions that have been filled.
    ///
    /// # Errors
    /// When an option is wrong or a thread cannot be started.
    pub fn with_rows(
        options: &ClusterOptions,
        catalog: Catalog,
        seeds: Vec<Seed>,
    ) -> Result<Database, Error> {
        let missing = (0..options.partitions)
            .map(PartitionId)
            .find(|partition| !seeds.iter().any(|seed| seed.partition == *partition));
        if let Some(missing) = missing {
            return Err(Error::Invalid(format!(
                "{missing} has no rows, not even none: all partitions run here"
            )));
        }
        let nodes = seeds.into_iter().map(|seed| LocalNode::volatile(options, &catalog, seed)).collect();
        Database::of_nodes(options, catalog, nodes, None)
    }

    /// Opens a database that is kept in a data directory. `rows` are those before the first transaction, for a new one.
    ///
    /// # Errors
    /// When an option is wrong, a thread cannot be started, or the data directory cannot be used: says why.
    pub fn durable(
        durable: &DurableOptions,
        options: &ClusterOptions,
        contents: &Contents,
        catalog: Catalog,
        rows: &FirstRows<'_>,
    ) -> Result<Database, Error> {
        let opened = durable::open(durable, options, contents, &catalog, rows);
        let (directory, nodes) = opened.map_err(Error::Unavailable)?;
        let database = Database::of_nodes(options, catalog, nodes, Some(directory))?;
        database.wait_until_recovered()?;
        Ok(database)
    }

    pub(crate) fn of_nodes(
        options: &ClusterOptions,
        catalog: Catalog,
        nodes: Vec<LocalNode>,
        directory: Option<DataDirectory>,
    ) -> Result<Database, Error> {
        let inboxes = Process::inboxes(nodes.iter().map(|node| node.id));
        let nowhere: Elsewhere = Arc::new(|node: NodeId| -> Arc<dyn PeerLink> {
            unreachable!("{node} runs in this process like all others")
        });
        let replies = Arc::new(Replies::default());
        let process = Process::start(options, nodes, directory, &inboxes, nowhere, replies);
        let process = Arc::new(process.map_err(Error::Invalid)?);
        let port: Arc<dyn Port> = Arc::<Process>::clone(&process);
        Ok(Database { process, connection: Connection::new(port, catalog)? })
    }

    /// Waits until every node takes requests: all of its log is in the order again, ahead of what is to come.
    pub(crate) fn wait_until_recovered(&self) -> Result<(), Error> {
        while !self.statuses(false)?.iter().all(|status| status.leads) {
            std::thread::sleep(RECOVERY_PAUSE);
        }
        Ok(())
    }

    /// The process that runs the partitions.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The way for a [`Listener`](crate::sql::Listener) of SQL into the database, if it was [built](DatabaseBuilder::sql) for that.
    ///
    /// # Errors
    /// When there is no randomness or no thread to be had.
    pub fn sql(&self) -> Result<Option<SqlDatabase>, Error> {
        let port: Arc<dyn Port> = Arc::<Process>::clone(&self.process);
        SqlDatabase::open(port, &self.process, self.connection.catalog().clone(), 1)
    }

    /// Ends the database in good order: takes no new calls, finishes those under way, stops the threads.
    ///
    /// # Errors
    /// When calls were still under way after ten seconds, or a partition had failed.
    pub fn close(self) -> Result<(), Error> {
        let drained = self.process.drain(CLOSE_PATIENCE);
        self.process.stop().map_err(|error| Error::Unavailable(error.to_string()))?;
        if drained {
            Ok(())
        } else {
            Err(Error::Unavailable(format!("calls were still under way after {CLOSE_PATIENCE:?}")))
        }
    }
}

impl std::ops::Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // An error has nobody to go to here; `close` reports it.
        let _ = self.process.stop();
    }
}

/// Stands for what the data of an embedded database depends on.
fn fingerprint(options: &ClusterOptions, catalog: &Catalog) -> u64 {
    let tables: Vec<String> = catalog.schema.tables().iter().map(|table| format!("{table:?}")).collect();
    let procedures: Vec<&str> = catalog.procedures.names().collect();
    let text = format!("{} partitions; tables {tables:?}; procedures {procedures:?}", options.partitions);
    xxhash_rust::xxh3::xxh3_64(text.as_bytes()).max(1)
}
