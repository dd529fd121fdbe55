//! Calvin's Figures 4 and 5: throughput over the number of nodes (CAL-X08, CAL-X09).

use super::{Judgement, Line, judgement};
use crate::scale::{Benchmark, Point};

/// From this size on the paper calls low-contention curves flat.
const FLAT_FROM: u16 = 10;

/// How far apart rates of a flat curve may be, as a share of the highest.
const FLAT_WITHIN: f64 = 0.10;

/// A smaller change than this share is none.
const SMALLEST_CHANGE: f64 = 0.02;

/// From this contention index on the paper's contention is high.
const HIGH_CONTENTION: f64 = 0.01;

/// Up to this contention index the paper's contention is low.
const LOW_CONTENTION: f64 = 0.0001;

const NEW_ORDER: (&str, &str) = ("CAL-X08", "Calvin §6.1, Figure 4");
const MICRO: (&str, &str) = ("CAL-X09", "Calvin §6.2, Figure 5");

/// CAL-X08: TPC-C, New Orders only, about 10 % over two nodes.
pub fn new_order_scaling(points: &[Point]) -> Vec<Judgement> {
    let lines = Line::over_sizes(points, Benchmark::NewOrder);
    let line = lines.iter().find(|line| line.multi_partition_percent == 10.0);
    let none = Line { contention_index: HIGH_CONTENTION, multi_partition_percent: 10.0, points: Vec::new() };
    let line = line.unwrap_or(&none);
    vec![
        judgement(
            NEW_ORDER,
            "a node does most on the smallest cluster, and less with a second one".to_owned(),
            first_drop(line),
        ),
        judgement(
            NEW_ORDER,
            "beyond 10 nodes the rate of a node stays the same (about 5,000/s on the paper's machines)"
                .to_owned(),
            flat(line),
        ),
        judgement(NEW_ORDER, "the total grows with every node that is added".to_owned(), grows(line, 1)),
    ]
}

/// CAL-X09: the microbenchmark, each line with multi-partition transactions. The paper's text does not say which share goes
/// with which line.
pub fn micro_scaling(points: &[Point]) -> Vec<Judgement> {
    let lines = Line::over_sizes(points, Benchmark::Micro);
    let mut judgements = Vec::new();
    let spanning = || lines.iter().filter(|line| line.multi_partition_percent > 0.0);
    for line in spanning() {
        let stated = |statement: &str| format!("{}: {statement}", line.name());
        judgements.push(judgement(
            MICRO,
            stated("the largest fall of a node's rate is that from one node to two"),
            first_drop(line),
        ));
        if line.contention_index <= LOW_CONTENTION {
            judgements.push(judgement(MICRO, stated("flat from about 10 nodes on"), flat(line)));
            let statement = "from about 10 nodes on the total grows at every step";
            judgements.push(judgement(MICRO, stated(statement), grows(line, FLAT_FROM)));
        }
        if line.contention_index >= HIGH_CONTENTION {
            let statement = "a node's rate keeps falling beyond 10 nodes, ever more slowly";
            judgements.push(judgement(MICRO, stated(statement), keeps_falling(line)));
            let low = spanning().find(|other| {
                other.contention_index <= LOW_CONTENTION
                    && other.multi_partition_percent == line.multi_partition_percent
            });
            let statement = "the first fall is sharper than at low contention";
            judgements.push(judgement(MICRO, stated(statement), low.and_then(|low| sharper(line, low))));
        }
    }
    if judgements.is_empty() {
        let stated = "with multi-partition transactions a node's rate falls most from one node to two";
        judgements.push(judgement(MICRO, stated.to_owned(), None));
    }
    judgements
}

/// The share of a node's rate that is lost from each size to the next.
fn drops(line: &Line<'_>) -> Vec<f64> {
    line.points.windows(2).map(|pair| 1.0 - pair[1].per_node() / pair[0].per_node()).collect()
}

