//! Read results on their way between participants (Calvin §3.2, phases 3 and 4).
//!
//! A message carries the results of many transactions:
//!
//! ```text
//! message  := { position: epoch u64, origin u16, index u32; length u32; results }*
//! results  := 00 { key result }* { range result }*   |   01 (too large: the transaction fails alike everywhere)
//! key      := 00 (no row)   |   01 length u32, row
//! range    := count u32 { key length u16, key, row length u32, row }*
//! ```
//!
//! Keys and ranges are those of the footprint's read set that the sender holds, in the footprint's order, which the receiver
//! knows too. Numbers are little endian.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use super::captured::Captured;
use super::{Call, Context, Participation};
use crate::data::{Direction, KeyRange, Owner};
use crate::error::Fatal;
use crate::failpoint::{Failpoint, Failpoints};
use crate::hash::FastMap;
use crate::limits::{LOGGED_READS_BYTES_MAX, READ_RESULTS_BYTES_MAX};
use crate::position::{Epoch, PartitionId, PartitionSet, Position};
use crate::procedure::Footprint;
use crate::procedure::footprint::KeyEntry;
use crate::storage::{Storage, Visit};

const COMPLETE: u8 = 0;
const TOO_LARGE: u8 = 1;
const HEADER_BYTES: usize = 18;

/// Phases 2 and 3: sends the local part of a call's read set to the other active participants.
///
/// Returns what an active participant must put with its [`Received`] itself: when its own part was too large to send, the
/// transaction fails here as it does where the part was awaited.
#[must_use]
pub fn serve<F: Failpoints>(call: &Call, participation: Participation, context: &mut Context<'_>) -> Served {
    push::<F>(call, Selection::All, None, participation.send_reads_to, context)
}

/// Whether local reads could be sent to those that wait for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// All, or nobody waits for them.
    Complete,
    /// They are larger than [`READ_RESULTS_BYTES_MAX`]: every active participant fails the transaction.
    TooLarge,
}

/// This partition's read results for one transaction alone, without the header of a message: for [`Received::of_parts`]. Logs have them.
pub fn read_local<F: Failpoints>(footprint: &Footprint, me: PartitionId, storage: &mut dyn Storage) -> Bytes {
    let mut message = Vec::new();
    // Where they are too large, that is what they say.
    let (rows, most) = (&mut Newest(storage), LOGGED_READS_BYTES_MAX);
    let _ = encode::<F>((Position::LOADED, footprint, me), Selection::All, rows, most, &mut message);
    Bytes::from(message).slice(HEADER_BYTES..)
}

/// Whether what [`read_local`] gives says that the reads are too large.
pub fn is_too_large(results: &[u8]) -> bool {
    results.first() == Some(&TOO_LARGE)
}

/// Where the rows that are sent come from.
trait Rows {
    /// The row of the key of an entry.
    fn row(&self, place: usize, key: &[u8], hash: u64) -> Option<&[u8]>;

    /// Visits the rows of a range entry in order.
    fn visit(&mut self, place: usize, range: &KeyRange, visit: &mut Visit<'_>);
}

/// The newest rows.
struct Newest<'a>(&'a mut dyn Storage);

impl Rows for Newest<'_> {
    fn row(&self, _: usize, key: &[u8], hash: u64) -> Option<&[u8]> {
        self.0.locate(key, hash).map(|record| self.0.row(record))
    }

    fn visit(&mut self, _: usize, range: &KeyRange, visit: &mut Visit<'_>) {
        self.0.scan(range, Direction::Ascending, Position::LATEST, visit);
    }
}

impl Rows for &Captured {
    fn row(&self, place: usize, _: &[u8], _: u64) -> Option<&[u8]> {
        Captured::row(self, place)
    }

    fn visit(&mut self, place: usize, _: &KeyRange, visit: &mut Visit<'_>) {
        // The break is the visitor's: it has then seen enough.
        let _ = self.range(place).try_for_each(|(key, row)| visit(key, row));
    }
}

