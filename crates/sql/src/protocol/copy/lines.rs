//! Where the lines of text and CSV end.

use super::{CopyFormat, CopyOptions, ROW_BYTES_MAX};
use crate::error::{SqlError, SqlState};

/// How lines end: the first one decides for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Unknown,
    Newline,
    Return,
    ReturnAndNewline,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// A line of so many bytes, which ends behind so many.
    Line { length: usize, taken: usize },
    /// The marker `\.`, behind which nothing counts.
    Marker,
    /// The end of the data.
    End,
    /// More is needed.
    Nothing,
}

/// Looks at each byte once, however the data comes.
#[derive(Debug)]
pub(super) struct Lines {
    /// Quote and escape of CSV.
    csv: Option<(u8, u8)>,
    ending: Ending,
    /// How much of the present line has been looked at.
    scanned: usize,
    in_quotes: bool,
    behind_escape: bool,
}

impl Lines {
    pub(super) fn new(options: &CopyOptions) -> Lines {
        let csv = (options.format == CopyFormat::Csv).then_some((options.quote, options.escape));
        Lines { csv, ending: Ending::Unknown, scanned: 0, in_quotes: false, behind_escape: false }
    }

    /// Finds the end of the line that these bytes begin with. `ended`: nothing follows them. They are those of the last call and
    /// more, until a line has been found.
    pub(super) fn find(&mut self, bytes: &[u8], ended: bool) -> Result<Found, SqlError> {
        let found = self.scan(bytes, ended)?;
        let length = match found {
            Found::Line { length, .. } => length,
            Found::Nothing => self.scanned,
            Found::Marker | Found::End => 0,
        };
        if length > ROW_BYTES_MAX {
            return Err(too_long());
        }
        if found != Found::Nothing {
            (self.scanned, self.in_quotes, self.behind_escape) = (0, false, false);
        }
        Ok(found)
    }

    fn scan(&mut self, bytes: &[u8], ended: bool) -> Result<Found, SqlError> {
        if self.scanned == 0 && bytes.first() == Some(&b'\\') {
            match self.marker(bytes, ended)? {
                Some(found) => return Ok(found),
                None => self.scanned = 0,
            }
        }
        while let Some(byte) = bytes.get(self.scanned) {
            let next = bytes.get(self.scanned + 1);
            if let Some((quote, escape)) = self.csv {
                self.follow_quotes(*byte, quote, escape);
            } else if *byte == b'\\' {
                match next {
                    Some(b'.') => return Err(not_alone()),
                    // A newline behind a backslash is data, too.
                    Some(_) => self.scanned += 2,
                    None if ended => self.scanned += 1,
                    None => return Ok(Found::Nothing),
                }
                continue;
            }
            let terminator = match byte {
                b'\r' | b'\n' if self.in_quotes => None,
                b'\r' if next.is_none() && !ended && self.ending != Ending::Newline => {
                    return Ok(Found::Nothing);
                }
                b'\r' => Some(self.carriage_return(next == Some(&b'\n'))?),
                b'\n' => Some(self.newline()?),
                _ => None,
            };
            if let Some(terminator) = terminator {
                return Ok(Found::Line { length: self.scanned, taken: self.scanned + terminator });
            }
            self.scanned += 1;
        }
        match bytes.len() {
            _ if !ended => Ok(Found::Nothing),
            0 => Ok(Found::End),
            length => Ok(Found::Line { length, taken: length }),
        }
    }

    /// Whether the line, which begins with a backslash, is the marker; `None` if it is data.
    fn marker(&self, bytes: &[u8], ended: bool) -> Result<Option<Found>, SqlError> {
        match bytes.get(1..) {
            Some([]) if !ended => Ok(Some(Found::Nothing)),
            Some([b'.']) if !ended => Ok(Some(Found::Nothing)),
            Some([b'.'] | [b'.', b'\r' | b'\n', ..])
                if self.csv.is_none_or(|(quote, _)| quote != b'\\' && quote != b'.') =>
            {
                Ok(Some(Found::Marker))
            }
            Some([b'.', ..]) if self.csv.is_none() => Err(not_alone()),
            _ => Ok(None),
        }
    }

    fn follow_quotes(&mut self, byte: u8, quote: u8, escape: u8) {
        // An escape that is the quote needs no care: a doubled quote ends and begins.
        let is_escape = byte == escape && escape != quote;
        if is_escape && self.in_quotes {
            self.behind_escape = !self.behind_escape;
        }
        if byte == quote && !self.behind_escape {
            self.in_quotes = !self.in_quotes;
        }
        if !is_escape {
            self.behind_escape = false;
        }
    }

    /// How many bytes the end of the line has.
    fn carriage_return(&mut self, before_newline: bool) -> Result<usize, SqlError> {
        match self.ending {
            Ending::Unknown | Ending::ReturnAndNewline if before_newline => {
                self.ending = Ending::ReturnAndNewline;
                Ok(2)
            }
            Ending::Unknown | Ending::Return => {
                self.ending = Ending::Return;
                Ok(1)
            }
            Ending::Newline | Ending::ReturnAndNewline => Err(self.stray("carriage return", "\\r")),
        }
    }

    fn newline(&mut self) -> Result<usize, SqlError> {
        match self.ending {
            Ending::Unknown | Ending::Newline => {
                self.ending = Ending::Newline;
                Ok(1)
            }
            Ending::Return | Ending::ReturnAndNewline => Err(self.stray("newline", "\\n")),
        }
    }

    fn stray(&self, what: &str, escaped: &str) -> SqlError {
        if self.csv.is_some() {
            bad(format!("unquoted {what} found in data"))
                .with_hint(format!("Use quoted CSV field to represent {what}."))
        } else {
            bad(format!("literal {what} found in data"))
                .with_hint(format!("Use \"{escaped}\" to represent {what}."))
        }
    }
}

fn not_alone() -> SqlError {
    bad("end-of-copy marker is not alone on its line")
}

/// The data does not have the form that was announced.
pub(super) fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// The row is longer than the limit.
pub(super) fn too_long() -> SqlError {
    let message = format!("a row of COPY is longer than {ROW_BYTES_MAX} bytes");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}
