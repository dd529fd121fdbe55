//! `ordain replica`: adds, removes and replaces replicas of a running cluster.
//!
//! All of it goes in steps that find out first what is so already. So a command that was interrupted is run again, and goes on
//! where it was; and where nothing is left to do it does nothing.
//!
//! A new replica first gets the log and does not vote (a *learner*); it votes when it has caught up in all partitions. A replica
//! that leaves first no longer votes in any partition, and leads none: as long as it gets the log of all of them it executes
//! everything, so its clients do not wait. Then it leaves all of them. Where one replaces another, the new one votes from the
//! same change on in which the old one no longer does: the old one may be dead, and nobody can be spared beside it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use ordain_db::message::ClientRequest;
use ordain_db::node::GroupStatus;
use ordain_db::node::membership::{Members, Progress};
use ordain_db::position::{PartitionId, ReplicaId};

use super::view::View;
use super::{limit, say};
use crate::cluster_file::ClusterFile;
use crate::durable::ReplicationMode;
use crate::remote::direct::says_elsewhere;

/// How often it is looked how far things are.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is told what is waited for, when that stays the same.
const TELL_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is told at most, when that changes.
const TELL_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// For how long what speaks against a step must do so: a process may be about to come back.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);

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
    /// Add a replica in the place of another one, which is removed and may be dead.
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
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = limit())]
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
            Operator::new(common)?.replace(ReplicaId(*replica), ReplicaId(*with))
        }
    }
}

/// What is to be done with a group now.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing: it is as it shall be.
    Done,
    /// Propose these members.
    Propose(Members),
    /// Look again; for people: what is waited for.
    Wait(String),
    /// It must not be done, unless that changes at once; for people: why.
    Refuse(String),
}

impl From<Option<Members>> for Step {
    fn from(change: Option<Members>) -> Step {
        change.map_or(Step::Done, Step::Propose)
    }
}

struct Operator {
    view: View,
    limit: Duration,
}

impl Operator {
    fn new(common: &Common) -> Result<Operator, String> {
        let file = ClusterFile::read(&common.cluster)?;
        if file.replication.mode == ReplicationMode::None {
            return Err(format!(
                "the cluster of {} is not replicated, its mode of replication is \"none\": its data can be moved to a \
                 replicated one only by its clients",
                common.cluster.display()
            ));
        }
        Ok(Operator { view: View::new(file)?, limit: Duration::from_secs(common.limit_seconds) })
    }

    /// Checks that a replica is in the cluster file; `instead` says what to do if not.
    fn check_replica(&self, replica: ReplicaId, instead: &str) -> Result<(), String> {
        let replicas = self.view.file.replicas();
        if replica.0 < replicas {
            return Ok(());
        }
        let numbers: Vec<String> = (0..replicas).map(|number| number.to_string()).collect();
        let (wanted, numbers) = (replica.0, numbers.join(", "));
        Err(format!("the cluster file has no replica {wanted}, only {numbers}: {instead}"))
    }

    /// Checks that a replica is one that there may be to remove.
    fn check_present(&self, replica: ReplicaId) -> Result<(), String> {
        self.check_replica(replica, "name one of these, or use the cluster file that has it")
    }

    /// Checks that a replica is one that can be added.
    fn check_new(&self, replica: ReplicaId) -> Result<(), String> {
        let next = self.view.file.replicas();
        let instead =
            format!("add [[process]] entries with `replica = {next}` behind all others, and name {next}");
        self.check_replica(replica, &instead)
    }

    fn add(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.prepare(replica)?;
        self.reach(&format!("{replica} votes"), |group, _| group.to_vote(replica).into())?;
        say(&format!("replica {} is added", replica.0))
    }

    fn remove(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.check_present(replica)?;
        self.reach(&format!("{replica} votes no longer"), |group, reached| {
            let rest = group.voters_without(replica);
            let refusal = refusal(group, reached, replica, &rest);
            refusal.map_or_else(|| group.to_unvote(replica).into(), Step::Refuse)
        })?;
        self.dismiss(replica)
    }

    fn replace(&mut self, old: ReplicaId, new: ReplicaId) -> Result<(), String> {
        self.check_present(old)?;
        self.check_new(new)?;
        self.prepare(new)?;
        self.reach(&format!("{new} votes in the place of {old}"), |group, reached| {
            let rest = group.voters_with(new, old);
            let refusal = refusal(group, reached, old, &rest);
            refusal.map_or_else(|| group.to_swap(old, new).into(), Step::Refuse)
        })?;
        say(&format!("replica {} is added", new.0))?;
        self.dismiss(old)
    }

