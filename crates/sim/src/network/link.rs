//! A reliable stream between two nodes: every message arrives exactly once and in order, over a network that loses,
//! duplicates and reorders packets, and although nodes crash.
//!
//! It stands for what the server has: TCP connections that are resumed, with numbered frames and cumulative
//! acknowledgements (`docs/protocol.md`), and a journal that replays what was received. A [`Link`] is one node's end
//! towards one peer and carries both directions. It is a state machine: the driver brings packets and the time in, and
//! sends what comes out.
//!
//! # The protocol
//!
//! - **Numbers.** The messages of a direction are numbered from 0. The sender keeps each until it is acknowledged, and has
//!   at most a window of them on the way.
//! - **Order.** The receiver hands messages over in order. What comes early is held, up to a window; what comes again is
//!   dropped, and acknowledged again.
//! - **Acknowledgement.** `Acknowledge { next }` says: all messages below `next` will never be needed again. Only the driver
//!   knows when that is so: a machine calls [`Link::acknowledge_through`] after its journal is on disk, a node without a
//!   journal at once.
//! - **Retransmission.** One timer runs while something is on the way, from the last progress. When it expires, the first
//!   message alone is sent again as a probe: the receiver holds those behind it if they have arrived, and its answer frees
//!   them all. Everything behind counts as not sent (go-back-N); each acknowledgement that frees something doubles the
//!   number of messages that may be on the way, until the window is open again. Each expiry doubles the time to the next
//!   one, up to a maximum. Progress, or data of the peer, take that back.
//!
//! # After a crash
//!
//! The link dies with its node; [`Link::resumed`] makes its successor from one number, how many messages of the peer the
//! journal has. What was received after them was never acknowledged, so that the peer still keeps it and its timer sends it
//! again. The replay of the journal brings forth the node's own messages once more, in the same order, so that
//! [`Link::send`] gives them the same numbers. Only message 0 leaves at first, as a probe: the peer drops it as a duplicate
//! and answers with what it has, which frees all of that at once. If the answer comes in the middle of the replay, the
//! messages below it are dropped as the replay sends them. There is no handshake, and the peer does not even notice.
//!
//! For that the driver must keep two promises. A node sends only what its journal would bring forth again: the outputs of a
//! step leave after its inputs are on disk. And a replay sends nothing new before it is complete. Packets of an earlier
//! life that are still on the way do no harm then, since they say the same.
//!
//! # What is left out
//!
//! - Nothing bounds the messages that are kept for a peer that is away. The driver pushes back by
//!   [`Link::unacknowledged`].
//! - A replay that starts at a checkpoint instead of message 0.
//! - The timer is an option and not measured; a lost packet is noticed by the timer alone.

use std::collections::{BTreeMap, VecDeque};

use crate::time::{MILLISECOND, Nanoseconds};

/// What goes over the network between two links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<T> {
    /// A message and its number in the stream, from 0.
    Data {
        /// How many messages were sent before it.
        number: u64,
        /// The message.
        message: T,
    },
    /// The sender of this packet never needs messages below this number again.
    Acknowledge {
        /// The first number that it may still need.
        next: u64,
    },
}

/// How a link behaves; the same at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkOptions {
    /// Messages on the way without an acknowledgement, at most.
    pub window: u64,
    /// The time without progress after which the first message is sent again.
    pub timeout: Nanoseconds,
    /// The longest that this time gets when it is doubled over and over.
    pub timeout_max: Nanoseconds,
}

impl Default for LinkOptions {
    /// For machines in one hall with journals on disk.
    fn default() -> LinkOptions {
        LinkOptions { window: 64, timeout: 20 * MILLISECOND, timeout_max: 320 * MILLISECOND }
    }
}

impl LinkOptions {
    /// For a network on which an acknowledgement takes at most so long: the way there, until the message is on disk, and
    /// the way back. Anything shorter would send again what is not lost.
    pub fn for_round_trip(longest: Nanoseconds) -> LinkOptions {
        let timeout = longest.saturating_mul(2).max(1);
        LinkOptions { timeout, timeout_max: timeout.saturating_mul(8), ..LinkOptions::default() }
    }
}

