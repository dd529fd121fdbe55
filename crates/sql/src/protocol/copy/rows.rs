//! Rows from bytes and bytes from rows.

use std::ops::Range;

use bytes::Bytes;

use super::binary::{self, Binary, Step};
use super::lines::{Found, Lines, bad};
use super::{COLUMNS_MAX, CopyFormat, CopyOptions, Header, ROW_BYTES_MAX, csv, text};
use crate::error::{SqlError, SqlState};
use crate::protocol::backend;
use crate::protocol::body::{not_text, utf8};
use crate::protocol::intake::Intake;

/// The values of a row, of which `None` is null. In text and CSV each is valid UTF-8 without zero bytes; in the binary form it is
/// what the client sent. They share one allocation, about as long as the row.
pub type Row = Vec<Option<Bytes>>;

/// Takes the data of `COPY FROM` in pieces and gives rows.
///
/// After each [`feed`](RowDecoder::feed), take rows until there is none. Then the buffer holds at most one row
/// ([`ROW_BYTES_MAX`]), plus what the next piece brings; who goes on to feed without taking is stopped by an error at that border.
/// All errors are final: the same comes again. They say in their detail which row they are about.
#[derive(Debug)]
pub struct RowDecoder {
    options: CopyOptions,
    intake: Intake,
    source: Source,
    /// No more will be fed.
    ended: bool,
    /// The end of the data has been read.
    done: bool,
    line: u64,
    failed: Option<SqlError>,
}

#[derive(Debug)]
enum Source {
    Lines { lines: Lines, header: bool },
    Binary(Binary),
}

impl RowDecoder {
    /// One for data in that form.
    ///
    /// # Errors
    ///
    /// What [`CopyOptions::check`] says.
    pub fn new(options: CopyOptions) -> Result<RowDecoder, SqlError> {
        options.check()?;
        let source = match options.format {
            CopyFormat::Binary => Source::Binary(Binary::default()),
            CopyFormat::Text | CopyFormat::Csv => {
                Source::Lines { lines: Lines::new(&options), header: options.header != Header::Absent }
            }
        };
        let intake = Intake::default();
        Ok(RowDecoder { options, intake, source, ended: false, done: false, line: 0, failed: None })
    }

    /// Takes a piece of the data. What follows the marker `\.` is dropped.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.failed.is_some() || (self.done && matches!(self.source, Source::Lines { .. })) {
            return;
        }
        // Beyond a row of the greatest length there are at most the bytes that are needed to see that it ends.
        if self.intake.len() > ROW_BYTES_MAX + 4 {
            self.fail(SqlError::new(SqlState::INTERNAL_ERROR, "more of COPY was fed than rows were taken"));
            return;
        }
        self.intake.feed(bytes);
    }

    /// No more will be fed: the client has sent `CopyDone`. Take the rows that are left, the last of which need not end with a
    /// newline, by [`next_row`](RowDecoder::next_row).
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// The next row, or `None` if it is not whole yet or, after [`finish`](RowDecoder::finish), there is no more.
    ///
    /// # Errors
    ///
    /// 22P04 for data that does not have the form that was announced, 22021 for what is no text, 54000 for a row that is longer
    /// than [`ROW_BYTES_MAX`].
    pub fn next_row(&mut self) -> Result<Option<Row>, SqlError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.row().map_err(|mut error| {
            error.detail.get_or_insert_with(|| format!("In line {} of the data.", self.line + 1));
            self.fail(error.clone());
            error
        })
    }

    /// How many rows have been given and skipped: the number of the last one, from 1 on, to say where an error is.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// How many bytes wait, in bytes.
    pub fn buffered(&self) -> usize {
        self.intake.len()
    }

    fn fail(&mut self, error: SqlError) {
        self.intake.clear();
        self.failed = Some(error);
    }

    fn row(&mut self) -> Result<Option<Row>, SqlError> {
        if self.done {
            // Only the binary form gets here with data: the other two drop it.
            return if self.intake.len() == 0 {
                Ok(None)
            } else {
                Err(bad("received copy data after EOF marker"))
            };
        }
        let (lines, header) = match &mut self.source {
            Source::Lines { lines, header } => (lines, header),
            Source::Binary(binary) => match binary.next(&mut self.intake, self.ended)? {
                Step::Row(row) => {
                    self.line += 1;
                    return Ok(Some(row));
                }
                Step::Nothing => return Ok(None),
                Step::End => {
                    self.done = true;
                    return self.row();
                }
            },
        };
        loop {
            let bytes = self.intake.rest();
            let (length, taken) = match lines.find(bytes, self.ended)? {
                Found::Line { length, taken } => (length, taken),
                Found::Nothing => return Ok(None),
                Found::Marker | Found::End => {
                    self.intake.clear();
                    self.done = true;
                    return Ok(None);
                }
            };
            let line = &bytes[..length];
            check_text(line)?;
            let is_header = std::mem::replace(header, false);
            let row = match &self.options.header {
                Header::Present if is_header => None,
                _ => Some(read(line, &self.options)?),
            };
            self.intake.take(taken);
            if is_header {
                check_header(row.as_ref(), &self.options)?;
            }
            self.line += 1;
            if !is_header {
                return Ok(row);
            }
        }
    }
}

