//! Footprints: the keys and ranges that a transaction may touch, and who takes part in it because of them.

use crate::data::{DataError, Key, KeyRange, Owner, Schema};
use crate::error::Error;
use crate::hash::key_hash;
use crate::limits::FOOTPRINT_ENTRIES_MAX;
use crate::position::{PartitionId, PartitionSet};

/// How a transaction touches a key or range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Its value may be read; it is sent to every active participant.
    pub read: bool,
    /// It may be written; its lock is exclusive.
    pub write: bool,
}

impl Access {
    /// Reading only.
    pub const READ: Access = Access { read: true, write: false };
    /// Writing without reading.
    pub const WRITE: Access = Access { read: false, write: true };
    /// Reading and writing.
    pub const UPDATE: Access = Access { read: true, write: true };

    fn merge(&mut self, other: Access) {
        self.read |= other.read;
        self.write |= other.write;
    }

    /// Whether everything that `other` asks for is covered.
    pub fn covers(self, other: Access) -> bool {
        self.read >= other.read && self.write >= other.write
    }
}

/// One key of a footprint.
#[derive(Clone, Copy, Debug)]
pub struct KeyEntry {
    start: u32,
    length: u16,
    /// How the key is touched.
    pub access: Access,
    /// Who holds the key.
    pub owner: Owner,
    /// The key's hash, see [`key_hash`].
    pub hash: u64,
}

/// One range of a footprint.
#[derive(Clone, Debug)]
pub struct RangeEntry {
    /// The keys.
    pub range: KeyRange,
    /// How they are touched. Writing covers inserts and deletes of any key in the range.
    pub access: Access,
    /// Who holds them.
    pub owner: Owner,
}

/// The keys and ranges that a transaction may touch. Made once and then only read; buffers are reused.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    bytes: Vec<u8>,
    keys: Vec<KeyEntry>,
    ranges: Vec<RangeEntry>,
    /// A bit per class of hashes that a key has: most keys that are not here are seen not to be without a search.
    classes: [u64; 4],
    /// Partitions that hold at least one element.
    participants: PartitionSet,
    /// Partitions that hold at least one element of the read set that others do not hold themselves.
    readers: PartitionSet,
    /// Partitions that hold at least one element of the write set (Calvin §3.2, CAL-52).
    writers: PartitionSet,
}

impl Footprint {
    /// The keys, each named once, in the order of their first declaration.
    pub fn keys(&self) -> &[KeyEntry] {
        &self.keys
    }

    /// The ranges, in order of declaration.
    pub fn ranges(&self) -> &[RangeEntry] {
        &self.ranges
    }

    /// The encoded key of an entry.
    #[inline]
    pub fn key(&self, entry: &KeyEntry) -> &[u8] {
        &self.bytes[entry.start as usize..][..usize::from(entry.length)]
    }

