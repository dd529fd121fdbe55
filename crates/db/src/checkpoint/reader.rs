//! Reading a checkpoint: bytes in, a storage and sections out, or neither.

use std::collections::BTreeMap;

use super::format::{
    CheckpointHeader, CheckpointIdentity, FOOTER_BYTES, HEADER_BYTES, PAGE_HEADER_BYTES, PageHeader,
    PageKind, ROW_HEADER_BYTES, SECTION_BYTES_MAX, SECTION_NAME_BYTES_MAX, SECTIONS_MAX, page_checksum,
    stated_checksum,
};
use super::writer::LAST_OF_SECTION;
use super::{CheckpointError, CheckpointSummary};
use crate::hash::{Digest, key_hash};
use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::position::Position;
use crate::storage::Storage;

/// Rows that are announced to the storage together, before they are loaded.
const ROWS_PREFETCHED: usize = 64;

/// A checkpoint that was read and verified.
#[derive(Debug)]
pub struct Checkpoint<S: ?Sized> {
    /// What it is a checkpoint of.
    pub header: CheckpointHeader,
    /// The rows. Their version is the checkpoint's [position](CheckpointHeader::position): later writes are above it, and a
    /// snapshot may be opened at it, but not below.
    pub storage: Box<S>,
    /// The sections by name.
    pub sections: BTreeMap<String, Vec<u8>>,
    /// Its contents in numbers.
    pub summary: CheckpointSummary,
}

/// Turns the bytes of a checkpoint into the state of a partition.
///
/// [`push`](CheckpointReader::push) the bytes in pieces of any size, in the order of the file, and then
/// [`finish`](CheckpointReader::finish). Only that hands out the storage: whatever is wrong, nothing is loaded halfway.
#[derive(Debug)]
pub struct CheckpointReader<S: ?Sized> {
    expected: CheckpointIdentity,
    header: Option<CheckpointHeader>,
    /// Bytes of a header or page that is not complete.
    rest: Vec<u8>,
    /// Where `rest` begins in the file.
    byte: u64,
    /// Checksum of the last page.
    checksum: u32,
    /// What the footer states, once it was read: rows, sections, digest.
    footer: Option<(u64, u32, Digest)>,
    /// Name and bytes of a section whose last page has not come.
    open_section: Option<(String, Vec<u8>)>,
    sections: BTreeMap<String, Vec<u8>>,
    rows: u64,
    digest: Digest,
    /// Places of the rows of a page, used again for each.
    places: Vec<RowPlace>,
    /// Why the bytes were refused. Nothing is read any more then.
    refused: Option<CheckpointError>,
    storage: Box<S>,
}

/// Where a row stands in the content of a page.
#[derive(Clone, Copy, Debug)]
struct RowPlace {
    key: usize,
    row: usize,
    end: usize,
    hash: u64,
}

impl<S: Storage + ?Sized> CheckpointReader<S> {
    /// A reader that loads the rows into a storage, if the checkpoint is of `expected`.
    ///
    /// # Panics
    ///
    /// If the storage is not empty.
    pub fn new(storage: Box<S>, expected: CheckpointIdentity) -> CheckpointReader<S> {
        let statistics = storage.statistics();
        assert_eq!(
            (statistics.rows, statistics.garbage),
            (0, 0),
            "a checkpoint is loaded into an empty storage"
        );
        CheckpointReader {
            expected,
            header: None,
            rest: Vec::new(),
            byte: 0,
            checksum: 0,
            footer: None,
            open_section: None,
            sections: BTreeMap::new(),
            rows: 0,
            digest: Digest::default(),
            places: Vec::new(),
            refused: None,
            storage,
        }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    ///
    /// If the bytes cannot be of a checkpoint that was expected; from then on always, with the same error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut read = 0;
        let result = loop {
            match self.read_next(&rest[read..]) {
                Ok(0) => break Ok(()),
                Ok(bytes) => {
                    read += bytes;
                    self.byte += bytes as u64;
                }
                Err(error) => break Err(error),
            }
        };
        rest.drain(..read);
        self.rest = rest;
        self.refused = result.clone().err();
        result
    }

