//! What the paper states of deterministic and classical execution, held against what was measured for real. Statements and bounds are
//! those of the [simulated](ordain_sim::scale::evaluation) points, as far as there are points of them.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, CalvinVll, TwoPhase, TwoPhaseWithoutCommitProtocol};
use ordain_sim::scale::evaluation::{HIGH, LOW, Length, SHARE_OF_INDEXES};
use ordain_sim::scale::shapes::{Judgement, judgement};

use super::real::{ENGINES, INDEXES, Points, REMOTE_SHARES, SHARES, Setting};
use crate::bench::rounds::Spread;

/// A smaller difference than this share is none.
const CHANCE: f64 = 0.05;

/// The largest loss to two-phase commit that counts as the paper's "as much as 30 %".
const STATED_LOSS: std::ops::RangeInclusive<f64> = 0.15..=0.45;

const CONCLUSION: (&str, &str) = ("Conclusion", "Ren et al. §3.3.1, §3.4 and §5");
const FIGURE_4: (&str, &str) = ("DET-X10", "Ren et al. §3.4, Figure 4");

/// Holds all statements against the points.
pub(super) fn judge(points: &Points) -> Vec<Judgement> {
    let mut judgements = conclusion(points);
    for length in Length::ALL {
        judgements.extend(over_shares(points, length));
    }
    for length in Length::ALL {
        judgements.extend(over_indexes(points, length));
    }
    judgements.extend(lock_managers(points));
    judgements.extend(tpcc(points));
    judgements
}

fn micro(length: Length, contention_index: f64, distributed_percent: f64) -> Setting {
    Setting::Micro { length, contention_index, distributed_percent }
}

impl Points {
    /// Throughput of an engine over that of another, of runs of the same round.
    fn over(&self, one: EngineKind, other: EngineKind, setting: Setting) -> Option<Spread> {
        Some(self.find(one, setting)?.over(self.find(other, setting)?))
    }

    /// That of `calvin` over that of another.
    fn lead(&self, other: EngineKind, setting: Setting) -> Option<f64> {
        Some(self.over(Calvin, other, setting)?.median)
    }

    /// What an engine keeps of the throughput in one case in another.
    fn kept(&self, engine: EngineKind, from: Setting, to: Setting) -> Option<f64> {
        Some(self.find(engine, to)?.over(self.find(engine, from)?).median)
    }

