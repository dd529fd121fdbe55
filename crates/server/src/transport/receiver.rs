//! What a listener calls when something arrives.

use std::vec::Drain;

use bytes::Bytes;

use super::client_handle::ClientHandle;

/// Takes what a [`Listener`](super::Listener) receives. Implemented by the server, typically by putting payloads into the
/// inboxes of partitions.
///
/// **Threads.** Each connection has a thread of its own that makes its calls, so calls for different connections overlap.
/// All calls for one client come from one thread: `client_connected`, any number of `client_messages`, `client_gone`.
/// Calls for one peer never overlap, but may come from different threads after a reconnect.
///
/// **Back-pressure.** A call may block: then nothing more is read from this connection, and TCP holds up its sender;
/// no other connection notices. A receiver that blocks for good makes [`Listener::close`](super::Listener::close) report
/// a thread that did not end.
///
/// **Memory.** A payload is a slice of a read buffer of up to 64 KiB, or longer for longer frames, which lives as long as
/// any of its payloads. What is kept for long should be copied.
///
/// **Panics.** A receiver must not panic: it is unknown then whether the payloads were taken, so a peer whose call
/// panicked is refused from then on, and a client whose call
/// panicked is disconnected without `client_gone`.
pub trait Receiver: Send + Sync + 'static {
    /// The next payloads of the link from process `from`, in the order they were sent, none twice and none left out over
    /// all connections of that link. At least one, at most
    /// [`DELIVERY_MESSAGES_MAX`](super::limits::DELIVERY_MESSAGES_MAX). When the call returns they count as delivered, taken
    /// from the iterator or not, and are acknowledged.
    fn peer_messages(&self, from: u16, payloads: Drain<'_, Bytes>);

    /// A client has connected. The handle is for replies; it may be cloned and kept until `client_gone`.
    fn client_connected(&self, client: &ClientHandle);

    /// The next payloads from a client, in the order they were sent; at least one, at most
    /// [`DELIVERY_MESSAGES_MAX`](super::limits::DELIVERY_MESSAGES_MAX).
    fn client_messages(&self, client: &ClientHandle, payloads: Drain<'_, Bytes>);

    /// The connection has ended, for whatever reason; no call for this client follows. Replies still queued are dropped,
    /// and sending more is an error.
    fn client_gone(&self, client: &ClientHandle);
}
