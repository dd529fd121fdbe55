//! A reliable stream between two nodes: every message arrives exactly once and in order, over a network that loses,
//! duplicates and reorders packets, for as long as both nodes live.
//!
//! It stands for what the server has: a connection with numbered frames and cumulative acknowledgements that is resumed when
//! the network breaks it, and that begins anew when one of the two processes does. A [`Link`] is one node's end
//! towards one peer and carries both directions. It is a state machine: the driver brings packets and the time in, and
//! sends what comes out.
//!
//! # The protocol
//!
//! - **Incarnations.** Each end has an incarnation, a number that ascends with the lives of its node. Each packet names those
//!   of both ends, as far as its sender knows them. What was sent to or by an earlier one is dropped; who sends to an earlier
//!   one is told of the present one, as each may know only an earlier one of the other.
//! - **Beginning.** An end that begins says [`Hello`](Packet::Hello) until it hears from the peer. Whoever hears of a new
//!   incarnation of the other end forgets the old stream, tells its node so ([`Delivery::Reset`]), and answers. So both
//!   nodes know that the link is new before anything comes over it: one after one way, the other after a round trip.
//! - **Numbers.** The messages of a direction are numbered from 0. The sender keeps each until it is acknowledged, and has
//!   at most a window of them on the way.
//! - **Order.** The receiver hands messages over in order. What comes early is held, up to a window; what comes again is
//!   dropped, and acknowledged again.
//! - **Retransmission.** One timer runs while something is on the way, from the last progress. When it expires, the first
//!   message alone is sent again as a probe: the receiver holds those behind it if they have arrived, and its answer frees
//!   them all. Everything behind counts as not sent (go-back-N); each acknowledgement that frees something doubles the
//!   number of messages that may be on the way, until the window is open again. Each expiry doubles the time to the next
//!   one, up to a maximum. Progress, or data of the peer, take that back.
//! - **A limit.** What is sent while there is no stream is dropped. When more messages are kept for a peer that is out of
//!   reach than the limit allows, all are dropped and the end begins anew.
//!
//! # What is left out
//!
//! - An acknowledgement says that a message has come to the node, not that it has made anything of it: what a node has in
//!   its inbox when it crashes is lost with it.
//! - The timer is an option and not measured; a lost packet is noticed by the timer alone.

use std::collections::{BTreeMap, VecDeque};

use crate::time::{MILLISECOND, Nanoseconds};

/// A packet between two links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<T> {
    /// The incarnation of the end that sends it.
    pub from: u64,
    /// The incarnation of the end that it is for; 0 when that is not known.
    pub to: u64,
    /// What it says.
    pub packet: Packet<T>,
}

/// What goes over the network between two links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<T> {
    /// The sender is there. It is answered when it is for nobody in particular.
    Hello,
    /// A message and its number in the stream, from 0.
    Data {
        /// How many messages were sent before it.
        number: u64,
        /// The message.
        message: T,
    },
    /// The sender of this packet has all messages below this number.
    Acknowledge {
        /// The first number that it has not.
        next: u64,
    },
}

/// What a link hands to its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery<T> {
    /// The stream is a new one: messages of the old one may be lost, in both directions.
    Reset,
    /// The next message of the peer.
    Message(T),
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
    /// Messages that are kept for a peer, at most; then the link begins anew.
    pub kept_max: usize,
}

impl Default for LinkOptions {
    /// For machines in one hall.
    fn default() -> LinkOptions {
        LinkOptions {
            window: 64,
            timeout: 20 * MILLISECOND,
            timeout_max: 320 * MILLISECOND,
            kept_max: usize::MAX,
        }
    }
}

impl LinkOptions {
    /// For a network on which an acknowledgement takes at most so long: the way there, and the way back. Anything shorter
    /// would send again what is not lost.
    pub fn for_round_trip(longest: Nanoseconds) -> LinkOptions {
        let timeout = longest.saturating_mul(2).max(1);
        LinkOptions { timeout, timeout_max: timeout.saturating_mul(8), ..LinkOptions::default() }
    }
}

