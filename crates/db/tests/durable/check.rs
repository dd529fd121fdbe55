//! What must be true of a world in the end.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ordain_db::error::{Error, Outcome};
use ordain_db::hash::Digest;
use ordain_db::message::{ClientId, Operation, Ordered, RequestId, Verdict, Work};
use ordain_db::node::Status;
use ordain_db::position::{Entry, NodeId, PartitionId, Position, ReplicaId};
use ordain_db::procedure::Footprint;
use ordain_db::storage::Storage;

use crate::interpreted::{Database, INTERPRET};
use crate::machine::LogKind;
use crate::observed::{self, Oracle};
use crate::world::World;

/// For each request where it stands in the order, and what came of it there by the oracle.
type Attempts = BTreeMap<RequestId, Vec<(Position, Outcome)>>;

/// What the oracle says.
struct Replayed {
    attempts: Attempts,
    /// The digest of the rows in the end, and at each snapshot.
    digest: Digest,
    snapshots: BTreeMap<Position, Digest>,
}

/// Checks everything.
pub(crate) fn all(mut world: World) {
    world.history.settle();
    let Replayed { attempts, digest, snapshots } = replay(&world, &world.history.order());
    replicas_have_the_whole_log(&world);
    every_request_happens_once(&world, &attempts);
    if world.plan.log != LogKind::Asynchronous {
        every_answer_holds(&world, &attempts);
        answers_keep_real_time(&world, &attempts);
    }
    states_agree(&world, digest);
    counters_agree(&world, &attempts);
    snapshots_show_their_position(&mut world, &snapshots);
    let mut world = world.close_snapshots();
    world.history.settle();
    replicas_have_the_whole_log(&world);
    states_agree(&world, digest);
    nothing_is_kept_for_snapshots(&world);
}

/// Every node has handed on the same epochs; that their contents are the same was seen as they came.
fn replicas_have_the_whole_log(world: &World) {
    let closed: BTreeMap<NodeId, _> =
        world.machines.keys().map(|id| (*id, world.history.closed(*id))).collect();
    let first = closed.values().next();
    assert!(closed.values().all(|epoch| Some(epoch) == first), "logs end at different epochs: {closed:?}");
}

/// The serial engine on one partition does what the order says.
fn replay(world: &World, order: &BTreeMap<Position, Ordered>) -> Replayed {
    let mut oracle = Oracle::new(&world.database);
    let (mut attempts, mut snapshots, mut opened) = (Attempts::new(), BTreeMap::new(), BTreeMap::new());
    let mut unordered = unordered_snapshots(world);
    for (position, ordered) in order {
        let later = unordered.split_off(position);
        open_unordered(std::mem::replace(&mut unordered, later), &oracle, &mut attempts, &mut snapshots);
        let outcome = match &ordered.work {
            Work::Call { .. } => {
                let (_, verdict) = oracle.run(*position, &placed(&world.database, ordered));
                let told = world.history.verdicts().get(position);
                assert_eq!(told, Some(&verdict), "what nodes and the oracle say of {position}");
                match verdict {
                    Verdict::Committed(result) => Ok(result),
                    Verdict::Failed(error) => Err(error),
                    Verdict::FootprintMissed => Err(Error::Contended),
                }
            }
            Work::GiveUp(error) => Err(error.clone()),
            Work::OpenSnapshot(entry) => {
                opened.insert(*position, *entry);
                snapshots.insert(*position, oracle.storage.digest(Position::LATEST, &|_| true));
                Ok(Bytes::from(postcard::to_allocvec(position).unwrap()))
            }
            Work::CloseSnapshot(at) => {
                // A client may close what was lost.
                let is_open = snapshots.remove(at).is_some() || world.plan.log == LogKind::Asynchronous;
                let is_left = opened.remove(at).is_some_and(|entry| has_ended(world, entry));
                assert!(is_open && (is_left || world.closed.contains(at)), "nobody has closed {at}");
                continue;
            }
            Work::Checkpoint(_) => panic!("nobody has asked for a checkpoint"),
        };
        attempts.entry(ordered.request).or_default().push((*position, outcome));
    }
    open_unordered(unordered, &oracle, &mut attempts, &mut snapshots);
    let left = opened.iter().find(|(_, entry)| has_ended(world, **entry));
    assert_eq!(left, None, "a snapshot outlives the node through which it was opened");
    Replayed { attempts, digest: oracle.storage.digest(Position::LATEST, &|_| true), snapshots }
}