    /// Empties the footprint but keeps its buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.ranges.clear();
        self.classes = [0; 4];
        self.participants = PartitionSet::EMPTY;
        self.readers = PartitionSet::EMPTY;
        self.writers = PartitionSet::EMPTY;
    }

    /// The partitions that take part in the transaction. One that touches nothing, or only reads what every partition holds,
    /// runs at its origin alone.
    pub fn participants(&self, origin: PartitionId) -> PartitionSet {
        if self.participants.is_empty() { PartitionSet::one(origin) } else { self.participants }
    }

    /// The participants that run the transaction's logic: those that hold an element of the write set.
    ///
    /// A transaction without writes has no active participant by the paper's definition (trap 12). Then one collector is
    /// active: the origin if it takes part, else the lowest participant; every participant computes the same.
    pub fn active(&self, origin: PartitionId) -> PartitionSet {
        if self.writers.is_empty() {
            PartitionSet::one(self.preferred(origin, &self.participants(origin)))
        } else {
            self.writers
        }
    }

    /// The participants whose read results the active ones wait for (phase 4): all that hold read elements.
    pub fn readers(&self) -> PartitionSet {
        self.readers
    }

    /// The one active participant that reports the outcome (CAL-60): the origin if it is active, which saves a message, else
    /// the lowest.
    pub fn reporter(&self, origin: PartitionId) -> PartitionId {
        self.preferred(origin, &self.active(origin))
    }

    fn preferred(&self, origin: PartitionId, among: &PartitionSet) -> PartitionId {
        if among.contains(origin) { origin } else { among.first().unwrap_or(origin) }
    }

    /// Finds the entry of a key.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.find_hinted(key, 0).ok()
    }

    /// Finds the entry of a key, or gives the key's hash when there is none. `hint` is the entry after the one found last:
    /// procedures mostly touch keys in the order in which they declared them.
    #[inline]
    pub(crate) fn find_hinted(&self, key: &[u8], hint: usize) -> Result<usize, u64> {
        if let Some(entry) = self.keys.get(hint)
            && self.key(entry) == key
        {
            return Ok(hint);
        }
        let hash = key_hash(key);
        if !self.has_class(hash) {
            return Err(hash);
        }
        let found = self.keys.iter().position(|entry| entry.hash == hash && self.key(entry) == key);
        found.ok_or(hash)
    }

    #[inline]
    fn has_class(&self, hash: u64) -> bool {
        self.classes[(hash % 256 / 64) as usize] & (1 << (hash % 64)) != 0
    }

    /// Finds a range that contains the key and allows the access.
    pub fn find_range_of(&self, key: &[u8], access: Access) -> Option<usize> {
        self.ranges.iter().position(|entry| entry.access.covers(access) && entry.range.contains(key))
    }

    /// Adds a key with its owner; merged with an earlier entry of the same key by [`Footprint::place`]'s caller.
    fn push_key(&mut self, key: &[u8], access: Access, owner: Owner) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.keys.push(KeyEntry { start, length: key.len() as u16, access, owner, hash: key_hash(key) });
    }

    fn place(&mut self, access: Access, owner: Owner, partitions: u16) {
        match owner {
            Owner::Partition(partition) => {
                self.participants.insert(partition);
                if access.read {
                    self.readers.insert(partition);
                }
                if access.write {
                    self.writers.insert(partition);
                }
            }
            // Reading a replicated row is local to whoever runs the logic and makes nobody take part.
            Owner::Replicated if !access.write => {}
            Owner::Replicated | Owner::Split => {
                let all = PartitionSet::all(partitions);
                self.participants.union(&all);
                if access.read && owner == Owner::Split {
                    self.readers.union(&all);
                }
                if access.write {
                    self.writers.union(&all);
                }
            }
        }
    }

    /// Serialises the footprint as a recorded one travels with its call. Owners are left out: the receiver places the keys
    /// again.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 4 * self.keys.len() + 64 * self.ranges.len() + 8);
        out.extend_from_slice(&(self.keys.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.ranges.len() as u32).to_le_bytes());
        for entry in &self.keys {
            encode_part(self.key(entry), entry.access, &mut out);
        }
        for entry in &self.ranges {
            encode_part(entry.range.start.bytes(), entry.access, &mut out);
            encode_part(entry.range.end.bytes(), entry.access, &mut out);
        }
        out
    }

    /// Fills the footprint from its serialised form and places it on `partitions`.
    pub fn decode(&mut self, encoded: &[u8], schema: &Schema, partitions: u16) -> Result<(), Error> {
        self.clear();
        let mut declaration = Declaration::new(schema, partitions, self);
        let malformed = || Error::Invalid("malformed footprint: it was not made by this database".to_owned());
        let mut rest = encoded;
        let keys = take_u32(&mut rest).ok_or_else(malformed)?;
        let ranges = take_u32(&mut rest).ok_or_else(malformed)?;
        for _ in 0..keys {
            let (key, access) = take_part(&mut rest).ok_or_else(malformed)?;
            declaration.touch(&Key::from_bytes(key), access)?;
        }
        for _ in 0..ranges {
            let (start, access) = take_part(&mut rest).ok_or_else(malformed)?;
            let (end, _) = take_part(&mut rest).ok_or_else(malformed)?;
            let range = KeyRange { start: Key::from_bytes(start), end: Key::from_bytes(end) };
            declaration.touch_range(&range, access)?;
        }
        declaration.finish()?;
        if rest.is_empty() { Ok(()) } else { Err(malformed()) }
    }
}

