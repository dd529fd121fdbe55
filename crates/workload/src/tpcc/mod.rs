//! TPC-C, New Order and Payment, after the TPC-C standard specification, revision 5.11; clauses are cited as "clause 2.4".
//!
//! All nine tables have the specification's columns. Money is in cents (int64), rates are in basis points (int32), dates in
//! microseconds since 1970 (int64). `item` is replicated to every partition; every other table is partitioned by its
//! warehouse. `customer_by_name` is the secondary index that Payment by last name needs, as an ordinary table.
//!
//! # Differences from the specification
//! - A generator has no clock, keying or think times, and draws its home warehouse for each call; a benchmark sets the rate.
//! - "Remote" means a warehouse of another *site*, never another one of the same (Calvin §6.1, CAL-118). The chance is that
//!   of a transaction to be remote, not of a line; see [`Options::remote_percent`].
//! - A New Order with an unused item number aborts before its first write (clause 2.4.2.3 lets it do its writes first and roll
//!   them back); every item is still read.
//! - `history` has no key in the specification; here a number that the client chooses makes its rows unique.
//! - Results leave out the terminal's addresses (clauses 2.4.3.5, 2.5.3.4).
//! - Order-Status, Delivery and Stock-Level are not here: the papers run New Order and Payment.

mod check;
mod generator;
mod new_order;
mod payment;
mod population;
mod random;
mod schema;

use ordain_db::data::Key;
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures};

use crate::check::{CheckLine, SnapshotReader, Totals};
use crate::random::Chance;
use crate::{Generator, Part, Workload};

pub use new_order::{Arguments as NewOrderArguments, Line, LineResult, NewOrder, Output as NewOrderOutput};
pub use payment::{Arguments as PaymentArguments, CustomerName, Output as PaymentOutput, Payment};
pub use random::{LastName, last_name, non_uniform};

/// The name of the New Order procedure.
pub const NEW_ORDER: &str = "new_order";

/// The name of the Payment procedure.
pub const PAYMENT: &str = "payment";

/// Most districts of a warehouse: `stock` has a column for each (clause 1.3.1).
pub const DISTRICTS_MAX: u8 = 10;

/// When the rows were loaded, in microseconds since 1970: the first moment of 2020.
pub const LOADED_AT: i64 = 1_577_836_800_000_000;

/// Money in each district's `d_ytd` at first, in cents (clause 4.3.3.1).
pub(crate) const DISTRICT_YTD_LOADED: i64 = 3_000_000;

/// Money that each customer has paid at first, in cents (clause 4.3.3.1).
pub(crate) const PAYMENT_LOADED: i64 = 1_000;

