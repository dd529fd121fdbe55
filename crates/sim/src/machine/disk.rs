//! The disk of a simulated node: the database's own [`NodeDisk`] over files in memory, which take virtual time and have faults.
//!
//! [`MemoryFiles`] says what a crash may do to what is not durable, and what else a disk can do wrong. Here is when: a sync
//! takes a drawn time, during which the node goes on and writes more. A chunk of a checkpoint takes time by its size, if the
//! [options](DiskOptions) say so: the next sync begins with it, as the server's one thread for each disk does one after the
//! other. What a write itself syncs else (a new segment of the log) takes no time of its own.

mod damage;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use ordain_consensus::disk_log::{Damage, LogId, LogOptions, OpenError, Opening, RECORDS_AT};
use ordain_consensus::files::{
    FileEntry, FileError, FileErrorKind, Files, MemoryFiles, Mistakes, SyncTicket,
};
use ordain_db::disk::{DiskError, Found, NodeDisk, SyncMark};
use ordain_db::node::{DiskWrite, Event};
use ordain_db::position::Epoch;
use ordain_workload::random::Random;

use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};

/// More operations than any run has.
const NEVER: u64 = 1 << 60;

/// What a crash does to what is not durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It is drawn for each sector, each length and each name: see [`MemoryFiles::crash`].
    Drawn,
    /// All of it is lost.
    All,
}

/// How a disk behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// The shortest time of a sync.
    pub sync_min: Nanoseconds,
    /// The longest time of a sync.
    pub sync_max: Nanoseconds,
    /// What a crash does.
    pub loss: Loss,
    /// Bytes of each segment of the log.
    pub segment_bytes: u64,
    /// How quickly checkpoints are written; `None` for no time at all.
    pub checkpoint_bytes_per_second: Option<u64>,
}

impl Default for DiskOptions {
    /// A solid-state disk, and segments that a run fills now and then.
    fn default() -> DiskOptions {
        DiskOptions {
            sync_min: 50 * MICROSECOND,
            sync_max: 2 * MILLISECOND,
            loss: Loss::Drawn,
            segment_bytes: 1 << 20,
            checkpoint_bytes_per_second: None,
        }
    }
}

/// Why a write was not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteFailure {
    /// The machine has lost power meanwhile.
    Off,
    /// There is no room; nothing was done.
    Full,
    /// The node must stop.
    Failed(String),
}

/// Why a node cannot start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenFailure {
    /// The machine has lost power meanwhile.
    Off,
    /// There is no room for what must be written first.
    Full,
    /// The node refuses its disk, for this reason.
    Refused(String),
    /// The node refuses its log, which is damaged.
    Damaged(Damage),
}

/// A sync that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syncing {
    /// When it is over.
    pub completes_at: Nanoseconds,
    mark: SyncMark,
    ticket: SyncTicket,
    /// What it writes of checkpoints.
    chunks: Chunks,
}

/// Chunks of a checkpoint that take time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Chunks {
    count: usize,
    bytes: u64,
}

/// Files that a node uses, and that are still there when it is gone.
#[derive(Clone, Debug, Default)]
pub struct SharedFiles(Rc<RefCell<MemoryFiles>>);

impl SharedFiles {
    fn get(&self) -> RefMut<'_, MemoryFiles> {
        self.0.borrow_mut()
    }
}

impl Files for SharedFiles {
    fn list(&self) -> Result<Vec<FileEntry>, FileError> {
        self.get().list()
    }

    fn read(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        self.get().read(name, offset, length)
    }

    fn create(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        self.get().create(name, length)
    }

    fn write(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.get().write(name, offset, bytes)
    }

    fn set_length(&mut self, name: &str, length: u64) -> Result<(), FileError> {
        self.get().set_length(name, length)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), FileError> {
        self.get().rename(from, to)
    }

    fn remove(&mut self, name: &str) -> Result<(), FileError> {
        self.get().remove(name)
    }

    fn sync(&mut self, name: &str) -> Result<(), FileError> {
        self.get().sync(name)
    }

    fn sync_directory(&mut self) -> Result<(), FileError> {
        self.get().sync_directory()
    }
}

fn draw_log_id(identity: &mut Random) -> LogId {
    LogId(u128::from(identity.bits()) << 64 | u128::from(identity.bits()))
}

