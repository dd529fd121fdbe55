//! How long busy work takes on this machine.
//!
//! A procedure must not look at a clock, and all replicas must do the same; so whoever drives a benchmark finds out here how
//! many rounds take as long as was asked for, and gives all processes that number (DET-49, trap 24). One process does so once:
//! all of its runs do the same work.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use ordain_workload::micro::busy_work;

use super::options::WorkloadOptions;
use crate::cpu::thread_cpu_nanoseconds;

/// Rounds that are measured at a time, some milliseconds.
const ROUNDS_MEASURED: u32 = 1 << 20;

/// How often; the median counts, as that is how fast the machine usually is.
const TIMES: usize = 25;

/// The microseconds that may be asked for.
pub(super) const WORK_MICROSECONDS: RangeInclusive<f64> = 0.0..=10_000.0;

impl WorkloadOptions {
    /// The same options with the work in rounds.
    ///
    /// # Errors
    /// When a work is asked for that no transaction should have.
    pub(crate) fn calibrated(&self) -> Result<WorkloadOptions, String> {
        let mut options = self.clone();
        if let WorkloadOptions::Micro(micro) = &mut options
            && let Some(microseconds) = micro.work_microseconds.take()
        {
            if !WORK_MICROSECONDS.contains(&microseconds) {
                let max = WORK_MICROSECONDS.end();
                return Err(format!("--work must be 0 to {max} microseconds, not {microseconds}"));
            }
            micro.work_rounds = (microseconds * rounds_per_microsecond()).round() as u32;
        }
        Ok(options)
    }

    /// Rounds with each record, if there are any.
    pub(crate) fn work_rounds(&self) -> Option<u32> {
        match self {
            WorkloadOptions::Micro(micro) => Some(micro.work_rounds).filter(|rounds| *rounds > 0),
            _ => None,
        }
    }
}

fn rounds_per_microsecond() -> f64 {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    *MEASURED.get_or_init(|| f64::from(ROUNDS_MEASURED) / microseconds(ROUNDS_MEASURED))
}

/// The CPU time that so many rounds take, in microseconds, in pieces of so many.
pub(crate) fn microseconds(rounds: u32) -> f64 {
    let pieces = (ROUNDS_MEASURED / rounds.max(1)).max(1);
    let mut times: Vec<u64> = (0..TIMES)
        .map(|_| {
            let begun = thread_cpu_nanoseconds();
            (0..pieces).for_each(|_| busy_work(rounds));
            thread_cpu_nanoseconds() - begun
        })
        .collect();
    times.sort_unstable();
    times[TIMES / 2] as f64 / 1e3 / f64::from(pieces)
}

#[cfg(test)]
mod tests {
    use super::super::options::{BankOptions, MicroOptions};
    use super::*;

    fn micro(work_microseconds: Option<f64>, work_rounds: u32) -> WorkloadOptions {
        WorkloadOptions::Micro(MicroOptions { work_microseconds, work_rounds, ..MicroOptions::default() })
    }

    #[test]
    fn microseconds_become_the_same_rounds_every_time() {
        let long = micro(Some(15.0), 0).calibrated().unwrap();
        assert!(long.work_rounds().is_some_and(|rounds| rounds > 0));
        assert_eq!(micro(Some(15.0), 0).calibrated().unwrap(), long);
        assert!(long.workload(1, None, 1).is_ok());
        assert_eq!(micro(Some(0.0), 0).calibrated().unwrap().work_rounds(), None);
    }

    #[test]
    fn rounds_are_left_as_they_are() {
        assert_eq!(micro(None, 7).calibrated().unwrap(), micro(None, 7));
        let bank = WorkloadOptions::Bank(BankOptions::default());
        assert_eq!((bank.calibrated().unwrap(), bank.work_rounds()), (bank.clone(), None));
    }

    #[test]
    fn work_that_is_not_in_rounds_is_refused() {
        assert!(
            micro(Some(1.0), 0).workload(1, None, 1).is_err_and(|problem| problem.contains("--work-rounds"))
        );
        for wrong in [-1.0, f64::NAN, 1e9] {
            assert!(micro(Some(wrong), 0).calibrated().is_err(), "{wrong}");
        }
    }
}
