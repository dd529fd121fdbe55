//! What was measured: throughput over time, how long calls stopped after each fault, and a summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ordain_sim::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};

use super::faults::FaultKind;
use super::processes::{PARTITIONS, partition_of};
use super::round::Happened;

/// Of a point of the throughput over time, in milliseconds.
const BUCKET_MILLISECONDS: u32 = 100;

/// Of a point in the figure of a round, in milliseconds.
const DRAWN_MILLISECONDS: u32 = 500;

/// How long after a fault was mended a stop counts as caused by it, in milliseconds.
const AFTERMATH_MILLISECONDS: u32 = 2_000;

/// What is drawn before and after a kill, in milliseconds.
const AROUND_MILLISECONDS: (i64, i64) = (-1_000, 3_000);

/// What was measured in a round.
#[derive(Default)]
pub(super) struct Measured {
    /// When calls committed, in milliseconds, with their home; ascending.
    pub(super) commits: Vec<(u32, u16)>,
    pub(super) happened: Vec<Happened>,
    /// Processes that ended by themselves, from when until they served again, in milliseconds.
    pub(super) away: Vec<(usize, u32, u32)>,
}

/// How long calls stopped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Gap {
    /// Of the clients at home in the partition of the victim; of all partitions, if there are victims in several.
    pub(super) own: u32,
    /// Of the others.
    pub(super) other: u32,
}

impl Measured {
    /// The longest time without a commit of a partition's clients that touches a time, in milliseconds; what was before it
    /// does not count.
    fn longest_stop(&self, partition: u16, from: u32, until: u32) -> u32 {
        let mut last = from;
        let mut longest = 0;
        for (at, _) in self.commits.iter().filter(|(at, home)| *home == partition && *at >= from) {
            longest = longest.max(at - last);
            last = *at;
            if *at > until {
                break;
            }
        }
        longest
    }

    /// How long calls stopped because of a fault.
    pub(super) fn gap(&self, happened: &Happened) -> Gap {
        let mut gap = Gap::default();
        for partition in 0..PARTITIONS {
            let until = happened.until + AFTERMATH_MILLISECONDS;
            let stop = self.longest_stop(partition as u16, happened.from, until);
            let own = happened.victims.iter().any(|victim| partition_of(*victim) == partition);
            let longest = if own { &mut gap.own } else { &mut gap.other };
            *longest = (*longest).max(stop);
        }
        gap
    }

    /// The times at which a partition had no majority of processes that served.
    fn without_majority(&self) -> Vec<(u32, u32)> {
        let by_fault = self.happened.iter().flat_map(|happened| {
            happened.victims.iter().map(|victim| (*victim, happened.from, happened.well))
        });
        let ill: Vec<(usize, u32, u32)> = by_fault.chain(self.away.iter().copied()).collect();
        let mut times = Vec::new();
        for (place, (process, from, until)) in ill.iter().enumerate() {
            for (other, other_from, other_until) in &ill[..place] {
                let (from, until) = (from.max(other_from), until.min(other_until));
                if process != other && partition_of(*process) == partition_of(*other) && from <= until {
                    times.push((*from, *until));
                }
            }
        }
        times
    }

    /// Whether every partition had a majority of processes that served during a fault, for a while before it and after it.
    pub(super) fn had_majority(&self, happened: &Happened) -> bool {
        !self.without_majority().iter().any(|(from, until)| {
            *from <= happened.until + AFTERMATH_MILLISECONDS
                && until + AFTERMATH_MILLISECONDS >= happened.from
        })
    }

    /// Whether nothing else happened at that time.
    fn was_alone(&self, happened: &Happened) -> bool {
        let (before, after) = AROUND_MILLISECONDS;
        let (begin, end) = (i64::from(happened.from) + before, i64::from(happened.from) + after);
        let overlaps = |other: &&Happened| i64::from(other.from) <= end && i64::from(other.well) >= begin;
        self.happened.iter().filter(overlaps).count() == 1
    }

