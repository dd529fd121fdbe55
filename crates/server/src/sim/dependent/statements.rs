//! What the paper states of dependent transactions and of latencies, held against what was measured for real. Statements and bounds are
//! those of the [simulated](ordain_sim::scale::dependent) points, as far as there are points of them.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, TwoPhase};
use ordain_sim::scale::shapes::{Judgement, judgement};

use super::super::real::{Line, median, over};
use super::real::{DISTRIBUTED, ENGINES, Kind, POSITIONS, Points, Setting, VOLATILITIES};

/// A smaller difference than this share is none.
const CHANCE: f64 = 0.05;

/// A loss below this is the paper's "slightly affected", and "near" what is compared with.
const SLIGHT: f64 = 0.15;

/// By how much losses may differ that the paper calls similar, in parts of the whole.
const SIMILAR: f64 = 0.1;

/// What counts as half.
const ABOUT_HALF: std::ops::RangeInclusive<f64> = 0.45..=0.58;

/// What counts as the paper's "often a factor of two".
const ABOUT_TWO: std::ops::RangeInclusive<f64> = 1.5..=3.0;

const FIGURE_6A: (&str, &str) = ("DET-X13", "Ren et al. §3.6, Figure 6 (a)");
const FIGURE_6B: (&str, &str) = ("DET-X14", "Ren et al. §3.6, Figure 6 (b)");
const FIGURE_6C: (&str, &str) = ("DET-X15", "Ren et al. §3.6, Figure 6 (c)");
const FIGURE_7: (&str, &str) = ("DET-X16", "Ren et al. §3.7, Figure 7");
const PROGRESS: (&str, &str) = ("Progress", "trap 7: a bound, and no starvation");

/// Holds all statements against the points.
pub(super) fn judge(points: &Points) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for (from, distributed) in [(FIGURE_6A, DISTRIBUTED[0]), (FIGURE_6B, DISTRIBUTED[1])] {
        judgements.extend(over_shares(points, from, distributed));
    }
    judgements.push(judgement(
        FIGURE_6B,
        "the relative losses are like those without distributed transactions".to_owned(),
        losses_are_alike(points),
    ));
    judgements.extend(over_positions(points));
    judgements.extend(progress(points));
    judgements.extend(over_latencies(points));
    judgements
}

impl Points {
    /// What is left with all dependent of the throughput without dependent transactions, of the same engine with the same updates of
    /// the index, for each volatility.
    fn left_of_all(&self, engine: EngineKind, distributed_percent: f64) -> Option<Vec<f64>> {
        let left = |volatility| {
            let of = |dependent_percent| {
                let position_percent = 0;
                self.find(
                    engine,
                    Setting::Throughput {
                        distributed_percent,
                        dependent_percent,
                        volatility,
                        position_percent,
                    },
                )
            };
            Some(of(100.0)?.over(of(0.0)?).median)
        };
        VOLATILITIES.into_iter().map(left).collect()
    }

    /// Throughput of the place of the dependent read over that with the read at the beginning.
    fn by_position(&self, engine: EngineKind) -> Option<Vec<f64>> {
        let at = |position| self.find(engine, Setting::at_position(position));
        POSITIONS.into_iter().map(|position| Some(at(position)?.over(at(0)?).median)).collect()
    }

