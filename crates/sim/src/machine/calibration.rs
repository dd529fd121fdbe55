//! From measured steps to a [`CostTable`]: non-negative least squares.
//!
//! Each part of a step has one cost, the same in all scenarios; the costs are those with the smallest sum of squared
//! residuals. A step's residual is weighed by one over its time, as the scatter of a step grows with the square root of the
//! work in it, and each scenario counts by its transactions, however long they took. No cost is negative. Parts that always come together
//! share their cost in any way that fits: an answer leaves where most of a transaction's work was done, so that its cost may
//! contain some of that.
//!
//! Here alone in the crate numbers are floating-point: the result is rounded, and lies in a file before a simulation uses it.

use super::cost::{CostTable, StepWork};
use crate::time::Nanoseconds;

/// The parts of a step that have a cost.
const PARTS: usize = 10;

/// Most rounds of coordinate descent. A round is some hundred multiplications.
const SWEEPS_MAX: usize = 200_000;

/// Rounds in which the weights are computed again from the times that the last costs predict.
const REWEIGHTINGS: usize = 4;

/// Steps weigh as if they took at least this long, as clocks do not measure shorter ones well.
const SHORTEST: f64 = 500.0;

/// A measured step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// What it did.
    pub work: StepWork,
    /// How long it took.
    pub nanoseconds: Nanoseconds,
}

/// The steps of one measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// What was run, for people.
    pub name: String,
    /// Transactions that ended in it, each counted once.
    pub transactions: u64,
    /// Its steps.
    pub samples: Vec<Sample>,
}

impl Scenario {
    /// The time of all its steps.
    pub fn measured(&self) -> Nanoseconds {
        self.samples.iter().map(|sample| sample.nanoseconds).sum()
    }

    /// The time that a table gives to all its steps.
    pub fn predicted(&self, costs: &CostTable) -> Nanoseconds {
        self.samples.iter().map(|sample| costs.step(&sample.work)).sum()
    }
}

/// How well a table predicts the total time of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    /// The scenario's name.
    pub scenario: String,
    /// Its transactions.
    pub transactions: u64,
    /// Its steps.
    pub steps: usize,
    /// The measured time of all its steps.
    pub measured: Nanoseconds,
    /// The time that the table gives to them.
    pub predicted: Nanoseconds,
}

impl Fit {
    /// By how much the prediction is too high, as a share of what was measured.
    pub fn relative_error(&self) -> f64 {
        (self.predicted as f64 - self.measured as f64) / (self.measured as f64).max(1.0)
    }
}

/// A table, and how well it fits the steps that it was made from.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// The table. The costs of a call and of a byte of a checkpoint are 0: none of these steps has them.
    pub costs: CostTable,
    /// The share of the variance of the steps' times that the table explains.
    pub r_squared: f64,
    /// Each scenario's fit.
    pub fits: Vec<Fit>,
}

/// Finds the table that fits the scenarios best.
///
/// # Errors
/// When there are no steps.
pub fn calibrate(scenarios: &[Scenario]) -> Result<Calibration, String> {
    if scenarios.iter().all(|scenario| scenario.samples.is_empty()) {
        return Err("there are no measured steps to calibrate from: measure longer".to_owned());
    }
    let mut costs = None;
    for _ in 0..REWEIGHTINGS {
        costs = Some(table(solve(&NormalEquations::of(scenarios, costs.as_ref()))));
    }
    let costs = costs.unwrap_or_default();
    let fits = scenarios.iter().map(|scenario| Fit {
        scenario: scenario.name.clone(),
        transactions: scenario.transactions,
        steps: scenario.samples.len(),
        measured: scenario.measured(),
        predicted: scenario.predicted(&costs),
    });
    Ok(Calibration { costs, r_squared: r_squared(scenarios, &costs), fits: fits.collect() })
}

/// How often a step does each part, in the order of [`table`].
fn parts(work: &StepWork) -> [f64; PARTS] {
    let messages = work.messages_received + work.messages_sent;
    let bytes = work.bytes_received + work.bytes_sent;
    [
        1,
        work.requests,
        messages,
        bytes,
        work.transactions_received,
        work.delivered,
        work.executed_alone,
        work.executed_together,
        work.functors,
        work.replies,
    ]
    .map(|count| count as f64)
}

