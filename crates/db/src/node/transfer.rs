//! A replica that fell too far behind gets a checkpoint from another one of its group.
//!
//! That is so when the log that it needs has been cut, or when what it needs of the other partitions is no longer kept
//! anywhere. It fetches the file piece by piece, one at a time, and a sender that has other work gives so many bytes a second and
//! no more, so that it keeps its speed. What comes is verified, digest and all, before anything of the own goes; then the replica
//! starts again, and goes on from there. While it fetches, the sender keeps the checkpoint, and the log after it.

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::{HandOut, SnapshotRequest};

use super::{DiskWrite, Node, Outbox};
use crate::checkpoint::{CheckpointHeader, CheckpointIdentity, CheckpointVerifier};
use crate::engine::Engine;
use crate::error::Fatal;
use crate::message::Message;
use crate::position::{Epoch, NodeId, PartitionId, Position, ReplicaId};

/// Bytes of a piece of a checkpoint.
pub const PIECE_BYTES: u64 = 512 * 1024;

/// Bytes of pieces that a node with other work reads and sends in a second: twice what it writes of its own checkpoints, as it
/// writes nothing.
const SEND_BYTES_PER_SECOND: u64 = 32 * 1024 * 1024;

/// After how long without an answer a piece is asked for again, in microseconds.
const RETRY_MICROSECONDS: u64 = 500_000;

/// How often a piece is asked for before the sender is given up.
const ATTEMPTS_MAX: u32 = 10;

/// How long a sender keeps a checkpoint after its last piece was asked for, in microseconds.
const KEEP_MICROSECONDS: u64 = 5_000_000;

/// The same after its last piece was given, which may have to be asked for once more.
const KEEP_ENDED_MICROSECONDS: u64 = 2 * RETRY_MICROSECONDS;

/// How long no checkpoint is fetched after the disk had no room for one, in microseconds: longer than a sender keeps one, so that
/// it goes on with its own meanwhile.
const NO_ROOM_MICROSECONDS: u64 = 30_000_000;

/// Checkpoints on their way from and to a node.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    receiving: Option<Receiving>,
    /// The end of the epoch of the checkpoint of which pieces are asked of this node, and until when it stays, in microseconds, although
    /// there may be newer ones.
    sending: Option<(Epoch, u64)>,
    paces: Paces,
    /// A stable epoch whose effects wait for the end of a transfer.
    pub(super) postponed: Option<Epoch>,
    /// The replica that wants a checkpoint for which this node had none, and the index of the log that it must reach.
    wanted: Option<(ReplicaId, u64)>,
    /// Which replica was last asked for a checkpoint, and when.
    asked: Option<(ReplicaId, u64)>,
    /// Until when no checkpoint is fetched, since the disk had no room for the last one, in microseconds.
    no_room_until: u64,
    /// The end of the epoch of a checkpoint that is on the disk, from which the node is to be made again.
    installed: Option<Epoch>,
    /// The last checkpoint that was damaged where it came from: it is not fetched from there again.
    damaged: Option<(NodeId, Epoch)>,
}

/// A checkpoint that is being received.
#[derive(Debug)]
struct Receiving {
    from: NodeId,
    epoch: Epoch,
    offset: u64,
    asked_at: u64,
    /// How often the next piece was asked for.
    attempts: u32,
    ended: bool,
    /// What has come of it so far.
    verifier: CheckpointVerifier,
}

impl Receiving {
    /// Takes the next piece into account, and after the last one says whether the whole is what it is to be.
    fn verify(&mut self, identity: CheckpointIdentity, piece: &[u8], last: bool) -> Result<(), String> {
        self.verifier.push(piece).map_err(|error| error.to_string())?;
        if !last {
            return Ok(());
        }
        let verified = std::mem::take(&mut self.verifier).finish().map_err(|error| error.to_string())?;
        let CheckpointHeader { identity: found, epoch, .. } = verified.header;
        if (found, epoch) == (identity, self.epoch) {
            return Ok(());
        }
        Err(format!("it is of {} of cluster {:x}, at the end of {epoch}", found.partition, found.cluster))
    }
}

