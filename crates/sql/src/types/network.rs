//! Addresses of hosts and networks: `inet` and `cidr`.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::Datum;
use crate::error::{SqlError, SqlState};

/// The kind of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Family {
    /// Of four bytes.
    V4,
    /// Of sixteen bytes.
    V6,
}

impl Family {
    /// How many bits an address has.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// How many bytes an address has.
    pub fn bytes(self) -> usize {
        usize::from(self.bits() / 8)
    }
}

/// An address, and how many of its bits are those of its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Network {
    family: Family,
    /// No more than the family has.
    bits: u8,
    /// The bytes of the address, and zeros behind them. Bytes and no integer, so that a [`Datum`] needs no room for its alignment.
    address: [u8; 16],
}

impl Network {
    /// An address by its first bytes, behind which all are taken for zeros; `None` if the family has not so many bytes or bits.
    pub fn new(family: Family, bits: u8, bytes: &[u8]) -> Option<Network> {
        let mut address = [0; 16];
        address[..family.bytes()].get_mut(..bytes.len())?.copy_from_slice(bytes);
        (bits <= family.bits()).then_some(Network { family, bits, address })
    }

    fn of(family: Family, bits: u8, address: u128) -> Network {
        Network { family, bits, address: address.to_be_bytes() }
    }

    /// The kind of the address.
    pub fn family(&self) -> Family {
        self.family
    }

    /// How many bits are those of the network.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The bytes of the address.
    pub fn bytes(&self) -> &[u8] {
        &self.address[..self.family.bytes()]
    }

    /// The address, which begins at the highest bit.
    fn address(&self) -> u128 {
        u128::from_be_bytes(self.address)
    }

    /// The bits of all addresses of the family.
    fn all(family: Family) -> u128 {
        mask(family.bits())
    }

    /// The network that it is in.
    pub fn network(&self) -> Network {
        Network::of(self.family, self.bits, self.address() & mask(self.bits))
    }

    /// Whether no bit is set behind those of the network, as in a `cidr`.
    pub fn is_network(&self) -> bool {
        *self == self.network()
    }

    /// The last address of the network.
    pub fn broadcast(&self) -> Network {
        Network::of(self.family, self.bits, self.address() | self.host_bits())
    }

    /// The bits of the network, as the address of a host.
    pub fn netmask(&self) -> Network {
        Network::of(self.family, self.family.bits(), mask(self.bits))
    }

    /// The bits behind those of the network, as the address of a host.
    pub fn hostmask(&self) -> Network {
        Network::of(self.family, self.family.bits(), self.host_bits())
    }

    fn host_bits(&self) -> u128 {
        Network::all(self.family) & !mask(self.bits)
    }

    /// The same with so many bits of the network; all if that is -1.
    ///
    /// # Errors
    /// 22023 if the family has not so many.
    pub fn with_bits(&self, bits: i64) -> Result<Network, SqlError> {
        let bits = if bits == -1 { i64::from(self.family.bits()) } else { bits };
        let fitting = u8::try_from(bits).ok().filter(|bits| *bits <= self.family.bits());
        let fitting = fitting.ok_or_else(|| invalid(format!("invalid mask length: {bits}")))?;
        Ok(Network { bits: fitting, ..*self })
    }

    /// The smallest network that both are in.
    ///
    /// # Errors
    /// 22023 if they are of different families.
    pub fn merge(&self, other: &Network) -> Result<Network, SqlError> {
        if self.family != other.family {
            return Err(invalid("cannot merge addresses from different families"));
        }
        let common = (self.address() ^ other.address()).leading_zeros() as u8;
        Ok(Network { bits: common.min(self.bits).min(other.bits), ..*self }.network())
    }

    /// Whether the first so many bits of both are the same.
    fn shares(&self, other: &Network, bits: u8) -> bool {
        self.family == other.family && (self.address() ^ other.address()) & mask(bits) == 0
    }

    /// Whether one is in the network of the other, or is it.
    pub fn is_within(&self, other: &Network) -> bool {
        self.bits >= other.bits && self.shares(other, other.bits)
    }

    /// Whether one is in the network of the other, and has more bits.
    pub fn is_strictly_within(&self, other: &Network) -> bool {
        self.bits > other.bits && self.is_within(other)
    }

    /// Whether either is in the other.
    pub fn overlaps(&self, other: &Network) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// All bits of the address the other way round.
    pub fn complement(&self) -> Network {
        Network::of(self.family, self.bits, !self.address() & Network::all(self.family))
    }

    /// The bits of both addresses, combined.
    ///
    /// # Errors
    /// 22023 if they are of different families; `what` is done to them.
    pub fn combined(
        &self,
        other: &Network,
        what: &str,
        combine: fn(u128, u128) -> u128,
    ) -> Result<Network, SqlError> {
        if self.family != other.family {
            return Err(invalid(format!("cannot {what} inet values of different sizes")));
        }
        let address = combine(self.address(), other.address());
        Ok(Network::of(self.family, self.bits.max(other.bits), address))
    }

    /// The address as a number.
    fn number(&self) -> u128 {
        self.address() >> (128 - u32::from(self.family.bits()))
    }

    /// The address that is so many further.
    ///
    /// # Errors
    /// 22003 if there is none.
    pub fn plus(&self, distance: i128) -> Result<Network, SqlError> {
        let shift = 128 - u32::from(self.family.bits());
        let sum = self.number().checked_add_signed(distance);
        let sum = sum.filter(|sum| *sum <= u128::MAX >> shift).ok_or_else(out_of_range)?;
        Ok(Network::of(self.family, self.bits, sum << shift))
    }

    /// How much further it is than another.
    ///
    /// # Errors
    /// 22023 if they are of different families, 22003 if the distance is no `bigint`.
    pub fn minus(&self, other: &Network) -> Result<i64, SqlError> {
        if self.family != other.family {
            return Err(invalid("cannot subtract inet values of different sizes"));
        }
        let difference = self.number().wrapping_sub(other.number()).cast_signed();
        i64::try_from(difference).map_err(|_| out_of_range())
    }
}

/// By family, then the bits of the network, then how many these are, then all bits.
impl Ord for Network {
    fn cmp(&self, other: &Network) -> Ordering {
        let parts = |one: &Network| (one.family, one.address() & mask(one.bits), one.bits, one.address());
        parts(self).cmp(&parts(other))
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// So many bits from the highest on.
fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

impl From<Network> for Datum {
    fn from(network: Network) -> Datum {
        Datum::Network(network)
    }
}
