//! One run of a plan, from the first event to the verdict of the checkers.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use ordain_db::data::KeyRange;
use ordain_db::error::Error;
use ordain_db::hash::Digest;
use ordain_workload::{SnapshotReader, Workload};

use crate::checkers::{self, Violation};
use crate::history::History;
use crate::plan::Plan;
use crate::time::Nanoseconds;
use crate::world::{Happened, World};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The digest of every event.
    pub trace: u64,
    /// The digest of the state at the end.
    pub state: Digest,
    /// The virtual time at the end.
    pub virtual_time: Nanoseconds,
    /// What happened.
    pub happened: Happened,
    /// What is wrong; nothing when all is well.
    pub violations: Vec<Violation>,
    /// Why the run ended early without anything being wrong: a node refused to start from a disk that a fault had damaged.
    pub halted: Option<String>,
}

/// Runs a plan and checks what it left. The same plan gives the same report on every machine.
///
/// # Errors
/// When the plan cannot be carried out: its options contradict each other.
pub fn run(plan: &Plan) -> Result<Report, Error> {
    let workload = plan.workload.build()?;
    let (report, _) = observe(plan, &*workload)?;
    Ok(report)
}

/// Like [`run`], and gives the history too, for exports; `None` when the run was broken off by a failed assertion.
///
/// # Errors
/// When the plan cannot be carried out.
pub fn observe(plan: &Plan, workload: &dyn Workload) -> Result<(Report, Option<History>), Error> {
    conclude(&mut World::new(plan, workload)?, plan, workload)
}

/// Like [`observe`], for a world of this plan that has come some way already.
///
/// # Errors
/// As [`observe`].
pub fn conclude(
    world: &mut World<'_>,
    plan: &Plan,
    workload: &dyn Workload,
) -> Result<(Report, Option<History>), Error> {
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let mut report = Report {
        trace: world.digest(),
        state: Digest::default(),
        virtual_time: world.now(),
        happened: world.happened(),
        violations: Vec::new(),
        halted: None,
    };
    let unfinished = match ended {
        Ok(unfinished) => unfinished,
        Err(panic) => {
            let detail = format!("at {} us: {}", world.now() / 1_000, message_of(&*panic));
            report.violations.push(Violation { property: "assertions hold", detail });
            return Ok((report, None));
        }
    };
    for problem in world.problems() {
        report.violations.push(Violation { property: "nodes go on", detail: problem.clone() });
    }
    let history = world.history(unfinished);
    for status in &history.statuses {
        report.state.merge(Digest(status.digest.unwrap_or_default()));
    }
    if world.halt_is_excused() {
        report.halted = history.unfinished.clone();
    } else if plan.trace {
        report.violations.extend(checkers::check(&history, workload));
    }
    Ok((report, Some(history)))
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Reads rows that were collected before.
pub(crate) struct Collected<'a>(pub(crate) &'a BTreeMap<Bytes, Bytes>);

impl SnapshotReader for Collected<'_> {
    fn scan(&mut self, range: &KeyRange, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Error> {
        let inside = self.0.iter().filter(|(key, _)| range.contains(key));
        inside.for_each(|(key, row)| visit(key, row));
        Ok(())
    }
}
