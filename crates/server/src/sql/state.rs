//! The rows of the views of the nodes that a process runs: `ordain.partitions` and its like.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ordain_db::error::Error;
use ordain_db::node::{
    ContendedKey, Details, FollowerGroupStatus, GroupStatus, OpenSnapshot, WaitingTransaction,
};
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use ordain_db::procedure;
use ordain_sql::catalog::{Catalog, Definition};
use ordain_sql::keys::Storages;
use ordain_sql::state::StateView;
use ordain_sql::types::Datum;

use crate::connection::Connection;
use crate::operate::status::role;
use crate::port::Port;
use crate::process::Process;

/// How long nodes are given to tell; of those that do not, it is told that they are not alive.
const PATIENCE: Duration = Duration::from_secs(1);

/// The nodes of this process.
pub(super) struct Nodes {
    here: Vec<NodeId>,
    connection: Connection,
}

/// What a node has told, if it has.
type Told = (NodeId, Option<Details>);

impl Nodes {
    /// Those of a process.
    ///
    /// # Errors
    /// When there is no randomness.
    pub(super) fn of(process: &Arc<Process>, catalog: &procedure::Catalog) -> Result<Nodes, Error> {
        let port: Arc<dyn Port> = Arc::<Process>::clone(process);
        Ok(Nodes { here: process.nodes().collect(), connection: Connection::new(port, catalog.clone())? })
    }

    /// The rows of a view. A node that cannot be asked is left out.
    pub(super) fn rows(&self, view: StateView, catalog: &Catalog, storages: &Storages) -> Vec<Vec<Datum>> {
        let partitions: Vec<PartitionId> = self.here.iter().map(|node| node.partition).collect();
        let details = self.connection.details_of(&partitions, PATIENCE).into_iter().map(Result::ok);
        let told: Vec<Told> = self.here.iter().copied().zip(details).collect();
        match view {
            StateView::Activity
            | StateView::PreparedStatements
            | StateView::Cursors
            | StateView::Settings => Vec::new(),
            StateView::Partitions => partitions_of(&told),
            StateView::Replicas => replicas_of(&told),
            StateView::Transactions => each(&told, |node, details| {
                details.transactions.iter().map(|waiting| transaction(node, waiting)).collect()
            }),
            StateView::Locks => {
                let names = names_of(catalog);
                each(&told, |node, details| {
                    details.contended.iter().map(|key| lock(node, key, storages, &names)).collect()
                })
            }
            StateView::Snapshots => each(&told, |node, details| {
                let delivered = details.status.delivered.0;
                details.snapshots.iter().map(|open| snapshot(node, open, delivered)).collect()
            }),
        }
    }
}

fn each(told: &[Told], rows: impl Fn(NodeId, &Details) -> Vec<Vec<Datum>>) -> Vec<Vec<Datum>> {
    told.iter().filter_map(|(node, details)| Some(rows(*node, details.as_ref()?))).flatten().collect()
}

fn number(value: impl TryInto<i64>) -> Datum {
    value.try_into().map_or(Datum::Int(i64::MAX), Datum::Int)
}

fn text(value: impl Into<String>) -> Datum {
    Datum::Text(value.into())
}

fn or_null<T>(value: Option<T>, told: impl FnOnce(T) -> Datum) -> Datum {
    value.map_or(Datum::Null, told)
}

/// A row for each node here, and for each that a leader here knows.
fn partitions_of(told: &[Told]) -> Vec<Vec<Datum>> {
    let epochs = told.iter().filter_map(|(_, details)| Some(details.as_ref()?.status.delivered.0));
    let newest = epochs.max().unwrap_or_default();
    let mut rows = Vec::new();
    for (node, details) in told {
        rows.push(partition_here(*node, details.as_ref(), newest));
        let status = details.as_ref().map(|details| &details.status);
        if let Some(group) = status.filter(|status| status.leads).and_then(|status| status.group.as_ref()) {
            rows.extend(group.followers.iter().map(|follower| partition_elsewhere(*node, group, follower)));
        }
    }
    rows.sort_by_key(|row| match row.as_slice() {
        [Datum::Int(partition), Datum::Int(replica), ..] => (*partition, *replica),
        _ => (i64::MAX, i64::MAX),
    });
    rows
}

fn partition_here(node: NodeId, details: Option<&Details>, newest: u64) -> Vec<Datum> {
    let status = details.map(|details| &details.status);
    let group = status.and_then(|status| status.group.as_ref());
    let of = |value: fn(&Details) -> u64| or_null(details.map(value), number);
    vec![
        number(node.partition.0),
        number(node.replica.0),
        Datum::Bool(true),
        Datum::Bool(details.is_some()),
        or_null(status, |status| text(role(status, node.replica))),
        or_null(group, |group| number(group.term)),
        of(|details| details.status.delivered.0),
        or_null(status, |status| number(newest.saturating_sub(status.delivered.0))),
        or_null(group, |group| number(group.start)),
        or_null(group, |group| number(group.last)),
        or_null(group, |group| number(group.last.saturating_sub(group.committed))),
        of(|details| details.status.rows),
        of(|details| details.status.garbage),
        of(|details| details.record_bytes),
        of(|details| details.index_bytes),
        of(|details| details.status.waiting),
        of(|details| details.status.live),
        of(|details| details.status.stable.0),
    ]
}

