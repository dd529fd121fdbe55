//! What is made of the files when a log is opened: all its records, or the reason why it must not be used.
//!
//! First everything is looked at, and only when nothing is wrong the traces of a crash are removed.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::files::{FileError, Files};

use super::record::{ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, seed};
use super::segment::{Preamble, RECORDS_AT, SEAL_AT, SEAL_BYTES, Seal, SegmentHeader, name_of, number_of};
use super::{
    Damage, Evidence, LogId, LogOptions, OpenError, Opening, Recovered, SEGMENT_BEGIN, SEQUENCE_BEGIN,
    Segment, begin_segment, seal_segment,
};

/// Bytes that are read or written at a time where the contents do not matter.
const CHUNK_BYTES: u64 = 1 << 20;

/// A log that can be used.
pub(super) struct Recovery {
    pub(super) segments: VecDeque<Segment>,
    pub(super) next_sequence: u64,
    /// All records through this one are called durable by something that is durable.
    pub(super) witnessed: u64,
    /// The checksum of the last record.
    pub(super) chain: u32,
    pub(super) recovered: Recovered,
}

/// A file that has the name of a segment.
struct Candidate {
    number: u64,
    name: String,
    length: u64,
    /// `None` when there is no right header.
    header: Option<SegmentHeader>,
    is_sealed: bool,
}

impl Candidate {
    fn damaged(&self, offset: u64, evidence: Evidence) -> OpenError {
        Damage { name: self.name.clone(), offset, evidence }.into()
    }
}

/// The records of a segment.
struct Scan {
    segment: Segment,
    bytes: Bytes,
    records: Vec<(u64, Bytes)>,
    next_sequence: u64,
    chain: u32,
    /// What the records call durable.
    witnessed: u64,
}

impl Scan {
    /// The next record, if there is one as it was written.
    fn following(&self, seed: u32) -> Option<(RecordHeader, Bytes)> {
        let at = self.segment.end as usize;
        let rest = self.bytes.get(at..)?;
        let header = RecordHeader::of(rest, seed)
            .filter(|found| (found.sequence, found.chain) == (self.next_sequence, self.chain))?;
        let payload = header.payload_in(rest, seed)?;
        Some((header, self.bytes.slice(at + payload.start..at + payload.end)))
    }
}

/// Opens the log, or begins one. Records are visited before those after them are looked at.
pub(super) fn recover(
    files: &mut impl Files,
    options: &LogOptions,
    visit: &mut impl FnMut(u64, Bytes),
) -> Result<Recovery, OpenError> {
    let mut candidates = candidates(files, options.log_id)?;
    let begun = begun(files, &candidates, options.opening)?;
    let unfinished = candidates.split_off(begun);
    check_unfinished(files, candidates.last(), &unfinished)?;
    let headers = headers(&candidates)?;
    let Some((last, last_header)) = candidates.last().zip(headers.last()) else {
        return create(files, options, &unfinished);
    };
    let (mut segments, mut recovered) = (VecDeque::new(), Recovered::default());
    for ((candidate, header), next) in candidates.iter().zip(&headers).zip(&headers[1..]) {
        let scan = scan(files, candidate, header, Some(next))?;
        scan.records.into_iter().for_each(|(sequence, payload)| visit(sequence, payload));
        segments.push_back(scan.segment);
    }
    let scan = scan(files, last, last_header, None)?;
    recovered.cut_bytes = torn_bytes(last, last_header, &scan)?;
    repair(files, last_header, &scan, recovered.cut_bytes)?;
    remove(files, &unfinished)?;
    if let Some((closed, _)) =
        candidates.iter().zip(&headers).rev().nth(1).filter(|(closed, _)| !closed.is_sealed)
    {
        // The seal was there when the last segment got its first record. It was damaged since, alone.
        seal_segment(files, closed.number, last_header)?;
    }
    let Scan { segment, records, next_sequence, chain, witnessed, .. } = scan;
    records.into_iter().for_each(|(sequence, payload)| visit(sequence, payload));
    segments.push_back(segment);
    Ok(Recovery { segments, next_sequence, witnessed, chain, recovered })
}

/// How many of the files are segments: those up to the last one that has a header and was begun for certain.
///
/// The last segment was begun if there is anything in it, or if the one before it is sealed, or, for the first one, if the log
/// is known to have been open. Else its making was interrupted: it may not be durable, and is removed.
fn begun(files: &impl Files, candidates: &[Candidate], opening: Opening) -> Result<usize, OpenError> {
    let Some(last) = candidates.iter().rposition(|candidate| candidate.header.is_some()) else {
        return Ok(0);
    };
    let was_begun = match last.checked_sub(1) {
        Some(before) => candidates[before].is_sealed,
        None => opening == Opening::MustExist || candidates[last].number != SEGMENT_BEGIN,
    };
    let Candidate { name, length, .. } = &candidates[last];
    if was_begun || !is_blank(files, name, *length)? {
        return Ok(last + 1);
    }
    Ok(last)
}