/// Which of a footprint's reads are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All of them: to who runs the logic.
    All,
    /// Those that the [guard](crate::procedure::Procedure::guard) reads: to who only applies functors.
    Guards,
}

impl Selection {
    fn has(self, entry: &KeyEntry) -> bool {
        entry.access.read && (self == Selection::All || entry.guards)
    }

    fn has_ranges(self) -> bool {
        self == Selection::All
    }
}

/// Sends this partition's reads for a call to others: those that were captured, or the newest rows.
pub(crate) fn push<F: Failpoints>(
    call: &Call,
    selection: Selection,
    captured: Option<&Captured>,
    to: PartitionSet,
    context: &mut Context<'_>,
) -> Served {
    let mut served = Served::Complete;
    let position = call.position;
    let (of, most) = ((position, &*call.footprint, context.me), READ_RESULTS_BYTES_MAX);
    for partition in to.iter() {
        if F::on(Failpoint::DropRemoteReads) && position.index % 8 == 7 {
            continue;
        }
        let message = context.effects.reads_of(partition, position.epoch);
        served = match captured {
            Some(captured) => encode::<F>(of, selection, &mut &*captured, most, message),
            None => encode::<F>(of, selection, &mut Newest(&mut *context.storage), most, message),
        };
    }
    served
}

