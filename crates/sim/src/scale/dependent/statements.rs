//! What the paper states of dependent transactions and of latencies, held against what was measured.
//!
//! The paper's figures are pictures; what is judged is what its text says of them. Where the text gives no number, a difference
//! counts from [`CHANCE`] on.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::Calvin;
use ordain_db::limits::{RESTARTS_BEFORE_DISTRIBUTED_HELP, RESTARTS_MAX};
use ordain_workload::micro::CallKind;

use super::figure_6::{Cell, FIGURES, Figure6, SIMILAR, judge_figure_6};
use super::figure_7::{Figure7, Percentile, judge_figure_7};
use super::latency::{LOADS, Latencies};
use super::{
    DISTRIBUTED, DependentPoint, DependentSetting, POSITIONS, SHARES, VOLATILITIES, VOLATILITIES_OF_POSITIONS,
};
use crate::scale::shapes::{CHANCE, Judgement, judgement, percent};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds};

/// What no call should take: the time for which each setting is measured. Who starves has waited longer at its end.
const LONG: Nanoseconds = 500 * MILLISECOND;

const PROGRESS: (&str, &str) = ("Progress", "trap 7: a bound, and no starvation");

/// Holds all statements against the points and the latencies.
pub fn judge(points: &[DependentPoint], latencies: &[Latencies]) -> Vec<Judgement> {
    let points = Points(points);
    let mut judgements = judge_figure_6(&points);
    judgements.extend(FIGURES.into_iter().zip(DISTRIBUTED).map(|(from, distributed)| {
        let stated = "of first attempts 1 - exp(-volatility x gap) miss (derived: Poisson updates)";
        judgement(from, stated.to_owned(), misses_as_derived(&points, distributed))
    }));
    judgements.extend(progress(&points));
    for offered in LOADS {
        judgements
            .extend(judge_figure_7(&Load { latencies, offered }, &format!("{offered} calls/s and node")));
    }
    judgements
}

struct Points<'a>(&'a [DependentPoint]);

impl Points<'_> {
    fn find(&self, setting: &DependentSetting) -> Option<&DependentPoint> {
        self.0.iter().find(|point| point.setting == *setting && point.throughput > 0.0)
    }

    fn at(
        &self,
        engine: EngineKind,
        distributed_percent: f64,
        dependent_percent: f64,
        volatility: f64,
    ) -> Option<&DependentPoint> {
        let position_percent = 0;
        let cell = Cell { distributed_percent, dependent_percent, volatility, position_percent };
        self.find(&DependentSetting::new(engine, cell))
    }
}

impl Figure6 for Points<'_> {
    fn positions(&self) -> &'static [u8] {
        &POSITIONS
    }

    fn volatilities_of_positions(&self) -> &'static [f64] {
        &VOLATILITIES_OF_POSITIONS
    }

    fn over(&self, engine: EngineKind, one: Cell, other: Cell) -> Option<f64> {
        let at = |cell| Some(self.find(&DependentSetting::new(engine, cell))?.throughput);
        Some(at(one)? / at(other)?)
    }
}

/// Latencies at one load.
struct Load<'a> {
    latencies: &'a [Latencies],
    offered: u64,
}

impl Figure7 for Load<'_> {
    fn latency(&self, engine: EngineKind, kind: CallKind, percentile: Percentile) -> Option<f64> {
        let is_meant = |run: &&Latencies| (run.setting.engine, run.setting.offered) == (engine, self.offered);
        let percent = match percentile {
            Percentile::Median => 50.0,
            Percentile::NinetyNine => 99.0,
        };
        let latency = self.latencies.iter().find(is_meant)?.percentile(kind, percent)?;
        Some(latency as f64 / MICROSECOND as f64)
    }

    fn over(
        &self,
        one: (EngineKind, CallKind),
        other: (EngineKind, CallKind),
        percentile: Percentile,
    ) -> Option<f64> {
        Some(self.latency(one.0, one.1, percentile)? / self.latency(other.0, other.1, percentile)?)
    }
}

fn misses_as_derived(points: &Points<'_>, distributed: f64) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for volatility in VOLATILITIES.into_iter().filter(|volatility| *volatility > 0.0) {
        let point = points.at(Calvin, distributed, SHARES[1], volatility)?;
        let derived = 1.0 - libm::exp(-volatility * point.gap_us / 1e6);
        let missed = point.first_misses_percent / 100.0;
        holds &= (missed - derived).abs() <= CHANCE.max(derived * 2.0 * SIMILAR);
        parts.push(format!(
            "{:.1} % for {:.1} % at {volatility} and a gap of {:.1} ms",
            100.0 * missed,
            100.0 * derived,
            point.gap_us / 1e3
        ));
    }
    Some((format!("with {} % dependent: {}", SHARES[1], parts.join("; ")), holds))
}

