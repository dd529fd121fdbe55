//! Between the types of `raft` and our own: identities, memberships, entries, messages.

use ::raft::eraftpb::{
    ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType,
    Message, MessageType, SnapshotMetadata,
};
use bytes::Bytes;
use protobuf::Message as _;

use crate::log::{LogStart, Membership, ReplicaId};
use crate::record::{EntryKind, RecordedEntry};

/// Version of the form of messages: their first byte.
const VERSION: u8 = 2;

/// Bytes of a message's version and [admission](super::admission).
const HEADER_BYTES: usize = 9;

/// The identity that `raft` knows a replica by. It has no 0.
pub(super) fn id_of(replica: ReplicaId) -> u64 {
    u64::from(replica.0) + 1
}

/// The replica of an identity; none for "nobody", and for identities that no replica has.
pub(super) fn replica_of(id: u64) -> Option<ReplicaId> {
    u16::try_from(id.checked_sub(1)?).ok().map(ReplicaId)
}

fn ids(replicas: &[ReplicaId]) -> Vec<u64> {
    replicas.iter().copied().map(id_of).collect()
}

fn replicas(ids: &[u64]) -> Vec<ReplicaId> {
    let mut replicas: Vec<ReplicaId> = ids.iter().filter_map(|id| replica_of(*id)).collect();
    replicas.sort_unstable();
    replicas
}

/// A membership, as `raft` takes it. We always leave joint memberships automatically.
pub(super) fn conf_state(membership: &Membership) -> ConfState {
    let mut state = ConfState::default();
    state.set_voters(ids(&membership.voters));
    state.set_voters_outgoing(ids(&membership.outgoing));
    state.set_learners(ids(&membership.learners));
    state.set_learners_next(ids(&membership.learners_next));
    state.set_auto_leave(membership.is_joint());
    state
}

/// A membership, as `raft` gives it.
pub(super) fn membership(state: &ConfState) -> Membership {
    Membership {
        voters: replicas(state.get_voters()),
        outgoing: replicas(state.get_voters_outgoing()),
        learners: replicas(state.get_learners()),
        learners_next: replicas(state.get_learners_next()),
    }
}

/// The position of a checkpoint, as `raft` takes it.
pub(super) fn snapshot_metadata(start: &LogStart) -> SnapshotMetadata {
    let mut metadata =
        SnapshotMetadata { index: start.index, term: start.term, ..SnapshotMetadata::default() };
    metadata.set_conf_state(conf_state(&start.membership));
    metadata
}

/// The position of a checkpoint, as `raft` gives it.
pub(super) fn log_start(metadata: &SnapshotMetadata) -> LogStart {
    LogStart { index: metadata.index, term: metadata.term, membership: membership(metadata.get_conf_state()) }
}

/// The change that leads from one membership, which is not joint, to another one.
pub(super) fn change(from: &Membership, voters: &[ReplicaId], learners: &[ReplicaId]) -> ConfChangeV2 {
    let mut changes = Vec::new();
    let mut add = |kind, replica| {
        let mut single = ConfChangeSingle::default();
        single.set_change_type(kind);
        single.node_id = id_of(replica);
        changes.push(single);
    };
    for voter in voters.iter().filter(|voter| !from.voters.contains(voter)) {
        add(ConfChangeType::AddNode, *voter);
    }
    for learner in learners.iter().filter(|learner| !from.learners.contains(learner)) {
        add(ConfChangeType::AddLearnerNode, *learner);
    }
    for member in from.voters.iter().chain(&from.learners) {
        if !voters.contains(member) && !learners.contains(member) {
            add(ConfChangeType::RemoveNode, *member);
        }
    }
    let mut change = ConfChangeV2::default();
    // Joint in any case, and left as soon as it has been entered.
    change.set_transition(ConfChangeTransition::Implicit);
    change.set_changes(changes.into());
    change
}

