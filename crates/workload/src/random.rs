//! Seeded randomness: every draw of a workload is a pure function of a seed and of a stream's name.
//!
//! The bits come from PCG (`Mcg128Xsl64`), whose output is fixed by its publication; everything that turns bits into
//! values is written here, so that no library update can change the rows or the calls of a seed. The pinned values
//! in the tests below guard both.

use ordain_db::error::Error;
use rand_pcg::Mcg128Xsl64;
use rand_pcg::rand_core::Rng as _;

/// The characters of random strings: lower case, upper case and digits (TPC-C clause 4.3.2.2).
const ALPHANUMERIC: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// One seeded stream of random values.
#[derive(Clone, Debug)]
pub struct Random(Mcg128Xsl64);

impl Random {
    /// The stream that `seed` has under a name: `label` and numbers, such as a table and a warehouse. Different names
    /// give independent streams, so that parts of a database can be made alone and in any order.
    pub fn new(seed: u64, label: &str, numbers: &[u64]) -> Random {
        let mut state = mix(seed ^ ordain_db::hash::key_hash(label.as_bytes()));
        for number in numbers {
            state = mix(state.wrapping_add(*number));
        }
        Random(Mcg128Xsl64::new(u128::from(mix(state)) << 64 | u128::from(state)))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `bound`; 0 when `bound` is 0. The bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number from `low` to `high`, both included (`random(x..y)`, TPC-C clause 4.3.2.1).
    ///
    /// # Panics
    /// When `high < low`.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "no number lies between {low} and {high}");
        low + self.below((high - low) as u64 + 1) as i64
    }

    /// Whether something happens that happens with this chance.
    #[inline]
    pub fn happens(&mut self, chance: Chance) -> bool {
        self.bits() >> 1 < chance.0
    }

    /// A random string of `low` to `high` characters, appended to `out` (`a-string`, TPC-C clause 4.3.2.2).
    pub fn alphanumeric(&mut self, low: usize, high: usize, out: &mut String) {
        self.characters(ALPHANUMERIC, low, high, out);
    }

    /// A random string of `low` to `high` digits, appended to `out` (`n-string`, TPC-C clause 4.3.2.2).
    pub fn digits(&mut self, low: usize, high: usize, out: &mut String) {
        self.characters(b"0123456789", low, high, out);
    }

    fn characters(&mut self, alphabet: &[u8], low: usize, high: usize, out: &mut String) {
        let mut left = if low == high { low } else { self.between(low as i64, high as i64) as usize };
        let size = alphabet.len() as u128;
        while left > 0 {
            // One draw yields eight characters: each takes the top of the fraction and leaves the rest of it.
            let mut fraction = self.bits();
            for _ in 0..left.min(8) {
                let product = u128::from(fraction) * size;
                out.push(char::from(alphabet[(product >> 64) as usize]));
                fraction = product as u64;
            }
            left -= left.min(8);
        }
    }

    /// Fills a buffer with uniform bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// The finaliser of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

/// How likely something is; made from a percentage once, so that draws are integer comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A chance in percent, from 0 to 100. `option` names the setting for the message.
    pub fn of_percent(percent: f64, option: &str) -> Result<Chance, Error> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(Error::Invalid(format!("{option} is {percent}: give a percentage from 0 to 100")));
        }
        Ok(Chance((percent / 100.0 * (1_u64 << 63) as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned() {
        let mut random = Random::new(7, "test", &[1, 2]);
        let drawn = [random.bits(), random.below(1_000_000), random.between(-5, 5) as u64];
        assert_eq!(drawn, PINNED);
        let mut text = String::new();
        random.alphanumeric(20, 20, &mut text);
        assert_eq!(text, PINNED_TEXT);
    }

    const PINNED: [u64; 3] = [18_244_602_747_347_718_350, 737_498, 0];
    const PINNED_TEXT: &str = "WthjrLTuLHt9sJP4biv5";

    #[test]
    fn names_separate_streams() {
        let first = |label, numbers: &[u64]| Random::new(7, label, numbers).bits();
        let drawn = [first("a", &[1, 2]), first("a", &[2, 1]), first("b", &[1, 2]), first("a", &[1])];
        for (index, one) in drawn.iter().enumerate() {
            assert!(!drawn[..index].contains(one));
        }
    }

    #[test]
    fn draws_cover_their_interval() {
        let mut random = Random::new(1, "cover", &[]);
        let mut seen = [0_u32; 11];
        for _ in 0..11_000 {
            seen[(random.between(-5, 5) + 5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        let mut characters = [0_u32; 128];
        let mut text = String::new();
        random.alphanumeric(62_000, 62_000, &mut text);
        text.bytes().for_each(|byte| characters[usize::from(byte)] += 1);
        for byte in ALPHANUMERIC {
            assert!((850..1150).contains(&characters[usize::from(*byte)]), "{}", char::from(*byte));
        }
    }

    #[test]
    fn certain_and_impossible_chances() {
        let mut random = Random::new(1, "chance", &[]);
        let (always, never) =
            (Chance::of_percent(100.0, "x").unwrap(), Chance::of_percent(0.0, "x").unwrap());
        assert!((0..1000).all(|_| random.happens(always) && !random.happens(never)));
        assert!(Chance::of_percent(100.1, "x").is_err());
        assert!(Chance::of_percent(f64::NAN, "x").is_err());
    }
}
