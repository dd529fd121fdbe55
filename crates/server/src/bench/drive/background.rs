//! Calls that are made beside the load, at a rate of their own: updates of the microbenchmark's index (DET-55).
//!
//! At each partition a session of its own makes the workload's [background](ordain_workload::Background) calls for the data there, in the
//! order like all others (DET-57), from the beginning of the warm-up to the end of the measured part. They are in no throughput and in
//! no latency, but counted apart. A session that falls behind catches up as soon as it can.

use std::collections::VecDeque;
use std::time::Duration;

use ordain_db::error::{Error, Outcome};
use ordain_db::limits::SESSION_WINDOW_MAX;
use ordain_db::message::{ClientId, ClientRequest, Operation, Request, RequestId};
use ordain_db::position::PartitionId;
use ordain_db::procedure::ProcedureId;
use ordain_workload::{Background, Part, Workload};

use super::{BATCH_REQUESTS_MAX, Driver};
use crate::caller::random_number;

/// Calls that become due within this time may go together: a generator that woke up for each would take much of a core.
const TICK: Duration = Duration::from_micros(500);

/// What was measured of the calls in the background.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundMeasured {
    /// Calls per second that the workload asks for, over all partitions.
    pub wanted_per_second: f64,
    /// Calls that committed in the measured part.
    pub committed: u64,
}

/// The session at one partition.
struct Source {
    client: ClientId,
    calls: Background,
    /// How many calls were begun since the start, those that were refused included.
    begun: u64,
    /// What was called, from the oldest without an answer on; nothing where the answer has come.
    window: VecDeque<Option<ProcedureId>>,
    /// The sequence number of `window[0]`.
    first: u64,
}

impl Source {
    /// When the next call is due, in nanoseconds since the start.
    fn due(&self) -> u64 {
        (self.begun as f64 * 1e9 / self.calls.calls_per_second) as u64
    }

    fn has_room(&self) -> bool {
        self.window.len() < SESSION_WINDOW_MAX as usize
    }

    /// The requests that are due, as many as may go at once.
    fn take_due(&mut self, now: u64) -> Vec<ClientRequest> {
        let mut requests = Vec::new();
        while self.due() <= now && self.has_room() && requests.len() < BATCH_REQUESTS_MAX {
            let call = self.calls.generator.next();
            let id = RequestId { client: self.client, sequence: self.first + self.window.len() as u64 };
            self.window.push_back(Some(call.procedure));
            self.begun += 1;
            let operation = Operation::Call { procedure: call.procedure, arguments: call.arguments };
            requests.push(ClientRequest::Ordered(Request { id, acknowledged: self.first, operation }));
        }
        requests
    }

    /// What a request called that has its first answer now.
    fn take(&mut self, sequence: u64) -> Option<ProcedureId> {
        let place = sequence.checked_sub(self.first)?;
        let called = self.window.get_mut(place as usize)?.take();
        while self.window.front().is_some_and(Option::is_none) {
            self.window.pop_front();
            self.first += 1;
        }
        called
    }
}

/// All sessions. See the [module](self).
pub(super) struct Sources {
    /// Their client number.
    pub(super) number: u64,
    /// At most one for each partition, and none if the workload makes no such calls.
    sources: Vec<Source>,
}

impl Sources {
    /// Those of a workload. Generators of the load have the numbers below those of their clients.
    ///
    /// # Errors
    /// When the workload has no calls for a partition.
    pub(super) fn new(workload: &dyn Workload, seed: u64, partitions: u16) -> Result<Sources, String> {
        let number = random_number().map_err(|error| error.to_string())?;
        let mut sources = Vec::new();
        for home in (0..partitions).map(PartitionId) {
            let client = u32::from(partitions) + u32::from(home.0);
            let calls =
                workload.background(seed.wrapping_add(u64::from(client)), client, Part::of(home, partitions));
            if let Some(calls) = calls.map_err(|error| error.to_string())? {
                let client = ClientId { home, number };
                sources.push(Source { client, calls, begun: 0, window: VecDeque::new(), first: 0 });
            }
        }
        Ok(Sources { number, sources })
    }

