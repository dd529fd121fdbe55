//! The event heap: what happens next, by virtual time and, at equal times, in the order in which it was planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Nanoseconds;

/// A planned event.
#[derive(Debug)]
struct Planned<E> {
    at: Nanoseconds,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Planned<E>) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Planned<E>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Planned<E>) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Events ordered by (virtual time, sequence number), and the clock that they move.
#[derive(Debug)]
pub struct Heap<E> {
    planned: BinaryHeap<Reverse<Planned<E>>>,
    now: Nanoseconds,
    sequence: u64,
}

impl<E> Default for Heap<E> {
    fn default() -> Heap<E> {
        Heap { planned: BinaryHeap::new(), now: 0, sequence: 0 }
    }
}

impl<E> Heap<E> {
    /// Nothing planned, at time 0.
    pub fn new() -> Heap<E> {
        Heap::default()
    }

    /// The time of the event that was taken last.
    pub fn now(&self) -> Nanoseconds {
        self.now
    }

    /// Plans an event, at once if its time has passed.
    pub fn plan(&mut self, at: Nanoseconds, event: E) {
        self.sequence += 1;
        self.planned.push(Reverse(Planned { at: at.max(self.now), sequence: self.sequence, event }));
    }

    /// Plans an event after some time.
    pub fn plan_after(&mut self, delay: Nanoseconds, event: E) {
        self.plan(self.now + delay, event);
    }

    /// Takes the next event if it is due by `until`, and moves the clock to it. Else the clock moves to `until`, if that
    /// is later.
    pub fn next_until(&mut self, until: Nanoseconds) -> Option<E> {
        if self.planned.peek().is_none_or(|next| next.0.at > until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse(Planned { at, event, .. }) = self.planned.pop()?;
        self.now = at;
        Some(event)
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Nanoseconds> {
        self.planned.peek().map(|next| next.0.at)
    }

    /// Number of planned events.
    pub fn len(&self) -> usize {
        self.planned.len()
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_order() {
        let mut heap = Heap::new();
        for (at, event) in [(5, "c"), (1, "a"), (5, "d"), (2, "b")] {
            heap.plan(at, event);
        }
        let first: Vec<&str> = std::iter::from_fn(|| heap.next_until(4)).collect();
        assert_eq!((first, heap.now()), (vec!["a", "b"], 4));
        heap.plan(3, "late");
        heap.plan_after(0, "now");
        let rest: Vec<&str> = std::iter::from_fn(|| heap.next_until(9)).collect();
        assert_eq!((rest, heap.now(), heap.len()), (vec!["late", "now", "c", "d"], 9, 0));
    }
}
