//! Reading the body of a message.

use std::fmt::Write as _;

use crate::error::{SqlError, SqlState};

/// What has not been read of a body. The texts of the errors are PostgreSQL's.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Body<'a> {
        Body { rest }
    }

    pub(super) fn array<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], SqlError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, SqlError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, SqlError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SqlError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, SqlError> {
        self.array().map(i32::from_be_bytes)
    }

    /// A count of elements that take at least so many bytes each: one that the rest cannot hold is refused here, before
    /// anything is allocated for it.
    pub(super) fn count(&mut self, element_bytes_min: usize) -> Result<usize, SqlError> {
        let count = usize::from(self.u16()?);
        if count * element_bytes_min > self.rest.len() { Err(insufficient()) } else { Ok(count) }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A value behind its length, of which -1 stands for none.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, SqlError> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.bytes(usize::try_from(length).map_err(|_| insufficient())?).map(Some),
        }
    }

    /// A text up to its zero byte.
    pub(super) fn text(&mut self) -> Result<&'a str, SqlError> {
        let zero = self.rest.iter().position(|byte| *byte == 0);
        let length = zero.ok_or_else(|| violation("invalid string in message"))?;
        let text = utf8(&self.rest[..length])?;
        self.rest = &self.rest[length + 1..];
        Ok(text)
    }

    /// All that is left.
    pub(super) fn remainder(self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), SqlError> {
        if self.rest.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}

/// The client broke the protocol.
pub(super) fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn insufficient() -> SqlError {
    violation("insufficient data left in message")
}

/// The bytes as text, or PostgreSQL's error, which shows the character that is none.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let wrong = &bytes[error.valid_up_to()..];
        let length = match wrong.first() {
            Some(0xc0..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf7) => 4,
            _ => 1,
        };
        not_text(&wrong[..length.min(wrong.len())])
    })
}

/// These bytes are no character.
pub(super) fn not_text(wrong: &[u8]) -> SqlError {
    let mut message = String::from("invalid byte sequence for encoding \"UTF8\":");
    for byte in wrong {
        // Writing to a `String` does not fail.
        let _ = write!(message, " {byte:#04x}");
    }
    SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_none_is_shown() {
        let message = |bytes: &[u8]| utf8(bytes).unwrap_err().message;
        assert_eq!(message(b"a\xff\xfe"), "invalid byte sequence for encoding \"UTF8\": 0xff");
        assert_eq!(message(b"a\xe2\x28\xa1b"), "invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1");
        assert_eq!(message(b"\xf0\x9f"), "invalid byte sequence for encoding \"UTF8\": 0xf0 0x9f");
    }

    #[test]
    fn reading_stops_at_the_end() {
        let mut body = Body::new(&[0, 2, 0, 0, 0]);
        assert_eq!(body.count(2).unwrap_err().message, "insufficient data left in message");
        let mut body = Body::new(&[0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(body.value().unwrap_err().message, "insufficient data left in message");
        let mut body = Body::new(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(body.value().unwrap(), None);
        assert_eq!(body.u8().unwrap_err().state, SqlState::PROTOCOL_VIOLATION);
        assert_eq!(Body::new(b"abc").text().unwrap_err().message, "invalid string in message");
        assert_eq!(Body::new(b"abc").end().unwrap_err().message, "invalid message format");
    }
}
