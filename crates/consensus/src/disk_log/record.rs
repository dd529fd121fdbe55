//! The form of records: see the table in [docs/log-format.md](../../../../docs/log-format.md).

use super::{LogId, segment::number_at};

/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: u64 = 32;

/// Records begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 8;

/// The longest payload that the format can hold: the option may only be lower. Keeps the arithmetic of 32-bit lengths safe.
pub(super) const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

const HEADER_CHECKSUM_AT: usize = 24;
const CHECKSUM_AT: usize = 28;

/// Bytes of a record with a payload of this length.
pub(super) fn record_bytes(payload_bytes: u64) -> u64 {
    RECORD_HEADER_BYTES + payload_bytes.next_multiple_of(ALIGNMENT)
}

/// What the checksums of a segment's records begin with, so that no record of another log or segment has the right one.
pub(super) fn seed(log_id: LogId, segment: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&log_id.0.to_le_bytes()), &segment.to_le_bytes())
}

/// The fields before the payload, as they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecordHeader {
    pub(super) payload_bytes: u64,
    pub(super) chain: u32,
    pub(super) sequence: u64,
    /// All records through this number were durable when the record was appended.
    pub(super) durable: u64,
    pub(super) checksum: u32,
}

impl RecordHeader {
    /// The header that the bytes begin with, if its checksum is right.
    pub(super) fn of(bytes: &[u8], seed: u32) -> Option<RecordHeader> {
        let header = bytes.get(..RECORD_HEADER_BYTES as usize)?;
        let header_checksum = number_at::<4>(header, HEADER_CHECKSUM_AT) as u32;
        let payload_bytes = number_at::<4>(header, 0);
        let intact = crc32c::crc32c_append(seed, &header[..HEADER_CHECKSUM_AT]) == header_checksum;
        (intact && payload_bytes <= PAYLOAD_BYTES_MAX).then(|| RecordHeader {
            payload_bytes,
            chain: number_at::<4>(header, 4) as u32,
            sequence: number_at::<8>(header, 8),
            durable: number_at::<8>(header, 16),
            checksum: number_at::<4>(header, CHECKSUM_AT) as u32,
        })
    }

    /// Bytes of the whole record.
    pub(super) fn record_bytes(&self) -> u64 {
        record_bytes(self.payload_bytes)
    }

    /// Where the payload is in the bytes that begin with this header, if it is as it was written.
    pub(super) fn payload_in(&self, bytes: &[u8], seed: u32) -> Option<std::ops::Range<usize>> {
        let record = bytes.get(..self.record_bytes() as usize)?;
        let begin = RECORD_HEADER_BYTES as usize;
        (checksum(record, seed) == self.checksum).then(|| begin..begin + self.payload_bytes as usize)
    }
}

/// The checksum of a whole record: of all but the field that it is kept in.
fn checksum(record: &[u8], seed: u32) -> u32 {
    let before = crc32c::crc32c_append(seed, &record[..CHECKSUM_AT]);
    crc32c::crc32c_append(before, &record[RECORD_HEADER_BYTES as usize..])
}

/// Appends a record to the buffer and returns its checksum: the chain of the next one.
pub(super) fn encode(
    buffer: &mut Vec<u8>,
    payload: &[u8],
    chain: u32,
    sequence: u64,
    durable: u64,
    seed: u32,
) -> u32 {
    assert!(payload.len() as u64 <= PAYLOAD_BYTES_MAX, "the log has checked the length of payloads");
    let begin = buffer.len();
    buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    buffer.extend_from_slice(&chain.to_le_bytes());
    buffer.extend_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&durable.to_le_bytes());
    let header_checksum = crc32c::crc32c_append(seed, &buffer[begin..]);
    buffer.extend_from_slice(&header_checksum.to_le_bytes());
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(payload);
    buffer.resize(begin + record_bytes(payload.len() as u64) as usize, 0);
    let checksum = checksum(&buffer[begin..], seed);
    buffer[begin + CHECKSUM_AT..begin + CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}
