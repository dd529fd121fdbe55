//! What the clients were told, and whether the database agrees.
//!
//! Each call of TPC-C leaves a row by which it can be known: a New Order its order, with the customer and the date that its
//! client has given it, a Payment a row of `history` with the client's number. So for every such call that a client made it can
//! be told how often it took effect. Nothing but that row is needed for it, and the consistency conditions of TPC-C then say that
//! all the other rows that a call writes fit. A Delivery tells its client which orders it has delivered: each of them must have
//! its carrier, and no two Deliveries the same order.

use std::collections::BTreeMap;

use ordain::Snapshot;
use ordain::db::data::{Schema, Table};
use ordain::db::error::{Error, Outcome};
use ordain::db::procedure::decode_output;
use ordain_workload::{Call, Totals, tpcc};

/// Violations that are described; all are counted.
const DESCRIBED_MAX: usize = 10;

/// How a call ended, as its client saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// It is to be there.
    Committed,
    /// Its logic stopped it: it must not be there.
    Aborted,
    /// The database did not take it: it must not be there.
    Refused,
    /// Nobody knows: it may be there.
    Unknown,
}

impl Ended {
    /// What an answer says.
    pub(super) fn of(outcome: &Outcome) -> Ended {
        match outcome {
            Ok(_) => Ended::Committed,
            Err(Error::Aborted(_)) => Ended::Aborted,
            Err(
                Error::Busy(_)
                | Error::Contended
                | Error::Invalid(_)
                | Error::Exceeds(..)
                | Error::NotOpen(_),
            ) => Ended::Refused,
            Err(Error::Acknowledged(_) | Error::Unavailable(_)) => Ended::Unknown,
        }
    }
}

/// By what a call is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Mark {
    Order { warehouse: i64, district: i64, customer: i64, date: i64 },
    Payment { warehouse: i64, district: i64, number: i64 },
}

/// A call that has ended.
struct Entry {
    mark: Mark,
    ended: Ended,
    /// The number of the order that the client was told.
    order: Option<i64>,
}

/// Warehouse, district and number of an order.
type Place = (i64, i64, i64);

/// What clients were told.
#[derive(Default)]
pub(super) struct Ledger {
    /// How the calls ended, by procedure.
    pub(super) totals: Totals,
    /// How many calls ended how: committed, aborted, refused, unknown.
    pub(super) counts: [u64; 4],
    entries: Vec<Entry>,
    /// Orders that were acknowledged as delivered, with their carriers.
    delivered: Vec<(Place, i32)>,
}

/// What the database has done with the calls.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Audit {
    /// Calls that were acknowledged and are not there.
    pub(super) lost: u64,
    /// Calls that took effect more than once.
    pub(super) doubled: u64,
    /// Calls that took effect although their clients were told that they would not, and rows of calls that nobody made.
    pub(super) unfounded: u64,
    /// The first of each.
    pub(super) described: Vec<String>,
}

/// How often a call was made, and found.
#[derive(Default, Debug)]
struct Tally {
    committed: u64,
    unknown: u64,
    denied: u64,
    found: u64,
}

impl Ledger {
    /// Notes how a call has ended.
    pub(super) fn note(&mut self, procedure: &str, call: &Call, outcome: &Outcome) {
        let ended = Ended::of(outcome);
        let totals = self.totals.of_mut(procedure);
        match ended {
            Ended::Committed => totals.committed += 1,
            Ended::Aborted => totals.aborted += 1,
            Ended::Unknown => totals.unknown += 1,
            Ended::Refused => {}
        }
        self.counts[ended as usize] += 1;
        let order = match (procedure, outcome) {
            (tpcc::NEW_ORDER, Ok(body)) => {
                decode_output::<tpcc::NewOrderOutput>(body).ok().map(|output| i64::from(output.order))
            }
            _ => None,
        };
        if let (tpcc::DELIVERY, Ok(body)) = (procedure, outcome) {
            self.delivered.extend(orders_of_delivery(call, body).into_iter().flatten());
        }
        if let Some(mark) = mark_of(procedure, call) {
            self.entries.push(Entry { mark, ended, order });
        }
    }

