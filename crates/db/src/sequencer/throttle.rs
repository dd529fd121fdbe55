//! Throttling: a node that lags sheds calls at the door, so that it does not hold the others up (DET-42, DET-44).
//!
//! All partitions execute one order, so a slow node slows every transaction that it takes part in, and by them the whole cluster
//! (Ren et al. §3.5). What it can do is to take on less: it refuses a growing share of the calls that touch its partition alone,
//! before they are ordered, until what is left is what it can keep up with. Calls that other partitions take part in it executes
//! all. What was ordered is never dropped (DET-15), so replicas stay equal.
//!
//! Without an order there is nothing to be dropped from, and a node could abort what it likes; it does the same all the same, so
//! that both can be compared: it sheds calls before it does anything for them.
//!
//! - Nodes tell each other how many calls wait for their processors: with an order each batch says so, of delivered calls, when it
//!   is closed. A node lags if it has [`LAG_FACTOR`] times as many as half of the others have, and at least [`LAG_CALLS_MIN`].
//! - In every *round* it changes the share: up by [`RISE`] while it lags, down by [`FALL`] while it does not. With an order a round
//!   is an epoch that the leader closes; without, it is as long as an epoch may be.
//! - The share in force is in the log with each batch: whoever leads next goes on with it, and a reader of the log can see why
//!   calls were refused. Where there is one replica and no batch nobody needs to know.
//!
//! Which calls are refused is drawn from the number of the call and of the round, so a client that tries again has new luck. So
//! rounds go on while calls are shed, though nothing else happens: else the last ones could be refused for ever.

use crate::error::Error;
use crate::hash::key_hash;
use crate::limits::STEP_TRANSACTIONS_MAX;
use crate::message::RequestId;
use crate::position::PartitionId;

/// Thousandths of the share in one.
const WHOLE: u16 = 1_000;

/// The largest share that is shed: some calls must tell when it is over.
const SHARE_MAX: u16 = 950;

/// How many times as many calls must wait as with half of the others.
const LAG_FACTOR: u64 = 4;

/// How many calls must wait at least: what a node executes in one step is no backlog.
const LAG_CALLS_MIN: u64 = 2 * STEP_TRANSACTIONS_MAX as u64;

/// By how much the share rises in a round, in thousandths.
const RISE: u16 = 25;

/// By how much it falls.
const FALL: u16 = 10;

/// See the [module](self).
#[derive(Debug)]
pub struct Throttle {
    /// The share of calls that are shed, in thousandths.
    share: u16,
    /// Whether it may rise.
    is_on: bool,
    me: PartitionId,
    /// Calls that wait for the processor at the partitions, as they said last.
    waiting: Vec<u64>,
}

impl Throttle {
    /// Sheds nothing at first; never anything unless `is_on`.
    pub fn new(me: PartitionId, partitions: u16, is_on: bool) -> Throttle {
        Throttle { share: 0, is_on, me, waiting: vec![0; usize::from(partitions)] }
    }

    /// The share of calls that are shed, in thousandths.
    pub fn share(&self) -> u16 {
        self.share
    }

    /// Takes over the share that the log has with a batch.
    pub fn follow(&mut self, share: u16) {
        self.share = share.min(SHARE_MAX);
    }

    /// Notes how many calls wait at another partition.
    pub fn heard(&mut self, from: PartitionId, waiting: u64) {
        if let Some(known) = self.waiting.get_mut(from.index()) {
            *known = waiting;
        }
    }

    /// Adjusts the share at the end of a round, when so many calls wait here.
    pub fn adjust(&mut self, waiting: u64) {
        self.heard(self.me, waiting);
        self.share = match self.is_on && self.lags(waiting) {
            true => (self.share + RISE).min(SHARE_MAX),
            false => self.share.saturating_sub(FALL),
        };
    }

    fn lags(&self, waiting: u64) -> bool {
        let mut others = self.waiting.clone();
        others.remove(self.me.index());
        others.sort_unstable();
        // Of two others the better one counts: one that waits for this node may be behind as well.
        let Some(median) = others.get(others.len().saturating_sub(1) / 2) else { return false };
        waiting >= LAG_CALLS_MIN.max(LAG_FACTOR * median)
    }

    /// What a client hears whose call is refused.
    pub fn refusal(&self) -> Error {
        let (me, percent) = (self.me, self.share / 10);
        Error::Busy(format!(
            "{me} lags behind the other partitions, and refuses {percent}% of the calls that need no other"
        ))
    }

    /// Whether a call that touches this partition alone is refused in the round with this number.
    pub fn sheds(&self, request: RequestId, round: u64) -> bool {
        let drawn = || {
            let numbers = [request.client.number, request.sequence, round].map(u64::to_le_bytes);
            key_hash(numbers.as_flattened()) % u64::from(WHOLE)
        };
        self.share > 0 && drawn() < u64::from(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ClientId;

    const ME: PartitionId = PartitionId(1);

    fn throttle(is_on: bool, others: [u64; 3]) -> Throttle {
        let mut throttle = Throttle::new(ME, 4, is_on);
        for (partition, waiting) in [0, 2, 3].into_iter().zip(others) {
            throttle.heard(PartitionId(partition), waiting);
        }
        throttle
    }

    /// The share after so many epochs in which so many calls wait here.
    fn share(throttle: &mut Throttle, epochs: u32, waiting: u64) -> u16 {
        (0..epochs).for_each(|_| throttle.adjust(waiting));
        throttle.share()
    }

    #[test]
    fn who_lags_sheds_more_and_more_until_it_does_not() {
        let mut throttle = throttle(true, [10, 0, 400]);
        assert_eq!(share(&mut throttle, 1, LAG_CALLS_MIN - 1), 0, "that is no backlog");
        assert_eq!(share(&mut throttle, 4, LAG_CALLS_MIN), 4 * RISE);
        assert_eq!(share(&mut throttle, 100, LAG_CALLS_MIN), SHARE_MAX);
        assert_eq!(share(&mut throttle, 3, 0), SHARE_MAX - 3 * FALL);
        assert_eq!(share(&mut throttle, 100, 0), 0);
    }

    #[test]
    fn where_most_lag_nobody_sheds() {
        let mut all_busy = throttle(true, [1_000, 800, 0]);
        assert_eq!(share(&mut all_busy, 9, 3_000), 0);
        assert!(share(&mut all_busy, 9, 3_200) > 0, "four times as many as half of them");
        let mut alone = Throttle::new(PartitionId(0), 1, true);
        assert_eq!(share(&mut alone, 9, 1 << 20), 0, "there is nobody to hold up");
        assert_eq!(share(&mut throttle(false, [0; 3]), 9, 1 << 20), 0, "it is off");
    }

    #[test]
    fn the_share_of_calls_is_shed() {
        let mut throttle = throttle(true, [0; 3]);
        throttle.follow(300);
        let request = |sequence| RequestId { client: ClientId { home: ME, number: 7 }, sequence };
        let shed = (0..10_000).filter(|sequence| throttle.sheds(request(*sequence), 3)).count();
        assert!((2_800..3_200).contains(&shed), "{shed}");
        let again = (0..100).filter(|round| throttle.sheds(request(1), *round)).count();
        assert!((10..60).contains(&again), "a call that is sent again has new luck: {again}");
        throttle.follow(0);
        assert!((0..1_000).all(|sequence| !throttle.sheds(request(sequence), 3)));
        throttle.follow(60_000);
        assert_eq!(throttle.share(), SHARE_MAX, "a log that was made wrongly does not shut the door");
    }
}
