//! Order-Status (clause 2.6): a customer's balance, and its last order with all lines. It reads only.
//!
//! The last order is the first row of the customer in `orders_by_customer`; the lines are numbered from 1 to `o_ol_cnt`. So
//! the keys depend on data, and where it is called in the order the gateway finds them by reconnaissance (Calvin §3.2.1). It
//! misses when the customer orders in between, and not otherwise: only what was seen of the index is protected.

use arrayvec::{ArrayString, ArrayVec};
use ordain_db::procedure::{Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::ORDER_STATUS;
use super::customer_name::CustomerName;
use super::new_order::{LINES_MAX, short};
use super::random::LastName;
use super::schema::{Tables, customer, order_line, orders};

/// Whose order to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The customer's warehouse.
    pub warehouse: i32,
    /// The customer's district.
    pub district: i32,
    /// The customer.
    pub customer: CustomerName,
}

/// One line of the order (clause 2.6.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OrderedLine {
    /// `ol_i_id`.
    pub item: i32,
    /// `ol_supply_w_id`.
    pub supply_warehouse: i32,
    /// `ol_quantity`.
    pub quantity: i32,
    /// `ol_amount`, in cents.
    pub amount: i64,
    /// `ol_delivery_d`, in microseconds since 1970; none while it is undelivered.
    pub delivery_date: Option<i64>,
}

/// The last order (clause 2.6.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastOrder {
    /// `o_id`.
    pub order: i32,
    /// `o_entry_d`, in microseconds since 1970.
    pub entry_date: i64,
    /// `o_carrier_id`; none while it is undelivered.
    pub carrier: Option<i32>,
    /// The lines, in order.
    pub lines: ArrayVec<OrderedLine, LINES_MAX>,
}

/// The customer and its last order (clause 2.6.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// `c_id`.
    pub customer: i32,
    /// `c_first`.
    pub first: ArrayString<16>,
    /// `c_middle`.
    pub middle: ArrayString<2>,
    /// `c_last`.
    pub last: LastName,
    /// `c_balance`, in cents.
    pub balance: i64,
    /// None if the customer never ordered: possible only with fewer orders than customers at first.
    pub order: Option<LastOrder>,
}

/// The procedure. Aborts when the customer does not exist.
pub struct OrderStatus {
    tables: Tables,
}

impl OrderStatus {
    pub(super) fn new(tables: Tables) -> OrderStatus {
        OrderStatus { tables }
    }

    /// The number of the customer's last order.
    fn last_order(
        &self,
        place: (i32, i32, i32),
        transaction: &mut Transaction<'_>,
    ) -> Result<Option<i32>, Stop> {
        let newest = transaction.scan(&self.tables.orders_by_customer.prefix(place)?, 1)?;
        let Some(newest) = newest.first() else { return Ok(None) };
        let columns = self.tables.orders_by_customer.key_values(&newest.key)?;
        let negated = columns.last().and_then(|column| column.integer());
        let negated = negated.ok_or_else(|| Stop::Invalid("malformed index key".to_owned()))?;
        Ok(Some(-negated as i32))
    }

    fn read_order(
        &self,
        (warehouse, district, order): (i32, i32, i32),
        transaction: &mut Transaction<'_>,
    ) -> Result<LastOrder, Stop> {
        let key = self.tables.orders.key((warehouse, district, order))?;
        let Some(row) = transaction.get(&key)? else {
            return Err(Stop::Invalid(format!("order ({warehouse}, {district}, {order}) has no row")));
        };
        let (entry_date, count) = (row.int64(orders::ENTRY_DATE)?, row.int32(orders::LINE_COUNT)?);
        let carrier = if row.is_null(orders::CARRIER)? { None } else { Some(row.int32(orders::CARRIER)?) };
        let mut lines = ArrayVec::new();
        for number in 1..=count.min(LINES_MAX as i32) {
            let key = self.tables.order_line.key((warehouse, district, order, number))?;
            let Some(row) = transaction.get(&key)? else {
                let place = format_args!("({warehouse}, {district}, {order}, {number})");
                return Err(Stop::Invalid(format!("order line {place} has no row")));
            };
            let delivered = !row.is_null(order_line::DELIVERY_DATE)?;
            lines.push(OrderedLine {
                item: row.int32(order_line::ITEM)?,
                supply_warehouse: row.int32(order_line::SUPPLY_WAREHOUSE)?,
                quantity: row.int32(order_line::QUANTITY)?,
                amount: row.int64(order_line::AMOUNT)?,
                delivery_date: if delivered { Some(row.int64(order_line::DELIVERY_DATE)?) } else { None },
            });
        }
        Ok(LastOrder { order, entry_date, carrier, lines })
    }
}

impl Procedure for OrderStatus {
    type Arguments = Arguments;
    type Output = Output;

    fn name(&self) -> &str {
        ORDER_STATUS
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let Arguments { warehouse, district, customer } = *arguments;
        let customer = customer.find(&self.tables, (warehouse, district), transaction)?;
        let key = self.tables.customer.key((warehouse, district, customer))?;
        let Some(row) = transaction.get(&key)? else {
            return Err(Stop::abort(format!("there is no customer {customer} in the district")));
        };
        let mut output = Output {
            customer,
            first: short(row.text(customer::FIRST)?)?,
            middle: short(row.text(customer::MIDDLE)?)?,
            last: short(row.text(customer::LAST)?)?,
            balance: row.int64(customer::BALANCE)?,
            order: None,
        };
        if let Some(order) = self.last_order((warehouse, district, customer), transaction)? {
            output.order = Some(self.read_order((warehouse, district, order), transaction)?);
        }
        Ok(output)
    }
}
