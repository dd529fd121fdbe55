//! Calvin's Figure 6: the slowdown by multi-partition transactions under contention (CAL-X11, CAL-X12).

use super::{Judgement, judgement};
use crate::scale::{Benchmark, Point};

const CALVIN: (&str, &str) = ("CAL-X11", "Calvin §6.3, Figure 6");
const MODEL: (&str, &str) = ("CAL-X12", "Calvin §6.3, Figure 6");

/// For how long two-phase commit holds a lock in the paper's model, in seconds (CAL-122).
const LOCKS_HELD: f64 = 0.008;

/// What the paper states at low contention.
const STATED_FACTORS: std::ops::RangeInclusive<f64> = 5.0..=7.0;

/// How much a rising curve may fall by chance, as a share.
const NOISE: f64 = 0.03;

/// By how much more the slowdown must be at the right edge than at the left, to have risen.
const RISEN: f64 = 1.2;

/// How much slower a node is when all transactions span nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slowdown {
    /// Number of nodes.
    pub nodes: u16,
    /// See [`Point::contention_index`].
    pub contention_index: f64,
    /// The rate of a node at the same size, without multi-partition transactions and at the lowest contention.
    pub baseline: f64,
    /// The baseline over the measured rate.
    pub factor: f64,
}

impl Slowdown {
    /// The slowdown of the paper's model of two-phase commit, with 1/(C·D) read as the rate of a machine: by its own formula
    /// below 1 at low contention, where it is cut off (CAL-122, trap 18).
    pub fn two_phase_commit(&self) -> f64 {
        (self.baseline * self.contention_index * LOCKS_HELD).max(1.0)
    }
}

/// The slowdowns of the microbenchmark for every size that has a baseline, ascending in nodes, then in contention.
pub fn slowdowns(points: &[Point]) -> Vec<Slowdown> {
    let micro = || points.iter().filter(|point| point.workload == Benchmark::Micro);
    let baseline = |nodes: u16| {
        let alone = micro().filter(|point| point.nodes == nodes && point.multi_partition_percent == 0.0);
        let lowest = alone.min_by(|one, other| one.contention_index.total_cmp(&other.contention_index));
        lowest.map(Point::per_node)
    };
    let mut slowdowns: Vec<Slowdown> = micro()
        .filter(|point| point.multi_partition_percent == 100.0 && point.nodes > 1)
        .filter_map(|point| {
            let baseline = baseline(point.nodes)?;
            let Point { nodes, contention_index, .. } = *point;
            Some(Slowdown { nodes, contention_index, baseline, factor: baseline / point.per_node() })
        })
        .collect();
    slowdowns.sort_by(|one, other| {
        one.nodes.cmp(&other.nodes).then(one.contention_index.total_cmp(&other.contention_index))
    });
    slowdowns
}

/// CAL-X11, and the crossing with the model of CAL-X12.
pub fn slowdown(points: &[Point]) -> Vec<Judgement> {
    let all = slowdowns(points);
    let of = |nodes: u16| -> Vec<Slowdown> {
        all.iter().copied().filter(|slowdown| slowdown.nodes == nodes).collect()
    };
    let (four, eight) = (of(4), of(8));
    let mut judgements = Vec::new();
    for (nodes, line) in [(4, &four), (8, &eight)] {
        judgements.push(judgement(
            CALVIN,
            format!("{nodes} nodes: at low contention 5 to 7 times slower than without multi-partition transactions"),
            line.first().map(|first| {
                let measured = format!("{:.1} times at index {}", first.factor, first.contention_index);
                (measured, STATED_FACTORS.contains(&first.factor))
            }),
        ));
        let stated = format!("{nodes} nodes: the slowdown rises with the contention index");
        judgements.push(judgement(CALVIN, stated, rises(line)));
    }
    let stated = "8 nodes are slower for each node than 4 at every contention index".to_owned();
    judgements.push(judgement(CALVIN, stated, always_slower(&four, &eight)));
    let stated = "the gap between 4 and 8 nodes widens with contention".to_owned();
    judgements.push(judgement(CALVIN, stated, gap_widens(&four, &eight)));
    for (nodes, line) in [(4, &four), (8, &eight)] {
        let stated =
            format!("{nodes} nodes: at very high contention the model of two-phase commit is slower still");
        judgements.push(judgement(MODEL, stated, below_the_model(line)));
    }
    judgements
}

fn rises(line: &[Slowdown]) -> Option<(String, bool)> {
    let [first, .., last] = line else { return None };
    let falls = line.windows(2).find(|pair| pair[1].factor < pair[0].factor * (1.0 - NOISE));
    let mut measured = format!(
        "{:.1} times at index {}, {:.1} times at {}",
        first.factor, first.contention_index, last.factor, last.contention_index
    );
    if let Some(pair) = falls {
        measured.push_str(&format!(", less at {} than before", pair[1].contention_index));
    }
    Some((measured, falls.is_none() && last.factor >= first.factor * RISEN))
}

