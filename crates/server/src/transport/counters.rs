//! What links and listeners count. Relaxed atomics: the figures are for people, and never decide anything.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a [`Link`](super::Link) has done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Payloads accepted by `send`.
    pub messages: u64,
    /// Bytes of these payloads.
    pub bytes: u64,
    /// Payloads that the peer has acknowledged. `messages - acknowledged` are in the queue.
    pub acknowledged: u64,
    /// Payloads written again after a connection was lost.
    pub resent: u64,
    /// Connections that completed the handshake, but for the first.
    pub reconnects: u64,
    /// Payloads that were dropped with their session.
    pub dropped: u64,
}

#[derive(Default)]
pub(crate) struct LinkCounts {
    pub(crate) dropped: Counter,
    pub(crate) messages: Counter,
    pub(crate) bytes: Counter,
    pub(crate) acknowledged: Counter,
    pub(crate) resent: Counter,
    pub(crate) connections: Counter,
}

impl LinkCounts {
    pub(crate) fn snapshot(&self) -> LinkCounters {
        LinkCounters {
            messages: self.messages.get(),
            bytes: self.bytes.get(),
            acknowledged: self.acknowledged.get(),
            resent: self.resent.get(),
            reconnects: self.connections.get().saturating_sub(1),
            dropped: self.dropped.get(),
        }
    }
}

/// What has come from one peer since the [`Listener`](super::Listener) was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Payloads delivered to the receiver.
    pub messages: u64,
    /// Bytes of these payloads.
    pub bytes: u64,
    /// Connections that completed the handshake, but for the first.
    pub reconnects: u64,
}

#[derive(Default)]
pub(crate) struct PeerCounts {
    pub(crate) messages: Counter,
    pub(crate) bytes: Counter,
    pub(crate) connections: Counter,
}

impl PeerCounts {
    pub(crate) fn snapshot(&self) -> PeerCounters {
        PeerCounters {
            messages: self.messages.get(),
            bytes: self.bytes.get(),
            reconnects: self.connections.get().saturating_sub(1),
        }
    }
}

/// What a [`Listener`](super::Listener) has done since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerCounters {
    /// Connections that arrived.
    pub connections: u64,
    /// Of these, the ones that did not complete the handshake.
    pub refused: u64,
    /// Clients that completed the handshake.
    pub clients: u64,
    /// Clients that were disconnected because they did not read their replies.
    pub slow_clients: u64,
    /// Payloads from clients that were delivered to the receiver.
    pub client_messages: u64,
    /// Bytes of these payloads.
    pub client_bytes: u64,
    /// Replies that were queued for clients.
    pub reply_messages: u64,
    /// Bytes of these replies.
    pub reply_bytes: u64,
}

#[derive(Default)]
pub(crate) struct ListenerCounts {
    pub(crate) connections: Counter,
    pub(crate) refused: Counter,
    pub(crate) clients: Counter,
    pub(crate) slow_clients: Counter,
    pub(crate) client_messages: Counter,
    pub(crate) client_bytes: Counter,
    pub(crate) reply_messages: Counter,
    pub(crate) reply_bytes: Counter,
}

impl ListenerCounts {
    pub(crate) fn snapshot(&self) -> ListenerCounters {
        ListenerCounters {
            connections: self.connections.get(),
            refused: self.refused.get(),
            clients: self.clients.get(),
            slow_clients: self.slow_clients.get(),
            client_messages: self.client_messages.get(),
            client_bytes: self.client_bytes.get(),
            reply_messages: self.reply_messages.get(),
            reply_bytes: self.reply_bytes.get(),
        }
    }
}
