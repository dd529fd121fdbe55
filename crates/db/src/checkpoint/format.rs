//! The bytes of a checkpoint: header and pages.
//!
//! All integers are little endian. Each checksum goes on from the one before it in the file, so that a page fits only where
//! it was written: pages that are missing, exchanged, or of another file do not.

use std::fmt;

use super::CheckpointError;
use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::position::{Epoch, PartitionId, Position};

/// The first bytes of every checkpoint.
pub(super) const MAGIC: [u8; 8] = *b"ORDNCKPT";

/// The version of the format that is written and read.
pub const FORMAT_VERSION: u16 = 4;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 44;

/// Most bytes of one page that is read.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of one page, and so of one chunk, of a [`CheckpointWriter`](super::CheckpointWriter): the log's records wait while
/// the disk writes one.
pub const PAGE_BYTES_WRITTEN_MAX: usize = 256 * 1024;

/// Most bytes of the name of a section.
pub const SECTION_NAME_BYTES_MAX: usize = 64;

/// Most sections of a checkpoint.
pub const SECTIONS_MAX: usize = 64;

/// Most bytes of one section: it is held in memory as a whole.
pub const SECTION_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Bytes of a page before its content.
pub(super) const PAGE_HEADER_BYTES: usize = 12;

/// Bytes of a row before its key.
pub(super) const ROW_HEADER_BYTES: usize = 4;

/// Bytes of the footer's content.
pub(super) const FOOTER_BYTES: usize = 28;

// Every row and every name of a section fits into a page, with bytes to spare for the content of the section.
const _: () =
    assert!(ROW_HEADER_BYTES + KEY_BYTES_MAX + ROW_BYTES_MAX + PAGE_HEADER_BYTES < PAGE_BYTES_WRITTEN_MAX);
const _: () = assert!(
    SECTION_NAME_BYTES_MAX <= u8::MAX as usize && SECTION_NAME_BYTES_MAX * 2 < PAGE_BYTES_WRITTEN_MAX
);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize);

/// Whose state a checkpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointIdentity {
    /// Fingerprint of the cluster: of all that must be the same on its nodes.
    pub cluster: u64,
    /// The partition.
    pub partition: PartitionId,
    /// Number of partitions of the cluster.
    pub partitions: u16,
}

impl fmt::Display for CheckpointIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} partitions in cluster {:016x}", self.partition, self.partitions, self.cluster)
    }
}

/// What stands at the head of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointHeader {
    /// Whose state it is.
    pub identity: CheckpointIdentity,
    /// The last epoch whose transactions are in the state.
    pub epoch: Epoch,
    /// Index of the last entry of the log that is in the state: replay begins with the next.
    pub log_index: u64,
}

impl CheckpointHeader {
    /// The position of the state, and the version of its rows when they are loaded again: what comes after is above.
    pub fn position(&self) -> Position {
        Position::end_of(self.epoch)
    }

    /// Reads the header from the start of a checkpoint, to tell what it is without reading all of it.
    ///
    /// # Errors
    ///
    /// If these are not the first bytes of a checkpoint of this format version, at least [`HEADER_BYTES`] of them.
    pub fn decode(bytes: &[u8]) -> Result<CheckpointHeader, CheckpointError> {
        let begun = bytes.len().min(MAGIC.len());
        if bytes[..begun] != MAGIC[..begun] {
            return Err(CheckpointError::NotACheckpoint);
        }
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(CheckpointError::Truncated { bytes: bytes.len() as u64 });
        };
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != FORMAT_VERSION {
            return Err(CheckpointError::UnknownVersion { found: version });
        }
        let (fields, checksum) = header.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c(fields).to_le_bytes() != checksum {
            return Err(CheckpointError::Damaged { byte: 0, what: "the checksum of the header is wrong" });
        }
        Ok(CheckpointHeader {
            identity: CheckpointIdentity {
                cluster: u64_at(header, 12),
                partition: PartitionId(u16::from_le_bytes([header[20], header[21]])),
                partitions: u16::from_le_bytes([header[22], header[23]]),
            },
            epoch: Epoch(u64_at(header, 24)),
            log_index: u64_at(header, 32),
        })
    }

    /// The bytes of the header, and its checksum.
    pub(super) fn encode(&self) -> (Vec<u8>, u32) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&self.identity.cluster.to_le_bytes());
        bytes.extend_from_slice(&self.identity.partition.0.to_le_bytes());
        bytes.extend_from_slice(&self.identity.partitions.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&self.log_index.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        (bytes, checksum)
    }
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageKind {
    /// Rows.
    Rows = 1,
    /// A part of a section.
    Section = 2,
    /// Counts and the digest: the last page.
    Footer = 3,
}

/// The start of a page, as far as it can be read before the page is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    /// Bytes of the whole page.
    pub(super) bytes: usize,
}

impl PageHeader {
    /// Reads kind and length; an error says what is wrong. Neither has been verified before the whole page is.
    pub(super) fn decode(bytes: &[u8; PAGE_HEADER_BYTES]) -> Result<PageHeader, &'static str> {
        let kind = match bytes[0] {
            1 => PageKind::Rows,
            2 => PageKind::Section,
            3 => PageKind::Footer,
            _ => return Err("no page has this kind"),
        };
        if bytes[1..4] != [0; 3] {
            return Err("reserved bytes are not zero");
        }
        let content = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        if content > PAGE_BYTES_MAX - PAGE_HEADER_BYTES {
            return Err("the page is longer than any page");
        }
        Ok(PageHeader { kind, bytes: PAGE_HEADER_BYTES + content })
    }
}

/// Room for the header of a page, and the beginning of its content.
pub(super) fn begin_page(content: &[u8]) -> Vec<u8> {
    let mut page = vec![0; PAGE_HEADER_BYTES];
    page.extend_from_slice(content);
    page
}

/// Fills in the header of a page whose content is complete; returns its checksum.
pub(super) fn seal_page(page: &mut [u8], kind: PageKind, checksum_before: u32) -> u32 {
    assert!(page.len() <= PAGE_BYTES_MAX, "a page of {} bytes", page.len());
    let content = (page.len() - PAGE_HEADER_BYTES) as u32;
    page[0] = kind as u8;
    page[4..8].copy_from_slice(&content.to_le_bytes());
    let checksum = page_checksum(page, checksum_before);
    page[8..12].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// The checksum that a page must have after the one before.
pub(super) fn page_checksum(page: &[u8], checksum_before: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(checksum_before, &page[..8]), &page[PAGE_HEADER_BYTES..])
}

/// The checksum that a page states.
pub(super) fn stated_checksum(page: &[u8]) -> u32 {
    u32::from_le_bytes([page[8], page[9], page[10], page[11]])
}
