//! What a node tells of what waits within it: for those who look for the reason of a delay.
//!
//! All of it is bounded, and found in one pass over at most [`DETAILS_TRANSACTIONS_MAX`] transactions, so that nobody who asks holds up the
//! node for longer than a step.

use serde::{Deserialize, Serialize};

use super::{Node, Status};
use crate::data::{Key, Schema};
use crate::engine::Engine;
use crate::execution::Waiting;
use crate::hash::FastMap;
use crate::limits::{DETAILS_KEYS_MAX, DETAILS_TRANSACTIONS_MAX};
use crate::position::{PartitionId, Position};
use crate::procedure::Catalog;
use crate::procedure::footprint::Access;
use crate::storage::{Statistics, Storage};

/// What a node tells about itself, with what waits in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Details {
    /// How it stands.
    pub status: Status,
    /// Bytes set aside for keys, rows and their headers.
    pub record_bytes: u64,
    /// Bytes of the indexes of the storage.
    pub index_bytes: u64,
    /// Transactions that wait in the engine, the oldest first: at most [`DETAILS_TRANSACTIONS_MAX`].
    pub transactions: Vec<WaitingTransaction>,
    /// Keys and ranges that several of these transactions need, at least one of them to write, each with those that need it.
    pub contended: Vec<ContendedKey>,
    /// Snapshots that can be read here.
    pub snapshots: Vec<OpenSnapshot>,
}

/// A transaction that waits in the engine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitingTransaction {
    /// Its position in the order; on an engine without one, its name.
    pub position: String,
    /// The name of its procedure.
    pub procedure: String,
    /// What it waits for, in the engine's words.
    pub phase: String,
    /// The partitions from which it lacks something.
    pub awaits: Vec<PartitionId>,
    /// Keys that it touches.
    pub keys: u32,
    /// Ranges of keys that it touches.
    pub ranges: u32,
}

/// What several transactions need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContendedKey {
    /// The key, or the first key of a range.
    pub key: Key,
    /// The end of a range, which is not part of it; `None` for a key.
    pub end: Option<Key>,
    /// The table of the database.
    pub table: String,
    /// How many of the transactions that wait only read it.
    pub readers: u32,
    /// How many write it.
    pub writers: u32,
    /// The first of them.
    pub first: String,
}

/// A snapshot that can be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenSnapshot {
    /// What it shows.
    pub at: Position,
    /// For how long it has been open here, in microseconds.
    pub age_microseconds: u64,
}

/// Who needs a key or range.
#[derive(Default)]
struct Need {
    readers: u32,
    writers: u32,
    /// The place of the first among the transactions.
    first: usize,
}

impl Need {
    fn add(&mut self, place: usize, access: Access) {
        if self.readers + self.writers == 0 {
            self.first = place;
        }
        *(if access.write { &mut self.writers } else { &mut self.readers }) += 1;
    }

    fn is_contended(&self) -> bool {
        self.writers > 0 && self.readers + self.writers > 1
    }
}

/// The details of a node of any engine.
pub(super) fn details_of(
    status: Status,
    storage: &dyn Storage,
    catalog: &Catalog,
    me: PartitionId,
    waiting: &[Waiting<'_>],
    snapshots: Vec<OpenSnapshot>,
) -> Details {
    let Statistics { record_bytes, index_bytes, .. } = storage.statistics();
    let transaction = |waiting: &Waiting<'_>| WaitingTransaction {
        position: waiting.name.clone(),
        procedure: catalog.procedures.name(waiting.call.procedure).to_owned(),
        phase: waiting.phase.clone(),
        awaits: waiting.awaits.iter().collect(),
        keys: waiting.call.footprint.keys().len() as u32,
        ranges: waiting.call.footprint.ranges().len() as u32,
    };
    let mut contended = contended_keys(waiting, &catalog.schema, me);
    contended.extend(contended_ranges(waiting, &catalog.schema));
    Details {
        status,
        record_bytes: record_bytes as u64,
        index_bytes: index_bytes as u64,
        transactions: waiting.iter().map(transaction).collect(),
        contended,
        snapshots,
    }
}

