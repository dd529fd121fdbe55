//! Positions as integers, for headers and comparisons.

use crate::position::{Epoch, PartitionId, Position};

/// A position packed so that stamps compare as the positions do. The lowest 16 bits are zero: a record keeps its flags there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(u128);

impl Stamp {
    /// The stamp of a position.
    #[inline]
    pub(super) const fn new(position: Position) -> Stamp {
        let low = (position.origin.0 as u64) << 48 | (position.index as u64) << 16;
        Stamp((position.epoch.0 as u128) << 64 | low as u128)
    }

    /// The position.
    pub(super) fn position(self) -> Position {
        Position {
            epoch: Epoch((self.0 >> 64) as u64),
            origin: PartitionId((self.0 >> 48) as u16),
            index: (self.0 >> 16) as u32,
        }
    }

    /// The 16 bytes of stamp and flags.
    #[inline]
    pub(super) fn to_bytes(self, flags: u16) -> [u8; 16] {
        (self.0 | u128::from(flags)).to_le_bytes()
    }

    /// Stamp and flags from their 16 bytes.
    #[inline]
    pub(super) fn from_bytes(bytes: [u8; 16]) -> (Stamp, u16) {
        let both = u128::from_le_bytes(bytes);
        (Stamp(both & !0xFFFF), both as u16)
    }
}
