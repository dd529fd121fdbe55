//! TPC-C after the TPC-C standard specification, revision 5.11; clauses are cited as "clause 2.4".
//!
//! The papers run New Order and Payment; the [`Mix`] says whether these two are called, or all five transactions in the shares
//! of clause 5.2.3. All nine tables have the specification's columns. Money is in cents (int64), rates are in basis points (int32), dates in
//! microseconds since 1970 (int64). `item` is replicated to every partition; every other table is partitioned by its
//! warehouse. `customer_by_name` is the secondary index that Payment and Order-Status by last name need, as an ordinary table.
//! `orders_by_customer` is the one by which Order-Status finds a customer's last order; New Order keeps it up in the full mix,
//! and else it is empty, so that the figures of the two transactions alone are those without it.
//!
//! # Differences from the specification
//! - A generator has no clock, keying or think times, and draws its home warehouse, and Stock-Level's district, for each call; a
//!   benchmark sets the rate.
//! - "Remote" means a warehouse of another *site*, never another one of the same (Calvin §6.1, CAL-118). The chance is that
//!   of a transaction to be remote, as the papers vary it (DET-52), or that of a line, as in the specification; see [`Remote`].
//! - A New Order with an unused item number aborts before its first write (clause 2.4.2.3 lets it do its writes first and roll
//!   them back); every item is still read.
//! - `history` has no key in the specification; here a number that the client chooses makes its rows unique.
//! - Results leave out the terminal's addresses (clauses 2.4.3.5, 2.5.3.4).
//! - Delivery is not queued; see [`Delivery`].

mod check;
mod conditions;
mod customer_name;
mod delivery;
mod generator;
mod new_order;
mod order_status;
mod payment;
mod population;
mod random;
mod schema;
mod stock_level;

use ordain_db::data::Key;
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures, Stop};

use crate::check::{CheckLine, SnapshotReader, Totals};
use crate::random::Chance;
use crate::{Generator, Mode, Part, Workload};

pub use customer_name::CustomerName;
pub use delivery::{Arguments as DeliveryArguments, Delivery, Output as DeliveryOutput};
pub use new_order::{Arguments as NewOrderArguments, Line, LineResult, NewOrder, Output as NewOrderOutput};
pub use order_status::{
    Arguments as OrderStatusArguments, LastOrder, OrderStatus, OrderedLine, Output as OrderStatusOutput,
};
pub use payment::{Arguments as PaymentArguments, Output as PaymentOutput, Payment};
pub use random::{LastName, last_name, non_uniform};
pub use stock_level::{Arguments as StockLevelArguments, Output as StockLevelOutput, StockLevel};

/// The name of the New Order procedure.
pub const NEW_ORDER: &str = "new_order";

/// The name of the Payment procedure.
pub const PAYMENT: &str = "payment";

/// The name of the Order-Status procedure.
pub const ORDER_STATUS: &str = "order_status";

/// The name of the Delivery procedure.
pub const DELIVERY: &str = "delivery";

/// The name of the Stock-Level procedure.
pub const STOCK_LEVEL: &str = "stock_level";

/// Texts for districts in a row of `stock` (clause 1.3.1), and with them the most districts of an ordinary warehouse. Districts of
/// the scaled one share them.
pub const DISTRICT_TEXTS: usize = 10;

/// When the rows were loaded, in microseconds since 1970: the first moment of 2020.
pub const LOADED_AT: i64 = 1_577_836_800_000_000;

/// Money in each district's `d_ytd` at first, in cents (clause 4.3.3.1).
pub(crate) const DISTRICT_YTD_LOADED: i64 = 3_000_000;

/// Money that each customer has paid at first, in cents (clause 4.3.3.1).
pub(crate) const PAYMENT_LOADED: i64 = 1_000;

/// Which transactions are called.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mix {
    /// New Orders, this many percent, and Payments. 100 is what Calvin §6.1 runs, half of each what Ren et al. §3.4 do.
    NewOrderPayment(f64),
    /// All five: of every 100 calls 45 are New Orders, 43 Payments, and 4 each Order-Status, Delivery and Stock-Level, in random
    /// order (clause 5.2.3, with a deck of cards as in clause 5.2.4.2).
    Full {
        /// How Order-Status and Stock-Level are called.
        reads: Mode,
        /// How the keys of Deliveries are known.
        deliveries: Deliveries,
    },
}

/// How the keys of Deliveries are known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Deliveries {
    /// They depend on data and are found by reconnaissance; see [`Delivery`] for how often that misses.
    #[default]
    Dependent,
    /// All ranges in which they may lie are declared.
    Declared,
}

/// How the keys of the rows that a New Order inserts are known. They have the order's number in them, which is in the district's row.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OrderNumbers {
    /// The ranges in which they lie are declared, beside the district's row: whoever is behind waits for the number, and nobody
    /// starts over (key dependency: Fan and Golab §IV-E).
    #[default]
    Declared,
    /// They depend on data: the number is read before the call is ordered, and whoever finds another one then starts over (the
    /// optimistic form of §IV-E). To compare with (ALO-X11 f).
    Dependent,
}

