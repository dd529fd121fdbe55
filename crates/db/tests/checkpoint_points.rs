//! Checkpoints that are taken while transactions on both sides of the point write: each is the state at the point, as if one
//! thread had executed the order up to there and stopped (Calvin §5; CAL-86, CAL-91 to CAL-95, CAL-99, CAL-100).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use ordain_db::checkpoint::{
    Checkpoint, CheckpointHeader, CheckpointIdentity, CheckpointReader, CheckpointSummary, CheckpointWriter,
};
use ordain_db::hash::{Digest, key_hash};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::memory::MemoryStorage;
use ordain_db::storage::{RecordCursor, Storage};
use proptest::prelude::*;
use proptest::test_runner::TestRng;

/// The point is the end of this epoch.
const POINT: Epoch = Epoch(10);

const HEADER: CheckpointHeader = CheckpointHeader {
    identity: CheckpointIdentity { cluster: 9, partition: PartitionId(0), partitions: 1 },
    epoch: POINT,
    log_index: 100,
};

type Rows = BTreeMap<u8, Vec<u8>>;

/// A write of a transaction.
#[derive(Clone, Debug)]
struct Write {
    key: u8,
    position: Position,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>),
    /// Changes the first byte, if there is a row that has one.
    Modify(u8),
    Delete,
}

fn key_of(number: u8) -> [u8; 3] {
    [0, 1, number]
}

impl Write {
    fn apply(&self, storage: &mut MemoryStorage) {
        let key = key_of(self.key);
        let hash = key_hash(&key);
        match &self.change {
            Change::Put(row) => {
                storage.put(&key, hash, row, self.position);
            }
            Change::Modify(byte) => {
                if let Some(record) = storage.locate(&key, hash)
                    && let Some(first) = storage.modify(record, self.position).first_mut()
                {
                    *first = *byte;
                }
            }
            Change::Delete => storage.delete(&key, hash, self.position),
        }
    }

    fn apply_to_rows(&self, rows: &mut Rows) {
        match &self.change {
            Change::Put(row) => {
                rows.insert(self.key, row.clone());
            }
            Change::Modify(byte) => {
                if let Some(first) = rows.get_mut(&self.key).and_then(|row| row.first_mut()) {
                    *first = *byte;
                }
            }
            Change::Delete => {
                rows.remove(&self.key);
            }
        }
    }

    fn is_before(&self) -> bool {
        self.position <= HEADER.position()
    }
}

fn change() -> impl Strategy<Value = Change> {
    let row = (any::<u8>(), prop_oneof![Just(1), Just(90), Just(300), Just(1500)]);
    prop_oneof![
        3 => row.prop_map(|(byte, length)| Change::Put(vec![byte; length])),
        2 => any::<u8>().prop_map(Change::Modify),
        1 => Just(Change::Delete),
    ]
}

/// Writes in the order of positions, half of them after the point.
fn order() -> impl Strategy<Value = Vec<Write>> {
    let write = (0..40_u8, 1..20_u64, 0..3_u32, change());
    prop::collection::vec(write, 0..400).prop_map(|writes| {
        let mut order: Vec<Write> = writes
            .into_iter()
            .map(|(key, epoch, index, change)| {
                let position = Position { epoch: Epoch(epoch), origin: PartitionId(0), index };
                Write { key, position, change }
            })
            .collect();
        order.sort_by_key(|write| write.position);
        order
    })
}

/// Lays writes in another order, as engines do: those of one key keep theirs.
fn interleave(order: &[Write], random: &mut TestRng) -> Vec<Write> {
    let mut by_key: BTreeMap<u8, Vec<Write>> = BTreeMap::new();
    order.iter().rev().for_each(|write| by_key.entry(write.key).or_default().push(write.clone()));
    let mut interleaved = Vec::new();
    while !by_key.is_empty() {
        let chosen = random.random_range(0..by_key.len());
        let key = *by_key.keys().nth(chosen).unwrap();
        let writes = by_key.get_mut(&key).unwrap();
        interleaved.extend(writes.pop());
        if writes.is_empty() {
            by_key.remove(&key);
        }
    }
    interleaved
}

/// The state that one thread reaches.
fn oracle<'a>(order: impl IntoIterator<Item = &'a Write>) -> Rows {
    let mut rows = Rows::new();
    order.into_iter().for_each(|write| write.apply_to_rows(&mut rows));
    rows
}

fn digest_of(rows: &Rows) -> Digest {
    let mut digest = Digest::default();
    rows.iter().for_each(|(key, row)| digest.add(&key_of(*key), row));
    digest
}