/// A piece of a checkpoint that a node asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    by: NodeId,
    epoch: Epoch,
    offset: u64,
}

/// Keeps a sender that has other work from giving pieces faster than it may.
#[derive(Debug, Default)]
struct Paces {
    /// When the next piece may be given, in microseconds.
    from: u64,
    /// What waits until then: one piece for each node.
    waiting: VecDeque<Wanted>,
}

impl Paces {
    /// Lets a piece wait; it replaces what the same node wanted before.
    fn wait(&mut self, wanted: Wanted) {
        self.waiting.retain(|waiting| waiting.by != wanted.by);
        self.waiting.push_back(wanted);
    }

    /// The next piece to give now, if there is one; `busy` says whether the node has other work.
    fn next(&mut self, now: u64, busy: bool) -> Option<Wanted> {
        if busy && now < self.from {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.from = now + PIECE_BYTES * 1_000_000 / SEND_BYTES_PER_SECOND;
        Some(next)
    }

    /// When the next piece may be given, if any waits.
    fn deadline(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.from)
    }
}

impl Transfers {
    /// When there is something to send.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.paces.deadline()
    }

    /// Whether another replica fetches a checkpoint of this node now.
    pub(super) fn is_sending(&self, now: u64) -> bool {
        self.sent(now).is_some()
    }

    /// The checkpoint that another replica fetches now.
    pub(super) fn sent(&self, now: u64) -> Option<Epoch> {
        self.sending.filter(|(_, until)| now < *until).map(|(epoch, _)| epoch)
    }

    /// Whether this node fetches a checkpoint.
    pub(super) fn is_receiving(&self) -> bool {
        self.receiving.is_some()
    }
}

impl<E: Engine> Node<E> {
    /// Offers a checkpoint to a follower whose entries are no longer in the log. If none is new enough, the leader asks the other
    /// replicas to offer one, as a node of its own may be away so that it will have none; and it orders one.
    pub(super) fn serve_follower(&mut self, follower: SnapshotRequest, outbox: &mut Outbox) {
        if self.offer_from(follower.to, follower.index_min, outbox) || !self.gateway.leads() {
            return;
        }
        let (me, by, index_min) = (self.id, follower.to, follower.index_min);
        for replica in self.live_members().into_iter().filter(|replica| *replica != me.replica) {
            self.send(NodeId { replica, ..me }, Message::CheckpointWanted { by, index_min }, outbox);
        }
        // Where replicas take turns, that of one which is not whole is of no use to the follower, and another's may be.
        self.need_checkpoint(self.live_members(), outbox);
    }

    /// Offers the stable checkpoint to a replica of the group, if it reaches an index of the log: what is older does not know
    /// the replica as a member, or only as what it was before it lost its data. If it does not, the next one may. Whether it does.
    pub(super) fn offer_from(&mut self, to: ReplicaId, index_min: u64, outbox: &mut Outbox) -> bool {
        let stable = self.checkpoints.stability.stable();
        let reaches = self.checkpoints.stability.index_of(stable).is_some_and(|index| index >= index_min);
        self.transfers.wanted = (!reaches).then_some((to, index_min));
        if reaches {
            self.offer_checkpoint(to, stable, outbox);
        }
        reaches
    }

    /// Offers a checkpoint that has just become stable to a replica that waits for one.
    pub(super) fn offer_wanted(&mut self, outbox: &mut Outbox) {
        if let Some((to, index_min)) = self.transfers.wanted {
            self.offer_from(to, index_min, outbox);
        }
    }

