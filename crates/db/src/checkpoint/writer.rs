//! Writing a checkpoint: rows and sections in, chunks of bytes out.

use std::collections::{BTreeSet, VecDeque};

use super::format::{
    CheckpointHeader, PAGE_BYTES_WRITTEN_MAX, PageKind, ROW_HEADER_BYTES, SECTION_BYTES_MAX,
    SECTION_NAME_BYTES_MAX, SECTIONS_MAX, begin_page, seal_page,
};
use super::{CheckpointError, CheckpointSummary};
use crate::hash::Digest;
use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::storage::{RecordCursor, Storage};

/// In the flags of a page: it is the last one of its section.
pub(super) const LAST_OF_SECTION: u8 = 1;

/// Turns the state of a partition into the bytes of a checkpoint.
///
/// The bytes come in chunks, to be appended to a file in the order in which they come. What has been made and not been taken
/// is in memory: who takes more slowly than rows are written must write fewer, see
/// [`pending_bytes`](CheckpointWriter::pending_bytes).
#[derive(Debug)]
pub struct CheckpointWriter {
    header: CheckpointHeader,
    /// Checksum of the last page that is complete.
    checksum: u32,
    /// The page of rows being filled: empty, or header, count and rows.
    page: Vec<u8>,
    /// Rows in `page`.
    page_rows: u32,
    /// Chunks that have not been taken.
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of `chunks`.
    pending_bytes: usize,
    sections: BTreeSet<String>,
    summary: CheckpointSummary,
}

/// A checkpoint that is complete.
#[derive(Debug)]
pub struct FinishedCheckpoint {
    /// The chunks that were not taken before, in the order in which they must be appended.
    pub chunks: VecDeque<Vec<u8>>,
    /// What the checkpoint holds.
    pub summary: CheckpointSummary,
}

impl CheckpointWriter {
    /// Begins a checkpoint.
    pub fn new(header: CheckpointHeader) -> CheckpointWriter {
        let (bytes, checksum) = header.encode();
        let mut writer = CheckpointWriter {
            header,
            checksum,
            page: Vec::new(),
            page_rows: 0,
            chunks: VecDeque::new(),
            pending_bytes: 0,
            sections: BTreeSet::new(),
            summary: CheckpointSummary { rows: 0, digest: Digest::default(), bytes: 0 },
        };
        writer.push_chunk(bytes);
        writer
    }

    /// Writes the next rows of a storage, as [`Storage::scan_records`] finds them at the checkpoint's
    /// [position](CheckpointHeader::position); returns where to go on. What that says of snapshots and writes must hold.
    pub fn write_rows<S: Storage + ?Sized>(
        &mut self,
        storage: &mut S,
        cursor: RecordCursor,
        budget_bytes: usize,
    ) -> Option<RecordCursor> {
        let position = self.header.position();
        storage.scan_records(position, cursor, budget_bytes, &mut |key, row| self.row(key, row))
    }

    /// Adds a row. No key may be added twice: a reader would refuse the checkpoint.
    pub fn row(&mut self, key: &[u8], row: &[u8]) {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        assert!(row.len() <= ROW_BYTES_MAX, "a row of {} bytes", row.len());
        if self.page.len() + ROW_HEADER_BYTES + key.len() + row.len() > PAGE_BYTES_WRITTEN_MAX {
            self.end_page_of_rows();
        }
        if self.page.is_empty() {
            self.page = Vec::with_capacity(PAGE_BYTES_WRITTEN_MAX);
            self.page.extend_from_slice(&begin_page(&[0; 4]));
        }
        self.page.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.page.extend_from_slice(&(row.len() as u16).to_le_bytes());
        self.page.extend_from_slice(key);
        self.page.extend_from_slice(row);
        self.page_rows += 1;
        self.summary.rows += 1;
        self.summary.digest.add(key, row);
    }

    fn end_page_of_rows(&mut self) {
        if self.page_rows > 0 {
            let mut page = std::mem::take(&mut self.page);
            let count = std::mem::take(&mut self.page_rows);
            page[super::format::PAGE_HEADER_BYTES..][..4].copy_from_slice(&count.to_le_bytes());
            self.push_page(page, PageKind::Rows);
        }
    }

    /// Adds a section: bytes that the reader hands out under the name.
    ///
    /// # Errors
    ///
    /// If the name is empty, too long or used already, there are too many sections, or the section is too large. Nothing is
    /// added then.
    pub fn section(&mut self, name: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
        let is_new = !self.sections.contains(name) && self.sections.len() < SECTIONS_MAX;
        if name.is_empty() || name.len() > SECTION_NAME_BYTES_MAX || !is_new {
            return Err(CheckpointError::SectionName { name: name.to_owned() });
        }
        if bytes.len() > SECTION_BYTES_MAX {
            return Err(CheckpointError::SectionTooLarge {
                name: name.to_owned(),
                bytes: bytes.len() as u64,
            });
        }
        self.end_page_of_rows();
        self.sections.insert(name.to_owned());
        let mut rest = bytes;
        loop {
            let mut page = begin_page(&[0, name.len() as u8]);
            page.extend_from_slice(name.as_bytes());
            let (part, after) = rest.split_at(rest.len().min(PAGE_BYTES_WRITTEN_MAX - page.len()));
            page.extend_from_slice(part);
            rest = after;
            let is_last = rest.is_empty();
            page[super::format::PAGE_HEADER_BYTES] = if is_last { LAST_OF_SECTION } else { 0 };
            self.push_page(page, PageKind::Section);
            if is_last {
                return Ok(());
            }
        }
    }

    fn push_page(&mut self, mut page: Vec<u8>, kind: PageKind) {
        self.checksum = seal_page(&mut page, kind, self.checksum);
        self.push_chunk(page);
    }

    fn push_chunk(&mut self, chunk: Vec<u8>) {
        self.summary.bytes += chunk.len() as u64;
        self.pending_bytes += chunk.len();
        self.chunks.push_back(chunk);
    }

    /// Takes the next chunk out, of at most [`PAGE_BYTES_WRITTEN_MAX`] bytes, if one is complete.
    pub fn take_chunk(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunks.pop_front()?;
        self.pending_bytes -= chunk.len();
        Some(chunk)
    }

    /// Bytes of chunks that wait to be taken.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Completes the checkpoint.
    pub fn finish(mut self) -> FinishedCheckpoint {
        self.end_page_of_rows();
        let mut footer = begin_page(&self.summary.rows.to_le_bytes());
        footer.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        footer.extend_from_slice(&self.summary.digest.0.to_le_bytes());
        self.push_page(footer, PageKind::Footer);
        FinishedCheckpoint { chunks: self.chunks, summary: self.summary }
    }
}
