//! Random operations on a storage and on a naive model, which must agree.

use std::collections::BTreeMap;

use super::*;
use crate::hash::Digest;
use crate::storage::write_digests::{Change, write_digest};

/// Operations of one run.
const OPERATIONS: usize = 4000;

/// SplitMix64: the same numbers for the same seed, everywhere.
pub(super) struct Random(u64);

impl Random {
    /// A generator whose numbers are fixed by the seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` less one.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The versions of one key, in ascending order of positions; `None` is a deletion.
type Versions = Vec<(Position, Option<Vec<u8>>)>;

/// All versions ever written, by key.
#[derive(Default)]
struct Model {
    versions: BTreeMap<Vec<u8>, Versions>,
    /// Positions of the open snapshots, in the order of opening.
    snapshots: Vec<Position>,
    /// Digests of what was written and not taken.
    digests: BTreeMap<Epoch, Digest>,
    /// The scan of all records that was last begun, while its snapshot is open.
    record_scan: Option<RecordScan>,
}

/// A scan of all records under way, or at its end.
struct RecordScan {
    at: Position,
    cursor: Option<RecordCursor>,
    /// What has been visited.
    found: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    fn write(&mut self, key: &[u8], position: Position, row: Option<Vec<u8>>) {
        let change = row.as_deref().map_or(Change::Deletion, Change::Row);
        let digest = write_digest(position, key_hash(key), change);
        self.digests.entry(position.epoch).or_default().merge(digest);
        let versions = self.versions.entry(key.to_vec()).or_default();
        if versions.last().is_some_and(|(last, _)| *last == position) {
            versions.pop();
        }
        versions.push((position, row));
    }

    fn read(&self, key: &[u8], position: Position) -> Option<&Vec<u8>> {
        let versions = self.versions.get(key)?;
        versions.iter().rev().find(|(written, _)| *written <= position)?.1.as_ref()
    }

    fn scan(&self, range: &KeyRange, position: Position) -> Vec<(Vec<u8>, Vec<u8>)> {
        let keys = self.versions.keys().filter(|key| range.contains(key));
        keys.filter_map(|key| Some((key.clone(), self.read(key, position)?.clone()))).collect()
    }

    fn last_write(&self, key: &[u8]) -> Position {
        let last = self.versions.get(key).and_then(|versions| versions.last());
        last.map_or(Position::LOADED, |(position, _)| *position)
    }

    /// The least and the most garbage that there may be after a full collection. A deletion that is not the newest
    /// version, or that hides nothing, may be kept or not.
    fn garbage(&self) -> std::ops::RangeInclusive<usize> {
        let (mut least, mut most) = (0, 0);
        for versions in self.versions.values() {
            let seen = |pair: &[(Position, Option<Vec<u8>>)]| {
                self.snapshots.iter().any(|snapshot| pair[0].0 <= *snapshot && *snapshot < pair[1].0)
            };
            let kept: Vec<_> = versions.windows(2).filter(|pair| seen(pair)).collect();
            let rows = kept.iter().filter(|pair| pair[0].1.is_some()).count();
            let newest_deleted = versions.last().is_some_and(|(_, row)| row.is_none());
            least += rows + usize::from(newest_deleted && rows > 0);
            most += kept.len() + usize::from(newest_deleted && !kept.is_empty());
        }
        least..=most
    }
}

/// One run: a storage, the model, and where the order has come to.
struct Run<'a, S> {
    storage: &'a mut S,
    model: Model,
    random: Random,
    /// All positions written so far are at most this epoch.
    epoch: u64,
    keys: usize,
    seed: u64,
}

/// Does random operations on a storage and on the model and compares all results.
pub(super) fn agrees_with_the_naive_model<S: Storage>(storage: &mut S, seed: u64) {
    let mut random = Random::new(seed);
    // Few keys: long chains of versions. Many keys: wide indexes.
    let keys = [3, 40, 2000][random.below(3)];
    let mut run = Run { storage, model: Model::default(), random, epoch: 1, keys, seed };
    for _ in 0..OPERATIONS {
        run.operation();
    }
    while let Some(snapshot) = run.model.snapshots.pop() {
        run.storage.close_snapshot(snapshot);
    }
    run.collect_all_and_compare();
    let statistics = run.storage.statistics();
    assert_eq!(statistics.garbage, 0, "seed {seed}: all garbage can be collected without snapshots");
    let everything = range(&[], &[0xFF, 0xFF]);
    run.compare_scan(&everything, Position::LATEST);
    for key in run.model.versions.keys() {
        run.storage.delete(key, key_hash(key), at(u64::MAX));
    }
    assert_eq!(run.storage.statistics().record_bytes, 0, "seed {seed}: no record is left");
}

