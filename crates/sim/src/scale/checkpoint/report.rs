//! What was measured while a checkpoint was taken, as a table, as a chart, and beside what the paper states.

use std::fmt::Write as _;

use super::{Course, FIRST_TURN, REPLICAS, SAMPLE, Sample, Way};
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{Judgement, judgement};
use crate::time::{MILLISECOND, Nanoseconds, SECOND};

/// The share of the throughput that a checkpoint may cost while it is taken, and that is called "moderate".
const COST_MAX: f64 = 0.15;

/// The least share of the throughput in any sample of a concurrent checkpoint: far from zero.
const LOWEST_MIN: f64 = 0.5;

/// The share of the throughput by which what was before and what is after may differ and still be called the same.
const TOLERANCE: f64 = 0.05;

const FIGURE_3: (&str, &str) = ("CAL-X07", "Calvin section 5, figure 3");
const UNNOTICED: (&str, &str) = ("CAL-87", "Calvin section 5");
const LAG: (&str, &str) = ("CAL-88", "Calvin section 5");

/// A line for each sample of each course, under a line with the names of the columns. Rates are per second.
pub fn csv(courses: &[Course]) -> String {
    let mut out = "way,load_percent,offered_txn_s,ms,phase,answered_txn_s".to_owned();
    for column in ["executed_txn_s", "lag_epochs"] {
        for replica in 0..REPLICAS {
            // Writing to a string cannot fail.
            let _ = write!(out, ",{column}_r{replica}");
        }
    }
    out.push('\n');
    for course in courses {
        let setting = &course.setting;
        let (way, load) = (setting.way.name(), setting.load_percent);
        let offered = setting.offered * u64::from(setting.partitions);
        for sample in &course.samples {
            let (ms, phase) = (sample.at / MILLISECOND, phase(course, sample).name());
            let _ = write!(out, "{way},{load},{offered},{ms},{phase},{:.0}", rate(sample.answered));
            for executed in &sample.executed {
                let _ = write!(out, ",{:.0}", rate(*executed));
            }
            for lag in &sample.lag {
                let _ = write!(out, ",{lag}");
            }
            out.push('\n');
        }
    }
    out
}

/// Throughput that clients see, throughput of the replica that takes the checkpoint, and its lag, over time. `notes` say
/// what was run.
pub fn figure(courses: &[Course], notes: &[String]) -> Figure {
    let panel = |title: &str, label: &str, value: fn(&Sample) -> f64| Panel {
        title: title.to_owned(),
        x: Axis { label: "ms".to_owned(), scale: Scale::Linear },
        y: Axis { label: label.to_owned(), scale: Scale::Linear },
        series: {
            let lines: Vec<Series> = courses.iter().map(|course| line(courses, course, value)).collect();
            let most = lines.iter().flat_map(|line| &line.points).fold(0.0, |most, point| point.1.max(most));
            marks(courses, most).into_iter().chain(lines).collect()
        },
    };
    let first = FIRST_TURN.index();
    assert_eq!(first, 0, "the panels show the replica with the lowest number");
    Figure {
        title: "A checkpoint while it is taken".to_owned(),
        panels: vec![
            panel("Answers to clients", "transactions/s", |sample| rate(sample.answered)),
            panel("A replica that takes it", "transactions/s, over its partitions", |sample| {
                rate(sample.executed[0])
            }),
            panel("How far that replica is behind", "epochs", |sample| sample.lag[0] as f64),
        ],
        notes: notes.to_vec(),
    }
}

/// The colour tells the way, the shape the load.
fn style(courses: &[Course], course: &Course) -> Style {
    let loads = loads(courses, course.setting.way);
    let place = |load| loads.iter().position(|other| *other == load).unwrap_or(0);
    let color = Way::ALL.iter().position(|way| *way == course.setting.way).unwrap_or(0);
    Style { color, shape: place(course.setting.load_percent) }
}

fn loads(courses: &[Course], way: Way) -> Vec<u64> {
    courses_of(courses, way).iter().map(|course| course.setting.load_percent).collect()
}

fn line(courses: &[Course], course: &Course, value: fn(&Sample) -> f64) -> Series {
    let name = format!("{}, load {} %", course.setting.way.name(), course.setting.load_percent);
    let points = course.samples.iter().map(|sample| ((sample.at / MILLISECOND) as f64, value(sample)));
    Series { name, style: style(courses, course), points: points.collect() }
}

