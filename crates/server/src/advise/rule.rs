//! From figures to a recommendation (Ren, Thomson and Abadi, §5; DET-X19; for `aloha`, Fan and Golab, §V).
//!
//! # The rule
//! 1. *Who takes part*: all engines; `aloha` only if its simulated throughput is more than [`COSTS_MARGIN`] above that of every
//!    other engine, and its slowest real run more than [`MARGIN`] above the fastest of every other one's. With one simulated node
//!    the real runs alone say so. It is where partitions wait for each other under contention that this comes about, or where
//!    functors save the waiting; the simulation charges it by costs of its own, where the other engines share theirs.
//! 2. *Throughput decides*: that of the simulated cluster; if it has one node only, that of the real runs. Engines within
//!    [`MARGIN`] of the best are close to it, and the others are out. Where latency is preferred, engines with [`ENOUGH`] of the
//!    best throughput stay, and of these those within [`MARGIN`] of the lowest 99th percentile at a light load.
//! 3. *Slow nodes*: of those that are left, who keeps [`SLOW_POINTS`] percentage points less of its throughput beside a slow
//!    node than another one is out.
//! 4. *Fewest parts*: of those that are left, `aloha` if it takes part; else `serial` if no transaction spans partitions, as nothing waits there for another
//!    node; else `calvin`, or `calvin-vll` if that is left alone or its slowest real run is more than [`MARGIN`] ahead of the
//!    other's fastest; else `two-phase`, which has no replicas and no checkpoints.
//!
//! The reasons are the study's terms with the figures to each, whether they speak for the choice or against it.

use std::fmt;

use ordain_db::engine::EngineKind;
use ordain_sim::scale::advice::FACTOR;

use super::figures::{EngineFigures, Figures};
use super::options::Preference;
use crate::bench::report::thousands;

/// Engines that differ by no more than this share are taken for equal.
pub const MARGIN: f64 = 0.1;

/// How far the costs of `aloha` and those of the others may be off from each other: of the scenarios in which they were measured, 3 %
/// are predicted worse than that.
pub const COSTS_MARGIN: f64 = 1.0 / 3.0;

/// The share of the best throughput that an engine must have where latency is preferred.
pub const ENOUGH: f64 = 0.5;

/// Percentage points of throughput kept beside a slow node that make a difference.
pub const SLOW_POINTS: f64 = 20.0;

/// What a reason is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    /// Transactions per second.
    Throughput,
    /// Transactions that span partitions, and conflicts among transactions.
    Contention,
    /// Calls whose keys depend on data.
    Dependency,
    /// How long a call takes.
    Latency,
    /// What one slow node does to all.
    SlowNodes,
    /// What locks cost.
    Locks,
    /// What versions and functors gain, instead of locks.
    Versions,
    /// What the real runs say.
    Real,
    /// What the recommended engine does not have.
    Limits,
}

impl Topic {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Throughput => "throughput",
            Topic::Contention => "contention",
            Topic::Dependency => "dependency",
            Topic::Latency => "latency",
            Topic::SlowNodes => "slow nodes",
            Topic::Locks => "locks",
            Topic::Versions => "versions",
            Topic::Real => "real runs",
            Topic::Limits => "limits",
        }
    }
}

/// One reason, in sentences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// What it is about.
    pub topic: Topic,
    /// The figures, and what they mean.
    pub text: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.topic.name(), self.text)
    }
}

/// What is recommended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recommendation {
    /// The engine.
    pub engine: EngineKind,
    /// Why, and what speaks against it.
    pub reasons: Vec<Reason>,
}

/// Applies the [rule](self).
///
/// # Errors
/// When there are no figures.
pub fn recommend(figures: &Figures, preference: Preference) -> Result<Recommendation, String> {
    let close = close(figures, preference);
    let chosen = fewest_parts(figures, &steady(figures, close.clone()));
    let chosen = chosen.ok_or("there are no figures: measure at least one engine")?;
    let reasons = [
        throughput(figures, chosen, preference, &close),
        Some(contention(figures)),
        Some(dependency(figures)),
        Some(latency(figures, preference)),
        slow_nodes(figures),
        locks(figures),
        versions(figures),
        real_runs(figures, chosen),
        limits(chosen),
    ];
    Ok(Recommendation { engine: chosen.engine(), reasons: reasons.into_iter().flatten().collect() })
}

