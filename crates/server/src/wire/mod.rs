//! What the payloads of frames say: between the processes of a cluster, and between a client and a process.
//!
//! A payload begins with [`WIRE_VERSION`] and a byte for its kind. Fixed numbers are little endian; an item of a list is the
//! postcard form of its type. The kinds of the three directions are disjoint, so that a payload that strays is noticed.
//!
//! | kind | payload                              | what follows                                                         |
//! |------|--------------------------------------|----------------------------------------------------------------------|
//! | 1    | [`PeerPayload::Messages`]            | from and to, each partition u16 and replica u16; count u32, that many [`Message`]s |
//! | 2    | [`PeerPayload::Leaving`]             |                                                                      |
//! | 3    | [`PeerPayload::Finished`]            |                                                                      |
//! | 16   | [`ClientPayload::Requests`]          | to u16, count u32, that many [`ClientRequest`]s                      |
//! | 17   | [`ClientPayload::Usage`]             | token u64                                                            |
//! | 18   | [`ClientPayload::Standing`]          | token u64                                                            |
//! | 19   | [`ClientPayload::Grow`]              | token u64, the text of a cluster file as a string                    |
//! | 32   | [`ServerPayload::Replies`]           | count u32, that many [`Reply`]s                                      |
//! | 33   | [`ServerPayload::Usage`]             | token u64, a [`Usage`]                                               |
//! | 34   | [`ServerPayload::Standing`]          | token u64, a [`Standing`]                                            |
//! | 35   | [`ServerPayload::Grown`]             | token u64, what was done or why not, as a result of strings          |
//!
//! A list that is long becomes several payloads in order: one is cut once it has [`PAYLOAD_BYTES_TARGET`], and a message that is
//! itself too long for a frame is sent in halves. So every payload fits the transport.

mod list;

use bytes::Bytes;
use ordain_db::error::Error;
use ordain_db::message::{ClientRequest, Message, Reply};
use ordain_db::node::GroupStatus;
use ordain_db::position::{NodeId, PartitionId, ReplicaId};
use serde::{Deserialize, Serialize};

use self::list::{Cursor, ListEncoder, append};
use crate::transport::limits::FRAME_PAYLOAD_BYTES_MAX;

/// The version of the payloads that this build writes and reads.
pub const WIRE_VERSION: u8 = 18;

/// A payload that has grown to this many bytes gets no further item.
pub const PAYLOAD_BYTES_TARGET: usize = 1 << 20;

/// Most items of a payload from a client or to one: a short payload must not unfold into much memory.
pub const PAYLOAD_ITEMS_MAX: usize = 64 * 1024;

const _: () = assert!(PAYLOAD_BYTES_TARGET < FRAME_PAYLOAD_BYTES_MAX);

const MESSAGES: u8 = 1;
const LEAVING: u8 = 2;
const FINISHED: u8 = 3;
const REQUESTS: u8 = 16;
const ASK_USAGE: u8 = 17;
const ASK_STANDING: u8 = 18;
const GROW: u8 = 19;
const REPLIES: u8 = 32;
const TELL_USAGE: u8 = 33;
const TELL_STANDING: u8 = 34;
const GROWN: u8 = 35;

/// Why bytes are not a payload, or something cannot be one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The other side writes another version.
    #[error(
        "the payload has version {theirs}, this side reads version {WIRE_VERSION}: run the same release of Ordain on both sides"
    )]
    Version {
        /// The version in the payload.
        theirs: u8,
    },
    /// A kind that does not come this way, or does not exist.
    #[error(
        "a payload of kind {kind} does not come from a {from}: run the same release of Ordain on both sides"
    )]
    Kind {
        /// The byte in the payload.
        kind: u8,
        /// Who has sent it.
        from: &'static str,
    },
    /// The bytes do not say what their kind must say.
    #[error("malformed payload ({detail}): run the same release of Ordain on both sides")]
    Malformed {
        /// What is wrong.
        detail: String,
    },
    /// One item is longer than a frame may be.
    #[error("an item takes {bytes} bytes, a payload at most {FRAME_PAYLOAD_BYTES_MAX}: make it smaller")]
    TooLong {
        /// Its encoded length.
        bytes: usize,
    },
}

/// What one process of a cluster says to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerPayload {
    /// Messages of one node to another, in order.
    Messages {
        /// A node of the sender.
        from: NodeId,
        /// A node of the receiver.
        to: NodeId,
        /// What it says.
        messages: Vec<Message>,
    },
    /// The sender shuts down and takes no new requests. Without replicas no transaction commits without it, and the receiver
    /// does the same.
    Leaving,
    /// The sender shuts down and none of its clients waits for an answer any more.
    Finished,
}

