//! The checks bite: mistakes of the harness, which a group can not survive, are noticed for some seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::group::Group;
use crate::plan::{Mistake, Plan};

/// What the first seed that notices the mistake says. The log's own assertions notice some as well.
fn noticed(mistake: Mistake, seeds: std::ops::Range<u64>) -> Option<String> {
    seeds.into_iter().find_map(|seed| {
        let plan = Plan {
            voters: 3,
            loss: 100,
            delay_max: 40_000,
            write_max: 2_000,
            stall: 0,
            fault_interval: 60_000,
            proposal_interval: 10_000,
            mistake,
            ..Plan::stormy(seed)
        };
        let run = || Group::new(plan)?.run(4_000_000);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => Some(format!("panic: {:?}", panic.downcast_ref::<String>())),
        }
    })
}

#[test]
fn without_a_mistake_nothing_is_noticed() {
    assert_eq!(noticed(Mistake::None, 0..100), None);
}

#[test]
fn a_vote_that_is_counted_twice_is_noticed() {
    let error = noticed(Mistake::ForgetVotes, 0..2_000).expect("a vote is given twice");
    assert!(error.contains("leads term"), "{error}");
}

#[test]
fn a_disk_that_lies_is_noticed() {
    noticed(Mistake::ReportTooEarly, 0..500).expect("what was committed is lost");
}

#[test]
fn entries_out_of_order_are_noticed() {
    let error = noticed(Mistake::SwapNeighbours, 0..100).expect("the order differs");
    assert!(error.contains("executed"), "{error}");
}
