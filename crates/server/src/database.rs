//! The library: open a database in this process, call procedures, read snapshots.

use std::sync::Arc;
use std::time::Duration;

use ordain_db::data::{SchemaBuilder, Table, TableBuilder};
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::position::PartitionId;
use ordain_db::procedure::{Catalog, Procedure, Procedures};
use ordain_db::storage::Storage;
use ordain_db::storage::memory::MemoryStorage;

use crate::connection::{Connection, Handle};
use crate::partition::PeerLink;
use crate::port::Port;
use crate::process::{ClusterOptions, Process, Seed};
use crate::replies::Replies;

/// How long [`Database::close`] waits for calls under way.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Collects the tables and procedures of a database, then opens it.
#[derive(Default)]
pub struct DatabaseBuilder {
    schema: SchemaBuilder,
    procedures: Procedures,
    options: ClusterOptions,
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

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// When an option is wrong or a thread cannot be started.
    pub fn open(self) -> Result<Database, Error> {
        let catalog = Catalog { schema: self.schema.finish(), procedures: self.procedures };
        let seeds = (0..self.options.partitions).map(|partition| Seed {
            partition: PartitionId(partition),
            storage: Box::new(MemoryStorage::new()) as Box<dyn Storage + Send>,
        });
        Database::with_rows(&self.options, catalog, seeds.collect())
    }
}

/// A database whose partitions all run in this process, in memory. Nothing is kept over the end of the process.
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
        let partitions: Vec<PartitionId> = seeds.iter().map(|seed| seed.partition).collect();
        let missing =
            (0..options.partitions).map(PartitionId).find(|partition| !partitions.contains(partition));
        if let Some(missing) = missing {
            return Err(Error::Invalid(format!(
                "{missing} has no rows, not even none: all partitions run here"
            )));
        }
        let inboxes = Process::inboxes(&partitions);
        let nowhere = |partition: PartitionId| -> Arc<dyn PeerLink> {
            unreachable!("{partition} runs in this process like all others")
        };
        let replies = Arc::new(Replies::default());
        let process = Process::start(options, &catalog, seeds, &inboxes, &nowhere, replies);
        let process = Arc::new(process.map_err(Error::Invalid)?);
        let port: Arc<dyn Port> = Arc::<Process>::clone(&process);
        Ok(Database { process, connection: Connection::new(port, catalog)? })
    }

    /// The process that runs the partitions.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Ends the database in good order: takes no new calls, finishes those under way, stops the threads.
    ///
    /// # Errors
    /// When calls were still under way after ten seconds, or a partition had failed.
    pub fn close(self) -> Result<(), Error> {
        let drained = self.process.drain(CLOSE_PATIENCE);
        self.process.stop().map_err(Error::Unavailable)?;
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
