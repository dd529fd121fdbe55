//! What was measured of a slow node, as a table, as a chart, and beside what the paper states.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ordain_db::engine::EngineKind;

use super::{BEFORE, Course, ENGINES, FACTOR, NODES, SAMPLE, SLOW, Sample, SlowNodeSetting, TIME};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{CHANCE, Judgement, judgement};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};

/// From when on a course is judged: what the slow node takes on has had time to settle.
const SETTLED: Nanoseconds = TIME / 2;

/// Over how many samples a mean is taken when it is asked since when the others do what they did.
const WINDOW: usize = 3;

/// How soon they must do so again for a short time.
const SHORT_TIME: Nanoseconds = SECOND;

/// The share of what the others did before that they must still do with throttling to be called unharmed.
const UNHARMED: f64 = 0.9;

/// How many times as much as the slow node can do another node does at most where they go at its pace.
const PACE: f64 = 1.25;

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
    let SlowNodeSetting { multi_partition_percent, factor, offered, .. } = setting;
    format!("{}, {offered}/s, {multi_partition_percent} %, {factor} times as slow", system(setting))
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

/// The loads of the courses, in calls per second for each node, ascending.
fn loads(courses: &[Course]) -> BTreeSet<u64> {
    courses.iter().map(|course| course.setting.offered).collect()
}

/// Figure 5 (a): what all nodes do when one is slow, over the share of multi-partition transactions, for each load.
fn over_shares(courses: &[Course], notes: &[String]) -> Figure {
    let panel = |load: u64| {
        let mut all: Vec<Series> = Vec::new();
        let of_panel = |course: &&Course| course.setting.factor == FACTOR && course.setting.offered == load;
        for course in courses.iter().filter(of_panel) {
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
        Panel { title: format!("All nodes, {load} calls/s asked of each"), x, y, series: all }
    };
    Figure {
        title: format!("One of {NODES} nodes is {FACTOR} times as slow"),
        panels: loads(courses).into_iter().map(panel).collect(),
        notes: notes.to_vec(),
    }
}

/// Figure 5 (b): throughput of the other nodes and of the slow one, and what it sheds, over time, with the highest load.
fn over_time(courses: &[Course], notes: &[String]) -> Figure {
    let load = loads(courses).last().copied().unwrap_or(0);
    let of_figure = |course: &&Course| {
        let SlowNodeSetting { multi_partition_percent, factor, offered, .. } = course.setting;
        (factor, offered) == (FACTOR, load) && multi_partition_percent == SHARE_OF_FIGURE_5B
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
            "One of {NODES} nodes becomes {FACTOR} times as slow after {} ms; {SHARE_OF_FIGURE_5B} % multi-partition, {load} calls/s asked of each",
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
    /// How long after the node became slow the others did what they did again, for good; if they do.
    back_after: Option<Nanoseconds>,
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
        back_after: back_after(course, UNHARMED * mean(0, BEFORE, &other)?),
    })
}

/// How long after the node became slow the others do at least so much per second, for good; if they do.
fn back_after(course: &Course, enough: f64) -> Option<Nanoseconds> {
    let after: Vec<&Sample> = course.samples.iter().filter(|sample| sample.at > BEFORE).collect();
    let is_low = |window: &[&Sample]| {
        window.iter().map(|sample| rate(others(&sample.committed))).sum::<f64>()
            < enough * window.len() as f64
    };
    let low = after.windows(WINDOW).rposition(is_low);
    let since = low.map_or(0, |low| low + 1);
    (since + WINDOW <= after.len()).then_some(since as Nanoseconds * SAMPLE)
}

/// A line for each course.
pub fn table(courses: &[Course]) -> String {
    let mut out = format!(
        "{:<52}{:>14}{:>14}{:>8}{:>13}{:>7}{:>13}{:>13}{:>7}\n",
        "",
        "others before",
        "others after",
        "share",
        "back after",
        "shed",
        "slow before",
        "slow after",
        "shed"
    );
    for course in courses {
        let Some(run) = summary(course) else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<52}{:>14.0}{:>14.0}{:>7.0}%{:>13}{:>6.0}%{:>13.0}{:>13.0}{:>6.0}%",
            name(&course.setting),
            run.others_before,
            run.others_after,
            100.0 * kept(&run),
            back(&run),
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

/// The courses with one load.
struct Runs<'a> {
    courses: &'a [Course],
    load: u64,
}

