//! New Order (clause 2.4).
//!
//! # Keys of what is inserted
//! The order's number comes from the district row at run time, so the keys of the rows that are inserted are not known
//! when the footprint is declared (trap 13). The footprint therefore has the district row for update, and the ranges of
//! `orders`, `new_order` and `order_line` that start with the warehouse and district for writing. The rule: *whoever inserts
//! into these ranges holds the district row exclusively*, so the range locks never make anybody wait who does not wait for
//! the district anyway (CAL-119), and the ranges belong to the warehouse's partition, where the rows go. The index
//! `orders_by_customer`, where it is kept up, gets a row under its customer: only an Order-Status of that customer waits for it.
//!
//! With [`OrderNumbers::Dependent`] nothing is declared: the number is found by reconnaissance, and with it the keys. Whoever was
//! overtaken by another order of the district has a footprint that no longer holds, and starts over. There are no functors then.
//!
//! # Order of accesses
//! Items come first: an unused item number aborts before anything is written, so the procedure needs no undo.
//!
//! # Functors
//! The district's next number and each stock row follow from themselves and the arguments (Fan and Golab, §V-A2). Whether the order
//! aborts follows from the arguments and from the items, which every partition has: that is the guard. So nobody who has only stock
//! waits for the home of the order, and the number is known where the order goes before anything comes from elsewhere. Without them
//! ([`Options::functors`]), the same keys are declared for updating.

use arrayvec::{ArrayString, ArrayVec};
use ordain_db::data::{DataError, Key, Row, Value};
use ordain_db::procedure::{
    Arithmetic, Declaration, Declared, Functor, OwnRow, Procedure, Stop, Transaction,
};
use serde::{Deserialize, Serialize};

use super::random::LastName;
use super::schema::{Tables, customer, district, item, stock, warehouse};
use super::{DISTRICT_TEXTS, NEW_ORDER, Options, OrderNumbers, Sizes};

/// Most lines of an order (clause 2.4.1.3).
pub(crate) const LINES_MAX: usize = 15;

/// One line to order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The item's number.
    pub item: i32,
    /// The warehouse that supplies it.
    pub supply_warehouse: i32,
    /// How many, 1 to 10.
    pub quantity: i32,
}

/// What to order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The customer's warehouse.
    pub warehouse: i32,
    /// The customer's district.
    pub district: i32,
    /// The customer's number.
    pub customer: i32,
    /// When the order was entered, in microseconds since 1970.
    pub entry_date: i64,
    /// The lines, 1 to 15 (the specification orders at least 5).
    pub lines: ArrayVec<Line, LINES_MAX>,
}

/// One line as ordered (clause 2.4.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineResult {
    /// `i_name`.
    pub item_name: ArrayString<24>,
    /// `s_quantity` after the order.
    pub stock_quantity: i32,
    /// `B` when both the item's and the stock's data have "ORIGINAL", else `G`.
    pub brand_generic: char,
    /// `i_price`, in cents.
    pub price: i64,
    /// `ol_amount`, in cents: quantity times price.
    pub amount: i64,
}

/// The order as entered (clause 2.4.3.5).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// `o_id`.
    pub order: i32,
    /// `c_last`.
    pub customer_last: LastName,
    /// `c_credit`.
    pub customer_credit: ArrayString<2>,
    /// `c_discount`, in basis points.
    pub discount: i32,
    /// `w_tax`, in basis points.
    pub warehouse_tax: i32,
    /// `d_tax`, in basis points.
    pub district_tax: i32,
    /// In cents: the sum of the amounts, times 1 less the discount, times 1 plus both taxes; rounded once, half up.
    pub total: i64,
    /// The lines, in order.
    pub lines: ArrayVec<LineResult, LINES_MAX>,
}

/// The procedure. Aborts when an item, the customer, the district or a warehouse does not exist.
pub struct NewOrder {
    tables: Tables,
    sizes: Sizes,
    /// Whether `orders_by_customer` is kept up.
    indexes_orders: bool,
    order_numbers: OrderNumbers,
    functors: bool,
}

