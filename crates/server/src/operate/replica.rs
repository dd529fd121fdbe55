//! `ordain replica`: adds, removes and replaces replicas of a running cluster.
//!
//! All of it goes in steps that find out first what is so already. So a command that was interrupted is run again, and goes on
//! where it was; and where nothing is left to do it does nothing.
//!
//! A new replica first gets the log and does not vote (a *learner*); it votes when it has caught up in all partitions. A replica
//! that leaves first no longer votes in any partition, and leads none: as long as it gets the log of all of them it executes
//! everything, so its clients do not wait. Then it leaves all of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use ordain_db::message::ClientRequest;
use ordain_db::node::GroupStatus;
use ordain_db::position::{PartitionId, ReplicaId};

use super::say;
use super::view::View;
use crate::cluster_file::ClusterFile;
use crate::durable::ReplicationMode;
use crate::remote::direct::says_elsewhere;

/// A learner that lacks at most this many entries of the log may vote: it gets them in a moment.
const LAG_MAX: u64 = 64;

/// How often it is looked how far things are.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is told what is waited for, when that stays the same.
const TELL_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is told at most, when that changes.
const TELL_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// What `ordain replica` is told.
#[derive(Args, Clone, Debug)]
pub struct ReplicaOptions {
    #[command(subcommand)]
    change: Change,
}

#[derive(Subcommand, Clone, Debug)]
enum Change {
    /// Add a replica. The cluster file has its processes already, behind all others, and the running processes are told of it.
    Add {
        /// Its number in the cluster file.
        replica: u16,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a replica: its processes end by themselves, and their data is no longer needed.
    Remove {
        /// Its number in the cluster file, where it stays.
        replica: u16,
        #[command(flatten)]
        common: Common,
    },
    /// Add a replica, and then remove another one.
    Replace {
        /// The number of the one to remove.
        replica: u16,
        /// The number of the one to add.
        #[arg(long, value_name = "REPLICA")]
        with: u16,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args, Clone, Debug)]
struct Common {
    /// The cluster file.
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// How long to wait for a step, in seconds; then run the command again to go on.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit_seconds: u64,
}

/// Changes which replicas a running cluster has.
///
/// # Errors
/// When that cannot be, or takes too long: says what to do.
pub fn run(options: &ReplicaOptions) -> Result<(), String> {
    match &options.change {
        Change::Add { replica, common } => Operator::new(common)?.add(ReplicaId(*replica)),
        Change::Remove { replica, common } => Operator::new(common)?.remove(ReplicaId(*replica)),
        Change::Replace { replica, with, .. } if replica == with => Err(format!(
            "--with {with} is the replica to remove: name another one, or remove it and add it again"
        )),
        Change::Replace { replica, with, common } => {
            let mut operator = Operator::new(common)?;
            operator.add(ReplicaId(*with))?;
            operator.remove(ReplicaId(*replica))
        }
    }
}

/// What is to be done with a group now.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing: it is as it shall be.
    Done,
    /// Propose these voters and learners.
    Propose(Vec<ReplicaId>, Vec<ReplicaId>),
    /// Look again; for people: what is waited for.
    Wait(String),
}

struct Operator {
    view: View,
    limit: Duration,
}

impl Operator {
    fn new(common: &Common) -> Result<Operator, String> {
        let file = ClusterFile::read(&common.cluster)?;
        if file.replication.mode == ReplicationMode::None {
            return Err("the cluster is not replicated: its mode of replication is \"none\"".to_owned());
        }
        Ok(Operator { view: View::new(file)?, limit: Duration::from_secs(common.limit_seconds) })
    }

    fn check_replica(&self, replica: ReplicaId) -> Result<(), String> {
        let replicas = self.view.file.replicas();
        if replica.0 < replicas {
            return Ok(());
        }
        Err(format!(
            "the cluster file has no replica {}: it has {replicas}, numbered from 0; add [[process]] entries with `replica = {}` behind all others",
            replica.0, replicas
        ))
    }

