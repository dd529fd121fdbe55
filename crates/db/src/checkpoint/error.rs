//! What can be wrong with a checkpoint, and what to do about it.

use super::CheckpointIdentity;
use super::format::{FORMAT_VERSION, SECTION_BYTES_MAX, SECTION_NAME_BYTES_MAX, SECTIONS_MAX};
use crate::hash::Digest;

/// Why bytes are no checkpoint that can be used, or a section cannot be put into one. Nothing of a refused checkpoint is used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The first bytes are not those of a checkpoint.
    #[error("not a checkpoint: it does not begin as one; check the file's name, or use another checkpoint")]
    NotACheckpoint,
    /// Another release wrote the file.
    #[error(
        "the checkpoint has format version {found}, and this release reads {FORMAT_VERSION}; use the release that wrote it"
    )]
    UnknownVersion {
        /// The file's version.
        found: u16,
    },
    /// The checkpoint belongs to another cluster, partition, or number of partitions.
    #[error(
        "the checkpoint is of {found}, and wanted is that of {expected}; check the directory of this node"
    )]
    OtherIdentity {
        /// Whose it is.
        found: CheckpointIdentity,
        /// Whose it must be.
        expected: CheckpointIdentity,
    },
    /// Bytes are not as they were written, or the writer was wrong.
    #[error("the checkpoint is damaged in the page at byte {byte}: {what}; use another checkpoint")]
    Damaged {
        /// Where the page begins, from the start of the file; 0 is the header.
        byte: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The end is missing.
    #[error("the checkpoint ends after {bytes} bytes, before it is complete; use another checkpoint")]
    Truncated {
        /// Bytes that there are.
        bytes: u64,
    },
    /// Something follows the end.
    #[error("the checkpoint ends at byte {byte}, but more bytes follow; use another checkpoint")]
    TrailingBytes {
        /// Where it ends.
        byte: u64,
    },
    /// The rows are not as many as the writer counted.
    #[error("the checkpoint has {found} rows, and {stated} were written; use another checkpoint")]
    RowCount {
        /// Rows in the file.
        found: u64,
        /// Rows that the footer states.
        stated: u64,
    },
    /// The sections are not as many as the writer counted.
    #[error("the checkpoint has {found} sections, and {stated} were written; use another checkpoint")]
    SectionCount {
        /// Sections in the file.
        found: u32,
        /// Sections that the footer states.
        stated: u32,
    },
    /// The rows are not those that were written.
    #[error(
        "the rows of the checkpoint have digest {found}, and {stated} was written; use another checkpoint"
    )]
    ContentDigest {
        /// Digest of the rows that were loaded.
        found: Digest,
        /// Digest that the footer states.
        stated: Digest,
    },
    /// The name of a section is empty, too long, or used twice; or there are too many.
    #[error(
        "the section \"{name}\" cannot be added: at most {SECTIONS_MAX} sections, each with a name of its own of 1 to \
         {SECTION_NAME_BYTES_MAX} bytes; choose another name"
    )]
    SectionName {
        /// The name.
        name: String,
    },
    /// A section is too large.
    #[error(
        "the section \"{name}\" of {bytes} bytes is larger than {SECTION_BYTES_MAX}; keep less state in it, or split it"
    )]
    SectionTooLarge {
        /// The name.
        name: String,
        /// Its size.
        bytes: u64,
    },
}
