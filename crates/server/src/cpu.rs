//! CPU time, as the operating system accounts for it.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
