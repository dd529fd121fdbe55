//! Which session a request to cancel means.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ordain_sql::execute::Interrupt;
use ordain_sql::state::Signal;
use subtle::ConstantTimeEq;

use super::lock;

/// How long the secret of a session is, in bytes, where the client's version of the protocol allows it.
pub const SECRET_BYTES: usize = 32;

/// How long it is in version 3.0.
pub const SECRET_BYTES_OLD: usize = 4;

/// The sessions that can be cancelled.
#[derive(Default)]
pub struct Cancellations(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    /// The number that was given last.
    last: i32,
    all: BTreeMap<i32, (Vec<u8>, Arc<Interrupt>)>,
}

/// A session as long as it can be cancelled.
pub struct Registration {
    cancellations: Arc<Cancellations>,
    /// The number of the session.
    pub process: i32,
}

impl Cancellations {
    /// Takes a session in, and gives it a number.
    pub fn register(self: &Arc<Self>, secret: Vec<u8>, interrupt: Arc<Interrupt>) -> Registration {
        let mut sessions = lock(&self.0);
        // Numbers are positive, as those of PostgreSQL's processes are.
        let mut process = sessions.last;
        loop {
            process = process.checked_add(1).unwrap_or(1);
            if !sessions.all.contains_key(&process) {
                break;
            }
        }
        sessions.last = process;
        sessions.all.insert(process, (secret, interrupt));
        Registration { cancellations: Arc::clone(self), process }
    }

    /// Interrupts a session if the secret is right; whether it was.
    pub fn cancel(&self, process: i32, secret: &[u8]) -> bool {
        let sessions = lock(&self.0);
        let Some((known, interrupt)) = sessions.all.get(&process) else { return false };
        let is_right = bool::from(known.as_slice().ct_eq(secret));
        if is_right {
            interrupt.cancel();
        }
        is_right
    }

    /// Interrupts a session for another one, which need not know its secret.
    pub fn signal(&self, process: i32, signal: Signal) {
        let Some((_, interrupt)) = lock(&self.0).all.get(&process).cloned() else { return };
        match signal {
            Signal::Cancel => interrupt.cancel(),
            Signal::Terminate => interrupt.terminate(),
        }
    }

    /// Interrupts all sessions, which are to end.
    pub fn terminate_all(&self) {
        lock(&self.0).all.values().for_each(|(_, interrupt)| interrupt.terminate());
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.cancellations.0).all.remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_cancels() {
        let cancellations = Arc::new(Cancellations::default());
        let flags = [Arc::new(Interrupt::default()), Arc::new(Interrupt::default())];
        let first = cancellations.register(vec![1; 32], Arc::clone(&flags[0]));
        let second = cancellations.register(vec![2; 4], Arc::clone(&flags[1]));
        assert_ne!(first.process, second.process);
        assert!(!cancellations.cancel(first.process, &[2; 4]));
        assert!(!cancellations.cancel(first.process, &[1; 31]));
        assert!(!cancellations.cancel(first.process + 10, &[1; 32]));
        assert!(!flags[0].is_set());
        assert!(cancellations.cancel(first.process, &[1; 32]));
        assert!(flags[0].is_set() && !flags[1].is_set());
        let process = second.process;
        drop(second);
        assert!(!cancellations.cancel(process, &[2; 4]));
    }

    #[test]
    fn numbers_begin_anew_and_pass_those_in_use() {
        let cancellations = Arc::new(Cancellations::default());
        let flag = || Arc::new(Interrupt::default());
        let first = cancellations.register(Vec::new(), flag());
        lock(&cancellations.0).last = i32::MAX;
        let second = cancellations.register(Vec::new(), flag());
        assert_eq!((first.process, second.process), (1, 2));
    }
}