/// Settings of TPC-C.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Seed of the rows and of the constants of the non-uniform draws.
    pub seed: u64,
    /// Number of sites: warehouse `w` belongs to site `w` modulo `sites`.
    pub sites: u16,
    /// Warehouses, numbered from 1. The papers have 10 (Calvin §6.1) or 20 (DET-52) per partition.
    pub warehouses: u32,
    /// Items, and stock rows of each warehouse; 100,000 by the specification.
    pub items: u32,
    /// Districts of each warehouse; 10 by the specification, and at most.
    pub districts_per_warehouse: u8,
    /// Customers of each district; 3,000 by the specification.
    pub customers_per_district: u32,
    /// Orders of each district at first; 3,000 by the specification. The last 30% are undelivered.
    pub orders_per_district: u32,
    /// Share of New Orders among the calls, in percent; the others are Payments. 100 is what Calvin §6.1 runs.
    pub new_order_percent: f64,
    /// Share of New Orders that take one or more lines from another site, in percent. All of them from one warehouse: one
    /// line for certain, each other line with a chance of 1%. None when there is one site. The specification's 1% of lines
    /// makes about 10% of transactions.
    pub remote_percent: f64,
    /// Share of Payments whose customer is at another site, in percent; 15 by clause 2.5.1.2. None when there is one site.
    pub payment_remote_percent: f64,
    /// Share of Payments that name the customer by last name, in percent; 60 by clause 2.5.1.2.
    pub payment_by_name_percent: f64,
    /// Share of New Orders whose last item is unused and that therefore abort, in percent; 1 by clause 2.4.1.4.
    pub abort_percent: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            sites: 1,
            warehouses: 1,
            items: 100_000,
            districts_per_warehouse: 10,
            customers_per_district: 3_000,
            orders_per_district: 3_000,
            new_order_percent: 100.0,
            remote_percent: 10.0,
            payment_remote_percent: 15.0,
            payment_by_name_percent: 60.0,
            abort_percent: 1.0,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let bounded = [
            ("sites", u64::from(self.sites), u64::from(u16::MAX)),
            ("warehouses", u64::from(self.warehouses), 1_000_000),
            ("items", u64::from(self.items), 1_000_000),
            ("districts_per_warehouse", u64::from(self.districts_per_warehouse), u64::from(DISTRICTS_MAX)),
            ("customers_per_district", u64::from(self.customers_per_district), 1_000_000),
            ("orders_per_district", u64::from(self.orders_per_district), 1_000_000),
        ];
        for (option, value, maximum) in bounded {
            if value < 1 || value > maximum {
                return Err(Error::Invalid(format!("tpcc: {option} is {value}: give 1 to {maximum}")));
            }
        }
        Ok(())
    }

    /// The highest order that was delivered when it was loaded (clause 4.3.3.1: 2,100 of 3,000).
    fn delivered_orders(&self) -> i32 {
        (u64::from(self.orders_per_district) * 7 / 10) as i32
    }

    /// The highest number of a last name that is sure to have customers in every district (clause 4.3.3.1: 999).
    fn last_name_max(&self) -> i64 {
        i64::from(self.customers_per_district.min(1_000)) - 1
    }

    /// The site of a warehouse.
    fn site_of(&self, warehouse: i32) -> i32 {
        warehouse % i32::from(self.sites)
    }
}

/// The chances of the options, in integers.
#[derive(Clone, Copy, Debug)]
struct Chances {
    new_order: Chance,
    remote: Chance,
    payment_remote: Chance,
    payment_by_name: Chance,
    abort: Chance,
}

/// TPC-C.
pub struct Tpcc {
    options: Options,
    catalog: Catalog,
    tables: schema::Tables,
    constants: random::Constants,
    chances: Chances,
    new_order: ProcedureId,
    payment: ProcedureId,
}

impl Tpcc {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Tpcc, Error> {
        options.check()?;
        let chances = Chances {
            new_order: Chance::of_percent(options.new_order_percent, "new_order_percent")?,
            remote: Chance::of_percent(options.remote_percent, "remote_percent")?,
            payment_remote: Chance::of_percent(options.payment_remote_percent, "payment_remote_percent")?,
            payment_by_name: Chance::of_percent(options.payment_by_name_percent, "payment_by_name_percent")?,
            abort: Chance::of_percent(options.abort_percent, "abort_percent")?,
        };
        let (schema, tables) = schema::build()?;
        let mut procedures = Procedures::new();
        let new_order = procedures.register(NewOrder::new(tables.clone()))?;
        let payment = procedures.register(Payment::new(tables.clone()))?;
        let constants = random::Constants::new(options.seed);
        let catalog = Catalog { schema, procedures };
        Ok(Tpcc { options, catalog, tables, constants, chances, new_order, payment })
    }

    fn population(&self) -> population::Population<'_> {
        population::Population { options: &self.options, tables: &self.tables, constants: &self.constants }
    }
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        self.population().rows(part)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        self.population().load(part, sink)
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        Ok(Box::new(generator::Calls::new(self, seed, client, homes)?))
    }

    /// The consistency conditions 1 to 4, 8 and 9 of clause 3.3.2 (8 and 9 as differences to what was loaded), and what must
    /// have come of the committed calls. The list stands in the code.
    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        check::check(&self.options, &self.tables, reader, totals)
    }
}
