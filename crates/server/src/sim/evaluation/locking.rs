//! What the locks of a transaction cost with each lock manager of `calvin` (Ren et al. §3.1.1 and §3.3.1: DET-X07).
//!
//! Short transactions of ten keys, of the shape of the microbenchmark: one hot key and nine cold ones, all read and written. As in an
//! engine, some are live at any time; in a step some of those that hold their locks finish, others come, and then the lock manager is
//! asked who else may go on. Measured is the CPU time of the lock manager alone, in one thread, without engine, storage and messages.
//! Both are given the same transactions. What releases tell is the same under both, only not
//! at the same time, so each chooses by itself who finishes: those that have held their locks for longest.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;

use ordain_db::data::{ColumnType, DataError, SchemaBuilder, Table};
use ordain_db::engine::calvin::lock_manager::hash::HashLockManager;
use ordain_db::engine::calvin::lock_manager::vll::VllLockManager;
use ordain_db::engine::calvin::lock_manager::{LockManager, Slot};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::position::PartitionId;
use ordain_db::procedure::footprint::Access;
use ordain_db::procedure::{Declaration, Footprint};
use ordain_sim::scale::bars::{Bar, Bars};
use ordain_sim::scale::evaluation::{LOCKS_HASH, LOCKS_VLL};
use ordain_sim::scale::shapes::{Judgement, extremes, judgement};
use ordain_workload::micro::RECORDS_PER_TRANSACTION;
use ordain_workload::random::Random;

use super::super::real::{median, over};
use crate::bench::rounds::{Spread, in_rounds};
use crate::cpu::thread_cpu_nanoseconds;

/// Keys of which cold ones are drawn.
const COLD_KEYS: u64 = 1_000_000;

/// Rounds in which both lock managers take turns, and the transactions of each turn: two or three seconds in all.
const ROUNDS: u16 = 9;
const TRANSACTIONS: usize = 40_000;

const ME: PartitionId = PartitionId(0);

/// What counts as the paper's factor of 2.3.
const STATED: std::ops::RangeInclusive<f64> = 1.8..=2.8;

const LOCKS: (&str, &str) = ("DET-X07", "Ren et al. §3.1.1 and §3.3.1");

/// The lock managers, in the order in which they take turns.
const NAMES: [&str; 2] = ["hash", "vll"];

/// The transactions of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Case {
    /// Keys of which every transaction locks one; none: all its keys are cold.
    hot: Option<u64>,
    /// Transactions that are live at a time, and that finish in a step.
    live: usize,
    step: usize,
    access: Access,
}

impl Case {
    const fn updates(hot: Option<u64>, live: usize, step: usize) -> Case {
        Case { hot, live, step, access: Access::UPDATE }
    }

    fn contention_index(&self) -> f64 {
        self.hot.map_or(0.0, |hot| 1.0 / hot as f64)
    }

    fn name(&self) -> String {
        let of = match self.hot {
            Some(_) => format!("index {}", self.contention_index()),
            None => "uncontended".to_owned(),
        };
        let reads = if self.access.write { "" } else { ", reads" };
        format!("{of}{reads}, {} live, {} in a step", self.live, self.step)
    }
}

/// What is judged: without contention, and as many live as where the costs of the simulation are from.
const JUDGED: Case = Case::updates(None, 256, 32);

const CASES: [Case; 10] = [
    Case::updates(None, 16, 4),
    JUDGED,
    Case::updates(None, 2_048, 256),
    Case::updates(Some(10_000), 256, 32),
    Case::updates(Some(100), 16, 4),
    Case::updates(Some(100), 64, 8),
    Case::updates(Some(100), 256, 32),
    Case::updates(Some(100), 256, 1),
    Case::updates(Some(100), 2_048, 256),
    Case { hot: Some(100), live: 256, step: 32, access: Access::READ },
];

/// One turn of a lock manager.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Turn {
    /// For each transaction.
    nanoseconds: f64,
    /// Percentage of transactions that were not granted all their locks at once.
    waited: f64,
}

/// What was measured in a case.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Locking {
    case: Case,
    /// Round by round, as in [`NAMES`].
    rounds: Vec<[Turn; 2]>,
}

impl Locking {
    fn of(&self, place: usize, value: impl Fn(&Turn) -> f64) -> Vec<f64> {
        self.rounds.iter().map(|turns| value(&turns[place])).collect()
    }

    /// Round by round, with the lock manager of a place.
    fn nanoseconds(&self, place: usize) -> Vec<f64> {
        self.of(place, |turn| turn.nanoseconds)
    }

    /// How many times as much `hash` costs as the lock manager of a place.
    fn times_as_cheap(&self, place: usize) -> Spread {
        over(&self.nanoseconds(0), &self.nanoseconds(place))
    }
}

/// Measures all cases.
///
/// # Errors
/// When the transactions cannot be made.
pub(super) fn measure() -> Result<Vec<Locking>, String> {
    measure_cases(ROUNDS, TRANSACTIONS)
}

