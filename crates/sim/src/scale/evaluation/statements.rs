//! What the paper states of deterministic and classical execution, held against measured points.
//!
//! The paper's figures are pictures; what is judged is what its text says of them. Where the text gives no number, a difference
//! counts from [`CHANCE`] on.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, CalvinVll, TwoPhase};

use super::figure_1::{Cell, Figure1, judge_figure_1, keeps_more};
use super::{
    EvaluationPoint, EvaluationSetting, HIGH, HIGH_FOR_ONE_CORE, INDEXES, LOW, Length, SHARE_OF_INDEXES,
    SHARES, SHARES_OF_PARTICIPANTS, SHARES_OF_SIZES, breakdown,
};
use crate::scale::shapes::{CHANCE, Judgement, judgement};

/// What counts as the paper's "factor of approximately two".
const ABOUT_TWO: std::ops::RangeInclusive<f64> = 1.6..=2.4;

/// By how much the slopes of two engines may differ and count as the same.
const SAME_SLOPE: f64 = 0.2;

/// Holds all statements against the points. `nodes` are those of the clusters of Figures 1 and 3.
pub fn judge(points: &[EvaluationPoint], nodes: u16) -> Vec<Judgement> {
    let points = Points { points, nodes };
    let mut judgements = judge_figure_1(&points);
    judgements.extend(vll_over_hash(&points));
    for index in [LOW, HIGH] {
        judgements.extend(over_participants(&points, index));
    }
    judgements.extend(over_sizes(&points));
    judgements.extend(breakdown::judge(points.points, nodes));
    judgements
}

struct Points<'a> {
    points: &'a [EvaluationPoint],
    nodes: u16,
}

impl Points<'_> {
    fn find(&self, setting: &EvaluationSetting) -> Option<f64> {
        let point = self.points.iter().find(|point| point.setting == *setting)?;
        Some(point.run.throughput).filter(|throughput| *throughput > 0.0)
    }

    fn with_participants(
        &self,
        engine: EngineKind,
        index: f64,
        share: f64,
        participants: u16,
    ) -> Option<f64> {
        let long = EvaluationSetting::new(engine, Length::Long, self.nodes, index, share);
        self.find(&EvaluationSetting { participants, ..long })
    }

    fn per_node(&self, engine: EngineKind, index: f64, share: f64, nodes: u16) -> Option<f64> {
        let setting = EvaluationSetting::new(engine, Length::Long, nodes, index, share);
        Some(self.find(&setting)? / f64::from(nodes))
    }
}

impl Figure1 for Points<'_> {
    fn shares(&self) -> &'static [f64] {
        &SHARES
    }

    fn indexes(&self) -> &'static [f64] {
        &INDEXES
    }

    fn high_indexes(&self) -> &'static [f64] {
        &[HIGH, HIGH_FOR_ONE_CORE]
    }

    fn throughput(&self, engine: EngineKind, at: Cell) -> Option<f64> {
        let Cell { length, contention_index, distributed_percent } = at;
        self.find(&EvaluationSetting::new(engine, length, self.nodes, contention_index, distributed_percent))
    }

    fn over(&self, one: (EngineKind, Cell), other: (EngineKind, Cell)) -> Option<f64> {
        Some(self.throughput(one.0, one.1)? / self.throughput(other.0, other.1)?)
    }
}

/// What VLL does over hashed locks: ahead where the paper's thread for locks is the limit, else alike.
fn vll_over_hash(points: &Points<'_>) -> Vec<Judgement> {
    let ratios = |cells: &[Cell]| {
        let ratio = |at: &Cell| Some((*at, points.over((CalvinVll, *at), (Calvin, *at))?));
        cells.iter().map(ratio).collect::<Option<Vec<_>>>()
    };
    let judge = |from, stated: &str, cells: &[Cell], is_stated: fn(f64) -> bool| {
        let found = ratios(cells).map(|ratios| {
            let each = ratios.iter().map(|(at, ratio)| {
                let Cell { contention_index, distributed_percent, .. } = at;
                format!("{ratio:.2} times at {distributed_percent} % and index {contention_index}")
            });
            (each.collect::<Vec<_>>().join(", "), ratios.iter().all(|(_, ratio)| is_stated(*ratio)))
        });
        judgement(from, stated.to_owned(), found)
    };
    let alike = |ratio: f64| (ratio - 1.0).abs() <= CHANCE;
    let over_shares = [LOW, HIGH].map(|index| SHARES.map(|share| Cell::new(Length::Long, index, share)));
    vec![
        judge(
            ("DET-X02", "Ren et al. §3.3.1, Figure 1 (a)"),
            "short: without contention calvin with VLL is ahead of hashed locks, whose thread is the limit",
            &[Cell::new(Length::Short, LOW, 0.0)],
            |ratio| ratio > 1.0 + CHANCE,
        ),
        judge(
            ("DET-X03", "Ren et al. §3.3.1, Figure 1 (b)"),
            "long: calvin with VLL and with hashed locks do alike, at low and at high contention",
            over_shares.as_flattened(),
            alike,
        ),
        judge(
            ("DET-X05", "Ren et al. §3.3.1, Figure 1 (d)"),
            "long: calvin with VLL and with hashed locks do alike at all contention indexes",
            &INDEXES.map(|index| Cell::new(Length::Long, index, SHARE_OF_INDEXES)),
            alike,
        ),
    ]
}