    fn add(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.check_replica(replica)?;
        self.tell_processes()?;
        self.reach(&format!("{replica} gets the log"), |group, _| Ok(learn(group, replica)))?;
        self.reach(&format!("{replica} has caught up"), |group, _| Ok(catch_up(group, replica)))?;
        self.reach(&format!("{replica} votes"), |group, _| Ok(vote(group, replica)))?;
        say(&format!("replica {} is added", replica.0))
    }

    fn remove(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.check_replica(replica)?;
        self.reach(&format!("{replica} votes no longer"), |group, reached| {
            check_rest(group, reached, replica)?;
            Ok(unvote(group, replica))
        })?;
        self.reach(&format!("{replica} has left"), |group, _| Ok(leave(group, replica)))?;
        say(&format!(
            "replica {} is removed: its processes end by themselves, and their data directories may be removed",
            replica.0
        ))
    }

    /// Tells all processes of the replicas that the cluster file has.
    fn tell_processes(&mut self) -> Result<(), String> {
        let text = self.view.file.to_text()?;
        let mut told = 0;
        for process in 0..self.view.file.processes.len() {
            let name = self.view.file.processes[process].name.clone();
            match self.view.grow(process, &text) {
                Ok(Ok(done)) => {
                    told += 1;
                    say(&format!("{name}: {done}"))?;
                }
                Ok(Err(refusal)) => {
                    return Err(format!("process {name} refuses the cluster file: {refusal}"));
                }
                Err(problem) => say(&format!(
                    "{name}: not told ({problem}); run the command again when it is back, or start it with this cluster file"
                ))?,
            }
        }
        if told == 0 {
            return Err("no process of the cluster can be reached".to_owned());
        }
        Ok(())
    }

    /// Brings the groups of all partitions to where `step` wants them. It gets what the leader says, and who could be asked.
    fn reach(
        &mut self,
        goal: &str,
        step: impl Fn(&GroupStatus, &[ReplicaId]) -> Result<Step, String>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        for partition in (0..self.view.file.partitions).map(PartitionId) {
            let mut told: Option<(String, Instant)> = None;
            loop {
                let waits = match self.advance(partition, &step)? {
                    None => break,
                    Some(waits) => waits,
                };
                if begun.elapsed() > self.limit {
                    return Err(format!(
                        "{partition}: not yet so after {:?} that {goal}: {waits}; run the command again to go on",
                        self.limit
                    ));
                }
                if told.as_ref().is_none_or(|(said, at)| is_due(*said != waits, at.elapsed())) {
                    say(&format!("{partition}: {waits}"))?;
                    told = Some((waits, Instant::now()));
                }
                std::thread::sleep(PAUSE);
            }
            say(&format!("{partition}: {goal}"))?;
        }
        Ok(())
    }

    /// Does the next step for a group; what is waited for, or `None` when nothing is left to do.
    fn advance(
        &mut self,
        partition: PartitionId,
        step: &impl Fn(&GroupStatus, &[ReplicaId]) -> Result<Step, String>,
    ) -> Result<Option<String>, String> {
        let nodes = self.view.statuses();
        let told = || {
            let of_partition = nodes.iter().filter(|view| view.node.partition == partition);
            of_partition.filter_map(|view| Some((view, view.status.as_ref().ok()?)))
        };
        let reached: Vec<ReplicaId> = told().map(|(view, _)| view.node.replica).collect();
        let leading = told()
            .filter(|(_, status)| status.leads)
            .filter_map(|(view, status)| Some((view.process, status.group.as_ref()?)));
        let Some((process, group)) = leading.max_by_key(|(_, group)| group.term) else {
            return Ok(Some("waiting for a leader".to_owned()));
        };
        if !group.outgoing.is_empty() {
            return Ok(Some("a change of the membership is under way".to_owned()));
        }
        let (voters, learners) =
            match step(group, &reached).map_err(|problem| format!("{partition}: {problem}"))? {
                Step::Done => return Ok(None),
                Step::Wait(waits) => return Ok(Some(waits)),
                Step::Propose(voters, learners) => (voters, learners),
            };
        let asked = self.view.request(process, partition, |request| ClientRequest::ChangeMembership {
            request,
            voters: voters.clone(),
            learners: learners.clone(),
        });
        match asked {
            Ok(Ok(_)) => Ok(Some(format!("proposed {}", members(&voters, &learners)))),
            Ok(Err(error)) if says_elsewhere(&error) => Ok(Some(error.to_string())),
            Ok(Err(error)) => Err(format!("{partition}: {error}")),
            Err(problem) => Ok(Some(problem)),
        }
    }
}

