//! What was measured of a slow node, as a table, as a chart, and beside what the paper states.

use std::fmt::Write as _;

use ordain_db::engine::EngineKind;

use super::{BEFORE, Course, ENGINES, FACTOR, NODES, SAMPLE, SLOW, Sample, SlowNodeSetting, TIME};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{CHANCE, Judgement, judgement};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};

/// From when on a course is judged: what the slow node takes on has had time to settle.
const SETTLED: Nanoseconds = TIME / 2;

/// The share of what the others did before that they must still do with throttling to be called unharmed.
const UNHARMED: f64 = 0.9;

/// The share below which they are called harmed.
const HARMED: f64 = 0.7;

/// A smaller difference than this, of what the others keep, is "very little".
const LITTLE: f64 = 0.15;

/// The percentage of multi-partition transactions of Figure 5 (b); the paper's text does not name it. With so few the paper's others
/// fall already.
pub const SHARE_OF_FIGURE_5B: f64 = 5.0;

/// By how much the shares that the slow node's clients lose in the two halves may differ and be called an equilibrium.
const EVEN: f64 = 0.1;

const FIGURE_5A: (&str, &str) = ("DET-X11", "Ren et al. §3.5, Figure 5 (a)");
const FIGURE_5B: (&str, &str) = ("DET-X12", "Ren et al. §3.5, Figure 5 (b)");

/// Per second.
fn rate(of_sample: u64) -> f64 {
    of_sample as f64 * SECOND as f64 / SAMPLE as f64
}

/// What there is of all nodes but the slow one.
fn others(of_nodes: &[u64]) -> u64 {
    of_nodes.iter().sum::<u64>() - of_nodes[SLOW.index()]
}

/// The share of attempts that were shed.
fn share_of(shed: f64, committed: f64) -> f64 {
    if shed > 0.0 { shed / (shed + committed) } else { 0.0 }
}

/// The engine, and whether it throttles.
fn system(setting: &SlowNodeSetting) -> String {
    let throttles = if setting.throttles { ", throttled" } else { "" };
    format!("{}{throttles}", setting.engine.name())
}

fn name(setting: &SlowNodeSetting) -> String {
    let SlowNodeSetting { multi_partition_percent, factor, .. } = setting;
    format!("{}, {multi_partition_percent} %, {factor} times as slow", system(setting))
}

/// A line for each sample of each course, under a line with the names of the columns. Rates are per second.
pub fn csv(courses: &[Course]) -> String {
    let mut out = "engine,throttled,multi_partition_percent,times_as_slow,offered_txn_s,ms,slow_node_txn_s,others_txn_s,slow_node_shed_s,others_shed_s\n"
        .to_owned();
    for course in courses {
        let SlowNodeSetting { engine, throttles, multi_partition_percent, factor, offered } = course.setting;
        for sample in &course.samples {
            let (ms, slow) = (sample.at / MILLISECOND, rate(sample.committed[SLOW.index()]));
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{},{throttles},{multi_partition_percent},{factor},{offered},{ms},{slow:.0},{:.0},{:.0},{:.0}",
                engine.name(),
                rate(others(&sample.committed)),
                rate(sample.shed[SLOW.index()]),
                rate(others(&sample.shed))
            );
        }
    }
    out
}

/// Figures 5 (a) and (b), each with the name of its file. `notes` say what was run.
pub fn figures(courses: &[Course], notes: &[String]) -> Vec<(&'static str, Figure)> {
    vec![
        ("figure-5a-shares.svg", over_shares(courses, notes)),
        ("figure-5b-time.svg", over_time(courses, notes)),
    ]
}

/// A colour for each engine, a marker and a dash for throttling.
fn style(setting: &SlowNodeSetting) -> Style {
    let color = ENGINES.iter().position(|engine| *engine == setting.engine).unwrap_or(ENGINES.len());
    Style { color, shape: usize::from(setting.throttles) }
}

fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear }
}

