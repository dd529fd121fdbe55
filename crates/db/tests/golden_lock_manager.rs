//! Golden scripts of the lock managers: requests and releases in, grants out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[macro_use]
mod scripts;
#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::str::FromStr;

use ordain_db::engine::calvin::lock_manager::hash::HashLockManager;
use ordain_db::engine::calvin::lock_manager::vll::VllLockManager;
use ordain_db::engine::calvin::lock_manager::{LockManager, Mode, Slot};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::position::PartitionId;
use ordain_db::procedure::Footprint;

use interpreted::Database;
use interpreted::name::{Name, Span};

/// Two keys with one hash, `twin/0` and `twin/1` in scripts: found by a search over all sites for a fixed part of the hash.
/// They stand for the pair in billions of pairs that shares a queue.
const TWINS: [Name; 2] = [
    Name::Account(-1_789_071_370, -5_020_785_668_163_610_961),
    Name::Account(-1_296_362_650, -5_823_474_866_585_247_439),
];

/// The key with a name.
fn name(text: &str) -> Result<Name, String> {
    match text {
        "twin/0" => Ok(TWINS[0].clone()),
        "twin/1" => Ok(TWINS[1].clone()),
        name => name.parse(),
    }
}

/// One lock: `read account/1/5`, `write line/5..25`.
#[derive(Clone)]
struct Lock {
    access: u8,
    keys: Keys,
}

#[derive(Clone)]
enum Keys {
    Key(Name),
    Range(Span),
}

impl FromStr for Lock {
    type Err = String;

    fn from_str(text: &str) -> Result<Lock, String> {
        let (access, what) = text.split_once(' ').ok_or("give an access and a key")?;
        let access = match access {
            "read" => 1,
            "write" => 2,
            "update" => 3,
            other => return Err(format!("{other:?} is no access")),
        };
        let keys = match name(what) {
            Ok(name) => Keys::Key(name),
            Err(_) => Keys::Range(what.parse()?),
        };
        Ok(Lock { access, keys })
    }
}

/// A transaction, `t5`; it has the slot of its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number(u32);

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Number, String> {
        let number = text.strip_prefix('t').and_then(|number| number.parse().ok());
        number.map(Number).ok_or_else(|| format!("{text:?} is no transaction"))
    }
}

#[derive(goldenscript::Command)]
enum Command {
    /// Begins with an empty lock table of one of some partitions.
    Partition {
        me: u16,
        #[arg(key)]
        of: u16,
    },
    /// A transaction requests all its locks.
    Request(Number, Vec<Lock>),
    /// A transaction has finished.
    Release(Number),
    /// What is known of a key.
    Queue(String),
    /// What is known of all transactions.
    Transactions,
    /// Finds those that have all their locks although no release has told so. They go on to hold them.
    Analyse,
    /// The same, but each that is found finishes at once.
    AnalyseAndFinish,
    /// Whether all locks would be granted at once.
    Free(Vec<Lock>),
    /// How many transactions hold or wait for locks.
    Live,
}

/// A lock manager that can be looked into.
trait Shown: LockManager {
    fn show_key(&self, hash: u64) -> String;

    fn show_transactions(&self) -> String;
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nobody".to_owned() } else { parts.join(", ") }
}

/// Who stands in the queue of a key.
impl Shown for HashLockManager {
    fn show_key(&self, hash: u64) -> String {
        listed(self.queue(hash).into_iter().map(|(slot, mode, granted)| {
            let mode = if mode == Mode::Shared { "shared" } else { "exclusive" };
            format!("t{} {mode} {}", slot.0, if granted { "granted" } else { "waits" })
        }))
    }

    fn show_transactions(&self) -> String {
        "only keys have queues".to_owned()
    }
}

/// How many have requested a key, and who stands in the queue of transactions.
impl Shown for VllLockManager {
    fn show_key(&self, hash: u64) -> String {
        let (exclusive, shared) = self.counters(hash);
        format!("{exclusive} exclusive, {shared} shared")
    }

    fn show_transactions(&self) -> String {
        let queue = self.queue().into_iter();
        listed(
            queue.map(|(slot, blocked)| format!("t{} {}", slot.0, if blocked { "blocked" } else { "free" })),
        )
    }
}

struct Runner<L> {
    database: Database,
    locks: L,
    me: PartitionId,
    partitions: u16,
    live: BTreeMap<Number, Footprint>,
}

impl<L: Shown> Runner<L> {
    fn new() -> Runner<L> {
        let database = Database::new();
        let [first, second] = TWINS.map(|twin| twin.key(&database.tables).hash());
        assert_eq!(first, second);
        Runner { database, locks: L::default(), me: PartitionId(0), partitions: 1, live: BTreeMap::new() }
    }

