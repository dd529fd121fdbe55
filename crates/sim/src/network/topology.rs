//! Where hosts stand, and how far apart the places are.
//!
//! The distances between regions are those that the papers measured with ping on Amazon EC2. The thesis names all three
//! (Sciascia, *High Performance Deferred Update Replication*, §6.8.1). Calvin §3.1.1 names only their range for
//! East US, EU and a third site, 100 to 170 ms, and about 1 ms inside a data centre. A ping is a round trip; both ways
//! are taken to be equally long.

use ordain_db::error::Error;

use super::Host;
use super::latency::Latency;
use crate::time::{MILLISECOND, Nanoseconds};

/// A region of the papers' experiments in wide-area networks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Region {
    /// US-EAST: Northern Virginia.
    UsEast,
    /// US-WEST: Oregon.
    UsWest,
    /// EU: Ireland.
    Europe,
}

/// Round trips in milliseconds, by the numbers of the regions.
const PING_MS: [[u64; 3]; 3] = [
    [1, 100, 90],  // US-EAST
    [100, 1, 170], // US-WEST
    [90, 170, 1],  // EU
];

impl Region {
    /// All of them, in the order of their numbers.
    pub const ALL: [Region; 3] = [Region::UsEast, Region::UsWest, Region::Europe];

    /// The round trip to another region, or to another machine of this one, in milliseconds.
    pub fn ping_ms(self, other: Region) -> u64 {
        PING_MS[self as usize][other as usize]
    }

    /// The way to another region, or to another machine of this one.
    pub fn latency(self, other: Region) -> Latency {
        Latency::distant(self.ping_ms(other) * MILLISECOND / 2)
    }
}

/// The latency between every two hosts: each host stands at a place, and a table has the way from place to place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The place of each host; empty if there is only one place.
    places: Vec<u8>,
    /// By the place of the sender and that of the receiver.
    one_way: Vec<Vec<Latency>>,
}

impl Topology {
    /// All hosts equally far from each other, however many there are.
    pub fn uniform(latency: Latency) -> Topology {
        Topology { places: Vec::new(), one_way: vec![vec![latency]] }
    }

    /// All processes on one machine: [`Latency::LOCAL`].
    pub fn local() -> Topology {
        Topology::uniform(Latency::LOCAL)
    }

    /// All machines in one hall: [`Latency::LAN`].
    pub fn lan() -> Topology {
        Topology::uniform(Latency::LAN)
    }

    /// Each host in a region: `regions[0]` is that of host 0.
    pub fn wan(regions: &[Region]) -> Topology {
        let one_way = Region::ALL.map(|from| Region::ALL.map(|to| from.latency(to)).to_vec()).to_vec();
        Topology { places: regions.iter().map(|region| *region as u8).collect(), one_way }
    }

    /// Each host at a place, and the way from place to place, which need not be as long as the way back. An error if the
    /// table is not square, or if a host stands at a place that it does not have.
    pub fn table(places: Vec<u8>, one_way: Vec<Vec<Latency>>) -> Result<Topology, Error> {
        let size = one_way.len();
        if let Some(row) = one_way.iter().find(|row| row.len() != size) {
            let found = row.len();
            let message = format!(
                "a row of the latency table has {found} entries: give {size}, one for each of its places"
            );
            return Err(Error::Invalid(message));
        }
        if let Some(place) = places.iter().find(|place| usize::from(**place) >= size) {
            let message = format!(
                "a host stands at place {place}, but the latency table has {size} places, from 0: add it there"
            );
            return Err(Error::Invalid(message));
        }
        Ok(Topology { places, one_way })
    }

    /// Whether so many hosts can be placed.
    pub(super) fn check(&self, hosts: usize) -> Result<(), Error> {
        let placed = self.places.len();
        if self.one_way.len() == 1 || placed >= hosts {
            return Ok(());
        }
        Err(Error::Invalid(format!("the topology places {placed} of {hosts} hosts: give each a place")))
    }

    /// The place of a host.
    pub(super) fn place(&self, host: Host) -> u8 {
        self.places.get(host.index()).copied().unwrap_or(0)
    }

    /// The table as one list: the way from place `a` to place `b` is at `a * places + b`.
    pub(super) fn flat(&self) -> Vec<Latency> {
        self.one_way.concat()
    }

    /// Number of places.
    pub(super) fn places(&self) -> usize {
        self.one_way.len()
    }

    /// The way between two hosts. A host reaches itself over its loopback device.
    pub fn latency(&self, from: Host, to: Host) -> Latency {
        if from == to {
            return Latency::LOCAL;
        }
        self.one_way[usize::from(self.place(from))][usize::from(self.place(to))]
    }

    /// The longest round trip between any two places, tails included, without the time of bytes on the wire.
    pub fn round_trip_max(&self) -> Nanoseconds {
        let longest = self.one_way.iter().flatten().map(Latency::longest).max();
        longest.unwrap_or(0).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_as_far_apart_as_in_the_papers() {
        let topology = Topology::wan(&Region::ALL);
        let pairs = [(0, 1, 50), (0, 2, 45), (1, 2, 85)];
        for (a, b, one_way_ms) in pairs {
            let there = topology.latency(Host(a), Host(b));
            assert_eq!(there.minimum, one_way_ms * MILLISECOND);
            assert_eq!(there, topology.latency(Host(b), Host(a)));
        }
        assert_eq!(topology.latency(Host(1), Host(1)), Latency::LOCAL);
        let neighbours = Topology::wan(&[Region::Europe, Region::Europe]);
        assert_eq!(neighbours.latency(Host(0), Host(1)).minimum, MILLISECOND / 2);
        assert!((170..200).contains(&(topology.round_trip_max() / MILLISECOND)));
    }

    #[test]
    fn tables_are_checked() {
        let row = |count| vec![Latency::LAN; count];
        assert!(Topology::table(vec![0], vec![row(2), row(1)]).is_err());
        assert!(Topology::table(vec![0, 2], vec![row(2), row(2)]).is_err());
        let topology = Topology::table(vec![0, 1], vec![row(2), row(2)]).unwrap();
        assert!(topology.check(2).is_ok());
        assert!(topology.check(3).is_err());
        assert!(Topology::lan().check(1_000).is_ok());
        // A table without places has no way to anywhere.
        assert!(Topology::table(Vec::new(), Vec::new()).unwrap().check(1).is_err());
    }
}
