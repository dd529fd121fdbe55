//! Changes of the membership, under load and with faults.

use ordain_consensus::{FollowerStatus, MembershipError, ReplicaId, ReplicatedLog};

use crate::group::{Group, r};
use crate::plan::Plan;

const LONG: u64 = 10_000_000;

fn calm(joiners: u16) -> Group {
    let plan = Plan { joiners, checkpoint_interval: 50_000, ..Plan::calm(7, 3) };
    let mut group = Group::new(plan).expect("a group begins");
    group.run_until(LONG, |group| group.leader().is_some()).expect("it elects a leader");
    group
}

fn change(group: &mut Group, voters: &[ReplicaId], learners: &[ReplicaId]) {
    let leader = group.leader().expect("there is a leader");
    group.log(leader).change_membership(voters, learners).expect("nothing is under way");
    group.advance(leader).expect("all is well");
    let is_done = |group: &Group| {
        group.leader().is_some_and(|leader| {
            let membership = group.machines[&leader].log.as_ref().expect("it leads").membership();
            membership.voters == voters && membership.learners == learners && !membership.is_joint()
        })
    };
    group.run_until(LONG, is_done).expect("the change is done");
}

fn follower(group: &Group, replica: ReplicaId) -> Option<FollowerStatus> {
    let leader = group.leader()?;
    let status = group.machines[&leader].log.as_ref()?.status();
    status.followers.into_iter().find(|follower| follower.replica == replica)
}

#[test]
fn a_replica_that_lost_its_disk_is_replaced_under_load() {
    let mut group = calm(1);
    let leader = group.leader().expect("there is one");
    let lost = [r(0), r(1), r(2)].into_iter().find(|replica| *replica != leader).expect("a follower");
    group.crash(lost);
    group.machines.remove(&lost);
    let rest: Vec<_> = [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != lost).collect();
    change(&mut group, &[r(0), r(1), r(2)], &[r(3)]);
    let caught_up = |group: &Group| {
        follower(group, r(3)).is_some_and(|joiner| joiner.matched + 10 > group.machines[&leader].executed())
    };
    group.run_until(LONG, caught_up).expect("the joiner catches up");
    assert!(group.snapshots_installed > 0, "it joined by a checkpoint");
    change(&mut group, &[&rest[..], &[r(3)]].concat(), &[]);
    // The new voter counts: the group goes on without another old one.
    group.crash(rest.into_iter().find(|replica| *replica != leader).expect("a follower"));
    let before = group.checker.committed.len();
    group.run(1_000_000).expect("all is well");
    assert!(group.checker.committed.len() > before + 50, "two of three voters decide");
    group.heal().expect("all is even in the end");
}

#[test]
fn a_leader_removes_itself() {
    let mut group = calm(0);
    let leader = group.leader().expect("there is one");
    let rest: Vec<_> = [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader).collect();
    let at = group.now;
    change(&mut group, &rest, &[]);
    let next = group.leader().expect("another one leads");
    assert_ne!(next, leader);
    let gap = group.now - at;
    assert!(gap < 90_000, "it handed over, and was not missed until an election timeout: {gap} us");
    let before = group.checker.committed.len();
    group.run(1_000_000).expect("all is well");
    assert!(group.checker.committed.len() > before + 50);
}

#[test]
fn a_group_of_one_grows_and_shrinks() {
    let plan = Plan { joiners: 2, checkpoint_interval: 50_000, ..Plan::calm(3, 1) };
    let mut group = Group::new(plan).expect("a group begins");
    group.run_until(LONG, |group| group.leader().is_some()).expect("it leads itself");
    change(&mut group, &[r(0)], &[r(1), r(2)]);
    let caught_up = |group: &Group| {
        [r(1), r(2)].into_iter().all(|joiner| {
            follower(group, joiner)
                .is_some_and(|follower| follower.matched + 10 > group.machines[&r(0)].executed())
        })
    };
    group.run_until(LONG, caught_up).expect("both catch up");
    change(&mut group, &[r(0), r(1), r(2)], &[]);
    change(&mut group, &[r(2)], &[]);
    assert_eq!(group.leader(), Some(r(2)));
    group.heal().expect("one alone goes on");
}