    /// Gets a replica ready to vote.
    fn prepare(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.check_new(replica)?;
        self.tell_processes()?;
        self.reach(&format!("{replica} gets the log"), |group, _| group.to_learn(replica).into())?;
        self.reach(&format!("{replica} has caught up"), |group, _| catch_up(group, replica))
    }

    /// Lets a replica leave that votes no longer.
    fn dismiss(&mut self, replica: ReplicaId) -> Result<(), String> {
        self.reach(&format!("{replica} has left"), |group, _| group.to_leave(replica).into())?;
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
            return Err("no process of the cluster can be reached: check that they run, and that the network reaches them"
                .to_owned());
        }
        Ok(())
    }

    /// Brings the groups of all partitions to where `step` wants them. It gets what the leader says, and who could be asked.
    fn reach(&mut self, goal: &str, step: impl Fn(&GroupStatus, &[ReplicaId]) -> Step) -> Result<(), String> {
        let begun = Instant::now();
        for partition in (0..self.view.file.partitions).map(PartitionId) {
            let mut told: Option<(String, Instant)> = None;
            let mut refused: Option<Instant> = None;
            loop {
                let (waits, is_refused) = match self.advance(partition, &step)? {
                    Step::Done => break,
                    Step::Refuse(reason) => (reason, true),
                    Step::Propose(members) => (format!("proposed {}", named(&members)), false),
                    Step::Wait(waits) => (waits, false),
                };
                refused = refused.filter(|_| is_refused);
                if is_refused && refused.get_or_insert_with(Instant::now).elapsed() > REFUSAL_PATIENCE {
                    return Err(format!("{partition}: {waits}"));
                }
                if begun.elapsed() > self.limit {
                    return Err(format!(
                        "{partition}: not yet so after {:?} that {goal}: {waits}; run the command again to go on",
                        self.limit
                    ));
                }
                let due = |told: &(String, Instant)| is_due(told.0 != waits, told.1.elapsed());
                if !is_refused && told.as_ref().is_none_or(due) {
                    say(&format!("{partition}: {waits}"))?;
                    told = Some((waits, Instant::now()));
                }
                std::thread::sleep(PAUSE);
            }
            say(&format!("{partition}: {goal}"))?;
        }
        Ok(())
    }

    /// Does the next step for a group, and says which it was.
    fn advance(
        &mut self,
        partition: PartitionId,
        step: &impl Fn(&GroupStatus, &[ReplicaId]) -> Step,
    ) -> Result<Step, String> {
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
            let groups = told().filter_map(|(_, status)| status.group.as_ref());
            let newest = groups.filter(|group| !group.voters.is_empty()).max_by_key(|group| group.committed);
            return Ok(Step::Wait(format!("waiting for a leader{}", needed(newest, &reached))));
        };
        if !group.outgoing.is_empty() {
            let needed = needed(Some(group), &reached);
            return Ok(Step::Wait(format!("a change of the membership is under way{needed}")));
        }
        let next = step(group, &reached);
        let Step::Propose(Members { voters, learners }) = &next else { return Ok(next) };
        let asked = self.view.request(process, partition, |request| ClientRequest::ChangeMembership {
            request,
            voters: voters.clone(),
            learners: learners.clone(),
        });
        match asked {
            Ok(Ok(_)) => Ok(next),
            Ok(Err(error)) if says_elsewhere(&error) => Ok(Step::Wait(error.to_string())),
            Ok(Err(error)) => Err(format!("{partition}: {error}")),
            Err(problem) => Ok(Step::Wait(problem)),
        }
    }
}

/// For people: whom a group cannot do without, of those that cannot be reached; nothing if it has all that it needs.
fn needed(group: Option<&GroupStatus>, reached: &[ReplicaId]) -> String {
    let Some(group) = group else { return ": none of its nodes can be reached".to_owned() };
    let lacking = |voters: &&[ReplicaId]| {
        let there = voters.iter().filter(|voter| reached.contains(voter)).count();
        !voters.is_empty() && there <= voters.len() / 2
    };
    let lacking: Vec<&[ReplicaId]> =
        [&group.voters[..], &group.outgoing[..]].into_iter().filter(lacking).collect();
    if lacking.is_empty() {
        return String::new();
    }
    let each: Vec<String> = lacking.iter().map(|voters| format!("a majority of {}", list(voters))).collect();
    let mut silent: Vec<ReplicaId> = lacking.concat();
    silent.retain(|voter| !reached.contains(voter));
    silent.sort_unstable();
    silent.dedup();
    format!(
        ": it takes {}, and {} cannot be reached: start their processes",
        each.join(" and "),
        list(&silent)
    )
}

