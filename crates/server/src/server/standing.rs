//! What a process concludes from how the others stand: whether it may found new logs, must join groups that exist already, has
//! lost its data, or belongs to the cluster no longer.
//!
//! # Why a process asks before it begins a log
//!
//! A replica that has lost its disk has forgotten its votes, and what it said that it has. If it came back with an empty log as
//! if nothing had been, a majority could agree on something else than what an earlier one agreed on. So an empty directory is
//! given new logs only if nobody has any: if *all* processes say that they have none either, or that they were founded together
//! with this very directory. Otherwise the replica must have left the groups first, and then joins them like any new one.
//!
//! Who belongs to a group is taken from the node that has come furthest, among a majority of those that vote by what it says. A
//! change of the membership takes effect in two steps, of which the second cannot commit before a majority has applied the
//! first; so no change that has taken effect anywhere goes unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ordain_db::node::GroupStatus;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};

use crate::cluster_file::ClusterFile;
use crate::remote::direct::Direct;
use crate::wire::Standing;

/// How often a process is asked again.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// By the number of the process, what it said last.
pub(crate) type Standings = BTreeMap<u16, Standing>;

/// What a process with an empty directory is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// Found new logs, together with these directories.
    Found(BTreeMap<u16, u128>),
    /// Join the groups.
    Join,
    /// Refuse: its replica votes, and has lost what it voted for.
    Lost,
    /// Ask on. For people: what is missing.
    Wait(String),
}

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Asker {
    /// Its number.
    pub(crate) process: u16,
    /// The number of its directory.
    pub(crate) directory: u128,
    /// The nodes that it is to run.
    pub(crate) nodes: Vec<NodeId>,
}

/// What a process with an empty directory concludes from what `processes` said; `name` tells what one is called.
pub(crate) fn begin(
    asker: &Asker,
    processes: u16,
    standings: &Standings,
    name: &dyn Fn(u16) -> String,
) -> Beginning {
    let all: BTreeSet<u16> = (0..processes).collect();
    // Founded together with this directory: its log is one that this process shares from the beginning.
    let counts_asker = |standing: &Standing| {
        standing.founders.contains(&(asker.process, asker.directory))
            && standing.founders.iter().map(|(process, _)| *process).eq(all.iter().copied())
    };
    if standings.values().any(|standing| standing.established && !counts_asker(standing)) {
        return join(asker, standings);
    }
    let missing: Vec<String> = all
        .iter()
        .filter(|process| **process != asker.process && !standings.contains_key(process))
        .map(|process| name(*process))
        .collect();
    if !missing.is_empty() {
        return Beginning::Wait(format!(
            "a new cluster begins when all its processes are there: waiting for {}",
            missing.join(", ")
        ));
    }
    let mut founders: BTreeMap<u16, u128> =
        standings.iter().map(|(process, standing)| (*process, standing.directory)).collect();
    founders.insert(asker.process, asker.directory);
    Beginning::Found(founders)
}

/// Others have logs.
fn join(asker: &Asker, standings: &Standings) -> Beginning {
    let mut votes = false;
    for node in &asker.nodes {
        match newest_membership(node.partition, standings) {
            Ok(group) => {
                votes |= group.voters.contains(&node.replica) || group.outgoing.contains(&node.replica)
            }
            Err(missing) => return Beginning::Wait(missing),
        }
    }
    if votes { Beginning::Lost } else { Beginning::Join }
}

/// Whether a replica's nodes belong to none of their groups any more; `None` if too few others have said how they stand.
pub(crate) fn is_removed(asker: &Asker, standings: &Standings) -> Option<bool> {
    let mut removed = true;
    for node in &asker.nodes {
        removed &= !belongs(newest_membership(node.partition, standings).ok()?, node.replica);
    }
    Some(removed)
}