/// Figure 5 (a): what all nodes do when one is slow, over the share of multi-partition transactions.
fn over_shares(courses: &[Course], notes: &[String]) -> Figure {
    let mut all: Vec<Series> = Vec::new();
    for course in courses.iter().filter(|course| course.setting.factor == FACTOR) {
        let Some(run) = summary(course) else { continue };
        let point = (course.setting.multi_partition_percent, run.others_after + run.slow_after);
        let name = system(&course.setting);
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series { name, style: style(&course.setting), points: vec![point] }),
        }
    }
    all.iter_mut().for_each(|series| series.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    let (x, y) = (axis("multi-partition transactions, %"), axis("transactions/s"));
    let title = "All nodes, when it has settled".to_owned();
    Figure {
        title: format!("One of {NODES} nodes is {FACTOR} times as slow"),
        panels: vec![Panel { title, x, y, series: all }],
        notes: notes.to_vec(),
    }
}

/// Figure 5 (b): throughput of the other nodes and of the slow one, and what it sheds, over time.
fn over_time(courses: &[Course], notes: &[String]) -> Figure {
    let of_figure = |course: &&Course| {
        let SlowNodeSetting { multi_partition_percent, factor, .. } = course.setting;
        factor == FACTOR && multi_partition_percent == SHARE_OF_FIGURE_5B
    };
    let panel = |title: &str, label: &str, value: fn(&Sample) -> f64| Panel {
        title: title.to_owned(),
        x: axis("ms"),
        y: axis(label),
        series: courses
            .iter()
            .filter(of_figure)
            .map(|course| {
                let of_sample = |sample: &Sample| ((sample.at / MILLISECOND) as f64, value(sample));
                let (name, style) = (system(&course.setting), style(&course.setting));
                Series { name, style, points: course.samples.iter().map(of_sample).collect() }
            })
            .collect(),
    };
    Figure {
        title: format!(
            "One of {NODES} nodes becomes {FACTOR} times as slow after {} ms, {SHARE_OF_FIGURE_5B} % multi-partition",
            BEFORE / MILLISECOND
        ),
        panels: vec![
            panel("The other nodes", "transactions/s", |sample| rate(others(&sample.committed))),
            panel("The slow node", "transactions/s", |sample| rate(sample.committed[SLOW.index()])),
            panel("What the slow node sheds", "% of the attempts of its clients", |sample| {
                100.0 * share_of(sample.shed[SLOW.index()] as f64, sample.committed[SLOW.index()] as f64)
            }),
        ],
        notes: notes.to_vec(),
    }
}

/// Means per second before the node is slow, and when all has settled.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Summary {
    others_before: f64,
    others_after: f64,
    slow_before: f64,
    slow_after: f64,
    /// The share of what they had that the slow node's clients lose, in the two halves of that time.
    lost: [f64; 2],
    /// The share of the attempts of its own clients that is shed at the slow node.
    shed: f64,
    /// The share of the attempts of the other nodes' clients that is shed there.
    shed_by_others: f64,
}

fn summary(course: &Course) -> Option<Summary> {
    let mean = |from: Nanoseconds, through: Nanoseconds, value: &dyn Fn(&Sample) -> f64| {
        let within = |sample: &&Sample| sample.at > from && sample.at <= through;
        let values: Vec<f64> = course.samples.iter().filter(within).map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let other = |sample: &Sample| rate(others(&sample.committed));
    let slow = |sample: &Sample| rate(sample.committed[SLOW.index()]);
    let slow_before = mean(0, BEFORE, &slow)?;
    let lost =
        |from: Nanoseconds, through: Nanoseconds| Some(1.0 - mean(from, through, &slow)? / slow_before);
    let shed = mean(SETTLED, TIME, &|sample| rate(sample.shed[SLOW.index()]))?;
    let shed_by_others = mean(SETTLED, TIME, &|sample| rate(others(&sample.shed)))?;
    let half = (SETTLED + TIME) / 2;
    Some(Summary {
        others_before: mean(0, BEFORE, &other)?,
        others_after: mean(SETTLED, TIME, &other)?,
        slow_before,
        slow_after: mean(SETTLED, TIME, &slow)?,
        lost: [lost(SETTLED, half)?, lost(half, TIME)?],
        shed: share_of(shed, mean(SETTLED, TIME, &slow)?),
        shed_by_others: share_of(shed_by_others, mean(SETTLED, TIME, &other)?),
    })
}

/// A line for each course.
pub fn table(courses: &[Course]) -> String {
    let mut out = format!(
        "{:<42}{:>14}{:>14}{:>8}{:>10}{:>14}{:>14}{:>10}\n",
        "", "others before", "others after", "share", "shed", "slow before", "slow after", "shed"
    );
    for course in courses {
        let Some(run) = summary(course) else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<42}{:>14.0}{:>14.0}{:>7.0}%{:>9.0}%{:>14.0}{:>14.0}{:>9.0}%",
            name(&course.setting),
            run.others_before,
            run.others_after,
            100.0 * kept(&run),
            100.0 * run.shed_by_others,
            run.slow_before,
            run.slow_after,
            100.0 * run.shed
        );
    }
    out
}

