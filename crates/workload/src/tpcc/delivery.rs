//! Delivery (clause 2.7): delivers the oldest undelivered order of each district of a warehouse, all in one transaction.
//!
//! Which orders these are depends on data: the gateway finds them by reconnaissance (Calvin §3.2.1). It misses when another
//! Delivery of the warehouse comes in between. New Orders do not make it miss, since they come after the oldest order and only
//! what was seen of a range is protected; but in a district that has no undelivered order all of the range was seen.
//!
//! # Differences from the specification
//! The request is not queued and nothing is written to a result file (clause 2.7.2): the client waits for its answer, as for
//! any other call.

use arrayvec::ArrayVec;
use ordain_db::data::{DataError, Value};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::new_order::LINES_MAX;
use super::schema::{Tables, customer, order_line, orders};
use super::{DELIVERY, DISTRICT_TEXTS, Deliveries};

/// What to deliver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The warehouse.
    pub warehouse: i32,
    /// Who delivers, 1 to 10.
    pub carrier: i32,
    /// When, in microseconds since 1970.
    pub date: i64,
}

/// What was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// The number of the order that was delivered in each district, in order; none where there was none to deliver.
    pub orders: ArrayVec<Option<i32>, { DISTRICT_TEXTS }>,
}

impl Output {
    /// How many districts had nothing to deliver (clause 2.7.4.2).
    pub fn skipped(&self) -> usize {
        self.orders.iter().filter(|order| order.is_none()).count()
    }
}

/// The procedure. Aborts when the carrier is none.
pub struct Delivery {
    tables: Tables,
    /// Districts of each warehouse.
    districts: u16,
    deliveries: Deliveries,
}

impl Delivery {
    pub(super) fn new(tables: Tables, districts: u16, deliveries: Deliveries) -> Delivery {
        Delivery { tables, districts, deliveries }
    }

    /// The number of a district's oldest undelivered order.
    fn oldest(&self, place: (i32, i32), transaction: &mut Transaction<'_>) -> Result<Option<i32>, Stop> {
        let oldest = transaction.scan(&self.tables.new_order.prefix(place)?, 1)?;
        let Some(oldest) = oldest.first() else { return Ok(None) };
        let columns = self.tables.new_order.key_values(&oldest.key)?;
        let number = columns.last().and_then(|column| column.integer());
        number.map(|number| Some(number as i32)).ok_or_else(|| Stop::Invalid("malformed key".to_owned()))
    }

    /// Delivers one order: marks it and its lines, and charges its customer.
    fn deliver(
        &self,
        arguments: &Arguments,
        (district, order): (i32, i32),
        transaction: &mut Transaction<'_>,
    ) -> Result<(), Stop> {
        let Arguments { warehouse, carrier, date } = *arguments;
        let tables = &self.tables;
        transaction.delete(&tables.new_order.key((warehouse, district, order))?)?;
        let key = tables.orders.key((warehouse, district, order))?;
        let Some(row) = transaction.get(&key)? else {
            return Err(missing("order", warehouse, district, order));
        };
        let (customer, lines) = (row.int32(orders::CUSTOMER)?, row.int32(orders::LINE_COUNT)?);
        transaction.set(&tables.orders, &key, [(orders::CARRIER, Value::Int32(carrier))])?;
        let mut amount = 0;
        for line in 1..=lines.min(LINES_MAX as i32) {
            let key = tables.order_line.key((warehouse, district, order, line))?;
            let Some(row) = transaction.get(&key)? else {
                return Err(missing("a line of order", warehouse, district, order));
            };
            amount += row.int64(order_line::AMOUNT)?;
            let delivered = [(order_line::DELIVERY_DATE, Value::Int64(date))];
            transaction.set(&tables.order_line, &key, delivered)?;
        }
        let key = tables.customer.key((warehouse, district, customer))?;
        let Some(row) = transaction.get(&key)? else {
            return Err(missing("customer", warehouse, district, customer));
        };
        let balance = Value::Int64(row.int64(customer::BALANCE)? + amount);
        let count = Value::Int32(row.int32(customer::DELIVERY_COUNT)?.saturating_add(1));
        let charged = [(customer::BALANCE, balance), (customer::DELIVERY_COUNT, count)];
        transaction.set(&tables.customer, &key, charged)?;
        Ok(())
    }
}

fn missing(what: &str, warehouse: i32, district: i32, number: i32) -> Stop {
    Stop::Invalid(format!("{what} ({warehouse}, {district}, {number}) has no row"))
}

impl Procedure for Delivery {
    type Arguments = Arguments;
    type Output = Output;

    fn name(&self) -> &str {
        DELIVERY
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        if self.deliveries == Deliveries::Dependent {
            return Ok(Declared::Unknown);
        }
        let Tables { new_order, orders, order_line, customer, .. } = &self.tables;
        for table in [new_order, orders, order_line, customer] {
            footprint.update_range(&table.prefix((arguments.warehouse,))?)?;
        }
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        if !(1..=10).contains(&arguments.carrier) {
            return Err(Stop::abort("carriers are 1 to 10"));
        }
        let mut delivered = ArrayVec::new();
        for district in 1..=i32::from(self.districts) {
            let order = self.oldest((arguments.warehouse, district), transaction)?;
            if let Some(order) = order {
                self.deliver(arguments, (district, order), transaction)?;
            }
            delivered.push(order);
        }
        Ok(Output { orders: delivered })
    }
}
