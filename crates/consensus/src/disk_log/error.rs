//! What can go wrong with a log, and what to do about it.

use crate::files::FileError;

use super::{FORMAT_VERSION, LogId};

/// Why nothing was appended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendError {
    /// A record is too long. The log is as before.
    #[error(
        "a record of {bytes} bytes does not fit into the log, which takes {bytes_max}: make smaller batches, or set a \
         higher limit of records in the log's options"
    )]
    TooLong {
        /// Bytes of the payload.
        bytes: u64,
        /// The most that is allowed.
        bytes_max: u64,
    },
    /// The log may not grow. It is as before.
    #[error(
        "the log has {bytes} bytes and may have {bytes_max}, too few for another segment: write a checkpoint and cut the \
         log below it, or set a higher limit of the log"
    )]
    LimitReached {
        /// Bytes of all segments.
        bytes: u64,
        /// The most that is allowed.
        bytes_max: u64,
    },
    /// The disk has no space for another segment. The log is as before: append again when there is space.
    #[error("{0}; the log is as before, and goes on when there is space")]
    Full(FileError),
    /// The log has stopped; see [`DiskLog`](super::DiskLog).
    #[error(
        "{0}; the log takes no more records: the node must stop, and recover what is on the disk when it is started again"
    )]
    Failed(FileError),
}

/// Why a log was not opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The options contradict each other or a limit.
    #[error("the options of the log are wrong: {0}")]
    Options(String),
    /// An operation on files failed. Opening again is safe.
    #[error(transparent)]
    Files(#[from] FileError),
    /// There is no log, and there must be one.
    #[error(
        "there is no log, but this node had one: put its files back, and do not let it start empty, as others may rely on what \
         it has promised"
    )]
    Missing,
    /// A segment between others, or the one after a sealed one, is not there.
    #[error(
        "the log's segment `{name}` is missing, and what was acknowledged may be in it: put the file back"
    )]
    MissingSegment {
        /// The file.
        name: String,
    },
    /// A segment belongs to another log.
    #[error(
        "the segment `{name}` belongs to the log {found}, and this node's log is {expected}: it was copied from another node. \
         Put back this node's own files"
    )]
    ForeignSegment {
        /// The file.
        name: String,
        /// The log that the file belongs to.
        found: LogId,
        /// The log that was to be opened.
        expected: LogId,
    },
    /// A segment has the name of another one.
    #[error(
        "the file `{name}` is segment {found} of the log by its contents: files were renamed, give them back their names"
    )]
    Misnamed {
        /// The file.
        name: String,
        /// The number of the segment.
        found: u64,
    },
    /// A segment has a format that this program does not know.
    #[error(
        "the segment `{name}` has format version {found}, and this program reads version {FORMAT_VERSION}: start the node with \
         the release that wrote it"
    )]
    OtherVersion {
        /// The file.
        name: String,
        /// The version of its format.
        found: u32,
    },
    /// Something that was durable is no longer as it was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// A place of the log that is not as it was written, although it was durable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the log is damaged in `{name}` at byte {offset}: {evidence}. Others may rely on what is lost: do not cut or change the \
     file. Put back a copy of this node's disk that is as new"
)]
pub struct Damage {
    /// The segment's file.
    pub name: String,
    /// Where in the file the damage begins, as far as is known: the begin of the damaged part.
    pub offset: u64,
    /// How it is known.
    pub evidence: Evidence,
}

/// How it is known that something was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Evidence {
    /// A later record of the same segment says so.
    #[error(
        "record {sequence} is missing, and the record at byte {told_at} tells that all through {durable} were durable"
    )]
    LaterRecord {
        /// The number of the record that is missing.
        sequence: u64,
        /// Where the later record begins.
        told_at: u64,
        /// The last record that it calls durable.
        durable: u64,
    },
    /// The next segment begins with a later record, and is begun only when all before it is durable.
    #[error(
        "record {sequence} is missing or not the right one, and the next segment begins after record {last}"
    )]
    NextSegment {
        /// The number of the first record that is missing or wrong.
        sequence: u64,
        /// The last record before the next segment.
        last: u64,
    },
    /// The file is shorter than it was made, and its length was durable before it became a segment.
    #[error("the file has {length} bytes and was made with {bytes}: it was cut")]
    Cut {
        /// The file's length.
        length: u64,
        /// The length that it was made with.
        bytes: u64,
    },
    /// The header is not right, and was durable before what follows it was written.
    #[error(
        "the segment's header is not as it was written, although records or segments follow that were written after it"
    )]
    Header,
    /// A record that was there when the log was opened, or appended since, cannot be read.
    #[error("record {sequence} is not as it was written")]
    Unreadable {
        /// Its number.
        sequence: u64,
    },
}

/// Why records were not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The records are no longer in the log.
    #[error(
        "the log begins with record {first}, and record {sequence} was asked for: begin with a checkpoint"
    )]
    Truncated {
        /// The record that was asked for.
        sequence: u64,
        /// The first record that is there.
        first: u64,
    },
    /// A record is not as it was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// An operation on files failed.
    #[error(transparent)]
    Files(#[from] FileError),
}