#[test]
fn changes_that_are_none_are_refused() {
    let mut group = calm(0);
    let leader = group.leader().expect("there is one");
    let log = group.log(leader);
    let all = [r(0), r(1), r(2)];
    let invalid = |result| matches!(result, Err(MembershipError::Invalid(_)));
    assert!(invalid(log.change_membership(&[], &all)));
    assert!(invalid(log.change_membership(&all, &[])));
    assert!(invalid(log.change_membership(&[r(0), r(0)], &[])));
    assert!(invalid(log.change_membership(&all, &[r(1)])));
    let many: Vec<_> = (0..32).map(ReplicaId).collect();
    assert!(invalid(log.change_membership(&many, &[])));
    log.change_membership(&all, &[r(3)]).expect("it is a change");
    assert_eq!(log.change_membership(&all, &[r(4)]), Err(MembershipError::UnderWay));
    let other = all.into_iter().find(|replica| *replica != leader).expect("a follower");
    let refused = group.log(other).change_membership(&all, &[r(4)]);
    assert_eq!(refused, Err(MembershipError::NotLeader { leader: Some(leader) }));
}

#[test]
fn nothing_is_lost_while_members_come_and_go() {
    let mut changes = 0;
    let mut committed = 0;
    for seed in 30_000..30_500 {
        let storm = Plan::stormy(seed);
        let plan = Plan { joiners: 3, membership_interval: 200_000, checkpoint_interval: 100_000, ..storm };
        let run = || {
            let mut group = Group::new(plan)?;
            group.run(3_000_000)?;
            group.heal()?;
            Ok(group)
        };
        let group: Result<Group, String> = run();
        let group = group.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        changes += group.changes;
        committed += group.checker.committed.len();
    }
    assert!(changes > 2_000, "{changes} changes");
    assert!(committed > 20_000, "{committed} entries");
}

#[test]
fn whoever_joins_gets_a_checkpoint_that_names_it() {
    let mut group = Group::new(Plan { joiners: 1, ..Plan::calm(11, 3) }).expect("a group begins");
    group.run_until(LONG, |group| group.leader().is_some()).expect("it elects a leader");
    group.run(500_000).expect("all is well");
    let leader = group.leader().expect("there is one");
    // This checkpoint would do for the log, but it is from before the change.
    group.checkpoint(leader);
    group.run(100_000).expect("all is well");
    change(&mut group, &[r(0), r(1), r(2)], &[r(3)]);
    group.run(500_000).expect("all is well");
    let installed = group.machines[&r(3)].checkpoint.as_ref().expect("it was given one");
    assert!(installed.start.membership.contains(r(3)));
    group.heal().expect("it catches up");
}

/// An operator removes a dead replica, and the leader or the last follower stops when the group is in the joint membership. It takes
/// both to go on; when it is back, whoever leads finishes the change.
#[test]
fn a_joint_membership_is_left_by_whoever_leads_next() {
    let mut joint_at_crash = 0;
    for seed in 0..20 {
        let plan = Plan { checkpoint_interval: 50_000, ..Plan::calm(seed, 3) };
        let mut group = Group::new(plan).expect("a group begins");
        group.run_until(LONG, |group| group.leader().is_some()).expect("it elects a leader");
        let leader = group.leader().expect("there is one");
        let mut others = [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader);
        let (dead, follower) = (others.next().expect("a follower"), others.next().expect("another one"));
        group.crash(dead);
        group.machines.remove(&dead);
        let mut rest = vec![leader, follower];
        rest.sort_unstable();
        group.log(leader).change_membership(&rest, &[dead]).expect("nothing is under way");
        group.advance(leader).expect("all is well");
        let is_joint = |group: &Group, replica: ReplicaId| {
            let log = group.machines.get(&replica).and_then(|machine| machine.log.as_ref());
            log.is_some_and(|log| log.membership().is_joint())
        };
        let stops = if seed % 2 == 0 { leader } else { follower };
        let is_seen = |group: &Group| is_joint(group, leader) || is_joint(group, follower);
        if group.run_until(500_000, is_seen).is_err() {
            // Both steps took effect between two looks.
            continue;
        }
        group.crash(stops);
        group.run(2_000_000).expect("nobody can go on alone");
        joint_at_crash += u32::from(is_joint(&group, if stops == leader { follower } else { leader }));
        group.restart(stops).expect("it comes back");
        let is_done = |group: &Group| {
            group.leader().is_some_and(|leader| {
                let membership = group.machines[&leader].log.as_ref().expect("it leads").membership();
                membership.voters == rest && membership.learners == [dead] && !membership.is_joint()
            })
        };
        group.run_until(LONG, is_done).unwrap_or_else(|error| panic!("seed {seed}: not done: {error}"));
        change(&mut group, &rest, &[]);
    }
    assert!(joint_at_crash > 0, "the one that was left knew of the joint membership");
}