/// Fetches a row that was loaded and is never deleted.
macro_rules! fetch {
    ($transaction:expr, $key:expr, $($name:tt)*) => {
        $transaction
            .get($key)?
            .ok_or_else(|| Stop::Invalid(format!("{} was not loaded", format_args!($($name)*))))?
    };
}

impl NewOrder {
    pub(super) fn new(tables: Tables, sizes: Sizes, options: &Options) -> NewOrder {
        let Options { mix, order_numbers, functors, .. } = *options;
        NewOrder { tables, sizes, indexes_orders: mix.indexes_orders(), order_numbers, functors }
    }

    /// What an order with a number touches after that is known, where the keys depend on it.
    fn declare_numbered(
        &self,
        arguments: &Arguments,
        order: i32,
        footprint: &mut Declaration<'_>,
    ) -> Result<(), DataError> {
        let Arguments { warehouse, district, customer, .. } = *arguments;
        footprint.update(&self.tables.district.key((warehouse, district))?)?;
        for (number, line) in (1..).zip(&arguments.lines) {
            footprint.update(&self.tables.stock.key((line.supply_warehouse, line.item))?)?;
            footprint.write(&self.tables.order_line.key((warehouse, district, order, number))?)?;
        }
        footprint.write(&self.tables.orders.key((warehouse, district, order))?)?;
        footprint.write(&self.tables.new_order.key((warehouse, district, order))?)?;
        if self.indexes_orders {
            let key = self.tables.orders_by_customer.key((warehouse, district, customer, -order))?;
            footprint.write(&key)?;
        }
        Ok(())
    }

    /// What can be told from the arguments alone.
    fn check(&self, arguments: &Arguments) -> Result<(), Stop> {
        if arguments.lines.is_empty() {
            return Err(Stop::abort("an order needs a line"));
        }
        if !arguments.lines.iter().all(|line| (1..=10).contains(&line.quantity)) {
            return Err(Stop::abort("quantities are 1 to 10"));
        }
        self.sizes.check(arguments.warehouse, arguments.district, Some(arguments.customer))?;
        arguments.lines.iter().try_for_each(|line| self.sizes.check_warehouse(line.supply_warehouse))
    }

    fn item<'t>(&self, number: i32, transaction: &'t mut Transaction<'_>) -> Result<Row<'t>, Stop> {
        let row = transaction.get(&self.tables.item.key((number,))?)?;
        row.ok_or_else(|| Stop::abort(format!("there is no item {number}")))
    }

    /// Reads all items; whether each is original is left in `brand_generic` until its stock is known.
    fn items(
        &self,
        arguments: &Arguments,
        transaction: &mut Transaction<'_>,
    ) -> Result<ArrayVec<LineResult, LINES_MAX>, Stop> {
        let mut lines = ArrayVec::new();
        for line in &arguments.lines {
            let row = self.item(line.item, transaction)?;
            let price = row.int64(item::PRICE)?;
            lines.push(LineResult {
                item_name: short(row.text(item::NAME)?)?,
                stock_quantity: 0,
                brand_generic: if original(&row, item::DATA)? { 'B' } else { 'G' },
                price,
                amount: price * i64::from(line.quantity),
            });
        }
        Ok(lines)
    }

    /// Takes a line from its stock and inserts it.
    fn take(
        &self,
        arguments: &Arguments,
        order: i32,
        index: usize,
        result: &mut LineResult,
        transaction: &mut Transaction<'_>,
    ) -> Result<(), Stop> {
        let Line { item, supply_warehouse, quantity } = arguments.lines[index];
        let key = self.tables.stock.key((supply_warehouse, item))?;
        let row = fetch!(transaction, &key, "stock of item {item} in warehouse {supply_warehouse}");
        let district_column = stock::DISTRICT_01 + (arguments.district as usize - 1) % DISTRICT_TEXTS;
        let info: ArrayString<24> = short(row.text(district_column)?)?;
        if result.brand_generic == 'B' && !original(&row, stock::DATA)? {
            result.brand_generic = 'G';
        }
        let changes = restocked(&row, arguments, index)?;
        result.stock_quantity = restock(row.int32(stock::QUANTITY)?, quantity);
        transaction.set(&self.tables.stock, &key, changes)?;
        let line_key =
            self.tables.order_line.key((arguments.warehouse, arguments.district, order, index as i32 + 1))?;
        let line = (item, supply_warehouse, None::<i64>, quantity, result.amount, &*info);
        transaction.put(&self.tables.order_line, &line_key, line)
    }

