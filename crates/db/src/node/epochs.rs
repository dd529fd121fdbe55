//! Epochs by authorisation: what the [epoch manager](crate::sequencer::epoch_manager) and the leaders of the partitions say to each
//! other.
//!
//! The manager is at the leader of the first partition's replication group, as long as that leads. It sends to the nodes of its own
//! replica, or to those that stand in for them; who does not lead its group sends on to the leader. Answers go straight to the
//! manager, or to where it was.

use super::{Node, Outbox};
use crate::engine::Engine;
use crate::message::Message;
use crate::position::{NodeId, PartitionId};
use crate::sequencer::EpochManager;
use crate::sequencer::authority::{EpochMessage, EpochOrder, EpochReport};

/// The partition whose leader is the epoch manager.
const MANAGES: PartitionId = PartitionId(0);

/// What a node has of that.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// The manager, if it is here.
    manager: Option<EpochManager>,
    /// What it says now.
    orders: Vec<(PartitionId, EpochOrder)>,
}

impl Epochs {
    /// Whether no epoch is under way that the manager here has granted.
    pub(super) fn is_resting(&self) -> bool {
        self.manager.as_ref().is_none_or(|manager| manager.granted().is_none())
    }
}

impl<E: Engine> Node<E> {
    /// How many transactions have got their places in an epoch here since this node runs.
    pub fn starts(&self) -> u64 {
        self.sequencer.starts()
    }

    /// Whether there is an epoch manager, and this node orders for its partition.
    fn is_authorised(&self) -> bool {
        self.sequencer.authority().is_some() && self.gateway.leads()
    }

    /// Takes what is said about epochs.
    pub(super) fn take_epochs(&mut self, from: NodeId, message: EpochMessage, outbox: &mut Outbox) {
        if !self.is_authorised() {
            // Sending on twice could go in circles; what is lost is said again.
            if let Some(leader) = self.leader().filter(|_| from.partition != self.me) {
                self.send(leader, Message::Epochs(message), outbox);
            }
            return;
        }
        let now = self.now;
        let Some(authority) = self.sequencer.authority_mut() else { return };
        match message {
            EpochMessage::Order { manager, term, clock, order } => {
                if authority.obey(manager, term).is_ok() {
                    authority.hear_clock(now, clock);
                    // What it refuses is of no use any more, and nobody waits for it.
                    let _ = self.sequencer.take_order(now, order);
                }
            }
            EpochMessage::Report { partition, clock, report } => {
                authority.hear_clock(now, clock);
                self.with_manager(|manager| manager.take(partition, report));
            }
        }
    }

    /// Does something with the manager, if it is here.
    fn with_manager<T>(&mut self, act: impl FnOnce(&mut EpochManager) -> T) -> Option<T> {
        if self.me != MANAGES || !self.is_authorised() {
            self.epochs.manager = None;
            return None;
        }
        let (term, partitions, length) =
            (self.log.term.unwrap_or_default(), self.partitions, self.sequencer.epoch_microseconds());
        let manager = self.epochs.manager.take().filter(|manager| manager.term() == term);
        let manager = manager.unwrap_or_else(|| EpochManager::new(term, partitions, length));
        Some(act(self.epochs.manager.insert(manager)))
    }

    /// Starts what may start, reports to the manager, and does what the manager has to do if it is here.
    pub(super) fn manage_epochs(&mut self, outbox: &mut Outbox) {
        loop {
            if !self.is_authorised() {
                self.epochs.manager = None;
                return;
            }
            self.sequencer.start(self.now);
            if let Some(report) = self.sequencer.report(self.now) {
                self.report_epoch(report, outbox);
            }
            if !self.order_epochs(outbox) {
                return;
            }
        }
    }

    fn report_epoch(&mut self, report: EpochReport, outbox: &mut Outbox) {
        let partition = self.me;
        if self.with_manager(|manager| manager.take(partition, report)).is_some() {
            return;
        }
        let Some(authority) = self.sequencer.authority() else { return };
        let clock = authority.clock(self.now);
        let to = authority.manager().unwrap_or_else(|| self.routes.to(MANAGES));
        self.send(to, Message::Epochs(EpochMessage::Report { partition, clock, report }), outbox);
    }

    /// Says what the manager has to say now, if it is here; whether it had something to say to this partition itself.
    fn order_epochs(&mut self, outbox: &mut Outbox) -> bool {
        let clock = self.sequencer.authority().map_or(0, |authority| authority.clock(self.now));
        let mut orders = std::mem::take(&mut self.epochs.orders);
        let term = self.with_manager(|manager| {
            manager.advance(clock, &mut orders);
            manager.term()
        });
        let mut told_itself = false;
        for (partition, order) in orders.drain(..) {
            let (manager, term) = (self.id, term.unwrap_or_default());
            let message = EpochMessage::Order { manager, term, clock, order };
            match partition == self.me {
                true => {
                    self.take_epochs(manager, message, outbox);
                    told_itself = true;
                }
                false => self.send(self.routes.to(partition), Message::Epochs(message), outbox),
            }
        }
        self.epochs.orders = orders;
        told_itself
    }

    /// Whether something about epochs is to be done at once.
    pub(super) fn epochs_are_pressing(&self) -> bool {
        self.gateway.leads() && self.sequencer.is_pressing(self.now)
    }

    /// When an epoch is to be closed, or something is to be said about one, by time alone.
    pub(super) fn epoch_deadline(&self) -> Option<u64> {
        if !self.gateway.leads() {
            return None;
        }
        let own = self.sequencer.deadline(self.now);
        let manager = self.epochs.manager.as_ref().and_then(EpochManager::deadline);
        let authority = self.sequencer.authority();
        let manager = manager.zip(authority).map(|(deadline, authority)| authority.when(deadline));
        [own, manager].into_iter().flatten().filter(|deadline| *deadline > self.now).min()
    }
}
