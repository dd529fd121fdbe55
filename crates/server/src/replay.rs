//! How far a node has come that replays its log.

use std::time::{Duration, Instant};

use ordain_db::position::{Epoch, NodeId};

/// How often it is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Debug)]
pub struct Replay {
    me: NodeId,
    from: Epoch,
    last: Epoch,
    started: Instant,
    told: (Instant, Epoch),
}

impl Replay {
    /// A replay of the epochs after one, through the last.
    pub fn new(me: NodeId, from: Epoch, last: Epoch) -> Replay {
        let now = Instant::now();
        Replay { me, from, last, started: now, told: (now, from) }
    }

    /// Whether it is time to look how far the node has come.
    pub fn is_due(&self) -> bool {
        self.told.0.elapsed() >= INTERVAL
    }

    /// Tells how far the node has come; whether it is done.
    pub fn tell(&mut self, delivered: Epoch) -> bool {
        let replayed = delivered.0.saturating_sub(self.from.0);
        let seconds = self.started.elapsed().as_secs_f64();
        let per_second = (replayed as f64 / seconds.max(1e-6)) as u64;
        let node = self.me;
        if delivered >= self.last {
            let seconds = format!("{seconds:.3}");
            tracing::info!(%node, replayed, per_second, seconds, "recovered");
            return true;
        }
        if !self.is_due() {
            return false;
        }
        if delivered != self.told.1 {
            let remaining = self.last.0 - delivered.0;
            tracing::info!(%node, replayed, per_second, remaining, "replaying the log, in epochs");
        }
        self.told = (Instant::now(), delivered);
        false
    }
}