/// The table of costs in nanoseconds, in the order of [`parts`].
fn table(nanoseconds: [f64; PARTS]) -> CostTable {
    let picoseconds = nanoseconds.map(|cost| (cost * 1_000.0).round() as u64);
    let [
        step,
        request,
        message,
        byte,
        transaction_received,
        delivered,
        executed_alone,
        executed_together,
        functor,
        reply,
    ] = picoseconds;
    CostTable {
        step,
        request,
        message,
        byte,
        transaction_received,
        delivered,
        executed_alone,
        executed_together,
        functor: Some(functor),
        trial: 0,
        unit: 0,
        reply,
        checkpoint_byte: 0,
        call: 0,
        locks: 0,
        edge: 0,
    }
}

/// The weighted least squares problem: `matrix · costs = right`, as far as no cost is negative.
struct NormalEquations {
    matrix: [[f64; PARTS]; PARTS],
    right: [f64; PARTS],
}

impl NormalEquations {
    /// Weighs by the times that `costs` predict, at first by those measured.
    fn of(scenarios: &[Scenario], costs: Option<&CostTable>) -> NormalEquations {
        let mut equations = NormalEquations { matrix: [[0.0; PARTS]; PARTS], right: [0.0; PARTS] };
        for scenario in scenarios {
            let per_transaction = scenario.measured().max(1) as f64 / scenario.transactions.max(1) as f64;
            for Sample { work, nanoseconds } in &scenario.samples {
                let expected = costs.map_or(*nanoseconds, |costs| costs.step(work));
                let weight = 1.0 / (expected as f64).max(SHORTEST) / per_transaction;
                let counts = parts(work);
                for (row, of_row) in counts.iter().enumerate() {
                    equations.right[row] += weight * of_row * *nanoseconds as f64;
                    for (column, of_column) in counts.iter().enumerate() {
                        equations.matrix[row][column] += weight * of_row * of_column;
                    }
                }
            }
        }
        equations
    }
}

/// Coordinate descent: each cost in turn takes the best value that is not negative, until none moves. The problem is convex,
/// so that it ends at a smallest sum, wherever it begins.
fn solve(equations: &NormalEquations) -> [f64; PARTS] {
    let NormalEquations { matrix, right } = equations;
    let mut costs = [0.0; PARTS];
    for _ in 0..SWEEPS_MAX {
        let mut moved = 0.0_f64;
        for part in 0..PARTS {
            // A part that no step has costs nothing.
            if matrix[part][part] <= 0.0 {
                continue;
            }
            let others: f64 = (0..PARTS)
                .filter(|other| *other != part)
                .map(|other| matrix[part][other] * costs[other])
                .sum();
            let best = ((right[part] - others) / matrix[part][part]).max(0.0);
            moved = moved.max((best - costs[part]).abs() / best.max(1e-3));
            costs[part] = best;
        }
        if moved < 1e-9 {
            break;
        }
    }
    costs
}

