//! Waiting for what comes soon.
//!
//! To sleep and to be woken takes a thread some 30 microseconds and another one a call of the system, which is more than most answers from
//! memory take. So a thread that has reason to expect something soon looks for it again and again, for a moment, and lets others run
//! in between: a partition's where something came soon the last time, and whoever waits for rows of a snapshot.

use std::time::{Duration, Instant};

/// For how long it is looked.
pub const LOOK: Duration = Duration::from_micros(60);

/// Looks until something is there, or [`LOOK`] is over.
pub fn look_for(mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() && begun.elapsed() < LOOK {
        std::thread::yield_now();
    }
}
