//! Values in PostgreSQL's binary form, which parameters and results may have.

use super::network::{Family, Network};
use super::{BaseType, Datum, Numeric, SqlType, Zone, calendar, json, text};
use crate::error::{SqlError, SqlState};

const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xC000;
/// What stands for the families of addresses.
const FOUR: u8 = 2;
const SIX: u8 = 3;
/// The only version of the binary form of `jsonb`.
const JSONB_VERSION: u8 = 1;

/// The value of all the bytes. An error (22P03) if they do not have the form of the type, or one as for texts if the value is
/// not allowed.
pub fn decode(bytes: &[u8], ty: SqlType) -> Result<Datum, SqlError> {
    let mut reader = Reader { rest: bytes };
    let datum = if ty.array { reader.array(ty.element())? } else { reader.value(ty)? };
    if !reader.rest.is_empty() {
        return Err(incorrect());
    }
    if ty.array { Ok(datum) } else { super::cast::coerce_length(datum, ty, true) }
}

fn incorrect() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// Appends the binary form of the value. Nothing for `Null`, which the length of -1 stands for.
pub fn encode(datum: &Datum, ty: SqlType, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) => match ty.base {
            BaseType::Int2 => out.extend_from_slice(&(*value as i16).to_be_bytes()),
            BaseType::Int4 | BaseType::Oid => out.extend_from_slice(&(*value as i32).to_be_bytes()),
            _ => out.extend_from_slice(&value.to_be_bytes()),
        },
        Datum::Float(value) if ty.base == BaseType::Float4 => {
            out.extend_from_slice(&(*value as f32).to_be_bytes());
        }
        Datum::Float(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Numeric(value) => encode_numeric(value, out),
        Datum::Text(value) => {
            if ty.base == BaseType::Jsonb {
                out.push(JSONB_VERSION);
            }
            out.extend_from_slice(value.as_bytes());
            text::pad(value, ty, out);
        }
        Datum::Bytes(value) => out.extend_from_slice(value),
        Datum::Date(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Time(value) | Datum::Timestamp(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Interval { months, days, microseconds } => {
            out.extend_from_slice(&microseconds.to_be_bytes());
            out.extend_from_slice(&days.to_be_bytes());
            out.extend_from_slice(&months.to_be_bytes());
        }
        Datum::Uuid(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Network(value) => {
            out.push(if value.family() == Family::V4 { FOUR } else { SIX });
            let is_cidr = u8::from(ty.base == BaseType::Cidr);
            out.extend_from_slice(&[value.bits(), is_cidr, value.bytes().len() as u8]);
            out.extend_from_slice(value.bytes());
        }
        Datum::Array(values) => encode_array(values, ty.element(), out),
    }
}

/// The count of digits in base 10000, the weight of the first, the sign, the scale, the digits.
fn encode_numeric(value: &Numeric, out: &mut Vec<u8>) {
    let (digits, weight) = value.base_10000();
    let sign = if value.is_nan() {
        NUMERIC_NAN
    } else if value.is_negative() {
        NUMERIC_NEGATIVE
    } else {
        0
    };
    for part in [digits.len() as u16, weight as u16, sign, value.scale()] {
        out.extend_from_slice(&part.to_be_bytes());
    }
    digits.iter().for_each(|digit| out.extend_from_slice(&digit.to_be_bytes()));
}

/// Dimensions, whether there are nulls, the element's type, the length and first index, the elements with their lengths.
fn encode_array(values: &[Datum], element: SqlType, out: &mut Vec<u8>) {
    let has_null = values.contains(&Datum::Null);
    let dimensions = u32::from(!values.is_empty());
    for part in [dimensions, u32::from(has_null), element.oid()] {
        out.extend_from_slice(&part.to_be_bytes());
    }
    if values.is_empty() {
        return;
    }
    out.extend_from_slice(&(values.len() as u32).to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    for value in values {
        if value.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(value, element, out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(incorrect)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        self.take(N)?.try_into().map_err(|_| incorrect())
    }

    fn i16(&mut self) -> Result<i16, SqlError> {
        self.fixed().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, SqlError> {
        self.fixed().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, SqlError> {
        self.fixed().map(i64::from_be_bytes)
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn text(&mut self) -> Result<&'a str, SqlError> {
        str::from_utf8(self.all()).map_err(|_| {
            SqlError::new(
                SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                "invalid byte sequence for encoding \"UTF8\"",
            )
        })
    }

    fn value(&mut self, ty: SqlType) -> Result<Datum, SqlError> {
        Ok(match ty.base {
            BaseType::Bool => Datum::Bool(self.fixed::<1>()?[0] != 0),
            BaseType::Int2 => Datum::Int(i64::from(self.i16()?)),
            BaseType::Int4 => Datum::Int(i64::from(self.i32()?)),
            BaseType::Int8 => Datum::Int(self.i64()?),
            BaseType::Oid => Datum::Int(i64::from(self.i32()? as u32)),
            BaseType::Float4 => Datum::Float(canonical(f64::from(f32::from_be_bytes(self.fixed()?)))),
            BaseType::Float8 => Datum::Float(canonical(f64::from_be_bytes(self.fixed()?))),
            BaseType::Numeric => Datum::Numeric(self.numeric()?),
            BaseType::Bytea => Datum::Bytes(self.all().to_vec()),
            BaseType::Date => Datum::Date(calendar::check_date(i64::from(self.i32()?))?),
            BaseType::Time => match self.i64()? {
                time @ 0..=calendar::DAY => Datum::Time(time),
                _ => return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range")),
            },
            BaseType::Timestamp | BaseType::TimestampTz => {
                Datum::Timestamp(calendar::check_timestamp(Some(self.i64()?))?)
            }
            BaseType::Interval => {
                let microseconds = self.i64()?;
                let days = self.i32()?;
                Datum::Interval { months: self.i32()?, days, microseconds }
            }
            BaseType::Uuid => Datum::Uuid(u128::from_be_bytes(self.fixed()?)),
            BaseType::Inet | BaseType::Cidr => Datum::Network(self.network(ty)?),
            BaseType::Jsonb => {
                if self.fixed::<1>()?[0] != JSONB_VERSION {
                    return Err(SqlError::new(
                        SqlState::INVALID_BINARY_REPRESENTATION,
                        "unsupported jsonb version number",
                    ));
                }
                Datum::Text(json::normalise(self.text()?)?)
            }
            BaseType::Text
            | BaseType::Varchar
            | BaseType::Char
            | BaseType::Name
            | BaseType::Json
            | BaseType::Unknown => return text::parse(self.text()?, ty.plain(), Zone::Utc),
        })
    }

    /// The family, the bits of the network, whether it is a `cidr`, which is not looked at, the count of bytes, and these.
    fn network(&mut self, ty: SqlType) -> Result<Network, SqlError> {
        let invalid = |what: &str| {
            let message = format!("invalid {what}external \"{}\" value", ty.plain().name());
            SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
        };
        let [family, bits, _, length] = self.fixed()?;
        let family = match family {
            FOUR => Family::V4,
            SIX => Family::V6,
            _ => return Err(invalid("address family in ")),
        };
        if bits > family.bits() {
            return Err(invalid("bits in "));
        }
        if usize::from(length) != family.bytes() {
            return Err(invalid("length in "));
        }
        let network = Network::new(family, bits, self.take(family.bytes())?).ok_or_else(incorrect)?;
        if ty.base == BaseType::Cidr && !network.is_network() {
            return Err(invalid("").with_detail("Value has bits set to right of mask."));
        }
        Ok(network)
    }

    fn numeric(&mut self) -> Result<Numeric, SqlError> {
        let count = self.i16()?;
        let weight = i32::from(self.i16()?);
        let sign = self.i16()? as u16;
        let scale = self.i16()?;
        let invalid = |what: &str| {
            SqlError::new(
                SqlState::INVALID_BINARY_REPRESENTATION,
                format!("invalid {what} in external \"numeric\" value"),
            )
        };
        match sign {
            0 | NUMERIC_NEGATIVE => {}
            NUMERIC_NAN => return Ok(Numeric::NAN),
            0xD000 | 0xF000 => return Err(SqlError::unsupported("infinity as numeric")),
            _ => return Err(invalid("sign")),
        }
        if !(0..=super::numeric::SCALE_MAX as i16).contains(&scale) {
            return Err(invalid("scale"));
        }
        let mut digits = String::from(if sign == 0 { "0" } else { "-0" });
        for _ in 0..count {
            let digit = self.i16()?;
            if !(0..10_000).contains(&digit) {
                return Err(invalid("digit"));
            }
            text::put_digits(&mut digits, digit);
        }
        let power = (weight + 1 - i32::from(count.max(0))) * 4;
        // Digits beyond the scale are cut off, as PostgreSQL does.
        Numeric::parse(&format!("{digits}e{power}"))?.truncate(i32::from(scale))
    }

    fn array(&mut self, element: SqlType) -> Result<Datum, SqlError> {
        let dimensions = self.i32()?;
        self.i32()?;
        let oid = self.i32()? as u32;
        if oid != element.oid() {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("binary data has array element type {oid} instead of expected {}", element.oid()),
            ));
        }
        match dimensions {
            0 => return Ok(Datum::Array(Vec::new())),
            1 => {}
            _ => return Err(SqlError::unsupported("an array of several dimensions")),
        }
        let count = self.i32()?;
        self.i32()?;
        let mut values = Vec::new();
        for _ in 0..count {
            let length = self.i32()?;
            values.push(if length == -1 {
                Datum::Null
            } else {
                let length = usize::try_from(length).map_err(|_| incorrect())?;
                decode(self.take(length)?, element)?
            });
        }
        Ok(Datum::Array(values))
    }
}

/// With one form of "not a number", so that replicas keep the same bits.
fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}
