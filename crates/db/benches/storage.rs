//! The storage in memory beside the plain floor, in one run: `cargo bench -p ordain-db --bench storage`.
//!
//! The floor is what the same work costs with keys inline in an open-addressing table, rows in one array, and nothing
//! else: no versions, no deletes, no sizes but one. Figures are medians; ratios compare with the floor's same pattern.
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]
#![allow(missing_docs, reason = "a benchmark has no interface")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use ordain_db::data::{Key, KeyRange};
use ordain_db::hash::key_hash;
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::memory::MemoryStorage;
use ordain_db::storage::{RecordId, Storage};

const ROW_BYTES: usize = 128;
const KEY_BYTES: usize = 10;
const KEYS_PER_TRANSACTION: usize = 10;
const SAMPLES: usize = 5;

/// Where the column that transactions change stands in the row.
const COLUMN: usize = 64;

/// Sizes of a run.
#[derive(Clone, Copy)]
struct Scale {
    rows: usize,
    transactions: usize,
}

fn key_of(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    key[2..].copy_from_slice(&(number ^ 1 << 63).to_be_bytes());
    key
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * end as u128) >> 64) as u64
    }
}

/// The plain floor.
struct Floor {
    /// Key and 1 + number of the row; 0 is empty.
    slots: Vec<([u8; KEY_BYTES], u32)>,
    rows: Vec<u8>,
}

impl Floor {
    fn new(rows: usize) -> Floor {
        Floor { slots: vec![([0; KEY_BYTES], 0); (rows * 4 / 3).next_power_of_two()], rows: Vec::new() }
    }

    fn slot(&self, key: &[u8; KEY_BYTES], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].1 != 0 && self.slots[at].0 != *key {
            at = (at + 1) & mask;
        }
        at
    }

    fn insert(&mut self, key: &[u8; KEY_BYTES], row: &[u8]) {
        self.rows.extend_from_slice(row);
        let at = self.slot(key, key_hash(key));
        self.slots[at] = (*key, (self.rows.len() / ROW_BYTES) as u32);
    }

    fn locate(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<usize> {
        (self.slots[self.slot(key, hash)].1 as usize).checked_sub(1)
    }

    fn row(&mut self, row: usize) -> &mut [u8] {
        &mut self.rows[row * ROW_BYTES..(row + 1) * ROW_BYTES]
    }
}

fn column(row: &[u8]) -> u64 {
    row[COLUMN..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn set_column(row: &mut [u8], value: u64) {
    row[COLUMN..COLUMN + 8].copy_from_slice(&value.to_le_bytes());
}

fn position(epoch: u64) -> Position {
    Position { epoch: Epoch(epoch), origin: PartitionId(0), index: 0 }
}

/// Median nanoseconds per operation of a function that does `operations` each time it is called.
fn measure(operations: usize, mut work: impl FnMut(u64)) -> f64 {
    let mut samples: Vec<f64> = (0..SAMPLES as u64 + 1)
        .map(|sample| {
            let start = Instant::now();
            work(sample + 1);
            start.elapsed().as_nanos() as f64 / operations as f64
        })
        .skip(1)
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[SAMPLES / 2]
}

fn print(name: &str, nanoseconds: f64, floor: Option<f64>) {
    let ratio = floor.map_or(String::new(), |floor| format!("{:>8.2}", nanoseconds / floor));
    println!("{name:<58}{nanoseconds:>10.1}{:>10.2}{ratio}", 1000.0 / nanoseconds);
}

/// Ten read-modify-writes, one after the other, on any storage.
fn one_by_one<S: Storage + ?Sized>(storage: &mut S, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    for transaction in 0..scale.transactions as u64 {
        let position = position(sample * scale.transactions as u64 + transaction);
        for _ in 0..KEYS_PER_TRANSACTION {
            let key = key_of(random.below(scale.rows));
            if let Some(record) = storage.locate(&key, key_hash(&key)) {
                let value = column(storage.row(record));
                set_column(storage.modify(record, position), value + 1);
            }
        }
    }
}

/// Ten look-ups, then ten read-modify-writes, so that the cache misses of the look-ups overlap.
fn locate_first<S: Storage + ?Sized>(storage: &mut S, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    for transaction in 0..scale.transactions as u64 {
        let position = position(sample * scale.transactions as u64 + transaction);
        let mut records = [None::<RecordId>; KEYS_PER_TRANSACTION];
        for record in &mut records {
            let key = key_of(random.below(scale.rows));
            *record = storage.locate(&key, key_hash(&key));
        }
        for record in records.into_iter().flatten() {
            let value = column(storage.row(record));
            set_column(storage.modify(record, position), value + 1);
        }
    }
}

fn floor_one_by_one(floor: &mut Floor, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    for _ in 0..scale.transactions * KEYS_PER_TRANSACTION {
        let key = key_of(random.below(scale.rows));
        if let Some(row) = floor.locate(&key, key_hash(&key)) {
            let row = floor.row(row);
            set_column(row, column(row) + 1);
        }
    }
}

fn floor_locate_first(floor: &mut Floor, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    for _ in 0..scale.transactions {
        let mut rows = [None; KEYS_PER_TRANSACTION];
        for row in &mut rows {
            let key = key_of(random.below(scale.rows));
            *row = floor.locate(&key, key_hash(&key));
        }
        for row in rows.into_iter().flatten() {
            let row = floor.row(row);
            set_column(row, column(row) + 1);
        }
    }
}

fn read<S: Storage + ?Sized>(storage: &S, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    let mut sum = 0_u64;
    for _ in 0..scale.transactions * KEYS_PER_TRANSACTION {
        let key = key_of(random.below(scale.rows));
        sum += storage.get(&key, key_hash(&key), Position::LATEST).map_or(0, column);
    }
    black_box(sum);
}

fn floor_read(floor: &mut Floor, scale: Scale, sample: u64) {
    let mut random = Random(sample);
    let mut sum = 0_u64;
    for _ in 0..scale.transactions * KEYS_PER_TRANSACTION {
        let key = key_of(random.below(scale.rows));
        sum += floor.locate(&key, key_hash(&key)).map_or(0, |row| column(floor.row(row)));
    }
    black_box(sum);
}

/// Row numbers in a fixed random order.
fn shuffled(rows: usize) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..rows as u64).collect();
    let mut random = Random(0);
    for last in (1..rows).rev() {
        numbers.swap(last, random.below(last + 1) as usize);
    }
    numbers
}

