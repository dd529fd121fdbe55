//! Runs of independent simulations over the cores of this machine.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs all of them, the heaviest first, so many at a time, or as many as there are cores; what they come to is in their order.
///
/// # Errors
/// The first in their order that a run ends with.
pub fn over_cores<S: Sync, R: Send>(
    all: &[S],
    jobs: Option<NonZeroUsize>,
    weight: impl Fn(&S) -> u64,
    run: impl Fn(&S) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    // The largest first, so that none is left at the end.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(weight(&all[*index])));
    let results: Mutex<Vec<(usize, Result<R, String>)>> = Mutex::new(Vec::new());
    let work = || {
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = run(&all[*index]);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((*index, result));
            tracing::info!("{} of {} points", results.len(), all.len());
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..jobs.map_or(cores, NonZeroUsize::get)).for_each(|_| drop(scope.spawn(work)));
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_their_order_and_the_first_mistake_counts() {
        let doubled = over_cores(&[3, 1, 2], NonZeroUsize::new(2), |number| *number, |number| Ok(number * 2));
        assert_eq!(doubled, Ok(vec![6, 2, 4]));
        let wrong = |number: &u64| if *number > 1 { Err(format!("{number} is too large")) } else { Ok(()) };
        assert_eq!(over_cores(&[1, 2, 3], None, |number| *number, wrong), Err("2 is too large".to_owned()));
    }
}