    /// Commits per bucket and partition.
    fn buckets(&self, milliseconds: u32) -> Vec<[u32; PARTITIONS]> {
        let last = self.commits.last().map_or(0, |(at, _)| at / milliseconds);
        let mut buckets = vec![[0; PARTITIONS]; last as usize + 1];
        for (at, home) in &self.commits {
            buckets[(at / milliseconds) as usize][usize::from(*home)] += 1;
        }
        buckets
    }
}

/// Throughput over time as a table.
pub(super) fn throughput_csv(rounds: &[Measured]) -> String {
    let mut out = "round,second,partition_0_per_second,partition_1_per_second\n".to_owned();
    for (round, measured) in rounds.iter().enumerate() {
        for (bucket, counts) in measured.buckets(BUCKET_MILLISECONDS).iter().enumerate() {
            let second = bucket as f64 * f64::from(BUCKET_MILLISECONDS) / 1e3;
            let [first, other] = counts.map(|count| count * 1000 / BUCKET_MILLISECONDS);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{round},{second:.1},{first},{other}");
        }
    }
    out
}

/// All faults as a table.
pub(super) fn faults_csv(rounds: &[Measured]) -> String {
    let mut out = "round,fault,victims,led,from_second,until_second,well_second,outcome,majority,\
                   longest_stop_own_partition_ms,longest_stop_other_partition_ms\n"
        .to_owned();
    for (round, measured) in rounds.iter().enumerate() {
        for happened in &measured.happened {
            let Happened { kind, victims, led, from, until, well, outcome } = happened;
            let victims: Vec<String> = victims.iter().map(ToString::to_string).collect();
            let [from, until, well] = [*from, *until, *well].map(|time| f64::from(time) / 1e3);
            let Gap { own, other } = measured.gap(happened);
            let majority = measured.had_majority(happened);
            let (kind, victims) = (kind.name(), victims.join(" "));
            let _ = writeln!(
                out,
                "{round},{kind},{victims},{led},{from:.3},{until:.3},{well:.3},{outcome},{majority},{own},{other}"
            );
        }
    }
    out
}

/// How long calls stopped, by fault.
pub(super) fn stops_table(rounds: &[Measured]) -> String {
    let mut stops: BTreeMap<(FaultKind, bool), Vec<Gap>> = BTreeMap::new();
    for measured in rounds {
        for happened in measured.happened.iter() {
            if measured.had_majority(happened) || !happened.kind.leaves_a_majority() {
                stops.entry((happened.kind, happened.led)).or_default().push(measured.gap(happened));
            }
        }
    }
    let mut out = format!(
        "  {:<16} {:<10} {:>5}  {:>22}  {:>22}\n",
        "fault", "of a", "count", "its partition stops ms", "the other one stops ms"
    );
    for ((kind, led), gaps) in &stops {
        let whom = if *led { "leader" } else { "follower" };
        let whom = match kind {
            FaultKind::Wipe => "replica",
            kind if kind.leaves_a_majority() => whom,
            _ => "majority",
        };
        let columns = [gaps.iter().map(|gap| gap.own).collect(), gaps.iter().map(|gap| gap.other).collect()];
        let [own, other] = columns.map(|mut column: Vec<u32>| {
            column.sort_unstable();
            let (median, most) = (column[column.len() / 2], column[column.len() - 1]);
            format!("median {median}, most {most}")
        });
        let _ = writeln!(out, "  {:<16} {whom:<10} {:>5}  {own:>22}  {other:>22}", kind.name(), gaps.len());
    }
    out
}

/// The longest stop, in milliseconds, at times when every partition had a majority.
pub(super) fn longest_stop_with_majority(rounds: &[Measured]) -> u32 {
    let of_round = |measured: &Measured| {
        let happened = measured.happened.iter().filter(|happened| measured.had_majority(happened));
        happened.map(|happened| measured.gap(happened)).map(|gap| gap.own.max(gap.other)).max()
    };
    rounds.iter().filter_map(of_round).max().unwrap_or(0)
}

fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear }
}

/// The throughput of a round, with the faults.
fn round_panel(measured: &Measured, title: String) -> Panel {
    let buckets = measured.buckets(DRAWN_MILLISECONDS);
    let point = |bucket: usize, count: u32| {
        let seconds = bucket as f64 * f64::from(DRAWN_MILLISECONDS) / 1e3;
        (seconds, f64::from(count) * 1e3 / f64::from(DRAWN_MILLISECONDS))
    };
    let mut series: Vec<Series> = (0..PARTITIONS)
        .map(|partition| Series {
            name: format!("clients of partition {partition}"),
            style: Style { color: partition, shape: 0 },
            points: buckets.iter().enumerate().map(|(at, counts)| point(at, counts[partition])).collect(),
        })
        .collect();
    let highest = series.iter().flat_map(|series| &series.points).map(|point| point.1).fold(1.0, f64::max);
    let mut kinds: Vec<FaultKind> = measured.happened.iter().map(|happened| happened.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for (place, kind) in kinds.into_iter().enumerate() {
        // Each kind has a height of its own above the lines, and each fault a mark where it began.
        let height = highest * (1.05 + 0.05 * place as f64);
        let of_kind = measured.happened.iter().filter(|happened| happened.kind == kind);
        let points = of_kind.map(|happened| (f64::from(happened.from) / 1e3, height)).collect();
        series.push(Series {
            name: kind.name(),
            style: Style { color: (place + PARTITIONS) % 7, shape: 1 + place % 3 },
            points,
        });
    }
    Panel { title, x: axis("seconds"), y: axis("committed per second"), series }
}

/// The throughput of one round over time, with marks where faults began.
pub(super) fn round_figure(measured: &Measured, number: usize, note: &str) -> String {
    let panel = round_panel(measured, format!("Round {number}"));
    Figure {
        title: "Throughput under faults".to_owned(),
        panels: vec![panel],
        notes: vec![format!("{note} Marks above the lines: where a fault began.")],
    }
    .svg()
}

/// The throughput around the kills of single processes at whose time nothing else happened; `None` if there were none.
pub(super) fn kill_figure(rounds: &[Measured], note: &str) -> Option<String> {
    let mut panels = Vec::new();
    for (title, own) in [("Clients of its partition", true), ("Clients of the other partition", false)] {
        let mut series = Vec::new();
        for (name, led) in [("a leader is killed at 0", true), ("a follower is killed at 0", false)] {
            let (count, points) = around(rounds, led, own);
            if count > 0 {
                let shape = usize::from(led);
                let name = format!("{name} ({count} times)");
                series.push(Series { name, style: Style { color: shape, shape }, points });
            }
        }
        if series.is_empty() {
            return None;
        }
        let title = title.to_owned();
        panels.push(Panel { title, x: axis("seconds"), y: axis("committed per second"), series });
    }
    let title = "Throughput around the kill of one process".to_owned();
    Some(Figure { title, panels, notes: vec![note.to_owned()] }.svg())
}

/// The mean throughput around kills, and how many there were.
fn around(rounds: &[Measured], led: bool, own: bool) -> (usize, Vec<(f64, f64)>) {
    let (begin, end) = AROUND_MILLISECONDS;
    let width = i64::from(BUCKET_MILLISECONDS);
    let mut sums = vec![0_u32; ((end - begin) / width) as usize];
    let mut kills = 0;
    for measured in rounds {
        let last = measured.commits.last().map_or(0, |(at, _)| i64::from(*at));
        for kill in measured.happened.iter().filter(|happened| happened.kind == FaultKind::Kill) {
            let at = i64::from(kill.from);
            if kill.led != led || !measured.was_alone(kill) || at + begin < 0 || at + end > last {
                continue;
            }
            kills += 1;
            for (commit, home) in &measured.commits {
                let offset = i64::from(*commit) - at - begin;
                let concerned = (partition_of(kill.victims[0]) == usize::from(*home)) == own;
                if concerned && (0..end - begin).contains(&offset) {
                    sums[(offset / width) as usize] += 1;
                }
            }
        }
    }
    let second = |bucket: usize| (begin + width * bucket as i64) as f64 / 1e3;
    let rate = |sum: u32| f64::from(sum) * 1e3 / f64::from(BUCKET_MILLISECONDS) / f64::from(kills.max(1));
    let points = sums.iter().enumerate().map(|(bucket, sum)| (second(bucket), rate(*sum))).collect();
    (kills as usize, points)
}

/// Writes tables and figures.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(directory: &Path, rounds: &[Measured], note: &str) -> Result<(), String> {
    let mut files = vec![
        ("throughput.csv".to_owned(), throughput_csv(rounds)),
        ("faults.csv".to_owned(), faults_csv(rounds)),
    ];
    for (number, measured) in rounds.iter().enumerate() {
        files.push((format!("round-{number}.svg"), round_figure(measured, number, note)));
    }
    files.extend(kill_figure(rounds, note).map(|figure| ("kills.svg".to_owned(), figure)));
    let wrong = |path: &Path, error| format!("cannot write {}: {error}", path.display());
    std::fs::create_dir_all(directory).map_err(|error| wrong(directory, error))?;
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| wrong(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(kind: FaultKind, victim: usize, from: u32, until: u32) -> Happened {
        Happened { kind, victims: vec![victim], led: true, from, until, well: until, outcome: "" }
    }

    /// Both partitions commit every 10 ms for 10 s; partition 0 stops from 4 s to 5.2 s.
    fn measured() -> Measured {
        let commits = (0..1_000).map(|step| step * 10).flat_map(|at| [(at, 0), (at, 1)]);
        let commits = commits.filter(|(at, home)| *home == 1 || !(4_001..5_200).contains(at)).collect();
        let happened = vec![happened(FaultKind::Kill, 0, 4_000, 4_500)];
        Measured { commits, happened, away: Vec::new() }
    }

    #[test]
    fn the_stop_after_a_fault_is_found() {
        let measured = measured();
        let gap = measured.gap(&measured.happened[0]);
        assert_eq!(gap, Gap { own: 1_200, other: 10 });
        assert_eq!(longest_stop_with_majority(&[measured]), 1_200);
    }

    #[test]
    fn a_stop_without_a_majority_does_not_count() {
        // Another replica of its partition starts again meanwhile, or one of the other partition.
        for (process, longest) in [(2, 0), (1, 1_200)] {
            let mut measured = measured();
            measured.away.push((process, 4_100, 4_500));
            assert_eq!(longest_stop_with_majority(&[measured]), longest);
        }
    }

    #[test]
    fn tables_and_figures_have_everything() {
        let rounds = [measured()];
        assert_eq!(throughput_csv(&rounds).lines().count(), 1 + 100);
        assert!(throughput_csv(&rounds).contains("\n0,4.5,0,100\n"), "{}", throughput_csv(&rounds));
        assert!(faults_csv(&rounds).contains("\n0,kill,0,true,4.000,4.500,4.500,,true,1200,10\n"));
        assert!(stops_table(&rounds).contains("median 1200, most 1200"));
        assert!(round_figure(&rounds[0], 0, "").contains(">kill</text>"));
        assert!(
            kill_figure(&rounds, "")
                .is_some_and(|figure| figure.contains("a leader is killed at 0 (1 times)"))
        );
        let crowded = Measured {
            happened: vec![rounds[0].happened[0].clone(), happened(FaultKind::Stop, 1, 4_200, 4_300)],
            ..measured()
        };
        assert_eq!(kill_figure(&[crowded], ""), None);
    }
}