/// The incarnation that both ends of a link have when a cluster begins.
const FIRST: u64 = 1;

/// One node's end of the streams to and from one peer; see the [module](self).
#[derive(Clone, Debug)]
pub struct Link<T> {
    options: LinkOptions,
    own: u64,
    /// The latest incarnation of the other end that was heard of; 0 for none.
    peer: u64,
    /// Whether there is a stream.
    open: bool,
    /// Number of messages that were sent on this stream.
    numbered: u64,
    /// The peer has all below.
    acknowledged: u64,
    /// The messages from `acknowledged` on.
    kept: VecDeque<T>,
    /// The first number that is not on the way.
    transmitted: u64,
    /// How many may be on the way: the window, or less after an expiry.
    window: u64,
    /// When the timer expires.
    deadline: Option<Nanoseconds>,
    /// How often the timer has expired in a row.
    expiries: u32,
    /// Messages of the peer that were handed over.
    received: u64,
    /// Messages of the peer that it was told of.
    told: u64,
    /// Messages of the peer that came before their turn.
    early: BTreeMap<u64, T>,
}

impl<T: Clone> Link<T> {
    /// The link of a node that begins together with its peer: there is a stream already.
    ///
    /// # Panics
    /// When the window or the timeout is 0, or the longest timeout shorter than the first.
    pub fn begun(options: LinkOptions) -> Link<T> {
        Link { peer: FIRST, open: true, ..Link::beginning(options, FIRST) }
    }

    /// The link of a node that begins alone: it will say hello at its [`deadline`](Link::deadline), which is at once. The
    /// incarnation must be higher than any that this end had before, with room for those that follow when the limit is reached.
    ///
    /// # Panics
    /// See [`begun`](Link::begun).
    pub fn beginning(options: LinkOptions, incarnation: u64) -> Link<T> {
        assert!(options.window > 0, "the window is 0: nothing could be sent, give at least 1");
        assert!(
            options.timeout > 0 && options.timeout <= options.timeout_max,
            "the timeout is {} of at most {} ns: give more than 0 and not more than the longest",
            options.timeout,
            options.timeout_max
        );
        Link {
            options,
            own: incarnation,
            peer: 0,
            open: false,
            numbered: 0,
            acknowledged: 0,
            kept: VecDeque::new(),
            transmitted: 0,
            window: options.window,
            deadline: (incarnation > FIRST).then_some(0),
            expiries: 0,
            received: 0,
            told: 0,
            early: BTreeMap::new(),
        }
    }

    /// Sends a message: it gets the next number and leaves when the window has room. Packets for the peer are added to
    /// `out`. Whether there is a stream; without one the message is lost.
    pub fn send(&mut self, now: Nanoseconds, message: T, out: &mut Vec<Frame<T>>) -> bool {
        if self.open && self.kept.len() >= self.options.kept_max {
            self.own += 1;
            self.clear();
            self.open = false;
            self.deadline = Some(now);
        }
        if self.open {
            self.numbered += 1;
            self.kept.push_back(message);
            self.transmit(now, out);
        }
        self.open
    }

    /// Takes a packet of the peer. What comes of it for the node is added to `ready`, packets for the peer to `out`.
    ///
    /// # Panics
    /// When the peer acknowledges what was never sent.
    pub fn receive(
        &mut self,
        now: Nanoseconds,
        frame: Frame<T>,
        ready: &mut Vec<Delivery<T>>,
        out: &mut Vec<Frame<T>>,
    ) {
        let Frame { from, to, packet } = frame;
        let misses = to != 0 && to != self.own;
        // An end that is not open says hello anyhow.
        if from < self.peer || (misses && !self.open) {
            return;
        }
        if from > self.peer || !self.open {
            self.clear();
            (self.peer, self.open) = (from, true);
            ready.push(Delivery::Reset);
        }
        match packet {
            _ if misses => out.push(self.frame(Packet::Hello)),
            Packet::Hello if to == 0 => out.push(self.frame(Packet::Hello)),
            Packet::Hello => {}
            Packet::Data { number, message } => {
                self.hurry(now);
                self.receive_data(number, message, ready, out);
            }
            Packet::Acknowledge { next } => self.receive_acknowledgement(now, next, out),
        }
    }