    /// Adds what another client was told.
    pub(super) fn add(&mut self, other: Ledger) {
        self.totals.add(&other.totals);
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
        self.entries.extend(other.entries);
        self.delivered.extend(other.delivered);
    }

    /// Calls that committed.
    pub(super) fn committed(&self) -> u64 {
        self.counts[Ended::Committed as usize]
    }

    /// Looks for every call in a state in which none is under way. `orders_loaded` is the last order of each district that was
    /// there at first.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(super) fn audit(
        &self,
        snapshot: &Snapshot,
        schema: &Schema,
        orders_loaded: i64,
    ) -> Result<Audit, Error> {
        let mut rows = Vec::new();
        if !self.entries.is_empty() {
            read_orders(snapshot, schema, orders_loaded, &mut rows)?;
            read_payments(snapshot, schema, &mut rows)?;
        }
        let mut audit = self.compare(&rows);
        if !self.delivered.is_empty() {
            self.compare_deliveries(&read_carriers(snapshot, schema)?, &mut audit);
        }
        Ok(audit)
    }

    /// Holds what was told of Deliveries against the carriers of all orders that have one.
    fn compare_deliveries(&self, carriers: &BTreeMap<Place, i32>, audit: &mut Audit) {
        let mut told = BTreeMap::new();
        for (place, carrier) in &self.delivered {
            if let Some(other) = told.insert(*place, *carrier) {
                audit.doubled += 1;
                audit.describe(format!("order {place:?} was delivered by carrier {other} and by {carrier}"));
            } else if carriers.get(place) != Some(carrier) {
                audit.lost += 1;
                let found = carriers.get(place);
                audit.describe(format!(
                    "order {place:?} was delivered by carrier {carrier} and has {found:?}"
                ));
            }
        }
    }

    /// Holds what was told against the rows that were found, with the numbers of orders.
    fn compare(&self, rows: &[(Mark, Option<i64>)]) -> Audit {
        let mut audit = Audit::default();
        let mut tallies: BTreeMap<Mark, Tally> = BTreeMap::new();
        for Entry { mark, ended, .. } in &self.entries {
            let tally = tallies.entry(*mark).or_default();
            match ended {
                Ended::Committed => tally.committed += 1,
                Ended::Unknown => tally.unknown += 1,
                Ended::Aborted | Ended::Refused => tally.denied += 1,
            }
        }
        let mut orders: BTreeMap<(i64, i64, i64), Mark> = BTreeMap::new();
        for (mark, order) in rows {
            tallies.entry(*mark).or_default().found += 1;
            if let (Mark::Order { warehouse, district, .. }, Some(order)) = (mark, order) {
                orders.insert((*warehouse, *district, *order), *mark);
            }
        }
        for (mark, tally) in &tallies {
            audit.judge(mark, tally);
        }
        for Entry { mark, order, .. } in &self.entries {
            let (Mark::Order { warehouse, district, .. }, Some(order)) = (mark, order) else { continue };
            let found = orders.get(&(*warehouse, *district, *order));
            if found != Some(mark) {
                audit.lost += 1;
                audit.describe(format!("{mark:?} was told that it is order {order}, which is {found:?}"));
            }
        }
        audit
    }
}

impl Audit {
    fn judge(&mut self, mark: &Mark, tally: &Tally) {
        let Tally { committed, unknown, denied, found } = *tally;
        if found < committed {
            self.lost += committed - found;
            self.describe(format!("{mark:?} was acknowledged {committed} times and is there {found} times"));
        } else if found > committed + unknown {
            let surplus = found - committed - unknown;
            if committed + unknown > 0 {
                self.doubled += surplus;
            } else {
                self.unfounded += surplus;
            }
            self.describe(format!(
                "{mark:?} is there {found} times; it was acknowledged {committed} times, unknown {unknown} times, and denied {denied} times"
            ));
        }
    }