fn read(line: &[u8], options: &CopyOptions) -> Result<Row, SqlError> {
    match options.format {
        CopyFormat::Csv => csv::read(line, options),
        CopyFormat::Text | CopyFormat::Binary => text::read(line, options),
    }
}

/// Whether these bytes are text: UTF-8 without zero bytes.
fn check_text(bytes: &[u8]) -> Result<(), SqlError> {
    utf8(bytes)?;
    if bytes.contains(&0) { Err(not_text(&[0])) } else { Ok(()) }
}

/// Whether a line of names has those that it must have.
fn check_header(row: Option<&Row>, options: &CopyOptions) -> Result<(), SqlError> {
    let (Header::Match(names), Some(row)) = (&options.header, row) else { return Ok(()) };
    if row.len() != names.len() {
        let (got, expected) = (row.len(), names.len());
        let message = format!("wrong number of fields in header line: got {got}, expected {expected}");
        return Err(bad(message));
    }
    for (at, (got, expected)) in row.iter().zip(names).enumerate() {
        if got.as_deref() == Some(expected.as_bytes()) {
            continue;
        }
        let got = match got {
            Some(got) => format!("got \"{}\"", String::from_utf8_lossy(got)),
            None => format!("got null value (\"{}\")", options.null),
        };
        let at = at + 1;
        let message =
            format!("column name mismatch in header line field {at}: {got}, expected \"{expected}\"");
        return Err(bad(message));
    }
    Ok(())
}

/// The values of a line, which is text, as they are read, one behind the other.
pub(super) struct Values {
    bytes: Vec<u8>,
    ranges: Vec<Option<Range<usize>>>,
    start: usize,
    /// An escape may have made something of the present value that is no text.
    is_doubtful: bool,
}

impl Values {
    pub(super) fn new(line_bytes: usize) -> Values {
        Values { bytes: Vec::with_capacity(line_bytes), ranges: Vec::new(), start: 0, is_doubtful: false }
    }

    pub(super) fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A byte that was written as a number.
    pub(super) fn push_number(&mut self, byte: u8) {
        self.is_doubtful |= byte == 0 || !byte.is_ascii();
        self.bytes.push(byte);
    }

    /// The present value ends here; or it is null, whatever was pushed.
    pub(super) fn end(&mut self, is_null: bool) -> Result<(), SqlError> {
        if self.ranges.len() == COLUMNS_MAX {
            return Err(bad(format!("extra data after column {COLUMNS_MAX}")));
        }
        if is_null {
            self.bytes.truncate(self.start);
            self.ranges.push(None);
            return Ok(());
        }
        if std::mem::take(&mut self.is_doubtful) {
            check_text(&self.bytes[self.start..])?;
        }
        self.ranges.push(Some(self.start..self.bytes.len()));
        self.start = self.bytes.len();
        Ok(())
    }