/// Another node of a group that is led here: what the leader knows of it.
fn partition_elsewhere(leader: NodeId, group: &GroupStatus, follower: &FollowerGroupStatus) -> Vec<Datum> {
    let votes = group.voters.contains(&follower.replica) || group.outgoing.contains(&follower.replica);
    let mut row = vec![
        number(leader.partition.0),
        number(follower.replica.0),
        Datum::Bool(false),
        Datum::Bool(follower.is_active),
        text(if votes { "follower" } else { "learner" }),
        number(group.term),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        number(follower.matched),
        number(group.committed.saturating_sub(follower.matched)),
    ];
    row.resize(StateView::Partitions.columns().len(), Datum::Null);
    row
}

/// What is known of a replica.
#[derive(Default)]
struct Replica {
    here: bool,
    partitions: u64,
    leads: u64,
    alive: u64,
    lag: Option<u64>,
}

fn replicas_of(told: &[Told]) -> Vec<Vec<Datum>> {
    let mut replicas: BTreeMap<ReplicaId, Replica> = BTreeMap::new();
    for (node, details) in told {
        let own = replicas.entry(node.replica).or_default();
        own.here = true;
        own.partitions += 1;
        let Some(Details { status, .. }) = details else { continue };
        own.alive += 1;
        own.leads += u64::from(status.leads);
        let group = status.group.as_ref().filter(|_| status.leads);
        let Some(group) = group else { continue };
        for follower in &group.followers {
            let other = replicas.entry(follower.replica).or_default();
            other.partitions += 1;
            other.alive += u64::from(follower.is_active);
            let lag = group.committed.saturating_sub(follower.matched);
            other.lag = other.lag.max(Some(lag));
        }
    }
    let row = |(replica, known): (ReplicaId, Replica)| {
        vec![
            number(replica.0),
            Datum::Bool(known.here),
            number(known.partitions),
            number(known.leads),
            number(known.alive),
            or_null(known.lag, number),
        ]
    };
    replicas.into_iter().map(row).collect()
}

fn transaction(node: NodeId, waiting: &WaitingTransaction) -> Vec<Datum> {
    vec![
        number(node.partition.0),
        text(&waiting.position),
        text(&waiting.procedure),
        text(&waiting.phase),
        Datum::Array(waiting.awaits.iter().map(|partition| number(partition.0)).collect()),
        number(waiting.keys),
        number(waiting.ranges),
    ]
}

fn snapshot(node: NodeId, open: &OpenSnapshot, delivered: u64) -> Vec<Datum> {
    let microseconds = i64::try_from(open.age_microseconds).unwrap_or(i64::MAX);
    vec![
        number(node.partition.0),
        text(open.at.to_string()),
        Datum::Interval { months: 0, days: 0, microseconds },
        number(delivered.saturating_sub(open.at.epoch.0)),
    ]
}

/// The names of tables and indexes, by where their rows are.
fn names_of(catalog: &Catalog) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for (schema, name, definition) in catalog.iter() {
        let shown =
            |name: &str| if schema == "public" { name.to_owned() } else { format!("{schema}.{name}") };
        match definition {
            Definition::Table(table) => {
                names.insert(table.storage, shown(name));
                names.extend(table.indexes.iter().map(|index| (index.storage, shown(&index.name))));
            }
            Definition::Sequence(sequence) => drop(names.insert(sequence.storage, shown(name))),
            _ => {}
        }
    }
    names
}

fn lock(
    node: NodeId,
    contended: &ContendedKey,
    storages: &Storages,
    names: &BTreeMap<u32, String>,
) -> Vec<Datum> {
    let relation = relation_of(contended, storages, names).unwrap_or_else(|| contended.table.clone());
    vec![
        number(node.partition.0),
        text(if contended.end.is_some() { "range" } else { "key" }),
        text(relation),
        Datum::Bytes(contended.key.bytes().to_vec()),
        or_null(contended.end.as_ref(), |end| Datum::Bytes(end.bytes().to_vec())),
        number(contended.readers),
        number(contended.writers),
        text(&contended.first),
    ]
}

/// The table or index of SQL that a key, or the beginning of one, is of: it begins with the number of the table of the database, and goes
/// on with that of the storage, as the database encodes an `int32`.
fn relation_of(
    contended: &ContendedKey,
    storages: &Storages,
    names: &BTreeMap<u32, String>,
) -> Option<String> {
    let is_of_rows = [&storages.spread, &storages.copied].iter().any(|table| table.name() == contended.table);
    let storage = contended.key.bytes().get(2..6).filter(|_| is_of_rows)?;
    let storage = u32::from_be_bytes(storage.try_into().ok()?) ^ (1 << 31);
    names.get(&storage).cloned()
}
