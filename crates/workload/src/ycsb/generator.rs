//! Draws calls.

use std::sync::Arc;

use ordain_db::error::Error;
use ordain_db::hash::key_hash;

use super::procedure::{Change, NewRow, RowName, Stretch};
use super::{FIELDS, Kind, Shape};
use crate::part::Homes;
use crate::random::Random;
use crate::{Call, Generator, Part, call};

/// Bits of an inserted row's number that count the inserts of one client at one site; those above are the client's number,
/// from 1.
const COUNTER_BITS: u32 = 30;

pub(super) struct Calls {
    shape: Arc<Shape>,
    homes: Homes,
    random: Random,
    client: u32,
    /// Rows that were inserted at each site.
    inserted: Vec<u32>,
}

impl Calls {
    pub(super) fn new(shape: Arc<Shape>, seed: u64, client: u32, homes: Part) -> Result<Calls, Error> {
        let homes = Homes::new(homes, "sites", 0, i64::from(shape.sites) - 1)?;
        let random = Random::new(seed, "ycsb calls", &[u64::from(client)]);
        let inserted = vec![0; usize::from(shape.sites)];
        Ok(Calls { shape, homes, random, client, inserted })
    }

    /// The home, and for a call of two sites another one.
    fn sites(&mut self) -> [u16; 2] {
        let (home, count) = (self.homes.draw(&mut self.random) as u16, u64::from(self.shape.sites));
        let multi_site = count > 1 && self.random.happens(self.shape.multi_site);
        let distance = if multi_site { 1 + self.random.below(count - 1) } else { 0 };
        [home, ((u64::from(home) + distance) % count) as u16]
    }

    /// A row that is there, or in a while.
    fn existing(&mut self, site: u16) -> RowName {
        let rank = self.shape.zipf.draw(&mut self.random);
        if self.shape.latest { self.latest(site, rank) } else { self.scrambled(site, rank) }
    }

    /// The row of a rank. Those that are called most lie apart; each rank has a row of its own, which YCSB's hash does not give.
    fn scrambled(&self, site: u16, rank: u32) -> RowName {
        let Shape { rows_per_site, stride, .. } = *self.shape;
        RowName {
            site,
            slot: (u64::from(rank) * u64::from(stride) % u64::from(rows_per_site)) as u32,
            number: 0,
        }
    }

    /// The rows that this client inserted, the last one first, and then those that were loaded.
    fn latest(&self, site: u16, rank: u32) -> RowName {
        match self.inserted[usize::from(site)].checked_sub(rank + 1) {
            Some(count) => self.own(site, count),
            None => {
                let older = rank - self.inserted[usize::from(site)];
                RowName { site, slot: self.shape.rows_per_site - 1 - older, number: 0 }
            }
        }
    }

    /// The row of this client's insert number `count` at a site: a number that no other has, and a place that follows from it.
    fn own(&self, site: u16, count: u32) -> RowName {
        let number = (u64::from(self.client) + 1) << COUNTER_BITS | u64::from(count);
        let slot = key_hash(&number.to_le_bytes()) % u64::from(self.shape.rows_per_site);
        RowName { site, slot: slot as u32, number }
    }

    fn insert(&mut self, site: u16) -> RowName {
        let count = self.inserted[usize::from(site)];
        assert!(
            count >> COUNTER_BITS == 0,
            "a generator has 2^{COUNTER_BITS} inserts for each site: make one with a new client number"
        );
        self.inserted[usize::from(site)] += 1;
        self.own(site, count)
    }

    /// Rows that are there, all different, alternately of two sites.
    fn rows(&mut self, sites: [u16; 2]) -> Vec<RowName> {
        let mut rows = Vec::with_capacity(self.shape.keys);
        while rows.len() < self.shape.keys {
            let row = self.existing(sites[rows.len() % 2]);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.random.fill(&mut bytes);
        bytes
    }

    fn changes(&mut self, sites: [u16; 2]) -> Vec<Change> {
        let rows = self.rows(sites);
        let change = |row| {
            let field = self.random.below(FIELDS as u64) as u8;
            Change { row, field, value: self.bytes(self.shape.field_bytes) }
        };
        rows.into_iter().map(change).collect()
    }

    fn new_rows(&mut self, sites: [u16; 2]) -> Vec<NewRow> {
        let Shape { keys, field_bytes, .. } = *self.shape;
        let new = |place: usize| {
            let row = self.insert(sites[place % 2]);
            NewRow { row, fields: self.bytes(FIELDS * field_bytes) }
        };
        (0..keys).map(new).collect()
    }

    fn stretches(&mut self, sites: [u16; 2]) -> Vec<Stretch> {
        let rows = self.rows(sites);
        let stretch = |from| {
            let length = 1 + self.random.below(u64::from(self.shape.scan_length_max)) as u32;
            Stretch { from, length }
        };
        rows.into_iter().map(stretch).collect()
    }
}

impl Generator for Calls {
    fn next(&mut self) -> Call {
        let (percent, usual, other) = self.shape.mix.kinds();
        let kind = if self.random.below(100) < percent { usual } else { other };
        let sites = self.sites();
        let (procedure, home) = (self.shape.procedures[kind as usize], u32::from(sites[0]));
        match kind {
            Kind::Read => call(procedure, &self.rows(sites), home),
            Kind::Update | Kind::ReadModifyWrite => call(procedure, &self.changes(sites), home),
            Kind::Insert => call(procedure, &self.new_rows(sites), home),
            Kind::Scan => call(procedure, &self.stretches(sites), home),
        }
    }
}
