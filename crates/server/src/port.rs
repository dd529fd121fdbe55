//! The way in: what a client of a cluster needs, wherever the cluster runs.

use std::sync::Arc;
use std::time::Duration;

use ordain_db::message::ClientRequest;
use ordain_db::position::PartitionId;

use crate::inbox::NotTaken;
use crate::process::Process;
use crate::replies::ReplySink;

/// Sends requests to the partitions of a cluster and gets the replies.
pub trait Port: Send + Sync {
    /// Number of partitions in the cluster.
    fn partitions(&self) -> u16;

    /// Sends requests to the node of a partition. Replies come to the sink of each request's client number.
    ///
    /// # Errors
    /// Gives the requests back when they are not taken.
    fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken>;

    /// Delivers the replies to a client number to `sink` from now on.
    fn open(&self, number: u64, sink: Arc<dyn ReplySink>);

    /// Ends the delivery to a client number.
    fn close(&self, number: u64);

    /// CPU time that all partitions' threads have used.
    ///
    /// # Errors
    /// When a process cannot be asked.
    fn cpu(&self) -> Result<Duration, String>;
}

impl Port for Process {
    fn partitions(&self) -> u16 {
        self.options().partitions
    }

    fn request(&self, to: PartitionId, requests: Vec<ClientRequest>) -> Result<(), NotTaken> {
        Process::request(self, to, requests)
    }

    fn open(&self, number: u64, sink: Arc<dyn ReplySink>) {
        self.replies().open(number, sink);
    }

    fn close(&self, number: u64) {
        self.replies().close(number);
    }

    fn cpu(&self) -> Result<Duration, String> {
        Ok(Process::cpu(self))
    }
}