/// Upright lines at the begin of all checkpoints, and at the end of each.
fn marks(courses: &[Course], most: f64) -> Vec<Series> {
    let upright = |name: &str, style: Style, time: Nanoseconds| {
        let at = (time / MILLISECOND) as f64;
        Series { name: name.to_owned(), style, points: vec![(at, 0.0), (at, most)] }
    };
    let begins = courses.iter().filter_map(|course| course.begins_at).min();
    let begin = begins.map(|begins| upright("checkpoints begin", Style { color: 6, shape: 3 }, begins));
    let end = |course: &Course| {
        let name = format!("{} ends", course.setting.way.name());
        let Style { color, .. } = style(courses, course);
        Some(upright(&name, Style { color, shape: 3 }, course.ends_at?))
    };
    begin.into_iter().chain(courses.iter().filter_map(end)).collect()
}

/// Per second.
fn rate(of_sample: u64) -> f64 {
    of_sample as f64 * SECOND as f64 / SAMPLE as f64
}

/// When a sample was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    /// Some of its time was in the time of the checkpoint.
    During,
    After,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::During => "during",
            Phase::After => "after",
        }
    }
}

fn phase(course: &Course, sample: &Sample) -> Phase {
    match (course.begins_at, course.ends_at) {
        (Some(_), Some(ends)) if sample.at >= ends + SAMPLE => Phase::After,
        (Some(begins), _) if sample.at > begins => Phase::During,
        _ => Phase::Before,
    }
}

/// What a course comes down to.
struct Summary {
    load_percent: u64,
    /// Answers per second before the checkpoint.
    before: f64,
    /// The mean of those while it is taken, and the least in a sample.
    during: f64,
    lowest: f64,
    /// The mean of those in the last tenth of the samples.
    last: f64,
    /// The most that the replica ran in a sample that is wholly in the time of the checkpoint.
    executed_during: u64,
    /// The most epochs that the replica was behind before, the lag when the checkpoint ended, and at last.
    lag_before: u64,
    lag_end: u64,
    lag_last: u64,
    /// Whether the lag never fell while the checkpoint was taken.
    rises: bool,
    /// How long the checkpoint took.
    took: Nanoseconds,
    /// From the end of the checkpoint until the replica was no further behind than before.
    caught_up: Option<Nanoseconds>,
}

/// `None` when the checkpoint did not begin or end in the measured time, or nothing was measured before or after it.
fn summary(course: &Course) -> Option<Summary> {
    let (begins, ends) = (course.begins_at?, course.ends_at?);
    let of = |wanted| course.samples.iter().filter(move |sample| phase(course, sample) == wanted);
    let whole = || of(Phase::During).filter(|sample| sample.at >= begins + SAMPLE && sample.at <= ends);
    let mean = |samples: &mut dyn Iterator<Item = &Sample>| {
        let (count, sum) = samples.fold((0, 0), |(count, sum), sample| (count + 1, sum + sample.answered));
        (count > 0).then(|| rate(sum) / f64::from(count))
    };
    let lags: Vec<u64> = whole().map(|sample| sample.lag[FIRST_TURN.index()]).collect();
    let lag_before = of(Phase::Before).map(|sample| sample.lag[FIRST_TURN.index()]).max()?;
    let caught_up = course
        .samples
        .iter()
        .find(|sample| sample.at >= ends && sample.lag[FIRST_TURN.index()] <= lag_before)
        .map(|sample| sample.at - ends);
    let last = course.samples.len().div_ceil(10);
    Some(Summary {
        load_percent: course.setting.load_percent,
        before: mean(&mut of(Phase::Before))?,
        during: mean(&mut of(Phase::During))?,
        lowest: rate(of(Phase::During).map(|sample| sample.answered).min()?),
        last: mean(
            &mut course
                .samples
                .iter()
                .rev()
                .take(last)
                .filter(|sample| phase(course, sample) == Phase::After),
        )?,
        executed_during: whole().map(|sample| sample.executed[FIRST_TURN.index()]).max()?,
        lag_before,
        lag_end: *lags.last()?,
        lag_last: course.samples.last()?.lag[FIRST_TURN.index()],
        rises: lags.windows(2).all(|pair| pair[0] <= pair[1]),
        took: ends - begins,
        caught_up,
    })
}

fn courses_of(courses: &[Course], way: Way) -> Vec<&Course> {
    let mut of: Vec<&Course> = courses.iter().filter(|course| course.setting.way == way).collect();
    of.sort_by_key(|course| course.setting.load_percent);
    of
}

/// The summaries of a way, ascending in load; none if one of them is missing.
fn summaries(courses: &[Course], way: Way) -> Vec<Summary> {
    let all: Option<Vec<Summary>> = courses_of(courses, way).into_iter().map(summary).collect();
    all.unwrap_or_default()
}

