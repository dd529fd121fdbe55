//! Lines of comma-separated values.

use super::lines::bad;
use super::rows::Values;
use super::{CopyOptions, Row};
use crate::error::SqlError;

/// The values of a line, which may have ends of lines inside quotes.
pub(super) fn read(line: &[u8], options: &CopyOptions) -> Result<Row, SqlError> {
    let mut values = Values::new(line.len());
    let mut at = 0;
    loop {
        let start = at;
        let mut was_quoted = false;
        while let Some(byte) = line.get(at).filter(|byte| **byte != options.delimiter) {
            at += 1;
            if *byte == options.quote {
                was_quoted = true;
                at += read_quoted(&line[at..], options, &mut values)?;
            } else {
                values.push(*byte);
            }
        }
        values.end(!was_quoted && &line[start..at] == options.null.as_bytes())?;
        if at == line.len() {
            return Ok(values.row());
        }
        at += 1;
    }
}

/// Reads up to the closing quote. How many bytes that are, with it.
fn read_quoted(bytes: &[u8], options: &CopyOptions, values: &mut Values) -> Result<usize, SqlError> {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1).filter(|next| [options.quote, options.escape].contains(next));
        at += 1;
        match next {
            Some(next) if *byte == options.escape => {
                values.push(*next);
                at += 1;
            }
            _ if *byte == options.quote => return Ok(at),
            _ => values.push(*byte),
        }
    }
    Err(bad("unterminated CSV quoted field"))
}

/// Appends a value. `alone`: it is the only one of its row.
pub(super) fn write(out: &mut Vec<u8>, value: &[u8], options: &CopyOptions, alone: bool) {
    let special = [options.delimiter, options.quote, b'\n', b'\r'];
    let needs_quotes = value == options.null.as_bytes()
        || value.iter().any(|byte| special.contains(byte))
        || (alone && value == b"\\.");
    if !needs_quotes {
        out.extend_from_slice(value);
        return;
    }
    out.push(options.quote);
    for byte in value {
        if *byte == options.quote || *byte == options.escape {
            out.push(options.escape);
        }
        out.push(*byte);
    }
    out.push(options.quote);
}
