//! The errors that callers of the transport see; each says what to do. Why a connection ended is logged and not returned,
//! as links connect again by themselves.

use super::limits::FRAME_PAYLOAD_BYTES_MAX;

/// Why a payload was not taken by a [`Link`](super::Link) or a [`ClientHandle`](super::ClientHandle). It was not sent and
/// will not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer is slower than the sender, or cannot be reached at the moment.
    #[error(
        "the queue to process {process} is full ({messages} messages, {bytes} bytes): wait until it drains, then send again"
    )]
    QueueFull {
        /// The peer.
        process: u16,
        /// Messages in the queue.
        messages: usize,
        /// Bytes in the queue.
        bytes: usize,
    },
    /// The payload is above the limit.
    #[error("a message of {bytes} bytes is longer than the {FRAME_PAYLOAD_BYTES_MAX} allowed: split it")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// What was sent before may be lost, and nothing can be sent in order any more.
    #[error("the link to process {process} has failed: {reason}")]
    LinkFailed {
        /// The peer.
        process: u16,
        /// What happened and what to do.
        reason: String,
    },
    /// The client does not read its replies. It has been disconnected.
    #[error("the client did not read its replies and was disconnected: drop what was meant for it")]
    SlowClient,
    /// The link has been closed, or the client has gone.
    #[error("the connection is closed: drop what was meant for it")]
    Closed,
}

/// What `close` could not bring to an end in the time given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "closing was cut short: {undelivered_messages} messages not acknowledged, {threads} threads still running: allow more time, or end the process"
)]
pub struct CloseError {
    /// Messages of a link that the peer has not acknowledged; it may have received some of them.
    pub undelivered_messages: usize,
    /// Threads that have not ended; most likely inside the receiver. They end when it returns.
    pub threads: usize,
}