/// Whether it is time to tell what is waited for.
fn is_due(is_news: bool, since: Duration) -> bool {
    since > if is_news { TELL_INTERVAL_MIN } else { TELL_INTERVAL }
}

/// Names members for people.
fn members(voters: &[ReplicaId], learners: &[ReplicaId]) -> String {
    let list =
        |replicas: &[ReplicaId]| replicas.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match learners {
        [] => format!("the voters {}", list(voters)),
        _ => format!("the voters {} and the learners {}", list(voters), list(learners)),
    }
}

fn with(replicas: &[ReplicaId], replica: ReplicaId) -> Vec<ReplicaId> {
    let mut all: Vec<ReplicaId> = replicas.iter().copied().chain([replica]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn without(replicas: &[ReplicaId], replica: ReplicaId) -> Vec<ReplicaId> {
    replicas.iter().copied().filter(|other| *other != replica).collect()
}

fn learn(group: &GroupStatus, replica: ReplicaId) -> Step {
    match group.voters.contains(&replica) || group.learners.contains(&replica) {
        true => Step::Done,
        false => Step::Propose(group.voters.clone(), with(&group.learners, replica)),
    }
}

fn catch_up(group: &GroupStatus, replica: ReplicaId) -> Step {
    if group.voters.contains(&replica) {
        return Step::Done;
    }
    match group.followers.iter().find(|follower| follower.replica == replica) {
        None => Step::Wait(format!("the leader does not know {replica} yet")),
        Some(follower) if !follower.is_active => {
            Step::Wait(format!("waiting for {replica}: start its processes with the new cluster file"))
        }
        Some(follower) if follower.needs_checkpoint => Step::Wait(format!("{replica} gets a checkpoint")),
        Some(follower) if follower.matched + LAG_MAX < group.committed => {
            Step::Wait(format!("{replica} has {} of {} entries", follower.matched, group.committed))
        }
        Some(_) => Step::Done,
    }
}

fn vote(group: &GroupStatus, replica: ReplicaId) -> Step {
    match group.voters.contains(&replica) {
        true => Step::Done,
        false => Step::Propose(with(&group.voters, replica), without(&group.learners, replica)),
    }
}

fn unvote(group: &GroupStatus, replica: ReplicaId) -> Step {
    match group.voters.contains(&replica) {
        true => Step::Propose(without(&group.voters, replica), with(&group.learners, replica)),
        false => Step::Done,
    }
}

fn leave(group: &GroupStatus, replica: ReplicaId) -> Step {
    match group.voters.contains(&replica) || group.learners.contains(&replica) {
        true => Step::Propose(without(&group.voters, replica), without(&group.learners, replica)),
        false => Step::Done,
    }
}

/// Whether the group can go on without a voter.
fn check_rest(group: &GroupStatus, reached: &[ReplicaId], replica: ReplicaId) -> Result<(), String> {
    if !group.voters.contains(&replica) {
        return Ok(());
    }
    let rest = without(&group.voters, replica);
    if rest.is_empty() {
        return Err(format!("{replica} is the only one that votes: add another replica first"));
    }
    // What the leader says may be a moment old: it must also have been heard of now.
    let is_there = |voter: &&ReplicaId| {
        let follower = group.followers.iter().find(|follower| follower.replica == **voter);
        let is_active = **voter == group.replica || follower.is_some_and(|follower| follower.is_active);
        is_active && reached.contains(voter)
    };
    let there = rest.iter().filter(is_there).count();
    if there > rest.len() / 2 {
        return Ok(());
    }
    Err(format!(
        "without {replica} the group would stop, as only {there} of the {} other voters can be reached: start them first",
        rest.len()
    ))
}

#[cfg(test)]
mod tests {
    use ordain_db::node::FollowerGroupStatus;

    use super::*;

    fn replicas(numbers: &[u16]) -> Vec<ReplicaId> {
        numbers.iter().copied().map(ReplicaId).collect()
    }

    fn follower(replica: u16, matched: u64) -> FollowerGroupStatus {
        FollowerGroupStatus { replica: ReplicaId(replica), matched, needs_checkpoint: false, is_active: true }
    }

    /// A group that replica 0 leads.
    fn group(voters: &[u16], learners: &[u16], followers: &[FollowerGroupStatus]) -> GroupStatus {
        GroupStatus {
            replica: ReplicaId(0),
            leader: Some(ReplicaId(0)),
            term: 3,
            start: 1,
            committed: 1000,
            last: 1000,
            voters: replicas(voters),
            outgoing: Vec::new(),
            learners: replicas(learners),
            followers: followers.to_vec(),
        }
    }

    #[test]
    fn a_replica_learns_catches_up_and_votes() {
        let new = ReplicaId(3);
        let before = group(&[0, 1, 2], &[], &[]);
        assert_eq!(learn(&before, new), Step::Propose(replicas(&[0, 1, 2]), replicas(&[3])));
        let waits =
            |followers: &[FollowerGroupStatus]| match catch_up(&group(&[0, 1, 2], &[3], followers), new) {
                Step::Wait(reason) => reason,
                step => format!("{step:?}"),
            };
        assert!(waits(&[]).contains("does not know r3"));
        assert!(
            waits(&[FollowerGroupStatus { is_active: false, ..follower(3, 0) }])
                .contains("start its processes")
        );
        assert!(
            waits(&[FollowerGroupStatus { needs_checkpoint: true, ..follower(3, 0) }]).contains("checkpoint")
        );
        assert!(waits(&[follower(3, 1000 - LAG_MAX - 1)]).contains("935 of 1000"));
        assert_eq!(waits(&[follower(3, 1000 - LAG_MAX)]), "Done");
        let learns = group(&[0, 1, 2], &[3], &[]);
        assert_eq!(learn(&learns, new), Step::Done);
        assert_eq!(vote(&learns, new), Step::Propose(replicas(&[0, 1, 2, 3]), vec![]));
        let votes = group(&[0, 1, 2, 3], &[], &[]);
        assert_eq!(
            [learn(&votes, new), catch_up(&votes, new), vote(&votes, new)],
            [Step::Done, Step::Done, Step::Done]
        );
    }

    #[test]
    fn a_replica_stops_to_vote_before_it_leaves() {
        let old = ReplicaId(0);
        let before = group(&[0, 1, 2], &[], &[]);
        assert_eq!(unvote(&before, old), Step::Propose(replicas(&[1, 2]), replicas(&[0])));
        let learns = group(&[1, 2], &[0], &[]);
        assert_eq!(
            (unvote(&learns, old), leave(&learns, old)),
            (Step::Done, Step::Propose(replicas(&[1, 2]), vec![]))
        );
        assert_eq!(leave(&group(&[1, 2], &[], &[]), old), Step::Done);
    }

    #[test]
    fn a_group_that_would_stop_keeps_its_voter() {
        let reached_of = |reached: &[u16], voters: &[u16], replica, followers: &[FollowerGroupStatus]| {
            let group = group(voters, &[], followers);
            check_rest(&group, &replicas(reached), ReplicaId(replica)).err().unwrap_or_default()
        };
        let problem = |voters: &[u16], replica, followers: &[FollowerGroupStatus]| {
            reached_of(&[0, 1, 2], voters, replica, followers)
        };
        let seems_there = [follower(1, 9), follower(2, 9)];
        assert!(reached_of(&[0, 2], &[0, 1, 2], 2, &seems_there).contains("only 1 of the 2 other voters"));
        assert_eq!(problem(&[0, 1, 2], 2, &seems_there), "");
        assert!(problem(&[0], 0, &[]).contains("add another replica first"));
        let silent = FollowerGroupStatus { is_active: false, ..follower(1, 9) };
        assert!(problem(&[0, 1, 2], 2, &[silent, follower(2, 9)]).contains("only 1 of the 2 other voters"));
        assert_eq!(problem(&[0, 1, 2], 1, &[silent, follower(2, 9)]), "", "the silent one may go");
        assert_eq!(problem(&[0, 2], 1, &[follower(2, 9)]), "", "one that does not vote");
    }
}