    /// The share of the throughput without a commit protocol that is lost with it.
    fn loss(&self, length: Length, index: f64, share: f64) -> Option<f64> {
        let setting = micro(length, index, share);
        Some(1.0 - self.over(TwoPhase, TwoPhaseWithoutCommitProtocol, setting)?.median)
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The two halves of the paper's conclusion: which engine suits which workload.
fn conclusion(points: &Points) -> Vec<Judgement> {
    let ahead = |length: Length| {
        let stated = format!(
            "with high contention (index {HIGH}) and {SHARE_OF_INDEXES} % distributed, {} transactions: calvin is ahead",
            length.name()
        );
        let lead = points.lead(TwoPhase, micro(length, HIGH, SHARE_OF_INDEXES));
        let found = lead.zip(points.lead(TwoPhase, micro(length, LOW, 0.0))).map(|(lead, local)| {
            let measured = format!(
                "{lead:.2} times the throughput of two-phase; {local:.2} times where none are distributed"
            );
            (measured, lead > local.max(1.0) * (1.0 + CHANCE))
        });
        judgement(CONCLUSION, stated, found)
    };
    let stated = "without distributed transactions, long ones: calvin need not be ahead".to_owned();
    let leads = [LOW, HIGH]
        .map(|index| Some((index, points.lead(TwoPhase, micro(Length::Long, index, 0.0))?)))
        .into_iter()
        .collect::<Option<Vec<_>>>();
    let found = leads.map(|leads| {
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at index {index}"));
        let measured = format!("of the throughput of two-phase: {}", each.collect::<Vec<_>>().join(", "));
        (measured, leads.iter().all(|(_, lead)| *lead <= 1.0 + CHANCE))
    });
    vec![ahead(Length::Long), ahead(Length::Short), judgement(CONCLUSION, stated, found)]
}

/// Figures 1 (a) and (b).
fn over_shares(points: &Points, length: Length) -> Vec<Judgement> {
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
    if length == Length::Long {
        let kept =
            |engine| points.kept(engine, micro(length, HIGH, 0.0), micro(length, HIGH, SHARE_OF_INDEXES));
        judgements.push(say(
            "with high contention two-phase falls steeply with the share, calvin gently",
            keeps_more(kept, "of the throughput at 0 % are left at 20 %"),
        ));
    }
    judgements
}

fn falls(points: &Points, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for engine in ENGINES {
        for index in [LOW, HIGH] {
            let at = |share: f64| Some(points.find(engine, micro(length, index, share))?.throughput());
            let line = SHARES.into_iter().map(at).collect::<Option<Vec<f64>>>()?;
            let steps: Option<Vec<f64>> = SHARES
                .windows(2)
                .map(|pair| points.kept(engine, micro(length, index, pair[0]), micro(length, index, pair[1])))
                .collect();
            let rises = steps?.iter().any(|kept| *kept > 1.0 + CHANCE);
            let (first, last) = (line.first()?, line.last()?);
            holds &= !rises && *last < *first * (1.0 - CHANCE);
            let rises = if rises { " with a rise between" } else { "" };
            parts.push(format!("{} at index {index} from {first:.0} to {last:.0}/s{rises}", engine.label()));
        }
    }
    Some((format!("from 0 to 100 %: {}", parts.join("; ")), holds))
}

fn largest_loss(points: &Points, length: Length) -> Option<(String, bool)> {
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

fn loss_shrinks(points: &Points, length: Length) -> Option<(String, bool)> {
    let (few, many) = (points.loss(length, HIGH, SHARE_OF_INDEXES)?, points.loss(length, HIGH, 100.0)?);
    let measured =
        format!("at index {HIGH} {} at {SHARE_OF_INDEXES} %, {} at 100 %", percent(few), percent(many));
    Some((measured, many < few))
}

fn bound_is_behind(points: &Points, length: Length) -> Option<(String, bool)> {
    let (mut parts, mut holds) = (Vec::new(), true);
    for share in SHARES.into_iter().filter(|share| *share >= SHARE_OF_INDEXES) {
        let lead = points.lead(TwoPhaseWithoutCommitProtocol, micro(length, HIGH, share))?;
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
fn over_indexes(points: &Points, length: Length) -> Vec<Judgement> {
    let from = match length {
        Length::Short => ("DET-X04", "Ren et al. §3.3.1, Figure 1 (c)"),
        Length::Long => ("DET-X05", "Ren et al. §3.3.1, Figure 1 (d)"),
    };
    let at = |index| micro(length, index, SHARE_OF_INDEXES);
    let leads = INDEXES.map(|index| Some((index, points.lead(TwoPhase, at(index))?)));
    let gap = leads.into_iter().collect::<Option<Vec<_>>>().and_then(|leads| {
        let (first, last) = (leads.first()?.1, leads.last()?.1);
        let each = leads.iter().map(|(index, lead)| format!("{lead:.2} times at {index}"));
        let measured = format!("calvin over two-phase: {}", each.collect::<Vec<_>>().join(", "));
        Some((measured, last > first * (1.0 + CHANCE) && last > 1.0))
    });
    let kept = |engine| points.kept(engine, at(LOW), at(INDEXES[INDEXES.len() - 1]));
    let stated =
        |statement: &str| format!("{}, {SHARE_OF_INDEXES} % distributed: {statement}", length.name());
    vec![
        judgement(
            from,
            stated("two-phase falls further than calvin as contention rises"),
            keeps_more(kept, "of the throughput at the lowest index are left at the highest"),
        ),
        judgement(from, stated("the lead of calvin grows with the contention index"), gap),
    ]
}

/// What VLL does for `calvin`, over all points of a length.
fn lock_managers(points: &Points) -> Vec<Judgement> {
    let ratios = |length: Length| {
        let of = Setting::all()
            .into_iter()
            .filter(|setting| matches!(setting, Setting::Micro { length: own, .. } if *own == length));
        of.map(|setting| points.over(CalvinVll, Calvin, setting)).collect::<Option<Vec<Spread>>>()
    };
    let told = |ratios: &[Spread]| {
        let each = ratios
            .iter()
            .map(|ratio| format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.least, ratio.most));
        format!("calvin-vll over calvin: {}", each.collect::<Vec<_>>().join(", "))
    };
    // Equal within noise: no difference in some round, or differences both ways.
    let alike = |ratio: &Spread| ratio.least <= 1.0 + CHANCE && ratio.most >= 1.0 - CHANCE;
    vec![
        judgement(
            ("DET-06", "Ren et al. §3.1.1"),
            "hash and VLL perform alike with long transactions".to_owned(),
            ratios(Length::Long).map(|ratios| (told(&ratios), ratios.iter().all(alike))),
        ),
        judgement(
            ("DET-X02", "Ren et al. §3.1.1 and §3.3.1, Figure 1 (a)"),
            "VLL is ahead of hash with short transactions (there, where a thread for locks is the bottleneck)"
                .to_owned(),
            ratios(Length::Short)
                .map(|ratios| (told(&ratios), ratios.iter().all(|ratio| ratio.median > 1.0 + CHANCE))),
        ),
    ]
}

/// Figure 4.
fn tpcc(points: &Points) -> Vec<Judgement> {
    let at = |remote_percent| Setting::Tpcc { remote_percent };
    let leads = REMOTE_SHARES
        .map(|share| Some((share, points.lead(TwoPhase, at(share))?)))
        .into_iter()
        .collect::<Option<Vec<_>>>();
    let [none, .., all] = REMOTE_SHARES;
    let ends = leads.as_ref().and_then(|leads| Some((leads.first()?.1, leads.last()?.1)));
    let each = leads.iter().flatten().map(|(share, lead)| format!("{lead:.2} times at {share} %"));
    let each = format!("calvin over two-phase: {}", each.collect::<Vec<_>>().join(", "));
    let kept = |engine| points.kept(engine, at(none), at(all));
    let say = |statement: &str, found| judgement(FIGURE_4, statement.to_owned(), found);
    vec![
        say(
            "without remote transactions two-phase is ahead, by 5 to 4 at most",
            ends.map(|(lead, _)| {
                let measured = format!("calvin does {lead:.2} times what two-phase does");
                (measured, (0.75..1.0 - CHANCE).contains(&lead))
            }),
        ),
        say("calvin is ahead when all are remote", ends.map(|(_, lead)| (each.clone(), lead > 1.0 + CHANCE))),
        say(
            "the lead of calvin grows with the share",
            ends.map(|(first, last)| (each.clone(), last > first * (1.0 + CHANCE))),
        ),
        say(
            "throughput falls with the share, for both",
            kept(Calvin).zip(kept(TwoPhase)).map(|(one, other)| {
                let measured =
                    format!("left at 100 %: {} with calvin, {} with two-phase", percent(one), percent(other));
                (measured, one < 1.0 - CHANCE && other < 1.0 - CHANCE)
            }),
        ),
    ]
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Points {
    use super::super::real::synthetic;
    let throughput = |engine: EngineKind, setting: &Setting| match *setting {
        Setting::Micro { length, contention_index, distributed_percent } => {
            let rate = if length == Length::Short { 400_000.0 } else { 13_000.0 };
            let calvin = rate / (1.0 + distributed_percent / 50.0);
            let deadlocks = 1.0 + 6.0 * distributed_percent * contention_index;
            let loss = match (distributed_percent > 0.0, contention_index >= HIGH) {
                (false, _) => 0.0,
                (true, false) => 0.3,
                (true, true) => 0.12 * (1.0 - distributed_percent / 110.0),
            };
            match engine {
                TwoPhase => calvin / deadlocks * (1.0 - loss),
                TwoPhaseWithoutCommitProtocol => calvin / deadlocks,
                CalvinVll if length == Length::Short => calvin * 1.3,
                _ => calvin,
            }
        }
        Setting::Tpcc { remote_percent } => match engine {
            Calvin | CalvinVll => 80.0 - 0.2 * remote_percent,
            _ => 100.0 - 0.6 * remote_percent,
        },
    };
    let lines =
        |setting: &Setting| ENGINES.map(|engine| synthetic(engine, throughput(engine, setting))).to_vec();
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

    fn altered(engine: EngineKind, of: impl Fn(&Setting) -> bool, factor: f64) -> Vec<&'static str> {
        let mut points = as_stated();
        let mut found = false;
        let lines = points.0.iter_mut().filter(|(setting, _)| of(setting)).flat_map(|(_, lines)| lines);
        for line in lines.filter(|line| line.engine == engine) {
            line.throughputs.iter_mut().for_each(|throughput| *throughput *= factor);
            found = true;
        }
        assert!(found);
        differing(&points)
    }

    #[test]
    fn what_is_as_stated_holds() {
        let judgements = judge(&as_stated());
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::Holds), "{judgements:#?}");
        assert_eq!(judgements.len(), 3 + 4 + 5 + 2 * 2 + 2 + 4);
        let none = judge(&Points(Vec::new()));
        assert!(none.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured), "{none:#?}");
    }

    #[test]
    fn every_statement_can_differ() {
        let at = |length, index, share| move |setting: &Setting| *setting == micro(length, index, share);
        let behind = altered(TwoPhase, at(Length::Short, HIGH, SHARE_OF_INDEXES), 5.0);
        assert!(behind.contains(&"Conclusion") && behind.contains(&"DET-X02"), "{behind:?}");
        let local = altered(Calvin, at(Length::Long, LOW, 0.0), 1.1);
        assert_eq!(local, ["Conclusion", "DET-06"]);
        let steep = altered(Calvin, at(Length::Long, HIGH, SHARE_OF_INDEXES), 0.35);
        assert!(steep.contains(&"DET-X03"), "{steep:?}");
        let bound = altered(TwoPhaseWithoutCommitProtocol, |_| true, 10.0);
        assert_eq!(bound, ["DET-X02", "DET-X02", "DET-X03", "DET-X03"]);
        let contended = altered(Calvin, at(Length::Short, 0.1, SHARE_OF_INDEXES), 0.01);
        assert_eq!(contended, ["DET-X04", "DET-X04"]);
        let vll = altered(CalvinVll, |_| true, 0.7);
        assert_eq!(vll, ["DET-06", "DET-X02"]);
        let flat = altered(
            Calvin,
            |setting| matches!(setting, Setting::Tpcc { remote_percent } if *remote_percent == 100.0),
            0.5,
        );
        assert_eq!(flat, ["DET-X10", "DET-X10"]);
    }
}
