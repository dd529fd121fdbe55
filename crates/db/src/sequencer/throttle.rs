//! Throttling: a node that lags sheds calls at the door, so that it does not hold the others up (DET-42 to DET-44).
//!
//! All partitions execute one order, so a slow node slows every transaction that it takes part in, and by them the whole cluster
//! (Ren et al. §3.5). What it can do is to take on less: it refuses a growing share of the calls that touch its partition alone,
//! before they are ordered, until what is left is what it can keep up with. Where that is not enough, since others ask it for more
//! than it can do, they refuse a growing share of the calls in which it would take part (DET-43), and do the rest of theirs. What
//! was ordered is never dropped (DET-15), so replicas stay equal.
//!
//! Without an order there is nothing to be dropped from, and a node could abort what it likes; it does the same all the same, so
//! that both can be compared: calls are shed before anything is done for them. The paper would have them aborted by an early vote
//! (footnote 4); at the door that costs other participants nothing.
//!
//! - Nodes tell each other their [`Load`]: their *backlog*, which is how long it takes them to do what waits for nothing but their
//!   processors, and the *level* of what is shed. With an order each batch says so when it is closed. A node lags if its backlog is
//!   [`LAG_FACTOR`] times that of half of the others, and at least [`LAG_MICROSECONDS_MIN`]. It is told in time, not in numbers: where
//!   all nodes are full, the slow one has no more calls than the others, and needs longer for them.
//! - In every *round* it changes the level: up by [`RISE`] while it lags, down by [`FALL`] while it does not. With an order a round
//!   is an epoch that the leader closes; without, it is as long as an epoch may be. The level is the share of its own calls that
//!   are refused, up to [`SHARE_MAX`]; what it is above that, the share of those that other partitions have a part in.
//! - Only what was not ordered can be held back. So no node with an order gives an epoch more of its clients' calls than it can execute
//!   in [`AHEAD_MICROSECONDS`] together with those that wait for execution; the others wait before the order. A slow node does not fill
//!   the order with its own.
//! - The log says with each batch which level was in force and how many calls were held back: whoever leads next goes on with the
//!   level, and a reader of the log (`ordain inspect`) sees why calls were refused or waited. Where there is no log nobody needs to
//!   know.
//!
//! Which calls are refused is drawn from the number of the call and of the round, so a client that tries again has new luck. So
//! rounds go on while calls are shed, though nothing else happens: else the last ones could be refused for ever.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::hash::key_hash;
use crate::message::RequestId;
use crate::position::{PartitionId, PartitionSet};

/// Thousandths of the share in one.
const WHOLE: u16 = 1_000;

/// The largest share that is shed: some calls must tell when it is over.
const SHARE_MAX: u16 = 950;

/// The highest level: all that may be shed, of calls of the node alone and of those of several.
const LEVEL_MAX: u16 = 2 * SHARE_MAX;

/// How many times as long as with half of the others the backlog must be: nodes that keep up differ by less.
const LAG_FACTOR: u64 = 2;

/// How long it must be at least, in microseconds: short ones come and go.
const LAG_MICROSECONDS_MIN: u64 = 50_000;

/// How much of its clients' calls a node lets wait for execution, in microseconds of its work: half of what is a lag, so that none is
/// refused where others ask it for no more than that.
const AHEAD_MICROSECONDS: u64 = LAG_MICROSECONDS_MIN / 2;

/// By how much the level rises in a round, in thousandths.
const RISE: u16 = 50;

/// By how much it falls.
const FALL: u16 = 10;

/// What a node tells the others of how it keeps up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Load {
    /// How long it takes it to execute the transactions that wait for nothing but its processor, in microseconds.
    pub backlog: u64,
    /// The level of what is shed for its sake, in thousandths.
    pub level: u16,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Throttle {
    /// Whether the level may rise.
    is_on: bool,
    me: PartitionId,
    /// Of all partitions: how they kept up when they last said so.
    loads: Vec<Load>,
}

impl Throttle {
    /// Sheds nothing at first; never anything for the sake of this partition unless `is_on`.
    pub fn new(me: PartitionId, partitions: u16, is_on: bool) -> Throttle {
        // Alone, there is nobody to hold up.
        let is_on = is_on && partitions > 1;
        Throttle { is_on, me, loads: vec![Load::default(); usize::from(partitions)] }
    }

