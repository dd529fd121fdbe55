//! The same workloads for real: both engines in turn.

use ordain_sim::scale::bars::Bars;

use super::super::real::{self, Case, Real, RealOptions};
use crate::bench::report::thousands;

/// Both engines; ratios are to the first.
const ENTRIES: &str = "calvin,aloha";

/// What is compared: a name, and what follows the entries on the command line of `ordain bench compare`.
const CASES: [(&str, &str); 11] = [
    ("New Orders, 1W", "tpcc --warehouses 2 --customers 300 --remote 100"),
    ("New Orders, 10W", "tpcc --warehouses 20 --customers 300 --remote 100"),
    ("New Orders, 1D", "scaled-tpcc --districts-per-partition 1 --customers 300"),
    ("New Orders, 10D", "scaled-tpcc --districts-per-partition 10 --customers 300"),
    ("Payments, 10W", "tpcc --warehouses 20 --customers 300 --new-order 0 --payment-remote 100 --by-name 0"),
    ("arithmetic, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds arithmetic"),
    ("arithmetic, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds arithmetic"),
    ("own functors, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds own"),
    ("own functors, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds own"),
    ("as a whole, index 0.0001", "micro --multi-partition 100 --contention-index 0.0001 --adds whole"),
    ("as a whole, index 0.1", "micro --multi-partition 100 --contention-index 0.1 --adds whole"),
];

fn cases() -> Vec<Case> {
    let case = |(name, workload): (&str, &str)| Case { name: name.to_owned(), workload: workload.to_owned() };
    CASES.into_iter().map(case).collect()
}

/// Runs all of them.
///
/// # Errors
/// When a run fails or leaves data that is not consistent.
pub(super) fn measure(options: &RealOptions) -> Result<Vec<Real>, String> {
    real::measure(ENTRIES, &cases(), options)
}

/// A bar for each engine with each workload: its throughput, of the higher of the two.
pub(super) fn bars(measured: &[Real], options: &RealOptions) -> Bars {
    let value = |line: &real::Line| (line.throughput(), format!("{}/s", thousands(line.throughput())));
    let title = "Throughput for real, of the higher of the two engines";
    real::bars(measured, title, value, options.note("all transactions distributed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_comparison() {
        real::assert_cases(ENTRIES, &cases());
    }
}