/// Whether a group has a replica as a member of any kind.
pub(crate) fn belongs(group: &GroupStatus, replica: ReplicaId) -> bool {
    [&group.voters, &group.outgoing, &group.learners].into_iter().any(|members| members.contains(&replica))
}

/// What the node of a group knows that has come furthest, if a majority of those that vote by it have said how they stand.
fn newest_membership(partition: PartitionId, standings: &Standings) -> Result<&GroupStatus, String> {
    let groups = || {
        let all = standings.values().flat_map(|standing| &standing.groups);
        // One that has just joined knows of no members yet.
        all.filter(|(node, group)| node.partition == partition && !group.voters.is_empty())
    };
    let newest = groups().map(|(_, group)| group).max_by_key(|group| group.committed);
    let newest = newest.ok_or_else(|| format!("waiting for a process that has the log of {partition}"))?;
    let said = |voter: &&ReplicaId| groups().any(|(node, _)| node.replica == **voter);
    let majority = |voters: &[ReplicaId]| voters.iter().filter(said).count() > voters.len() / 2;
    if majority(&newest.voters) && (newest.outgoing.is_empty() || majority(&newest.outgoing)) {
        return Ok(newest);
    }
    let silent: Vec<String> =
        newest.voters.iter().filter(|voter| !said(voter)).map(ToString::to_string).collect();
    Err(format!(
        "waiting for a majority of the replicas of {partition}: nothing is heard of {}",
        silent.join(", ")
    ))
}

/// Asks the other processes of a cluster how they stand, again and again, until it is dropped.
pub(crate) struct Canvass {
    shared: Arc<Shared>,
}

struct Shared {
    standings: Mutex<Standings>,
    ended: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Standings> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Canvass {
    /// Begins to ask.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start(file: &ClusterFile, own: u16, fingerprint: u64) -> Result<Canvass, String> {
        let shared = Arc::new(Shared { standings: Mutex::default(), ended: AtomicBool::new(false) });
        let canvass = Canvass { shared: Arc::clone(&shared) };
        for (number, entry) in (0..).zip(&file.processes).filter(|(number, _)| *number != own) {
            let (shared, entry) = (Arc::clone(&shared), entry.clone());
            let ask = move || {
                while !shared.ended.load(Ordering::SeqCst) {
                    let asked = Direct::connect(&entry, fingerprint).and_then(|mut direct| direct.standing());
                    match asked {
                        Ok(standing) => {
                            shared.lock().insert(number, standing);
                        }
                        Err(problem) => tracing::debug!(process = entry.name, problem, "no standing"),
                    }
                    std::thread::sleep(ASK_INTERVAL);
                }
            };
            let spawned = std::thread::Builder::new().name(format!("ask-{number}")).spawn(ask);
            spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        Ok(canvass)
    }

    /// What was said last.
    pub(crate) fn standings(&self) -> Standings {
        self.shared.lock().clone()
    }
}

impl Drop for Canvass {
    /// The threads end when they have asked once more; nobody waits for them.
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(partition: u16, replica: u16) -> NodeId {
        NodeId { partition: PartitionId(partition), replica: ReplicaId(replica) }
    }

    fn replicas(numbers: &[u16]) -> Vec<ReplicaId> {
        numbers.iter().copied().map(ReplicaId).collect()
    }

    fn group(replica: u16, committed: u64, voters: &[u16], learners: &[u16]) -> (NodeId, GroupStatus) {
        let group = GroupStatus {
            replica: ReplicaId(replica),
            leader: None,
            term: 2,
            start: 1,
            committed,
            last: committed,
            voters: replicas(voters),
            outgoing: Vec::new(),
            learners: replicas(learners),
            followers: Vec::new(),
        };
        (node(0, replica), group)
    }

    /// The last of three processes, each with a replica of one partition.
    fn asker() -> Asker {
        Asker { process: 2, directory: 22, nodes: vec![node(0, 2)] }
    }

    fn empty(directory: u128) -> Standing {
        Standing { directory, ..Standing::default() }
    }

