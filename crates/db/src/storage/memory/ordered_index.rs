//! The ordered index of one table, built on demand.
//!
//! An insert only notes the record as *pending*. A scan first *settles* what is pending: sorts it and merges it into
//! blocks of up to 64 records in ascending order of keys. So a table that is never scanned pays a push per insert, and one
//! that is scanned rarely pays for sorted, batched inserts.
//!
//! Blocks are found by their *fence*, a byte string that is above all keys of the block before and not above the own keys.
//! All keys between two fences share the fences' common prefix; the 8 bytes of each key after that prefix stand in the
//! block as a number, its *head*, so that a search rarely has to look at keys in the arena.
//!
//! With n settled records, a search takes O(log n) steps and then one pass over the heads of one block. Removing a record
//! moves the entries of one block. Settling p pending records costs O(p log p) for sorting, then for each block that they
//! belong to a search and one pass. A pending record knows its place among the pending ones, so that removing it takes
//! O(1) and inserts and deletes by turns leave nothing behind.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound;

use smallvec::SmallVec;

use super::arena::Arena;
use crate::data::{Direction, KeyRange};

/// Most records of one block.
const BLOCK_RECORDS_MAX: usize = 64;
/// Records of a block that was just made; leaves room for inserts.
const BLOCK_RECORDS_FILL: usize = 48;
/// A block with fewer records is joined with a neighbour.
const BLOCK_RECORDS_MIN: usize = 12;

/// Records that a scan fetches from memory together.
const RECORDS_FETCHED: usize = 16;

/// Room for pending records that is kept from one scan to the next.
const PENDING_KEPT: usize = 1024;

/// Bytes that all keys of a table share.
const TABLE_BYTES: usize = 2;

/// In the slot of a record: it is in a block, not pending.
const SETTLED: u32 = u32::MAX;

type Fence = SmallVec<[u8; 24]>;

/// The records of one table in the order of their keys.
#[derive(Default)]
pub(super) struct OrderedIndex {
    /// Records in no block yet; the slot of each is its place here.
    pending: Vec<u32>,
    /// Blocks by fence. The first fence is empty, so that every key has a block.
    blocks: BTreeMap<Fence, Block>,
}

/// Neighbouring records in ascending order of their keys.
#[derive(Default)]
struct Block {
    /// Bytes that are equal in all keys that can ever be in the block.
    skip: usize,
    /// The 8 bytes of each key after the first `skip`.
    heads: Vec<u64>,
    /// `records.len() == heads.len()`.
    records: Vec<u32>,
}

/// The `N` bytes after the first `skip`, those beyond the end of the key as zeros.
#[inline]
fn bytes_after<const N: usize>(key: &[u8], skip: usize) -> [u8; N] {
    let rest = key.get(skip..).unwrap_or_default();
    match rest.first_chunk() {
        Some(chunk) => *chunk,
        None => {
            let mut chunk = [0; N];
            chunk[..rest.len()].copy_from_slice(rest);
            chunk
        }
    }
}

#[inline]
fn head_of(key: &[u8], skip: usize) -> u64 {
    u64::from_be_bytes(bytes_after(key, skip))
}

fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

impl Block {
    fn new(records: &[u32], skip: usize, arena: &Arena) -> Block {
        // Room for a full block from the start: blocks grow by small steps, and moving them costs more than the room.
        let mut block = Block {
            skip,
            heads: Vec::with_capacity(BLOCK_RECORDS_MAX),
            records: Vec::with_capacity(BLOCK_RECORDS_MAX),
        };
        block.heads.extend(records.iter().map(|record| head_of(arena.key(*record), skip)));
        block.records.extend_from_slice(records);
        block
    }

    /// Number of records among the first `end` whose key is below `key`, which begins with the bytes that all keys of the
    /// block begin with.
    fn lower_bound(&self, key: &[u8], end: usize, arena: &Arena) -> usize {
        let head = head_of(key, self.skip);
        // Counting reads all heads at once, where a binary search would wait for one cache line after the other.
        let count_below = |limit: u64| self.heads[..end].iter().filter(|other| **other < limit).count();
        let start = count_below(head);
        // A key that ends inside its head, and not in a zero, is not above any key with the same head.
        let decided = key.len() <= self.skip + size_of::<u64>() && key.last().is_some_and(|last| *last != 0);
        if decided || self.heads[..end].get(start) != Some(&head) {
            return start;
        }
        let equal = head.checked_add(1).map_or(end, count_below);
        start + self.records[start..equal].partition_point(|record| arena.key(*record) < key)
    }

