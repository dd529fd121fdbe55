//! The storage in memory beside the plain floor, in one run: `cargo bench -p ordain-db --bench storage`.
//!
//! The floor is what the same work costs with keys inline in an open-addressing table, rows in one array, and nothing
//! else: no versions, no deletes, no sizes but one. Figures are medians. A ratio compares with what the floor takes for the
//! same pattern of accesses, "plain" with what it takes when it visits one row after the other.
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]
#![allow(missing_docs, reason = "a benchmark has no interface")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use ordain_db::data::{Direction, Key, KeyRange};
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

/// A key and its hash. An engine has both in memory long before it touches the row. (Keys that were written just before
/// they are read would measure stalls of the store buffer, not the storage.)
#[derive(Clone, Copy)]
struct Access {
    hash: u64,
    key: [u8; KEY_BYTES],
}

type Transaction = [Access; KEYS_PER_TRANSACTION];

/// Sizes of a run.
#[derive(Clone, Copy)]
struct Scale {
    rows: usize,
    transactions: usize,
}

/// What transactions do.
struct Work {
    transactions: Vec<Transaction>,
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

fn prepare(scale: Scale) -> Vec<Transaction> {
    let mut random = Random(1);
    let mut access = |_| {
        let key = key_of(random.below(scale.rows));
        Access { hash: key_hash(&key), key }
    };
    (0..scale.transactions).map(|_| std::array::from_fn(&mut access)).collect()
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

/// What the floor and the storages are asked, so that the same code measures both.
trait Rows {
    fn prefetch(&self, hashes: &[u64]);
    fn locate(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<RecordId>;
    fn row(&self, record: RecordId) -> &[u8];
    fn get(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<&[u8]>;
    fn modify(&mut self, record: RecordId, position: Position) -> &mut [u8];
}

impl Rows for Floor {
    fn prefetch(&self, hashes: &[u64]) {
        let mask = self.slots.len() - 1;
        let rows = |hash: &u64| self.slots[*hash as usize & mask].1 as usize;
        black_box(hashes.iter().fold(0, |sum, hash| sum ^ rows(hash)));
        let byte = |row: usize| self.rows.get(row.wrapping_sub(1) * ROW_BYTES + COLUMN).copied().unwrap_or(0);
        black_box(hashes.iter().fold(0, |sum, hash| sum ^ byte(rows(hash))));
    }

    fn locate(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<RecordId> {
        self.slots[self.slot(key, hash)].1.checked_sub(1).map(RecordId)
    }

    fn row(&self, record: RecordId) -> &[u8] {
        &self.rows[record.0 as usize * ROW_BYTES..][..ROW_BYTES]
    }

    fn get(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<&[u8]> {
        Rows::locate(self, key, hash).map(|record| Rows::row(self, record))
    }

    fn modify(&mut self, record: RecordId, _: Position) -> &mut [u8] {
        &mut self.rows[record.0 as usize * ROW_BYTES..][..ROW_BYTES]
    }
}

impl<S: Storage + ?Sized> Rows for S {
    fn prefetch(&self, hashes: &[u64]) {
        Storage::prefetch(self, hashes);
    }

    fn locate(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<RecordId> {
        Storage::locate(self, key, hash)
    }

    fn row(&self, record: RecordId) -> &[u8] {
        Storage::row(self, record)
    }

    fn get(&self, key: &[u8; KEY_BYTES], hash: u64) -> Option<&[u8]> {
        Storage::get(self, key, hash, Position::LATEST)
    }

    fn modify(&mut self, record: RecordId, position: Position) -> &mut [u8] {
        Storage::modify(self, record, position)
    }
}

/// How the ten keys of a transaction are visited.
#[derive(Clone, Copy)]
enum Pattern {
    OneByOne,
    LocateFirst,
    /// Prefetch for so many transactions at a time, then one by one.
    Prefetch(usize),
    GetOneByOne,
    /// Prefetch for so many transactions at a time, then get one by one.
    GetPrefetched(usize),
}

const PATTERNS: [(Pattern, &str); 7] = [
    (Pattern::OneByOne, "read-modify-write"),
    (Pattern::LocateFirst, "read-modify-write, ten located first"),
    (Pattern::Prefetch(1), "read-modify-write, prefetched per transaction"),
    (Pattern::Prefetch(5), "read-modify-write, prefetched per 5 transactions"),
    (Pattern::GetOneByOne, "get"),
    (Pattern::GetPrefetched(1), "get, prefetched per transaction"),
    (Pattern::GetPrefetched(5), "get, prefetched per 5 transactions"),
];

fn read_modify_write<R: Rows + ?Sized>(rows: &mut R, record: RecordId, position: Position) {
    let value = column(rows.row(record));
    set_column(rows.modify(record, position), value + 1);
}

fn prefetch<R: Rows + ?Sized>(rows: &R, transactions: &[Transaction]) {
    let mut hashes = [0; 100];
    let accesses = transactions.iter().flatten();
    hashes.iter_mut().zip(accesses).for_each(|(hash, access)| *hash = access.hash);
    rows.prefetch(&hashes[..transactions.len() * KEYS_PER_TRANSACTION]);
}

/// Runs all transactions on the floor or a storage. Returns nanoseconds per access.
fn run<R: Rows + ?Sized>(rows: &mut R, work: &Work, pattern: Pattern, first: &mut u64) -> f64 {
    let start = Instant::now();
    let mut sum = 0_u64;
    let group = match pattern {
        Pattern::Prefetch(group) | Pattern::GetPrefetched(group) => group,
        _ => 1,
    };
    for transactions in work.transactions.chunks(group) {
        if matches!(pattern, Pattern::Prefetch(_) | Pattern::GetPrefetched(_)) {
            prefetch(rows, transactions);
        }
        for transaction in transactions {
            *first += 1;
            let position = position(*first);
            match pattern {
                Pattern::OneByOne | Pattern::Prefetch(_) => {
                    for access in transaction {
                        let record = rows.locate(&access.key, access.hash);
                        record.into_iter().for_each(|record| read_modify_write(rows, record, position));
                    }
                }
                Pattern::LocateFirst => {
                    let records = transaction.map(|access| rows.locate(&access.key, access.hash));
                    records
                        .into_iter()
                        .flatten()
                        .for_each(|record| read_modify_write(rows, record, position));
                }
                Pattern::GetOneByOne | Pattern::GetPrefetched(_) => {
                    for access in transaction {
                        sum += rows.get(&access.key, access.hash).map_or(0, column);
                    }
                }
            }
        }
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / (work.transactions.len() * KEYS_PER_TRANSACTION) as f64
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Median nanoseconds per operation of a function that does `operations` each time it is called.
fn measure(operations: usize, mut work: impl FnMut(u64)) -> f64 {
    let sample = |sample| {
        let start = Instant::now();
        work(sample + 1);
        start.elapsed().as_nanos() as f64 / operations as f64
    };
    median((0..SAMPLES as u64 + 1).map(sample).skip(1))
}

/// Prints a line: nanoseconds, millions per second, ratio to the floor's same work and to its plain work.
fn print(name: &str, nanoseconds: f64, ratios: &[f64]) {
    let ratios: String = ratios.iter().map(|ratio| format!("{ratio:>8.2}")).collect();
    println!("{name:<62}{nanoseconds:>8.1}{:>8.2}{ratios}", 1000.0 / nanoseconds);
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
    storage.scan(
        &range(start, start + rows as u64),
        Direction::Ascending,
        Position::LATEST,
        &mut |_, row| {
            sum += column(row);
            ControlFlow::Continue(())
        },
    );
    black_box(sum);
}

fn benchmark_transactions(work: &Work, numbers: &[u64]) {
    let mut floor = loaded_floor(numbers, numbers.len());
    let mut storage = loaded(numbers);
    let mut first = 0;
    for (pattern, name) in PATTERNS {
        let plain = match pattern {
            Pattern::GetOneByOne | Pattern::GetPrefetched(_) => Pattern::GetOneByOne,
            _ => Pattern::OneByOne,
        };
        // They take turns, so that what else the machine does meets all of them.
        let mut samples = [const { Vec::new() }; 4];
        for _ in 0..SAMPLES {
            samples[0].push(run(&mut floor, work, plain, &mut first));
            samples[1].push(run(&mut floor, work, pattern, &mut first));
            samples[2].push(run(&mut storage, work, pattern, &mut first));
            let dynamic: &mut dyn Storage = black_box(&mut storage);
            samples[3].push(run(dynamic, work, pattern, &mut first));
        }
        let [plain, floor, direct, dynamic] = samples;
        let over =
            |base: &[f64], samples: &[f64]| median(samples.iter().zip(base).map(|(own, base)| own / base));
        for (who, own) in [("floor ", &floor), ("direct", &direct), ("dyn   ", &dynamic)] {
            let ratios = [over(&floor, own), over(&plain, own)];
            print(&format!("{who} {name}"), median(own.iter().copied()), &ratios);
        }
    }
    benchmark_versions(work, &mut storage, &mut first);
}

fn benchmark_versions(work: &Work, storage: &mut MemoryStorage, first: &mut u64) {
    let accesses = work.transactions.len() * KEYS_PER_TRANSACTION;
    let snapshot = position(1 << 40);
    storage.open_snapshot(snapshot);
    let unseen = measure(accesses, |_| {
        run(storage, work, Pattern::Prefetch(5), first);
    });
    print("the same with a snapshot that sees every write", unseen, &[]);
    storage.close_snapshot(snapshot);
    let kept = measure(accesses, |_| {
        let snapshot = position(*first);
        storage.open_snapshot(snapshot);
        run(storage, work, Pattern::Prefetch(5), first);
        storage.close_snapshot(snapshot);
        while storage.collect_garbage(1000) > 0 {}
    });
    print("the same, every version kept for a snapshot, and collected", kept, &[]);
    println!("{:?}", storage.statistics());
}

fn benchmark_inserts(scale: Scale, numbers: &[u64]) {
    let floor = measure(scale.rows, |_| drop(black_box(loaded_floor(numbers, scale.rows))));
    print("floor: insert, room set aside beforehand", floor, &[]);
    let insert = measure(scale.rows, |_| drop(black_box(loaded(numbers))));
    print("insert into a growing storage", insert, &[insert / floor]);
    let mut storage = loaded(numbers);
    let row = [0xA5; ROW_BYTES];
    let replace = measure(scale.rows, |sample| {
        for number in numbers {
            let key = key_of(*number);
            storage.put(&key, key_hash(&key), &row, position(sample));
        }
    });
    print("replace by put", replace, &[]);
    let churn = measure(scale.rows, |sample| {
        for number in numbers {
            let key = key_of(*number);
            storage.delete(&key, key_hash(&key), position(100 + sample));
            storage.put(&key, key_hash(&key), &row, position(100 + sample));
        }
    });
    print("delete and insert, never scanned", churn, &[]);
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
    print("delete and insert, ordered, a scan every 100", churn, &[]);
}

fn benchmark_scans(scale: Scale, numbers: &[u64]) {
    let mut storages: Vec<MemoryStorage> = (0..SAMPLES + 1).map(|_| loaded(numbers)).collect();
    let first = measure(scale.rows, |sample| scan(&mut storages[sample as usize - 1], 0, 1));
    print("first scan of a table: ordering, per row", first, &[]);
    let storage = &mut storages[0];
    let whole = measure(scale.rows, |_| scan(storage, 0, scale.rows));
    print("scan of the whole table, rows in random places, per row", whole, &[]);
    let short = measure(scale.transactions, |sample| {
        let mut random = Random(sample);
        for _ in 0..scale.transactions {
            scan(storage, random.below(scale.rows), 20);
        }
    });
    print("scan of 20 rows, per scan", short, &[]);
    let digest = measure(scale.rows, |_| {
        black_box(storage.digest(Position::LATEST, &|_| true));
    });
    print("digest, per row", digest, &[]);
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
    print("append, the last 10 scanned after every 10, per row", append, &[]);
}

fn main() {
    // `cargo bench` passes `--bench`; as a test, run only far enough to see that it works.
    let full = std::env::args().any(|argument| argument == "--bench");
    let scale = match full {
        true => Scale { rows: 1_000_000, transactions: 200_000 },
        false => Scale { rows: 1000, transactions: 100 },
    };
    let numbers = shuffled(scale.rows);
    let title = format!("{} rows of {ROW_BYTES} bytes, per access", scale.rows);
    println!("{title:<62}{:>8}{:>8}{:>8}{:>8}", "ns", "M/s", "ratio", "plain");
    let work = Work { transactions: prepare(scale) };
    benchmark_transactions(&work, &numbers);
    benchmark_inserts(scale, &numbers);
    benchmark_scans(scale, &numbers);
}