/// What decides: transactions per second.
fn deciding(figures: &Figures, engine: &EngineFigures) -> f64 {
    if figures.nodes > 1 { engine.simulated.full.throughput } else { engine.real.throughput }
}

fn highest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

/// How far `aloha` is ahead of all other engines.
struct Lead {
    /// Simulated throughput over the highest of the others.
    simulated: f64,
    /// The slowest real run over the fastest of the others'.
    real: f64,
}

impl Lead {
    /// None if `aloha` was not measured.
    fn of(figures: &Figures) -> Option<Lead> {
        let (aloha, others): (Vec<_>, Vec<_>) =
            figures.engines.iter().partition(|engine| engine.engine() == EngineKind::Aloha);
        let aloha = aloha.first()?;
        let over = |own: f64, of: fn(&EngineFigures) -> f64| {
            own / highest(others.iter().map(|other| of(other))).max(1e-9)
        };
        Some(Lead {
            simulated: over(aloha.simulated.full.throughput, |other| other.simulated.full.throughput),
            real: over(aloha.real.throughput_least, |other| other.real.throughput_most),
        })
    }

    /// Whether that is enough.
    fn is_clear(&self, figures: &Figures) -> bool {
        (figures.nodes == 1 || self.simulated > 1.0 + COSTS_MARGIN) && self.real > 1.0 + MARGIN
    }
}

/// The first step.
fn taking_part(figures: &Figures) -> Vec<&EngineFigures> {
    let has_aloha = Lead::of(figures).is_none_or(|lead| lead.is_clear(figures));
    let takes_part = |engine: &&EngineFigures| has_aloha || engine.engine() != EngineKind::Aloha;
    figures.engines.iter().filter(takes_part).collect()
}

/// The second step.
fn close(figures: &Figures, preference: Preference) -> Vec<&EngineFigures> {
    let engines = taking_part(figures);
    let best = highest(engines.iter().map(|engine| deciding(figures, engine)));
    let at_least = |share: f64| {
        let enough = move |engine: &&EngineFigures| deciding(figures, engine) >= best * share;
        engines.iter().copied().filter(enough)
    };
    match preference {
        Preference::Throughput => at_least(1.0 - MARGIN).collect(),
        Preference::Latency => {
            let latency = |engine: &EngineFigures| engine.simulated.light.latency_us_p99 as f64;
            let lowest = at_least(ENOUGH).map(latency).fold(f64::INFINITY, f64::min);
            at_least(ENOUGH).filter(|engine| latency(engine) <= lowest * (1.0 + MARGIN)).collect()
        }
    }
}

/// The third step.
fn steady<'a>(figures: &Figures, engines: Vec<&'a EngineFigures>) -> Vec<&'a EngineFigures> {
    if figures.nodes == 1 {
        return engines;
    }
    let most = highest(engines.iter().map(|engine| engine.simulated.slow_percent));
    engines.into_iter().filter(|engine| engine.simulated.slow_percent >= most - SLOW_POINTS).collect()
}

/// The fourth step.
fn fewest_parts<'a>(figures: &Figures, left: &[&'a EngineFigures]) -> Option<&'a EngineFigures> {
    let find = |kind: EngineKind| left.iter().copied().find(|engine| engine.engine() == kind);
    let serial = find(EngineKind::Serial).filter(|_| figures.profile.multi_partition_percent == 0.0);
    let (hash, vll) = (find(EngineKind::Calvin), find(EngineKind::CalvinVll));
    let lighter = vll.filter(|vll| hash.is_none_or(|hash| lighter_locks_pay(vll, hash)));
    let best =
        left.iter().copied().max_by(|one, other| deciding(figures, one).total_cmp(&deciding(figures, other)));
    find(EngineKind::Aloha).or(serial).or(lighter).or(hash).or(find(EngineKind::TwoPhase)).or(best)
}

/// Whether `calvin-vll` is ahead of `calvin` for real, whatever else the machine did meanwhile.
fn lighter_locks_pay(vll: &EngineFigures, hash: &EngineFigures) -> bool {
    vll.real.throughput_least > hash.real.throughput_most * (1.0 + MARGIN)
}

/// A figure of each engine, in a list.
fn each(figures: &Figures, show: impl Fn(&EngineFigures) -> String) -> String {
    let shown: Vec<String> =
        figures.engines.iter().map(|engine| format!("{} {}", engine.name(), show(engine))).collect();
    shown.join(", ")
}

