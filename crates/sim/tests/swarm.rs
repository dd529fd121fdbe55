//! Seeds of the swarm: the code as it is keeps every property under faults.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ordain_sim::run::run;
use ordain_sim::swarm::{Fixed, draw};

/// Each seed runs twice: a run is a function of its plan.
#[test]
fn seeds_keep_all_properties_and_repeat_themselves() {
    for seed in 0..60 {
        let plan = draw(seed, &Fixed::default());
        let report = run(&plan).unwrap();
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}\n{plan}", report.violations);
        let again = run(&plan).unwrap();
        assert_eq!((report.trace, report.state), (again.trace, again.state), "seed {seed} repeats itself");
    }
}