    /// Offers a replica of the group the stable checkpoint, or the one that another replica fetches now; but none before an epoch.
    fn offer_checkpoint(&mut self, to: ReplicaId, not_before: Epoch, outbox: &mut Outbox) {
        let stable = self.checkpoints.stability.stable();
        let epoch = self.transfers.sent(self.now).unwrap_or(stable);
        if epoch > Epoch(0) && epoch >= not_before {
            let to = NodeId { partition: self.me, replica: to };
            self.send(to, Message::CheckpointOffer(epoch), outbox);
        }
    }

    /// Offers a replica that cannot go on otherwise a checkpoint after an epoch: the stable one or, if that is too old since a
    /// mate of this node is away, the newest there is. It may hold what is lost with a leader that hands out early: then only the
    /// stable one will do.
    pub(super) fn help_on(&mut self, to: NodeId, after: Epoch, outbox: &mut Outbox) {
        let stable = self.checkpoints.stability.stable();
        let agreed = self.log.replicated.as_ref().is_some_and(|log| log.hand_out() == HandOut::AfterMajority);
        let newest = self.checkpoints.stability.own().last().map(|(epoch, _)| epoch).filter(|_| agreed);
        // Of a file that another replica fetches, the pieces are given to this one too, and of no other.
        let epoch = match self.transfers.sent(self.now) {
            Some(sent) => Some(sent).filter(|sent| *sent > after),
            None => [Some(stable), newest].into_iter().flatten().find(|epoch| *epoch > after),
        };
        if let Some(epoch) = epoch {
            self.send(to, Message::CheckpointOffer(epoch), outbox);
        }
    }

    /// Begins to fetch a checkpoint that is ahead of this node.
    pub(super) fn take_offer(&mut self, now: u64, from: NodeId, epoch: Epoch, outbox: &mut Outbox) {
        let known = self.transfers.receiving.as_ref();
        let busy = known.is_some_and(|receiving| receiving.epoch >= epoch || receiving.ended);
        // What was executed may lack reports that nobody keeps any more.
        if busy || self.is_installed() || now < self.transfers.no_room_until || epoch <= self.completed() {
            return;
        }
        // Another replica may have it whole.
        if self.transfers.damaged == Some((from, epoch)) {
            return;
        }
        // The checkpoint that this node may be taking itself is of the past.
        self.checkpoint_failed("a newer one comes from another replica", outbox);
        let verifier = CheckpointVerifier::default();
        self.transfers.receiving =
            Some(Receiving { from, epoch, offset: 0, asked_at: now, attempts: 1, ended: false, verifier });
        outbox.disk.push(DiskWrite::BeginCheckpoint(epoch));
        self.send(from, Message::CheckpointFetch { epoch, offset: 0 }, outbox);
    }

    /// Gives another replica a piece when it is time; offers another checkpoint if that one is not there.
    pub(super) fn serve_checkpoint(
        &mut self,
        now: u64,
        by: NodeId,
        epoch: Epoch,
        offset: u64,
        outbox: &mut Outbox,
    ) {
        // It starts again, and what it does not start from is removed.
        if self.is_installed() {
            return;
        }
        let may_serve = match self.transfers.sent(now) {
            Some(sent) => sent == epoch,
            None => self.checkpoints.stability.own().any(|(own, _)| own == epoch),
        };
        if !may_serve || epoch == Epoch(0) {
            return self.offer_checkpoint(by.replica, epoch, outbox);
        }
        self.transfers.sending = Some((epoch, now + KEEP_MICROSECONDS));
        self.transfers.paces.wait(Wanted { by, epoch, offset });
        self.read_pieces(now, outbox);
    }

    /// Reads the pieces that may be given now.
    pub(super) fn read_pieces(&mut self, now: u64, outbox: &mut Outbox) {
        if self.transfers.paces.waiting.is_empty() {
            return;
        }
        let busy = !self.is_idle();
        while let Some(Wanted { by, epoch, offset }) = self.transfers.paces.next(now, busy) {
            outbox.disk.push(DiskWrite::ReadCheckpoint { epoch, offset, bytes: PIECE_BYTES, to: by });
        }
    }