    /// The lines of both engines with dependent transactions.
    fn dependent(&self) -> impl Iterator<Item = &Line> {
        let is_dependent = |setting: &Setting| match setting {
            Setting::Throughput { dependent_percent, .. } => *dependent_percent > 0.0,
            Setting::Latency(kind) => kind.is_dependent,
        };
        self.0.iter().filter(move |(setting, _)| is_dependent(setting)).flat_map(|(_, lines)| lines)
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn list(shares: &[f64]) -> String {
    shares.iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", ")
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// Figures 6 (a) and (b).
fn over_shares(points: &Points, from: (&'static str, &'static str), distributed: f64) -> Vec<Judgement> {
    let [calvin, two_phase] = ENGINES.map(|engine| points.left_of_all(engine, distributed));
    let measured = |left: &[f64]| {
        let rates: Vec<String> = VOLATILITIES.iter().take(left.len()).map(f64::to_string).collect();
        format!("left with all dependent, at volatilities {}: {}", rates.join(", "), list(left))
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
    vec![
        judgement(from, "two-phase is not sensitive to the volatility of the index".to_owned(), insensitive),
        judgement(from, "two-phase loses only slightly by the lookup".to_owned(), slight),
        judgement(from, "calvin loses more the more volatile the index is".to_owned(), ordered),
        judgement(
            from,
            "at realistic volatilities (up to 1) calvin is near what it does without dependent transactions"
                .to_owned(),
            near,
        ),
    ]
}

fn losses_are_alike(points: &Points) -> Option<(String, bool)> {
    let [local, distributed] = DISTRIBUTED.map(|distributed| points.left_of_all(Calvin, distributed));
    let (local, distributed) = (local?, distributed?);
    let apart = local.iter().zip(&distributed).map(|(one, other)| (one - other).abs());
    let holds = apart.fold(0.0, f64::max) <= SIMILAR;
    Some((format!("calvin keeps {} of local and {} of distributed", list(&local), list(&distributed)), holds))
}

/// Figure 6 (c).
fn over_positions(points: &Points) -> Vec<Judgement> {
    let [calvin, two_phase] = ENGINES.map(|engine| points.by_position(engine));
    let at = POSITIONS.map(|position| position.to_string()).join(", ");
    let measured = |kept: &[f64]| format!("kept at {at} %: {}", list(kept));
    let falls = calvin.as_ref().map(|kept| {
        let rises = kept.windows(2).any(|pair| pair[1] > pair[0] * (1.0 + CHANCE));
        (measured(kept), !rises && kept[kept.len() - 1] < 1.0 - CHANCE)
    });
    let half = calvin.as_ref().map(|kept| (measured(kept), ABOUT_HALF.contains(&kept[kept.len() - 1])));
    let derived = calvin.as_ref().map(|kept| {
        let expected = POSITIONS.map(|position| 1.0 / (1.0 + f64::from(position) / 100.0));
        let holds =
            kept.iter().zip(expected).all(|(kept, expected)| (kept / expected - 1.0).abs() <= SIMILAR);
        (format!("{} for {}", list(kept), list(&expected)), holds)
    });
    let flat = two_phase.as_ref().map(|kept| {
        let (least, most) = extremes(kept);
        (measured(kept), most - least <= CHANCE)
    });
    let say = |statement: &str, found| judgement(FIGURE_6C, statement.to_owned(), found);
    vec![
        say("throughput of calvin falls with the place of the read", falls),
        say("it is halved when all must be run in advance", half),
        say("it is 1 / (1 + place) of what it was (derived)", derived),
        say("two-phase is flat (derived: the same work in all)", flat),
    ]
}

/// That nobody starves, and that the index changes as often as it should.
fn progress(points: &Points) -> Vec<Judgement> {
    let is_measured = points.dependent().next().is_some();
    let ended = is_measured.then(|| {
        let given_up: f64 = points.dependent().flat_map(|line| &line.given_up).sum();
        let rates = points.dependent().flat_map(|line| &line.throughputs);
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

/// Figure 7.
fn over_latencies(points: &Points) -> Vec<Judgement> {
    let of = |engine, kind: Kind| points.find(engine, Setting::Latency(kind));
    let milliseconds = |rounds: &[f64]| format!("{:.2} ms", median(rounds) / 1e3);
    let compared = |rounds: fn(&Line) -> &[f64]| {
        let ratio = |kind: Kind| {
            let (calvin, two_phase) = (rounds(of(Calvin, kind)?), rounds(of(TwoPhase, kind)?));
            let ratio = over(calvin, two_phase).median;
            let text = format!(
                "{} {ratio:.2} ({} to {})",
                kind.name(),
                milliseconds(calvin),
                milliseconds(two_phase)
            );
            Some((ratio, text))
        };
        let all = Kind::ALL.into_iter().map(ratio).collect::<Option<Vec<_>>>()?;
        let (ratios, texts): (Vec<f64>, Vec<String>) = all.into_iter().unzip();
        Some((ratios, format!("calvin over two-phase: {}", texts.join(", "))))
    };
    let medians = compared(|line| &line.p50_us);
    let sooner =
        |(ratios, text): (Vec<f64>, String)| (text, ratios.iter().all(|ratio| *ratio > 1.0 + CHANCE));
    let twice = medians.clone().map(|(ratios, text)| {
        let about_two = ratios.iter().filter(|ratio| ABOUT_TWO.contains(ratio)).count();
        (text, about_two * 2 >= ratios.len())
    });
    let pairs = [false, true].map(|is_distributed| {
        let kind = |is_dependent| Kind { is_distributed, is_dependent };
        Some((of(Calvin, kind(false))?, of(Calvin, kind(true))?))
    });
    let slower = pairs.into_iter().collect::<Option<Vec<_>>>().map(|pairs| {
        let told = |(plain, dependent): &(&Line, &Line)| {
            format!("{} instead of {}", milliseconds(&dependent.p50_us), milliseconds(&plain.p50_us))
        };
        let longer = |(plain, dependent): &(&Line, &Line)| {
            over(&dependent.p50_us, &plain.p50_us).median > 1.0 + CHANCE
        };
        let text = pairs.iter().map(told).collect::<Vec<_>>().join(", distributed ");
        (text, pairs.iter().all(longer))
    });
    let say = |statement: &str, found| judgement(FIGURE_7, statement.to_owned(), found);
    vec![
        say("medians: two-phase answers sooner, whatever the kind of call", medians.map(sooner)),
        say("often by a factor of two", twice),
        say(
            "99th percentiles: two-phase answers sooner, whatever the kind of call",
            compared(|line| &line.p99_us).map(sooner),
        ),
        say("with calvin dependent calls take longer than others", slower),
    ]
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Points {
    use super::super::real::synthetic;
    let line = |engine: EngineKind, setting: &Setting| match *setting {
        Setting::Throughput { distributed_percent, dependent_percent, volatility, position_percent } => {
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
            let base = if kind.is_distributed { 400.0 } else { 200.0 };
            let latency = times * base * if kind.is_dependent { 1.2 } else { 1.0 };
            Line { p50_us: vec![latency; 3], p99_us: vec![3.0 * latency; 3], ..synthetic(engine, 1_500.0) }
        }
    };
    let lines = |setting: &Setting| ENGINES.map(|engine| line(engine, setting)).to_vec();
    Points(Setting::all().into_iter().map(|setting| (setting, lines(&setting))).collect())
}

#[cfg(test)]
mod tests {
    use ordain_sim::scale::shapes::Verdict;

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
        let none = judge(&Points(Vec::new()));
        assert!(none.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured), "{none:#?}");
    }

    #[test]
    fn shapes_of_throughput_can_differ() {
        let all = |distributed: f64, rate: f64| {
            move |setting: &Setting| {
                matches!(setting, Setting::Throughput { distributed_percent, dependent_percent, volatility, position_percent: 0 }
                    if (*distributed_percent, *dependent_percent, *volatility) == (distributed, 100.0, rate))
            }
        };
        // Sensitive, and more than slightly; and then calvin is not, nor like with distributed ones.
        assert_eq!(altered(TwoPhase, all(0.0, 100.0), times(0.7)), ["DET-X13", "DET-X13"]);
        assert_eq!(altered(Calvin, all(0.0, 100.0), times(1.6)), ["DET-X13", "DET-X14"]);
        assert_eq!(altered(Calvin, all(100.0, 1.0), times(0.8)), ["DET-X14"; 3]);
        let last = |setting: &Setting| *setting == Setting::at_position(100);
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
            matches!(setting, Setting::Throughput { dependent_percent: 50.0, volatility: 100.0, .. })
        };
        assert_eq!(altered(Calvin, dependent, |line| line.given_up[1] = 1.0), ["Progress"]);
        let fewer = |line: &mut Line| line.updates.iter_mut().for_each(|updates| *updates *= 0.8);
        assert_eq!(altered(Calvin, dependent, fewer), ["Progress"]);
        let local = |setting: &Setting| *setting == Setting::Latency(Kind::ALL[0]);
        let slow = |line: &mut Line| line.p99_us = vec![1e6; 3];
        assert_eq!(altered(TwoPhase, local, slow), ["DET-X16"]);
        let late = |line: &mut Line| line.p50_us = vec![500.0; 3];
        assert_eq!(altered(TwoPhase, local, late), ["DET-X16"], "calvin takes 400 us");
        assert_eq!(altered(Calvin, local, late), ["DET-X16"], "longer than dependent ones");
    }
}
