//! The consistency conditions (clause 3.3.2), and what must have come of the committed calls.

use ordain_db::error::Error;

use super::schema::{Tables, customer, district, history, order_line, orders, stock, warehouse};
use super::{DISTRICT_YTD_LOADED, NEW_ORDER, Options, PAYMENT, PAYMENT_LOADED};
use crate::check::{CheckLine, Condition, Outcomes, SnapshotReader, Totals, scan_table};

/// Sums over the rows of one district.
#[derive(Clone, Default)]
struct District {
    ytd: i64,
    next_order: i64,
    orders: i64,
    last_order: i64,
    new_orders: i64,
    first_new_order: i64,
    last_new_order: i64,
    /// Sum of `o_ol_cnt`.
    lines_of_orders: i64,
    lines: i64,
    /// Payments to the district since the load, in cents.
    paid_to: i64,
    /// Payments by the district's customers since the load, in cents: from `history`, and from `customer`.
    paid_by: i64,
    paid_by_customers: i64,
}

/// Sums over the rows of one warehouse.
#[derive(Clone, Default)]
struct Warehouse {
    ytd: i64,
    /// From its stock.
    stock: Supplied,
    /// From the order lines since the load that name it as supplier.
    lines: Supplied,
}

/// What a warehouse has supplied since the load.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Supplied {
    quantity: i64,
    lines: i64,
    remote_lines: i64,
}

/// Sums over a whole database.
struct Sums<'a> {
    options: &'a Options,
    /// By warehouse and district; the last one collects rows of unknown districts.
    districts: Vec<District>,
    /// By warehouse; the last one collects rows of unknown warehouses.
    warehouses: Vec<Warehouse>,
    /// Payments since the load.
    payments: i64,
    /// Rows of unknown warehouses or districts.
    strays: i64,
}