    /// Inserts the order and its mark as undelivered.
    fn insert(
        &self,
        arguments: &Arguments,
        order: i32,
        transaction: &mut Transaction<'_>,
    ) -> Result<(), Stop> {
        let Arguments { warehouse, district, customer, entry_date, lines } = arguments;
        let all_local = lines.iter().all(|line| line.supply_warehouse == *warehouse);
        let row = (*customer, *entry_date, None::<i32>, lines.len() as i32, all_local);
        let key = self.tables.orders.key((*warehouse, *district, order))?;
        transaction.put(&self.tables.orders, &key, row)?;
        let key = self.tables.new_order.key((*warehouse, *district, order))?;
        let no_columns: &[Value<'_>] = &[];
        transaction.put(&self.tables.new_order, &key, no_columns)?;
        if self.indexes_orders {
            let key = self.tables.orders_by_customer.key((*warehouse, *district, *customer, -order))?;
            transaction.put(&self.tables.orders_by_customer, &key, no_columns)?;
        }
        Ok(())
    }
}

impl Procedure for NewOrder {
    type Arguments = Arguments;
    type Output = Output;

    fn name(&self) -> &str {
        NEW_ORDER
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        if self.order_numbers == OrderNumbers::Dependent {
            return Ok(Declared::Unknown);
        }
        let Arguments { warehouse, district, customer, .. } = *arguments;
        for line in &arguments.lines {
            let item = self.tables.item.key((line.item,))?;
            if self.functors { footprint.guard(&item)? } else { footprint.read(&item)? }
        }
        footprint.read(&self.tables.warehouse.key((warehouse,))?)?;
        footprint.read(&self.tables.customer.key((warehouse, district, customer))?)?;
        let next = Functor::Arithmetic { column: district::NEXT_ORDER, operation: Arithmetic::Add(1) };
        let mut written = |key: &Key, functor| match self.functors {
            true => footprint.functor(key, functor),
            false => footprint.update(key),
        };
        written(&self.tables.district.key((warehouse, district))?, next)?;
        for (index, line) in (0..).zip(&arguments.lines) {
            written(&self.tables.stock.key((line.supply_warehouse, line.item))?, Functor::Own(index))?;
        }
        for table in [&self.tables.orders, &self.tables.new_order, &self.tables.order_line] {
            footprint.write_range(&table.prefix((warehouse, district))?)?;
        }
        if self.indexes_orders {
            let of_customer = self.tables.orders_by_customer.prefix((warehouse, district, customer))?;
            footprint.write_range(&of_customer)?;
        }
        Ok(Declared::Complete)
    }

    fn guard(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.check(arguments)?;
        arguments.lines.iter().try_for_each(|line| self.item(line.item, transaction).map(|_| ()))
    }

    fn functors(&self) -> u16 {
        LINES_MAX as u16
    }

