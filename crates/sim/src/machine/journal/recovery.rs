//! What recovery makes of the bytes of a journal: its records, or the place where it is damaged.

use std::fmt;

use ordain_db::node::Event;

use super::record::{self, CHAIN_BEGIN, HEADER_BYTES, Header, SEQUENCE_BEGIN};

/// A step that was journaled.
#[derive(Clone, Debug)]
pub struct Record {
    /// The local time that the step was given, in microseconds.
    pub now_microseconds: u64,
    /// What had happened.
    pub events: Vec<Event>,
    /// The offset of the record's end in bytes.
    pub end: u64,
}

/// What a journal holds.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The steps, in order.
    pub records: Vec<Record>,
    /// Bytes from the beginning that are records.
    pub valid_bytes: u64,
    /// Bytes after them that a crash left of records which were not durable. They are to be cut.
    pub torn_bytes: u64,
    chain: u32,
}

impl Default for Recovered {
    /// An empty journal.
    fn default() -> Recovered {
        Recovered { records: Vec::new(), valid_bytes: 0, torn_bytes: 0, chain: CHAIN_BEGIN }
    }
}

impl Recovered {
    /// The sequence number and the chain of the next record.
    pub(super) fn next(&self) -> (u64, u32) {
        (SEQUENCE_BEGIN + self.records.len() as u64, self.chain)
    }

    /// The header of the record that follows, if there is one as it was written.
    fn following(&self, rest: &[u8]) -> Option<Header> {
        let (sequence, chain) = self.next();
        let header =
            Header::of(rest).filter(|header| (header.sequence, header.chain) == (sequence, chain))?;
        header.vouches_for(rest).then_some(header)
    }
}

/// A journal that must not be used: something that was durable is no longer there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The offset in bytes of the record that is damaged.
    pub offset: u64,
    /// Its sequence number.
    pub sequence: u64,
    /// How that is known.
    pub kind: DamageKind,
}

/// How it is known that a journal is damaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DamageKind {
    /// A later record tells that the damaged one was durable.
    WasDurable {
        /// The offset of the later record.
        told_at: u64,
        /// How many bytes it says were durable.
        durable: u64,
    },
    /// The record is as it was written, but it is no step.
    NotAStep(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { offset, sequence, kind } = self;
        match kind {
            DamageKind::WasDurable { told_at, durable } => write!(
                f,
                "the journal is damaged in record {sequence}, at byte {offset}: the record at byte {told_at} tells that \
                 {durable} bytes were durable. Others may rely on what is lost: do not cut the journal, do not start the \
                 machine from it, and put back a copy of its disk"
            ),
            DamageKind::NotAStep(error) => write!(
                f,
                "record {sequence} of the journal, at byte {offset}, cannot be read although its checksum is right \
                 ({error}): start the machine with the version that wrote it"
            ),
        }
    }
}

impl std::error::Error for Damage {}

/// Reads a journal: all records up to the first place where none follows.
///
/// What lies there is a torn tail if it was not durable when the machine crashed, and damage if it was. Checksums cannot
/// tell which: a crash may lose a sector and keep the next one, with whole records in it, and a durable sector may go bad.
/// But each record tells what was durable when it was appended. So all bytes that are left are searched for a record that
/// calls the missing one durable; if there is one, that is [`Damage`], and else the tail is cut. (The problem, and that
/// it needs something written after the record, are from Alagappan et al., "Protocol-Aware Recovery for Consensus-Based
/// Storage", FAST 2018.)
///
/// What nobody told of is taken for a torn tail: damage to the records of the last sync, and a file that was cut by other
/// hands. A single disk holds nothing from which it could be seen.
///
/// # Errors
/// [`Damage`], with its place. Never is a part in the middle left out.
pub fn recover(bytes: &[u8]) -> Result<Recovered, Damage> {
    let mut recovered = Recovered::default();
    let mut rest = bytes;
    while let Some(header) = recovered.following(rest) {
        let (record, after) = rest.split_at(header.record_bytes());
        let offset = recovered.valid_bytes;
        let (now_microseconds, events) = record::decode(&record[HEADER_BYTES..]).map_err(|error| Damage {
            offset,
            sequence: header.sequence,
            kind: DamageKind::NotAStep(error),
        })?;
        recovered.valid_bytes += record.len() as u64;
        recovered.chain = header.checksum;
        recovered.records.push(Record { now_microseconds, events, end: recovered.valid_bytes });
        rest = after;
    }
    let offset = recovered.valid_bytes;
    let (sequence, _) = recovered.next();
    if let Some((distance, durable)) = witness(rest, offset, sequence) {
        let kind = DamageKind::WasDurable { told_at: offset + distance, durable };
        return Err(Damage { offset, sequence, kind });
    }
    recovered.torn_bytes = rest.len() as u64;
    Ok(recovered)
}

/// Searches what follows the last valid record for a record, wherever it begins, that tells that more than `offset` bytes
/// were durable. Returns its distance and what it tells. `sequence` is the number of the record that is missing.
fn witness(rest: &[u8], offset: u64, sequence: u64) -> Option<(u64, u64)> {
    // No later record can have a higher number. With the other conditions this leaves so few places that the checksum,
    // which costs the length of a record, is hardly ever computed in vain.
    let sequence_max = sequence.saturating_add((rest.len() / HEADER_BYTES) as u64);
    let end = offset + rest.len() as u64;
    (0..rest.len()).find_map(|distance| {
        let candidate = &rest[distance..];
        let header = Header::of(candidate)?;
        let plausible = (sequence + 1..=sequence_max).contains(&header.sequence)
            && (offset + 1..=end).contains(&header.durable);
        (plausible && header.vouches_for(candidate)).then_some((distance as u64, header.durable))
    })
}
