//! What the paper states of `aloha` and `calvin`, held against measured points.
//!
//! The paper's figures are pictures; what is judged is what its text says of them. Its `calvin` is the code of that paper's authors, on
//! machines of eight cores; ours shares all code with `aloha` but the engine. So its factors between the two systems are not expected
//! here, and are judged all the same.

mod sizes;

use ordain_db::engine::EngineKind::{self, Aloha, Calvin};
use ordain_workload::micro::Declare;

use super::report::{light, lines, name_of, over_epochs};
use super::{
    ADAPTIVE, AlohaPoint, AlohaRun, AlohaWorkload, Drive, ENGINES, FEW_AND_MANY, Figure, GRANULARITIES, HIGH,
    LOW, MANAGED, MEDIUM, declares, peak,
};
use crate::scale::shapes::{CHANCE, Judgement, extremes, judgement, percent};
use crate::world::stages::Stage;

/// The most that `aloha` may lose from the lowest to the highest contention index and "not suffer a significant drop".
const NO_DROP: f64 = 0.15;

/// What counts as the paper's 40k to 28k.
const STATED_FALL: std::ops::RangeInclusive<f64> = 0.15..=0.45;

/// Percentage points by which a share of the latency may move and "hardly" do so.
const HARDLY: f64 = 5.0;

/// Holds the statements about some figures against the points. `nodes` are those of the clusters whose size does not vary.
pub fn judge(points: &[AlohaPoint], figures: &[Figure], nodes: u16) -> Vec<Judgement> {
    let points = Points { points, nodes };
    let each = figures.iter().flat_map(|figure| match figure {
        Figure::Latency => over_loads(&points),
        Figure::Granularity => over_granularities(&points),
        Figure::ScaleOut => sizes::judge(&points),
        Figure::Contention => over_indexes(&points),
        Figure::Breakdown => of_stages(&points),
        Figure::Epochs => over_lengths(&points),
    });
    each.collect()
}

struct Points<'a> {
    points: &'a [AlohaPoint],
    nodes: u16,
}

impl Points<'_> {
    fn new_orders(&self, engine: EngineKind, warehouses: u32, nodes: u16) -> Option<f64> {
        peak(self.points, engine, AlohaWorkload::NewOrder { warehouses }, nodes)
    }

    fn scaled(&self, engine: EngineKind, districts: u16) -> Option<f64> {
        peak(self.points, engine, AlohaWorkload::Scaled { districts }, self.nodes)
    }

    fn payments(&self, engine: EngineKind, warehouses: u32) -> Option<f64> {
        peak(self.points, engine, AlohaWorkload::Payment { warehouses }, self.nodes)
    }

    fn adds(&self, engine: EngineKind, declare: Declare, index: f64) -> Option<f64> {
        peak(self.points, engine, AlohaWorkload::Adds { declare, index }, self.nodes)
    }

    /// At light load.
    fn staged(&self, engine: EngineKind, declare: Declare, index: f64) -> Option<&AlohaRun> {
        light(self.points, engine, AlohaWorkload::Adds { declare, index }, self.nodes, MANAGED)
    }

    /// Mean latency in microseconds with one call outstanding at each node.
    fn alone(&self, engine: EngineKind, warehouses: u32) -> Option<f64> {
        let workload = AlohaWorkload::NewOrder { warehouses };
        let of = |point: &&AlohaPoint| {
            let at = &point.setting;
            (at.engine, at.workload, at.nodes) == (engine, workload, self.nodes)
                && at.drive == Drive::Window(1)
        };
        self.points.iter().find(of).map(|point| point.run.latency_us_mean)
    }
}

/// The share of a throughput that is lost.
fn loss(from: Option<f64>, to: Option<f64>) -> Option<(f64, f64, f64)> {
    from.zip(to).map(|(from, to)| (from, to, 1.0 - to / from))
}

fn tell_loss((from, to, loss): (f64, f64, f64)) -> String {
    // Added, so that there is no -0.0.
    let loss = (loss * 1e3).round() / 10.0 + 0.0;
    format!("from {from:.0} to {to:.0}/s, a loss of {loss:.1} %")
}