/// The files that have names of segments, in ascending order, with their headers.
fn candidates(files: &impl Files, log_id: LogId) -> Result<Vec<Candidate>, OpenError> {
    let mut candidates = Vec::new();
    for entry in files.list()? {
        let Some(number) = number_of(&entry.name) else { continue };
        let begin = files.read(&entry.name, 0, SEAL_AT + SEAL_BYTES as u64)?;
        let header = match SegmentHeader::of(&begin) {
            Preamble::None => None,
            Preamble::OtherVersion(found) => {
                return Err(OpenError::OtherVersion { name: entry.name, found });
            }
            Preamble::Header(header) if header.log_id != log_id => {
                let (found, expected) = (header.log_id, log_id);
                return Err(OpenError::ForeignSegment { name: entry.name, found, expected });
            }
            Preamble::Header(header) if header.number != number => {
                // A new file may hold what a removed one held at the same place, until it is synced.
                if !is_blank(files, &entry.name, entry.length)? {
                    return Err(OpenError::Misnamed { name: entry.name, found: header.number });
                }
                None
            }
            Preamble::Header(header) => Some(header),
        };
        let is_sealed = Seal::of(&begin, log_id, number).is_some();
        candidates.push(Candidate { number, name: entry.name, length: entry.length, header, is_sealed });
    }
    Ok(candidates)
}

/// Whether a file has nothing but, perhaps, a header.
fn is_blank(files: &impl Files, name: &str, length: u64) -> Result<bool, FileError> {
    let mut at = SEAL_AT;
    while at < length {
        let bytes = files.read(name, at, CHUNK_BYTES.min(length - at))?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += CHUNK_BYTES;
    }
    Ok(true)
}

/// The files behind the last segment must be such as a crash leaves that were made and not begun: nothing was written to them
/// but headers that were not durable. Any other has lost a header that was.
fn check_unfinished(
    files: &impl Files,
    last: Option<&Candidate>,
    unfinished: &[Candidate],
) -> Result<(), OpenError> {
    for candidate in unfinished {
        let follows_sealed = last.is_some_and(|last| last.is_sealed && last.number + 1 == candidate.number);
        // Without any header there can only be the first segment, whose making was interrupted.
        let is_first = candidate.number == SEGMENT_BEGIN && unfinished.len() == 1;
        let was_begun = follows_sealed || (last.is_none() && !is_first);
        if was_begun || !is_blank(files, &candidate.name, candidate.length)? {
            return Err(candidate.damaged(0, Evidence::Header));
        }
    }
    match last {
        Some(last) if last.is_sealed => Err(OpenError::MissingSegment { name: name_of(last.number + 1) }),
        _ => Ok(()),
    }
}

/// The headers of all segments, none of which may be missing.
fn headers(candidates: &[Candidate]) -> Result<Vec<SegmentHeader>, OpenError> {
    let first = candidates.first().map_or(0, |candidate| candidate.number);
    let mut headers = Vec::new();
    for (number, candidate) in (first..).zip(candidates) {
        if candidate.number != number {
            return Err(OpenError::MissingSegment { name: name_of(number) });
        }
        headers.push(candidate.header.ok_or_else(|| candidate.damaged(0, Evidence::Header))?);
    }
    Ok(headers)
}

/// Begins a log where there is none.
fn create(
    files: &mut impl Files,
    options: &LogOptions,
    unfinished: &[Candidate],
) -> Result<Recovery, OpenError> {
    if options.opening == Opening::MustExist {
        return Err(OpenError::Missing);
    }
    remove(files, unfinished)?;
    let header = SegmentHeader {
        log_id: options.log_id,
        number: SEGMENT_BEGIN,
        bytes: options.segment_bytes,
        first_sequence: SEQUENCE_BEGIN,
        chain: seed(options.log_id, SEGMENT_BEGIN - 1),
    };
    files.create(&name_of(SEGMENT_BEGIN), options.segment_bytes)?;
    begin_segment(files, &header)?;
    Ok(Recovery {
        segments: VecDeque::from([Segment::of(&header)]),
        next_sequence: SEQUENCE_BEGIN,
        witnessed: SEQUENCE_BEGIN - 1,
        chain: header.chain,
        recovered: Recovered { is_new: true, ..Recovered::default() },
    })
}

/// Removes files. One that comes back after a crash is found again, and removed again.
fn remove(files: &mut impl Files, unfinished: &[Candidate]) -> Result<(), FileError> {
    for candidate in unfinished {
        files.remove(&candidate.name)?;
    }
    files.sync_directory()
}

