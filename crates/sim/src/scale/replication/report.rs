//! What was measured of replication, as a table, as a chart, and beside what it should be.

use std::fmt::Write as _;

use super::{Load, PINGS_MS, ReplicationPoint};
use crate::plan::Replication;
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{Judgement, Verdict};

/// The names of the columns.
const HEADER: &str = "load,mode,replicas,partitions,ping_ms,throughput_txn_s,latency_us_p50,latency_us_p99";

/// By how much throughput may differ between modes, as a share of that without replication.
const THROUGHPUT_TOLERANCE: f64 = 0.1;

/// By how much the median latency may differ from its model, in microseconds: waiting for an epoch, and the steps of nodes.
const LATENCY_TOLERANCE_US: f64 = 1_000.0;

/// And as a share of it: an epoch waits for the agreement on earlier ones in part.
const LATENCY_TOLERANCE: f64 = 0.1;

/// A line for each point, in their order, under a line with the names of the columns. Rates have one decimal.
pub fn csv(points: &[ReplicationPoint]) -> String {
    let mut out = format!("{HEADER}\n");
    for point in points {
        let ReplicationPoint { setting, throughput, latency_us_p50, latency_us_p99 } = point;
        let (load, mode) = (setting.load.name(), setting.mode.name());
        let (replicas, partitions, ping) = (setting.replicas, setting.partitions, setting.ping_ms);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{load},{mode},{replicas},{partitions},{ping},{throughput:.1},{latency_us_p50},{latency_us_p99}"
        );
    }
    out
}

/// Throughput and latency over the distance of the replicas, a line for each mode and load. `notes` say what was run.
pub fn figure(points: &[ReplicationPoint], notes: &[String]) -> Figure {
    let panel = |title: &str, label: &str, value: fn(&ReplicationPoint) -> f64| Panel {
        title: title.to_owned(),
        x: Axis { label: "round trip between replicas, ms".to_owned(), scale: Scale::Logarithmic },
        y: Axis { label: label.to_owned(), scale: Scale::Logarithmic },
        series: lines(points, value),
    };
    Figure {
        title: "What replication costs".to_owned(),
        panels: vec![
            panel("Throughput", "transactions/s", |point| point.throughput),
            panel("Median latency", "ms", |point| point.latency_us_p50 as f64 / 1_000.0),
        ],
        notes: notes.to_vec(),
    }
}

fn lines(points: &[ReplicationPoint], value: fn(&ReplicationPoint) -> f64) -> Vec<Series> {
    let mut series = Vec::new();
    for (shape, load) in ["offered", "saturated"].into_iter().enumerate() {
        for (color, mode) in
            [Replication::None, Replication::Async, Replication::Sync].into_iter().enumerate()
        {
            let of =
                points.iter().filter(|point| point.setting.mode == mode && point.setting.load.name() == load);
            let points = match mode {
                // It has no distance: a level line.
                Replication::None => {
                    of.flat_map(|point| PINGS_MS.map(|ping| (ping as f64, value(point)))).collect()
                }
                _ => of.map(|point| (point.setting.ping_ms as f64, value(point))).collect(),
            };
            let name = format!("{}, {load}", mode.name());
            series.push(Series { name, style: Style { color, shape }, points });
        }
    }
    series
}

/// What the paper states of replication, and what the latency should be, beside what was measured.
pub fn judge(points: &[ReplicationPoint]) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    let loads = [("offered", "when the processors are not the limit"), ("saturated", "when they are")];
    for (load, when) in loads {
        judgements.push(throughput(points, load, when));
    }
    let replicated = points.iter().filter(|point| point.setting.replicas > 1);
    let offered = replicated.filter(|point| matches!(point.setting.load, Load::Offered(_)));
    judgements.extend(offered.map(|point| latency(points, point)));
    judgements
}

fn alone<'a>(points: &'a [ReplicationPoint], load: &str) -> Option<&'a ReplicationPoint> {
    points.iter().find(|point| point.setting.replicas == 1 && point.setting.load.name() == load)
}

