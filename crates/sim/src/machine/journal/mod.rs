//! The journal of a machine: all that its node was given, from which the node is made again after a crash.
//!
//! [`Node::step`](ordain_db::node::Node::step) is a pure function. Who keeps each step's local time and events, and feeds them
//! to a new node in the same order, has the old node. So a machine appends a step to its journal before anything that the
//! step caused leaves it: what it sent and lost would else be known to others and not to itself. What a step caused may go
//! out once [`Disk::durable`] has reached the offset that [`Journal::append`] returned.
//!
//! # Records
//!
//! A record is a step. Integers are little-endian, and nothing lies between two records.
//!
//! | bytes | field | contents |
//! |---|---|---|
//! | 4 | length | bytes of the payload |
//! | 4 | checksum | CRC32C over all that follows, and the length |
//! | 4 | chain | the checksum of the record before; a constant in the first |
//! | 8 | sequence | 1 in the first record, one more in each |
//! | 8 | durable | the bytes of the journal that were durable when this record was appended |
//! | | payload | postcard form of the local time in microseconds and the events |
//!
//! The chain ties each record to all before it: a record of another place or of an earlier life is noticed. The field
//! `durable` tells a torn tail from damage: see [`recover`].

mod record;
mod recovery;

use std::fmt;

use ordain_db::node::Event;

use crate::machine::disk::{Disk, Full};

pub use record::{HEADER_BYTES, RECORD_BYTES_MAX};
pub use recovery::{Damage, DamageKind, Record, Recovered, recover};

/// Why a step was not journaled. The journal is as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// The disk has no room.
    Full(Full),
    /// The step is too long for a record.
    TooLong {
        /// Bytes of its record.
        bytes: u64,
    },
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Full(full) => full.fmt(f),
            AppendError::TooLong { bytes } => write!(
                f,
                "the events of a step take {bytes} bytes in the journal, and a record has at most {RECORD_BYTES_MAX}: \
                 give the node fewer events in one step"
            ),
        }
    }
}

impl std::error::Error for AppendError {}

impl From<Full> for AppendError {
    fn from(full: Full) -> AppendError {
        AppendError::Full(full)
    }
}

/// See the [module](self).
#[derive(Clone)]
pub struct Journal {
    disk: Disk,
    /// The sequence number of the next record.
    sequence: u64,
    /// The checksum of the last record.
    chain: u32,
    /// The record that is being made; kept for its memory.
    buffer: Vec<u8>,
}

impl Journal {
    /// An empty journal. What the disk holds is cut.
    pub fn create(disk: Disk) -> Journal {
        Journal::resume(disk, &Recovered::default())
    }

    /// The journal that was recovered from this disk. The torn tail is cut, and the next record continues the chain.
    ///
    /// # Panics
    /// When the disk holds fewer bytes than were found valid: it is another one.
    pub fn resume(mut disk: Disk, recovered: &Recovered) -> Journal {
        assert!(
            recovered.valid_bytes <= disk.length(),
            "a journal is resumed on the disk that it was recovered from"
        );
        disk.truncate(recovered.valid_bytes);
        let (sequence, chain) = recovered.next();
        Journal { disk, sequence, chain, buffer: Vec::new() }
    }

    /// Appends a step: the local time that it was given, in microseconds, and its events. Returns the offset of the record's
    /// end; the step is safe once that much is durable.
    ///
    /// # Errors
    /// [`AppendError`] says what to do: give the disk space and append again, or make shorter steps.
    pub fn append(&mut self, now_microseconds: u64, events: &[Event]) -> Result<u64, AppendError> {
        let durable = self.disk.durable();
        let checksum =
            record::encode(&mut self.buffer, self.sequence, self.chain, durable, now_microseconds, events)?;
        self.disk.append(&self.buffer)?;
        self.sequence += 1;
        self.chain = checksum;
        Ok(self.disk.length())
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The disk: to sync it, to give it space, to let it have latent faults. Appends and cuts are the journal's own.
    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// The machine stops. What is left is its disk: let it [crash](Disk::crash) or not, [`recover`] what it holds, and
    /// [`resume`](Journal::resume).
    pub fn into_disk(self) -> Disk {
        self.disk
    }
}

#[cfg(test)]
mod tests;