impl Mix {
    /// All five, called in the order, with dependent Deliveries.
    pub const FULL: Mix = Mix::Full { reads: Mode::Ordered, deliveries: Deliveries::Dependent };

    /// Whether `orders_by_customer` is kept up.
    fn indexes_orders(self) -> bool {
        matches!(self, Mix::Full { .. })
    }
}

/// Which New Orders take something from another site. None do when there is one site.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Remote {
    /// This many percent of New Orders, all from one warehouse: one line for certain, each other line with a chance of 1%.
    Orders(f64),
    /// This many percent of lines, each from a warehouse of its own; 1 by clause 2.4.1.5, which makes about 10% of New Orders.
    Lines(f64),
}

/// What a partition holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Layout {
    /// All of some warehouses: the ordinary TPC-C.
    #[default]
    Warehouses,
    /// Some districts of the one warehouse, with their customers and orders, and the stock of some of its items: the scaled TPC-C
    /// of Fan and Golab (§V-A1, ALO-X02). The warehouse's row is on every partition. New Orders alone are called, since they only
    /// read it; the paper takes its `w_ytd` away for that. A New Order takes part wherever its items are, so that the more
    /// partitions there are, the more take part in it.
    DistrictsAndItems,
}

impl Layout {
    /// The column by which the rows of a table are spread: the warehouse's number, or that of what is within a warehouse.
    fn column<'c>(self, warehouse: &'c str, within: &'c str) -> &'c str {
        match self {
            Layout::Warehouses => warehouse,
            Layout::DistrictsAndItems => within,
        }
    }

    /// What a client's calls come from some of, for people.
    fn homes_name(self) -> &'static str {
        match self {
            Layout::Warehouses => "warehouses",
            Layout::DistrictsAndItems => "districts",
        }
    }

    /// The most districts of a warehouse.
    fn districts_max(self) -> u64 {
        match self {
            Layout::Warehouses => DISTRICT_TEXTS as u64,
            Layout::DistrictsAndItems => u64::from(u16::MAX),
        }
    }
}

/// Settings of TPC-C.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Seed of the rows and of the constants of the non-uniform draws.
    pub seed: u64,
    /// Number of sites: warehouse `w` belongs to site `w` modulo `sites`.
    pub sites: u16,
    /// What a partition holds.
    pub layout: Layout,
    /// Warehouses, numbered from 1. The papers have 10 (Calvin §6.1) or 20 (DET-52) per partition, and one in the scaled layout.
    pub warehouses: u32,
    /// Items, and stock rows of each warehouse; 100,000 by the specification.
    pub items: u32,
    /// Districts of each warehouse; 10 by the specification, and at most. In the scaled layout 1 to 10 per partition, in all.
    pub districts_per_warehouse: u16,
    /// Customers of each district; 3,000 by the specification.
    pub customers_per_district: u32,
    /// Orders of each district at first; 3,000 by the specification. The last 30% are undelivered.
    pub orders_per_district: u32,
    /// Which transactions are called.
    pub mix: Mix,
    /// Which New Orders take something from another site.
    pub remote: Remote,
    /// Share of Payments whose customer is at another site, in percent; 15 by clause 2.5.1.2. None when there is one site.
    pub payment_remote_percent: f64,
    /// Share of Payments and Order-Statuses that name the customer by last name, in percent; 60 by clauses 2.5.1.2 and 2.6.1.2.
    pub by_name_percent: f64,
    /// How the keys of the rows that a New Order inserts are known.
    pub order_numbers: OrderNumbers,
    /// Whether New Orders and Payments declare functors. Without them they are the procedures as they are, which an engine that computes
    /// functors runs as a whole: to compare with.
    pub functors: bool,
    /// Share of New Orders whose last item is unused and that therefore abort, in percent; 1 by clause 2.4.1.4.
    pub abort_percent: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            sites: 1,
            layout: Layout::Warehouses,
            warehouses: 1,
            items: 100_000,
            districts_per_warehouse: 10,
            customers_per_district: 3_000,
            orders_per_district: 3_000,
            mix: Mix::NewOrderPayment(100.0),
            remote: Remote::Orders(10.0),
            payment_remote_percent: 15.0,
            by_name_percent: 60.0,
            order_numbers: OrderNumbers::Declared,
            functors: true,
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
            ("districts_per_warehouse", u64::from(self.districts_per_warehouse), self.layout.districts_max()),
            ("customers_per_district", u64::from(self.customers_per_district), 1_000_000),
            ("orders_per_district", u64::from(self.orders_per_district), 1_000_000),
        ];
        for (option, value, maximum) in bounded {
            if value < 1 || value > maximum {
                return Err(Error::Invalid(format!("tpcc: {option} is {value}: give 1 to {maximum}")));
            }
        }
        let scaled = self.layout == Layout::DistrictsAndItems;
        if scaled && (self.warehouses != 1 || self.mix != Mix::NewOrderPayment(100.0)) {
            let problem =
                "scaled tpcc has one warehouse and calls New Orders alone: give 1 and a mix of 100%";
            return Err(Error::Invalid(problem.to_owned()));
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

    /// How many numbers there are by which rows are spread, from 1: a client's calls come from some of these.
    fn homes(&self) -> i64 {
        match self.layout {
            Layout::Warehouses => i64::from(self.warehouses),
            Layout::DistrictsAndItems => i64::from(self.districts_per_warehouse),
        }
    }

    /// The site of a warehouse.
    fn site_of(&self, warehouse: i32) -> i32 {
        warehouse % i32::from(self.sites)
    }
}

