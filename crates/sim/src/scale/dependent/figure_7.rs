//! What the paper states of Figure 7, held against latencies that were simulated or measured for real.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, TwoPhase};
use ordain_workload::micro::CallKind;

use super::latency::KINDS;
use crate::scale::shapes::{CHANCE, Judgement, judgement};

/// What counts as the paper's "often a factor of two".
const ABOUT_TWO: std::ops::RangeInclusive<f64> = 1.5..=3.0;

const FIGURE_7: (&str, &str) = ("DET-X16", "Ren et al. §3.7, Figure 7");

/// What is told of the latencies of a kind of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Percentile {
    /// The 50th.
    Median,
    /// The 99th.
    NinetyNine,
}

/// What was measured of Figure 7, at one load.
pub trait Figure7 {
    /// A latency, in microseconds.
    fn latency(&self, engine: EngineKind, kind: CallKind, percentile: Percentile) -> Option<f64>;

    /// One latency over another, of runs of the same round.
    fn over(
        &self,
        one: (EngineKind, CallKind),
        other: (EngineKind, CallKind),
        percentile: Percentile,
    ) -> Option<f64>;
}

/// Holds the statements against what was measured; `load` says how many calls were made.
pub fn judge_figure_7(points: &impl Figure7, load: &str) -> Vec<Judgement> {
    let milliseconds = |us: f64| format!("{:.2} ms", us / 1e3);
    let compared = |percentile: Percentile| {
        let compare = |kind: CallKind| {
            let of = |engine| points.latency(engine, kind, percentile).map(milliseconds);
            let ratio = points.over((Calvin, kind), (TwoPhase, kind), percentile)?;
            Some((ratio, format!("{} {ratio:.2} ({} to {})", kind.name(), of(Calvin)?, of(TwoPhase)?)))
        };
        let all = KINDS.into_iter().map(compare).collect::<Option<Vec<_>>>()?;
        let (ratios, texts): (Vec<f64>, Vec<String>) = all.into_iter().unzip();
        Some((ratios, format!("calvin over two-phase: {}", texts.join(", "))))
    };
    let sooner =
        |(ratios, text): (Vec<f64>, String)| (text, ratios.iter().all(|ratio| *ratio > 1.0 + CHANCE));
    let medians = compared(Percentile::Median);
    let twice = medians.clone().map(|(ratios, text)| {
        let about_two = ratios.iter().filter(|ratio| ABOUT_TWO.contains(ratio)).count();
        (text, about_two * 2 >= ratios.len())
    });
    let pairs =
        [(CallKind::Local, CallKind::Dependent), (CallKind::Distributed, CallKind::DependentDistributed)];
    let slower = pairs.map(|(plain, dependent)| {
        let of = |kind| points.latency(Calvin, kind, Percentile::Median).map(milliseconds);
        let ratio = points.over((Calvin, dependent), (Calvin, plain), Percentile::Median)?;
        Some((format!("{} instead of {}", of(dependent)?, of(plain)?), ratio > 1.0 + CHANCE))
    });
    let slower = slower.into_iter().collect::<Option<Vec<_>>>().map(|each| {
        let (texts, longer): (Vec<String>, Vec<bool>) = each.into_iter().unzip();
        (texts.join(", distributed "), longer.into_iter().all(|longer| longer))
    });
    let say = |statement: &str, found| judgement(FIGURE_7, format!("{load}: {statement}"), found);
    vec![
        say("medians: two-phase answers sooner, whatever the kind of call", medians.map(sooner)),
        say("often by a factor of two", twice),
        say(
            "99th percentiles: two-phase answers sooner, whatever the kind of call",
            compared(Percentile::NinetyNine).map(sooner),
        ),
        say("with calvin dependent calls take longer than others", slower),
    ]
}
