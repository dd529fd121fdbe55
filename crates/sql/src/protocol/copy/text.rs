//! Lines of text.

use super::rows::Values;
use super::{CopyOptions, Row};
use crate::error::SqlError;

/// The values of a line.
pub(super) fn read(line: &[u8], options: &CopyOptions) -> Result<Row, SqlError> {
    let mut values = Values::new(line.len());
    let mut at = 0;
    loop {
        let start = at;
        while let Some(byte) = line.get(at).filter(|byte| **byte != options.delimiter) {
            at += 1;
            if *byte == b'\\' {
                at += read_escape(&line[at..], &mut values);
            } else {
                values.push(*byte);
            }
        }
        // What stands for null does so before escapes are undone: `\N` is null and `\\N` is not.
        values.end(&line[start..at] == options.null.as_bytes())?;
        if at == line.len() {
            return Ok(values.row());
        }
        at += 1;
    }
}

/// Undoes an escape, of which the bytes behind the backslash are given. How many belong to it.
fn read_escape(bytes: &[u8], values: &mut Values) -> usize {
    let Some(first) = bytes.first() else { return 0 };
    let digits = |bytes: &[u8], radix: u32, max: usize| {
        let digits = bytes.iter().take(max).map_while(|byte| char::from(*byte).to_digit(radix));
        digits.fold((0, 0), |(value, count), digit| (value * radix + digit, count + 1))
    };
    let (byte, taken) = match first {
        // Three octal digits may be more than a byte has; PostgreSQL takes the lower bits.
        b'0'..=b'7' => {
            let (value, count) = digits(bytes, 8, 3);
            (value as u8, count)
        }
        b'x' => match digits(&bytes[1..], 16, 2) {
            (_, 0) => (b'x', 1),
            (value, count) => (value as u8, 1 + count),
        },
        b'b' => (0x08, 1),
        b'f' => (0x0c, 1),
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'v' => (0x0b, 1),
        other => (*other, 1),
    };
    values.push_number(byte);
    taken
}

/// Appends a value.
pub(super) fn write(out: &mut Vec<u8>, value: &[u8], options: &CopyOptions) {
    for byte in value {
        let escaped = match byte {
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            b'\\' => b'\\',
            delimiter if *delimiter == options.delimiter => *delimiter,
            other => {
                out.push(*other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escaped]);
    }
}
