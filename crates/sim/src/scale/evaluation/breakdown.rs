//! What nodes spend their time on (Ren et al. §3.3.1, Figure 2: DET-X06, DET-60), also on locks (§3.1.1: DET-X07).
//!
//! The bars are of runs of Figures 1 (b) and (d) at [`SHARE_OF_INDEXES`], besides those of `two-phase` in which no deadlock spans
//! nodes, as a transaction asks its partitions one after the other, and those in which it asks for each lock as it goes. How the paper
//! kept deadlocks away is not in its text, nor when it asks for locks (DET-29). Deadlocks are so rare that these runs are measured
//! [again](measure_longer), for so long that it can be told how rare. Where they are very rare, what differs within a pair is not their
//! doing.
//!
//! Deadlocks cost what is said about them and what the edges of the graph cost the detector. What the search of a partition's own part
//! costs is not charged.

use ordain_db::engine::EngineKind;
use ordain_db::engine::two_phase::requests::LockRequests;
use ordain_db::error::Error;

use super::{
    EvaluationEffort, EvaluationPoint, EvaluationSetting, HIGH, LOW, Length, Run, SHARE_OF_INDEXES, plan,
    run_plan,
};
use crate::machine::account::Spent;
use crate::machine::cost::CostTable;
use crate::plan::Plan;
use crate::scale::bars::{Bar, Bars};
use crate::scale::shapes::{Judgement, Verdict, judgement};
use crate::time::Nanoseconds;

/// The contention index at which deadlocks are frequent here, where they are not at [`HIGH`].
pub const HIGHEST: f64 = 0.1;

/// A share of this many percent is thin.
const THIN: f64 = 5.0;

/// Deadlocks for each transaction that are "very rare".
const RARE: f64 = 0.001;

/// Transactions among which very rare deadlocks can be told from others: 20 of these would be seen.
const TELLING: f64 = 20.0 / RARE;

/// How many times as long the pairs with and without distributed deadlocks are measured as all other points: with the usual effort
/// 2.5 s with short transactions, and 10 s with long ones.
const TIMES_AS_LONG: u64 = 50;

const FIGURE_2: (&str, &str) = ("DET-X06", "Ren et al. §3.3.1, Figure 2");
const LOCKS: (&str, &str) = ("DET-X07", "Ren et al. §3.1.1 and §3.3.1");

/// Shares of time in percent, which add up to 100.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Breakdown {
    /// Requests, the order, reads, logic and answers.
    pub useful: f64,
    /// Getting and releasing locks.
    pub locks: f64,
    /// Finding deadlocks, and breaking them.
    pub deadlocks: f64,
    /// Two-phase commit.
    pub commitment: f64,
    /// Nothing to do.
    pub waiting: f64,
}

impl Breakdown {
    /// What processors spent of this time of all of them together.
    pub fn of(spent: &Spent, time: Nanoseconds) -> Breakdown {
        let percent = |part: Nanoseconds| part as f64 * 100.0 / time.max(1) as f64;
        let Spent { useful, locks, deadlocks, commitment } = *spent;
        Breakdown {
            useful: percent(useful),
            locks: percent(locks),
            deadlocks: percent(deadlocks),
            commitment: percent(commitment),
            waiting: percent(time.saturating_sub(spent.busy())),
        }
    }

    /// All parts but waiting.
    pub fn busy(&self) -> f64 {
        100.0 - self.waiting
    }