/// The slowdown of 8 nodes over that of 4, by contention index.
fn gaps(four: &[Slowdown], eight: &[Slowdown]) -> Vec<(f64, f64)> {
    let pairs = four.iter().filter_map(|four| {
        let eight = eight.iter().find(|eight| eight.contention_index == four.contention_index)?;
        Some((four.contention_index, eight.factor / four.factor))
    });
    pairs.collect()
}

fn always_slower(four: &[Slowdown], eight: &[Slowdown]) -> Option<(String, bool)> {
    let gaps = gaps(four, eight);
    let (index, least) = gaps.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((format!("8 nodes are {least:.2} times as slow at least, at index {index}"), least > 1.0))
}

fn gap_widens(four: &[Slowdown], eight: &[Slowdown]) -> Option<(String, bool)> {
    let gaps = gaps(four, eight);
    let [(low, first), .., (high, last)] = gaps.as_slice() else { return None };
    let measured = format!("8 nodes are {first:.2} times as slow at index {low}, {last:.2} times at {high}");
    Some((measured, *last > *first * (1.0 + NOISE)))
}

/// Very high contention is an index of at least 0.1.
fn below_the_model(line: &[Slowdown]) -> Option<(String, bool)> {
    let last = line.last().filter(|last| last.contention_index >= 0.1)?;
    let model = last.two_phase_commit();
    let measured = format!(
        "{:.1} times at index {}; the model over the same baseline, read as the rate of a machine: {model:.1} times",
        last.factor, last.contention_index
    );
    Some((measured, last.factor < model))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict::{self, Differs, Holds, NotMeasured};
    use super::super::synthetic;
    use super::*;

    /// A baseline of 27,000/s, and the given factors at 0.0001, 0.01 and 1.
    fn points(four: [f64; 3], eight: [f64; 3]) -> Vec<Point> {
        let mut points = Vec::new();
        for (nodes, factors) in [(4, four), (8, eight)] {
            points.push(synthetic(Benchmark::Micro, nodes, 0.0001, 0.0, 27_000.0));
            points.push(synthetic(Benchmark::Micro, nodes, 0.01, 0.0, 20_000.0));
            for (index, factor) in [0.0001, 0.01, 1.0].into_iter().zip(factors) {
                points.push(synthetic(Benchmark::Micro, nodes, index, 100.0, 27_000.0 / factor));
            }
        }
        points
    }

    fn verdicts(points: &[Point]) -> Vec<Verdict> {
        slowdown(points).iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn slowdowns_as_in_the_paper_hold() {
        let points = points([5.4, 8.0, 100.0], [6.75, 11.0, 150.0]);
        assert_eq!(verdicts(&points), [Holds; 8]);
    }

    #[test]
    fn each_way_to_differ_is_seen() {
        let few = points([3.0, 8.0, 100.0], [8.0, 11.0, 260.0]);
        assert_eq!(verdicts(&few), [Differs, Holds, Differs, Holds, Holds, Differs, Holds, Differs]);
        let level = points([5.4, 5.0, 6.0], [6.0, 5.2, 6.6]);
        assert_eq!(verdicts(&level), [Holds, Differs, Holds, Differs, Holds, Differs, Holds, Holds]);
        let equal = points([5.4, 8.0, 100.0], [5.4, 8.0, 100.0]);
        assert_eq!(verdicts(&equal)[4..6], [Differs, Differs]);
    }

    #[test]
    fn without_a_baseline_or_high_contention_nothing_is_said() {
        let points = points([5.4, 8.0, 100.0], [6.75, 11.0, 150.0]);
        let spanning: Vec<Point> =
            points.iter().filter(|point| point.multi_partition_percent > 0.0).cloned().collect();
        assert_eq!(verdicts(&spanning), [NotMeasured; 8]);
        let low: Vec<Point> = points.into_iter().filter(|point| point.contention_index < 1.0).collect();
        assert_eq!(verdicts(&low)[6..], [NotMeasured; 2]);
    }

    #[test]
    fn the_model_of_two_phase_commit_is_the_papers() {
        let at = |contention_index| Slowdown { nodes: 4, contention_index, baseline: 27_000.0, factor: 1.0 };
        assert!((at(1.0).two_phase_commit() - 216.0).abs() < 1e-6);
        assert!((at(0.01).two_phase_commit() - 2.16).abs() < 1e-6);
        assert!((at(0.0001).two_phase_commit() - 1.0).abs() < f64::EPSILON);
    }
}