    fn with_log(founders: &[(u16, u128)], groups: Vec<(NodeId, GroupStatus)>) -> Standing {
        Standing { directory: 7, established: true, founders: founders.to_vec(), groups }
    }

    fn begin_with(standings: [(u16, Standing); 2]) -> Beginning {
        begin(&asker(), 3, &standings.into_iter().collect(), &|process| format!("process-{process}"))
    }

    #[test]
    fn a_cluster_is_founded_when_all_are_there_and_nobody_has_a_log() {
        let founders = BTreeMap::from([(0, 10), (1, 11), (2, 22)]);
        assert_eq!(begin_with([(0, empty(10)), (1, empty(11))]), Beginning::Found(founders));
        let one = Standings::from([(0, empty(10))]);
        let waits = begin(&asker(), 3, &one, &|process| format!("process-{process}"));
        assert!(matches!(waits, Beginning::Wait(reason) if reason.ends_with("waiting for process-1")));
    }

    #[test]
    fn one_that_was_counted_in_may_begin_after_the_others() {
        let founders = [(0, 10), (1, 11), (2, 22)];
        let groups = vec![group(0, 9, &[0, 1, 2], &[])];
        let standings = [(0, with_log(&founders, groups)), (1, empty(11))];
        assert!(matches!(begin_with(standings), Beginning::Found(_)));
    }

    #[test]
    fn one_that_was_wiped_and_votes_is_refused() {
        // Before it was wiped, its directory had another number.
        let founders = [(0, 10), (1, 11), (2, 12)];
        let standing = |replica| with_log(&founders, vec![group(replica, 9, &[0, 1, 2], &[])]);
        assert_eq!(begin_with([(0, standing(0)), (1, standing(1))]), Beginning::Lost);
    }

    #[test]
    fn founding_with_fewer_processes_counts_nobody_in() {
        let founders = [(0, 10), (2, 22)];
        let standing = |replica| with_log(&founders, vec![group(replica, 9, &[0, 1, 2], &[])]);
        assert_eq!(begin_with([(0, standing(0)), (1, standing(1))]), Beginning::Lost);
    }

    #[test]
    fn one_that_does_not_vote_joins_by_what_the_furthest_of_a_majority_knows() {
        let standing = |replica, committed, voters: &[u16], learners: &[u16]| {
            with_log(&[], vec![group(replica, committed, voters, learners)])
        };
        let knows = [(0, standing(0, 20, &[0, 1], &[])), (1, standing(1, 9, &[0, 1, 2], &[]))];
        assert_eq!(begin_with(knows), Beginning::Join);
        let learns = [(0, standing(0, 20, &[0, 1], &[2])), (1, standing(1, 20, &[0, 1], &[2]))];
        assert_eq!(begin_with(learns), Beginning::Join);
        let again = [(0, standing(0, 9, &[0, 1], &[])), (1, standing(1, 20, &[0, 1, 2], &[]))];
        assert_eq!(begin_with(again), Beginning::Lost, "it votes again");
        let alone = [(0, standing(0, 20, &[0, 1], &[])), (1, empty(11))];
        assert!(
            matches!(begin_with(alone), Beginning::Wait(reason) if reason.contains("nothing is heard of r1"))
        );
    }

    #[test]
    fn a_replica_is_removed_when_it_is_in_none_of_its_groups() {
        let standings = |learners: &[u16]| {
            Standings::from([
                (0, with_log(&[], vec![group(0, 20, &[0, 1], learners)])),
                (1, with_log(&[], vec![group(1, 20, &[0, 1], learners)])),
            ])
        };
        assert_eq!(is_removed(&asker(), &standings(&[])), Some(true));
        assert_eq!(is_removed(&asker(), &standings(&[2])), Some(false));
        let mut one = standings(&[]);
        one.remove(&1);
        assert_eq!(is_removed(&asker(), &one), None);
    }
}
