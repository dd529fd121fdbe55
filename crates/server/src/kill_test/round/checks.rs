//! What is checked at the end of a round.

use std::time::Instant;

use ordain_workload::Workload;
use rustix::process::Signal;

use super::super::processes::{PROCESSES, Process};
use super::super::verdict::{self, Verdict};
use super::{PATIENCE, Round, TICK};

impl Round<'_> {
    /// The checks: conditions, every call, equal digests; the same digests after all processes were killed; an end in good
    /// order.
    pub(super) fn judge(&mut self, workload: &dyn Workload) -> Result<(), String> {
        self.finished.verdict = self.read_state(workload)?;
        let before = self.wait_for_digests("the digests of all replicas are equal", |_| true)?;
        self.cluster.processes.iter_mut().for_each(Process::kill);
        self.start_all()?;
        self.wait("all processes serve after all were killed", |round| round.all_serve())?;
        let same = "the digests of all replicas are what they were before all processes were killed";
        self.finished.verdict.digests = self.wait_for_digests(same, |digests| *digests == before)?;
        if self.finished.violations.is_empty() {
            self.stop_all();
        }
        Ok(())
    }

    /// Reads the state and checks it, while the processes are looked after.
    fn read_state(&mut self, workload: &dyn Workload) -> Result<Verdict, String> {
        let file = self.cluster.file.clone();
        let ledger = std::mem::take(&mut self.finished.seen.ledger);
        let checked = std::thread::scope(|scope| {
            let checking = scope.spawn(|| verdict::check(&file, workload, &ledger));
            while !checking.is_finished() {
                self.tick()?;
            }
            checking.join().map_err(|_| "the thread that reads the state panicked: see above".to_owned())?
        });
        self.finished.seen.ledger = ledger;
        checked
    }

    /// Waits until the replicas have come to the same state, which is as wanted.
    fn wait_for_digests(
        &mut self,
        what: &str,
        wanted: impl Fn(&Vec<u128>) -> bool,
    ) -> Result<Vec<u128>, String> {
        let mut found = Err("nobody was asked".to_owned());
        self.wait(what, |round| {
            found = verdict::digests(&round.cluster.file);
            found.as_ref().is_ok_and(&wanted)
        })?;
        match found {
            Ok(digests) if wanted(&digests) => Ok(digests),
            Ok(digests) => {
                self.violate(format!("the digests are {digests:x?}"));
                Ok(digests)
            }
            Err(problem) => {
                self.violate(problem);
                Ok(Vec::new())
            }
        }
    }

    /// Ends all processes in good order.
    fn stop_all(&mut self) {
        self.cluster.processes.iter().for_each(|process| process.signal(Signal::TERM));
        let deadline = Instant::now() + PATIENCE;
        for number in 0..PROCESSES {
            let status = loop {
                let process = &mut self.cluster.processes[number];
                match process.ended() {
                    Some(status) => break Some(status),
                    None if Instant::now() > deadline => break None,
                    None => std::thread::sleep(TICK),
                }
            };
            let process = &self.cluster.processes[number];
            let (name, lines) = (process.name.clone(), process.last_lines());
            match status {
                Some(status) if status.success() => {}
                Some(status) => {
                    self.violate(format!("{name} was told to end, and did with {status}:\n{lines}"))
                }
                None => {
                    self.violate(format!("{name} was told to end, and has not after {PATIENCE:?}:\n{lines}"))
                }
            }
        }
    }
}
