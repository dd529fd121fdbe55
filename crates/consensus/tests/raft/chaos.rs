//! Many seeds with faults of all kinds: first nothing wrong may happen, then, when all is healed, everything must go on.

use ordain_consensus::HandOut;

use crate::group::Group;
use crate::plan::Plan;

fn run(plan: Plan) -> Result<Group, String> {
    let mut group = Group::new(plan)?;
    group.run(3_000_000)?;
    group.heal()?;
    Ok(group)
}

/// Runs seeds, and fails with the first one that is wrong.
fn sweep(seeds: std::ops::Range<u64>, plan: impl Fn(u64) -> Plan) -> Vec<Group> {
    let run_one = |seed| run(plan(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    seeds.map(run_one).collect()
}

#[test]
fn nothing_committed_is_lost_and_all_goes_on_after_faults() {
    let groups = sweep(0..600, Plan::stormy);
    let snapshots: u64 = groups.iter().map(|group| group.snapshots_installed).sum();
    let lives: u64 =
        groups.iter().flat_map(|group| group.machines.values()).map(|machine| machine.life).sum();
    let committed: usize = groups.iter().map(|group| group.checker.committed.len()).sum();
    // The faults took place, and so did the work.
    assert!(snapshots > 100, "{snapshots} checkpoints were installed");
    assert!(lives > 4_000, "{lives} lives");
    assert!(committed > 40_000, "{committed} entries");
}

#[test]
fn early_hand_out_ends_in_the_same_state_after_faults() {
    let plan = |seed| Plan { hand_out: HandOut::AfterLocalSync, ..Plan::stormy(seed) };
    let groups = sweep(10_000..10_300, plan);
    let overwritten: u64 = groups.iter().map(|group| group.overwritten).sum();
    assert!(overwritten > 20, "early executions were undone {overwritten} times");
}

#[test]
fn a_seed_has_one_course() {
    for seed in 20_000..20_040 {
        let digest = |_| {
            let group = run(Plan::stormy(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            (group.digest, group.now, group.checker.committed)
        };
        let [first, second] = [(); 2].map(digest);
        assert!(first == second, "seed {seed} took two courses");
    }
}
