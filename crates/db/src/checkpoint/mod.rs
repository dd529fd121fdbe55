//! Checkpoints: the state of one partition at the end of an epoch, as the bytes of a file (Calvin §5, CAL-85 to CAL-103).
//!
//! The log holds inputs only; replayed from a checkpoint on, they make the state again. A checkpoint has every row as of
//! [`Position::end_of`] its epoch, which is the same place in the order on all partitions (CAL-99), and *sections*: what
//! else its node must remember, as bytes whose meaning is the node's. docs/checkpoint-format.md draws the file.
//!
//! # Taking one
//!
//! 1. Before any position after the boundary is written, [`Storage::open_snapshot`] there. From now on the storage keeps what
//!    the boundary sees, whoever writes.
//! 2. When every transaction at or before the boundary has finished, make a [`CheckpointWriter`] and call
//!    [`CheckpointWriter::write_rows`] again and again, with steps of the node in between, until it returns `None`. Take the
//!    chunks out with [`CheckpointWriter::take_chunk`] and append them to a file; make no more rows while too many wait.
//! 3. Add the sections (as they were at the boundary), [`CheckpointWriter::finish`], append what is left, make the file
//!    durable, and only then let it count as a checkpoint. [`Storage::close_snapshot`], and collect the garbage.
//!
//! [`CheckpointReader`] turns the bytes back into a storage. It hands the storage out only when it has verified everything, so
//! that there is no such thing as half a checkpoint.
//!
//! # The three modes of the paper
//!
//! Calvin §5 names three ways to take a checkpoint. Here they are one mechanism, called at different times.
//!
//! - **Naïve synchronous.** A replica that executes nothing until the checkpoint is done makes the same calls in one go. No
//!   version is kept, since nothing is written.
//! - **The asynchronous variant of Zig-Zag.** The paper keeps two copies of a record, "before" and "after" a point that is
//!   fixed in the order beforehand, and one copy when the checkpoint is done. That is what a storage does while one snapshot is
//!   open: the first write after the point leaves the "before" copy aside, later ones overwrite the "after" copy. In particular:
//!   - CAL-91: the point is a position. Nothing waits for it, and transactions on both sides of it run at the same time.
//!   - CAL-92: each write brings its position, and with that says which copy it is for. A transaction before the point never
//!     meets an "after" copy of a key that it reads or writes: writes of a key come in ascending order of positions, and so do its
//!     locks. Other keys may have theirs.
//!   - CAL-93: the first [`Storage::scan_records`] seals the "before" copies; a late write to one panics.
//!   - CAL-94: closing the snapshot makes the "before" copies garbage, of which nothing is left when it is collected.
//!   - CAL-95: a key that is inserted after the point has no "before"; one that is deleted keeps it, under a tombstone.
//!
//!   What the original Zig-Zag has instead, a pair of slots and two bits (MR, MW) per record, saves the allocation of the copy at
//!   the price of twice the memory all the time, and its bits must be set for all records at once (CAL-89, CAL-90). It is left
//!   out.
//! - **Snapshot of a multiversion storage.** A query over everything. It is the same snapshot, read by
//!   [`Storage::scan_records`] in the order of memory and not in that of keys.
//!
//! # What is left out
//!
//! Pages are not compressed: the thread that makes them is the partition's own, and whoever appends them to a file can
//! compress on another one. Every checkpoint is whole; there are none that only have what changed.
//!
//! [`Position::end_of`]: crate::position::Position::end_of
//! [`Storage::open_snapshot`]: crate::storage::Storage::open_snapshot
//! [`Storage::close_snapshot`]: crate::storage::Storage::close_snapshot
//! [`Storage::scan_records`]: crate::storage::Storage::scan_records

mod error;
mod format;
mod reader;
mod verifier;
mod writer;

pub use self::error::CheckpointError;
pub use self::format::{
    CheckpointHeader, CheckpointIdentity, FORMAT_VERSION, HEADER_BYTES, PAGE_BYTES_MAX,
    PAGE_BYTES_WRITTEN_MAX, SECTION_BYTES_MAX, SECTION_NAME_BYTES_MAX, SECTIONS_MAX,
};
pub use self::reader::{Checkpoint, CheckpointReader};
pub use self::verifier::{CheckpointVerifier, VerifiedCheckpoint};
pub use self::writer::{CheckpointWriter, FinishedCheckpoint};

use crate::hash::Digest;

/// What a checkpoint holds, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointSummary {
    /// Rows of the partition.
    pub rows: u64,
    /// Digest of the rows, as of [`Storage::digest`](crate::storage::Storage::digest) at the boundary: checkpoints of replicas at
    /// one epoch have the same, in whatever order their rows stand.
    pub digest: Digest,
    /// Bytes of the whole file.
    pub bytes: u64,
}
