//! What a node says to the other partitions, kept for those who need it again.
//!
//! All that execution elsewhere depends on (parts of batches, read results, reports, ready snapshots) follows from the log, so
//! every replica of a partition says the same. Who executes another partition of some replica *subscribes* to one of them,
//! from an epoch on: to the node of its own replica as a rule, to that of another replica when the own one has failed
//! (CAL-109), to several at a time if it likes (CAL-107). Receivers ignore what they know already.
//!
//! What was said is kept until the node's whole replica has a checkpoint behind it: a node that recovers alone needs the past
//! read results of the others (CAL-101). Read results cannot be had from the log, so memory sets a limit; below it, only a
//! peer's checkpoint or the common restart of a replica helps.

use std::collections::VecDeque;

use crate::message::Message;
use crate::position::{Epoch, PartitionId, ReplicaId};

/// See the [module](self).
#[derive(Debug)]
pub struct Streams {
    /// By partition; the own place is not used.
    streams: Vec<Stream>,
    /// Whether anything is kept.
    keeps: bool,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Stream {
    /// What was said, with the last epoch that it concerns, in the order in which it was said.
    kept: VecDeque<(Epoch, Message)>,
    /// Of epochs after this one, all that was said is kept.
    cut: Epoch,
    subscribers: Vec<ReplicaId>,
}

impl Streams {
    /// Streams to all partitions. They keep at most about `bytes_max` bytes; or nothing, where nothing recovers.
    pub fn new(partitions: u16, bytes_max: Option<usize>) -> Streams {
        Streams {
            streams: (0..partitions).map(|_| Stream::default()).collect(),
            keeps: bytes_max.is_some(),
            bytes: 0,
            bytes_max: bytes_max.unwrap_or(0),
        }
    }

    /// Says a message that concerns epochs through `epoch`; names those who get it.
    pub fn say(&mut self, to: PartitionId, epoch: Epoch, message: &Message) -> &[ReplicaId] {
        if self.keeps {
            self.bytes += message.payload_bytes();
            self.streams[to.index()].kept.push_back((epoch, message.clone()));
            while self.bytes > self.bytes_max {
                self.forget_oldest();
            }
        }
        &self.streams[to.index()].subscribers
    }

    /// Adds a subscriber, and gives what it needs of epochs after one.
    ///
    /// # Errors
    /// The last epoch of which something is no longer kept, if that is later.
    pub fn subscribe(
        &mut self,
        partition: PartitionId,
        replica: ReplicaId,
        after: Epoch,
    ) -> Result<Vec<Message>, Epoch> {
        let stream = &mut self.streams[partition.index()];
        if after < stream.cut {
            return Err(stream.cut);
        }
        if !stream.subscribers.contains(&replica) {
            stream.subscribers.push(replica);
        }
        let needed = stream.kept.iter().filter(|(epoch, _)| *epoch > after);
        Ok(needed.map(|(_, message)| message.clone()).collect())
    }

    /// Removes a subscriber.
    pub fn unsubscribe(&mut self, partition: PartitionId, replica: ReplicaId) {
        self.streams[partition.index()].subscribers.retain(|other| *other != replica);
    }

    /// Whether a node gets what is said to its partition.
    pub fn serves(&self, partition: PartitionId, replica: ReplicaId) -> bool {
        self.streams[partition.index()].subscribers.contains(&replica)
    }

    /// Forgets what concerns epochs through this one only: nobody needs it again.
    pub fn forget(&mut self, through: Epoch) {
        for stream in &mut self.streams {
            let bytes = &mut self.bytes;
            stream.kept.retain(|(epoch, message)| {
                let keep = *epoch > through;
                *bytes -= if keep { 0 } else { message.payload_bytes() };
                keep
            });
            stream.cut = stream.cut.max(through);
        }
    }

    /// Forgets the oldest message of the stream whose oldest is the oldest.
    fn forget_oldest(&mut self) {
        let oldest = self.streams.iter_mut().filter(|stream| !stream.kept.is_empty());
        let oldest = oldest.min_by_key(|stream| stream.kept.front().map(|(epoch, _)| *epoch));
        let Some((stream, (epoch, message))) =
            oldest.and_then(|stream| stream.kept.pop_front().map(|said| (stream, said)))
        else {
            return;
        };
        stream.cut = stream.cut.max(epoch);
        self.bytes -= message.payload_bytes();
    }

    /// Begins after an epoch: of it and of those before it, nothing can be said.
    pub fn resume(&mut self, after: Epoch) {
        self.streams.iter_mut().for_each(|stream| stream.cut = after);
    }

    /// Whether half of what may be kept is: before the other half is, it is to be known whether anybody still asks for it.
    pub fn is_half_full(&self) -> bool {
        self.keeps && self.bytes > self.bytes_max / 2
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: PartitionId = PartitionId(1);

    fn said(bytes: &'static [u8]) -> Message {
        Message::Consensus(bytes::Bytes::from_static(bytes))
    }

    #[test]
    fn a_subscriber_gets_what_it_needs_and_then_what_is_new() {
        let mut streams = Streams::new(2, Some(1 << 20));
        assert!(streams.say(OTHER, Epoch(1), &said(b"one")).is_empty());
        assert!(streams.say(OTHER, Epoch(2), &said(b"two")).is_empty());
        assert_eq!(streams.subscribe(OTHER, ReplicaId(1), Epoch(1)), Ok(vec![said(b"two")]));
        assert_eq!(streams.say(OTHER, Epoch(3), &said(b"three")), [ReplicaId(1)]);
        assert_eq!(streams.subscribe(OTHER, ReplicaId(2), Epoch(2)), Ok(vec![said(b"three")]));
        streams.unsubscribe(OTHER, ReplicaId(1));
        assert_eq!(streams.say(OTHER, Epoch(4), &said(b"four")), [ReplicaId(2)]);
    }

    #[test]
    fn what_is_forgotten_cannot_be_asked_for() {
        let mut streams = Streams::new(2, Some(1 << 20));
        for epoch in 1..=4 {
            streams.say(OTHER, Epoch(epoch), &said(b"some"));
        }
        streams.forget(Epoch(2));
        assert_eq!(streams.subscribe(OTHER, ReplicaId(0), Epoch(1)), Err(Epoch(2)));
        assert_eq!(streams.subscribe(OTHER, ReplicaId(0), Epoch(2)).map(|said| said.len()), Ok(2));
        streams.forget(Epoch(9));
        assert_eq!(streams.bytes(), 0);
    }

    #[test]
    fn memory_sets_a_limit() {
        let bytes = said(b"some").payload_bytes();
        let mut streams = Streams::new(3, Some(3 * bytes));
        for epoch in 1..=5 {
            streams.say(PartitionId(1 + (epoch % 2) as u16), Epoch(epoch), &said(b"some"));
        }
        assert_eq!(streams.bytes(), 3 * bytes);
        assert_eq!(streams.subscribe(PartitionId(2), ReplicaId(0), Epoch(0)), Err(Epoch(1)));
        assert_eq!(streams.subscribe(PartitionId(1), ReplicaId(0), Epoch(2)).map(|said| said.len()), Ok(1));
    }

    #[test]
    fn nothing_is_kept_where_nothing_recovers() {
        let mut streams = Streams::new(2, None);
        streams.subscribe(OTHER, ReplicaId(0), Epoch(0)).unwrap();
        assert_eq!(streams.say(OTHER, Epoch(1), &said(b"one")), [ReplicaId(0)]);
        assert_eq!(streams.bytes(), 0);
    }
}
