//! From what the engine and the gateway produced to messages and replies.

use bytes::Bytes;

use super::{Node, Outbox};
use crate::engine::Engine;
use crate::message::{Message, Reply, Report};
use crate::position::{Epoch, NodeId, PartitionId};

impl<E: Engine> Node<E> {
    pub(super) fn report(&mut self, report: Report) {
        self.stand_in.keep(&report);
        let (gateway, mut context) = self.gateway();
        gateway.report(report, &mut context);
    }

    /// Turns what the engine and the gateway produced into messages and replies.
    pub(super) fn flush(&mut self, outbox: &mut Outbox) {
        for partition in 0..self.partitions {
            for (epoch, reads) in std::mem::take(&mut self.effects.reads[usize::from(partition)]) {
                let message = Message::Reads { basis: self.basis(epoch), reads: Bytes::from(reads) };
                self.say(PartitionId(partition), epoch, message, outbox);
            }
        }
        let mut reports = std::mem::take(&mut self.effects.reports);
        let mut remote: Vec<(PartitionId, Report)> = Vec::new();
        for report in reports.drain(..) {
            let origin = report.position.origin;
            if origin == self.me { self.report(report) } else { remote.push((origin, report)) }
        }
        self.effects.reports = reports;
        for (origin, reports) in grouped(remote) {
            let through = reports.iter().map(|report| report.position.epoch).fold(Epoch(0), Epoch::max);
            let message = Message::Reports { basis: self.basis(through), reports };
            self.say(origin, through, message, outbox);
        }
        for (request, at) in std::mem::take(&mut self.effects.snapshots) {
            let lineage = self.basis(at.epoch).lineage;
            self.say(at.origin, at.epoch, Message::SnapshotReady { request, at, lineage }, outbox);
        }
        self.tell_verdicts(outbox);
        if let Some(executed) = &mut self.effects.executed {
            outbox.trace.executed.append(executed);
        }
        self.gateway.spare.append(&mut self.effects.footprints);
        for (partition, ticket, want) in std::mem::take(&mut self.gateway.effects.fetches) {
            self.send(self.routes.to(partition), Message::Fetch { ticket, want }, outbox);
        }
        let mut answers = std::mem::take(&mut self.gateway.effects.answers);
        let mut remote: Vec<(NodeId, Reply)> = Vec::new();
        for (entry, request, outcome) in answers.drain(..) {
            let reply = Reply { request, outcome };
            if entry == self.id { outbox.replies.push(reply) } else { remote.push((entry, reply)) }
        }
        self.gateway.effects.answers = answers;
        for (entry, replies) in grouped(remote) {
            self.send(entry, Message::Replies(replies), outbox);
        }
    }

    /// Gives one reply to the client at `entry`.
    pub(super) fn reply(&mut self, entry: NodeId, reply: Reply, outbox: &mut Outbox) {
        match entry == self.id {
            true => outbox.replies.push(reply),
            false => self.send(entry, Message::Replies(vec![reply]), outbox),
        }
    }

    /// Says what follows from the order, of epochs through `through`, to whoever executes a partition with this node's help.
    pub(super) fn say(&mut self, to: PartitionId, through: Epoch, message: Message, outbox: &mut Outbox) {
        let subscribers = self.streams.say(to, through, &message);
        let Some((last, others)) = subscribers.split_last() else { return };
        let (messages, bytes) = (subscribers.len() as u64, message.payload_bytes() as u64);
        for replica in others {
            outbox.sends.push((NodeId { partition: to, replica: *replica }, message.clone()));
        }
        outbox.sends.push((NodeId { partition: to, replica: *last }, message));
        self.messages += messages;
        self.message_bytes += messages * bytes;
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message, outbox: &mut Outbox) {
        debug_assert_ne!(to, self.id, "a node does not send to itself");
        self.messages += 1;
        self.message_bytes += message.payload_bytes() as u64;
        outbox.sends.push((to, message));
    }
}

/// Puts items for one receiver together; receivers in the order of their first items, items in theirs.
pub(super) fn grouped<K: PartialEq, T>(items: Vec<(K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (to, item) in items {
        match groups.iter_mut().find(|(other, _)| *other == to) {
            Some((_, group)) => group.push(item),
            None => groups.push((to, vec![item])),
        }
    }
    groups
}
