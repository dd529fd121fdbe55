//! What the paper states of the parts of `aloha`, or what follows from it, held against measured points.

use ordain_db::engine::EngineKind::{self, Calvin};
use ordain_db::sequencer::EpochPolicy;
use ordain_workload::tpcc::OrderNumbers;

use super::report::{attempts, best, districts, title_of};
use super::{Ablation, AblationPoint, Kept, LENGTHS, RATES_OF_ANSWERS, STALLS, Variant, workloads_of_epochs};
use super::{managed, workloads_of_orders, workloads_of_replicas};
use crate::scale::aloha::{ADAPTIVE, AlohaWorkload, MANAGED};
use crate::scale::shapes::{CHANCE, Judgement, judgement};

/// Holds the statements about some experiments against the points.
pub fn judge(points: &[AblationPoint], ablations: &[Ablation]) -> Vec<Judgement> {
    let each = ablations.iter().flat_map(|ablation| match ablation {
        Ablation::Epochs => over_lengths(points),
        Ablation::Straggler => over_stalls(points),
        Ablation::Answers => of_answers(points),
        Ablation::OrderNumbers => over_districts(points),
        Ablation::Replicas => of_replicas(points),
    });
    each.collect()
}

/// ALO-X10.
fn over_lengths(points: &[AblationPoint]) -> Vec<Judgement> {
    let from = ("ALO-X10", "Fan and Golab §V-A2");
    let of = |engine: EngineKind, workload: AlohaWorkload, length: u64| {
        best(points.iter().filter(|point| {
            let base = &point.setting.base;
            point.setting.ablation == Ablation::Epochs
                && (base.engine, base.workload, base.epochs) == (engine, workload, managed(length))
        }))
    };
    let each = workloads_of_epochs().into_iter().map(|(engine, workload)| {
        let all = LENGTHS.map(|length| of(engine, workload, length));
        let found = all.into_iter().collect::<Option<Vec<_>>>().map(|all| {
            let each = LENGTHS.iter().zip(&all).map(|(length, point)| {
                let late = point.details.half_load_us_mean / 1e3;
                format!("{length} ms: {:.0}/s, {late:.2} ms", point.run.throughput)
            });
            let measured = each.collect::<Vec<_>>().join("; ");
            let at = |length: u64| LENGTHS.iter().position(|other| *other == length).map(|place| all[place]);
            let holds = match (engine, at(LENGTHS[0]), at(20), at(25)) {
                (Calvin, Some(short), Some(usual), Some(longer)) => {
                    short.run.throughput < usual.run.throughput * (1.0 - CHANCE)
                        && longer.run.throughput < usual.run.throughput * (1.0 + CHANCE)
                        && longer.details.half_load_us_mean > usual.details.half_load_us_mean
                }
                (_, Some(short), _, Some(longer)) => {
                    short.run.throughput < longer.run.throughput * (1.0 - CHANCE)
                        && short.details.half_load_us_mean < longer.details.half_load_us_mean
                }
                _ => false,
            };
            (measured, holds)
        });
        let (name, what) = (engine.name(), title_of(workload));
        let stated = match engine {
            Calvin => format!("{name}, {what}: 25 ms gives no gain over 20 but more latency, shorter epochs lower throughput"),
            _ => format!("{name}, {what}: the length balances throughput, which grows with it, and latency"),
        };
        judgement(from, stated, found)
    });
    each.collect()
}

/// ALO-X11 a.
fn over_stalls(points: &[AblationPoint]) -> Vec<Judgement> {
    let from = ("ALO-X11 a", "Fan and Golab §III-C");
    let of = |policy: EpochPolicy, stall: u64| {
        points.iter().find(|point| {
            point.setting.base.epochs.policy == policy && point.setting.variant == Variant::Stalled(stall)
        })
    };
    let both = |stall| Some((of(EpochPolicy::Managed, stall)?, of(EpochPolicy::ManagedStrictly, stall)?));
    let bound = MANAGED.microseconds as f64 / 1e3;
    let mut judgements: Vec<Judgement> = STALLS
        .into_iter()
        .filter(|stall| *stall > 0)
        .map(|stall| {
            let found = both(stall).map(|(bounded, strict)| {
                let pauses = [bounded, strict].map(|point| point.details.longest_pause_ms);
                let measured = format!("{} ms without a start, and {} ms", pauses[0], pauses[1]);
                // They stop when their period is over, which began before the straggler was held up, and the bound later.
                let saved = (stall as f64).min(bound) / 3.0;
                (measured, pauses[1] - pauses[0] >= saved)
            });
            let stated = format!(
                "one partition is held up for {stall} ms: the others go on starting for up to {bound} ms more, and strictly they stop"
            );
            judgement(from, stated, found)
        })
        .collect();
    let answered = both(STALLS[3]).zip(both(0)).map(|((bounded, strict), (usual, _))| {
        let rates = [bounded, strict, usual].map(|point| point.run.throughput);
        let late = [bounded, strict, usual].map(|point| point.run.latency_us_mean / 1e3);
        let measured = format!(
            "{:.0} and {:.0}/s, {:.2} and {:.2} ms on average; {:.0}/s and {:.2} ms where nobody is held up",
            rates[0], rates[1], late[0], late[1], rates[2], late[2]
        );
        (measured, rates[0] > rates[1] * (1.0 + CHANCE))
    });
    let stated = format!("held up for {} ms: with the bound more is answered than strictly", STALLS[3]);
    judgements.push(judgement(from, stated, answered));
    judgements
}