    /// Sends a piece that was read.
    pub(super) fn send_piece(
        &mut self,
        to: NodeId,
        epoch: Epoch,
        offset: u64,
        bytes: Bytes,
        outbox: &mut Outbox,
    ) {
        let last = (bytes.len() as u64) < PIECE_BYTES;
        if last && let Some((sent, until)) = &mut self.transfers.sending {
            *until = if *sent == epoch { self.now + KEEP_ENDED_MICROSECONDS } else { *until };
        }
        self.send(to, Message::CheckpointPiece { epoch, offset, bytes, last }, outbox);
    }

    /// Takes a piece, and asks for the next one.
    pub(super) fn take_piece(
        &mut self,
        now: u64,
        from: NodeId,
        (epoch, offset): (Epoch, u64),
        bytes: Bytes,
        last: bool,
        outbox: &mut Outbox,
    ) {
        let Some(receiving) = &mut self.transfers.receiving else { return };
        // Files of different replicas are different.
        let expected = (receiving.from, receiving.epoch, receiving.offset, receiving.ended);
        if expected != (from, epoch, offset, false) {
            return;
        }
        let identity =
            CheckpointIdentity { cluster: self.cluster, partition: self.me, partitions: self.partitions };
        if let Err(problem) = receiving.verify(identity, &bytes, last) {
            return self.refuse_checkpoint(from, epoch, &problem);
        }
        receiving.offset += bytes.len() as u64;
        (receiving.asked_at, receiving.attempts, receiving.ended) = (now, 1, last);
        if !bytes.is_empty() {
            outbox.disk.push(DiskWrite::CheckpointChunk(bytes));
        }
        if last {
            outbox.disk.push(DiskWrite::EndCheckpoint);
            return;
        }
        let (from, offset) = (receiving.from, receiving.offset);
        self.send(from, Message::CheckpointFetch { epoch, offset }, outbox);
    }

    /// What comes from another replica is not what that has taken.
    fn refuse_checkpoint(&mut self, from: NodeId, epoch: Epoch, problem: &str) {
        self.transfers.receiving = None;
        self.transfers.damaged = Some((from, epoch));
        let problem = format!("that of {from} is damaged: {problem}: another replica is asked");
        self.checkpoints.note_problem(epoch, problem);
    }

    /// Whether a checkpoint that is on the disk now came from another replica: then older ones go, and the node starts again.
    pub(super) fn install(&mut self, epoch: Epoch, outbox: &mut Outbox) -> bool {
        if self.transfers.receiving.take_if(|receiving| receiving.ended && receiving.epoch == epoch).is_none()
        {
            return false;
        }
        self.restart_from(epoch, outbox);
        true
    }

    /// Makes the node start again from a checkpoint that is on its disk.
    pub(super) fn restart_from(&mut self, epoch: Epoch, outbox: &mut Outbox) {
        outbox.disk.push(DiskWrite::RemoveCheckpoints { before: epoch });
        self.transfers.installed = Some(epoch);
    }

    /// Ends the node when it is to be made again from a checkpoint that it got.
    ///
    /// # Errors
    /// [`Fatal::Installed`], then.
    pub(super) fn check_installed(&self) -> Result<(), Fatal> {
        self.transfers.installed.map_or(Ok(()), |epoch| Err(Fatal::Installed { epoch }))
    }

    /// Whether the node is about to end by [`Node::check_installed`].
    pub(super) fn is_installed(&self) -> bool {
        self.transfers.installed.is_some()
    }

    /// The disk had no room for what is being received. For a while, nobody is to keep a checkpoint for this node.
    pub(super) fn give_transfer_up(&mut self, now: u64) {
        if self.transfers.receiving.take().is_some() {
            self.transfers.no_room_until = now + NO_ROOM_MICROSECONDS;
        }
    }