/// Figure 3.
fn over_participants(points: &Points<'_>, index: f64) -> Vec<Judgement> {
    let from = match index <= LOW {
        true => ("DET-X08", "Ren et al. §3.3.2, Figure 3 (a)"),
        false => ("DET-X09", "Ren et al. §3.3.2, Figure 3 (b)"),
    };
    let share = 50.0;
    let factor = |engine: EngineKind| {
        let at = |participants| points.with_participants(engine, index, share, participants);
        let (two, four) = (at(2)?, at(4)?);
        let factor = two / four;
        Some((factor, format!("by {factor:.2} for {} ({two:.0} to {four:.0}/s)", engine.name())))
    };
    let factors = factor(Calvin).zip(factor(TwoPhase));
    let told = factors.map(|((calvin, of_calvin), (two_phase, of_two_phase))| {
        (calvin, two_phase, format!("{of_calvin}, {of_two_phase}, at index {index}"))
    });
    // Every participant executes all of the logic.
    let executions = |participants: f64| 1.0 + share / 100.0 * (participants - 1.0);
    let halves = told.as_ref().map(|(calvin, two_phase, told)| {
        let work = executions(4.0) / executions(2.0);
        let measured = format!("{told}; more executions alone make {work:.2}, and conflicts are not counted");
        (measured, ABOUT_TWO.contains(calvin) && ABOUT_TWO.contains(two_phase))
    });
    let parallel =
        told.map(|(calvin, two_phase, told)| (told, (two_phase / calvin - 1.0).abs() <= SAME_SLOPE));
    let mut judgements = vec![
        judgement(
            from,
            format!("at {share} % distributed, 4 instead of 2 participants divide throughput by about two"),
            halves,
        ),
        judgement(from, "that factor is the same for both engines".to_owned(), parallel),
    ];
    if index >= HIGH {
        let stated = "calvin is ahead with 2 to 4 participants".to_owned();
        judgements.push(judgement(from, stated, always_ahead(points, index)));
    }
    judgements
}

fn always_ahead(points: &Points<'_>, index: f64) -> Option<(String, bool)> {
    let mut leads = Vec::new();
    for share in SHARES_OF_PARTICIPANTS.into_iter().filter(|share| *share > 0.0) {
        for participants in [2, 3, 4] {
            let of = |engine| points.with_participants(engine, index, share, participants);
            leads.push((of(Calvin)? / of(TwoPhase)?, share, participants));
        }
    }
    let (least, share, participants) = leads.into_iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let measured =
        format!("{least:.2} times two-phase at least, at {share} % and {participants} participants");
    Some((measured, least > 1.0 + CHANCE))
}