/// What the paper states of checkpoints, beside what was measured.
pub fn judge(courses: &[Course]) -> Vec<Judgement> {
    let concurrent = summaries(courses, Way::Concurrent);
    let frozen = summaries(courses, Way::Freeze);
    let led = summaries(courses, Way::FreezeLeader);
    let mut judgements = vec![
        judgement(
            FIGURE_3,
            format!(
                "concurrent: throughput stays far from zero; here: at least {:.0} percent in each sample",
                100.0 * LOWEST_MIN
            ),
            each(
                &concurrent,
                "lowest",
                |run| share(run.lowest, run.before),
                |run| run.lowest >= LOWEST_MIN * run.before,
            ),
        ),
        judgement(
            FIGURE_3,
            format!(
                "concurrent: the dip is moderate; here: at most {:.0} percent in the mean",
                100.0 * COST_MAX
            ),
            each(
                &concurrent,
                "mean",
                |run| format!("{}, in {} ms", share(run.during, run.before), ms(run.took)),
                |run| run.during >= (1.0 - COST_MAX) * run.before,
            ),
        ),
        judgement(
            FIGURE_3,
            "concurrent: throughput returns to what it was".to_owned(),
            each(&concurrent, "at last", |run| share(run.last, run.before), returns),
        ),
    ];
    judgements.extend(of_frozen(&frozen));
    for (runs, name) in [(&frozen, "that leads no group"), (&led, "that leads all groups")] {
        judgements.push(judgement(
            UNNOTICED,
            format!("a replica {name} is frozen: clients notice nothing, as the others answer"),
            each(
                runs,
                "mean",
                |run| format!("{}, lowest {}", share(run.during, run.before), share(run.lowest, run.before)),
                |run| run.during >= (1.0 - COST_MAX) * run.before && run.lowest >= LOWEST_MIN * run.before,
            ),
        ));
    }
    judgements
}

/// CAL-88, and that the frozen replica does nothing (CAL-X07).
fn of_frozen(frozen: &[Summary]) -> Vec<Judgement> {
    let lag = |run: &Summary| {
        format!("{} epochs before, {} at the end of {} ms", run.lag_before, run.lag_end, ms(run.took))
    };
    vec![
        judgement(
            FIGURE_3,
            "freeze: the replica that takes it runs nothing meanwhile".to_owned(),
            each(
                frozen,
                "runs",
                |run| format!("{} transactions", run.executed_during),
                |run| run.executed_during == 0,
            ),
        ),
        judgement(
            LAG,
            "the lag rises while the replica is frozen".to_owned(),
            each(frozen, "lag", lag, |run| run.rises && run.lag_end > run.lag_before),
        ),
        judgement(
            LAG,
            "the lag shrinks afterwards".to_owned(),
            each(
                frozen,
                "lag",
                |run| format!("{} epochs, then {}", run.lag_end, run.lag_last),
                |run| run.lag_last < run.lag_end,
            ),
        ),
        judgement(LAG, "the lag shrinks more slowly at a higher load".to_owned(), slower(frozen)),
    ]
}

fn returns(run: &Summary) -> bool {
    (run.last / run.before - 1.0).abs() <= TOLERANCE
}

/// The time to catch up ascends with the load; one that did not end is the longest, and only the last one may not.
fn slower(runs: &[Summary]) -> Option<(String, bool)> {
    if runs.len() < 2 {
        return None;
    }
    let times: Vec<String> = runs
        .iter()
        .map(|run| {
            let time = run.caught_up.map_or("not in time".to_owned(), |time| format!("{} ms", ms(time)));
            format!("at {} percent {time}", run.load_percent)
        })
        .collect();
    let time = |run: &Summary| run.caught_up.unwrap_or(Nanoseconds::MAX);
    let ascends = runs.windows(2).all(|pair| time(&pair[0]) < time(&pair[1]));
    Some((format!("no further behind than before: {}", times.join(", ")), ascends))
}

/// The loads, each with what was measured, and whether it is as stated at all of them.
fn each(
    runs: &[Summary],
    what: &str,
    measured: impl Fn(&Summary) -> String,
    holds: impl Fn(&Summary) -> bool,
) -> Option<(String, bool)> {
    if runs.is_empty() {
        return None;
    }
    let texts: Vec<String> =
        runs.iter().map(|run| format!("at {} percent {}", run.load_percent, measured(run))).collect();
    Some((format!("{what}: {}", texts.join("; ")), runs.iter().all(holds)))
}

fn share(of: f64, whole: f64) -> String {
    format!("{:.0} percent", 100.0 * of / whole)
}

fn ms(time: Nanoseconds) -> Nanoseconds {
    time / MILLISECOND
}