/// The ratios of all others to one.
fn ratios(figures: &Figures, to: &EngineFigures, of: impl Fn(&EngineFigures) -> f64) -> String {
    let others = figures.engines.iter().filter(|engine| engine.engine() != to.engine());
    let ratio = |other: &EngineFigures| format!("{} {:.2}", other.name(), of(other) / of(to).max(1e-9));
    others.map(ratio).collect::<Vec<_>>().join(", ")
}

fn throughput(
    figures: &Figures,
    chosen: &EngineFigures,
    preference: Preference,
    close: &[&EngineFigures],
) -> Option<Reason> {
    let place = match figures.nodes {
        1 => format!("for real on {} partitions", figures.partitions),
        nodes => format!("on {nodes} simulated nodes"),
    };
    let own = thousands(deciding(figures, chosen));
    let mut text = format!("{} does {own} transactions/s {place}", chosen.name());
    let others = ratios(figures, chosen, |engine| deciding(figures, engine));
    if !others.is_empty() {
        text.push_str(&format!("; of that, {others}"));
    }
    text.push('.');
    let names: Vec<&str> = close.iter().map(|engine| engine.name()).collect();
    let within = MARGIN * 100.0;
    if preference == Preference::Latency {
        let enough = ENOUGH * 100.0;
        text.push_str(&format!(
            " With at least {enough:.0}% of the best throughput, the lowest latency within {within:.0}% have: {}.",
            names.join(", ")
        ));
    } else if names.len() > 1 {
        text.push_str(&format!(" Within {within:.0}% of the best: {}.", names.join(", ")));
    }
    Some(Reason { topic: Topic::Throughput, text })
}

fn contention(figures: &Figures) -> Reason {
    let profile = &figures.profile;
    let conflict = profile.contention_index * 100.0;
    let mut text = if profile.multi_partition_percent > 0.0 {
        format!(
            "{:.1}% of the transactions span partitions, {:.1} each, and of two that meet at a partition {conflict:.2}% conflict.",
            profile.multi_partition_percent, profile.participants
        )
    } else {
        format!(
            "No transaction spans partitions: none waits for another node. Of two at a partition {conflict:.2}% conflict, and \
             each runs to its end before the next one begins."
        )
    };
    let find = |kind| figures.engines.iter().find(|engine| engine.engine() == kind);
    if let Some(two_phase) = find(EngineKind::TwoPhase).filter(|_| profile.multi_partition_percent > 0.0) {
        let (full, real) = (&two_phase.simulated.full, two_phase.real.restarts);
        let simulated = full.restarts * 1e3 / full.throughput.max(1e-9);
        let restarts = match figures.nodes {
            1 => format!("{real:.2} attempts anew for each 1,000 transactions"),
            _ => format!("{simulated:.2} attempts anew for each 1,000 transactions, and for real {real:.2}"),
        };
        text.push_str(&format!(
            " two-phase begins {restarts}, because of deadlocks; ordered locks have none (Ren et al. §3.3, §5)."
        ));
        if figures.nodes > 1 {
            let busy = each(figures, |engine| format!("{:.0}%", engine.simulated.full.busy_percent));
            text.push_str(&format!(
                " At full load the nodes compute for so much of the time, and wait for each other for the rest: {busy}."
            ));
        }
    }
    Reason { topic: Topic::Contention, text }
}

fn dependency(figures: &Figures) -> Reason {
    let percent = figures.profile.dependent_percent;
    let text = if percent == 0.0 {
        "No transaction depends on data: none is reconnoitred (Ren et al. §3.6).".to_owned()
    } else {
        let ordered = figures.engines.iter().filter(|engine| engine.engine().is_ordered());
        let missed: Vec<String> =
            ordered.map(|engine| format!("{} {:.1}%", engine.name(), engine.real.missed_percent)).collect();
        format!(
            "{percent:.1}% of the transactions depend on data. Where there is an order they are reconnoitred first, and start over \
             if that has changed, for real after so many of these runs: {}. two-phase keeps what it read locked instead (Ren \
             et al. §3.6). On aloha they have no functors.",
            missed.join(", ")
        )
    };
    Reason { topic: Topic::Dependency, text }
}