    /// The parts with their names.
    pub fn parts(&self) -> [(&'static str, f64); 5] {
        let Breakdown { useful, locks, deadlocks, commitment, waiting } = *self;
        [
            ("useful work", useful),
            ("locks", locks),
            ("deadlocks", deadlocks),
            ("two-phase commit", commitment),
            ("waiting", waiting),
        ]
    }
}

/// The pairs, of which each is measured with locks asked for in all ways.
fn pairs(nodes: u16) -> impl Iterator<Item = EvaluationSetting> {
    let indexes = move |length| [HIGH, HIGHEST].map(|index| bar(EngineKind::TwoPhase, length, nodes, index));
    let asked =
        |setting| LockRequests::ALL.map(|lock_requests| EvaluationSetting { lock_requests, ..setting });
    Length::ALL.into_iter().flat_map(indexes).flat_map(asked)
}

/// The runs of these bars that figures need not have.
pub(super) fn settings(nodes: u16) -> Vec<EvaluationSetting> {
    pairs(nodes).collect()
}

/// Measures the points again and longer that tell what distributed deadlocks do, each as hard as its best run was driven.
///
/// # Errors
/// When the workload refuses a setting.
pub fn measure_longer(
    points: &mut [EvaluationPoint],
    nodes: u16,
    measured: &CostTable,
    effort: &EvaluationEffort,
) -> Result<(), Error> {
    let effort = EvaluationEffort { time: TIMES_AS_LONG * effort.time, ..effort.clone() };
    let all: Vec<EvaluationSetting> = pairs(nodes).collect();
    for point in points.iter_mut().filter(|point| all.contains(&point.setting)) {
        let plan = plan(&point.setting, measured, point.run.window, &effort);
        let plan = Plan { step_events: point.run.step_events, ..plan };
        point.run = run_plan(&plan, &effort, point.setting.length)?;
    }
    Ok(())
}

fn bar(engine: EngineKind, length: Length, nodes: u16, index: f64) -> EvaluationSetting {
    EvaluationSetting::new(engine, length, nodes, index, SHARE_OF_INDEXES)
}

fn find<'a>(points: &'a [EvaluationPoint], setting: &EvaluationSetting) -> Option<&'a EvaluationPoint> {
    points.iter().find(|point| point.setting == *setting)
}

/// Figure 2: the parts of time of both engines.
pub fn bars(points: &[EvaluationPoint], nodes: u16, notes: &[String]) -> Bars {
    let mut drawn = Vec::new();
    for length in Length::ALL.into_iter().rev() {
        for engine in [EngineKind::Calvin, EngineKind::TwoPhase] {
            for index in [LOW, HIGH, HIGHEST] {
                for lock_requests in [LockRequests::InOrder, LockRequests::Together, LockRequests::AsItGoes] {
                    let setting = EvaluationSetting { lock_requests, ..bar(engine, length, nodes, index) };
                    let Some(point) = find(points, &setting) else { continue };
                    let how = match lock_requests {
                        LockRequests::InOrder => ", no distributed deadlocks",
                        LockRequests::Together => "",
                        LockRequests::AsItGoes => ", locks as it goes",
                    };
                    let name = format!("{}: {}, index {index}{how}", length.name(), engine.name());
                    let parts = point.run.time.parts().map(|(_, percent)| percent).to_vec();
                    drawn.push(Bar { name, parts });
                }
            }
        }
    }
    Bars {
        title: format!("What nodes spend their time on, {SHARE_OF_INDEXES} % distributed"),
        parts: Breakdown::default().parts().map(|(name, _)| name.to_owned()).to_vec(),
        bars: drawn,
        notes: notes.to_vec(),
    }
}

/// What the paper states of time and of locks, beside what was measured.
pub(super) fn judge(points: &[EvaluationPoint], nodes: u16) -> Vec<Judgement> {
    let mut all = Vec::new();
    for length in Length::ALL.into_iter().rev() {
        for index in [HIGH, HIGHEST] {
            for lock_requests in [LockRequests::Together, LockRequests::AsItGoes] {
                let with = bar(EngineKind::TwoPhase, length, nodes, index);
                all.extend(judge_deadlocks(points, EvaluationSetting { lock_requests, ..with }));
            }
        }
    }
    all.push(judge_low(points, nodes));
    all.extend(judge_locks(points, nodes));
    all
}