    /// What is measured of them, if there are any.
    pub(super) fn measured(&self) -> Option<BackgroundMeasured> {
        let wanted_per_second = self.sources.iter().map(|source| source.calls.calls_per_second).sum();
        (!self.sources.is_empty()).then_some(BackgroundMeasured { wanted_per_second, committed: 0 })
    }

    /// Whether something is under way.
    pub(super) fn wait(&self) -> bool {
        self.sources.iter().any(|source| !source.window.is_empty())
    }
}

impl Driver<'_> {
    /// Sends the calls that are due.
    pub(super) fn send_background(&mut self) -> Result<(), String> {
        for place in 0..self.background.sources.len() {
            let now = self.now();
            let requests = self.background.sources[place].take_due(now);
            if !requests.is_empty() {
                self.push_to(self.background.sources[place].client.home, requests)?;
            }
        }
        Ok(())
    }

    /// How long the generator may wait for replies, of so long at most, before calls are due. A session without room waits for a reply.
    pub(super) fn until_background(&self, most: Duration) -> Duration {
        let waiting = self.background.sources.iter().filter(|source| source.has_room());
        let Some(due) = waiting.map(Source::due).min() else { return most };
        most.min(Duration::from_nanos(due.saturating_sub(self.now())).max(TICK))
    }

    /// Takes the answer to a call in the background.
    pub(super) fn background_ended(&mut self, request: RequestId, outcome: Outcome) {
        let mut sources = self.background.sources.iter_mut();
        let source = sources.find(|source| source.client == request.client);
        let Some(procedure) = source.and_then(|source| source.take(request.sequence)) else { return };
        let totals = self.measured.totals.of_mut(self.catalog.procedures.name(procedure));
        match outcome {
            Ok(_) => {
                totals.committed += 1;
                if let Some(measured) = &mut self.measured.background {
                    measured.committed += u64::from(self.measuring);
                }
            }
            Err(Error::Aborted(_)) => totals.aborted += 1,
            // Refused before it was ordered. That there are fewer calls than were asked for is in the report.
            Err(Error::Busy(_)) => self.measured.pushed_back += 1,
            Err(error) => {
                self.measured.failed += 1;
                self.measured.first_failure.get_or_insert(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ordain_workload::micro;

    use super::*;

    fn sources(volatility: f64) -> Sources {
        let index =
            micro::IndexOptions { volatility, entries_per_site: 10, ..micro::IndexOptions::default() };
        let options = micro::Options {
            sites: 2,
            records: 1_000,
            contention_index: 0.1,
            index,
            ..micro::Options::default()
        };
        Sources::new(&micro::Micro::new(options).unwrap(), 1, 2).unwrap()
    }

    #[test]
    fn each_entry_is_updated_so_often_in_a_second() {
        let mut sources = sources(5.0);
        assert_eq!(sources.measured().map(|measured| measured.wanted_per_second), Some(100.0));
        let source = &mut sources.sources[1];
        // At the beginning, and then every 20 ms.
        let counts = [0, 19_000_000, 20_000_000, 1_000_000_000].map(|now| source.take_due(now).len());
        assert_eq!(counts, [1, 0, 1, 49]);
        assert_eq!(source.client.home, PartitionId(1));
        assert!(sources.wait());
    }

    #[test]
    fn a_session_takes_no_more_than_its_window() {
        let mut sources = sources(1e6);
        let source = &mut sources.sources[0];
        let mut sent = 0;
        loop {
            match source.take_due(1_000_000_000).len() {
                0 => break,
                count => sent += count,
            }
        }
        assert_eq!(sent, SESSION_WINDOW_MAX as usize);
        assert!(source.take(1).is_some() && source.take(1).is_none() && source.take(sent as u64).is_none());
        assert!(!source.has_room(), "the oldest has no answer");
        assert!(source.take(0).is_some());
        assert_eq!((source.first, source.take_due(1_000_000_000).len()), (2, 2));
    }

    #[test]
    fn workloads_without_such_calls_have_no_sessions() {
        let sources = sources(0.0);
        assert!(sources.measured().is_none() && !sources.wait());
    }
}