    /// Whether anything may be shed for the sake of this partition.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// How this partition keeps up, as the others are to know.
    pub fn load(&self) -> Load {
        self.load_of(self.me)
    }

    fn load_of(&self, partition: PartitionId) -> Load {
        self.loads.get(partition.index()).copied().unwrap_or_default()
    }

    /// Whether some calls may be refused here.
    pub fn is_shedding(&self) -> bool {
        self.loads.iter().any(|load| load.level > 0)
    }

    /// Takes over the level that the log has with a batch of this partition.
    pub fn follow(&mut self, level: u16) {
        self.heard(self.me, Load { level, ..self.load() });
    }

    /// How much work of its clients may wait for execution here, in microseconds, if that is limited.
    pub fn ahead(&self) -> Option<u64> {
        self.is_on.then_some(AHEAD_MICROSECONDS)
    }

    /// Notes how another partition keeps up.
    pub fn heard(&mut self, from: PartitionId, load: Load) {
        if let Some(known) = self.loads.get_mut(from.index()) {
            *known = Load { level: load.level.min(LEVEL_MAX), ..load };
        }
    }

    /// Adjusts the level at the end of a round, when this is the backlog here.
    pub fn adjust(&mut self, backlog: u64) {
        let level = self.load().level;
        let level = match self.is_on && self.lags(backlog) {
            true => level + RISE,
            false => level.saturating_sub(FALL),
        };
        self.heard(self.me, Load { backlog, level });
    }

    fn lags(&self, backlog: u64) -> bool {
        let mut others: Vec<u64> = self.loads.iter().map(|load| load.backlog).collect();
        others.remove(self.me.index());
        others.sort_unstable();
        // Of two others the better one counts: one that waits for this node may be behind as well.
        let Some(median) = others.get(others.len().saturating_sub(1) / 2) else { return false };
        backlog >= LAG_MICROSECONDS_MIN.max(median.saturating_mul(LAG_FACTOR))
    }

    /// The share of the calls with these participants, in thousandths, that is shed, and for whose sake.
    fn share(&self, participants: PartitionSet) -> (u16, PartitionId) {
        if participants == PartitionSet::one(self.me) {
            return (self.load().level.min(SHARE_MAX), self.me);
        }
        let share = |partition| (self.load_of(partition).level.saturating_sub(SHARE_MAX), partition);
        participants.iter().map(share).max().unwrap_or((0, self.me))
    }