/// How many there are of what is loaded and never deleted: which of them exist can be told without reading.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    warehouses: i32,
    districts: i32,
    customers: i32,
}

impl Sizes {
    fn of(options: &Options) -> Sizes {
        Sizes {
            warehouses: options.warehouses as i32,
            districts: i32::from(options.districts_per_warehouse),
            customers: options.customers_per_district as i32,
        }
    }

    /// Aborts unless there is such a warehouse.
    fn check_warehouse(&self, warehouse: i32) -> Result<(), Stop> {
        match (1..=self.warehouses).contains(&warehouse) {
            true => Ok(()),
            false => Err(Stop::abort(format!("there is no warehouse {warehouse}"))),
        }
    }

    /// Aborts unless there are such a warehouse, district, and customer.
    fn check(&self, warehouse: i32, district: i32, customer: Option<i32>) -> Result<(), Stop> {
        self.check_warehouse(warehouse)?;
        if !(1..=self.districts).contains(&district) {
            return Err(Stop::abort(format!("there is no district ({warehouse}, {district})")));
        }
        match customer.filter(|number| !(1..=self.customers).contains(number)) {
            None => Ok(()),
            Some(number) => {
                Err(Stop::abort(format!("there is no customer ({warehouse}, {district}, {number})")))
            }
        }
    }
}

/// The chances of the options, in integers.
#[derive(Clone, Copy, Debug)]
struct Chances {
    /// Of an order to take something from another site.
    remote_order: Chance,
    /// Of a line to do so: in an order that does, or in any order if `remote_order` is zero.
    remote_line: Chance,
    payment_remote: Chance,
    by_name: Chance,
    abort: Chance,
}

impl Chances {
    fn of(options: &Options) -> Result<Chances, Error> {
        let (order, line) = match options.remote {
            Remote::Orders(percent) => (percent, 1.0),
            Remote::Lines(percent) => (0.0, percent),
        };
        Ok(Chances {
            remote_order: Chance::of_percent(order, "remote orders")?,
            remote_line: Chance::of_percent(line, "remote lines")?,
            payment_remote: Chance::of_percent(options.payment_remote_percent, "payment_remote_percent")?,
            by_name: Chance::of_percent(options.by_name_percent, "by_name_percent")?,
            abort: Chance::of_percent(options.abort_percent, "abort_percent")?,
        })
    }
}

/// The procedures that are called, by the mix.
#[derive(Clone, Copy, Debug)]
enum Called {
    /// New Orders with a chance, and Payments.
    NewOrderPayment(Chance),
    Full {
        reads: Mode,
        order_status: ProcedureId,
        delivery: ProcedureId,
        stock_level: ProcedureId,
    },
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
    called: Called,
}

impl Tpcc {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Tpcc, Error> {
        options.check()?;
        let chances = Chances::of(&options)?;
        let (schema, tables) = schema::build(options.layout)?;
        let sizes = Sizes::of(&options);
        let mut procedures = Procedures::new();
        let new_order = procedures.register(NewOrder::new(tables.clone(), sizes, &options))?;
        let payment = procedures.register(Payment::new(tables.clone(), sizes, options.functors))?;
        let called = match options.mix {
            Mix::NewOrderPayment(percent) => {
                Called::NewOrderPayment(Chance::of_percent(percent, "new_order_percent")?)
            }
            Mix::Full { reads, deliveries } => Called::Full {
                reads,
                order_status: procedures.register(OrderStatus::new(tables.clone()))?,
                delivery: procedures.register(Delivery::new(
                    tables.clone(),
                    options.districts_per_warehouse,
                    deliveries,
                ))?,
                stock_level: procedures.register(StockLevel::new(tables.clone()))?,
            },
        };
        let constants = random::Constants::new(options.seed);
        let catalog = Catalog { schema, procedures };
        Ok(Tpcc { options, catalog, tables, constants, chances, new_order, payment, called })
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

    /// The consistency conditions 1 to 12 of clause 3.3.2 (8, 9 and 11 as differences to what was loaded), and what must have
    /// come of the committed calls.
    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        check::check(&self.options, &self.tables, reader, totals)
    }
}