/// The share of what they did before that the other nodes still do.
fn kept(run: &Summary) -> f64 {
    run.others_after / run.others_before
}

/// The runs of one engine whose node is [`FACTOR`] times as slow, with their percentages of multi-partition transactions.
fn runs(courses: &[Course], engine: EngineKind, throttles: bool, is_multi: bool) -> Vec<(f64, Summary)> {
    let wanted = courses.iter().filter(|course| {
        let setting = &course.setting;
        (setting.engine, setting.throttles, setting.factor) == (engine, throttles, FACTOR)
            && (setting.multi_partition_percent > 0.0) == is_multi
    });
    wanted.filter_map(|course| Some((course.setting.multi_partition_percent, summary(course)?))).collect()
}

/// What the others keep in each run, and whether that is as stated in all of them.
fn each(runs: &[(f64, Summary)], holds: impl Fn(&Summary) -> bool) -> Option<(String, bool)> {
    let text = |(percent, run): &(f64, Summary)| format!("{percent} %: {:.0} %", 100.0 * kept(run));
    let measured: Vec<String> = runs.iter().map(text).collect();
    (!runs.is_empty()).then(|| (measured.join(", "), runs.iter().all(|(_, run)| holds(run))))
}

/// What the paper states of slow nodes, beside what was measured.
pub fn judge(courses: &[Course]) -> Vec<Judgement> {
    let mut all = Vec::new();
    for engine in ENGINES {
        let name = engine.name();
        all.push(judgement(
            FIGURE_5A,
            format!("{name}: without multi-partition transactions only the slow node loses"),
            each(&runs(courses, engine, false, false), |run| kept(run) >= UNHARMED),
        ));
        all.push(judgement(
            FIGURE_5A,
            format!("{name}: with any real share of them the others fall with the slow node"),
            each(&runs(courses, engine, false, true), |run| kept(run) < HARMED),
        ));
        all.push(judgement(
            FIGURE_5A,
            format!("{name}: the slower the node, the less the others do"),
            falls_with_factor(courses, engine),
        ));
    }
    let stated = "the freedom to reorder helps the classical engine very little".to_owned();
    all.push(judgement(FIGURE_5A, stated, freedom(courses)));
    for engine in ENGINES {
        let name = engine.name();
        let throttled = runs(courses, engine, true, true);
        let stated = format!("{name}: where it takes on less, the others stay near normal");
        all.push(judgement(FIGURE_5B, stated, each(&throttled, |run| kept(run) >= UNHARMED)));
        let stated = format!("{name}: how much less finds an equilibrium (70 % for the paper's disturbance)");
        all.push(judgement(FIGURE_5B, stated, settles(&throttled)));
    }
    all
}

fn falls_with_factor(courses: &[Course], engine: EngineKind) -> Option<(String, bool)> {
    let of = |course: &&Course| {
        let setting = &course.setting;
        (setting.engine, setting.throttles) == (engine, false)
            && setting.multi_partition_percent == SHARE_OF_FIGURE_5B
    };
    let mut line: Vec<(u64, f64)> = courses
        .iter()
        .filter(of)
        .filter_map(|course| Some((course.setting.factor, kept(&summary(course)?))))
        .collect();
    line.sort_by_key(|(factor, _)| *factor);
    let text = |(factor, kept): &(u64, f64)| format!("{factor} times as slow: {:.0} %", 100.0 * kept);
    let measured = line.iter().map(text).collect::<Vec<_>>().join(", ");
    let falls = line.windows(2).all(|pair| pair[1].1 < pair[0].1 - CHANCE);
    (line.len() > 1).then(|| (format!("at {SHARE_OF_FIGURE_5B} %: {measured}"), falls))
}

