//! Small helpers around std's locks and threads.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Locks. Callers' code never runs under a lock of the transport, so a poisoned one is a bug here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds a lock of the transport")
}

/// Waits for a notification.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).expect("no thread panics while it holds a lock of the transport")
}

/// Waits for a notification or until `timeout` has passed.
pub(crate) fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, timeout).expect("no thread panics while it holds a lock of the transport").0
}

/// Why a thread was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("{live_max} threads serve connections already")]
    Full { live_max: usize },
    #[error("the operating system gave no thread: {0}")]
    System(#[from] io::Error),
}

/// Counts the threads it has started, so that they can be limited, and waited for with a deadline (std's `join` has none).
#[derive(Clone, Default)]
pub(crate) struct ThreadGroup {
    live: Arc<Live>,
    /// The stack of each thread, if not the usual one.
    stack_bytes: Option<usize>,
}

#[derive(Default)]
struct Live {
    count: Mutex<usize>,
    changed: Condvar,
}

/// One live thread; leaves the count when it ends, by return or by panic.
struct Member(Arc<Live>);

impl Drop for Member {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.changed.notify_all();
    }
}

impl ThreadGroup {
    /// A group of threads with stacks of this size.
    pub(crate) fn with_stacks(bytes: usize) -> ThreadGroup {
        ThreadGroup { stack_bytes: Some(bytes), ..ThreadGroup::default() }
    }

    /// Starts a thread unless `live_max` are running. The name is cut at 15 characters by Linux.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: String,
        live_max: usize,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, SpawnError> {
        let member = {
            let mut count = lock(&self.live.count);
            if *count >= live_max {
                return Err(SpawnError::Full { live_max });
            }
            *count += 1;
            Member(Arc::clone(&self.live))
        };
        // If the thread cannot be started, the closure is dropped, and `member` with it.
        let mut builder = Builder::new().name(name);
        if let Some(bytes) = self.stack_bytes {
            builder = builder.stack_size(bytes);
        }
        Ok(builder.spawn(move || {
            let _member = member;
            run()
        })?)
    }

    /// Waits until no thread is left, or the deadline; returns how many are left.
    pub(crate) fn wait_until_empty(&self, deadline: Instant) -> usize {
        self.wait_until_fewer(1, deadline)
    }

    /// Waits until fewer threads than this are left, or the deadline; returns how many are left.
    pub(crate) fn wait_until_fewer(&self, threads: usize, deadline: Instant) -> usize {
        let mut count = lock(&self.live.count);
        while *count >= threads {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            count = wait_timeout(&self.live.changed, count, remaining);
        }
        *count
    }
}
