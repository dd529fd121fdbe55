//! Draws calls (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1), in the shares of the mix (clause 5.2.3).

use arrayvec::ArrayVec;
use ordain_db::error::Error;
use ordain_db::procedure::ProcedureId;

use super::random::{Constants, last_name};
use super::{
    Called, Chances, CustomerName, DeliveryArguments, LOADED_AT, Layout, Line, NewOrderArguments, Options,
    OrderStatusArguments, PaymentArguments, Remote, StockLevelArguments, Tpcc,
};
use crate::part::Homes;
use crate::random::Random;
use crate::{Call, Generator, Mode, Part, call};

/// Between two calls of a generator, in microseconds of the dates that it gives them.
const CALL_INTERVAL: i64 = 1_000;

/// A transaction of the full mix.
#[derive(Clone, Copy)]
enum Card {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// The cards of a deck: the least shares of clause 5.2.3, and New Orders for the rest.
const DECK: [(Card, usize); 5] = [
    (Card::NewOrder, 45),
    (Card::Payment, 43),
    (Card::OrderStatus, 4),
    (Card::Delivery, 4),
    (Card::StockLevel, 4),
];

pub(super) struct Calls {
    options: Options,
    constants: Constants,
    chances: Chances,
    new_order: ProcedureId,
    payment: ProcedureId,
    called: Called,
    /// What is left of a deck that was shuffled; a new one is taken when it is empty.
    deck: Vec<Card>,
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
            new_order: tpcc.new_order,
            payment: tpcc.payment,
            called: tpcc.called,
            deck: Vec::new(),
            homes: Homes::new(homes, tpcc.options.layout.homes_name(), 1, tpcc.options.homes())?,
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

    /// A customer, by last name or by number (clauses 2.5.1.2, 2.6.1.2).
    fn customer(&mut self) -> CustomerName {
        if self.random.happens(self.chances.by_name) {
            let number = self.constants.last_name(&mut self.random, self.options.last_name_max());
            CustomerName::Last(last_name(number))
        } else {
            let customers = self.options.customers_per_district;
            CustomerName::Number(self.constants.customer(&mut self.random, customers))
        }
    }

    /// The next card of the deck; a new deck is shuffled when there is none.
    fn card(&mut self) -> Card {
        loop {
            if let Some(card) = self.deck.pop() {
                return card;
            }
            for (card, count) in DECK {
                self.deck.extend(std::iter::repeat_n(card, count));
            }
            for last in (1..self.deck.len()).rev() {
                let other = self.random.below(last as u64 + 1) as usize;
                self.deck.swap(last, other);
            }
        }
    }

    fn order_status(&mut self, procedure: ProcedureId, warehouse: i32, mode: Mode) -> Call {
        let district = self.district();
        let arguments = OrderStatusArguments { warehouse, district, customer: self.customer() };
        Call { mode, ..call(procedure, &arguments, warehouse as u32) }
    }

    fn delivery(&mut self, procedure: ProcedureId, warehouse: i32) -> Call {
        let carrier = self.random.between(1, 10) as i32;
        let arguments = DeliveryArguments { warehouse, carrier, date: self.date };
        call(procedure, &arguments, warehouse as u32)
    }

    fn stock_level(&mut self, procedure: ProcedureId, warehouse: i32, mode: Mode) -> Call {
        let district = self.district();
        let threshold = self.random.between(10, 20) as i32;
        let arguments = StockLevelArguments { warehouse, district, threshold };
        Call { mode, ..call(procedure, &arguments, warehouse as u32) }
    }

    /// A New Order of a district of a warehouse, or of the district that is the home of the scaled layout.
    fn new_order(&mut self, home: i32) -> Call {
        let (warehouse, district) = match self.options.layout {
            Layout::Warehouses => (home, self.district()),
            Layout::DistrictsAndItems => (1, home),
        };
        let customer = self.constants.customer(&mut self.random, self.options.customers_per_district);
        let count = self.random.between(5, 15) as usize;
        let remote =
            if self.random.happens(self.chances.remote_order) { self.remote(warehouse) } else { None };
        let remote_line = self.random.below(count as u64) as usize;
        let mut lines = ArrayVec::new();
        for index in 0..count {
            let item = self.constants.item(&mut self.random, self.options.items);
            let quantity = self.random.between(1, 10) as i32;
            let supply_warehouse = match (self.options.remote, remote) {
                (Remote::Lines(_), _) if self.random.happens(self.chances.remote_line) => {
                    self.remote(warehouse).unwrap_or(warehouse)
                }
                (Remote::Orders(_), Some(remote))
                    if index == remote_line || self.random.happens(self.chances.remote_line) =>
                {
                    remote
                }
                _ => warehouse,
            };
            lines.push(Line { item, supply_warehouse, quantity });
        }
        if self.random.happens(self.chances.abort) {
            lines[count - 1].item = self.options.items as i32 + 1;
        }
        let arguments = NewOrderArguments { warehouse, district, customer, entry_date: self.date, lines };
        call(self.new_order, &arguments, home as u32)
    }

    fn payment(&mut self, warehouse: i32) -> Call {
        let district = self.district();
        let remote =
            if self.random.happens(self.chances.payment_remote) { self.remote(warehouse) } else { None };
        let (customer_warehouse, customer_district) = match remote {
            Some(remote) => (remote, self.district()),
            None => (warehouse, district),
        };
        let customer = self.customer();
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
        let home = self.homes.draw(&mut self.random) as i32;
        match self.called {
            Called::NewOrderPayment(new_order) if self.random.happens(new_order) => self.new_order(home),
            Called::NewOrderPayment(_) => self.payment(home),
            Called::Full { reads, order_status, delivery, stock_level } => match self.card() {
                Card::NewOrder => self.new_order(home),
                Card::Payment => self.payment(home),
                Card::OrderStatus => self.order_status(order_status, home, reads),
                Card::Delivery => self.delivery(delivery, home),
                Card::StockLevel => self.stock_level(stock_level, home, reads),
            },
        }
    }
}
