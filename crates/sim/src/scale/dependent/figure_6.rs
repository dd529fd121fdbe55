//! What the paper states of Figure 6, held against throughputs that were simulated or measured for real.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, TwoPhase};

use super::{DISTRIBUTED, VOLATILITIES};
use crate::scale::shapes::{CHANCE, Judgement, extremes, judgement, percents};

/// A loss below this is the paper's "slightly affected", and "near" what is compared with.
const SLIGHT: f64 = 0.15;

/// By how much losses may differ that the paper calls similar, in parts of the whole.
pub(super) const SIMILAR: f64 = 0.1;

/// What counts as half.
const ABOUT_HALF: std::ops::RangeInclusive<f64> = 0.45..=0.58;

pub(super) const FIGURES: [(&str, &str); 2] =
    [("DET-X13", "Ren et al. §3.6, Figure 6 (a)"), ("DET-X14", "Ren et al. §3.6, Figure 6 (b)")];
const FIGURE_6C: (&str, &str) = ("DET-X15", "Ren et al. §3.6, Figure 6 (c)");

/// A workload of Figure 6.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Percentage of transactions that touch two nodes.
    pub distributed_percent: f64,
    /// Percentage of transactions that find their records through the index.
    pub dependent_percent: f64,
    /// Updates of each entry of the index in a second.
    pub volatility: f64,
    /// Percentage of a dependent transaction's work that comes before it reads the index.
    pub position_percent: u8,
}

impl Cell {
    /// Everything is dependent and local, and reads the index after so much of its work.
    pub fn at_position(volatility: f64, position_percent: u8) -> Cell {
        Cell { distributed_percent: 0.0, dependent_percent: 100.0, volatility, position_percent }
    }
}

/// What was measured of Figure 6: [`VOLATILITIES`] with the shares of [`DISTRIBUTED`], and some places of the read.
pub trait Figure6 {
    /// Places of the dependent read, in percent of the work, ascending from 0 to 100.
    fn positions(&self) -> &'static [u8];

    /// Volatilities at which they were measured.
    fn volatilities_of_positions(&self) -> &'static [f64];

    /// Throughput of an engine with one workload over that with another, of runs of the same round.
    fn over(&self, engine: EngineKind, one: Cell, other: Cell) -> Option<f64>;

    /// What is left with all dependent of the throughput without dependent transactions, of the same engine with the same updates of
    /// the index, for each volatility.
    fn left_of_all(&self, engine: EngineKind, distributed_percent: f64) -> Option<Vec<f64>> {
        let of = |dependent_percent, volatility| Cell {
            distributed_percent,
            dependent_percent,
            volatility,
            position_percent: 0,
        };
        VOLATILITIES.into_iter().map(|rate| self.over(engine, of(100.0, rate), of(0.0, rate))).collect()
    }

    /// Throughput at each place of the dependent read over that with the read at the beginning.
    fn by_position(&self, engine: EngineKind, volatility: f64) -> Option<Vec<f64>> {
        let at = |position| Cell::at_position(volatility, position);
        self.positions().iter().map(|position| self.over(engine, at(*position), at(0))).collect()
    }
}

/// Holds the statements against what was measured.
pub fn judge_figure_6(points: &impl Figure6) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for (from, distributed) in FIGURES.into_iter().zip(DISTRIBUTED) {
        judgements.extend(over_shares(points, from, distributed));
    }
    judgements.push(judgement(
        FIGURES[1],
        "the relative losses are like those without distributed transactions".to_owned(),
        losses_are_alike(points),
    ));
    for volatility in points.volatilities_of_positions() {
        judgements.extend(over_positions(points, *volatility));
    }
    judgements
}

