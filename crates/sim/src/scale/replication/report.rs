//! What was measured of replication, as a table, as a chart, and beside what it should be.

use std::fmt::Write as _;

use ordain_db::limits::EPOCH_MICROSECONDS_DEFAULT;

use super::{Load, PINGS_MS, ReplicationPoint, ReplicationSetting, SYNC_MAX, SYNC_MIN};
use crate::network::latency::Latency;
use crate::plan::Replication;
use crate::scale::figure::{Axis, Figure, Panel, Scale, Series, Style};
use crate::scale::shapes::{Judgement, Verdict};
use crate::time::{MICROSECOND, MILLISECOND};

/// The names of the columns.
const HEADER: &str =
    "load,mode,replicas,partitions,ping_ms,throughput_txn_s,latency_us_p50,latency_us_p99,busy_percent";

/// By how much throughput may differ between modes, as a share of that without replication.
const THROUGHPUT_TOLERANCE: f64 = 0.1;

/// By how much the median latency may differ from its [model](model_us), as a share of it.
const LATENCY_TOLERANCE: f64 = 0.1;

/// A line for each point, in their order, under a line with the names of the columns. Rates and shares have one decimal.
pub fn csv(points: &[ReplicationPoint]) -> String {
    let mut out = format!("{HEADER}\n");
    for point in points {
        let ReplicationPoint { setting, throughput, latency_us_p50, latency_us_p99, busy_percent } = point;
        let (load, mode) = (setting.load.name(), setting.mode.name());
        let (replicas, partitions, ping) = (setting.replicas, setting.partitions, setting.ping_ms);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{load},{mode},{replicas},{partitions},{ping},{throughput:.1},{latency_us_p50},{latency_us_p99},\
             {busy_percent:.1}"
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
    let loads =
        [("offered", "when the processors are not the limit"), ("saturated", "with many calls outstanding")];
    for (load, when) in loads {
        judgements.push(throughput(points, load, when));
    }
    let offered = points.iter().filter(|point| matches!(point.setting.load, Load::Offered(_)));
    judgements.extend(offered.map(latency));
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

/// The latency that a setting should have, in microseconds, when epochs follow one another and processors are idle: the sum of
///
/// 1. the ways of the request, of the batch to the other partitions, and of the answer, all inside a hall;
/// 2. one sync of a disk: the leader's and a follower's are under way at the same time;
/// 3. with synchronous replication one round trip to the nearest replica, and not one for each partition: all groups agree on an
///    epoch at the same time;
/// 4. the wait for the epoch to close, half its length. The next one closes when the one before is delivered, or after 10 ms.
fn model_us(setting: &ReplicationSetting) -> u64 {
    let ReplicationSetting { mode, partitions, ping_ms, .. } = *setting;
    let way = Latency::LAN.minimum + Latency::LAN.spread / 3;
    let batch = if partitions > 1 { way } else { 0 };
    let sync = u64::midpoint(SYNC_MIN, SYNC_MAX);
    let round_trip = if mode == Replication::Sync { ping_ms * MILLISECOND } else { 0 };
    let delivered = sync + round_trip + batch;
    let epoch = delivered.min(EPOCH_MICROSECONDS_DEFAULT * MICROSECOND);
    (way + epoch / 2 + delivered + way) / MICROSECOND
}

fn latency(point: &ReplicationPoint) -> Judgement {
    let (mode, ping_ms) = (point.setting.mode, point.setting.ping_ms);
    let (model, measured) = (model_us(&point.setting), point.latency_us_p50);
    let difference = (measured as f64 - model as f64) / model as f64;
    let name = match mode {
        Replication::None => "none".to_owned(),
        _ => format!("{} at {ping_ms} ms", mode.name()),
    };
    let parts = match mode {
        Replication::Sync => "three ways in the hall, one sync, one round trip, half an epoch",
        _ => "three ways in the hall, one sync, half an epoch",
    };
    Judgement {
        experiment: "CAL-X03",
        section: "Calvin section 3.1.1",
        stated: format!("{name}: a call takes {parts}: {model} us"),
        measured: format!("{measured} us in the median, {:+.1} percent", 100.0 * difference),
        verdict: if difference.abs() <= LATENCY_TOLERANCE { Verdict::Holds } else { Verdict::Differs },
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings;
    use super::*;

    fn points() -> Vec<ReplicationPoint> {
        let ideal = |setting: ReplicationSetting| ReplicationPoint {
            setting,
            throughput: 1_000.0,
            latency_us_p50: model_us(&setting),
            latency_us_p99: 2 * model_us(&setting),
            busy_percent: 2.5,
        };
        settings(2, 500, 100).into_iter().map(ideal).collect()
    }

    #[test]
    fn what_is_as_stated_holds() {
        let points = points();
        let judgements = judge(&points);
        assert_eq!(judgements.len(), 9);
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::Holds), "{judgements:#?}");
        assert_eq!(csv(&points).lines().count(), 15);
        assert!(csv(&points).contains("\noffered,sync,3,2,170,1000.0,175649,351298,2.5\n"));
        assert_eq!(figure(&points, &[]).panels[1].series.len(), 6);
    }

    #[test]
    fn the_model_has_a_round_trip_where_it_is_waited_for() {
        let model = |mode, ping_ms| {
            let load = Load::Offered(1_000);
            model_us(&ReplicationSetting { mode, replicas: 3, partitions: 2, ping_ms, load })
        };
        // Three ways of 166 us, a sync of 150 us, and half of what passes between closing and delivery.
        assert_eq!(model(Replication::None, 0), 808);
        assert_eq!(model(Replication::Async, 170), 808);
        assert_eq!(model(Replication::Sync, 1), 808 + 1_000 + 500);
        // An epoch is no longer than 10 ms, however far away the replicas are.
        assert_eq!(model(Replication::Sync, 170) - model(Replication::Sync, 100), 70_000);
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
        assert_eq!(differs(|point| point.latency_us_p50 -= 100, 0), 1);
        assert!(judge(&[]).iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
    }
}