fn encode_part(bytes: &[u8], access: Access, out: &mut Vec<u8>) {
    out.push(u8::from(access.read) | u8::from(access.write) << 1);
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (chunk, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_le_bytes(*chunk))
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Access)> {
    let ([flags, low, high], tail) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    let (bytes, tail) = tail.split_at_checked(length)?;
    *rest = tail;
    (1..=3).contains(flags).then_some((bytes, Access { read: flags & 1 != 0, write: flags & 2 != 0 }))
}

/// Collects what a transaction will touch.
pub struct Declaration<'a> {
    schema: &'a Schema,
    partitions: u16,
    footprint: &'a mut Footprint,
}

impl<'a> Declaration<'a> {
    pub(crate) fn new(schema: &'a Schema, partitions: u16, footprint: &'a mut Footprint) -> Declaration<'a> {
        Declaration { schema, partitions, footprint }
    }

    /// The key may be read.
    pub fn read(&mut self, key: &Key) -> Result<(), DataError> {
        self.touch(key, Access::READ)
    }

    /// The key may be written (put or deleted) without being read.
    pub fn write(&mut self, key: &Key) -> Result<(), DataError> {
        self.touch(key, Access::WRITE)
    }

    /// The key may be read and written.
    pub fn update(&mut self, key: &Key) -> Result<(), DataError> {
        self.touch(key, Access::UPDATE)
    }

    /// Any key in the range may be read, and the range may be scanned. No key can appear in it or vanish from it meanwhile.
    pub fn read_range(&mut self, range: &KeyRange) -> Result<(), DataError> {
        self.touch_range(range, Access::READ)
    }

    /// Any key in the range may be written, without being read: for inserts whose keys depend on what is read.
    pub fn write_range(&mut self, range: &KeyRange) -> Result<(), DataError> {
        self.touch_range(range, Access::WRITE)
    }

    /// Any key in the range may be read, scanned and written.
    pub fn update_range(&mut self, range: &KeyRange) -> Result<(), DataError> {
        self.touch_range(range, Access::UPDATE)
    }

    /// Declares a key with any access.
    #[inline]
    pub fn touch(&mut self, key: &Key, access: Access) -> Result<(), DataError> {
        key.check_length()?;
        let owner = self.schema.owner(key, self.partitions)?;
        if owner == Owner::Split {
            return Err(DataError::Malformed("key"));
        }
        self.footprint.push_key(key, access, owner);
        self.footprint.place(access, owner, self.partitions);
        self.merge_last();
        Ok(())
    }

    /// A key in two sets is one entry, and one lock request (trap 6).
    #[inline]
    fn merge_last(&mut self) {
        let last = self.footprint.keys[self.footprint.keys.len() - 1];
        if !self.footprint.has_class(last.hash) {
            self.footprint.classes[(last.hash % 256 / 64) as usize] |= 1 << (last.hash % 64);
            return;
        }
        let footprint = &*self.footprint;
        let earlier = footprint.keys[..footprint.keys.len() - 1]
            .iter()
            .position(|entry| entry.hash == last.hash && footprint.key(entry) == footprint.key(&last));
        if let Some(earlier) = earlier {
            self.footprint.keys[earlier].access.merge(last.access);
            self.footprint.keys.pop();
            self.footprint.bytes.truncate(last.start as usize);
        }
    }

    /// Declares a range with any access.
    pub fn touch_range(&mut self, range: &KeyRange, access: Access) -> Result<(), DataError> {
        range.start.check_length()?;
        if range.is_empty() {
            return Ok(());
        }
        let table = self.schema.table_of(&range.start)?;
        if !table.all().covers(range) {
            return Err(DataError::Malformed("range"));
        }
        let owner = table.range_owner(range, self.partitions);
        self.footprint.place(access, owner, self.partitions);
        self.footprint.ranges.push(RangeEntry { range: range.clone(), access, owner });
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), DataError> {
        let entries = self.footprint.keys.len() + self.footprint.ranges.len();
        if entries > FOOTPRINT_ENTRIES_MAX {
            return Err(DataError::Column(format!(
                "footprint of {entries} keys and ranges exceeds the limit of {FOOTPRINT_ENTRIES_MAX}: declare ranges instead of keys"
            )));
        }
        Ok(())
    }
}
