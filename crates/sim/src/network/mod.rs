//! The network: when a packet arrives, and whether it does.
//!
//! Each ordered pair of hosts has a *way*. A packet leaves its sender when the way is not clogged and the bytes before it
//! are on the wire, takes the drawn [`Latency`], and does not overtake the packet before it. [`Network::send`] only tells
//! the moments of arrival; the driver plans the events. A packet can be
//!
//! - *lost*, *duplicated* or *reordered*, each with a chance for every packet ([`NetworkOptions`]); a reordered packet is
//!   delayed, and those behind it do not wait for it. A duplicate takes its own time, too;
//! - hit by a fault ([`faults`]): a way that is cut or clogged, a host that is slow.
//!
//! What hosts say to themselves goes over the loopback device: [`Latency::LOCAL`], and none of the above but a fault that
//! names the host as sender and as receiver.
//!
//! On this network [`link`] makes reliable streams, as the server has them between its processes.
//!
//! # What is left out
//!
//! - Bandwidth belongs to a way, not to the network card that all ways of a host share.
//! - A queue in front of a slow or clogged way has no bound: loss is a matter of chance, not of congestion.

pub mod arrivals;
pub mod faults;
pub mod latency;
pub mod link;
pub mod topology;

use ordain_db::error::Error;
use ordain_workload::random::{Chance, Random};

use crate::time::{Nanoseconds, SECOND};
use arrivals::Arrivals;
use latency::Latency;
use topology::Topology;

/// Number of a host, from 0: the machines first, then the hosts of clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host(pub u16);

impl Host {
    /// The number as an index into arrays of hosts.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What becomes of the packets that are on a way when it is cut.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum InFlight {
    /// They arrive, as if the cut were at the sender.
    #[default]
    Delivered,
    /// They are lost. The driver must ask [`Network::arrives`] at the time of each arrival.
    Lost,
}

/// What the network is like, faults aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkOptions {
    /// How far the hosts are apart.
    pub topology: Topology,
    /// Bytes per second on each way; 0 for any number.
    pub bandwidth: u64,
    /// How likely a packet is lost; nothing for never.
    pub loss: Option<Chance>,
    /// How likely a packet arrives once more, and once more after that; nothing for never.
    pub duplication: Option<Chance>,
    /// How likely a packet is delayed and may be overtaken; nothing for never.
    pub reordering: Option<Chance>,
    /// Packets that are reordered are delayed, and duplicates come later, by up to this much.
    pub reordering_delay: Nanoseconds,
    /// What becomes of the packets that are on a way when it is cut.
    pub in_flight: InFlight,
}

impl NetworkOptions {
    /// A network that does nothing but take time.
    pub fn reliable(topology: Topology) -> NetworkOptions {
        NetworkOptions {
            topology,
            bandwidth: 0,
            loss: None,
            duplication: None,
            reordering: None,
            reordering_delay: 0,
            in_flight: InFlight::Delivered,
        }
    }

    /// Whether every packet arrives once, in order, and after its latency alone.
    pub fn is_plain(&self) -> bool {
        self.bandwidth == 0
            && self.loss.is_none()
            && self.duplication.is_none()
            && self.reordering.is_none()
            && self.in_flight == InFlight::Delivered
    }
}

/// What went over the network so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NetworkCounters {
    /// Packets that hosts sent, each once however many copies arrived.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were lost by chance or over a cut way, and copies that were lost in flight.
    pub lost: u64,
    /// Copies that arrived beyond the first.
    pub duplicated: u64,
    /// Packets that were delayed so that others may overtake them.
    pub reordered: u64,
}

/// The state of the way from one host to another, as far as a reliable network does not need it.
#[derive(Clone, Default, Debug)]
struct Way {
    /// When the wire is free for the next packet.
    free_at: Nanoseconds,
    /// Packets wait until then.
    clogged_until: Nanoseconds,
    /// How often it was cut.
    cuts: u32,
    cut: bool,
}

/// The network between some hosts.
#[derive(Clone, Debug)]
pub struct Network {
    options: NetworkOptions,
    random: Random,
    hosts: usize,
    /// By host: its place in the topology, and by how much its packets are slower (1: not at all).
    places: Vec<u8>,
    slowness: Vec<u32>,
    /// By the places of sender and receiver.
    latencies: Vec<Latency>,
    /// By sender and receiver: when the last packet arrives that others may not overtake. Apart from the ways, since
    /// this is all that the short path touches.
    last_arrivals: Vec<Nanoseconds>,
    ways: Vec<Way>,
    /// Nanoseconds that a byte takes on the wire, as a fixed-point number with 32 fractional bits.
    byte_time: u64,
    /// Nothing but latency: the short path is taken.
    plain: bool,
    counters: NetworkCounters,
}

