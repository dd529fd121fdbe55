//! A form of values whose bytes have the order of the values, for keys of tables and indexes.
//!
//! Each value ends by itself, so that columns are written one after the other, and the first columns of a key are a prefix of it.
//! Equal values have equal bytes; what does not count for the order (the scale of a `numeric`, how an interval is split) is
//! not kept.

use smallvec::SmallVec;

use super::network::{Family, Network};
use super::{BaseType, Datum, Numeric, SqlType, calendar, compare};
use crate::error::{SqlError, SqlState};

/// Part of a key: most need no allocation.
pub type KeyBytes = SmallVec<[u8; 64]>;

/// Above all that a value may begin with.
const NULL: u8 = 0xFF;
/// What a value begins with if nothing else tells it from `NULL`.
const VALUE: u8 = 0x01;
/// The end of an array, below all that an element may begin with.
const END: u8 = 0x00;
/// Where integers without a sign begin; see [`put_integer`].
const INTEGER: u8 = 0x80;

const NUMERIC_NEGATIVE: u8 = 0x10;
const NUMERIC_ZERO: u8 = 0x20;
const NUMERIC_POSITIVE: u8 = 0x30;
const NUMERIC_NAN: u8 = 0x40;

/// Appends the form of a value.
pub fn encode(datum: &Datum, out: &mut KeyBytes) {
    match datum {
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.extend_from_slice(&[VALUE, u8::from(*value)]),
        Datum::Int(value) | Datum::Time(value) | Datum::Timestamp(value) => put_integer(*value, out),
        Datum::Date(value) => put_integer(i64::from(*value), out),
        Datum::Float(value) => {
            let bits = compare::canonical_bits(*value);
            // Negative floats are ordered backwards, and below the others.
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.push(VALUE);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Datum::Numeric(value) => put_numeric(value, out),
        Datum::Text(value) => put_bytes(value.as_bytes(), out),
        Datum::Bytes(value) => put_bytes(value, out),
        Datum::Interval { months, days, microseconds } => {
            let span = compare::interval_span(*months, *days, *microseconds) as u128;
            out.push(VALUE);
            out.extend_from_slice(&(span ^ 1 << 127).to_be_bytes());
        }
        Datum::Uuid(value) => {
            out.push(VALUE);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Datum::Network(value) => {
            out.extend_from_slice(&[VALUE, u8::from(value.family() == Family::V6)]);
            out.extend_from_slice(value.network().bytes());
            out.push(value.bits());
            out.extend_from_slice(value.bytes());
        }
        Datum::Array(values) => {
            out.push(VALUE);
            values.iter().for_each(|value| encode(value, out));
            out.push(END);
        }
    }
}

/// The first byte says the sign and how many bytes follow, so that small integers are short: 0x80 and more for 0 to 8 bytes
/// of one that is not negative, 0x7F and less for those of the others, whose bytes have no leading ones.
fn put_integer(value: i64, out: &mut KeyBytes) {
    let magnitude = if value < 0 { !value } else { value } as u64;
    let length = 8 - magnitude.leading_zeros() as usize / 8;
    let bytes = value.to_be_bytes();
    out.push(if value < 0 { INTEGER - 1 - length as u8 } else { INTEGER + length as u8 });
    out.extend_from_slice(&bytes[8 - length..]);
}

/// A zero is followed by 0xFF, and two zeros are the end.
fn put_bytes(bytes: &[u8], out: &mut KeyBytes) {
    out.push(VALUE);
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Sign, power of ten, and digits two a byte and one more, so that zero is the end. All is inverted for negative numbers.
fn put_numeric(value: &Numeric, out: &mut KeyBytes) {
    if value.is_nan() {
        return out.push(NUMERIC_NAN);
    }
    if value.is_zero() {
        return out.push(NUMERIC_ZERO);
    }
    let (digits, exponent) = value.normalised_digits();
    let negative = value.is_negative();
    out.push(if negative { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE });
    let start = out.len();
    put_integer(i64::from(exponent), out);
    for pair in digits.as_bytes().chunks(2) {
        let low = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(END);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Reads a value of a type and moves on behind it. An error for bytes that [`encode`] does not write for the type.
pub fn decode(bytes: &mut &[u8], ty: SqlType) -> Result<Datum, SqlError> {
    let mut reader = Reader { rest: bytes };
    let datum = reader.value(ty).ok_or_else(|| {
        SqlError::new(SqlState::INTERNAL_ERROR, format!("a stored key has no value of type {}", ty.name()))
    })?;
    *bytes = reader.rest;
    Ok(datum)
}

/// What is left of a key. All methods give none for bytes that are no key.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn value(&mut self, ty: SqlType) -> Option<Datum> {
        if self.rest.first() == Some(&NULL) {
            self.rest = &self.rest[1..];
            return Some(Datum::Null);
        }
        if ty.array {
            (self.byte()? == VALUE).then_some(())?;
            let mut values = Vec::new();
            while *self.rest.first()? != END {
                values.push(self.value(ty.element())?);
            }
            self.rest = &self.rest[1..];
            return Some(Datum::Array(values));
        }
        Some(match ty.base {
            BaseType::Int2 | BaseType::Int4 | BaseType::Int8 | BaseType::Oid => Datum::Int(self.integer(0)?),
            BaseType::Time => Datum::Time(self.integer(0)?),
            BaseType::Timestamp | BaseType::TimestampTz => Datum::Timestamp(self.integer(0)?),
            BaseType::Date => Datum::Date(i32::try_from(self.integer(0)?).ok()?),
            BaseType::Numeric => Datum::Numeric(self.numeric()?),
            base => {
                (self.byte()? == VALUE).then_some(())?;
                self.marked(base)?
            }
        })
    }

    /// A value of the types that begin with [`VALUE`].
    fn marked(&mut self, base: BaseType) -> Option<Datum> {
        Some(match base {
            BaseType::Bool => Datum::Bool(self.byte()? != 0),
            BaseType::Float4 | BaseType::Float8 => {
                let ordered = u64::from_be_bytes(self.array()?);
                let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
                Datum::Float(f64::from_bits(bits))
            }
            BaseType::Bytea => Datum::Bytes(self.bytes()?),
            BaseType::Uuid => Datum::Uuid(u128::from_be_bytes(self.array()?)),
            BaseType::Inet | BaseType::Cidr => Datum::Network(self.network()?),
            BaseType::Interval => {
                let span = (u128::from_be_bytes(self.array()?) ^ 1 << 127) as i128;
                interval_of(span)?
            }
            _ => Datum::Text(String::from_utf8(self.bytes()?).ok()?),
        })
    }

    /// `mask` is 0xFF where all bytes are inverted.
    fn integer(&mut self, mask: u8) -> Option<i64> {
        let first = self.byte()? ^ mask;
        let negative = first < INTEGER;
        let length = usize::from(if negative { INTEGER - 1 - first } else { first - INTEGER });
        if length > 8 {
            return None;
        }
        let mut wide = [if negative { 0xFF } else { 0 }; 8];
        for byte in &mut wide[8 - length..] {
            *byte = self.byte()? ^ mask;
        }
        Some(i64::from_be_bytes(wide))
    }

    fn numeric(&mut self) -> Option<Numeric> {
        let mask = match self.byte()? {
            NUMERIC_NEGATIVE => 0xFF,
            NUMERIC_ZERO => return Some(Numeric::ZERO),
            NUMERIC_POSITIVE => 0,
            NUMERIC_NAN => return Some(Numeric::NAN),
            _ => return None,
        };
        let exponent = i32::try_from(self.integer(mask)?).ok()?;
        let mut digits = String::new();
        loop {
            match self.byte()? ^ mask {
                END => break,
                pair @ 1..=100 => {
                    digits.push(char::from(b'0' + (pair - 1) / 10));
                    digits.push(char::from(b'0' + (pair - 1) % 10));
                }
                _ => return None,
            }
        }
        let digits = digits.trim_end_matches('0');
        Numeric::from_normalised_digits(mask != 0, digits, exponent).ok()
    }

    /// The network is there for the order only.
    fn network(&mut self) -> Option<Network> {
        if self.byte()? == 0 {
            self.array::<4>()?;
            return Network::new(Family::V4, self.byte()?, &self.array::<4>()?);
        }
        self.array::<16>()?;
        Network::new(Family::V6, self.byte()?, &self.array::<16>()?)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Some(bytes),
                    0xFF => bytes.push(0),
                    _ => return None,
                },
                byte => bytes.push(byte),
            }
        }
    }
}

/// An interval of that length. One that is too long for days alone is given months.
fn interval_of(span: i128) -> Option<Datum> {
    let day = i128::from(calendar::DAY);
    let microseconds = i64::try_from(span % day).ok()?;
    let days = span / day;
    if let Ok(days) = i32::try_from(days) {
        return Some(Datum::Interval { months: 0, days, microseconds });
    }
    let months = i32::try_from(days / 30).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX });
    let rest = days - i128::from(months) * 30;
    if let Ok(days) = i32::try_from(rest) {
        return Some(Datum::Interval { months, days, microseconds });
    }
    // The time of an interval may be long, too, but no longer than 64 bits.
    let days = if rest < 0 { i32::MIN } else { i32::MAX };
    let microseconds = (rest - i128::from(days)) * day + i128::from(microseconds);
    Some(Datum::Interval { months, days, microseconds: i64::try_from(microseconds).ok()? })
}
