//! The form of rows in storage: each column is a byte that says its kind, and a value without padding.
//!
//! A row has no count of its columns: one that was written before a column was added simply ends earlier.

use super::network::{Family, Network};
use super::{Datum, Numeric};
use crate::error::{SqlError, SqlState};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const NUMERIC: u8 = 5;
const TEXT: u8 = 6;
const BYTES: u8 = 7;
const DATE: u8 = 8;
const TIME: u8 = 9;
const TIMESTAMP: u8 = 10;
const INTERVAL: u8 = 11;
const UUID: u8 = 12;
const ARRAY: u8 = 13;
/// Addresses of either family: the bits of the network, and the address.
const FOUR: u8 = 14;
const SIX: u8 = 15;
/// Integers from 0 to 127 are their kind.
const SMALL_INT: u8 = 0x80;
/// Arrays have no arrays in them; bytes that say otherwise are no row.
const DEPTH_MAX: u32 = 1;

/// Appends the columns of a row.
pub fn encode(columns: &[Datum], out: &mut Vec<u8>) {
    columns.iter().for_each(|column| encode_value(column, out));
}

/// Reads all columns of a row and appends them. An error for bytes that are no row.
pub fn decode(bytes: &[u8], columns: &mut Vec<Datum>) -> Result<(), SqlError> {
    let mut reader = Reader { rest: bytes };
    while !reader.rest.is_empty() {
        columns.push(reader.value(0).ok_or_else(corrupt)?);
    }
    Ok(())
}

/// Reads some columns of a row, by their numbers in order, and appends them, as far as the row has them. An error for bytes that are no row.
pub fn decode_some(bytes: &[u8], numbers: &[u16], columns: &mut Vec<Datum>) -> Result<(), SqlError> {
    let mut reader = Reader { rest: bytes };
    let mut next = 0;
    for number in numbers {
        while next < *number && !reader.rest.is_empty() {
            reader.skip(0).ok_or_else(corrupt)?;
            next += 1;
        }
        if reader.rest.is_empty() {
            break;
        }
        columns.push(reader.value(0).ok_or_else(corrupt)?);
        next += 1;
    }
    Ok(())
}

/// Reads the column of an index; `None` if the row ends before. An error for bytes that are no row.
pub fn decode_column(bytes: &[u8], index: usize) -> Result<Option<Datum>, SqlError> {
    let mut reader = Reader { rest: bytes };
    for _ in 0..index {
        if reader.rest.is_empty() {
            return Ok(None);
        }
        reader.skip(0).ok_or_else(corrupt)?;
    }
    if reader.rest.is_empty() {
        return Ok(None);
    }
    reader.value(0).map(Some).ok_or_else(corrupt)
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a stored row does not have the form of rows")
}

fn encode_value(datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.push(if *value { TRUE } else { FALSE }),
        Datum::Int(value @ 0..=127) => out.push(SMALL_INT | *value as u8),
        Datum::Int(value) => put_signed(INT, *value, out),
        Datum::Float(value) => {
            out.push(FLOAT);
            out.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        Datum::Numeric(value) => put_bytes(NUMERIC, &value.to_bytes(), out),
        Datum::Text(value) => put_bytes(TEXT, value.as_bytes(), out),
        Datum::Bytes(value) => put_bytes(BYTES, value, out),
        Datum::Date(value) => put_signed(DATE, i64::from(*value), out),
        Datum::Time(value) => put_signed(TIME, *value, out),
        Datum::Timestamp(value) => put_signed(TIMESTAMP, *value, out),
        Datum::Interval { months, days, microseconds } => {
            put_signed(INTERVAL, i64::from(*months), out);
            put_varint(zigzag(i64::from(*days)), out);
            put_varint(zigzag(*microseconds), out);
        }
        Datum::Uuid(value) => {
            out.push(UUID);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Datum::Network(value) => {
            out.push(if value.family() == Family::V4 { FOUR } else { SIX });
            out.push(value.bits());
            out.extend_from_slice(value.bytes());
        }
        Datum::Array(values) => {
            out.push(ARRAY);
            put_varint(values.len() as u64, out);
            values.iter().for_each(|value| encode_value(value, out));
        }
    }
}

/// Small numbers of either sign become small ones without.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits a byte, the least first; the highest bit says that more follow.
fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_signed(kind: u8, value: i64, out: &mut Vec<u8>) {
    out.push(kind);
    put_varint(zigzag(value), out);
}

fn put_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// What is left of a row. All methods give none for bytes that are no row.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        self.varint().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    fn value(&mut self, depth: u32) -> Option<Datum> {
        Some(match self.byte()? {
            NULL => Datum::Null,
            FALSE => Datum::Bool(false),
            TRUE => Datum::Bool(true),
            INT => Datum::Int(self.signed()?),
            FLOAT => Datum::Float(f64::from_bits(u64::from_le_bytes(self.array()?))),
            NUMERIC => Datum::Numeric(Numeric::from_bytes(self.bytes()?)?),
            TEXT => Datum::Text(str::from_utf8(self.bytes()?).ok()?.to_owned()),
            BYTES => Datum::Bytes(self.bytes()?.to_vec()),
            DATE => Datum::Date(i32::try_from(self.signed()?).ok()?),
            TIME => Datum::Time(self.signed()?),
            TIMESTAMP => Datum::Timestamp(self.signed()?),
            INTERVAL => Datum::Interval {
                months: i32::try_from(self.signed()?).ok()?,
                days: i32::try_from(self.signed()?).ok()?,
                microseconds: self.signed()?,
            },
            UUID => Datum::Uuid(u128::from_be_bytes(self.array()?)),
            FOUR => Datum::Network(Network::new(Family::V4, self.byte()?, self.take(4)?)?),
            SIX => Datum::Network(Network::new(Family::V6, self.byte()?, self.take(16)?)?),
            ARRAY if depth < DEPTH_MAX => {
                let count = self.varint()?;
                // The count is not trusted with memory: each value has a byte at least.
                let mut values = Vec::with_capacity(self.rest.len().min(count as usize));
                for _ in 0..count {
                    values.push(self.value(depth + 1)?);
                }
                Datum::Array(values)
            }
            kind if kind >= SMALL_INT => Datum::Int(i64::from(kind & !SMALL_INT)),
            _ => return None,
        })
    }

    fn skip(&mut self, depth: u32) -> Option<()> {
        match self.byte()? {
            NULL | FALSE | TRUE | SMALL_INT.. => {}
            INT | DATE | TIME | TIMESTAMP => {
                self.varint()?;
            }
            FLOAT => {
                self.take(8)?;
            }
            NUMERIC | TEXT | BYTES => {
                self.bytes()?;
            }
            INTERVAL => {
                self.varint()?;
                self.varint()?;
                self.varint()?;
            }
            UUID => {
                self.take(16)?;
            }
            FOUR => {
                self.take(5)?;
            }
            SIX => {
                self.take(17)?;
            }
            ARRAY if depth < DEPTH_MAX => {
                for _ in 0..self.varint()? {
                    self.skip(depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}