/// Whether the life of a node is over.
fn has_ended(world: &World, entry: Entry) -> bool {
    world.machines[&entry.node].life > entry.life
}

/// Snapshots that were opened without a place in the order, by where they stand: at the end of an epoch.
type Unordered = BTreeMap<Position, Vec<(RequestId, Bytes)>>;

fn unordered_snapshots(world: &World) -> Unordered {
    let mut unordered = Unordered::new();
    for (id, asked) in &world.clients.asked {
        let (Operation::OpenSnapshot, Some((_, Ok(answer)))) = (&asked.request.operation, &asked.answered)
        else {
            continue;
        };
        let at: Position = postcard::from_bytes(answer).unwrap();
        if at.is_beyond() {
            assert_eq!((world.plan.partitions, world.plan.replicas), (1, 1), "{at} is not the newest state");
            unordered.entry(at).or_default().push((*id, answer.clone()));
        }
    }
    unordered
}

/// Notes what the oracle has where snapshots were opened.
fn open_unordered(
    opened: Unordered,
    oracle: &Oracle,
    attempts: &mut Attempts,
    snapshots: &mut BTreeMap<Position, Digest>,
) {
    for (at, requests) in opened {
        snapshots.insert(at, oracle.storage.digest(Position::LATEST, &|_| true));
        for (id, answer) in requests {
            attempts.entry(id).or_default().push((at, Ok(answer)));
        }
    }
}

/// A call with its footprint, which does not depend on the number of partitions.
fn placed(database: &Database, ordered: &Ordered) -> observed::Ordered {
    let Work::Call { procedure, arguments, reconnoitred } = &ordered.work else {
        unreachable!("it is a call")
    };
    assert_eq!(*procedure, INTERPRET);
    let footprint = match reconnoitred {
        Some(found) => found.footprint.to_vec(),
        None => {
            let mut footprint = Footprint::default();
            let catalog = &database.catalog;
            catalog.procedures.declare(INTERPRET, arguments, &catalog.schema, 1, &mut footprint).unwrap();
            footprint.encode()
        }
    };
    observed::Ordered {
        request: ordered.request,
        arguments: arguments.clone(),
        footprint,
        reconnoitred: reconnoitred.is_some(),
    }
}

/// What is in the order was asked, and all attempts but the last missed their footprint.
fn every_request_happens_once(world: &World, attempts: &Attempts) {
    for (id, attempts) in attempts {
        assert!(world.clients.asked.contains_key(id), "{id:?} was never asked");
        let (_, earlier) = attempts.split_last().expect("there is an attempt");
        let missed = earlier.iter().all(|(_, outcome)| *outcome == Err(Error::Contended));
        assert!(missed, "{id:?} happened more than once: {attempts:?}");
        let is_home = |at: Position| at.is_beyond() || at.origin == id.client.home;
        let homes = attempts.iter().all(|(position, _)| is_home(*position));
        assert!(homes, "{id:?} is in the log of another partition: {attempts:?}");
    }
}

/// What was answered is in the order: its last attempt is the answer.
fn every_answer_holds(world: &World, attempts: &Attempts) {
    for (id, asked) in &world.clients.asked {
        let (_, answer) = asked.answered.as_ref().expect("all clients are done");
        let last = attempts.get(id).and_then(|attempts| attempts.last());
        let (position, outcome) =
            last.unwrap_or_else(|| panic!("{id:?} was answered {answer:?} and is lost"));
        assert_eq!(outcome, answer, "{id:?} at {position}");
    }
}

/// Strict serializability: what is asked after an answer has come is ordered after what was answered.
fn answers_keep_real_time(world: &World, attempts: &Attempts) {
    let last = |id: &RequestId| attempts[id].last().expect("it was answered").0;
    let first = |id: &RequestId| attempts[id][0].0;
    let asked = world.clients.asked.iter();
    let mut answers: Vec<(u64, RequestId)> =
        asked.clone().filter_map(|(id, asked)| Some((asked.answered.as_ref()?.0, *id))).collect();
    answers.sort_unstable();
    for (id, asked) in asked {
        let before = answers.iter().take_while(|(answered_at, _)| *answered_at < asked.asked_at);
        for (_, earlier) in before {
            let (before, after) = (last(earlier).place(), first(id).place());
            // Two snapshots may show the same state.
            let are_equal = before == after && first(id).is_beyond();
            assert!(before < after || are_equal, "{id:?} overtook {earlier:?}");
        }
    }
}

