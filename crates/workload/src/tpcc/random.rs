//! The random functions of clauses 2.1.5, 2.1.6 and 4.3.2.

use arrayvec::ArrayString;

use crate::random::Random;

/// Syllables of last names by digit (clause 4.3.2.3).
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// A customer's last name: at most three syllables of five letters.
pub type LastName = ArrayString<16>;

/// The last name with a number from 0 to 999: a syllable for each of its three digits (clause 4.3.2.3).
pub fn last_name(number: u32) -> LastName {
    let mut name = LastName::new();
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        name.push_str(SYLLABLES[digit as usize]);
    }
    name
}

/// The non-uniform draw `NURand(A, x, y)` (clause 2.1.6), from uniform draws of `0..=A` and `x..=y` and the constant `C`.
#[inline]
pub fn non_uniform(from_zero_to_a: i64, from_x_to_y: i64, c: i64, x: i64, y: i64) -> i64 {
    ((from_zero_to_a | from_x_to_y) + c) % (y - x + 1) + x
}

/// The constants `C` of the three non-uniform draws: chosen once for a database (clause 2.1.6.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    /// For last names while loading.
    last_name_load: i64,
    /// For last names of calls. Its distance to the one above is from 65 to 119, but neither 96 nor 112 (clause 2.1.6.1).
    last_name_run: i64,
    customer: i64,
    item: i64,
}

const LAST_NAME_A: i64 = 255;
const CUSTOMER_A: i64 = 1023;
const ITEM_A: i64 = 8191;

impl Constants {
    pub(crate) fn new(seed: u64) -> Constants {
        let mut random = Random::new(seed, "tpcc constants", &[]);
        let last_name_load = random.between(0, LAST_NAME_A);
        let last_name_run = loop {
            let drawn = random.between(0, LAST_NAME_A);
            let distance = (drawn - last_name_load).abs();
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break drawn;
            }
        };
        Constants {
            last_name_load,
            last_name_run,
            customer: random.between(0, CUSTOMER_A),
            item: random.between(0, ITEM_A),
        }
    }

    /// The number of a loaded customer's last name (clause 4.3.3.1).
    pub(crate) fn last_name_loaded(&self, random: &mut Random, maximum: i64) -> u32 {
        draw(random, LAST_NAME_A, 0, maximum, self.last_name_load) as u32
    }

    /// The number of the last name that a Payment asks for (clause 2.5.1.2).
    pub(crate) fn last_name(&self, random: &mut Random, maximum: i64) -> u32 {
        draw(random, LAST_NAME_A, 0, maximum, self.last_name_run) as u32
    }

    /// A customer's number, from 1 (clauses 2.4.1.3, 2.5.1.2).
    pub(crate) fn customer(&self, random: &mut Random, customers: u32) -> i32 {
        draw(random, CUSTOMER_A, 1, i64::from(customers), self.customer) as i32
    }

    /// An item's number, from 1 (clause 2.4.1.5).
    pub(crate) fn item(&self, random: &mut Random, items: u32) -> i32 {
        draw(random, ITEM_A, 1, i64::from(items), self.item) as i32
    }
}

#[inline]
fn draw(random: &mut Random, a: i64, x: i64, y: i64, c: i64) -> i64 {
    non_uniform(random.between(0, a), random.between(x, y), c, x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of clause 4.3.2.3, and the shortest and longest name.
    #[test]
    fn last_names_of_the_specification() {
        assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
        assert_eq!(last_name(40).as_str(), "BARPRESBAR");
        assert_eq!(last_name(0).as_str(), "BARBARBAR");
        assert_eq!(last_name(777).as_str(), "CALLYCALLYCALLY");
    }

    /// Clause 2.1.6: `(((random(0..A) | random(x..y)) + C) % (y - x + 1)) + x`.
    #[test]
    fn non_uniform_draws_follow_the_formula() {
        assert_eq!(non_uniform(0b1010, 0b0101, 0, 0, 999), 15);
        assert_eq!(non_uniform(1023, 3000, 0, 1, 3000), (1023 | 3000) % 3000 + 1);
        assert_eq!(non_uniform(0, 1, 259, 1, 3000), 261);
        assert_eq!(non_uniform(8191, 100_000, 7911, 1, 100_000), ((8191 | 100_000) + 7911) % 100_000 + 1);
    }

    #[test]
    fn constants_keep_their_distance() {
        for seed in 0..1_000 {
            let Constants { last_name_load, last_name_run, .. } = Constants::new(seed);
            let distance = (last_name_run - last_name_load).abs();
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112);
        }
    }

    /// With `A = 255`, a number whose low eight bits (before the constant is added) are all ones is drawn far more often than
    /// one with a single one: (3/4)^8 against (3/4) (1/4)^7, each times the share of its upper bits.
    #[test]
    fn non_uniform_draws_are_skewed() {
        let constants = Constants::new(1);
        let mut random = Random::new(1, "skew", &[]);
        let mut hits = [0_u32; 1_000];
        for _ in 0..200_000 {
            hits[constants.last_name(&mut random, 999) as usize] += 1;
        }
        let of = |before: i64| hits[((before + constants.last_name_run) % 1_000) as usize];
        assert!((4_900..5_400).contains(&of(255)) && of(64) < 15, "{} and {}", of(255), of(64));
    }
}