    fn functor(&self, arguments: &Arguments, index: u16, stock: &mut OwnRow<'_>) -> Result<(), Stop> {
        let index = usize::from(index);
        let Some(row) = stock.get()? else {
            let Line { item, supply_warehouse, .. } = arguments.lines[index];
            let missing = format!("stock of item {item} in warehouse {supply_warehouse} was not loaded");
            return Err(Stop::Invalid(missing));
        };
        let changes = restocked(&row, arguments, index)?;
        stock.set(changes)?;
        Ok(())
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let Arguments { warehouse, district, customer, .. } = *arguments;
        self.check(arguments)?;
        let mut lines = self.items(arguments, transaction)?;
        let key = self.tables.warehouse.key((warehouse,))?;
        let warehouse_tax = fetch!(transaction, &key, "warehouse {warehouse}").int32(warehouse::TAX)?;
        let key = self.tables.customer.key((warehouse, district, customer))?;
        let row = fetch!(transaction, &key, "customer ({warehouse}, {district}, {customer})");
        let discount = row.int32(customer::DISCOUNT)?;
        let customer_last = short(row.text(customer::LAST)?)?;
        let customer_credit = short(row.text(customer::CREDIT)?)?;
        let key = self.tables.district.key((warehouse, district))?;
        let row = fetch!(transaction, &key, "district ({warehouse}, {district})");
        let district_tax = row.int32(district::TAX)?;
        let order = row.int32(district::NEXT_ORDER)?;
        if self.order_numbers == OrderNumbers::Dependent {
            transaction.declare_rest(|footprint| self.declare_numbered(arguments, order, footprint))?;
        }
        transaction.set(&self.tables.district, &key, [(district::NEXT_ORDER, Value::Int32(order + 1))])?;
        for (index, result) in lines.iter_mut().enumerate() {
            self.take(arguments, order, index, result, transaction)?;
        }
        self.insert(arguments, order, transaction)?;
        let sum: i64 = lines.iter().map(|line| line.amount).sum();
        let total = total(sum, discount, warehouse_tax + district_tax);
        Ok(Output {
            order,
            customer_last,
            customer_credit,
            discount,
            warehouse_tax,
            district_tax,
            total,
            lines,
        })
    }
}

/// The columns of a stock row after a line of an order.
fn restocked(
    row: &Row<'_>,
    arguments: &Arguments,
    index: usize,
) -> Result<[(usize, Value<'static>); 4], DataError> {
    let Line { supply_warehouse, quantity, .. } = arguments.lines[index];
    let remote = i32::from(supply_warehouse != arguments.warehouse);
    Ok([
        (stock::QUANTITY, Value::Int32(restock(row.int32(stock::QUANTITY)?, quantity))),
        (stock::YTD, Value::Int32(row.int32(stock::YTD)?.saturating_add(quantity))),
        (stock::ORDER_COUNT, Value::Int32(row.int32(stock::ORDER_COUNT)?.saturating_add(1))),
        (stock::REMOTE_COUNT, Value::Int32(row.int32(stock::REMOTE_COUNT)?.saturating_add(remote))),
    ])
}

/// The stock after an order: ten are left at least, else 91 come in (clause 2.4.2.2).
fn restock(stock: i32, ordered: i32) -> i32 {
    if stock >= ordered + 10 { stock - ordered } else { stock - ordered + 91 }
}

/// In cents, from cents and basis points: exact until one division at the end, which rounds half up.
fn total(sum: i64, discount: i32, tax: i32) -> i64 {
    const SCALE: i64 = 10_000 * 10_000;
    (sum * i64::from(10_000 - discount) * i64::from(10_000 + tax) + SCALE / 2) / SCALE
}

fn original(row: &Row<'_>, column: usize) -> Result<bool, DataError> {
    Ok(row.text_bytes(column)?.windows(8).any(|part| part == b"ORIGINAL"))
}

/// Copies a text out of a row.
pub(super) fn short<const LENGTH: usize>(text: &str) -> Result<ArrayString<LENGTH>, Stop> {
    ArrayString::from(text).map_err(|_| Stop::Invalid(format!("text {text:?} is longer than {LENGTH} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_stays_at_ten_or_more() {
        assert_eq!(restock(20, 10), 10);
        assert_eq!(restock(19, 10), 100);
        assert_eq!(restock(10, 1), 100);
        assert_eq!(restock(11, 1), 10);
    }

    #[test]
    fn totals_round_half_up_once() {
        assert_eq!(total(10_000, 0, 0), 10_000);
        assert_eq!(total(10_000, 5_000, 4_000), 7_000);
        // 1 cent x 0.5 = 0.5 cents.
        assert_eq!(total(1, 5_000, 0), 1);
        assert_eq!(total(1, 5_001, 0), 0);
        // 15 lines of 10 items at 100.00 fit with room to spare.
        assert_eq!(total(15 * 10 * 10_000, 0, 4_000), 2_100_000);
    }
}
