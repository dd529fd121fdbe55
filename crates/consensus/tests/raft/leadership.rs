//! Who leads, for how long, and what it gives to those who lag.

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::{LogEffects, Membership, ProposeError, RecoverError, ReplicaId, ReplicatedLog, Role};

use crate::group::{Group, r};
use crate::plan::Plan;

const LONG: u64 = 10_000_000;

fn calm(plan: Plan) -> (Group, ReplicaId) {
    let mut group = Group::new(plan).expect("a group begins");
    group.run_until(LONG, |group| group.leader().is_some()).expect("it elects a leader");
    let leader = group.leader().expect("there is one");
    (group, leader)
}

#[test]
fn every_seed_elects_soon_and_keeps_its_leader() {
    for seed in 0..200 {
        let (mut group, leader) = calm(Plan::calm(seed, 5));
        let elected = group.now - 1_000_000;
        assert!(elected < 2_000_000, "seed {seed}: elected after {elected} us");
        group.run(2_000_000).expect("all is well");
        assert_eq!(group.leader(), Some(leader), "seed {seed}: without faults the leader stays");
    }
}

#[test]
fn leadership_is_handed_over() {
    let (mut group, leader) = calm(Plan::calm(1, 3));
    let heir = [r(0), r(1), r(2)].into_iter().find(|replica| *replica != leader).expect("a follower");
    let at = group.now;
    group.log(leader).transfer_leadership(heir);
    assert!(matches!(group.log(leader).role(), Role::Leader { ready: false, .. }));
    let refused = group.log(leader).propose(Bytes::from_static(b"late"));
    assert_eq!(refused, Err(ProposeError::NotLeader { leader: None }));
    group.advance(leader).expect("all is well");
    group.run_until(LONG, |group| group.leader() == Some(heir)).expect("it takes over");
    let gap = group.now - at;
    assert!(gap < 90_000, "within an election timeout: {gap} us");
}

#[test]
fn a_leader_without_its_majority_steps_down() {
    let (mut group, leader) = calm(Plan::calm(2, 3));
    for other in [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader) {
        group.cut.insert((other, leader));
    }
    group.run(400_000).expect("all is well");
    assert_eq!(group.log(leader).role(), Role::Follower { leader: None });
    let next = group.leader().expect("the majority goes on");
    assert_ne!(next, leader);
    // It asks before it stands for election, so it does not disturb the others when it comes back.
    let term = group.log(next).status().term;
    group.cut.clear();
    group.run(1_000_000).expect("all is well");
    assert_eq!(group.log(next).status().term, term);
    assert_eq!(group.leader(), Some(next));
}

#[test]
fn a_follower_is_active_as_long_as_it_is_heard_of() {
    let (mut group, leader) = calm(Plan::calm(3, 3));
    let active = |group: &mut Group| {
        let followers = group.log(leader).status().followers;
        followers.into_iter().filter(|follower| follower.is_active).map(|follower| follower.replica).collect()
    };
    let others: Vec<ReplicaId> =
        [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader).collect();
    for _ in 0..200 {
        group.run(5_000).expect("all is well");
        let active: Vec<ReplicaId> = active(&mut group);
        assert_eq!(active, others, "at {} us", group.now);
    }
    group.crash(others[0]);
    group.run(LONG / 10).expect("the others go on");
    let active: Vec<ReplicaId> = active(&mut group);
    assert_eq!(active, others[1..]);
}

#[test]
fn a_follower_that_lags_too_far_gets_a_checkpoint() {
    let (mut group, leader) = calm(Plan::calm(4, 3));
    let late = [r(0), r(1), r(2)].into_iter().find(|replica| *replica != leader).expect("a follower");
    group.crash(late);
    group.run(2_000_000).expect("all is well");
    group.checkpoint(leader);
    group.run(100_000).expect("all is well");
    assert_eq!(group.snapshots_installed, 0);
    group.restart(late).expect("it comes back");
    group.run(500_000).expect("all is well");
    assert_eq!(group.snapshots_installed, 1);
    group.heal().expect("it catches up");
}

#[test]
fn a_pause_of_the_process_is_no_reason_to_stand_for_election() {
    let (mut group, leader) = calm(Plan::calm(5, 3));
    let follower = [r(0), r(1), r(2)].into_iter().find(|replica| *replica != leader).expect("a follower");
    let now = group.now;
    group.log(follower).tick(now + 60_000_000);
    assert_eq!(group.log(follower).role(), Role::Follower { leader: Some(leader) });
}

#[test]
fn what_is_too_much_is_refused() {
    let options =
        RaftOptions { in_flight_bytes_max: 100, payload_bytes_max: 60, ..RaftOptions::new(r(0), 1) };
    let mut log = RaftLog::found(options, Membership::of_voters([r(0)])).expect("a group of one");
    assert_eq!(log.propose(Bytes::from_static(b"early")), Err(ProposeError::NotLeader { leader: None }));
    let persist_all = |log: &mut RaftLog| {
        let mut handed_out = Vec::new();
        for _ in 0..10 {
            let mut effects = LogEffects::default();
            log.advance(&mut effects);
            handed_out.append(&mut effects.committed);
            if let Some(persist) = effects.persist {
                log.persisted(persist.number);
            }
        }
        handed_out
    };
    while !log.role().may_propose() {
        let now = log.deadline().expect("it depends on time");
        log.tick(now);
        persist_all(&mut log);
        assert!(now < 2_000_000, "it leads itself");
    }
    assert_eq!(log.propose(Bytes::new()), Err(ProposeError::Empty));
    let large = Bytes::from(vec![0; 61]);
    assert_eq!(log.propose(large), Err(ProposeError::TooLarge { bytes: 61, bytes_max: 60 }));
    let payload = Bytes::from(vec![1; 60]);
    assert_eq!(log.propose(payload.clone()), Ok(()));
    assert_eq!(log.propose(payload.clone()), Err(ProposeError::Full { bytes: 60 }));
    assert_eq!(log.in_flight(), 1);
    let handed_out = persist_all(&mut log);
    assert_eq!(handed_out.len(), 1);
    assert_eq!(handed_out[0].payload, payload);
    assert_eq!(log.in_flight(), 0);
    assert_eq!(log.propose(payload), Ok(()));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let membership = Membership::of_voters([r(0)]);
    let good = RaftOptions::new(r(0), 1);
    let bad = [
        RaftOptions { heartbeat_us: 0, ..good.clone() },
        RaftOptions { election_timeout_us_min: 60_000, ..good.clone() },
        RaftOptions { election_timeout_us_max: 500_000, ..good.clone() },
        RaftOptions { messages_in_flight_max: 0, ..good.clone() },
        RaftOptions { in_flight_bytes_max: 1, ..good.clone() },
    ];
    for options in bad {
        let result = RaftLog::found(options, membership.clone()).map(|_| ());
        assert!(matches!(result, Err(RecoverError::Options(_))), "{result:?}");
    }
    let other = RaftLog::found(RaftOptions::new(r(1), 1), membership).map(|_| ());
    assert!(matches!(other, Err(RecoverError::WrongGroup(_))), "{other:?}");
}