/// Reads the records of a segment, up to those of the next one, or else to the first place where none follows.
fn scan(
    files: &impl Files,
    candidate: &Candidate,
    header: &SegmentHeader,
    next: Option<&SegmentHeader>,
) -> Result<Scan, OpenError> {
    let bytes = Bytes::from(files.read(&candidate.name, 0, header.bytes)?);
    let seed = seed(header.log_id, header.number);
    let mut scan = Scan {
        segment: Segment::of(header),
        bytes: bytes.clone(),
        records: Vec::new(),
        next_sequence: header.first_sequence,
        chain: header.chain,
        witnessed: header.first_sequence - 1,
    };
    while let Some((found, payload)) = scan.following(seed) {
        if next.is_some_and(|next| scan.next_sequence == next.first_sequence) {
            // The next segment has a header of another life: it would hide what follows here.
            let name = name_of(header.number + 1);
            return Err(Damage { name, offset: 0, evidence: Evidence::Header }.into());
        }
        scan.records.push((found.sequence, payload));
        scan.segment.extend(found.sequence, found.record_bytes());
        scan.witnessed = scan.witnessed.max(found.durable);
        scan.chain = found.checksum;
        scan.next_sequence += 1;
    }
    match next {
        Some(next) if (scan.next_sequence, scan.chain) != (next.first_sequence, next.chain) => {
            let last = next.first_sequence - 1;
            let evidence = Evidence::NextSegment { sequence: scan.next_sequence, last };
            Err(candidate.damaged(scan.segment.end, evidence))
        }
        _ => Ok(scan),
    }
}

/// How many bytes after the last record of the last segment are to be cut: up to the last one that is not zero.
///
/// What lies there is a torn tail if it was not durable when the machine crashed, and damage if it was. Checksums cannot tell
/// which: a crash may lose a sector and keep the next one, with whole records in it, and a durable sector may go bad. But each
/// record tells what was durable when it was appended. So all that is left is searched for the header of a record that calls
/// the missing one durable.
fn torn_bytes(candidate: &Candidate, header: &SegmentHeader, scan: &Scan) -> Result<u64, OpenError> {
    // The length was durable before the segment was begun.
    if candidate.length < header.bytes {
        let evidence = Evidence::Cut { length: candidate.length, bytes: header.bytes };
        return Err(candidate.damaged(candidate.length, evidence));
    }
    let begin = scan.segment.end;
    let rest = scan.bytes.get(begin as usize..).unwrap_or_default();
    let torn = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let seed = seed(header.log_id, header.number);
    let sequence = scan.next_sequence;
    for distance in (0..torn).step_by(ALIGNMENT as usize) {
        let later = RecordHeader::of(&rest[distance as usize..], seed)
            .filter(|later| later.sequence > sequence && later.durable >= sequence);
        if let Some(RecordHeader { durable, .. }) = later {
            let told_at = begin + distance;
            return Err(candidate.damaged(begin, Evidence::LaterRecord { sequence, told_at, durable }));
        }
    }
    Ok(torn)
}

/// Removes the traces of a crash from the last segment, and makes the log durable as it is. May be interrupted and repeated:
/// nothing that is returned as a record is changed, and nothing that is not becomes one.
///
/// What no record calls durable is written once more. It was read, but perhaps from the memory of the operating system, which
/// may have failed to write it and will not try again by itself: see [files](crate::files).
fn repair(
    files: &mut impl Files,
    header: &SegmentHeader,
    scan: &Scan,
    torn_bytes: u64,
) -> Result<(), FileError> {
    let name = name_of(header.number);
    let end = scan.segment.end;
    let from = first_unwitnessed(scan, seed(header.log_id, header.number));
    if from < end {
        files.write(&name, from, &scan.bytes[from as usize..end as usize])?;
    }
    let zeros = vec![0; CHUNK_BYTES.min(torn_bytes) as usize];
    let mut at = end;
    while at < end + torn_bytes {
        let length = CHUNK_BYTES.min(end + torn_bytes - at);
        files.write(&name, at, &zeros[..length as usize])?;
        at += length;
    }
    files.sync(&name)
}

/// Where the first record begins that no other one calls durable.
fn first_unwitnessed(scan: &Scan, seed: u32) -> u64 {
    let mut at = RECORDS_AT;
    while at < scan.segment.end {
        let rest = &scan.bytes[at as usize..];
        let Some(header) = RecordHeader::of(rest, seed).filter(|header| header.sequence <= scan.witnessed)
        else {
            break;
        };
        at += header.record_bytes();
    }
    at
}

const _: () = assert!(RECORDS_AT.is_multiple_of(ALIGNMENT) && RECORD_HEADER_BYTES.is_multiple_of(ALIGNMENT));
