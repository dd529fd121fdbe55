//! A database for SQL alone: its tables and its procedure, without rows.

use ordain_db::data::{Key, SchemaBuilder};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, Procedures};
use ordain_sql::keys::Storages;
use ordain_sql::procedure::SqlProcedure;
use ordain_workload::{CheckLine, Generator, Part, SnapshotReader, Totals, Workload};

/// See the [module](self). It takes the place of a workload, whose calls are what clients say.
pub struct SqlWorkload {
    catalog: Catalog,
}

impl SqlWorkload {
    /// Makes the tables and the procedure.
    ///
    /// # Errors
    /// None that can happen.
    pub fn new() -> Result<SqlWorkload, Error> {
        let mut schema = SchemaBuilder::new();
        let storages = Storages::register(&mut schema)?;
        let mut procedures = Procedures::new();
        procedures.register(SqlProcedure::new(storages))?;
        Ok(SqlWorkload { catalog: Catalog { schema: schema.finish(), procedures } })
    }
}

impl Workload for SqlWorkload {
    fn name(&self) -> &'static str {
        "sql"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, _part: Part) -> u64 {
        0
    }

    fn load(&self, _part: Part, _sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        Ok(())
    }

    fn generator(&self, _seed: u64, _client: u32, _homes: Part) -> Result<Box<dyn Generator>, Error> {
        Err(Error::Invalid(
            "sql has no calls of its own: start it with `ordain start`, and use a client of PostgreSQL such as pgbench"
                .to_owned(),
        ))
    }

    fn check(&self, _reader: &mut dyn SnapshotReader, _totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        Ok(Vec::new())
    }
}