fn latency(figures: &Figures, preference: Preference) -> Reason {
    let shown = each(figures, |engine| {
        let light = &engine.simulated.light;
        format!("{} ({})", thousands(light.latency_us_p50 as f64), thousands(light.latency_us_p99 as f64))
    });
    let mut text =
        format!("At a light load, the simulated median (99th percentile) in microseconds is: {shown}.");
    let find = |kind| figures.engines.iter().find(|engine| engine.engine() == kind);
    let pair = find(EngineKind::Calvin).zip(find(EngineKind::TwoPhase));
    if let Some((calvin, two_phase)) = pair.filter(|_| preference == Preference::Throughput) {
        let [calvin, two_phase] =
            [calvin, two_phase].map(|engine| engine.simulated.light.latency_us_p99 as f64);
        if two_phase < calvin * (1.0 - MARGIN) {
            text.push_str(
                " An order is agreed on before anything runs, which takes time that two-phase does not need (Ren et al. §3.7): if \
                 latency matters more, see --prefer latency.",
            );
        }
    }
    Reason { topic: Topic::Latency, text }
}

fn slow_nodes(figures: &Figures) -> Option<Reason> {
    let nodes = figures.nodes;
    if nodes == 1 {
        return None;
    }
    let shown = each(figures, |engine| format!("{:.0}%", engine.simulated.slow_percent));
    let text = format!(
        "With one of {nodes} nodes slowed to 1/{FACTOR}, so much of the throughput is left: {shown} (Ren et al. §3.5). \
         That is without the option throttle, which lets the others keep more of theirs."
    );
    Some(Reason { topic: Topic::SlowNodes, text })
}

fn locks(figures: &Figures) -> Option<Reason> {
    let find = |kind| figures.engines.iter().find(|engine| engine.engine() == kind);
    let (hash, vll) = (find(EngineKind::Calvin)?, find(EngineKind::CalvinVll)?);
    let ratio = vll.real.throughput / hash.real.throughput.max(1e-9);
    let verdict = if lighter_locks_pay(vll, hash) {
        "lighter locks pay here: transactions are short, and wait"
    } else {
        "as far as rounds differ, the lock manager is no bottleneck here (Ren et al. §3.3.1)"
    };
    let text = format!(
        "For real, calvin-vll does {ratio:.2} times what calvin does, with {:.2} and {:.2} us of CPU for each transaction: {verdict}.",
        vll.real.cpu_us, hash.real.cpu_us
    );
    Some(Reason { topic: Topic::Locks, text })
}

fn versions(figures: &Figures) -> Option<Reason> {
    let lead = Lead::of(figures)?;
    let mut text = "aloha locks nothing, so that who writes waits for nobody's reads to be done. ".to_owned();
    text.push_str(&match figures.profile.functor_percent {
        0.0 => "No key that is written has a functor: it waits for what others read, as engines with locks do, and keeps \
                versions besides (Fan and Golab §IV)."
            .to_owned(),
        percent => format!(
            "{percent:.0}% of the keys that are written have functors, which need no reads of other partitions (Fan and Golab \
             §IV)."
        ),
    });
    let figure = match figures.nodes {
        1 => format!(" Its slowest real run does {:.2} times", lead.real),
        _ => format!(
            " Simulated it does {:.2} times what the best of the others does, and its slowest real run {:.2} times",
            lead.simulated, lead.real
        ),
    };
    text.push_str(&figure);
    text.push_str(" what the fastest of the others does: ");
    let (simulated, real) = (1.0 + COSTS_MARGIN, 1.0 + MARGIN);
    let needed = match figures.nodes {
        1 => format!("more than {real:.2}"),
        _ => format!("more than {simulated:.2} and {real:.2}"),
    };
    text.push_str(&match lead.is_clear(figures) {
        true => format!("{needed}, so it takes part."),
        false => format!("not {needed}, so it is not chosen."),
    });
    Some(Reason { topic: Topic::Versions, text })
}

/// Whether the real runs agree, where they do not decide.
fn real_runs(figures: &Figures, chosen: &EngineFigures) -> Option<Reason> {
    if figures.nodes == 1 {
        return None;
    }
    let best =
        figures.engines.iter().max_by(|one, other| one.real.throughput.total_cmp(&other.real.throughput))?;
    let (own, most) = (thousands(chosen.real.throughput), thousands(best.real.throughput));
    let place = format!("in one process with {} partitions", figures.partitions);
    let text = if chosen.real.throughput >= best.real.throughput * (1.0 - MARGIN) {
        format!("They agree: {own} transactions/s {place}, and {most} are the most.")
    } else {
        format!(
            "They do not agree: {} does {own} transactions/s {place}, and {} {most}. Partitions share this machine's cores there, and \
             messages cross no network; so if that is how the database is to run, see --nodes 1.",
            chosen.name(),
            best.name()
        )
    };
    Some(Reason { topic: Topic::Real, text })
}