/// Figure 6.
fn over_loads(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("ALO-X04", "Fan and Golab §V-B1, Figure 6");
    let [few, many] = FEW_AND_MANY;
    let mut judgements = Vec::new();
    for (letters, workload) in lines() {
        let of = |engine| peak(points.points, engine, workload, points.nodes);
        let times = if matches!(workload, AlohaWorkload::Scaled { .. }) { 61.0 } else { 13.0 };
        let found = of(Aloha).zip(of(Calvin)).map(|(aloha, calvin)| {
            let ratio = aloha / calvin;
            let measured = format!("{aloha:.0}/s and {calvin:.0}/s: {ratio:.2} times");
            (measured, (times * 0.7..=times * 1.4).contains(&ratio))
        });
        let stated = format!("{letters}: aloha's peak is about {times} times calvin's");
        judgements.push(judgement(from, stated, found));
    }
    let kept = |engine| {
        loss(points.new_orders(engine, many, points.nodes), points.new_orders(engine, few, points.nodes))
    };
    judgements.push(judgement(
        from,
        "with fewer warehouses calvin suffers a significant drop, aloha is much more steady".to_owned(),
        kept(Calvin).zip(kept(Aloha)).map(|(calvin, aloha)| {
            let measured =
                format!("from {many}W to {few}W calvin {}; aloha {}", tell_loss(calvin), tell_loss(aloha));
            (measured, calvin.2 > NO_DROP && aloha.2 < calvin.2 / 2.0)
        }),
    ));
    let spread =
        |engine| loss(points.new_orders(engine, many, points.nodes), points.scaled(engine, many as u16));
    judgements.push(judgement(
        from,
        "with one warehouse over all nodes calvin suffers a significant drop, aloha is much more steady"
            .to_owned(),
        spread(Calvin).zip(spread(Aloha)).map(|(calvin, aloha)| {
            let measured =
                format!("from {many}W to {many}D calvin {}; aloha {}", tell_loss(calvin), tell_loss(aloha));
            (measured, calvin.2 > NO_DROP && aloha.2 < calvin.2 / 2.0)
        }),
    ));
    let light = |warehouses| Some((points.alone(Aloha, warehouses)?, points.alone(Calvin, warehouses)?));
    let both = FEW_AND_MANY.map(|warehouses| Some((warehouses, light(warehouses)?)));
    let found = both.into_iter().collect::<Option<Vec<_>>>().map(|both| {
        let each = both.iter().map(|(warehouses, (aloha, calvin))| {
            format!("{warehouses}W {:.2} ms with aloha and {:.2} ms with calvin", aloha / 1e3, calvin / 1e3)
        });
        let measured = format!("with a call at a time: {}", each.collect::<Vec<_>>().join("; "));
        (measured, both.iter().all(|(_, (aloha, calvin))| *aloha < calvin * (1.0 - CHANCE)))
    });
    judgements.push(judgement(from, "with light load calvin has the higher latency".to_owned(), found));
    judgements
}