    pub(super) fn row(self) -> Row {
        let bytes = Bytes::from(self.bytes);
        self.ranges.into_iter().map(|range| range.map(|range| bytes.slice(range))).collect()
    }
}

/// Writes the data of `COPY TO`: what [`begin`](RowEncoder::begin) appends, then rows, then what [`end`](RowEncoder::end) appends.
/// Each of the three may go into a `CopyData` message of its own.
#[derive(Clone, Debug)]
pub struct RowEncoder {
    options: CopyOptions,
}

impl RowEncoder {
    /// One for data in that form.
    ///
    /// # Errors
    ///
    /// What [`CopyOptions::check`] says.
    pub fn new(options: CopyOptions) -> Result<RowEncoder, SqlError> {
        options.check()?;
        Ok(RowEncoder { options })
    }

    /// Appends what stands before the rows: in the binary form its header, otherwise a line of names, if it was asked for.
    ///
    /// # Errors
    ///
    /// Those of [`row`](RowEncoder::row).
    pub fn begin<'a>(
        &self,
        out: &mut Vec<u8>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), SqlError> {
        match (self.options.format, &self.options.header) {
            (CopyFormat::Binary, _) => binary::write_header(out),
            (_, Header::Absent) => {}
            (_, Header::Present | Header::Match(_)) => {
                self.row(out, names.into_iter().map(|name| Some(name.as_bytes())))?;
            }
        }
        Ok(())
    }

    /// Appends a row. The values are text, or in the binary form that of their types.
    ///
    /// # Errors
    ///
    /// 54000 if there are more values than [`COLUMNS_MAX`], or one in the binary form is longer than a message may be. Then nothing
    /// has been appended.
    pub fn row<'a>(
        &self,
        out: &mut Vec<u8>,
        values: impl IntoIterator<Item = Option<&'a [u8]>>,
    ) -> Result<(), SqlError> {
        let start = out.len();
        let result = match self.options.format {
            CopyFormat::Binary => write_binary(out, values),
            CopyFormat::Text | CopyFormat::Csv => self.write_line(out, values),
        };
        result.inspect_err(|_| out.truncate(start))
    }

    /// Appends what stands behind the rows: in the binary form its trailer, otherwise nothing.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.options.format == CopyFormat::Binary {
            binary::write_trailer(out);
        }
    }

    fn write_line<'a>(
        &self,
        out: &mut Vec<u8>,
        values: impl IntoIterator<Item = Option<&'a [u8]>>,
    ) -> Result<(), SqlError> {
        let mut values = values.into_iter().enumerate().peekable();
        while let Some((at, value)) = values.next() {
            if at == COLUMNS_MAX {
                return Err(too_much());
            }
            if at > 0 {
                out.push(self.options.delimiter);
            }
            match (value, self.options.format) {
                (None, _) => out.extend_from_slice(self.options.null.as_bytes()),
                (Some(value), CopyFormat::Csv) => {
                    csv::write(out, value, &self.options, at == 0 && values.peek().is_none());
                }
                (Some(value), _) => text::write(out, value, &self.options),
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

fn write_binary<'a>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = Option<&'a [u8]>>,
) -> Result<(), SqlError> {
    let start = out.len();
    let mut count = 0_u16;
    out.extend_from_slice(&count.to_be_bytes());
    for value in values {
        if usize::from(count) == COLUMNS_MAX {
            return Err(too_much());
        }
        count += 1;
        let Some(value) = value else {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        };
        if value.len() > backend::MESSAGE_BYTES_MAX {
            return Err(too_much());
        }
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(value);
    }
    out[start..start + 2].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

fn too_much() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too long or has too many columns for COPY")
}
