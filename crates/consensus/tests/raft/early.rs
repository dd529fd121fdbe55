//! Early hand-out (Calvin §3.1.1, asynchronous replication): a leader executes what only it has, and may have to go back.

use ordain_consensus::{HandOut, ReplicatedLog};

use crate::group::{Group, r};
use crate::plan::Plan;

#[test]
fn a_leader_that_is_cut_off_executes_early_and_goes_back() {
    let plan = Plan { hand_out: HandOut::AfterLocalSync, ..Plan::calm(9, 3) };
    let mut group = Group::new(plan).expect("a group begins");
    group.run_until(10_000_000, |group| group.leader().is_some()).expect("it elects a leader");
    let leader = group.leader().expect("there is one");
    group.run(300_000).expect("all is well");
    group.checkpoint(leader);
    for other in [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader) {
        group.cut.extend([(leader, other), (other, leader)]);
    }
    let before = group.log(leader).status();
    for _ in 0..5 {
        assert!(group.propose(leader).expect("all is well"), "it still leads");
    }
    group.run(50_000).expect("all is well");
    let after = group.log(leader).status();
    assert_eq!(after.committed, before.committed, "nobody else has them");
    assert!(after.handed_out >= before.last + 5, "they are executed: {after:?}");
    assert!(group.machines[&leader].executed() > after.committed);
    group.run_until(10_000_000, |group| group.leader().is_some_and(|next| next != leader)).expect("elected");
    group.run(500_000).expect("all is well");
    assert_eq!(group.overwritten, 0, "it has not heard of it yet");
    group.heal().expect("the old leader goes back and follows");
    assert_eq!(group.overwritten, 1);
}

#[test]
fn synchronous_replication_executes_nothing_early() {
    let mut group = Group::new(Plan::calm(9, 3)).expect("a group begins");
    group.run_until(10_000_000, |group| group.leader().is_some()).expect("it elects a leader");
    let leader = group.leader().expect("there is one");
    group.run(300_000).expect("all is well");
    for other in [r(0), r(1), r(2)].into_iter().filter(|replica| *replica != leader) {
        group.cut.extend([(leader, other), (other, leader)]);
    }
    assert!(group.propose(leader).expect("all is well"), "it still leads");
    group.run(50_000).expect("all is well");
    let status = group.log(leader).status();
    assert!(status.persisted > status.committed && status.handed_out == status.committed, "{status:?}");
}
