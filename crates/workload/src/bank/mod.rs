//! Bank: transfers between accounts. Money is conserved, and no account is overdrawn, if and only if every transaction is
//! atomic and isolated: the smallest workload that notices a lost, partial or repeated write.

mod generator;
mod procedure;

use ordain_db::data::{ColumnType, Key, SchemaBuilder, Table};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures};

use crate::check::{CheckLine, Condition, SnapshotReader, Totals, scan_table};
use crate::random::Chance;
use crate::{Generator, Part, Workload};

use procedure::Accounts;

pub use procedure::{AccountName, Arguments, Balances, Declare, Move, Transfer};

/// The name of the procedure that transfers and returns the balances.
pub const TRANSFER: &str = "transfer";

/// The name of the procedure that transfers by functors alone.
pub const MOVE: &str = "move";

/// Column numbers of the table `accounts`.
pub(crate) mod column {
    pub(crate) const BALANCE: usize = 2;
}

/// Settings of the bank. Money is in cents.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Number of sites over which the accounts are spread.
    pub sites: u16,
    /// Accounts of all sites together; rounded down to a multiple of the sites.
    pub accounts: u64,
    /// Money in each account at first.
    pub balance: i64,
    /// The largest amount of a transfer; amounts are uniform from 1.
    pub amount_max: i64,
    /// Share of transfers between two sites, in percent; none when there is one site.
    pub multi_partition_percent: f64,
    /// How transfers are declared.
    pub transfers: Declare,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sites: 1,
            accounts: 100_000,
            balance: 100_000,
            amount_max: 50_000,
            multi_partition_percent: 10.0,
            transfers: Declare::Whole,
        }
    }
}

/// The bank.
pub struct Bank {
    options: Options,
    catalog: Catalog,
    accounts: Table,
    shape: Shape,
}

/// What the generator needs of the options, checked and in integers.
#[derive(Clone, Copy, Debug)]
struct Shape {
    transfer: ProcedureId,
    sites: u16,
    /// At least two.
    accounts_per_site: u32,
    amount_max: i64,
    multi_site: Chance,
}

impl Bank {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Bank, Error> {
        let invalid = |problem: String| Err(Error::Invalid(format!("bank: {problem}")));
        let Options { sites, accounts, balance, amount_max, multi_partition_percent, transfers } = options;
        if sites == 0 {
            return invalid("sites is 0: give at least 1".to_owned());
        }
        let per_site = accounts / u64::from(sites);
        if !(2..=u64::from(u32::MAX)).contains(&per_site) {
            return invalid(format!("{accounts} accounts give {per_site} to each site: give at least 2"));
        }
        if balance < 0 || amount_max < 1 || i128::from(balance) * i128::from(accounts) > i128::from(i64::MAX)
        {
            return invalid(format!(
                "balance is {balance}, amount_max {amount_max}: give at least 0 and 1, and a sum that fits 64 bits"
            ));
        }
        let mut schema = SchemaBuilder::new();
        let accounts = schema.table(
            Table::builder("accounts")
                .column("site", ColumnType::Int32)
                .column("id", ColumnType::Int64)
                .column("balance", ColumnType::Int64)
                .primary_key(&["site", "id"])
                .partition_by_column("site"),
        )?;
        let mut procedures = Procedures::new();
        let named = Accounts { table: accounts.clone(), sites, per_site: per_site as u32 };
        let transfer = match transfers {
            Declare::Whole => procedures.register(Transfer::new(named, false))?,
            Declare::Functors => procedures.register(Transfer::new(named, true))?,
            Declare::OnlyFunctors => procedures.register(Move::new(named))?,
        };
        let multi_site = Chance::of_percent(multi_partition_percent, "multi_partition_percent")?;
        let shape = Shape { transfer, sites, accounts_per_site: per_site as u32, amount_max, multi_site };
        Ok(Bank { options, catalog: Catalog { schema: schema.finish(), procedures }, accounts, shape })
    }

    fn last_site(&self) -> i64 {
        i64::from(self.options.sites) - 1
    }
}

impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        part.count(0, self.last_site()) * u64::from(self.shape.accounts_per_site)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        let row = self.accounts.row((self.options.balance,))?;
        for site in part.numbers(0, self.last_site()) {
            for id in 0..i64::from(self.shape.accounts_per_site) {
                sink(&self.accounts.key((site as i32, id))?, &row);
            }
        }
        Ok(())
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        Ok(Box::new(generator::Calls::new(self.shape, seed, client, homes)?))
    }

    /// Each account is there, none is overdrawn, and the money is what it was.
    fn check(&self, reader: &mut dyn SnapshotReader, _totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        let mut not_negative = Condition::new("balance >= 0");
        let (mut accounts, mut sum) = (0, 0);
        scan_table(reader, &self.accounts, |[site, id], row| {
            let balance = row.int64(column::BALANCE)?;
            not_negative.require(balance >= 0, || format!("account ({site}, {id}) has balance {balance}"));
            accounts += 1;
            sum += balance;
            Ok(())
        })?;
        let loaded = i64::from(self.shape.accounts_per_site) * i64::from(self.options.sites);
        let mut complete = Condition::new("number of accounts = accounts loaded");
        complete.equal(|| "accounts".to_owned(), accounts, loaded);
        let mut conserved = Condition::new("sum of all balances = money loaded");
        conserved.equal(|| "sum of balances".to_owned(), sum, loaded * self.options.balance);
        Ok(vec![complete.finish(), not_negative.finish(), conserved.finish()])
    }
}
