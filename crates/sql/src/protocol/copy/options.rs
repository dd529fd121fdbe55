//! What a `COPY` statement says about its data.

use crate::error::{SqlError, SqlState};

/// The form of the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopyFormat {
    /// A line per row, with escapes.
    Text,
    /// Comma-separated values, in quotes where needed.
    Csv,
    /// PostgreSQL's binary form.
    Binary,
}

/// Whether the first line has the names of the columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Header {
    /// There is no such line.
    Absent,
    /// There is one. What it says is not looked at.
    Present,
    /// There is one, and it must have these names.
    Match(Vec<String>),
}

/// What a `COPY` statement says about its data. Start from [`CopyOptions::new`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyOptions {
    /// The form; in the binary one the rest has no meaning.
    pub format: CopyFormat,
    /// What stands between values: one byte of ASCII.
    pub delimiter: u8,
    /// What stands for null.
    pub null: String,
    /// Whether there is a line of names.
    pub header: Header,
    /// The quotes of CSV: one byte of ASCII.
    pub quote: u8,
    /// What stands before quotes inside quotes in CSV: one byte of ASCII.
    pub escape: u8,
}

impl CopyOptions {
    /// What holds in that form if the statement says nothing else. Who changes the quote of CSV should change the escape too,
    /// unless the statement names another.
    pub fn new(format: CopyFormat) -> CopyOptions {
        let (delimiter, null) = match format {
            CopyFormat::Text | CopyFormat::Binary => (b'\t', "\\N"),
            CopyFormat::Csv => (b',', ""),
        };
        let null = null.to_owned();
        CopyOptions { format, delimiter, null, header: Header::Absent, quote: b'"', escape: b'"' }
    }

    /// The byte that the text of an option (`delimiter`, `quote`, `escape`) stands for.
    ///
    /// # Errors
    ///
    /// 22023 if it is not one byte.
    pub fn single_byte(option: &str, text: &str) -> Result<u8, SqlError> {
        match text.as_bytes() {
            [byte] => Ok(*byte),
            _ => Err(invalid(format!("COPY {option} must be a single one-byte character"))),
        }
    }

    /// Whether the options go together.
    ///
    /// # Errors
    ///
    /// 22023 if they would make data that cannot be read.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.format == CopyFormat::Binary {
            return match self.header {
                Header::Absent => Ok(()),
                Header::Present | Header::Match(_) => Err(invalid("cannot specify HEADER in BINARY mode")),
            };
        }
        check_byte("delimiter", self.delimiter)?;
        if self.null.contains(['\r', '\n']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        if self.null.as_bytes().contains(&self.delimiter) {
            return Err(invalid("COPY delimiter character must not appear in the NULL specification"));
        }
        match self.format {
            CopyFormat::Csv => self.check_csv(),
            // These stand behind a backslash, or are one.
            _ if b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&self.delimiter) => {
                Err(invalid(format!("COPY delimiter cannot be \"{}\"", char::from(self.delimiter))))
            }
            _ => Ok(()),
        }
    }

    fn check_csv(&self) -> Result<(), SqlError> {
        check_byte("quote", self.quote)?;
        check_byte("escape", self.escape)?;
        if self.quote == self.delimiter {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if self.null.as_bytes().contains(&self.quote) {
            return Err(invalid("CSV quote character must not appear in the NULL specification"));
        }
        Ok(())
    }
}

fn check_byte(option: &str, byte: u8) -> Result<(), SqlError> {
    match byte {
        b'\r' | b'\n' => Err(invalid(format!("COPY {option} cannot be newline or carriage return"))),
        0 | 0x80.. => Err(invalid(format!("COPY {option} must be a single one-byte character"))),
        _ => Ok(()),
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(format: CopyFormat, change: impl FnOnce(&mut CopyOptions), message: &str) {
        let mut options = CopyOptions::new(format);
        assert_eq!(options.check(), Ok(()));
        change(&mut options);
        let error = options.check().unwrap_err();
        assert_eq!((error.state, error.message.as_str()), (SqlState::INVALID_PARAMETER_VALUE, message));
    }

    #[test]
    fn options_that_do_not_go_together() {
        use CopyFormat::{Binary, Csv, Text};
        let newline = "COPY delimiter cannot be newline or carriage return";
        refused(Text, |options| options.delimiter = b'\n', newline);
        refused(Text, |options| options.delimiter = b'n', "COPY delimiter cannot be \"n\"");
        let null = "COPY null representation cannot use newline or carriage return";
        refused(Csv, |options| options.null = "a\r".into(), null);
        let delimiter = "COPY delimiter character must not appear in the NULL specification";
        refused(Csv, |options| options.null = "a,".into(), delimiter);
        refused(Csv, |options| options.quote = b',', "COPY delimiter and quote must be different");
        let quote = "CSV quote character must not appear in the NULL specification";
        refused(Csv, |options| options.null = "\"\"".into(), quote);
        refused(Csv, |options| options.escape = 0xe4, "COPY escape must be a single one-byte character");
        refused(Csv, |options| options.quote = b'\r', "COPY quote cannot be newline or carriage return");
        let header = "cannot specify HEADER in BINARY mode";
        refused(Binary, |options| options.header = Header::Present, header);
    }

    #[test]
    fn texts_of_options() {
        assert_eq!(CopyOptions::single_byte("quote", "'"), Ok(b'\''));
        for text in ["", "ab", "ä"] {
            let error = CopyOptions::single_byte("quote", text).unwrap_err();
            assert_eq!(error.message, "COPY quote must be a single one-byte character");
        }
    }
}