fn throughput(points: &[ReplicationPoint], load: &str, when: &str) -> Judgement {
    let shares: Vec<(String, f64)> = points
        .iter()
        .filter(|point| point.setting.replicas > 1 && point.setting.load.name() == load)
        .filter_map(|point| {
            let name = format!("{} at {} ms", point.setting.mode.name(), point.setting.ping_ms);
            Some((name, point.throughput / alone(points, load)?.throughput))
        })
        .collect();
    let near = shares.iter().all(|(_, share)| (share - 1.0).abs() <= THROUGHPUT_TOLERANCE);
    let measured: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {share:.2}")).collect();
    Judgement {
        experiment: "CAL-X03",
        section: "Calvin section 3.1.1",
        stated: format!("the three modes have the same throughput within 10 percent, {when}"),
        measured: format!("of that without replication: {}", measured.join(", ")),
        verdict: match (shares.is_empty(), near) {
            (true, _) => Verdict::NotMeasured,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Differs,
        },
    }
}

/// Without replication a call waits for one sync of the disk, and so it does where the leader need not wait for others; with
/// synchronous replication it waits for a round trip to the nearest replica besides.
fn latency(points: &[ReplicationPoint], point: &ReplicationPoint) -> Judgement {
    let (mode, ping_ms) = (point.setting.mode, point.setting.ping_ms);
    let round_trip = if mode == Replication::Sync { ping_ms * 1_000 } else { 0 };
    let alone = alone(points, point.setting.load.name()).map(|alone| alone.latency_us_p50);
    let (model, measured) = (alone.unwrap_or_default() + round_trip, point.latency_us_p50);
    let tolerance = LATENCY_TOLERANCE_US + model as f64 * LATENCY_TOLERANCE;
    let verdict = match alone {
        None => Verdict::NotMeasured,
        Some(_) if (measured as f64 - model as f64).abs() <= tolerance => Verdict::Holds,
        Some(_) => Verdict::Differs,
    };
    let more = if round_trip > 0 { ", and one round trip" } else { "" };
    Judgement {
        experiment: "CAL-X03",
        section: "Calvin section 3.1.1",
        stated: format!(
            "{} at {ping_ms} ms: a call takes as long as without replication{more}: {model} us",
            mode.name()
        ),
        measured: format!("{measured} us in the median"),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings;
    use super::*;

    fn points() -> Vec<ReplicationPoint> {
        let ideal = |setting: super::super::ReplicationSetting| {
            let away = if setting.mode == Replication::Sync { setting.ping_ms * 1_000 } else { 0 };
            let latency_us_p50 = 2_000 + away;
            ReplicationPoint { setting, throughput: 1_000.0, latency_us_p50, latency_us_p99: 9_000 + away }
        };
        settings(2, 500, 100).into_iter().map(ideal).collect()
    }

    #[test]
    fn what_is_as_stated_holds() {
        let points = points();
        let judgements = judge(&points);
        assert_eq!(judgements.len(), 8);
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::Holds), "{judgements:#?}");
        assert_eq!(csv(&points).lines().count(), 15);
        assert!(csv(&points).contains("\noffered,sync,3,2,170,1000.0,172000,179000\n"));
        assert_eq!(figure(&points, &[]).panels[1].series.len(), 6);
    }

    #[test]
    fn what_is_not_as_stated_differs() {
        let differs = |change: fn(&mut ReplicationPoint), number: usize| {
            let mut points = points();
            change(&mut points[number]);
            judge(&points).iter().filter(|judgement| judgement.verdict == Verdict::Differs).count()
        };
        assert_eq!(differs(|point| point.throughput = 890.0, 6), 1);
        assert_eq!(differs(|point| point.latency_us_p50 *= 2, 6), 1);
        assert_eq!(differs(|point| point.latency_us_p50 *= 2, 3), 1);
        assert!(judge(&[]).iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
    }
}
