//! How a log is made and opened.

use super::segment::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, payload_bytes_max};
use super::{LogId, record};

/// What to do when there is no log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Begin one. Only for a node that has promised nothing to anybody yet.
    CreateIfMissing,
    /// Refuse: the node has had a log, and what was in it is lost.
    MustExist,
}

/// How a log is made and opened. Sizes may differ from those with which its segments were made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// The log that is to be opened.
    pub log_id: LogId,
    /// What to do when there is none.
    pub opening: Opening,
    /// Bytes of each new segment: [`SEGMENT_BYTES_MIN`] to [`SEGMENT_BYTES_MAX`].
    pub segment_bytes: u64,
    /// The longest payload of a record. At most what a segment can hold.
    pub record_bytes_max: u64,
    /// The most bytes of all segments together, at least two segments.
    pub log_bytes_max: u64,
}

impl LogOptions {
    /// Segments of 64 MiB, records up to 32 MiB, 64 GiB in all.
    pub fn new(log_id: LogId, opening: Opening) -> LogOptions {
        LogOptions {
            log_id,
            opening,
            segment_bytes: 64 << 20,
            record_bytes_max: 32 << 20,
            log_bytes_max: 64 << 30,
        }
    }

    /// What is wrong with the options.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            return Err(format!(
                "segments have {} bytes; set {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}",
                self.segment_bytes
            ));
        }
        let payload_bytes_max = payload_bytes_max(self.segment_bytes).min(record::PAYLOAD_BYTES_MAX);
        if self.record_bytes_max > payload_bytes_max {
            return Err(format!(
                "records may have {} bytes, and a segment of {} bytes can hold {payload_bytes_max}: allow shorter records or \
                 set longer segments",
                self.record_bytes_max, self.segment_bytes
            ));
        }
        if self.log_bytes_max < 2 * self.segment_bytes {
            return Err(format!(
                "the log may have {} bytes; allow two segments of {} bytes at least, since the last one is never removed",
                self.log_bytes_max, self.segment_bytes
            ));
        }
        Ok(())
    }
}