    /// A section that was read as a whole; what follows it in the file may be damaged.
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        self.sections.get(name).map(Vec::as_slice)
    }

    /// Reads the header or the page at the start of the bytes; returns its length, or 0 if it is not complete.
    fn read_next(&mut self, bytes: &[u8]) -> Result<usize, CheckpointError> {
        if self.footer.is_some() && !bytes.is_empty() {
            return Err(CheckpointError::TrailingBytes { byte: self.byte });
        }
        let Some(position) = self.header.map(|header| header.position()) else {
            return self.read_header(bytes);
        };
        let Some(start) = bytes.first_chunk::<PAGE_HEADER_BYTES>() else { return Ok(0) };
        let header = PageHeader::decode(start).map_err(|what| self.damaged(what))?;
        let Some(page) = bytes.get(..header.bytes) else { return Ok(0) };
        let checksum = page_checksum(page, self.checksum);
        if checksum != stated_checksum(page) {
            return Err(self.damaged("its checksum is wrong"));
        }
        self.checksum = checksum;
        let content = &page[PAGE_HEADER_BYTES..];
        if self.open_section.is_some() && header.kind != PageKind::Section {
            return Err(self.damaged("it stands between the pages of a section"));
        }
        match header.kind {
            PageKind::Rows => self.read_rows(content, position)?,
            PageKind::Section => self.read_section(content)?,
            PageKind::Footer => self.read_footer(content)?,
        }
        Ok(page.len())
    }

    fn read_header(&mut self, bytes: &[u8]) -> Result<usize, CheckpointError> {
        let header = match CheckpointHeader::decode(bytes) {
            Err(CheckpointError::Truncated { .. }) => return Ok(0),
            decoded => decoded?,
        };
        if header.identity != self.expected {
            return Err(CheckpointError::OtherIdentity { found: header.identity, expected: self.expected });
        }
        self.header = Some(header);
        self.checksum = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        Ok(HEADER_BYTES)
    }

    fn read_rows(&mut self, content: &[u8], position: Position) -> Result<(), CheckpointError> {
        let mut places = std::mem::take(&mut self.places);
        find_rows(content, &mut places).map_err(|what| self.damaged(what))?;
        for group in places.chunks(ROWS_PREFETCHED) {
            let mut hashes = [0; ROWS_PREFETCHED];
            hashes.iter_mut().zip(group).for_each(|(hash, place)| *hash = place.hash);
            self.storage.prefetch(&hashes[..group.len()]);
            for place in group {
                let (key, row) = (&content[place.key..place.row], &content[place.row..place.end]);
                if !self.storage.load(key, place.hash, row, position) {
                    return Err(self.damaged("a key stands in the checkpoint twice"));
                }
                self.digest.add(key, row);
            }
        }
        self.rows += places.len() as u64;
        self.places = places;
        Ok(())
    }

    fn read_section(&mut self, content: &[u8]) -> Result<(), CheckpointError> {
        let parts = content.split_first_chunk().and_then(|([flags, name_bytes], rest)| {
            let (name, part) = rest.split_at_checked(usize::from(*name_bytes))?;
            Some((*flags, std::str::from_utf8(name).ok()?, part))
        });
        let Some((flags, name, part)) = parts else {
            return Err(self.damaged("it has no name of a section"));
        };
        if name.is_empty() || name.len() > SECTION_NAME_BYTES_MAX || flags & !LAST_OF_SECTION != 0 {
            return Err(self.damaged("no section is named or marked like this"));
        }
        let (open, mut bytes) = self.open_section.take().unwrap_or_else(|| (name.to_owned(), Vec::new()));
        if open != name || self.sections.contains_key(name) || self.sections.len() == SECTIONS_MAX {
            return Err(self.damaged("the section is one too many"));
        }
        if bytes.len() + part.len() > SECTION_BYTES_MAX {
            return Err(self.damaged("the section is larger than any section"));
        }
        bytes.extend_from_slice(part);
        match flags & LAST_OF_SECTION {
            0 => self.open_section = Some((open, bytes)),
            _ => {
                self.sections.insert(open, bytes);
            }
        }
        Ok(())
    }

    fn read_footer(&mut self, content: &[u8]) -> Result<(), CheckpointError> {
        let fields = content.split_first_chunk().and_then(|(rows, rest)| {
            let (sections, rest) = rest.split_first_chunk()?;
            Some((u64::from_le_bytes(*rows), u32::from_le_bytes(*sections), rest.first_chunk()?))
        });
        match fields {
            Some((rows, sections, digest)) if content.len() == FOOTER_BYTES => {
                self.footer = Some((rows, sections, Digest(u128::from_le_bytes(*digest))));
                Ok(())
            }
            _ => Err(self.damaged("the footer has another length")),
        }
    }

    /// Ends the reading: verifies that the checkpoint is complete and that the storage holds exactly what was written.
    ///
    /// # Errors
    ///
    /// If the bytes were refused, or their end is missing, or counts or digests differ. The storage is dropped then.
    pub fn finish(self) -> Result<Checkpoint<S>, CheckpointError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let bytes = self.byte + self.rest.len() as u64;
        let (Some(header), Some((rows, sections, stated))) = (self.header, self.footer) else {
            return Err(CheckpointError::Truncated { bytes });
        };
        if rows != self.rows {
            return Err(CheckpointError::RowCount { found: self.rows, stated: rows });
        }
        if sections != self.sections.len() as u32 {
            return Err(CheckpointError::SectionCount {
                found: self.sections.len() as u32,
                stated: sections,
            });
        }
        // Once of the rows as they came, once of the rows as they now can be read.
        for found in [self.digest, self.storage.digest(header.position(), &|_| true)] {
            if found != stated {
                return Err(CheckpointError::ContentDigest { found, stated });
            }
        }
        let summary = CheckpointSummary { rows, digest: stated, bytes };
        Ok(Checkpoint { header, storage: self.storage, sections: self.sections, summary })
    }

    fn damaged(&self, what: &'static str) -> CheckpointError {
        CheckpointError::Damaged { byte: self.byte, what }
    }
}

/// Finds where the rows of a page stand; an error says what is wrong.
fn find_rows(content: &[u8], places: &mut Vec<RowPlace>) -> Result<(), &'static str> {
    places.clear();
    let Some((count, _)) = content.split_first_chunk() else {
        return Err("it does not say how many rows it has");
    };
    let mut at = count.len();
    while at < content.len() {
        let lengths = content[at..].first_chunk::<ROW_HEADER_BYTES>().ok_or("it ends inside of a row")?;
        let key_bytes = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let row_bytes = usize::from(u16::from_le_bytes([lengths[2], lengths[3]]));
        if key_bytes > KEY_BYTES_MAX || row_bytes > ROW_BYTES_MAX {
            return Err("a row is longer than any row");
        }
        let key = at + ROW_HEADER_BYTES;
        let (row, end) = (key + key_bytes, key + key_bytes + row_bytes);
        if end > content.len() {
            return Err("it ends inside of a row");
        }
        places.push(RowPlace { key, row, end, hash: key_hash(&content[key..row]) });
        at = end;
    }
    match places.len() == u32::from_le_bytes(*count) as usize {
        true => Ok(()),
        false => Err("it has another number of rows than it says"),
    }
}