fn measure_cases(rounds: u16, transactions: usize) -> Result<Vec<Locking>, String> {
    // Few enough that those which come are in the cache, as in an engine, where they have just been made.
    let prepare = |case: Case| footprints(case, 2 * case.live).map(|footprints| (case, footprints));
    let prepared =
        CASES.into_iter().map(prepare).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let measured = in_rounds(rounds, &prepared, |(case, footprints)| {
        Ok([
            run::<HashLockManager>(case, footprints, transactions),
            run::<VllLockManager>(case, footprints, transactions),
        ])
    })?;
    let locking =
        |((case, _), rounds): (&(Case, Vec<Footprint>), Vec<[Turn; 2]>)| Locking { case: *case, rounds };
    Ok(prepared.iter().zip(measured).map(locking).collect())
}

fn footprints(case: Case, count: usize) -> Result<Vec<Footprint>, DataError> {
    let mut schema = SchemaBuilder::new();
    let table = Table::builder("records").column("number", ColumnType::Int64).primary_key(&["number"]);
    let table = schema.table(table)?;
    let schema = schema.finish();
    let mut random = Random::new(1, "locking", &[]);
    let footprint = |_: usize| -> Result<Footprint, DataError> {
        let mut footprint = Footprint::default();
        let mut declaration = Declaration::new(&schema, 1, &mut footprint);
        for place in 0..RECORDS_PER_TRANSACTION {
            let number = match case.hot {
                Some(hot) if place == 0 => random.below(hot),
                _ => COLD_KEYS + random.below(COLD_KEYS),
            };
            declaration.touch(&table.key((number as i64,))?, case.access)?;
        }
        Ok(footprint)
    };
    (0..count).map(footprint).collect()
}

/// Takes so many transactions through a lock manager.
fn run<L: LockManager>(case: &Case, footprints: &[Footprint], count: usize) -> Turn {
    let mut locks = L::default();
    let mut unused: Vec<Slot> = (0..case.live as u32).rev().map(Slot).collect();
    let mut by_slot = vec![0; case.live];
    let (mut held, mut granted) = (VecDeque::new(), Vec::new());
    let (mut next, mut waited) = (0, 0_u32);
    let begun = thread_cpu_nanoseconds();
    while next < count || !held.is_empty() {
        while next < count
            && let Some(slot) = unused.pop()
        {
            by_slot[slot.index()] = next % footprints.len();
            let footprint = &footprints[next % footprints.len()];
            next += 1;
            black_box(locks.is_free::<NoFailpoints>(footprint, ME));
            if locks.request::<NoFailpoints>(slot, footprint, ME) {
                held.push_back(slot);
            } else {
                waited += 1;
            }
        }
        for _ in 0..case.step {
            let Some(slot) = held.pop_front() else { break };
            locks.release::<NoFailpoints>(slot, &footprints[by_slot[slot.index()]], ME, &mut granted);
            held.extend(granted.drain(..));
            unused.push(slot);
        }
        while let Some(slot) = locks.analyse::<NoFailpoints>() {
            held.push_back(slot);
        }
    }
    let nanoseconds = thread_cpu_nanoseconds() - begun;
    assert_eq!((next, locks.live()), (count, 0), "everybody ran");
    let each = |total: f64| total / count.max(1) as f64;
    Turn { nanoseconds: each(nanoseconds as f64), waited: each(100.0 * f64::from(waited)) }
}

/// The names of the columns.
const COLUMNS: &str = "contention_index,access,live,in_a_step,lock_manager,ns_least,ns,ns_most,times_as_cheap_as_hash_least,\
                       times_as_cheap_as_hash,times_as_cheap_as_hash_most,waited_percent";

/// A line for each lock manager in each case, under a line with the names of the columns: medians of the rounds, unless the name says
/// otherwise.
pub(super) fn csv(measured: &[Locking]) -> String {
    let mut out = format!("{COLUMNS}\n");
    for locking in measured {
        let Case { live, step, access, .. } = locking.case;
        let (index, access) = (locking.case.contention_index(), if access.write { "update" } else { "read" });
        for (place, name) in NAMES.into_iter().enumerate() {
            let cost = Spread::of(locking.nanoseconds(place).into_iter());
            let ratio = locking.times_as_cheap(place);
            let waited = median(&locking.of(place, |turn| turn.waited));
            // Writing to a string cannot fail.
            let _ = write!(out, "{index},{access},{live},{step},{name}");
            let _ = write!(out, ",{:.1},{:.1},{:.1}", cost.least, cost.median, cost.most);
            let _ = writeln!(out, ",{:.3},{:.3},{:.3},{waited:.1}", ratio.least, ratio.median, ratio.most);
        }
    }
    out
}