/// What deadlocks do in a setting.
fn judge_deadlocks(points: &[EvaluationPoint], with: EvaluationSetting) -> Vec<Judgement> {
    let without = EvaluationSetting { lock_requests: LockRequests::InOrder, ..with };
    let pair = find(points, &with).zip(find(points, &without));
    let EvaluationSetting { length, contention_index: index, lock_requests, .. } = with;
    let at = format!("{} transactions, index {index}, locks asked for {lock_requests}", length.name());
    let stated = format!("{at}: with distributed deadlocks, useful work falls and nodes wait");
    let drop = pair.map(|(with, without)| {
        let (one, other) = (with.run.time, without.run.time);
        let measured = format!(
            "useful work {:.1} % without, {:.1} % with; waiting {:.1} % and {:.1} %; {}",
            other.useful,
            one.useful,
            other.waiting,
            one.waiting,
            frequency(&with.run)
        );
        (measured, one.useful < 0.9 * other.useful && one.waiting > other.waiting && !is_rare(&with.run))
    });
    let tells = pair.is_none_or(|(with, _)| with.run.transactions() >= TELLING);
    let drop = judgement(FIGURE_2, stated, drop);
    let drop = if tells { drop } else { Judgement { verdict: Verdict::NotMeasured, ..drop } };
    let thin = pair.map(|(with, _)| {
        let percent = with.run.time.deadlocks;
        (format!("{percent:.2} % of the time; {}", frequency(&with.run)), percent < THIN)
    });
    let thin = judgement(FIGURE_2, format!("{at}: handling deadlocks takes little time"), thin);
    // Where there are hardly any, that they take little says nothing.
    let handles = tells && pair.is_none_or(|(with, _)| !is_rare(&with.run));
    let thin = match thin.verdict {
        Verdict::Holds if !handles => Judgement { verdict: Verdict::NotMeasured, ..thin },
        _ => thin,
    };
    vec![drop, thin]
}

/// How many deadlocks there were, for people.
fn frequency(run: &Run) -> String {
    let rare = if is_rare(run) { "which is very rare" } else { "which is not rare" };
    format!("{} deadlocks and {} transactions, {rare}", run.victims(), run.transactions())
}

/// Whether deadlocks were very rare in a run.
fn is_rare(run: &Run) -> bool {
    run.deadlocks <= RARE * run.throughput
}

fn judge_low(points: &[EvaluationPoint], nodes: u16) -> Judgement {
    let low = Length::ALL.map(|length| find(points, &bar(EngineKind::TwoPhase, length, nodes, LOW)));
    let found = low.into_iter().collect::<Option<Vec<_>>>().map(|low| {
        let each = low.iter().map(|point| {
            let Run { deadlocks, throughput, .. } = &point.run;
            format!("{}: {deadlocks:.0} of {throughput:.0} transactions/s", point.setting.length.name())
        });
        let rare = low.iter().all(|point| is_rare(&point.run));
        (each.collect::<Vec<_>>().join(", "), rare)
    });
    judgement(FIGURE_2, "at low contention distributed deadlocks are very rare".to_owned(), found)
}

/// What part of its time a transaction's locks take: of one partition, with `calvin`, as nodes account for it.
fn judge_locks(points: &[EvaluationPoint], nodes: u16) -> Vec<Judgement> {
    let judge = |length: Length, percent: &str, is_stated: fn(f64) -> bool| {
        let setting = EvaluationSetting::new(EngineKind::Calvin, length, nodes, LOW, 0.0);
        let time = find(points, &setting).map(|point| point.run.time).filter(|time| time.busy() > 0.0);
        let found = time.map(|time| {
            let share = 100.0 * time.locks / time.busy();
            (format!("{share:.1} % with the lock manager hash, without contention"), is_stated(share))
        });
        let stated = format!("locks take {percent} of the time of {} transactions", length.name());
        judgement(LOCKS, stated, found)
    };
    vec![
        judge(Length::Short, "over 30 %", |share| share > 30.0),
        judge(Length::Long, "16 %", |share| (10.0..=22.0).contains(&share)),
    ]
}

/// Parts of time for which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated(setting: &EvaluationSetting) -> Breakdown {
    let contended = setting.engine == EngineKind::TwoPhase && setting.contention_index >= HIGH;
    let waiting = if contended && setting.lock_requests != LockRequests::InOrder { 50.0 } else { 10.0 };
    let locks = if setting.length == Length::Short { 36.0 } else { 16.0 };
    Breakdown { useful: 96.0 - locks - waiting, locks, deadlocks: 1.0, commitment: 3.0, waiting }
}

