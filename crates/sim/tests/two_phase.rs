//! The engine `two-phase` under the faults of the swarm: crashes with transactions in doubt, lost messages, slow and paused nodes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::engine::EngineKind;
use ordain_db::failpoint::Failpoint;
use ordain_sim::plan::{Bug, Plan};
use ordain_sim::run::run;
use ordain_sim::swarm::{Fixed, draw};

/// Seeds below this.
const SEEDS: u64 = 60;

/// The first seed that violates something, if any does.
fn first_violation(engine: EngineKind, bug: Option<Bug>) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let plan = Plan { bug, ..draw(*seed, &Fixed { engine: Some(engine), ..Fixed::default() }) };
        !run(&plan).unwrap().violations.is_empty()
    })
}

#[test]
fn mistakes_in_locking_are_found() {
    for bug in [Failpoint::ForgetReadLock, Failpoint::ForgetRangeLock].map(Bug::Database) {
        let found = first_violation(EngineKind::TwoPhase, Some(bug));
        assert!(found.is_some(), "{bug:?} is not found");
    }
}

/// The bound of the paper is no database (DET-41), and the checkers notice that.
#[test]
fn what_has_no_commit_protocol_loses_parts_of_transactions() {
    assert!(first_violation(EngineKind::TwoPhaseWithoutCommitProtocol, None).is_some());
}

#[test]
fn seeds_keep_all_properties_and_repeat_themselves() {
    let mut crashes = 0;
    for seed in 0..SEEDS {
        let plan = draw(seed, &Fixed { engine: Some(EngineKind::TwoPhase), ..Fixed::default() });
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "{:#?}\n{plan}", report.violations);
        assert_eq!(run(&plan).unwrap().trace, report.trace, "seed {seed} has one course");
        crashes += report.happened.crashes;
    }
    assert!(crashes > 50, "{crashes} crashes");
}