/// A bar for each lock manager in each case, of the dearest one.
pub(super) fn bars(measured: &[Locking]) -> Bars {
    let cost = |locking: &Locking, place: usize| median(&locking.nanoseconds(place));
    let all = || measured.iter().flat_map(|locking| [0, 1].map(|place| (locking, place)));
    let (_, dearest) = extremes(&all().map(|(locking, place)| cost(locking, place)).collect::<Vec<_>>());
    let bar = |(locking, place): (&Locking, usize)| {
        let nanoseconds = cost(locking, place);
        // A colour for each lock manager.
        let mut parts = vec![0.0; place];
        parts.push(nanoseconds / dearest.max(1e-9) * 100.0);
        Bar { name: format!("{}: {}, {nanoseconds:.0} ns", locking.case.name(), NAMES[place]), parts }
    };
    Bars {
        title: "What the locks of a transaction cost, of the dearest".to_owned(),
        parts: NAMES.map(str::to_owned).to_vec(),
        bars: all().map(bar).collect(),
        notes: vec![format!(
            "For real: CPU time of the lock manager for a short transaction of {RECORDS_PER_TRANSACTION} keys, in one thread, without engine, \
             storage and messages; medians of {ROUNDS} rounds of {TRANSACTIONS} transactions in which both took turns. Live transactions \
             are under way; in a step so many finish and others come."
        )],
    }
}

/// What the paper states of what locks cost, beside what was measured.
pub(super) fn judge(measured: &[Locking]) -> Judgement {
    let judged = measured.iter().find(|locking| locking.case == JUDGED);
    let found = judged.map(|locking| {
        let ratio = locking.times_as_cheap(1);
        let [hash, vll] = [0, 1].map(|place| median(&locking.nanoseconds(place)));
        let ratios: Vec<f64> = measured.iter().map(|locking| locking.times_as_cheap(1).median).collect();
        let (least, most) = extremes(&ratios);
        let measured = format!(
            "by {:.2} ({:.2} to {:.2}) without contention and with {} under way: {vll:.0} for {hash:.0} ns ({:.0} for {:.0} are \
             simulated); by {least:.2} to {most:.2} over all cases",
            ratio.median,
            ratio.least,
            ratio.most,
            locking.case.live,
            LOCKS_VLL as f64 / 1e3,
            LOCKS_HASH as f64 / 1e3
        );
        (measured, STATED.contains(&ratio.median))
    });
    judgement(LOCKS, "vll makes locks cheaper by a factor of 2.3".to_owned(), found)
}

#[cfg(test)]
mod tests {
    use ordain_sim::scale::shapes::Verdict;

    use super::*;

    /// Every case took so long with both lock managers, in two rounds that differ by a tenth.
    fn taking(hash: f64, vll: f64) -> Vec<Locking> {
        let turns = |factor: f64| {
            [hash, vll].map(|nanoseconds| Turn { nanoseconds: factor * nanoseconds, waited: 1.0 })
        };
        CASES.into_iter().map(|case| Locking { case, rounds: vec![turns(1.0), turns(1.1)] }).collect()
    }

    #[test]
    fn what_locks_cost_is_judged_without_contention() {
        let verdict = |measured: &[Locking]| judge(measured).verdict;
        assert_eq!(verdict(&taking(460.0, 200.0)), Verdict::Holds);
        assert_eq!(verdict(&taking(293.0, 164.0)), Verdict::Differs, "1.79");
        assert_eq!(verdict(&taking(600.0, 200.0)), Verdict::Differs);
        assert_eq!(verdict(&[]), Verdict::NotMeasured);
        let mut others = taking(200.0, 200.0);
        let judged = others.iter_mut().find(|locking| locking.case == JUDGED).unwrap();
        judged.rounds = taking(460.0, 200.0)[0].rounds.clone();
        let judgement = judge(&others);
        assert_eq!(judgement.verdict, Verdict::Holds);
        assert!(judgement.measured.starts_with("by 2.30 (2.30 to 2.30) "), "{judgement}");
        assert!(judgement.measured.ends_with("by 1.00 to 2.30 over all cases"), "{judgement}");
    }

    #[test]
    fn both_lock_managers_run_every_case() {
        let measured = measure_cases(2, 500).unwrap();
        assert_eq!(measured.len(), CASES.len());
        assert!(measured.iter().all(|locking| locking.rounds.len() == 2));
        let turns = || measured.iter().flat_map(|locking| locking.rounds.iter().flatten());
        assert!(turns().all(|turn| turn.nanoseconds > 0.0 && (0.0..=100.0).contains(&turn.waited)));
        let waited = |case: usize| measured[case].of(0, |turn| turn.waited)[0];
        assert!(waited(6) > 10.0 && waited(9) == 0.0, "updates wait, and reads do not");
        let text = csv(&measured);
        let columns = COLUMNS.split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
        assert_eq!(text.lines().count(), 1 + 2 * CASES.len());
        assert!(text.contains("\n0.01,read,256,32,vll,"), "{text}");
        let bars = bars(&measured);
        assert!(bars.bars.iter().any(|bar| bar.parts.contains(&100.0)), "{bars:?}");
        assert!(bars.svg().contains("index 0.01, reads, 256 live, 32 in a step: vll, "));
    }
}
