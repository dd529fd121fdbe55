//! Zipf's distribution by integers: the same draws on every machine.
//!
//! The weight of rank `i`, from 1, is `i^-theta`. Powers of floats are not rounded alike everywhere, so that they are computed
//! here in fixed point, once: a logarithm by squaring, a power of two by the roots of two. What is drawn is exactly what the
//! table of weights says, at every theta; the usual approximation (Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases", SIGMOD 1994) has none at 1, and needs a power for each draw.

use ordain_db::error::Error;

use crate::random::Random;

/// Fractional bits of a logarithm, of an exponent and of theta.
const FRACTION_BITS: u32 = 40;

/// Fractional bits of numbers from 1 to 2.
const ROOT_BITS: u32 = 62;

/// The weight of the first rank is two to the power of this.
const WEIGHT_BITS: u32 = 36;

/// Most ranks: the sum of their weights fits, whatever theta is.
pub(super) const RANKS_MAX: u32 = 1 << 27;

/// Above this, nearly all draws are the first rank.
const THETA_MAX: f64 = 2.0;

/// Ranks from 0, each drawn in proportion to its weight.
#[derive(Debug)]
pub struct Zipf {
    /// The sum of the weights to each rank, that of the rank included.
    sums: Vec<u64>,
}

impl Zipf {
    /// The distribution over so many ranks. With a `theta` of 0 all are alike likely; that of YCSB is 0.99.
    pub fn new(ranks: u32, theta: f64) -> Result<Zipf, Error> {
        if !(1..=RANKS_MAX).contains(&ranks) || !(0.0..=THETA_MAX).contains(&theta) {
            return Err(Error::Invalid(format!(
                "Zipf's distribution over {ranks} ranks with theta {theta}: give 1 to {RANKS_MAX}, and 0 to {THETA_MAX}"
            )));
        }
        // The product with a power of two is exact.
        let theta = (theta * (1_u64 << FRACTION_BITS) as f64).round() as u64;
        let roots = roots_of_two();
        let mut sum = 0;
        let sums = (1..=u64::from(ranks)).map(|rank| {
            sum += weight(rank, theta, &roots);
            sum
        });
        Ok(Zipf { sums: sums.collect() })
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let all = self.sums.last().copied().unwrap_or_default();
        let drawn = random.below(all);
        self.sums.partition_point(|sum| *sum <= drawn) as u32
    }
}

/// `rank^-theta`, at least the smallest weight that there is: every rank can be drawn.
fn weight(rank: u64, theta: u64, roots: &[u64; FRACTION_BITS as usize]) -> u64 {
    let exponent = (u128::from(logarithm(rank)) * u128::from(theta)) >> FRACTION_BITS;
    let (whole, fraction) =
        ((exponent >> FRACTION_BITS) as u32, exponent as u64 & ((1 << FRACTION_BITS) - 1));
    // 2^-(whole + fraction) is 2^(1 - fraction) over 2^(whole + 1).
    let weight = if fraction == 0 {
        (1 << WEIGHT_BITS) >> whole.min(WEIGHT_BITS)
    } else {
        let power = power_of_two((1 << FRACTION_BITS) - fraction, roots);
        power >> (ROOT_BITS - WEIGHT_BITS + whole + 1).min(u64::BITS - 1)
    };
    weight.max(1)
}

/// The logarithm of a positive number to base two.
fn logarithm(number: u64) -> u64 {
    let zeros = number.leading_zeros();
    let mut mantissa = number << zeros;
    let mut bits = u64::from(u64::BITS - 1 - zeros);
    for _ in 0..FRACTION_BITS {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let carry = (square >> 127) as u32;
        bits = bits << 1 | u64::from(carry);
        mantissa = (square >> (63 + carry)) as u64;
    }
    bits
}

/// Two to the power of a fraction.
fn power_of_two(fraction: u64, roots: &[u64; FRACTION_BITS as usize]) -> u64 {
    let mut power = 1 << ROOT_BITS;
    for (place, root) in (1..).zip(roots) {
        if fraction >> (FRACTION_BITS - place) & 1 == 1 {
            power = ((u128::from(power) * u128::from(*root)) >> ROOT_BITS) as u64;
        }
    }
    power
}

/// The square root of two, that one's, and so on.
fn roots_of_two() -> [u64; FRACTION_BITS as usize] {
    let mut root = 2_u128 << ROOT_BITS;
    std::array::from_fn(|_| {
        root = (root << ROOT_BITS).isqrt();
        root as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all ranks together.
    fn weights(ranks: u32, theta: f64) -> Vec<u64> {
        let sums = Zipf::new(ranks, theta).unwrap().sums;
        let before = std::iter::once(&0).chain(&sums);
        sums.iter().zip(before).map(|(sum, before)| sum - before).collect()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an independent power to compare with")]
    fn weights_are_powers_of_the_rank() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.3, 2.0] {
            for (index, weight) in weights(20_000, theta).into_iter().enumerate() {
                let expected = (index as f64 + 1.0).powf(-theta) * (1_u64 << WEIGHT_BITS) as f64;
                // A weight is cut to an integer.
                assert!((weight as f64 - expected).abs() < 1.5, "{theta}, {index}: {weight} for {expected}");
            }
        }
    }

    #[test]
    fn weights_are_pinned() {
        let sums = Zipf::new(1_000_000, 0.99).unwrap().sums;
        assert_eq!([sums[0], sums[1], sums[2], sums[999_999]], PINNED);
    }

    const PINNED: [u64; 4] = [68_719_476_736, 103_318_205_984, 126_477_739_192, 1_057_719_360_586];

    #[test]
    fn draws_follow_the_weights() {
        let (zipf, weights) = (Zipf::new(50, 0.99).unwrap(), weights(50, 0.99));
        let (mut random, mut drawn) = (Random::new(1, "zipf", &[]), [0_u32; 50]);
        const DRAWS: u32 = 200_000;
        (0..DRAWS).for_each(|_| drawn[zipf.draw(&mut random) as usize] += 1);
        let all = weights.iter().sum::<u64>() as f64;
        for (rank, (drawn, weight)) in drawn.iter().zip(weights).enumerate() {
            let expected = weight as f64 / all * f64::from(DRAWS);
            let off = (f64::from(*drawn) - expected).abs();
            assert!(off < 5.0 * expected.sqrt(), "rank {rank}: {drawn} for {expected}");
        }
    }

    #[test]
    fn wrong_distributions_are_refused() {
        for (ranks, theta) in [(0, 0.5), (RANKS_MAX + 1, 0.5), (1, -0.1), (1, 2.1), (1, f64::NAN)] {
            assert!(Zipf::new(ranks, theta).is_err(), "{ranks}, {theta}");
        }
        let only = Zipf::new(1, 0.99).unwrap();
        assert_eq!(only.draw(&mut Random::new(1, "zipf", &[])), 0);
    }
}
