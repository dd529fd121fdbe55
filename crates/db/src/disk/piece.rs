//! A piece of a log as a backup keeps it: the entries on which a group agreed, one after the other, and nothing else.
//!
//! | bytes | field | contents |
//! |---|---|---|
//! | 0-7 | magic | `ORDNPIEC` |
//! | 8-11 | version | 1 |
//! | 12-27 | log id | of the log that the entries come from |
//! | 28- | entries | each: length in 4 bytes, then the record that the log on disk has |
//!
//! Integers are little-endian. Pieces have no checksum of their own: a backup names them by their contents.

use bytes::Bytes;
use ordain_consensus::RecordError;
use ordain_consensus::disk_log::LogId;

use super::committed::LogEntry;

/// The version of the form that is written and read.
pub const PIECE_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"ORDNPIEC";
const HEADER_BYTES: usize = 28;
const LENGTH_BYTES: usize = 4;

/// Why bytes are no piece of a log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PieceError {
    /// The first bytes are not those of a piece.
    #[error("it does not begin as a piece of a log")]
    NotAPiece,
    /// Another release wrote it.
    #[error(
        "it has format version {0}, and this release reads {PIECE_VERSION}: use the release that wrote it"
    )]
    Version(u32),
    /// It is of another log.
    #[error("it is of the log {found}, and wanted is {expected}")]
    OtherLog {
        /// The log that it is of.
        found: LogId,
        /// The log that it should be of.
        expected: LogId,
    },
    /// It ends within an entry.
    #[error("it ends within the entry at byte {0}")]
    Truncated(usize),
    /// An entry can not be read.
    #[error("the entry at byte {byte} can not be read: {error}")]
    Record {
        /// Where it begins.
        byte: usize,
        /// What is wrong with it.
        error: RecordError,
    },
    /// A record is there that is no entry.
    #[error("what stands at byte {0} is no entry of a log")]
    NoEntry(usize),
    /// An entry does not follow the one before.
    #[error("entry {found} stands where {expected} should be")]
    Gap {
        /// The index that should have come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
}

/// Makes a piece.
#[derive(Debug)]
pub struct PieceWriter {
    bytes: Vec<u8>,
}

impl PieceWriter {
    /// A piece without entries.
    pub fn new(log_id: LogId) -> PieceWriter {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend_from_slice(&PIECE_VERSION.to_le_bytes());
        bytes.extend_from_slice(&log_id.0.to_le_bytes());
        PieceWriter { bytes }
    }

    /// Adds the next entry.
    pub fn add(&mut self, entry: &LogEntry) {
        let record = entry.encode();
        let length = u32::try_from(record.len()).expect("records have a limit far below 4 GiB");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&record);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The piece.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.bytes)
    }
}

/// The entries of a piece: indexes ascend without gaps.
///
/// # Errors
/// [`PieceError`].
pub fn entries_of(piece: &Bytes, expected: LogId) -> Result<Vec<LogEntry>, PieceError> {
    let header = piece.first_chunk::<HEADER_BYTES>().filter(|header| header.starts_with(MAGIC));
    let header = header.ok_or(PieceError::NotAPiece)?;
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version != PIECE_VERSION {
        return Err(PieceError::Version(version));
    }
    let mut log_id = [0; 16];
    log_id.copy_from_slice(&header[12..HEADER_BYTES]);
    let found = LogId(u128::from_le_bytes(log_id));
    if found != expected {
        return Err(PieceError::OtherLog { found, expected });
    }
    let (mut entries, mut at): (Vec<LogEntry>, usize) = (Vec::new(), HEADER_BYTES);
    while at < piece.len() {
        let rest = &piece[at..];
        let length = rest.first_chunk::<LENGTH_BYTES>().ok_or(PieceError::Truncated(at))?;
        let end = LENGTH_BYTES + u32::from_le_bytes(*length) as usize;
        let record = rest.get(LENGTH_BYTES..end).ok_or(PieceError::Truncated(at))?;
        let entry = LogEntry::of(record).map_err(|error| PieceError::Record { byte: at, error })?;
        let entry = entry.ok_or(PieceError::NoEntry(at))?;
        match entries.last() {
            Some(last) if entry.index != last.index + 1 => {
                return Err(PieceError::Gap { expected: last.index + 1, found: entry.index });
            }
            _ => entries.push(entry),
        }
        at += end;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use ordain_consensus::{EntryKind, LogRecord};

    use super::*;

    const LOG: LogId = LogId(7);

    fn entry(index: u64) -> LogEntry {
        LogEntry { index, term: 2, kind: EntryKind::Barrier, payload: Bytes::from(vec![3; index as usize]) }
    }

    fn piece(indexes: &[u64]) -> Bytes {
        let mut writer = PieceWriter::new(LOG);
        indexes.iter().for_each(|index| writer.add(&entry(*index)));
        writer.finish()
    }

    #[test]
    fn entries_come_back() {
        assert_eq!(entries_of(&piece(&[4, 5, 6]), LOG), Ok(vec![entry(4), entry(5), entry(6)]));
        assert_eq!(entries_of(&piece(&[]), LOG), Ok(Vec::new()));
    }

    #[test]
    fn the_bytes_are_pinned() {
        let hex: String = piece(&[2]).iter().map(|byte| format!("{byte:02x}")).collect();
        let header = "4f52444e50494543010000000700000000000000000000000000000000";
        // Length; version of the record, entry, index, term, barrier, two bytes of payload.
        assert_eq!(hex, format!("{}08000000040002020102{}", &header[..56], "0303"));
    }

    #[test]
    fn what_is_no_piece_is_refused() {
        let whole = piece(&[4, 5]);
        for bytes in 0..HEADER_BYTES {
            assert_eq!(entries_of(&whole.slice(..bytes), LOG), Err(PieceError::NotAPiece));
        }
        let second = HEADER_BYTES + LENGTH_BYTES + entry(4).encode().len();
        for bytes in second + 1..whole.len() {
            assert_eq!(entries_of(&whole.slice(..bytes), LOG), Err(PieceError::Truncated(second)));
        }
        let other = LogId(8);
        assert_eq!(entries_of(&whole, other), Err(PieceError::OtherLog { found: LOG, expected: other }));
        assert_eq!(entries_of(&piece(&[4, 6]), LOG), Err(PieceError::Gap { expected: 5, found: 6 }));
        let mut newer = whole.to_vec();
        newer[8] = 2;
        assert_eq!(entries_of(&Bytes::from(newer), LOG), Err(PieceError::Version(2)));
        let mut state = piece(&[]).to_vec();
        let record = LogRecord::State { term: 1, vote: None, commit: 1 }.encode();
        state.extend_from_slice(&(record.len() as u32).to_le_bytes());
        state.extend_from_slice(&record);
        assert_eq!(entries_of(&Bytes::from(state), LOG), Err(PieceError::NoEntry(HEADER_BYTES)));
    }
}