impl<'a> Sums<'a> {
    fn new(options: &'a Options) -> Sums<'a> {
        let warehouses = options.warehouses as usize;
        let districts = warehouses * usize::from(options.districts_per_warehouse);
        Sums {
            options,
            districts: vec![District::default(); districts + 1],
            warehouses: vec![Warehouse::default(); warehouses + 1],
            payments: 0,
            strays: 0,
        }
    }

    fn warehouse(&mut self, warehouse: i64) -> &mut Warehouse {
        let count = self.warehouses.len() as i64 - 1;
        let known = (1..=count).contains(&warehouse);
        self.strays += i64::from(!known);
        &mut self.warehouses[if known { warehouse - 1 } else { count } as usize]
    }

    fn district(&mut self, warehouse: i64, district: i64) -> &mut District {
        let per_warehouse = i64::from(self.options.districts_per_warehouse);
        let count = self.districts.len() as i64 - 1;
        let known = (1..=i64::from(self.options.warehouses)).contains(&warehouse)
            && (1..=per_warehouse).contains(&district);
        self.strays += i64::from(!known);
        &mut self.districts
            [if known { (warehouse - 1) * per_warehouse + district - 1 } else { count } as usize]
    }

    fn read(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        self.read_places(tables, reader)?;
        self.read_orders(tables, reader)?;
        self.read_supplies(tables, reader)?;
        self.read_payments(tables, reader)
    }

    fn read_places(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        scan_table(reader, &tables.warehouse, |[w], row| {
            self.warehouse(w).ytd = row.int64(warehouse::YTD)?;
            Ok(())
        })?;
        scan_table(reader, &tables.district, |[w, d], row| {
            let sums = self.district(w, d);
            sums.ytd = row.int64(district::YTD)?;
            sums.next_order = row.int32(district::NEXT_ORDER)?.into();
            Ok(())
        })
    }

    fn read_orders(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        scan_table(reader, &tables.orders, |[w, d, order], row| {
            let sums = self.district(w, d);
            sums.orders += 1;
            sums.last_order = sums.last_order.max(order);
            sums.lines_of_orders += i64::from(row.int32(orders::LINE_COUNT)?);
            Ok(())
        })?;
        scan_table(reader, &tables.new_order, |[w, d, order], _| {
            let sums = self.district(w, d);
            sums.first_new_order = if sums.new_orders == 0 { order } else { sums.first_new_order.min(order) };
            sums.last_new_order = sums.last_new_order.max(order);
            sums.new_orders += 1;
            Ok(())
        })
    }

    fn read_supplies(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        let loaded = i64::from(self.options.orders_per_district);
        scan_table(reader, &tables.order_line, |[w, d, order, _], row| {
            self.district(w, d).lines += 1;
            if order > loaded {
                let supplier = i64::from(row.int32(order_line::SUPPLY_WAREHOUSE)?);
                let supplied = &mut self.warehouse(supplier).lines;
                supplied.quantity += i64::from(row.int32(order_line::QUANTITY)?);
                supplied.lines += 1;
                supplied.remote_lines += i64::from(supplier != w);
            }
            Ok(())
        })?;
        scan_table(reader, &tables.stock, |[w, _], row| {
            let supplied = &mut self.warehouse(w).stock;
            supplied.quantity += i64::from(row.int32(stock::YTD)?);
            supplied.lines += i64::from(row.int32(stock::ORDER_COUNT)?);
            supplied.remote_lines += i64::from(row.int32(stock::REMOTE_COUNT)?);
            Ok(())
        })
    }

    fn read_payments(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        scan_table(reader, &tables.history, |[w, d, customer_w, customer_d, _, number], row| {
            if number != 0 {
                let amount = row.int64(history::AMOUNT)?;
                self.payments += 1;
                self.district(w, d).paid_to += amount;
                self.district(customer_w, customer_d).paid_by += amount;
            }
            Ok(())
        })?;
        scan_table(reader, &tables.customer, |[w, d, _], row| {
            self.district(w, d).paid_by_customers += row.int64(customer::YTD_PAYMENT)? - PAYMENT_LOADED;
            Ok(())
        })
    }

    /// Each known district with its warehouse's and its own number.
    fn known_districts(&self) -> impl Iterator<Item = (usize, usize, &District)> {
        let per_warehouse = usize::from(self.options.districts_per_warehouse);
        let known = &self.districts[..self.districts.len() - 1];
        known
            .iter()
            .enumerate()
            .map(move |(index, sums)| (index / per_warehouse + 1, index % per_warehouse + 1, sums))
    }

    fn warehouse_conditions(&self) -> Vec<CheckLine> {
        let per_warehouse = usize::from(self.options.districts_per_warehouse);
        let mut money = Condition::new("w_ytd = sum(d_ytd) (3.3.2.1)");
        let mut paid = Condition::new("w_ytd - w_ytd loaded = sum(h_amount) of payments (3.3.2.8)");
        let mut supplied = Condition::new("s_ytd, s_order_cnt, s_remote_cnt = order lines supplied");
        for (index, sums) in self.warehouses[..self.warehouses.len() - 1].iter().enumerate() {
            let name = || format!("warehouse {}", index + 1);
            let districts = &self.districts[index * per_warehouse..][..per_warehouse];
            money.equal(name, sums.ytd, districts.iter().map(|district| district.ytd).sum());
            let loaded = per_warehouse as i64 * DISTRICT_YTD_LOADED;
            paid.equal(name, sums.ytd - loaded, districts.iter().map(|district| district.paid_to).sum());
            supplied.require(sums.stock == sums.lines, || {
                format!("{}: stock has {:?}, order lines {:?}", name(), sums.stock, sums.lines)
            });
        }
        vec![money.finish(), paid.finish(), supplied.finish()]
    }

    fn district_conditions(&self) -> Vec<CheckLine> {
        let mut orders = Condition::new("d_next_o_id - 1 = max(o_id) (3.3.2.2)");
        let mut new_orders = Condition::new("d_next_o_id - 1 = max(no_o_id) (3.3.2.2)");
        let mut dense = Condition::new("max(no_o_id) - min(no_o_id) + 1 = rows of new_order (3.3.2.3)");
        let mut lines = Condition::new("sum(o_ol_cnt) = rows of order_line (3.3.2.4)");
        let mut paid = Condition::new("d_ytd - d_ytd loaded = sum(h_amount) of payments (3.3.2.9)");
        let mut charged = Condition::new("sum(c_ytd_payment) - loaded = sum(h_amount) of its customers");
        for (w, d, sums) in self.known_districts() {
            let name = || format!("district ({w}, {d})");
            orders.equal(name, sums.next_order - 1, sums.last_order);
            new_orders.equal(name, sums.next_order - 1, sums.last_new_order);
            dense.equal(name, sums.last_new_order - sums.first_new_order + 1, sums.new_orders);
            lines.equal(name, sums.lines_of_orders, sums.lines);
            paid.equal(name, sums.ytd - DISTRICT_YTD_LOADED, sums.paid_to);
            charged.equal(name, sums.paid_by_customers, sums.paid_by);
        }
        [orders, new_orders, dense, lines, paid, charged].map(Condition::finish).into()
    }

    fn total_conditions(&self, totals: &Totals) -> Vec<CheckLine> {
        let loaded = i64::from(self.options.orders_per_district);
        let orders = self.known_districts().map(|(_, _, sums)| sums.orders - loaded).sum();
        let counted = |condition: &str, rows: i64, outcomes: Outcomes| CheckLine {
            condition: condition.to_owned(),
            holds: outcomes.allow(rows),
            detail: format!("rows {rows}, commits {}", outcomes.describe()),
        };
        let mut strays = Condition::new("no row belongs to an unknown warehouse or district");
        strays.equal(|| "rows".to_owned(), self.strays, 0);
        vec![
            counted("orders - orders loaded = committed New Orders", orders, totals.of(NEW_ORDER)),
            counted("history - history loaded = committed Payments", self.payments, totals.of(PAYMENT)),
            strays.finish(),
        ]
    }
}

/// Each customer's balance is what it has not paid: no Delivery changes it.
fn balances(tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<CheckLine, Error> {
    let mut condition = Condition::new("c_balance + c_ytd_payment = 0 (3.3.2.12 without deliveries)");
    scan_table(reader, &tables.customer, |[w, d, number], row| {
        let (balance, paid) = (row.int64(customer::BALANCE)?, row.int64(customer::YTD_PAYMENT)?);
        condition.equal(|| format!("customer ({w}, {d}, {number})"), -balance, paid);
        Ok(())
    })?;
    Ok(condition.finish())
}

/// Holds all conditions against a state.
pub(super) fn check(
    options: &Options,
    tables: &Tables,
    reader: &mut dyn SnapshotReader,
    totals: &Totals,
) -> Result<Vec<CheckLine>, Error> {
    let mut sums = Sums::new(options);
    sums.read(tables, reader)?;
    let mut lines = sums.warehouse_conditions();
    lines.extend(sums.district_conditions());
    lines.extend(sums.total_conditions(totals));
    lines.push(balances(tables, reader)?);
    Ok(lines)
}