    /// Merges records in ascending order of keys, none of them in the block.
    fn merge(&mut self, fresh: &[Fresh], arena: &Arena) {
        let mut end = self.records.len();
        self.records.resize(end + fresh.len(), 0);
        self.heads.resize(end + fresh.len(), 0);
        for (before, fresh) in fresh.iter().enumerate().rev() {
            let key = arena.key(fresh.record);
            let at = self.lower_bound(key, end, arena);
            self.records.copy_within(at..end, at + before + 1);
            self.heads.copy_within(at..end, at + before + 1);
            self.records[at + before] = fresh.record;
            self.heads[at + before] = head_of(key, self.skip);
            end = at;
        }
    }
}

/// A record being settled, with the start of its key for sorting.
struct Fresh {
    head: u128,
    record: u32,
}

impl OrderedIndex {
    /// Bytes of the index.
    pub(super) fn bytes(&self) -> usize {
        let block_bytes = size_of::<Fence>()
            + size_of::<Block>()
            + BLOCK_RECORDS_MAX * (size_of::<u64>() + size_of::<u32>());
        self.pending.capacity() * size_of::<u32>() + self.blocks.len() * block_bytes
    }

    /// Adds a record whose key is not in the index.
    pub(super) fn insert(&mut self, record: u32, arena: &mut Arena) {
        arena.set_slot(record, self.pending.len() as u32);
        self.pending.push(record);
    }

    /// Takes out a record, whose key must still be in the arena.
    pub(super) fn remove(&mut self, record: u32, arena: &mut Arena) {
        let slot = arena.slot(record);
        if slot != SETTLED {
            let removed = self.pending.swap_remove(slot as usize);
            assert_eq!(removed, record, "a pending record knows its place");
            if let Some(moved) = self.pending.get(slot as usize) {
                arena.set_slot(*moved, slot);
            }
            return;
        }
        let (fence, block, at) = self.settled(record, arena);
        block.records.remove(at);
        block.heads.remove(at);
        if block.records.len() < BLOCK_RECORDS_MIN {
            let fence = fence.clone();
            self.join(&fence, arena);
        }
    }

    /// Puts another record with the same key in the place of one.
    pub(super) fn replace(&mut self, record: u32, other: u32, arena: &mut Arena) {
        let slot = arena.slot(record);
        if slot != SETTLED {
            assert_eq!(self.pending[slot as usize], record, "a pending record knows its place");
            self.pending[slot as usize] = other;
        } else {
            let (_, block, at) = self.settled(record, arena);
            block.records[at] = other;
        }
        arena.set_slot(other, slot);
    }

    /// The block of a settled record, and the record's place there.
    fn settled(&mut self, record: u32, arena: &Arena) -> (&Fence, &mut Block, usize) {
        let key = arena.key(record);
        let (fence, block) = self.block_of(key);
        let at = block.lower_bound(key, block.records.len(), arena);
        assert_eq!(block.records.get(at), Some(&record), "a settled record is in its block");
        (fence, block, at)
    }

    /// The block to which a key belongs, and its fence.
    fn block_of(&mut self, key: &[u8]) -> (&Fence, &mut Block) {
        match self.blocks.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back() {
            Some(found) => found,
            None => unreachable!("the first fence is empty"),
        }
    }

    /// The first fence above a key or fence.
    fn fence_after(&self, key: &[u8]) -> Option<&Fence> {
        let found = self.blocks.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next();
        found.map(|(fence, _)| fence)
    }

    /// Moves everything that is pending into blocks.
    fn settle(&mut self, arena: &mut Arena) {
        if self.pending.is_empty() {
            return;
        }
        let mut fresh: Vec<Fresh> = Vec::with_capacity(self.pending.len());
        for record in self.pending.drain(..) {
            let head = u128::from_be_bytes(bytes_after(arena.key(record), TABLE_BYTES));
            fresh.push(Fresh { head, record });
            arena.set_slot(record, SETTLED);
        }
        fresh.sort_unstable_by(|left, right| match left.head.cmp(&right.head) {
            Ordering::Equal => arena.key(left.record).cmp(arena.key(right.record)),
            unequal => unequal,
        });
        if self.blocks.is_empty() {
            self.blocks.insert(Fence::new(), Block { skip: TABLE_BYTES, ..Block::default() });
        }
        let mut rest = &fresh[..];
        while let Some(first) = rest.first() {
            let key = arena.key(first.record);
            let above = |upper: &Fence| rest.iter().position(|fresh| arena.key(fresh.record) >= &upper[..]);
            let run = self.fence_after(key).and_then(above).unwrap_or(rest.len());
            assert!(run > 0, "a key lies below the fence after its own");
            self.merge(&rest[..run], arena);
            rest = &rest[run..];
        }
        // What a large load has left is given back.
        self.pending.shrink_to(PENDING_KEPT);
    }

