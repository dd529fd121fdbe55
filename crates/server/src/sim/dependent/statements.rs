//! What the paper states of dependent transactions and of latencies, held against what was measured for real: the statements about the
//! [simulated](ordain_sim::scale::dependent) points, as far as there are points of them.

use ordain_db::engine::EngineKind;
use ordain_sim::scale::dependent::VOLATILITIES;
use ordain_sim::scale::dependent::figure_6::{Cell, Figure6, judge_figure_6};
use ordain_sim::scale::dependent::figure_7::{Figure7, Percentile, judge_figure_7};
use ordain_sim::scale::shapes::{Judgement, extremes, judgement, percent};
use ordain_workload::micro::CallKind;

use super::super::real::{Line, median, over};
use super::real::{OFFERED, POSITIONS, Points, Setting};

/// By how much the rate of updates may be off.
const SIMILAR: f64 = 0.1;

const PROGRESS: (&str, &str) = ("Progress", "trap 7: a bound, and no starvation");

/// Holds all statements against the points.
pub(super) fn judge(points: &Points) -> Vec<Judgement> {
    let mut judgements = judge_figure_6(points);
    judgements.extend(progress(points));
    judgements.extend(judge_figure_7(points, &format!("{OFFERED} calls/s of one kind")));
    judgements
}

impl Figure6 for Points {
    fn positions(&self) -> &'static [u8] {
        &POSITIONS
    }

    fn volatilities_of_positions(&self) -> &'static [f64] {
        &VOLATILITIES[..1]
    }

    fn over(&self, engine: EngineKind, one: Cell, other: Cell) -> Option<f64> {
        self.over((engine, Setting::Throughput(one)), (engine, Setting::Throughput(other)))
    }
}

/// The latencies of a line, round by round.
fn latencies(line: &Line, percentile: Percentile) -> &[f64] {
    match percentile {
        Percentile::Median => &line.p50_us,
        Percentile::NinetyNine => &line.p99_us,
    }
}

impl Figure7 for Points {
    fn latency(&self, engine: EngineKind, kind: CallKind, percentile: Percentile) -> Option<f64> {
        Some(median(latencies(self.find(engine, Setting::Latency(kind))?, percentile)))
    }

    fn over(
        &self,
        one: (EngineKind, CallKind),
        other: (EngineKind, CallKind),
        percentile: Percentile,
    ) -> Option<f64> {
        let [one, other] = [one, other].map(|(engine, kind)| self.find(engine, Setting::Latency(kind)));
        Some(over(latencies(one?, percentile), latencies(other?, percentile)).median)
    }
}

/// The lines of both engines with dependent transactions.
fn dependent(points: &Points) -> impl Iterator<Item = &Line> {
    let is_dependent = |setting: &Setting| match setting {
        Setting::Throughput(cell) => cell.dependent_percent > 0.0,
        Setting::Latency(kind) => matches!(kind, CallKind::Dependent | CallKind::DependentDistributed),
    };
    points.0.iter().filter(move |(setting, _)| is_dependent(setting)).flat_map(|(_, lines)| lines)
}

