//! What the paper states of deterministic and classical execution, held against what was measured for real: the statements about the
//! [simulated](ordain_sim::scale::evaluation) points, as far as there are points of them. Lock managers are compared over all cases of a
//! length.

use ordain_db::engine::EngineKind;
use ordain_db::engine::EngineKind::{Calvin, CalvinVll, TwoPhase};
use ordain_sim::scale::evaluation::figure_1::{Cell, Figure1, judge_figure_1};
use ordain_sim::scale::evaluation::tpcc::judge_figure_4;
use ordain_sim::scale::evaluation::{HIGH, Length};
use ordain_sim::scale::shapes::{CHANCE, Judgement, Verdict, judgement, percent};

use super::real::{INDEXES, Points, REMOTE_SHARES, SHARES, Setting};
use crate::bench::rounds::Spread;

/// Holds all statements against the points.
pub(super) fn judge(points: &Points) -> Vec<Judgement> {
    let mut judgements = judge_figure_1(points);
    judgements.extend(lock_managers(points));
    judgements.extend(tpcc(points));
    judgements
}

impl Figure1 for Points {
    fn shares(&self) -> &'static [f64] {
        &SHARES
    }

    fn indexes(&self) -> &'static [f64] {
        &INDEXES
    }

    fn high_indexes(&self) -> &'static [f64] {
        &[HIGH]
    }

    fn throughput(&self, engine: EngineKind, at: Cell) -> Option<f64> {
        Some(self.find(engine, Setting::Micro(at))?.throughput())
    }

    fn over(&self, one: (EngineKind, Cell), other: (EngineKind, Cell)) -> Option<f64> {
        self.over((one.0, Setting::Micro(one.1)), (other.0, Setting::Micro(other.1)))
    }
}

/// What VLL does for `calvin`, over all points of a length.
fn lock_managers(points: &Points) -> Vec<Judgement> {
    let ratios = |length: Length| {
        let of = Setting::all()
            .into_iter()
            .filter(|setting| matches!(setting, Setting::Micro(at) if at.length == length));
        let ratio = |setting| Some(points.find(CalvinVll, setting)?.over(points.find(Calvin, setting)?));
        of.map(ratio).collect::<Option<Vec<Spread>>>()
    };
    let told = |ratios: &[Spread]| {
        let each = ratios
            .iter()
            .map(|ratio| format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.least, ratio.most));
        format!("calvin-vll over calvin: {}", each.collect::<Vec<_>>().join(", "))
    };
    let long = ratios(Length::Long);
    let verdict = long.as_deref().map_or(Verdict::NotMeasured, likeness);
    let alike = judgement(
        ("DET-06", "Ren et al. §3.1.1"),
        format!("hash and VLL perform alike with long transactions, within {}", percent(CHANCE)),
        long.map(|ratios| (told(&ratios), verdict == Verdict::Holds)),
    );
    vec![
        Judgement { verdict, ..alike },
        judgement(
            ("DET-X02", "Ren et al. §3.1.1 and §3.3.1, Figure 1 (a)"),
            "VLL is ahead of hash with short transactions (there, where a thread for locks is the bottleneck)"
                .to_owned(),
            ratios(Length::Short)
                .map(|ratios| (told(&ratios), ratios.iter().all(|ratio| ratio.median > 1.0 + CHANCE))),
        ),
    ]
}

/// Whether all medians are within chance of no difference. Rounds that are further apart than from one end of that to the other tell nothing,
/// unless all are beyond it on one side.
fn likeness(ratios: &[Spread]) -> Verdict {
    let beyond = |value: f64| (value - 1.0).abs() > CHANCE;
    let tells = |ratio: &Spread| ratio.most - ratio.least <= 2.0 * CHANCE;
    let apart = |ratio: &Spread| ratio.most < 1.0 - CHANCE || ratio.least > 1.0 + CHANCE;
    let differs = |ratio: &Spread| apart(ratio) || (tells(ratio) && beyond(ratio.median));
    match (ratios.iter().any(differs), ratios.iter().all(tells)) {
        (true, _) => Verdict::Differs,
        (false, true) => Verdict::Holds,
        (false, false) => Verdict::NotMeasured,
    }
}

