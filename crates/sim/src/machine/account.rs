//! What a node's processor was busy with (DET-60): the parts of a step's cost, by what they serve.
//!
//! A step costs what its parts cost ([`CostTable`]), and each part serves something. The paper's fifth part, waiting with nothing to
//! do, is the rest of the time. What is neither for locks, nor for deadlocks, nor for a commit protocol is *useful*: requests, the
//! order, reads, logic and answers.

use std::ops::AddAssign;

use ordain_db::engine::two_phase::message::TwoPhaseMessage;
use ordain_db::message::Message;

use super::cost::{CostTable, StepWork};
use crate::time::Nanoseconds;

/// Messages, in and out, and their payload in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// How many.
    pub messages: u64,
    /// Of all of them.
    pub bytes: u64,
}

/// Messages that do not carry requests, orders, reads or answers, by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overhead {
    /// Asking another partition for locks; what it has read comes with the answer.
    pub locks: Traffic,
    /// Finding deadlocks, and breaking them.
    pub deadlocks: Traffic,
    /// Two-phase commit.
    pub commitment: Traffic,
    /// Edges of the waits-for graph that were told.
    pub edges: u64,
}

impl Overhead {
    /// Counts a message that a node sends or takes.
    pub fn count(&mut self, message: &Message) {
        let Message::TwoPhase(said) = message else { return };
        let traffic = match said {
            TwoPhaseMessage::Lock { .. } | TwoPhaseMessage::Granted { .. } => &mut self.locks,
            // An attempt that is given up was the victim of a deadlock, where nothing fails.
            TwoPhaseMessage::Decide { position: None, .. }
            | TwoPhaseMessage::Victim { .. }
            | TwoPhaseMessage::Waits { .. }
            | TwoPhaseMessage::WaitsReceived => &mut self.deadlocks,
            TwoPhaseMessage::Prepare { .. }
            | TwoPhaseMessage::Vote { .. }
            | TwoPhaseMessage::Decide { position: Some(_), .. }
            | TwoPhaseMessage::Done { .. } => &mut self.commitment,
        };
        traffic.messages += 1;
        traffic.bytes += message.payload_bytes() as u64;
        if let TwoPhaseMessage::Waits { edges } = said {
            self.edges += edges.len() as u64;
        }
    }
}

/// Time of processors, by what it was for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// All that is not named below.
    pub useful: Nanoseconds,
    /// Getting and releasing locks.
    pub locks: Nanoseconds,
    /// Finding deadlocks, and breaking them.
    pub deadlocks: Nanoseconds,
    /// Two-phase commit.
    pub commitment: Nanoseconds,
}

impl Spent {
    /// What a step with this work spends at these costs; the parts add up to what it costs.
    pub fn of(work: &StepWork, costs: &CostTable) -> Spent {
        let traffic = |traffic: Traffic| traffic.messages * costs.message + traffic.bytes * costs.byte;
        let Overhead { locks, deadlocks, commitment, edges } = work.overhead;
        let executions = work.executed_alone + work.executed_together;
        let locks = (executions * costs.locks + traffic(locks)) / 1_000;
        let deadlocks = (edges * costs.edge + traffic(deadlocks)) / 1_000;
        let commitment = traffic(commitment) / 1_000;
        let useful = costs.step(work).saturating_sub(locks + deadlocks + commitment);
        Spent { useful, locks, deadlocks, commitment }
    }

    /// All of it.
    pub fn busy(&self) -> Nanoseconds {
        self.useful + self.locks + self.deadlocks + self.commitment
    }

    /// The same parts of another time: a step that is longer, or of which only the beginning counts.
    #[must_use]
    pub fn stretched(&self, to: Nanoseconds) -> Spent {
        let whole = u128::from(self.busy().max(1));
        let part = |part: Nanoseconds| (u128::from(part) * u128::from(to) / whole) as Nanoseconds;
        let (locks, deadlocks, commitment) = (part(self.locks), part(self.deadlocks), part(self.commitment));
        Spent { useful: to - locks - deadlocks - commitment, locks, deadlocks, commitment }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.useful += other.useful;
        self.locks += other.locks;
        self.deadlocks += other.deadlocks;
        self.commitment += other.commitment;
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::two_phase::deadlock::{Edge, Place};
    use ordain_db::engine::two_phase::message::TransactionId;
    use ordain_db::position::PartitionId;
    use ordain_db::sequencer::Load;

    use super::*;

    #[test]
    fn messages_are_counted_by_what_they_are_for() {
        let id = TransactionId { started: 1, coordinator: PartitionId(0), life: 0, attempt: 0 };
        let edge = Edge { waiting: id, earlier: id, place: Place::Ranges };
        let mut overhead = Overhead::default();
        for said in [
            TwoPhaseMessage::Granted { id, round: 0, reads: bytes::Bytes::new(), clock: 1 },
            TwoPhaseMessage::Prepare { id, reads: Vec::new() },
            TwoPhaseMessage::Vote { id, clock: 1 },
            TwoPhaseMessage::Decide { id, position: None, reads: None },
            TwoPhaseMessage::Waits { edges: vec![edge; 3] },
            TwoPhaseMessage::WaitsReceived,
        ] {
            overhead.count(&Message::TwoPhase(said));
        }
        overhead.count(&Message::Load { load: Load::default(), room: 7 });
        let Overhead { locks, deadlocks, commitment, edges } = overhead;
        assert_eq!((locks.messages, deadlocks.messages, commitment.messages, edges), (1, 3, 2, 3));
        assert!(deadlocks.bytes > 0 && commitment.bytes > 0);
    }

    #[test]
    fn the_parts_add_up_to_the_cost() {
        let costs = CostTable {
            step: 7_000,
            message: 1_000,
            byte: 10,
            executed_alone: 90_000,
            locks: 20_000,
            edge: 3_000,
            ..CostTable::default()
        };
        let overhead = Overhead {
            locks: Traffic { messages: 1, bytes: 100 },
            deadlocks: Traffic { messages: 2, bytes: 0 },
            commitment: Traffic { messages: 3, bytes: 50 },
            edges: 4,
        };
        let work = StepWork {
            messages_received: 6,
            bytes_received: 150,
            executed_alone: 2,
            overhead,
            ..StepWork::default()
        };
        let spent = Spent::of(&work, &costs);
        assert_eq!((spent.locks, spent.deadlocks, spent.commitment), (42, 14, 3));
        assert_eq!(spent.busy(), costs.step(&work));
        let half = spent.stretched(spent.busy() / 2);
        assert_eq!((half.busy(), half.locks), (spent.busy() / 2, 21));
        let mut sum = half;
        sum += spent;
        assert_eq!(sum.busy(), half.busy() + spent.busy());
        assert_eq!(Spent::default().stretched(0).busy(), 0);
    }
}