fn limits(chosen: &EngineFigures) -> Option<Reason> {
    let text = match chosen.engine() {
        EngineKind::TwoPhase => {
            "two-phase has no replicas, no checkpoints and no backups, and was made to be compared with: see \
             docs/engines/two-phase.md before it is used."
        }
        EngineKind::Aloha => {
            "On aloha, a procedure's guard, functors and run must agree, which is up to its author: see docs/engines/aloha.md before \
             functors are declared."
        }
        _ => return None,
    };
    Some(Reason { topic: Topic::Limits, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use ordain_sim::scale::advice::{AdvicePoint, Observed};
    use ordain_workload::Profile;

    use super::super::figures::RealFigures;
    use super::*;

    const PROFILE: Profile = Profile {
        calls: 2_000,
        snapshot_percent: 0.0,
        multi_partition_percent: 20.0,
        participants: 2.0,
        dependent_percent: 0.0,
        keys: 10.0,
        writing_percent: 100.0,
        functor_percent: 0.0,
        contention_index: 0.01,
    };

    /// Simulated and real throughput, 99th percentile at a light load, and what is left beside a slow node.
    type Row = (EngineKind, f64, f64, u64, f64);

    fn engine((engine, simulated, real, latency_us_p99, slow_percent): Row) -> EngineFigures {
        let is_ordered = engine.is_ordered();
        let full = Observed {
            throughput: simulated,
            latency_us_p50: 20_000,
            latency_us_p99: 40_000,
            busy_percent: if is_ordered { 97.4 } else { 66.0 },
            restarts: if is_ordered { 0.0 } else { simulated / 50.0 },
            deadlocks: if is_ordered { 0.0 } else { simulated / 100.0 },
            reconnaissance: 0.0,
        };
        let light = Observed { latency_us_p50: latency_us_p99 / 2, latency_us_p99, ..full };
        EngineFigures {
            simulated: AdvicePoint { engine, window: 128, full, light, slow_percent },
            real: RealFigures {
                throughput_least: real * 0.9,
                throughput: real,
                throughput_most: real * 1.1,
                cpu_us: 1e6 / real,
                latency_us_p50: 5_000.0,
                latency_us_p99: 9_000.0,
                restarts: if is_ordered { 0.0 } else { 2.5 },
                deadlocks: 0.0,
                aborted_percent: 0.0,
                missed_percent: if is_ordered { 12.5 } else { 0.0 },
            },
        }
    }

    fn figures(rows: [Row; 5], nodes: u16, multi_partition_percent: f64) -> Figures {
        Figures {
            workload: "micro".to_owned(),
            nodes,
            partitions: 2,
            profile: Profile { multi_partition_percent, ..PROFILE },
            engines: rows.map(engine).to_vec(),
        }
    }

    const CALVIN: EngineKind = EngineKind::Calvin;
    const VLL: EngineKind = EngineKind::CalvinVll;
    const SERIAL: EngineKind = EngineKind::Serial;
    const TWO_PHASE: EngineKind = EngineKind::TwoPhase;
    const ALOHA: EngineKind = EngineKind::Aloha;

    /// Contended transactions over partitions.
    const CONTENDED: [Row; 5] = [
        (CALVIN, 400e3, 200e3, 2_000, 40.0),
        (VLL, 398e3, 205e3, 2_000, 40.0),
        (SERIAL, 50e3, 150e3, 2_100, 40.0),
        (TWO_PHASE, 220e3, 120e3, 900, 40.0),
        (ALOHA, 250e3, 125e3, 2_000, 40.0),
    ];

    /// Transactions of one partition.
    const LOCAL: [Row; 5] = [
        (CALVIN, 800e3, 400e3, 1_500, 80.0),
        (VLL, 800e3, 400e3, 1_500, 80.0),
        (SERIAL, 800e3, 410e3, 1_500, 80.0),
        (TWO_PHASE, 560e3, 300e3, 300, 80.0),
        (ALOHA, 790e3, 395e3, 1_500, 80.0),
    ];

    fn with(rows: [Row; 5], change: Row) -> [Row; 5] {
        rows.map(|row| if row.0 == change.0 { change } else { row })
    }

    #[test]
    fn the_rule_case_by_case() {
        use Preference::{Latency, Throughput};
        let cases = [
            ("contended and distributed", CONTENDED, 4, 20.0, Throughput, CALVIN),
            ("all local", LOCAL, 4, 0.0, Throughput, SERIAL),
            ("few distributed, serial as good", LOCAL, 4, 1.0, Throughput, CALVIN),
            ("latency, and enough throughput", CONTENDED, 4, 20.0, Latency, TWO_PHASE),
            (
                "latency, and not enough throughput",
                with(CONTENDED, (TWO_PHASE, 199e3, 120e3, 900, 40.0)),
                4,
                20.0,
                Latency,
                CALVIN,
            ),
            ("latency, one node: the real throughput counts", CONTENDED, 1, 20.0, Latency, TWO_PHASE),
            (
                "lighter locks pay",
                with(CONTENDED, (VLL, 400e3, 300e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                VLL,
            ),
            (
                "lighter locks may be ahead by chance",
                with(CONTENDED, (VLL, 400e3, 240e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                CALVIN,
            ),
            (
                "hashed locks fall behind",
                with(CONTENDED, (CALVIN, 300e3, 200e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                VLL,
            ),
            (
                "two-phase is far ahead",
                with(CONTENDED, (TWO_PHASE, 500e3, 120e3, 900, 40.0)),
                4,
                20.0,
                Throughput,
                TWO_PHASE,
            ),
            (
                "two-phase is ahead by less than the margin",
                with(CONTENDED, (TWO_PHASE, 430e3, 120e3, 900, 40.0)),
                4,
                20.0,
                Throughput,
                CALVIN,
            ),
            (
                "as good, and better beside a slow node",
                with(CONTENDED, (TWO_PHASE, 400e3, 120e3, 900, 61.0)),
                4,
                20.0,
                Throughput,
                TWO_PHASE,
            ),
            (
                "versions pay, simulated and for real",
                with(CONTENDED, (ALOHA, 540e3, 300e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                ALOHA,
            ),
            (
                "versions are ahead by no more than what costs are off by",
                with(CONTENDED, (ALOHA, 530e3, 300e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                CALVIN,
            ),
            (
                "versions are ahead in the simulation only",
                with(CONTENDED, (ALOHA, 900e3, 270e3, 2_000, 40.0)),
                4,
                20.0,
                Throughput,
                CALVIN,
            ),
            (
                "one node: the real runs decide about versions, too",
                with(CONTENDED, (ALOHA, 100e3, 300e3, 2_000, 40.0)),
                1,
                20.0,
                Throughput,
                ALOHA,
            ),
            (
                "latency: who does not take part does not set what is enough",
                with(CONTENDED, (ALOHA, 500e3, 500e3, 500, 40.0)),
                4,
                20.0,
                Latency,
                TWO_PHASE,
            ),
            (
                "latency: versions pay, and others are no sooner",
                with(CONTENDED, (ALOHA, 540e3, 300e3, 900, 40.0)),
                4,
                20.0,
                Latency,
                ALOHA,
            ),
            (
                "one node: the real runs decide",
                with(CONTENDED, (SERIAL, 50e3, 300e3, 2_100, 40.0)),
                1,
                20.0,
                Throughput,
                SERIAL,
            ),
            (
                "one node cannot be slow beside others",
                with(CONTENDED, (TWO_PHASE, 400e3, 200e3, 900, 99.0)),
                1,
                20.0,
                Throughput,
                CALVIN,
            ),
        ];
        for (name, rows, nodes, multi_partition_percent, preference, expected) in cases {
            let figures = figures(rows, nodes, multi_partition_percent);
            let recommendation = recommend(&figures, preference).unwrap();
            assert_eq!(recommendation.engine, expected, "{name}: {:?}", recommendation.reasons);
        }
    }

    fn text(recommendation: &Recommendation) -> String {
        recommendation.reasons.iter().map(|reason| format!("{reason}\n")).collect()
    }

    #[test]
    fn each_reason_has_its_figures() {
        let mut dependent = figures(CONTENDED, 4, 20.0);
        dependent.profile.dependent_percent = 7.25;
        let expected = "\
throughput: calvin does 400,000 transactions/s on 4 simulated nodes; of that, calvin-vll 0.99, serial 0.12, two-phase 0.55, aloha 0.62. \
Within 10% of the best: calvin, calvin-vll.
contention: 20.0% of the transactions span partitions, 2.0 each, and of two that meet at a partition 1.00% conflict. two-phase \
begins 20.00 attempts anew for each 1,000 transactions, and for real 2.50, because of deadlocks; ordered locks have none \
(Ren et al. §3.3, §5). At full load the nodes compute for so much of the time, and wait for each other for the rest: calvin 97%, \
calvin-vll 97%, serial 97%, two-phase 66%, aloha 97%.
dependency: 7.2% of the transactions depend on data. Where there is an order they are reconnoitred first, and start over if that \
has changed, for real after so many of these runs: calvin 12.5%, calvin-vll 12.5%, serial 12.5%, aloha 12.5%. two-phase keeps \
what it read locked instead (Ren et al. §3.6). On aloha they have no functors.
latency: At a light load, the simulated median (99th percentile) in microseconds is: calvin 1,000 (2,000), calvin-vll 1,000 \
(2,000), serial 1,050 (2,100), two-phase 450 (900), aloha 1,000 (2,000). An order is agreed on before anything runs, which takes time that two-phase \
does not need (Ren et al. §3.7): if latency matters more, see --prefer latency.
slow nodes: With one of 4 nodes slowed to 1/4, so much of the throughput is left: calvin 40%, calvin-vll 40%, serial 40%, \
two-phase 40%, aloha 40% (Ren et al. §3.5). That is without the option throttle, which lets the others keep more of theirs.
locks: For real, calvin-vll does 1.02 times what calvin does, with 4.88 and 5.00 us of CPU for each transaction: as far as rounds \
differ, the lock manager is no bottleneck here (Ren et al. §3.3.1).
versions: aloha locks nothing, so that who writes waits for nobody's reads to be done. No key that is written has a functor: it \
waits for what others read, as engines with locks do, and keeps versions besides (Fan and Golab §IV). Simulated it does 0.62 times \
what the best of the others does, and its slowest real run 0.50 times what the fastest of the others does: not more than 1.33 and \
1.10, so it is not chosen.
real runs: They agree: 200,000 transactions/s in one process with 2 partitions, and 205,000 are the most.
";
        assert_eq!(text(&recommend(&dependent, Preference::Throughput).unwrap()), expected);
    }

    #[test]
    fn what_speaks_against_the_choice_is_said_too() {
        let said = |figures: &Figures, preference| text(&recommend(figures, preference).unwrap());
        let latency = said(&figures(CONTENDED, 4, 20.0), Preference::Latency);
        assert!(latency.contains("limits: two-phase has no replicas"), "{latency}");
        assert!(latency.contains("the lowest latency within 10% have: two-phase."), "{latency}");
        assert!(!latency.contains("see --prefer latency"), "{latency}");
        assert!(latency.contains("They do not agree: two-phase does 120,000"), "{latency}");
        let ahead = with(CONTENDED, (ALOHA, 900e3, 400e3, 2_000, 40.0));
        let mut functors = figures(ahead, 4, 20.0);
        functors.profile.functor_percent = 45.0;
        let versions = said(&functors, Preference::Throughput);
        assert!(versions.contains("45% of the keys that are written have functors"), "{versions}");
        let lead = "2.25 times what the best of the others does, and its slowest real run 1.60 times what the fastest of the others \
                    does: more than 1.33 and 1.10, so it takes part.";
        assert!(versions.contains(lead), "{versions}");
        assert!(versions.contains("limits: On aloha, a procedure's guard"), "{versions}");
        let one = said(&figures(CONTENDED, 1, 20.0), Preference::Throughput);
        assert!(one.contains("two-phase begins 2.50 attempts") && !one.contains("nodes compute"), "{one}");
        let alone = said(&figures(CONTENDED, 1, 0.0), Preference::Throughput);
        assert!(alone.contains("for real on 2 partitions") && !alone.contains("slow nodes"), "{alone}");
        assert!(
            alone.contains("No transaction spans partitions") && !alone.contains("real runs:"),
            "{alone}"
        );
        let nothing = Figures { engines: Vec::new(), ..figures(CONTENDED, 4, 0.0) };
        assert!(recommend(&nothing, Preference::Throughput).is_err());
    }
}
