//! What locking costs a transaction under each lock manager, in one run (DET-X07): `cargo bench -p ordain-db --bench locking`.
//!
//! Short transactions of 10 keys, of the shape of the evaluation paper's microbenchmark: one hot key and nine cold ones, all
//! read and written. As in an engine, some are live at any time; in a step some of those that hold their locks finish, others
//! come, and then the lock manager is asked who else may go on. Measured are [`is_free`](LockManager::is_free),
//! [`request`](LockManager::request), [`release`](LockManager::release) and [`analyse`](LockManager::analyse) with the engine's
//! bookkeeping left out; both are given the same footprints. What releases tell is the same under both, only not at the same
//! time, so each chooses by itself who finishes: those that have held their locks for longest.
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a benchmark prints its table")]
#![allow(missing_docs, reason = "a benchmark has no interface")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use ordain_db::data::{ColumnType, Schema, SchemaBuilder, Table};
use ordain_db::engine::calvin::lock_manager::hash::HashLockManager;
use ordain_db::engine::calvin::lock_manager::vll::VllLockManager;
use ordain_db::engine::calvin::lock_manager::{LockManager, Slot};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::position::PartitionId;
use ordain_db::procedure::Footprint;

const KEYS: usize = 10;
const COLD_KEYS: u64 = 1_000_000;
const SAMPLES: usize = 9;
const ME: PartitionId = PartitionId(0);

/// One line of the table.
#[derive(Clone, Copy)]
struct Setting {
    /// Keys of which every transaction locks one; none: all its keys are cold.
    hot: Option<u64>,
    /// Transactions that are live at a time, and that finish in a step.
    live: usize,
    step: usize,
    /// Reads instead of updates.
    reads: bool,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(end)) >> 64) as u64
    }
}

fn schema() -> (Table, Schema) {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("records").column("number", ColumnType::Int64).primary_key(&["number"]);
    let table = schema.table(table).expect("the table is well formed");
    (table, schema.finish())
}

fn footprints(setting: Setting, count: usize) -> Vec<Footprint> {
    let (table, schema) = schema();
    let mut random = Random(1);
    let access = if setting.reads { 1u8 } else { 3 };
    let footprint = |_| {
        let mut encoded = [(KEYS as u32).to_le_bytes(), [0; 4]].concat();
        for place in 0..KEYS {
            let number = match setting.hot {
                Some(hot) if place == 0 => random.below(hot),
                _ => COLD_KEYS + random.below(COLD_KEYS),
            };
            let key = table.key((number as i64,)).expect("the key has the table's columns");
            encoded.push(access);
            encoded.extend_from_slice(&(key.bytes().len() as u16).to_le_bytes());
            encoded.extend_from_slice(key.bytes());
        }
        let mut footprint = Footprint::default();
        footprint.decode(&encoded, &schema, 1).expect("the footprint is well formed");
        footprint
    };
    (0..count).map(footprint).collect()
}

/// Runs the transactions through a lock manager: nanoseconds for each, and how many of a thousand had to wait.
fn run<L: LockManager>(setting: Setting, footprints: &[Footprint], count: usize) -> (f64, usize) {
    let mut locks = L::default();
    let mut unused: Vec<Slot> = (0..setting.live as u32).rev().map(Slot).collect();
    let mut by_slot = vec![0; setting.live];
    let mut held: VecDeque<Slot> = VecDeque::new();
    let mut granted: Vec<Slot> = Vec::new();
    let (mut next, mut waited) = (0, 0);
    let begun = Instant::now();
    while next < count || !held.is_empty() {
        while next < count
            && let Some(slot) = unused.pop()
        {
            by_slot[slot.index()] = next;
            let footprint = &footprints[next % footprints.len()];
            next += 1;
            black_box(locks.is_free::<NoFailpoints>(footprint, ME));
            if locks.request::<NoFailpoints>(slot, footprint, ME) {
                held.push_back(slot);
            } else {
                waited += 1;
            }
        }
        for _ in 0..setting.step {
            let Some(slot) = held.pop_front() else { break };
            locks.release::<NoFailpoints>(
                slot,
                &footprints[by_slot[slot.index()] % footprints.len()],
                ME,
                &mut granted,
            );
            held.extend(granted.drain(..));
            unused.push(slot);
        }
        while let Some(slot) = locks.analyse::<NoFailpoints>() {
            held.push_back(slot);
        }
    }
    let nanoseconds = begun.elapsed().as_nanos() as f64 / count as f64;
    assert_eq!(locks.live(), 0, "everybody ran");
    (nanoseconds, waited * 1000 / count)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn print(name: &str, setting: Setting, transactions: usize) {
    // Few enough that those which come are in the cache, as in an engine, where they have just been made.
    let footprints = footprints(setting, 2 * setting.live);
    let (mut hash, mut vll, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut waited = (0, 0);
    // They take turns, so that what else the machine does meets both.
    for _ in 0..SAMPLES {
        let (queues, waits) = run::<HashLockManager>(setting, &footprints, transactions);
        let (counters, vll_waits) = run::<VllLockManager>(setting, &footprints, transactions);
        waited = (waits, vll_waits);
        ratios.push(queues / counters);
        hash.push(queues);
        vll.push(counters);
    }
    let Setting { live, step, .. } = setting;
    let (hash, vll, ratio) = (median(hash), median(vll), median(ratios));
    let (of_hash, of_vll) = (waited.0, waited.1);
    println!("{name:<34}{live:>6}{step:>6}{hash:>10.0}{vll:>10.0}{ratio:>8.2}{of_hash:>10}{of_vll:>8}");
}

fn main() {
    // `cargo bench` passes `--bench`; as a test, run only far enough to see that it works.
    let full = std::env::args().any(|argument| argument == "--bench");
    let transactions = if full { 200_000 } else { 500 };
    let title = format!("short transactions, {KEYS} keys each");
    println!(
        "{title:<34}{:>6}{:>6}{:>10}{:>10}{:>8}{:>10}{:>8}",
        "live", "step", "hash ns", "VLL ns", "ratio", "waited:", "VLL"
    );
    let setting = |hot, live, step| Setting { hot, live, step, reads: false };
    let reads = |live, step| Setting { hot: Some(100), live, step, reads: true };
    for (name, setting) in [
        ("uncontended", setting(None, 16, 4)),
        ("uncontended", setting(None, 256, 32)),
        ("uncontended", setting(None, 2048, 256)),
        ("contention index 0.0001", setting(Some(10_000), 256, 32)),
        ("contention index 0.01", setting(Some(100), 16, 4)),
        ("contention index 0.01", setting(Some(100), 64, 8)),
        ("contention index 0.01", setting(Some(100), 256, 32)),
        ("contention index 0.01", setting(Some(100), 256, 1)),
        ("contention index 0.01", setting(Some(100), 2048, 256)),
        ("contention index 0.01, reads", reads(256, 32)),
    ] {
        print(name, setting, transactions);
    }
}
