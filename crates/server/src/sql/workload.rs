//! A database for SQL: its tables and its procedure, alone or beside those of a workload.

use ordain_db::data::{Key, SchemaBuilder};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, Procedures};
use ordain_sql::keys::Storages;
use ordain_sql::procedure::SqlProcedure;
use ordain_workload::{Background, CheckLine, Generator, Part, SnapshotReader, Totals, Workload};

/// What is called where there is nothing but SQL is what clients say: it is empty, and makes no calls.
pub struct SqlWorkload {
    catalog: Catalog,
}

/// A workload whose procedures clients of SQL can call, beside tables of their own.
pub struct WithSql {
    workload: Box<dyn Workload>,
    catalog: Catalog,
}

/// Adds the tables and the procedure of SQL.
fn with_sql(mut schema: SchemaBuilder, mut procedures: Procedures) -> Result<Catalog, Error> {
    let storages = Storages::register(&mut schema)?;
    procedures.register(SqlProcedure::new(storages))?;
    Ok(Catalog { schema: schema.finish(), procedures })
}

impl SqlWorkload {
    /// Makes the tables and the procedure.
    ///
    /// # Errors
    /// None that can happen.
    pub fn new() -> Result<SqlWorkload, Error> {
        Ok(SqlWorkload { catalog: with_sql(SchemaBuilder::new(), Procedures::new())? })
    }
}

impl WithSql {
    /// Puts SQL beside a workload.
    ///
    /// # Errors
    /// When one of its tables or procedures has a name that SQL needs.
    pub fn new(workload: Box<dyn Workload>) -> Result<WithSql, Error> {
        let Catalog { schema, procedures } = workload.catalog();
        let catalog = with_sql(SchemaBuilder::after(schema), procedures.clone())?;
        Ok(WithSql { workload, catalog })
    }
}

impl Workload for WithSql {
    fn name(&self) -> &'static str {
        self.workload.name()
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        self.workload.rows_expected(part)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        self.workload.load(part, sink)
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        self.workload.generator(seed, client, homes)
    }

    fn background(&self, seed: u64, client: u32, homes: Part) -> Result<Option<Background>, Error> {
        self.workload.background(seed, client, homes)
    }

    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        self.workload.check(reader, totals)
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