impl Runs<'_> {
    fn with(&self, wanted: impl Fn(&SlowNodeSetting) -> bool) -> Vec<(SlowNodeSetting, Summary)> {
        let of_load = self.courses.iter().filter(|course| course.setting.offered == self.load);
        let wanted = of_load.filter(|course| wanted(&course.setting));
        wanted.filter_map(|course| Some((course.setting, summary(course)?))).collect()
    }

    /// Those of one engine whose node is [`FACTOR`] times as slow.
    fn of(&self, engine: EngineKind, throttles: bool, is_multi: bool) -> Vec<(SlowNodeSetting, Summary)> {
        self.with(|setting| {
            (setting.engine, setting.throttles, setting.factor) == (engine, throttles, FACTOR)
                && (setting.multi_partition_percent > 0.0) == is_multi
        })
    }

    fn judgement(
        &self,
        of: (&'static str, &'static str),
        stated: String,
        found: Option<(String, bool)>,
    ) -> Judgement {
        judgement(of, format!("{stated}; here at {} calls/s", self.load), found)
    }

    fn judge_shares(&self, engine: EngineKind, all: &mut Vec<Judgement>) {
        let name = engine.name();
        let (alone, multi) = (self.of(engine, false, false), self.of(engine, false, true));
        let stated = format!("{name}: without multi-partition transactions only the slow node loses");
        let found = each(&alone, kept_percent, |run| kept(run) >= UNHARMED);
        all.push(self.judgement(FIGURE_5A, stated, found));
        let stated = format!("{name}: with any real share of them the cluster goes at the slow node's pace");
        let found = alone.first().and_then(|(_, alone)| {
            let pace = alone.slow_after * f64::from(NODES - 1);
            let text = |run: &Summary| format!("{:.2}", run.others_after / pace);
            let (text, holds) = each(&multi, text, |run| run.others_after <= PACE * pace)?;
            Some((format!("times its pace, a node of the others: {text}"), holds))
        });
        all.push(self.judgement(FIGURE_5A, stated, found));
        let stated = format!("{name}: extremely sharp drop from 0 to 5 %, then a gentler slope");
        all.push(self.judgement(FIGURE_5A, stated, is_cliff(&alone, &multi)));
        let stated = format!("{name}: the slower the node, the less the others do");
        all.push(self.judgement(FIGURE_5A, stated, self.falls_with_factor(engine)));
    }

    fn judge_throttling(&self, engine: EngineKind, all: &mut Vec<Judgement>) {
        let name = engine.name();
        let (throttled, unthrottled) = (self.of(engine, true, true), self.of(engine, false, true));
        let stated = format!("{name}: where it takes on less, the others stay near normal");
        let found = each(&throttled, kept_percent, |run| kept(run) >= UNHARMED);
        all.push(self.judgement(FIGURE_5B, stated, found));
        let stated = format!("{name}: throttled, the others recover in short time");
        let in_short_time = |run: &Summary| run.back_after.is_some_and(|after| after <= SHORT_TIME);
        all.push(self.judgement(FIGURE_5B, stated, each(&throttled, back, in_short_time)));
        let stated = format!("{name}: unthrottled, they are severely hit and do not recover");
        let found = each(&unthrottled, back, |run| run.back_after.is_none());
        all.push(self.judgement(FIGURE_5B, stated, found));
        let stated = format!("{name}: how much less finds an equilibrium (70 % for the paper's disturbance)");
        let lost = |run: &Summary| {
            let [early, late] = run.lost.map(|lost| 100.0 * lost);
            format!(
                "does {early:.0} % less, then {late:.0} %, and refuses {:.0} % of attempts",
                100.0 * run.shed
            )
        };
        let is_even = |run: &Summary| run.lost[1] > 0.0 && (run.lost[0] - run.lost[1]).abs() <= EVEN;
        all.push(self.judgement(FIGURE_5B, stated, each(&throttled, lost, is_even)));
    }

    fn falls_with_factor(&self, engine: EngineKind) -> Option<(String, bool)> {
        let mut line = self.with(|setting| {
            (setting.engine, setting.throttles) == (engine, false)
                && setting.multi_partition_percent == SHARE_OF_FIGURE_5B
        });
        line.sort_by_key(|(setting, _)| setting.factor);
        let text = |(setting, run): &(SlowNodeSetting, Summary)| {
            format!("{} times as slow: {}", setting.factor, kept_percent(run))
        };
        let measured = line.iter().map(text).collect::<Vec<_>>().join(", ");
        let falls = line.windows(2).all(|pair| kept(&pair[1].1) < kept(&pair[0].1) - CHANCE);
        (line.len() > 1).then(|| (format!("at {SHARE_OF_FIGURE_5B} %: {measured}"), falls))
    }

    fn freedom(&self) -> Option<(String, bool)> {
        let (calvin, two_phase) = (EngineKind::Calvin, EngineKind::TwoPhase);
        let two_phase = self.of(two_phase, false, true);
        let mut pairs = Vec::new();
        for (setting, calvin) in self.of(calvin, false, true) {
            let percent = setting.multi_partition_percent;
            let same = |(other, _): &&(SlowNodeSetting, Summary)| other.multi_partition_percent == percent;
            if let Some((_, two_phase)) = two_phase.iter().find(same) {
                pairs.push((percent, calvin, *two_phase));
            }
        }
        let text = |(percent, calvin, two_phase): &(f64, Summary, Summary)| {
            format!("{percent} %: calvin {}, two-phase {}", kept_percent(calvin), kept_percent(two_phase))
        };
        let measured = pairs.iter().map(text).collect::<Vec<_>>().join("; ");
        let holds = pairs.iter().all(|(_, calvin, two_phase)| kept(two_phase) - kept(calvin) <= LITTLE);
        (!pairs.is_empty()).then(|| (format!("the others keep: {measured}"), holds))
    }
}