    /// Why a call with these participants is refused in the round with this number, if it is.
    pub fn refusal(&self, request: RequestId, participants: PartitionSet, round: u64) -> Option<Error> {
        let (share, slow) = self.share(participants);
        let drawn = || {
            let numbers = [request.client.number, request.sequence, round].map(u64::to_le_bytes);
            key_hash(numbers.as_flattened()) % u64::from(WHOLE)
        };
        if share == 0 || drawn() >= u64::from(share) {
            return None;
        }
        let percent = share / 10;
        let alone = participants == PartitionSet::one(self.me);
        let whose = if alone { "need no other" } else { "need it" };
        Some(Error::Busy(format!(
            "{slow} lags behind the other partitions, and {percent}% of the calls that {whose} are refused"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ClientId;

    const ME: PartitionId = PartitionId(1);
    const OTHER: PartitionId = PartitionId(3);

    fn waits(backlog: u64) -> Load {
        Load { backlog, level: 0 }
    }

    fn throttle(is_on: bool, others: [u64; 3]) -> Throttle {
        let mut throttle = Throttle::new(ME, 4, is_on);
        for (partition, backlog) in [0, 2, 3].into_iter().zip(others) {
            throttle.heard(PartitionId(partition), waits(backlog));
        }
        throttle
    }

    /// The level after so many epochs with a backlog.
    fn level(throttle: &mut Throttle, epochs: u32, backlog: u64) -> u16 {
        (0..epochs).for_each(|_| throttle.adjust(backlog));
        throttle.load().level
    }

    /// Of ten thousand calls with these participants, those that are refused in a round.
    fn refused(throttle: &Throttle, participants: &[PartitionId]) -> usize {
        let mut all = PartitionSet::EMPTY;
        participants.iter().for_each(|partition| all.insert(*partition));
        (0..10_000).filter(|sequence| throttle.refusal(request(*sequence), all, 3).is_some()).count()
    }

    fn request(sequence: u64) -> RequestId {
        RequestId { client: ClientId { home: ME, number: 7 }, sequence }
    }

    #[test]
    fn who_lags_sheds_more_and_more_until_it_does_not() {
        let mut throttle = throttle(true, [10, 0, 400]);
        assert_eq!(level(&mut throttle, 1, LAG_MICROSECONDS_MIN - 1), 0, "that is no backlog");
        assert!(!throttle.is_shedding());
        assert_eq!(level(&mut throttle, 4, LAG_MICROSECONDS_MIN), 4 * RISE);
        assert_eq!(level(&mut throttle, 100, LAG_MICROSECONDS_MIN), LEVEL_MAX);
        assert_eq!(level(&mut throttle, 3, 0), LEVEL_MAX - 3 * FALL);
        assert_eq!(level(&mut throttle, 200, 0), 0);
        assert_eq!(throttle.load(), waits(0));
    }

    #[test]
    fn where_most_lag_nobody_sheds() {
        let mut all_busy = throttle(true, [100_000, 80_000, 0]);
        assert_eq!(level(&mut all_busy, 9, 150_000), 0);
        assert!(level(&mut all_busy, 9, 160_000) > 0, "twice as long as with half of them");
        let mut alone = Throttle::new(PartitionId(0), 1, true);
        assert_eq!(level(&mut alone, 9, 1 << 20), 0, "there is nobody to hold up");
        assert_eq!(level(&mut throttle(false, [0; 3]), 9, 1 << 20), 0, "it is off");
        assert_eq!((all_busy.ahead(), alone.ahead()), (Some(AHEAD_MICROSECONDS), None));
    }

    #[test]
    fn the_share_of_calls_is_shed() {
        let mut throttle = throttle(true, [0; 3]);
        throttle.follow(300);
        let shed = refused(&throttle, &[ME]);
        assert!((2_800..3_200).contains(&shed), "{shed}");
        assert_eq!(
            refused(&throttle, &[ME, OTHER]),
            0,
            "others need the node, and it does what they ask for"
        );
        let again = |round: &u64| throttle.refusal(request(1), PartitionSet::one(ME), *round).is_some();
        let again = (0..100).filter(again).count();
        assert!((10..60).contains(&again), "a call that is sent again has new luck: {again}");
        throttle.follow(0);
        assert_eq!(refused(&throttle, &[ME]), 0);
        throttle.follow(60_000);
        assert_eq!(throttle.load().level, LEVEL_MAX, "a log that was made wrongly does not shut the door");
    }

    #[test]
    fn where_a_node_has_shed_all_of_its_own_others_spare_it() {
        let mut throttle = throttle(false, [0; 3]);
        throttle.heard(OTHER, Load { backlog: 9_000, level: SHARE_MAX });
        assert_eq!(refused(&throttle, &[ME, OTHER]), 0, "what it sheds of its own may do");
        throttle.heard(OTHER, Load { backlog: 9_000, level: SHARE_MAX + 300 });
        let shed = refused(&throttle, &[ME, OTHER]);
        assert!((2_800..3_200).contains(&shed), "{shed}");
        assert_eq!(refused(&throttle, &[ME, PartitionId(2)]), 0, "they do not need it");
        assert_eq!(refused(&throttle, &[ME]), 0);
        throttle.follow(SHARE_MAX + 600);
        let shed = refused(&throttle, &[ME, OTHER]);
        assert!((5_800..6_200).contains(&shed), "for the sake of whoever needs it more: {shed}");
        let mut all = PartitionSet::one(ME);
        all.insert(OTHER);
        let told = (0..100).find_map(|sequence| throttle.refusal(request(sequence), all, 3));
        let told = told.map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("p1 lags behind") && told.contains("60% of the calls that need it"), "{told}");
        let elsewhere = PartitionSet::one(OTHER);
        let told = (0..100).find_map(|sequence| throttle.refusal(request(sequence), elsewhere, 3));
        let told = told.map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("p3 lags behind") && told.contains("30% of the calls that need it"), "{told}");
    }
}