fn loaded(numbers: &[u64]) -> MemoryStorage {
    let mut storage = MemoryStorage::new();
    for number in numbers {
        let key = key_of(*number);
        storage.put(&key, key_hash(&key), &[0x5A; ROW_BYTES], Position::LOADED);
    }
    storage
}

fn loaded_floor(numbers: &[u64], room: usize) -> Floor {
    let mut floor = Floor::new(room);
    numbers.iter().for_each(|number| floor.insert(&key_of(*number), &[0; ROW_BYTES]));
    floor
}

fn range(start: u64, end: u64) -> KeyRange {
    KeyRange { start: Key::from_bytes(&key_of(start)), end: Key::from_bytes(&key_of(end)) }
}

fn scan<S: Storage + ?Sized>(storage: &mut S, start: u64, rows: usize) {
    let mut sum = 0;
    storage.scan(&range(start, start + rows as u64), Position::LATEST, &mut |_, row| {
        sum += column(row);
        ControlFlow::Continue(())
    });
    black_box(sum);
}

fn benchmark_transactions(scale: Scale, numbers: &[u64]) {
    let operations = scale.transactions * KEYS_PER_TRANSACTION;
    let mut floor = loaded_floor(numbers, scale.rows);
    let mut storage = loaded(numbers);
    let floor_one = measure(operations, |sample| floor_one_by_one(&mut floor, scale, sample));
    let floor_first = measure(operations, |sample| floor_locate_first(&mut floor, scale, sample));
    let floor_get = measure(operations, |sample| floor_read(&mut floor, scale, sample));
    print("floor: read-modify-write", floor_one, None);
    print("floor: read-modify-write, locate ten first", floor_first, None);
    print("floor: get", floor_get, None);
    let direct = measure(operations, |sample| one_by_one(&mut storage, scale, sample));
    print("memory: read-modify-write", direct, Some(floor_one));
    let direct = measure(operations, |sample| locate_first(&mut storage, scale, sample + 100));
    print("memory: read-modify-write, locate ten first", direct, Some(floor_first));
    let direct = measure(operations, |sample| read(&storage, scale, sample));
    print("memory: get", direct, Some(floor_get));
    let dynamic: &mut dyn Storage = black_box(&mut storage);
    let through = measure(operations, |sample| one_by_one(dynamic, scale, sample + 200));
    print("dyn memory: read-modify-write", through, Some(floor_one));
    let through = measure(operations, |sample| locate_first(dynamic, scale, sample + 300));
    print("dyn memory: read-modify-write, locate ten first", through, Some(floor_first));
    let through = measure(operations, |sample| read(dynamic, scale, sample));
    print("dyn memory: get", through, Some(floor_get));
    dynamic.open_snapshot(Position { epoch: Epoch(1 << 40), ..position(0) });
    let through = measure(operations, |sample| locate_first(dynamic, scale, sample + 400));
    print("  the same, a snapshot open that sees every write", through, Some(floor_first));
    dynamic.close_snapshot(Position { epoch: Epoch(1 << 40), ..position(0) });
}