impl<S: Storage> Run<'_, S> {
    fn operation(&mut self) {
        self.epoch += self.random.below(2) as u64;
        match self.random.below(100) {
            0..30 => self.put(),
            30..50 => self.modify(),
            50..65 => self.delete(),
            65..76 => self.read(),
            76..80 => self.scan_records(),
            80..85 => self.scan(),
            85..88 => self.open_snapshot(),
            88..91 => self.close_snapshot(),
            91..97 => {
                let budget = self.random.below(8);
                self.storage.collect_garbage(budget);
            }
            97 => self.collect_all_and_compare(),
            98 => self.take_digests(),
            _ => self.digest(),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(self.keys);
        let table = (number % 3) as u16;
        // Of different lengths, with long common prefixes and with zeros inside.
        match number % 5 {
            0 => key_in(table, &format!("{number}")),
            1 => key_in(table, &format!("a long common prefix {number:06}")),
            2 => key_in(table, &format!("\0\0{number}\0")),
            3 => key_in(table, &"z".repeat(number % 40)),
            _ => number.to_be_bytes()[8 - 1 - number % 3..].to_vec(),
        }
    }

    fn row(&mut self) -> Vec<u8> {
        let length = [0, 8, 30, 100, 100, 3000][self.random.below(6)];
        let length = length + self.random.below(20);
        (0..length).map(|_| self.random.next() as u8).collect()
    }

    /// Where a transaction may write the key: late perhaps, but not before the key's last write.
    fn position(&mut self, key: &[u8]) -> Position {
        let epoch = self.epoch.saturating_sub(self.random.below(30) as u64);
        let position = Position {
            epoch: Epoch(epoch),
            origin: PartitionId(self.random.below(3) as u16),
            index: self.random.below(5) as u32,
        };
        // Not at or before the scan of all records, and not in an epoch whose digests were taken.
        let sealed = self.model.record_scan.as_ref().map_or(Position::LOADED, |scan| scan.at);
        position.max(self.model.last_write(key)).max(at(sealed.epoch.0 + 1))
    }

    /// Where to read: at the newest state or at a snapshot.
    fn view(&mut self) -> Position {
        let view = self.random.below(self.model.snapshots.len() + 1);
        self.model.snapshots.get(view).copied().unwrap_or(Position::LATEST)
    }

    fn put(&mut self) {
        let (key, row) = (self.key(), self.row());
        let position = self.position(&key);
        let record = self.storage.put(&key, key_hash(&key), &row, position);
        assert_eq!(self.storage.row(record), row, "seed {}: the row just put", self.seed);
        self.model.write(&key, position, Some(row));
    }

    fn modify(&mut self) {
        let key = self.key();
        let position = self.position(&key);
        let record = self.storage.locate(&key, key_hash(&key));
        let row = self.model.read(&key, Position::LATEST).cloned();
        assert_eq!(record.is_some(), row.is_some(), "seed {}: locate {key:?}", self.seed);
        let (Some(record), Some(mut row)) = (record, row) else { return };
        let byte = self.random.below(row.len() + 1);
        let bytes = self.storage.modify(record, position);
        if let (Some(in_model), Some(in_storage)) = (row.get_mut(byte), bytes.get_mut(byte)) {
            *in_model ^= 0xFF;
            *in_storage ^= 0xFF;
        }
        assert_eq!(self.storage.row(record), row, "seed {}: {key:?} just modified", self.seed);
        self.model.write(&key, position, Some(row));
    }

    fn delete(&mut self) {
        let key = self.key();
        let position = self.position(&key);
        self.storage.delete(&key, key_hash(&key), position);
        if self.model.read(&key, Position::LATEST).is_some() {
            self.model.write(&key, position, None);
        }
    }

    fn read(&mut self) {
        let (key, view) = (self.key(), self.view());
        let announced: Vec<u64> = (0..self.random.below(70)).map(|_| self.random.next()).collect();
        self.storage.prefetch(&announced);
        self.storage.prefetch(&[key_hash(&key), 0, u64::MAX]);
        let found = self.storage.get(&key, key_hash(&key), view);
        let expected = self.model.read(&key, view).map(Vec::as_slice);
        assert_eq!(found, expected, "seed {}: get of {key:?} at {view}", self.seed);
    }

    fn scan(&mut self) {
        let (start, end, view) = (self.key(), self.key(), self.view());
        self.compare_scan(&range(&start, &end), view);
    }

    fn compare_scan(&mut self, range: &KeyRange, view: Position) {
        let expected = self.model.scan(range, view);
        let found = rows(self.storage, range, view);
        assert_eq!(found, expected, "seed {}: scan of {range:?} at {view}", self.seed);
    }

    fn open_snapshot(&mut self) {
        if self.model.snapshots.len() < 8 {
            // The last position of the epoch, at which a write may still come.
            let snapshot = Position { origin: PartitionId(2), index: 4, ..at(self.epoch) };
            self.epoch += 1;
            self.storage.open_snapshot(snapshot);
            self.model.snapshots.push(snapshot);
        }
    }

    fn close_snapshot(&mut self) {
        if !self.model.snapshots.is_empty() {
            let closed = self.random.below(self.model.snapshots.len());
            let snapshot = self.model.snapshots.swap_remove(closed);
            self.storage.close_snapshot(snapshot);
            self.model.record_scan.take_if(|scan| scan.at == snapshot);
        }
    }

    /// Begins a scan of all records or does its next slice.
    fn scan_records(&mut self) {
        let ended = self.model.record_scan.as_ref().is_none_or(|scan| scan.cursor.is_none());
        if (ended || self.random.below(20) == 0) && !self.model.snapshots.is_empty() {
            let at = self.model.snapshots[self.random.below(self.model.snapshots.len())];
            let cursor = Some(RecordCursor::START);
            // All positions from now on are after it.
            self.epoch = self.epoch.max(at.epoch.0 + 1);
            self.model.record_scan = Some(RecordScan { at, cursor, found: BTreeMap::new() });
        }
        let budget_bytes = [0, 1000, 10_000, 100_000][self.random.below(4)];
        let Some(scan) = &mut self.model.record_scan else { return };
        let Some(cursor) = scan.cursor else { return };
        scan.cursor = self.storage.scan_records(scan.at, cursor, budget_bytes, &mut |key, row| {
            let before = scan.found.insert(key.to_vec(), row.to_vec());
            assert_eq!(before, None, "seed {}: {key:?} visited twice", self.seed);
        });
        if scan.cursor.is_none() {
            let (at, found) = (scan.at, std::mem::take(&mut scan.found));
            let expected = self.model.scan(&range(&[], &[0xFF, 0xFF]), at);
            let found: Vec<_> = found.into_iter().collect();
            assert!(found == expected, "seed {}: {} of {} records", self.seed, found.len(), expected.len());
        }
    }

    /// Takes the digests of epochs to which no write comes any more.
    fn take_digests(&mut self) {
        let through = Epoch(self.epoch.saturating_sub(30));
        let mut found = Vec::new();
        self.storage.take_epoch_digests(through, &mut found);
        let later = self.model.digests.split_off(&through.next());
        let expected: Vec<_> = std::mem::replace(&mut self.model.digests, later).into_iter().collect();
        assert_eq!(found, expected, "seed {}: digests through {through}", self.seed);
    }

    fn collect_all_and_compare(&mut self) {
        collect_all(self.storage);
        let statistics = self.storage.statistics();
        let expected = self.model.garbage();
        let seed = self.seed;
        let garbage = statistics.garbage;
        assert!(expected.contains(&garbage), "seed {seed}: {garbage} kept, but needed are {expected:?}");
        let rows = self.model.scan(&range(&[], &[0xFF, 0xFF]), Position::LATEST).len();
        assert_eq!(statistics.rows, rows, "seed {seed}: number of rows");
    }

    fn digest(&mut self) {
        let view = self.view();
        let include = |key: &[u8]| key.len().is_multiple_of(2);
        let mut expected = Digest::default();
        for (key, row) in self.model.scan(&range(&[], &[0xFF, 0xFF]), view) {
            if include(&key) {
                expected.add(&key, &row);
            }
        }
        assert_eq!(self.storage.digest(view, &include), expected, "seed {}: digest at {view}", self.seed);
    }
}
