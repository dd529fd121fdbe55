//! Footprints: the keys and ranges that a transaction may touch, and who takes part in it because of them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::data::{DataError, Direction, Key, KeyRange, Owner, Schema};
use crate::error::Error;
use crate::hash::{FastMap, key_hash};
use crate::limits::{FOOTPRINT_BYTES_MAX, FOOTPRINT_ENTRIES_MAX, READ_RESULTS_BYTES_MAX, ROW_BYTES_MAX};
use crate::position::{PartitionId, PartitionSet};
use crate::procedure::Functor;
use crate::procedure::range_index::RangeIndex;

/// Keys that are searched one by one; those that follow have an index.
const SEARCHED_KEYS_MAX: usize = 64;

/// The same of ranges.
const SEARCHED_RANGES_MAX: usize = 16;

/// A call that reads more keys than this has no functors, nor has one that reads a range: the rows of so many can be sent, however long
/// they are.
pub const FUNCTOR_READS_MAX: usize = READ_RESULTS_BYTES_MAX / (ROW_BYTES_MAX + ROW_OVERHEAD_BYTES);

/// What is sent with each row: whether it is there, and its length.
const ROW_OVERHEAD_BYTES: usize = 5;

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
    /// Whether the [guard](crate::procedure::Procedure::guard) reads it.
    pub guards: bool,
    /// The place among the functors, from 1 on, of what alone writes it.
    functor: u16,
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
    /// By bounds: the last place of ranges after the first [`SEARCHED_RANGES_MAX`].
    range_index: BTreeMap<KeyRange, u32>,
    /// Which ranges lie around a key, once somebody has asked who has many.
    around: OnceLock<RangeIndex>,
    /// Bytes of the bounds of `ranges`.
    range_bytes: usize,
    functors: Vec<Functor>,
    /// Whether functors are all that is written, and nothing is returned.
    only_functors: bool,
    /// A bit per class of hashes that a key has: most keys that are not here are seen not to be without a search.
    classes: [u64; 4],
    /// By hash: the place of keys after the first [`SEARCHED_KEYS_MAX`].
    index: FastMap<u64, u32>,
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

    /// The functor that writes the key of an entry, if one does.
    #[inline]
    pub fn functor(&self, entry: &KeyEntry) -> Option<Functor> {
        let place = usize::from(entry.functor).checked_sub(1)?;
        Some(self.functors[place])
    }

    /// Whether there are functors.
    #[inline]
    pub fn has_functors(&self) -> bool {
        !self.functors.is_empty()
    }

    /// Forgets the functors where they could not be applied one by one: where a transaction may fail as a whole because the rows that it
    /// reads are too many to be sent, which those who apply a functor would not know.
    pub(crate) fn check_functors(&mut self) {
        let read = self.keys.iter().filter(|entry| entry.access.read).count();
        let is_small = read <= FUNCTOR_READS_MAX && self.ranges.iter().all(|entry| !entry.access.read);
        if !is_small || self.keys.iter().all(|entry| entry.functor == 0) {
            self.functors.clear();
            self.keys.iter_mut().for_each(|entry| entry.functor = 0);
        }
    }

    /// Whether nothing but functors is written and nothing is returned: see [`Declaration::only_functors`].
    pub fn only_functors(&self) -> bool {
        self.only_functors
            && self.ranges.is_empty()
            && self.keys.iter().all(|entry| entry.functor != 0 || !entry.access.write)
    }

    /// Empties the footprint but keeps its buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.ranges.clear();
        self.range_index.clear();
        self.around.take();
        self.range_bytes = 0;
        self.functors.clear();
        self.only_functors = false;
        self.classes = [0; 4];
        self.index.clear();
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

    /// The origin if it is among some partitions, else the lowest of them.
    pub(crate) fn preferred(&self, origin: PartitionId, among: &PartitionSet) -> PartitionId {
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
        self.position(hash, key, self.keys.len()).ok_or(hash)
    }

    /// Searches the first keys one by one and finds the others through the index.
    fn position(&self, hash: u64, key: &[u8], count: usize) -> Option<usize> {
        let is_it = |entry: &KeyEntry| entry.hash == hash && self.key(entry) == key;
        let first = &self.keys[..count.min(SEARCHED_KEYS_MAX)];
        first.iter().position(is_it).or_else(|| {
            let indexed = *self.index.get(&hash)? as usize;
            if indexed < count && is_it(&self.keys[indexed]) {
                return Some(indexed);
            }
            // Two keys with one hash: the index has the earlier.
            self.keys[..count].iter().position(is_it)
        })
    }

    #[inline]
    fn has_class(&self, hash: u64) -> bool {
        self.classes[(hash % 256 / 64) as usize] & (1 << (hash % 64)) != 0
    }

    /// Finds a range that contains the key and allows the access.
    pub fn find_range_of(&self, key: &[u8], access: Access) -> Option<usize> {
        let around = self.ranges_around(|start| start.bytes() <= key, |end| key < end.bytes());
        around.filter(|place| self.ranges[*place].access.covers(access)).min()
    }

    /// Finds the range that allows reading and reaches furthest of those in which a scan can begin, at the start of another or, if it
    /// descends, at its end.
    pub fn find_range_from(&self, range: &KeyRange, direction: Direction) -> Option<usize> {
        let ends = |place: &usize| &self.ranges[*place].range.end;
        let starts = |place: &usize| &self.ranges[*place].range.start;
        let readable = |place: &usize| self.ranges[*place].access.read;
        match direction {
            Direction::Ascending => {
                let around = self.ranges_around(|start| *start <= range.start, |end| range.start < *end);
                around.filter(readable).max_by(|one, other| ends(one).cmp(ends(other)))
            }
            Direction::Descending => {
                let around = self.ranges_around(|start| *start < range.end, |end| range.end <= *end);
                around.filter(readable).min_by(|one, other| starts(one).cmp(starts(other)))
            }
        }
    }

    /// See [`RangeIndex::around`]: of few ranges each is looked at.
    fn ranges_around(
        &self,
        begins: impl Fn(&Key) -> bool + Copy,
        reaches: impl Fn(&Key) -> bool + Copy,
    ) -> impl Iterator<Item = usize> {
        let range = |place: usize| &self.ranges[place].range;
        let is_small = self.ranges.len() <= SEARCHED_RANGES_MAX;
        let is_around = move |place: &usize| begins(&range(*place).start) && reaches(&range(*place).end);
        let searched = is_small.then(|| (0..self.ranges.len()).filter(is_around));
        let index = || self.around.get_or_init(|| RangeIndex::new(self.ranges.len(), range));
        let indexed = (!is_small).then(|| index().around(range, begins, reaches));
        searched.into_iter().flatten().chain(indexed.into_iter().flatten())
    }

    /// Whether there is an entry of a range with just these bounds that allows the access.
    fn has_range(&self, range: &KeyRange, access: Access) -> bool {
        let is_it = |entry: &RangeEntry| entry.range == *range && entry.access.covers(access);
        let first = &self.ranges[..self.ranges.len().min(SEARCHED_RANGES_MAX)];
        let indexed = || self.range_index.get(range).map(|place| &self.ranges[*place as usize]);
        first.iter().any(is_it) || indexed().is_some_and(is_it)
    }

    /// Adds a key with its owner; merged with an earlier entry of the same key by [`Footprint::place`]'s caller.
    fn push_key(&mut self, key: &[u8], access: Access, owner: Owner) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let (length, hash) = (key.len() as u16, key_hash(key));
        self.keys.push(KeyEntry { start, length, access, guards: false, functor: 0, owner, hash });
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
    /// Collects into a footprint that is empty, for a cluster of so many partitions.
    pub fn new(schema: &'a Schema, partitions: u16, footprint: &'a mut Footprint) -> Declaration<'a> {
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

    /// The key may be read, by the [guard](crate::procedure::Procedure::guard) too.
    pub fn guard(&mut self, key: &Key) -> Result<(), DataError> {
        let (place, _) = self.enter(key, Access::READ)?;
        self.footprint.keys[place].guards = true;
        Ok(())
    }

    /// The key is updated, and a functor tells how. The column of an arithmetic one must be an integer of the row. Should the same key be declared for writing once more, then it is written by the run
    /// as a whole, as if there were no functor: there is one for each key at most (ALO-10).
    pub fn functor(&mut self, key: &Key, functor: Functor) -> Result<(), DataError> {
        if let Functor::Arithmetic { column, .. } = functor {
            self.schema.table_of(key)?.check_integer(column)?;
        }
        let (place, written) = self.enter(key, Access::UPDATE)?;
        if !written {
            self.footprint.functors.push(functor);
            // There are no more entries than that.
            self.footprint.keys[place].functor = self.footprint.functors.len() as u16;
        }
        Ok(())
    }

    /// The number of a functor of the procedure's own that is declared although it has only so many.
    pub(super) fn unknown_functor(&self, count: u16) -> Option<u16> {
        self.footprint.functors.iter().find_map(|functor| match functor {
            Functor::Own(number) if *number >= count => Some(*number),
            _ => None,
        })
    }

    /// All writes of the run are declared as functors, and it returns `()`: then it need not be made.
    pub fn only_functors(&mut self) {
        self.footprint.only_functors = true;
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
        self.enter(key, access).map(|_| ())
    }

    /// Declares a key, and tells its place and whether it was declared for writing before.
    #[inline]
    fn enter(&mut self, key: &Key, access: Access) -> Result<(usize, bool), DataError> {
        key.check_length()?;
        let table = self.schema.table_of(key)?;
        table.check_key(key)?;
        let owner = table.owner(key, self.partitions);
        self.footprint.push_key(key, access, owner);
        self.footprint.place(access, owner, self.partitions);
        let entered = self.merge_last();
        self.check_size()?;
        Ok(entered)
    }

    /// A key in two sets is one entry, and one lock request (trap 6). What is written twice is no functor's alone.
    #[inline]
    fn merge_last(&mut self) -> (usize, bool) {
        let last = self.footprint.keys[self.footprint.keys.len() - 1];
        let count = self.footprint.keys.len() - 1;
        if !self.footprint.has_class(last.hash) {
            self.footprint.classes[(last.hash % 256 / 64) as usize] |= 1 << (last.hash % 64);
            if count >= SEARCHED_KEYS_MAX {
                self.footprint.index.insert(last.hash, count as u32);
            }
            return (count, false);
        }
        match self.footprint.position(last.hash, self.footprint.key(&last), count) {
            Some(earlier) => {
                let entry = &mut self.footprint.keys[earlier];
                let written = entry.access.write;
                entry.access.merge(last.access);
                if last.access.write {
                    entry.functor = 0;
                }
                self.footprint.keys.pop();
                self.footprint.bytes.truncate(last.start as usize);
                return (earlier, written);
            }
            None if count >= SEARCHED_KEYS_MAX => {
                self.footprint.index.entry(last.hash).or_insert(count as u32);
            }
            None => {}
        }
        (count, false)
    }

    fn check_size(&self) -> Result<(), DataError> {
        let entries = self.footprint.keys.len() + self.footprint.ranges.len();
        let bytes = self.footprint.bytes.len() + self.footprint.range_bytes;
        let is_too_large = entries > FOOTPRINT_ENTRIES_MAX || bytes > FOOTPRINT_BYTES_MAX;
        if is_too_large { Err(DataError::FootprintTooLarge) } else { Ok(()) }
    }

    /// Declares a range with any access.
    pub fn touch_range(&mut self, range: &KeyRange, access: Access) -> Result<(), DataError> {
        range.start.check_bound_length()?;
        range.end.check_bound_length()?;
        if range.is_empty() {
            return Ok(());
        }
        let table = self.schema.table_of(&range.start)?;
        if !table.all().covers(range) {
            return Err(DataError::Malformed("range"));
        }
        let owner = table.range_owner(range, self.partitions);
        self.footprint.place(access, owner, self.partitions);
        if self.footprint.has_range(range, access) {
            return Ok(());
        }
        let place = self.footprint.ranges.len();
        self.footprint.around.take();
        if place >= SEARCHED_RANGES_MAX {
            self.footprint.range_index.insert(range.clone(), place as u32);
        }
        self.footprint.range_bytes += range.start.bytes().len() + range.end.bytes().len();
        self.footprint.ranges.push(RangeEntry { range: range.clone(), access, owner });
        self.check_size()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{ColumnType, SchemaBuilder, Table, TableBuilder};
    use crate::limits::KEY_BYTES_MAX;

    /// `by_site` lies on the partition with the number of the site, modulo; `spread` is hashed; `everywhere` is replicated.
    fn tables() -> ([Table; 3], Schema) {
        let builder = |name: &str| -> TableBuilder {
            let columns =
                Table::builder(name).column("site", ColumnType::Int32).column("id", ColumnType::Bytes);
            columns.primary_key(&["site", "id"])
        };
        let mut schema = SchemaBuilder::new();
        let by_site = schema.table(builder("by_site").partition_by_column("site")).unwrap();
        let spread = schema.table(builder("spread")).unwrap();
        let everywhere = schema.table(builder("everywhere").replicated()).unwrap();
        ([by_site, spread, everywhere], schema.finish())
    }

    fn declared(partitions: u16, declare: impl FnOnce(&mut Declaration<'_>, &[Table; 3])) -> Footprint {
        let (tables, schema) = tables();
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(&schema, partitions, &mut footprint);
        declare(&mut declaration, &tables);
        footprint
    }

    fn key(table: &Table, site: i32, id: u8) -> Key {
        table.key((site, &[id][..])).unwrap()
    }

    fn site(table: &Table, site: i32) -> KeyRange {
        table.prefix((site,)).unwrap()
    }

    fn set(partitions: &[u16]) -> PartitionSet {
        let mut set = PartitionSet::EMPTY;
        partitions.iter().for_each(|partition| set.insert(PartitionId(*partition)));
        set
    }

    /// What the roles of a footprint are: participants, readers, active ones and the reporter, for an origin.
    fn roles(footprint: &Footprint, origin: u16) -> [PartitionSet; 4] {
        let origin = PartitionId(origin);
        let reporter = PartitionSet::one(footprint.reporter(origin));
        [footprint.participants(origin), footprint.readers(), footprint.active(origin), reporter]
    }

    /// The page of the engine says how many that are.
    #[test]
    fn calls_that_read_much_have_no_functors() {
        let has_functors = |keys: usize, range: bool| {
            let mut footprint = declared(2, |declaration, [table, ..]| {
                let key = |number: usize| table.key((1, &number.to_le_bytes()[..])).unwrap();
                declaration.functor(&key(0), Functor::Own(0)).unwrap();
                (1..keys).for_each(|number| declaration.read(&key(number)).unwrap());
                declaration.write_range(&site(table, 2)).unwrap();
                if range {
                    declaration.read_range(&site(table, 3)).unwrap();
                }
            });
            footprint.check_functors();
            footprint.has_functors()
        };
        assert!(has_functors(1, false) && has_functors(FUNCTOR_READS_MAX, false));
        assert!(!has_functors(FUNCTOR_READS_MAX + 1, false) && !has_functors(1, true));
        let page = include_str!("../../../../docs/engines/aloha.md");
        assert!(page.contains(&format!("more than {FUNCTOR_READS_MAX} keys")));
    }

    #[test]
    fn a_key_in_two_sets_is_one_entry() {
        let footprint = declared(4, |declaration, [table, ..]| {
            declaration.read(&key(table, 1, 1)).unwrap();
            declaration.read(&key(table, 1, 2)).unwrap();
            declaration.write(&key(table, 1, 1)).unwrap();
            declaration.read(&key(table, 1, 1)).unwrap();
            declaration.write(&key(table, 1, 3)).unwrap();
        });
        let ([table, ..], _) = tables();
        let accesses: Vec<Access> = footprint.keys().iter().map(|entry| entry.access).collect();
        assert_eq!(accesses, [Access::UPDATE, Access::READ, Access::WRITE]);
        for (index, id) in [1, 2, 3].into_iter().enumerate() {
            assert_eq!(footprint.key(&footprint.keys()[index]), key(&table, 1, id).bytes());
            assert_eq!(footprint.find(&key(&table, 1, id)), Some(index));
            assert_eq!(footprint.keys()[index].hash, key(&table, 1, id).hash());
        }
        assert_eq!(footprint.find(&key(&table, 1, 4)), None);
    }

    /// CAL-52: who stores an element of the write set is active, who stores only elements of the read set is passive.
    #[test]
    fn writers_are_active_and_readers_passive() {
        let footprint = declared(4, |declaration, [table, ..]| {
            declaration.read(&key(table, 3, 1)).unwrap();
            declaration.update(&key(table, 2, 1)).unwrap();
            declaration.write(&key(table, 1, 1)).unwrap();
        });
        assert_eq!(roles(&footprint, 0), [set(&[1, 2, 3]), set(&[2, 3]), set(&[1, 2]), set(&[1])]);
        assert_eq!(roles(&footprint, 2)[3], set(&[2]), "the origin reports if it is active");
        assert_eq!(roles(&footprint, 3)[3], set(&[1]), "a passive origin does not");
    }

    /// Trap 12: without writes one collector is active, the same for everybody.
    #[test]
    fn a_transaction_that_only_reads_has_one_collector() {
        let footprint = declared(4, |declaration, [table, ..]| {
            declaration.read(&key(table, 3, 1)).unwrap();
            declaration.read_range(&site(table, 2)).unwrap();
        });
        assert_eq!(roles(&footprint, 0), [set(&[2, 3]), set(&[2, 3]), set(&[2]), set(&[2])]);
        assert_eq!(roles(&footprint, 3), [set(&[2, 3]), set(&[2, 3]), set(&[3]), set(&[3])]);
    }

    #[test]
    fn what_touches_nothing_of_others_runs_at_its_origin() {
        let nothing = declared(4, |_, _| {});
        let copies = declared(4, |declaration, [_, _, everywhere]| {
            declaration.read(&key(everywhere, 1, 1)).unwrap();
            declaration.read_range(&everywhere.all()).unwrap();
        });
        for footprint in [nothing, copies] {
            assert_eq!(roles(&footprint, 3), [set(&[3]), set(&[]), set(&[3]), set(&[3])]);
        }
    }

    #[test]
    fn replicated_rows_are_read_at_home_and_written_everywhere() {
        let reads = declared(3, |declaration, [by_site, _, everywhere]| {
            declaration.read(&key(everywhere, 1, 1)).unwrap();
            declaration.update(&key(by_site, 1, 1)).unwrap();
        });
        assert_eq!(roles(&reads, 0), [set(&[1]), set(&[1]), set(&[1]), set(&[1])]);
        let writes = declared(3, |declaration, [by_site, _, everywhere]| {
            declaration.update(&key(everywhere, 1, 1)).unwrap();
            declaration.read(&key(by_site, 1, 1)).unwrap();
        });
        let all = PartitionSet::all(3);
        assert_eq!(roles(&writes, 2), [all, set(&[1]), all, set(&[2])]);
    }

    #[test]
    fn a_split_range_concerns_everybody() {
        let all = PartitionSet::all(3);
        let read = declared(3, |declaration, [_, spread, _]| declaration.read_range(&spread.all()).unwrap());
        assert_eq!(roles(&read, 1), [all, all, set(&[1]), set(&[1])]);
        let write =
            declared(3, |declaration, [_, spread, _]| declaration.write_range(&spread.all()).unwrap());
        assert_eq!(roles(&write, 1), [all, set(&[]), all, set(&[1])]);
    }

    #[test]
    fn ranges_allow_what_was_declared_for_them() {
        let ([table, ..], _) = tables();
        let footprint = declared(4, |declaration, [table, ..]| {
            declaration.read_range(&site(table, 1)).unwrap();
            declaration.write_range(&site(table, 1)).unwrap();
            declaration.update_range(&site(table, 2)).unwrap();
            declaration.read_range(&site(table, 3).after(&site(table, 3).end)).unwrap();
        });
        let owners: Vec<Owner> = footprint.ranges().iter().map(|entry| entry.owner).collect();
        assert_eq!(
            owners,
            [1, 1, 2].map(|owner| Owner::Partition(PartitionId(owner))),
            "an empty range is none"
        );
        let find = |site, access| footprint.find_range_of(&key(&table, site, 1), access);
        assert_eq!(
            (find(1, Access::READ), find(1, Access::WRITE), find(1, Access::UPDATE)),
            (Some(0), Some(1), None)
        );
        assert_eq!(
            (find(2, Access::READ), find(2, Access::UPDATE), find(3, Access::READ)),
            (Some(2), Some(2), None)
        );
    }

    #[test]
    fn a_range_is_told_once_however_often_it_is_declared() {
        let footprint = declared(4, |declaration, [table, ..]| {
            for number in 0..3 * SEARCHED_RANGES_MAX as i32 {
                declaration.read_range(&site(table, number)).unwrap();
                for _ in 0..500 {
                    declaration.update_range(&site(table, number)).unwrap();
                    declaration.read_range(&site(table, number / 2)).unwrap();
                }
            }
        });
        assert_eq!(footprint.ranges().len(), 6 * SEARCHED_RANGES_MAX);
    }

    #[test]
    fn what_is_no_key_or_range_of_the_schema_is_refused() {
        let ([table, ..], schema) = tables();
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(&schema, 4, &mut footprint);
        let malformed =
            |result: Result<(), DataError>| assert!(matches!(result, Err(DataError::Malformed(_))));
        malformed(declaration.read(&Key::from_bytes(&[])));
        malformed(declaration.read(&Key::from_bytes(&[0, 9, 1])));
        malformed(declaration.read(&table.all().start));
        malformed(
            declaration.read_range(&KeyRange { start: table.all().start, end: Key::from_bytes(&[9, 9]) }),
        );
        malformed(declaration.read_range(&KeyRange { start: Key::default(), end: table.all().end }));
        let long = Key::from_bytes(&[0; KEY_BYTES_MAX + 2]);
        assert_eq!(declaration.read(&long), Err(DataError::KeyTooLong(KEY_BYTES_MAX + 2)));
        let range = KeyRange { start: long.clone(), end: table.all().end };
        assert_eq!(declaration.read_range(&range), Err(DataError::KeyTooLong(KEY_BYTES_MAX + 2)));
        // The range after the longest key is one.
        let longest = table.key((1, vec![7; KEY_BYTES_MAX - 8])).unwrap();
        assert_eq!(longest.len(), KEY_BYTES_MAX);
        declaration.read_range(&table.all().after(&longest)).unwrap();
        declaration.read_range(&table.all().up_to(&longest)).unwrap();
    }

    #[test]
    fn footprints_are_limited() {
        let (tables, schema) = tables();
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(&schema, 4, &mut footprint);
        let key = |number: usize| tables[0].key((1, &number.to_le_bytes()[..])).unwrap();
        (0..FOOTPRINT_ENTRIES_MAX).for_each(|number| declaration.read(&key(number)).unwrap());
        declaration.write(&key(0)).unwrap();
        let mut declaration = Declaration::new(&schema, 4, &mut footprint);
        assert_eq!(declaration.read_range(&tables[0].all()), Err(DataError::FootprintTooLarge));
        // By their bytes: keys, and bounds of ranges.
        let long = |number: u64| {
            let bytes = [&[7; KEY_BYTES_MAX - 100][..], &number.to_le_bytes()].concat();
            tables[0].key((1, bytes)).unwrap()
        };
        for as_ranges in [false, true] {
            let mut footprint = Footprint::default();
            let mut declaration = Declaration::new(&schema, 4, &mut footprint);
            let refused = (0..).map(long).find_map(|key| match as_ranges {
                true => declaration.read_range(&KeyRange::one(key.bytes())).err(),
                false => declaration.read(&key).err(),
            });
            assert_eq!(refused, Some(DataError::FootprintTooLarge));
            let bytes = footprint.encode().len();
            assert!((FOOTPRINT_BYTES_MAX..FOOTPRINT_BYTES_MAX + 100_000).contains(&bytes), "{bytes}");
        }
    }

    /// Something to declare: a table, a site, a key's last byte or the site's range, and an access.
    type Part = (usize, i32, Option<u8>, Access);

    fn part() -> impl Strategy<Value = Part> {
        let access = prop_oneof![Just(Access::READ), Just(Access::WRITE), Just(Access::UPDATE)];
        (0..3_usize, 0..5_i32, proptest::option::weighted(0.9, 0..20_u8), access)
    }

    fn declare_parts(parts: &[Part], partitions: u16) -> Footprint {
        declared(partitions, |declaration, tables| {
            for (table, number, id, access) in parts {
                match id {
                    Some(id) => declaration.touch(&key(&tables[*table], *number, *id), *access).unwrap(),
                    None => declaration.touch_range(&site(&tables[*table], *number), *access).unwrap(),
                }
            }
        })
    }

    /// All that can be seen of a footprint.
    fn seen(footprint: &Footprint) -> String {
        let keys = footprint
            .keys()
            .iter()
            .map(|entry| (footprint.key(entry), entry.access, entry.owner, entry.hash));
        let roles: Vec<_> = (0..4).map(|origin| roles(footprint, origin)).collect();
        format!("{:?} {:?} {roles:?}", keys.collect::<Vec<_>>(), footprint.ranges())
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(
            parts in proptest::collection::vec(part(), 0..30),
            stale in proptest::collection::vec(part(), 0..30),
            partitions in 1..5_u16,
        ) {
            let footprint = declare_parts(&parts, partitions);
            let (_, schema) = tables();
            // Into buffers that were used before, and placed on another number of partitions.
            let mut decoded = declare_parts(&stale, 3);
            decoded.decode(&footprint.encode(), &schema, partitions).unwrap();
            prop_assert_eq!(seen(&decoded), seen(&footprint));
            prop_assert_eq!(decoded.encode(), footprint.encode());
        }

        /// Each key is found once, with all accesses that were declared for it.
        #[test]
        fn accesses_of_a_key_are_merged(parts in proptest::collection::vec(part(), 0..250)) {
            let footprint = declare_parts(&parts, 4);
            let (tables, _) = tables();
            let mut named = 0;
            for (place, table) in tables.iter().enumerate() {
                for (number, id) in (0..5).flat_map(|number| (0..20).map(move |id| (number, id))) {
                    let same = |part: &&Part| (part.0, part.1, part.2) == (place, number, Some(id));
                    let accesses: Vec<Access> = parts.iter().filter(same).map(|part| part.3).collect();
                    let key = key(table, number, id);
                    let entry = footprint.find(&key).map(|index| footprint.keys()[index].access);
                    let expected = (!accesses.is_empty()).then(|| Access {
                        read: accesses.iter().any(|access| access.read),
                        write: accesses.iter().any(|access| access.write),
                    });
                    prop_assert_eq!(entry, expected);
                    named += usize::from(expected.is_some());
                }
            }
            prop_assert_eq!(footprint.keys().len(), named);
        }

        #[test]
        fn malformed_footprints_are_refused(
            parts in proptest::collection::vec(part(), 0..9),
            cut in 1..40_usize,
            flip in any::<(proptest::sample::Index, u8)>(),
        ) {
            let (_, schema) = tables();
            let encoded = declare_parts(&parts, 4).encode();
            let mut decoded = Footprint::default();
            prop_assert!(decoded.decode(&encoded[..encoded.len().saturating_sub(cut)], &schema, 4).is_err());
            prop_assert!(decoded.decode(&[&encoded[..], &[0]].concat(), &schema, 4).is_err());
            let mut flipped = encoded.clone();
            flipped[flip.0.index(encoded.len())] = flip.1;
            if decoded.decode(&flipped, &schema, 4).is_ok() {
                let again = decoded.encode();
                decoded.decode(&again, &schema, 4).unwrap();
            }
        }
    }
}