#[cfg(test)]
mod tests {
    use super::super::{BEFORE, CheckpointSetting};
    use super::*;
    use crate::scale::shapes::Verdict;

    const ENDS: Nanoseconds = 2 * BEFORE;

    /// A course as the paper draws it.
    fn ideal(way: Way, load_percent: u64) -> Course {
        let offered = 100 * load_percent;
        let setting =
            CheckpointSetting { partitions: 2, way, load_percent, offered, rows: 1, bytes_per_second: 1 };
        let sample = |number: u64| {
            let at = number * SAMPLE;
            let taken = at > BEFORE && at <= ENDS;
            let frozen = taken && way != Way::Concurrent;
            let dip = if taken { offered / 100 } else { 0 };
            let lag = match way {
                Way::Concurrent => 1,
                // It rises by 5 in each sample, and falls by the more, the lower the load is.
                _ if taken => 5 * (at - BEFORE) / SAMPLE,
                _ if at > ENDS => 100_u64.saturating_sub((100 - load_percent) * (at - ENDS) / SAMPLE),
                _ => 1,
            };
            let executed = if frozen { 0 } else { offered / 10 };
            Sample {
                at,
                answered: offered / 10 - dip / 10,
                executed: vec![executed, offered / 10, offered / 10],
                lag: vec![lag, 0, 0],
            }
        };
        let samples = (1..=80).map(sample).collect();
        Course { setting, samples, begins_at: Some(BEFORE), ends_at: Some(ENDS) }
    }

    fn courses() -> Vec<Course> {
        let loads = [40, 60, 80];
        Way::ALL.iter().flat_map(|way| loads.map(|load| ideal(*way, load))).collect()
    }

    fn count(courses: &[Course], verdict: Verdict) -> usize {
        judge(courses).iter().filter(|judgement| judgement.verdict == verdict).count()
    }

    #[test]
    fn what_is_as_stated_holds() {
        let courses = courses();
        assert_eq!(count(&courses, Verdict::Holds), 9, "{:#?}", judge(&courses));
        assert_eq!(judge(&courses).len(), 9);
        let text = csv(&courses);
        assert_eq!(text.lines().count(), 1 + 9 * 80);
        assert!(text.contains("\nfreeze,40,8000,1050,during,7920,0,8000,8000,5,0,0\n"), "{text}");
        let columns = |line: &str| line.split(',').count();
        assert!(text.lines().all(|line| columns(line) == 12));
        let figure = figure(&courses, &[]);
        assert_eq!(figure.panels.iter().map(|panel| panel.series.len()).collect::<Vec<_>>(), [19; 3]);
        // One begin, an end for each course, and nine lines.
        assert_eq!(figure.svg().matches("checkpoints begin").count(), 1);
    }

    #[test]
    fn what_is_not_as_stated_differs() {
        let differs = |way: Way, change: fn(&mut Course)| {
            let mut courses = courses();
            courses.iter_mut().filter(|course| course.setting.way == way).for_each(change);
            count(&courses, Verdict::Differs)
        };
        let middle = |course: &mut Course| course.samples[30].answered = 0;
        assert_eq!(differs(Way::Concurrent, middle), 1);
        assert_eq!(differs(Way::Freeze, middle), 1);
        assert_eq!(differs(Way::FreezeLeader, middle), 1);
        let dip =
            |course: &mut Course| course.samples[20..40].iter_mut().for_each(|sample| sample.answered /= 2);
        assert_eq!(differs(Way::Concurrent, dip), 2);
        let never =
            |course: &mut Course| course.samples[40..].iter_mut().for_each(|sample| sample.answered /= 2);
        assert_eq!(differs(Way::Concurrent, never), 1);
        assert_eq!(differs(Way::Freeze, |course| course.samples[30].executed[0] = 1), 1);
        assert_eq!(differs(Way::Freeze, |course| course.samples[30].lag[0] = 1), 1);
        let stays =
            |course: &mut Course| course.samples[39..].iter_mut().for_each(|sample| sample.lag[0] = 100);
        // It does not shrink, and so at no load more slowly than at another.
        assert_eq!(differs(Way::Freeze, stays), 2);
        let alike =
            |course: &mut Course| course.samples[42..].iter_mut().for_each(|sample| sample.lag[0] = 0);
        assert_eq!(differs(Way::Freeze, alike), 1);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(count(&[], Verdict::NotMeasured), 9);
        let mut courses = courses();
        courses.iter_mut().for_each(|course| course.ends_at = None);
        assert_eq!(count(&courses, Verdict::NotMeasured), 9);
    }
}