/// ALO-X11 d.
fn of_answers(points: &[AblationPoint]) -> Vec<Judgement> {
    let from = ("ALO-X11 d", "Fan and Golab §IV-A");
    let mut judgements = Vec::new();
    for (workload, _) in RATES_OF_ANSWERS {
        for epochs in [ADAPTIVE, MANAGED] {
            let of = |early: bool| {
                points.iter().find(|point| {
                    let base = &point.setting.base;
                    (base.workload, base.epochs) == (workload, epochs)
                        && point.setting.variant == Variant::Early(early)
                })
            };
            let found = of(true).zip(of(false)).map(|(early, late)| {
                let acknowledged = early.details.acknowledged_us_mean;
                let (then, alone) = (early.run.latency_us_mean, late.run.latency_us_mean);
                let measured = format!(
                    "acknowledged after {:.3} ms and computed after {:.3} ms; {:.3} ms where nothing is acknowledged early",
                    acknowledged / 1e3,
                    then / 1e3,
                    alone / 1e3
                );
                (measured, acknowledged > 0.0 && acknowledged < alone)
            });
            let (what, policy) = (title_of(workload), epochs.policy);
            let stated =
                format!("{what}, {policy} epochs: an early acknowledgement comes before the late one");
            judgements.push(judgement(from, stated, found));
        }
    }
    judgements
}

/// ALO-X11 f, and what there is of ALO-X12.
fn over_districts(points: &[AblationPoint]) -> Vec<Judgement> {
    let of = |workload: AlohaWorkload, numbers: OrderNumbers| {
        best(points.iter().filter(|point| {
            point.setting.base.workload == workload && point.setting.variant == Variant::Numbers(numbers)
        }))
    };
    let each = |tell: &dyn Fn(&AblationPoint) -> String, numbers| {
        let all = workloads_of_orders().map(|workload| {
            let point = of(workload, numbers)?;
            let (what, number) = (title_of(workload), districts(workload));
            Some(format!("{what}, {number} districts of a node: {}", tell(point)))
        });
        all.into_iter().collect::<Option<Vec<_>>>().map(|all| all.join("; "))
    };
    let rises = |numbers| {
        let [many, .., few] = workloads_of_orders();
        Some((attempts(of(many, numbers)?), attempts(of(few, numbers)?)))
    };
    let tell =
        |point: &AblationPoint| format!("{:.0}/s, {:.2} attempts", point.run.throughput, attempts(point));
    let with = |numbers, holds: &dyn Fn((f64, f64)) -> bool| {
        each(&tell, numbers).zip(rises(numbers)).map(|(measured, pair)| (measured, holds(pair)))
    };
    let hyder = workloads_of_orders().map(|workload| {
        let (functors, optimistic) =
            (of(workload, OrderNumbers::Declared)?, of(workload, OrderNumbers::Dependent)?);
        Some((workload, functors.run.throughput / optimistic.run.throughput.max(1.0)))
    });
    let hyder = hyder.into_iter().collect::<Option<Vec<_>>>().map(|ratios| {
        let tell = ratios.iter().map(|(workload, ratio)| {
            format!("{}, {} districts of a node: {ratio:.2} times", title_of(*workload), districts(*workload))
        });
        let first_and_last = ratios.first().zip(ratios.last());
        (tell.collect::<Vec<_>>().join("; "), first_and_last.is_some_and(|(first, last)| last.1 > first.1))
    });
    vec![
        judgement(
            ("ALO-X11 f", "Fan and Golab §IV-E"),
            "the optimistic form starts over ever more often with contention".to_owned(),
            with(OrderNumbers::Dependent, &|(many, few)| few > many + CHANCE),
        ),
        judgement(
            ("ALO-X11 f", "Fan and Golab §IV-E"),
            "with key dependency nothing starts over".to_owned(),
            with(OrderNumbers::Declared, &|(many, few)| many <= 1.0 && few <= 1.0),
        ),
        judgement(
            ("ALO-X12", "Fan and Golab §IV-E, future work: Hyder is not built"),
            "functors over the optimistic form: the gap widens with contention".to_owned(),
            hyder,
        ),
    ]
}