/// Whether the largest fall is that from one node to two.
fn first_drop(line: &Line<'_>) -> Option<(String, bool)> {
    let (one, two) = (line.per_node(1)?, line.per_node(2)?);
    let drops = drops(line);
    let (first, later) = drops.split_first()?;
    let largest = later.iter().copied().fold(0.0, f64::max);
    let measured = format!(
        "{one:.0}/s on 1 node, {two:.0}/s on each of 2: {:.0} % less; the largest later fall is {:.0} %",
        first * 100.0,
        largest * 100.0
    );
    Some((measured, *first > SMALLEST_CHANGE && *first > largest))
}

/// Whether the rates of a node are about the same from [`FLAT_FROM`] nodes on.
fn flat(line: &Line<'_>) -> Option<(String, bool)> {
    let large: Vec<_> = line.points.iter().filter(|point| point.nodes >= FLAT_FROM).collect();
    let ([first, .., last], rates) = (large.as_slice(), large.iter().map(|point| point.per_node())) else {
        return None;
    };
    let (low, high) =
        rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let spread = 1.0 - low / high;
    let measured = format!(
        "{low:.0} to {high:.0}/s for each of {} to {} nodes: a spread of {:.0} % (flat: at most {:.0} %)",
        first.nodes,
        last.nodes,
        spread * 100.0,
        FLAT_WITHIN * 100.0
    );
    Some((measured, spread <= FLAT_WITHIN))
}

/// Whether each larger cluster does more in all, from a size on.
fn grows(line: &Line<'_>, from: u16) -> Option<(String, bool)> {
    let points: Vec<&Point> = line.points.iter().copied().filter(|point| point.nodes >= from).collect();
    let [first, .., last] = points.as_slice() else { return None };
    let bad = points.windows(2).find(|pair| pair[1].throughput <= pair[0].throughput);
    let measured = match bad {
        None => format!(
            "from {:.0}/s on {} node(s) to {:.0}/s on {}, more at every step",
            first.throughput, first.nodes, last.throughput, last.nodes
        ),
        Some(pair) => format!(
            "{:.0}/s on {} node(s), but {:.0}/s on {}",
            pair[0].throughput, pair[0].nodes, pair[1].throughput, pair[1].nodes
        ),
    };
    Some((measured, bad.is_none()))
}

/// Whether a node's rate falls beyond [`FLAT_FROM`] nodes, and by less for each doubling than before.
fn keeps_falling(line: &Line<'_>) -> Option<(String, bool)> {
    let two = line.points.iter().find(|point| point.nodes == 2)?;
    let middle = line.points.iter().find(|point| point.nodes >= FLAT_FROM)?;
    let last = line.points.last().filter(|last| last.nodes > middle.nodes)?;
    let per_doubling = |from: &Point, to: &Point| {
        let doublings = libm::log2(f64::from(to.nodes) / f64::from(from.nodes));
        1.0 - libm::pow(to.per_node() / from.per_node(), 1.0 / doublings)
    };
    let (before, after) = (per_doubling(two, middle), per_doubling(middle, last));
    let lost = 1.0 - last.per_node() / middle.per_node();
    let measured = format!(
        "{:.0}/s on each of {} nodes, {:.0}/s on each of {}; {:.1} % less with each doubling, {:.1} % before",
        middle.per_node(),
        middle.nodes,
        last.per_node(),
        last.nodes,
        after * 100.0,
        before * 100.0
    );
    Some((measured, lost > SMALLEST_CHANGE && after < before))
}