    fn describe(&mut self, violation: String) {
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(violation);
        }
    }
}

/// By what a call is known; `None` for calls of other workloads.
fn mark_of(procedure: &str, call: &Call) -> Option<Mark> {
    match procedure {
        tpcc::NEW_ORDER => {
            let arguments: tpcc::NewOrderArguments = postcard::from_bytes(&call.arguments).ok()?;
            Some(Mark::Order {
                warehouse: arguments.warehouse.into(),
                district: arguments.district.into(),
                customer: arguments.customer.into(),
                date: arguments.entry_date,
            })
        }
        tpcc::PAYMENT => {
            let arguments: tpcc::PaymentArguments = postcard::from_bytes(&call.arguments).ok()?;
            Some(Mark::Payment {
                warehouse: arguments.warehouse.into(),
                district: arguments.district.into(),
                number: arguments.number,
            })
        }
        _ => None,
    }
}

/// The orders since the load.
fn read_orders(
    snapshot: &Snapshot,
    schema: &Schema,
    loaded: i64,
    rows: &mut Vec<(Mark, Option<i64>)>,
) -> Result<(), Error> {
    let table = schema.table_named("orders").ok_or_else(|| missing("orders"))?;
    snapshot.scan(&table.all(), |key, row| {
        let [warehouse, district, order] = integers(table, key)?;
        if order > loaded {
            let row = table.read(row);
            let (customer, date) = (row.int32("o_c_id")?.into(), row.int64("o_entry_d")?);
            rows.push((Mark::Order { warehouse, district, customer, date }, Some(order)));
        }
        Ok(())
    })
}

/// The orders that a Delivery has told its client of.
fn orders_of_delivery(call: &Call, body: &[u8]) -> Option<Vec<(Place, i32)>> {
    let arguments: tpcc::DeliveryArguments = postcard::from_bytes(&call.arguments).ok()?;
    let output = decode_output::<tpcc::DeliveryOutput>(body).ok()?;
    let orders = (1..).zip(output.orders).filter_map(|(district, order)| {
        Some(((arguments.warehouse.into(), district, order?.into()), arguments.carrier))
    });
    Some(orders.collect())
}

/// The orders that have a carrier.
fn read_carriers(snapshot: &Snapshot, schema: &Schema) -> Result<BTreeMap<Place, i32>, Error> {
    let table = schema.table_named("orders").ok_or_else(|| missing("orders"))?;
    let mut carriers = BTreeMap::new();
    snapshot.scan(&table.all(), |key, row| {
        let [warehouse, district, order] = integers(table, key)?;
        let row = table.read(row);
        if !row.is_null("o_carrier_id")? {
            carriers.insert((warehouse, district, order), row.int32("o_carrier_id")?);
        }
        Ok(())
    })?;
    Ok(carriers)
}

/// The payments since the load: those that were loaded have the number 0.
fn read_payments(
    snapshot: &Snapshot,
    schema: &Schema,
    rows: &mut Vec<(Mark, Option<i64>)>,
) -> Result<(), Error> {
    let table = schema.table_named("history").ok_or_else(|| missing("history"))?;
    snapshot.scan(&table.all(), |key, _| {
        let [warehouse, district, _, _, _, number] = integers(table, key)?;
        if number != 0 {
            rows.push((Mark::Payment { warehouse, district, number }, None));
        }
        Ok(())
    })
}

/// The columns of a key, which are all integers.
fn integers<const COLUMNS: usize>(table: &Table, key: &[u8]) -> Result<[i64; COLUMNS], Error> {
    let values = table.key_values(key)?;
    Ok(std::array::from_fn(|column| values.get(column).and_then(|value| value.integer()).unwrap_or_default()))
}

