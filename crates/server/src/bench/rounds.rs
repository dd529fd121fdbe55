//! Rounds: everything is run once, then everything again.
//!
//! What the machine does besides changes from minute to minute, and from one hour to another more than engines differ. So what is
//! compared are runs of the same round.

use indicatif::ProgressBar;
use serde::Serialize;

/// Runs every case in every round; what each case came to, round by round.
///
/// # Errors
/// When a run fails.
pub(crate) fn in_rounds<C, R>(
    rounds: u16,
    cases: &[C],
    mut run: impl FnMut(&C) -> Result<R, String>,
) -> Result<Vec<Vec<R>>, String> {
    let mut results: Vec<Vec<R>> = cases.iter().map(|_| Vec::new()).collect();
    let progress = ProgressBar::new(u64::from(rounds) * cases.len() as u64);
    for _ in 0..rounds {
        for (case, results) in cases.iter().zip(&mut results) {
            results.push(run(case)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(results)
}

/// The least, the middle and the most of some rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// All zero for no values.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or_default();
        let (middle, last) = (values.len() / 2, values.len().saturating_sub(1));
        let median = if values.len() % 2 == 1 {
            at(middle)
        } else {
            f64::midpoint(at(middle.saturating_sub(1)), at(middle))
        };
        Spread { least: at(0), median, most: at(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_are_run_before_any_is_run_again() {
        let mut order = Vec::new();
        let results = in_rounds(3, &["a", "b"], |case| {
            order.push(*case);
            Ok(order.len())
        });
        assert_eq!(results, Ok(vec![vec![1, 3, 5], vec![2, 4, 6]]));
        assert_eq!(order, ["a", "b", "a", "b", "a", "b"]);
        let failed: Result<Vec<Vec<()>>, String> = in_rounds(2, &[1, 2], |case| Err(format!("run {case}")));
        assert_eq!(failed, Err("run 1".to_owned()));
    }

    #[test]
    fn a_spread_has_the_middle() {
        let spread = |least, median, most| Spread { least, median, most };
        assert_eq!(Spread::of([4.0, 1.0].into_iter()), spread(1.0, 2.5, 4.0));
        assert_eq!(Spread::of([3.0, 9.0, 1.0].into_iter()), spread(1.0, 3.0, 9.0));
        assert_eq!(Spread::of(std::iter::empty()), spread(0.0, 0.0, 0.0));
    }
}
