//! How long calls take, by kind, from the client's call to its answer: ordering and reconnaissance included (Ren et al. §3.7,
//! Figure 7: DET-X16, DET-61).
//!
//! Clients call at a rate of their own, below what the nodes can do: at full load a latency is the length of a queue, and tells
//! nothing of an engine.

use std::collections::BTreeMap;

use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::limits::RESTARTS_BEFORE_DISTRIBUTED_HELP;
use ordain_db::message::Operation;
use ordain_workload::micro::{CallKind, Micro};

use super::{DependentSetting, plan, workload};
use crate::machine::cost::CostTable;
use crate::plan::{ClientPlan, Plan};
use crate::time::{Nanoseconds, SECOND};
use crate::world::World;

/// Share of calls that touch two nodes, and of those that are dependent, in percent: the text tells neither.
pub const SHARE: f64 = 20.0;

/// Updates of each entry of the index in a second.
pub const VOLATILITY: f64 = 1.0;

/// Calls per second that each node's client makes: about a third and two thirds of what a node can do.
pub const LOADS: [u64; 2] = [2_000, 3_500];

/// Calls that a client leaves unanswered before it makes no more: far more than a node that keeps up has.
const OUTSTANDING_MAX: u64 = 4_000;

/// The kinds of calls that are told apart.
pub const KINDS: [CallKind; 4] =
    [CallKind::Local, CallKind::Distributed, CallKind::Dependent, CallKind::DependentDistributed];

/// What is to be measured in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencySetting {
    /// The engine of all nodes.
    pub engine: EngineKind,
    /// Calls per second that each node's client makes.
    pub offered: u64,
}

/// The result of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// What was measured.
    pub setting: LatencySetting,
    /// The latencies of all calls that were answered, by kind, ascending.
    pub of: BTreeMap<CallKind, Vec<Nanoseconds>>,
}

impl Latencies {
    /// A percentile of a kind's latencies; `None` if there were no such calls.
    pub fn percentile(&self, kind: CallKind, percent: f64) -> Option<Nanoseconds> {
        let latencies = self.of.get(&kind)?;
        let last = latencies.len().checked_sub(1)?;
        latencies.get(((latencies.len() as f64 * percent / 100.0) as usize).min(last)).copied()
    }
}

/// All runs.
pub fn latency_settings() -> Vec<LatencySetting> {
    let all = LOADS
        .into_iter()
        .flat_map(|offered| super::ENGINES.into_iter().map(move |engine| LatencySetting { engine, offered }));
    all.collect()
}

/// Runs one setting.
///
/// # Errors
/// When the workload refuses the setting.
pub fn measure_latency(
    setting: &LatencySetting,
    measured: &CostTable,
    warm_up: Nanoseconds,
    time: Nanoseconds,
) -> Result<Latencies, Error> {
    let LatencySetting { engine, offered } = *setting;
    let mix = DependentSetting {
        engine,
        distributed_percent: SHARE,
        dependent_percent: SHARE,
        volatility: VOLATILITY,
        position_percent: 0,
        help_after: RESTARTS_BEFORE_DISTRIBUTED_HELP,
    };
    let base = plan(&mix, measured, OUTSTANDING_MAX);
    // Pauses are even, up to twice their mean. Each message is a step of its own: what it says leaves at once.
    let clients = ClientPlan { think: 2 * SECOND / offered.max(1), ..base.clients.clone() };
    let plan = Plan { clients, step_events: 1, ..base };
    let micro = Micro::new(workload(&mix))?;
    let mut world = World::new(&plan, &micro)?;
    let run = world.measure_calls(warm_up, time);
    let mut of: BTreeMap<CallKind, Vec<Nanoseconds>> = BTreeMap::new();
    for (operation, latency) in run.calls {
        if let Operation::Call { procedure, arguments } = operation
            && let Some(kind) = micro.kind_of(procedure, &arguments)
        {
            of.entry(kind).or_default().push(latency);
        }
    }
    of.values_mut().for_each(|latencies| latencies.sort_unstable());
    Ok(Latencies { setting: *setting, of })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Benchmark, costs};
    use crate::time::MILLISECOND;

    /// DET-X16 in small, at the lower load: every kind of call was made as often as was asked for. The engine that orders nothing in
    /// advance answers local calls sooner; reconnaissance that asks another node takes its time.
    #[test]
    fn latencies_are_told_apart_by_kind() {
        let [calvin, two_phase] = super::super::ENGINES.map(|engine| {
            let setting = LatencySetting { engine, offered: LOADS[0] };
            measure_latency(&setting, &costs(Benchmark::Micro), 50 * MILLISECOND, 500 * MILLISECOND).unwrap()
        });
        let median = |run: &Latencies, kind| run.percentile(kind, 50.0).unwrap();
        for kind in [CallKind::Local, CallKind::Dependent] {
            assert!(median(&calvin, kind) > 2 * median(&two_phase, kind), "{kind:?}");
        }
        let (one, other) = (CallKind::DependentDistributed, CallKind::Distributed);
        assert!(median(&calvin, one) > median(&calvin, other));
        let calls: usize = calvin.of.values().map(Vec::len).sum();
        assert!((3_700..4_300).contains(&calls), "{calls} calls of 2,000 each second at four nodes");
        let share = calvin.of[&CallKind::DependentDistributed].len() as f64 / calls as f64;
        assert!((0.02..0.06).contains(&share), "{share} for a fifth of a fifth");
    }
}
