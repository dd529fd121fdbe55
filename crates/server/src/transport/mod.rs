//! Messages between the processes of a cluster, and between clients and a process. Payloads are opaque bytes here.
//!
//! # The life of a payload
//!
//! 1. A process has one [`Membership`], one [`Listener`], and one [`Link`] to each peer. [`Link::send`] puts a payload into
//!    the link's queue.
//! 2. The link's writer takes all that is queued and writes it as [frames](frame) in one go, on a TCP connection that it
//!    opens, and opens again when it breaks. Each begins with a [handshake], in which the peer says what it has received.
//! 3. The peer's listener reads the frames and calls its [`Receiver`]. Then it acknowledges.
//! 4. The link forgets what is acknowledged. What is not, it sends again on the next connection, beginning with exactly the
//!    payload that the peer expects: so nothing is lost, doubled or reordered while both processes live.
//!
//! A connection between peers carries payloads one way and acknowledgements the other; two processes that talk both ways
//! have two. A [client](client::connect) uses the same port and the same frames; its connection carries payloads both ways
//! and is not resumed: a client that loses it must find out what became of its requests.
//!
//! # What is not here
//!
//! - No authentication and no encryption: whoever reaches the port and knows the cluster's fingerprint can pose as a
//!   peer. The network between the processes must be private.
//! - No memory over restarts: queues are in memory. When a process restarts, its peers either stop, or begin a new *session*
//!   with it and are told that payloads may be lost: see [`Membership`].
//! - No priorities: a link is one queue.

mod accepted;
mod batch;
pub mod client;
mod client_handle;
mod connection;
mod counters;
mod error;
pub mod frame;
pub mod handshake;
mod incoming;
pub mod limits;
mod link;
mod link_writer;
mod listener;
mod membership;
mod receiver;
mod send_queue;
pub(crate) mod sync;

pub use client::{ClientError, ClientReceiver, ClientSender};
pub use client_handle::ClientHandle;
pub use counters::{LinkCounters, ListenerCounters, PeerCounters};
pub use error::{CloseError, SendError};
pub use handshake::{Hello, Refusal, RefusalCode, Role};
pub use link::{Link, LinkStatus};
pub use listener::{Listener, ListenerOptions};
pub use membership::{Membership, OnSession};
pub use receiver::Receiver;
