//! What the paper states of deterministic and classical execution, held against measured points.
//!
//! The paper's figures are pictures; what is judged is what its text says of them. Where the text gives no number, a difference
//! counts from [`CHANCE`] on.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, CalvinVll, TwoPhase, TwoPhaseWithoutCommitProtocol};

use super::{
    ENGINES, EvaluationPoint, EvaluationSetting, HIGH, HIGH_FOR_ONE_CORE, INDEXES, LOW, Length,
    SHARE_OF_INDEXES, SHARES, SHARES_OF_PARTICIPANTS, SHARES_OF_SIZES, breakdown,
};
use crate::scale::shapes::{Judgement, judgement};

/// A smaller difference than this share is none.
const CHANCE: f64 = 0.05;

/// The largest loss to two-phase commit that counts as the paper's "as much as 30 %".
const STATED_LOSS: std::ops::RangeInclusive<f64> = 0.15..=0.45;

/// What counts as the paper's "factor of approximately two".
const ABOUT_TWO: std::ops::RangeInclusive<f64> = 1.6..=2.5;

/// By how much the slopes of two engines may differ and count as the same.
const SAME_SLOPE: f64 = 0.2;

const CONCLUSION: (&str, &str) = ("Conclusion", "Ren et al. §3.3.1, §3.4 and §5");

