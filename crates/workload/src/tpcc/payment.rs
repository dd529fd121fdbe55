//! Payment (clause 2.5).
//!
//! A customer named by number makes a complete footprint. One named by last name is found through `customer_by_name`, so its
//! key depends on data: the declaration is [`Declared::Unknown`] and the gateway finds the keys by reconnaissance (Calvin
//! §3.2.1). No transaction changes that index, so such a Payment never restarts (CAL-68).

use arrayvec::ArrayString;
use ordain_db::data::{DataError, Key, Row, Value};
use ordain_db::procedure::{
    Arithmetic, Declaration, Declared, Functor, OwnRow, Procedure, Stop, Transaction,
};
use serde::{Deserialize, Serialize};

use super::customer_name::CustomerName;
use super::new_order::short;
use super::random::LastName;
use super::schema::{Tables, customer, district, warehouse};
use super::{PAYMENT, Sizes};

/// Most bytes of `c_data` (clause 1.3.1).
const CUSTOMER_DATA_BYTES_MAX: usize = 500;

/// Bytes of `c_data` that a result carries for a customer with bad credit (clause 2.5.3.3).
const CUSTOMER_DATA_BYTES_SHOWN: usize = 200;

/// What to pay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The warehouse that is paid.
    pub warehouse: i32,
    /// The district that is paid.
    pub district: i32,
    /// The warehouse of the customer.
    pub customer_warehouse: i32,
    /// The district of the customer.
    pub customer_district: i32,
    /// The customer.
    pub customer: CustomerName,
    /// How much, in cents; 1.00 to 5,000.00 by the specification.
    pub amount: i64,
    /// When, in microseconds since 1970.
    pub date: i64,
    /// Makes the history row's key unique: each request has another one, and none is 0.
    pub number: i64,
}

/// The customer after the payment (clause 2.5.3.4, without addresses).
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
    /// `c_since`, in microseconds since 1970.
    pub since: i64,
    /// `c_credit`.
    pub credit: ArrayString<2>,
    /// `c_credit_lim`, in cents.
    pub credit_limit: i64,
    /// `c_discount`, in basis points.
    pub discount: i32,
    /// `c_balance`, in cents.
    pub balance: i64,
    /// The first 200 characters of `c_data` for a customer with bad credit, else nothing.
    pub data: String,
}

/// The procedure. Aborts when the warehouse, the district or the customer does not exist.
///
/// What was paid to the warehouse and to the district, and the customer, each follow from themselves and the arguments, if the customer
/// is named by number: they have functors, and whether the call aborts follows from the arguments.
pub struct Payment {
    tables: Tables,
    sizes: Sizes,
    /// Whether they are declared.
    functors: bool,
}

impl Payment {
    pub(super) fn new(tables: Tables, sizes: Sizes, functors: bool) -> Payment {
        Payment { tables, sizes, functors }
    }

    /// What can be told from the arguments alone.
    fn check(&self, arguments: &Arguments) -> Result<(), Stop> {
        if arguments.amount < 1 {
            return Err(Stop::abort("a payment is positive"));
        }
        let customer = match arguments.customer {
            CustomerName::Number(number) => Some(number),
            CustomerName::Last(_) => None,
        };
        self.sizes.check(arguments.warehouse, arguments.district, None)?;
        self.sizes.check(arguments.customer_warehouse, arguments.customer_district, customer)
    }

    /// Reads a customer who was loaded and is never deleted.
    fn read_customer(
        &self,
        arguments: &Arguments,
        number: i32,
        customer: &mut OwnRow<'_>,
    ) -> Result<Customer, Stop> {
        let row = customer.get()?;
        let row = row.ok_or_else(|| Stop::Invalid(format!("customer {number} was not loaded")))?;
        Customer::read(&row, number, arguments)
    }

    fn customer_key(&self, arguments: &Arguments, customer: i32) -> Result<Key, DataError> {
        self.tables.customer.key((arguments.customer_warehouse, arguments.customer_district, customer))
    }

    fn history_key(&self, arguments: &Arguments, customer: i32) -> Result<Key, DataError> {
        let Arguments { warehouse, district, customer_warehouse, customer_district, number, .. } = *arguments;
        self.tables.history.key((
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            number,
        ))
    }

    /// Takes the payment from the customer's balance.
    fn charge(
        &self,
        arguments: &Arguments,
        before: &Customer,
        customer: &mut OwnRow<'_>,
    ) -> Result<(), Stop> {
        let balance = (customer::BALANCE, Value::Int64(before.output.balance));
        let paid = (customer::YTD_PAYMENT, Value::Int64(before.ytd_payment + arguments.amount));
        let count = (customer::PAYMENT_COUNT, Value::Int32(before.payment_count.saturating_add(1)));
        match &before.new_data {
            None => customer.set([balance, paid, count])?,
            Some(data) => {
                let data = (customer::DATA, Value::Text(data));
                customer.set([balance, paid, count, data])?
            }
        };
        Ok(())
    }
}

/// What is read of a customer; the output is that after the payment.
struct Customer {
    output: Output,
    ytd_payment: i64,
    payment_count: i32,
    /// For bad credit.
    new_data: Option<String>,
}