fn missing(table: &str) -> Error {
    Error::Invalid(format!("the workload has no table {table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(customer: i64) -> Mark {
        Mark::Order { warehouse: 1, district: 2, customer, date: 3 }
    }

    fn payment(number: i64) -> Mark {
        Mark::Payment { warehouse: 1, district: 2, number }
    }

    fn ledger(entries: &[(Mark, Ended, Option<i64>)]) -> Ledger {
        let entry = |(mark, ended, order): &(Mark, Ended, Option<i64>)| Entry {
            mark: *mark,
            ended: *ended,
            order: *order,
        };
        Ledger { entries: entries.iter().map(entry).collect(), ..Ledger::default() }
    }

    fn counts(audit: &Audit) -> [u64; 3] {
        [audit.lost, audit.doubled, audit.unfounded]
    }

    #[test]
    fn what_was_told_and_is_there_once_holds() {
        let told = ledger(&[
            (order(1), Ended::Committed, Some(31)),
            (order(2), Ended::Unknown, None),
            (order(3), Ended::Unknown, None),
            (order(4), Ended::Aborted, None),
            (payment(1), Ended::Committed, None),
            (payment(2), Ended::Refused, None),
        ]);
        let audit = told.compare(&[(order(1), Some(31)), (order(2), Some(32)), (payment(1), None)]);
        assert_eq!(audit, Audit::default());
    }

    #[test]
    fn what_is_lost_doubled_or_unfounded_is_found() {
        let told = ledger(&[(payment(1), Ended::Committed, None)]);
        assert_eq!(counts(&told.compare(&[])), [1, 0, 0]);
        let told = ledger(&[(order(1), Ended::Committed, Some(31))]);
        assert_eq!(counts(&told.compare(&[(order(1), Some(31)), (order(1), Some(32))])), [0, 1, 0]);
        // The number was given away again.
        let again = told.compare(&[(order(2), Some(31)), (order(1), Some(32))]);
        assert_eq!(counts(&again), [1, 0, 1]);
        for denied in [Ended::Aborted, Ended::Refused] {
            let told = ledger(&[(payment(1), denied, None)]);
            assert_eq!(counts(&told.compare(&[(payment(1), None)])), [0, 0, 1]);
        }
    }

    #[test]
    fn deliveries_are_held_against_carriers() {
        let mut told = Ledger { delivered: vec![((1, 1, 5), 3), ((1, 2, 5), 4)], ..Ledger::default() };
        let compare = |told: &Ledger, carriers: &[(Place, i32)]| {
            let mut audit = Audit::default();
            told.compare_deliveries(&carriers.iter().copied().collect(), &mut audit);
            counts(&audit)
        };
        assert_eq!(compare(&told, &[((1, 1, 5), 3), ((1, 2, 5), 4), ((1, 3, 5), 9)]), [0, 0, 0]);
        assert_eq!(compare(&told, &[((1, 1, 5), 3), ((1, 2, 5), 3)]), [1, 0, 0]);
        assert_eq!(compare(&told, &[((1, 1, 5), 3)]), [1, 0, 0]);
        told.delivered.push(((1, 1, 5), 3));
        assert_eq!(compare(&told, &[((1, 1, 5), 3), ((1, 2, 5), 4)]), [0, 1, 0]);
    }

    #[test]
    fn calls_with_the_same_mark_are_counted_together() {
        let told = ledger(&[(order(1), Ended::Committed, Some(31)), (order(1), Ended::Unknown, None)]);
        assert_eq!(told.compare(&[(order(1), Some(31))]), Audit::default());
        let rows = [(order(1), Some(31)), (order(1), Some(32))];
        assert_eq!(told.compare(&rows), Audit::default());
        let rows = [(order(1), Some(31)), (order(1), Some(32)), (order(1), Some(33))];
        assert_eq!(counts(&told.compare(&rows)), [0, 1, 0]);
    }
}
