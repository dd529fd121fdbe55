//! Every limit of the transport, in one place. Sizes are in bytes, times are durations; the names end in the unit or in `MAX`.

use std::time::Duration;

/// Bytes of the longest payload of a frame once the handshake is complete.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Bytes of the longest payload of a frame while the handshake is under way: a stranger gets no more.
pub const HANDSHAKE_PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// A connection that has not completed its handshake after this long is refused.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);

/// Of [`HANDSHAKE_TIME_MAX`], how long a reconnecting peer waits for its previous connection to finish delivering.
/// Shorter than the whole, so that the refusal still reaches the peer inside its own deadline.
pub(crate) const TAKE_OVER_TIME_MAX: Duration = Duration::from_secs(3);

/// How long one attempt to open a TCP connection may take.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// The first wait before a link connects again; it doubles up to [`RECONNECT_DELAY_MAX`].
pub const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(10);

/// The longest wait before a link connects again.
pub const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(1);

/// Payloads that a link keeps until the peer acknowledges them.
pub const LINK_QUEUE_MESSAGES_MAX: usize = 65_536;

/// Bytes of the payloads that a link keeps until the peer acknowledges them.
pub const LINK_QUEUE_BYTES_MAX: usize = 256 << 20;

/// Replies that may wait for one client to read them.
pub const CLIENT_QUEUE_MESSAGES_MAX: usize = 65_536;

/// Bytes of the replies that may wait for one client to read them.
pub const CLIENT_QUEUE_BYTES_MAX: usize = 64 << 20;

/// Clients that one process serves at a time, unless [`ListenerOptions`](super::ListenerOptions) says otherwise.
pub const CLIENT_CONNECTIONS_MAX: usize = 1024;

/// Threads for connections beyond the two for each client: for peers, and for strangers inside their handshake.
pub const OTHER_THREADS_MAX: usize = 256;

/// Frames that are written to a socket in one go hold at most this many payload bytes (or one longer frame).
pub(crate) const WRITE_BATCH_BYTES_MAX: usize = 1 << 20;

/// Frames that are written to a socket in one go.
pub(crate) const WRITE_BATCH_FRAMES_MAX: usize = 1024;

/// A payload of at least this many bytes is written from where it is; shorter ones are copied behind their headers,
/// which costs less than one more entry in a vectored write.
pub(crate) const WRITE_IN_PLACE_BYTES_MIN: usize = 16 << 10;

/// Bytes asked of a socket in one read before the handshake is complete.
pub(crate) const HANDSHAKE_READ_BYTES: usize = 1 << 10;

/// Bytes asked of a socket in one read.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// A decoder allocates at most this much more than what has arrived, whatever length a header claims.
pub const READ_AHEAD_BYTES_MAX: usize = 4 << 20;

/// Payloads that are handed to the receiver in one call.
pub const DELIVERY_MESSAGES_MAX: usize = 64;

/// A receiver acknowledges after this many payloads at the latest ...
pub const ACK_MESSAGES_MAX: usize = 64;

/// ... or about this long after the first unacknowledged one; and, while traffic flows, not more often.
pub const ACK_DELAY: Duration = Duration::from_millis(5);

/// The side that has nothing to say to the other says so this often.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// A connection on which nothing arrives for this long, or on which payloads stay unacknowledged for this long, is
/// given up and opened again. The longest frame must cross the network in this time: 64 MiB in 30 s is 2.2 MiB/s.
pub const SILENCE_TIME_MAX: Duration = Duration::from_secs(30);

/// A frame must arrive within this time of its first byte.
pub const FRAME_ARRIVAL_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a refused connection is kept so that the reason can be read: closing at once, with bytes of the other side
/// still unread, would reset the connection and could take the reason with it.
pub(crate) const REFUSAL_LINGER_TIME: Duration = Duration::from_millis(250);

/// How long `close` waits for threads after it has cut their sockets.
pub(crate) const CLOSE_GRACE_TIME: Duration = Duration::from_secs(3);

/// Bytes of the longest reason in a refusal.
pub const REFUSAL_REASON_BYTES_MAX: usize = 1024;

const _: () = assert!(HANDSHAKE_PAYLOAD_BYTES_MAX < FRAME_PAYLOAD_BYTES_MAX);
const _: () = assert!(FRAME_PAYLOAD_BYTES_MAX <= u32::MAX as usize, "the length field has 32 bits");
const _: () =
    assert!(FRAME_PAYLOAD_BYTES_MAX <= LINK_QUEUE_BYTES_MAX, "the longest payload fits an empty queue");
const _: () =
    assert!(FRAME_PAYLOAD_BYTES_MAX <= CLIENT_QUEUE_BYTES_MAX, "the longest reply fits an empty queue");
const _: () = assert!(REFUSAL_REASON_BYTES_MAX < HANDSHAKE_PAYLOAD_BYTES_MAX);
const _: () =
    assert!(DELIVERY_MESSAGES_MAX <= ACK_MESSAGES_MAX, "an acknowledgement is due after a delivery at most");
const _: () = assert!(TAKE_OVER_TIME_MAX.as_millis() < HANDSHAKE_TIME_MAX.as_millis());
const _: () =
    assert!(HEARTBEAT_INTERVAL.as_millis() * 3 < SILENCE_TIME_MAX.as_millis(), "one lost beat is no silence");
