//! The form of records: see the table in the [module above](super).

use ordain_db::node::Event;

use super::AppendError;

/// Bytes of a record before its payload.
pub const HEADER_BYTES: usize = 28;

/// The longest record in bytes, its header included. A length above it is damage.
pub const RECORD_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The chain of the first record.
pub(super) const CHAIN_BEGIN: u32 = u32::from_be_bytes(*b"ORD1");

/// The sequence number of the first record. Not 0, so that zeros are no beginning.
pub(super) const SEQUENCE_BEGIN: u64 = 1;

const CHECKSUM_AT: usize = 4;
const CHAIN_AT: usize = 8;

/// The fields before the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) length: u32,
    pub(super) checksum: u32,
    pub(super) chain: u32,
    pub(super) sequence: u64,
    pub(super) durable: u64,
}

impl Header {
    /// The first bytes as a header, whether they are one or not; `None` when they are too few, or when the record would
    /// reach beyond the bytes or be too long.
    pub(super) fn of(bytes: &[u8]) -> Option<Header> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [l0, l1, l2, l3, s0, s1, s2, s3, c0, c1, c2, c3, numbers @ ..] = *header;
        let [q0, q1, q2, q3, q4, q5, q6, q7, durable @ ..] = numbers;
        let header = Header {
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            checksum: u32::from_le_bytes([s0, s1, s2, s3]),
            chain: u32::from_le_bytes([c0, c1, c2, c3]),
            sequence: u64::from_le_bytes([q0, q1, q2, q3, q4, q5, q6, q7]),
            durable: u64::from_le_bytes(durable),
        };
        let payload = header.length as usize;
        (payload <= rest.len() && payload <= RECORD_BYTES_MAX - HEADER_BYTES).then_some(header)
    }

    /// Bytes of the record.
    pub(super) fn record_bytes(&self) -> usize {
        HEADER_BYTES + self.length as usize
    }

    /// Whether the bytes that begin with this header are a record as it was written.
    pub(super) fn vouches_for(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.record_bytes()).is_some_and(|record| checksum(record) == self.checksum)
    }
}

/// The checksum of a record: of all but the field that it is kept in.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..CHECKSUM_AT]), &record[CHAIN_AT..])
}

/// Writes a record into the buffer, in place of what it holds, and returns the record's checksum.
pub(super) fn encode(
    buffer: &mut Vec<u8>,
    sequence: u64,
    chain: u32,
    durable: u64,
    now_microseconds: u64,
    events: &[Event],
) -> Result<u32, AppendError> {
    buffer.clear();
    buffer.extend_from_slice(&[0; CHAIN_AT]);
    buffer.extend_from_slice(&chain.to_le_bytes());
    buffer.extend_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&durable.to_le_bytes());
    let encoded = postcard::to_extend(&(now_microseconds, events), std::mem::take(buffer));
    *buffer = encoded.expect("events have no parts that postcard cannot write, and memory grows");
    if buffer.len() > RECORD_BYTES_MAX {
        return Err(AppendError::TooLong { bytes: buffer.len() as u64 });
    }
    let length = (buffer.len() - HEADER_BYTES) as u32;
    buffer[..CHECKSUM_AT].copy_from_slice(&length.to_le_bytes());
    let checksum = checksum(buffer);
    buffer[CHECKSUM_AT..CHAIN_AT].copy_from_slice(&checksum.to_le_bytes());
    Ok(checksum)
}

/// The local time and the events of a payload. The error says what is wrong with it.
pub(super) fn decode(payload: &[u8]) -> Result<(u64, Vec<Event>), String> {
    match postcard::take_from_bytes(payload) {
        Ok((step, [])) => Ok(step),
        Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}