/// One node's end of the streams to and from one peer; see the [module](self).
#[derive(Clone, Debug)]
pub struct Link<T> {
    options: LinkOptions,
    /// Number of messages that were sent in this life.
    numbered: u64,
    /// The peer has all below.
    acknowledged: u64,
    /// The messages from `acknowledged` on, as far as they were sent in this life.
    kept: VecDeque<T>,
    /// The first number that is not on the way.
    transmitted: u64,
    /// How many may be on the way: the window, or less after an expiry or a crash.
    open: u64,
    /// When the timer expires.
    deadline: Option<Nanoseconds>,
    /// How often the timer has expired in a row.
    expiries: u32,
    /// Messages of the peer that were handed over.
    received: u64,
    /// Messages of the peer that it was told to forget.
    safe: u64,
    /// Messages of the peer that came before their turn.
    early: BTreeMap<u64, T>,
    /// This life follows a crash: the peer may have more messages than it has sent so far.
    resumed: bool,
}

impl<T: Clone> Link<T> {
    /// The link of a node that has never run before.
    ///
    /// # Panics
    /// When the window or the timeout is 0, or the longest timeout shorter than the first.
    pub fn new(options: LinkOptions) -> Link<T> {
        assert!(options.window > 0, "the window is 0: nothing could be sent, give at least 1");
        assert!(
            options.timeout > 0 && options.timeout <= options.timeout_max,
            "the timeout is {} of at most {} ns: give more than 0 and not more than the longest",
            options.timeout,
            options.timeout_max
        );
        Link {
            options,
            numbered: 0,
            acknowledged: 0,
            kept: VecDeque::new(),
            transmitted: 0,
            open: options.window,
            deadline: None,
            expiries: 0,
            received: 0,
            safe: 0,
            early: BTreeMap::new(),
            resumed: false,
        }
    }

    /// The link of a node that starts again, with `received` messages of the peer in its journal. The replay sends all
    /// messages of the node again.
    ///
    /// # Panics
    /// See [`new`](Link::new).
    pub fn resumed(options: LinkOptions, received: u64) -> Link<T> {
        Link { received, safe: received, open: 1, resumed: true, ..Link::new(options) }
    }

    /// Sends a message: it gets the next number and leaves when the window has room. Packets for the peer are added to
    /// `out`.
    pub fn send(&mut self, now: Nanoseconds, message: T, out: &mut Vec<Packet<T>>) {
        let number = self.numbered;
        self.numbered += 1;
        // The peer has had it in an earlier life of this node.
        if number < self.acknowledged {
            return;
        }
        self.kept.push_back(message);
        self.transmit(now, out);
    }

    /// Takes a packet of the peer. Messages whose turn has come are added to `ready`, packets for the peer to `out`.
    ///
    /// # Panics
    /// When the peer acknowledges what was never sent.
    pub fn receive(
        &mut self,
        now: Nanoseconds,
        packet: Packet<T>,
        ready: &mut Vec<T>,
        out: &mut Vec<Packet<T>>,
    ) {
        match packet {
            Packet::Data { number, message } => {
                self.hurry(now);
                self.receive_data(number, message, ready, out);
            }
            Packet::Acknowledge { next } => self.receive_acknowledgement(now, next, out),
        }
    }

    fn receive_data(&mut self, number: u64, message: T, ready: &mut Vec<T>, out: &mut Vec<Packet<T>>) {
        if number < self.received {
            // An earlier acknowledgement may be lost, or the peer does not know where it stood before it crashed.
            out.push(Packet::Acknowledge { next: self.safe });
            return;
        }
        if number > self.received {
            if number - self.received < self.options.window {
                self.early.entry(number).or_insert(message);
            }
            return;
        }
        ready.push(message);
        self.received += 1;
        while let Some(message) = self.early.remove(&self.received) {
            ready.push(message);
            self.received += 1;
        }
    }