/// Writes all rows in slices, with writes in between; returns the bytes.
fn take(
    storage: &mut MemoryStorage,
    budget_bytes: usize,
    between: &mut dyn FnMut(&mut MemoryStorage),
) -> (Vec<u8>, CheckpointSummary) {
    let mut writer = CheckpointWriter::new(HEADER);
    let mut cursor = Some(RecordCursor::START);
    while let Some(from) = cursor {
        cursor = writer.write_rows(storage, from, budget_bytes);
        between(storage);
    }
    let finished = writer.finish();
    (finished.chunks.into_iter().collect::<Vec<_>>().concat(), finished.summary)
}

fn load(bytes: &[u8]) -> Checkpoint<MemoryStorage> {
    let mut reader = CheckpointReader::new(Box::new(MemoryStorage::new()), HEADER.identity);
    reader.push(bytes).unwrap();
    reader.finish().unwrap()
}

fn rows_of(storage: &MemoryStorage) -> Rows {
    let keys = 0..=u8::MAX;
    let row = |key: &u8| storage.get(&key_of(*key), key_hash(&key_of(*key)), Position::LATEST);
    keys.filter_map(|key| Some((key, row(&key)?.to_vec()))).collect()
}

fn digests_after_the_point(storage: &mut MemoryStorage) -> Vec<(Epoch, Digest)> {
    let mut digests = Vec::new();
    storage.take_epoch_digests(Epoch(u64::MAX), &mut digests);
    digests.retain(|(epoch, _)| *epoch > POINT);
    digests
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Writers before and after the point run at once; the checkpoint is taken in slices while those after it go on.
    #[test]
    fn a_checkpoint_is_the_state_at_its_point(
        order in order(),
        budget_bytes in prop_oneof![Just(0_usize), Just(200), Just(3000), Just(usize::MAX)],
        writes_per_slice in 0..30_usize,
        mut random in any::<()>().prop_perturb(|(), random| random),
    ) {
        let interleaved = interleave(&order, &mut random);
        let mut storage = MemoryStorage::new();
        // What no later transaction has begun to write over yet: the snapshot is opened as late as can be.
        let first_after = interleaved.iter().position(|write| !write.is_before()).unwrap_or(interleaved.len());
        let last_before = interleaved.iter().rposition(Write::is_before).map_or(0, |last| last + 1);
        interleaved[..first_after].iter().for_each(|write| write.apply(&mut storage));
        storage.open_snapshot(HEADER.position());
        // CAL-91 and CAL-92: both kinds at once, and no pause between them.
        let mixed = first_after..last_before.max(first_after);
        interleaved[mixed.clone()].iter().for_each(|write| write.apply(&mut storage));
        // CAL-93: the checkpoint is begun when the last of those before the point has written.
        let mut after = interleaved[mixed.end..].iter();
        let (bytes, summary) = take(&mut storage, budget_bytes, &mut |storage| {
            after.by_ref().take(writes_per_slice).for_each(|write| write.apply(storage));
            storage.collect_garbage(3);
        });
        after.for_each(|write| write.apply(&mut storage));
        let expected = oracle(order.iter().filter(|write| write.is_before()));
        let mut checkpoint = load(&bytes);
        prop_assert_eq!(rows_of(&checkpoint.storage), expected.clone(), "the state at the point");
        prop_assert_eq!((summary.digest, summary.rows), (digest_of(&expected), expected.len() as u64));

        // CAL-86: a replica that stops at the point makes the same checkpoint, but for the order of the rows.
        let mut frozen = MemoryStorage::new();
        order.iter().filter(|write| write.is_before()).for_each(|write| write.apply(&mut frozen));
        frozen.open_snapshot(HEADER.position());
        prop_assert_eq!(take(&mut frozen, usize::MAX, &mut |_| {}).1, summary);

        // CAL-94: nothing is kept afterwards. The same writes without a checkpoint use the same memory.
        storage.close_snapshot(HEADER.position());
        while storage.collect_garbage(7) > 0 {}
        let mut plain = MemoryStorage::new();
        interleaved.iter().for_each(|write| write.apply(&mut plain));
        let (kept, needed) = (storage.statistics(), plain.statistics());
        prop_assert_eq!((kept.rows, kept.garbage, kept.record_bytes), (needed.rows, 0, needed.record_bytes));

        // CAL-100: replay of what comes after the point, in an order of its own, ends in the same state.
        let rest: Vec<Write> = order.iter().filter(|write| !write.is_before()).cloned().collect();
        interleave(&rest, &mut random).iter().for_each(|write| write.apply(&mut checkpoint.storage));
        prop_assert_eq!(rows_of(&checkpoint.storage), oracle(&order));
        prop_assert_eq!(digests_after_the_point(&mut checkpoint.storage), digests_after_the_point(&mut storage));
    }
}