/// What an entry is for.
pub(super) fn kind(entry: &Entry) -> EntryKind {
    match entry.get_entry_type() {
        EntryType::EntryNormal if entry.data.is_empty() => EntryKind::Barrier,
        EntryType::EntryNormal => EntryKind::Payload,
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => EntryKind::Membership,
    }
}

/// An entry, as a record holds it.
pub(super) fn recorded(entry: &Entry) -> RecordedEntry {
    RecordedEntry { index: entry.index, term: entry.term, kind: kind(entry), payload: entry.data.clone() }
}

/// An entry, as `raft` holds it.
pub(super) fn entry(recorded: RecordedEntry) -> Entry {
    let RecordedEntry { index, term, kind, payload } = recorded;
    let mut entry = Entry { index, term, data: payload, ..Entry::default() };
    entry.set_entry_type(match kind {
        EntryKind::Payload | EntryKind::Barrier => EntryType::EntryNormal,
        EntryKind::Membership => EntryType::EntryConfChangeV2,
    });
    entry
}

/// The change of the membership that an entry holds.
pub(super) fn change_of(entry: &Entry) -> Result<ConfChangeV2, String> {
    ConfChangeV2::parse_from_carllerche_bytes(&entry.data).map_err(|error| error.to_string())
}

/// A message as bytes.
pub(super) fn encode_message(message: &Message, admission: u64) -> Bytes {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + message.compute_size() as usize);
    bytes.push(VERSION);
    bytes.extend_from_slice(&admission.to_le_bytes());
    message.write_to_vec(&mut bytes).expect("a vector takes any number of bytes, and no field is required");
    Bytes::from(bytes)
}

/// Reads a message that another replica's log has sent to this one, and the admission in it.
pub(super) fn decode_message(from: ReplicaId, to: ReplicaId, bytes: &[u8]) -> Result<(Message, u64), String> {
    let (version, rest) = bytes.split_first().ok_or("it is empty")?;
    if *version != VERSION {
        return Err(format!(
            "it has version {version}, and this replica knows {VERSION}: use one program in all"
        ));
    }
    let (admission, form) = rest.split_first_chunk().ok_or("it is cut off")?;
    let message = Message::parse_from_carllerche_bytes(&Bytes::copy_from_slice(form))
        .map_err(|error| error.to_string())?;
    if message.from != id_of(from) {
        return Err(format!("it claims to be from {}", message.from));
    }
    if message.to != id_of(to) {
        return Err(format!("it is for {}", message.to));
    }
    if !is_sent(message.get_msg_type()) {
        return Err(format!("no replica sends a {:?}", message.get_msg_type()));
    }
    if message.term == 0 {
        return Err("it has no term".to_owned());
    }
    validate_entries(&message)?;
    Ok((message, u64::from_le_bytes(*admission)))
}

/// The kinds of messages that replicas exchange. Proposals and reads are not forwarded, and checkpoints are transferred by the
/// driver.
fn is_sent(kind: MessageType) -> bool {
    matches!(
        kind,
        MessageType::MsgAppend
            | MessageType::MsgAppendResponse
            | MessageType::MsgHeartbeat
            | MessageType::MsgHeartbeatResponse
            | MessageType::MsgRequestVote
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVote
            | MessageType::MsgRequestPreVoteResponse
            | MessageType::MsgTimeoutNow
    )
}

fn validate_entries(message: &Message) -> Result<(), String> {
    let mut index = message.index;
    let mut term = message.log_term;
    for entry in message.get_entries() {
        index = index.checked_add(1).ok_or("its entries have no indexes")?;
        if entry.index != index {
            return Err(format!("it has entry {} where {index} should be", entry.index));
        }
        if entry.term < term || entry.term > message.term {
            return Err(format!(
                "its entry {index} has term {}, outside of {term} to {}",
                entry.term, message.term
            ));
        }
        term = entry.term;
        if kind(entry) == EntryKind::Membership {
            change_of(entry)?;
        }
    }
    Ok(())
}
