//! The limit: the same transactions' logic on the best plain single-threaded layout, measured in the same run.

use std::time::Duration;

use ordain_workload::limit::PlainStore;
use ordain_workload::{Call, Part, Workload};

use crate::cpu::thread_cpu_nanoseconds;

/// Calls that are made ahead, so that making them is not measured.
const CALLS: usize = 100_000;

/// Transactions per second of a single thread without ordering, locks, versions or messages: the better of running them one
/// by one and of running them in groups whose rows are touched ahead.
///
/// # Errors
/// When the workload cannot make its rows or calls.
pub fn measure(workload: &dyn Workload, seed: u64, time: Duration) -> Result<f64, String> {
    let wrong = |error: ordain_db::error::Error| error.to_string();
    let mut store = PlainStore::load(workload).map_err(wrong)?;
    let mut generator = workload.generator(seed, 0, Part::WHOLE).map_err(wrong)?;
    let catalog = workload.catalog();
    let (mut spent, mut done) = (Duration::ZERO, 0_usize);
    while spent < time {
        let calls: Vec<Call> = (0..CALLS).map(|_| generator.next()).collect();
        let begun = thread_cpu_nanoseconds();
        store.run_all(catalog, &calls, |_, _| {});
        spent += Duration::from_nanos(thread_cpu_nanoseconds() - begun);
        done += calls.len();
    }
    Ok(done as f64 / spent.as_secs_f64())
}