/// That nobody starves.
fn progress(points: &Points<'_>) -> Vec<Judgement> {
    // What another number of misses before help would do is no promise.
    let is_meant = |point: &&DependentPoint| {
        point.setting.dependent_percent > 0.0 && point.setting.help_after == RESTARTS_BEFORE_DISTRIBUTED_HELP
    };
    let dependent: Vec<&DependentPoint> = points.0.iter().filter(is_meant).collect();
    let at_most =
        |value: fn(&DependentPoint) -> u64| dependent.iter().map(|point| value(point)).max().unwrap_or(0);
    let measured = !dependent.is_empty();
    let ended = measured.then(|| {
        let least = dependent.iter().map(|point| point.throughput).fold(f64::INFINITY, f64::min);
        let failed: u64 = dependent.iter().map(|point| point.failed).sum();
        let text = format!(
            "{failed} calls given up in all runs with the usual help; the slowest run does {least:.0}/s"
        );
        (text, failed == 0 && least > 0.0)
    });
    let bounded = measured.then(|| {
        let most = at_most(|point| u64::from(point.misses_max));
        let text = format!(
            "at most {most} misses of one call, in all runs; it would be given up after {RESTARTS_MAX}"
        );
        (text, most < u64::from(RESTARTS_MAX))
    });
    let timely = measured.then(|| {
        let most = at_most(|point| point.longest_us) * MICROSECOND;
        (format!("at most {:.0} ms, in all runs", most as f64 / 1e6), most < LONG)
    });
    let as_wanted = measured.then(|| {
        let apart = dependent.iter().map(|point| {
            if point.updates_wanted > 0.0 { (point.updates / point.updates_wanted - 1.0).abs() } else { 0.0 }
        });
        let most = apart.fold(0.0, f64::max);
        (format!("at most {} off", percent(most)), most <= SIMILAR)
    });
    vec![
        judgement(PROGRESS, "help does not cost the others most of what they do".to_owned(), help(points)),
        judgement(
            PROGRESS,
            "no call is given up and no run stands still, whatever the volatility".to_owned(),
            ended,
        ),
        judgement(PROGRESS, "no call starts over without end".to_owned(), bounded),
        judgement(
            PROGRESS,
            "no call takes, or waits at the end for, as long as is measured".to_owned(),
            timely,
        ),
        judgement(PROGRESS, "the index is updated as often as was asked for (DET-55)".to_owned(), as_wanted),
    ]
}