/// Whether it is time to tell what is waited for.
fn is_due(is_news: bool, since: Duration) -> bool {
    since > if is_news { TELL_INTERVAL_MIN } else { TELL_INTERVAL }
}

/// Names members for people.
fn named(Members { voters, learners }: &Members) -> String {
    match &learners[..] {
        [] => format!("the voters {}", list(voters)),
        _ => format!("the voters {} and the learners {}", list(voters), list(learners)),
    }
}

fn list(replicas: &[ReplicaId]) -> String {
    replicas.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn catch_up(group: &GroupStatus, replica: ReplicaId) -> Step {
    let waits = match group.progress(replica) {
        Progress::CaughtUp => return Step::Done,
        Progress::Unknown => format!("the leader does not know {replica} yet"),
        Progress::Silent => format!("waiting for {replica}: start its processes with the new cluster file"),
        Progress::GetsCheckpoint => format!("{replica} gets a checkpoint"),
        Progress::Lags(matched) => format!("{replica} has {matched} of {} entries", group.committed),
    };
    Step::Wait(waits)
}

/// Why a group could not go on without a voter, with the `rest`, if that is so; for people.
fn refusal(
    group: &GroupStatus,
    reached: &[ReplicaId],
    replica: ReplicaId,
    rest: &[ReplicaId],
) -> Option<String> {
    if !group.voters.contains(&replica) {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("{replica} is the only one that votes: add another replica first"));
    }
    // What the leader says may be a moment old: it must also have been heard of now.
    let is_there = |voter: &&ReplicaId| {
        let follower = group.followers.iter().find(|follower| follower.replica == **voter);
        let is_active = **voter == group.replica || follower.is_some_and(|follower| follower.is_active);
        is_active && reached.contains(voter)
    };
    let there = rest.iter().filter(is_there).count();
    if there > rest.len() / 2 {
        return None;
    }
    Some(format!(
        "without {replica} the group would stop, as only {there} of the {} other voters can be reached: start them first",
        rest.len()
    ))
}

#[cfg(test)]
mod tests {
    use ordain_db::node::FollowerGroupStatus;
    use ordain_db::node::membership::examples::{follower, group, replicas};

    use super::*;

    #[test]
    fn what_is_waited_for_is_told() {
        let new = ReplicaId(3);
        let waits =
            |followers: &[FollowerGroupStatus]| match catch_up(&group(&[0, 1, 2], &[3], followers), new) {
                Step::Wait(reason) => reason,
                step => format!("{step:?}"),
            };
        assert!(waits(&[]).contains("does not know r3"));
        let silent = FollowerGroupStatus { is_active: false, ..follower(3, 0) };
        assert!(waits(&[silent]).contains("start its processes"));
        let behind = FollowerGroupStatus { needs_checkpoint: true, ..follower(3, 0) };
        assert!(waits(&[behind]).contains("checkpoint"));
        assert!(waits(&[follower(3, 935)]).contains("935 of 1000"));
        assert_eq!(waits(&[follower(3, 1000)]), "Done");
    }

    #[test]
    fn who_is_needed_is_named() {
        let reached = replicas(&[0, 3]);
        assert_eq!(needed(Some(&group(&[0, 2, 3], &[1], &[])), &reached), "", "a majority is there");
        let lacking = needed(Some(&group(&[0, 1, 2], &[], &[])), &reached);
        assert!(
            lacking.contains("it takes a majority of r0, r1, r2, and r1, r2 cannot be reached"),
            "{lacking}"
        );
        let joint = GroupStatus { outgoing: replicas(&[0, 1, 2]), ..group(&[0, 3], &[], &[]) };
        let lacking = needed(Some(&joint), &reached);
        assert!(lacking.contains("it takes a majority of r0, r1, r2, and r1, r2 cannot"), "{lacking}");
        let joint = GroupStatus { outgoing: replicas(&[0, 1, 2]), ..group(&[0, 1], &[], &[]) };
        let lacking = needed(Some(&joint), &reached);
        assert!(
            lacking.contains("a majority of r0, r1 and a majority of r0, r1, r2, and r1, r2"),
            "{lacking}"
        );
        assert!(needed(None, &[]).contains("none of its nodes"));
    }

    #[test]
    fn a_group_that_would_stop_keeps_its_voter() {
        let reached_of = |reached: &[u16], voters: &[u16], replica, followers: &[FollowerGroupStatus]| {
            let group = group(voters, &[], followers);
            let rest = group.voters_without(ReplicaId(replica));
            refusal(&group, &replicas(reached), ReplicaId(replica), &rest).unwrap_or_default()
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
