//! Reads a state into what the consistency conditions speak of, and holds them against it.

use std::collections::BTreeMap;

use ordain_db::error::Error;

use super::schema::{Tables, customer, district, history, order_line, orders, stock, warehouse};
use super::{DELIVERY, NEW_ORDER, Options, PAYMENT, conditions};
use crate::check::{CheckLine, Condition, Outcomes, SnapshotReader, Totals, scan_table};

/// Warehouse, district, and the number of a customer or order.
pub(super) type Place = [i64; 3];

/// Sums over the rows of one district.
#[derive(Clone, Default)]
pub(super) struct District {
    pub(super) ytd: i64,
    pub(super) next_order: i64,
    pub(super) orders: i64,
    pub(super) last_order: i64,
    pub(super) new_orders: i64,
    pub(super) first_new_order: i64,
    pub(super) last_new_order: i64,
    /// Sum of `o_ol_cnt`.
    pub(super) lines_of_orders: i64,
    pub(super) lines: i64,
    /// Payments to the district since the load, in cents.
    pub(super) paid_to: i64,
    /// Sum of `c_delivery_cnt`.
    pub(super) deliveries: i64,
}

/// Sums over the rows of one warehouse.
#[derive(Clone, Default)]
pub(super) struct Warehouse {
    pub(super) ytd: i64,
    /// From its stock.
    pub(super) stock: Supplied,
    /// From the order lines since the load that name it as supplier.
    pub(super) lines: Supplied,
}

/// What a warehouse has supplied since the load.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Supplied {
    quantity: i64,
    lines: i64,
    remote_lines: i64,
}

/// What is known of an order.
#[derive(Clone, Default)]
pub(super) struct Order {
    /// From its row; none if only its lines or its mark as undelivered are there.
    pub(super) row: Option<OrderRow>,
    /// Whether it is in `new_order`.
    pub(super) is_new: bool,
    pub(super) lines: i64,
    /// Lines with a delivery date, and the sum of their amounts.
    pub(super) lines_delivered: i64,
    pub(super) amount_delivered: i64,
}

/// What an order's row says.
#[derive(Clone, Copy)]
pub(super) struct OrderRow {
    pub(super) customer: i64,
    /// `o_ol_cnt`.
    pub(super) lines: i64,
    /// Whether it has a carrier.
    pub(super) has_carrier: bool,
}

/// What is known of a customer.
#[derive(Clone, Default)]
pub(super) struct Customer {
    pub(super) balance: i64,
    pub(super) ytd_payment: i64,
    /// Sum of `h_amount` of its payments, in cents.
    pub(super) paid: i64,
    /// Sum of the amounts of its delivered lines, in cents.
    pub(super) delivered: i64,
}

/// What the conditions speak of.
pub(super) struct State<'a> {
    pub(super) options: &'a Options,
    /// By warehouse and district; the last one collects rows of unknown districts.
    districts: Vec<District>,
    /// By warehouse; the last one collects rows of unknown warehouses.
    warehouses: Vec<Warehouse>,
    pub(super) orders: BTreeMap<Place, Order>,
    pub(super) customers: BTreeMap<Place, Customer>,
    /// Payments since the load.
    payments: i64,
    /// Rows of `orders_by_customer`, and those that fit no order.
    indexed: i64,
    indexed_wrongly: i64,
    /// Rows of unknown warehouses or districts.
    strays: i64,
}

