//! PostgreSQL's binary form.

use std::ops::Range;

use bytes::Bytes;

use super::lines::{bad, too_long};
use super::{COLUMNS_MAX, ROW_BYTES_MAX, Row};
use crate::error::SqlError;
use crate::protocol::intake::Intake;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The signature, the flags and the length of the extension.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
const HAS_OIDS: u32 = 1 << 16;
/// Flags that a reader must know (the upper half).
const CRITICAL: u32 = 0xffff_0000;
const TRAILER: i16 = -1;

/// What came next.
#[derive(Debug)]
pub(super) enum Step {
    Row(Row),
    End,
    Nothing,
}

/// Reads rows. How far it is in one is kept, so that each value is looked at once, however the data comes.
#[derive(Debug, Default)]
pub(super) struct Binary {
    has_header: bool,
    /// How much of the extension of the header is still to come, in bytes.
    extension: usize,
    /// The values of the present row that are there, and where they end in it.
    values: Vec<Option<Range<usize>>>,
    at: usize,
}

impl Binary {
    pub(super) fn next(&mut self, intake: &mut Intake, ended: bool) -> Result<Step, SqlError> {
        if !self.has_header && !self.header(intake)? {
            return self.nothing(ended, "COPY file signature not recognized");
        }
        let skipped = self.extension.min(intake.len());
        intake.take(skipped);
        self.extension -= skipped;
        if self.extension > 0 {
            return self.nothing(ended, "invalid COPY file header (wrong length)");
        }
        let eof = "unexpected EOF in COPY data";
        let rest = intake.rest();
        let Some((count, _)) = rest.split_first_chunk() else {
            // PostgreSQL, too, takes data without a trailer.
            return if ended && rest.is_empty() { Ok(Step::End) } else { self.nothing(ended, eof) };
        };
        let count = i16::from_be_bytes(*count);
        if count == TRAILER {
            intake.take(2);
            return Ok(Step::End);
        }
        let count = usize::try_from(count).ok().filter(|count| *count <= COLUMNS_MAX);
        let count = count.ok_or_else(|| bad("a row has a number of fields that is not possible"))?;
        let Some(length) = self.row(rest, count)? else { return self.nothing(ended, eof) };
        let bytes = Bytes::copy_from_slice(&rest[..length]);
        intake.take(length);
        let values = self.values.drain(..);
        Ok(Step::Row(values.map(|range| range.map(|range| bytes.slice(range))).collect()))
    }

    fn nothing(&self, ended: bool, message: &str) -> Result<Step, SqlError> {
        if ended { Err(bad(message)) } else { Ok(Step::Nothing) }
    }

    /// Whether the header is there.
    fn header(&mut self, intake: &mut Intake) -> Result<bool, SqlError> {
        let Some(header) = intake.rest().get(..HEADER_BYTES) else { return Ok(false) };
        let (signature, rest) = header.split_at(SIGNATURE.len());
        if signature != SIGNATURE {
            return Err(bad("COPY file signature not recognized"));
        }
        let [flags, extension] = [0, 4].map(|at| {
            let bytes = rest[at..].first_chunk().copied().unwrap_or_default();
            u32::from_be_bytes(bytes)
        });
        if flags & HAS_OIDS != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        if extension > i32::MAX as u32 {
            return Err(bad("invalid COPY file header (wrong length)"));
        }
        (self.has_header, self.extension) = (true, extension as usize);
        intake.take(HEADER_BYTES);
        Ok(true)
    }

    /// Goes on in a row of so many values. Its length when all are there.
    fn row(&mut self, bytes: &[u8], count: usize) -> Result<Option<usize>, SqlError> {
        // Behind the count.
        self.at = self.at.max(2);
        while self.values.len() < count {
            let length = bytes.get(self.at..).and_then(|bytes| bytes.first_chunk());
            let Some(length) = length else { return Ok(None) };
            let start = self.at + 4;
            let value = match i32::from_be_bytes(*length) {
                -1 => None,
                length => {
                    let length = usize::try_from(length).map_err(|_| bad("invalid field size"))?;
                    Some(start..start + length)
                }
            };
            let end = value.as_ref().map_or(start, |range| range.end);
            if end > ROW_BYTES_MAX {
                return Err(too_long());
            }
            if end > bytes.len() {
                return Ok(None);
            }
            self.values.push(value);
            self.at = end;
        }
        Ok(Some(std::mem::take(&mut self.at)))
    }
}

/// Appends what the data begins with.
pub(super) fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Appends what the data ends with.
pub(super) fn write_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&TRAILER.to_be_bytes());
}
