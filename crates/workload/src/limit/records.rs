//! Records side by side in one arena: header, key, row.

/// Bytes of a record before its key: length of the row, bytes after the key, length of the key, and whether the record is
/// dead, 2 bytes each.
const HEADER_BYTES: usize = 8;

/// Records start at multiples of this, so that 4 bytes address 32 GiB.
const RECORD_UNIT: usize = 8;

/// Bytes that are touched at the start of a record: most of what procedures read of one.
const TOUCHED_BYTES: usize = 192;

const CACHE_LINE_BYTES: usize = 64;

/// Where a record starts, in units of 8 bytes; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecordNumber(pub(super) u32);

impl RecordNumber {
    #[inline]
    fn start(self) -> usize {
        self.0 as usize * RECORD_UNIT
    }
}

/// A record's header, decoded.
#[derive(Clone, Copy)]
struct Header {
    row_length: usize,
    row_space: usize,
    key_length: usize,
    dead: bool,
}

impl Header {
    #[inline]
    fn decode(encoded: [u8; HEADER_BYTES]) -> Header {
        let encoded = u64::from_le_bytes(encoded);
        let part = |index: u32| (encoded >> (16 * index) & 0xFFFF) as usize;
        Header { row_length: part(0), row_space: part(1), key_length: part(2), dead: part(3) != 0 }
    }

    fn encode(self) -> [u8; HEADER_BYTES] {
        let Header { row_length, row_space, key_length, dead } = self;
        (row_length as u64 | (row_space as u64) << 16 | (key_length as u64) << 32 | u64::from(dead) << 48)
            .to_le_bytes()
    }
}

/// The arena.
pub(super) struct Records(Vec<u8>);

impl Default for Records {
    fn default() -> Records {
        Records(vec![0; RECORD_UNIT])
    }
}

impl Records {
    #[inline]
    fn header(&self, record: RecordNumber) -> Header {
        Header::decode(*self.0[record.start()..].first_chunk().expect("records are whole"))
    }

    fn set_header(&mut self, record: RecordNumber, header: Header) {
        self.0[record.start()..][..HEADER_BYTES].copy_from_slice(&header.encode());
    }

    #[inline]
    pub(super) fn key(&self, record: RecordNumber) -> &[u8] {
        let header = self.header(record);
        &self.0[record.start() + HEADER_BYTES..][..header.key_length]
    }

    #[inline]
    pub(super) fn row(&self, record: RecordNumber) -> &[u8] {
        let header = self.header(record);
        &self.0[record.start() + HEADER_BYTES + header.key_length..][..header.row_length]
    }

    #[inline]
    pub(super) fn row_mut(&mut self, record: RecordNumber) -> &mut [u8] {
        let header = self.header(record);
        &mut self.0[record.start() + HEADER_BYTES + header.key_length..][..header.row_length]
    }

    /// Adds a record.
    pub(super) fn append(&mut self, key: &[u8], row: &[u8]) -> RecordNumber {
        let start = self.0.len();
        let end = (start + HEADER_BYTES + key.len() + row.len()).next_multiple_of(RECORD_UNIT);
        let record = u32::try_from(start / RECORD_UNIT).expect("a plain store holds at most 32 GiB");
        let row_space = end - start - HEADER_BYTES - key.len();
        let header = Header { row_length: row.len(), row_space, key_length: key.len(), dead: false };
        self.0.extend_from_slice(&header.encode());
        self.0.extend_from_slice(key);
        self.0.extend_from_slice(row);
        self.0.resize(end, 0);
        RecordNumber(record)
    }

    /// Marks a record as deleted.
    pub(super) fn kill(&mut self, record: RecordNumber) {
        self.set_header(record, Header { dead: true, ..self.header(record) });
    }

    /// Reads a byte of each of the first cache lines of a record, or of what follows a short one. Takes any number.
    #[inline]
    pub(super) fn touch(&self, record: RecordNumber) -> u8 {
        let offsets = (0..TOUCHED_BYTES).step_by(CACHE_LINE_BYTES);
        offsets.fold(0, |seen, offset| seen ^ self.0.get(record.start() + offset).unwrap_or(&0))
    }

    /// All records that are not deleted, as they stand in memory.
    pub(super) fn live(&self) -> impl Iterator<Item = RecordNumber> {
        let mut start = RECORD_UNIT;
        std::iter::from_fn(move || {
            while start < self.0.len() {
                let record = RecordNumber((start / RECORD_UNIT) as u32);
                let header = self.header(record);
                start += HEADER_BYTES + header.key_length + header.row_space;
                if !header.dead {
                    return Some(record);
                }
            }
            None
        })
    }
}
