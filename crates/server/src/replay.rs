//! How far a node has come that replays its log, and executes what is in it.

use std::time::{Duration, Instant};

use ordain_db::position::{Epoch, NodeId};

/// How often it is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Debug)]
pub struct Replay {
    me: NodeId,
    from: Epoch,
    /// `None` where the log has no epochs.
    last: Option<Epoch>,
    started: Instant,
    told: (Instant, Epoch),
}

impl Replay {
    /// A replay of the epochs after one, through the last; or of a log without epochs, until the node begins a new life.
    pub fn new(me: NodeId, from: Epoch, last: Option<Epoch>) -> Replay {
        let now = Instant::now();
        Replay { me, from, last, started: now, told: (now, from) }
    }

    /// Whether it is time to look how far the node has come.
    pub fn is_due(&self) -> bool {
        self.told.0.elapsed() >= INTERVAL
    }

    /// Tells how far the node has come; whether it is done. `executed`: the last epoch of which it has executed all, where there are epochs.
    pub fn tell(&mut self, executed: Option<Epoch>, leads: bool) -> bool {
        let node = self.me;
        let elapsed = self.started.elapsed().as_secs_f64();
        let seconds = format!("{elapsed:.3}");
        let (Some(last), Some(executed)) = (self.last, executed) else {
            if leads {
                tracing::info!(%node, seconds, "recovered");
            }
            return leads;
        };
        let replayed = executed.0.saturating_sub(self.from.0);
        let per_second = (replayed as f64 / elapsed.max(1e-6)) as u64;
        if executed >= last {
            tracing::info!(%node, replayed, per_second, seconds, "recovered");
            return true;
        }
        if !self.is_due() {
            return false;
        }
        if executed != self.told.1 {
            let remaining = last.0 - executed.0;
            tracing::info!(%node, replayed, per_second, remaining, "replaying the log, in epochs");
        }
        self.told = (Instant::now(), executed);
        false
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::position::PartitionId;

    use super::*;

    #[test]
    fn a_log_is_replayed_when_all_of_it_is_executed() {
        let mut replay = Replay::new(NodeId::first(PartitionId(0)), Epoch(3), Some(Epoch(9)));
        assert!(!replay.tell(Some(Epoch(8)), true));
        assert!(replay.tell(Some(Epoch(9)), false));
    }

    #[test]
    fn a_log_without_epochs_is_replayed_when_the_node_begins_its_life() {
        let mut replay = Replay::new(NodeId::first(PartitionId(0)), Epoch(0), None);
        assert_eq!([false, true].map(|leads| replay.tell(None, leads)), [false, true]);
    }
}
