//! A loss of power after every single operation on files.

use ordain_consensus::files::{MemoryFiles, Mistakes};

use super::script::{End, Model, live, random};

/// Runs a script with a loss of power after `operations` operations, then opens the log, with further losses of power
/// meanwhile, and works on. Returns whether the power was lost during the script, and the model.
fn run(seed: u64, operations: u64, mistakes: Mistakes) -> Result<(bool, Model), String> {
    let (mut files, mut model) = (MemoryFiles::new(), Model::default());
    files.set_mistakes(mistakes);
    let mut work = random(seed);
    let mut faults = random(seed ^ operations << 32);
    files.power_off_after(operations);
    let mut lost = false;
    for life in 0..6 {
        let steps = if life == 0 { 16 } else { 4 };
        match live(&mut files, &mut model, &mut work, steps) {
            Ok(()) => {}
            Err(End::Failed) if files.is_off() => lost |= life == 0,
            Err(End::Failed) => return Err("a file operation failed with the power on".into()),
            Err(End::Wrong(wrong)) => return Err(wrong),
        }
        files.crash(&mut faults);
        // The next one during recovery, or soon after it.
        if life < 4 {
            files.power_off_after(faults(12));
        }
    }
    Ok((lost, model))
}

#[test]
fn a_crash_after_any_operation_loses_nothing_that_was_durable() {
    let (mut runs, mut losses) = (0, 0);
    for seed in 0..200 {
        for operations in 0.. {
            match run(seed, operations, Mistakes::default()) {
                Ok((lost, model)) => {
                    (runs, losses) = (runs + 1, losses + model.losses);
                    if !lost {
                        break;
                    }
                }
                Err(wrong) => panic!("seed {seed}, {operations} operations: {wrong}"),
            }
        }
    }
    assert!(runs > 4_000, "only {runs} runs");
    assert!(losses > runs / 4, "only {losses} crashes lost something: the test shows nothing");
}

/// How many of the runs of the test above find something wrong.
fn found(mistakes: Mistakes) -> usize {
    let runs = (0..40).flat_map(|seed| (0..40).map(move |operations| (seed, operations)));
    runs.filter(|(seed, operations)| run(*seed, *operations, mistakes).is_err()).count()
}

#[test]
fn the_test_notices_directories_and_files_that_are_not_synced() {
    assert_eq!(found(Mistakes::default()), 0);
    let directory = found(Mistakes { ignore_sync_directory: true, ..Mistakes::default() });
    let contents = found(Mistakes { ignore_sync: true, ..Mistakes::default() });
    assert!(directory > 100 && contents > 100, "{directory} {contents}");
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let files = |seed| {
        let (mut files, mut model, mut random) = (MemoryFiles::new(), Model::default(), random(seed));
        for _ in 0..3 {
            files.power_off_after(20);
            assert!(!matches!(live(&mut files, &mut model, &mut random, 12), Err(End::Wrong(_))));
            files.crash(&mut random);
        }
        files
    };
    for seed in 0..30 {
        assert!(files(seed) == files(seed));
    }
    assert!(files(1) != files(2));
}