/// Figure 7.
fn over_granularities(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("ALO-X05", "Fan and Golab §V-B2, Figure 7");
    let new_orders = |engine, from, to| {
        loss(points.new_orders(engine, from, points.nodes), points.new_orders(engine, to, points.nodes))
    };
    let payments = |engine, from, to| loss(points.payments(engine, from), points.payments(engine, to));
    let [few, many] = FEW_AND_MANY;
    let flat = |found: Option<(f64, f64, f64)>, all: Vec<Option<f64>>| {
        let (least, most) = extremes(&all.into_iter().collect::<Option<Vec<f64>>>()?);
        let apart = 100.0 * (most - least) / most;
        found.map(|found| {
            let measured =
                format!("{}; the least and the most of all are {apart:.1} % apart", tell_loss(found));
            (measured, found.2 < CHANCE)
        })
    };
    let each = |of: &dyn Fn(u32) -> Option<f64>| GRANULARITIES.into_iter().map(of).collect();
    let falls = payments(Calvin, 5, few);
    let earlier = falls.zip(new_orders(Calvin, 5, few)).map(|(payments, new_orders)| {
        let measured = format!(
            "from 5 to 1 warehouses {} of Payments and {} of New Orders are lost",
            percent(payments.2),
            percent(new_orders.2)
        );
        (measured, payments.2 > new_orders.2 + CHANCE)
    });
    vec![
        judgement(
            from,
            format!("New Orders, {many} to {few} warehouses: aloha loses less than 5 %"),
            flat(
                new_orders(Aloha, many, few),
                each(&|warehouses| points.new_orders(Aloha, warehouses, points.nodes)),
            ),
        ),
        judgement(
            from,
            format!("scaled New Orders, {many} to {few} districts: aloha loses less than 5 %"),
            flat(
                loss(points.scaled(Aloha, many as u16), points.scaled(Aloha, few as u16)),
                each(&|districts| points.scaled(Aloha, districts as u16)),
            ),
        ),
        judgement(
            from,
            format!("Payments, {many} to {few} warehouses: aloha loses less than 5 %"),
            flat(payments(Aloha, many, few), each(&|warehouses| points.payments(Aloha, warehouses))),
        ),
        judgement(
            from,
            "New Orders, 3 to 1 warehouses: calvin falls from 40k to 28k, by 30 %".to_owned(),
            new_orders(Calvin, 3, few).map(|found| (tell_loss(found), STATED_FALL.contains(&found.2))),
        ),
        judgement(
            from,
            "Payments: calvin falls below 5 warehouses".to_owned(),
            falls.map(|found| (tell_loss(found), found.2 > CHANCE)),
        ),
        judgement(from, "Payments of calvin suffer more than New Orders".to_owned(), earlier),
    ]
}

/// Figure 9.
fn over_indexes(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("ALO-X07", "Fan and Golab §V-C1, Figure 9");
    let mut judgements = Vec::new();
    for declare in declares(Aloha) {
        let found = loss(points.adds(Aloha, *declare, LOW), points.adds(Aloha, *declare, HIGH));
        judgements.push(judgement(
            from,
            format!(
                "{}: no significant drop from index {LOW} to {HIGH}, under 15 %",
                name_of(Aloha, *declare)
            ),
            found.map(|found| (tell_loss(found), found.2 < NO_DROP)),
        ));
    }
    let calvin = |index| points.adds(Calvin, Declare::Whole, index);
    judgements.push(judgement(
        from,
        format!("calvin is near its peak below index 0.0017: at {MEDIUM}"),
        loss(calvin(LOW), calvin(MEDIUM)).map(|found| (tell_loss(found), found.2 < NO_DROP)),
    ));
    judgements.push(judgement(
        from,
        format!("calvin clearly falls beyond: at {HIGH}"),
        loss(calvin(LOW), calvin(HIGH)).map(|found| (tell_loss(found), found.2 > 2.0 * NO_DROP)),
    ));
    let per_node = points.adds(Aloha, Declare::Arithmetic, HIGH).map(|rate| rate / f64::from(points.nodes));
    judgements.push(judgement(
        from,
        format!("at index {HIGH} aloha does nearly 97,000/s for each partition (of eight cores)"),
        per_node.map(|rate| {
            let measured = format!("{rate:.0}/s for each, on one core; each transaction counts once");
            (measured, rate >= 97e3 * (1.0 - NO_DROP))
        }),
    ));
    for declare in declares(Aloha) {
        let lead = |index| Some(points.adds(Aloha, *declare, index)? / calvin(index)?);
        judgements.push(judgement(
            from,
            format!(
                "{} over calvin: the gap widens to one or two orders of magnitude",
                name_of(Aloha, *declare)
            ),
            lead(LOW).zip(lead(HIGH)).map(|(low, high)| {
                let measured = format!("{low:.2} times at {LOW}, {high:.2} times at {HIGH}");
                (measured, high > low && high >= 10.0)
            }),
        ));
    }
    let share = |index| {
        let of = |declare| points.adds(Aloha, declare, index);
        Some(of(Declare::Own)? / of(Declare::Arithmetic)?)
    };
    let forms = share(LOW).zip(share(HIGH)).map(|(low, high)| {
        let measured =
            format!("{} of arithmetic's throughput at {LOW}, {} at {HIGH}", percent(low), percent(high));
        (measured, low <= 1.0 && high <= 1.0 && high > low - NO_DROP)
    });
    judgements.push(judgement(
        ("ALO-X11 e", "trap T-23: arithmetic has nothing to read"),
        "functors of its own cost more than arithmetic, and mind contention no more".to_owned(),
        forms,
    ));
    judgements
}

