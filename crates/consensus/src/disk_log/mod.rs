//! The durable log: numbered records in segment files, of which nothing is lost that was reported durable.
//!
//! The form of the files is drawn byte by byte in [docs/log-format.md](../../../../docs/log-format.md), with the reasons for
//! what recovery cuts and what it refuses.
//!
//! # Use
//!
//! [`append`](DiskLog::append) takes records of all that wait, [`sync`](DiskLog::sync) makes them durable by one `fdatasync`:
//! that is group commit (Calvin §3 has the sequencing layer log its input, in batches). What a record causes may leave the
//! node once [`durable`](DiskLog::durable) has reached its sequence number. A driver that syncs on its own, such as the
//! simulator, tells of it by [`mark_durable`](DiskLog::mark_durable).
//!
//! # Errors
//!
//! After an error of a write or a sync nothing is known about what is on the disk, and asking again would give a wrong answer:
//! see [files](crate::files). So the log stops: every further call that would change it gives the same error, and the node
//! must stop too. The only errors after which it goes on are those of [`append`](DiskLog::append) that say so: they come before
//! anything is written.
//!
//! # What was left out
//!
//! Recovery tells a torn tail from damage by what later records say, after Alagappan et al., "Protocol-Aware Recovery for
//! Consensus-Based Storage", FAST 2018. They go on to repair a damaged record from other replicas; here the node refuses to
//! start, and the operator replaces it.

mod error;
mod options;
mod read;
mod record;
mod recovery;
mod segment;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::files::{FileError, FileErrorKind, Files};

pub use error::{AppendError, Damage, Evidence, OpenError, ReadError};
pub use options::{LogOptions, Opening};
pub use record::RECORD_HEADER_BYTES;
pub use segment::{FORMAT_VERSION, RECORDS_AT, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

use segment::{Seal, SegmentHeader, name_of};

/// The sequence number of the first record of a log. Not 0, so that zeros are no record.
pub const SEQUENCE_BEGIN: u64 = 1;

/// The number of the first segment of a log.
const SEGMENT_BEGIN: u64 = 1;

/// At least this many bytes lie between two places of a segment that are known without reading it.
const INDEX_STRIDE_BYTES: u64 = 64 * 1024;

/// The most bytes that the buffer of records keeps between two calls.
const BUFFER_BYTES_KEPT_MAX: usize = 1 << 20;

/// What tells a log from all others: drawn at random, once, for each log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LogId(pub u128);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What was in a log when it was opened. All of it is durable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Sequence numbers and payloads, ascending without gaps. They share the memory of whole segments: copy what is kept long.
    pub records: Vec<(u64, Bytes)>,
    /// Bytes that a crash left of records that were not durable. They were cut.
    pub cut_bytes: u64,
    /// Whether the log was begun by this call.
    pub is_new: bool,
}

/// A part of a file each change of which [`DiskLog::open`] notices; see [`DiskLog::witnessed_parts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WitnessedPart {
    /// The file.
    pub name: String,
    /// The bytes.
    pub bytes: Range<u64>,
}

/// A segment file that is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    number: u64,
    /// Bytes of the file.
    bytes: u64,
    first_sequence: u64,
    /// Where the next record begins; `RECORDS_AT ≤ end ≤ bytes`.
    end: u64,
    /// Where some of the records begin: number and place, ascending. Has the first record, if there is one.
    index: Vec<(u64, u64)>,
}

impl Segment {
    fn of(header: &SegmentHeader) -> Segment {
        let SegmentHeader { number, bytes, first_sequence, .. } = *header;
        Segment { number, bytes, first_sequence, end: RECORDS_AT, index: Vec::new() }
    }

    fn name(&self) -> String {
        name_of(self.number)
    }

    /// Takes in a record of this length at the end.
    fn extend(&mut self, sequence: u64, record_bytes: u64) {
        if self.index.last().is_none_or(|(_, offset)| self.end - offset >= INDEX_STRIDE_BYTES) {
            self.index.push((sequence, self.end));
        }
        self.end += record_bytes;
    }
}