    /// Asks again for what does not come, and for a checkpoint when nothing else helps.
    pub(super) fn watch_transfers(&mut self, now: u64, outbox: &mut Outbox) {
        if let Some(receiving) = &mut self.transfers.receiving {
            if !receiving.ended && now > receiving.asked_at + RETRY_MICROSECONDS {
                if receiving.attempts >= ATTEMPTS_MAX {
                    // Another replica may have it as well.
                    self.transfers.receiving = None;
                    return;
                }
                receiving.attempts += 1;
                receiving.asked_at = now;
                let (from, epoch, offset) = (receiving.from, receiving.epoch, receiving.offset);
                self.send(from, Message::CheckpointFetch { epoch, offset }, outbox);
            }
            return;
        }
        let mut partitions = (0..self.partitions).map(PartitionId);
        // Who joins gets what its leader finds for it: an older checkpoint may know it as the voter that it was.
        if self.is_joining()
            || now < self.transfers.no_room_until
            || !partitions.any(|partition| self.routes.nobody_serves(partition, now))
        {
            return;
        }
        let (last, at) = self.transfers.asked.unwrap_or((self.id.replica, 0));
        if self.transfers.asked.is_some() && now < at + RETRY_MICROSECONDS {
            return;
        }
        let others = (1..=self.replicas).map(|step| ReplicaId((last.0 + step) % self.replicas));
        if let Some(replica) = others.into_iter().find(|replica| *replica != self.id.replica) {
            self.transfers.asked = Some((replica, now));
            let to = NodeId { partition: self.me, replica };
            let after = self.completed();
            self.send(to, Message::CheckpointNeeded(after), outbox);
        }
    }

    /// Whether this node has no log yet: it begins with another replica's checkpoint.
    pub(super) fn is_joining(&self) -> bool {
        self.log.replicated.as_ref().is_some_and(|log| log.status().start == 0)
    }

    /// Does what waited for the end of a transfer.
    pub(super) fn end_transfers(&mut self, now: u64, outbox: &mut Outbox) {
        if !self.transfers.is_sending(now)
            && let Some(stable) = self.transfers.postponed.take()
        {
            self.stabilise(stable, outbox);
        }
    }

    /// Gives up the snapshot of a checkpoint that will not be taken.
    pub(super) fn close_point(&mut self, epoch: Epoch) {
        self.storage.close_snapshot(Position::end_of(epoch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(replica: u16, offset: u64) -> Wanted {
        let by = NodeId { partition: PartitionId(0), replica: ReplicaId(replica) };
        Wanted { by, epoch: Epoch(7), offset }
    }

    #[test]
    fn a_busy_sender_gives_so_many_bytes_a_second() {
        let mut paces = Paces::default();
        let (mut now, mut bytes) = (0, 0);
        while now < 1_000_000 {
            paces.wait(wanted(1, bytes));
            while paces.next(now, true).is_some() {
                bytes += PIECE_BYTES;
            }
            now = paces.deadline().unwrap_or(now).max(now + 1);
        }
        assert_eq!(bytes, SEND_BYTES_PER_SECOND);
    }

    #[test]
    fn a_sender_without_other_work_gives_all() {
        let mut paces = Paces::default();
        for offset in 0..100 {
            paces.wait(wanted(1, offset));
            assert_eq!(paces.next(0, false), Some(wanted(1, offset)));
        }
    }

    #[test]
    fn a_node_waits_for_one_piece_whatever_it_asks_for_and_no_other_is_passed_over() {
        let mut paces = Paces::default();
        paces.wait(wanted(1, 0));
        paces.wait(wanted(2, 0));
        paces.wait(wanted(1, PIECE_BYTES));
        assert_eq!(paces.next(0, false), Some(wanted(2, 0)));
        assert_eq!(paces.next(0, false), Some(wanted(1, PIECE_BYTES)));
        assert_eq!(paces.deadline(), None);
    }
}