fn table_of(schema: &Schema, key: &[u8]) -> String {
    schema.table_of(key).map_or_else(|_| String::new(), |table| table.name().to_owned())
}

/// Keys of this partition that several transactions need.
fn contended_keys(waiting: &[Waiting<'_>], schema: &Schema, me: PartitionId) -> Vec<ContendedKey> {
    let mut needs: FastMap<&[u8], Need> = FastMap::default();
    let keys = waiting.iter().enumerate().flat_map(|(place, waiting)| {
        let footprint = &waiting.call.footprint;
        let own = footprint.keys().iter().filter(|entry| entry.owner.includes(me));
        own.map(move |entry| (place, footprint.key(entry), entry.access))
    });
    for (place, key, access) in keys.take(DETAILS_KEYS_MAX) {
        needs.entry(key).or_default().add(place, access);
    }
    let mut contended: Vec<(&[u8], Need)> =
        needs.into_iter().filter(|(_, need)| need.is_contended()).collect();
    contended.sort_by_key(|(key, _)| *key);
    let told = |(key, need): (&[u8], Need)| ContendedKey {
        key: Key::from_bytes(key),
        end: None,
        table: table_of(schema, key),
        readers: need.readers,
        writers: need.writers,
        first: waiting[need.first].name.clone(),
    };
    contended.into_iter().map(told).collect()
}

/// Ranges that one transaction needs, and of which others need a part.
fn contended_ranges(waiting: &[Waiting<'_>], schema: &Schema) -> Vec<ContendedKey> {
    let mut contended: Vec<ContendedKey> = Vec::new();
    // What is compared: each range with each key, so there is less room for ranges.
    let ranges = waiting.iter().flat_map(|waiting| waiting.call.footprint.ranges()).take(RANGES_MAX);
    for entry in ranges {
        let range = &entry.range;
        if contended.iter().any(|known| known.key == range.start && known.end.as_ref() == Some(&range.end)) {
            continue;
        }
        let (mut need, mut looked) = (Need::default(), 0);
        for (place, waiting) in waiting.iter().enumerate() {
            let footprint = &waiting.call.footprint;
            let meets = |other: &crate::data::KeyRange| other.start < range.end && range.start < other.end;
            let mut accesses: Vec<Access> = Vec::new();
            accesses.extend(
                footprint.ranges().iter().filter(|other| meets(&other.range)).map(|other| other.access),
            );
            let left = DETAILS_KEYS_MAX.saturating_sub(looked);
            let keys = footprint.keys().iter().take(left);
            looked += keys.len();
            let within = keys.filter(|entry| {
                let key = footprint.key(entry);
                range.start.bytes() <= key && key < range.end.bytes()
            });
            accesses.extend(within.map(|entry| entry.access));
            let strongest = accesses.iter().find(|access| access.write).or(accesses.first());
            if let Some(access) = strongest {
                need.add(place, *access);
            }
        }
        if need.is_contended() {
            contended.push(ContendedKey {
                key: range.start.clone(),
                end: Some(range.end.clone()),
                table: table_of(schema, range.start.bytes()),
                readers: need.readers,
                writers: need.writers,
                first: waiting[need.first].name.clone(),
            });
        }
    }
    contended
}

/// Most ranges that are compared with all keys.
const RANGES_MAX: usize = 16;

impl<E: Engine> Node<E> {
    /// What the node tells about itself, with what waits in it.
    pub fn details(&self) -> Details {
        let snapshot = |(at, since): &(Position, u64)| OpenSnapshot {
            at: *at,
            age_microseconds: self.now.saturating_sub(*since),
        };
        details_of(
            self.status(false),
            &*self.storage,
            &self.catalog,
            self.me,
            &self.engine.waiting(DETAILS_TRANSACTIONS_MAX),
            self.open.iter().map(snapshot).collect(),
        )
    }
}