fn write(key: u8, epoch: u64, change: Change) -> Write {
    Write { key, position: Position { epoch: Epoch(epoch), origin: PartitionId(0), index: 0 }, change }
}

fn put(key: u8, epoch: u64, row: &str) -> Write {
    write(key, epoch, Change::Put(row.into()))
}

/// The rows that a checkpoint has, as text.
fn checkpointed(storage: &mut MemoryStorage) -> Vec<(u8, String)> {
    let (bytes, _) = take(storage, 0, &mut |_| {});
    let rows = rows_of(&load(&bytes).storage);
    rows.into_iter().map(|(key, row)| (key, String::from_utf8(row).unwrap())).collect()
}

#[test]
fn inserts_after_the_point_are_left_out_and_deletes_after_it_too() {
    let mut storage = MemoryStorage::new();
    for key in [1, 2, 3] {
        put(key, 5, "before").apply(&mut storage);
    }
    storage.open_snapshot(HEADER.position());
    put(9, 11, "inserted after").apply(&mut storage);
    write(1, 11, Change::Delete).apply(&mut storage);
    write(2, 11, Change::Delete).apply(&mut storage);
    put(2, 12, "inserted again, and longer than it was before the point").apply(&mut storage);
    // Transactions before the point, of other keys, while those after it have written theirs.
    write(3, 10, Change::Delete).apply(&mut storage);
    put(4, 10, "inserted before").apply(&mut storage);
    put(4, 11, "replaced after").apply(&mut storage);
    let statistics = storage.statistics();
    assert_eq!(statistics.rows, 3, "now there are 2, 4 and 9");
    assert_eq!(statistics.garbage, 4, "three before-copies and the tombstone of 1");
    let expected = [(1, "before"), (2, "before"), (4, "inserted before")];
    assert_eq!(checkpointed(&mut storage), expected.map(|(key, row)| (key, row.to_owned())));
}

#[test]
fn a_record_has_one_copy_before_the_point_however_often_it_is_written() {
    let mut storage = MemoryStorage::new();
    put(1, 10, "before").apply(&mut storage);
    let level = storage.statistics();
    storage.open_snapshot(HEADER.position());
    for epoch in 11..100 {
        put(1, epoch, "after!").apply(&mut storage);
        assert_eq!(storage.statistics().garbage, 1, "before and after, and no more");
    }
    assert_eq!(checkpointed(&mut storage), [(1, "before".to_owned())]);
    storage.close_snapshot(HEADER.position());
    storage.collect_garbage(1);
    assert_eq!(storage.statistics(), level);
    put(1, 101, "later!").apply(&mut storage);
    assert_eq!(storage.statistics(), level, "one copy until the next checkpoint");
}

#[test]
#[should_panic(expected = "a write at e10.p0.0 comes after the scan of all records at e10")]
fn what_is_before_the_point_is_sealed_when_the_checkpoint_begins() {
    let mut storage = MemoryStorage::new();
    storage.open_snapshot(HEADER.position());
    take(&mut storage, usize::MAX, &mut |_| {});
    put(1, 10, "too late").apply(&mut storage);
}

#[test]
#[should_panic(expected = "a write at e10.p0.0 comes after the scan of all records at e10")]
fn a_row_that_is_there_is_sealed_too() {
    let mut storage = MemoryStorage::new();
    put(1, 5, "old").apply(&mut storage);
    storage.open_snapshot(HEADER.position());
    take(&mut storage, usize::MAX, &mut |_| {});
    write(1, 10, Change::Modify(b'O')).apply(&mut storage);
}

#[test]
#[should_panic(expected = "writes of one key ascend")]
fn a_transaction_before_the_point_never_comes_to_a_key_after_one_behind_it() {
    let mut storage = MemoryStorage::new();
    put(1, 5, "old").apply(&mut storage);
    storage.open_snapshot(HEADER.position());
    put(1, 11, "after").apply(&mut storage);
    put(1, 10, "before").apply(&mut storage);
}

#[test]
#[should_panic(expected = "no snapshot is open")]
fn a_checkpoint_needs_its_snapshot() {
    take(&mut MemoryStorage::new(), usize::MAX, &mut |_| {});
}

#[test]
#[should_panic(expected = "the scan is at")]
fn a_scan_goes_on_where_it_was() {
    let mut storage = MemoryStorage::new();
    (0..9).for_each(|key| put(key, 1, "row").apply(&mut storage));
    storage.open_snapshot(HEADER.position());
    let first = storage.scan_records(HEADER.position(), RecordCursor::START, 0, &mut |_, _| {}).unwrap();
    storage.scan_records(HEADER.position(), first, 0, &mut |_, _| {});
    storage.scan_records(HEADER.position(), first, 0, &mut |_, _| {});
}
