//! What was measured of a slow node, as a table, as a chart, and beside what the paper states.

use std::fmt::Write as _;

use super::{BEFORE, Course, FACTOR, NODES, SAMPLE, SLOW, Sample, TIME};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{Judgement, judgement};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};

/// From when on a course is judged: the share that is shed has had time to settle.
const SETTLED: Nanoseconds = TIME / 2;

/// The share of what the others did before that they must still do with throttling to be called unharmed.
const UNHARMED: f64 = 0.9;

/// The share below which they are called harmed.
const HARMED: f64 = 0.7;

/// By how much the shares that are shed in the two halves may differ and be called an equilibrium.
const EVEN: f64 = 0.1;

const FIGURE_5A: (&str, &str) = ("DET-X11", "Ren et al. section 3.5, figure 5(a)");
const FIGURE_5B: (&str, &str) = ("DET-X12", "Ren et al. section 3.5, figure 5(b)");

/// Per second.
fn rate(of_sample: u64) -> f64 {
    of_sample as f64 * SECOND as f64 / SAMPLE as f64
}

/// What the clients of the other nodes got.
fn others(sample: &Sample) -> u64 {
    sample
        .committed
        .iter()
        .enumerate()
        .filter(|(node, _)| *node != SLOW.index())
        .map(|(_, count)| count)
        .sum()
}

fn name(course: &Course) -> String {
    let throttles = if course.setting.throttles { "throttled" } else { "unthrottled" };
    format!("{throttles}, {} % multi-partition", course.setting.multi_partition_percent)
}

/// A line for each sample of each course, under a line with the names of the columns. Rates are per second.
pub fn csv(courses: &[Course]) -> String {
    let mut out =
        "throttled,multi_partition_percent,offered_txn_s,ms,slow_node_txn_s,others_txn_s,shed_s\n".to_owned();
    for course in courses {
        let setting = &course.setting;
        for sample in &course.samples {
            let (ms, slow) = (sample.at / MILLISECOND, rate(sample.committed[SLOW.index()]));
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{},{},{},{ms},{slow:.0},{:.0},{:.0}",
                setting.throttles,
                setting.multi_partition_percent,
                setting.offered,
                rate(others(sample)),
                rate(sample.shed)
            );
        }
    }
    out
}