#[cfg(test)]
mod tests {
    use super::super::statements::as_stated;
    use super::*;
    use crate::scale::{Benchmark, costs};
    use crate::time::{MILLISECOND, SECOND};

    fn verdicts(points: &[EvaluationPoint]) -> Vec<Verdict> {
        judge(points, 4).iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn parts_of_time_are_judged_and_drawn() {
        use Verdict::{Differs, Holds, NotMeasured};
        let mut points = as_stated();
        assert_eq!(verdicts(&points), [Holds; 19]);
        assert_eq!(verdicts(&[]), [NotMeasured; 19]);
        // Three of calvin and seven of two-phase, for each length.
        assert_eq!(bars(&points, 4, &[]).bars.len(), 2 * (3 + 7));
        for point in points.iter_mut().filter(|point| point.setting.engine == EngineKind::TwoPhase) {
            point.run.time = Breakdown { useful: 90.0, deadlocks: 10.0, ..Breakdown::default() };
            point.run.deadlocks = point.run.throughput;
        }
        assert_eq!(verdicts(&points)[..17], [Differs; 17]);
        for point in points.iter_mut().filter(|point| point.setting.engine == EngineKind::Calvin) {
            point.run.time = Breakdown { useful: 95.0, locks: 5.0, ..Breakdown::default() };
        }
        assert_eq!(verdicts(&points)[17..], [Differs; 2], "locks cost less");
    }

    #[test]
    fn where_deadlocks_are_rare_nothing_is_said_of_them() {
        use Verdict::{Differs, NotMeasured};
        let mut points = as_stated();
        points.iter_mut().for_each(|point| point.run.deadlocks = 0.1);
        let judged = judge(&points, 4);
        assert!(
            judged[0].measured.contains("; 10 deadlocks and ") && judged[0].measured.ends_with("very rare")
        );
        assert_eq!(
            verdicts(&points)[..16],
            [Differs, NotMeasured].repeat(8),
            "what falls is not their doing"
        );
        let mut costly = points.clone();
        costly.iter_mut().for_each(|point| point.run.time.deadlocks = 10.0);
        assert_eq!(verdicts(&costly)[..16], [Differs; 16], "even these take much");
        points.iter_mut().for_each(|point| point.run.measured = MILLISECOND);
        assert_eq!(verdicts(&points)[..16], [NotMeasured; 16], "too short to tell");
        let mut points = as_stated();
        points.iter_mut().for_each(|point| point.run.deadlocks = 0.0);
        assert_eq!(verdicts(&points)[..16], [Differs, NotMeasured].repeat(8), "there are none");
    }

    #[test]
    fn pairs_are_measured_longer() {
        let few = bar(EngineKind::TwoPhase, Length::Short, 4, HIGHEST);
        let other = EvaluationSetting { contention_index: LOW, ..few };
        let mut points = as_stated();
        points.retain(|point| point.setting == few || point.setting == other);
        let effort =
            EvaluationEffort { warm_up: 0, time: 4 * MILLISECOND / 5, ..EvaluationEffort::default() };
        measure_longer(&mut points, 4, &costs(Benchmark::Micro), &effort).unwrap();
        let measured: Vec<_> =
            points.iter().map(|point| (point.setting == few, point.run.measured)).collect();
        assert_eq!(measured, [(false, 100 * SECOND), (true, 10 * MILLISECOND)]);
    }

    #[test]
    fn parts_of_time_add_up() {
        let spent = Spent { useful: 300, locks: 100, deadlocks: 5, commitment: 15 };
        let time = Breakdown::of(&spent, 1_000);
        assert_eq!(time.parts().map(|(_, percent)| percent), [30.0, 10.0, 0.5, 1.5, 58.0]);
        assert!((time.busy() - 42.0).abs() < 1e-9);
    }
}
