//! Records are read again: for a replica that lags, and for a restore to a point in time.

use bytes::Bytes;

use crate::files::Files;

use super::record::{RecordHeader, record_bytes, seed};
use super::{Damage, DiskLog, Evidence, ReadError, Segment};

/// A record that was read.
struct Found {
    sequence: u64,
    payload: Bytes,
    /// Where it ends in its file.
    end: u64,
}

impl<F: Files> DiskLog<F> {
    /// Records from this sequence number on, in order: as many as take `bytes_max` bytes of the log, and one at least if there
    /// is one. Empty when the log ends before. Records that are not durable are among them.
    ///
    /// # Errors
    /// [`ReadError`]. What is returned has been verified.
    pub fn read_from(&self, sequence: u64, bytes_max: u64) -> Result<Vec<(u64, Bytes)>, ReadError> {
        let first = self.first_sequence();
        if sequence < first {
            return Err(ReadError::Truncated { sequence, first });
        }
        let (mut found, mut left) = (Vec::new(), bytes_max);
        let mut next = sequence;
        while next <= self.appended {
            for record in self.stretch(next)?.into_iter().skip_while(|record| record.sequence < next) {
                let bytes = record_bytes(record.payload.len() as u64);
                if bytes > left && !found.is_empty() {
                    return Ok(found);
                }
                left = left.saturating_sub(bytes);
                found.push((record.sequence, record.payload));
            }
            next = sequence + found.len() as u64;
        }
        Ok(found)
    }

    /// Where the record of this number ends in the last segment; the begin of its records when it is in none or before.
    pub(super) fn end_of(&self, sequence: u64) -> Result<u64, ReadError> {
        if sequence < self.active().first_sequence {
            return Ok(super::RECORDS_AT);
        }
        let stretch = self.stretch(sequence)?;
        let record = stretch.into_iter().find(|record| record.sequence == sequence);
        Ok(record.expect("a stretch has the record that it was asked for").end)
    }

    /// The records from one place of the index to the next, among which is the one of this number; it must be there.
    fn stretch(&self, sequence: u64) -> Result<Vec<Found>, ReadError> {
        let segment =
            &self.segments[self.segments.partition_point(|segment| segment.first_sequence <= sequence) - 1];
        let Segment { index, number, .. } = segment;
        let after = index.partition_point(|(first, _)| *first <= sequence);
        let (first, begin) = index[after - 1];
        let end = index.get(after).map_or(segment.end, |(_, offset)| *offset);
        let bytes = Bytes::from(self.files.read(&segment.name(), begin, end - begin)?);
        let seed = seed(self.options.log_id, *number);
        let (mut found, mut at, mut expected) = (Vec::new(), 0, (first, None));
        while begin + at < end {
            let (sequence, chain) = expected;
            let rest = bytes.get(at as usize..).unwrap_or_default();
            let header = RecordHeader::of(rest, seed).filter(|header| {
                header.sequence == sequence && chain.is_none_or(|chain| header.chain == chain)
            });
            let payload = header.and_then(|header| Some((header, header.payload_in(rest, seed)?)));
            let Some((header, payload)) = payload else {
                let evidence = Evidence::Unreadable { sequence };
                return Err(Damage { name: segment.name(), offset: begin + at, evidence }.into());
            };
            let payload = bytes.slice(at as usize + payload.start..at as usize + payload.end);
            at += header.record_bytes();
            found.push(Found { sequence, payload, end: begin + at });
            expected = (sequence + 1, Some(header.checksum));
        }
        Ok(found)
    }
}
