//! CPU time, as the operating system accounts for it.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process in nanoseconds.
pub(crate) fn process_cpu_nanoseconds() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
