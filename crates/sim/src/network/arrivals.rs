//! When the copies of one packet arrive.

use crate::time::Nanoseconds;

/// The moments at which the copies of one packet arrive: none if it is lost, several if it is duplicated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Arrivals {
    times: [Nanoseconds; Arrivals::COPIES_MAX],
    count: u8,
    generation: u32,
}

impl Arrivals {
    /// More copies than these never arrive.
    pub const COPIES_MAX: usize = 3;

    /// One copy.
    #[inline]
    pub(super) fn one(at: Nanoseconds, generation: u32) -> Arrivals {
        Arrivals { times: [at, 0, 0], count: 1, generation }
    }

    /// One more copy, if there is room.
    pub(super) fn add(&mut self, at: Nanoseconds) {
        if !self.is_full() {
            self.times[usize::from(self.count)] = at;
            self.count += 1;
        }
    }

    /// Whether no more copies can be added.
    pub(super) fn is_full(&self) -> bool {
        usize::from(self.count) == Arrivals::COPIES_MAX
    }

    /// The moments, that of the original first.
    #[inline]
    pub fn times(&self) -> &[Nanoseconds] {
        &self.times[..usize::from(self.count)]
    }

    /// What to hand to [`Network::arrives`](super::Network::arrives) when the time of a copy has come: how often the link
    /// had been cut when the packet was sent.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_bounded() {
        assert!(Arrivals::default().times().is_empty());
        let mut arrivals = Arrivals::one(5, 7);
        for at in [6, 7, 8] {
            arrivals.add(at);
        }
        assert_eq!((arrivals.times(), arrivals.generation()), (&[5, 6, 7][..], 7));
    }
}
