//! Draws transfers.

use ordain_db::error::Error;

use super::{AccountName, Arguments, Shape};
use crate::part::Homes;
use crate::random::Random;
use crate::{Call, Generator, Part, call};

pub(super) struct Calls {
    shape: Shape,
    homes: Homes,
    random: Random,
}

impl Calls {
    pub(super) fn new(shape: Shape, seed: u64, client: u32, homes: Part) -> Result<Calls, Error> {
        let homes = Homes::new(homes, "sites", 0, i64::from(shape.sites) - 1)?;
        Ok(Calls { shape, homes, random: Random::new(seed, "bank calls", &[u64::from(client)]) })
    }

    fn account(&mut self, site: u16) -> AccountName {
        AccountName { site, id: self.random.below(u64::from(self.shape.accounts_per_site)) as u32 }
    }

    /// A number below `count` other than `excluded`, each alike likely.
    fn other(&mut self, count: u64, excluded: u64) -> u64 {
        (excluded + 1 + self.random.below(count - 1)) % count
    }
}

impl Generator for Calls {
    fn next(&mut self) -> Call {
        let Shape { sites, accounts_per_site, amount_max, multi_site, .. } = self.shape;
        let site = self.homes.draw(&mut self.random) as u16;
        let from = self.account(site);
        let to = if sites > 1 && self.random.happens(multi_site) {
            let other_site = self.other(u64::from(sites), u64::from(site)) as u16;
            self.account(other_site)
        } else {
            AccountName { site, id: self.other(u64::from(accounts_per_site), u64::from(from.id)) as u32 }
        };
        let arguments = Arguments { from, to, amount: self.random.between(1, amount_max) };
        call(self.shape.transfer, &arguments, u32::from(site))
    }
}