impl<'a> State<'a> {
    pub(super) fn new(options: &'a Options) -> State<'a> {
        let warehouses = options.warehouses as usize;
        let districts = warehouses * usize::from(options.districts_per_warehouse);
        State {
            options,
            districts: vec![District::default(); districts + 1],
            warehouses: vec![Warehouse::default(); warehouses + 1],
            orders: BTreeMap::new(),
            customers: BTreeMap::new(),
            payments: 0,
            indexed: 0,
            indexed_wrongly: 0,
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

    pub(super) fn read(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        self.read_places(tables, reader)?;
        self.read_orders(tables, reader)?;
        self.read_lines(tables, reader)?;
        self.read_stock(tables, reader)?;
        self.read_customers(tables, reader)?;
        // After orders and lines: a customer's deliveries are those of its orders.
        for ([w, d, _], order) in &self.orders {
            if let Some(row) = order.row {
                let customer = self.customers.entry([*w, *d, row.customer]).or_default();
                customer.delivered += order.amount_delivered;
            }
        }
        Ok(())
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
            let found = OrderRow {
                customer: row.int32(orders::CUSTOMER)?.into(),
                lines: row.int32(orders::LINE_COUNT)?.into(),
                has_carrier: !row.is_null(orders::CARRIER)?,
            };
            let sums = self.district(w, d);
            sums.orders += 1;
            sums.last_order = sums.last_order.max(order);
            sums.lines_of_orders += found.lines;
            self.orders.entry([w, d, order]).or_default().row = Some(found);
            Ok(())
        })?;
        scan_table(reader, &tables.new_order, |[w, d, order], _| {
            let sums = self.district(w, d);
            sums.first_new_order = if sums.new_orders == 0 { order } else { sums.first_new_order.min(order) };
            sums.last_new_order = sums.last_new_order.max(order);
            sums.new_orders += 1;
            self.orders.entry([w, d, order]).or_default().is_new = true;
            Ok(())
        })?;
        scan_table(reader, &tables.orders_by_customer, |[w, d, customer, negated], _| {
            let row = self.orders.get(&[w, d, -negated]).and_then(|order| order.row);
            self.indexed += 1;
            self.indexed_wrongly += i64::from(row.is_none_or(|row| row.customer != customer));
            Ok(())
        })
    }

    fn read_lines(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        let loaded = i64::from(self.options.orders_per_district);
        scan_table(reader, &tables.order_line, |[w, d, order, _], row| {
            self.district(w, d).lines += 1;
            let of_order = self.orders.entry([w, d, order]).or_default();
            of_order.lines += 1;
            if !row.is_null(order_line::DELIVERY_DATE)? {
                of_order.lines_delivered += 1;
                of_order.amount_delivered += row.int64(order_line::AMOUNT)?;
            }
            if order > loaded {
                let supplier = i64::from(row.int32(order_line::SUPPLY_WAREHOUSE)?);
                let supplied = &mut self.warehouse(supplier).lines;
                supplied.quantity += i64::from(row.int32(order_line::QUANTITY)?);
                supplied.lines += 1;
                supplied.remote_lines += i64::from(supplier != w);
            }
            Ok(())
        })
    }

    fn read_stock(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        scan_table(reader, &tables.stock, |[w, _], row| {
            let supplied = &mut self.warehouse(w).stock;
            supplied.quantity += i64::from(row.int32(stock::YTD)?);
            supplied.lines += i64::from(row.int32(stock::ORDER_COUNT)?);
            supplied.remote_lines += i64::from(row.int32(stock::REMOTE_COUNT)?);
            Ok(())
        })
    }

    fn read_customers(&mut self, tables: &Tables, reader: &mut dyn SnapshotReader) -> Result<(), Error> {
        scan_table(reader, &tables.history, |[w, d, customer_w, customer_d, number, payment], row| {
            let amount = row.int64(history::AMOUNT)?;
            self.customers.entry([customer_w, customer_d, number]).or_default().paid += amount;
            // 0 is the number of what was loaded.
            if payment != 0 {
                self.payments += 1;
                self.district(w, d).paid_to += amount;
            }
            Ok(())
        })?;
        scan_table(reader, &tables.customer, |[w, d, number], row| {
            self.district(w, d).deliveries += i64::from(row.int32(customer::DELIVERY_COUNT)?);
            let sums = self.customers.entry([w, d, number]).or_default();
            sums.balance = row.int64(customer::BALANCE)?;
            sums.ytd_payment = row.int64(customer::YTD_PAYMENT)?;
            Ok(())
        })
    }

    /// Each known warehouse with its number and its districts.
    pub(super) fn known_warehouses(&self) -> impl Iterator<Item = (usize, &Warehouse, &[District])> {
        let per_warehouse = usize::from(self.options.districts_per_warehouse);
        let known = self.warehouses[..self.warehouses.len() - 1].iter().enumerate();
        known.map(move |(index, sums)| {
            (index + 1, sums, &self.districts[index * per_warehouse..][..per_warehouse])
        })
    }

    /// Each known district with its warehouse's and its own number.
    pub(super) fn known_districts(&self) -> impl Iterator<Item = (usize, usize, &District)> {
        self.known_warehouses().flat_map(|(warehouse, _, districts)| {
            districts.iter().enumerate().map(move |(index, sums)| (warehouse, index + 1, sums))
        })
    }

    /// What the specification does not ask for, and holds all the same.
    fn further_conditions(&self) -> Vec<CheckLine> {
        let mut supplied = Condition::new("s_ytd, s_order_cnt, s_remote_cnt = order lines supplied");
        for (w, sums, _) in self.known_warehouses() {
            supplied.require(sums.stock == sums.lines, || {
                format!("warehouse {w}: stock has {:?}, order lines {:?}", sums.stock, sums.lines)
            });
        }
        let mut paid = Condition::new("c_ytd_payment = sum(h_amount) of the customer");
        for (place, sums) in &self.customers {
            paid.equal(|| format!("customer {place:?}"), sums.ytd_payment, sums.paid);
        }
        let mut strays = Condition::new("no row belongs to an unknown warehouse or district");
        strays.equal(|| "rows".to_owned(), self.strays, 0);
        let mut lines = vec![supplied.finish(), paid.finish(), strays.finish()];
        if self.options.mix.indexes_orders() {
            let mut indexed = Condition::new("orders_by_customer has each order once");
            let orders = self.orders.values().filter(|order| order.row.is_some()).count() as i64;
            indexed.equal(|| "rows and orders".to_owned(), self.indexed, orders);
            indexed.equal(|| "rows of no order".to_owned(), self.indexed_wrongly, 0);
            lines.push(indexed.finish());
        }
        lines
    }

    /// Whether there are as many rows as clients saw calls commit.
    fn total_conditions(&self, totals: &Totals) -> Vec<CheckLine> {
        let loaded = i64::from(self.options.orders_per_district);
        let orders = self.known_districts().map(|(_, _, sums)| sums.orders - loaded).sum();
        let counted = |condition: &str, rows: i64, outcomes: Outcomes| CheckLine {
            condition: condition.to_owned(),
            holds: outcomes.allow(rows),
            detail: format!("rows {rows}, commits {}", outcomes.describe()),
        };
        let mut lines = vec![
            counted("orders - orders loaded = committed New Orders", orders, totals.of(NEW_ORDER)),
            counted("history - history loaded = committed Payments", self.payments, totals.of(PAYMENT)),
        ];
        if self.options.mix.indexes_orders() {
            lines.push(self.deliveries(totals.of(DELIVERY)));
        }
        lines
    }

    /// Each Delivery delivers an order in each district that has one; the condition tells how many had none (clause 2.7.4.2).
    fn deliveries(&self, outcomes: Outcomes) -> CheckLine {
        let delivered: i64 = self.known_districts().map(|(_, _, sums)| sums.deliveries).sum();
        let districts = u64::from(self.options.districts_per_warehouse);
        let visited = (outcomes.committed * districts) as i64;
        let unknown = (outcomes.unknown * districts) as i64;
        let skipped = (visited - delivered).max(0);
        CheckLine {
            condition: format!(
                "orders delivered = districts of committed Deliveries, less {skipped} skipped"
            ),
            holds: delivered <= visited + unknown,
            detail: format!("delivered {delivered}, districts of Deliveries {visited} and perhaps {unknown}"),
        }
    }
}

/// Holds all conditions against a state.
pub(super) fn check(
    options: &Options,
    tables: &Tables,
    reader: &mut dyn SnapshotReader,
    totals: &Totals,
) -> Result<Vec<CheckLine>, Error> {
    let mut state = State::new(options);
    state.read(tables, reader)?;
    let mut lines: Vec<CheckLine> = conditions::ALL.iter().map(|condition| condition(&state)).collect();
    lines.extend(state.further_conditions());
    lines.extend(state.total_conditions(totals));
    Ok(lines)
}
