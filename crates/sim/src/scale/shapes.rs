//! What the paper says that the curves look like, held against measured points.
//!
//! The paper's absolute figures are those of its machines (eight virtual cores of 2012); what is judged are shapes. Each
//! [`Judgement`] tells the statement, what was measured, and whether it holds, also where it does not.

mod scaling;
mod slowdown;

use std::fmt;

use super::{Benchmark, Point};

pub use scaling::{micro_scaling, new_order_scaling};
pub use slowdown::{Slowdown, slowdown, slowdowns};

/// A smaller difference than this share is none, where a paper gives no number.
pub const CHANCE: f64 = 0.05;

/// See [`Line::over_sizes`].
const SIZES_MIN: usize = 3;

/// Whether a statement of the paper holds for the points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Differs,
    /// The points that would tell are missing.
    NotMeasured,
}

/// A statement of the paper, held against points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The experiment's number among our requirements.
    pub experiment: &'static str,
    /// Where the paper says it.
    pub section: &'static str,
    /// What it says, in our words.
    pub stated: String,
    /// What was measured.
    pub measured: String,
    /// Whether they agree.
    pub verdict: Verdict,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judgement { experiment, section, stated, measured, verdict } = self;
        let verdict = match verdict {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::NotMeasured => "not measured",
        };
        writeln!(f, "{experiment} ({section}): {verdict}")?;
        writeln!(f, "  stated    {stated}")?;
        writeln!(f, "  measured  {measured}")
    }
}

/// Holds all statements against the points.
pub fn judge(points: &[Point]) -> Vec<Judgement> {
    let mut judgements = new_order_scaling(points);
    judgements.extend(micro_scaling(points));
    judgements.extend(slowdown(points));
    judgements
}

/// The points of one workload with one contention index and one share of multi-partition transactions.
#[derive(Clone, PartialEq, Debug)]
pub struct Line<'a> {
    /// See [`Point::contention_index`].
    pub contention_index: f64,
    /// See [`Point::multi_partition_percent`].
    pub multi_partition_percent: f64,
    /// The points, ascending in nodes.
    pub points: Vec<&'a Point>,
}

impl<'a> Line<'a> {
    /// All lines of a workload, ascending in contention index, then in the share.
    pub fn all(points: &'a [Point], workload: Benchmark) -> Vec<Line<'a>> {
        let mut lines: Vec<Line<'a>> = Vec::new();
        for point in points.iter().filter(|point| point.workload == workload) {
            match lines.iter_mut().find(|line| line.includes(point)) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    contention_index: point.contention_index,
                    multi_partition_percent: point.multi_partition_percent,
                    points: vec![point],
                }),
            }
        }
        for line in &mut lines {
            line.points.sort_by_key(|point| point.nodes);
        }
        lines.sort_by(|one, other| {
            let by_index = one.contention_index.total_cmp(&other.contention_index);
            by_index.then(one.multi_partition_percent.total_cmp(&other.multi_partition_percent))
        });
        lines
    }

    /// The lines over at least three sizes of the cluster: points at fewer belong to other experiments.
    pub fn over_sizes(points: &'a [Point], workload: Benchmark) -> Vec<Line<'a>> {
        let mut lines = Line::all(points, workload);
        lines.retain(|line| line.points.len() >= SIZES_MIN);
        lines
    }

    fn includes(&self, point: &Point) -> bool {
        self.contention_index == point.contention_index
            && self.multi_partition_percent == point.multi_partition_percent
    }

    /// The name of the line in a legend.
    pub fn name(&self) -> String {
        format!("index {}, {} % multi-partition", self.contention_index, self.multi_partition_percent)
    }

    /// The rate of each node in a cluster of this size.
    fn per_node(&self, nodes: u16) -> Option<f64> {
        self.points.iter().find(|point| point.nodes == nodes).map(|point| point.per_node())
    }
}

/// A judgement from what was measured and whether it is as stated; `None` when the points are missing.
pub fn judgement(
    (experiment, section): (&'static str, &'static str),
    stated: String,
    found: Option<(String, bool)>,
) -> Judgement {
    let (measured, verdict) = match found {
        Some((measured, true)) => (measured, Verdict::Holds),
        Some((measured, false)) => (measured, Verdict::Differs),
        None => ("the points that would tell are missing".to_owned(), Verdict::NotMeasured),
    };
    Judgement { experiment, section, stated, measured, verdict }
}

/// A share, for people.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Shares, for people.
pub fn percents(shares: &[f64]) -> String {
    shares.iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", ")
}

/// The least and the most; infinities if there are none.
pub fn extremes(values: &[f64]) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(none, |(least, most), value| (least.min(*value), most.max(*value)))
}

/// A point with a rate for each node, for tests.
#[cfg(test)]
pub(super) fn synthetic(
    workload: Benchmark,
    nodes: u16,
    contention_index: f64,
    multi_partition_percent: f64,
    per_node: f64,
) -> Point {
    Point {
        workload,
        nodes,
        contention_index,
        multi_partition_percent,
        throughput: per_node * f64::from(nodes),
        latency_us_p50: 0,
        latency_us_p99: 0,
        busy_percent: 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_points_nothing_is_judged() {
        let judgements = judge(&[]);
        assert!(judgements.len() >= 3);
        for judgement in judgements {
            assert_eq!(judgement.verdict, Verdict::NotMeasured, "{judgement}");
        }
    }

    #[test]
    fn a_judgement_reads_as_three_lines() {
        let found = Some(("it does".to_owned(), true));
        let text = judgement(("CAL-X08", "Calvin §6.1"), "grows".to_owned(), found).to_string();
        assert_eq!(text, "CAL-X08 (Calvin §6.1): holds\n  stated    grows\n  measured  it does\n");
    }

    #[test]
    fn lines_are_told_apart_and_sorted() {
        let points = [
            synthetic(Benchmark::Micro, 4, 0.01, 10.0, 1.0),
            synthetic(Benchmark::Micro, 2, 0.01, 10.0, 2.0),
            synthetic(Benchmark::Micro, 2, 0.0001, 10.0, 3.0),
            synthetic(Benchmark::NewOrder, 2, 0.01, 10.0, 4.0),
        ];
        let lines = Line::all(&points, Benchmark::Micro);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].contention_index, lines[0].points.len()), (0.0001, 1));
        assert_eq!(lines[1].points.iter().map(|point| point.nodes).collect::<Vec<_>>(), [2, 4]);
    }
}
