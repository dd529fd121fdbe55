//! The consistency conditions 1 to 12 of clause 3.3.2, a function each.
//!
//! Three are read a little differently from their words. Conditions 8 and 9 compare what came *since the load*, so that they
//! also hold for populations of other sizes: what is loaded satisfies their words at the specification's size. Condition 11 says
//! that a district has 2,100 orders more than undelivered ones, which no longer holds after the first Delivery; here
//! what was delivered since, as the customers count it, is added.
//!
//! They are not independent: 8 and 9 together imply 1, and 6 implies 4.

use super::DISTRICT_YTD_LOADED;
use super::check::State;
use crate::check::{CheckLine, Condition};

/// All of them, by number.
pub(super) const ALL: [fn(&State<'_>) -> CheckLine; 12] = [
    condition_1,
    condition_2,
    condition_3,
    condition_4,
    condition_5,
    condition_6,
    condition_7,
    condition_8,
    condition_9,
    condition_10,
    condition_11,
    condition_12,
];

/// A warehouse was paid what its districts were.
fn condition_1(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.1: w_ytd = sum(d_ytd)");
    for (w, sums, districts) in state.known_warehouses() {
        let of_districts = districts.iter().map(|district| district.ytd).sum();
        condition.equal(|| format!("warehouse {w}"), sums.ytd, of_districts);
    }
    condition.finish()
}

/// The last order of a district is the one before the next, and is undelivered if any is.
fn condition_2(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.2: d_next_o_id - 1 = max(o_id) = max(no_o_id)");
    for (w, d, sums) in state.known_districts() {
        let name = || format!("district ({w}, {d})");
        condition.equal(name, sums.next_order - 1, sums.last_order);
        if sums.new_orders > 0 {
            condition.equal(name, sums.next_order - 1, sums.last_new_order);
        }
    }
    condition.finish()
}

/// The undelivered orders of a district follow each other without a gap.
fn condition_3(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.3: max(no_o_id) - min(no_o_id) + 1 = rows of new_order");
    for (w, d, sums) in state.known_districts().filter(|(_, _, sums)| sums.new_orders > 0) {
        let span = sums.last_new_order - sums.first_new_order + 1;
        condition.equal(|| format!("district ({w}, {d})"), span, sums.new_orders);
    }
    condition.finish()
}

/// A district has as many lines as its orders say.
fn condition_4(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.4: sum(o_ol_cnt) = rows of order_line");
    for (w, d, sums) in state.known_districts() {
        condition.equal(|| format!("district ({w}, {d})"), sums.lines_of_orders, sums.lines);
    }
    condition.finish()
}

/// An order has no carrier exactly if it is undelivered.
fn condition_5(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.5: o_carrier_id is null = order in new_order");
    for (place, order) in &state.orders {
        let without_carrier = order.row.is_some_and(|row| !row.has_carrier);
        condition.require(without_carrier == order.is_new, || {
            format!("order {place:?}: without carrier {without_carrier}, in new_order {}", order.is_new)
        });
    }
    condition.finish()
}

/// An order has as many lines as it says.
fn condition_6(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.6: o_ol_cnt = rows of order_line of the order");
    for (place, order) in &state.orders {
        let said = order.row.map_or(0, |row| row.lines);
        condition.equal(|| format!("order {place:?}"), said, order.lines);
    }
    condition.finish()
}

/// A line has no delivery date exactly if its order has no carrier.
fn condition_7(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.7: ol_delivery_d is null = o_carrier_id is null");
    for (place, order) in &state.orders {
        let has_carrier = order.row.is_some_and(|row| row.has_carrier);
        let expected = if has_carrier { order.lines } else { 0 };
        condition.equal(|| format!("delivered lines of order {place:?}"), order.lines_delivered, expected);
    }
    condition.finish()
}

/// A warehouse was paid what the history says.
fn condition_8(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.8: w_ytd = sum(h_amount), since the load");
    for (w, sums, districts) in state.known_warehouses() {
        let loaded = districts.len() as i64 * DISTRICT_YTD_LOADED;
        let paid = districts.iter().map(|district| district.paid_to).sum();
        condition.equal(|| format!("warehouse {w}"), sums.ytd - loaded, paid);
    }
    condition.finish()
}

/// A district was paid what the history says.
fn condition_9(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.9: d_ytd = sum(h_amount), since the load");
    for (w, d, sums) in state.known_districts() {
        condition.equal(|| format!("district ({w}, {d})"), sums.ytd - DISTRICT_YTD_LOADED, sums.paid_to);
    }
    condition.finish()
}

/// A customer owes what was delivered to it, less what the history says that it paid.
fn condition_10(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.10: c_balance = sum(ol_amount delivered) - sum(h_amount)");
    for (place, sums) in &state.customers {
        condition.equal(|| format!("customer {place:?}"), sums.balance, sums.delivered - sums.paid);
    }
    condition.finish()
}

/// A district's orders are undelivered, were delivered when they were loaded, or were delivered to its customers since.
fn condition_11(state: &State<'_>) -> CheckLine {
    let mut condition =
        Condition::new("3.3.2.11: orders - new_orders = delivered when loaded + c_delivery_cnt");
    let loaded = i64::from(state.options.delivered_orders());
    for (w, d, sums) in state.known_districts() {
        let delivered = sums.orders - sums.new_orders;
        condition.equal(|| format!("district ({w}, {d})"), delivered, loaded + sums.deliveries);
    }
    condition.finish()
}

/// A customer owes what was delivered to it, less what it paid by its own row.
fn condition_12(state: &State<'_>) -> CheckLine {
    let mut condition = Condition::new("3.3.2.12: c_balance + c_ytd_payment = sum(ol_amount delivered)");
    for (place, sums) in &state.customers {
        condition.equal(|| format!("customer {place:?}"), sums.balance + sums.ytd_payment, sums.delivered);
    }
    condition.finish()
}