/// That nobody starves, and that the index changes as often as it should.
fn progress(points: &Points) -> Vec<Judgement> {
    let is_measured = dependent(points).next().is_some();
    let ended = is_measured.then(|| {
        let given_up: f64 = dependent(points).flat_map(|line| &line.given_up).sum();
        let rates = dependent(points).flat_map(|line| &line.throughputs);
        let least = rates.copied().fold(f64::INFINITY, f64::min);
        let text = format!("{given_up} calls given up in all runs; the slowest run does {least:.0}/s");
        (text, given_up == 0.0 && least > 0.0)
    });
    let updated = || points.0.iter().flat_map(|(_, lines)| lines).filter(|line| !line.updates.is_empty());
    let as_wanted = updated().next().is_some().then(|| {
        let made: Vec<f64> = updated().map(|line| over(&line.updates, &line.updates_wanted).median).collect();
        let (least, most) = extremes(&made);
        let text = format!("{} to {} of those that were asked for", percent(least), percent(most));
        (text, least >= 1.0 - SIMILAR && most <= 1.0 + SIMILAR)
    });
    vec![
        judgement(
            PROGRESS,
            "no call is given up and no run stands still, whatever the volatility".to_owned(),
            ended,
        ),
        judgement(PROGRESS, "the index is updated as often as was asked for (DET-55)".to_owned(), as_wanted),
    ]
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Points {
    use ordain_db::engine::EngineKind::Calvin;
    use ordain_sim::scale::dependent::ENGINES;

    use super::super::real::{self, synthetic};
    let line = |engine: EngineKind, setting: &Setting| match *setting {
        Setting::Throughput(Cell {
            distributed_percent,
            dependent_percent,
            volatility,
            position_percent,
        }) => {
            let rate = if distributed_percent > 0.0 { 5_000.0 } else { 12_000.0 } - volatility * 5.0;
            let share = dependent_percent / 100.0;
            let throughput = match engine {
                Calvin => {
                    let restarts = 1.0 + share * (volatility + 1.0).ln() / 10.0;
                    rate / restarts / (1.0 + share * f64::from(position_percent) / 100.0)
                }
                _ => rate * (1.0 - 0.05 * share),
            };
            let updates = if volatility > 0.0 { vec![200.0 * volatility; 3] } else { Vec::new() };
            Line { updates_wanted: updates.clone(), updates, ..synthetic(engine, throughput) }
        }
        Setting::Latency(kind) => {
            let times = if engine == Calvin { 2.0 } else { 1.0 };
            let base = match kind {
                CallKind::Local | CallKind::IndexUpdate => 200.0,
                CallKind::Dependent => 240.0,
                CallKind::Distributed => 400.0,
                CallKind::DependentDistributed => 480.0,
            };
            let latency = times * base;
            Line { p50_us: vec![latency; 3], p99_us: vec![3.0 * latency; 3], ..synthetic(engine, 1_500.0) }
        }
    };
    let lines = |setting: &Setting| ENGINES.map(|engine| line(engine, setting)).to_vec();
    real::Points(Setting::all().into_iter().map(|setting| (setting, lines(&setting))).collect())
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind::{Calvin, TwoPhase};
    use ordain_sim::scale::shapes::Verdict;

    use super::super::super::real;
    use super::*;

    /// The statements that differ, by experiment.
    fn differing(points: &Points) -> Vec<&'static str> {
        let judgements = judge(points);
        let differ = judgements.iter().filter(|judgement| judgement.verdict == Verdict::Differs);
        differ.map(|judgement| judgement.experiment).collect()
    }

    fn altered(
        engine: EngineKind,
        of: impl Fn(&Setting) -> bool,
        change: impl Fn(&mut Line),
    ) -> Vec<&'static str> {
        let mut points = as_stated();
        let mut found = false;
        let lines = points.0.iter_mut().filter(|(setting, _)| of(setting)).flat_map(|(_, lines)| lines);
        for line in lines.filter(|line| line.engine == engine) {
            change(line);
            found = true;
        }
        assert!(found);
        differing(&points)
    }

    fn times(factor: f64) -> impl Fn(&mut Line) {
        move |line| line.throughputs.iter_mut().for_each(|throughput| *throughput *= factor)
    }

    #[test]
    fn what_is_as_stated_holds() {
        let judgements = judge(&as_stated());
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::Holds), "{judgements:#?}");
        assert_eq!(judgements.len(), 2 * 4 + 1 + 4 + 2 + 4);
        let none = judge(&real::Points(Vec::new()));
        assert!(none.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured), "{none:#?}");
    }

    #[test]
    fn shapes_of_throughput_can_differ() {
        let all = |distributed: f64, rate: f64| {
            move |setting: &Setting| {
                let (dependent_percent, position_percent) = (100.0, 0);
                *setting
                    == Setting::Throughput(Cell {
                        distributed_percent: distributed,
                        dependent_percent,
                        volatility: rate,
                        position_percent,
                    })
            }
        };
        // Sensitive, and more than slightly; and then calvin is not, nor like with distributed ones.
        assert_eq!(altered(TwoPhase, all(0.0, 100.0), times(0.7)), ["DET-X13", "DET-X13"]);
        assert_eq!(altered(Calvin, all(0.0, 100.0), times(1.6)), ["DET-X13", "DET-X14"]);
        assert_eq!(altered(Calvin, all(100.0, 1.0), times(0.8)), ["DET-X14"; 3]);
        let last = |setting: &Setting| *setting == Setting::Throughput(Cell::at_position(0.0, 100));
        assert_eq!(
            altered(Calvin, last, times(1.6)),
            ["DET-X15"; 3],
            "it rises too, and is not what was derived"
        );
        assert_eq!(altered(TwoPhase, last, times(0.9)), ["DET-X15"]);
    }

    #[test]
    fn starvation_wrong_rates_and_latencies_are_seen() {
        let dependent = |setting: &Setting| {
            matches!(setting, Setting::Throughput(Cell { dependent_percent: 50.0, volatility: 100.0, .. }))
        };
        assert_eq!(altered(Calvin, dependent, |line| line.given_up[1] = 1.0), ["Progress"]);
        let fewer = |line: &mut Line| line.updates.iter_mut().for_each(|updates| *updates *= 0.8);
        assert_eq!(altered(Calvin, dependent, fewer), ["Progress"]);
        let local = |setting: &Setting| *setting == Setting::Latency(CallKind::Local);
        let slow = |line: &mut Line| line.p99_us = vec![1e6; 3];
        assert_eq!(altered(TwoPhase, local, slow), ["DET-X16"]);
        let late = |line: &mut Line| line.p50_us = vec![500.0; 3];
        assert_eq!(altered(TwoPhase, local, late), ["DET-X16"], "calvin takes 400 us");
        assert_eq!(altered(Calvin, local, late), ["DET-X16"], "longer than dependent ones");
    }
}
