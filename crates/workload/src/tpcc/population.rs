//! The initial rows of clause 4.3.3.1.

use ordain_db::data::{Key, Table, Value, Values};
use ordain_db::error::Error;

use super::random::{Constants, last_name};
use super::schema::Tables;
use super::{DISTRICT_TEXTS, DISTRICT_YTD_LOADED, LOADED_AT, Layout, Options, PAYMENT_LOADED};
use crate::Part;
use crate::random::{Chance, Random};

use Value::{Int32, Int64, Text};

/// Makes the initial rows. Each kind of row of each warehouse or district, and each row of stock, has its own random stream: a row
/// is the same whatever else is in its part.
pub(super) struct Population<'a> {
    pub(super) options: &'a Options,
    pub(super) tables: &'a Tables,
    pub(super) constants: &'a Constants,
}

/// Encodes rows and hands them on.
struct Sink<'a> {
    row: Vec<u8>,
    sink: &'a mut dyn FnMut(&Key, &[u8]),
}

impl Sink<'_> {
    fn emit<K: Values>(&mut self, table: &Table, key: K, row: &[Value<'_>]) -> Result<(), Error> {
        self.row.clear();
        table.layout().encode(row, &mut self.row)?;
        (self.sink)(&table.key(key)?, &self.row);
        Ok(())
    }
}

/// Street, city, state and zip code (clause 4.3.2.7).
struct Address([String; 5]);

impl Address {
    fn new(random: &mut Random) -> Address {
        let street_1 = letters(random, 10, 20);
        let street_2 = letters(random, 10, 20);
        let city = letters(random, 10, 20);
        let state = letters(random, 2, 2);
        let mut zip = digits(random, 4);
        zip.push_str("11111");
        Address([street_1, street_2, city, state, zip])
    }

    fn values(&self) -> [Value<'_>; 5] {
        self.0.each_ref().map(|part| Text(part))
    }
}

fn letters(random: &mut Random, low: usize, high: usize) -> String {
    let mut text = String::with_capacity(high);
    random.alphanumeric(low, high, &mut text);
    text
}

fn digits(random: &mut Random, length: usize) -> String {
    let mut text = String::with_capacity(length + 8);
    random.digits(length, length, &mut text);
    text
}

/// `i_data` and `s_data`: one in ten has "ORIGINAL" at a random place (clause 4.3.3.1).
fn data(random: &mut Random, tenth: Chance) -> String {
    let mut text = letters(random, 26, 50);
    if random.happens(tenth) {
        let place = random.below(text.len() as u64 - 7) as usize;
        text.replace_range(place..place + 8, "ORIGINAL");
    }
    text
}