    fn receive_acknowledgement(&mut self, now: Nanoseconds, next: u64, out: &mut Vec<Packet<T>>) {
        assert!(
            self.resumed || next <= self.numbered,
            "the peer acknowledges {next} messages, but only {} were sent: both ends must belong to the same stream",
            self.numbered
        );
        if next <= self.acknowledged {
            return;
        }
        let freed = (next - self.acknowledged).min(self.kept.len() as u64);
        self.kept.drain(..freed as usize);
        self.acknowledged = next;
        self.transmitted = self.transmitted.max(next);
        self.open = self.open.saturating_mul(2).min(self.options.window);
        self.expiries = 0;
        self.deadline = (self.transmitted > next).then(|| now.saturating_add(self.options.timeout));
        self.transmit(now, out);
    }

    /// Tells the peer that the first `next` of its messages are safe, if it was not told before. One call for many
    /// messages sends one packet.
    ///
    /// # Panics
    /// When so many were not received yet.
    pub fn acknowledge_through(&mut self, next: u64, out: &mut Vec<Packet<T>>) {
        assert!(
            next <= self.received,
            "{next} messages of the peer cannot be safe: only {} were received",
            self.received
        );
        if next > self.safe {
            self.safe = next;
            out.push(Packet::Acknowledge { next });
        }
    }

    /// When [`expire`](Link::expire) is to be called. It changes with every call; a driver that comes too early does no
    /// harm.
    pub fn deadline(&self) -> Option<Nanoseconds> {
        self.deadline
    }

    /// Sends the first message again if the deadline has passed, and does nothing otherwise.
    pub fn expire(&mut self, now: Nanoseconds, out: &mut Vec<Packet<T>>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.expiries = self.expiries.saturating_add(1);
        self.transmitted = self.acknowledged;
        self.open = 1;
        self.deadline = None;
        self.transmit(now, out);
    }

    /// Sends what the window has room for, and starts the timer if it does not run.
    fn transmit(&mut self, now: Nanoseconds, out: &mut Vec<Packet<T>>) {
        let end = self.numbered.min(self.acknowledged.saturating_add(self.open));
        while self.transmitted < end {
            let place = (self.transmitted - self.acknowledged) as usize;
            out.push(Packet::Data { number: self.transmitted, message: self.kept[place].clone() });
            self.transmitted += 1;
        }
        if self.deadline.is_none() && self.transmitted > self.acknowledged {
            self.deadline = Some(now.saturating_add(self.patience()));
        }
    }

    /// The time without progress after which the timer expires.
    fn patience(&self) -> Nanoseconds {
        let doubled =
            1_u64.checked_shl(self.expiries).map(|factor| self.options.timeout.saturating_mul(factor));
        doubled.unwrap_or(Nanoseconds::MAX).min(self.options.timeout_max)
    }

    /// Data of the peer show that it is back, and perhaps the way to it: what was lost is sent again soon. Acknowledgements
    /// do not: a peer whose disk is slow answers every probe, and would get more of them.
    fn hurry(&mut self, now: Nanoseconds) {
        if self.expiries > 0 {
            self.expiries = 0;
            let soon = now.saturating_add(self.options.timeout);
            self.deadline = self.deadline.map(|deadline| deadline.min(soon));
        }
    }

    /// Number of messages that wait for an acknowledgement, whether they are on the way or not.
    pub fn unacknowledged(&self) -> usize {
        self.kept.len()
    }

    /// Number of messages that were sent in this life, replayed ones among them.
    pub fn sent(&self) -> u64 {
        self.numbered
    }

    /// Number of messages of the peer that were handed over, in all lives. The next one has this number.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Number of messages of the peer that it was told are safe, in all lives.
    pub fn safe(&self) -> u64 {
        self.safe
    }

    /// Number of messages that the peer has and that this life has not sent yet. When it is not 0 after the replay is
    /// complete, the node once sent what its journal did not hold: it has forgotten what others know.
    pub fn forgotten(&self) -> u64 {
        self.acknowledged.saturating_sub(self.numbered)
    }
}

#[cfg(test)]
mod tests;