/// Whether the first fall of one line is larger than that of another.
fn sharper(line: &Line<'_>, low: &Line<'_>) -> Option<(String, bool)> {
    let fall = |line: &Line<'_>| Some(1.0 - line.per_node(2)? / line.per_node(1)?);
    let (high, low) = (fall(line)?, fall(low)?);
    let measured = format!("{:.0} % less, and {:.0} % at low contention", high * 100.0, low * 100.0);
    Some((measured, high > low))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict::{self, Differs, Holds, NotMeasured};
    use super::super::synthetic;
    use super::*;

    const NODES: [u16; 8] = [1, 2, 4, 8, 10, 20, 50, 100];

    fn points(workload: Benchmark, index: f64, percent: f64, rates: [f64; 8]) -> Vec<Point> {
        NODES
            .into_iter()
            .zip(rates)
            .map(|(nodes, rate)| synthetic(workload, nodes, index, percent, rate))
            .collect()
    }

    fn verdicts(judgements: &[Judgement]) -> Vec<Verdict> {
        judgements.iter().map(|judgement| judgement.verdict).collect()
    }

    const AS_STATED: [f64; 8] = [100.0, 60.0, 50.0, 46.0, 45.0, 44.0, 43.0, 43.0];

    #[test]
    fn new_orders_as_in_the_paper_hold() {
        let judgements = new_order_scaling(&points(Benchmark::NewOrder, 0.01, 10.0, AS_STATED));
        assert_eq!(verdicts(&judgements), [Holds; 3], "{judgements:?}");
        assert!(judgements[0].measured.contains("40 % less"), "{}", judgements[0]);
    }

    #[test]
    fn each_way_to_differ_is_seen() {
        let differ = |rates| verdicts(&new_order_scaling(&points(Benchmark::NewOrder, 0.01, 10.0, rates)));
        let linear = [100.0; 8];
        assert_eq!(differ(linear), [Differs, Holds, Holds]);
        let late = [100.0, 90.0, 50.0, 46.0, 45.0, 45.0, 45.0, 45.0];
        assert_eq!(differ(late), [Differs, Holds, Holds]);
        let sinking = [100.0, 60.0, 50.0, 46.0, 45.0, 40.0, 35.0, 30.0];
        assert_eq!(differ(sinking), [Holds, Differs, Holds]);
        let shrinking = [100.0, 40.0, 50.0, 46.0, 45.0, 45.0, 45.0, 45.0];
        assert_eq!(differ(shrinking), [Holds, Holds, Differs]);
    }

    #[test]
    fn other_shares_of_new_orders_are_not_the_papers_experiment() {
        let judgements = new_order_scaling(&points(Benchmark::NewOrder, 0.01, 100.0, AS_STATED));
        assert_eq!(verdicts(&judgements), [NotMeasured; 3]);
        let few: Vec<Point> =
            points(Benchmark::NewOrder, 0.01, 10.0, AS_STATED).into_iter().take(4).collect();
        assert_eq!(verdicts(&new_order_scaling(&few)), [Holds, NotMeasured, Holds]);
    }

    #[test]
    fn micro_is_judged_line_by_line() {
        let sinking = [100.0, 40.0, 30.0, 25.0, 24.0, 22.0, 20.0, 19.0];
        let mut all = points(Benchmark::Micro, 0.0001, 10.0, AS_STATED);
        all.extend(points(Benchmark::Micro, 0.01, 10.0, sinking));
        // Without multi-partition transactions nothing falls, and nothing is stated.
        all.extend(points(Benchmark::Micro, 0.01, 0.0, [100.0; 8]));
        let judgements = micro_scaling(&all);
        assert_eq!(verdicts(&judgements), [Holds; 6], "{judgements:?}");

        let mut all = points(Benchmark::Micro, 0.0001, 10.0, sinking);
        all.extend(points(
            Benchmark::Micro,
            0.01,
            10.0,
            AS_STATED.map(|rate| if rate < 46.0 { 45.0 } else { rate }),
        ));
        // The total falls from one node to two, but of those sizes nothing is stated.
        assert_eq!(verdicts(&micro_scaling(&all)), [Holds, Differs, Holds, Holds, Differs, Differs]);
        let shrinking = [100.0, 40.0, 30.0, 25.0, 24.0, 11.0, 4.0, 2.0];
        let all = points(Benchmark::Micro, 0.0001, 10.0, shrinking);
        assert_eq!(verdicts(&micro_scaling(&all)), [Differs, Differs, Differs]);
    }
}