/// Records that tell the same of what was durable when they were appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Claim {
    durable: u64,
    first: u64,
    last: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct DiskLog<F> {
    files: F,
    options: LogOptions,
    /// By number, without gaps; never empty. Records are appended to the last one.
    segments: VecDeque<Segment>,
    /// The last record; `SEQUENCE_BEGIN - 1` before the first one.
    appended: u64,
    /// `durable ≤ appended`.
    durable: u64,
    /// All records through this one are called durable by something that is durable itself; `witnessed ≤ durable`.
    witnessed: u64,
    /// What the records after those that count in `witnessed` will be worth when they are durable; ascending.
    claims: VecDeque<Claim>,
    /// The checksum of the last record.
    chain: u32,
    /// Why the log has stopped.
    failed: Option<FileError>,
    /// The records that are being made; kept for its memory.
    buffer: Vec<u8>,
}

impl<F: Files> DiskLog<F> {
    /// Opens the log of a directory, or begins one: see [`Opening`]. Other files of the directory are left alone.
    ///
    /// What a crash left of records that were not durable is cut, and what is returned has been made durable, since it may
    /// only be in the memory of the operating system. A crash meanwhile does no harm.
    ///
    /// # Errors
    /// [`OpenError`] says what to do. Nothing of the log is changed unless the error is [`OpenError::Files`].
    pub fn open(files: F, options: LogOptions) -> Result<(DiskLog<F>, Recovered), OpenError> {
        let mut records = Vec::new();
        let visit = &mut |sequence, payload| records.push((sequence, payload));
        let (log, recovered) = DiskLog::open_with(files, options, visit)?;
        Ok((log, Recovered { records, ..recovered }))
    }

    /// Opens the log as [`open`](DiskLog::open) does, but hands out the records one by one, in order, so that only one segment
    /// is in memory: [`Recovered::records`] is empty.
    ///
    /// # Errors
    /// As those of [`open`](DiskLog::open). What was visited before must be forgotten then.
    pub fn open_with(
        mut files: F,
        options: LogOptions,
        visit: &mut impl FnMut(u64, Bytes),
    ) -> Result<(DiskLog<F>, Recovered), OpenError> {
        options.check().map_err(OpenError::Options)?;
        let recovery::Recovery { segments, next_sequence, witnessed, chain, recovered } =
            recovery::recover(&mut files, &options, visit)?;
        let appended = next_sequence - 1;
        let log = DiskLog {
            files,
            options,
            segments,
            appended,
            durable: appended,
            witnessed,
            claims: VecDeque::new(),
            chain,
            failed: None,
            buffer: Vec::new(),
        };
        Ok((log, recovered))
    }