/// Figures 6 (a) and (b).
fn over_shares(
    points: &impl Figure6,
    from: (&'static str, &'static str),
    distributed: f64,
) -> Vec<Judgement> {
    let two_phase = points.left_of_all(TwoPhase, distributed);
    let calvin = points.left_of_all(Calvin, distributed);
    let measured = |left: &[f64]| {
        let rates: Vec<String> = VOLATILITIES.iter().take(left.len()).map(f64::to_string).collect();
        format!("left with all dependent, at volatilities {}: {}", rates.join(", "), percents(left))
    };
    let insensitive = two_phase.as_ref().map(|left| {
        let (least, most) = extremes(left);
        (measured(left), most - least <= CHANCE)
    });
    let slight = two_phase.as_ref().map(|left| (measured(left), extremes(left).0 >= 1.0 - SLIGHT));
    let ordered = calvin.as_ref().map(|left| {
        let rises = left.windows(2).any(|pair| pair[1] > pair[0] + CHANCE);
        (measured(left), !rises && left[left.len() - 1] < left[0] - CHANCE)
    });
    let near = calvin.as_ref().map(|left| (measured(&left[..2]), extremes(&left[..2]).0 >= 1.0 - SLIGHT));
    let say = |statement: &str, found| judgement(from, statement.to_owned(), found);
    vec![
        say("two-phase is not sensitive to the volatility of the index", insensitive),
        say("two-phase loses only slightly by the lookup", slight),
        say("calvin loses more the more volatile the index is", ordered),
        say(
            "at realistic volatilities (up to 1) calvin is near what it does without dependent transactions",
            near,
        ),
    ]
}

fn losses_are_alike(points: &impl Figure6) -> Option<(String, bool)> {
    let [local, distributed] = DISTRIBUTED.map(|distributed| points.left_of_all(Calvin, distributed));
    let (local, distributed) = (local?, distributed?);
    let apart = local.iter().zip(&distributed).map(|(one, other)| (one - other).abs());
    let holds = apart.fold(0.0, f64::max) <= SIMILAR;
    let (local, distributed) = (percents(&local), percents(&distributed));
    Some((format!("calvin keeps {local} of local and {distributed} of distributed"), holds))
}

/// Figure 6 (c).
fn over_positions(points: &impl Figure6, volatility: f64) -> Vec<Judgement> {
    let calvin = points.by_position(Calvin, volatility);
    let at: Vec<String> = points.positions().iter().map(u8::to_string).collect();
    let measured = |kept: &[f64]| format!("kept at {} %: {}", at.join(", "), percents(kept));
    let falls = calvin.as_ref().map(|kept| {
        let rises = kept.windows(2).any(|pair| pair[1] > pair[0] * (1.0 + CHANCE));
        (measured(kept), !rises && kept[kept.len() - 1] < 1.0 - CHANCE)
    });
    let flat = points.by_position(TwoPhase, volatility).map(|kept| {
        let (least, most) = extremes(&kept);
        (measured(&kept), most - least <= CHANCE)
    });
    let say =
        |statement: &str, found| judgement(FIGURE_6C, format!("volatility {volatility}: {statement}"), found);
    let mut judgements = vec![
        say("throughput of calvin falls with the place of the read", falls),
        say("two-phase is flat (derived: the same work in all)", flat),
    ];
    // Where attempts miss, the work before the read is lost with each of them besides.
    if volatility == 0.0 {
        let half = calvin.as_ref().map(|kept| (measured(kept), ABOUT_HALF.contains(&kept[kept.len() - 1])));
        let derived = calvin.as_ref().map(|kept| {
            let expected: Vec<f64> = points
                .positions()
                .iter()
                .map(|position| 1.0 / (1.0 + f64::from(*position) / 100.0))
                .collect();
            let off = kept.iter().zip(&expected).map(|(kept, expected)| (kept / expected - 1.0).abs());
            let holds = off.fold(0.0, f64::max) <= SIMILAR;
            (format!("{} for {}", percents(kept), percents(&expected)), holds)
        });
        judgements.extend([
            say("it is halved when all must be run in advance", half),
            say("it is 1 / (1 + place) of what it was (derived)", derived),
        ]);
    }
    judgements
}