/// Figure 10.
fn of_stages(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("ALO-X08", "Fan and Golab §V-C1, Figure 10");
    let epoch = |run: &AlohaRun| run.stages.percent(Stage::Epoch) + run.stages.percent(Stage::Batches);
    let reading =
        |run: &AlohaRun| run.stages.percent(Stage::Versions) + run.stages.percent(Stage::RemoteReads);
    let mut judgements = Vec::new();
    for engine in ENGINES {
        for declare in declares(engine) {
            let name = name_of(engine, *declare);
            let pair = points.staged(engine, *declare, LOW).zip(points.staged(engine, *declare, HIGH));
            let smallest = pair.map(|(low, high)| {
                let shares = [low, high].map(|run| run.stages.percent(Stage::Processing));
                let measured = format!("{:.1} % at {LOW}, {:.1} % at {HIGH}", shares[0], shares[1]);
                let below = |run: &AlohaRun| run.stages.percent(Stage::Processing) < epoch(run);
                (measured, below(low) && below(high) && shares.iter().all(|share| *share < 2.0 * HARDLY))
            });
            judgements.push(judgement(from, format!("{name}: processing takes little"), smallest));
            let largest = pair.map(|(low, high)| {
                let measured = format!("{:.1} % at {LOW}, {:.1} % at {HIGH}", epoch(low), epoch(high));
                (measured, epoch(low) > 50.0 && epoch(high) > 50.0)
            });
            judgements.push(judgement(
                from,
                format!("{name}: most of the time goes by until the epoch is complete"),
                largest,
            ));
            let moves = pair.map(|(low, high)| {
                let (one, other) = (reading(low), reading(high));
                let measured = format!(
                    "{one:.1} % at {LOW} and {other:.1} % at {HIGH}, of {:.2} and {:.2} ms",
                    low.latency_us_mean / 1e3,
                    high.latency_us_mean / 1e3
                );
                let grows = other > one + HARDLY;
                (measured, if engine == Calvin { grows } else { !grows })
            });
            let stated = match engine {
                Calvin => format!("{name}: the share of locks and reads grows with contention"),
                _ => format!("{name}: the share of versions and reads hardly grows with contention"),
            };
            judgements.push(judgement(from, stated, moves));
        }
    }
    judgements
}

/// The line through some points with the smallest squares, and its R²: slope, intercept, R².
fn fit(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xy) = (sum(&|point| libm::pow(point.0 - x, 2.0)), sum(&|point| (point.0 - x) * (point.1 - y)));
    let yy = sum(&|point| libm::pow(point.1 - y, 2.0));
    if points.len() < 3 || xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let explained = if yy > 0.0 { slope * xy / yy } else { 1.0 };
    Some((slope, y - slope * x, explained))
}

/// Figure 11.
fn over_lengths(points: &Points<'_>) -> Vec<Judgement> {
    let from = ("ALO-X09", "Fan and Golab §V-C2, Figure 11");
    let of = |engine: EngineKind, slope: f64, within: f64| {
        let line = over_epochs(points.points, engine, points.nodes);
        let found = fit(&line).map(|(measured, intercept, explained)| {
            let ends = line.first().zip(line.last()).map(|(first, last)| {
                format!("{:.2} ms with epochs of {} ms, {:.2} ms with {}", first.1, first.0, last.1, last.0)
            });
            let text = format!(
                "slope {measured:.3}, intercept {intercept:.2} ms, R^2 {explained:.3}: {}",
                ends.unwrap_or_default()
            );
            (text, explained > 0.98 && (measured - slope).abs() <= within)
        });
        let stated =
            format!("{}: mean latency is nearly linear in the epoch, with a slope of {slope}", engine.name());
        judgement(from, stated, found)
    };
    let mean = |epochs| {
        let workload = AlohaWorkload::adds(Aloha, Declare::Arithmetic, MEDIUM);
        light(points.points, Aloha, workload, points.nodes, epochs).map(|run| run.latency_us_mean / 1e3)
    };
    let half = MANAGED.microseconds as f64 / 2e3;
    let usual = judgement(
        ("ALO-X04", "Fan and Golab §V-B1"),
        format!(
            "aloha: with epochs of {} ms mean latency is above half of that, by its processing",
            2.0 * half
        ),
        mean(MANAGED).map(|mean| {
            let over = mean - half;
            (format!("{mean:.2} ms: {over:.2} ms above {half} ms"), (0.0..=half / 5.0).contains(&over))
        }),
    );
    let adaptive = judgement(
        ("ours", "DESIGN §3.1"),
        "aloha: epochs that close early beat that".to_owned(),
        mean(MANAGED).zip(mean(ADAPTIVE)).map(|(managed, adaptive)| {
            let measured =
                format!("{adaptive:.2} ms, {:.1} times less than {managed:.2} ms", managed / adaptive);
            (measured, adaptive < managed)
        }),
    );
    vec![of(Aloha, 0.5, 0.1), of(Calvin, 1.0, 0.15), usual, adaptive]
}