/// Holds all statements against the points. `nodes` are those of the clusters of Figures 1 and 3.
pub fn judge(points: &[EvaluationPoint], nodes: u16) -> Vec<Judgement> {
    let points = Points { points, nodes };
    let mut judgements = conclusion(&points);
    for length in Length::ALL {
        judgements.extend(over_shares(&points, length));
    }
    for length in Length::ALL {
        judgements.extend(over_indexes(&points, length));
    }
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

    /// With two participants, in a cluster of the size of Figure 1.
    fn at(&self, engine: EngineKind, length: Length, index: f64, share: f64) -> Option<f64> {
        self.find(&EvaluationSetting::new(engine, length, self.nodes, index, share))
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

    /// Throughput of `calvin` over that of another engine.
    fn lead(&self, other: EngineKind, length: Length, index: f64, share: f64) -> Option<f64> {
        Some(self.at(Calvin, length, index, share)? / self.at(other, length, index, share)?)
    }

    /// The share of the throughput without a commit protocol that is lost with it.
    fn loss(&self, length: Length, index: f64, share: f64) -> Option<f64> {
        let without = self.at(TwoPhaseWithoutCommitProtocol, length, index, share)?;
        Some(1.0 - self.at(TwoPhase, length, index, share)? / without)
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The two halves of the paper's conclusion: which engine suits which workload.
fn conclusion(points: &Points<'_>) -> Vec<Judgement> {
    let ahead = |length: Length, index: f64| {
        let at = match index > HIGH {
            true => format!(
                "index {index}, as many transactions for a contended record as on the paper's five cores"
            ),
            false => format!("index {index}"),
        };
        let stated = format!(
            "with high contention ({at}) and {SHARE_OF_INDEXES} % distributed, {} transactions: calvin is ahead",
            length.name()
        );
        let local = points.lead(TwoPhase, length, LOW, 0.0);
        let found = points.lead(TwoPhase, length, index, SHARE_OF_INDEXES).zip(local).map(|(lead, local)| {
            let measured = format!(
                "{lead:.2} times the throughput of two-phase; {local:.2} times where none are distributed"
            );
            (measured, lead > local.max(1.0) * (1.0 + CHANCE))
        });
        judgement(CONCLUSION, stated, found)
    };
    let stated = "without distributed transactions, long ones: calvin need not be ahead".to_owned();
    let leads = [LOW, HIGH].map(|index| Some((index, points.lead(TwoPhase, Length::Long, index, 0.0)?)));
    let found = leads.into_iter().collect::<Option<Vec<_>>>().map(|leads| {
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at index {index}"));
        let measured = format!("of the throughput of two-phase: {}", each.collect::<Vec<_>>().join(", "));
        (measured, leads.iter().all(|(_, lead)| *lead <= 1.0 + CHANCE))
    });
    vec![
        ahead(Length::Long, HIGH),
        ahead(Length::Long, HIGH_FOR_ONE_CORE),
        ahead(Length::Short, HIGH),
        ahead(Length::Short, HIGH_FOR_ONE_CORE),
        judgement(CONCLUSION, stated, found),
    ]
}

/// Figures 1 (a) and (b).
fn over_shares(points: &Points<'_>, length: Length) -> Vec<Judgement> {
    let from = match length {
        Length::Short => ("DET-X02", "Ren et al. §3.3.1, Figure 1 (a)"),
        Length::Long => ("DET-X03", "Ren et al. §3.3.1, Figure 1 (b)"),
    };
    let say = |statement: &str, found| judgement(from, format!("{}: {statement}", length.name()), found);
    let mut judgements = vec![
        say("throughput falls with the share of distributed transactions", falls(points, length)),
        say(
            "two-phase commit takes at times as much as 30 % of the throughput",
            largest_loss(points, length),
        ),
        say(
            "with high contention the loss to two-phase commit shrinks as the share grows",
            loss_shrinks(points, length),
        ),
        say(
            "with high contention two-phase without a commit protocol (not ACID) is still behind calvin",
            bound_is_behind(points, length),
        ),
    ];
    judgements.push(match length {
        Length::Short => say(
            "without contention calvin with VLL is ahead of hashed locks, whose thread is the limit",
            vll_over_hash(points, length, &SHARES[..1], |ratio| ratio > 1.0 + CHANCE),
        ),
        Length::Long => say(
            "calvin with VLL and with hashed locks do alike",
            vll_over_hash(points, length, &SHARES, |ratio| (ratio - 1.0).abs() <= CHANCE),
        ),
    });
    if length == Length::Long {
        let statement = "with high contention two-phase falls steeply with the share, calvin gently";
        let kept = |engine| {
            let at = |share| points.at(engine, length, HIGH, share);
            Some(at(SHARE_OF_INDEXES)? / at(0.0)?)
        };
        judgements.push(say(statement, keeps_more(kept, "of the throughput at 0 % are left at 20 %")));
    }
    judgements
}

/// What VLL does over hashed locks without contention, at these shares.
fn vll_over_hash(
    points: &Points<'_>,
    length: Length,
    shares: &[f64],
    holds: impl Fn(f64) -> bool,
) -> Option<(String, bool)> {
    let ratio = |share: &f64| {
        let at = |engine| points.at(engine, length, LOW, *share);
        Some((*share, at(CalvinVll)? / at(Calvin)?))
    };
    let ratios = shares.iter().map(ratio).collect::<Option<Vec<_>>>()?;
    let each = ratios.iter().map(|(share, ratio)| format!("{ratio:.2} times at {share} %"));
    Some((each.collect::<Vec<_>>().join(", "), ratios.iter().all(|(_, ratio)| holds(*ratio))))
}

fn falls(points: &Points<'_>, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for engine in ENGINES {
        for index in [LOW, HIGH] {
            let line: Vec<f64> =
                SHARES.iter().map(|share| points.at(engine, length, index, *share)).collect::<Option<_>>()?;
            let (first, last) = (line.first()?, line.last()?);
            let rises = line.windows(2).any(|pair| pair[1] > pair[0] * (1.0 + CHANCE));
            holds &= !rises && *last < *first * (1.0 - CHANCE);
            let rises = if rises { " with a rise between" } else { "" };
            parts.push(format!("{} at index {index} from {first:.0} to {last:.0}/s{rises}", engine.label()));
        }
    }
    Some((format!("from 0 to 100 %: {}", parts.join("; ")), holds))
}

fn largest_loss(points: &Points<'_>, length: Length) -> Option<(String, bool)> {
    let mut losses = Vec::new();
    for index in [LOW, HIGH] {
        for share in SHARES.into_iter().filter(|share| *share > 0.0) {
            losses.push((points.loss(length, index, share)?, index, share));
        }
    }
    let most = losses.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let least = losses.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let tell = |(loss, index, share): &(f64, f64, f64)| {
        format!("{} at index {index} and {share} % distributed", percent(*loss))
    };
    let measured = format!("at most {}; at least {}", tell(most), tell(least));
    Some((measured, STATED_LOSS.contains(&most.0) && least.0 > -CHANCE))
}

fn loss_shrinks(points: &Points<'_>, length: Length) -> Option<(String, bool)> {
    let at = |share| points.loss(length, HIGH, share);
    let (few, many) = (at(SHARE_OF_INDEXES)?, at(100.0)?);
    let measured =
        format!("at index {HIGH} {} at {SHARE_OF_INDEXES} %, {} at 100 %", percent(few), percent(many));
    Some((measured, many < few))
}

fn bound_is_behind(points: &Points<'_>, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for share in SHARES.into_iter().filter(|share| *share >= SHARE_OF_INDEXES) {
        let lead = points.lead(TwoPhaseWithoutCommitProtocol, length, HIGH, share)?;
        holds &= lead > 1.0 + CHANCE;
        parts.push(format!("{lead:.2} times at {share} %"));
    }
    Some((format!("calvin over the bound at index {HIGH}: {}", parts.join(", ")), holds))
}

/// Whether `calvin` keeps more than `two-phase`.
fn keeps_more(kept: impl Fn(EngineKind) -> Option<f64>, of_what: &str) -> Option<(String, bool)> {
    let (calvin, two_phase) = (kept(Calvin)?, kept(TwoPhase)?);
    let measured = format!("{of_what}: calvin {}, two-phase {}", percent(calvin), percent(two_phase));
    Some((measured, two_phase < calvin * (1.0 - CHANCE)))
}

/// Figures 1 (c) and (d).
fn over_indexes(points: &Points<'_>, length: Length) -> Vec<Judgement> {
    let from = match length {
        Length::Short => ("DET-X04", "Ren et al. §3.3.1, Figure 1 (c)"),
        Length::Long => ("DET-X05", "Ren et al. §3.3.1, Figure 1 (d)"),
    };
    let share = SHARE_OF_INDEXES;
    let leads = INDEXES.map(|index| Some((index, points.lead(TwoPhase, length, index, share)?)));
    let gap = leads.into_iter().collect::<Option<Vec<_>>>().and_then(|leads| {
        let (first, last) = (leads.first()?.1, leads.last()?.1);
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at {index}"));
        let measured = format!("calvin over two-phase: {}", each.collect::<Vec<_>>().join(", "));
        Some((measured, last > first * (1.0 + CHANCE) && last > 1.0))
    });
    let kept = |engine| {
        let at = |index| points.at(engine, length, index, share);
        Some(at(INDEXES[INDEXES.len() - 1])? / at(LOW)?)
    };
    let of_what = "of the throughput at the lowest index are left at the highest";
    let stated = |statement: &str| format!("{}, {share} % distributed: {statement}", length.name());
    vec![
        judgement(
            from,
            stated("two-phase falls further than calvin as contention rises"),
            keeps_more(kept, of_what),
        ),
        judgement(from, stated("the lead of calvin grows with the contention index"), gap),
    ]
}

/// Figure 3.
fn over_participants(points: &Points<'_>, index: f64) -> Vec<Judgement> {
    let from = match index <= LOW {
        true => ("DET-X08", "Ren et al. §3.3.2, Figure 3 (a)"),
        false => ("DET-X09", "Ren et al. §3.3.2, Figure 3 (b)"),
    };
    let factor = |engine, share| {
        let at = |participants| points.with_participants(engine, index, share, participants);
        Some(at(2)? / at(4)?)
    };
    let share = 50.0;
    let factors = factor(Calvin, share).zip(factor(TwoPhase, share));
    let tell = |(calvin, two_phase): (f64, f64)| {
        format!("by {calvin:.2} for calvin, by {two_phase:.2} for two-phase, at index {index}")
    };
    let halves = factors.map(|both| (tell(both), ABOUT_TWO.contains(&both.0) && ABOUT_TWO.contains(&both.1)));
    let parallel = factors.map(|both| (tell(both), (both.1 / both.0 - 1.0).abs() <= SAME_SLOPE));
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
    use super::*;
    use crate::scale::shapes::Verdict;

    /// The statements that differ, by experiment.
    fn differing(points: &[EvaluationPoint]) -> Vec<&'static str> {
        // What locks cost is none of these points'.
        let differ = |judgement: &Judgement| {
            judgement.verdict == Verdict::Differs && judgement.experiment != "DET-X07"
        };
        judge(points, 4)
            .iter()
            .filter(|judgement| differ(judgement))
            .map(|judgement| judgement.experiment)
            .collect()
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
        let all = 5 + 5 + 6 + 2 * 2 + 2 + 3 + 9;
        assert!(
            judgements[..all].iter().all(|judgement| judgement.verdict == Verdict::Holds),
            "{judgements:#?}"
        );
        // And those of the parts of time, which have tests of their own.
        assert_eq!(judgements.len(), all + 20);
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
        assert_eq!(differing(&vll), ["DET-X02", "DET-X02", "DET-X03", "DET-X03"]);
    }

    #[test]
    fn shapes_over_shares_and_indexes_can_differ() {
        // The bound is ahead: of calvin, and by too much of two-phase.
        let bound = altered(|at| at.engine == TwoPhaseWithoutCommitProtocol, 10.0);
        assert_eq!(differing(&bound), ["DET-X02", "DET-X02", "DET-X03", "DET-X03"]);
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
        let steep = |at: &EvaluationSetting| {
            (at.engine, at.length, at.contention_index, at.distributed_percent)
                == (Calvin, Length::Long, HIGH, SHARE_OF_INDEXES)
                && at.nodes == 4
                && at.participants == 2
        };
        assert!(differing(&altered(steep, 0.5)).contains(&"DET-X03"));
        let contended = |at: &EvaluationSetting| {
            (at.engine, at.length, at.contention_index) == (Calvin, Length::Short, 0.1)
        };
        assert_eq!(differing(&altered(contended, 0.01)), ["DET-X04", "DET-X04"]);
    }

    #[test]
    fn shapes_over_participants_and_sizes_can_differ() {
        let four =
            |at: &EvaluationSetting| (at.engine, at.contention_index, at.participants) == (TwoPhase, LOW, 4);
        assert_eq!(differing(&altered(four, 0.5)), ["DET-X08", "DET-X08"]);
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