/// See the [module](self).
pub struct Disk {
    options: DiskOptions,
    files: SharedFiles,
    /// While a node uses the files.
    node: Option<NodeDisk<SharedFiles>>,
    log_id: LogId,
    /// Numbers of logs.
    identity: Random,
    mistakes: Mistakes,
    /// Whether a node has been open before: then its log must be there.
    known: bool,
    /// The next sync fails.
    fails: bool,
    /// With a mistake for tests: the epoch of the mark that was to be written last, which is written when the next one is.
    late_mark: Option<Epoch>,
    marks_late: bool,
    /// Chunks that no sync has begun with yet.
    chunks: Chunks,
    /// What will be told of a checkpoint when they are written.
    later: Vec<Event>,
    /// Times of syncs.
    latencies: Random,
    /// What crashes and faults do: a stream of its own, so that a fault more does not change the times of syncs.
    faults: Random,
    /// Which parts of checkpoints are damaged, and which writes are lost: so that these change nothing else either.
    latent: Random,
}

impl Disk {
    /// An empty disk. `numbers` name it among those of the seed.
    pub fn new(options: DiskOptions, seed: u64, numbers: &[u64]) -> Disk {
        let mut identity = Random::new(seed, "log", numbers);
        Disk {
            options,
            files: SharedFiles::default(),
            node: None,
            log_id: draw_log_id(&mut identity),
            identity,
            mistakes: Mistakes::default(),
            known: false,
            fails: false,
            late_mark: None,
            marks_late: false,
            chunks: Chunks::default(),
            later: Vec::new(),
            latencies: Random::new(seed, "disk latencies", numbers),
            faults: Random::new(seed, "disk faults", numbers),
            latent: Random::new(seed, "latent disk faults", numbers),
        }
    }

    /// Switches mistakes of the files on.
    pub fn set_mistakes(&mut self, mistakes: Mistakes) {
        self.mistakes = mistakes;
        self.files.get().set_mistakes(mistakes);
    }

    /// Takes the place of a disk whose data is gone: it is empty and without faults, and a log on it is another one.
    pub fn wipe(&mut self) {
        self.close();
        self.files = SharedFiles::default();
        self.files.get().set_mistakes(self.mistakes);
        self.log_id = draw_log_id(&mut self.identity);
        (self.known, self.late_mark) = (false, None);
    }

    /// Marks always the checkpoint before the one to start from, and keeps it: a mistake for tests.
    pub fn mark_late(&mut self) {
        self.marks_late = true;
    }

    /// Opens what a node has on its disk. A node that was using it is gone.
    ///
    /// # Errors
    /// [`OpenFailure`].
    pub fn open(&mut self) -> Result<Found, OpenFailure> {
        self.close();
        let opening = if self.known { Opening::MustExist } else { Opening::CreateIfMissing };
        let segment_bytes = self.options.segment_bytes;
        let options = LogOptions {
            segment_bytes,
            record_bytes_max: (segment_bytes - RECORDS_AT) / 4 * 3,
            ..LogOptions::new(self.log_id, opening)
        };
        match NodeDisk::open(self.files.clone(), options) {
            Ok((node, found)) => {
                (self.node, self.known) = (Some(node), true);
                Ok(found)
            }
            Err(_) if self.is_off() => Err(OpenFailure::Off),
            Err(OpenError::Files(error)) if error.kind == FileErrorKind::Full => Err(OpenFailure::Full),
            Err(OpenError::Damaged(damage)) => Err(OpenFailure::Damaged(damage)),
            Err(error) => Err(OpenFailure::Refused(error.to_string())),
        }
    }

    /// The database's part, while a node uses the disk.
    pub fn node(&mut self) -> Option<&mut NodeDisk<SharedFiles>> {
        self.node.as_mut()
    }

    /// The node is gone; the machine is not.
    pub fn close(&mut self) {
        self.node = None;
        self.fails = false;
        self.chunks = Chunks::default();
        self.later.clear();
    }

    /// Whether the power has gone between two operations; the machine must [crash](Disk::crash) then.
    pub fn is_off(&self) -> bool {
        self.files.get().is_off()
    }

    /// Does what the node wants.
    ///
    /// # Errors
    /// [`WriteFailure`].
    pub fn write(&mut self, write: DiskWrite) -> Result<(), WriteFailure> {
        let Some(node) = &mut self.node else { return Ok(()) };
        let write = match write {
            DiskWrite::RemoveCheckpoints { before } if self.marks_late => {
                let Some(before) = self.late_mark.replace(before) else { return Ok(()) };
                DiskWrite::RemoveCheckpoints { before }
            }
            write => write,
        };
        if let (DiskWrite::CheckpointChunk(bytes), Some(_)) =
            (&write, self.options.checkpoint_bytes_per_second)
        {
            self.chunks.count += 1;
            self.chunks.bytes += bytes.len() as u64;
        }
        let done = node.write(write);
        match done {
            _ if self.is_off() => Err(WriteFailure::Off),
            Ok(()) => Ok(()),
            Err(DiskError::Full(_)) => Err(WriteFailure::Full),
            Err(DiskError::Failed(reason)) => Err(WriteFailure::Failed(reason)),
        }
    }