/// Every transaction batch overwrites a snapshot: versions are kept and collected.
fn benchmark_versions(scale: Scale, numbers: &[u64]) {
    let mut storage = loaded(numbers);
    let operations = scale.transactions * KEYS_PER_TRANSACTION;
    let through = measure(operations, |sample| {
        let snapshot = position(sample * scale.transactions as u64 - 1);
        storage.open_snapshot(snapshot);
        locate_first(&mut storage, scale, sample);
        storage.close_snapshot(snapshot);
        while storage.collect_garbage(1000) > 0 {}
    });
    print("read-modify-write that keeps versions, and their collection", through, None);
    println!("{:?}", storage.statistics());
}

fn benchmark_inserts(scale: Scale, numbers: &[u64]) {
    let floor = measure(scale.rows, |_| drop(black_box(loaded_floor(numbers, scale.rows))));
    print("floor: insert, room set aside beforehand", floor, None);
    let insert = measure(scale.rows, |_| drop(black_box(loaded(numbers))));
    print("insert into a growing storage", insert, Some(floor));
    let mut storage = loaded(numbers);
    let row = [0xA5; ROW_BYTES];
    let replace = measure(scale.rows, |sample| {
        for number in numbers {
            let key = key_of(*number);
            storage.put(&key, key_hash(&key), &row, position(sample));
        }
    });
    print("replace by put", replace, None);
    let churn = measure(scale.rows, |sample| {
        for number in numbers {
            let key = key_of(*number);
            storage.delete(&key, key_hash(&key), position(100 + sample));
            storage.put(&key, key_hash(&key), &row, position(100 + sample));
        }
    });
    print("delete and insert, never scanned", churn, None);
    scan(&mut storage, 0, 1);
    let churn = measure(scale.rows, |sample| {
        for (place, number) in numbers.iter().enumerate() {
            let key = key_of(*number);
            storage.delete(&key, key_hash(&key), position(200 + sample));
            storage.put(&key, key_hash(&key), &row, position(200 + sample));
            if place % 100 == 99 {
                scan(&mut storage, *number, 1);
            }
        }
    });
    print("delete and insert, ordered, a scan every 100", churn, None);
}

fn benchmark_scans(scale: Scale, numbers: &[u64]) {
    let mut storages: Vec<MemoryStorage> = (0..SAMPLES + 1).map(|_| loaded(numbers)).collect();
    let first = measure(scale.rows, |sample| scan(&mut storages[sample as usize - 1], 0, 1));
    print("first scan of a table: ordering, per row", first, None);
    let storage = &mut storages[0];
    let whole = measure(scale.rows, |_| scan(storage, 0, scale.rows));
    print("scan of the whole table, rows in random places, per row", whole, None);
    let short = measure(scale.transactions, |sample| {
        let mut random = Random(sample);
        for _ in 0..scale.transactions {
            scan(storage, random.below(scale.rows), 20);
        }
    });
    print("scan of 20 rows, per scan", short, None);
    let digest = measure(scale.rows, |_| drop(black_box(storage.digest(Position::LATEST, &|_| true))));
    print("digest, per row", digest, None);
    let mut appended = 0;
    let mut ordered = loaded(&[]);
    let append = measure(scale.rows, |_| {
        for _ in 0..scale.rows {
            let key = key_of(appended);
            ordered.put(&key, key_hash(&key), &[1; ROW_BYTES], Position::LOADED);
            appended += 1;
            if appended.is_multiple_of(10) {
                scan(&mut ordered, appended - 10, 10);
            }
        }
    });
    print("append, the last 10 scanned after every 10, per row", append, None);
}

fn main() {
    // `cargo bench` passes `--bench`; as a test, run only far enough to see that it works.
    let full = std::env::args().any(|argument| argument == "--bench");
    let scale = match full {
        true => Scale { rows: 1_000_000, transactions: 200_000 },
        false => Scale { rows: 1000, transactions: 100 },
    };
    let numbers = shuffled(scale.rows);
    println!(
        "{:<58}{:>10}{:>10}{:>8}",
        format!("{} rows of {ROW_BYTES} bytes", scale.rows),
        "ns",
        "M/s",
        "ratio"
    );
    benchmark_transactions(scale, &numbers);
    benchmark_versions(scale, &numbers);
    benchmark_inserts(scale, &numbers);
    benchmark_scans(scale, &numbers);
}