/// Throughput of the other nodes and of the slow one, and what it sheds, over time. `notes` say what was run.
pub fn figure(courses: &[Course], notes: &[String]) -> Figure {
    let style = |course: &Course| {
        let mut shares: Vec<f64> =
            courses.iter().map(|course| course.setting.multi_partition_percent).collect();
        shares.sort_unstable_by(f64::total_cmp);
        shares.dedup();
        let shape = shares.iter().position(|share| *share == course.setting.multi_partition_percent);
        Style { color: usize::from(course.setting.throttles), shape: shape.unwrap_or(0) }
    };
    let panel = |title: &str, label: &str, value: fn(&Sample) -> f64| Panel {
        title: title.to_owned(),
        x: Axis { label: "ms".to_owned(), scale: Scale::Linear },
        y: Axis { label: label.to_owned(), scale: Scale::Linear },
        series: courses
            .iter()
            .map(|course| Series {
                name: name(course),
                style: style(course),
                points: course
                    .samples
                    .iter()
                    .map(|sample| ((sample.at / MILLISECOND) as f64, value(sample)))
                    .collect(),
            })
            .collect(),
    };
    Figure {
        title: format!(
            "One of {NODES} nodes becomes {FACTOR} times as slow after {} ms",
            BEFORE / MILLISECOND
        ),
        panels: vec![
            panel("The other nodes", "transactions/s", |sample| rate(others(sample))),
            panel("The slow node", "transactions/s", |sample| rate(sample.committed[SLOW.index()])),
            panel("What the slow node sheds", "calls/s", |sample| rate(sample.shed)),
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
    /// The shares of the calls of its own clients that the slow node sheds in the two halves of that time.
    shed: [f64; 2],
}

fn summary(course: &Course) -> Option<Summary> {
    let mean = |from: Nanoseconds, through: Nanoseconds, value: &dyn Fn(&Sample) -> f64| {
        let within = |sample: &&Sample| sample.at > from && sample.at <= through;
        let values: Vec<f64> = course.samples.iter().filter(within).map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let other = |sample: &Sample| rate(others(sample));
    let slow = |sample: &Sample| rate(sample.committed[SLOW.index()]);
    let shed = |from: Nanoseconds, through: Nanoseconds| {
        let shed = mean(from, through, &|sample| rate(sample.shed))?;
        Some(if shed > 0.0 { shed / (shed + mean(from, through, &slow)?) } else { 0.0 })
    };
    let half = (SETTLED + TIME) / 2;
    Some(Summary {
        others_before: mean(0, BEFORE, &other)?,
        others_after: mean(SETTLED, TIME, &other)?,
        slow_before: mean(0, BEFORE, &slow)?,
        slow_after: mean(SETTLED, TIME, &slow)?,
        shed: [shed(SETTLED, half)?, shed(half, TIME)?],
    })
}

/// A line for each course.
pub fn table(courses: &[Course]) -> String {
    let mut out = format!(
        "{:<32}{:>14}{:>14}{:>8}{:>14}{:>14}{:>10}\n",
        "", "others before", "others after", "share", "slow before", "slow after", "sheds"
    );
    for course in courses {
        let Some(run) = summary(course) else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<32}{:>14.0}{:>14.0}{:>7.0}%{:>14.0}{:>14.0}{:>9.0}%",
            name(course),
            run.others_before,
            run.others_after,
            100.0 * run.others_after / run.others_before,
            run.slow_before,
            run.slow_after,
            100.0 * run.shed[1]
        );
    }
    out
}

/// What the paper states of slow nodes, beside what was measured.
pub fn judge(courses: &[Course]) -> Vec<Judgement> {
    let runs = |throttles: bool, is_multi: bool| -> Vec<(f64, Summary)> {
        let wanted = courses.iter().filter(|course| {
            course.setting.throttles == throttles
                && (course.setting.multi_partition_percent > 0.0) == is_multi
        });
        wanted.filter_map(|course| Some((course.setting.multi_partition_percent, summary(course)?))).collect()
    };
    let share = |run: &Summary| run.others_after / run.others_before;
    let each = |runs: &[(f64, Summary)], holds: &dyn Fn(&Summary) -> bool| {
        let text = |(percent, run): &(f64, Summary)| format!("{percent} %: {:.0} %", 100.0 * share(run));
        let measured: Vec<String> = runs.iter().map(text).collect();
        (!runs.is_empty()).then(|| (measured.join(", "), runs.iter().all(|(_, run)| holds(run))))
    };
    let shed = runs(true, true);
    vec![
        judgement(
            FIGURE_5A,
            "without multi-partition transactions only the slow node loses".to_owned(),
            each(&runs(false, false), &|run| share(run) >= UNHARMED),
        ),
        judgement(
            FIGURE_5A,
            "with any real share of them the others fall with the slow node".to_owned(),
            each(&runs(false, true), &|run| share(run) < HARMED),
        ),
        judgement(
            FIGURE_5B,
            "a slow node that sheds calls of its own leaves the others near normal".to_owned(),
            each(&runs(true, true), &|run| share(run) >= UNHARMED),
        ),
        judgement(
            FIGURE_5B,
            "the share that it sheds finds an equilibrium (70 % for the paper's disturbance)".to_owned(),
            (!shed.is_empty()).then(|| {
                let text = |(_, run): &(f64, Summary)| {
                    format!("{:.0} %, then {:.0} %", 100.0 * run.shed[0], 100.0 * run.shed[1])
                };
                let settles = |(_, run): &(f64, Summary)| {
                    run.shed[1] > 0.0 && (run.shed[0] - run.shed[1]).abs() <= EVEN
                };
                let shares: Vec<String> = shed.iter().map(text).collect();
                (shares.join("; "), shed.iter().all(settles))
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::cost::CostTable;
    use crate::scale::shapes::Verdict;
    use crate::scale::slow_node::{SlowNodeSetting, measure_slow_node};

    /// The slow node's clients get so many in each sample, and the others' so many together, before and after; it sheds so many.
    fn course(percent: f64, throttles: bool, before: (u64, u64), after: (u64, u64), shed: u64) -> Course {
        let setting = SlowNodeSetting { multi_partition_percent: percent, throttles, offered: 4_000 };
        let samples = (1..=TIME / SAMPLE).map(|number| {
            let at = number * SAMPLE;
            let ((slow, others), shed) = if at <= BEFORE { (before, 0) } else { (after, shed) };
            let committed = [vec![slow, others], vec![0; usize::from(NODES) - 2]].concat();
            Sample { at, committed, shed }
        });
        Course { setting, samples: samples.collect() }
    }

    fn verdicts(courses: &[Course]) -> Vec<Verdict> {
        judge(courses).into_iter().map(|judgement| judgement.verdict).collect()
    }

    #[test]
    fn courses_are_judged_by_what_the_others_get() {
        use Verdict::{Differs, Holds, NotMeasured};
        let like_the_paper = [
            course(0.0, false, (200, 1_400), (50, 1_400), 0),
            course(5.0, false, (200, 1_400), (50, 400), 0),
            course(5.0, true, (200, 1_400), (50, 1_380), 120),
        ];
        assert_eq!(verdicts(&like_the_paper), [Holds; 4]);
        let unlike = [
            course(0.0, false, (200, 1_400), (50, 700), 0),
            course(5.0, false, (200, 1_400), (50, 1_300), 0),
            course(5.0, true, (200, 1_400), (50, 900), 0),
        ];
        assert_eq!(verdicts(&unlike), [Differs; 4]);
        assert_eq!(verdicts(&[]), [NotMeasured; 4]);
        let mut swings = course(5.0, true, (200, 1_400), (50, 1_380), 120);
        swings
            .samples
            .iter_mut()
            .filter(|sample| sample.at > 3 * TIME / 4)
            .for_each(|sample| sample.shed = 10);
        assert_eq!(verdicts(&[swings]), [NotMeasured, NotMeasured, Holds, Differs]);
        assert_eq!(csv(&like_the_paper).lines().count(), 1 + 3 * (TIME / SAMPLE) as usize);
        assert!(table(&like_the_paper).contains("throttled, 5 % multi-partition"));
        assert!(figure(&like_the_paper, &[]).svg().contains("</svg>"));
    }

    /// Judged in virtual time: a slow node holds the others up, unless it sheds calls.
    #[test]
    fn throttling_keeps_the_others_throughput() {
        let executed = 160_000_000;
        let costs =
            CostTable { executed_alone: executed, executed_together: executed, ..CostTable::default() };
        let run = |throttles| {
            let setting = SlowNodeSetting { multi_partition_percent: 10.0, throttles, offered: 4_000 };
            summary(&measure_slow_node(&setting, &costs).unwrap()).unwrap()
        };
        let (unthrottled, throttled) = (run(false), run(true));
        assert!(unthrottled.others_after < HARMED * unthrottled.others_before, "{unthrottled:?}");
        assert!(throttled.others_after > UNHARMED * throttled.others_before, "{throttled:?}");
        assert!(unthrottled.shed == [0.0; 2] && throttled.shed[1] > 0.3, "{throttled:?}");
    }
}