    /// Merges records in ascending order of keys, which all belong to one block.
    fn merge(&mut self, fresh: &[Fresh], arena: &Arena) {
        let (fence, block) = self.block_of(arena.key(fresh[0].record));
        if block.records.len() + fresh.len() <= BLOCK_RECORDS_MAX {
            block.merge(fresh, arena);
            return;
        }
        let fence = fence.clone();
        let mut records = Vec::with_capacity(block.records.len() + fresh.len());
        let mut old = block.records.iter().copied().peekable();
        for fresh in fresh {
            let key = arena.key(fresh.record);
            while let Some(record) = old.next_if(|record| arena.key(*record) < key) {
                records.push(record);
            }
            records.push(fresh.record);
        }
        records.extend(old);
        self.rebuild(&fence, &records, arena);
    }

    /// Joins a block that has become small with the one before, or after if it is the first.
    fn join(&mut self, fence: &Fence, arena: &Arena) {
        let before = self.blocks.range::<Fence, _>(..fence).next_back().map(|(before, _)| before.clone());
        let (left, right) = match (before, self.fence_after(fence)) {
            (Some(before), _) => (before, fence.clone()),
            (None, Some(after)) => (fence.clone(), after.clone()),
            (None, None) => return,
        };
        let mut records = self.blocks.remove(&left).unwrap_or_default().records;
        records.extend(self.blocks.remove(&right).unwrap_or_default().records);
        self.rebuild(&left, &records, arena);
    }

    /// Replaces the block at a fence by as many as the records need, which are all between the fence and the next.
    fn rebuild(&mut self, fence: &Fence, records: &[u32], arena: &Arena) {
        let count = records.len().div_ceil(BLOCK_RECORDS_FILL).max(1);
        let size = records.len().div_ceil(count).max(1);
        let after = self.fence_after(fence).cloned();
        let mut fence = fence.clone();
        let mut chunks = records.chunks(size).peekable();
        if chunks.peek().is_none() {
            let block = Block::new(&[], TABLE_BYTES, arena);
            self.blocks.insert(fence, block);
            return;
        }
        while let Some(chunk) = chunks.next() {
            let upper = match chunks.peek() {
                Some(next) => Some(separator(arena.key(chunk[chunk.len() - 1]), arena.key(next[0]))),
                None => after.clone(),
            };
            let shared = upper.as_ref().map_or(0, |upper| common_prefix(&fence, upper));
            let block = Block::new(chunk, shared.max(TABLE_BYTES), arena);
            self.blocks.insert(fence, block);
            fence = upper.unwrap_or_default();
        }
    }

    /// Visits the records whose key is in the range, in the order of keys, until the visitor returns false; returns whether it
    /// never did. `from_start` and `to_end` say that the range begins before the table or ends after it.
    pub(super) fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        (from_start, to_end): (bool, bool),
        arena: &mut Arena,
        visit: &mut impl FnMut(u32, &Arena) -> bool,
    ) -> bool {
        self.settle(arena);
        let (first, limit): (&[u8], &[u8]) = (if from_start { &[] } else { &range.start }, &range.end);
        let found = self.blocks.range::<[u8], _>((Bound::Unbounded, Bound::Included(first))).next_back();
        let Some((first_fence, _)) = found else { return true };
        // Blocks whose fence is the limit or above have no key below it.
        let last = if to_end { Bound::Unbounded } else { Bound::Excluded(limit) };
        let blocks = self.blocks.range::<[u8], _>((Bound::Included(&first_fence[..]), last));
        let arena = &*arena;
        direction.of_ascending(blocks).all(|(fence, block)| {
            let whole = block.records.len();
            let start = match from_start || fence != first_fence {
                true => 0,
                false => block.lower_bound(first, whole, arena),
            };
            // Keys of the block share a prefix. If the limit has it too, it may be among them; else it is after all of them.
            let prefix = fence.get(..block.skip).unwrap_or_default();
            let end = match to_end || !limit.starts_with(prefix) {
                true => whole,
                false => block.lower_bound(limit, whole, arena),
            };
            visit_records(block.records.get(start..end).unwrap_or_default(), direction, arena, visit)
        })
    }
}

/// Visits records of a block, some of which are fetched from memory together, until the visitor returns false; returns whether it
/// never did.
#[inline]
fn visit_records(
    records: &[u32],
    direction: Direction,
    arena: &Arena,
    visit: &mut impl FnMut(u32, &Arena) -> bool,
) -> bool {
    let fetch = |records: &[u32]| {
        black_box(records.iter().fold(0, |sum, record| sum ^ arena.touch(*record)));
    };
    match direction {
        Direction::Ascending => records.chunks(RECORDS_FETCHED).all(|records| {
            fetch(records);
            records.iter().all(|record| visit(*record, arena))
        }),
        Direction::Descending => records.rchunks(RECORDS_FETCHED).all(|records| {
            fetch(records);
            records.iter().rev().all(|record| visit(*record, arena))
        }),
    }
}

/// A short byte string above `left` and not above `right`.
fn separator(left: &[u8], right: &[u8]) -> Fence {
    debug_assert!(left < right, "keys ascend");
    Fence::from_slice(&right[..(common_prefix(left, right) + 1).min(right.len())])
}
