//! The disk of a partition: a thread that writes what the node wants kept, and tells the node when it is durable.
//!
//! The partition's thread hands over its writes and goes on. The disk's thread writes all that waits, then makes it durable by
//! one `fdatasync`: that is group commit, and its size follows from the load by itself. What the disk cannot keep stops the
//! node: it is never tried again, since after an error of `fsync` nobody knows what is on the disk (see
//! [`ordain_consensus::files`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use ordain_db::disk::{DiskError, NodeDisk};
use ordain_db::node::{DiskWrite, Event};
use ordain_db::position::NodeId;

use crate::files::RealFiles;
use crate::inbox::Inbox;

/// Most writes that wait for the disk. A partition whose disk does not keep up waits then; what the writes hold is bounded by
/// what the node lets be in flight.
const WRITES_MAX: usize = 4096;

/// Most writes that are made durable together, so that the first does not wait for ever.
const WRITES_TOGETHER_MAX: usize = 1024;

/// The partition's end: takes writes, in order.
pub struct DiskQueue(SyncSender<DiskWrite>);

impl DiskQueue {
    /// Hands writes over; waits only while [`WRITES_MAX`] are waiting.
    pub fn write(&self, writes: impl Iterator<Item = DiskWrite>) {
        for write in writes {
            // A disk that has failed has told the inbox, and the node is about to stop: what it says now is of no use.
            let _ = self.0.send(write);
        }
    }
}

/// What a disk has done, for people.
#[derive(Default, Debug)]
pub struct DiskGauges {
    /// How often it made writes durable.
    pub syncs: AtomicU64,
    /// How many writes to the log these were.
    pub appends: AtomicU64,
}

/// A running thread.
pub struct DiskThread {
    thread: JoinHandle<()>,
    /// What it has done.
    pub gauges: Arc<DiskGauges>,
}

impl DiskThread {
    /// Starts the thread of a node's disk. It ends when the queue is dropped, after it has made durable what was in it.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(
        me: NodeId,
        disk: NodeDisk<RealFiles>,
        inbox: Arc<Inbox>,
    ) -> Result<(DiskQueue, DiskThread), String> {
        let (sender, writes) = sync_channel(WRITES_MAX);
        let gauges = Arc::new(DiskGauges::default());
        let told = Arc::clone(&gauges);
        let run = move || {
            let mut loop_of = DiskLoop { disk, writes, inbox, gauges: told };
            if let Err(error) = loop_of.run() {
                tracing::error!(node = %me, %error, "the disk cannot keep what the node must not lose");
                loop_of.inbox.fail(error.to_string());
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("disk-{me}"))
            .spawn(run)
            .map_err(|error| format!("cannot start the disk's thread of {me}: {error}"))?;
        Ok((DiskQueue(sender), DiskThread { thread, gauges }))
    }

    /// Waits for the end; whether it was not a panic.
    pub fn join(self) -> bool {
        self.thread.join().is_ok()
    }
}

struct DiskLoop {
    disk: NodeDisk<RealFiles>,
    writes: Receiver<DiskWrite>,
    inbox: Arc<Inbox>,
    gauges: Arc<DiskGauges>,
}

impl DiskLoop {
    fn run(&mut self) -> Result<(), DiskError> {
        let mut events: Vec<Event> = Vec::new();
        while let Ok(first) = self.writes.recv() {
            self.write(first)?;
            for _ in 1..WRITES_TOGETHER_MAX {
                let Ok(write) = self.writes.try_recv() else { break };
                self.write(write)?;
            }
            if self.disk.has_unsynced() {
                let synced = self.disk.sync(&mut events)?;
                self.gauges.syncs.fetch_add(u64::from(synced), Ordering::Relaxed);
            }
            if !events.is_empty() {
                self.inbox.disk_events(&mut events);
            }
        }
        Ok(())
    }

    fn write(&mut self, write: DiskWrite) -> Result<(), DiskError> {
        if matches!(write, DiskWrite::Append { .. }) {
            self.gauges.appends.fetch_add(1, Ordering::Relaxed);
        }
        self.disk.write(write)
    }
}