impl Customer {
    fn read(row: &Row<'_>, number: i32, arguments: &Arguments) -> Result<Customer, Stop> {
        let credit: ArrayString<2> = short(row.text(customer::CREDIT)?)?;
        let new_data = match credit.as_str() {
            "BC" => Some(bad_credit_data(row.text(customer::DATA)?, number, arguments)),
            _ => None,
        };
        let shown = new_data.as_ref().map_or("", |data| cut(data, CUSTOMER_DATA_BYTES_SHOWN));
        let output = Output {
            customer: number,
            first: short(row.text(customer::FIRST)?)?,
            middle: short(row.text(customer::MIDDLE)?)?,
            last: short(row.text(customer::LAST)?)?,
            since: row.int64(customer::SINCE)?,
            credit,
            credit_limit: row.int64(customer::CREDIT_LIMIT)?,
            discount: row.int32(customer::DISCOUNT)?,
            balance: row.int64(customer::BALANCE)? - arguments.amount,
            data: shown.to_owned(),
        };
        Ok(Customer {
            output,
            ytd_payment: row.int64(customer::YTD_PAYMENT)?,
            payment_count: row.int32(customer::PAYMENT_COUNT)?,
            new_data,
        })
    }
}

/// The payment written before the old data, what exceeds 500 characters cut off (clause 2.5.2.2).
fn bad_credit_data(old: &str, customer: i32, arguments: &Arguments) -> String {
    let Arguments { warehouse, district, customer_warehouse, customer_district, amount, .. } = arguments;
    let mut data = format!(
        "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {}.{:02} ",
        amount / 100,
        amount % 100
    );
    data.push_str(old);
    let length = cut(&data, CUSTOMER_DATA_BYTES_MAX).len();
    data.truncate(length);
    data
}

/// At most `length` bytes of a text, cut at a character's border.
fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

impl Procedure for Payment {
    type Arguments = Arguments;
    type Output = Output;

    fn name(&self) -> &str {
        PAYMENT
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        let CustomerName::Number(customer) = arguments.customer else { return Ok(Declared::Unknown) };
        let paid = |column| Functor::Arithmetic { column, operation: Arithmetic::Add(arguments.amount) };
        let mut written = |key: &Key, functor| match self.functors {
            true => footprint.functor(key, functor),
            false => footprint.update(key),
        };
        written(&self.customer_key(arguments, customer)?, Functor::Own(0))?;
        written(&self.tables.warehouse.key((arguments.warehouse,))?, paid(warehouse::YTD))?;
        let district = self.tables.district.key((arguments.warehouse, arguments.district))?;
        written(&district, paid(district::YTD))?;
        footprint.write(&self.history_key(arguments, customer)?)?;
        Ok(Declared::Complete)
    }

    fn guard(&self, arguments: &Arguments, _: &mut Transaction<'_>) -> Result<(), Stop> {
        self.check(arguments)
    }

    fn functors(&self) -> u16 {
        1
    }

    fn functor(&self, arguments: &Arguments, _: u16, customer: &mut OwnRow<'_>) -> Result<(), Stop> {
        let CustomerName::Number(number) = arguments.customer else {
            return Err(Stop::Invalid("a customer named by last name has no functor".to_owned()));
        };
        let before = self.read_customer(arguments, number, customer)?;
        self.charge(arguments, &before, customer)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Output, Stop> {
        let Arguments { warehouse, district, amount, .. } = *arguments;
        self.check(arguments)?;
        let place = (arguments.customer_warehouse, arguments.customer_district);
        let number = arguments.customer.find(&self.tables, place, transaction)?;
        let customer_key = self.customer_key(arguments, number)?;
        let customer = self.read_customer(arguments, number, &mut transaction.own_row(&customer_key)?)?;
        let warehouse_key = self.tables.warehouse.key((warehouse,))?;
        let Some(row) = transaction.get(&warehouse_key)? else {
            return Err(Stop::Invalid(format!("warehouse {warehouse} was not loaded")));
        };
        let warehouse_name: ArrayString<10> = short(row.text(warehouse::NAME)?)?;
        let warehouse_ytd = Value::Int64(row.int64(warehouse::YTD)? + amount);
        let district_key = self.tables.district.key((warehouse, district))?;
        let Some(row) = transaction.get(&district_key)? else {
            return Err(Stop::Invalid(format!("district ({warehouse}, {district}) was not loaded")));
        };
        let district_name: ArrayString<10> = short(row.text(district::NAME)?)?;
        let district_ytd = Value::Int64(row.int64(district::YTD)? + amount);

        self.charge(arguments, &customer, &mut transaction.own_row(&customer_key)?)?;
        transaction.set(&self.tables.warehouse, &warehouse_key, [(warehouse::YTD, warehouse_ytd)])?;
        transaction.set(&self.tables.district, &district_key, [(district::YTD, district_ytd)])?;
        let mut data = ArrayString::<24>::new();
        for part in [&*warehouse_name, "    ", &*district_name] {
            data.push_str(part);
        }
        let history = (arguments.date, amount, data.as_str());
        transaction.put(&self.tables.history, &self.history_key(arguments, number)?, history)?;
        Ok(customer.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_credit_data_is_prepended_and_cut() {
        let arguments = Arguments {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: CustomerName::Number(5),
            amount: 1_234,
            date: 0,
            number: 1,
        };
        assert_eq!(bad_credit_data("old", 5, &arguments), "5 4 3 2 1 12.34 old");
        let long = bad_credit_data(&"x".repeat(500), 5, &arguments);
        assert_eq!(long.len(), 500);
        assert!(long.starts_with("5 4 3 2 1 12.34 xxx"));
    }
}
