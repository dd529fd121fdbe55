//! What a link keeps: every payload from the moment it is sent until the peer has acknowledged it. Pure.

use std::collections::VecDeque;

use bytes::Bytes;

use super::connection::ConnectionError;
use super::limits::{
    LINK_QUEUE_BYTES_MAX, LINK_QUEUE_MESSAGES_MAX, WRITE_BATCH_BYTES_MAX, WRITE_BATCH_FRAMES_MAX,
};

/// The queue of one link. Sequences start at 1.
pub(crate) struct SendQueue {
    /// The payloads with the sequences `first .. first + payloads.len()`.
    payloads: VecDeque<Bytes>,
    /// The oldest sequence that is not acknowledged.
    first: u64,
    /// How many of `payloads`, from the front, have been written on the current connection.
    /// Invariant: `written <= payloads.len()`.
    written: usize,
    /// The next sequence never written on any connection. Invariant:
    /// `first + written <= never_written <= first + payloads.len()`.
    never_written: u64,
    /// Sum of the lengths of `payloads`.
    bytes: usize,
}

impl SendQueue {
    pub(crate) fn new() -> SendQueue {
        SendQueue { payloads: VecDeque::new(), first: 1, written: 0, never_written: 1, bytes: 0 }
    }

    /// Appends a payload, or gives it back if the queue is full.
    pub(crate) fn push(&mut self, payload: Bytes) -> Result<(), Bytes> {
        if self.payloads.len() >= LINK_QUEUE_MESSAGES_MAX || self.bytes + payload.len() > LINK_QUEUE_BYTES_MAX
        {
            return Err(payload);
        }
        self.bytes += payload.len();
        self.payloads.push_back(payload);
        Ok(())
    }

    /// Payloads not acknowledged.
    pub(crate) fn messages(&self) -> usize {
        self.payloads.len()
    }

    /// Bytes of the payloads not acknowledged.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether payloads wait to be written on this connection.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.written < self.payloads.len()
    }

    /// Whether payloads have been written on this connection and not acknowledged.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.written > 0
    }

    /// Marks the next payloads as written and clones them into `batch`; returns the sequence of the first, and how many
    /// of them had been written on an earlier connection.
    pub(crate) fn take_batch(&mut self, batch: &mut Vec<Bytes>) -> (u64, u64) {
        let from = self.first + self.written as u64;
        let mut bytes = 0;
        for payload in self.payloads.range(self.written..).take(WRITE_BATCH_FRAMES_MAX) {
            if bytes + payload.len() > WRITE_BATCH_BYTES_MAX && !batch.is_empty() {
                break;
            }
            bytes += payload.len();
            batch.push(payload.clone());
        }
        self.written += batch.len();
        let to = from + batch.len() as u64;
        let again = self.never_written.min(to) - from.min(self.never_written);
        self.never_written = self.never_written.max(to);
        (from, again)
    }

    /// Everything below `next` has been delivered; returns how many payloads that frees.
    pub(crate) fn acknowledge(&mut self, next: u64) -> Result<usize, ConnectionError> {
        let written_to = self.first + self.written as u64;
        if next > written_to {
            return Err(ConnectionError::AcknowledgedUnsent { acknowledged: next - 1, last: written_to - 1 });
        }
        // An older acknowledgement than one seen is harmless: it says less.
        let freed = next.saturating_sub(self.first) as usize;
        for payload in self.payloads.drain(..freed) {
            self.bytes -= payload.len();
        }
        self.first += freed as u64;
        self.written -= freed;
        Ok(freed)
    }

    /// Begins a new connection to a peer that expects `next`; returns how many payloads that acknowledges.
    pub(crate) fn resume(&mut self, next: u64) -> Result<usize, ConnectionError> {
        if next < self.first || next > self.never_written {
            let last = self.never_written - 1;
            return Err(ConnectionError::CannotResume { next, first: self.first, last });
        }
        self.written = (self.never_written - self.first) as usize;
        let freed = self.acknowledge(next)?;
        self.written = 0;
        Ok(freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_of(count: u64) -> SendQueue {
        let mut queue = SendQueue::new();
        for i in 1..=count {
            queue.push(Bytes::from(i.to_le_bytes().to_vec())).unwrap();
        }
        queue
    }

    fn take(queue: &mut SendQueue) -> (u64, usize, u64) {
        let mut batch = Vec::new();
        let (from, again) = queue.take_batch(&mut batch);
        for (i, payload) in batch.iter().enumerate() {
            assert_eq!(payload[..], (from + i as u64).to_le_bytes());
        }
        (from, batch.len(), again)
    }

    #[test]
    fn resumes_from_what_the_peer_has() {
        let mut queue = queue_of(10);
        assert_eq!(queue.resume(1).unwrap(), 0);
        assert_eq!(take(&mut queue), (1, 10, 0));
        assert_eq!(queue.acknowledge(4).unwrap(), 3);
        assert_eq!(queue.acknowledge(2).unwrap(), 0, "a late acknowledgement frees nothing");
        queue.push(Bytes::from(11u64.to_le_bytes().to_vec())).unwrap();
        assert_eq!(queue.resume(6).unwrap(), 2, "the peer had 4 and 5 although no acknowledgement arrived");
        assert_eq!(take(&mut queue), (6, 6, 5), "6 to 10 go a second time, 11 the first");
        assert_eq!(queue.acknowledge(12).unwrap(), 6);
        assert_eq!((queue.messages(), queue.bytes()), (0, 0));
        assert!(!queue.has_unwritten() && !queue.has_unacknowledged());
    }

    #[test]
    fn a_peer_cannot_have_what_was_never_written_or_want_what_it_acknowledged() {
        let mut queue = queue_of(3);
        assert!(queue.resume(2).is_err());
        assert!(queue.acknowledge(2).is_err());
        take(&mut queue);
        assert!(queue.acknowledge(5).is_err());
        queue.acknowledge(3).unwrap();
        assert!(queue.resume(2).is_err());
        assert!(queue.resume(3).is_ok());
    }

    #[test]
    fn is_bounded_by_count_and_by_bytes() {
        let mut queue = queue_of(LINK_QUEUE_MESSAGES_MAX as u64);
        assert!(queue.push(Bytes::new()).is_err());
        let mut queue = SendQueue::new();
        let half = Bytes::from(vec![0; LINK_QUEUE_BYTES_MAX / 2]);
        queue.push(half.clone()).unwrap();
        queue.push(half).unwrap();
        assert!(queue.push(Bytes::from_static(b"x")).is_err());
        assert!(queue.push(Bytes::new()).is_ok());
    }

    #[test]
    fn batches_are_bounded_and_hold_at_least_one() {
        let mut queue = SendQueue::new();
        for bytes in [2 * WRITE_BATCH_BYTES_MAX, WRITE_BATCH_BYTES_MAX, 1] {
            queue.push(Bytes::from(vec![0; bytes])).unwrap();
        }
        let mut sizes = Vec::new();
        while queue.has_unwritten() {
            let mut batch = Vec::new();
            queue.take_batch(&mut batch);
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [1, 1, 1]);
        assert_eq!(take(&mut queue_of(2000)).1, WRITE_BATCH_FRAMES_MAX);
    }
}