impl Network {
    /// The network between `hosts` hosts. An error if the topology does not place them all.
    pub fn new(hosts: usize, options: NetworkOptions, random: Random) -> Result<Network, Error> {
        options.topology.check(hosts)?;
        // Rounded up, so that no bandwidth is exceeded.
        let byte_time = match options.bandwidth {
            0 => 0,
            bandwidth => (SECOND << 32).div_ceil(bandwidth),
        };
        let places = (0..hosts).map(|host| options.topology.place(Host(host as u16))).collect();
        Ok(Network {
            plain: options.is_plain(),
            latencies: options.topology.flat(),
            options,
            random,
            hosts,
            places,
            slowness: vec![1; hosts],
            last_arrivals: vec![0; hosts * hosts],
            ways: vec![Way::default(); hosts * hosts],
            byte_time,
            counters: NetworkCounters::default(),
        })
    }

    /// What went over it so far.
    pub fn counters(&self) -> NetworkCounters {
        self.counters
    }

    /// What it was made with; [`lossless`](Network::lossless) takes the chances out.
    pub fn options(&self) -> &NetworkOptions {
        &self.options
    }

    /// Sends a packet of so many bytes. The driver plans an event for each moment of arrival; none is before `now`.
    ///
    /// # Panics
    /// When there is no such host.
    #[inline]
    pub fn send(&mut self, now: Nanoseconds, from: Host, to: Host, bytes: u64) -> Arrivals {
        self.counters.sent += 1;
        self.counters.bytes += bytes;
        let way = self.way(from, to);
        if !self.plain {
            return self.send_with_faults(now, from, to, bytes);
        }
        let arrival = now + self.draw_latency(from, to);
        Arrivals::one(self.keep_order(way, arrival), 0)
    }

    /// The long path of [`send`](Network::send).
    fn send_with_faults(&mut self, now: Nanoseconds, from: Host, to: Host, bytes: u64) -> Arrivals {
        let index = self.way(from, to);
        let looped = from == to;
        let way = &mut self.ways[index];
        if way.cut {
            self.counters.lost += 1;
            return Arrivals::default();
        }
        let generation = way.cuts;
        let mut departure = now.max(way.clogged_until);
        if self.byte_time > 0 && !looped {
            let wire = (u128::from(bytes) * u128::from(self.byte_time)).div_ceil(1 << 32);
            departure = departure.max(way.free_at).saturating_add(wire as Nanoseconds);
            way.free_at = departure;
        }
        if !looped && self.happens(self.options.loss) {
            self.counters.lost += 1;
            return Arrivals::default();
        }
        let arrival = departure.saturating_add(self.slowed_latency(from, to));
        if looped {
            return Arrivals::one(self.keep_order(index, arrival), generation);
        }
        let mut arrivals = if self.happens(self.options.reordering) {
            self.counters.reordered += 1;
            Arrivals::one(self.stray(arrival), generation)
        } else {
            Arrivals::one(self.keep_order(index, arrival), generation)
        };
        while !arrivals.is_full() && self.happens(self.options.duplication) {
            self.counters.duplicated += 1;
            let copy = departure.saturating_add(self.slowed_latency(from, to));
            arrivals.add(self.stray(copy));
        }
        arrivals
    }

    /// Whether a copy arrives whose time has come, by the generation of its [`Arrivals`]. Always, unless packets in flight
    /// are lost when a way is cut ([`InFlight::Lost`]): only then need the driver ask, once for each copy.
    pub fn arrives(&mut self, from: Host, to: Host, generation: u32) -> bool {
        let way = self.way(from, to);
        let lost = self.options.in_flight == InFlight::Lost && self.ways[way].cuts != generation;
        self.counters.lost += u64::from(lost);
        !lost
    }

    /// The index of the way between two hosts.
    #[inline]
    fn way(&self, from: Host, to: Host) -> usize {
        assert!(to.index() < self.hosts, "there is no host {}, only {} hosts", to.0, self.hosts);
        from.index() * self.hosts + to.index()
    }

    #[inline]
    fn draw_latency(&mut self, from: Host, to: Host) -> Nanoseconds {
        if from == to {
            return Latency::LOCAL.draw(&mut self.random);
        }
        let row = usize::from(self.places[from.index()]) * self.options.topology.places();
        self.latencies[row + usize::from(self.places[to.index()])].draw(&mut self.random)
    }

    /// A latency, longer if one of the hosts is slow: by the factor of the slower one.
    fn slowed_latency(&mut self, from: Host, to: Host) -> Nanoseconds {
        let factor = self.slowness[from.index()].max(self.slowness[to.index()]);
        self.draw_latency(from, to).saturating_mul(u64::from(factor))
    }

    /// The moment at which a packet arrives that may not overtake those before it.
    #[inline]
    fn keep_order(&mut self, way: usize, arrival: Nanoseconds) -> Nanoseconds {
        let last = &mut self.last_arrivals[way];
        *last = arrival.max(*last);
        *last
    }

    /// The moment at which a copy arrives that may come in any order.
    fn stray(&mut self, arrival: Nanoseconds) -> Nanoseconds {
        arrival.saturating_add(self.random.below(self.options.reordering_delay.saturating_add(1)))
    }

    fn happens(&mut self, chance: Option<Chance>) -> bool {
        chance.is_some_and(|chance| self.random.happens(chance))
    }
}

#[cfg(test)]
mod tests;
