//! The parts of a segment file that are no records: its name, its header and its seal. The tables are in
//! [docs/log-format.md](../../../../docs/log-format.md).

use super::LogId;
use super::record::{RECORD_HEADER_BYTES, seed};

/// The version of the format that this code reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// Where the records of a segment begin. Header and seal have 4 KiB each, so that sealing never touches the physical sector
/// of the header.
pub const RECORDS_AT: u64 = 8192;

/// The smallest segment that the options may ask for.
pub const SEGMENT_BYTES_MIN: u64 = RECORDS_AT + 4096;

/// The largest segment that the options may ask for, since recovery reads a segment at once.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 32;

/// Bytes of a header that are not zeros.
pub(super) const HEADER_BYTES: usize = 64;

/// Where the seal begins.
pub(super) const SEAL_AT: u64 = 4096;

/// Bytes of a seal.
pub(super) const SEAL_BYTES: usize = 32;

const MAGIC: &[u8; 8] = b"ORDN-LOG";
const SEAL_MAGIC: &[u8; 8] = b"ORDNSEAL";
const PREAMBLE_BYTES: usize = 16;
const HEADER_CHECKSUM_AT: usize = 60;
const SEAL_CHECKSUM_AT: usize = 28;
const NAME_SUFFIX: &str = ".log";
const NAME_DIGITS: usize = 20;

/// The number of a few bytes in little-endian order. The caller has checked that they are there.
pub(super) fn number_at<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + BYTES].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The file name of a segment.
pub(super) fn name_of(segment: u64) -> String {
    format!("{segment:0NAME_DIGITS$}{NAME_SUFFIX}")
}

/// The number of the segment that a file name tells, if it is one of a segment.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(NAME_SUFFIX)?;
    let plain = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// What a segment says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentHeader {
    pub(super) log_id: LogId,
    pub(super) number: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// The number of the first record, whether there is one or not.
    pub(super) first_sequence: u64,
    /// The checksum of the last record before the segment.
    pub(super) chain: u32,
}

/// What the bytes at the begin of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preamble {
    /// A header of this version.
    Header(SegmentHeader),
    /// A header of another version.
    OtherVersion(u32),
    /// No header, or a damaged one.
    None,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend_from_slice(&self.log_id.0.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&self.first_sequence.to_le_bytes());
        bytes.extend_from_slice(&self.chain.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&bytes);
        header
    }

    /// The first 16 bytes are the same in all versions, and have a checksum of their own: so a damaged version is not taken
    /// for another one.
    pub(super) fn of(bytes: &[u8]) -> Preamble {
        let Some(preamble) = bytes.get(..PREAMBLE_BYTES) else { return Preamble::None };
        let intact = u64::from(crc32c::crc32c(&preamble[..12])) == number_at::<4>(preamble, 12);
        if !intact || preamble[..8] != *MAGIC {
            return Preamble::None;
        }
        let version = number_at::<4>(preamble, 8) as u32;
        if version != FORMAT_VERSION {
            return Preamble::OtherVersion(version);
        }
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Preamble::None };
        let checksum = crc32c::crc32c(&header[..HEADER_CHECKSUM_AT]);
        if u64::from(checksum) != number_at::<4>(header, HEADER_CHECKSUM_AT) {
            return Preamble::None;
        }
        let log_id = u128::from(number_at::<8>(header, 24)) << 64 | u128::from(number_at::<8>(header, 16));
        Preamble::Header(SegmentHeader {
            log_id: LogId(log_id),
            number: number_at::<8>(header, 32),
            bytes: number_at::<8>(header, 40),
            first_sequence: number_at::<8>(header, 48),
            chain: number_at::<4>(header, 56) as u32,
        })
    }
}

/// The mark of a segment to which nothing is added, since the next one is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seal {
    /// The number of the last record before the next segment.
    pub(super) last_sequence: u64,
    /// Its checksum.
    pub(super) chain: u32,
}

impl Seal {
    pub(super) fn encode(&self, log_id: LogId, segment: u64) -> [u8; SEAL_BYTES] {
        let mut seal = [0; SEAL_BYTES];
        seal[..8].copy_from_slice(SEAL_MAGIC);
        seal[8..16].copy_from_slice(&segment.to_le_bytes());
        seal[16..24].copy_from_slice(&self.last_sequence.to_le_bytes());
        seal[24..28].copy_from_slice(&self.chain.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed(log_id, segment), &seal[..SEAL_CHECKSUM_AT]);
        seal[SEAL_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        seal
    }

    /// The seal of a segment, if it has an intact one. `bytes` are those of the file.
    pub(super) fn of(bytes: &[u8], log_id: LogId, segment: u64) -> Option<Seal> {
        let seal = bytes.get(SEAL_AT as usize..SEAL_AT as usize + SEAL_BYTES)?;
        let found = Seal { last_sequence: number_at::<8>(seal, 16), chain: number_at::<4>(seal, 24) as u32 };
        (found.encode(log_id, segment) == *seal).then_some(found)
    }
}

/// The longest payload that an empty segment of this size can hold.
pub(super) fn payload_bytes_max(segment_bytes: u64) -> u64 {
    (segment_bytes - RECORDS_AT - RECORD_HEADER_BYTES) / super::record::ALIGNMENT * super::record::ALIGNMENT
}