    /// The footprint with the locks, in their order. Keys come before ranges, as in every footprint.
    fn footprint(&self, locks: &[Lock]) -> Result<Footprint, Box<dyn Error>> {
        let part =
            |access: u8, bytes: &[u8]| [&[access], &(bytes.len() as u16).to_le_bytes()[..], bytes].concat();
        let (mut keys, mut ranges) = (Vec::new(), Vec::new());
        for lock in locks {
            match &lock.keys {
                Keys::Key(name) => keys.push(part(lock.access, &name.key(&self.database.tables))),
                Keys::Range(span) => {
                    let range = span.range(&self.database.tables);
                    ranges.push([part(lock.access, &range.start), part(lock.access, &range.end)].concat());
                }
            }
        }
        let counts = [(keys.len() as u32).to_le_bytes(), (ranges.len() as u32).to_le_bytes()].concat();
        let encoded = [counts, keys.concat(), ranges.concat()].concat();
        let mut footprint = Footprint::default();
        footprint.decode(&encoded, &self.database.catalog.schema, self.partitions)?;
        Ok(footprint)
    }

    fn release(&mut self, number: Number, output: &mut String) -> Result<(), Box<dyn Error>> {
        let footprint = self.live.remove(&number).ok_or("it is not live")?;
        let mut granted = Vec::new();
        self.locks.release::<NoFailpoints>(Slot(number.0), &footprint, self.me, &mut granted);
        write!(output, "t{} released", number.0)?;
        granted.iter().try_for_each(|slot| write!(output, ", t{} granted", slot.0))?;
        Ok(())
    }

    fn analyse(&mut self, finish: bool) -> Result<String, Box<dyn Error>> {
        let mut lines = Vec::new();
        while let Some(slot) = self.locks.analyse::<NoFailpoints>() {
            let mut line = format!("t{} granted", slot.0);
            if finish {
                line.push_str(", ");
                self.release(Number(slot.0), &mut line)?;
            }
            lines.push(line);
        }
        if lines.is_empty() {
            lines.push("found nobody".to_owned());
        }
        Ok(lines.join("\n"))
    }
}

impl<L: Shown> goldenscript::Runner for Runner<L> {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let mut output = String::new();
        match command {
            Command::Partition { me, of } => {
                *self = Runner { me: PartitionId(*me), partitions: *of, ..Runner::new() };
            }
            Command::Request(number, locks) => {
                let footprint = self.footprint(locks)?;
                let free = self.locks.is_free::<NoFailpoints>(&footprint, self.me);
                let granted = self.locks.request::<NoFailpoints>(Slot(number.0), &footprint, self.me);
                assert_eq!(free, granted, "what is free is granted at once");
                write!(output, "t{} {}", number.0, if granted { "granted" } else { "waits" })?;
                self.live.insert(*number, footprint);
            }
            Command::Release(number) => self.release(*number, &mut output)?,
            Command::Queue(key) => {
                let hash = name(key)?.key(&self.database.tables).hash();
                write!(output, "{key}: {}", self.locks.show_key(hash))?;
            }
            Command::Transactions => output = self.locks.show_transactions(),
            Command::Analyse => output = self.analyse(false)?,
            Command::AnalyseAndFinish => output = self.analyse(true)?,
            Command::Free(locks) => {
                let free = self.locks.is_free::<NoFailpoints>(&self.footprint(locks)?, self.me);
                output.push_str(if free { "free" } else { "not free" });
            }
            Command::Live => write!(output, "{} live", self.locks.live())?,
        }
        Ok(output)
    }

    fn end_script(&mut self) -> Result<(), Box<dyn Error>> {
        let left: Vec<u32> = self.live.keys().map(|number| number.0).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("never released: {left:?}").into()) }
    }
}

scripts!(
    "lock_manager",
    Runner::<HashLockManager>::new(),
    first_come_first_served,
    foreign_keys_are_not_locked,
    grants_follow_requests,
    group_of_readers,
    key_in_both_sets,
    range_excludes_phantoms,
    ranges_and_disjoint_ranges,
    ranges_in_a_fresh_table,
    reader_does_not_overtake_writer,
    release_in_the_middle,
    slots_are_used_again,
    two_keys_with_one_hash,
);

mod vll {
    use super::*;

    scripts!(
        "vll_lock_manager",
        Runner::<VllLockManager>::new(),
        analysis_is_selective,
        analysis_passes_readers,
        counters_and_the_front,
        ranges,
        the_front_always_runs,
        trade_off,
        two_keys_with_one_hash,
    );
}
