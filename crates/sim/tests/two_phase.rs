//! The engine `two-phase` under the faults of the swarm: crashes with transactions in doubt, lost messages, slow and paused nodes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_db::engine::EngineKind;
use ordain_sim::run::run;
use ordain_sim::swarm::{Fixed, draw};

/// Seeds below this.
const SEEDS: u64 = 60;

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