/// What a client says to a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientPayload {
    /// Requests to the node of a partition.
    Requests {
        /// The partition, one of the process.
        to: PartitionId,
        /// What is asked.
        requests: Vec<ClientRequest>,
    },
    /// Asks for the process's [`Usage`].
    Usage {
        /// Comes back with the answer.
        token: u64,
    },
    /// Asks for the process's [`Standing`].
    Standing {
        /// Comes back with the answer.
        token: u64,
    },
    /// Asks the process to go on with a cluster file that has more replicas.
    Grow {
        /// Comes back with the answer.
        token: u64,
        /// The text of the file.
        file: String,
    },
}

/// What a process says to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerPayload {
    /// Answers to requests.
    Replies(Vec<Reply>),
    /// The answer to [`ClientPayload::Usage`].
    Usage {
        /// That of the question.
        token: u64,
        /// What is told.
        usage: Usage,
    },
    /// The answer to [`ClientPayload::Standing`].
    Standing {
        /// That of the question.
        token: u64,
        /// What is told.
        standing: Standing,
    },
    /// The answer to [`ClientPayload::Grow`].
    Grown {
        /// That of the question.
        token: u64,
        /// What was done, or why nothing was; for people.
        outcome: Result<String, String>,
    },
}

/// How a process of a replicated cluster stands: what another one must know before it begins a new log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The random number of its data directory.
    pub directory: u128,
    /// Whether its nodes have logs; before that they have promised nothing to anybody.
    pub established: bool,
    /// By the number of the process, the directories that were empty when it founded its logs together with them.
    pub founders: Vec<(u16, u128)>,
    /// How the replication groups of its nodes stand, for those that run.
    pub groups: Vec<(NodeId, GroupStatus)>,
}

/// What a process tells about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of the partitions' threads.
    pub partitions_cpu_nanoseconds: u64,
    /// CPU time of the whole process, its connections included.
    pub process_cpu_nanoseconds: u64,
    /// Whether the process is connected with all others of its cluster.
    pub ready: bool,
}

impl PeerPayload {
    /// The payloads for messages of a node to another.
    ///
    /// # Errors
    /// [`WireError::TooLong`] if a message has more bytes than a frame may and cannot be sent in parts.
    pub fn encode_messages(from: NodeId, to: NodeId, messages: &[Message]) -> Result<Vec<Bytes>, WireError> {
        let mut head = vec![WIRE_VERSION, MESSAGES];
        for number in [from.partition.0, from.replica.0, to.partition.0, to.replica.0] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        let mut lists = ListEncoder::new(&head);
        messages.iter().try_for_each(|message| lists.push(message))?;
        Ok(lists.finish())
    }

    /// The payload of [`PeerPayload::Leaving`].
    pub fn encode_leaving() -> Bytes {
        Bytes::from_static(&[WIRE_VERSION, LEAVING])
    }

    /// The payload of [`PeerPayload::Finished`].
    pub fn encode_finished() -> Bytes {
        Bytes::from_static(&[WIRE_VERSION, FINISHED])
    }

    /// Reads a payload from a peer.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(payload: &[u8]) -> Result<PeerPayload, WireError> {
        let (mut rest, kind) = Cursor::open(payload)?;
        let payload = match kind {
            MESSAGES => PeerPayload::Messages {
                from: NodeId { partition: PartitionId(rest.u16()?), replica: ReplicaId(rest.u16()?) },
                to: NodeId { partition: PartitionId(rest.u16()?), replica: ReplicaId(rest.u16()?) },
                messages: rest.list(usize::MAX)?,
            },
            LEAVING => PeerPayload::Leaving,
            FINISHED => PeerPayload::Finished,
            kind => return Err(WireError::Kind { kind, from: "peer" }),
        };
        rest.end(payload)
    }
}

impl ClientPayload {
    /// The payloads for requests to a partition.
    ///
    /// # Errors
    /// [`WireError::TooLong`] if a request has more bytes than a frame may.
    pub fn encode_requests(to: PartitionId, requests: &[ClientRequest]) -> Result<Vec<Bytes>, WireError> {
        let to = to.0.to_le_bytes();
        let mut lists = ListEncoder::new(&[WIRE_VERSION, REQUESTS, to[0], to[1]]);
        requests.iter().try_for_each(|request| lists.push(request))?;
        Ok(lists.finish())
    }

    /// The payload of [`ClientPayload::Usage`].
    pub fn encode_usage(token: u64) -> Bytes {
        [&[WIRE_VERSION, ASK_USAGE], &token.to_le_bytes()[..]].concat().into()
    }