/// Points for which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_stated() -> Vec<AlohaPoint> {
    use super::{AlohaSetting, Span, light_settings, settings};
    use crate::world::stages::StageTimes;
    let run = |setting: &AlohaSetting| {
        let AlohaSetting { engine, workload, nodes, epochs, drive } = *setting;
        let calvin = engine == Calvin;
        let throughput = match (workload, calvin) {
            (AlohaWorkload::Adds { .. }, false) => 97e3 * f64::from(nodes),
            (AlohaWorkload::Adds { index, .. }, true) if index > 0.0017 => 100.0 / index * f64::from(nodes),
            (AlohaWorkload::Adds { .. }, true) => 50e3 * f64::from(nodes),
            (_, false) => 100e3 * f64::from(nodes),
            (AlohaWorkload::NewOrder { warehouses }, true) => {
                0.5e3 * f64::from((10 + 2 * warehouses).min(15) * u32::from(nodes))
            }
            (AlohaWorkload::Scaled { .. }, true) => {
                1.6e3 * f64::from(nodes.min(8)) + 450.0 * f64::from(nodes.saturating_sub(8))
            }
            (AlohaWorkload::Payment { warehouses }, true) => {
                1e3 * f64::from((2 + warehouses).min(7) * u32::from(nodes))
            }
        };
        let reading = if matches!(workload, AlohaWorkload::Adds { index, .. } if index == HIGH) && calvin {
            40
        } else {
            10
        };
        let waits = match (epochs.policy.is_managed(), calvin) {
            (false, false) => 0.0,
            (false, true) => 0.1,
            (true, false) => 0.5,
            (true, true) => 1.0,
        };
        let latency = waits * epochs.microseconds as f64 + 1_000.0;
        AlohaRun {
            throughput: match drive {
                Drive::Window(window) => throughput * if window == 64 { 1.0 } else { 0.8 },
                Drive::Rate(rate) => rate as f64 * f64::from(nodes),
                Drive::Climb(_) => 0.0,
            },
            latency_us_mean: latency,
            latency_us_p50: 1,
            latency_us_p99: 2,
            busy_percent: 50.0,
            stages: match drive {
                Drive::Rate(_) => StageTimes { calls: 1, sums: [2, 100, 50, 5, reading, 3, 10] },
                _ => StageTimes::default(),
            },
            span: Span::default(),
        }
    };
    let point = |setting: AlohaSetting| {
        let scaled = matches!(setting.workload, AlohaWorkload::Scaled { .. });
        let participants = if scaled { f64::from(setting.nodes) } else { 2.0 };
        AlohaPoint { run: run(&setting), setting, participants }
    };
    let all = settings(&Figure::ALL, 8, 20).into_iter().flat_map(AlohaSetting::tries);
    let mut points: Vec<AlohaPoint> = all.map(point).collect();
    let light = light_settings(&Figure::ALL, 8, &points);
    points.extend(light.into_iter().map(point));
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::shapes::Verdict;

    fn differing(points: &[AlohaPoint]) -> Vec<&'static str> {
        let differ = |judgement: &Judgement| judgement.verdict != Verdict::Holds;
        let judgements = judge(points, &Figure::ALL, 8);
        judgements
            .iter()
            .filter(|judgement| differ(judgement))
            .map(|judgement| judgement.experiment)
            .collect()
    }

    fn altered(alter: impl Fn(&mut AlohaPoint)) -> Vec<AlohaPoint> {
        let mut points = as_stated();
        let before = points.clone();
        points.iter_mut().for_each(alter);
        assert_ne!(points, before);
        points
    }

    #[test]
    fn what_is_as_stated_holds() {
        let judgements = judge(&as_stated(), &Figure::ALL, 8);
        let wrong: Vec<_> =
            judgements.iter().filter(|judgement| judgement.verdict != Verdict::Holds).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(judgements.len(), 7 + 6 + 11 + 10 + 4 * 3 + 4);
        let missing = judge(&[], &Figure::ALL, 8);
        assert!(missing.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured), "{missing:#?}");
        assert_eq!(judge(&as_stated(), &[Figure::Epochs], 8).len(), 4);
    }

    #[test]
    fn statements_of_tpcc_can_differ() {
        let few = |point: &mut AlohaPoint| {
            if matches!(point.setting.workload, AlohaWorkload::NewOrder { warehouses: 1 })
                && point.setting.engine == Aloha
            {
                point.run.throughput *= 0.5;
            }
        };
        let found = differing(&altered(few));
        for experiment in ["ALO-X04", "ALO-X05", "ALO-X06"] {
            assert!(found.contains(&experiment), "{found:?}");
        }
        let even = |point: &mut AlohaPoint| {
            if point.setting.engine == Calvin && matches!(point.setting.drive, Drive::Window(_)) {
                point.run.throughput = 8_000.0 * f64::from(point.setting.nodes);
                point.run.latency_us_mean = 100.0;
            }
        };
        let found = differing(&altered(even));
        assert_eq!(found.iter().filter(|experiment| **experiment == "ALO-X05").count(), 3, "{found:?}");
        assert!(found.contains(&"ALO-X04"), "{found:?}");
        let large = |point: &mut AlohaPoint| {
            if point.setting.nodes == 20 {
                point.run.throughput *= 0.5;
            }
        };
        assert_eq!(differing(&altered(large)), ["ALO-X06"; 7]);
        let fewer = |point: &mut AlohaPoint| point.participants = 2.0;
        assert_eq!(differing(&altered(fewer)), ["ALO-X02"]);
    }

    #[test]
    fn statements_of_additions_can_differ() {
        let contended = |point: &mut AlohaPoint| {
            if matches!(point.setting.workload, AlohaWorkload::Adds { index, .. } if index == HIGH) {
                point.run.throughput *= if point.setting.engine == Aloha { 0.6 } else { 60.0 };
            }
        };
        assert_eq!(differing(&altered(contended)), ["ALO-X07"; 8]);
        let waits = |point: &mut AlohaPoint| {
            if point.setting.engine == Aloha
                && matches!(point.setting.workload, AlohaWorkload::Adds { index, .. } if index == HIGH)
            {
                point.run.stages.sums[Stage::RemoteReads as usize] = 300;
            }
        };
        assert_eq!(differing(&altered(waits)), ["ALO-X08"; 6]);
        let flat = |point: &mut AlohaPoint| point.run.latency_us_mean = 500.0;
        assert_eq!(differing(&altered(flat)), ["ALO-X04", "ALO-X09", "ALO-X09", "ALO-X04", "ours"]);
    }

    #[test]
    fn lines_are_fitted() {
        let line = [1.0, 2.0, 4.0].map(|x| (x, 3.0 * x + 2.0));
        let (slope, intercept, explained) = fit(&line).unwrap();
        assert!(
            (slope - 3.0).abs() < 1e-9 && (intercept - 2.0).abs() < 1e-9 && (explained - 1.0).abs() < 1e-9
        );
        let (slope, _, explained) = fit(&[(0.0, 0.0), (1.0, 9.0), (2.0, 0.0)]).unwrap();
        assert!(slope.abs() < 1e-9 && explained.abs() < 1e-9);
        assert_eq!(fit(&line[..2]), None);
    }
}