/// Figure 4.
fn tpcc(points: &Points) -> Vec<Judgement> {
    let at = |remote_percent| Setting::Tpcc { remote_percent };
    let lead = |share| Some((share, points.over((Calvin, at(share)), (TwoPhase, at(share)))?));
    let leads: Vec<(f64, f64)> = REMOTE_SHARES.into_iter().filter_map(lead).collect();
    let [none, .., all] = REMOTE_SHARES;
    let kept = |engine| points.over((engine, at(all)), (engine, at(none)));
    judge_figure_4(Length::Short, &leads, kept(Calvin).zip(kept(TwoPhase)))
}

/// Points of which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Points {
    use ordain_db::engine::EngineKind::TwoPhaseWithoutCommitProtocol;
    use ordain_sim::scale::evaluation::ENGINES;

    use super::super::real::{self, synthetic};
    let throughput = |engine: EngineKind, setting: &Setting| match *setting {
        Setting::Micro(Cell { length, contention_index, distributed_percent }) => {
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
    real::Points(Setting::all().into_iter().map(|setting| (setting, lines(&setting))).collect())
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind::TwoPhaseWithoutCommitProtocol;
    use ordain_sim::scale::evaluation::{LOW, SHARE_OF_INDEXES};

    use super::super::super::real;
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
        let none = judge(&real::Points(Vec::new()));
        assert!(none.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured), "{none:#?}");
    }

    #[test]
    fn what_is_not_as_stated_differs() {
        let at = |length, index, share| {
            move |setting: &Setting| *setting == Setting::Micro(Cell::new(length, index, share))
        };
        let behind = altered(TwoPhase, at(Length::Short, HIGH, SHARE_OF_INDEXES), 5.0);
        assert!(behind.contains(&"Conclusion") && behind.contains(&"DET-X02"), "{behind:?}");
        let local = altered(Calvin, at(Length::Long, LOW, 0.0), 1.1);
        assert_eq!(local, ["Conclusion", "DET-06"]);
        let steep = altered(Calvin, at(Length::Long, HIGH, SHARE_OF_INDEXES), 0.35);
        assert!(steep.contains(&"DET-X03"), "{steep:?}");
        let bound = altered(TwoPhaseWithoutCommitProtocol, |_| true, 10.0);
        assert_eq!(bound, [["DET-X02"; 3], ["DET-X03"; 3]].concat());
        let contended = altered(Calvin, at(Length::Short, 0.1, SHARE_OF_INDEXES), 0.01);
        assert_eq!(contended, ["DET-X04", "DET-X04"]);
        let vll = altered(CalvinVll, |_| true, 0.7);
        assert_eq!(vll, ["DET-06", "DET-X02"]);
        let too_far = altered(Calvin, |setting| matches!(setting, Setting::Tpcc { .. }), 0.97);
        assert_eq!(too_far, ["DET-X10"], "more than 5 to 4");
        let flat = altered(
            Calvin,
            |setting| matches!(setting, Setting::Tpcc { remote_percent } if *remote_percent == 100.0),
            0.5,
        );
        assert_eq!(flat, ["DET-X10", "DET-X10"]);
    }

    #[test]
    fn noise_is_no_likeness() {
        use Verdict::{Differs, Holds, NotMeasured};
        let verdict = |rounds: [f64; 3]| {
            let mut points = as_stated();
            let at = Setting::Micro(Cell::new(Length::Long, HIGH, 0.0));
            let lines =
                points.0.iter_mut().filter(|(setting, _)| *setting == at).flat_map(|(_, lines)| lines);
            for line in lines.filter(|line| line.engine == CalvinVll) {
                line.throughputs
                    .iter_mut()
                    .zip(rounds)
                    .for_each(|(throughput, factor)| *throughput *= factor);
            }
            let judged = judge(&points);
            judged.into_iter().find(|judgement| judgement.experiment == "DET-06").unwrap().verdict
        };
        assert_eq!(verdict([0.97, 1.0, 1.04]), Holds);
        // Each of these has a round of no difference.
        assert_eq!(verdict([0.90, 0.93, 0.97]), Differs);
        assert_eq!(verdict([0.73, 0.96, 1.12]), NotMeasured);
        assert_eq!(verdict([0.84, 0.86, 1.06]), NotMeasured);
        assert_eq!(verdict([0.5, 0.7, 0.9]), Differs, "in no round alike");
    }
}