    /// Appends records, in this order, and returns the sequence number of the last record of the log. They are durable after
    /// the next [`sync`](DiskLog::sync).
    ///
    /// When the segment has no room for the next record, all before it are made durable and another segment is begun.
    ///
    /// # Errors
    /// [`AppendError`]. After [`Failed`](AppendError::Failed) some of the records may be found when the log is opened again.
    pub fn append(&mut self, payloads: &[impl AsRef<[u8]>]) -> Result<u64, AppendError> {
        self.check_alive().map_err(AppendError::Failed)?;
        for payload in payloads {
            let (bytes, bytes_max) = (payload.as_ref().len() as u64, self.options.record_bytes_max);
            if bytes > bytes_max {
                return Err(AppendError::TooLong { bytes, bytes_max });
            }
        }
        let parts = self.parts(payloads);
        // All that can fail for want of space comes before anything is written.
        self.reserve(parts.len() as u64 - 1)?;
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                self.rotate().map_err(|error| AppendError::Failed(self.stop(error)))?;
            }
            self.write(&payloads[part]).map_err(|error| AppendError::Failed(self.stop(error)))?;
        }
        Ok(self.appended)
    }

    /// Makes all records durable, by one `fdatasync`, and returns the sequence number of the last one. Does nothing when they
    /// are durable already.
    ///
    /// # Errors
    /// The log has stopped: see the [module](self).
    pub fn sync(&mut self) -> Result<u64, FileError> {
        self.check_alive()?;
        if self.durable < self.appended {
            let name = self.active().name();
            self.files.sync(&name).map_err(|error| self.stop(error))?;
            self.mark_durable(self.appended);
        }
        Ok(self.durable)
    }

    /// The driver has synced the files itself: all records through this one, which were appended before that sync was begun,
    /// are durable.
    ///
    /// # Panics
    /// When there is no such record.
    pub fn mark_durable(&mut self, sequence: u64) {
        assert!(sequence <= self.appended, "only what was appended can be durable");
        self.durable = self.durable.max(sequence);
        while let Some(claim) = self.claims.front().copied().filter(|claim| claim.first <= self.durable) {
            self.witnessed = self.witnessed.max(claim.durable);
            if claim.last > self.durable {
                break;
            }
            self.claims.pop_front();
        }
    }

    /// The driver's own sync failed: the log stops.
    pub fn mark_failed(&mut self, error: FileError) {
        self.stop(error);
    }

    /// Removes the segments that have no record of this sequence number or a higher one, the oldest first; never the last
    /// one. Returns how many. Only what a safe checkpoint covers may be cut (CAL-103).
    ///
    /// # Errors
    /// The log has stopped: see the [module](self).
    pub fn truncate_below(&mut self, sequence: u64) -> Result<u64, FileError> {
        self.check_alive()?;
        let mut removed = 0;
        while self.segments.get(1).is_some_and(|next| next.first_sequence <= sequence) {
            let name = self.segments[0].name();
            // One at a time, each made durable: else a crash might keep an older segment and lose a newer one.
            let done = self.files.remove(&name).and_then(|()| self.files.sync_directory());
            done.map_err(|error| self.stop(error))?;
            self.segments.pop_front();
            removed += 1;
        }
        Ok(removed)
    }

    /// The sequence number of the last record; [`SEQUENCE_BEGIN`]` - 1` when there was none.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// All records through this sequence number are durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// The sequence number of the first record that is there, or of the next one when there is none.
    pub fn first_sequence(&self) -> u64 {
        self.segments[0].first_sequence
    }

    /// How many segments there are.
    pub fn segments(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Bytes of all segments, with what is reserved and not used yet.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Why the log has stopped, if it has.
    pub fn failure(&self) -> Option<&FileError> {
        self.failed.as_ref()
    }

    /// The files.
    pub fn files(&self) -> &F {
        &self.files
    }

    /// The files: to sync them, and for what else is in the directory. The log's own files must not be changed.
    pub fn files_mut(&mut self) -> &mut F {
        &mut self.files
    }

    /// The files, without the log.
    pub fn into_files(self) -> F {
        self.files
    }

    /// The parts of the files in which damage is certain to be noticed when the log is opened again: the records that
    /// something durable calls durable. (Of the last records that were synced nothing says so yet: a disk alone cannot tell
    /// their loss from a torn tail.) For those who damage disks on purpose.
    ///
    /// # Errors
    /// [`ReadError`], when the records cannot be read now.
    pub fn witnessed_parts(&self) -> Result<Vec<WitnessedPart>, ReadError> {
        let last = self.segments.len() - 1;
        let part = |(index, segment): (usize, &Segment)| {
            let end = if index < last { segment.end } else { self.end_of(self.witnessed)? };
            Ok(WitnessedPart { name: segment.name(), bytes: RECORDS_AT..end })
        };
        self.segments.iter().enumerate().map(part).collect()
    }

    fn active(&self) -> &Segment {
        self.segments
            .back()
            .expect("a log has a segment from its creation on, and the last one is never removed")
    }

    fn active_mut(&mut self) -> &mut Segment {
        self.segments
            .back_mut()
            .expect("a log has a segment from its creation on, and the last one is never removed")
    }

    fn check_alive(&self) -> Result<(), FileError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Remembers why the log has stopped. The first reason stays.
    fn stop(&mut self, error: FileError) -> FileError {
        self.failed.get_or_insert(error).clone()
    }

    /// How records are spread over segments: the first part is for the active one, each other for a new one.
    fn parts(&self, payloads: &[impl AsRef<[u8]>]) -> Vec<Range<usize>> {
        let (mut parts, mut begin) = (Vec::new(), 0);
        let mut free = self.active().bytes - self.active().end;
        for (index, payload) in payloads.iter().enumerate() {
            let bytes = record::record_bytes(payload.as_ref().len() as u64);
            if bytes > free {
                parts.push(begin..index);
                (begin, free) = (index, self.options.segment_bytes - RECORDS_AT);
            }
            free -= bytes;
        }
        parts.push(begin..payloads.len());
        parts
    }

    /// Makes the files of the next segments, all or none. They are no segments before they have a header.
    fn reserve(&mut self, segments: u64) -> Result<(), AppendError> {
        let bytes = self.bytes();
        let bytes_max = self.options.log_bytes_max;
        if segments > 0
            && bytes.saturating_add(segments.saturating_mul(self.options.segment_bytes)) > bytes_max
        {
            return Err(AppendError::LimitReached { bytes, bytes_max });
        }
        let first = self.active().number + 1;
        for number in first..first + segments {
            let Err(error) = self.files.create(&name_of(number), self.options.segment_bytes) else {
                continue;
            };
            if error.kind != FileErrorKind::Full {
                return Err(AppendError::Failed(self.stop(error)));
            }
            for number in first..number {
                self.files.remove(&name_of(number)).map_err(|error| AppendError::Failed(self.stop(error)))?;
            }
            return Err(AppendError::Full(error));
        }
        Ok(())
    }

    /// Closes the active segment and begins the next one, whose file has been made.
    ///
    /// The order is what recovery relies on: all records of a segment are durable before the next one has a header, header and
    /// name of the next one are durable before it has a record, and before the segment is sealed.
    fn rotate(&mut self) -> Result<(), FileError> {
        self.sync()?;
        let closed = self.active().clone();
        let header = SegmentHeader {
            log_id: self.options.log_id,
            number: closed.number + 1,
            bytes: self.options.segment_bytes,
            first_sequence: self.appended + 1,
            chain: self.chain,
        };
        begin_segment(&mut self.files, &header)?;
        seal_segment(&mut self.files, closed.number, &header)?;
        self.segments.push_back(Segment::of(&header));
        self.witnessed = self.appended;
        self.claims.clear();
        Ok(())
    }

    /// Writes records to the active segment, which has room for them, by one write.
    fn write(&mut self, payloads: &[impl AsRef<[u8]>]) -> Result<(), FileError> {
        if payloads.is_empty() {
            return Ok(());
        }
        let (number, begin) = (self.active().number, self.active().end);
        let seed = record::seed(self.options.log_id, number);
        let (mut sequence, mut chain, durable) = (self.appended, self.chain, self.durable);
        self.buffer.clear();
        for payload in payloads {
            sequence += 1;
            chain = record::encode(&mut self.buffer, payload.as_ref(), chain, sequence, durable, seed);
        }
        self.files.write(&name_of(number), begin, &self.buffer)?;
        let first = self.appended + 1;
        for (sequence, payload) in (first..).zip(payloads) {
            self.active_mut().extend(sequence, record::record_bytes(payload.as_ref().len() as u64));
        }
        (self.appended, self.chain) = (sequence, chain);
        match self.claims.back_mut().filter(|claim| claim.durable == durable) {
            Some(claim) => claim.last = sequence,
            None => self.claims.push_back(Claim { durable, first, last: sequence }),
        }
        // A batch of unusual size does not keep its memory.
        if self.buffer.capacity() > BUFFER_BYTES_KEPT_MAX {
            self.buffer = Vec::new();
        }
        Ok(())
    }
}

/// Writes the header of a segment whose file has been made, and makes all of it durable.
fn begin_segment(files: &mut impl Files, header: &SegmentHeader) -> Result<(), FileError> {
    let name = name_of(header.number);
    files.write(&name, 0, &header.encode())?;
    files.sync(&name)?;
    files.sync_directory()
}

/// Says in a segment that the next one is durable. So it is noticed when that one is gone.
fn seal_segment(files: &mut impl Files, segment: u64, next: &SegmentHeader) -> Result<(), FileError> {
    let name = name_of(segment);
    let seal = Seal { last_sequence: next.first_sequence - 1, chain: next.chain };
    files.write(&name, segment::SEAL_AT, &seal.encode(next.log_id, segment))?;
    files.sync(&name)
}