/// What is left with all dependent and distributed at the highest volatility, by the number of misses after which a call is helped.
fn help(points: &Points<'_>) -> Option<(String, bool)> {
    let [.., most] = VOLATILITIES;
    let base = points.at(Calvin, DISTRIBUTED[1], 0.0, most)?.throughput;
    let is_meant = |setting: &DependentSetting| {
        (setting.engine, setting.distributed_percent, setting.dependent_percent, setting.volatility)
            == (Calvin, DISTRIBUTED[1], 100.0, most)
    };
    let mut each: Vec<(u32, f64)> = points
        .0
        .iter()
        .filter(|point| is_meant(&point.setting))
        .map(|point| (point.setting.help_after, point.throughput / base))
        .collect();
    each.sort_by_key(|(help_after, _)| *help_after);
    let usual = each.iter().find(|(help_after, _)| *help_after == RESTARTS_BEFORE_DISTRIBUTED_HELP)?.1;
    let texts = each.iter().map(|(help_after, left)| format!("{} after {help_after}", percent(*left)));
    let text = format!(
        "all dependent and distributed, volatility {most}: left when calls are helped {} misses",
        texts.collect::<Vec<_>>().join(", ")
    );
    Some((text, usual >= 0.5))
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn points_as_stated() -> Vec<DependentPoint> {
    let point = |setting: DependentSetting| {
        let DependentSetting { engine, distributed_percent, dependent_percent, volatility, .. } = setting;
        let rate = if distributed_percent > 0.0 { 10_000.0 } else { 26_000.0 } - volatility * 10.0;
        let share = dependent_percent / 100.0;
        let (throughput, gap_us) = match engine {
            Calvin => {
                let restarts = 1.0 + share * libm::log(volatility + 1.0) / 10.0;
                (rate / restarts / (1.0 + share * f64::from(setting.position_percent) / 100.0), 5_000.0)
            }
            _ => (rate * (1.0 - 0.05 * share), 0.0),
        };
        let missed = 1.0 - libm::exp(-volatility * gap_us / 1e6);
        DependentPoint {
            setting,
            window: 32,
            step_events: 1,
            throughput,
            latency_us_p50: 1_000,
            latency_us_p99: 9_000,
            longest_us: 90_000,
            busy_percent: 99.0,
            reconnaissance_percent: 1.0,
            updates_wanted: volatility * 400.0,
            updates: volatility * 400.0,
            misses: 1.0,
            first_misses_percent: 100.0 * missed,
            gap_us,
            misses_max: 4,
            helped: 0.0,
            victims: 0.0,
            failed: 0,
        }
    };
    super::settings().into_iter().map(point).collect()
}

/// Latencies of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn latencies_as_stated() -> Vec<Latencies> {
    use super::latency::KINDS;

    let run = |setting: super::latency::LatencySetting| {
        let factor = if setting.engine == Calvin { 2 } else { 1 };
        let of = KINDS.into_iter().enumerate().map(|(place, kind)| {
            let base = factor * (place as u64 + 1) * 1_000_000;
            (kind, (0..100).map(|step| base + step * 10_000).collect())
        });
        Latencies { setting, of: of.collect() }
    };
    super::latency::latency_settings().into_iter().map(run).collect()
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind::TwoPhase;

    use super::*;
    use crate::scale::shapes::Verdict;

    /// The statements that differ, by experiment.
    fn differing(points: &[DependentPoint], latencies: &[Latencies]) -> Vec<&'static str> {
        let judgements = judge(points, latencies);
        judgements
            .iter()
            .filter(|judgement| judgement.verdict == Verdict::Differs)
            .map(|judgement| judgement.experiment)
            .collect()
    }

    fn altered(
        of: impl Fn(&DependentSetting) -> bool,
        change: impl Fn(&mut DependentPoint),
    ) -> Vec<&'static str> {
        let mut points = points_as_stated();
        let mut found = false;
        for point in points.iter_mut().filter(|point| of(&point.setting)) {
            change(point);
            found = true;
        }
        assert!(found);
        differing(&points, &latencies_as_stated())
    }

    #[test]
    fn what_is_as_stated_holds() {
        let judgements = judge(&points_as_stated(), &latencies_as_stated());
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::Holds), "{judgements:#?}");
        assert_eq!(judgements.len(), 2 * 5 + 1 + 3 * 2 + 2 + 5 + 2 * 4);
        let none = judge(&[], &[]);
        assert!(none.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
    }

    #[test]
    fn shapes_over_shares_can_differ() {
        let volatile = |setting: &DependentSetting, engine| {
            (setting.engine, setting.distributed_percent, setting.dependent_percent, setting.volatility)
                == (engine, 0.0, 100.0, 100.0)
        };
        // Sensitive, and more than slightly; and then calvin is not.
        let two_phase = altered(|of| volatile(of, TwoPhase), |point| point.throughput *= 0.7);
        assert_eq!(two_phase, ["DET-X13", "DET-X13"]);
        let calvin = altered(|of| volatile(of, Calvin), |point| point.throughput *= 1.6);
        assert_eq!(calvin, ["DET-X13", "DET-X14"]);
        let calm = |setting: &DependentSetting| {
            (setting.engine, setting.volatility, setting.position_percent) == (Calvin, 1.0, 0)
                && setting.dependent_percent == 100.0
        };
        let far = altered(calm, |point| point.throughput *= 0.8);
        assert_eq!(far, ["DET-X13", "DET-X13", "DET-X14", "DET-X14"]);
        let missing = |setting: &DependentSetting| setting.engine == Calvin && setting.volatility == 10.0;
        let missing = altered(missing, |point| point.first_misses_percent += 10.0);
        assert_eq!(missing, ["DET-X13", "DET-X14"]);
    }

    #[test]
    fn shapes_over_positions_can_differ() {
        let last = |engine| {
            move |setting: &DependentSetting| {
                (setting.engine, setting.volatility, setting.position_percent) == (engine, 0.0, 100)
            }
        };
        let not_half = altered(last(Calvin), |point| point.throughput *= 1.3);
        assert_eq!(not_half, ["DET-X15"; 3], "it rises too, and is not what was derived");
        assert_eq!(altered(last(TwoPhase), |point| point.throughput *= 0.9), ["DET-X15"]);
    }

    #[test]
    fn starvation_and_wrong_rates_are_seen() {
        let any = |setting: &DependentSetting| {
            (setting.engine, setting.dependent_percent, setting.volatility, setting.distributed_percent)
                == (Calvin, 50.0, 100.0, 0.0)
        };
        assert_eq!(altered(any, |point| point.failed = 1), ["Progress"]);
        assert_eq!(altered(any, |point| point.misses_max = RESTARTS_MAX), ["Progress"]);
        assert_eq!(altered(any, |point| point.longest_us = 600_000), ["Progress"]);
        assert_eq!(altered(any, |point| point.updates *= 0.8), ["Progress"]);
    }

    #[test]
    fn shapes_of_latencies_can_differ() {
        let alike = |engine, factor: u64| {
            let mut runs = latencies_as_stated();
            for run in runs.iter_mut().filter(|run| run.setting.engine == engine) {
                run.of.values_mut().flatten().for_each(|latency| *latency *= factor);
            }
            differing(&points_as_stated(), &runs)
        };
        assert_eq!(
            alike(TwoPhase, 3),
            ["DET-X16"; 6],
            "neither sooner in the median or nearly always, nor by a factor of two, at both loads"
        );
        let mut runs = latencies_as_stated();
        for run in runs.iter_mut().filter(|run| run.setting.engine == Calvin) {
            run.of.values_mut().flatten().for_each(|latency| *latency += 200_000_000);
        }
        let added = differing(&points_as_stated(), &runs);
        assert_eq!(
            added, ["DET-X16"; 4],
            "not by a factor of two, and dependent calls hardly longer than others"
        );
    }
}