/// ALO-X11 g.
fn of_replicas(points: &[AblationPoint]) -> Vec<Judgement> {
    let from = ("ALO-X11 g", "Fan and Golab §V-A2: fault tolerance is off there");
    let each = workloads_of_replicas().into_iter().map(|workload| {
        let all = Kept::ALL.map(|kept| {
            let own = points.iter().filter(|point| {
                point.setting.base.workload == workload && point.setting.variant == Variant::Kept(kept)
            });
            best(own).map(|point| (kept, point))
        });
        let found = all.into_iter().collect::<Option<Vec<_>>>().map(|all| {
            let each = all.iter().map(|(kept, point)| {
                let late = point.run.latency_us_mean / 1e3;
                format!("{}: {:.0}/s, {late:.2} ms", kept.name(), point.run.throughput)
            });
            let rates: Vec<f64> = all.iter().map(|(_, point)| point.run.throughput).collect();
            let holds = rates.iter().all(|rate| *rate <= rates[0] * (1.0 + CHANCE));
            (each.collect::<Vec<_>>().join("; "), holds)
        });
        judgement(from, format!("{}: fault tolerance gains no throughput", title_of(workload)), found)
    });
    each.collect()
}

/// Points for which all statements hold, for tests.
#[cfg(test)]
pub(super) fn as_expected() -> Vec<AblationPoint> {
    use super::{AblationSetting, Details, settings};
    use crate::scale::aloha::{AlohaRun, Drive};
    let point = |setting: AblationSetting| {
        let length = setting.base.epochs.microseconds as f64;
        let strict = setting.base.epochs.policy == EpochPolicy::ManagedStrictly;
        let few = 100.0 / f64::from(districts(setting.base.workload).max(1));
        let mut details = Details::default();
        let mut throughput = 1e5;
        match setting.variant {
            Variant::Length => {
                throughput = 1e5 * length.min(20_000.0);
                details.half_load_us_mean = length;
            }
            Variant::Stalled(stall) => {
                throughput = if strict { 8e4 } else { 1e5 };
                details.starts = vec![10; 300];
                details.longest_pause_ms = if strict { stall } else { stall.saturating_sub(25) } as f64;
            }
            Variant::Early(early) => details.acknowledged_us_mean = f64::from(u8::from(early)) * 900.0,
            Variant::Numbers(OrderNumbers::Declared) => {}
            Variant::Numbers(OrderNumbers::Dependent) => {
                throughput = 5e4 / few;
                details.restarts = throughput * few;
            }
            Variant::Kept(kept) => throughput = if kept == Kept::Nowhere { 1e5 } else { 9e4 },
        }
        if let Drive::Window(window) = setting.base.drive {
            throughput *= 1.0 - 1.0 / window as f64;
            details.restarts *= 1.0 - 1.0 / window as f64;
        }
        let run = AlohaRun { throughput, latency_us_mean: 1_000.0, ..AlohaRun::default() };
        AblationPoint { setting, run, details }
    };
    let all = settings(&Ablation::ALL, 8).into_iter().flat_map(|setting| {
        let tries = setting.base.tries().into_iter();
        tries.map(move |base| AblationSetting { base, ..setting })
    });
    all.map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::shapes::Verdict;

    fn differing(alter: impl Fn(&mut AblationPoint)) -> Vec<&'static str> {
        let mut points = as_expected();
        points.iter_mut().for_each(alter);
        let judgements = judge(&points, &Ablation::ALL).into_iter();
        let differ = judgements.filter(|judgement| judgement.verdict != Verdict::Holds);
        differ.map(|judgement| judgement.experiment).collect()
    }

    #[test]
    fn what_is_as_expected_holds() {
        let none: [&str; 0] = [];
        assert_eq!(differing(|_| ()), none);
        let judgements = judge(&[], &Ablation::ALL);
        assert_eq!(judgements.len(), 4 + 5 + 4 + 3 + 2);
        assert!(judgements.iter().all(|judgement| judgement.verdict == Verdict::NotMeasured));
        assert_eq!(judge(&as_expected(), &[Ablation::Answers]).len(), 4);
    }

    #[test]
    fn statements_can_differ() {
        assert_eq!(differing(|point| point.details.half_load_us_mean = 1.0), ["ALO-X10"; 4]);
        assert_eq!(differing(|point| point.details.longest_pause_ms = 9.0), ["ALO-X11 a"; 4]);
        assert_eq!(differing(|point| point.details.acknowledged_us_mean *= 2.0), ["ALO-X11 d"; 4]);
        assert_eq!(differing(|point| point.details.restarts = 0.0), ["ALO-X11 f"]);
        assert_eq!(differing(|point| point.details.restarts = 1e4), ["ALO-X11 f"; 1]);
        let faster = |point: &mut AblationPoint| {
            if point.setting.variant == Variant::Kept(Kept::OnDisk) {
                point.run.throughput *= 2.0;
            }
        };
        assert_eq!(differing(faster), ["ALO-X11 g"; 2]);
    }
}
