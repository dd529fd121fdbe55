//! Draws calls of New Order and Payment (clauses 2.4.1 and 2.5.1).

use arrayvec::ArrayVec;
use ordain_db::error::Error;
use ordain_db::procedure::ProcedureId;

use super::random::{Constants, last_name};
use super::{Chances, CustomerName, LOADED_AT, Line, NewOrderArguments, Options, PaymentArguments, Tpcc};
use crate::part::Homes;
use crate::random::{Chance, Random};
use crate::{Call, Generator, Part, call};

/// Between two calls of a generator, in microseconds of the dates that it gives them.
const CALL_INTERVAL: i64 = 1_000;

pub(super) struct Calls {
    options: Options,
    constants: Constants,
    chances: Chances,
    /// The chance of each further line of a remote order to be remote as well.
    further_line: Chance,
    new_order: ProcedureId,
    payment: ProcedureId,
    homes: Homes,
    random: Random,
    /// The date of the next call, in microseconds since 1970.
    date: i64,
    /// The number of the next payment: unique over all clients, never 0.
    number: i64,
}

impl Calls {
    pub(super) fn new(tpcc: &Tpcc, seed: u64, client: u32, homes: Part) -> Result<Calls, Error> {
        Ok(Calls {
            options: tpcc.options.clone(),
            constants: tpcc.constants,
            chances: tpcc.chances,
            further_line: Chance::of_percent(1.0, "further line")?,
            new_order: tpcc.new_order,
            payment: tpcc.payment,
            homes: Homes::new(homes, 1, i64::from(tpcc.options.warehouses))?,
            random: Random::new(seed, "tpcc calls", &[u64::from(client)]),
            date: LOADED_AT,
            number: (i64::from(client) << 31) + 1,
        })
    }

    /// A uniform warehouse of another site, or none when all warehouses are of one site (CAL-118).
    fn remote(&mut self, warehouse: i32) -> Option<i32> {
        // Warehouses 1 and 2 are of different sites when there are two sites.
        if self.options.sites < 2 || self.options.warehouses < 2 {
            return None;
        }
        let home = self.options.site_of(warehouse);
        loop {
            let drawn = self.random.between(1, i64::from(self.options.warehouses)) as i32;
            if self.options.site_of(drawn) != home {
                return Some(drawn);
            }
        }
    }

    fn district(&mut self) -> i32 {
        self.random.between(1, i64::from(self.options.districts_per_warehouse)) as i32
    }

    fn new_order(&mut self, warehouse: i32) -> Call {
        let district = self.district();
        let customer = self.constants.customer(&mut self.random, self.options.customers_per_district);
        let count = self.random.between(5, 15) as usize;
        let remote = if self.random.happens(self.chances.remote) { self.remote(warehouse) } else { None };
        let remote_line = self.random.below(count as u64) as usize;
        let mut lines = ArrayVec::new();
        for index in 0..count {
            let item = self.constants.item(&mut self.random, self.options.items);
            let quantity = self.random.between(1, 10) as i32;
            let supply_warehouse = match remote {
                Some(remote) if index == remote_line || self.random.happens(self.further_line) => remote,
                _ => warehouse,
            };
            lines.push(Line { item, supply_warehouse, quantity });
        }
        if self.random.happens(self.chances.abort) {
            lines[count - 1].item = self.options.items as i32 + 1;
        }
        let arguments = NewOrderArguments { warehouse, district, customer, entry_date: self.date, lines };
        call(self.new_order, &arguments, warehouse as u32)
    }

    fn payment(&mut self, warehouse: i32) -> Call {
        let district = self.district();
        let remote =
            if self.random.happens(self.chances.payment_remote) { self.remote(warehouse) } else { None };
        let (customer_warehouse, customer_district) = match remote {
            Some(remote) => (remote, self.district()),
            None => (warehouse, district),
        };
        let customer = if self.random.happens(self.chances.payment_by_name) {
            let number = self.constants.last_name(&mut self.random, self.options.last_name_max());
            CustomerName::Last(last_name(number))
        } else {
            let customers = self.options.customers_per_district;
            CustomerName::Number(self.constants.customer(&mut self.random, customers))
        };
        let arguments = PaymentArguments {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            amount: self.random.between(100, 500_000),
            date: self.date,
            number: self.number,
        };
        self.number += 1;
        call(self.payment, &arguments, warehouse as u32)
    }
}

impl Generator for Calls {
    fn next(&mut self) -> Call {
        self.date += CALL_INTERVAL;
        let warehouse = self.homes.draw(&mut self.random) as i32;
        if self.random.happens(self.chances.new_order) {
            self.new_order(warehouse)
        } else {
            self.payment(warehouse)
        }
    }
}
