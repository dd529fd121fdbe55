//! The workload `sql`: clients that let sessions of `ordain-sql` run statements, by themselves and in blocks.
//!
//! Nothing of SQL is made up here: the [sessions](transcript) plan, ask for snapshots and call the procedure `sql` as those of a server
//! do. What clients [do](job) is drawn; what they [know](crate::history::Fact) by it is checked by
//! [`sessions`](crate::checkers::sessions), and the state by [`conditions`].

mod client;
mod conditions;
mod job;
mod jobs;
mod population;
mod told;
mod transcript;

use bytes::Bytes;
use ordain_db::data::{Key, SchemaBuilder};
use ordain_db::error::Error;
use ordain_db::failpoint::{Failpoints, NoFailpoints};
use ordain_db::procedure::{Catalog, Procedures};
use ordain_sql::keys::Storages;
use ordain_sql::procedure::SqlProcedure;
use ordain_workload::{CheckLine, Generator, Part, SnapshotReader, Totals, Workload};

pub(crate) use client::{FIRST_SCAN, Next, Scan, SqlClient};
pub(crate) use conditions::{lists, total};

/// Settings of the workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Accounts, at least 2; each has [`BALANCE`] at first.
    pub accounts: u32,
    /// Lists to which numbers are appended, at least 1.
    pub lists: u32,
    /// Numbers that persons may have, at least 1.
    pub persons: u32,
    /// Share of what a client does that changes definitions, in percent.
    pub definitions_percent: u64,
    /// Share of it that are blocks, in percent.
    pub blocks_percent: u64,
    /// Whether the accounts are copied to every partition.
    pub replicated: bool,
}

/// What each account has at first.
pub const BALANCE: u64 = 100;

/// See the [module](self).
pub struct Sql {
    options: Options,
    catalog: Catalog,
    /// What there is at first, ascending by key.
    rows: Vec<(Bytes, Bytes)>,
}

impl Sql {
    /// Checks the options, and makes the tables with their first rows.
    ///
    /// # Errors
    /// When an option is wrong.
    pub fn new(options: Options) -> Result<Sql, Error> {
        let Options { accounts, lists, persons, definitions_percent, blocks_percent, .. } = options;
        if accounts < 2 || lists == 0 || persons == 0 || definitions_percent + blocks_percent > 100 {
            let problem =
                "sql: give at least 2 accounts, a list and a person, and shares of at most 100 percent";
            return Err(Error::Invalid(problem.to_owned()));
        }
        let catalog = catalog::<NoFailpoints>()?;
        let rows = population::rows(&catalog, &options)?;
        Ok(Sql { options, catalog, rows })
    }
}

/// The tables of the database in which SQL lives, and its procedure, with a mistake in it if one is switched on.
pub(crate) fn catalog<F: Failpoints>() -> Result<Catalog, Error> {
    let mut schema = SchemaBuilder::new();
    let storages = Storages::register(&mut schema)?;
    let mut procedures = Procedures::new();
    procedures.register(SqlProcedure::<F>::with(storages))?;
    Ok(Catalog { schema: schema.finish(), procedures })
}

impl Workload for Sql {
    fn name(&self) -> &'static str {
        "sql"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        let mut rows = 0;
        // It emits what it has, and fails only if it cannot tell whose that is.
        let _whole = self.load(part, &mut |_, _| rows += 1);
        rows
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        for (key, row) in &self.rows {
            let key = Key::from_bytes(key);
            if part.holds(self.catalog.schema.table_of(&key)?, &key) {
                sink(&key, row);
            }
        }
        Ok(())
    }

    fn generator(&self, _: u64, _: u32, _: Part) -> Result<Box<dyn Generator>, Error> {
        Err(Error::Invalid("clients of sql have sessions, and make no calls of their own".to_owned()))
    }

    fn check(&self, reader: &mut dyn SnapshotReader, _: &Totals) -> Result<Vec<CheckLine>, Error> {
        conditions::check(&self.options, &self.catalog, reader)
    }
}