/// Appends a partition's read results for one transaction to a message, `most` bytes at most.
fn encode<F: Failpoints>(
    (position, footprint, me): (Position, &Footprint, PartitionId),
    selection: Selection,
    rows: &mut impl Rows,
    most: usize,
    out: &mut Vec<u8>,
) -> Served {
    out.extend_from_slice(&position.epoch.0.to_le_bytes());
    out.extend_from_slice(&position.origin.0.to_le_bytes());
    out.extend_from_slice(&position.index.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    let start = out.len();
    out.push(COMPLETE);
    encode_keys::<F>(footprint, me, selection, rows, out, start + most);
    if selection.has_ranges() {
        encode_ranges(footprint, me, rows, out, start + most);
    }
    let too_large = out.len() > start + most;
    if too_large {
        out.truncate(start);
        out.push(TOO_LARGE);
    }
    let length = (out.len() - start) as u32;
    out[length_at..start].copy_from_slice(&length.to_le_bytes());
    if too_large { Served::TooLarge } else { Served::Complete }
}

fn encode_keys<F: Failpoints>(
    footprint: &Footprint,
    me: PartitionId,
    selection: Selection,
    rows: &impl Rows,
    out: &mut Vec<u8>,
    end: usize,
) {
    for (place, entry) in footprint.keys().iter().enumerate() {
        if out.len() > end {
            return;
        }
        if !selection.has(entry) || entry.owner != Owner::Partition(me) {
            continue;
        }
        match rows.row(place, footprint.key(entry), entry.hash) {
            None => out.push(0),
            Some(_) if F::on(Failpoint::DropRemoteRow) && entry.hash % 8 == 7 => out.push(0),
            Some(row) => {
                out.push(1);
                out.extend_from_slice(&(row.len() as u32).to_le_bytes());
                out.extend_from_slice(row);
            }
        }
    }
}

fn encode_ranges(
    footprint: &Footprint,
    me: PartitionId,
    rows: &mut impl Rows,
    out: &mut Vec<u8>,
    end: usize,
) {
    for (place, entry) in footprint.ranges().iter().enumerate() {
        if !entry.access.read || !serves_range(entry.owner, me) {
            continue;
        }
        let count_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut count = 0_u32;
        rows.visit(place, &entry.range, &mut |key, row| {
            count += 1;
            out.extend_from_slice(&(key.len() as u16).to_le_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(&(row.len() as u32).to_le_bytes());
            out.extend_from_slice(row);
            if out.len() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    }
}

fn serves_range(owner: Owner, sender: PartitionId) -> bool {
    owner == Owner::Partition(sender) || owner == Owner::Split
}

/// What begins at a place in a message: the transaction, and where its results are. `None` if the message is malformed.
pub fn result_at(message: &[u8], at: usize) -> Option<(Position, Range<usize>)> {
    let (epoch, rest) = message.get(at..)?.split_first_chunk()?;
    let (origin, rest) = rest.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let position = Position {
        epoch: Epoch(u64::from_le_bytes(*epoch)),
        origin: PartitionId(u16::from_le_bytes(*origin)),
        index: u32::from_le_bytes(*index),
    };
    let length = u32::from_le_bytes(*length) as usize;
    let start = at + HEADER_BYTES;
    (length <= rest.len()).then(|| (position, start..start + length))
}

/// Cuts a message between two transactions, near its middle; `None` if it has the results of a single one.
///
/// To receive both parts is the same as to receive the whole.
pub fn halves(message: &Bytes) -> Option<(Bytes, Bytes)> {
    let (mut at, mut cut) = (0, 0);
    while at < message.len() {
        if cut == 0 || at <= message.len() / 2 {
            cut = at;
        }
        at = result_at(message, at)?.1.end;
    }
    (cut > 0).then(|| (message.slice(..cut), message.slice(cut..)))
}

/// Read results that have come, by transaction. They may come before the transaction itself (trap 3).
#[derive(Debug, Default)]
pub struct Inbox {
    received: FastMap<Position, Received>,
}

/// What has come for one transaction.
#[derive(Debug, Default)]
pub struct Received {
    from: PartitionSet,
    results: Vec<(PartitionId, Bytes)>,
}

impl Inbox {
    /// Takes in a message and names the transactions that it has results for.
    ///
    /// # Errors
    /// When the message is malformed.
    pub fn receive(
        &mut self,
        from: PartitionId,
        message: &Bytes,
        touched: &mut Vec<Position>,
    ) -> Result<(), Fatal> {
        let mut at = 0;
        while at < message.len() {
            let (position, result) = result_at(message, at).ok_or(Fatal::MalformedReads(from))?;
            at = result.end;
            let received = self.received.entry(position).or_default();
            if !received.from.contains(from) {
                received.from.insert(from);
                received.results.push((from, message.slice(result)));
                touched.push(position);
            }
        }
        Ok(())
    }

    /// Notes how a participant's own reads were served.
    pub fn note(&mut self, me: PartitionId, position: Position, served: Served) {
        if served == Served::TooLarge {
            self.received.entry(position).or_default().note(me, served);
        }
    }

    /// Whether the results of all of `awaited` have come.
    pub fn is_complete(&self, position: Position, awaited: PartitionSet) -> bool {
        if awaited.is_empty() {
            return true;
        }
        let Some(received) = self.received.get(&position) else { return false };
        awaited.iter().all(|partition| received.from.contains(partition))
    }

    /// The partitions whose results have come.
    pub fn received_from(&self, position: Position) -> PartitionSet {
        self.received.get(&position).map_or(PartitionSet::EMPTY, |received| received.from)
    }

    /// What has come for a transaction so far.
    pub(crate) fn peek(&self, position: Position) -> Option<&Received> {
        self.received.get(&position)
    }

    /// Hands out what has come for a transaction and forgets it.
    pub fn take(&mut self, position: Position) -> Received {
        self.received.remove(&position).unwrap_or_default()
    }

    /// Forgets what came for a transaction that has finished here: its sender has said it again.
    pub fn forget(&mut self, position: Position) {
        self.received.remove(&position);
    }

    /// Number of transactions with results.
    pub fn len(&self) -> usize {
        self.received.len()
    }

    /// Whether nothing waits here.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }
}

/// Where a remote row stands: in which participant's results, and where in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRow {
    pub(crate) part: usize,
    pub(crate) bytes: Range<usize>,
}

/// A row of a remote range.
#[derive(Clone, Debug)]
pub(crate) struct RemoteRangeRow {
    pub(crate) part: usize,
    pub(crate) key: Range<usize>,
    pub(crate) row: Range<usize>,
}

/// Why remote results cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unusable {
    TooLarge,
    Malformed,
}

impl Received {
    /// What there is for a participant that awaits nothing.
    pub fn of_own(me: PartitionId, served: Served) -> Received {
        let mut received = Received::default();
        received.note(me, served);
        received
    }

    /// The results of other partitions, each as [`read_local`] gave them.
    pub fn of_parts(parts: &[(PartitionId, Bytes)]) -> Received {
        let mut from = PartitionSet::EMPTY;
        parts.iter().for_each(|(partition, _)| from.insert(*partition));
        Received { from, results: parts.to_vec() }
    }

    fn note(&mut self, me: PartitionId, served: Served) {
        if served == Served::TooLarge {
            self.from.insert(me);
            self.results.push((me, Bytes::from_static(&[TOO_LARGE])));
        }
    }

    /// Whether nothing was received, as nothing was awaited.
    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    pub(crate) fn bytes(&self, part: usize, range: &Range<usize>) -> &[u8] {
        &self.results[part].1[range.clone()]
    }

    /// Finds each remote row of the footprint: `keys[i]` is filled for key entry `i`, `ranges[i]` for range entry `i`.
    pub(crate) fn index(
        &self,
        footprint: &Footprint,
        selection: Selection,
        keys: &mut [Option<RemoteRow>],
        ranges: &mut [Vec<RemoteRangeRow>],
    ) -> Result<(), Unusable> {
        for (part, (sender, bytes)) in self.results.iter().enumerate() {
            let mut reader = Reader { bytes, at: 0 };
            match reader.byte()? {
                COMPLETE => {}
                TOO_LARGE => return Err(Unusable::TooLarge),
                _ => return Err(Unusable::Malformed),
            }
            for (entry, slot) in footprint.keys().iter().zip(keys.iter_mut()) {
                if selection.has(entry) && entry.owner == Owner::Partition(*sender) {
                    *slot = reader.optional_row()?.map(|bytes| RemoteRow { part, bytes });
                }
            }
            for (entry, rows) in footprint.ranges().iter().zip(ranges.iter_mut()) {
                if selection.has_ranges() && entry.access.read && serves_range(entry.owner, *sender) {
                    for _ in 0..reader.u32()? {
                        let key_bytes = reader.u16()?;
                        let key = reader.take(key_bytes)?;
                        let row_bytes = reader.u32()?;
                        rows.push(RemoteRangeRow { part, key, row: reader.take(row_bytes)? });
                    }
                }
            }
            if reader.at != bytes.len() {
                return Err(Unusable::Malformed);
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Result<Range<usize>, Unusable> {
        let range = self.at..self.at + length;
        if range.end > self.bytes.len() {
            return Err(Unusable::Malformed);
        }
        self.at = range.end;
        Ok(range)
    }

    fn byte(&mut self) -> Result<u8, Unusable> {
        let at = self.take(1)?;
        Ok(self.bytes[at.start])
    }

    fn u16(&mut self) -> Result<usize, Unusable> {
        let at = self.take(2)?;
        Ok(usize::from(u16::from_le_bytes([self.bytes[at.start], self.bytes[at.start + 1]])))
    }

    fn u32(&mut self) -> Result<usize, Unusable> {
        let at = self.take(4)?;
        let bytes = self.bytes[at].first_chunk().ok_or(Unusable::Malformed)?;
        Ok(u32::from_le_bytes(*bytes) as usize)
    }

    fn optional_row(&mut self) -> Result<Option<Range<usize>>, Unusable> {
        if self.byte()? == 0 {
            return Ok(None);
        }
        let length = self.u32()?;
        Ok(Some(self.take(length)?))
    }
}
