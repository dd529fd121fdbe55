//! Functions of addresses of hosts and networks.

use super::*;
use crate::types::network::{Family, Network};
use crate::types::text::network::{Shown, format};

const INET: Kind = Kind::Of(SqlType::INET);
const CIDR: Kind = Kind::Of(SqlType::CIDR);

pub(super) const TABLE: &[Entry] = &[
    strict("abbrev", &[INET], TEXT, |a, _| shown(a, Shown::Inet)),
    strict("abbrev", &[CIDR], TEXT, |a, _| shown(a, Shown::Short)),
    strict("broadcast", &[INET], INET, |a, _| Ok(network(a, 0)?.broadcast().into())),
    strict("family", &[INET], INT4, |a, _| {
        Ok(Datum::Int(match network(a, 0)?.family() {
            Family::V4 => 4,
            Family::V6 => 6,
        }))
    }),
    strict("host", &[INET], TEXT, |a, _| shown(a, Shown::Host)),
    strict("hostmask", &[INET], INET, |a, _| Ok(network(a, 0)?.hostmask().into())),
    strict("inet_merge", &[INET, INET], CIDR, |a, _| Ok(network(a, 0)?.merge(network(a, 1)?)?.into())),
    strict("inet_same_family", &[INET, INET], BOOL, |a, _| {
        Ok(Datum::Bool(network(a, 0)?.family() == network(a, 1)?.family()))
    }),
    strict("masklen", &[INET], INT4, |a, _| Ok(Datum::Int(network(a, 0)?.bits().into()))),
    strict("netmask", &[INET], INET, |a, _| Ok(network(a, 0)?.netmask().into())),
    strict("network", &[INET], CIDR, |a, _| Ok(network(a, 0)?.network().into())),
    strict("set_masklen", &[INET, INT4], INET, |a, _| Ok(network(a, 0)?.with_bits(int(a, 1)?)?.into())),
    strict("set_masklen", &[CIDR, INT4], CIDR, |a, _| {
        Ok(network(a, 0)?.with_bits(int(a, 1)?)?.network().into())
    }),
    strict("text", &[INET], TEXT, |a, _| shown(a, Shown::Whole)),
    // A literal is rather a text.
    strict("text", &[TEXT], TEXT, |a, _| Ok(Datum::Text(text(a, 0)?.to_owned()))),
    // The operators `<<=`, `>>=` and `&&`.
    strict("network_subeq", &[INET, INET], BOOL, |a, _| {
        Ok(Datum::Bool(network(a, 0)?.is_within(network(a, 1)?)))
    }),
    strict("network_supeq", &[INET, INET], BOOL, |a, _| {
        Ok(Datum::Bool(network(a, 1)?.is_within(network(a, 0)?)))
    }),
    strict("network_overlap", &[INET, INET], BOOL, |a, _| {
        Ok(Datum::Bool(network(a, 0)?.overlaps(network(a, 1)?)))
    }),
];

fn network(arguments: &[Datum], at: usize) -> Result<&Network, SqlError> {
    match arguments.get(at) {
        Some(Datum::Network(network)) => Ok(network),
        _ => Err(unexpected(at)),
    }
}

fn shown(arguments: &[Datum], shown: Shown) -> Result<Datum, SqlError> {
    let mut out = Vec::new();
    format(network(arguments, 0)?, shown, &mut out);
    Ok(Datum::Text(String::from_utf8(out).map_err(|_| unexpected(0))?))
}
