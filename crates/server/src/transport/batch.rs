//! Several frames written to a socket in one system call.

use std::io::{self, ErrorKind, IoSlice, Write};

use bytes::Bytes;

use super::frame::{FrameKind, encode_header};
use super::limits::WRITE_IN_PLACE_BYTES_MIN;

/// Frames to be written together. Reused from batch to batch, so that its buffer is allocated once.
#[derive(Default)]
pub(crate) struct FrameBatch {
    /// Headers and short payloads, in order.
    buffer: Vec<u8>,
    /// Long payloads, each with the length of `buffer` at which it belongs between the bytes before and those after.
    in_place: Vec<(usize, Bytes)>,
}

impl FrameBatch {
    /// Appends a frame.
    pub(crate) fn push(&mut self, kind: FrameKind, sequence: u64, payload: Bytes) {
        self.buffer.extend_from_slice(&encode_header(kind, sequence, &payload));
        if payload.len() < WRITE_IN_PLACE_BYTES_MIN {
            self.buffer.extend_from_slice(&payload);
        } else {
            self.in_place.push((self.buffer.len(), payload));
        }
    }

    /// Writes all frames to `out` and forgets them, written or not.
    pub(crate) fn write_to(&mut self, out: impl Write) -> io::Result<()> {
        let mut slices = Vec::with_capacity(2 * self.in_place.len() + 1);
        let mut from = 0;
        for (at, payload) in &self.in_place {
            slices.push(IoSlice::new(&self.buffer[from..*at]));
            slices.push(IoSlice::new(payload));
            from = *at;
        }
        slices.push(IoSlice::new(&self.buffer[from..]));
        let result = write_all_vectored(out, &mut slices);
        self.buffer.clear();
        self.in_place.clear();
        result
    }
}

/// What `Write::write_all` is to `write`: std has this only as an unstable method.
fn write_all_vectored(mut out: impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Drops leading empty slices, so that a result of 0 can only mean that nothing can be written any more.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::frame::{Decoder, Frame};

    /// Writes at most seven bytes at a time, as a full socket may.
    struct Trickle(Vec<u8>);

    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(7);
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_of_all_sizes_keep_their_order_through_partial_writes() {
        let payloads: Vec<Bytes> =
            [0, 1, 100_000, 5, WRITE_IN_PLACE_BYTES_MIN, WRITE_IN_PLACE_BYTES_MIN - 1, 0]
                .into_iter()
                .enumerate()
                .map(|(i, bytes)| Bytes::from(vec![i as u8; bytes]))
                .collect();
        let mut batch = FrameBatch::default();
        for (i, payload) in payloads.iter().enumerate() {
            batch.push(FrameKind::Data, i as u64, payload.clone());
        }
        let mut out = Trickle(Vec::new());
        batch.write_to(&mut out).unwrap();

        let mut decoder = Decoder::new();
        decoder.handshake_done();
        decoder.push(&out.0);
        for (i, payload) in payloads.into_iter().enumerate() {
            let frame = Frame { kind: FrameKind::Data, sequence: i as u64, payload };
            assert_eq!(decoder.next_frame().unwrap(), Some(frame));
        }
        assert!(!decoder.is_inside_frame());

        batch.write_to(&mut out).unwrap();
        decoder.push(&out.0[out.0.len()..]);
        assert_eq!(decoder.next_frame().unwrap(), None, "a written batch is forgotten");
    }
}
