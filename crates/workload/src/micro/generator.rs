//! Draws the calls of the microbenchmark.

use ordain_db::error::Error;

use super::dependent::{DependentArguments, ReindexArguments};
use super::index::{EntryName, Index};
use super::{Arguments, RECORDS_PER_TRANSACTION, RecordName, Shape};
use crate::part::Homes;
use crate::random::Random;
use crate::{Call, Generator, Part, call};

/// A bound that no sum of counters reaches.
const NO_BOUND: i64 = 1 << 40;

pub(super) struct Calls {
    shape: Shape,
    index: Option<Index>,
    homes: Homes,
    random: Random,
}

impl Calls {
    pub(super) fn new(
        shape: Shape,
        index: Option<Index>,
        seed: u64,
        client: u32,
        homes: Part,
    ) -> Result<Calls, Error> {
        let homes = Homes::new(homes, "sites", 0, i64::from(shape.sites) - 1)?;
        Ok(Calls { shape, index, homes, random: Random::new(seed, "micro calls", &[u64::from(client)]) })
    }

    /// A call that finds records through the index: the entry lies on any of the sites that it names records of, the home
    /// being one of them.
    fn dependent(&mut self, index: &Index) -> Call {
        let multi_site = self.random.happens(self.shape.multi_site) && self.shape.sites > 1;
        let home = self.homes.draw(&mut self.random) as u16;
        let (entry, sites) = loop {
            let site = match multi_site {
                true => self.random.below(u64::from(self.shape.sites)) as u16,
                false => home,
            };
            let entry = index.draw(site, multi_site, &mut self.random);
            let sites = index.sites(entry);
            if sites.contains(&home) {
                break (entry, sites);
            }
        };
        let sum_below = if self.random.happens(self.shape.abort) { 0 } else { NO_BOUND };
        let mut ahead: Vec<RecordName> = Vec::new();
        while ahead.len() < index.records_ahead() {
            let site = sites[(RECORDS_PER_TRANSACTION - 1 - ahead.len()) % sites.len()];
            let name = index.record_ahead(site, &mut self.random);
            if !ahead.contains(&name) {
                ahead.push(name);
            }
        }
        let arguments = DependentArguments { sum_below, entry, ahead };
        call(index.procedures.increment_by_index, &arguments, u32::from(home))
    }

    /// The sites of a transaction, the home first, all different.
    fn sites(&mut self, chosen: &mut [u16]) {
        chosen[0] = self.homes.draw(&mut self.random) as u16;
        for place in 1..chosen.len() {
            chosen[place] = loop {
                let site = self.random.below(u64::from(self.shape.sites)) as u16;
                if !chosen[..place].contains(&site) {
                    break site;
                }
            };
        }
    }

    /// One contended record on each site, and cold ones in turn, all different.
    fn records(&mut self, sites: &[u16]) -> [RecordName; RECORDS_PER_TRANSACTION] {
        let mut records = [RecordName::default(); RECORDS_PER_TRANSACTION];
        let Shape { contended, records_per_site, .. } = self.shape;
        for place in 0..RECORDS_PER_TRANSACTION {
            let site = sites[place % sites.len()];
            if place < sites.len() {
                records[place] = RecordName { site, id: self.random.below(u64::from(contended)) as u32 };
                continue;
            }
            records[place] = loop {
                let cold = self.random.below(u64::from(records_per_site - contended)) as u32;
                let name = RecordName { site, id: contended + cold };
                if !records[..place].contains(&name) {
                    break name;
                }
            };
        }
        records
    }
}

impl Generator for Calls {
    fn next(&mut self) -> Call {
        if let Some(index) = self.index
            && self.random.happens(index.dependent)
        {
            return self.dependent(&index);
        }
        let multi_site = self.random.happens(self.shape.multi_site);
        let mut sites = [0; 4];
        let sites = &mut sites[..if multi_site { usize::from(self.shape.participants) } else { 1 }];
        self.sites(sites);
        let sum_below = if self.random.happens(self.shape.abort) { 0 } else { NO_BOUND };
        let arguments = Arguments { sum_below, records: self.records(sites) };
        call(self.shape.increment, &arguments, u32::from(sites[0]))
    }
}

/// Draws updates of the index: each entry of the homes is as likely as every other.
pub(super) struct Updates {
    index: Index,
    homes: Homes,
    random: Random,
}

impl Updates {
    pub(super) fn new(
        shape: Shape,
        index: Index,
        seed: u64,
        client: u32,
        homes: Part,
    ) -> Result<Updates, Error> {
        let homes = Homes::new(homes, "sites", 0, i64::from(shape.sites) - 1)?;
        let random = Random::new(seed, "micro index updates", &[u64::from(client)]);
        Ok(Updates { index, homes, random })
    }
}

impl Generator for Updates {
    fn next(&mut self) -> Call {
        let site = self.homes.draw(&mut self.random) as u16;
        let number = self.random.below(u64::from(self.index.entries)) as u32;
        let entry = EntryName { site, number };
        let records = self.index.records(entry, &mut self.random);
        call(self.index.procedures.reindex, &ReindexArguments { entry, records }, u32::from(site))
    }
}
