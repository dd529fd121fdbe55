//! Faults of the network: ways that are cut or clogged, hosts that are slow.
//!
//! A fault lasts until it is healed; healing does not count how often something was broken. After it, packets do not wait
//! for those that were sent before: what left a clogged way with a late arrival comes late.

use super::{Host, Network};
use crate::time::Nanoseconds;

impl Network {
    /// Cuts one way: what `from` sends to `to` is lost. The other direction goes on.
    pub fn cut(&mut self, from: Host, to: Host) {
        let way = self.way(from, to);
        let way = &mut self.ways[way];
        if !way.cut {
            way.cut = true;
            way.cuts = way.cuts.wrapping_add(1);
        }
        self.plain = false;
    }

    /// Mends one way: it is neither cut nor clogged any more.
    pub fn heal(&mut self, from: Host, to: Host) {
        let index = self.way(from, to);
        let way = &mut self.ways[index];
        way.cut = false;
        way.clogged_until = 0;
        self.last_arrivals[index] = 0;
    }

    /// Cuts all ways between the hosts of two sides, in both directions.
    pub fn partition(&mut self, side_a: &[Host], side_b: &[Host]) {
        for a in side_a {
            for b in side_b.iter().filter(|b| *b != a) {
                self.cut(*a, *b);
                self.cut(*b, *a);
            }
        }
    }

    /// Clogs one way: what is sent on it before `until` leaves then, in order.
    pub fn clog(&mut self, from: Host, to: Host, until: Nanoseconds) {
        let way = self.way(from, to);
        self.ways[way].clogged_until = until;
        self.plain = false;
    }

    /// Makes the latency of all packets from and to a host so many times as long; 1 is as usual.
    pub fn slow(&mut self, host: Host, factor: u32) {
        self.slowness[host.index()] = factor.max(1);
        self.plain = false;
    }

    /// Whether packets from one host to the other are lost because the way is cut.
    pub fn is_cut(&self, from: Host, to: Host) -> bool {
        self.ways[self.way(from, to)].cut
    }

    /// Ends all faults. What packets suffer by chance goes on, see [`lossless`](Network::lossless).
    pub fn heal_all(&mut self) {
        for way in &mut self.ways {
            way.cut = false;
            way.clogged_until = 0;
        }
        self.last_arrivals.fill(0);
        self.slowness.fill(1);
        self.plain = self.options.is_plain();
    }

    /// No packet is lost, duplicated or reordered by chance from now on. Faults stay, see
    /// [`heal_all`](Network::heal_all).
    pub fn lossless(&mut self) {
        self.options.loss = None;
        self.options.duplication = None;
        self.options.reordering = None;
        // Only once no fault is left may the short path be taken: it looks at none of them.
        let faulty = self.ways.iter().any(|way| way.cut || way.clogged_until > 0)
            || self.slowness.iter().any(|factor| *factor > 1);
        self.plain = self.options.is_plain() && !faulty;
    }
}