fn freedom(courses: &[Course]) -> Option<(String, bool)> {
    let of = |engine| runs(courses, engine, false, true);
    let pairs: Vec<(f64, f64, f64)> = of(EngineKind::Calvin)
        .iter()
        .filter_map(|(percent, calvin)| {
            let two_phase = of(EngineKind::TwoPhase);
            let (_, two_phase) = two_phase.iter().find(|(other, _)| other == percent)?;
            Some((*percent, kept(calvin), kept(two_phase)))
        })
        .collect();
    let text = |(percent, calvin, two_phase): &(f64, f64, f64)| {
        format!("{percent} %: calvin {:.0} %, two-phase {:.0} %", 100.0 * calvin, 100.0 * two_phase)
    };
    let measured = pairs.iter().map(text).collect::<Vec<_>>().join("; ");
    let holds = pairs.iter().all(|(_, calvin, two_phase)| two_phase - calvin <= LITTLE);
    (!pairs.is_empty()).then(|| (format!("the others keep: {measured}"), holds))
}

fn settles(throttled: &[(f64, Summary)]) -> Option<(String, bool)> {
    let text = |(percent, run): &(f64, Summary)| {
        format!("{percent} %: {:.0} %, then {:.0} %", 100.0 * run.lost[0], 100.0 * run.lost[1])
    };
    let settled = |(_, run): &(f64, Summary)| run.lost[1] > 0.0 && (run.lost[0] - run.lost[1]).abs() <= EVEN;
    let shares: Vec<String> = throttled.iter().map(text).collect();
    (!throttled.is_empty()).then(|| (shares.join("; "), throttled.iter().all(settled)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cost::CostTable;
    use crate::scale::shapes::Verdict;
    use crate::scale::slow_node::{SlowNodeSetting, measure_slow_node};

    fn setting(engine: EngineKind, multi_partition_percent: f64, throttles: bool) -> SlowNodeSetting {
        SlowNodeSetting { engine, factor: FACTOR, multi_partition_percent, throttles, offered: 4_000 }
    }

    /// The slow node's clients get so many in each sample, and the others' so many together, before and after; it sheds so many.
    fn course(
        (engine, throttles): (EngineKind, bool),
        percent: f64,
        before: (u64, u64),
        after: (u64, u64),
        shed: u64,
    ) -> Course {
        let setting = setting(engine, percent, throttles);
        let samples = (1..=TIME / SAMPLE).map(|number| {
            let at = number * SAMPLE;
            let ((slow, others), shed) = if at <= BEFORE { (before, 0) } else { (after, shed) };
            let [committed, shed] =
                [[slow, others], [shed, 0]].map(|first| [&first[..], &[0; NODES as usize - 2]].concat());
            Sample { at, committed, shed }
        });
        Course { setting, samples: samples.collect() }
    }

    /// One that is so many times as slow, whose others keep so many.
    fn slower(engine: EngineKind, factor: u64, others: u64) -> Course {
        let mut slower = course((engine, false), SHARE_OF_FIGURE_5B, (200, 1_400), (50, others), 0);
        slower.setting.factor = factor;
        slower
    }

    fn verdicts(courses: &[Course]) -> Vec<Verdict> {
        judge(courses).into_iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn courses_are_judged_by_what_the_others_get() {
        use Verdict::{Differs, Holds, NotMeasured};
        let like_the_paper: Vec<Course> = ENGINES
            .into_iter()
            .flat_map(|engine| {
                [
                    course((engine, false), 0.0, (200, 1_400), (50, 1_400), 0),
                    course((engine, false), 5.0, (200, 1_400), (50, 400), 0),
                    course((engine, true), 5.0, (200, 1_400), (50, 1_380), 120),
                    slower(engine, 2, 700),
                ]
            })
            .collect();
        assert_eq!(verdicts(&like_the_paper), [Holds; 11]);
        let unlike: Vec<Course> = ENGINES
            .into_iter()
            .flat_map(|engine| {
                let helped = if engine == EngineKind::TwoPhase { 1_380 } else { 1_000 };
                [
                    course((engine, false), 0.0, (200, 1_400), (50, 700), 0),
                    course((engine, false), 5.0, (200, 1_400), (50, helped), 0),
                    course((engine, true), 5.0, (200, 1_400), (200, 900), 0),
                    slower(engine, 8, 1_390),
                ]
            })
            .collect();
        assert_eq!(verdicts(&unlike), [Differs; 11]);
        assert_eq!(verdicts(&[]), [NotMeasured; 11]);
        let mut swings = course((EngineKind::TwoPhase, true), 5.0, (200, 1_400), (50, 1_380), 120);
        swings
            .samples
            .iter_mut()
            .filter(|sample| sample.at > 3 * TIME / 4)
            .for_each(|sample| sample.committed[SLOW.index()] = 150);
        assert_eq!(verdicts(&[swings])[9..], [Holds, Differs]);
        assert_eq!(csv(&like_the_paper).lines().count(), 1 + 8 * (TIME / SAMPLE) as usize);
        assert!(table(&like_the_paper).contains("calvin, throttled, 5 %, 4 times as slow"));
        let figures = figures(&like_the_paper, &[]);
        let lines = |figure: usize, panel: usize| figures[figure].1.panels[panel].series.len();
        assert_eq!((lines(0, 0), lines(1, 0), lines(1, 2)), (4, 4, 4));
        assert!(figures.iter().all(|(_, figure)| figure.svg().contains("</svg>")));
    }

    fn run(engine: EngineKind, percent: f64, throttles: bool) -> Summary {
        let costs =
            CostTable { executed_alone: 10_000_000, executed_together: 10_000_000, ..CostTable::default() };
        summary(&measure_slow_node(&setting(engine, percent, throttles), &costs).unwrap()).unwrap()
    }

    /// Judged in virtual time: a slow node holds the others up, unless it takes on less. Its own calls wait before the order.
    #[test]
    fn throttling_keeps_the_others_throughput() {
        let (unthrottled, throttled) =
            (run(EngineKind::Calvin, 10.0, false), run(EngineKind::Calvin, 10.0, true));
        assert!(unthrottled.others_after < HARMED * unthrottled.others_before, "{unthrottled:?}");
        assert!(throttled.others_after > UNHARMED * throttled.others_before, "{throttled:?}");
        assert!(throttled.shed < 0.5 && throttled.slow_after > 0.0, "{throttled:?}");
    }

    /// The classical engine notices by itself, without batches that say who lags, and sheds until it keeps up.
    #[test]
    fn a_slow_node_without_an_order_sheds_calls() {
        let (unthrottled, throttled) =
            (run(EngineKind::TwoPhase, 10.0, false), run(EngineKind::TwoPhase, 10.0, true));
        assert_eq!(unthrottled.shed, 0.0, "{unthrottled:?}");
        assert!(
            throttled.shed > 0.3 && (throttled.lost[0] - throttled.lost[1]).abs() < EVEN,
            "{throttled:?}"
        );
        assert!(throttled.others_after > UNHARMED * throttled.others_before, "{throttled:?}");
        assert!(throttled.slow_after > 0.0, "{throttled:?}");
    }

    /// A node whose calls take longer than a step should executes them one by one, and the others need not wait for many.
    #[test]
    fn long_calls_keep_nobody_waiting() {
        let thirty_milliseconds = 30_000_000_000;
        let costs = CostTable { executed_alone: thirty_milliseconds, ..CostTable::default() };
        let setting = SlowNodeSetting { offered: 100, ..setting(EngineKind::Calvin, 0.0, false) };
        let run = summary(&measure_slow_node(&setting, &costs).unwrap()).unwrap();
        let others = f64::from(NODES - 1) * 1e12 / thirty_milliseconds as f64;
        assert!(run.others_after > 0.9 * others, "{run:?}");
    }

    /// Where the others ask it for more than it can do, what it sheds of its own is not enough.
    #[test]
    fn others_spare_a_slow_node_that_they_would_wait_for() {
        for engine in ENGINES {
            let (unthrottled, throttled) = (run(engine, 50.0, false), run(engine, 50.0, true));
            assert!(unthrottled.others_after < UNHARMED * unthrottled.others_before, "{unthrottled:?}");
            assert!(throttled.others_after > UNHARMED * throttled.others_before, "{throttled:?}");
            assert!(throttled.others_after > 1.1 * unthrottled.others_after, "{throttled:?} {unthrottled:?}");
            assert!(throttled.shed_by_others > 0.0 && throttled.slow_after > 0.0, "{throttled:?}");
        }
    }
}