/// Figure 8.
fn over_sizes(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("DET-X17", "Ren et al. §3.8, Figure 8");
    let long = points.points.iter().filter(|point| point.setting.length == Length::Long);
    let largest = long.map(|point| point.setting.nodes).max().unwrap_or(0);
    let lines = || [LOW, HIGH].into_iter().flat_map(|index| SHARES_OF_SIZES.map(|share| (index, share)));
    let mut judgements = Vec::new();
    for (index, share) in lines() {
        let at = |engine, nodes| points.per_node(engine, index, share, nodes);
        let lead = at(Calvin, largest).zip(at(TwoPhase, largest)).map(|(calvin, two_phase)| {
            let measured = format!(
                "{:.2} times: {calvin:.0} to {two_phase:.0}/s for each of {largest} nodes",
                calvin / two_phase
            );
            (measured, calvin > two_phase * (1.0 + CHANCE))
        });
        let line = format!("index {index}, {share} % distributed");
        judgements.push(judgement(from, format!("{line}: calvin is ahead in the largest cluster"), lead));
        let kept = |engine| Some(at(engine, largest).filter(|_| largest > 2)? / at(engine, 2)?);
        let of_what = format!("of the rate of a node among 2 are left among {largest}");
        let stated = format!("{line}: two-phase scales worse than calvin");
        judgements.push(judgement(from, stated, keeps_more(kept, &of_what)));
    }
    let rates: Option<Vec<(f64, String)>> = lines()
        .flat_map(|line| [Calvin, TwoPhase].map(|engine| (engine, line)))
        .map(|(engine, (index, share))| {
            let rate = points.per_node(engine, index, share, largest)?;
            Some((rate, format!("{}, index {index}, {share} %", engine.name())))
        })
        .collect();
    let expected = format!("{}, index {HIGH}, 100 %", TwoPhase.name());
    let found = rates.and_then(|mut rates| {
        rates.sort_by(|one, other| one.0.total_cmp(&other.0));
        let [(rate, line), (second, _), ..] = &rates[..] else { return None };
        let text = format!("{line}: {rate:.0}/s for each node, and the next {second:.0}/s");
        Some((text, *line == expected && *second > rate * (1.0 + CHANCE)))
    });
    let stated = "the worst of all is two-phase with high contention and all distributed".to_owned();
    judgements.push(judgement(from, stated, found));
    judgements
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Vec<EvaluationPoint> {
    use ordain_db::engine::EngineKind::TwoPhaseWithoutCommitProtocol;
    let throughput = |setting: &EvaluationSetting| {
        let EvaluationSetting { engine, length, nodes, contention_index, .. } = *setting;
        let share = setting.distributed_percent;
        let rate = f64::from(nodes) * if length == Length::Short { 200_000.0 } else { 6_500.0 };
        // At 50 % twice as much with 4 participants as with 2.
        let calvin = rate / (1.0 + share / 50.0 * f64::from(setting.participants - 1));
        let deadlocks = 1.0 + 3.0 * share * contention_index * f64::from(nodes);
        let loss = match (share > 0.0, contention_index >= HIGH) {
            (false, _) => 0.0,
            (true, false) => 0.3,
            (true, true) => 0.12 * (1.0 - share / 110.0),
        };
        match engine {
            TwoPhase => calvin / deadlocks * (1.0 - loss),
            TwoPhaseWithoutCommitProtocol => calvin / deadlocks,
            CalvinVll if length == Length::Short => 1.2 * calvin,
            _ => calvin,
        }
    };
    let run = |setting: &EvaluationSetting| super::Run {
        window: 32,
        step_events: 1,
        throughput: throughput(setting),
        latency_us_p50: 1_000,
        latency_us_p99: 9_000,
        time: breakdown::as_stated(setting),
        restarts: 0.0,
        deadlocks: if setting.contention_index >= HIGH { 1_000.0 } else { 0.0 },
        measured: 100 * crate::time::SECOND,
    };
    let point = |setting| EvaluationPoint { run: run(&setting), setting };
    super::settings(4, 48).into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind::TwoPhaseWithoutCommitProtocol;

    use super::super::SHARE_OF_INDEXES;
    use super::*;
    use crate::scale::shapes::Verdict;

    /// The statements that differ, by experiment.
    fn differing(points: &[EvaluationPoint]) -> Vec<&'static str> {
        let judgements = judge(points, 4);
        let differ = judgements.iter().filter(|judgement| judgement.verdict == Verdict::Differs);
        differ.map(|judgement| judgement.experiment).collect()
    }

    fn altered(of: impl Fn(&EvaluationSetting) -> bool, factor: f64) -> Vec<EvaluationPoint> {
        let mut points = as_stated();
        let mut found = false;
        for point in points.iter_mut().filter(|point| of(&point.setting)) {
            point.run.throughput *= factor;
            found = true;
        }
        assert!(found);
        points
    }

    #[test]
    fn what_is_as_stated_holds() {
        let judgements = judge(&as_stated(), 4);
        let all = 5 + 4 + 5 + 2 * 2 + 3 + 2 + 3 + 9;
        assert!(
            judgements[..all].iter().all(|judgement| judgement.verdict == Verdict::Holds),
            "{judgements:#?}"
        );
        // And those of the parts of time, which have tests of their own.
        assert_eq!(judgements.len(), all + 19);
        assert!(judge(&[], 4).iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
    }

    #[test]
    fn both_halves_of_the_conclusion_can_differ() {
        let behind = altered(
            |at| {
                (at.engine, at.contention_index, at.distributed_percent) == (TwoPhase, HIGH, SHARE_OF_INDEXES)
            },
            5.0,
        );
        assert_eq!(differing(&behind).iter().filter(|of| **of == "Conclusion").count(), 2);
        let local = altered(|at| at.engine.is_ordered() && at.distributed_percent == 0.0, 1.1);
        assert_eq!(differing(&local), ["Conclusion"]);
        let vll = altered(|at| at.engine == CalvinVll && at.distributed_percent == 0.0, 0.85);
        // What it does at 0 % is less than what it does at 5 %, too.
        assert_eq!(differing(&vll), ["DET-X02", "DET-X03", "DET-X02", "DET-X03"]);
    }

    #[test]
    fn shapes_over_shares_and_indexes_can_differ() {
        // The bound is ahead: of calvin, and by too much of two-phase.
        let bound = altered(|at| at.engine == TwoPhaseWithoutCommitProtocol, 10.0);
        assert_eq!(differing(&bound), [["DET-X02"; 3], ["DET-X03"; 3]].concat());
        // A rise at 100 %.
        let rise = |at: &EvaluationSetting| {
            (at.engine, at.length, at.nodes, at.distributed_percent) == (Calvin, Length::Short, 4, 100.0)
        };
        assert_eq!(differing(&altered(rise, 4.0)), ["DET-X02"]);
        // No loss at 20 %, which then grows.
        let loss = |at: &EvaluationSetting| {
            (at.engine, at.length, at.contention_index, at.distributed_percent)
                == (TwoPhaseWithoutCommitProtocol, Length::Long, HIGH, SHARE_OF_INDEXES)
        };
        assert_eq!(differing(&altered(loss, 0.9)), ["DET-X03"]);
        // 5 % at 20 %, and then 1 %, which is no less.
        assert_eq!(differing(&altered(loss, 0.95)), ["DET-X03"]);
        let steep = |at: &EvaluationSetting| {
            (at.engine, at.length, at.contention_index, at.distributed_percent)
                == (Calvin, Length::Long, HIGH, SHARE_OF_INDEXES)
                && at.nodes == 4
                && at.participants == 2
        };
        assert!(differing(&altered(steep, 0.5)).contains(&"DET-X03"));
        let contended = |length| {
            move |at: &EvaluationSetting| (at.engine, at.length, at.contention_index) == (Calvin, length, 0.1)
        };
        assert_eq!(differing(&altered(contended(Length::Short), 0.01)), ["DET-X04", "DET-X04"]);
        // Nor do both lock managers do alike then.
        assert_eq!(differing(&altered(contended(Length::Long), 0.01)), ["DET-X05"; 3]);
        // A lead that falls back at last.
        let fastest = |at: &EvaluationSetting| {
            (at.engine, at.length, at.contention_index) == (TwoPhase, Length::Short, HIGH_FOR_ONE_CORE)
        };
        assert_eq!(differing(&altered(fastest, 0.4)), ["DET-X04"]);
    }

    #[test]
    fn lock_managers_can_differ_at_any_contention_index() {
        let vll = |index: f64, share: f64| {
            move |at: &EvaluationSetting| {
                (at.engine, at.length) == (CalvinVll, Length::Long)
                    && (at.contention_index, at.distributed_percent) == (index, share)
            }
        };
        assert_eq!(differing(&altered(vll(LOW, 50.0), 0.9)), ["DET-X03"]);
        assert_eq!(differing(&altered(vll(HIGH, 50.0), 0.9)), ["DET-X03"]);
        assert_eq!(differing(&altered(vll(0.1, SHARE_OF_INDEXES), 0.9)), ["DET-X05"]);
        assert!(differing(&altered(vll(HIGH, SHARE_OF_INDEXES), 0.96)).is_empty(), "that is chance");
    }

    #[test]
    fn shapes_over_participants_and_sizes_can_differ() {
        let four =
            |at: &EvaluationSetting| (at.engine, at.contention_index, at.participants) == (TwoPhase, LOW, 4);
        assert_eq!(differing(&altered(four, 0.5)), ["DET-X08", "DET-X08"]);
        let all_with_four = |at: &EvaluationSetting| (at.contention_index, at.participants) == (LOW, 4);
        assert_eq!(differing(&altered(all_with_four, 2.0 / 2.45)), ["DET-X08"], "about two is less");
        assert_eq!(differing(&altered(all_with_four, 2.0 / 1.55)), ["DET-X08"], "about two is more");
        let ahead =
            |at: &EvaluationSetting| (at.engine, at.contention_index, at.participants) == (TwoPhase, HIGH, 3);
        assert_eq!(differing(&altered(ahead, 3.0)), ["DET-X09"]);
        let large = |at: &EvaluationSetting| {
            (at.engine, at.nodes, at.contention_index, at.distributed_percent) == (TwoPhase, 48, HIGH, 100.0)
        };
        // Ahead of calvin, scales better, and is not the worst.
        assert_eq!(differing(&altered(large, 1_000.0)), ["DET-X17"; 3]);
    }
}
