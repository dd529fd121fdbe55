//! How long one packet is on its way.

use ordain_workload::random::Random;

use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds};

/// The distribution of the one-way delay of a packet, without the time that its bytes take on the wire.
///
/// A delay is the minimum, plus a part of the spread, plus now and then a part of the tail. The part of the spread is the
/// smaller of two uniform draws: small delays are the frequent ones, and the mean is a third of the spread.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Latency {
    /// No packet is faster.
    pub minimum: Nanoseconds,
    /// Packets outside of the tail are slower than the minimum by less than this.
    pub spread: Nanoseconds,
    /// One packet in so many is in the tail; 0 for none.
    pub tail_one_in: u32,
    /// A packet in the tail takes up to this much longer, uniformly.
    pub tail: Nanoseconds,
}

impl Latency {
    /// Between processes of one machine, over its loopback device: 20 to 60 microseconds.
    pub const LOCAL: Latency = Latency {
        minimum: 20 * MICROSECOND,
        spread: 40 * MICROSECOND,
        tail_one_in: 1_000,
        tail: 200 * MICROSECOND,
    };

    /// Between machines of one rack or hall: 100 to 300 microseconds.
    pub const LAN: Latency = Latency {
        minimum: 100 * MICROSECOND,
        spread: 200 * MICROSECOND,
        tail_one_in: 1_000,
        tail: MILLISECOND,
    };

    /// Always the same delay.
    pub const fn fixed(delay: Nanoseconds) -> Latency {
        Latency { minimum: delay, spread: 0, tail_one_in: 0, tail: 0 }
    }

    /// Over a long distance whose packets take at least `one_way`. The papers name one number per distance; the spread of
    /// 2% and the tail of up to 10% for one packet in a thousand are assumptions of this model.
    pub const fn distant(one_way: Nanoseconds) -> Latency {
        Latency { minimum: one_way, spread: one_way / 50, tail_one_in: 1_000, tail: one_way / 10 }
    }

    /// The longest delay that can be drawn.
    pub fn longest(&self) -> Nanoseconds {
        let tail = if self.tail_one_in == 0 { 0 } else { self.tail };
        self.minimum.saturating_add(self.spread).saturating_add(tail)
    }

    /// The delay of one packet.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Nanoseconds {
        let mut delay = self.minimum;
        if self.spread > 0 {
            // Both uniform draws come from one: its halves.
            let bits = random.bits();
            let smaller = (bits >> 32).min(bits & u64::from(u32::MAX));
            delay += ((u128::from(smaller) * u128::from(self.spread)) >> 32) as Nanoseconds;
        }
        if self.tail_one_in > 0 && random.below(u64::from(self.tail_one_in)) == 0 {
            delay += random.below(self.tail);
        }
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_lie_in_their_bounds() {
        let mut random = Random::new(1, "latency", &[]);
        for latency in [Latency::LOCAL, Latency::LAN, Latency::distant(50 * MILLISECOND)] {
            let drawn: Vec<Nanoseconds> = (0..100_000).map(|_| latency.draw(&mut random)).collect();
            let typical = latency.minimum + latency.spread;
            let in_tail = drawn.iter().filter(|delay| **delay >= typical).count();
            assert!(drawn.iter().all(|delay| (latency.minimum..latency.longest()).contains(delay)));
            assert!((20..=130).contains(&in_tail), "{in_tail} of 100,000 delays are in the tail");
            let mean = drawn.iter().sum::<u64>() / 100_000;
            let expected = latency.minimum + latency.spread / 3 + latency.tail / 2_000;
            assert!(mean.abs_diff(expected) < latency.spread / 100, "mean {mean}, expected {expected}");
        }
    }

    #[test]
    fn a_fixed_delay_draws_nothing() {
        let mut random = Random::new(1, "latency", &[]);
        let mut untouched = random.clone();
        assert_eq!(Latency::fixed(7).draw(&mut random), 7);
        assert_eq!(random.bits(), untouched.bits());
    }
}
