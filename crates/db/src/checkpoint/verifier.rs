//! Verifying a checkpoint without room for its rows: for those who only carry it from one place to another.

use std::collections::BTreeMap;

use super::{CheckpointError, CheckpointHeader, CheckpointReader, CheckpointSummary, HEADER_BYTES};
use crate::data::{Direction, KeyRange};
use crate::hash::Digest;
use crate::position::{Epoch, Position};
use crate::storage::{RecordCursor, RecordId, Statistics, Storage, Visit, VisitRecord};

/// Reads a checkpoint as a [`CheckpointReader`] does, and forgets the rows. Only a key that stands there twice is not noticed.
#[derive(Debug, Default)]
pub struct CheckpointVerifier {
    /// The first bytes, until the header is complete.
    begin: Vec<u8>,
    reader: Option<CheckpointReader<Forgotten>>,
}

/// What was found in a checkpoint, besides rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedCheckpoint {
    /// What it is a checkpoint of.
    pub header: CheckpointHeader,
    /// The sections by name.
    pub sections: BTreeMap<String, Vec<u8>>,
    /// Its contents in numbers.
    pub summary: CheckpointSummary,
}

impl CheckpointVerifier {
    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// [`CheckpointError`]. All later bytes are refused then too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        if let Some(reader) = &mut self.reader {
            return reader.push(bytes);
        }
        self.begin.extend_from_slice(bytes);
        if self.begin.len() < HEADER_BYTES {
            return Ok(());
        }
        let header = CheckpointHeader::decode(&self.begin)?;
        let mut reader = CheckpointReader::new(Box::new(Forgotten::default()), header.identity);
        let pushed = reader.push(&std::mem::take(&mut self.begin));
        self.reader = Some(reader);
        pushed
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`CheckpointError`], when something is wrong or missing.
    pub fn finish(self) -> Result<VerifiedCheckpoint, CheckpointError> {
        let Some(reader) = self.reader else {
            CheckpointHeader::decode(&self.begin)?;
            return Err(CheckpointError::Truncated { bytes: self.begin.len() as u64 });
        };
        let checkpoint = reader.finish()?;
        let (header, sections, summary) = (checkpoint.header, checkpoint.sections, checkpoint.summary);
        Ok(VerifiedCheckpoint { header, sections, summary })
    }
}

/// The storage of rows that are not kept: it can be loaded, and tells the digest of what was.
#[derive(Debug, Default)]
struct Forgotten(Digest);

/// Why all the rest is not there.
const ONLY_LOADED: &str = "a checkpoint that is verified is loaded, and nobody reads or writes its rows";

impl Storage for Forgotten {
    fn load(&mut self, key: &[u8], _hash: u64, row: &[u8], _position: Position) -> bool {
        self.0.add(key, row);
        true
    }

    fn digest(&self, _at: Position, _include: &dyn Fn(&[u8]) -> bool) -> Digest {
        self.0
    }

    fn locate(&self, _key: &[u8], _hash: u64) -> Option<RecordId> {
        unreachable!("{ONLY_LOADED}")
    }

    fn row(&self, _record: RecordId) -> &[u8] {
        unreachable!("{ONLY_LOADED}")
    }

    fn get(&self, _key: &[u8], _hash: u64, _at: Position) -> Option<&[u8]> {
        unreachable!("{ONLY_LOADED}")
    }

    fn put(&mut self, _key: &[u8], _hash: u64, _row: &[u8], _position: Position) -> RecordId {
        unreachable!("{ONLY_LOADED}")
    }

    fn modify(&mut self, _record: RecordId, _position: Position) -> &mut [u8] {
        unreachable!("{ONLY_LOADED}")
    }

    fn modify_by(&mut self, _record: RecordId, _hash: u64, _change: &[u8], _position: Position) -> &mut [u8] {
        unreachable!("{ONLY_LOADED}")
    }

    fn delete(&mut self, _key: &[u8], _hash: u64, _position: Position) {
        unreachable!("{ONLY_LOADED}")
    }

    fn scan(&mut self, _range: &KeyRange, _direction: Direction, _at: Position, _visit: &mut Visit<'_>) {
        unreachable!("{ONLY_LOADED}")
    }

    fn open_snapshot(&mut self, _at: Position) {
        unreachable!("{ONLY_LOADED}")
    }

    fn close_snapshot(&mut self, _at: Position) {
        unreachable!("{ONLY_LOADED}")
    }

    fn collect_garbage(&mut self, _budget: usize) -> usize {
        unreachable!("{ONLY_LOADED}")
    }

    fn scan_records(
        &mut self,
        _at: Position,
        _cursor: RecordCursor,
        _budget: usize,
        _visit: &mut VisitRecord<'_>,
    ) -> Option<RecordCursor> {
        unreachable!("{ONLY_LOADED}")
    }

    fn take_epoch_digests(&mut self, _through: Epoch, _out: &mut Vec<(Epoch, Digest)>) {
        unreachable!("{ONLY_LOADED}")
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CheckpointIdentity, CheckpointWriter};
    use super::*;
    use crate::position::PartitionId;

    fn checkpoint() -> Vec<u8> {
        let identity = CheckpointIdentity { cluster: 5, partition: PartitionId(1), partitions: 2 };
        let mut writer = CheckpointWriter::new(CheckpointHeader { identity, epoch: Epoch(9), log_index: 12 });
        writer.row(b"key", b"row");
        writer.row(b"other", b"row");
        writer.section("node", b"state").unwrap();
        writer.finish().chunks.into_iter().flatten().collect()
    }

    fn verify(bytes: &[u8], piece: usize) -> Result<VerifiedCheckpoint, CheckpointError> {
        let mut verifier = CheckpointVerifier::default();
        bytes.chunks(piece).try_for_each(|piece| verifier.push(piece))?;
        verifier.finish()
    }

    #[test]
    fn a_checkpoint_is_verified_in_pieces_of_any_size() {
        let bytes = checkpoint();
        for piece in [1, 7, HEADER_BYTES, bytes.len()] {
            let verified = verify(&bytes, piece).unwrap();
            assert_eq!((verified.header.epoch, verified.summary.rows), (Epoch(9), 2));
            assert_eq!(verified.sections["node"], b"state");
        }
    }

    #[test]
    fn every_change_is_noticed() {
        let bytes = checkpoint();
        for end in 0..bytes.len() {
            assert!(verify(&bytes[..end], 64).is_err(), "{end} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&damaged, 64).is_err(), "bit {bit}");
        }
    }
}