    /// The payload of [`ClientPayload::Standing`].
    pub fn encode_standing(token: u64) -> Bytes {
        [&[WIRE_VERSION, ASK_STANDING], &token.to_le_bytes()[..]].concat().into()
    }

    /// The payload of [`ClientPayload::Grow`].
    pub fn encode_grow(token: u64, file: &str) -> Bytes {
        with_token(GROW, token, &file)
    }

    /// Reads a payload from a client.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(payload: &[u8]) -> Result<ClientPayload, WireError> {
        let (mut rest, kind) = Cursor::open(payload)?;
        let payload = match kind {
            REQUESTS => ClientPayload::Requests {
                to: PartitionId(rest.u16()?),
                requests: rest.list(PAYLOAD_ITEMS_MAX)?,
            },
            ASK_USAGE => ClientPayload::Usage { token: rest.u64()? },
            ASK_STANDING => ClientPayload::Standing { token: rest.u64()? },
            GROW => ClientPayload::Grow { token: rest.u64()?, file: rest.item()? },
            kind => return Err(WireError::Kind { kind, from: "client" }),
        };
        rest.end(payload)
    }
}

impl ServerPayload {
    /// The payloads for answers. One that is too long for a frame becomes an error that says so.
    pub fn encode_replies(replies: &[Reply]) -> Vec<Bytes> {
        let mut lists = ListEncoder::new(&[WIRE_VERSION, REPLIES]);
        for reply in replies {
            if let Err(problem) = lists.push(reply) {
                let outcome = Err(Error::Invalid(format!("the answer cannot be sent: {problem}")));
                let instead = lists.push(&Reply { request: reply.request, outcome });
                debug_assert!(instead.is_ok(), "an error with a short reason fits");
            }
        }
        lists.finish()
    }

    /// The payload of [`ServerPayload::Usage`].
    pub fn encode_usage(token: u64, usage: &Usage) -> Bytes {
        with_token(TELL_USAGE, token, usage)
    }

    /// The payload of [`ServerPayload::Standing`].
    pub fn encode_standing(token: u64, standing: &Standing) -> Bytes {
        with_token(TELL_STANDING, token, standing)
    }

    /// The payload of [`ServerPayload::Grown`].
    pub fn encode_grown(token: u64, outcome: &Result<String, String>) -> Bytes {
        with_token(GROWN, token, outcome)
    }

    /// Reads a payload from a process.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(payload: &[u8]) -> Result<ServerPayload, WireError> {
        let (mut rest, kind) = Cursor::open(payload)?;
        let payload = match kind {
            REPLIES => ServerPayload::Replies(rest.list(PAYLOAD_ITEMS_MAX)?),
            TELL_USAGE => ServerPayload::Usage { token: rest.u64()?, usage: rest.item()? },
            TELL_STANDING => ServerPayload::Standing { token: rest.u64()?, standing: rest.item()? },
            GROWN => ServerPayload::Grown { token: rest.u64()?, outcome: rest.item()? },
            kind => return Err(WireError::Kind { kind, from: "server" }),
        };
        rest.end(payload)
    }
}

/// A payload of a token and an item.
fn with_token<T: Serialize>(kind: u8, token: u64, item: &T) -> Bytes {
    let mut payload = [&[WIRE_VERSION, kind], &token.to_le_bytes()[..]].concat();
    append(item, &mut payload);
    payload.into()
}

#[cfg(test)]
mod tests {
    use ordain_db::message::{ClientId, RequestId};

    use super::*;

    fn reply(sequence: u64, bytes: usize) -> Reply {
        let client = ClientId { home: PartitionId(1), number: 2 };
        Reply { request: RequestId { client, sequence }, outcome: Ok(vec![7; bytes].into()) }
    }

    #[test]
    fn an_answer_that_cannot_be_sent_becomes_an_error() {
        let replies = [reply(0, 10), reply(1, FRAME_PAYLOAD_BYTES_MAX), reply(2, 10)];
        let mut arrived = Vec::new();
        for payload in ServerPayload::encode_replies(&replies) {
            match ServerPayload::decode(&payload) {
                Ok(ServerPayload::Replies(replies)) => arrived.extend(replies),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(arrived.len(), 3);
        assert_eq!((&arrived[0], &arrived[2]), (&replies[0], &replies[2]));
        assert_eq!(arrived[1].request, replies[1].request);
        assert!(matches!(&arrived[1].outcome, Err(Error::Invalid(reason)) if reason.contains("smaller")));
    }
}