fn statuses(world: &World) -> BTreeMap<NodeId, Status> {
    let nodes = world.machines.iter().filter_map(|(id, machine)| Some((*id, machine.node.as_ref()?)));
    nodes.map(|(id, node)| (id, node.status(true))).collect()
}

/// Every replica has the rows that the oracle has.
fn states_agree(world: &World, digest: Digest) {
    let statuses = statuses(world);
    for replica in (0..world.plan.replicas).map(ReplicaId) {
        let mut sum = Digest::default();
        for partition in (0..world.plan.partitions).map(PartitionId) {
            let own = &statuses[&NodeId { partition, replica }];
            sum.merge(Digest(own.digest.expect("it was asked for")));
        }
        assert_eq!(sum, digest, "the rows of {replica}");
    }
}

/// Requests that have their place in the order after their client has said that it has the answer. That was lost then, and so nobody but the
/// leader that took a late copy in need know of them.
fn acknowledged_before(world: &World) -> BTreeSet<RequestId> {
    let mut acknowledged: BTreeMap<ClientId, u64> = BTreeMap::new();
    let mut late = BTreeSet::new();
    for ordered in world.history.order().into_values().filter(|ordered| !ordered.request.is_own()) {
        let RequestId { client, sequence } = ordered.request;
        let through = acknowledged.entry(client).or_default();
        if sequence < *through {
            late.insert(ordered.request);
        }
        *through = ordered.acknowledged.max(*through);
    }
    late
}

/// Every replica counts what the oracle counts.
fn counters_agree(world: &World, attempts: &Attempts) {
    let late = acknowledged_before(world);
    assert!(late.is_empty() || world.plan.log == LogKind::Asynchronous, "{late:?} were answered before");
    for (id, status) in statuses(world) {
        let is_call = |request: &RequestId| {
            matches!(world.clients.asked[request].request.operation, Operation::Call { .. })
        };
        let of_home = attempts.iter().filter(|(id, _)| is_call(id));
        let of_home = of_home.filter(|(request, _)| request.client.home == id.partition);
        let ends: Vec<(bool, &Outcome)> = of_home
            .filter_map(|(request, attempts)| Some((late.contains(request), &attempts.last()?.1)))
            .collect();
        let count = |wanted: fn(&Outcome) -> bool| {
            let all = ends.iter().filter(|(_, end)| wanted(end)).count();
            let late = ends.iter().filter(|(is_late, end)| *is_late && wanted(end)).count();
            (all - late) as u64..=all as u64
        };
        let counters = status.counters;
        let committed = count(Result::is_ok);
        assert!(
            committed.contains(&counters.committed),
            "{} commits at {id}: {committed:?}",
            counters.committed
        );
        let aborted = count(|end| matches!(end, Err(Error::Aborted(_))));
        assert!(aborted.contains(&counters.aborted), "{} aborts at {id}: {aborted:?}", counters.aborted);
        assert_eq!((status.live, status.waiting), (0, 0), "what is under way at {id}");
    }
}

/// A snapshot that is open shows what the oracle had there, at every replica.
fn snapshots_show_their_position(world: &mut World, snapshots: &BTreeMap<Position, Digest>) {
    'snapshots: for (at, expected) in snapshots {
        if world.closed.contains(at) {
            continue;
        }
        for replica in (0..world.plan.replicas).map(ReplicaId) {
            let mut shown = Digest::default();
            for partition in (0..world.plan.partitions).map(PartitionId) {
                let rows = world.rows_at(NodeId { partition, replica }, *at);
                // A snapshot without a place in the order ends with its node.
                if rows.is_err() && at.is_beyond() && world.plan.crashes > 0 {
                    continue 'snapshots;
                }
                let rows = rows.unwrap();
                let item = world.database.tables.item.all();
                let counted = rows.iter().filter(|(key, _)| partition.0 == 0 || !item.contains(key));
                counted.for_each(|(key, row)| shown.add(key, row));
            }
            assert_eq!(shown, *expected, "the rows of {replica} at {at}");
        }
    }
}

/// When all snapshots are closed, no node keeps anything for them.
fn nothing_is_kept_for_snapshots(world: &World) {
    let garbage: Vec<(NodeId, u64)> =
        statuses(world).iter().map(|(id, status)| (*id, status.garbage)).collect();
    assert!(garbage.iter().all(|(_, garbage)| *garbage == 0), "old versions: {garbage:?}");
}