    /// Begins a sync, if something must become durable. What need not is told at once.
    pub fn begin_sync(&mut self, now: Nanoseconds, events: &mut Vec<Event>) -> Option<Syncing> {
        let has_later = !self.later.is_empty();
        let node = self.node.as_mut().filter(|node| node.has_unsynced() || has_later)?;
        let chunks = std::mem::take(&mut self.chunks);
        if !node.needs_sync() && chunks.count == 0 {
            events.append(&mut self.later);
            // Without a sync, nothing can fail.
            let _ = node.sync(events);
            return None;
        }
        let (mark, ticket) = (node.begin_sync(), self.files.get().begin_sync());
        let DiskOptions { sync_min, sync_max, checkpoint_bytes_per_second, .. } = self.options;
        let writing = checkpoint_bytes_per_second.map_or(0, |rate| chunks.bytes * SECOND / rate.max(1));
        let takes = writing + sync_min + self.latencies.below(sync_max.saturating_sub(sync_min) + 1);
        Some(Syncing { completes_at: now + takes, mark, ticket, chunks })
    }

    /// A sync is over; what it made durable is told.
    ///
    /// # Errors
    /// Why it failed: the node must stop.
    pub fn complete_sync(&mut self, syncing: Syncing, events: &mut Vec<Event>) -> Result<(), String> {
        let Some(node) = &mut self.node else { return Ok(()) };
        // A log that has nothing to sync asks the disk for nothing.
        if self.fails && node.needs_sync() {
            self.fails = false;
            let reason = "the disk reports that it cannot write".to_owned();
            self.files.get().fail_after(0, FileErrorKind::Other(reason));
            return node.sync(events).map(|_| ()).map_err(|error| error.to_string());
        }
        if self.files.get().complete_sync(syncing.ticket) {
            let mut told = std::mem::take(&mut self.later);
            node.complete_sync(syncing.mark, &mut told);
            let mut covered = syncing.chunks.count;
            for event in told {
                let is_chunk = matches!(event, Event::CheckpointChunkWritten);
                let of_checkpoint =
                    is_chunk || matches!(event, Event::CheckpointWritten(_) | Event::CheckpointFailed(_));
                // What is told of a checkpoint stays in order.
                if of_checkpoint
                    && (!self.later.is_empty() || (is_chunk && covered == 0 && self.chunks.count > 0))
                {
                    self.later.push(event);
                } else {
                    covered -= usize::from(is_chunk && covered > 0);
                    events.push(event);
                }
            }
        }
        Ok(())
    }

    /// Tells of all that was written as if it were durable: what a machine does that takes the disk's cache for the disk.
    pub fn tell_early(&mut self, events: &mut Vec<Event>) {
        if let Some(node) = &mut self.node {
            let mark = node.begin_sync();
            node.complete_sync(mark, events);
        }
    }

    /// The machine loses power.
    pub fn crash(&mut self) {
        self.show_what_is_noticed();
        self.close();
        let (loss, faults) = (self.options.loss, &mut self.faults);
        self.files.get().crash(&mut |bound| match loss {
            Loss::Drawn => faults.below(bound),
            // The first of all choices is that nothing was done; of a torn sector the first part then has no bytes.
            Loss::All => 0,
        });
    }

    /// Takes the power away after so many operations that change something.
    pub fn power_off_after(&mut self, operations: u64) {
        self.files.get().power_off_after(operations.min(NEVER));
    }

    /// Takes back [`power_off_after`](Disk::power_off_after), if it has not happened.
    pub fn keep_power(&mut self) {
        self.power_off_after(NEVER);
    }

    /// Lets the next sync fail that the disk is asked for.
    pub fn fail_next_sync(&mut self) {
        self.fails = true;
    }

    /// Takes back [`fail_next_sync`](Disk::fail_next_sync), if it has not happened.
    pub fn mend(&mut self) {
        self.fails = false;
    }

    /// Gives no more room.
    pub fn fill(&mut self) {
        self.files.get().set_capacity(0);
    }

    /// Gives room again.
    pub fn empty(&mut self) {
        self.files.get().set_capacity(u64::MAX);
    }

    /// Cuts the log where it is damaged, as if that were the end of what was written: a mistake for tests.
    pub fn cut(&mut self, damage: &Damage) {
        let mut files = self.files.get();
        let Ok(entries) = files.list() else { return };
        for FileEntry { name, length } in entries {
            if name == damage.name {
                let zeros = vec![0; (length - damage.offset.min(length)) as usize];
                drop(files.write(&name, damage.offset, &zeros));
                drop(files.sync(&name));
            } else if name > damage.name && name.ends_with(".log") {
                drop(files.remove(&name));
            }
        }
        drop(files.sync_directory());
    }
}

#[cfg(test)]
mod tests;
