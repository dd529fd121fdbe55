//! Stock-Level (clause 2.8): how many of the items that a district ordered last are low in stock. It reads only.
//!
//! # Its footprint
//! Which stock it reads depends on the district's last orders, and these change with every New Order: a footprint that
//! reconnaissance found would miss as long as anybody orders in the district. So the footprint is declared, and holds the
//! ranges in which all that it may read lies: the district's orders and lines, and the warehouse's stock. The price is that,
//! where it is called in the order, it waits for every New Order before it that takes from this stock, and those after it wait
//! for it. As a read of a snapshot it waits for nobody; the specification asks for no more than committed reads (clause
//! 2.8.2.3).

use ordain_db::data::DataError;
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::STOCK_LEVEL;
use super::schema::{Tables, district, order_line, orders, stock};

/// How many of a district's last orders are looked at (clause 2.8.2.2).
const ORDERS_SEEN: i32 = 20;

/// What to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The district's warehouse.
    pub warehouse: i32,
    /// The district.
    pub district: i32,
    /// Below this quantity an item is low in stock; 10 to 20 by the specification.
    pub threshold: i32,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// How many items are low in stock.
    pub low: u32,
}

/// The procedure. Aborts when the district does not exist.
pub struct StockLevel {
    tables: Tables,
}

impl StockLevel {
    pub(super) fn new(tables: Tables) -> StockLevel {
        StockLevel { tables }
    }

    /// The items of the district's last orders, each once.
    fn items(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Vec<i32>, Stop> {
        let Arguments { warehouse, district, .. } = *arguments;
        let key = self.tables.district.key((warehouse, district))?;
        let Some(row) = transaction.get(&key)? else {
            return Err(Stop::abort(format!("there is no district ({warehouse}, {district})")));
        };
        let next = row.int32(district::NEXT_ORDER)?;
        let mut items = Vec::new();
        for order in (next - ORDERS_SEEN).max(1)..next {
            let key = self.tables.orders.key((warehouse, district, order))?;
            let Some(row) = transaction.get(&key)? else {
                return Err(Stop::Invalid(format!("order ({warehouse}, {district}, {order}) has no row")));
            };
            for line in 1..=row.int32(orders::LINE_COUNT)? {
                let key = self.tables.order_line.key((warehouse, district, order, line))?;
                let Some(row) = transaction.get(&key)? else {
                    let problem = format!("a line of order ({warehouse}, {district}, {order}) has no row");
                    return Err(Stop::Invalid(problem));
                };
                items.push(row.int32(order_line::ITEM)?);
            }
        }
        items.sort_unstable();
        items.dedup();
        Ok(items)
    }
}

impl Procedure for StockLevel {
    type Arguments = Arguments;
    type Output = Output;

    fn name(&self) -> &str {
        STOCK_LEVEL
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        let Arguments { warehouse, district, .. } = *arguments;
        footprint.read(&self.tables.district.key((warehouse, district))?)?;
        for table in [&self.tables.orders, &self.tables.order_line] {
            footprint.read_range(&table.prefix((warehouse, district))?)?;
        }
        footprint.read_range(&self.tables.stock.prefix((warehouse,))?)?;
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let Arguments { warehouse, threshold, .. } = *arguments;
        let mut low = 0;
        for item in self.items(arguments, transaction)? {
            let key = self.tables.stock.key((warehouse, item))?;
            let Some(row) = transaction.get(&key)? else {
                return Err(Stop::Invalid(format!("warehouse {warehouse} has no stock row of item {item}")));
            };
            low += u32::from(row.int32(stock::QUANTITY)? < threshold);
        }
        Ok(Output { low })
    }
}