    /// Forgets the stream.
    fn clear(&mut self) {
        let (options, own) = (self.options, self.own);
        *self = Link { peer: self.peer, deadline: None, ..Link::beginning(options, own) };
    }

    fn frame(&self, packet: Packet<T>) -> Frame<T> {
        Frame { from: self.own, to: if self.open { self.peer } else { 0 }, packet }
    }

    fn receive_data(
        &mut self,
        number: u64,
        message: T,
        ready: &mut Vec<Delivery<T>>,
        out: &mut Vec<Frame<T>>,
    ) {
        if number < self.received {
            // An earlier acknowledgement may be lost.
            out.push(self.frame(Packet::Acknowledge { next: self.told }));
            return;
        }
        if number > self.received {
            if number - self.received < self.options.window {
                self.early.entry(number).or_insert(message);
            }
            return;
        }
        ready.push(Delivery::Message(message));
        self.received += 1;
        while let Some(message) = self.early.remove(&self.received) {
            ready.push(Delivery::Message(message));
            self.received += 1;
        }
    }

    fn receive_acknowledgement(&mut self, now: Nanoseconds, next: u64, out: &mut Vec<Frame<T>>) {
        assert!(
            next <= self.numbered,
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
        self.window = self.window.saturating_mul(2).min(self.options.window);
        self.expiries = 0;
        self.deadline = (self.transmitted > next).then(|| now.saturating_add(self.options.timeout));
        self.transmit(now, out);
    }

    /// Tells the peer of all its messages that were handed over, if it was not told before. One call for many messages
    /// sends one packet.
    pub fn acknowledge(&mut self, out: &mut Vec<Frame<T>>) {
        if self.open && self.received > self.told {
            self.told = self.received;
            out.push(self.frame(Packet::Acknowledge { next: self.told }));
        }
    }

    /// When [`expire`](Link::expire) is to be called. It changes with every call; a driver that comes too early does no
    /// harm.
    pub fn deadline(&self) -> Option<Nanoseconds> {
        self.deadline
    }

    /// Says hello, or sends the first message again, if the deadline has passed; does nothing otherwise.
    pub fn expire(&mut self, now: Nanoseconds, out: &mut Vec<Frame<T>>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.expiries = self.expiries.saturating_add(1);
        if !self.open {
            out.push(self.frame(Packet::Hello));
            self.deadline = Some(now.saturating_add(self.patience()));
            return;
        }
        self.transmitted = self.acknowledged;
        self.window = 1;
        self.deadline = None;
        self.transmit(now, out);
    }

    /// Sends what the window has room for, and starts the timer if it does not run.
    fn transmit(&mut self, now: Nanoseconds, out: &mut Vec<Frame<T>>) {
        let end = self.numbered.min(self.acknowledged.saturating_add(self.window));
        while self.transmitted < end {
            let place = (self.transmitted - self.acknowledged) as usize;
            let message = self.kept[place].clone();
            out.push(self.frame(Packet::Data { number: self.transmitted, message }));
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
    /// do not: a peer that is slow answers every probe, and would get more of them.
    fn hurry(&mut self, now: Nanoseconds) {
        if self.expiries > 0 {
            self.expiries = 0;
            let soon = now.saturating_add(self.options.timeout);
            self.deadline = self.deadline.map(|deadline| deadline.min(soon));
        }
    }

    /// Whether there is a stream.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Number of messages that wait for an acknowledgement, whether they are on the way or not.
    pub fn unacknowledged(&self) -> usize {
        self.kept.len()
    }

    /// Number of messages of the peer that were handed over on this stream. The next one has this number.
    pub fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests;