impl Population<'_> {
    fn random(&self, label: &str, numbers: &[i64]) -> Random {
        let mut place = [0; 2];
        place.iter_mut().zip(numbers).for_each(|(place, number)| *place = *number as u64);
        Random::new(self.options.seed, label, &place[..numbers.len()])
    }

    /// The warehouses of which something is in a part.
    fn warehouses(&self, part: Part) -> impl Iterator<Item = i64> + use<> {
        match self.options.layout {
            Layout::Warehouses => part,
            Layout::DistrictsAndItems => Part::WHOLE,
        }
        .numbers(1, i64::from(self.options.warehouses))
    }

    /// The districts of a warehouse that are in a part.
    fn districts(&self, part: Part) -> impl Iterator<Item = i64> + use<> {
        self.numbers(part, i64::from(self.options.districts_per_warehouse))
    }

    /// The items whose stock is in a part.
    fn stocked(&self, part: Part) -> impl Iterator<Item = i64> + use<'_> {
        let all = Part::WHOLE.numbers(1, i64::from(self.options.items));
        let (layout, stock) = (self.options.layout, &self.tables.stock);
        all.filter(move |item| match layout {
            Layout::Warehouses => true,
            // Of the one warehouse.
            Layout::DistrictsAndItems => {
                stock.key((1, *item as i32)).is_ok_and(|key| part.holds(stock, &key))
            }
        })
    }

    /// The numbers from 1 of what is within a warehouse that are in a part: all, where parts are whole warehouses.
    fn numbers(&self, part: Part, last: i64) -> impl Iterator<Item = i64> + use<> {
        match self.options.layout {
            Layout::Warehouses => Part::WHOLE,
            Layout::DistrictsAndItems => part,
        }
        .numbers(1, last)
    }

    /// Number of rows of a part, items included. The lines of all its orders are drawn for it.
    pub(super) fn rows(&self, part: Part) -> u64 {
        let customers = u64::from(self.options.customers_per_district);
        let orders = u64::from(self.options.orders_per_district);
        let undelivered = orders - self.options.delivered_orders() as u64;
        let indexed = if self.options.mix.indexes_orders() { orders } else { 0 };
        let in_district = 1 + 3 * customers + orders + indexed + undelivered;
        let mut rows = u64::from(self.options.items);
        for warehouse in self.warehouses(part) {
            rows += 1 + self.stocked(part).count() as u64;
            for district in self.districts(part) {
                let mut counts = self.line_counts(warehouse, district);
                rows += in_district + (0..orders).map(|_| line_count(&mut counts) as u64).sum::<u64>();
            }
        }
        rows
    }

    /// The stream from which the number of lines of each order of a district is drawn.
    fn line_counts(&self, warehouse: i64, district: i64) -> Random {
        self.random("tpcc line counts", &[warehouse, district])
    }

    pub(super) fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        let mut sink = Sink { row: Vec::new(), sink };
        self.items(&mut sink)?;
        for warehouse in self.warehouses(part) {
            self.warehouse(warehouse, &mut sink)?;
            for item in self.stocked(part) {
                self.stock(warehouse, item, &mut sink)?;
            }
            for district in self.districts(part) {
                self.district(warehouse, district, &mut sink)?;
                self.customers(warehouse, district, &mut sink)?;
                self.orders(warehouse, district, &mut sink)?;
            }
        }
        Ok(())
    }

    fn items(&self, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc item", &[]);
        let tenth = Chance::of_percent(10.0, "ORIGINAL")?;
        for item in 1..=self.options.items as i32 {
            let image = random.between(1, 10_000) as i32;
            let name = letters(&mut random, 14, 24);
            let price = random.between(100, 10_000);
            let data = data(&mut random, tenth);
            sink.emit(&self.tables.item, (item,), &[Int32(image), Text(&name), Int64(price), Text(&data)])?;
        }
        Ok(())
    }

    fn warehouse(&self, warehouse: i64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc warehouse", &[warehouse]);
        let name = letters(&mut random, 6, 10);
        let address = Address::new(&mut random);
        let tax = random.between(0, 2_000) as i32;
        let ytd = i64::from(self.options.districts_per_warehouse) * DISTRICT_YTD_LOADED;
        let [street_1, street_2, city, state, zip] = address.values();
        let row = [Text(&name), street_1, street_2, city, state, zip, Int32(tax), Int64(ytd)];
        sink.emit(&self.tables.warehouse, (warehouse as i32,), &row)
    }

    fn stock(&self, warehouse: i64, item: i64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc stock", &[warehouse, item]);
        let quantity = Int32(random.between(10, 100) as i32);
        let districts: [String; DISTRICT_TEXTS] = std::array::from_fn(|_| letters(&mut random, 24, 24));
        let data = data(&mut random, Chance::of_percent(10.0, "ORIGINAL")?);
        let [d1, d2, d3, d4, d5, d6, d7, d8, d9, d10] = districts.each_ref().map(|text| Text(text));
        let none = Int32(0);
        let row = [quantity, d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, none, none, none, Text(&data)];
        sink.emit(&self.tables.stock, (warehouse as i32, item as i32), &row)
    }

    fn district(&self, warehouse: i64, district: i64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc district", &[warehouse, district]);
        let name = letters(&mut random, 6, 10);
        let address = Address::new(&mut random);
        let tax = Int32(random.between(0, 2_000) as i32);
        let next_order = Int32(self.options.orders_per_district as i32 + 1);
        let [street_1, street_2, city, state, zip] = address.values();
        let row =
            [Text(&name), street_1, street_2, city, state, zip, tax, Int64(DISTRICT_YTD_LOADED), next_order];
        sink.emit(&self.tables.district, (warehouse as i32, district as i32), &row)
    }

    /// Customers, their index entries, and one history row each.
    fn customers(&self, warehouse: i64, district: i64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc customer", &[warehouse, district]);
        let tenth = Chance::of_percent(10.0, "bad credit")?;
        let (warehouse, district) = (warehouse as i32, district as i32);
        for customer in 1..=self.options.customers_per_district as i32 {
            let first = letters(&mut random, 8, 16);
            let last = last_name(match customer {
                1..=1_000 => customer as u32 - 1,
                _ => self.constants.last_name_loaded(&mut random, 999),
            });
            let address = Address::new(&mut random);
            let phone = digits(&mut random, 16);
            let credit = if random.happens(tenth) { "BC" } else { "GC" };
            let discount = random.between(0, 5_000) as i32;
            let data = letters(&mut random, 300, 500);
            let [street_1, street_2, city, state, zip] = address.values();
            let row = [
                Text(&first),
                Text("OE"),
                Text(&last),
                street_1,
                street_2,
                city,
                state,
                zip,
                Text(&phone),
                Int64(LOADED_AT),
                Text(credit),
                Int64(5_000_000),
                Int32(discount),
                Int64(-PAYMENT_LOADED),
                Int64(PAYMENT_LOADED),
                Int32(1),
                Int32(0),
                Text(&data),
            ];
            let key = (warehouse, district, customer);
            sink.emit(&self.tables.customer, key, &row)?;
            let name = (warehouse, district, last.as_str(), first.as_str(), customer);
            sink.emit(&self.tables.customer_by_name, name, &[])?;
            let data = letters(&mut random, 12, 24);
            let payment = [Int64(LOADED_AT), Int64(PAYMENT_LOADED), Text(&data)];
            let key = (warehouse, district, warehouse, district, customer, 0_i64);
            sink.emit(&self.tables.history, key, &payment)?;
        }
        Ok(())
    }

    /// Orders with their index entries and lines; the last 30% are undelivered and in `new_order`.
    fn orders(&self, warehouse: i64, district: i64, sink: &mut Sink<'_>) -> Result<(), Error> {
        let mut random = self.random("tpcc orders", &[warehouse, district]);
        let mut counts = self.line_counts(warehouse, district);
        let customers = permutation(&mut random, self.options.customers_per_district);
        let (warehouse, district) = (warehouse as i32, district as i32);
        for order in 1..=self.options.orders_per_district as i32 {
            let delivered = order <= self.options.delivered_orders();
            let lines = line_count(&mut counts);
            let customer = customers[(order as usize - 1) % customers.len()];
            let carrier = random.between(1, 10) as i32;
            let carrier = if delivered { Int32(carrier) } else { Value::Null };
            let row = [Int32(customer), Int64(LOADED_AT), carrier, Int32(lines), Value::Bool(true)];
            sink.emit(&self.tables.orders, (warehouse, district, order), &row)?;
            if self.options.mix.indexes_orders() {
                let key = (warehouse, district, customer, -order);
                sink.emit(&self.tables.orders_by_customer, key, &[])?;
            }
            if !delivered {
                sink.emit(&self.tables.new_order, (warehouse, district, order), &[])?;
            }
            for line in 1..=lines {
                let item = random.between(1, i64::from(self.options.items)) as i32;
                let amount = if delivered { 0 } else { random.between(1, 999_999) };
                let delivery = if delivered { Int64(LOADED_AT) } else { Value::Null };
                let info = letters(&mut random, 24, 24);
                let row = [Int32(item), Int32(warehouse), delivery, Int32(5), Int64(amount), Text(&info)];
                sink.emit(&self.tables.order_line, (warehouse, district, order, line), &row)?;
            }
        }
        Ok(())
    }
}

/// Number of lines of an order (clause 4.3.3.1).
fn line_count(random: &mut Random) -> i32 {
    random.between(5, 15) as i32
}

/// The numbers from 1 to `count` in random order.
fn permutation(random: &mut Random, count: u32) -> Vec<i32> {
    let mut numbers: Vec<i32> = (1..=count as i32).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, random.below(last as u64 + 1) as usize);
    }
    numbers
}