/// How long after the node became slow the others do what they did.
fn back(run: &Summary) -> String {
    run.back_after.map_or("never".to_owned(), |after| format!("{} ms", after / MILLISECOND))
}

fn kept_percent(run: &Summary) -> String {
    format!("{:.0} %", 100.0 * kept(run))
}

/// What is told of each run, and whether all are as stated.
fn each(
    runs: &[(SlowNodeSetting, Summary)],
    text: impl Fn(&Summary) -> String,
    holds: impl Fn(&Summary) -> bool,
) -> Option<(String, bool)> {
    let line = |(setting, run): &(SlowNodeSetting, Summary)| {
        format!("{} %: {}", setting.multi_partition_percent, text(run))
    };
    let measured: Vec<String> = runs.iter().map(line).collect();
    (!runs.is_empty()).then(|| (measured.join(", "), runs.iter().all(|(_, run)| holds(run))))
}

/// Whether what the others lose from none to the paper's share is more than what they lose from there on.
fn is_cliff(
    alone: &[(SlowNodeSetting, Summary)],
    multi: &[(SlowNodeSetting, Summary)],
) -> Option<(String, bool)> {
    let (_, none) = alone.first()?;
    let (_, few) = multi.iter().find(|(setting, _)| setting.multi_partition_percent == SHARE_OF_FIGURE_5B)?;
    let (last, most) = multi.last()?;
    let (first, rest) = (kept(none) - kept(few), kept(few) - kept(most));
    let percent = last.multi_partition_percent;
    let measured = format!(
        "the others lose {:.0} points from 0 to {SHARE_OF_FIGURE_5B} %, {:.0} from there to {percent} %",
        100.0 * first,
        100.0 * rest
    );
    Some((measured, first > rest + CHANCE))
}