fn r_squared(scenarios: &[Scenario], costs: &CostTable) -> f64 {
    let samples = || scenarios.iter().flat_map(|scenario| &scenario.samples);
    let mean = samples().map(|sample| sample.nanoseconds as f64).sum::<f64>() / samples().count() as f64;
    let squares = |expected: &dyn Fn(&Sample) -> f64| -> f64 {
        samples().map(|sample| libm::pow(sample.nanoseconds as f64 - expected(sample), 2.0)).sum()
    };
    let unexplained = squares(&|sample| costs.step(&sample.work) as f64);
    let variance = squares(&|_| mean);
    if variance > 0.0 { 1.0 - unexplained / variance } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use ordain_workload::random::Random;

    use super::*;

    const TRUTH: CostTable = CostTable {
        step: 300_000,
        request: 400_000,
        message: 150_000,
        byte: 250,
        transaction_received: 200_000,
        delivered: 500_000,
        executed_alone: 1_500_000,
        executed_together: 4_000_000,
        functor: Some(350_000),
        trial: 0,
        unit: 0,
        reply: 120_000,
        checkpoint_byte: 0,
        call: 0,
        locks: 0,
        edge: 0,
    };

    /// Steps with random work that take what `truth` says, off by up to `noise_percent`.
    fn scenario(name: &str, seed: u64, truth: &CostTable, noise_percent: u64) -> Scenario {
        let mut random = Random::new(seed, "calibration", &[]);
        let mut sample = || {
            let size = 1 << random.below(9);
            let mut draw = |most: u64| random.below(most + 1);
            let work = StepWork {
                requests: draw(size),
                messages_received: draw(8),
                bytes_received: draw(size * 200),
                messages_sent: draw(8),
                bytes_sent: draw(size * 200),
                transactions_received: draw(size),
                delivered: draw(size),
                executed_alone: draw(size),
                executed_together: draw(size / 4),
                functors: draw(size * 4),
                trials: 0,
                units: 0,
                replies: draw(size),
                checkpoint_bytes: 0,
                ..StepWork::default()
            };
            let percent = 100 - noise_percent + draw(2 * noise_percent);
            Sample { work, nanoseconds: truth.step(&work) * percent / 100 }
        };
        let samples = (0..3_000).map(|_| sample()).collect();
        Scenario { name: name.to_owned(), transactions: 1, samples }
    }

    fn values(costs: &CostTable) -> [u64; PARTS] {
        let CostTable { step, request, message, byte, transaction_received, .. } = *costs;
        let CostTable { delivered, executed_alone, executed_together, functor, reply, .. } = *costs;
        [
            step,
            request,
            message,
            byte,
            transaction_received,
            delivered,
            executed_alone,
            executed_together,
            functor.unwrap_or_default(),
            reply,
        ]
    }

    fn assert_near(found: &CostTable, truth: &CostTable, percent: u64) {
        for (found, truth) in values(found).into_iter().zip(values(truth)) {
            assert!(found.abs_diff(truth) * 100 <= truth * percent + 100, "{found} instead of {truth}");
        }
    }

    #[test]
    fn exact_steps_give_the_costs_back() {
        let calibration = calibrate(&[scenario("exact", 1, &TRUTH, 0)]).unwrap();
        assert_near(&calibration.costs, &TRUTH, 1);
        assert!(calibration.r_squared > 0.999_999, "{}", calibration.r_squared);
    }

    #[test]
    fn noise_averages_out() {
        let scenarios = [scenario("one", 1, &TRUTH, 10), scenario("two", 2, &TRUTH, 10)];
        let calibration = calibrate(&scenarios).unwrap();
        assert_near(&calibration.costs, &TRUTH, 20);
        for fit in &calibration.fits {
            assert!(fit.relative_error().abs() < 0.01, "{fit:?}");
        }
        assert!((0.9..0.999).contains(&calibration.r_squared), "{}", calibration.r_squared);
    }

    #[test]
    fn costs_that_would_be_negative_are_zero() {
        let mut one = scenario("negative", 1, &TRUTH, 0);
        for sample in &mut one.samples {
            // A reply that saves time.
            sample.nanoseconds = sample.nanoseconds.saturating_sub(sample.work.replies * 300);
        }
        let calibration = calibrate(&[one]).unwrap();
        assert_eq!(calibration.costs.reply, 0);
        assert!(calibration.costs.executed_alone > 1_000_000);
    }

    #[test]
    fn a_part_that_never_comes_costs_nothing_and_parts_that_come_together_share() {
        let mut one = scenario("alone", 1, &TRUTH, 0);
        for Sample { work, nanoseconds } in &mut one.samples {
            work.executed_together = 0;
            work.functors = 0;
            work.delivered = work.executed_alone;
            *nanoseconds = TRUTH.step(work);
        }
        let calibration = calibrate(&[one]).unwrap();
        let CostTable { delivered, executed_alone, executed_together, functor, .. } = calibration.costs;
        assert_eq!((executed_together, functor), (0, Some(0)));
        assert!((delivered + executed_alone).abs_diff(2_000_000) < 20_000, "{delivered} {executed_alone}");
    }

    #[test]
    fn a_fit_tells_which_scenario_it_misses() {
        let slow = CostTable { executed_alone: 3_000_000, ..TRUTH };
        let scenarios = [scenario("fast", 1, &TRUTH, 0), scenario("slow", 2, &slow, 0)];
        let calibration = calibrate(&scenarios).unwrap();
        let [fast, slow] = calibration.fits.as_slice() else { panic!("two scenarios, two fits") };
        assert!(fast.relative_error() > 0.1 && slow.relative_error() < -0.1, "{fast:?} {slow:?}");
    }

    #[test]
    fn no_steps_are_an_error() {
        let empty = Scenario { name: "empty".to_owned(), transactions: 0, samples: Vec::new() };
        assert!(calibrate(&[empty]).is_err());
    }
}