/// What the paper states of slow nodes, beside what was measured, for each load.
pub fn judge(courses: &[Course]) -> Vec<Judgement> {
    let mut all = Vec::new();
    for load in loads(courses) {
        let runs = Runs { courses, load };
        ENGINES.iter().for_each(|engine| runs.judge_shares(*engine, &mut all));
        let stated = "the freedom to reorder helps the classical engine very little".to_owned();
        all.push(runs.judgement(FIGURE_5A, stated, runs.freedom()));
        ENGINES.iter().for_each(|engine| runs.judge_throttling(*engine, &mut all));
    }
    all
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
        assert_eq!(verdicts(&like_the_paper), [Holds; 17]);
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
        let mut expected = [Differs; 17];
        // The others of the one do not recover.
        expected[11] = Holds;
        assert_eq!(verdicts(&unlike), expected);
        assert_eq!(verdicts(&[]), []);
        let mut swings = course((EngineKind::TwoPhase, true), 5.0, (200, 1_400), (50, 1_380), 120);
        swings
            .samples
            .iter_mut()
            .filter(|sample| sample.at > 3 * TIME / 4)
            .for_each(|sample| sample.committed[SLOW.index()] = 150);
        assert_eq!(verdicts(&[swings])[13..], [Holds, Holds, NotMeasured, Differs]);
        let another_load = |course: &Course| {
            let setting = SlowNodeSetting { offered: 7_000, ..course.setting };
            Course { setting, samples: course.samples.clone() }
        };
        let two_loads: Vec<Course> =
            like_the_paper.iter().cloned().chain(unlike.iter().map(another_load)).collect();
        assert_eq!(verdicts(&two_loads), [[Holds; 17], expected].concat());
        assert_eq!(figures(&two_loads, &[])[0].1.panels.len(), 2);
        assert_eq!(csv(&like_the_paper).lines().count(), 1 + 8 * (TIME / SAMPLE) as usize);
        assert!(table(&like_the_paper).contains("calvin, throttled, 4000/s, 5 %, 4 times as slow"));
        let figures = figures(&like_the_paper, &[]);
        let lines = |figure: usize, panel: usize| figures[figure].1.panels[panel].series.len();
        assert_eq!((lines(0, 0), lines(1, 0), lines(1, 2)), (4, 4, 4));
        assert!(figures.iter().all(|(_, figure)| figure.svg().contains("</svg>")));
    }

    #[test]
    fn others_are_back_when_they_stay() {
        let mut course = course((EngineKind::Calvin, true), 5.0, (200, 1_400), (50, 1_400), 0);
        let back = |course: &Course| summary(course).unwrap().back_after;
        assert_eq!(back(&course), Some(0));
        let first = (BEFORE / SAMPLE) as usize;
        let others = course.samples[first].committed.clone();
        for sample in [first + 1, first + 4] {
            course.samples[sample].committed = vec![0; usize::from(NODES)];
        }
        assert_eq!(back(&course), Some(5 * SAMPLE));
        course.samples.last_mut().unwrap().committed = vec![0; usize::from(NODES)];
        assert_eq!(back(&course), None);
        course.samples.last_mut().unwrap().committed = others;
        assert_eq!(back(&course), Some(5 * SAMPLE));
    }

    fn run(engine: EngineKind, percent: f64, throttles: bool) -> Summary {
        run_offered(engine, percent, throttles, 4_000)
    }

    fn run_offered(engine: EngineKind, percent: f64, throttles: bool, offered: u64) -> Summary {
        let costs =
            CostTable { executed_alone: 10_000_000, executed_together: 10_000_000, ..CostTable::default() };
        let setting = SlowNodeSetting { offered, ..setting(engine, percent, throttles) };
        summary(&measure_slow_node(&setting, &costs).unwrap()).unwrap()
    }

    /// Judged in virtual time: a slow node holds the others up, unless it takes on less. Its own calls wait before the order.
    #[test]
    fn throttling_keeps_the_others_throughput() {
        let (unthrottled, throttled) =
            (run(EngineKind::Calvin, 10.0, false), run(EngineKind::Calvin, 10.0, true));
        assert!(unthrottled.others_after < UNHARMED * unthrottled.others_before, "{unthrottled:?}");
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
        // Without an order, all that clients have outstanding would wait for it before a share is found.
        for (engine, percent, offered) in
            [(EngineKind::Calvin, 50.0, 4_000), (EngineKind::TwoPhase, 100.0, 7_000)]
        {
            let [unthrottled, throttled] =
                [false, true].map(|throttles| run_offered(engine, percent, throttles, offered));
            assert!(unthrottled.others_after < UNHARMED * unthrottled.others_before, "{unthrottled:?}");
            assert!(throttled.others_after > UNHARMED * throttled.others_before, "{throttled:?}");
            assert!(throttled.others_after > 1.1 * unthrottled.others_after, "{throttled:?} {unthrottled:?}");
            assert!(throttled.shed_by_others > 0.0 && throttled.slow_after > 0.0, "{throttled:?}");
        }
    }
}
